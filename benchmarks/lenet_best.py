"""The best picture on DLFA's way and not its last: the paper records that for LeNet.

    python benchmarks/lenet_best.py --data-root DIR [--clients 5] [--out results/lenet_best.json]

Both forms of LeNet at both learning rates, with both kinds of first weights; FEMNIST,
E = N = B = 10, the clients of the reproduction. Every run has the PSNR of the last of 400 steps,
the best along the way, and at which step it was met. No attacker could choose it: it takes the
client's images to know it. A line that is there is not measured again.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import numpy as np
from kept import between, by_cell, fill, on_one_core

from smelib import attacks, data, metrics, models
from smelib.cli import in_sentences
from smelib.federated import local_update
from smelib.reproduce.plan import INITS, ROWS

OUT = Path(__file__).resolve().parents[1] / "results" / "lenet_best.json"
FORMS = ("lenet", "lenet_slow", "lenet_softmax", "lenet_softmax_slow")
PICTURES = 400


def run(form: str, init: str, seed: int, root: str) -> dict:
    """DLFA's PSNR at the end, the best on the way and the step of the best."""
    row = ROWS["architectures"][f"{form}-E10-N10"]
    client = data.client(row.dataset, row.samples, seed=seed, root=root)
    size = (client.shape, client.classes)
    model = models.build(row.network, *size, init=init, seed=seed, **dict(row.options))
    protocol = row.protocol()
    update = local_update(model, client, protocol, seed=seed)
    how = {"protocol": protocol, "checkpoint": False, "snapshots": PICTURES}
    found = attacks.dlfa(
        model, update, client.labels, seed=seed, device="cpu", progress=False, **how
    )
    on_the_way = [metrics.evaluate(x, client.images).psnr for x in found.snapshots]
    best = int(np.argmax(on_the_way))
    at = int(found.snapshot_steps[best])
    last = metrics.evaluate(found.images, client.images).psnr
    return {
        "last": round(last, 3),
        "best": round(max(last, on_the_way[best]), 3),
        "at": at,
        "l_sim": round(found.similarity, 4),
        "l_sim there": round([*found.history["similarity"].tolist(), found.similarity][at], 4),
    }


def work(args: argparse.Namespace) -> int:
    """Run what is missing, client by client, and print the means."""
    on_one_core()
    jobs = (
        (f"{form} | {init} | {seed}", partial(run, form, init, seed, args.data_root))
        for seed in range(args.clients)
        for form in FORMS
        for init in INITS
    )
    for (form, init), found in by_cell(fill(args.out, jobs)).items():
        pairs = [(line["best"], line["last"]) for line in found.values()]
        best, last = np.mean(pairs, axis=0)
        print(f"{form:20}{init:8}best {best:5.2f}, last {last:5.2f} dB: {between(pairs)}")
    return 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-root", required=True, help="folder with the data sets")
    parser.add_argument("--clients", type=int, default=5, help="so many of each (5)")
    parser.add_argument("--out", type=Path, default=OUT, help="file of the results")
    return in_sentences("lenet_best", lambda: work(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
