"""The nouns of the book: what a client sends, what it ran, and what an attack gives back."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from functools import reduce
from typing import TypeAlias

import torch
from torch import Tensor

from smelib.errors import InputError, check_fields, nearest, same_layout, whole

Params: TypeAlias = dict[str, Tensor]
"""Named weights, in the order in which the network uses them."""

Schedule: TypeAlias = Callable[[int, int], float]
"""The factor on a learning rate at step t of T, counted from 0."""


@dataclass(frozen=True)
class Update:
    """All the server sees of one client: the weights it sent, those it got back, and N.

    `before` is $w_0$, `after` is $w_T$, `samples` is the client's sample count $N$. `before` and
    `after` may hold buffers beside the weights, such as batch norm's running statistics.
    """

    before: Params
    after: Params
    samples: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", whole(self.samples, "the update's sample count"))
        same_layout(self.before, self.after, "before", "after")

    def check(self) -> None:
        """Refuse weights that no attack can use: integers, NaN, and an empty update."""
        for where, weights in (("before", self.before), ("after", self.after)):
            for name, value in weights.items():
                if not value.is_floating_point():
                    raise InputError(
                        f"the weights '{where}' hold {value.dtype} in {name!r}; an attack needs "
                        "floating-point weights: undo the quantisation first."
                    )
                if not bool(torch.isfinite(value).all()):
                    raise InputError(
                        f"the weights '{where}' hold NaN or infinite values in {name!r}; "
                        "the client's training diverged, or the file is damaged."
                    )
        if all(torch.equal(self.before[k], self.after[k].to(self.before[k])) for k in self.before):
            raise InputError(
                "the weights before and after are equal, so there is nothing to invert; "
                "check that the second file is the client's answer and not the server's model."
            )

    @property
    def dtype(self) -> torch.dtype:
        """The precision an attack works in: the widest of the weights', and at least float32."""
        kinds = (v.dtype for w in (self.before, self.after) for v in w.values())
        return reduce(torch.promote_types, kinds, torch.float32)

    def to(self, device: torch.device, dtype: torch.dtype | None = None) -> Update:
        """The same update on another device or in another precision.

        Filters are laid out channels-last, which convolutions on CPUs and GPUs prefer.
        """

        def moved(value: Tensor) -> Tensor:
            value = value.detach().to(device, dtype)
            return value.contiguous(memory_format=torch.channels_last) if value.ndim == 4 else value

        before, after = (
            {k: moved(v) for k, v in weights.items()} for weights in (self.before, self.after)
        )
        return Update(before, after, self.samples)


def constant(step: int, steps: int) -> float:
    """No schedule."""
    return 1.0


OPTIMISERS = ("sgd", "adam", "adamw")


@dataclass(frozen=True)
class Protocol:
    """How a client trains: `epochs` (E) passes over its data in batches of `batch_size` (B).

    Plain SGD unless you say otherwise; `optimiser` is "sgd", "adam" or "adamw", with PyTorch's
    defaults, and `schedule(t, T)` the factor on `lr` at step t.
    """

    epochs: int
    batch_size: int
    lr: float = 0.004
    momentum: float = 0.0
    weight_decay: float = 0.0
    optimiser: str = "sgd"
    schedule: Schedule = constant

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            object.__setattr__(self, name, whole(getattr(self, name), name))
        check_fields(self)
        if not (self.lr > 0 and math.isfinite(self.lr)):
            raise InputError(f"the learning rate is {self.lr!r}; it must be positive and finite.")
        if self.optimiser not in OPTIMISERS:
            raise nearest("optimiser", self.optimiser, OPTIMISERS)
        if not (0 <= self.momentum < 1 and 0 <= self.weight_decay < math.inf):
            raise InputError(
                f"momentum {self.momentum!r} and weight decay {self.weight_decay!r}: the first "
                "lies in [0, 1), the second is not negative."
            )
        if self.momentum and self.optimiser != "sgd":
            raise InputError(f"momentum= is SGD's; {self.optimiser} has moments of its own.")

    def steps(self, samples: int) -> int:
        """$T = E \\lceil N / B \\rceil$: how many gradients the update adds up."""
        return self.epochs * math.ceil(samples / self.batch_size)


class Stop(str, Enum):
    """Why an attack's loop ended: finished, stalled, interrupted or diverged."""

    FINISHED = "finished"
    STALLED = "stalled"
    INTERRUPTED = "interrupted"
    DIVERGED = "diverged"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Reconstruction:
    """What an attack gives back. `images` are in [0, 1], `[N, C, H, W]`, in the labels' order.

    `loss`, `similarity` (the paper's $L_{\\mathrm{sim}}$) and `alpha` are those of the returned
    state; `history` has every step's loss terms; `restart_losses` the final loss of every restart,
    of which the lowest was kept. `stopped` says why the loop ended, after `steps` steps.
    """

    images: Tensor
    labels: Tensor
    loss: float
    similarity: float
    alpha: float | None
    history: dict[str, Tensor]
    restart_losses: Tensor
    steps: int
    seconds: float
    device: str
    stopped: Stop = Stop.FINISHED
    snapshots: Tensor | None = None
    snapshot_steps: list[int] = field(default_factory=list)
