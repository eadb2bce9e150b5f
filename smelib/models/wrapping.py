"""Somebody else's module as a `Network`, after a try: does it do what an attack needs?"""

from __future__ import annotations

import copy
import math

import torch
from torch import Tensor, nn
from torch.func import grad, replace_all_batch_norm_modules_
from torch.nn import functional as F

from smelib.errors import InputError, first_line, nearest, whole
from smelib.models.network import NORMALISATION, Loss, Network


def wrap(
    body: nn.Module,
    shape: tuple[int, int, int],
    classes: int,
    *,
    mean: tuple[float, ...] | None = None,
    std: tuple[float, ...] | None = None,
    name: str = "custom",
    loss: Loss = F.cross_entropy,
    batch_norm: str = "frozen",
) -> Network:
    """Make a `Network` of your own module; `mean` and `std` default to the paper's data sets'.

    `batch_norm` says how the client's batch-norm layers work while it trains: "frozen", with their
    running statistics, or "batch", with those of the batch.
    """
    shape, classes = sizes(shape, classes)
    if shape[0] not in NORMALISATION and (mean is None or std is None):
        raise InputError(
            f"images of {shape[0]} channels need mean= and std=, one value per channel; "
            "only those of 1 and 3 have defaults."
        )
    defaults = NORMALISATION.get(shape[0], ((), ()))
    mean = tuple(defaults[0] if mean is None else mean)
    std = tuple(defaults[1] if std is None else std)
    if len(mean) != shape[0] or len(std) != shape[0] or min(std) <= 0:
        raise InputError(f"mean and std need {shape[0]} values each, and std positive ones.")
    if batch_norm not in ("frozen", "batch"):
        raise nearest("batch norm", batch_norm, ["frozen", "batch"])
    if batch_norm == "batch":
        body = replace_all_batch_norm_modules_(copy.deepcopy(body))
    return _tried(Network(body, shape, classes, mean, std, name, loss))


def channels_last(shape: tuple[int, int, int]) -> bool:
    """Whether a shape looks like height, width, channels, which is not what a network takes."""
    return shape[2] in (1, 3, 4) and shape[0] not in (1, 2, 3, 4)


def sizes(shape: object, classes: object) -> tuple[tuple[int, int, int], int]:
    """An image's shape and the number of classes, or a sentence about them."""
    try:
        c, h, w = (whole(side, "a side of the image") for side in shape)
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError) and not isinstance(shape, str):
            raise
        raise InputError(
            f"the images' shape is {shape!r}; give (channels, height, width), like (1, 28, 28)."
        ) from None
    if channels_last((c, h, w)):
        raise InputError(
            f"the images' shape is {(c, h, w)}, and the channels come first; "
            f"did you mean {(w, c, h)}?"
        )
    return (c, h, w), whole(classes, "the number of classes", 2)


def _tried(network: Network) -> Network:
    """The network, after two images went through it and the derivatives were looked at."""
    weights = network.params()
    like = next(iter(weights.values()))
    if like.is_meta:
        return network
    z = _ramps(network, 2, like)
    try:
        with torch.no_grad():
            scores = network.logits(weights, z)
    except Exception as error:  # whatever somebody else's forward() raises
        raise InputError(
            f"{network.name!r} cannot take images of shape {network.shape} "
            f"({first_line(error)}); give the shape of one image as its first layer expects it, "
            "channels first."
        ) from None
    if not isinstance(scores, Tensor) or scores.shape != (2, network.classes):
        found = tuple(scores.shape) if isinstance(scores, Tensor) else type(scores).__name__
        raise InputError(
            f"{network.name!r} gives {found} for two images, and {(2, network.classes)} was "
            f"expected: scores for classes={network.classes}. Is the number of classes right, and "
            "does forward() return the scores alone?"
        )
    return network


def _ramps(network: Network, count: int, like: Tensor) -> Tensor:
    """Images of no interest, none of them constant."""
    return (
        torch.linspace(-1, 1, count * math.prod(network.shape)).to(like).view(count, *network.shape)
    )


def check_derivatives(network: Network) -> None:
    """Refuse a network through which no image can be found: an attack needs a second derivative."""
    weights = network.params()
    like = next(iter(weights.values()))
    z = _ramps(network, 1, like)
    label = torch.zeros(1, dtype=torch.long, device=like.device)

    def length(z: Tensor) -> Tensor:
        def loss(trained: dict) -> Tensor:
            return network.loss(network.logits({**weights, **trained}, z), label)

        return sum(g.square().sum() for g in grad(loss)(network.trained(weights)).values())

    try:
        slope = grad(length)(z)
    except Exception as error:
        raise InputError(
            f"{network.name!r} has no second derivative ({first_line(error)}), and an attack "
            "needs one; look for custom or fused operations in its layers."
        ) from None
    if not bool(slope.any()):
        raise InputError(
            f"the gradient of {network.name!r} does not depend on the image, so there is nothing "
            "to invert; look for a detach(), an argmax() or rounding in its forward()."
        )
