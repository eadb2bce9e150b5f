"""Who holds which images: one client, or a whole data set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Client:
    """One participant's private data: `images` `[N, C, H, W]` in [0, 1] and integer `labels`."""

    images: Tensor
    labels: Tensor
    classes: int
    dataset: str

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of one image."""
        return tuple(self.images.shape[1:])

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Dataset:
    """A whole data set in memory: uint8 `[M, C, H, W]`; `writers` says whose each image is."""

    name: str
    images: np.ndarray
    labels: np.ndarray
    classes: int
    writers: np.ndarray | None = None

    def client(self, chosen: np.ndarray) -> Client:
        """The client that holds the images with these indices."""
        images = torch.from_numpy(self.images[chosen].astype(np.float32) / 255)
        labels = torch.from_numpy(self.labels[chosen].astype(np.int64))
        return Client(images, labels, self.classes, self.name)
