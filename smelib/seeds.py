"""Randomness: one stream per purpose, derived from (seed, purpose), so that no two are the same.

With one seed for everything, `torch.Generator().manual_seed(seed)` would start an attack from the
very numbers that the network's weights were drawn from.
"""

from __future__ import annotations

import operator
from zlib import crc32

import numpy as np
import torch

from smelib.errors import InputError, nearest

PURPOSES = {
    "client": "which images a client holds",
    "federation": "how a data set is shared out",
    "weights": "a network's initial weights",
    "batches": "the order of a client's batches",
    "defence": "what a client does before it sends",
    "masks": "the masks of secure aggregation: one client's, or that of two",
    "bound": "the draws behind a bound on reconstruction",
    "rounds": "who reports in a round of FedAvg",
    "round": "the seed of client i in round r: derive(seed, 'round', r, i)",
    "start": "an attack's first dummies",
    "unknowns": "its other unknowns",
    "simulated batches": "the order of the batches that an attack simulates",
    "features": "DLFA's random filters",
    "label dummies": "the noise from which label counts are estimated",
    "checks": "the cases on which a reader's functions are tried",
}


def _sequence(seed: int, purpose: tuple[str | int, ...]) -> np.random.SeedSequence:
    try:
        whole = operator.index(seed)
    except TypeError:
        whole = -1
    if not 0 <= whole < 2**63:
        raise InputError(f"seed {seed!r}: it must be a whole number from 0 to 2^63 - 1.")
    if not purpose or purpose[0] not in PURPOSES:
        raise nearest("purpose of randomness", purpose[0] if purpose else "", PURPOSES)
    key = (part if isinstance(part, int) else crc32(part.encode()) for part in purpose)
    return np.random.SeedSequence(whole, spawn_key=tuple(key))


def derive(seed: int, *purpose: str | int) -> int:
    """A seed for one purpose, like `derive(0, "round", 3)`."""
    return int(_sequence(seed, purpose).generate_state(1, np.uint64)[0]) >> 1


def generator(seed: int, *purpose: str | int) -> torch.Generator:
    """PyTorch's generator for one purpose, on the CPU: the same numbers whatever the device."""
    return torch.Generator().manual_seed(derive(seed, *purpose))


def numpy_generator(seed: int, *purpose: str | int) -> np.random.Generator:
    """NumPy's generator for one purpose."""
    return np.random.default_rng(_sequence(seed, purpose))
