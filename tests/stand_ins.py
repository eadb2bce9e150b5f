"""Stand-ins for real jobs in the tests of `smelib.reproduce`: instant, and some of them doomed."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from smelib.reproduce import drive
from smelib.reproduce.job import attempt
from smelib.reproduce.plan import Job
from smelib.reproduce.store import Ledger, key

FAKE = {"psnr": 20.0, "ssim": 0.5, "l_sim": 0.1, "seconds": 0.01, "memory_mb": 1.0, "steps": 3}


def note(folder: Path, text: str) -> None:
    """Remember, across processes and kills, that something happened."""
    with open(Path(folder) / "ran.log", "a") as file:
        file.write(text + "\n")


def noted(folder: Path) -> list[str]:
    file = folder / "ran.log"
    return file.read_text().split("\n")[:-1] if file.exists() else []


def quick(job: Job, *, folder: Path, **_: object) -> dict:
    note(folder, job.key)
    time.sleep(0.01)
    return FAKE


def doomed(job: Job, *, folder: Path, **_: object) -> dict:
    """On the node that will be removed, work until that happens."""
    import ray

    node = ray.get_runtime_context().get_node_id()
    note(folder, f"{node} {job.key}")
    time.sleep(120 if node == (Path(folder) / "doomed").read_text() else 0.1)
    return FAKE


def fragile(job: Job, *, folder: Path, **_: object) -> dict:
    """Seed 0 raises, seed 1 dies without a word, the others work."""
    if job.seed == 0:
        raise RuntimeError("the dummies\nexploded, badly")
    if job.seed == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return quick(job, folder=folder)


def asked(job: Job, *, compiled: bool, **_: object) -> dict:
    return {**FAKE, "compiled": compiled}


def rooted(job: Job, *, root: str, folder: Path, **_: object) -> dict:
    note(folder, root)
    return FAKE


def here(folder: Path) -> Callable[[Job], dict]:
    """A backend without processes of its own, for tests of the ledger."""
    return lambda job: attempt(job, quick, root=None, folder=folder)


def lines(folder: Path, table: str = "tiny") -> list[dict[str, str]]:
    return Ledger(folder / f"{table}.csv").lines()


def once(folder: Path, wanted: list[Job]) -> bool:
    """Every job has exactly one line, and it is a good one."""
    held = lines(folder, wanted[0].table)
    found = Counter(key(x) for x in held if x["status"] == "ok")
    return found == Counter(j.key for j in wanted) and len(held) == len(wanted)


def killed(folder: Path, wanted: list[Job], times: int) -> None:
    """Start a run and kill it, so many times: nothing finished is lost, and nothing run again."""
    draw, table = random.Random(5), wanted[0].table
    for _ in range(times):
        before = lines(folder, table)
        ran = len(noted(folder))
        child = forked(drive.drive, wanted, here(folder), 2, folder)
        # Counted in jobs begun: a fast machine must not finish before the last kill.
        begun = ran + draw.randint(1, 12)
        while len(noted(folder)) < begun:
            assert os.waitpid(child, os.WNOHANG) == (0, 0), "the run ended by itself"
            time.sleep(0.001)
        time.sleep(draw.uniform(0, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert lines(folder, table)[: len(before)] == before, "a finished job was lost"
        again = set(noted(folder)[ran:]) & {key(x) for x in before}
        assert not again, "a finished job was run again"
    assert 0 < len(lines(folder, table)) < len(wanted), "the last kill came after the last job"


def forked(work: Callable, *args: object) -> int:
    """Call a function in a copy of this process; the copy's id."""
    if (child := os.fork()) == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            work(*args)
            os._exit(0)
        finally:
            os._exit(1)
    return child


def placed(job: Job, *, device: str, **_: object) -> dict:
    return {**FAKE, "error": f"ran on {device}"}
