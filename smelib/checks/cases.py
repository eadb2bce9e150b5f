"""Small random cases in double precision: networks of a few hundred weights, and their clients."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from smelib import federated, seeds
from smelib.data import Client
from smelib.models import Network, wrap
from smelib.types import Protocol, Update


def numbers(seed: int) -> range:
    """The five cases that a seed stands for; no two seeds share one."""
    return range(5 * seed, 5 * seed + 5)


@dataclass
class Scene:
    """A client with its network, how it trains, and what it sends."""

    model: Network
    client: Client
    protocol: Protocol
    draw: torch.Generator
    seed: int

    @cached_property
    def update(self) -> Update:
        """Made when it is asked for: not every check needs one."""
        return federated.local_update(self.model, self.client, self.protocol, seed=self.seed)


def normal(draw: torch.Generator, *shape: int) -> Tensor:
    """Normal noise in double precision."""
    return torch.randn(*shape, generator=draw, dtype=torch.float64)


def uniform(draw: torch.Generator, *shape: int) -> Tensor:
    """Pixels in [0, 1], in double precision."""
    return torch.rand(*shape, generator=draw, dtype=torch.float64)


def network(draw: torch.Generator, shape: tuple[int, int, int], classes: int, kind: str) -> Network:
    """A network of a few hundred weights, "conv" or "linear" from the first layer on."""
    channels, height, width = shape
    size = channels * height * width

    def layer(cls: type, *args: int, **options: int) -> nn.Module:
        made = nn.utils.skip_init(cls, *args, dtype=torch.float64, **options)
        for p in made.parameters():
            p.data = 0.4 * normal(draw, *p.shape)
        return made

    bodies = {
        "conv": lambda: nn.Sequential(
            layer(nn.Conv2d, channels, 2, 3, padding=1),
            nn.Sigmoid(),
            nn.Flatten(),
            layer(nn.Linear, 2 * height * width, classes),
        ),
        "linear": lambda: nn.Sequential(
            nn.Flatten(), layer(nn.Linear, size, 8), nn.ReLU(), layer(nn.Linear, 8, classes)
        ),
    }
    # Milder than the book's images', lest the softmax be saturated.
    mean, std = (0.4, 0.5, 0.6)[:channels], (0.25, 0.3, 0.35)[:channels]
    return wrap(bodies[kind](), shape, classes, mean=mean, std=std, name="small")


def scene(
    number: int,
    *,
    kind: str = "conv",
    channels: int = 1,
    samples: int | None = None,
    epochs: int = 3,
    lr: float = 0.3,
) -> Scene:
    """One of the scenes: 3 to 5 images of 5 times 4 pixels, 4 classes, batches of 2."""
    draw = seeds.generator(number, "checks")
    shape, classes = (channels, 5, 4), 4
    n = samples or 3 + number % 3
    model = network(draw, shape, classes, kind)
    labels = torch.randint(classes, (n,), generator=draw)
    client = Client(uniform(draw, n, *shape), labels, classes, "noise")
    protocol = Protocol(epochs, min(n, 2), lr)
    return Scene(model, client, protocol, draw, number)


def dummies(s: Scene) -> Tensor:
    """Normalised dummies, as many as the client has images."""
    return normal(s.draw, len(s.client), *s.model.shape)


def named(**arguments: Any) -> dict[str, Any]:
    """A case: the arguments in the order of the signature."""
    return arguments


@dataclass(frozen=True)
class Bowl:
    """A loss whose minimum is known, on which a loop can be tried without its own loss."""

    images: Tensor
    place: float

    def __call__(self, z: Tensor, alpha: Tensor | float = 0.0) -> Tensor:
        """The squared distance to the images, which alpha dims, and alpha's to its own place."""
        away = (z - (1 - alpha) * self.images).square().sum() / 2
        return away + 20 * (alpha - self.place) ** 2
