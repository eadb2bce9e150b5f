"""The scores, the labels, and the figures."""

from __future__ import annotations

import math

import pytest
import torch

import smelib
from smelib import labels, metrics, viz
from smelib.attacks import merge_epochs
from smelib.objectives import order_gap


def test_matching_undoes_a_shuffle() -> None:
    held = smelib.data.client("mnist", 8, seed=2).images
    order = torch.randperm(8, generator=torch.Generator().manual_seed(0))
    noisy = (held[order] + 0.01).clamp(0, 1)
    score = metrics.evaluate(noisy, held)
    assert order[score.order].tolist() == list(range(8))
    assert score.psnr > 39


def test_psnr_by_hand() -> None:
    a = torch.zeros(1, 1, 8, 8)
    assert metrics.psnr(a + 0.1, a) == pytest.approx(20)
    assert metrics.evaluate(a + 0.5, a).psnr == pytest.approx(-10 * math.log10(0.25))


def test_ssim_of_an_image_with_itself_is_one() -> None:
    image = smelib.data.client("photos", 1).images[0]
    assert metrics.ssim(image, image) == pytest.approx(1)
    assert metrics.ssim(1 - image, image) < 0.5


def test_merging_epochs_undoes_their_orders() -> None:
    z = smelib.data.client("mnist", 5, seed=0).images
    shuffled = [z[torch.randperm(5, generator=torch.Generator().manual_seed(s))] for s in (1, 2)]
    torch.testing.assert_close(merge_epochs(torch.stack([z, *shuffled])), z)


def test_order_gap_is_the_authors_mean_over_all_pairs() -> None:
    """All E² of them, an epoch's with itself included: E/(E - 1) less than over distinct pairs."""
    g = torch.randn(4, 1, 3, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    pairs = [(g[i] - g[j]).square().mean() for i in range(4) for j in range(4)]
    assert len(pairs) == 16
    torch.testing.assert_close(order_gap(g), torch.stack(pairs).mean())


def test_counts_sum_to_n_and_are_right_for_small_clients() -> None:
    exact = 0
    for seed in range(6):
        held = smelib.data.client("mnist", 3, seed=seed)
        network = smelib.models.cnn(held.shape, 62, seed=seed)
        protocol = smelib.Protocol(5, 3)
        update = smelib.local_update(network, held, protocol)
        for given in (protocol, None):
            found = labels.counts(network, update, given)
            assert int(found.sum()) == 3
            assert int(found.min()) >= 0
            exact += found.tolist() == torch.bincount(held.labels, minlength=62).tolist()
    assert exact >= 10


def test_the_bias_counts_where_the_rows_misread() -> None:
    wrong = dict.fromkeys(("bias", "bias, blind", "rows"), 0)
    for seed in range(4):
        held = smelib.data.client("mnist", 10, seed=seed)
        network = smelib.models.cnn(held.shape, 10, seed=seed)
        protocol = smelib.Protocol(5, 10)
        update = smelib.local_update(network, held, protocol)
        true = torch.bincount(held.labels, minlength=10)
        for name in wrong:
            given = None if "blind" in name else protocol
            found = labels.counts(network, update, given, layer=name.partition(",")[0])
            wrong[name] += int((found - true).abs().sum()) // 2
    assert wrong["bias"] == wrong["bias, blind"] == 0
    assert wrong["rows"] >= 2
    with pytest.raises(smelib.InputError, match="bias"):
        labels.counts(network, update, layer="basis")


def test_recover_lists_the_labels() -> None:
    held = smelib.data.client("mnist", 1, seed=9)
    network = smelib.models.cnn(held.shape, 10)
    update = smelib.local_update(network, held, smelib.Protocol(1, 1))
    assert labels.recover(network, update).tolist() == held.labels.tolist()


def test_compare_draws_a_row_per_reconstruction() -> None:
    images = smelib.data.client("mnist", 3).images
    figure = viz.compare(images, {"IG": images.flip(0), "SME": images}, title="Both match")
    assert len(figure.axes) == 9
