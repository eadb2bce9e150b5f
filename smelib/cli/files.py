"""The files of a run: a folder that is tried first, and written whole."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file

from smelib import viz
from smelib.errors import InputError
from smelib.types import Reconstruction, Update

FILES = ("w0.safetensors", "wT.safetensors", "images.safetensors", "images.png", "result.json")
ELSEWHERE = "name another folder, or free some space."


class NotWrittenError(InputError):
    """What was found could not be written; `result` can still be said."""

    def __init__(self, said: str, result: dict) -> None:
        super().__init__(said)
        self.result = result


def room_for(out: str | None, size: int = 2**16) -> None:
    """Refuse a folder that could not be written, before there is something to lose.

    A file is tried where the result would go, `size` bytes of space are asked for, and nothing
    stays behind.
    """
    if out is None:
        return
    folder = Path(out)
    try:
        place = _nearest(folder)
        if not place.is_dir():
            what = f"--out {out!r}" if place == folder.absolute() else repr(str(place))
            raise InputError(f"{what} is a file; name a folder.")
        if blocked := [name for name in FILES if (folder / name).is_dir()]:
            raise InputError(f"--out {out!r} has a folder called {blocked[0]}; name another.")
        with _scratch(place) as scratch:
            room = scratch / "new" / folder.absolute().relative_to(place)
            room.mkdir(parents=True)
            (room / FILES[0]).write_bytes(bytes(2**12))
        free = shutil.disk_usage(place).free
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"--out {out!r} cannot be written ({_reason(error)}); {ELSEWHERE}"
        ) from None
    if free < size:
        raise InputError(
            f"--out {out!r} needs {size / 2**20:.1f} MB and {free / 2**20:.1f} are free; "
            + ELSEWHERE
        )


def _nearest(folder: Path) -> Path:
    """The folder itself if it is there, or else the nearest one above that is."""
    folder = folder.absolute()
    return next(p for p in (folder, *folder.parents) if os.path.lexists(p))


@contextmanager
def _scratch(place: Path) -> Iterator[Path]:
    """A folder for the time being."""
    with tempfile.TemporaryDirectory(dir=place, prefix=".smelib-") as name:
        yield Path(name)


def _hear_no_ctrl_c() -> None:
    """Until the command ends: what is on its way to the disk gets there, and is said."""
    with suppress(ValueError):  # not the main thread, which alone hears signals
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def write(folder: Path, update: Update, found: Reconstruction, result: dict, notes: dict) -> None:
    """All files of a run, prepared in a scratch folder and moved whole; or none of them."""
    try:
        place = _nearest(folder)
        with _scratch(place) as scratch:
            inside = folder.absolute().relative_to(place)
            room = scratch / "new" / inside
            room.mkdir(parents=True)
            for name, weights in (("w0", update.before), ("wT", update.after)):
                contiguous = {k: v.contiguous() for k, v in weights.items()}
                save_file(contiguous, room / f"{name}.safetensors", metadata=notes)
            images = {"images": found.images.contiguous(), "labels": found.labels}
            save_file(images, room / "images.safetensors")
            viz.save_grid(found.images, room / "images.png")
            (room / "result.json").write_text(json.dumps(result, indent=2) + "\n")
            _hear_no_ctrl_c()
            for made in sorted((scratch / "new").iterdir()):  # the files, or the folder around them
                os.replace(made, place / made.name)
    except (OSError, SafetensorError) as error:
        said = f"--out {str(folder)!r} could not be written ({_reason(error)}) and is as it was"
        raise NotWrittenError(f"{said}; {ELSEWHERE}", result) from None
