"""The one optimisation loop. What varies between attacks is passed in."""

from __future__ import annotations

import ctypes
import math
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import torch
from torch import Tensor
from torch.func import grad, vmap
from torch.optim import Optimizer
from tqdm.auto import tqdm

from smelib.objectives import Objective
from smelib.types import InputError

CHECK_EVERY = 25  # steps between two looks at the loss: only then does the device wait for us


@cache
def keep_freed_memory() -> None:
    """Ask glibc to keep what is freed for the next step, for this process; elsewhere do nothing.

    By default it returns the megabytes of every step's weight gradients to the system and takes
    them back page by page: a tenth to a fifth of a step on the CPU.
    """
    if not sys.platform.startswith("linux"):
        return
    trim_threshold, top_pad, map_threshold = -1, -2, -3
    try:
        tune = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # not glibc
        return
    tune(map_threshold, 2**25)  # the largest it takes; above, each tensor is its own mapping
    tune(trim_threshold, 2**31 - 1)
    tune(top_pad, 2**26)


def constant(step: int, steps: int) -> float:
    """No schedule."""
    return 1.0


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


def keep_all(images: Tensor, aux: dict[str, Tensor]) -> None:
    """No constraint."""


@dataclass(frozen=True)
class Recipe:
    """How an objective is minimised: the part of an attack that is not its mathematics.

    `rates` gives each unknown its learning rate, `schedule(step, steps)` the factor on all of
    them; `project(images, aux)` moves the unknowns, in place, back to where they are allowed.
    An unknown in `every` is updated, and its gradient computed, only every so many steps.
    """

    rates: dict[str, float]
    optimiser: Callable[[list[dict]], Optimizer] = adam
    schedule: Callable[[int, int], float] = constant
    project: Callable[[Tensor, dict[str, Tensor]], None] = keep_all
    every: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Solution:
    """Where the loop ended, for each restart: a leading dimension on everything."""

    images: Tensor
    aux: dict[str, Tensor]
    loss: Tensor
    terms: dict[str, Tensor]
    history: dict[str, Tensor]
    snapshots: list[Tensor]
    snapshot_steps: list[int]
    steps: int
    seconds: float
    stopped: str


def minimise(
    objective: Objective,
    images: Tensor,
    aux: dict[str, Tensor],
    recipe: Recipe,
    *,
    steps: int,
    keep: str = "last",
    snapshots: int = 0,
    tolerance: float = 0.0,
    progress: bool | None = None,
    compile: bool = False,
    label: str = "attack",
) -> Solution:
    """Minimise `objective` from the given start; `images` and `aux` have a leading dimension R.

    Restarts run side by side under `vmap` when R > 1. `keep="last"` returns the last state, as the
    papers do; `keep="best"` the one with the lowest loss, the attack's own, on the way.
    `compile` hands the step to `torch.compile`: twice as fast after half a minute of compiling.
    `tolerance` > 0 stops early when the loss falls by less than that share in 25 steps.
    Ctrl-C and a loss that turns NaN end the loop and keep what it has; `stopped` says so.
    """
    if keep not in ("last", "best"):
        raise InputError(f"keep={keep!r}: choose 'last' or 'best'.")
    if steps < 1:
        raise InputError(f"steps={steps}: an attack needs at least one.")
    keep_freed_memory()
    images = images.clone().requires_grad_()
    aux = {k: v.clone().requires_grad_() for k, v in aux.items()}
    unknowns = {"images": images, **aux}
    clock = torch.zeros((), device=images.device, dtype=images.dtype)
    optimizer = recipe.optimiser(
        [{"params": [v], "lr": recipe.rates[k]} for k, v in unknowns.items()]
    )
    base = [group["lr"] for group in optimizer.param_groups]
    evaluate = _over_restarts(objective, len(images))
    differentiate = _differentiator(evaluate, compile)

    history: dict[str, Tensor] = {}
    noted = 0
    taken: list[Tensor] = []
    taken_at = _evenly(steps, snapshots)
    with torch.no_grad():
        recipe.project(images, aux)
    safe = best = {k: v.detach().clone() for k, v in unknowns.items()}
    best_loss = torch.full((len(images),), float("inf"), device=images.device, dtype=images.dtype)
    bar = tqdm(total=steps, desc=label, disable=None if progress is None else not progress)
    bar.leave = bool(progress)
    stopped, started, done = "finished", time.perf_counter(), 0

    def closure() -> Tensor:
        nonlocal noted
        optimizer.zero_grad()
        due = {k for k in aux if done % recipe.every.get(k, 1) == 0}
        live = {k: v if k in due else v.detach() for k, v in aux.items()}
        loss, terms = differentiate(images, live, clock)
        if noted == done:
            found = {"loss": loss, **terms, **{k: v for k, v in aux.items() if v.ndim == 1}}
            for k, v in found.items():
                # In place: a small tensor kept from every step would splinter the heap.
                if k not in history:
                    history[k] = v.detach().new_zeros(steps, *v.shape)
                history[k][done] = v.detach()
            noted += 1
        return loss.detach().sum()

    try:
        for step in range(steps):
            if step in taken_at:
                taken.append(images.detach().clone())
            for group, rate in zip(optimizer.param_groups, base, strict=True):
                group["lr"] = rate * recipe.schedule(step, steps)
            before = {k: v.detach().clone() for k, v in unknowns.items()} if keep == "best" else {}
            optimizer.step(closure)
            with torch.no_grad():
                recipe.project(images, aux)
                if keep == "best":
                    best, best_loss = _better(history["loss"][step], before, best_loss, best)
                clock += 1
            done += 1
            if done % CHECK_EVERY == 0 or done == steps:
                bar.update(done - bar.n)
                recent = history["loss"][max(0, done - 2 * CHECK_EVERY) : done]
                if not bool(torch.isfinite(recent).any(dim=1).all()):  # no restart is left
                    stopped = _nan_message(history["loss"][:done])
                    break
                bar.set_postfix(loss=f"{float(recent[-1].min()):.4g}", refresh=False)
                safe = {k: v.detach().clone() for k, v in unknowns.items()}
                if tolerance > 0 and _stalled(recent, tolerance):
                    stopped = f"the loss stopped falling after {done} steps"
                    break
    except KeyboardInterrupt:
        stopped = f"interrupted after {done} of {steps} steps"
    bar.close()

    with torch.no_grad():
        last = safe if "NaN" in stopped else unknowns
        loss, terms = evaluate(last["images"], {k: last[k] for k in aux}, clock)
        if keep == "best":
            best, best_loss = _better(loss, last, best_loss, best)
            loss, terms = evaluate(best["images"], {k: best[k] for k in aux}, clock)
            last = best
    if not bool(torch.isfinite(loss).any()):
        raise FloatingPointError(
            "the loss is NaN or infinite from the first step, so there is nothing to return; "
            "lower the learning rate or check the update's weights."
        )
    if "NaN" in stopped:
        warnings.warn(stopped, RuntimeWarning, stacklevel=3)
    passed = [s for s in taken_at if s < done]
    if snapshots:
        taken = [*taken[: len(passed)], last["images"].detach().clone()]
    return Solution(
        images=last["images"].detach(),
        aux={k: last[k].detach() for k in aux},
        loss=loss.detach(),
        terms={k: v.detach() for k, v in terms.items()},
        # A step that was interrupted counts nowhere.
        history={k: v[:done].cpu() for k, v in history.items()},
        snapshots=taken,
        snapshot_steps=[*passed, done] if snapshots else [],
        steps=done,
        seconds=time.perf_counter() - started,
        stopped=stopped,
    )


def _over_restarts(objective: Objective, restarts: int) -> Objective:
    """The objective with a leading dimension; a single run skips vmap, which costs a little."""
    if restarts > 1:
        return vmap(objective, in_dims=(0, 0, None))

    def single(images: Tensor, aux: dict[str, Tensor], step: Tensor) -> tuple:
        first = images[0]
        if first.ndim == 4:
            first = first.contiguous(memory_format=torch.channels_last)
        loss, terms = objective(first, {k: v[0] for k, v in aux.items()}, step)
        return loss[None], {k: v[None] for k, v in terms.items()}

    return single


def _differentiator(evaluate: Objective, compiled: bool) -> Objective:
    """Evaluate, and leave the gradients in the unknowns' `.grad`, as optimisers expect them."""

    def eager(images: Tensor, aux: dict[str, Tensor], step: Tensor) -> tuple:
        loss, terms = evaluate(images, aux, step)
        loss.sum().backward()
        return loss, terms

    if not compiled:
        return eager

    def summed(unknowns: dict, fixed: dict, step: Tensor) -> tuple:
        loss, terms = evaluate(unknowns["images"], {**fixed, **unknowns["aux"]}, step)
        return loss.sum(), (loss, terms)

    # Both derivatives in one traced function: the compiler cannot differentiate twice by itself.
    traced = torch.compile(grad(summed, has_aux=True))

    def through_compiler(images: Tensor, aux: dict[str, Tensor], step: Tensor) -> tuple:
        nonlocal compiled
        if not compiled:
            return eager(images, aux, step)
        live = {k: v for k, v in aux.items() if v.requires_grad}
        plain = {k: v.detach() for k, v in live.items()}
        fixed = {k: v for k, v in aux.items() if k not in live}
        try:
            slopes, found = traced({"images": images.detach(), "aux": plain}, fixed, step)
        except Exception as error:  # whatever goes wrong in a compiler, the attack can do without
            warnings.warn(
                f"torch.compile failed ({type(error).__name__}); going on without it.",
                RuntimeWarning,
                stacklevel=2,
            )
            compiled = False
            return eager(images, aux, step)
        images.grad = slopes["images"]
        for k, v in live.items():
            v.grad = slopes["aux"][k]
        return found

    return through_compiler


def _evenly(steps: int, count: int) -> list[int]:
    """`count` step numbers from 0, spread over the run; the end state is added as the last."""
    return sorted({steps * i // (count - 1) for i in range(count - 1)}) if count > 1 else []


def _better(loss: Tensor, state: dict, best_loss: Tensor, best: dict) -> tuple[dict, Tensor]:
    """Keep, restart by restart, the state with the lower loss; NaN is never lower."""
    won = loss < best_loss
    chosen = {
        k: torch.where(won.view(-1, *[1] * (v.ndim - 1)), v.detach(), best[k])
        for k, v in state.items()
    }
    return chosen, torch.where(won, loss.detach(), best_loss)


def _stalled(recent: Tensor, tolerance: float) -> bool:
    if len(recent) < 2 * CHECK_EVERY:
        return False
    earlier, later = recent[:CHECK_EVERY].mean(dim=0), recent[CHECK_EVERY:].mean(dim=0)
    return bool((earlier - later < tolerance * earlier.abs()).all())


def _nan_message(losses: Tensor) -> str:
    bad = int(torch.isfinite(losses).any(dim=1).logical_not().nonzero()[0])
    return (
        f"the loss turned NaN at step {bad}; returning the last good state before it. "
        "Lower the learning rate, or check the update's weights."
    )
