"""The papers' settings: how IG, SME and DLFA are minimised, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

from smelib import params as P
from smelib.errors import nearest
from smelib.objectives import layer_weights
from smelib.optimisers import adam, cosine, staircase
from smelib.solver import Recipe
from smelib.types import Protocol, Schedule, Update


@dataclass(frozen=True)
class Preset:
    """How IG and SME are minimised. `grey`: start near mid-grey with that much noise, not N(0, 1).

    `rate` is the images' learning rate; alpha is updated every `alpha_every` steps at `alpha_rate`.
    """

    steps: int
    schedule: Schedule
    betas: tuple[float, float]
    alpha_rate: float
    rate: float = 1.0
    alpha_every: int = 1
    grey: float | None = None

    def recipe(self) -> Recipe:
        """For the solver: Adam in the box, alpha on the segment."""
        return Recipe(
            {"images": self.rate, "alpha": self.alpha_rate},
            optimiser=partial(adam, betas=self.betas),
            schedule=self.schedule,
            bounds={"images": (0, 1), "alpha": (0, 1)},
            every={"alpha": self.alpha_every},
            grey=self.grey,
        )


PRESETS = {
    "paper": Preset(1000, staircase, (0.9, 0.999), alpha_rate=0.001),
    "fast": Preset(200, cosine, (0.9, 0.99), alpha_rate=0.02, rate=2.0, alpha_every=4, grey=0.1),
}


def preset(given: str | Preset) -> Preset:
    """A preset by name, or your own."""
    if isinstance(given, Preset):
        return given
    if not isinstance(given, str) or given not in PRESETS:
        raise nearest("preset", given, PRESETS)
    return PRESETS[given]


@dataclass(frozen=True)
class DLFASettings:
    """The authors' hyperparameters for one of their data sets.

    The learning rate falls by `decay` per `every` steps; the matching term's factor goes from
    `factor[0]` to `factor[1]`, geometrically, within the first 200 steps.
    """

    lr: float
    decay: float
    every: int
    factor: tuple[float, float]
    tv: float
    clip: float
    order: float
    mean_prior: bool


DLFA_SETTINGS = {
    "femnist": DLFASettings(0.4, 0.995, 10, (1, 2), tv=1e-3, clip=2, order=1000, mean_prior=True),
    "cifar100": DLFASettings(
        0.1, 0.997, 20, (4, 2), tv=2e-4, clip=10, order=6.075, mean_prior=False
    ),
}


def rebalanced(update: Update, protocol: Protocol) -> DLFASettings:
    """The authors' settings for FEMNIST with the matching term in units of the update: chapter 8.

    Their factor is a number and the matching term a square: beside an update that is ten times
    shorter, the same prior weighs a hundred times as much.
    """
    sent = P.scale(P.sub(update.before, update.after), 1 / protocol.lr)
    size = float(sum(w * sent[k].square().sum() for k, w in layer_weights(update.before).items()))
    factor = 1000 * protocol.steps(update.samples) / size
    how = DLFA_SETTINGS["femnist"]
    return replace(how, lr=1.0, decay=0.9**0.25, factor=(factor, factor))
