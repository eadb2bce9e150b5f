"""The client's path, walked from dummies: the weights in between, which the server never sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from smelib import params as P
from smelib.federated import blank, gradient, move
from smelib.models import Network
from smelib.types import Params, Protocol, Update

Held: TypeAlias = dict[str, Tensor]
"""What remains of a walk, by name: "node 0 conv.weight", "rest conv.weight", the "rate"."""


def part(held: Held, name: str) -> Params:
    """One of the sets of weights that are held."""
    start = f"{name} "
    return {k.removeprefix(start): v for k, v in held.items() if k.startswith(start)}


def walk(
    model: Network,
    before: Params,
    z: Tensor,
    labels: Tensor,
    order: list,
    protocol: Protocol,
    *,
    rate: Tensor | float,
    keep: list[int],
) -> tuple[list[Params], Params, Params]:
    """Train as the client would, on the same dummies in every epoch, and without a graph.

    One step $w_{t+1} = w_t - \\eta d_t$ per batch in `order`, with $\\eta$ = `rate`. Returns the
    weights before the steps in `keep`, so that memory does not grow with T; the mean move; and how
    much longer, weight by weight, the moves are than the gradients: 1 for plain SGD.
    """
    start = weights = model.trained(before)
    memory, nodes = blank(protocol, start), []
    moved, sloped = ({k: torch.zeros_like(v) for k, v in start.items()} for _ in range(2))
    for t, batch in enumerate(order):
        nodes += [weights] * keep.count(t)
        slope = gradient(model, {**before, **weights}, z[batch], labels[batch])
        d, memory = move(protocol, weights, slope, memory, t, len(order))
        weights = P.add(weights, d, -rate)
        moved = {k: torch.addcmul(v, d[k], d[k]) for k, v in moved.items()}
        sloped = {k: torch.addcmul(v, slope[k], slope[k]) for k, v in sloped.items()}
    mean = P.scale(P.sub(start, weights), 1 / (rate * len(order)))
    # A weight that has no gradient has no stretch to measure: 0/0.
    stretch = {k: (v / sloped[k]).sqrt().nan_to_num(1.0, 1.0) for k, v in moved.items()}
    return nodes, mean, stretch


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
            next(iter(start.values())).new_zeros(()),
        )

    def slope(self, images: Tensor, held: Held) -> Params:
        """The dummies' mean gradient at the nodes, each weight's as the moves stretch it."""
        found = []
        for k in range(self.nodes):
            node = P.add(part(held, f"node {k}"), part(held, "ahead"), held["alpha"])
            weights = {**self.update.before, **node}
            found.append(gradient(self.model, weights, images, self.labels))
        mean = found[0] if self.nodes == 1 else P.mean(found, [1] * self.nodes)
        return {k: v * held[f"stretch {k}"] for k, v in mean.items()}

    @torch.no_grad()
    def renew(self, images: Tensor, held: Held) -> Held:
        """What is held after a walk from these dummies: the segment, where that explains more."""
        segment = self.segment()
        if "rate" not in held:
            return segment
        steps, target, far = len(self.order), self.target, P.dot(self.target, self.target)
        rate = self._rate(images, held["rate"])
        nodes, mean, stretch = walk(
            *(self.model, self.update.before, images, self.labels, self.order, self.protocol),
            rate=rate,
            keep=[int((k + 0.5) * steps / self.nodes) for k in range(self.nodes)],
        )
        next_rate = rate * (far / (rate * steps * P.dot(mean, target))).clamp(0.3, 3)
        kept = {"ahead": P.scale(target, 0.0), "rest": mean, "stretch": stretch}
        walked = self._held(nodes, kept, next_rate)
        rest = P.sub(mean, self.slope(images, {**walked, "alpha": held["alpha"]}))
        walked |= {f"rest {k}": v for k, v in rest.items()}
        straight = self.slope(images, {**segment, "alpha": held["alpha"]})
        closer = P.cosine(target, mean) > P.cosine(target, straight)  # not so if it is NaN
        return {k: torch.where(closer, v, segment[k]) for k, v in walked.items()}

    def _rate(self, images: Tensor, last: Tensor) -> Tensor:
        """The protocol's; or the last walk's; or one as if all gradients were the first."""
        if self.rate is not None:
            return torch.full_like(last, self.rate)
        target, slope = self.target, gradient(self.model, self.update.before, images, self.labels)
        along = torch.maximum(P.dot(slope, target), 0.1 * P.norm(slope) * P.norm(target))
        return torch.where(last > 0, last, P.dot(target, target) / (along * len(self.order)))

    def _held(self, nodes: list[Params], parts: dict[str, Params], rate: Tensor) -> Held:
        parts = {**{f"node {k}": w for k, w in enumerate(nodes)}, **parts}
        flat = {f"{name} {k}": v for name, w in parts.items() for k, v in w.items()}
        return {**flat, "rate": rate}
