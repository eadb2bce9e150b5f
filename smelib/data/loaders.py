"""Data sets by name: found, read once, and kept in memory. None of our files is unpickled."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path

from smelib.data import embedded, files, kinds, vision
from smelib.data.clients import Dataset
from smelib.data.kinds import Kind
from smelib.errors import InputError, nearest


def data_root(root: str | os.PathLike | None = None) -> Path | None:
    """The folder or file to read data from, in full: `root`, else what SMELIB_DATA names."""
    given = root or os.environ.get("SMELIB_DATA")
    if not given:
        return None
    try:
        return Path(given).expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError, TypeError):
        raise InputError(
            f"the data root {str(given)!r} does not exist; check root= or SMELIB_DATA."
        ) from None


def _femnist(root: Path | None, download: bool) -> Dataset:
    if root is not None:
        if found := files.find_npz(kinds.FEMNIST, root):
            return _read(files.read_npz, kinds.FEMNIST, found)
        if found := files.find_leaf(root):
            return _read(files.read_leaf, kinds.FEMNIST, found)
    raise _missing("femnist", "let root= name the folder of JSON files that LEAF's scripts write")


def _torchvision(kind: Kind) -> Callable[[Path | None, bool], Dataset]:
    def load(root: Path | None, download: bool) -> Dataset:
        if root is not None and (found := files.find_npz(kind, root)):
            return _read(files.read_npz, kind, found)
        folder = root or Path("~/.cache/smelib").expanduser()
        if download and not vision.find_stored(kind, folder):
            vision.fetch(kind, folder)
        if found := vision.find_stored(kind, folder):
            return _read(vision.read_stored, kind, found)
        raise _missing(kind.name, f"let torchvision fetch it once, {vision.how(kind)}")

    return load


def _missing(name: str, third: str) -> InputError:
    return InputError(
        f"the data set {name!r} is not here. Three ways to get it: put {name}.npz (arrays images "
        f"and labels) into a folder and name that folder with root=, --data-root or SMELIB_DATA; "
        f"{third}; or use the built-in 'mnist' or 'photos'."
    )


Reader = Callable[[Kind, tuple[Path, ...]], Dataset]


def _read(reader: Reader, kind: Kind, found: tuple[Path, ...]) -> Dataset:
    """What the files hold, read again only if one of them changed."""
    stats = ((file, file.stat()) for file in found)
    return _kept(reader, kind, tuple((f, s.st_size, s.st_mtime_ns) for f, s in stats))


@lru_cache(maxsize=4)
def _kept(reader: Reader, kind: Kind, stamps: tuple[tuple[Path, int, int], ...]) -> Dataset:
    return reader(kind, tuple(file for file, _, _ in stamps))


@cache
def _embedded(read: Callable[[], Dataset]) -> Dataset:
    return read()


LOADERS: dict[str, Callable[[Path | None, bool], Dataset]] = {
    "mnist": lambda root, download: _embedded(embedded.mnist),
    "photos": lambda root, download: _embedded(embedded.photos),
    "femnist": _femnist,
    "emnist": _torchvision(kinds.EMNIST),
    "cifar100": _torchvision(kinds.CIFAR100),
}


def load(name: str, *, root: str | os.PathLike | None = None, download: bool = False) -> Dataset:
    """A whole data set by name, kept in memory after the first call."""
    if not isinstance(name, str):
        raise InputError(f"{name!r} is not the name of a data set: {', '.join(LOADERS)}.")
    if name not in LOADERS:
        raise nearest("data set", name, list(LOADERS))
    inside = name in ("mnist", "photos")
    return LOADERS[name](None if inside else data_root(root), download)
