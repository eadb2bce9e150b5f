"""How many labels are misread from an update, on real data? Counts only, no image is rebuilt.

    python benchmarks/labels.py --data-root DIR [--out results/labels.json] [--clients 10]
                                [--only CELL ...]

DIR holds femnist.npz and cifar100.npz. Every client trains once, for 50 epochs, and its labels are
counted after 1, 10, 20 and 50 of them. Finished clients are kept in --out, so a run that was cut
off goes on where it stopped; delete the file to measure anew.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import numpy as np
import torch
from kept import fill
from torch import Tensor

import smelib
from smelib import labels
from smelib.cli import in_sentences
from smelib.data import Client
from smelib.models import Network
from smelib.types import Protocol, Update

EPOCHS = (1, 10, 20, 50)
# "rows" and "bias" know the protocol, the others do not.
FORMS = ("rows", "rows blind", "bias", "bias blind", "bias floor")
BATCH = 10
CLIENTS = 10
CELLS = {  # name: data set, network, initialisation, samples
    f"{dataset}-{network}-{init}-N{samples}": (dataset, network, init, samples)
    for network, init, datasets in (
        ("cnn", "torch", ("femnist", "cifar100")),
        ("mlp", "torch", ("femnist",)),
        ("lenet", "torch", ("femnist",)),
        ("lenet_softmax", "torch", ("femnist",)),  # the official code's, with a second softmax
        ("resnet8", "torch", ("femnist",)),
        ("vit", "torch", ("femnist",)),
        ("cnn", "lecun", ("femnist", "cifar100")),
    )
    for dataset in datasets
    for samples in (10, 50)
}


def by_floor(model: Network, update: Update) -> Tensor:
    """Blind counts from the last layer's bias: the largest factor that no count forbids."""
    n, bias = update.samples, model.head()[1]
    z = torch.randn(256, *model.shape, generator=torch.Generator().manual_seed(0))
    ends = (labels.statistics(model, w, z)[0] for w in (update.before, update.after))
    p = sum(ends) / 2
    fall = update.before[bias] - update.after[bias]
    return labels.round_to_total(n * p - n * (p / fall)[fall > 0].min() * fall, n)


def activations(model: Network, client: Client) -> dict[str, float]:
    """The summed input of the last layer: noise over truth, and its spread over the images."""
    weights, z = model.params(), model.normalise(client.images)
    noise = torch.randn(256, *model.shape, generator=torch.Generator().manual_seed(0))
    guess = float(labels.statistics(model, weights, noise)[1])
    true = np.array([float(labels.statistics(model, weights, x[None])[1]) for x in z])
    return {"noise over truth": guess / true.mean(), "spread": true.std() / abs(true.mean())}


def misread(found: Tensor, client: Client) -> int:
    """How many of the client's N labels are wrong, at the best pairing."""
    true = torch.bincount(client.labels, minlength=client.classes)
    return int((found - true).abs().sum()) // 2


def run(cell: str, seed: int, root: str) -> dict:
    """One client: the labels misread after each number of epochs, by each form."""
    dataset, name, init, samples = CELLS[cell]
    client = smelib.data.client(dataset, samples, seed=seed, root=root)
    kind, _, softmax = name.partition("_")
    options = {"init": init, "seed": seed} | ({"softmax": True} if softmax else {})
    model = smelib.models.build(kind, client.shape, client.classes, **options)
    lr = 0.4 if kind == "lenet" else 0.004
    marks = {Protocol(e, BATCH, lr).steps(samples): Protocol(e, BATCH, lr) for e in EPOCHS}
    path = smelib.local_path(model, client, marks[max(marks)], seed=seed)
    first = next(path)
    found = {k: round(v, 4) for k, v in activations(model, client).items()}
    for step, weights in enumerate(path, 1):
        if (protocol := marks.get(step)) is None:
            continue
        update = Update(first, weights, samples)
        counted = {
            "rows": labels.counts(model, update, protocol, layer="rows"),
            "rows blind": labels.counts(model, update, layer="rows"),
            "bias": labels.counts(model, update, protocol),
            "bias blind": labels.counts(model, update),
            "bias floor": by_floor(model, update),
        }
        for form in FORMS:
            found[f"E{protocol.epochs} {form}"] = misread(counted[form], client)
    return found


def main() -> int:
    """Run what is missing and print the means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-root", required=True)
    parser.add_argument("--out", type=Path, default=Path("results/labels.json"))
    parser.add_argument("--clients", type=int, default=CLIENTS, help="per cell")
    parser.add_argument("--only", nargs="*", default=list(CELLS), choices=list(CELLS))
    args = parser.parse_args()
    for cell in args.only:
        clients = range(args.clients)
        jobs = ((f"{cell} {k}", partial(run, cell, k, args.data_root)) for k in clients)
        done = fill(args.out, jobs, quiet=True)
        print(f"\n{cell}: labels misread of {CELLS[cell][-1]}, mean (clients without a mistake)")
        for form in FORMS:
            line = f"  {form:11}"
            for epochs in EPOCHS:
                wrong = [done[f"{cell} {seed}"][f"E{epochs} {form}"] for seed in clients]
                exact = f"({wrong.count(0)} of {len(wrong)})"
                line += f"  E{epochs:<2} {np.mean(wrong):4.1f} {exact:10}"
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(in_sentences("labels", main))
