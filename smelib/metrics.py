"""The only place where a reconstruction meets the truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from skimage.metrics import structural_similarity
from torch import Tensor

from smelib.types import InputError


def match(images: Tensor, originals: Tensor) -> np.ndarray:
    """For each original, the index of its reconstruction: the pairing of least total error."""
    cost = torch.cdist(originals.detach().flatten(1).double(), images.detach().flatten(1).double())
    return linear_sum_assignment(cost.square().cpu().numpy())[1]


@dataclass(frozen=True)
class Evaluation:
    """Quality of a reconstruction, image by image, and on average. Higher is better."""

    psnr: float
    ssim: float
    psnrs: list[float]
    ssims: list[float]
    order: list[int]

    def __str__(self) -> str:
        return f"PSNR {self.psnr:.1f} dB, SSIM {self.ssim:.2f} over {len(self.order)} images"


def psnr(image: Tensor, original: Tensor) -> float:
    """Peak signal-to-noise ratio in decibels, $10 \\log_{10}(1 / \\mathrm{MSE})$."""
    return float(-10 * (image.double() - original.double()).square().mean().log10())


def ssim(image: Tensor, original: Tensor) -> float:
    """Structural similarity of two `[C, H, W]` images in [0, 1].  [Wang04]"""
    a, b = (x.cpu().double().numpy() for x in (image, original))
    return float(structural_similarity(a, b, data_range=1.0, channel_axis=0))


def evaluate(images: Tensor, originals: Tensor) -> Evaluation:
    """Pair reconstructions with originals (linear sum assignment on MSE) and score each pair."""
    if images.shape != originals.shape:
        raise InputError(
            f"{tuple(images.shape)} reconstructions cannot be paired with "
            f"{tuple(originals.shape)} originals; both must be [N, C, H, W]."
        )
    order = match(images, originals)
    pairs = [(images[i], original) for i, original in zip(order, originals, strict=True)]
    psnrs, ssims = [psnr(*p) for p in pairs], [ssim(*p) for p in pairs]
    return Evaluation(
        float(np.mean(psnrs)), float(np.mean(ssims)), psnrs, ssims, [int(i) for i in order]
    )
