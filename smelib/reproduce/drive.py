"""Run what is not done yet, resume what was cut off, and say what happened."""

from __future__ import annotations

import math
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, current_thread, main_thread

from tqdm import tqdm

from smelib import data
from smelib.errors import InputError
from smelib.reproduce import networks, provenance
from smelib.reproduce.backends import Call, Cluster, Local
from smelib.reproduce.job import Runner, failure, run
from smelib.reproduce.plan import Job, estimate
from smelib.reproduce.store import Ledger

TICK = 0.1  # seconds between two looks at Ctrl-C


def duration(text: str) -> float:
    """Seconds in a time like 2h, 90m, 1h30m or 45s."""
    match = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", text.strip())
    if not text.strip() or match is None:
        raise InputError(f"--time-limit {text!r}: write a time like 2h, 90m or 1h30m.")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return 3600.0 * hours + 60 * minutes + seconds


@dataclass
class _CtrlC:
    """Whether somebody pressed it."""

    heard: bool = False


@contextmanager
def _listening() -> Iterator[_CtrlC]:
    """Note Ctrl-C and go on: an exception could fall where a thread or a process is half started.

    Where it is ignored on purpose, as for a command in the background of a script, it stays so.
    Only the main thread hears signals.
    """
    found = _CtrlC()
    before = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or before in (signal.SIG_IGN, None):
        yield found
        return
    signal.signal(signal.SIGINT, lambda *_: setattr(found, "heard", True))
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, before)


@dataclass
class _Shift:
    """One run over a folder: what is known of it, and when to start nothing more."""

    folder: Path
    call: Call
    retry_failed: bool
    end: float
    stop: Event = field(default_factory=Event)

    def __post_init__(self) -> None:
        self.code = provenance.revision()
        self.digests = networks.digests(networks.notes(self.folder))

    def ledger(self, job: Job) -> Ledger:
        return Ledger(self.folder / f"{job.table}.csv")

    def status(self, job: Job, latest: dict) -> str:
        """ok or failed, if there is a line of today's generation; else nothing."""
        mine = (job.key, provenance.generation(job, self.digests))
        return latest.get(mine, {"status": ""})["status"]

    def wants(self, status: str) -> bool:
        return not status or (status == "failed" and self.retry_failed)

    def one(self, job: Job) -> tuple[str, dict]:
        """Run a job unless somebody else has; its line is on disk before it counts as ended."""
        ledger = self.ledger(job)
        if self.stop.is_set() or time.monotonic() > self.end:
            return "left", {}
        with ledger.claim(job.key) as mine:
            if not mine or not self.wants(self.status(job, ledger.latest())):
                return "elsewhere", {}
            try:
                line = self.call(job)
            except Exception as error:
                if self.stop.is_set():
                    return "left", {}
                line = failure(job, error, folder=self.folder)
            ledger.append({**line, "revision": self.code})
            return line["status"], line


def drive(
    jobs: list[Job],
    call: Call,
    workers: int,
    folder: Path,
    *,
    retry_failed: bool = False,
    time_limit: float = math.inf,
    abandon: Callable[[], None] = lambda: None,
) -> Counter:
    """Run what is not done yet, in the given order; count `ok`, `failed`, `elsewhere` and `left`.

    And what earlier runs left: `before`, and `failed before`. A job is done when there is a line
    of its measurement's current version. After `time_limit` seconds no job starts, and those under
    way are finished. Ctrl-C abandons them: they are simply not done yet.
    """
    shift = _Shift(folder, call, retry_failed, time.monotonic() + time_limit)
    latest = {j.table: shift.ledger(j).latest() for j in jobs}
    status = {j: shift.status(j, latest[j.table]) for j in jobs}
    todo = [j for j in jobs if shift.wants(status[j])]
    tally = Counter(
        {"ok": "before", "failed": "failed before"}[status[j]] for j in set(jobs) - set(todo)
    )
    with _listening() as ctrl_c, _Screen(todo, tally, len(jobs)) as screen:
        pool = ThreadPoolExecutor(workers)
        try:
            waiting = {pool.submit(shift.one, job): job for job in todo}
            while waiting and not ctrl_c.heard:
                for future in wait(waiting, TICK, FIRST_COMPLETED).done:
                    screen.ended(waiting.pop(future), *future.result())
        finally:
            shift.stop.set()
            if ctrl_c.heard:
                abandon()
            pool.shutdown(cancel_futures=True)
        for future, job in waiting.items():
            if not future.cancelled():
                screen.ended(job, *future.result())
        provenance.write_manifest(folder)
        tally["interrupted"] = int(ctrl_c.heard)
    return tally


class _Screen:
    """What somebody at the terminal sees: a bar, or a line per job where there is no terminal."""

    def __init__(self, todo: list[Job], tally: Counter, planned: int) -> None:
        self.tally, self.planned, self.live = tally, planned, sys.stderr.isatty()
        self.bar = tqdm(
            total=sum(map(estimate, todo)),
            disable=not self.live,
            bar_format="{desc} {percentage:3.0f}%|{bar}| {elapsed} gone, {remaining} to go",
        )

    def __enter__(self) -> _Screen:
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.close()

    def ended(self, job: Job, status: str, line: dict) -> None:
        """Count a job, and say so."""
        self.tally[status] += 1
        self.bar.update(estimate(job))
        count = f"{sum(self.tally.values())}/{self.planned}"
        self.bar.set_description(f"{count} jobs")
        if line and not self.live:
            _say(f"{count} {_report(job, line)}")


def _say(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:  # nobody listens any more, as in `| head`; the jobs go on
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(job: Job, line: dict) -> str:
    if line["status"] == "failed":
        return f"{job.key}: FAILED, {line['error']}"
    quality = [
        f"{name} {line[column]:.{digits}f}"
        for name, column, digits in (
            ("PSNR", "psnr", 1),
            ("P2 ratio", "p2_ratio", 3),
            ("best cosine", "cos_best", 3),
            ("best guess", "best_of_1000", 1),
            ("accuracy", "accuracy", 3),
        )
        if line.get(column) is not None
    ]
    return f"{job.key}: {', '.join(quality)}, {line['seconds']:.1f} s"


def summary(table: str, planned: int, tally: Counter) -> str:
    """One sentence on what a run did."""
    said = [f"{tally['ok']} jobs run"]
    for name, words in (
        ("failed", "failed (--retry-failed runs them once more)"),
        ("before", "done before"),
        ("failed before", "failed before (--retry-failed runs them once more)"),
        ("elsewhere", "left to another run on this folder"),
    ):
        said += [f"{tally[name]} {words}"] if tally[name] else []
    ended = ("ok", "failed", "before", "failed before", "elsewhere")
    if left := planned - sum(tally[k] for k in ended):
        said.append(f"{left} still to do (the same command goes on)")
    return f"smelib: {table}: {', '.join(said)}."


def reproduce(
    jobs: list[Job],
    folder: Path,
    *,
    data_root: str | None = None,
    backend: str = "local",
    workers: int | None = None,
    address: str = "auto",
    gpus: float | None = None,
    retry_failed: bool = False,
    time_limit: float = math.inf,
    compiled: bool = False,
    runner: Runner = run,
) -> Counter:
    """Run jobs on the chosen backend, after checking that data and networks are there."""
    end = time.monotonic() + time_limit
    for name in {j.setting.dataset for j in jobs}:
        data.load(name, root=data_root)
    folder.mkdir(parents=True, exist_ok=True)
    for which, init in sorted({j.network[1:] for j in jobs if j.setting.rounds > 1}):
        networks.make(folder, data_root, which=which, init=init)
    root = data.data_root(data_root)  # also the environment's, which nodes elsewhere do not have
    options = {
        "root": root and str(root.resolve()),
        "folder": folder.resolve(),
        "compiled": compiled,
    }
    if backend == "ray":
        call = Cluster(runner, options, address, gpus)
    else:
        call = Local(runner, options, workers)
    return drive(
        jobs,
        call,
        call.workers,
        folder,
        retry_failed=retry_failed,
        time_limit=end - time.monotonic(),
        abandon=call.abandon,
    )
