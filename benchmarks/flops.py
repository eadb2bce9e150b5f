"""Floating-point operations of one step of every attack, counted: writes results/flops.json.

    python benchmarks/flops.py [--out results/flops.json]

Multiplications and additions of matrix products and convolutions, as PyTorch's own counter counts
them; what acts on single numbers is left out. The scoreboard prices with them what nobody has run.
IG's, SME's and retrace's operations grow with the images of a step, and DLFA's with the images of
all its simulated steps. So one number per network, data set and method is enough: operations per
image and step; of DLFA per image, step and simulated step, from two simulations of unlike length.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

from smelib import attacks, data, models
from smelib.federated import local_update
from smelib.types import Protocol

SETTINGS = [
    ("cnn", "femnist", "mnist", 62),
    ("cnn", "cifar100", "photos", 100),
    ("mlp", "femnist", "mnist", 62),
    ("lenet", "femnist", "mnist", 62),
    ("resnet8", "femnist", "mnist", 62),
    ("vit", "femnist", "mnist", 62),
]
SAMPLES = 4


class Counter(TorchDispatchMode):
    """Counts what passes through PyTorch's dispatcher."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Run an operation, and add what it costs."""
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if (cost := flop_registry.get(func._overloadpacket)) is not None:
            self.total += cost(*args, **kwargs, out_val=out)
        return out


def counted(network: str, stand_in: str, classes: int, method: str, steps: int, epochs: int) -> int:
    """All operations of an attack on a client of a data set that every machine has."""
    client = data.client(stand_in, SAMPLES, seed=0)
    model = models.build(network, client.shape, classes, seed=0)
    protocol = Protocol(epochs, SAMPLES, 0.004)
    update = local_update(model, client, protocol, seed=0)
    extra = {"protocol": protocol} if method == "dlfa" else {}
    with Counter() as counter:
        attacks.ATTACKS[method](
            model, update, client.labels, steps=steps, seed=0, device="cpu", progress=False, **extra
        )
    return counter.total


def per_image(network: str, stand_in: str, classes: int, method: str) -> float:
    """Operations of a step per image; for DLFA, per image of a simulated step."""

    def step(epochs: int) -> float:
        few, many = (1, 2) if method == "dlfa" else (3, 9)  # retrace walks every third step
        totals = [counted(network, stand_in, classes, method, k, epochs) for k in (few, many)]
        return (totals[1] - totals[0]) / (many - few) / SAMPLES

    return (step(8) - step(4)) / 4 if method == "dlfa" else step(1)


def main() -> None:
    """Count, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/flops.json"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    found = {}
    for network, dataset, stand_in, classes in SETTINGS:
        for method in ("ig", "sme", "retrace", "dlfa"):
            number = per_image(network, stand_in, classes, method)
            found[f"{network} {dataset} {method}"] = round(number)
            print(f"{network:8} {dataset:9} {method:8} {number / 1e6:9.1f} million")
    args.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
