"""Which pixels the network saw: raw ones, or normalised, and how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from torch import Tensor

from smelib import attacks
from smelib.errors import InputError, nearest
from smelib.models import NORMALISATION, Network
from smelib.presets import PRESETS, Preset
from smelib.types import Update

Normalisation: TypeAlias = tuple[tuple[float, ...], tuple[float, ...]]
"""Mean and standard deviation of the pixels, a number for each channel."""

USUAL: dict[int, dict[str, Normalisation]] = {
    1: {
        "femnist": NORMALISATION[1],
        "mnist": ((0.1307,), (0.3081,)),
        "half": ((0.5,), (0.5,)),
        "raw": ((0.0,), (1.0,)),
    },
    3: {
        "imagenet": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        "cifar": NORMALISATION[3],
        "half": ((0.5,) * 3, (0.5,) * 3),
        "raw": ((0.0,) * 3, (1.0,) * 3),
    },
}
"""By channels, the widest range of values first."""
PINNED = 0.015  # of a photograph's pixels, at black and at white both: the range is too narrow
STEPS = 100  # of the look at each


def usual(name: str, channels: int) -> Normalisation:
    """A usual normalisation by its name."""
    if channels not in USUAL and name != "raw":
        raise InputError(
            f"images of {channels} channels have no usual normalisation; give mean and std, one "
            "value per channel, or raw."
        )
    if name not in candidates(channels):
        raise nearest(f"normalisation for {channels} channels", name, candidates(channels))
    return candidates(channels)[name]


def candidates(channels: int) -> dict[str, Normalisation]:
    """The usual ones for so many channels; raw pixels where there are none."""
    return USUAL.get(channels, {"raw": ((0.0,) * channels, (1.0,) * channels)})


def default(channels: int) -> Normalisation:
    """Any normalisation that fits the channels."""
    return next(iter(candidates(channels).values()))


def in_pixels(model: Network, preset: str | Preset) -> dict:
    """A preset whose steps and smoothing are the same in pixels whatever the normalisation is."""
    how = PRESETS[preset] if isinstance(preset, str) else preset
    reference = NORMALISATION.get(model.shape[0], NORMALISATION[1])[1]
    ratio = (sum(model.std) / len(model.std)) / (sum(reference) / len(reference))
    return {"preset": replace(how, rate=how.rate / ratio), "tv": 0.01 * ratio}


@dataclass(frozen=True)
class Search:
    """The normalisation taken, and what each leaves unexplained."""

    name: str
    mismatches: dict[str, float]


def search(
    models: dict[str, Network],
    update: Update,
    labels: Callable[[Network], Tensor],
    **options: object,
) -> Search:
    """The normalisation that explains the update best, by SME's own mismatch.

    A wide range of values contains the narrow ones and explains what they explain. So a mismatch
    counts for more where the pictures leave part of the range unused; and of colour images, whose
    pixels are seldom black or white, a range is too narrow whose pictures press against both ends.
    """
    how = replace(PRESETS["fast"], steps=STEPS)
    tried = {
        name: attacks.sme(model, update, labels(model), **in_pixels(model, how), **options)
        for name, model in models.items()
    }
    mismatches = {name: found.similarity for name, found in tried.items()}
    colour = next(iter(models.values())).shape[0] > 1
    free = [k for k, v in tried.items() if not colour or _pinned(v.images) < PINNED]
    weighed = {k: mismatches[k] / _used(tried[k].images) for k in free or mismatches}
    return Search(min(weighed, key=weighed.get), mismatches)


def _used(images: Tensor) -> float:
    """The share of the range that the pictures use, all but a hundredth of their pixels."""
    values = images.flatten()[: 2**20].sort().values
    ends = len(values) // 100
    return max(0.05, float(values[-1 - ends] - values[ends]))


def _pinned(images: Tensor) -> float:
    """The share of pixels at black or at white, whichever is less."""
    return min(float((images < 0.01).float().mean()), float((images > 0.99).float().mean()))
