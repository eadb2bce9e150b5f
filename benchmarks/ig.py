"""What makes Inverting Gradients work: its loss, its prior or its search? On the embedded digits.

    python benchmarks/ig.py [--parts cross,rate,prior] [--seeds 0,1,2] [--results FILE]

`cross` has every combination of two losses, two weights of the total variation and five searches on
the ReLU LeNet of chapter 2 with one digit, four on the convolutional network with four, for ten
clients. For the first five of them `rate` tells the distance a wrong learning rate, and `prior`
varies the weight of the total variation, for updates of one step and of ten. The distance is half
of the relative squared one: the angle's loss, where the lengths agree, so that a weight of the
total variation means the same for both. Every run is stored in `results/ig.json`, and one that is
there is not repeated. Six minutes on one core.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path

import torch
from kept import fill
from torch import Tensor

from smelib import data, metrics, models, seeds
from smelib import params as P
from smelib.cli import in_sentences
from smelib.federated import gradient, local_update
from smelib.models import Network
from smelib.priors import total_variation
from smelib.types import Params, Protocol, Update

RESULTS = Path(__file__).resolve().parents[1] / "results" / "ig.json"
ETA, TV = 0.004, 0.01
SEARCHES = {  # optimiser, inside the box, learning rate
    "L-BFGS": ("lbfgs", False, 1.0),
    "L-BFGS in the box": ("lbfgs", True, 1.0),
    "Adam": ("adam", False, 2.0),
    "Adam, small steps": ("adam", False, 0.2),
    "Adam in the box": ("adam", True, 2.0),
}
LARGE = ("L-BFGS", "Adam", "Adam, small steps", "Adam in the box")  # on the larger network
SCENES = {"lenet": (1, 100), "cnn": (4, 80)}  # images, evaluations of the loss
RATES = (0.25, 0.5, 0.71, 1.0, 1.41, 2.0, 4.0)  # what the attacker takes eta for, in its units
FEW = 5  # clients of `rate` and `prior`
WEIGHTS = (0.0, 0.003, 0.01, 0.03, 0.1, 1.0)


def relu_lenet(shape: tuple, classes: int, seed: int) -> Network:
    """LeNet's layers and weights, with ReLU."""
    layers = models.lenet(shape, classes, seed=seed).body
    swapped = [torch.nn.ReLU() if isinstance(x, torch.nn.Tanh) else x for x in layers]
    return models.wrap(torch.nn.Sequential(*swapped), shape, classes, name="relu lenet")


def scene(network: str, seed: int, epochs: int = 1) -> tuple:
    """A client with different labels, its network, and what it sends after full-batch steps."""
    client = data.client("mnist", SCENES[network][0], seed=seed, distinct_labels=True)
    make = relu_lenet if network == "lenet" else models.cnn
    model = make(client.shape, client.classes, seed=seed)
    protocol = Protocol(epochs, len(client), lr=ETA)
    return client, model, local_update(model, client, protocol, seed=seed)


def angle(target: Params, v: Params) -> Tensor:
    """One minus the cosine."""
    return 1 - P.cosine(target, v)


def distance(target: Params, v: Params) -> Tensor:
    """Half of the squared distance, in units of the target's squared length."""
    gap = P.sub(v, target)
    return P.dot(gap, gap) / (2 * P.dot(target, target))


LOSSES: dict[str, Callable] = {"distance": distance, "angle": angle}


def attack(
    model: Network,
    update: Update,
    labels: Tensor,
    *,
    loss: str,
    tv: float,
    search: str,
    evaluations: int,
    seed: int,
    believed: float = 1.0,
) -> tuple[Tensor, float]:
    """Normalised images, and their loss without total variation; `believed` is in units of eta."""
    target = P.scale(P.sub(update.before, update.after), 1 / (believed * ETA))
    kind, boxed, rate = SEARCHES[search]
    noise = torch.randn(len(labels), *model.shape, generator=seeds.generator(seed, "start"))
    black, white = model.box(noise)
    curved = boxed and kind == "lbfgs"  # a box without walls: the logistic function
    start = (black + white) / 2 + 0.1 * noise
    x = torch.logit((start - black) / (white - black)) if curved else start.clamp(black, white)
    x.requires_grad_()

    def pixels(x: Tensor) -> Tensor:
        return black + (white - black) * x.sigmoid() if curved else x

    def mismatch(z: Tensor) -> Tensor:
        return LOSSES[loss](target, gradient(model, update.before, z, labels))

    def closure() -> Tensor:
        nonlocal spent
        spent += 1
        z = pixels(x)
        value = mismatch(z) + tv * total_variation(z)
        (x.grad,) = torch.autograd.grad(value, x)
        return value.detach()

    spent = 0
    if kind == "lbfgs":
        optimiser = torch.optim.LBFGS([x], lr=rate, line_search_fn="strong_wolfe")
    else:
        optimiser = torch.optim.Adam([x], lr=rate, betas=(0.9, 0.99))
    while spent < evaluations:
        before, begun = x.detach().clone(), spent
        if kind == "adam":
            optimiser.param_groups[0]["lr"] = (
                rate * (1 + math.cos(math.pi * spent / evaluations)) / 2
            )
        optimiser.step(closure)
        if kind == "adam" and boxed:
            x.data.clamp_(black, white)
        if kind == "lbfgs" and (spent - begun < 2 or torch.equal(before, x.detach())):
            break  # it has stopped by itself
    z = pixels(x).detach()
    return z, float(mismatch(z))


def jobs(parts: list[str], clients: list[int]) -> Iterator[tuple[str, dict]]:
    """Every run by its name: part | network | loss | tv | search | epochs | believed | seed."""
    base = {"loss": "angle", "tv": TV, "search": "Adam in the box", "believed": 1.0, "epochs": 1}
    crossed, few = [], []
    if "cross" in parts:
        for network, tv, loss, search in product(SCENES, (0.0, TV), LOSSES, SEARCHES):
            if network == "lenet" or search in LARGE:
                how = {"network": network, "tv": tv, "loss": loss, "search": search}
                crossed.append({**base, **how})
    if "rate" in parts:
        few += [{**base, "network": "cnn", "loss": "distance", "believed": c} for c in RATES]
    if "prior" in parts:
        pairs = product((1, 10), WEIGHTS)
        few += [{**base, "network": "cnn", "epochs": e, "tv": tv} for e, tv in pairs]
    for seed in clients:
        for job in [*crossed, *(few if seed < FEW else [])]:
            words = (job[k] for k in ("network", "loss", "tv", "search", "epochs", "believed"))
            yield " | ".join(map(str, (*words, seed))), {**job, "seed": seed}


def run(
    network: str,
    loss: str,
    tv: float,
    search: str,
    epochs: int,
    believed: float,
    seed: int,
) -> dict[str, float]:
    """One client: the quality, the loss that was reached, and the true images' loss."""
    client, model, update = scene(network, seed, epochs)
    how = {"loss": loss, "tv": tv, "search": search, "believed": believed}
    started = time.process_time()
    z, reached = attack(
        model, update, client.labels, evaluations=SCENES[network][1], seed=seed, **how
    )
    seconds = time.process_time() - started
    images = model.denormalise(z).clamp(0, 1)
    target = P.scale(P.sub(update.before, update.after), 1 / (believed * ETA))
    true = gradient(model, update.before, model.normalise(client.images), client.labels)
    return {
        "psnr": round(metrics.evaluate(images, client.images).psnr, 3),
        "reached": float(f"{reached:.4g}"),
        "truth": float(f"{abs(float(LOSSES[loss](target, true))):.4g}"),
        "cpu_seconds": round(seconds, 2),
    }


def main() -> int:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", default="cross,rate,prior")
    parser.add_argument("--seeds", default="0,1,2,3,4,5,6,7,8,9", help="one for each client")
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    clients = [int(s) for s in args.seeds.split(",")]
    every = jobs(args.parts.split(","), clients)
    fill(args.results, ((name, partial(run, **job)) for name, job in every))
    return 0


if __name__ == "__main__":
    sys.exit(in_sentences("ig", main))
