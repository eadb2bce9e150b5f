"""Measurements by name in one JSON file: a run that is there is not repeated, a kill loses none.

And what else the scripts share: one core, runs cell by cell, the difference of pairs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock

from smelib.devices import keep_freed_memory
from smelib.errors import InputError
from smelib.reproduce import store, verdicts

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


def by_cell(runs: dict[str, dict]) -> dict[tuple[str, ...], dict[str, dict]]:
    """Runs called like "row | method | seed" by what is before the seed, and there by the seed."""
    cells: dict[tuple[str, ...], dict[str, dict]] = {}
    for name, found in runs.items():
        *cell, seed = name.split(" | ")
        cells.setdefault(tuple(cell), {})[seed] = found
    return cells


def between(pairs: list[tuple[float, float]]) -> str:
    """The mean paired difference with its 95 % interval; of a single pair the difference alone."""
    gap = verdicts.mean(np.subtract(*np.transpose(pairs))).interval
    ends = f" [{gap.low:+.2f}, {gap.high:+.2f}]" if len(pairs) > 1 else ""
    return f"{gap.value:+.2f}{ends}"


def on_one_core() -> None:
    """As the runs that are kept were timed: on one thread, freed memory held for the next."""
    torch.set_num_threads(1)
    keep_freed_memory()
