"""Algebra on named weights, so that the formulas of the book read as they are written."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from smelib.types import Params


def lerp(start: Params, end: Params, alpha: Tensor | float) -> Params:
    """The point $w(\\alpha) = w_0 + \\alpha (w_T - w_0)$ of the segment; alpha = 0 is the start."""
    return {k: torch.lerp(start[k], end[k], alpha) for k in start}


def add(a: Params, b: Params, scale: Tensor | float = 1.0) -> Params:
    """$a + \\text{scale} \\cdot b$, in one pass over the weights."""
    if isinstance(scale, Tensor):
        return {k: torch.addcmul(a[k], b[k], scale) for k in a}
    return {k: torch.add(a[k], b[k], alpha=scale) for k in a}


def sub(a: Params, b: Params) -> Params:
    """$a - b$."""
    return {k: a[k] - b[k] for k in a}


def scale(a: Params, factor: float) -> Params:
    """$\\text{factor} \\cdot a$."""
    return {k: factor * v for k, v in a.items()}


def dot(a: Params, b: Params) -> Tensor:
    """$\\langle a, b \\rangle$ over all parameters at once."""
    return sum(torch.dot(a[k].flatten(), b[k].flatten()) for k in a)


def norm(a: Params) -> Tensor:
    """$\\lVert a \\rVert$."""
    return dot(a, a).sqrt()


def cosine(a: Params, b: Params) -> Tensor:
    """$\\langle a, b \\rangle / (\\lVert a \\rVert \\lVert b \\rVert)$: one cosine, all layers."""
    return dot(a, b) / (norm(a) * norm(b))


def mean(items: Sequence[Params], weights: Sequence[float]) -> Params:
    """The weighted mean, the server's half of FedAvg.  [McMahan17]"""
    total = float(sum(weights))
    return {
        k: sum(w / total * item[k] for item, w in zip(items, weights, strict=True))
        for k in items[0]
    }
