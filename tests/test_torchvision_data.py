"""EMNIST and CIFAR-100 through torchvision, on small archives in their true on-disk formats."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import pickle
import struct
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import smelib
from smelib.types import InputError


@pytest.fixture(scope="module", autouse=True)
def _torchvision_imports() -> Iterator[None]:
    """Beside a CPU-only torch the PyPI torchvision lacks two operators; declare them."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    try:
        importlib.import_module("torchvision")
    except ImportError:
        pytest.skip("torchvision is not installed")
    except RuntimeError:
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        importlib.import_module("torchvision")
    yield
    del library  # kept until here: the operators go with it


def letters(count: int = 3) -> np.ndarray:
    """Pictures as a reader sees them, dark ink (60) at row 3, column 20, on white paper."""
    pictures = np.full((count, 28, 28), 255, np.uint8)
    pictures[:, 3, 20] = 60
    return pictures


def idx(array: np.ndarray) -> bytes:
    """The bytes of an IDX file: magic number, sizes (big-endian), pixels."""
    return struct.pack(f">{1 + array.ndim}I", 0x800 + array.ndim, *array.shape) + array.tobytes()


def emnist_files(labels: list[int]) -> dict[str, bytes]:
    """EMNIST stores every picture transposed, and white on black."""
    stored = 255 - letters(len(labels)).transpose(0, 2, 1)
    return {
        "emnist-byclass-train-images-idx3-ubyte": idx(stored),
        "emnist-byclass-train-labels-idx1-ubyte": idx(np.array(labels, np.uint8)),
    }


def write_emnist(root: Path, labels: list[int]) -> Path:
    raw = root / "EMNIST" / "raw"
    raw.mkdir(parents=True)
    for name, content in emnist_files(labels).items():
        (raw / name).write_bytes(content)
    return raw


def test_emnist_is_upright_ink_on_paper(tmp_path: Path) -> None:
    write_emnist(tmp_path, [0, 10, 61])
    held = smelib.data.load("emnist", root=tmp_path)
    assert np.array_equal(held.images, letters()[:, None])
    assert (held.labels.tolist(), held.classes) == ([0, 10, 61], 62)
    client = smelib.data.client("emnist", 3, root=tmp_path)
    assert client.shape == (1, 28, 28)
    assert float(client.images[0, 0, 3, 20]) == pytest.approx(60 / 255)


def test_emnist_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The archive as it is published, a zip of gzipped IDX files, lies where a download puts it."""
    from torchvision import datasets

    raw = tmp_path / ".cache" / "smelib" / "EMNIST" / "raw"
    raw.mkdir(parents=True)
    with zipfile.ZipFile(raw / "gzip.zip", "w") as file:
        for name, content in emnist_files([4, 5]).items():
            file.writestr(f"gzip/{name}.gz", gzip.compress(content))
    md5 = hashlib.md5((raw / "gzip.zip").read_bytes()).hexdigest()
    monkeypatch.setattr(datasets.EMNIST, "md5", md5)
    monkeypatch.delenv("SMELIB_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(InputError, match="download=True"):
        smelib.data.load("emnist")
    held = smelib.data.load("emnist", download=True)
    assert np.array_equal(held.images, letters(2)[:, None])
    (raw / "gzip.zip").unlink()
    assert smelib.data.load("emnist", download=True) is held
    assert smelib.data.load("emnist") is held, "once it is here it need not be asked for"


def test_a_download_that_fails_gives_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchvision import datasets

    monkeypatch.setattr(datasets.EMNIST, "url", (tmp_path / "nothing.zip").as_uri())
    with pytest.raises(InputError, match=r"emnist.*cannot be downloaded"):
        smelib.data.load("emnist", root=tmp_path, download=True)


@pytest.mark.parametrize("which", ["images-idx3", "labels-idx1"])
@pytest.mark.parametrize("kept", [0, 3, 11, 200])
def test_truncated_emnist_gives_a_sentence(tmp_path: Path, which: str, kept: int) -> None:
    raw = write_emnist(tmp_path, list(range(62)) * 4)
    file = raw / f"emnist-byclass-train-{which}-ubyte"
    file.write_bytes(file.read_bytes()[:kept])
    with pytest.raises(InputError, match="emnist"):
        smelib.data.load("emnist", root=tmp_path)


def test_half_of_emnist_is_none(tmp_path: Path) -> None:
    (write_emnist(tmp_path, [0]) / "emnist-byclass-train-labels-idx1-ubyte").unlink()
    with pytest.raises(InputError, match="Three ways"):
        smelib.data.load("emnist", root=tmp_path)


def test_emnist_of_another_split_is_refused(tmp_path: Path) -> None:
    write_emnist(tmp_path, [0, 62])
    with pytest.raises(InputError, match="0 to 61"):
        smelib.data.load("emnist", root=tmp_path)


def write_cifar(root: Path, monkeypatch: pytest.MonkeyPatch, train: dict) -> Path:
    """The three files of CIFAR-100's archive, with checksums that torchvision will find right."""
    from torchvision import datasets

    folder = root / "cifar-100-python"
    folder.mkdir()
    names = {"fine_label_names": [str(i) for i in range(100)]}
    sums = {}
    for name, content in {"train": train, "test": train, "meta": names}.items():
        (folder / name).write_bytes(pickle.dumps(content))
        sums[name] = hashlib.md5((folder / name).read_bytes()).hexdigest()
    monkeypatch.setattr(datasets.CIFAR100, "train_list", [["train", sums["train"]]])
    monkeypatch.setattr(datasets.CIFAR100, "test_list", [["test", sums["test"]]])
    meta = {**datasets.CIFAR100.meta, "md5": sums["meta"]}
    monkeypatch.setattr(datasets.CIFAR100, "meta", meta)
    return folder


def test_cifar_keeps_its_axes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of the archive is all reds, then all greens, then all blues, each line by line."""
    pixels = np.random.default_rng(0).integers(0, 256, (3, 3072), dtype=np.uint8)
    write_cifar(tmp_path, monkeypatch, {"data": pixels, "fine_labels": [4, 99, 0]})
    held = smelib.data.load("cifar100", root=tmp_path)
    assert np.array_equal(held.images, pixels.reshape(3, 3, 32, 32))
    assert (held.labels.tolist(), held.classes) == ([4, 99, 0], 100)
    assert smelib.data.client("cifar100", 3, root=tmp_path).shape == (3, 32, 32)


def test_a_cifar_archive_that_was_changed_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archive is a pickle, which could run code: torchvision compares its checksum first."""

    class Trap:
        def __reduce__(self) -> tuple:
            return (Path.touch, (tmp_path / "executed",))

    folder = write_cifar(tmp_path, monkeypatch, {"data": np.zeros((1, 3072), np.uint8)})
    (folder / "train").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(InputError, match="cifar100"):
        smelib.data.load("cifar100", root=tmp_path)
    assert not (tmp_path / "executed").exists()


def test_without_a_torchvision_the_npz_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_emnist(tmp_path, [0])
    monkeypatch.setitem(sys.modules, "torchvision", None)
    with pytest.raises(InputError, match=r"torchvision is needed.*emnist\.npz"):
        smelib.data.load("emnist", root=tmp_path)
    pictures = letters()
    np.savez(tmp_path / "emnist.npz", images=pictures, labels=[1, 2, 3])
    assert np.array_equal(smelib.data.load("emnist", root=tmp_path).images, pictures[:, None])
