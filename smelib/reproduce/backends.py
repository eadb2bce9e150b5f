"""Where jobs run: in processes of this machine, or on a Ray cluster."""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from queue import SimpleQueue
from threading import Event, Thread

import torch

from smelib.devices import cores, keep_freed_memory
from smelib.errors import InputError
from smelib.reproduce.job import Runner, attempt
from smelib.reproduce.plan import Job

Call = Callable[[Job], dict]
RETRIES = 3  # of a job whose Ray node or worker died


def work(job: Job, runner: Runner, options: dict) -> dict:
    """Run a job in a process that is there for jobs alone: one thread, freed memory kept."""
    torch.set_num_threads(1)
    keep_freed_memory()
    if options["device"].startswith("cuda"):
        torch.cuda.set_device(options["device"])  # whose memory is measured
    return attempt(job, runner, **options)


def _child(pipe: Connection, job: Job, runner: Runner, options: dict) -> None:
    """A job in a process of its own: its memory is its own, and a crash costs one job."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us

    def follow() -> None:
        multiprocessing.parent_process().join()
        os._exit(1)

    Thread(target=follow, daemon=True).start()
    pipe.send(work(job, runner, options))


@contextmanager
def _deaf() -> Iterator[None]:
    """What this thread starts does not hear Ctrl-C, from its first moment: it is for us.

    Blocked in the thread that starts a process, which inherits that, and not ignored in all of
    ours: no Ctrl-C is lost in the meantime.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # which would lift our mask, were it started below
    heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, heard)


class Local:
    """This machine: one process per core, or per GPU where there are any."""

    def __init__(self, runner: Runner, options: dict, workers: int | None = None) -> None:
        gpus = torch.cuda.device_count()
        devices = [f"cuda:{i}" for i in range(gpus)] or ["auto"]
        self.workers = workers or gpus or cores()
        self.free: SimpleQueue[str] = SimpleQueue()
        for i in range(self.workers):
            self.free.put(devices[i % len(devices)])
        cheap = "forkserver" in multiprocessing.get_all_start_methods()
        self.context = multiprocessing.get_context("forkserver" if cheap else "spawn")
        if cheap:
            self.context.set_forkserver_preload([__name__])
        self.ended = Event()
        self.running: set[BaseProcess] = set()
        self.runner, self.options = runner, options

    def __call__(self, job: Job) -> dict:
        """Run a job and wait for it."""
        device = self.free.get()
        ours, theirs = self.context.Pipe(duplex=False)
        given = (theirs, job, self.runner, {**self.options, "device": device})
        process = self.context.Process(target=_child, args=given, daemon=True)
        try:
            with _deaf():
                process.start()
            self.running.add(process)
            theirs.close()
            if self.ended.is_set():  # in the meantime
                process.kill()
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
            self.running.discard(process)
            self.free.put(device)

    def abandon(self) -> None:
        """End the jobs under way, and those that are just starting; no other process."""
        self.ended.set()
        for process in list(self.running):
            process.kill()


class Cluster:
    """A running Ray cluster, whose nodes have smelib, the data root and the results folder."""

    def __init__(self, runner: Runner, options: dict, address: str, gpus: float | None) -> None:
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
        # A node may show its GPUs also to jobs that asked for none of them.
        self.options = {**options, "device": "auto" if share else "cpu"}
        self.ray, self.runner = ray, runner
        self.remote = ray.remote(num_cpus=1, num_gpus=share, max_retries=RETRIES)(work)

    def __call__(self, job: Job) -> dict:
        """Run a job somewhere on the cluster and wait for it; Ray retries what a node loses."""
        return self.ray.get(self.remote.remote(job, self.runner, self.options))

    def abandon(self) -> None:
        """Let go of the cluster, which cancels the jobs under way."""
        self.ray.shutdown()
