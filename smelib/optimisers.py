"""The optimisers and the learning rates' schedules that a recipe chooses from."""

from __future__ import annotations

import math

import torch
from torch.optim import Optimizer


def staircase(step: int, steps: int) -> float:
    """×0.1 after 3/8, 5/8 and 7/8 of the steps, as in the official SME code."""
    return 0.1 ** sum(step >= steps * k / 8 for k in (3, 5, 7))


def cosine(step: int, steps: int) -> float:
    """From 1 to 0 along half a cosine."""
    return (1 + math.cos(math.pi * step / steps)) / 2


def adam(groups: list[dict], betas: tuple[float, float] = (0.9, 0.999)) -> Optimizer:
    """Adam, with the usual momentum terms by default; each group brings its own learning rate."""
    return torch.optim.Adam(groups, betas=betas)


def lbfgs(groups: list[dict]) -> Optimizer:
    """L-BFGS over all unknowns together, 20 iterations a step, with a Wolfe line search."""
    everything = [p for group in groups for p in group["params"]]
    return torch.optim.LBFGS(everything, lr=groups[0]["lr"], line_search_fn="strong_wolfe")
