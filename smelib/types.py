"""The nouns of the book: what a client sends, what it ran, and what an attack gives back."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TypeAlias

import torch
from torch import Tensor

Params: TypeAlias = dict[str, Tensor]
"""Named weights, in the order in which the network uses them."""


class InputError(ValueError):
    """Something the caller gave cannot be used; the message says what, and what to do."""


def nearest(kind: str, name: str, valid: list[str]) -> InputError:
    """The error for an unknown name, with the closest valid ones first."""
    close = get_close_matches(name, valid, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(repr(c) for c in close)}? " if close else ""
    return InputError(f"there is no {kind} {name!r}: {hint}choose one of {', '.join(valid)}.")


@dataclass(frozen=True)
class Update:
    """All the server sees of one client: the weights it sent, those it got back, and N.

    `before` is $w_0$, `after` is $w_T$, `samples` is the client's sample count $N$.
    """

    before: Params
    after: Params
    samples: int

    def __post_init__(self) -> None:
        if not isinstance(self.samples, int) or self.samples < 1:
            raise InputError(
                f"the update says it comes from {self.samples!r} samples; "
                "give the client's sample count, a whole number of at least 1."
            )
        same_layout(self.before, self.after, "before", "after")

    def check(self) -> None:
        """Refuse weights that no attack can use: NaN or infinite ones, and an empty update."""
        for where, weights in (("before", self.before), ("after", self.after)):
            for name, value in weights.items():
                if not bool(torch.isfinite(value).all()):
                    raise InputError(
                        f"the weights '{where}' hold NaN or infinite values in {name!r}; "
                        "the client's training diverged, or the file is damaged."
                    )
        if all(torch.equal(self.before[k], self.after[k]) for k in self.before):
            raise InputError(
                "the weights before and after are equal, so there is nothing to invert; "
                "check that the second file is the client's answer and not the server's model."
            )

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


@dataclass(frozen=True)
class Protocol:
    """How a client trains: `epochs` (E) passes over its data in batches of `batch_size` (B)."""

    epochs: int
    batch_size: int
    lr: float = 0.004

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise InputError(f"{name} is {value!r}; it must be a whole number of at least 1.")
        if not (self.lr > 0 and math.isfinite(self.lr)):
            raise InputError(f"the learning rate is {self.lr!r}; it must be positive and finite.")

    def steps(self, samples: int) -> int:
        """$T = E \\lceil N / B \\rceil$: how many gradients the update adds up."""
        return self.epochs * math.ceil(samples / self.batch_size)


@dataclass(frozen=True)
class Reconstruction:
    """What an attack gives back. `images` are in [0, 1], `[N, C, H, W]`, in the labels' order.

    `loss`, `similarity` (the paper's $L_{sim}$) and `alpha` are those of the returned state;
    `history` has every step's loss terms; `restart_losses` the final loss of every restart, of
    which the lowest was kept. `stopped` says why the loop ended.
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
    stopped: str = "finished"
    snapshots: Tensor | None = None
    snapshot_steps: list[int] = field(default_factory=list)


def same_layout(a: Params, b: Params, a_name: str, b_name: str) -> None:
    """Refuse two sets of weights that differ in names or shapes."""
    if missing := sorted(set(a) ^ set(b)):
        raise InputError(
            f"the weights {a_name!r} and {b_name!r} do not name the same parameters: "
            f"{', '.join(missing[:4])}{' and others' if len(missing) > 4 else ''} "
            "stand in one of them only; are both from the same network?"
        )
    for name in a:
        if a[name].shape != b[name].shape:
            raise InputError(
                f"{name!r} has shape {tuple(a[name].shape)} in {a_name!r} but "
                f"{tuple(b[name].shape)} in {b_name!r}; are both from the same network?"
            )
