"""The paper's networks as pure functions of their weights.

A `Network` holds no state an attack could disturb: its weights are a dict that you pass in.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from smelib.types import InputError, Params, Update, same_layout

# The one place where pixels are normalised: FEMNIST's and CIFAR-100's mean and standard deviation.
NORMALISATION = {
    1: ((0.96424,), (0.15768,)),
    3: ((0.5071, 0.4866, 0.4409), (0.2673, 0.2564, 0.2762)),
}


@dataclass(frozen=True)
class Network:
    """A classifier of `shape` images into `classes` classes, and how its pixels are normalised.

    `logits(params, z)` takes *normalised* images `z` and any weights; `network(images)` takes
    images in [0, 1] and uses the network's own weights. `body` is any `nn.Module` from normalised
    images to logits; it runs in eval mode and is never changed.
    """

    body: nn.Module
    shape: tuple[int, int, int]
    classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    name: str = "custom"

    def __post_init__(self) -> None:
        self.body.eval()

    def params(self) -> Params:
        """A copy of the network's own weights."""
        return {k: v.detach().clone() for k, v in self.body.named_parameters()}

    def logits(self, params: Params, z: Tensor) -> Tensor:
        """Class scores of normalised images under the given weights."""
        buffers = {k: v.to(z) for k, v in self.body.named_buffers() if v.is_floating_point()}
        return functional_call(self.body, {**params, **buffers}, (z,))

    def __call__(self, images: Tensor) -> Tensor:
        """Class scores of images in [0, 1] under the network's own weights."""
        return self.logits(self.params(), self.normalise(images))

    def normalise(self, images: Tensor) -> Tensor:
        """[0, 1] pixels to the space in which the network and the attacks work."""
        return (images - self._channel(self.mean, images)) / self._channel(self.std, images)

    def denormalise(self, z: Tensor) -> Tensor:
        """The inverse of `normalise`."""
        return z * self._channel(self.std, z) + self._channel(self.mean, z)

    def box(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """The normalised values of a black and a white pixel, channel by channel."""
        zero = torch.zeros(len(self.mean), 1, 1, device=like.device, dtype=like.dtype)
        return self.normalise(zero), self.normalise(zero + 1)

    def head(self) -> tuple[str, str]:
        """Names of the last linear layer's weight and bias, where the labels leak."""
        own = dict(self.body.named_parameters())
        weight = [k for k, v in own.items() if v.ndim == 2 and v.shape[0] == self.classes]
        bias = [k for k, v in own.items() if v.ndim == 1 and v.shape[0] == self.classes]
        if not weight or not bias:
            raise InputError(
                f"{self.name!r} has no last linear layer with a bias and {self.classes} outputs, "
                "and labels are read from there; give the labels instead."
            )
        return weight[-1], bias[-1]

    def own(self, update: Update) -> Update:
        """The update in the network's order of parameters; refused if it is another network's.

        Files sort names as they like, and sums over layers depend on the order.
        """
        names = dict(self.body.named_parameters())
        same_layout(update.before, names, "before", self.name)
        before, after = ({k: w[k] for k in names} for w in (update.before, update.after))
        return Update(before, after, update.samples)

    @staticmethod
    def _channel(values: tuple[float, ...], like: Tensor) -> Tensor:
        return torch.tensor(values, device=like.device, dtype=like.dtype).view(-1, 1, 1)


def wrap(
    body: nn.Module,
    shape: tuple[int, int, int],
    classes: int,
    *,
    mean: tuple[float, ...] | None = None,
    std: tuple[float, ...] | None = None,
    name: str = "custom",
) -> Network:
    """Make a `Network` of your own module; `mean` and `std` default to the paper's data sets'."""
    if len(shape) != 3 or (shape[0] not in NORMALISATION and (mean is None or std is None)):
        raise InputError(
            f"images of shape {tuple(shape)} need mean= and std=, one value per channel; "
            "only [1, H, W] and [3, H, W] have defaults."
        )
    defaults = NORMALISATION.get(shape[0], ((), ()))
    mean = tuple(defaults[0] if mean is None else mean)
    std = tuple(defaults[1] if std is None else std)
    if len(mean) != shape[0] or len(std) != shape[0] or min(std) <= 0:
        raise InputError(f"mean and std need {shape[0]} values each, and std positive ones.")
    return Network(body, tuple(shape), classes, mean, std, name)
