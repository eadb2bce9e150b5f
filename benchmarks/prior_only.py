"""What an image is worth that no attack was needed for: the data set's mean, and a lucky draw.

Two guesses that use nothing private: the mean image of the data set, and of 1,000 random sets of
its images, each with the client's labels but none of its pictures, the one that IG's loss prefers.
A reconstruction that is no better than these shows nothing of the client. The mean image is scored
for every client that an attack in `results/` met, the draw for a few. Resumable; writes
`results/mean_image.json` and `results/prior_only.json`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch
from kept import fill

from smelib import data, metrics, models, objectives, seeds
from smelib.federated import local_update
from smelib.reproduce import cells, provenance
from smelib.reproduce.plan import ROWS
from smelib.reproduce.scoreboard import ATTACKED

FOLDER = Path(__file__).resolve().parents[1] / "results"
RESULTS, MEANS = FOLDER / "prior_only.json", FOLDER / cells.MEAN_IMAGE
CLIENTS = {
    f"{name}-E{e}-N{n}": clients
    for n, clients in ((10, 5), (50, 3))
    for name in ("femnist", "cifar100")
    for e in (10, 20, 50)
}
DRAWS = 1000


@cache
def mean_of(name: str, root: str) -> torch.Tensor:
    """The mean image of a data set."""
    held = data.load(name, root=root)
    return held.client(np.arange(len(held))).images.mean(0, keepdim=True)


def met() -> Iterator[tuple[str, int, int]]:
    """Data set, number of images and seed of every client that an attack of today met."""
    shelf = cells.Shelf(FOLDER)
    lines = (x for cell in shelf.stored for x in cells.good(shelf.of(cell)[0]).values())
    here = (x for x in lines if x["table"] in ATTACKED)
    people = {cells.client(x)[:3] for x in here if provenance.draw(x) == provenance.TODAY}
    return ((name, samples, int(seed)) for name, samples, seed in sorted(people))


def mean_image(name: str, samples: int, seed: int, root: str) -> float:
    """PSNR of the mean image for one client."""
    client = data.client(name, samples, seed=seed, root=root)
    mean = mean_of(name, root).expand_as(client.images).contiguous()
    return round(metrics.evaluate(mean, client.images).psnr, 3)


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
    return {
        "mean image": mean_image(row.dataset, row.samples, seed, root),
        "best of 1000": round(metrics.evaluate(chosen, client.images).psnr, 3),
        "l_sim": round(best, 5),
    }


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-root", required=True)
    root = parser.parse_args().data_root
    fill(MEANS, ((f"{d} {n} {k}", partial(mean_image, d, n, k, root)) for d, n, k in met()))
    plan = [(row, ROWS["main"][row].first + k) for row, n in CLIENTS.items() for k in range(n)]
    found = fill(RESULTS, ((f"{row} {k}", partial(run, row, k, root)) for row, k in plan))
    for row in CLIENTS:
        cell = [v for k, v in found.items() if k.startswith(row + " ")]
        for guess in ("mean image", "best of 1000"):
            values = [v[guess] for v in cell]
            print(f"{row:18} {guess:13} {np.mean(values):5.2f} dB, {len(values)} clients")


if __name__ == "__main__":
    main()
