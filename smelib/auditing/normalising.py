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
TIE, NEAR = 1.2, 0.0015  # mismatches that are so near to the best, by either, explain as much
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
    """What each normalisation leaves unexplained, the one taken, and all that do about as well."""

    name: str
    mismatches: dict[str, float]
    alike: list[str]


def search(
    models: dict[str, Network],
    update: Update,
    labels: Callable[[Network], Tensor],
    **options: object,
) -> Search:
    """The normalisation that explains the update best, by SME's own mismatch.

    A wide range of values contains the narrow ones and explains what they explain, so of those
    that do about as well the narrowest is taken; of colour images, whose pixels are seldom black
    or white, the narrowest whose pictures do not press against both ends.
    """

    how = replace(PRESETS["fast"], steps=STEPS)
    tried = {
        name: attacks.sme(model, update, labels(model), **in_pixels(model, how), **options)
        for name, model in models.items()
    }
    mismatches = {name: found.similarity for name, found in tried.items()}
    best = min(mismatches.values())
    good = [name for name, left in mismatches.items() if left <= max(TIE * best, best + NEAR)]
    colour = next(iter(models.values())).shape[0] > 1
    free = [name for name in good if not colour or _pinned(tried[name].images) < PINNED]
    return Search(free[-1] if free else min(good, key=mismatches.get), mismatches, good)


def _pinned(images: Tensor) -> float:
    """The share of pixels at black or at white, whichever is less."""
    return min(float((images < 0.01).float().mean()), float((images > 0.99).float().mean()))
