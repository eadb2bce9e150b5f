"""What an update says of how it was made, before any picture is looked for.

Plain SGD on cross-entropy leaves the last layer in balance: softmax minus one-hot sums to zero, so
the rows of its weight's update do too, exactly. Whatever else happened to the update shows there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from smelib import params as P
from smelib.errors import InputError
from smelib.models import Network
from smelib.types import Update

BALANCED = 0.001  # the imbalance of the last layer's update, as a share of its length
ALIKE = 0.75  # the median entry over the root mean square: heavy tails below, one size above
RESEMBLES = 0.5  # the cosine of the weights before and after
CELLS, COARSE = 256, 0.95  # the share of entries in so few values: more are a grid's
BLURRED = 1e-4  # rounding beyond which float32 itself looks like a grid
ROUND = 1e-5  # how near to a round number a norm must lie
STATISTICS = ("running_mean", "running_var")


@dataclass(frozen=True)
class Traces:
    """Measured on the two sets of weights alone.

    `resemblance` is the cosine of the weights before and after. `imbalance` is the length of the
    sum of the rows of the last layer's update over that update's own: 0 for plain SGD on
    cross-entropy, 1 for noise; None where there is no such layer. `decay` is the part of it that
    weight decay explains, and not in it. `rounding` is what the weights' precision alone can make
    of it. `alike` is the median entry over the root mean square, in the
    typical layer. `coarse` is the share of the entries that moved which share the 256 most common
    values, `still` the share that did not move. `norm` is the update's length.
    """

    resemblance: float
    imbalance: float | None
    decay: float
    rounding: float
    alike: float
    coarse: float
    still: float
    norm: float
    statistics_moved: bool


def traces(model: Network, update: Update) -> Traces:
    """The traces of an update that the network owns."""
    before, after = (
        {k: v.double() for k, v in model.trained(w).items()} for w in (update.before, update.after)
    )
    moved = P.sub(after, before)
    layers = [v.flatten() for v in moved.values() if v.numel() >= 100 and bool(v.any())]
    layers = layers or [torch.cat([v.flatten() for v in moved.values()])]
    widest = max(moved, key=lambda k: moved[k].numel())
    imbalance, decay, rounding = _imbalance(model, update, before, moved)
    return Traces(
        resemblance=float(P.cosine(before, after)),
        imbalance=imbalance,
        decay=decay,
        rounding=rounding,
        alike=float(torch.tensor([_alike(v) for v in layers]).median()),
        coarse=_coarse(moved[widest], update.after[widest]),
        still=sum(float((v == 0).sum()) for v in layers) / sum(map(len, layers)),
        norm=math.sqrt(float(P.dot(moved, moved))),
        statistics_moved=statistics_moved(update),
    )


def statistics_moved(update: Update) -> bool:
    """Whether batch norm's running statistics changed, as they do in train mode."""
    kept = [k for k in update.before if k.rpartition(".")[2] in STATISTICS]
    return any(not torch.equal(update.before[k], update.after[k]) for k in kept)


def _alike(values: Tensor) -> float:
    size = values[values != 0].abs()
    return float(size.median() / size.square().mean().sqrt())


def _coarse(values: Tensor, weights: Tensor) -> float:
    """The share of entries in the most common values, told apart as far as precision allows."""
    values = values[values != 0]
    step = 4 * torch.finfo(weights.dtype).eps * float(weights.abs().max())
    counts = (values / step).round().unique(return_counts=True)[1].sort(descending=True).values
    fullest = counts[: max(1, min(CELLS, len(values) // 8))]
    return float(fullest.sum()) / max(1, len(values))


def _imbalance(
    model: Network, update: Update, before: P.Params, moved: P.Params
) -> tuple[float | None, float, float]:
    """The imbalance, weight decay's part of it, and the precision's."""
    try:
        weight, _ = model.head()
    except InputError:
        return None, 0.0, 0.0
    length = moved[weight].norm()
    if not bool(length):
        return None, 0.0, 0.0
    sums, decayed = moved[weight].sum(dim=0), before[weight].sum(dim=0)  # decay shrinks the weights
    share = min(0.0, float(sums @ decayed / decayed.square().sum().clamp(min=1e-30)))
    precision = torch.finfo(update.after[weight].dtype).eps
    return (
        float((sums - share * decayed).norm() / length),
        float(abs(share) * decayed.norm() / length),
        float(0.3 * precision * before[weight].norm() / length),
    )


def is_round(norm: float) -> bool:
    """Whether a length is a round number, as a clipping bound would be: two digits at most."""
    scaled = norm / 10.0 ** math.floor(math.log10(norm)) * 10 if norm > 0 else 0.5
    return abs(scaled - round(scaled)) < ROUND * scaled


def warnings(found: Traces) -> list[str]:
    """What in the traces speaks against the attack's assumptions; each a sentence."""
    said = []
    if found.resemblance < RESEMBLES:
        said.append(
            f"The two sets of weights hardly resemble each other (cosine {found.resemblance:.2f}): "
            "are they from one round of one client?"
        )
    limit = max(BALANCED, 5 * found.rounding)
    if found.coarse > COARSE and found.rounding < BLURRED:
        said.append(
            f"{found.coarse:.0%} of the update's entries share a few values: it was quantised, or "
            "reduced to signs."
        )
    elif found.imbalance is not None and found.imbalance > limit:
        what = "It was noised or compressed, or trained with another optimiser or loss"
        if found.still > 0.5:
            what = f"{found.still:.0%} of its entries did not move, as after sparsification"
        elif found.alike > ALIKE:
            what = "Its entries are of one size, as Adam makes them"
        said.append(
            "This is no plain SGD on cross-entropy: the rows of the last layer's update sum to "
            f"{found.imbalance:.1%} of its length, and should cancel. {what}."
        )
    elif found.imbalance is None and found.alike > ALIKE:
        said.append("The update's entries are of one size, as Adam makes them and SGD does not.")
    elif found.decay > limit:
        said.append("The client trained with weight decay, which the attack leaves out.")
    if is_round(found.norm):
        said.append(f"The update's length is {found.norm:.6g}, a round number: was it clipped?")
    if found.rounding > 0.01:
        said.append(
            f"The weights' precision blurs the update by about {found.rounding:.0%}; ask for them "
            "in float32."
        )
    return said
