"""Where students' code runs: a process that has imported everything forks once for each answer.

    python -m assignments.sandbox [limits]

The grader writes jobs to its input and reads replies from its output (`assignments.pool`). For each
job it forks a *keeper*, which enters namespaces of its own; the keeper forks a *warden*, who
watches the time and with whom everything ends; the warden forks the *runner*, which gives up all
rights and only then looks at the student's code. The runner's root is an empty folder in memory
beside the interpreter, its packages and `smelib`, all read-only; there is no network, and nothing
that the runner writes outlives it. Where a system has no namespaces, or with `limits`, a process of
its own, limits and an empty folder remain.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import struct
import sys
import tempfile
import time
import types
from pathlib import Path
from typing import NoReturn

import smelib

# The checks' engine without the checks: a runner must not have their answers in its memory.
_hollow = types.ModuleType("smelib.checks")
_hollow.__path__ = [str(Path(smelib.__file__).parent / "checks")]
sys.modules["smelib.checks"] = smelib.checks = _hollow

import matplotlib  # noqa: E402, F401
import scipy.optimize  # noqa: E402
import scipy.stats  # noqa: E402, F401
import torch  # noqa: E402

from assignments import answers, isolation, runner, wire  # noqa: E402
from assignments.messages import receive, send  # noqa: E402
from smelib import federated, metrics, theory  # noqa: E402, F401

LARGEST_REPLY = 64_000_000  # bytes
ENDS = {signal.SIGXCPU: "time", signal.SIGXFSZ: "files"}


def _run(job: dict, payload: bytes, out: int, user: int | None, walls: bool) -> NoReturn:
    """The runner: give up all rights, then do the job."""
    quiet = os.open("/dev/null", os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    os.dup2(out, 3)
    os.closerange(4, 1024)
    isolation.give_up_rights(user)
    isolation.limit(job["limits"], crowded=user is None and not walls)
    os.environ.clear()
    os.environ.update(HOME=os.getcwd(), TMPDIR=os.getcwd(), OMP_NUM_THREADS="1", LANG="C.UTF-8")
    torch.set_num_threads(1)
    try:
        raw = runner.reply(job, payload)
    except BaseException as error:
        raw = wire.encode({"error": runner.words(error)})
    with os.fdopen(3, "wb") as stream:
        send(stream, {}, raw)
    os._exit(0)


def _heard(out: int, child: int, seconds: float) -> tuple[str, bytes]:
    """How the runner ended, and what it wrote before."""
    deadline, raw, need, closed = time.monotonic() + seconds, bytearray(), 16, False
    while len(raw) < need:
        if time.monotonic() > deadline:
            return "time", b""
        if max(need, len(raw)) > LARGEST_REPLY:
            return "too much", b""
        if closed:
            time.sleep(0.02)
        elif select.select([out], [], [], 0.02)[0]:
            piece = os.read(out, 1 << 20)
            closed = not piece
            raw += piece
            need = 16 + sum(struct.unpack_from(">QQ", raw)) if len(raw) >= 16 else 16
            continue
        done, status = os.waitpid(child, os.WNOHANG)
        if done and (closed or not select.select([out], [], [], 0)[0]):
            number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            return ENDS.get(number, "killed" if number else "exit"), b""
    head = struct.unpack_from(">QQ", raw)[0]
    return "answered", bytes(raw[16 + head : need])


def _sweep(child: int) -> None:
    """End the runner and what it started. Behind walls all of it ends with the warden anyhow."""
    with contextlib.suppress(OSError):
        os.killpg(child, signal.SIGKILL)
    mine = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    with contextlib.suppress(OSError, ChildProcessError):
        while found := mine.read_text().split():
            for pid in found:
                os.kill(int(pid), signal.SIGKILL)
            os.waitpid(-1, 0)


def _watch(job: dict, payload: bytes, back: int, user: int | None, walls: bool) -> NoReturn:
    """The warden: start the runner, wait for it, end all that is left of it."""
    isolation.prctl(isolation.DIE_WITH_PARENT, signal.SIGKILL)
    isolation.prctl(isolation.ADOPT_ORPHANS, 1)
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        _run(job, payload, into, user, walls)
    os.close(into)
    end, raw = _heard(out, child, job["limits"]["wall"])
    _sweep(child)
    with os.fdopen(back, "wb") as stream:
        send(stream, {"end": end}, raw)
    os._exit(0)


def _keep(job: dict, payload: bytes, back: int, root: Path, walls: bool) -> NoReturn:
    """The keeper: enters the namespaces, whose first process is then the warden."""
    isolation.prctl(isolation.DIE_WITH_PARENT, signal.SIGKILL)
    os.setsid()
    try:
        user = isolation.spare_user()
        if walls:
            isolation.enter_namespaces()
        child = os.fork()
        if child == 0:
            if walls:
                isolation.build_root(root, os.getuid() if user is None else user)
            elif user is not None:
                os.chown(root, user, user)
            os.chdir(f"/{isolation.DESK}" if walls else root)
            _watch(job, payload, back, user, walls)
        os.close(back)
        os.waitpid(child, 0)
    except BaseException as error:
        print(f"no walls here: {error}", file=sys.stderr)
    finally:
        os._exit(0)


def work(job: dict, payload: bytes, *, walls: bool) -> tuple[dict, bytes]:
    """Do a job in processes of its own. If the grader goes away, they go too."""
    root = Path(tempfile.mkdtemp(prefix="answer-"))
    back, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(back)
        os.dup2(os.open("/dev/null", os.O_RDWR), 0)
        _keep(job, payload, into, root, walls)
    os.close(into)
    try:
        with os.fdopen(back, "rb") as stream:
            while not select.select([stream], [], [], 0.5)[0]:
                if not select.select([0], [], [], 0)[0]:
                    continue
                os.kill(child, signal.SIGKILL)  # nobody writes a second job: the grader is gone
                raise SystemExit
            return receive(stream) or ({"end": "none"}, b"")
    finally:
        os.waitpid(child, 0)
        shutil.rmtree(root, ignore_errors=True)


TRIAL = {
    "do": "outline",
    "cells": [],
    "names": [],
    "limits": {"cpu": 5, "wall": 60, "memory": 1 << 33},
}


def warm_up() -> None:
    """Import what torch and smelib import late, once for all runners."""
    network = smelib.models.mlp((1, 2, 2), 2)
    images, labels = torch.zeros(1, 1, 2, 2, requires_grad=True), torch.zeros(1, dtype=torch.long)
    slope = federated.gradient(network, network.params(), images, labels)
    torch.autograd.grad(sum(g.sum() for g in slope.values()), images)
    theory.flow(theory.quadratic([[1.0, 0.0], [0.0, 1.0]]).gradient, [1.0, 1.0], 1.0)
    answers.read(["%matplotlib inline"])


def main(arguments: list[str]) -> None:
    """Say which walls there are, then do jobs until the input ends."""
    warm_up()
    stream_in, stream_out = os.fdopen(os.dup(0), "rb", 0), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not be read as a message
    walls = False
    if "limits" not in arguments:
        walls = work(TRIAL, b"", walls=True)[0]["end"] == "answered"
    send(stream_out, {"walls": walls, "root": os.getuid() == 0})
    while message := receive(stream_in):
        send(stream_out, *work(*message, walls=walls))


if __name__ == "__main__":
    main(sys.argv[1:])
