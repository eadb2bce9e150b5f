"""The items of a torch data set, one by one, as arrays."""

from __future__ import annotations

import operator

import numpy as np
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import IterableDataset

from smelib.data.arrays import plain, sizes, whole
from smelib.errors import InputError


def read_items(items: TorchDataset, most: int | None) -> tuple[np.ndarray, np.ndarray]:
    """All images and labels of a map-style data set, or `most` of them, evenly spread."""
    streams = isinstance(items, IterableDataset)
    if streams or not (hasattr(items, "__len__") and hasattr(items, "__getitem__")):
        raise InputError(
            f"{type(items).__name__!r} is no data set that can be read: give the name of one, or a "
            "map-style torch data set, which has a length and gives (image, label) for an index."
        )
    total = len(items)
    if total == 0:
        raise InputError(f"the data set {type(items).__name__!r} is empty.")
    wanted = total if most is None else min(total, whole(most, "most"))
    images, labels = [], []
    for index in (np.arange(wanted) * total // wanted).tolist():
        image, label = _pair(items[index], index)
        if images and image.shape != images[0].shape:
            raise InputError(
                f"item {index} is {sizes(image.shape)} and the first is {sizes(images[0].shape)}; "
                "bring all to one size with a transform."
            )
        images.append(image)
        labels.append(label)
    return np.stack(images), np.array(labels)


def _pair(item: object, index: int) -> tuple[np.ndarray, int]:
    if not isinstance(item, (tuple, list)) or len(item) < 2:
        raise InputError(f"item {index} is not (image, label) but {type(item).__name__!r}.")
    image, label, *_ = item
    try:
        number = operator.index(label)
    except (TypeError, ValueError):
        raise InputError(f"item {index} has the label {label!r}; give a whole number.") from None
    return _image(image, index), number


def _image(image: object, index: int) -> np.ndarray:
    """One image as `[C, H, W]` or `[H, W]`."""
    if isinstance(image, Image.Image):
        if image.mode.startswith(("I", "F")):
            raise InputError(
                f"item {index} is a picture of mode {image.mode!r}, more than 8 bits deep; "
                "turn it into a tensor in [0, 1] with a transform."
            )
        if image.mode in ("1", "L", "LA"):
            return np.asarray(image.convert("L"))
        return np.asarray(image.convert("RGB")).transpose(2, 0, 1)
    if not isinstance(image, (Tensor, np.ndarray)):
        raise InputError(
            f"item {index}'s image is {type(image).__name__!r}; "
            "give a tensor, an array or a PIL image."
        )
    return plain(image)
