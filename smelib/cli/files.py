"""The files of a run: weights that are read, and a folder that is written whole."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from smelib import viz
from smelib.errors import InputError
from smelib.types import Params, Reconstruction, Update


def read_weights(path: str, what: str) -> tuple[Params, dict[str, str]]:
    """Weights and notes of a safetensors file; nothing in it is ever executed."""
    if not Path(path).is_file():
        raise InputError(f"--{what} {path!r}: there is no such file.")
    try:
        with safe_open(path, framework="pt") as file:
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return weights, file.metadata() or {}
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(
            f"--{what} {path!r} is not a whole safetensors file ({error}); copy it again."
        ) from None


def write(folder: Path, update: Update, found: Reconstruction, result: dict, notes: dict) -> None:
    """All files of a run, prepared beside the folder and moved in whole."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".smelib-") as scratch:
        room = Path(scratch)
        for name, weights in (("w0", update.before), ("wT", update.after)):
            contiguous = {k: v.contiguous() for k, v in weights.items()}
            save_file(contiguous, room / f"{name}.safetensors", metadata=notes)
        images = {"images": found.images.contiguous(), "labels": found.labels}
        save_file(images, room / "images.safetensors")
        viz.save_grid(found.images, room / "images.png")
        (room / "result.json").write_text(json.dumps(result, indent=2) + "\n")
        folder.mkdir(exist_ok=True)
        for file in sorted(room.iterdir()):
            os.replace(file, folder / file.name)
