"""The grader's end of the sandbox: jobs go out, data come back."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from assignments import wire
from assignments.messages import receive, send

ROOT = Path(__file__).resolve().parents[1]
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}


@dataclass(frozen=True)
class Limits:
    """What one function may use: seconds of a processor, seconds, bytes of memory."""

    cpu: int = 20
    wall: int = 60
    memory: int = 4_000_000_000


REASONS = {
    "time": "yours took longer than {cpu} s of a processor, or {wall} s in all, and was stopped",
    "too much": "yours returns more than the grader reads",
    "files": "yours writes a file that is too large",
    "exit": "yours ended the process before it answered",
    "killed": "yours was killed by the system: too much memory, or a signal",
    "none": "the sandbox ended without an answer",
}


class Sandbox:
    """One process that does one job after the other; start several to do several at once."""

    def __init__(
        self, *, limits: Limits | None = None, walls: bool = True, through: Sequence[str] = ()
    ) -> None:
        self.limits, self._asked = limits or Limits(), walls
        self._through = through  # a command that starts it, such as `nice`
        self._start()

    def _start(self) -> None:
        words = [] if self._asked else ["limits"]
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
        self._process = subprocess.Popen(
            [*self._through, sys.executable, "-m", "assignments.sandbox", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": path},
            cwd=ROOT,
        )
        hello = receive(self._process.stdout)
        if hello is None:
            raise RuntimeError("the sandbox does not start; its own words stand above")
        self.walls, self.root = hello[0]["walls"], hello[0]["root"]

    @property
    def isolation(self) -> str:
        """What keeps a submission from the rest, in words."""
        if not self.walls:
            user = "another user" if self.root else "your own user"
            return f"a process of its own under limits, as {user}; it can read files"
        return "namespaces: no network, no files but Python and smelib, another user, limits"

    def do(self, job: dict[str, Any], cases: list[dict] | None = None) -> dict[str, Any]:
        """What came back; a dict with `error` where nothing did."""
        job = {**job, "limits": asdict(self.limits)}
        end, raw = "none", b""
        try:
            send(self._process.stdin, job, wire.encode(cases or []))
            if message := receive(self._process.stdout):
                end, raw = message[0]["end"], message[1]
        except OSError:
            pass
        if self._process.poll() is not None:  # somebody, or the system, has ended it
            self._start()
        if end != "answered":
            return {"error": REASONS[end].format(**asdict(self.limits))}
        try:
            found = wire.decode(raw)
        except wire.Unreadable as error:
            return {"error": f"what came back cannot be read ({error})"}
        return found if isinstance(found, dict) else {"error": "what came back is not an answer"}

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
