"""Do the tests notice a fault? Tries each mutant of `mutant_list.py` on a copy of smelib.

    python tests/mutants.py                    all modules
    python tests/mutants.py params metrics     these only

A mutant is caught when one of its module's tests fails (or does not end). The exit code is 1 where
a module catches less than nine in ten, and 2 where the list no longer fits the source.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from mutant_list import MODULES, SLOW, Module, Mutant

ROOT = Path(__file__).resolve().parents[1]
FLOOR = 0.9
COPIED = ("smelib", "tests", "results", "book", "notebooks", "_toc.yml", "pyproject.toml")
PRELOADED = [
    *("torch._dynamo", "torch.func", "scipy.optimize", "skimage.metrics._structural_similarity"),
    *("matplotlib.pyplot", "tqdm.auto", "pytest"),
]
CAUGHT, SURVIVED = 1, 0  # pytest's exit codes; a mutant that cannot be imported gives 2


class MisfitError(Exception):
    """The list and the source, or the source and its tests, do not agree."""


class Verdict(NamedTuple):
    """What the tests said of one mutant."""

    module: str
    mutant: Mutant
    caught: bool


def mutated(source: str, module: Module, mutant: Mutant) -> str:
    """The module's text with the one fault in it."""
    if (places := source.count(mutant.old)) != 1:
        raise MisfitError(
            f"{module.file}: {mutant.old!r} occurs {places} times and must occur once; "
            "rewrite this mutant in tests/mutant_list.py."
        )
    changed = source.replace(mutant.old, mutant.new)
    try:
        compile(changed, module.file, "exec")
    except SyntaxError as error:
        raise MisfitError(f"{module.file}: {mutant.new!r} is not Python ({error.msg}).") from None
    return changed


class QuickestFirst:
    """For pytest: in each file the quickest tests first, by what the healthy run noted."""

    def __init__(self, file: Path) -> None:
        self.file, self.new = file, not file.is_file()
        self.took = {} if self.new else json.loads(file.read_text("utf-8"))

    def pytest_collection_modifyitems(self, items: list) -> None:
        files = list(dict.fromkeys(item.path for item in items))
        items.sort(key=lambda item: (files.index(item.path), self.took.get(item.nodeid, 0)))

    def pytest_runtest_logreport(self, report: object) -> None:
        self.took[report.nodeid] = self.took.get(report.nodeid, 0) + report.duration

    def pytest_sessionfinish(self) -> None:
        if self.new:
            self.file.write_text(json.dumps(self.took), "utf-8")


def _pytest(folder: Path, tests: tuple[str, ...], report: Path) -> None:
    """In a process of its own: run the tests on the copy in `folder`, and end with their code."""
    with open(report, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ |= {"PYTHONPATH": str(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    os.chdir(folder)
    sys.dont_write_bytecode = False  # the copies start from what the healthy run compiled
    sys.path[:0] = [str(folder)]
    import pytest
    import torch

    torch.set_num_threads(1)
    quick = ["-x", "-m", "not slow", "-p", "no:cacheprovider", *(f"--deselect={t}" for t in SLOW)]
    order = QuickestFirst(folder / "tests" / "durations.json")
    sys.exit(int(pytest.main([*quick, *tests], plugins=[order])))


def judge(folder: Path, tests: tuple[str, ...], limit: float) -> int:
    """Pytest's exit code on the copy in `folder`; too long a run counts as a failure."""
    report = folder / "report.txt"
    # What the tests import is imported once: each run is a copy of that process.
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(PRELOADED)
    process = server.Process(target=_pytest, args=(folder, tests, report))
    process.start()
    process.join(limit)
    if process.is_alive():
        process.kill()
        process.join()
        return CAUGHT
    if process.exitcode > 2:
        raise MisfitError(f"pytest cannot run {' '.join(tests)}:\n{report.read_text('utf-8')}")
    return CAUGHT if process.exitcode < 0 else process.exitcode


def copy(base: Path, folder: Path) -> Path:
    """A copy of what the tests need, compiled files included so that it starts quickly."""
    for name in COPIED:
        if (base / name).is_dir():
            shutil.copytree(base / name, folder / name)
        else:
            shutil.copy2(base / name, folder / name)
    return folder


def try_out(base: Path, name: str, mutant: Mutant, limit: float) -> Verdict:
    """Put one mutant into its own copy and let the tests judge it."""
    module = MODULES[name]
    with tempfile.TemporaryDirectory(prefix="mutant-") as scratch:
        file = copy(base, Path(scratch)) / module.file
        file.write_text(mutated(file.read_text("utf-8"), module, mutant), "utf-8")
        for stale in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
            stale.unlink()
        verdict = Verdict(name, mutant, judge(Path(scratch), module.tests, limit) != SURVIVED)
    print(f"{'caught' if verdict.caught else 'SURVIVED':9} {name}: {mutant.breaks}", flush=True)
    return verdict


def table(verdicts: list[Verdict]) -> tuple[str, bool]:
    """The score of each module, its survivors below it, and whether all reach the floor."""
    lines, good = [f"{'module':12} {'mutants':>8} {'caught':>8} {'share':>7}"], True
    for name in dict.fromkeys(v.module for v in verdicts):
        own = [v for v in verdicts if v.module == name]
        caught = sum(v.caught for v in own)
        good &= caught >= FLOOR * len(own)
        lines.append(f"{name:12} {len(own):8} {caught:8} {caught / len(own):7.0%}")
        for _, mutant, was_caught in own:
            if was_caught and mutant.equivalent:
                lines.append(f"    not equivalent after all, a test caught it: {mutant.breaks}")
            elif not was_caught:
                judgement = mutant.equivalent or "a test is missing"
                lines.append(f"    survived: {mutant.breaks} ({judgement})")
    return "\n".join(lines), good


def run(names: list[str], jobs: int) -> bool:
    """Judge the healthy copy first, then every mutant; prints the table."""
    for name in names:
        source = (ROOT / MODULES[name].file).read_text("utf-8")
        for mutant in MODULES[name].mutants:
            mutated(source, MODULES[name], mutant)
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as scratch,
        ThreadPoolExecutor(jobs) as pool,
    ):
        base, begun = copy(ROOT, Path(scratch)), time.monotonic()
        tests = tuple(dict.fromkeys(t for name in names for t in MODULES[name].tests))
        if judge(base, tests, 1200) != SURVIVED:
            report = (base / "report.txt").read_text("utf-8")
            raise MisfitError(f"the tests must pass before they can judge mutants:\n{report}")
        limit = 60 + 5 * (time.monotonic() - begun)
        waiting = [
            pool.submit(try_out, base, name, mutant, limit)
            for name in names
            for mutant in MODULES[name].mutants
        ]
        verdicts = [w.result() for w in waiting]
    text, good = table(verdicts)
    print(f"\n{text}\n{len(verdicts)} mutants in {(time.monotonic() - started) / 60:.1f} minutes")
    return good


def main() -> int:
    """Read the command line, run, and say how it went with the exit code."""
    parser = argparse.ArgumentParser(description="Do the tests notice a fault?")
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(MODULES))
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser.add_argument("--jobs", type=int, default=cores, help="at a time (default: all cores)")
    chosen = parser.parse_args()
    if unknown := set(chosen.modules) - set(MODULES):
        parser.error(f"no mutants for {', '.join(unknown)}: choose from {', '.join(MODULES)}")
    try:
        return 0 if run(chosen.modules or list(MODULES), chosen.jobs) else 1
    except MisfitError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
