"""A table of results on disk that survives kills: whole lines are added, none is ever changed.

Every line of the CSV ends with a checksum of itself. A line that a killed process left half written
is recognised, ignored by readers, and cut off by the next writer.
"""

from __future__ import annotations

import csv
import errno
import io
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from filelock import FileLock, Timeout

from smelib.errors import InputError

CELL = ("table", "row", "method", "init")
KEY = (*CELL, "seed")
GENERATION = ("version", "network")
MEASURED = (
    *("psnr", "ssim", "above_18", "l_sim", "alpha", "p2_ratio", "cos_start", "cos_best"),
    *("seconds", "cpu_seconds", "memory_mb", "steps"),
)
# Of the table of defences, whose numbers are kept with all their digits.
DEFENCES = (
    *("psnr", "ssim", "read", "l_sim", "alpha", "client_epsilon", "sample_epsilon", "bound"),
    *("mean_image", "mean_of_class", "best_of_1000"),
    *("read_mean_of_class", "read_best_of_1000", "read_originals"),
    *("accuracy", "by_round", "seconds", "cpu_seconds"),
)
LISTS = ("by_round",)
Generation: TypeAlias = tuple[str, str]  # the values of GENERATION: what makes results comparable
Line: TypeAlias = dict[str, str]


def measured(table: str) -> tuple[str, ...]:
    """What a line of a table has numbers for."""
    return DEFENCES if table == "defences" else MEASURED


def columns(table: str) -> tuple[str, ...]:
    """The columns of a table but the last, which is the checksum."""
    made = ("compiled", "device", "data", "smelib", "torch", "python", "revision", "error")
    return (*KEY, *GENERATION, "status", *measured(table), *made)


def header(table: str) -> str:
    """The first line of a table's file."""
    return ",".join((*columns(table), "check"))


HEADER = header("main")


def key(line: dict) -> str:
    """The name of the job that a line belongs to, like `main/femnist-E10-N10/sme/torch/0`."""
    return "/".join(str(line[k]) for k in KEY)


def generation(line: dict) -> Generation:
    """Which version of its measurement made a line, and from which trained network."""
    return tuple(str(line.get(k) or "") for k in GENERATION)


def by_cell(lines: Iterable[Line]) -> dict[tuple, dict[Generation, list[Line]]]:
    """The last line of every client, by cell and within it by generation, the newest one last.

    A cell is shown from one of its generations, never from two.
    """
    found: dict[tuple, dict[Generation, dict[str, Line]]] = {}
    for line in lines:
        cell = found.setdefault(tuple(line[k] for k in CELL), {})
        # Put at the end: of two networks under one version, the one that ran last is the newer.
        made = cell.pop(generation(line), {})
        cell[generation(line)] = {**made, line["seed"]: line}
    return {
        where: {g: list(cell[g].values()) for g in sorted(cell, key=lambda g: int(g[0]))}
        for where, cell in found.items()
    }


def _text(value: object, *, exact: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return " ".join(_text(v, exact=exact) for v in value)
    if isinstance(value, float):
        return str(float(value)) if exact else f"{value:.6g}"
    return " ".join(str(value).split())


def numbers(line: Line) -> dict[str, float | list[float] | None]:
    """What a line measured; None where it has no such value."""
    found: dict[str, float | list[float] | None] = {}
    for name in measured(line["table"]):
        each = [float(x) for x in line[name].split()]
        found[name] = None if not each else each if name in LISTS else each[0]
    return found


def _encode(line: dict, table: str) -> bytes:
    out = io.StringIO()
    exact = measured(table) is not MEASURED
    values = (_text(line.get(c), exact=exact) for c in columns(table))
    csv.writer(out, lineterminator="").writerow(values)
    body = out.getvalue().encode()
    return body + b",%08x\n" % zlib.crc32(body)


def _decode(raw: bytes, table: str) -> Line | None:
    """The line's values, or None if it is not whole."""
    body, _, check = raw.rpartition(b",")
    if check != b"%08x" % zlib.crc32(body):
        return None
    return dict(zip(columns(table), next(csv.reader([body.decode()])), strict=True))


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file beside `path` to write to, which then takes its place whole; or is gone again."""
    scratch = path.parent / f".{path.stem}-{os.getpid()}"
    try:
        yield scratch
        os.replace(scratch, path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def parse(content: bytes, name: str) -> list[Line]:
    """The whole lines of a table called `name`, oldest first."""
    return [line for _, line in numbered(content, name)]


def numbered(content: bytes, name: str) -> list[tuple[int, Line]]:
    """The whole lines of a table, each with its number in the file, counted from 1."""
    first, _, rest = content.partition(b"\n")
    table = Path(name).stem
    known = header(table).encode()
    if first != known:
        if known.startswith(first) and b"\n" not in content:
            return []  # killed while writing the header
        raise InputError(
            f"{name} was not written by this version of smelib (its header differs); "
            "move it away or name another folder with --out."
        )
    whole = rest.split(b"\n")[:-1]  # what no newline ends, the next writer cuts off
    read = ((i, _decode(raw, table)) for i, raw in enumerate(whole, 2))
    return [(i, line) for i, line in read if line is not None]


class Ledger:
    """The results of one table, shared by all processes that work on the folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> list[Line]:
        """Every whole line, oldest first."""
        return parse(self.path.read_bytes(), self.path.name) if self.path.is_file() else []

    def latest(self) -> dict[tuple[str, Generation], Line]:
        """The last line of every job in every generation."""
        return {(key(line), generation(line)): line for line in self.lines()}

    def append(self, line: dict) -> bool:
        """Add a line, durably; False if the job is already done in this generation."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock(self.path.name), self.path.open("a+b", buffering=0) as stream:
            stream.seek(0)
            content = stream.read()
            known = parse(content, self.path.name) if content else []
            done = {(key(x), generation(x)): x["status"] for x in known}
            if done.get((key(line), generation(line))) == "ok":
                return False
            whole = content.rfind(b"\n") + 1
            stream.truncate(whole)  # what a killed writer left behind
            table = self.path.stem
            new = b"" if whole else header(table).encode() + b"\n"
            new += _encode(line, table)
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
        lock = self._lock(name)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    def _lock(self, name: str) -> FileLock:
        """A lock that processes share by name; its file stays, empty.

        To remove it would let two hold one lock: who opened it before, and who makes it anew.
        """
        room = self.path.parent / ".claims"
        room.mkdir(parents=True, exist_ok=True)
        return FileLock(room / sha256(name.encode()).hexdigest()[:24])


def merge(source: Path, into: Path) -> int:
    """Add one folder's finished jobs to another's tables where they lack them; how many those were.

    For results that were kept elsewhere, or made by somebody else.
    """
    lines = [(f.name, x) for f in sorted(source.glob("*.csv")) for x in Ledger(f).lines()]
    return sum(Ledger(into / name).append(x) for name, x in lines if x["status"] == "ok")
