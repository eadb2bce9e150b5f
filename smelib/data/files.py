"""Data sets in files of your own: arrays in a `.npz`, and FEMNIST in LEAF's JSON files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from smelib.data.clients import Dataset
from smelib.data.kinds import Kind
from smelib.errors import InputError


def find_npz(kind: Kind, root: Path) -> tuple[Path, ...]:
    """The data set's `.npz` in a folder; a file must be that very one."""
    file = root if root.is_file() else root / f"{kind.name}.npz"
    if file.name != f"{kind.name}.npz":
        raise InputError(
            f"the data root is the file {file.name}, which is not {kind.name}.npz; "
            f"name {kind.name}.npz itself, or the folder that holds {kind.name!r}."
        )
    return (file,) if file.is_file() else ()


def read_npz(kind: Kind, files: Sequence[Path]) -> Dataset:
    """A data set from arrays; object arrays are refused, since reading them would run code."""
    (path,) = files
    try:
        with np.load(path, allow_pickle=False) as file:
            wanted = ("images", "labels", "writers")
            arrays = {k: np.asarray(file[k]) for k in wanted if k in file}
    except Exception as error:  # NumPy has no error of its own for a damaged file
        raise InputError(
            f"{path.name} cannot be read as plain arrays ({error}); it must be a .npz of numbers, "
            "without Python objects, which are never unpickled."
        ) from None
    if "images" not in arrays or "labels" not in arrays:
        raise InputError(f"{path.name} must hold the arrays 'images' and 'labels'.")
    return kind.dataset(**arrays, source=path.name)


def find_leaf(root: Path) -> tuple[Path, ...]:
    """LEAF's JSON files, each image in one of them.

    LEAF's scripts make `train/` and `test/` out of `all_data/`, so that is read alone if present.
    """
    for inside in ("", "data", "femnist", "femnist/data"):
        everything, train, test = (
            sorted((root / inside / part).glob("*.json")) for part in ("all_data", "train", "test")
        )
        if found := everything or train + test:
            return tuple(found)
    return tuple(sorted(root.glob("*.json")))


def read_leaf(kind: Kind, files: Sequence[Path]) -> Dataset:
    """FEMNIST in LEAF's own JSON files; an image that an earlier file holds too is left out."""
    seen: set[int] = set()
    parts = []
    for file in files:
        held = _leaf_file(kind, file)
        columns = zip(held.writers, held.labels, held.images, strict=True)
        keys = [hash((writer, label, image.tobytes())) for writer, label, image in columns]
        new = np.array([key not in seen for key in keys])
        seen.update(keys)
        parts.append((held.images[new, 0], held.labels[new], held.writers[new]))
    columns = (np.concatenate(column) for column in zip(*parts, strict=True))
    return kind.dataset(*columns, source="LEAF's files")


def _leaf_file(kind: Kind, file: Path) -> Dataset:
    """One file: for each writer `x`, a list of 784 floats in [0, 1] per image, and labels `y`."""
    images, labels, writers = [np.zeros((0, 28, 28), np.uint8)], [np.zeros(0, int)], []
    try:
        for writer, held in json.loads(file.read_bytes())["user_data"].items():
            with np.errstate(over="ignore"):  # too large is not in [0, 1] either
                pixels, numbers = np.array(held["x"], dtype=np.float32), np.array(held["y"])
            if len(numbers) == len(pixels) == 0:
                continue
            if pixels.shape != (len(numbers), 28 * 28):
                raise ValueError(f"{writer}: {len(numbers)} labels, images {pixels.shape}")
            if not (pixels.min() >= 0 and pixels.max() <= 1):
                raise ValueError(f"{writer}: pixels outside [0, 1]")
            images.append((255 * pixels).round().astype(np.uint8).reshape(-1, 28, 28))
            labels.append(numbers)
            writers += [writer] * len(numbers)
        columns = np.concatenate(images), np.concatenate(labels), np.array(writers)
    except Exception as error:  # there is no end to what a foreign file may hold
        raise InputError(
            f"{file.name} is not one of the FEMNIST files that LEAF's scripts write "
            f"({type(error).__name__}: {error}); give the folder with those alone."
        ) from None
    return kind.dataset(*columns, source=file.name)
