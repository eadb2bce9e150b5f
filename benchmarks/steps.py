"""How good are SME's pictures after each number of steps, for the networks of chapter 11?

    python benchmarks/steps.py [--out results/steps.json] [--seeds 0 1 2] [--steps 120]

Four digits, five local epochs, the paper's learning rates, heads of 62 classes; PSNR as it is, and
after every picture's ink got its best factor. Runs that are done are kept in --out.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from itertools import product
from pathlib import Path

from kept import fill
from torch import Tensor

import smelib
from smelib import models
from smelib.cli import in_sentences

NETWORKS = {  # how to build it, its learning rate, SME's weight of total variation
    "MLP": (models.mlp, 0.004, 0.01),
    "MLP without TV": (models.mlp, 0.004, 0.0),
    "LeNet": (partial(models.lenet, softmax=True), 0.4, 0.01),
    "ResNet8": (models.resnet8, 0.004, 0.01),
    "ViT": (models.vit, 0.004, 0.01),
}


def contrast_free(found: Tensor, images: Tensor) -> float:
    """The mean PSNR after the ink of every picture was multiplied by its best factor."""
    ink = 1 - found[smelib.pairing.match(found, images)].flatten(1)
    truth = 1 - images.flatten(1)
    factor = (ink * truth).sum(dim=1) / ink.square().sum(dim=1)
    error = (factor[:, None] * ink - truth).square().mean(dim=1)
    return float((-10 * error.log10()).mean())


def run(name: str, seed: int, steps: int) -> dict[str, list[float]]:
    """One attack: PSNR, contrast-free PSNR and mismatch at 13 of its steps."""
    make, lr, tv = NETWORKS[name]
    client = smelib.data.client("mnist", 4, seed=seed, distinct_labels=True)
    model = make(client.shape, 62, seed=seed)
    update = smelib.local_update(model, client, smelib.Protocol(5, 4, lr), seed=seed)
    how = {"preset": "fast", "steps": steps, "snapshots": 13, "tv": tv, "progress": False}
    stolen = smelib.attacks.sme(model, update, client.labels, seed=seed, **how)
    at = [int(k) for k in stolen.snapshot_steps]
    mismatch = [float(v) for v in stolen.history["similarity"]]
    return {
        "steps": at,
        "psnr": [round(smelib.evaluate(f, client.images).psnr, 2) for f in stolen.snapshots],
        "free": [round(contrast_free(f, client.images), 2) for f in stolen.snapshots],
        "mismatch": [round(mismatch[min(k, len(mismatch) - 1)], 5) for k in at],
    }


def main() -> int:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results/steps.json"))
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, default=120)
    args = parser.parse_args()
    both = product(args.seeds, NETWORKS)
    fill(args.out, ((f"{name} {s}", partial(run, name, s, args.steps)) for s, name in both))
    return 0


if __name__ == "__main__":
    sys.exit(in_sentences("steps", main))
