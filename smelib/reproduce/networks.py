"""The networks of the trained table: FEMNIST's writers federated for 5, 10 and 20 rounds.

Three times from each kind of first weights: each federation has weights and a choice of reporting
clients of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import torch
from filelock import FileLock
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from tqdm import tqdm

from smelib import data, federated, models
from smelib.reproduce import store
from smelib.types import Params, Protocol
from smelib.version import __version__

ROUNDS = (5, 10, 20)


def file_name(rounds: int, which: int = 0, init: str = "torch") -> str:
    """The file that keeps the weights of a federation after so many rounds."""
    parts = [f"femnist-R{rounds}", *[init] * (init != "torch"), *[str(which)] * (which > 0)]
    return f"{'-'.join(parts)}.safetensors"


def path(folder: Path, rounds: int, which: int = 0, init: str = "torch") -> Path:
    """Where that file lies in a folder of results."""
    return folder / "networks" / file_name(rounds, which, init)


def load(folder: Path, rounds: int, which: int = 0, init: str = "torch") -> Params:
    """The weights of a federation after so many rounds."""
    return load_file(path(folder, rounds, which, init))


def digest(weights: Params) -> str:
    """A short name for these very weights, whatever the file around them says."""
    total = sha256()
    for name, value in sorted(weights.items()):
        total.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        total.update(value.contiguous().numpy().tobytes())
    return total.hexdigest()[:12]


def notes(folder: Path) -> dict[str, dict[str, str]]:
    """What is known of each trained network: its digest, rounds, test accuracy, how it was made."""
    found = {}
    for file in sorted((folder / "networks").glob("*.safetensors")):
        try:
            with safe_open(file, framework="pt") as opened:
                known = opened.metadata() or {}
            found[file.name] = {**dict(sorted(known.items())), "digest": digest(load_file(file))}
        except (SafetensorError, OSError) as error:
            found[file.name] = {"unreadable": str(error)}
    return found


def digests(noted: dict[str, dict[str, str]]) -> dict[str, str]:
    """Of those notes the digests alone, by file."""
    return {name: known["digest"] for name, known in noted.items() if "digest" in known}


def make(
    folder: Path,
    root: str | None,
    rounds: Sequence[int] = ROUNDS,
    *,
    which: int = 0,
    init: str = "torch",
) -> None:
    """Federate FEMNIST by writer and keep the weights after 5, 10 and 20 rounds, where missing.

    Every tenth image of each writer is held out, and the accuracy is that on the held-out images.
    As in the paper: B = 50, E = 10, lr = 0.004, a client reports with probability 0.1. [Zhu23]
    """
    room = folder / "networks"
    room.mkdir(parents=True, exist_ok=True)
    with FileLock(room / ".lock"):
        if all(path(folder, r, which, init).is_file() for r in rounds):
            return
        writers = data.federation("femnist", clients=10**6, split="writer", root=root)
        held_out = _merge([_part(w, test=True) for w in writers])
        clients = [_part(w, test=False) for w in writers]
        model = models.cnn(held_out.shape, held_out.classes, init=init, seed=which)
        protocol = Protocol(epochs=10, batch_size=50)
        history = federated.fedavg(
            model, clients, protocol, rounds=max(rounds), reporting=0.1, seed=which
        )
        bar = tqdm(history, total=max(rounds), desc="federating", disable=None)
        for r, state in enumerate(bar, start=1):
            if r in rounds:
                known = {
                    "rounds": r,
                    "test_accuracy": round(federated.accuracy(model, state.after, held_out), 4),
                    "test_images": len(held_out),
                    "train_images": sum(map(len, clients)),
                    "writers": len(clients),
                    "smelib": __version__,
                }
                weights = {k: v.contiguous() for k, v in state.after.items()}
                with store.replacing(path(folder, r, which, init)) as scratch:
                    save_file(weights, scratch, metadata={k: str(v) for k, v in known.items()})


def _part(client: data.Client, *, test: bool) -> data.Client:
    """A writer's held-out tenth, or the rest."""
    chosen = (torch.arange(len(client)) % 10 == 9) == test
    return replace(client, images=client.images[chosen], labels=client.labels[chosen])


def _merge(clients: Sequence[data.Client]) -> data.Client:
    images, labels = (torch.cat([getattr(c, k) for c in clients]) for k in ("images", "labels"))
    return replace(clients[0], images=images, labels=labels)
