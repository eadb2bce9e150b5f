"""What an attack believes of images before it sees an update: that they are smooth, and one set."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F

from smelib import seeds
from smelib.recomputing import recomputed


def total_variation(z: Tensor) -> Tensor:
    """Mean absolute difference of neighbouring pixels, horizontal and vertical.  [Geiping20]"""
    gaps = z[..., 1:] - z[..., :-1], z[..., 1:, :] - z[..., :-1, :]
    return sum(gap.abs().mean() for gap in gaps if gap.numel()) / 2


Summary: TypeAlias = Callable[[Tensor], Tensor]
"""What an epoch's images have in any order: from `[E, N, C, H, W]` to a row for each epoch."""


def mean_image(images: Tensor) -> Tensor:
    """An order-free summary of every epoch of `[E, N, C, H, W]`: its mean image.  [Dimitrov22]"""
    return images.mean(dim=1)


def max_features(like: Tensor, channels: int, *, seed: int, filters: int = 96) -> Summary:
    """An order-free summary: each pixel's largest response to fixed random 3×3 filters."""
    generator = seeds.generator(seed, "features")
    draw = torch.randn(filters, channels, 3, 3, generator=generator) / math.sqrt(9 * channels)
    bank = draw.to(like)

    def summary(images: Tensor) -> Tensor:
        responses = F.conv2d(images.flatten(0, 1), bank, padding=1)
        return responses.unflatten(0, images.shape[:2]).amax(dim=1)

    return summary


def order_gap(summaries: Tensor) -> Tensor:
    """Mean squared difference of the epochs' summaries, over all $E^2$ pairs as the authors do.

    An epoch's pair with itself counts: a mean over distinct pairs is $E / (E - 1)$ times this.
    """
    # Over all pairs, the squared differences sum to 2E times those from the mean.
    apart = (summaries - summaries.mean(dim=0)).square().flatten(1).mean(dim=1)
    return 2 * apart.mean()


def wrapped_variation(z: Tensor) -> Tensor:
    """Squared differences of neighbours, wrapping around, summed over an image.  [Dimitrov22]"""
    across = (z - z.roll(1, dims=-1)).square()
    down = (z - z.roll(1, dims=-2)).square()
    return (across + down).sum(dim=(-3, -2, -1)).mean()


def by_epoch(summary: Summary, images: Tensor) -> Tensor:
    """The summaries one epoch at a time, each run again on the way back: none keeps its graph."""
    return torch.cat([recomputed(lambda x: (summary(x),), epoch)[0] for epoch in images.split(1)])
