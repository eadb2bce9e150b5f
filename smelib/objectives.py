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
from smelib.federated import batches, gradient
from smelib.models import Network
from smelib.types import Params, Protocol, Update

Terms: TypeAlias = dict[str, Tensor]
Objective: TypeAlias = Callable[[Tensor, dict[str, Tensor], Tensor], tuple[Tensor, Terms]]


def total_variation(z: Tensor) -> Tensor:
    """Mean absolute difference of neighbouring pixels, horizontal and vertical.  [Geiping20]"""
    across = (z[..., 1:] - z[..., :-1]).abs().mean()
    down = (z[..., 1:, :] - z[..., :-1, :]).abs().mean()
    return (across + down) / 2


def dlg(network: Network, update: Update, labels: Tensor | None, *, lr: float) -> Objective:
    """Match the gradient itself, in Euclidean distance, at $w_0$.  [Zhu19, Eq. 5]

    With `labels=None` the labels are unknowns too: `aux["logits"]`, `[N, classes]`.
    """
    target = P.scale(P.sub(update.before, update.after), 1 / lr)

    def loss(images: Tensor, aux: dict[str, Tensor], step: Tensor) -> tuple[Tensor, Terms]:
        guess = aux["logits"].softmax(dim=-1) if labels is None else labels
        dummy = gradient(network, update.before, images, guess)
        gap = P.sub(dummy, target)
        distance = P.dot(gap, gap)
        return distance, {"distance": distance, "similarity": 1 - P.cosine(target, dummy)}

    return loss


def ig(network: Network, update: Update, labels: Tensor, *, tv: float) -> Objective:
    """Match the update's direction with the dummies' gradient at $w_0$.  [Geiping20, Eq. 4]"""
    direction = P.sub(update.before, update.after)

    def loss(images: Tensor, aux: dict[str, Tensor], step: Tensor) -> tuple[Tensor, Terms]:
        dummy = gradient(network, update.before, images, labels)
        similarity, smooth = 1 - P.cosine(direction, dummy), total_variation(images)
        return similarity + tv * smooth, {"similarity": similarity, "tv": smooth}

    return loss


def sme(network: Network, update: Update, labels: Tensor, *, tv: float) -> Objective:
    """Match it at the learned point `aux["alpha"]` of the segment from $w_0$ to $w_T$.

    [Zhu23, Eq. 8]; alpha = 0 is IG. Automatic differentiation gives alpha's gradient as the inner
    product $\\langle \\partial L / \\partial w, w_T - w_0 \\rangle$.
    """
    direction = P.sub(update.before, update.after)
    ahead = P.sub(update.after, update.before)

    def loss(images: Tensor, aux: dict[str, Tensor], step: Tensor) -> tuple[Tensor, Terms]:
        surrogate = P.add(update.before, ahead, aux["alpha"])
        dummy = gradient(network, surrogate, images, labels)
        similarity, smooth = 1 - P.cosine(direction, dummy), total_variation(images)
        return similarity + tv * smooth, {"similarity": similarity, "tv": smooth}

    return loss


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
    network: Network,
    before: Params,
    images: Tensor,
    labels: Tensor,
    order: list[list[Tensor]],
    lr: float,
    *,
    checkpoint: bool = True,
) -> Params:
    """Train as the client would, on dummies `[E, N, C, H, W]`, and add up the gradients.

    Epoch e uses its own dummies, in its own batches `order[e]`. With `checkpoint`, only every
    $\\sqrt{T}$-th state is kept and the steps between are run again on the way back.
    """
    names = list(before)
    dummies, known = [], []
    for epoch_images, epoch in zip(images.unbind(0), order, strict=True):
        # One gather per epoch: its backward is one scatter, and that of split is one concatenation.
        sizes = [len(batch) for batch in epoch]
        dummies += epoch_images[torch.cat(epoch)].split(sizes)
        known += labels[torch.cat(epoch)].split(sizes)

    def advance(start: int, *state: Tensor) -> tuple[Tensor, ...]:
        """From the sum of the gradients so far to that after the given batches."""
        total, given = dict(zip(names, state[: len(names)], strict=True)), state[len(names) :]
        for z, y in zip(given, known[start:], strict=False):
            step = gradient(network, P.add(before, total, -lr), z, y)
            total = P.add(total, step)
        return tuple(total.values())

    total = tuple(torch.zeros_like(v) for v in before.values())
    stride = math.isqrt(len(dummies) - 1) + 1 if checkpoint else len(dummies)
    for start in range(0, len(dummies), stride):
        inputs = (*total, *dummies[start : start + stride])
        run = partial(advance, start)
        total = _Recomputed.apply(run, *inputs) if stride < len(dummies) else run(*inputs)
    return dict(zip(names, total, strict=True))


Summary: TypeAlias = Callable[[Tensor], Tensor]


def mean_image(images: Tensor) -> Tensor:
    """An order-free summary of every epoch of `[E, N, C, H, W]`: its mean image.  [Dimitrov22]"""
    return images.mean(dim=1)


def max_features(like: Tensor, channels: int, *, seed: int, filters: int = 96) -> Summary:
    """An order-free summary: each pixel's largest response to fixed random 3×3 filters."""
    generator = torch.Generator().manual_seed(seed)
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
    """Mean squared difference of the epochs' summaries, over all pairs of epochs."""
    if len(summaries) < 2:
        return summaries.new_zeros(())
    # Over pairs, the squared differences sum to E times those from the mean.
    spread = (summaries - summaries.mean(dim=0)).square().flatten(1).mean(dim=1).sum()
    return 2 / (len(summaries) - 1) * spread


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
    network: Network,
    update: Update,
    labels: Tensor,
    protocol: Protocol,
    *,
    tv: float = 0.0,
    clip: float = 0.0,
    order: float = 0.0,
    summary: Summary = mean_image,
    factor: Callable[[Tensor], Tensor | float] = lambda step: 1.0,
    omega: dict[str, float] | None = None,
    checkpoint: bool = True,
    seed: int = 0,
) -> Objective:
    """Match the sum of all T gradients of a simulated training run.  [Dimitrov22]

    `images` are `[E, N, C, H, W]`. `omega` weighs the parameters (1 each by default), `factor` is
    the matching term's schedule, and `order` the weight of the order-invariant prior. `checkpoint`
    keeps memory at the order of $\\sqrt{T}$ states, for one more forward pass.
    """
    target = P.scale(P.sub(update.before, update.after), 1 / protocol.lr)
    steps = protocol.steps(len(labels))
    drawn = list(batches(len(labels), protocol, torch.Generator().manual_seed(seed)))
    per_epoch = steps // protocol.epochs
    order_of = [
        [batch.to(labels.device) for batch in drawn[e * per_epoch : (e + 1) * per_epoch]]
        for e in range(protocol.epochs)
    ]

    def loss(images: Tensor, aux: dict[str, Tensor], step: Tensor) -> tuple[Tensor, Terms]:
        dummy = simulate(
            network,
            update.before,
            images,
            labels,
            order_of,
            protocol.lr,
            checkpoint=checkpoint,
        )
        distance = sum(
            (omega[k] if omega else 1.0) * (target[k] - dummy[k]).square().sum() for k in target
        )
        pixels = network.denormalise(images)
        outside = (pixels - pixels.clamp(0, 1)).square().sum(dim=(-3, -2, -1)).mean()
        summaries = _by_epoch(summary, images) if checkpoint else summary(images)
        smooth, apart = wrapped_variation(images), order_gap(summaries)
        total = factor(step) / steps * distance + tv * smooth + clip * outside + order * apart
        similarity = 1 - P.cosine(target, {k: v.detach() for k, v in dummy.items()})
        terms = {"distance": distance, "similarity": similarity, "tv": smooth, "clip": outside}
        return total, {**terms, "order": apart}

    return loss
