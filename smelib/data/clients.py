"""Who holds which images: one client, or a whole data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset as TorchDataset

from smelib.data.arrays import checked_images, checked_labels, whole, whole_labels
from smelib.data.items import read_items


@dataclass(frozen=True)
class Client:
    """One participant's private data: `images` `[N, C, H, W]` in [0, 1] and integer `labels`."""

    images: Tensor
    labels: Tensor
    classes: int
    dataset: str

    @classmethod
    def of(
        cls,
        images: Tensor | np.ndarray | Sequence,
        labels: Tensor | np.ndarray | Sequence[int],
        classes: int | None = None,
        name: str = "own",
    ) -> Client:
        """A client out of your own images and labels, checked and copied.

        `images` are `[N, C, H, W]`, or `[N, H, W]` if grey: floats in [0, 1] or uint8, which is
        divided by 255. They become float32; only a float64 tensor keeps its precision. Without
        `classes` there are as many as the largest label asks for, at least two.
        """
        pixels, numbers, classes = _checked(images, labels, classes)
        return Dataset(name, pixels, numbers, classes).client(np.arange(len(numbers)))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of one image."""
        return tuple(self.images.shape[1:])

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Dataset:
    """A whole data set in memory: `images` `[M, C, H, W]`, and `writers`: whose each image is.

    The images are uint8, or floats in [0, 1].
    """

    name: str
    images: np.ndarray
    labels: np.ndarray
    classes: int
    writers: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        items: TorchDataset,
        classes: int | None = None,
        name: str = "own",
        most: int | None = None,
    ) -> Dataset:
        """Any map-style `torch.utils.data.Dataset` of (image, label), read into memory once.

        An image is a tensor or array `[C, H, W]` or `[H, W]`, of floats in [0, 1] or uint8, or a
        PIL image. Of a data set too large for memory, `most` keeps that many items, evenly spread.
        """
        images, labels = read_items(items, most)
        if classes is None and isinstance(named := getattr(items, "classes", None), Sequence):
            classes = max(len(named), int(whole_labels(labels).max()) + 1, 2)
        return cls(name, *_checked(images, labels, classes))

    def client(self, chosen: np.ndarray | Sequence[int]) -> Client:
        """The client that holds the images with these indices."""
        pixels = np.ascontiguousarray(self.images[chosen])
        if pixels.dtype == np.uint8:
            pixels = pixels.astype(np.float32) / 255
        labels = torch.from_numpy(self.labels[chosen].astype(np.int64))
        return Client(torch.from_numpy(pixels), labels, self.classes, self.name)

    def __len__(self) -> int:
        return len(self.labels)


def _checked(
    images: object, labels: object, classes: int | None
) -> tuple[np.ndarray, np.ndarray, int]:
    pixels = checked_images(images)
    if classes is None:
        classes = max(2, int(whole_labels(labels).max(initial=0)) + 1)
    classes = whole(classes, "the number of classes", least=2)
    return pixels, checked_labels(labels, len(pixels), classes), classes
