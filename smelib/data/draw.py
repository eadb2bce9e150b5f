"""Clients drawn from a data set: one at random, or a whole federation."""

from __future__ import annotations

import os

import numpy as np
from torch.utils.data import Dataset as TorchDataset

from smelib.data.arrays import whole
from smelib.data.clients import Client, Dataset
from smelib.data.loaders import load
from smelib.devices import afford
from smelib.errors import InputError, nearest
from smelib.seeds import numpy_generator

Source = str | Dataset | TorchDataset


def client(
    source: Source,
    samples: int = 10,
    *,
    seed: int = 0,
    distinct_labels: bool = False,
    root: str | os.PathLike | None = None,
    download: bool = False,
) -> Client:
    """A random client with `samples` images; of a single writer where the data set knows writers.

    `source` is a data set's name or a `Dataset` (a torch data set is read through `Dataset.of` at
    every call). `distinct_labels=True` draws at most one image of a class.
    """
    samples = whole(samples, "the client's number of samples")
    held, rng = _held(source, root, download), numpy_generator(seed, "client")
    pool = rng.permutation(_one_writer(held, samples, distinct_labels, rng))
    if distinct_labels:
        _, first = np.unique(held.labels[pool], return_index=True)
        pool = pool[np.sort(first)]
    if len(pool) < samples:
        what = "different labels" if distinct_labels else "images"
        raise InputError(f"{held.name!r} has only {len(pool)} {what} for a client of {samples}.")
    return held.client(pool[:samples])


def _one_writer(
    held: Dataset, samples: int, distinct_labels: bool, rng: np.random.Generator
) -> np.ndarray:
    """The images of a random writer who has enough of them; all images where no writer has."""
    if held.writers is None:
        return np.arange(len(held))
    _, writer = np.unique(held.writers, return_inverse=True)
    counted = writer
    if distinct_labels:  # each writer once per class
        counted = np.unique(writer * held.classes + held.labels) // held.classes
    able = np.flatnonzero(np.bincount(counted) >= samples)
    return np.flatnonzero(writer == rng.choice(able)) if len(able) else np.arange(len(held))


def federation(
    source: Source,
    *,
    clients: int = 20,
    split: str = "dirichlet",
    concentration: float = 0.5,
    seed: int = 0,
    root: str | os.PathLike | None = None,
    download: bool = False,
) -> list[Client]:
    """Many non-IID clients: one per writer, or classes shared out by Dirichlet weights.  [Hsu19]

    There are at most `clients` of them: as many as there are writers, and none without an image.
    """
    clients = whole(clients, "the number of clients")
    held, rng = _held(source, root, download), numpy_generator(seed, "federation")
    if split == "writer":
        if held.writers is None:
            raise InputError(f"{held.name!r} does not say who wrote what; use split='dirichlet'.")
        names = rng.permutation(np.unique(held.writers))[:clients]
        parts = [np.flatnonzero(held.writers == n) for n in names]
    elif split == "dirichlet":
        parts = _dirichlet(held, clients, concentration, rng)
    else:
        raise nearest("split", str(split), ["writer", "dirichlet"])
    return [held.client(part) for part in parts if len(part)]


def _dirichlet(
    held: Dataset, clients: int, concentration: float, rng: np.random.Generator
) -> list[np.ndarray]:
    """Every class cut into one piece per client, the sizes drawn anew for each class."""
    # Above the limit the gamma variates that make up a Dirichlet sample overflow.
    if not isinstance(concentration, (int, float)) or not 0 < concentration <= 1e12:
        raise InputError(
            f"the concentration is {concentration!r}; it must be a positive number up to 1e12: "
            "small for clients of few classes, large for clients that are alike."
        )
    afford(200 * clients, f"a federation of {clients:,} clients")
    parts = [[] for _ in range(clients)]
    for label in range(held.classes):
        members = rng.permutation(np.flatnonzero(held.labels == label))
        shares = np.cumsum(rng.dirichlet(np.full(clients, concentration)))[:-1]
        pieces = np.split(members, (shares * len(members)).astype(int))
        for part, piece in zip(parts, pieces, strict=True):
            part.extend(piece)
    return [np.array(part, dtype=int) for part in parts]


def _held(source: Source, root: str | os.PathLike | None, download: bool) -> Dataset:
    if isinstance(source, str):
        return load(source, root=root, download=download)
    if root is not None or download:
        raise InputError(
            "root= and download= belong to a data set's name; this is the data itself."
        )
    return source if isinstance(source, Dataset) else Dataset.of(source)
