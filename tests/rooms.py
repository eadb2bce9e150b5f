"""The map of the house: which rooms smelib has, in the order in which they may import each other.

    python tests/rooms.py     writes the table into CONTRIBUTING.md

`tests/test_rooms.py` holds the source to it: no import upwards, and the table says what is true.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "smelib"
PAGE = ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- rooms: written by tests/rooms.py -->", "<!-- end of rooms -->"
OURS = "its arguments only"


class Room(NamedTuple):
    """A module or package of smelib: what it is for, and what it may touch besides."""

    name: str
    purpose: str
    touches: str = OURS
    student: bool = False


ROOMS = (
    Room("version", "the version, and the repository's address"),
    Room("errors", "bad input as a sentence"),
    Room("types", "the nouns: update, protocol, reconstruction", student=True),
    Room("params", "algebra on named weights", student=True),
    Room("seeds", "one random stream per purpose"),
    Room("devices", "which device to use", "the machine's devices and allocator"),
    Room("models", "`network`, the one boundary to a module, and the `zoo`", student=True),
    Room("data", "clients, and where their images come from", "files; the network when asked"),
    Room("defences", "what a client does before it sends"),
    Room("federated", "the client's training and the server's mean", student=True),
    Room("walking", "the client's path, walked from dummies"),
    Room("recomputing", "memory saved by computing again"),
    Room("priors", "what an attack believes of images"),
    Room("objectives", "the heart: each attack's loss", student=True),
    Room("compiling", "a step's gradients, compiled or not", "PyTorch's compiler"),
    Room("restarts", "one leading dimension for runs side by side"),
    Room("optimisers", "what a recipe chooses from: optimisers, schedules"),
    Room("solver", "the one optimisation loop", "a progress bar", student=True),
    Room("presets", "the papers' settings, in numbers"),
    Room("pairing", "which image shows which original"),
    Room("labels", "labels read from an update", student=True),
    Room("attacks", "an objective and a recipe make an attack", student=True),
    Room("aware", "the attacker who knows the defence"),
    Room("metrics", "PSNR and SSIM: where the truth is met", student=True),
    Room("theory", "gradient flow, paths, the theorems' bounds"),
    Room("checks", "a reader's functions against the kernel's", "the notebook's output"),
    Room("viz", "figures, filmstrip, slider, quiz", "matplotlib; the notebook's display"),
    Room(
        "reproduce",
        "the paper's tables and claims as jobs, and the scoreboard",
        "processes, `results/`, clusters",
    ),
    Room("auditing", "an update of your own: its form, its traces, a verdict", "files it is told"),
    Room("cli", "the command line", "the terminal, files that it is told"),
)
STUDENT_LINES = 1700  # what a student reads, all together
FUNCTION_LINES = 60


def sources(room: Room) -> list[Path]:
    """The room's Python files: one, or a package's."""
    package = PACKAGE / room.name
    return sorted(package.rglob("*.py")) if package.is_dir() else [package.with_suffix(".py")]


def read_by_students(room: Room) -> list[Path]:
    """What counts as reading: of `models` only the boundary, not the zoo."""
    if not room.student:
        return []
    return [f for f in sources(room) if room.name != "models" or f.stem == "network"]


def lines(files: list[Path]) -> int:
    """How many lines the files have, docstrings and blank lines included."""
    return sum(len(f.read_text("utf-8").splitlines()) for f in files)


def imports(room: Room) -> set[str]:
    """The other rooms that a room imports, anywhere in its files."""
    found: set[str] = set()
    for file in sources(room):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("smelib.")}
            elif isinstance(node, ast.ImportFrom) and node.module == "smelib":
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("smelib."):
                found.add(node.module.split(".")[1])
    return found - {room.name}


def long_functions() -> Iterator[str]:
    """Functions that do not fit on one screen."""
    for file in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = node.end_lineno - node.lineno + 1
                if length > FUNCTION_LINES:
                    yield f"{file.relative_to(ROOT)}: {node.name} has {length} lines"


def table() -> str:
    """The map as a table, counted and read from the source."""
    order = [room.name for room in ROOMS]
    rows = ["| room | for | imports | may touch | lines |", "|---|---|---|---|---:|"]
    for room in ROOMS:
        known = sorted(imports(room) - {"types", "version"}, key=order.index)
        star = " *" if room.student else ""
        cells = (f"`{room.name}`{star}", room.purpose, ", ".join(known) or "–", room.touches)
        rows.append(f"| {' | '.join(cells)} | {lines(sources(room)):,} |")
    reading = sum(lines(read_by_students(room)) for room in ROOMS)
    note = (
        f"\\* what a student reads: {reading:,} lines with `models/network.py`, and never more "
        f"than {STUDENT_LINES:,}. Everybody imports `errors` and `types`."
    )
    return "\n".join([*rows, "", note])


def page(text: str) -> str:
    """The page with today's table in it."""
    head, _, rest = text.partition(BEGIN)
    tail = rest.partition(END)[2]
    return f"{head}{BEGIN}\n\n{table()}\n\n{END}{tail}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
    print(f"wrote the rooms into {PAGE.name}")
