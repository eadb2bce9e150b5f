"""The attacker who knows the defence: SME and retrace with one thing more in each objective.

An attack compares the update with the dummies' gradient. One who knows what the client did does
the same to its own dummies first (`seen`), or knows how much longer the update was (`longest`),
how much noise there is (a heavier `tv`, several rounds), or whose updates were added up
(`clients`). The naive attacker calls `smelib.attacks` on what was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor

from smelib import params as P
from smelib.attacks import reconstruct
from smelib.errors import InputError, checked
from smelib.federated import gradient
from smelib.models import Network
from smelib.objectives import Aux, Objective, Renewed, Terms, match_direction, own_batches
from smelib.presets import Preset
from smelib.presets import preset as named
from smelib.solver import Options
from smelib.types import Params, Protocol, Reconstruction, Update
from smelib.walking import Walker, part

Seen: TypeAlias = Callable[[Params], Params]
"""What the defence lets through of a gradient: done to the dummies' as it was to the client's."""


def everything(slope: Params) -> Params:
    """All of the gradient: the naive attacker's view."""
    return slope


def sent_only(update: Update) -> Seen:
    """Only the weights that moved, for `top_k` and `random_k`: of the others nothing was said."""
    there = {k: v != update.before[k].to(v) for k, v in update.after.items()}
    return lambda slope: {k: v * there[k].to(v) for k, v in slope.items()}


def soft_signs(update: Update) -> Seen:
    """A gradient's signs, for `sign`: softened by the layer's size, so that they have a slope."""
    size = {k: (v - update.before[k].to(v)).abs().mean() for k, v in update.after.items()}

    def seen(slope: Params) -> Params:
        found = {}
        for k, v in slope.items():
            typical = v.detach().square().mean().sqrt().clamp(min=1e-30)
            found[k] = size[k].to(v) * torch.tanh(v / typical)
        return found

    return seen


def longer(update: Update, factor: float) -> Update:
    """The update `factor` times as long: what a clipped client had before it was clipped."""
    if not factor > 0:
        raise InputError(f"an update {factor!r} times as long: the factor must be positive.")
    return Update(update.before, P.lerp(update.before, update.after, factor), update.samples)


def averaged(updates: Sequence[Update]) -> Update:
    """One update of several from the same weights, by a server that sent them several times.

    The client's noise is new each time and its data are not: R rounds leave $\\sigma / \\sqrt R$.
    Of a weight that was not sent every time, the mean is over the times it was.
    """
    if not updates:
        raise InputError("there is no update to average.")
    first = updates[0]
    for other in updates[1:]:
        if not all(torch.equal(v, other.before[k]) for k, v in first.before.items()):
            raise InputError(
                "the updates start from other weights than the first: match them together, with "
                "others=."
            )
    after = {}
    for k, start in first.before.items():
        moves = torch.stack([u.after[k] - start.to(u.after[k]) for u in updates])
        times = (moves != 0).sum(dim=0).clamp(min=1)
        after[k] = start.to(moves) + moves.sum(dim=0) / times
    return Update(first.before, after, first.samples)


def along_the_segment(
    model: Network,
    update: Update,
    labels: Tensor,
    *,
    tv: float,
    seen: Seen = everything,
    name: str = "alpha",
) -> Objective:
    """SME's objective, `objectives.sme`, for one who knows; `name` is what alpha is called."""
    start = model.trained(update.before)
    ahead = P.sub(model.trained(update.after), start)

    def surrogate(images: Tensor, aux: Aux) -> Params:
        weights = {**update.before, **P.add(start, ahead, aux[name])}
        return seen(gradient(model, weights, images, labels))

    return match_direction(model, update, tv, surrogate)


def along_the_path(
    model: Network,
    update: Update,
    labels: Tensor,
    *,
    tv: float,
    straight: float = 0.01,
    moves: int = 20,
    protocol: Protocol | None = None,
    clients: Sequence[int] = (),
    seen: Seen = everything,
    seed: int = 0,
) -> Renewed:
    """Retrace's objective, `objectives.retrace` with one node, for one who knows.

    Of a sum of several `clients`, so many samples each, every one walks its own path from $w_0$
    with its own dummies, and their moves are added up by N.
    """
    sizes = list(clients) or [len(labels)]
    if sum(sizes) != len(labels):
        raise InputError(
            f"clients of {sizes} samples are {sum(sizes)}, and there are {len(labels)}."
        )
    walkers = []
    for known in labels.split(sizes):
        how = protocol or Protocol(moves, len(known))
        order = own_batches(known, how, seed)
        walkers.append(
            Walker(model, update, known, order, how, protocol and protocol.lr, 1, seen=seen)
        )

    def shared(held: Aux) -> list[Aux]:
        """What is held of each client's walk."""
        return [{**part(held, f"client {i}"), "alpha": held["alpha"]} for i in range(len(sizes))]

    def each(images: Tensor, held: Aux) -> Iterator[tuple[Walker, Tensor, Aux]]:
        dummies = images.split(sizes) if len(sizes) > 1 else [images]
        return zip(walkers, dummies, shared(held), strict=True)

    def surrogate(images: Tensor, held: Aux) -> Params:
        moved = [P.add(w.slope(z, own), part(own, "rest")) for w, z, own in each(images, held)]
        return seen(moved[0] if len(moved) == 1 else P.mean(moved, sizes))

    matched = match_direction(model, update, tv, surrogate)

    def loss(images: Tensor, held: Aux, step: Tensor) -> tuple[Tensor, Terms]:
        value, terms = matched(images, held, step)
        walked = sum(own["walked"] for own in shared(held)) / len(sizes)
        return value + (1 - walked) * (straight - tv) * terms["tv"], terms

    def renew(images: Tensor, held: Aux) -> Aux:
        found = [walker.renew(z, own) for walker, z, own in each(images, held)]
        return {f"client {i} {k}": v for i, own in enumerate(found) for k, v in own.items()}

    return Renewed(loss, renew)


@checked
def sme(
    model: Network,
    update: Update,
    labels: Tensor,
    *,
    seen: Seen = everything,
    longest: float = 1.0,
    tv: float = 0.01,
    others: Sequence[Update] = (),
    preset: str | Preset = "fast",
    **options: object,
) -> Reconstruction:
    """SME by an attacker who knows; with nothing to know it is `attacks.sme`.

    `longest` is how many times longer than sent the update may have been, and how far alpha goes.
    `others` are the same client's updates in other rounds, from any weights, matched together.
    """
    if not longest >= 1:
        raise InputError(f"longest={longest}: a clipped update was at least as long as it is.")
    every = {"alpha": update, **{f"alpha {i + 1}": u for i, u in enumerate(others)}}
    how = named(preset)
    given, recipe = Options.of(options, steps=how.steps), how.recipe()
    recipe = replace(
        recipe,
        rates={**recipe.rates, **dict.fromkeys(every, longest * recipe.rates["alpha"])},
        bounds={**recipe.bounds, **dict.fromkeys(every, (0, longest))},
        every=dict.fromkeys(every, how.alpha_every),
        unknowns=lambda generator: {k: torch.tensor(0.5) for k in every},
    )

    def make(model: Network, update: Update, labels: Tensor) -> Objective:
        one = partial(along_the_segment, model, labels=labels, tv=tv, seen=seen)
        place = next(iter(update.before.values())).device
        further = {k: model.own(u).to(place, update.dtype) for k, u in every.items()}
        losses = [one(update=u, name=k) for k, u in {**further, "alpha": update}.items()]
        return losses[0] if len(losses) == 1 else _together(losses)

    return reconstruct(model, update, labels, make, recipe, given, name="SME, aware")


@checked
def retrace(
    model: Network,
    update: Update,
    labels: Tensor,
    *,
    seen: Seen = everything,
    protocol: Protocol | None = None,
    clients: Sequence[int] = (),
    tv: float = 0.003,
    straight: float = 0.01,
    every: int = 4,
    warm: float = 0.15,
    preset: str | Preset = "fast",
    **options: object,
) -> Reconstruction:
    """Retrace by an attacker who knows; with nothing to know it is `attacks.retrace`.

    A clipped update is too short to say how far the client walked: there `protocol` does. `clients`
    are the sample counts of those whose updates were added up, their labels one after the other.
    """
    how = named(preset)
    given = Options.of(options, steps=how.steps)
    knows = {"protocol": protocol, "clients": tuple(clients), "seen": seen}
    loss = partial(along_the_path, tv=tv, straight=straight, seed=given.seed, **knows)
    middle = {"unknowns": lambda generator: {"alpha": torch.tensor(0.5)}}
    recipe = replace(how.recipe(), renew=every, warm=int(warm * given.steps), **middle)
    return reconstruct(model, update, labels, loss, recipe, given, name="retrace, aware")


def _together(losses: list[Objective]) -> Objective:
    """The mean of several objectives over the same images."""

    def loss(images: Tensor, aux: Aux, step: Tensor) -> tuple[Tensor, Terms]:
        found = [one(images, aux, step) for one in losses]
        terms = {k: sum(t[k] for _, t in found) / len(found) for k in found[0][1]}
        return sum(value for value, _ in found) / len(found), terms

    return loss
