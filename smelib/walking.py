"""The client's path, walked from dummies: the weights in between, which the server never sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from smelib import params as P
from smelib.federated import blank, gradient, move
from smelib.models import Network
from smelib.types import Params, Protocol, Update

Held: TypeAlias = dict[str, Tensor]
"""What remains of a walk, by name: "node 0 conv.weight", "rest conv.weight", its "rate", and
whether it was "walked" (1) or is the segment (0)."""


def part(held: Held, name: str) -> Params:
    """One of the sets of weights that are held."""
    start = f"{name} "
    return {k.removeprefix(start): v for k, v in held.items() if k.startswith(start)}


@dataclass(frozen=True)
class Walk:
    """What remains of a walk, whatever its length: some nodes, the gradients there, the mean move.

    `stretch` is how much longer, weight by weight, its moves were than the gradients: 1 for SGD.
    """

    nodes: list[Params]
    slopes: list[Params]
    mean: Params
    stretch: Params


def walk(
    model: Network,
    before: Params,
    z: Tensor,
    labels: Tensor,
    order: list[Tensor],
    protocol: Protocol,
    *,
    rate: Callable[[Params], Tensor],
    keep: list[int],
) -> Walk:
    """Train as the client would, on the same dummies in every epoch, and without a graph.

    One step $w_{t+1} = w_t - \\eta d_t$ per batch in `order`; `rate` makes $\\eta$ of the first
    gradient. Of the path the weights before the steps in `keep` remain.
    """
    start = weights = model.trained(before)
    memory, nodes, slopes, eta = blank(protocol, start), [], [], None
    moved, sloped = ({k: torch.zeros_like(v) for k, v in start.items()} for _ in range(2))
    plain = protocol == Protocol(protocol.epochs, protocol.batch_size, protocol.lr)
    for t, batch in enumerate(order):
        slope = gradient(model, {**before, **weights}, z[batch], labels[batch])
        eta = rate(slope) if eta is None else eta
        if t in keep:
            full = len(batch) == len(labels)
            nodes.append(weights)
            slopes.append(slope if full else gradient(model, {**before, **weights}, z, labels))
        d, memory = move(protocol, weights, slope, memory, t, len(order))
        weights = P.add(weights, d, -eta)
        if not plain:
            moved = {k: torch.addcmul(v, d[k], d[k]) for k, v in moved.items()}
            sloped = {k: torch.addcmul(v, slope[k], slope[k]) for k, v in sloped.items()}
    mean = P.scale(P.sub(start, weights), 1 / (eta * len(order)))
    # A weight without a gradient has no stretch to measure (0/0), and plain SGD has none.
    stretch = {k: (v / sloped[k]).sqrt().nan_to_num(1.0, 1.0) for k, v in moved.items()}
    return Walk(nodes, slopes, mean, stretch)


@dataclass(frozen=True)
class Walker:
    """Walks from dummies, and says what is held of the walk: K `nodes` and the rest of its moves.

    A step for each batch in `order`, at the protocol's rate; or, with `rate=None`, at one that is
    found: a walk should end as far along the update as $w_T$, and each walk corrects the next.
    """

    model: Network
    update: Update
    labels: Tensor
    order: list[Tensor]
    protocol: Protocol
    rate: float | None
    nodes: int
    seen: Callable[[Params], Params] = lambda gradient: gradient  # what a defence lets through

    @property
    def target(self) -> Params:
        """$w_0 - w_T$, of the weights that training moves."""
        return self.model.trained(P.sub(self.update.before, self.update.after))

    def segment(self) -> Held:
        """Without a walk: nodes about the point alpha of the segment, and one node is SME's."""
        start, target = self.model.trained(self.update.before), self.target
        about = [0.5 - (k + 0.5) / self.nodes for k in range(self.nodes)]
        ones = {k: torch.ones_like(v) for k, v in start.items()}
        return self._held(
            [P.add(start, target, far) for far in about],
            {"ahead": P.scale(target, -1.0), "rest": P.scale(ones, 0.0), "stretch": ones},
            walked=next(iter(start.values())).new_zeros(()),
        )

    def slope(self, images: Tensor, held: Held) -> Params:
        """The dummies' mean gradient at the nodes, each weight's as the moves stretch it."""
        found = []
        for k in range(self.nodes):
            node = P.add(part(held, f"node {k}"), part(held, "ahead"), held["alpha"])
            weights = {**self.update.before, **node}
            found.append(gradient(self.model, weights, images, self.labels))
        return _stretched(found, part(held, "stretch"))

    @torch.no_grad()
    def renew(self, images: Tensor, held: Held) -> Held:
        """What is held after a walk from these dummies: the segment, where that explains more."""
        segment = self.segment()
        if "rate" not in held:
            return segment
        steps, target = len(self.order), self.target
        far = P.dot(target, target)

        def rate(slope: Params) -> Tensor:
            """The protocol's; or the last walk's; or one as if all gradients were the first."""
            if self.rate is not None:
                return torch.full_like(far, self.rate)
            along = torch.maximum(P.dot(slope, target), 0.1 * P.norm(slope) * far.sqrt())
            return torch.where(held["rate"] > 0, held["rate"], far / (along * steps))

        keep = [int((k + 0.5) * steps / self.nodes) for k in range(self.nodes)]
        where = (self.model, self.update.before, images, self.labels, self.order, self.protocol)
        path = walk(*where, rate=rate, keep=keep)
        parts = {"ahead": P.scale(target, 0.0), "stretch": path.stretch}
        parts["rest"] = P.sub(path.mean, _stretched(path.slopes, path.stretch))
        walked = self._held(path.nodes, parts, walked=torch.ones_like(far))
        straight = self.slope(images, {**segment, "alpha": held["alpha"]})
        walked_seen, straight_seen = self.seen(path.mean), self.seen(straight)
        # Not so if it is NaN.
        closer = P.cosine(target, walked_seen) > P.cosine(target, straight_seen)
        found = {k: torch.where(closer, v, segment[k]) for k, v in walked.items()}
        # Held or not, the next walk goes as far along the update as the client went.
        longer = far / (steps * P.dot(path.mean, target))
        return {**found, "rate": longer.nan_to_num(0.0, 0.0).clamp(min=0.0)}

    def _held(self, nodes: list[Params], parts: dict[str, Params], *, walked: Tensor) -> Held:
        parts = {**{f"node {k}": w for k, w in enumerate(nodes)}, **parts}
        flat = {f"{name} {k}": v for name, w in parts.items() for k, v in w.items()}
        return {**flat, "rate": torch.zeros_like(walked), "walked": walked}


def _stretched(slopes: list[Params], stretch: Params) -> Params:
    mean = slopes[0] if len(slopes) == 1 else P.mean(slopes, [1] * len(slopes))
    return {k: v * stretch[k] for k, v in mean.items()}
