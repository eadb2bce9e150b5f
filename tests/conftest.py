"""Fixtures shared by the tests: small clients, so that a property takes milliseconds."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import smelib
from smelib.models import Network, wrap


@dataclass(frozen=True)
class Scene:
    """A client, its network and the update it sent."""

    client: smelib.data.Client
    network: Network
    protocol: smelib.Protocol
    update: smelib.Update
    z: Tensor

    @property
    def labels(self) -> Tensor:
        return self.client.labels


def tiny_network(dtype: torch.dtype = torch.float64, seed: int = 0) -> Network:
    """A smooth two-layer network on 1×6×6 images: small enough for gradcheck."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        body = nn.Sequential(
            nn.Conv2d(1, 2, 3, padding=1), nn.Tanh(), nn.Flatten(), nn.Linear(72, 4)
        )
    return wrap(body.to(dtype), (1, 6, 6), 4, mean=(0.5,), std=(0.5,), name="tiny")


def tiny_scene(epochs: int = 3, samples: int = 3, batch_size: int = 2, lr: float = 0.5) -> Scene:
    network = tiny_network()
    draw = torch.Generator().manual_seed(1)
    images = torch.rand(samples, 1, 6, 6, generator=draw, dtype=torch.float64)
    labels = torch.randint(0, 4, (samples,), generator=draw)
    client = smelib.data.Client(images, labels, 4, "random")
    protocol = smelib.Protocol(epochs, batch_size, lr)
    update = smelib.local_update(network, client, protocol)
    z = torch.randn(samples, 1, 6, 6, generator=draw, dtype=torch.float64)
    return Scene(client, network, protocol, update, z)


@pytest.fixture(scope="session")
def tiny() -> Scene:
    return tiny_scene()


@pytest.fixture(scope="session")
def digits() -> Scene:
    """Four handwritten digits and the paper's network, ten epochs."""
    client = smelib.data.client("mnist", 4, seed=0)
    network = smelib.models.cnn(client.shape, client.classes)
    protocol = smelib.Protocol(epochs=10, batch_size=4)
    update = smelib.local_update(network, client, protocol)
    z = torch.randn(4, *client.shape, generator=torch.Generator().manual_seed(2))
    return Scene(client, network, protocol, update, z)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with femnist.npz and cifar100.npz, where there is one."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SMELIB_DATA") or beside)
    if not (folder / "femnist.npz").is_file():
        pytest.skip("no femnist.npz: set SMELIB_DATA to the folder that holds it")
    return folder
