"""What a result was made with: the version of its measurement, data, weights, code and machine."""

from __future__ import annotations

import ctypes
import json
import platform
import subprocess
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path

import numpy as np
import torch

import smelib
from smelib import data
from smelib.devices import pick_device
from smelib.errors import InputError
from smelib.reproduce import networks, store
from smelib.reproduce.plan import ROWS, Job
from smelib.reproduce.store import Generation, Ledger
from smelib.version import __version__

# Raise a number by hand when what that measurement gives is meant to move: every job of it then
# runs again. tests/test_golden.py fails when the numbers move and this does not.
RESULTS_VERSION = {"ig": 2, "sme": 2, "retrace": 2, "dlfa": 2, "path": 2, "defences": 1}
RESULTS_VERSION["dlfa_rebalanced"] = RESULTS_VERSION["dlfa"]

# Since these versions a seed stands for the clients of today: before them, for others.
SEEDS_SINCE = {"ig": 2, "sme": 2, "retrace": 1, "dlfa": 2, "dlfa_rebalanced": 1, "path": 2}
TODAY = 2


def draw(line: Mapping[str, str]) -> int:
    """Which clients a line's seed stands for: 1 of old, `TODAY` of today.

    Lines of the same seed and of different draws are no pair.
    """
    return TODAY - (int(line["version"] or 0) < SEEDS_SINCE.get(line["method"], 0))


def by_draw(
    made: Mapping[Generation, list[store.Line]], digests: Mapping[str, str]
) -> dict[int, list[dict]]:
    """A cell's lines by the draw of their clients: today's, marked `now`, or the last before.

    `made` has them by generation. Today's may be of several, one for each trained network.
    """
    found: dict[int, list[dict]] = {draw(lines[0]): list(lines) for lines in made.values()}
    now = [x for lines in made.values() for x in lines if is_current(x, digests)]
    if now:
        found[draw(now[0])] = [{**x, "now": True} for x in now]
    return found


def richest(*cells: Mapping[int, list[dict]]) -> list[list[dict]]:
    """Lines of cells whose seeds stand for the same clients: of the draw with most of them.

    Today's among equals, failures included. Several cells without a draw in common have none.
    """

    def clients(which: int) -> int:
        return min(len(cell.get(which, [])) for cell in cells)

    best = max((TODAY, 1), key=clients)
    return [cell.get(best, []) if clients(best) else [] for cell in cells]


def generation(job: Job, digests: Mapping[str, str]) -> Generation:
    """What a line must say to be the job's result of today.

    The measurement's version and, where a job starts from a trained network, that network's
    digest; `digests` has those by file name.
    """
    trained = job.setting.rounds > 1
    file = networks.file_name(*job.network)
    measurement = "defences" if job.table == "defences" else job.method
    return str(RESULTS_VERSION[measurement]), digests.get(file, "") if trained else ""


def is_current(line: Mapping[str, str], digests: Mapping[str, str]) -> bool:
    """Whether a stored line is its job's result of today."""
    job = Job(line["table"], line["row"], line["method"], int(line["seed"]), line["init"])
    planned = job.row in ROWS[job.table]  # a row that left the plan has no result of today
    return planned and store.generation(line) == generation(job, digests)


@lru_cache(maxsize=8)
def data_digest(name: str, root: str | None) -> str:
    """A short name for a data set's arrays as they are used, wherever they were read from."""
    held = data.load(name, root=root)
    arrays = [held.images, held.labels.astype(np.int64)]
    arrays += [] if held.writers is None else [held.writers.astype(str)]
    total = sha256()
    for array in arrays:
        total.update(f"{array.dtype} {array.shape}".encode())
        total.update(np.ascontiguousarray(array))
    return total.hexdigest()[:12]


def line(job: Job, *, folder: Path, device: str = "auto") -> dict:
    """What a job's line says whether it succeeds or fails."""
    digests = {}
    if job.setting.rounds > 1:
        with suppress(OSError):  # a network that is missing is the job's failure, not the line's
            weights = networks.load(folder, *job.network)
            digests = {networks.file_name(*job.network): networks.digest(weights)}
    version, network = generation(job, digests)
    on_cpu = job.method == "path" or job.table == "defences"
    return {
        **{k: getattr(job, k) for k in ("table", "row", "method", "init", "seed")},
        "version": version,
        "network": network,
        "smelib": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "device": "cpu" if on_cpu else device_name(device),
    }


def device_name(name: str) -> str:
    """The kind of device behind a name like "auto"; of a GPU, its model."""
    device = pick_device(name)
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def memory_mb(device: str, *, peak: bool = False) -> float:
    """Memory in use, from where the peak is counted anew; or that peak. A GPU's, or resident."""
    if pick_device(device).type == "cuda":
        if not peak:
            torch.cuda.reset_peak_memory_stats()
        return torch.cuda.max_memory_allocated() / 2**20
    status = Path("/proc/self/status")
    if not status.is_file():
        return _most_resident_mb()
    if not peak:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)  # what earlier work freed is not in use
            Path("/proc/self/clear_refs").write_text("5")
    text = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
    return int(text.split()[1]) / 1024


def _most_resident_mb() -> float:
    """The process's own peak where there is no /proc; 0, which is no measurement, on Windows."""
    try:
        import resource
    except ImportError:
        return 0.0
    unit = 2**20 if platform.system() == "Darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def revision() -> str:
    """The git revision of the code, with `+changes` where the package differs from its clone."""

    def git(*words: str) -> str:
        command = ["git", "--no-optional-locks", *words]
        here = Path(smelib.__file__).parent
        return subprocess.run(command, cwd=here, capture_output=True, text=True, check=True).stdout

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # it may lie in another repository
        changed = "+changes" if git("status", "--porcelain", "--", ".").strip() else ""
        return git("rev-parse", "HEAD").strip() + changed
    except (OSError, subprocess.CalledProcessError):
        return _installed_revision()


def _installed_revision() -> str:
    """The commit from which pip installed the package, as it does on Colab; or `unknown`."""
    with suppress(metadata.PackageNotFoundError, OSError, ValueError):
        found = metadata.distribution("smelib")
        noted = json.loads(found.read_text("direct_url.json") or "{}")
        if Path(found.locate_file("smelib/__init__.py")).samefile(smelib.__file__):
            return noted.get("vcs_info", {}).get("commit_id", "unknown")
    return "unknown"


def write_manifest(folder: Path) -> None:
    """Say what the results in a folder were made with: `manifest.json`, written whole."""
    tables = {}
    made = ("status", "version", "revision", "data", "device", "smelib", "torch", "python")
    for path in sorted(folder.glob("*.csv")):
        if path.stem in ROWS:
            try:
                lines = Ledger(path).lines()
            except InputError as error:  # somebody else's file, and no reason to stop
                tables[path.stem] = {"unreadable": str(error)}
                continue
            tables[path.stem] = {
                "lines": len(lines),
                **{c: dict(Counter(x[c] for x in lines).most_common()) for c in made},
            }
    manifest = {
        "written by": f"smelib {__version__} at {revision()}, Python {platform.python_version()}",
        "tables": tables,
        "networks": networks.notes(folder),
    }
    with store.replacing(folder / "manifest.json") as scratch:
        scratch.write_text(json.dumps(manifest, indent=1) + "\n")


def holds_results(folder: Path) -> bool:
    """Whether a folder is one of ours: with a manifest, or with a table of results."""
    try:
        if set(json.loads((folder / "manifest.json").read_bytes())) >= {"tables", "networks"}:
            return True
    except (OSError, ValueError, TypeError):
        pass
    tables = (folder / f"{table}.csv" for table in ROWS)
    return any(t.is_file() and t.read_bytes().startswith(b"table,row,") for t in tables)
