"""Defences on the update itself: shorter, noisier, sparser or coarser than training gave it.

Each is a function of the move $\\Delta = w_T - w_0$. What one leaves as it was is sent bit for bit,
so that `clip(inf)`, `noise(0)`, `top_k(1)`, `random_k(1)` and `quantise(32)` change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from smelib import params as P
from smelib.defences.seam import Defence
from smelib.errors import InputError, finite, whole
from smelib.types import Params, Update


def clip(norm: float) -> Defence:
    """Shorten the update to a length of at most `norm`, over all layers.  [Abadi16, McMahan18]

    $\\Delta \\min(1, C / \\lVert\\Delta\\rVert)$; `math.inf` clips nothing.
    """
    _positive(norm, "the norm to clip to")

    def shorter(move: Params, generator: torch.Generator) -> Params:
        length = float(P.norm({k: v.double() for k, v in move.items()}))
        return P.scale(move, norm / length) if length > norm else move

    return _on_the_move(shorter)


def noise(sigma: float) -> Defence:
    """Add $N(0, \\sigma^2)$ to every weight. After `clip(C)` this is differential privacy.

    `client_epsilon(C, sigma, delta=...)` says how much of it.
    """
    finite(sigma, "the noise's standard deviation")
    if sigma < 0:
        raise InputError(f"noise of standard deviation {sigma!r}: it cannot be negative.")

    def noisy(move: Params, generator: torch.Generator) -> Params:
        return {
            k: v + sigma * torch.randn(v.shape, generator=generator, dtype=v.dtype).to(v.device)
            for k, v in move.items()
        }

    return _on_the_move(noisy)


def top_k(share: float) -> Defence:
    """Send only the `share` of the weights that moved most; the others stay at $w_0$.  [Lin18]"""
    _share(share)

    def largest(move: Params, generator: torch.Generator) -> Params:
        every = _flat(move)
        kept = torch.zeros(len(every), dtype=torch.bool, device=every.device)
        kept[every.abs().topk(_count(share, len(every))).indices] = True
        return _like(move, torch.where(kept, every, 0.0))

    return _on_the_move(largest)


def random_k(share: float) -> Defence:
    """Send only a random `share` of the weights, each so much longer that the mean is the move's.

    [Konecny16]; which weights were drawn shows in the update, as for `top_k`.
    """
    _share(share)

    def drawn(move: Params, generator: torch.Generator) -> Params:
        every = _flat(move)
        count = _count(share, len(every))
        kept = torch.zeros(len(every), dtype=torch.bool)
        kept[torch.randperm(len(every), generator=generator)[:count]] = True
        longer = every * (len(every) / count)
        return _like(move, torch.where(kept.to(every.device), longer, 0.0))

    return _on_the_move(drawn)


def quantise(bits: int) -> Defence:
    """Round every weight's move at random to one of $2^b$ values, so that its mean is right.

    The values lie evenly between the layer's $\\pm \\max|\\Delta|$; the nearer of two neighbours
    is the likelier [Alistarh17, Suresh17]. Floats have 32 bits: so many or more change nothing.
    """
    bits = whole(bits, "the number of bits")
    if bits >= 32:
        return _on_the_move(lambda move, generator: move)
    steps = 2**bits - 1

    def coarse(move: Params, generator: torch.Generator) -> Params:
        found = {}
        for k, v in move.items():
            exact, largest = v.double(), float(v.abs().max()) if v.numel() else 0.0
            cell = 2 * largest / steps
            place = (exact + largest) / cell if cell > 0 else torch.zeros_like(exact)
            chance = torch.rand(v.shape, generator=generator, dtype=torch.float64).to(v.device)
            above = place.floor() + (chance < place - place.floor())
            found[k] = (above.clamp(max=steps) * cell - largest).to(v)
        return found

    return _on_the_move(coarse)


def sign() -> Defence:
    """Send only where every weight went, up or down, and each layer's mean distance.  [Bernstein18]

    A weight that did not move stays: its sign is 0.
    """

    def ways(move: Params, generator: torch.Generator) -> Params:
        return {k: v.sign() * v.abs().mean() if v.numel() else v for k, v in move.items()}

    return _on_the_move(ways)


def _on_the_move(change: Callable[[Params, torch.Generator], Params]) -> Defence:
    """A defence that changes the move of the floating-point weights; counters are sent as is."""

    def defend(update: Update, generator: torch.Generator) -> Update:
        old, new = ({k: v.detach() for k, v in w.items()} for w in (update.before, update.after))
        wide = {k: v.to(torch.promote_types(v.dtype, new[k].dtype)) for k, v in old.items()}
        move = {k: new[k].to(v) - v for k, v in wide.items() if v.is_floating_point()}
        sent = change(move, generator) if move else {}
        after = {
            # Not before + move where nothing changed: rounding would move the last bit.
            k: torch.where(v == move[k], new[k].to(v), wide[k] + v).to(new[k])
            for k, v in sent.items()
        }
        return Update(update.before, {k: after.get(k, v) for k, v in new.items()}, update.samples)

    return defend


def _flat(move: Params) -> Tensor:
    return torch.cat([v.flatten() for v in move.values()])


def _like(move: Params, every: Tensor) -> Params:
    parts = every.split([v.numel() for v in move.values()])
    return {k: part.view(v.shape).to(v) for (k, v), part in zip(move.items(), parts, strict=True)}


def _count(share: float, weights: int) -> int:
    """At least one, and all of them for a share of 1 whatever the rounding."""
    return min(weights, max(1, math.ceil(share * weights)))


def _share(share: float) -> None:
    finite(share, "the share of weights to send")
    if not 0 < share <= 1:
        raise InputError(f"a share of {share!r} of the weights: give more than 0 and at most 1.")


def _positive(value: float, what: str) -> None:
    if value != math.inf:
        finite(value, what)
    if not value > 0:
        raise InputError(f"{what} is {value!r}; it must be positive.")
