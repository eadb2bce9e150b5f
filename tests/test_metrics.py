"""Pairing and scores: what they must be on every device, at every size, for every wrong input."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from torch import Tensor

from smelib import metrics, pairing
from smelib.types import InputError


def pictures(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


class OnAMac(Tensor):
    """A tensor that behaves as on Apple's MPS device: double precision exists on the host only."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is Tensor.cpu:
            return args[0].as_subclass(Tensor)
        if func is Tensor.double or any(x is torch.float64 for x in (*args, *kwargs.values())):
            raise TypeError("Cannot convert a MPS Tensor to float64 dtype")
        if func is Tensor.numpy:
            raise TypeError("can't convert mps:0 device type tensor to numpy")
        return super().__torch_function__(func, types, args, kwargs)


# Pairing.


def test_matching_undoes_a_shuffle() -> None:
    held = pictures(8, 1, 9, 9)
    order = torch.randperm(8, generator=torch.Generator().manual_seed(1))
    found = pairing.match(held[order] + 0.01, held)
    assert order[found].tolist() == list(range(8))


def test_the_pairing_has_the_least_total_squared_error() -> None:
    """Image 0 is nearest to both originals; giving it to the second costs less in all."""
    originals = torch.tensor([0.0, 1.0]).view(2, 1, 1, 1)
    images = torch.tensor([0.9, -3.0]).view(2, 1, 1, 1)
    assert pairing.match(images, originals).tolist() == [1, 0]
    # By distance the first original would leave image 0 to the second.
    originals, images = (
        torch.tensor([[0.0, 0.0], [1.0, 0.0]]),
        torch.tensor([[1.0, 0.0], [1.2, 0.9]]),
    )
    assert pairing.match(images, originals).tolist() == [0, 1]


def test_among_more_images_each_original_finds_its_own() -> None:
    held = pictures(5, 3, 4, 4)
    assert pairing.match(held, held[[3, 1]]).tolist() == [3, 1]


@pytest.mark.parametrize(
    ("images", "originals", "message"),
    [
        ((2, 1, 4, 4), (3, 1, 4, 4), "2 images.*3 originals"),
        ((3, 1, 4, 4), (3, 1, 2, 8), r"\(1, 4, 4\).*\(1, 2, 8\)"),
        ((0, 1, 4, 4), (0, 1, 4, 4), "no originals"),
    ],
)
def test_what_cannot_be_paired_is_refused(images: tuple, originals: tuple, message: str) -> None:
    with pytest.raises(InputError, match=message):
        pairing.match(pictures(*images), pictures(*originals))


def test_nan_cannot_be_paired() -> None:
    held = pictures(2, 1, 4, 4)
    with pytest.raises(InputError, match="NaN"):
        pairing.match(held * torch.nan, held)


# On the way to a Mac.


def test_pairing_and_scores_need_no_double_precision_on_the_device() -> None:
    held = pictures(3, 1, 9, 9)
    on_device = held.clone().as_subclass(OnAMac)
    with pytest.raises(TypeError, match="float64"):
        on_device.double()
    assert pairing.match(on_device.flip(0), on_device).tolist() == [2, 1, 0]
    score = metrics.evaluate(on_device.flip(0) * 0.9, on_device)
    expected = metrics.evaluate(held.flip(0) * 0.9, held)
    assert score.psnrs == pytest.approx(expected.psnrs, rel=1e-12)
    assert score.ssims == pytest.approx(expected.ssims, rel=1e-12)


# Scores.


def test_psnr_by_hand() -> None:
    black = torch.zeros(1, 8, 8)
    assert metrics.psnr(black + 0.1, black) == pytest.approx(20)
    assert metrics.psnr(black + 1, black) == pytest.approx(0)
    half = black.clone()
    half[:, :4] = 0.5
    assert metrics.psnr(half, black) == pytest.approx(-10 * math.log10(0.125))


def test_scores_are_the_means_over_the_pairs() -> None:
    held = pictures(4, 3, 8, 8)
    found = (held + torch.tensor([0.1, 0.2, 0.3, 0.4]).view(4, 1, 1, 1))[[2, 0, 3, 1]]
    score = metrics.evaluate(found, held)
    assert score.order == [1, 3, 0, 2]
    assert score.psnrs == pytest.approx([-20 * math.log10(x) for x in (0.1, 0.2, 0.3, 0.4)], 1e-5)
    assert score.ssims == [
        metrics.ssim(found[i], x) for i, x in zip(score.order, held, strict=True)
    ]
    assert score.psnr == pytest.approx(np.mean(score.psnrs))
    assert score.ssim == pytest.approx(np.mean(score.ssims))
    assert str(score) == f"PSNR {score.psnr:.1f} dB, SSIM {score.ssim:.2f} over 4 images"


def test_ssim_falls_with_noise_and_below_zero_for_a_negative() -> None:
    image = pictures(3, 16, 16)
    noise = pictures(3, 16, 16, seed=1) - 0.5
    little, much = (metrics.ssim(image + size * noise, image) for size in (0.05, 0.5))
    assert metrics.ssim(image, image) == pytest.approx(1)
    assert 1 > little > much > 0
    assert metrics.ssim(1 - image, image) < 0


def test_ssim_of_two_constants_is_that_of_their_means() -> None:
    """Without variance only the luminance term is left; its constant is (0.01 range)^2."""
    a, b = torch.full((2, 1, 8, 8), 0.2)[0], torch.full((1, 8, 8), 0.6)
    expected = (2 * 0.2 * 0.6 + 1e-4) / (0.2**2 + 0.6**2 + 1e-4)
    assert metrics.ssim(a, b) == pytest.approx(expected, rel=1e-5)


def test_ssim_does_not_mix_channels() -> None:
    image = pictures(3, 9, 9)
    alone = [metrics.ssim(image[[c]] * 0.5, image[[c]]) for c in range(3)]
    assert metrics.ssim(image * 0.5, image) == pytest.approx(np.mean(alone))


@pytest.mark.parametrize("side", range(1, 9))
@pytest.mark.parametrize("channels", [1, 3])
def test_every_size_of_image_can_be_scored(side: int, channels: int) -> None:
    held = pictures(2, channels, side, side + 1)
    score = metrics.evaluate(held * 0.9, held)
    assert math.isfinite(score.psnr)
    if side < 3:
        assert math.isnan(score.ssim), "no window of three pixels fits"
    else:
        assert 0 < score.ssim < 1
        assert metrics.evaluate(held, held).ssim == pytest.approx(1)


def test_large_images_keep_the_papers_window_of_seven() -> None:
    from skimage.metrics import structural_similarity

    a, b = pictures(1, 12, 12), pictures(1, 12, 12, seed=1)
    expected = structural_similarity(
        a[0].double().numpy(), b[0].double().numpy(), data_range=1.0, win_size=7
    )
    assert metrics.ssim(a, b) == pytest.approx(expected)


def test_identical_images_score_infinity_without_a_warning() -> None:
    held = pictures(2, 1, 8, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score = metrics.evaluate(held, held)
    assert score.psnr == math.inf
    assert score.ssim == pytest.approx(1)


@pytest.mark.parametrize(
    ("images", "originals"),
    [
        ((2, 1, 8, 8), (3, 1, 8, 8)),
        ((2, 1, 8, 8), (2, 1, 8, 7)),
        ((1, 8, 8), (1, 8, 8)),
        ((0, 1, 8, 8), (0, 1, 8, 8)),
    ],
)
def test_wrong_shapes_are_refused(images: tuple, originals: tuple) -> None:
    with pytest.raises(InputError, match=r"\[N, C, H, W\]"):
        metrics.evaluate(pictures(*images), pictures(*originals))


def test_a_score_does_not_broadcast() -> None:
    with pytest.raises(InputError, match="same shape"):
        metrics.psnr(pictures(1, 8, 8), pictures(8, 8))
    with pytest.raises(InputError, match=r"\[C, H, W\]"):
        metrics.ssim(pictures(8, 8), pictures(8, 8))
    with pytest.raises(InputError, match=r"\[C, H, W\]"):
        metrics.ssim(pictures(3, 8, 8), pictures(1, 8, 8))


def test_half_precision_is_scored_in_double() -> None:
    """Squared errors below 6e-8 vanish in float16, and PSNR would be infinite."""
    a = torch.full((1, 1, 8, 8), 0.001, dtype=torch.float16)
    b = a + torch.tensor(1e-4, dtype=torch.float16)
    expected = metrics.psnr(a.double(), b.double())
    assert metrics.evaluate(a, b).psnr == pytest.approx(expected)
