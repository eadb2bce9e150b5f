"""What the images and labels of each known data set look like, so that none passes for another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smelib.data.arrays import checked_labels, sizes
from smelib.data.clients import Dataset
from smelib.errors import InputError


@dataclass(frozen=True)
class Kind:
    """One data set's name, number of classes, and images' height, width and channels."""

    name: str
    classes: int
    shape: tuple[int, int, int]

    def dataset(
        self,
        images: np.ndarray,
        labels: np.ndarray,
        writers: np.ndarray | None = None,
        *,
        source: str,
    ) -> Dataset:
        """The data set out of `[M, H, W]` or `[M, H, W, C]` bytes, or a sentence about `source`."""
        pixels = images[..., None] if images.ndim == 3 else images
        if pixels.dtype != np.uint8 or pixels.shape[1:] != self.shape:
            wanted = sizes(self.shape if self.shape[2] > 1 else self.shape[:2])
            raise InputError(
                f"{source}: the images of {self.name!r} must be uint8, {wanted} each; "
                f"these are {images.dtype} of shape [{sizes(images.shape)}]."
            )
        if len(images) == 0:
            raise InputError(f"{source} holds no images.")
        try:
            labels = checked_labels(labels, len(images), self.classes)
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
        if writers is not None and (
            writers.shape != labels.shape or writers.dtype.kind not in "iuUS"
        ):
            raise InputError(
                f"{source}: writers must be one name or whole number per image, {len(labels)} of "
                f"them; these are {writers.dtype} of shape [{sizes(writers.shape)}]."
            )
        return Dataset(self.name, pixels.transpose(0, 3, 1, 2), labels, self.classes, writers)


MNIST = Kind("mnist", 10, (28, 28, 1))
PHOTOS = Kind("photos", 8, (32, 32, 3))
FEMNIST = Kind("femnist", 62, (28, 28, 1))
EMNIST = Kind("emnist", 62, (28, 28, 1))
CIFAR100 = Kind("cifar100", 100, (32, 32, 3))
