"""A table of results on disk that survives kills: whole lines are added, none is ever changed.

Every line of the CSV ends with a checksum of itself. A line that a killed process left half written
is recognised, ignored by readers, and cut off by the next writer.
"""

from __future__ import annotations

import csv
import errno
import fcntl
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from smelib.types import InputError

KEY = ("table", "row", "method", "init", "seed")
MEASURED = (
    *("psnr", "ssim", "l_sim", "alpha", "p2_ratio", "cos_start", "cos_best"),
    *("seconds", "cpu_seconds", "memory_mb", "steps"),
)
COLUMNS = (
    *(*KEY, "status", *MEASURED, "compiled", "device"),
    *("smelib", "torch", "python", "revision", "fingerprint", "error"),
)
HEADER = ",".join((*COLUMNS, "check"))


def key(line: dict) -> str:
    """The name of the job that a line belongs to, like `main/femnist-E10-N10/sme/torch/0`."""
    return "/".join(str(line[k]) for k in KEY)


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).split())


def _encode(line: dict) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(_text(line.get(c)) for c in COLUMNS)
    body = out.getvalue().encode()
    return body + b",%08x\n" % zlib.crc32(body)


def _decode(raw: bytes) -> dict[str, str] | None:
    """The line's values, or None if it is not whole."""
    body, _, check = raw.rpartition(b",")
    if check != b"%08x" % zlib.crc32(body):
        return None
    return dict(zip(COLUMNS, next(csv.reader([body.decode()])), strict=True))


def parse(content: bytes, name: str) -> list[dict[str, str]]:
    """The whole lines of a table called `name`, oldest first."""
    header, _, rest = content.partition(b"\n")
    if header != HEADER.encode():
        if HEADER.encode().startswith(header) and b"\n" not in content:
            return []  # killed while writing the header
        raise InputError(
            f"{name} was not written by this version of smelib (its header differs); "
            "move it away or name another folder with --out."
        )
    whole = rest.split(b"\n")[:-1]  # what no newline ends, the next writer cuts off
    return [line for raw in whole if (line := _decode(raw)) is not None]


class Ledger:
    """The results of one table, shared by all processes that work on the folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> list[dict[str, str]]:
        """Every whole line, oldest first."""
        return parse(self.path.read_bytes(), self.path.name) if self.path.is_file() else []

    def latest(self) -> dict[str, dict[str, str]]:
        """The last line of every job."""
        return {key(line): line for line in self.lines()}

    def append(self, line: dict) -> bool:
        """Add a line, durably; False if the job was already done by the same code."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        with open(file, "r+b", buffering=0) as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            content = stream.read()
            done = {key(x): x for x in parse(content, self.path.name)} if content else {}
            old = done.get(key(line), {"status": "none"})
            if old["status"] == "ok" and old["fingerprint"] == line["fingerprint"]:
                return False
            whole = content.rfind(b"\n") + 1
            stream.truncate(whole)  # what a killed writer left behind
            new = (b"" if whole else HEADER.encode() + b"\n") + _encode(line)
            if stream.write(new) != len(new):
                stream.truncate(whole)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
            os.fsync(stream.fileno())
        return True

    @contextmanager
    def claim(self, name: str) -> Iterator[bool]:
        """Hold a job while running it; False when another process holds it.

        The operating system lets go of a killed process's claim. Look at `latest()` after claiming:
        the job may have ended in between.
        """
        room = self.path.parent / ".claims"
        room.mkdir(parents=True, exist_ok=True)
        path = room / sha256(name.encode()).hexdigest()[:24]
        with path.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            try:
                yield True
            finally:
                path.unlink(missing_ok=True)
