"""Measurements by name in one JSON file: a run that is there is not repeated, a kill loses none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from filelock import FileLock

from smelib.errors import InputError
from smelib.reproduce import store

Run = Callable[[], object]


def stored(file: Path) -> dict[str, dict]:
    """What a file holds, in the order in which it was measured."""
    try:
        return json.loads(file.read_text("utf-8")) if file.is_file() else {}
    except ValueError:
        raise InputError(f"{file} is not whole JSON; move it away to measure anew.") from None


def keep(file: Path, found: dict[str, object]) -> None:
    """Add runs to what this process and others have kept; the file is replaced whole."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file.with_name(f".{file.name}.lock")):
        text = json.dumps({**stored(file), **found}, indent=1) + "\n"
        with store.replacing(file) as scratch:
            scratch.write_text(text, "utf-8")


def fill(file: Path, jobs: Iterable[tuple[str, Run]], *, quiet: bool = False) -> dict[str, dict]:
    """Run the jobs (a name and what measures it) that a file lacks, and say so; all that it has."""
    for name, run in jobs:
        if name not in stored(file):
            found = run()
            keep(file, {name: found})
            if not quiet:
                print(f"{name}: {found}", flush=True)
    return stored(file)
