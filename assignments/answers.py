"""A notebook's answers, found by the names of its functions; its cells' metadata are not read.

A function is taken with the statements that it needs and no others, so that a cell that fails, a
long experiment or a call of `exit` further up changes nothing. Of several definitions the last one
that is not empty counts.
"""

from __future__ import annotations

import ast
import json
import symtable
from dataclasses import dataclass, field
from pathlib import Path

from IPython.core.inputtransformer2 import TransformerManager

LARGEST = 20_000_000  # bytes of a notebook


class NotANotebook(ValueError):  # noqa: N818
    """A file that holds no notebook; the message says why."""


def cells(path: Path) -> list[str]:
    """The code cells of a notebook file, as text."""
    if path.stat().st_size > LARGEST:
        raise NotANotebook(f"the file is larger than {LARGEST // 1_000_000} MB")
    try:
        book = json.loads(path.read_text(encoding="utf-8"))
        found = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise NotANotebook("the file is not a notebook (.ipynb)") from None
    if not found:
        raise NotANotebook("the notebook has no code")
    return found


@dataclass
class Statement:
    """A top-level statement: the names that it gives and those that it needs."""

    node: ast.stmt
    gives: set[str]
    needs: set[str]

    @property
    def empty(self) -> bool:
        """A function with nothing in it but a docstring, `...`, `pass` or NotImplementedError."""
        return isinstance(self.node, ast.FunctionDef) and all(map(_idle, self.node.body))


def _defined(node: ast.stmt) -> str:
    """The name of the function that a statement defines, by `def` or as a lambda, or nothing."""
    if isinstance(node, ast.FunctionDef):
        return node.name
    lambdas = isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda)
    return node.targets[0].id if lambdas and isinstance(node.targets[0], ast.Name) else ""


def _idle(node: ast.stmt) -> bool:
    if isinstance(node, ast.Raise):
        return "NotImplementedError" in ast.unparse(node)
    if isinstance(node, ast.Return):
        return node.value is None or isinstance(node.value, ast.Constant)
    constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    return constant or isinstance(node, ast.Pass)


def _globals(table: symtable.SymbolTable) -> set[str]:
    """The names that code in a table, or inside it, looks up in the notebook."""
    top = table.get_type() == "module"
    own = {s.get_name() for s in table.get_symbols() if s.is_referenced()}
    if not top:
        own = {n for n in own if table.lookup(n).is_global()}
    return own.union(*map(_globals, table.get_children()))


def _statement(node: ast.stmt) -> Statement:
    table = symtable.symtable(ast.unparse(node), "cell", "exec")
    gives = {s.get_name() for s in table.get_symbols() if s.is_assigned() or s.is_imported()}
    for part in ast.walk(node):  # settings["size"] = 3 makes settings what they are
        stored = isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store)
        if stored and isinstance(part.value, ast.Name):
            gives.add(part.value.id)
    if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
        gives.add("*")  # whatever it gives, it may be needed
    return Statement(node, gives, _globals(table))


@dataclass
class Answers:
    """What a notebook defines, in its order, and the cells that cannot be read."""

    statements: list[Statement] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    def functions(self) -> dict[str, Statement]:
        """The functions by name: the last definition that is not empty, or the last."""
        found: dict[str, Statement] = {}
        for statement in self.statements:
            name = _defined(statement.node)
            if name and (name not in found or found[name].empty or not statement.empty):
                found[name] = statement
        return found

    def needed(self, name: str) -> list[Statement]:
        """The statements that a function needs, itself included, in the notebook's order."""
        chosen = self.functions()
        wanted, taken = {name, "*"}, set()
        while True:
            more = {
                i
                for i, s in enumerate(self.statements)
                if s.gives & wanted and not any(chosen.get(n, s) is not s for n in s.gives & wanted)
            }
            if more <= taken:
                return [self.statements[i] for i in sorted(taken)]
            taken |= more
            wanted |= set().union(*(self.statements[i].needs for i in taken))


def read(sources: list[str]) -> Answers:
    """The answers in a notebook's code cells."""
    found = Answers()
    for number, source in enumerate(sources, 1):
        try:
            nodes = ast.parse(TransformerManager().transform_cell(source)).body
            found.statements += map(_statement, nodes)
        except SyntaxError as error:
            found.unreadable.append(f"code cell {number}, line {error.lineno}: {error.msg}")
        except (ValueError, RecursionError, MemoryError) as error:
            found.unreadable.append(f"code cell {number}: {type(error).__name__}")
    return found


class _Plain(ast.NodeTransformer):
    """Names and docstrings that a copy could have changed are made the same."""

    def __init__(self, local: set[str]) -> None:
        self.local, self.seen = local, {}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Without its docstring and its annotations."""
        if node.body and isinstance(node.body[0], ast.Expr):
            node.body = node.body[1:] or [ast.Pass()]
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        """An argument's place instead of its name."""
        return ast.arg(self.seen.setdefault(node.arg, f"v{len(self.seen)}"))

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A local variable's place instead of its name."""
        if node.id in self.local or node.id in self.seen:
            node.id = self.seen.setdefault(node.id, f"v{len(self.seen)}")
        return node


def normal(statement: Statement) -> str:
    """A function's source without comments, docstring and names of its own."""
    node = ast.parse(ast.unparse(statement.node)).body[0]
    stored = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not _loads(n)}
    return ast.unparse(ast.fix_missing_locations(_Plain(stored).visit(node)))


def _loads(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Load)
