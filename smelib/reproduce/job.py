"""The paper's tables as a grid of jobs, each of which can be run anywhere and at any time.

A job is one attack on one client. Its seed draws the client, the network's weights, the order of
its batches and the attack's start. `RESULTS/<table>.csv` has one line per finished job.
"""

from __future__ import annotations

import ast
import ctypes
import fcntl
import inspect
import io
import os
import platform
import resource
import time
import tokenize
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from tqdm import tqdm

from smelib import (
    attacks,
    data,
    devices,
    federated,
    metrics,
    models,
    objectives,
    params,
    solver,
    theory,
    types,
)
from smelib.federated import local_path, local_update
from smelib.types import InputError, Params, Protocol, nearest
from smelib.version import __version__

METHODS = ("ig", "sme", "dlfa")
INITS = tuple(models.INITS)


@dataclass(frozen=True)
class Row:
    """One setting of the paper: who trains what, and for how long. `rounds` = 1: at the start.

    `steps` cuts the attack short, for measuring speed.
    """

    dataset: str = "femnist"
    network: str = "cnn"
    epochs: int = 10
    samples: int = 10
    batch_size: int = 10
    lr: float = 0.004
    rounds: int = 1
    steps: int | None = None
    options: tuple[tuple[str, object], ...] = ()

    def protocol(self) -> Protocol:
        """How the client trains."""
        return Protocol(self.epochs, self.batch_size, self.lr)


@dataclass(frozen=True)
class Job:
    """One attack on one client."""

    table: str
    row: str
    method: str
    seed: int
    init: str = "torch"

    @property
    def key(self) -> str:
        """A name that never changes."""
        return f"{self.table}/{self.row}/{self.method}/{self.init}/{self.seed}"

    @property
    def setting(self) -> Row:
        """What the row's name stands for."""
        return ROWS[self.table][self.row]


def _rows() -> dict[str, dict[str, Row]]:
    size = [(e, n) for n in (10, 50) for e in (10, 20, 50)]
    sets = ("femnist", "cifar100")
    softmax = (("softmax", True),)
    nets = {
        "mlp": Row(network="mlp"),
        "lenet": Row(network="lenet", lr=0.4),
        "lenet_softmax": Row(network="lenet", lr=0.4, options=softmax),
        "resnet8": Row(network="resnet8"),
        "vit": Row(network="vit"),
    }

    def at(row: Row, **changes: object) -> Row:
        return Row(**{**vars(row), **changes})

    paths = [(10, 50, 1), (50, 50, 1), (10, 10, 1), (10, 50, 20), (25, 25, 1), (5, 5, 1)]
    paths += [(10, 10, r) for r in (5, 10, 20)]
    return {
        "main": {f"{d}-E{e}-N{n}": Row(d, epochs=e, samples=n) for d in sets for e, n in size},
        "cost": {
            f"{d}-E{e}-N50": Row(d, epochs=e, samples=50, steps=10)
            for d in sets
            for e in (10, 20, 50)
        },
        "low_rank": {
            f"E{e}-B{b}-R{r}": Row(epochs=e, samples=50, batch_size=b, rounds=r)
            for e, b, r in paths
        },
        "trained": {
            f"R{r}-E{e}-N{n}": Row(epochs=e, samples=n, rounds=r)
            for r in (5, 10, 20)
            for n in (10, 50)
            for e in (10, 20)
        },
        "architectures": {
            f"{k}-E{e}-N{n}": at(v, epochs=e, samples=n) for k, v in nets.items() for e, n in size
        },
        "large_n": {
            f"cifar100-E20-N{n}": Row("cifar100", epochs=20, samples=n) for n in (100, 150, 200)
        },
        "tiny": {
            f"photos-E{e}-N2": Row("photos", "lenet", epochs=e, samples=2, batch_size=2, steps=3)
            for e in (1, 2)
        },
    }


ROWS = _rows()
# The same setting, measured once: the trained table's first round and the smallest N of large_n.
SHARED = {
    "trained": [f"femnist-E{e}-N{n}" for n in (10, 50) for e in (10, 20)],
    "large_n": ["cifar100-E20-N50"],
}


def planned(table: str, row: str, method: str, init: str) -> int:
    """How many clients a cell gets by default; 0 for a cell that is left to a GPU."""
    r = ROWS[table][row]
    small, grey, dlfa = r.samples == 10, r.dataset == "femnist", method == "dlfa"
    both = table == "main" and small and (not dlfa or (grey and r.epochs == 10))
    paths = table == "low_rank" and r.rounds == 1
    if init != "torch" and not (both or paths):
        return 0
    if table == "main" and dlfa:
        clients = {(10, True): 5, (20, True): 5, (50, True): 3, (10, False): 2, (20, False): 1}
        return clients.get((r.epochs, grey), 0) if small else 2 * (grey and r.epochs == 10)
    if table == "main":
        return 10 if small else 5 if grey else 2
    if table in ("trained", "architectures") and dlfa:
        return 2 * (small and r.epochs == 10)
    if table == "trained":
        return 5 if small else 2
    if table == "architectures":
        resnet = r.network == "resnet8"
        return (3 if resnet else 5) if small else (r.epochs == 10) * (1 if resnet else 2)
    return {"cost": 3, "low_rank": 10, "large_n": int(not dlfa), "tiny": 3}[table]


def jobs(
    table: str,
    *,
    rows: Sequence[str] = (),
    methods: Sequence[str] = (),
    inits: Sequence[str] = (),
    seeds: int | None = None,
) -> list[Job]:
    """The jobs of a table, cheapest first.

    `rows`, `methods` and `inits` restrict; `seeds` replaces the planned number of clients in every
    cell that is left. Among jobs of like cost (within a factor of two) the first clients of all
    cells come before the second, so that a table fills up evenly.
    """
    if table not in ROWS:
        raise nearest("table", table, list(ROWS))
    own = [(table, r) for r in ROWS[table]] + [("main", r) for r in SHARED.get(table, ())]
    valid = ("path",) if table == "low_rank" else METHODS
    open_to = ("main", "architectures", "low_rank")
    for kind, given, known in (
        ("row", rows, [r for _, r in own]),
        ("method", methods, list(valid)),
        ("initialisation", inits, list(INITS if table in open_to else ["torch"])),
    ):
        for name in given:
            if name not in known:
                raise nearest(f"{kind} in {table}", name, known)
    if seeds is not None and seeds < 1:
        raise InputError(f"--seeds {seeds}: a cell needs at least one client.")
    found = []
    for where, row in own:
        for method in methods or valid:
            for init in inits or INITS:
                if ROWS[where][row].rounds > 1 and init != "torch":
                    continue  # the weights are the trained ones, whatever they began as
                count = planned(where, row, method, init)
                if where != table:
                    count = min(count, 5 if ROWS[where][row].samples == 10 else 2)
                    count = count if init == "torch" else 0
                if seeds is not None and (count or init in inits or init == "torch"):
                    count = seeds
                found += [Job(where, row, method, s, init) for s in range(count)]
    chosen = [j for j in found if not rows or j.row in rows]
    if not chosen:
        raise InputError(
            "no cell of the plan is left; add --seeds K to run cells outside of the plan."
        )
    return sorted(chosen, key=lambda j: (int(estimate(j)).bit_length(), j.seed, estimate(j), j.key))


def estimate(job: Job) -> float:
    """Seconds that a job takes, roughly, on one CPU core; only the order matters."""
    r = job.setting
    image = {"cnn": 0.6, "mlp": 0.2, "lenet": 0.15, "resnet8": 2.5, "vit": 0.5}[r.network]
    image *= 5 if r.dataset == "cifar100" else 1
    milliseconds = {"mlp": 8.0, "resnet8": 12.0, "vit": 30.0}.get(r.network, 3.0)
    if job.method == "path":
        return 0.5 * r.epochs * r.samples / 50
    if job.method == "dlfa":
        one = r.protocol().steps(r.samples) * (milliseconds + image * 1.5 * r.batch_size)
    else:
        one = milliseconds + image * r.samples
    return (r.steps or (400 if job.method == "dlfa" else 1000)) * one / 1000


def run(
    job: Job, *, root: str | None, folder: Path, device: str = "auto", compiled: bool = False
) -> dict:
    """One job's measurements: attack one client and compare with the truth.

    `compiled` hands the steps of IG and SME to `torch.compile`, which pays for long jobs only.
    """
    row, protocol = job.setting, job.setting.protocol()
    client = data.client(row.dataset, row.samples, seed=job.seed, root=root)
    network = models.build(
        row.network,
        client.shape,
        client.classes,
        init=job.init,
        seed=job.seed,
        **dict(row.options),
    )
    before = None if row.rounds == 1 else load_network(folder, row.rounds)
    if job.method == "path":
        return _follow(network, client, protocol, seed=job.seed, before=before)
    update = local_update(network, client, protocol, seed=job.seed, before=before)
    compiled = compiled and job.method != "dlfa"
    extra = {"preset": "paper", "compile": compiled}
    if job.method == "dlfa":
        extra = {"protocol": protocol}
    if row.steps is not None:
        extra["steps"] = row.steps
    held, busy = _memory_mb(), time.process_time()
    found = attacks.ATTACKS[job.method](
        network, update, client.labels, seed=job.seed, device=device, progress=False, **extra
    )
    busy = time.process_time() - busy
    if found.stopped != "finished":
        raise FloatingPointError(found.stopped)
    score = metrics.evaluate(found.images, client.images)
    return {
        "psnr": score.psnr,
        "ssim": score.ssim,
        "l_sim": found.similarity,
        "alpha": found.alpha,
        "seconds": found.seconds,
        "cpu_seconds": busy,  # what a shared machine does not stretch
        "memory_mb": _memory_mb(peak=True) - held,
        "steps": found.steps,
        "compiled": compiled,
    }


def _follow(
    network: models.Network,
    client: data.Client,
    protocol: Protocol,
    *,
    seed: int,
    before: Params | None,
) -> dict:
    """How flat a client's path is: the least share of a true gradient in the best plane.

    And the cosine between the update and the true gradient at w0 and at the best of 101 points.
    """
    started = time.perf_counter()
    path = list(local_path(network, client, protocol, seed=seed, before=before))
    slopes = theory.path_gradients(network, client, path[:-1])
    alphas = torch.linspace(0, 1, 101).tolist()
    update = types.Update(path[0], path[-1], len(client))
    cosines = theory.segment_cosines(network, client, update, alphas)
    return {
        "p2_ratio": float(theory.plane_ratios(theory.gram(slopes)).min()),
        "cos_start": float(cosines[0]),
        "cos_best": float(cosines.max()),
        "alpha": alphas[int(cosines.argmax())],
        "seconds": time.perf_counter() - started,
        "steps": len(slopes),
    }


def attempt(job: Job, runner: Callable[..., dict] = run, **options: object) -> dict:
    """A job's whole line: its measurements or its error, and what they were made with."""
    line = {
        **{k: getattr(job, k) for k in ("table", "row", "method", "init", "seed")},
        "smelib": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "fingerprint": fingerprint(job, Path(options["folder"])),
        "device": _device_name(str(options.get("device", "auto"))),
    }
    try:
        return {**line, "status": "ok", **runner(job, **options)}
    except Exception as error:  # whatever went wrong, the other jobs go on
        return {**line, "status": "failed", "error": _sentence(error)}


def _sentence(error: BaseException) -> str:
    text = (str(error).strip() or "no message").splitlines()[0]
    return text if isinstance(error, InputError) else f"{type(error).__name__}: {text}"


def _device_name(name: str) -> str:
    device = devices.pick_device(name)
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def _memory_mb(peak: bool = False) -> float:
    """Memory in use, from where the peak is counted anew; or that peak. A GPU's, or resident."""
    if torch.cuda.is_available():
        if not peak:
            torch.cuda.reset_peak_memory_stats()
        return torch.cuda.max_memory_allocated() / 2**20
    status = Path("/proc/self/status")
    if not status.is_file():
        unit = 2**20 if platform.system() == "Darwin" else 2**10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    if not peak:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)  # what earlier work freed is not in use
            Path("/proc/self/clear_refs").write_text("5")
    text = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
    return int(text.split()[1]) / 1024


def _code(source: str) -> str:
    """The source without comments, docstrings and blank lines: rewording makes nothing stale."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            for row in range(node.lineno - 1, node.end_lineno):
                lines[row] = ""
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _hash(*parts: object) -> str:
    return sha256("\n".join(_code(inspect.getsource(p)) for p in parts).encode()).hexdigest()


# Taken when the module is loaded: what counts is the code that runs, not a later edit of the file.
# Labels are known in every job, so that smelib.labels decides nothing here.
_KERNEL = _hash(
    *(types, params, models, data, federated, objectives, solver, attacks, metrics), run
)
_THEORY = _hash(
    _follow, theory.path_gradients, theory.gram, theory.plane_ratios, theory.segment_cosines
)


def fingerprint(job: Job, folder: Path) -> str:
    """A hash of all that decides a job's result: the kernel, the setting, the trained weights."""
    parts = [_KERNEL, repr(job.setting), _THEORY if job.method == "path" else ""]
    if job.setting.rounds > 1:
        file = network_file(folder, job.setting.rounds)
        parts.append(sha256(file.read_bytes()).hexdigest() if file.is_file() else "")
    return sha256("\n".join(parts).encode()).hexdigest()[:12]


def network_file(folder: Path, rounds: int) -> Path:
    """Where the network after so many rounds of federated training is kept."""
    return folder / "networks" / f"femnist-R{rounds}.safetensors"


def load_network(folder: Path, rounds: int) -> Params:
    """The weights after so many rounds."""
    return load_file(network_file(folder, rounds))


def network_notes(folder: Path) -> dict[str, dict[str, str]]:
    """What is known of each trained network: rounds, test accuracy, how it was made."""
    notes = {}
    for path in sorted((folder / "networks").glob("*.safetensors")):
        try:
            with safe_open(path, framework="pt") as file:
                notes[path.name] = file.metadata() or {}
        except (SafetensorError, OSError) as error:
            notes[path.name] = {"unreadable": str(error)}
    return notes


def make_networks(folder: Path, root: str | None, rounds: Sequence[int] = (5, 10, 20)) -> None:
    """Federate FEMNIST by writer and keep the weights after 5, 10 and 20 rounds, where missing.

    Every tenth image of each writer is held out, and the accuracy is that on the held-out images.
    As in the paper: B = 50, E = 10, lr = 0.004, a client reports with probability 0.1. [Zhu23]
    """
    room = folder / "networks"
    room.mkdir(parents=True, exist_ok=True)
    with (room / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if all(network_file(folder, r).is_file() for r in rounds):
            return
        writers = data.federation("femnist", clients=10**6, split="writer", root=root)
        held_out = _merge([_part(w, test=True) for w in writers])
        clients = [_part(w, test=False) for w in writers]
        network = models.cnn(held_out.shape, held_out.classes, seed=0)
        protocol = Protocol(epochs=10, batch_size=50)
        history = federated.fedavg(
            network, clients, protocol, rounds=max(rounds), reporting=0.1, seed=0
        )
        bar = tqdm(history, total=max(rounds), desc="federating", disable=None)
        for r, state in enumerate(bar, start=1):
            if r in rounds:
                notes = {
                    "rounds": r,
                    "test_accuracy": round(federated.accuracy(network, state.after, held_out), 4),
                    "test_images": len(held_out),
                    "train_images": sum(map(len, clients)),
                    "writers": len(clients),
                    "smelib": __version__,
                }
                scratch = room / f".{r}-{os.getpid()}"
                weights = {k: v.contiguous() for k, v in state.after.items()}
                save_file(weights, scratch, metadata={k: str(v) for k, v in notes.items()})
                os.replace(scratch, network_file(folder, r))


def _part(client: data.Client, *, test: bool) -> data.Client:
    """A writer's held-out tenth, or the rest."""
    chosen = (torch.arange(len(client)) % 10 == 9) == test
    return replace(client, images=client.images[chosen], labels=client.labels[chosen])


def _merge(clients: Sequence[data.Client]) -> data.Client:
    images, labels = (torch.cat([getattr(c, k) for c in clients]) for k in ("images", "labels"))
    return replace(clients[0], images=images, labels=labels)
