"""What may be an image, a label or a count: checked, and brought into one form."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np
from torch import Tensor

from smelib.errors import InputError

CHANNELS = (1, 3, 4)  # what a last axis of this length says, if the second has another


def whole(value: object, what: str, *, least: int = 1) -> int:
    """A count as an `int`, whoever counted: Python, NumPy or torch."""
    try:
        number = operator.index(value)
    except (TypeError, ValueError):
        number = least - 1
    if number < least:
        raise InputError(f"{what} is {value!r}; it must be a whole number of at least {least}.")
    return number


def sizes(shape: Sequence[int]) -> str:
    """A shape as a reader writes it: 28×28."""
    return "×".join(map(str, shape))


def plain(given: object) -> np.ndarray:
    """A tensor, an array or nested lists of either as an array."""
    if isinstance(given, Tensor):
        given = given.detach().cpu()
        if given.is_floating_point() and given.element_size() < 4:
            given = given.float()  # NumPy has no bfloat16
        return given.numpy()
    if isinstance(given, (list, tuple)) and given and isinstance(given[0], (Tensor, np.ndarray)):
        given = [plain(part) for part in given]
    return np.asarray(given)


def checked_images(given: object) -> np.ndarray:
    """Images as `[N, C, H, W]`: bytes stay bytes, everything else is a float in [0, 1]."""
    try:
        images = plain(given)
    except (ValueError, TypeError, RuntimeError) as error:
        raise InputError(
            f"the images do not fit into one array ({error}); give all of them the same size."
        ) from None
    if images.dtype != np.uint8 and images.dtype.kind != "f":
        raise InputError(
            f"the images are {images.dtype}; give floats in [0, 1], or uint8 from 0 to 255."
        )
    if images.size == 0:
        raise InputError(f"there are no images: their shape is {sizes(images.shape)}.")
    if images.ndim not in (3, 4):
        raise InputError(
            f"the images have shape {sizes(images.shape)}; give [N, C, H, W], or [N, H, W] if grey."
        )
    if images.ndim == 3:
        images = images[:, None]
    elif images.shape[3] in CHANNELS and images.shape[1] not in CHANNELS:
        raise InputError(
            f"the images have shape {sizes(images.shape)}, with their channels last; put them "
            "first: images.permute(0, 3, 1, 2), or permute(2, 0, 1) for each image alone."
        )
    if images.dtype == np.uint8:
        return images
    _in_unit_box(images)
    precise = isinstance(given, Tensor) and images.dtype == np.float64
    return images if precise else images.astype(np.float32)


def _in_unit_box(images: np.ndarray) -> None:
    low, high = float(images.min()), float(images.max())
    if not np.isfinite([low, high]).all():
        raise InputError("the images have NaN or infinite pixels; remove or repair those images.")
    if low < 0 or high > 1:
        raise InputError(
            f"the images' pixels lie between {low:.4g} and {high:.4g}, not in [0, 1]; divide by "
            "255, undo a normalisation, or clamp(0, 1) what an interpolation overshot."
        )


def checked_labels(given: object, count: int, classes: int) -> np.ndarray:
    """Labels as `[N]` int64 below `classes`, one for each of `count` images."""
    labels = whole_labels(given)
    if len(labels) != count:
        alone = "; a single image needs its first axis: images[None]" if len(labels) == 1 else ""
        raise InputError(
            f"there are {count} images and {len(labels)} labels; give one label for each{alone}."
        )
    if labels.min() < 0 or labels.max() >= classes:
        raise InputError(
            f"the labels lie between {labels.min()} and {labels.max()}; "
            f"with {classes} classes they must be from 0 to {classes - 1}."
        )
    return labels


def whole_labels(given: object) -> np.ndarray:
    """Labels as `[N]` int64, whatever their number and range."""
    try:
        labels = plain(given)
    except (ValueError, TypeError, RuntimeError):
        labels = np.empty(0, object)
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        hint = "; labels.argmax(1) makes them out of one-hot rows" if labels.ndim == 2 else ""
        raise InputError(
            f"labels must be one whole number per image, not {labels.dtype} of shape "
            f"[{sizes(labels.shape)}]{hint}."
        )
    return labels.astype(np.int64)
