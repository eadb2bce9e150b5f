"""The heart: one function per attack, and it is the only thing in which the attacks differ.

Each takes what the adversary sees and returns `loss(images, aux, step)`. `images` are normalised
dummies, `aux` the attack's other unknowns (SME's alpha, DLG's label logits), `step` the iteration
number. The loss comes back with its terms by name; "similarity" is always the paper's $L_{sim}$.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.func import vjp
from torch.nn import functional as F

from smelib import params as P
from smelib import seeds
from smelib.federated import batches, blank, gradient, move
from smelib.models import Network
from smelib.types import Params, Protocol, Update

Aux: TypeAlias = dict[str, Tensor]
Terms: TypeAlias = dict[str, Tensor]
Objective: TypeAlias = Callable[[Tensor, Aux, Tensor], tuple[Tensor, Terms]]


def total_variation(z: Tensor) -> Tensor:
    """Mean absolute difference of neighbouring pixels, horizontal and vertical.  [Geiping20]"""
    gaps = z[..., 1:] - z[..., :-1], z[..., 1:, :] - z[..., :-1, :]
    return sum(gap.abs().mean() for gap in gaps if gap.numel()) / 2


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


def match_direction(
    model: Network, update: Update, labels: Tensor, tv: float, at: Callable[[Aux], Params]
) -> Objective:
    """Match the update's direction with the dummies' gradient at the weights `at(aux)`."""
    direction = model.trained(P.sub(update.before, update.after))

    def loss(images: Tensor, aux: Aux, step: Tensor) -> tuple[Tensor, Terms]:
        dummy = gradient(model, at(aux), images, labels)
        similarity, smooth = 1 - P.cosine(direction, dummy), total_variation(images)
        return similarity + tv * smooth, {"similarity": similarity, "tv": smooth}

    return loss


def ig(model: Network, update: Update, labels: Tensor, *, tv: float) -> Objective:
    """Match the update's direction with the dummies' gradient at $w_0$.  [Geiping20, Eq. 4]"""
    return match_direction(model, update, labels, tv, lambda aux: update.before)


def sme(model: Network, update: Update, labels: Tensor, *, tv: float) -> Objective:
    """Match it at the learned point `aux["alpha"]` of the segment from $w_0$ to $w_T$.

    [Zhu23, Eq. 8]; alpha = 0 is IG. Automatic differentiation gives alpha's gradient as the inner
    product $\\langle \\partial L / \\partial w, w_T - w_0 \\rangle$.
    """
    start = model.trained(update.before)
    ahead = P.sub(model.trained(update.after), start)  # once, and not at every step

    def surrogate(aux: Aux) -> Params:
        return {**update.before, **P.add(start, ahead, aux["alpha"])}

    return match_direction(model, update, labels, tv, surrogate)


class _Recomputed(torch.autograd.Function):
    """A function whose inner graph is not kept: backward runs it again.  [Chen16]"""

    generate_vmap_rule = True

    @staticmethod
    def forward(run: Callable[..., tuple[Tensor, ...]], *inputs: Tensor) -> tuple[Tensor, ...]:
        return run(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
        ctx.run = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple:
        _, pull_back = vjp(ctx.run, *ctx.saved_tensors)
        return None, *pull_back(slopes)


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
        state = _Recomputed.apply(run, *inputs) if stride < steps else run(*inputs)
    return unpack(state)[0]


Summary: TypeAlias = Callable[[Tensor], Tensor]


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


def _by_epoch(summary: Summary, images: Tensor) -> Tensor:
    """The summaries one epoch at a time, each run again on the way back: none keeps its graph."""
    return torch.cat(
        [_Recomputed.apply(lambda x: (summary(x),), epoch)[0] for epoch in images.split(1)]
    )


def order_gap(summaries: Tensor) -> Tensor:
    """Mean squared difference of the epochs' summaries, over all $E^2$ pairs as the authors do.

    An epoch's pair with itself counts, so that a mean over distinct pairs is E/(E - 1) times this.
    """
    # Over all pairs, the squared differences sum to 2E times those from the mean.
    apart = (summaries - summaries.mean(dim=0)).square().flatten(1).mean(dim=1)
    return 2 * apart.mean()


def wrapped_variation(z: Tensor) -> Tensor:
    """Squared differences of neighbours, wrapping around, summed over an image.  [Dimitrov22]"""
    across = (z - z.roll(1, dims=-1)).square()
    down = (z - z.roll(1, dims=-2)).square()
    return (across + down).sum(dim=(-3, -2, -1)).mean()


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
    drawn = list(batches(len(labels), protocol, seeds.generator(seed, "simulated batches")))
    per_epoch = steps // protocol.epochs
    order_of = [
        [batch.to(labels.device) for batch in drawn[e * per_epoch : (e + 1) * per_epoch]]
        for e in range(protocol.epochs)
    ]

    def loss(images: Tensor, aux: Aux, step: Tensor) -> tuple[Tensor, Terms]:
        dummy = simulate(
            model, update.before, images, labels, order_of, protocol, checkpoint=checkpoint
        )
        distance = sum(
            (omega[k] if omega else 1.0) * (target[k] - dummy[k]).square().sum() for k in target
        )
        pixels = model.denormalise(images)
        outside = (pixels - pixels.clamp(0, 1)).square().sum(dim=(-3, -2, -1)).mean()
        summaries = _by_epoch(summary, images) if checkpoint else summary(images)
        smooth, apart = wrapped_variation(images), order_gap(summaries)
        priors = tv * smooth + clip * outside + order * apart
        now = last if first == last else first * (last / first) ** (step / until).clamp(max=1)
        similarity = 1 - P.cosine(target, {k: v.detach() for k, v in dummy.items()})
        terms = {"distance": distance, "similarity": similarity, "tv": smooth, "clip": outside}
        score = (last / steps * distance + priors).detach()
        return now / steps * distance + priors, {**terms, "order": apart, "score": score}

    return loss
