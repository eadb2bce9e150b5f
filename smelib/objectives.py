"""The heart: one function per attack, and it is the only thing in which the attacks differ.

Each takes what the adversary sees and returns `loss(images, aux, step)`. `images` are normalised
dummies, `aux` the attack's other unknowns (SME's alpha, DLG's label logits), `step` the iteration
number. The loss comes back with its terms by name; "similarity" is always the paper's
$L_{\\mathrm{sim}}$.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor

from smelib import params as P
from smelib import seeds
from smelib.errors import InputError
from smelib.federated import batches, blank, gradient, move
from smelib.models import Network
from smelib.priors import (
    Summary,
    by_epoch,
    max_features,  # noqa: F401
    mean_image,
    order_gap,
    total_variation,
    wrapped_variation,
)
from smelib.recomputing import recomputed
from smelib.types import Params, Protocol, Update
from smelib.walking import Walker, part

Aux: TypeAlias = dict[str, Tensor]
Terms: TypeAlias = dict[str, Tensor]
Objective: TypeAlias = Callable[[Tensor, Aux, Tensor], tuple[Tensor, Terms]]
"""What a loop minimises: `loss(images, aux, step)` to the loss and its terms by name."""


def dlg(model: Network, update: Update, labels: Tensor | None, *, lr: float) -> Objective:
    """Match the gradient itself, in Euclidean distance, at $w_0$.  [Zhu19, Eq. 5]

    With `labels=None` the labels are unknowns too: `aux["logits"]`, `[N, classes]`.
    """
    target = model.trained(P.scale(P.sub(update.before, update.after), 1 / lr))

    def loss(images: Tensor, aux: Aux, step: Tensor) -> tuple[Tensor, Terms]:
        guess = aux["logits"].softmax(dim=-1) if labels is None else labels
        dummy = gradient(model, update.before, images, guess)
        gap = P.sub(dummy, target)
        distance = P.dot(gap, gap)
        return distance, {"distance": distance, "similarity": 1 - P.cosine(target, dummy)}

    return loss


def own_batches(labels: Tensor, protocol: Protocol, seed: int) -> list[Tensor]:
    """The batches of a simulated client, in the attack's own order: the true one is hidden."""
    drawn = batches(len(labels), protocol, seeds.generator(seed, "simulated batches"))
    return [batch.to(labels.device) for batch in drawn]


def match_direction(
    model: Network, update: Update, tv: float, dummy: Callable[[Tensor, Aux], Params]
) -> Objective:
    """Match the update's direction with `dummy(images, aux)`, a gradient of the dummies."""
    direction = model.trained(P.sub(update.before, update.after))

    def loss(images: Tensor, aux: Aux, step: Tensor) -> tuple[Tensor, Terms]:
        similarity = 1 - P.cosine(direction, dummy(images, aux))
        smooth = total_variation(images)
        return similarity + tv * smooth, {"similarity": similarity, "tv": smooth}

    return loss


def ig(model: Network, update: Update, labels: Tensor, *, tv: float) -> Objective:
    """Match the update's direction with the dummies' gradient at $w_0$.  [Geiping20, Eq. 4]"""
    here = partial(gradient, model, update.before, labels=labels)
    return match_direction(model, update, tv, lambda images, aux: here(images))


def sme(model: Network, update: Update, labels: Tensor, *, tv: float) -> Objective:
    """Match it at the learned point `aux["alpha"]` of the segment from $w_0$ to $w_T$.

    [Zhu23, Eq. 8]; alpha = 0 is IG. Automatic differentiation gives alpha's gradient as the inner
    product $\\langle \\partial L / \\partial w, w_T - w_0 \\rangle$.
    """
    start = model.trained(update.before)
    ahead = P.sub(model.trained(update.after), start)  # once, and not at every step

    def surrogate(images: Tensor, aux: Aux) -> Params:
        weights = {**update.before, **P.add(start, ahead, aux["alpha"])}
        return gradient(model, weights, images, labels)

    return match_direction(model, update, tv, surrogate)


@dataclass(frozen=True)
class Renewed:
    """A loss that holds something fixed, which `renew` works out from the dummies now and then.

    `renew(images, aux)` returns what is held, by name, and the loop hands it to the loss in `aux`.
    The first time `aux` has nothing of it.
    """

    loss: Objective
    renew: Callable[[Tensor, Aux], Aux]

    def __call__(self, images: Tensor, aux: Aux, step: Tensor) -> tuple[Tensor, Terms]:
        """The loss, with what is held in `aux`."""
        return self.loss(images, aux, step)


def retrace(
    model: Network,
    update: Update,
    labels: Tensor,
    *,
    tv: float,
    straight: float = 0.01,
    nodes: int = 1,
    moves: int = 20,
    protocol: Protocol | None = None,
    seed: int = 0,
) -> Renewed:
    """Match it with the gradients at K `nodes` of a path that the dummies themselves walk.

    $1 - \\cos(w_0 - w_T, \\frac{1}{K} \\sum_k g(\\hat w_k; z) + r)$, nodes and $r$ held: now and
    then the client's training is simulated from the dummies, without a graph, and $r$ is what its
    mean move has over the gradients at the nodes. So the value is the simulated update's, and only
    the slope is that of K gradients. On the segment, where the nodes lie until a walk explains more
    than it, $r = 0$ and TV weighs `straight`, as for SME: what matches worse needs more of a prior.

    With `protocol`, the walk takes the client's steps in batches of its own; without, `moves` steps
    with all dummies at once, of such a length that it gets as far along the update as $w_T$.
    """
    how = protocol or Protocol(moves, len(labels))
    order = own_batches(labels, how, seed)
    if nodes > len(order):
        raise InputError(f"a walk of {len(order)} steps has no {nodes} nodes; ask for fewer.")
    walker = Walker(model, update, labels, order, how, protocol and protocol.lr, nodes)

    def surrogate(images: Tensor, held: Aux) -> Params:
        return P.add(walker.slope(images, held), part(held, "rest"))

    matched = match_direction(model, update, tv, surrogate)

    def loss(images: Tensor, held: Aux, step: Tensor) -> tuple[Tensor, Terms]:
        value, terms = matched(images, held, step)
        return value + (1 - held["walked"]) * (straight - tv) * terms["tv"], terms

    return Renewed(loss, walker.renew)


def simulate(
    model: Network,
    before: Params,
    images: Tensor,
    labels: Tensor,
    order: list[list[Tensor]],
    protocol: Protocol,
    *,
    checkpoint: bool = True,
) -> Params:
    """Train as the client would, on dummies `[E, N, C, H, W]`: the sum of all moves.

    That is $(w_0 - w_T) / \\eta$, for plain SGD the sum of the gradients. Epoch e uses its own
    dummies, in its own batches `order[e]`. With `checkpoint`, only every $\\sqrt{T}$-th state is
    kept and the steps between are run again on the way back.
    """
    dummies, known = [], []
    for epoch_images, epoch in zip(images.unbind(0), order, strict=True):
        # One gather per epoch: its backward is one scatter, and that of split is one concatenation.
        sizes = [len(batch) for batch in epoch]
        dummies += epoch_images[torch.cat(epoch)].split(sizes)
        known += labels[torch.cat(epoch)].split(sizes)
    moving, steps = model.trained(before), len(dummies)
    names, kinds = list(moving), list(blank(protocol, moving))

    def unpack(state: tuple[Tensor, ...]) -> list[Params]:
        """The total so far, and the optimiser's memory."""
        groups = (state[i : i + len(names)] for i in range(0, len(state), len(names)))
        return [dict(zip(names, group, strict=True)) for group in groups]

    def advance(start: int, *state: Tensor) -> tuple[Tensor, ...]:
        """From the sum of the moves so far to that after the given batches."""
        packed = (1 + len(kinds)) * len(names)
        (total, *kept), given = unpack(state[:packed]), state[packed:]
        memory = dict(zip(kinds, kept, strict=True))
        for t, z in enumerate(given, start):
            weights = P.add(moving, total, -protocol.lr)
            slope = gradient(model, {**before, **weights}, z, known[t])
            d, memory = move(protocol, weights, slope, memory, t, steps)
            total = P.add(total, d)
        return tuple(v for part in (total, *memory.values()) for v in part.values())

    state = tuple(torch.zeros_like(v) for _ in range(1 + len(kinds)) for v in moving.values())
    stride = math.isqrt(steps - 1) + 1 if checkpoint else steps
    for start in range(0, steps, stride):
        inputs = (*state, *dummies[start : start + stride])
        run = partial(advance, start)
        state = recomputed(run, *inputs) if stride < steps else run(*inputs)
    return unpack(state)[0]


def layer_weights(weights: Params) -> dict[str, float]:
    """$e^{-l}$ for the l-th layer, weight and bias alike: the early layers count most."""
    layers = list(dict.fromkeys(name.rpartition(".")[0] for name in weights))
    return {name: math.exp(-layers.index(name.rpartition(".")[0])) for name in weights}


def dlfa(
    model: Network,
    update: Update,
    labels: Tensor,
    protocol: Protocol,
    *,
    tv: float = 0.0,
    clip: float = 0.0,
    order: float = 0.0,
    summary: Summary = mean_image,
    factor: tuple[float, float] = (1.0, 1.0),
    until: int = 200,
    omega: dict[str, float] | None = None,
    checkpoint: bool = True,
    seed: int = 0,
) -> Objective:
    """Match the sum of all T moves of a simulated training run.  [Dimitrov22]

    `images` are `[E, N, C, H, W]`. `omega` weighs the parameters (1 each by default), `order` the
    order-invariant prior; the matching term's factor goes from `factor[0]` to `factor[1]`,
    geometrically, in `until` steps. Since that moves the goal, the term `score` is the loss under
    the last factor, by which steps can be compared. `checkpoint` keeps memory at the order of
    $\\sqrt{T}$ states, for one more forward pass.
    """
    target = model.trained(P.scale(P.sub(update.before, update.after), 1 / protocol.lr))
    steps, (first, last) = protocol.steps(len(labels)), factor
    drawn, per_epoch = own_batches(labels, protocol, seed), steps // protocol.epochs
    order_of = [drawn[e * per_epoch : (e + 1) * per_epoch] for e in range(protocol.epochs)]

    def loss(images: Tensor, aux: Aux, step: Tensor) -> tuple[Tensor, Terms]:
        dummy = simulate(
            model, update.before, images, labels, order_of, protocol, checkpoint=checkpoint
        )
        distance = sum(
            (omega[k] if omega else 1.0) * (target[k] - dummy[k]).square().sum() for k in target
        )
        pixels = model.denormalise(images)
        outside = (pixels - pixels.clamp(0, 1)).square().sum(dim=(-3, -2, -1)).mean()
        summaries = by_epoch(summary, images) if checkpoint else summary(images)
        smooth, apart = wrapped_variation(images), order_gap(summaries)
        priors = tv * smooth + clip * outside + order * apart
        now = last if first == last else first * (last / first) ** (step / until).clamp(max=1)
        similarity = 1 - P.cosine(target, {k: v.detach() for k, v in dummy.items()})
        terms = {"distance": distance, "similarity": similarity, "tv": smooth, "clip": outside}
        score = (last / steps * distance + priors).detach()
        return now / steps * distance + priors, {**terms, "order": apart, "score": score}

    return loss
