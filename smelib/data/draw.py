"""Clients drawn from a data set: one at random, or a whole federation."""

from __future__ import annotations

import os

import numpy as np

from smelib.data.clients import Client
from smelib.data.loaders import load
from smelib.types import InputError, nearest


def client(
    name: str,
    samples: int = 10,
    *,
    seed: int = 0,
    distinct_labels: bool = False,
    root: str | os.PathLike | None = None,
    download: bool = False,
) -> Client:
    """A random client with `samples` images; of a single writer where the data set knows writers.

    `distinct_labels=True` draws at most one image of a class.
    """
    held = load(name, root=root, download=download)
    if samples < 1:
        raise InputError(f"a client needs at least 1 sample, not {samples}.")
    rng = np.random.default_rng(seed)
    pool = np.arange(len(held.labels))
    if held.writers is not None:
        names, counts = np.unique(held.writers, return_counts=True)
        able = names[counts >= samples]
        if len(able):
            pool = np.flatnonzero(held.writers == rng.choice(able))
        # Otherwise no single writer has that many images and the client draws from all of them.
    pool = rng.permutation(pool)
    if distinct_labels:
        _, first = np.unique(held.labels[pool], return_index=True)
        pool = pool[np.sort(first)]
    if len(pool) < samples:
        what = "different labels" if distinct_labels else "images"
        raise InputError(f"{name!r} has only {len(pool)} {what} for a client of {samples}.")
    return held.client(pool[:samples])


def federation(
    name: str,
    *,
    clients: int = 20,
    split: str = "dirichlet",
    concentration: float = 0.5,
    seed: int = 0,
    root: str | os.PathLike | None = None,
    download: bool = False,
) -> list[Client]:
    """Many non-IID clients: one per writer, or classes shared out by Dirichlet weights.  [Hsu19]"""
    held = load(name, root=root, download=download)
    rng = np.random.default_rng(seed)
    if split == "writer":
        if held.writers is None:
            raise InputError(f"{name!r} does not say who wrote what; use split='dirichlet'.")
        names = rng.permutation(np.unique(held.writers))[:clients]
        parts = [np.flatnonzero(held.writers == n) for n in names]
    elif split == "dirichlet":
        parts = [[] for _ in range(clients)]
        for label in range(held.classes):
            members = rng.permutation(np.flatnonzero(held.labels == label))
            shares = np.cumsum(rng.dirichlet(np.full(clients, concentration)))[:-1]
            pieces = np.split(members, (shares * len(members)).astype(int))
            for part, piece in zip(parts, pieces, strict=True):
                part.extend(piece)
        parts = [np.array(p, dtype=int) for p in parts]
    else:
        raise nearest("split", split, ["writer", "dirichlet"])
    return [held.client(part) for part in parts if len(part)]
