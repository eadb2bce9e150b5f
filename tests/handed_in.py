"""Notebooks as students hand them in: solved pages, wrong answers, and files that hold them."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "book")]

import repository  # noqa: E402, F401
import slides  # noqa: E402, F401

from assignments import build, catalogue, grade, marking  # noqa: E402
from assignments.pool import Sandbox  # noqa: E402

NAMES = list(catalogue.load())
SOLVED = {Path(name).stem: text for name, text in build.texts(solved=True).items()}


class Mutant:
    """A wrong answer: where it loses marks, and what it is told."""

    def __init__(self, block: str) -> None:
        first, second, self.source = block.strip().split("\n", 2)
        self.loses = {tuple(pair.split()) for pair in first.split(", ")}
        self.says = second.removeprefix("# says: ")


def mutants(name: str) -> list[Mutant]:
    text = (ROOT / "tests" / "mutants" / f"{name}.py").read_text("utf-8")
    return [Mutant(block) for block in re.split(r"^# loses: ", text, flags=re.MULTILINE)[1:]]


def code(name: str) -> list[str]:
    """The code cells of the solved page."""
    cells = json.loads(SOLVED[name])["cells"]
    return ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]


def written(path: Path, cells: list[str]) -> Path:
    """A notebook file with these cells."""
    made = [{"cell_type": "code", "source": s, "metadata": {}, "outputs": []} for s in cells]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": made, "metadata": {}, "nbformat": 4}), "utf-8")
    return path


def marks(box: Sandbox, path: Path) -> list[marking.Mark]:
    return [marking.Mark(**m) for m in grade.grade(box, path)["marks"]]


def lost(found: list[marking.Mark]) -> dict[tuple[str, str], str]:
    return {(m.part, m.aspect): m.says for m in found if m.points < m.of}


def below(pid: int) -> set[tuple[int, str]]:
    """All processes under one, each with the time at which it started."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(") ")[2].split()
            parents[int(path.parent.name), fields[19]] = (int(fields[1]), fields[0])
    found, more = set(), {pid}
    while more:
        children = {p for p, (parent, state) in parents.items() if parent in more and state != "Z"}
        more = {number for number, _ in children - found}
        found |= children
    return found


def ended(started: set[tuple[int, str]], seconds: float = 120) -> bool:
    """Whether all of them end within some seconds."""
    deadline = time.monotonic() + seconds
    while alive := {p for p in started if _time(p[0]) == p[1]}:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return not alive


def _time(pid: int) -> str:
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        return "" if fields[0] == "Z" else fields[19]
    return ""
