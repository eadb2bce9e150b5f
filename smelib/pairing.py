"""Which reconstruction shows which original: an attack gives its images back in any order."""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from smelib.errors import InputError


def match(images: Tensor, originals: Tensor) -> np.ndarray:
    """For each original, the index of its image: the pairing of least total squared error.

    Both are `[N, ...]` with images of one shape; more images than originals are allowed, and the
    ones left over belong to nobody.
    """
    if not all(isinstance(x, Tensor) for x in (images, originals)):
        raise InputError("images and originals are tensors [N, C, H, W]; use torch.as_tensor(…).")
    if images.shape[1:] != originals.shape[1:]:
        raise InputError(
            f"images of shape {tuple(images.shape[1:])} cannot be paired with originals of shape "
            f"{tuple(originals.shape[1:])}; both must have one shape."
        )
    if len(originals) == 0:
        raise InputError("there are no originals to pair the images with.")
    if len(images) < len(originals):
        raise InputError(
            f"{len(images)} images cannot be paired with {len(originals)} originals; "
            "give at least one image for each."
        )
    # To the host first: a Mac's GPU has no double precision.
    found, true = (x.detach().cpu().double().flatten(1) for x in (images, originals))
    cost = torch.cdist(true, found).square()
    if bool(cost.isnan().any()):
        raise InputError("NaN pixels cannot be paired; the attack that made them diverged.")
    return linear_sum_assignment(cost.numpy())[1]
