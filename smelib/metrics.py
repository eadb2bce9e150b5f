"""The only place where a reconstruction meets the truth: how good it is, image by image."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from skimage.metrics import structural_similarity
from torch import Tensor

from smelib.errors import same_shape
from smelib.pairing import match


@dataclass(frozen=True)
class Evaluation:
    """Quality of a reconstruction, image by image, and on average. Higher is better.

    `order` says for each original which reconstruction was paired with it; `psnrs` and `ssims`
    are in the originals' order.
    """

    psnr: float
    ssim: float
    psnrs: list[float]
    ssims: list[float]
    order: list[int]

    def __str__(self) -> str:
        return f"PSNR {self.psnr:.1f} dB, SSIM {self.ssim:.2f} over {len(self.order)} images"


def psnr(image: Tensor, original: Tensor) -> float:
    """Peak signal-to-noise ratio in decibels, $10 \\log_{10}(1 / \\mathrm{MSE})$.

    Infinite for two identical images.
    """
    same_shape(image, original)
    a, b = _on_host(image, original)
    return float(-10 * (a - b).square().mean().log10())


def ssim(image: Tensor, original: Tensor) -> float:
    """Structural similarity of two `[C, H, W]` images in [0, 1].  [Wang04]

    The window is 7×7 pixels, and in smaller images the largest odd size that fits. With a side
    under 3 pixels no window has a variance, and the answer is NaN.
    """
    same_shape(image, original, "[C, H, W]")
    side = min(7, *image.shape[1:])
    if side < 3:
        return math.nan
    a, b = (x.numpy() for x in _on_host(image, original))
    window = side - (side + 1) % 2
    return float(structural_similarity(a, b, win_size=window, data_range=1.0, channel_axis=0))


def evaluate(images: Tensor, originals: Tensor) -> Evaluation:
    """Pair reconstructions with originals (linear sum assignment on MSE) and score each pair."""
    same_shape(images, originals, "[N, C, H, W]")
    order = match(images, originals)
    pairs = [(images[i], original) for i, original in zip(order, originals, strict=True)]
    psnrs, ssims = [psnr(*p) for p in pairs], [ssim(*p) for p in pairs]
    return Evaluation(
        float(np.mean(psnrs)), float(np.mean(ssims)), psnrs, ssims, [int(i) for i in order]
    )


def _on_host(*tensors: Tensor) -> list[Tensor]:
    """In double precision, on the CPU: a Mac's GPU has no double precision."""
    return [x.detach().cpu().double() for x in tensors]
