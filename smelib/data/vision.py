"""EMNIST and CIFAR-100 through torchvision, which downloads them and reads their archives."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from smelib.data.clients import Dataset
from smelib.data.kinds import Kind
from smelib.errors import InputError

STORED = {
    "emnist": (
        "EMNIST/raw/emnist-byclass-train-images-idx3-ubyte",
        "EMNIST/raw/emnist-byclass-train-labels-idx1-ubyte",
    ),
    "cifar100": ("cifar-100-python/train", "cifar-100-python/meta"),
}


def find_stored(kind: Kind, folder: Path) -> tuple[Path, ...]:
    """The files that torchvision left in `folder`; none unless all are there."""
    files = tuple(folder / name for name in STORED[kind.name])
    return files if all(file.is_file() for file in files) else ()


def fetch(kind: Kind, folder: Path) -> None:
    """Download the data set into `folder`."""
    _open(kind, folder, download=True)


def how(kind: Kind) -> str:
    """The way to a download, in Python and in a terminal."""
    return f"with download=True or `smelib attack --dataset {kind.name} --download`"


def read_stored(kind: Kind, files: Sequence[Path]) -> Dataset:
    """The data set out of the files that `find_stored` found."""
    depth = len(Path(STORED[kind.name][0]).parts)
    held = _open(kind, files[0].parents[depth - 1], download=False)
    images, labels = np.asarray(held.data), np.asarray(held.targets)
    if kind.name == "emnist" and images.ndim == 3:
        # EMNIST stores its pictures transposed, white on black.
        images = 255 - images.transpose(0, 2, 1)
    return kind.dataset(images, labels, source=f"torchvision's {kind.name!r}")


def _open(kind: Kind, folder: Path, *, download: bool) -> Any:
    # Imported here only: not every torch has a torchvision that works.
    try:
        from torchvision import datasets
    except (ImportError, RuntimeError) as error:
        raise InputError(
            f"torchvision is needed for {kind.name!r} and cannot be imported ({error}); install "
            f"the torchvision that belongs to your torch, or give {kind.name}.npz."
        ) from None
    try:
        if kind.name == "emnist":
            return datasets.EMNIST(folder, split="byclass", train=True, download=download)
        # Its archive is a pickle, which torchvision opens only if the published checksum fits.
        return datasets.CIFAR100(folder, train=True, download=download)
    except Exception as error:  # torchvision has no error of its own for a damaged archive
        raise InputError(
            f"the data set {kind.name!r} cannot be {'downloaded' if download else 'read'} "
            f"({type(error).__name__}: {error}); remove what there is of it in {str(folder)!r} and "
            f"let torchvision fetch it again, {how(kind)}."
        ) from None
