"""The assignments: `source/NAME.md` has text and solutions, `source/NAME.py` points and checks."""

from __future__ import annotations

import ast
import importlib
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from assignments import SEED
from assignments.marking import Assignment

SOURCE = Path(__file__).parent / "source"
CELL = re.compile(r"^```\{code-cell\}\n(.*?)^```$\n?", re.MULTILINE | re.DOTALL)
SOLUTION = re.compile(r"^( *)# BEGIN SOLUTION\n(.*?)^ *# END SOLUTION\n", re.MULTILINE | re.DOTALL)


class Cell(NamedTuple):
    """A piece of a page: code or text."""

    code: bool
    source: str


def cells(name: str, text: str | None = None) -> list[Cell]:
    """The page's cells, solutions and their marks included."""
    text = text if text is not None else (SOURCE / f"{name}.md").read_text(encoding="utf-8")
    text = text.replace("{{SEED}}", str(SEED))
    found, at = [], 0
    for match in CELL.finditer(text):
        found += [Cell(False, text[at : match.start()]), Cell(True, match[1])]
        at = match.end()
    found.append(Cell(False, text[at:]))
    return [Cell(c.code, c.source.strip()) for c in found if c.source.strip()]


def _solution(name: str) -> tuple[str, ...]:
    """The imports and functions of the solved page, which is all that the functions need."""
    kept = (ast.Import, ast.ImportFrom, ast.FunctionDef)
    found = ["import smelib\nimport torch"]
    for cell in cells(name):
        nodes = ast.parse(cell.source).body if cell.code else []
        found += [
            ast.unparse(n) for n in nodes if isinstance(n, kept) and "checks" not in _names(n)
        ]
    return tuple(found)


def _names(node: ast.stmt) -> set[str]:
    return {a.name for a in node.names} if isinstance(node, ast.Import | ast.ImportFrom) else set()


@cache
def load() -> dict[str, Assignment]:
    """All assignments by name, in order."""
    found = {}
    for path in sorted(SOURCE.glob("a*.py")):
        module = importlib.import_module(f"assignments.source.{path.stem}")
        found[path.stem] = replace(module.ASSIGNMENT, cells=_solution(path.stem))
    return found


def recognised(functions: set[str]) -> Assignment | None:
    """The assignment of which a notebook has the largest share of functions."""
    shares = {
        a.name: len(functions & {p.name for p in a.parts}) / len(a.parts) for a in load().values()
    }
    best = max(shares, key=shares.__getitem__)
    return load()[best] if shares[best] else None
