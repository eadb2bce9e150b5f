"""A student's function, called: the only code here that runs beside a student's own.

It reads a notebook's cells, runs the statements that one function needs, calls the function on each
case, and tells what came back as data. Whatever it says may be the student's invention; the grader
compares the numbers with its own.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import sys
import traceback
import types
from typing import Any

from assignments import answers, wire
from smelib.checks import engine

SOURCE = "your notebook"  # the file's name in a traceback


def words(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}".removesuffix(": ")


def close(names: list[str]) -> None:
    """What an assignment asks to be written cannot be called."""

    class Closed(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            raise AttributeError(f"{self.__name__} is closed here: write it yourself")

    for name in names:
        for known in [m for m in sys.modules if m.startswith(name + ".")]:
            del sys.modules[known]
        parent, _, last = name.rpartition(".")
        sys.modules[name] = closed = Closed(name)
        setattr(importlib.import_module(parent), last, closed)


def load(found: answers.Answers, function: str) -> tuple[dict[str, Any], list[str]]:
    """Run the statements that a function needs; the names, and what failed in words."""
    names: dict[str, Any] = {"__name__": "__main__"}
    failed = []
    for statement in found.needed(function):
        try:
            exec(compile(ast.Module([statement.node], []), SOURCE, "exec"), names)
        except BaseException as error:
            failed.append(f"{ast.unparse(statement.node)[:60]!r} raises {words(error)}")
    return names, failed


def solved(sources: list[str], functions: list[str]) -> dict[str, Any]:
    """Functions of the solution, for an answer that builds on those."""
    names: dict[str, Any] = {}
    for source in sources:
        with contextlib.suppress(ImportError):  # what is closed here, the functions do not need
            exec(compile(source, "the solution", "exec"), names)
    return {name: names[name] for name in functions}


def told(function: Any, case: dict[str, Any], slopes: tuple[str, ...]) -> dict[str, Any]:
    """What a function makes of a case, as data."""
    made = engine.outcome(function, case, slopes)
    return {
        "raw": made.raw,
        "slopes": made.slopes,
        "cut": list(made.cut),
        "attached": made.attached,
        "overwrote": engine.overwritten(made.given, case),
    }


def _place(error: BaseException) -> str:
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == SOURCE]
    return f" in line {lines[-1]} of its cell" if lines else ""


def call(job: dict, cases: list[dict[str, Any]]) -> dict[str, Any]:
    """The reply to a job: results, or why there are none."""
    close(job["closed"])
    found = answers.read(job["cells"])
    names, failed = load(found, job["function"])
    names |= solved(job["solution"], job["borrowed"])
    function = names.get(job["function"])
    if not callable(function):
        return {"error": failed[-1] if failed else "it is not a function"}
    try:
        results = [told(function, case, tuple(job["slopes"])) for case in cases]
    except NotImplementedError:
        return {"results": []}
    except SystemExit:
        return {"error": "yours calls exit"}
    except BaseException as error:
        note = f" (earlier, {failed[0]})" if isinstance(error, NameError) and failed else ""
        return {"error": f"yours raises {words(error)}{_place(error)}{note}"}
    return {"results": results}


def outline(job: dict) -> dict[str, Any]:
    """Which functions a notebook has, each with its plain source, and what cannot be read."""
    found = answers.read(job["cells"])
    functions = {}
    for name, statement in found.functions().items():
        if name in job["names"]:
            functions[name] = {
                "empty": statement.empty,
                "normal": "" if statement.empty else answers.normal(statement)[:20_000],
                "needs": sorted(set().union(*(s.gives for s in found.needed(name)))),
            }
    return {"functions": functions, "unreadable": found.unreadable[:5]}


def reply(job: dict, payload: bytes) -> bytes:
    """A job's reply, as bytes."""
    if job["do"] == "outline":
        return wire.encode(outline(job))
    return wire.encode(call(job, wire.decode(payload, objects=True)))
