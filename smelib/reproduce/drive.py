"""Run jobs on the cores or GPUs of one machine, or on a Ray cluster; resume what was cut off."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import platform
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread, current_thread, main_thread

import torch
from tqdm import tqdm

from smelib import data
from smelib.data import loaders
from smelib.reproduce import job as experiments
from smelib.reproduce.job import Job, attempt, estimate, fingerprint
from smelib.reproduce.store import Ledger
from smelib.types import InputError
from smelib.version import __version__

Call = Callable[[Job], dict]
RETRIES = 3  # of a job whose Ray node or worker died


def duration(text: str) -> float:
    """Seconds in a time like 2h, 90m, 1h30m or 45s."""
    match = re.fullmatch(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", text.strip())
    if not text.strip() or match is None:
        raise InputError(f"--time-limit {text!r}: write a time like 2h, 90m or 1h30m.")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return 3600.0 * hours + 60 * minutes + seconds


def revision() -> str:
    """The git revision of the code, with `+changes` where the kernel differs from it."""

    def git(*words: str) -> str:
        command = ["git", "--no-optional-locks", *words]
        here = Path(__file__).parent
        return subprocess.run(command, cwd=here, capture_output=True, text=True, check=True).stdout

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)  # it may lie in another repository
        changed = "+changes" if git("status", "--porcelain", "--", ".").strip() else ""
        return git("rev-parse", "HEAD").strip() + changed
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _child(pipe: Connection, job: Job, runner: Callable, options: dict) -> None:
    """A job in a process of its own: its memory is its own, and a crash costs one job."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us

    def follow() -> None:
        multiprocessing.parent_process().join()
        os._exit(1)

    Thread(target=follow, daemon=True).start()
    torch.set_num_threads(1)
    if options["device"].startswith("cuda"):
        torch.cuda.set_device(options["device"])  # whose memory is measured
    pipe.send(attempt(job, runner, **options))


def _start_deaf(start: Callable[[], None]) -> None:
    """Start a process that Ctrl-C does not reach: it is for us, and we end the others."""
    if current_thread() is not main_thread():  # only that one may set what signals do
        return start()
    heard = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        start()
    finally:
        signal.signal(signal.SIGINT, heard)


class Local:
    """This machine: one process per core, or per GPU where there are any."""

    def __init__(self, runner: Callable, options: dict, workers: int | None = None) -> None:
        gpus = torch.cuda.device_count()
        devices = [f"cuda:{i}" for i in range(gpus)] or ["auto"]
        self.workers = workers or gpus or os.cpu_count() or 1
        self.free: SimpleQueue[str] = SimpleQueue()
        for i in range(self.workers):
            self.free.put(devices[i % len(devices)])
        cheap = "forkserver" in multiprocessing.get_all_start_methods()
        self.context = multiprocessing.get_context("forkserver" if cheap else "spawn")
        if cheap:
            self.context.set_forkserver_preload(["smelib.reproduce.job"])
            _start_deaf(forkserver.ensure_running)
        self.ended = Event()
        self.runner, self.options = runner, options

    def __call__(self, job: Job) -> dict:
        """Run a job and wait for it."""
        device = self.free.get()
        ours, theirs = self.context.Pipe(duplex=False)
        given = (theirs, job, self.runner, {**self.options, "device": device})
        process = self.context.Process(target=_child, args=given, daemon=True)
        try:
            process.start()
            theirs.close()
            if self.ended.is_set():  # in the meantime
                process.terminate()
            return ours.recv()
        except EOFError:
            process.join()
            raise ChildProcessError(
                f"the job's process ended with exit code {process.exitcode} and no result "
                "(-9 often means that memory ran out)"
            ) from None
        finally:
            if process.pid is not None:
                process.join()
            self.free.put(device)

    def abandon(self) -> None:
        """End the jobs under way, and those that are just starting."""
        self.ended.set()
        for process in multiprocessing.active_children():
            process.terminate()


class Cluster:
    """A running Ray cluster, whose nodes have smelib, the data root and the results folder."""

    def __init__(self, runner: Callable, options: dict, address: str, gpus: float | None) -> None:
        try:
            import ray
        except ImportError:
            raise InputError(
                "--backend ray needs Ray, which is not installed: pip install 'smelib[cluster]', "
                "or use --backend local."
            ) from None
        try:
            if not ray.is_initialized():
                ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise InputError(
                f"there is no Ray cluster at {address!r} ({str(error).splitlines()[0]}); start one "
                "with 'ray start --head', or name one with --address."
            ) from None
        have = ray.cluster_resources()
        share = gpus if gpus is not None else float(have.get("GPU", 0) > 0)
        if not 0 <= share <= have.get("GPU", 0):
            raise InputError(
                f"--gpus {share:g}: the cluster has {have.get('GPU', 0):g} GPUs; name a share of "
                "those, or 0 for none."
            )
        slots = have["GPU"] / share if share else have.get("CPU", 1)
        self.workers = max(1, math.floor(slots))
        self.ray, self.runner, self.options = ray, runner, options
        self.remote = ray.remote(num_cpus=1, num_gpus=share, max_retries=RETRIES)(attempt)

    def __call__(self, job: Job) -> dict:
        """Run a job somewhere on the cluster and wait for it; Ray retries what a node loses."""
        return self.ray.get(self.remote.remote(job, self.runner, **self.options))

    def abandon(self) -> None:
        """Let go of the cluster, which cancels the jobs under way."""
        self.ray.shutdown()


@dataclass(frozen=True)
class Rerun:
    """Which of the finished jobs to run again."""

    failed: bool = False
    stale: bool = False

    def wants(self, job: Job, line: dict | None, folder: Path) -> bool:
        """Whether there is something to do for a job whose last line is this one."""
        if line is None:
            return True
        if line["status"] == "failed" and self.failed:
            return True
        return self.stale and line["fingerprint"] != fingerprint(job, folder)


def drive(
    jobs: list[Job],
    call: Call,
    workers: int,
    folder: Path,
    *,
    rerun: Rerun = Rerun(),  # noqa: B008
    time_limit: float = math.inf,
    abandon: Callable[[], None] = lambda: None,
) -> Counter:
    """Run what is not done yet, in the given order; count `ok`, `failed`, `elsewhere` and `left`.

    And what earlier runs left: `before`, and `failed before`.

    Each line is on disk before its job counts as ended. After `time_limit` seconds no job starts,
    and those under way are finished. Ctrl-C abandons them: they are simply not done yet.
    """
    code = revision()
    ledgers = {j.table: Ledger(folder / f"{j.table}.csv") for j in jobs}
    known = {t: ledger.latest() for t, ledger in ledgers.items()}
    todo = [j for j in jobs if rerun.wants(j, known[j.table].get(j.key), folder)]
    tally = Counter(
        "failed before" if known[j.table][j.key]["status"] == "failed" else "before"
        for j in set(jobs) - set(todo)
    )
    stop, end = Event(), time.monotonic() + time_limit

    def one(job: Job) -> tuple[str, dict]:
        ledger = ledgers[job.table]
        if stop.is_set() or time.monotonic() > end:
            return "left", {}
        with ledger.claim(job.key) as mine:
            if not mine or not rerun.wants(job, ledger.latest().get(job.key), folder):
                return "elsewhere", {}
            try:
                line = call(job)
            except Exception as error:
                if stop.is_set():
                    return "left", {}
                line = attempt(job, _raise, folder=folder, error=error)
            ledger.append({**line, "revision": code})
            return line["status"], line

    live = sys.stderr.isatty()
    bar = tqdm(
        total=sum(map(estimate, todo)),
        disable=not live,
        bar_format="{desc} {percentage:3.0f}%|{bar}| {elapsed} gone, {remaining} to go",
    )
    pool = ThreadPoolExecutor(workers)
    try:
        futures = {pool.submit(one, job): job for job in todo}
        for future in as_completed(futures):
            job, (status, line) = futures[future], future.result()
            tally[status] += 1
            bar.update(estimate(job))
            bar.set_description(f"{sum(tally.values())}/{len(jobs)} jobs")
            if line and not live:
                _say(f"{sum(tally.values())}/{len(jobs)} {_report(job, line)}")
    except KeyboardInterrupt:
        stop.set()
        abandon()
        tally["interrupted"] = 1
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
        bar.close()
    write_manifest(folder)
    return tally


def _raise(job: Job, *, error: Exception, **_: object) -> dict:
    raise error


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


def write_manifest(folder: Path) -> None:
    """Say what the results in a folder were made with: `manifest.json`, written whole."""
    tables = {}
    for path in sorted(folder.glob("*.csv")):
        if path.stem in experiments.ROWS:
            try:
                lines = Ledger(path).lines()
            except InputError as error:  # somebody else's file, and no reason to stop
                tables[path.stem] = {"unreadable": str(error)}
                continue
            made = ("status", "revision", "fingerprint", "device", "smelib", "torch", "python")
            tables[path.stem] = {
                "lines": len(lines),
                **{c: dict(Counter(line[c] for line in lines).most_common()) for c in made},
            }
    manifest = {
        "written by": f"smelib {__version__} at {revision()}, Python {platform.python_version()}",
        "tables": tables,
        "networks": experiments.network_notes(folder),
    }
    scratch = folder / f".manifest-{os.getpid()}"
    scratch.write_text(json.dumps(manifest, indent=1) + "\n")
    os.replace(scratch, folder / "manifest.json")


def reproduce(
    jobs: list[Job],
    folder: Path,
    *,
    data_root: str | None = None,
    backend: str = "local",
    workers: int | None = None,
    address: str = "auto",
    gpus: float | None = None,
    rerun: Rerun = Rerun(),  # noqa: B008
    time_limit: float = math.inf,
    compiled: bool = False,
    runner: Callable = experiments.run,
) -> Counter:
    """Run jobs on the chosen backend, after checking that data and networks are there."""
    end = time.monotonic() + time_limit
    for name in {j.setting.dataset for j in jobs}:
        data.load(name, root=data_root)
    folder.mkdir(parents=True, exist_ok=True)
    if any(j.setting.rounds > 1 for j in jobs):
        experiments.make_networks(folder, data_root)
    root = loaders._root(data_root)  # also the environment's, which nodes elsewhere do not have
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
        rerun=rerun,
        time_limit=end - time.monotonic(),
        abandon=call.abandon,
    )
