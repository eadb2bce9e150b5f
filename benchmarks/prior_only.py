"""What an image is worth that no attack was needed for: the data set's mean, and a lucky draw.

Two guesses that use nothing private: the mean image of the data set, and of 1,000 random sets of
its images, each with the client's labels but none of its pictures, the one that IG's loss prefers.
A reconstruction that is no better than these shows nothing of the client. Resumable; writes
`results/prior_only.json`.
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import numpy as np
import torch
from kept import fill

from smelib import data, metrics, models, objectives, seeds
from smelib.federated import local_update
from smelib.reproduce.plan import ROWS

RESULTS = Path(__file__).resolve().parents[1] / "results" / "prior_only.json"
CLIENTS = {
    **{f"femnist-E{e}-N10": 5 for e in (10, 50)},
    "cifar100-E10-N10": 5,
    "femnist-E10-N50": 3,
    "cifar100-E10-N50": 3,
}
DRAWS = 1000


def others(held: data.Dataset, client: data.Client) -> list[np.ndarray]:
    """For each of the client's images, the data set's images of the same label that are not its."""
    everything = held.client(np.arange(len(held)))
    flat, own = everything.images.flatten(1), client.images.flatten(1)
    its = {int(i) for image in own for i in (flat == image).all(1).nonzero().flatten()}
    free = np.array([i not in its for i in range(len(held))])
    return [np.flatnonzero(free & (held.labels == int(label))) for label in client.labels]


def run(name: str, seed: int, root: str) -> dict:
    """PSNR of both guesses for one client."""
    row = ROWS["main"][name]
    held = data.load(row.dataset, root=root)
    client = data.client(held, row.samples, seed=seed)
    model = models.build(row.network, client.shape, client.classes, seed=seed)
    update = local_update(model, client, row.protocol(), seed=seed)
    loss = objectives.ig(model, update, client.labels, tv=0.0)
    rng = seeds.numpy_generator(seed, "start", "prior only")
    pools, best, chosen = others(held, client), float("inf"), None
    for _ in range(DRAWS):
        images = held.client([rng.choice(pool) for pool in pools]).images
        with torch.no_grad():
            value = float(loss(model.normalise(images), {}, None)[0])
        if value < best:
            best, chosen = value, images
    mean = held.client(np.arange(len(held))).images.mean(0, keepdim=True).expand_as(client.images)
    return {
        "mean image": round(metrics.evaluate(mean.contiguous(), client.images).psnr, 3),
        "best of 1000": round(metrics.evaluate(chosen, client.images).psnr, 3),
        "l_sim": round(best, 5),
    }


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-root", required=True)
    root = parser.parse_args().data_root
    plan = [(row, ROWS["main"][row].first + k) for row, n in CLIENTS.items() for k in range(n)]
    found = fill(RESULTS, ((f"{row} {k}", partial(run, row, k, root)) for row, k in plan))
    for row in CLIENTS:
        cell = [v for k, v in found.items() if k.startswith(row + " ")]
        for guess in ("mean image", "best of 1000"):
            values = [v[guess] for v in cell]
            print(f"{row:18} {guess:13} {np.mean(values):5.2f} dB, {len(values)} clients")


if __name__ == "__main__":
    main()
