"""The one boundary to a module: its trainable weights, its head, its pixels, its device."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, replace
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from smelib.errors import InputError, same_layout
from smelib.types import Params, Update

# The one place where pixels are normalised: FEMNIST's and CIFAR-100's mean and standard deviation.
NORMALISATION = {
    1: ((0.96424,), (0.15768,)),
    3: ((0.5071, 0.4866, 0.4409), (0.2673, 0.2564, 0.2762)),
}
BATCH_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")

Loss: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""What the client minimises: scores `[N, classes]` and labels (or probabilities) to a number."""


def squared_error(scores: Tensor, labels: Tensor) -> Tensor:
    """The mean squared distance to the one-hot labels, for `loss=`."""
    target = labels if labels.is_floating_point() else F.one_hot(labels, scores.shape[-1])
    return F.mse_loss(scores, target.to(scores))


def _copied(body: nn.Module, device: torch.device | None, dtype: torch.dtype | None) -> nn.Module:
    """A copy of the module in eval mode, elsewhere or in another precision where one is given."""
    memo: dict[int, Tensor] = {}
    for p in body.parameters():
        moved = p.detach().to(device, dtype, copy=True)
        memo[id(p)] = nn.Parameter(moved, requires_grad=p.requires_grad)
    for b in body.buffers():
        memo[id(b)] = b.to(device, dtype if b.is_floating_point() else None, copy=True)
    return copy.deepcopy(body, memo).eval()


def twice_differentiable() -> AbstractContextManager:
    """While it lasts, attention is computed by its formula: the fused forms lack a derivative."""
    return sdpa_kernel(SDPBackend.MATH)


class _Mirror(threading.local):
    """The module's structure, once per thread: a functional call swaps weights in place."""

    def __init__(self, body: nn.Module) -> None:
        shared = {id(t): t for t in (*body.parameters(), *body.buffers())}
        self.body = copy.deepcopy(body, shared)


@dataclass(frozen=True, eq=False)
class Network:
    """A classifier of `shape` images into `classes` classes, and how its pixels are normalised.

    `logits(params, z)` takes *normalised* images `z` and any weights; `network(images)` takes
    images in [0, 1] and uses the network's own weights. `body` is a private copy of any `nn.Module`
    from normalised images to scores, in eval mode; it is never changed. `trainable` names the
    weights that local training moves, which are those that an attack can match.
    """

    body: nn.Module
    shape: tuple[int, int, int]
    classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    name: str = "custom"
    loss: Loss = field(default_factory=lambda: F.cross_entropy)

    def __post_init__(self) -> None:
        body = _copied(self.body, None, None)
        trainable = [k for k, v in body.named_parameters() if v.requires_grad]
        if not trainable:
            raise InputError(
                f"{self.name!r} has no trainable weights (requires_grad is False for all), so a "
                "client could not train it."
            )
        like = dict(body.named_parameters())[trainable[0]]

        def channels(values: tuple[float, ...]) -> Tensor:
            return torch.tensor(values, device=like.device, dtype=like.dtype).view(-1, 1, 1)

        made = {"body": body, "trainable": frozenset(trainable), "_mirror": _Mirror(body)}
        made |= {"_mean": channels(self.mean), "_std": channels(self.std)}
        for name, value in made.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple:
        return type(self), tuple(getattr(self, f.name) for f in fields(self))

    def to(self, device: torch.device, dtype: torch.dtype) -> Network:
        """The same network on another device or in another precision; itself if it is there."""
        if (self._mean.device, self._mean.dtype) == (torch.device(device), dtype):
            return self
        return replace(self, body=_copied(self.body, device, dtype))

    def like(self, weights: Params) -> Network:
        """The network where these weights are."""
        first = next(iter(weights.values()))
        return self.to(first.device, first.dtype)

    def params(self) -> Params:
        """A copy of the network's own weights."""
        return {k: v.detach().clone() for k, v in self.body.named_parameters()}

    def trained(self, params: Params) -> Params:
        """The part that training moves: no frozen layers, no buffers."""
        return {k: v for k, v in params.items() if k in self.trainable}

    @property
    def structure(self) -> nn.Module:
        """The module as this thread may use it, for calls with other weights and for hooks."""
        return self._mirror.body

    def logits(self, params: Params, z: Tensor) -> Tensor:
        """Class scores of normalised images under the given weights (and buffers, if any)."""
        if torch.compiler.is_compiling():
            return functional_call(self.body, params, (z,))
        with twice_differentiable():
            return functional_call(self.structure, params, (z,))

    def __call__(self, images: Tensor) -> Tensor:
        """Class scores of images in [0, 1] under the network's own weights."""
        return self.logits(self.params(), self.normalise(images.to(self._mean)))

    def normalise(self, images: Tensor) -> Tensor:
        """[0, 1] pixels to the space in which the network and the attacks work."""
        return (images - self._mean.to(images)) / self._std.to(images)

    def denormalise(self, z: Tensor) -> Tensor:
        """The inverse of `normalise`."""
        return z * self._std.to(z) + self._mean.to(z)

    def box(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """The normalised values of a black and a white pixel, channel by channel."""
        black = torch.zeros_like(self._mean).to(like)
        return self.normalise(black), self.normalise(black + 1)

    def head(self) -> tuple[str, str]:
        """Names of the last linear layer's weight and bias, where the labels leak."""
        layers = [
            f"{k}.".lstrip(".")
            for k, module in self.body.named_modules()
            if isinstance(module, nn.Linear) and module.out_features == self.classes
        ]
        names = (f"{layers[-1]}weight", f"{layers[-1]}bias") if layers else ("", "")
        if not self.trainable.issuperset(names):
            raise InputError(
                f"{self.name!r} has no last linear layer with {self.classes} outputs whose weight "
                "and bias both train, and labels are read from there; give the labels instead."
            )
        return names

    def own(self, update: Update) -> Update:
        """The update in the network's order of parameters; refused if it is another network's.

        Files sort names as they like, and sums over layers depend on the order. Running statistics
        that came along are kept and used; whole-number buffers, such as counters, are not needed.
        """
        weights, buffers = dict(self.body.named_parameters()), dict(self.body.named_buffers())
        others = {k for k in update.before if k.rpartition(".")[2] in BATCH_STATISTICS} | set(
            buffers
        )
        given = {k: v for k, v in update.before.items() if k in weights or k not in others}
        same_layout(given, weights, "before", self.name)
        kept = {k: v for k, v in buffers.items() if k in update.before and v.is_floating_point()}
        same_layout({k: update.before[k] for k in kept}, kept, "before", self.name)
        ends = ({k: w[k] for k in (*weights, *kept)} for w in (update.before, update.after))
        return Update(*ends, update.samples)

    def check_labels(self, labels: Tensor, samples: int) -> Tensor:
        """One integer label per sample, each a class of the network."""
        labels = torch.as_tensor(labels)
        if labels.ndim != 1 or len(labels) != samples or labels.is_floating_point():
            raise InputError(
                f"the update comes from {samples} samples, so it needs {samples} "
                f"integer labels; these are {tuple(labels.shape)} of {labels.dtype}."
            )
        low, high = int(labels.min()), int(labels.max())
        if low < 0 or high >= self.classes:
            raise InputError(
                f"the label {high if high >= self.classes else low} is out of range: the network "
                f"has classes 0..{self.classes - 1}."
            )
        return labels.long()
