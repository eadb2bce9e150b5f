"""Which statements of a notebook read measured results, and what those need: a script of its own.

A chapter's attacks take a minute; the lines that read `results/` take milliseconds. They are found
in the source: a statement that calls `published.results`, `folder` or `finished`, or a function
that does, and then whatever binds the names it uses.
"""

from __future__ import annotations

import ast
import builtins
from pathlib import Path
from typing import NamedTuple

import nbformat
from IPython.core.inputtransformer2 import TransformerManager

READERS = {"finished", "folder", "results"}


class Statement(NamedTuple):
    """A top-level statement: its source, what it binds, what it uses, what it calls."""

    source: str
    binds: set[str]
    uses: set[str]
    calls: set[str]


def _statement(node: ast.stmt) -> Statement:
    binds, uses, calls, inner = set(), set(), set(), set()
    for n in ast.walk(node):
        if isinstance(n, ast.Name):
            (uses if isinstance(n.ctx, ast.Load) else binds).add(n.id)
        elif isinstance(n, ast.arg):
            inner.add(n.arg)
        elif isinstance(n, ast.comprehension):
            inner |= {x.id for x in ast.walk(n.target) if isinstance(x, ast.Name)}
        elif isinstance(n, ast.alias):
            binds.add((n.asname or n.name).split(".")[0])
        elif isinstance(n, ast.Call):
            calls.add(n.func.attr if isinstance(n.func, ast.Attribute) else ast.unparse(n.func))
    if not isinstance(node, (ast.Assign, ast.AugAssign)):
        inner |= binds  # bound by the loop or the function itself before it is used
    if isinstance(node, ast.AugAssign):
        uses |= binds
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        binds = {node.name}
    return Statement(ast.unparse(node), binds, uses - inner - set(dir(builtins)), calls)


def setup(path: Path) -> str:
    """The first cell, as Python."""
    cells = nbformat.read(path, as_version=4).cells
    source = next(c.source for c in cells if c.cell_type == "code")
    return TransformerManager().transform_cell(source)


def script(path: Path) -> str:
    """The setup cell and the statements that read results, with all they need; empty if none."""
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    sources = [TransformerManager().transform_cell(c.source) for c in cells[1:]]
    body = [_statement(node) for source in sources for node in ast.parse(source).body]
    readers, wanted = set(READERS), set()
    for number, one in enumerate(body):
        if one.calls & readers:
            wanted.add(number)
            if one.source.startswith(("def ", "class ")):
                readers |= one.binds
    if not wanted:
        return ""
    todo = sorted(wanted)
    while todo:
        number = todo.pop()
        for name in body[number].uses:
            bound = [n for n in range(number) if name in body[n].binds]
            for earlier in bound[-1:]:
                if earlier not in wanted:
                    wanted.add(earlier)
                    todo.append(earlier)
    return "\n".join([setup(path), *(body[n].source for n in sorted(wanted))])
