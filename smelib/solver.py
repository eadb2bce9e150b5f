"""The one optimisation loop. What varies between attacks is passed in."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR
from tqdm.auto import tqdm

from smelib.compiling import differentiator
from smelib.errors import InputError, check_fields, nearest, whole
from smelib.objectives import Aux, Objective, Terms
from smelib.optimisers import adam, cosine, lbfgs, staircase  # noqa: F401
from smelib.restarts import better, choose, finite, over_restarts
from smelib.types import Schedule, Stop, constant

CHECK_EVERY = 25  # steps between two looks at the loss: only then does the device wait for us


@dataclass(frozen=True)
class Recipe:
    """How an objective is minimised, and from where: the part of an attack without mathematics.

    `rates` gives each unknown its learning rate, `schedule(step, steps)` the factor on all of them,
    `bounds` the values it is clamped to after every step (for `images` in pixels, which
    `attacks.reconstruct` turns into the network's units, as `minimise` needs them). An unknown in
    `every` is updated, and its gradient computed, only every so many steps.

    The images start as N(0, 1) noise, or near mid-grey with `grey` as much of it. `unknowns` draws
    the others. With `epochs`, an image has one dummy per epoch, and `finish` merges them. An
    objective that holds something fixed works it out at the start and, from step `warm` on, every
    `renew` steps.
    """

    rates: dict[str, float]
    optimiser: Callable[[list[dict]], Optimizer] = adam
    schedule: Schedule = constant
    bounds: dict[str, tuple] = field(default_factory=dict)
    every: dict[str, int] = field(default_factory=dict)
    grey: float | None = None
    unknowns: Callable[[torch.Generator], Aux] = lambda generator: {}
    epochs: int | None = None
    finish: Callable[[Tensor], Tensor] = lambda z: z
    renew: int = 10
    warm: int = 0


@dataclass(frozen=True)
class Options:
    """What every attack takes besides its own arguments."""

    steps: int = 1000  #: iterations of the loop
    seed: int = 0  #: of the starting dummies; the same seed gives the same result
    restarts: int = 1  #: independent starts; the one with the lowest final loss is returned
    batched: bool | None = None  #: restarts at once under vmap, or one by one; or what is faster
    device: str = "auto"  #: "auto" takes CUDA, then MPS, then the CPU
    keep: str = "last"  #: "last" state (as in the papers) or "best" by the attack's own loss
    snapshots: int = 0  #: how many pictures of the way to keep
    compile: bool = False  #: hand the step to torch.compile; pays from some 2,000 steps on
    tolerance: float = 0.0  #: stop early when 25 steps improve the loss by less than this share
    progress: bool | None = None  #: show a bar; by default on a terminal only

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("restarts", 1), ("snapshots", 0)):
            object.__setattr__(self, name, whole(getattr(self, name), name, least))
        check_fields(self)
        if self.keep not in ("last", "best"):
            raise InputError(f"keep={self.keep!r}: choose 'last' or 'best'.")

    @classmethod
    def of(cls, given: dict[str, object], **defaults: object) -> Options:
        """The options given by name; an unknown one is an error that names the nearest."""
        for name in given:
            if name not in cls.__dataclass_fields__:
                raise nearest("option", name, cls.__dataclass_fields__)
        return cls(**{**defaults, **given})


@dataclass(frozen=True)
class Solution:
    """Where the loop ended, for each restart: a leading dimension on everything."""

    images: Tensor
    aux: Aux
    loss: Tensor
    terms: Terms
    history: dict[str, Tensor]
    snapshots: list[Tensor]
    snapshot_steps: list[int]
    steps: int
    seconds: float
    stopped: Stop


def minimise(
    objective: Objective,
    images: Tensor,
    aux: Aux,
    recipe: Recipe,
    options: Options,
    *,
    label: str = "attack",
) -> Solution:
    """Minimise `objective` from the given start; `images` and `aux` have a leading dimension R.

    Restarts run side by side under `vmap` when R > 1. `keep="last"` returns the last state, as the
    papers do; `keep="best"` the one with the lowest loss, the attack's own, on the way.
    `tolerance` > 0 stops early when the loss falls by less than that share in 25 steps. Ctrl-C ends
    the loop and keeps what it has. A restart whose numbers turn NaN or infinite goes back to its
    last good state, and the loop ends when none is left; `stopped` says so.
    """
    loop = _Loop(objective, {"images": images, **aux}, recipe, options)
    shown = None if options.progress is None else not options.progress
    bar = tqdm(total=options.steps, desc=label, disable=shown)
    bar.leave = bool(options.progress)
    started, stopped = time.perf_counter(), Stop.FINISHED
    try:
        while loop.done < options.steps and stopped is Stop.FINISHED:
            loop.step()
            if loop.done % CHECK_EVERY == 0 or loop.done == options.steps:
                stopped = loop.look()
                bar.update(loop.done - bar.n)
                bar.set_postfix(loss=f"{float(loop.recent()[-1].min()):.4g}", refresh=False)
    except KeyboardInterrupt:
        stopped = Stop.INTERRUPTED
    bar.close()
    return loop.solution(stopped, time.perf_counter() - started)


class _Loop:
    """The state of a run, one step at a time."""

    def __init__(
        self, objective: Objective, start: dict[str, Tensor], recipe: Recipe, options: Options
    ) -> None:
        self.recipe, self.options, self.done = recipe, options, 0
        self.unknowns = {k: v.clone().requires_grad_() for k, v in start.items()}
        images = self.unknowns["images"]
        self.clock = torch.zeros((), device=images.device, dtype=images.dtype)
        self.optimiser = recipe.optimiser(
            [{"params": [v], "lr": recipe.rates[k]} for k, v in self.unknowns.items()]
        )
        self.schedule = LambdaLR(self.optimiser, lambda k: recipe.schedule(k, options.steps))
        self.evaluate = over_restarts(objective, len(images))
        self.renewal = getattr(objective, "renew", lambda images, aux: {})
        self.held: Aux = {}
        self.differentiate = differentiator(self.evaluate, options.compile)
        self.history: dict[str, Tensor] = {}
        self.noted = 0
        self.taken: list[Tensor] = []
        self.taken_at = _evenly(options.steps, options.snapshots)
        self._project()
        self.safe = self.safer = self.best = self._state()
        self.best_score = torch.full_like(images.detach().flatten(1)[:, 0], math.inf)

    def _state(self) -> dict[str, Tensor]:
        return {k: v.detach().clone() for k, v in self.unknowns.items()}

    @torch.no_grad()
    def _project(self) -> None:
        for name, (low, high) in self.recipe.bounds.items():
            if name in self.unknowns:
                self.unknowns[name].clamp_(low, high)

    def _renewed(self, state: dict[str, Tensor]) -> Aux:
        """What the objective holds fixed, restart by restart, worked out from a state."""
        known = {**state, **self.held}
        rows = [{k: v[r] for k, v in known.items()} for r in range(len(state["images"]))]
        found = [self.renewal(row.pop("images"), row) for row in rows]
        return {k: torch.stack([row[k] for row in found]) for k in found[0]}

    def _closure(self) -> Tensor:
        self.optimiser.zero_grad()
        aux = {k: v for k, v in self.unknowns.items() if k != "images"}
        due = {k for k in aux if self.done % self.recipe.every.get(k, 1) == 0}
        live = {k: v if k in due else v.detach() for k, v in aux.items()}
        loss, terms = self.differentiate(self.unknowns["images"], live | self.held, self.clock)
        if self.noted == self.done:
            found = {"loss": loss, **terms, **{k: v for k, v in aux.items() if v.ndim == 1}}
            for k, v in found.items():
                # In place: a small tensor kept from every step would splinter the heap.
                if k not in self.history:
                    self.history[k] = v.detach().new_zeros(self.options.steps, *v.shape)
                self.history[k][self.done] = v.detach()
            self.noted += 1
        return loss.detach().sum()

    def step(self) -> None:
        """One step of the optimiser."""
        if self.done in self.taken_at:
            self.taken.append(self.unknowns["images"].detach().clone())
        if self.done % self.recipe.renew == 0 and not 0 < self.done < self.recipe.warm:
            self.held = self._renewed(self._state())
        before = self._state() if self.options.keep == "best" else {}
        self.optimiser.step(self._closure)
        self.schedule.step()
        self._project()
        if self.options.keep == "best":
            score = self.history.get("score", self.history["loss"])[self.done]
            self.best, self.best_score = better(score, before, self.best_score, self.best)
        self.clock += 1
        self.done += 1

    def recent(self) -> Tensor:
        """The losses of the last fifty steps, `[steps, R]`."""
        return self.history["loss"][max(0, self.done - 2 * CHECK_EVERY) : self.done]

    def look(self) -> Stop:
        """Remember the restarts that are well; stop when none is, or when none gets better."""
        well = torch.isfinite(self.recent()).all(dim=0) & finite(self.unknowns)
        if not bool(well.any()):
            return Stop.DIVERGED
        # The loss of the older of the two is known by now, and finite.
        self.safer = choose(well, self.safe, self.safer)
        self.safe = choose(well, self.unknowns, self.safe)
        stalled = self.options.tolerance > 0 and _stalled(self.recent(), self.options.tolerance)
        return Stop.STALLED if stalled else Stop.FINISHED

    @torch.no_grad()
    def solution(self, stopped: Stop, seconds: float) -> Solution:
        """The state to return, and how it got there."""

        def at(state: dict[str, Tensor]) -> tuple[Tensor, Terms]:
            aux = {k: v for k, v in state.items() if k != "images"} | self._renewed(state)
            return self.evaluate(state["images"], aux, self.clock)

        kept = finite(self.unknowns) & (stopped is not Stop.DIVERGED)
        last = choose(kept, self.unknowns, self.safe)
        loss, terms = at(last)
        for good in (self.safe, self.safer):
            unwell = ~torch.isfinite(loss)
            if bool(unwell.any()):
                last = choose(unwell, good, last)
                loss, terms = at(last)
        if self.options.keep == "best":
            last, _ = better(terms.get("score", loss), last, self.best_score, self.best)
            loss, terms = at(last)
        passed = [s for s in self.taken_at if s < self.done]
        pictures = self.options.snapshots > 0
        return Solution(
            images=last["images"].detach(),
            aux={k: v.detach() for k, v in last.items() if k != "images"},
            loss=loss.detach(),
            terms={k: v.detach() for k, v in terms.items()},
            # A step that was interrupted counts nowhere.
            history={k: v[: self.done].cpu() for k, v in self.history.items()},
            snapshots=[*self.taken[: len(passed)], last["images"].detach()] if pictures else [],
            snapshot_steps=[*passed, self.done] if pictures else [],
            steps=self.done,
            seconds=seconds,
            stopped=stopped,
        )


def _evenly(steps: int, count: int) -> list[int]:
    """`count` step numbers from 0, spread over the run; the end state is added as the last."""
    pieces = min(count - 1, steps)
    return sorted({steps * i // pieces for i in range(pieces)})


def _stalled(recent: Tensor, tolerance: float) -> bool:
    if len(recent) < 2 * CHECK_EVERY:
        return False
    earlier, later = recent[:CHECK_EVERY].mean(dim=0), recent[CHECK_EVERY:].mean(dim=0)
    return bool((earlier - later < tolerance * earlier.abs()).all())
