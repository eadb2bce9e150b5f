"""Weights in the forms in which people keep them; nothing in a file is ever executed."""

from __future__ import annotations

import pickle
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from smelib.errors import InputError, first_line
from smelib.types import Params

Weights: TypeAlias = "Params | list[Tensor]"
"""Weights by name, as `Params`, or a list of tensors in the order of the network."""

KINDS = ".safetensors, .npz, .pt or .pth"
NESTED = ("state_dict", "model_state_dict", "model", "weights", "params")


def weights(given: object, what: str) -> Weights:
    """Weights of a module, a state_dict, arrays by name or in order, or a file of any of these."""
    if isinstance(given, nn.Module):
        given = given.state_dict()
    if isinstance(given, str | Path):
        return read(given, what)[0]
    if isinstance(given, Mapping):
        given = _inside(given)
    if isinstance(given, Mapping):
        return {str(name): _tensor(value, what, name) for name, value in given.items()}
    if isinstance(given, Sequence) and not isinstance(given, bytes):
        return [_tensor(value, what, place) for place, value in enumerate(given)]
    raise InputError(
        f"{what} is a {type(given).__name__}; give a state_dict, a list of arrays in the network's "
        f"order, or the path of a {KINDS} file."
    )


def read(path: str | Path, what: str) -> tuple[Weights, dict[str, str]]:
    """The weights and notes of a file."""
    file = Path(path)
    if not file.is_file():
        kind = "is a folder" if file.is_dir() else "there is no such file"
        raise InputError(f"{what} {str(path)!r}: {kind}.")
    kind = file.suffix.lower()
    if kind == ".safetensors":
        return _safetensors(file, what)
    if kind == ".npz":
        return _npz(file, what), {}
    if kind in (".pt", ".pth", ".bin", ".ckpt"):
        return _torch(file, what), {}
    raise InputError(f"{what} {str(path)!r}: weights are read from {KINDS} files.")


def _tensor(value: object, what: str, name: object) -> Tensor:
    if isinstance(value, Tensor):
        return value.detach()
    try:
        array = np.asarray(value)
    except ValueError:  # rows of several lengths
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "fiub":
        raise InputError(f"{what} holds {type(value).__name__} at {name!r}, which is no weight.")
    return torch.from_numpy(np.array(array))  # a copy: an array may be read-only


def _safetensors(file: Path, what: str) -> tuple[Params, dict[str, str]]:
    try:
        with safe_open(file, framework="pt") as opened:
            found = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
            return found, opened.metadata() or {}
    except (SafetensorError, OSError, ValueError, MemoryError, RuntimeError) as error:
        raise InputError(
            f"{what} {str(file)!r} is not a whole safetensors file ({first_line(error)}); "
            "copy it again."
        ) from None


def _npz(file: Path, what: str) -> Weights:
    try:
        with np.load(file, allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
    except Exception as error:  # a damaged archive leads zipfile, zlib and numpy to many of them
        if "pickle" in str(error):
            said = "holds Python objects, which are never unpickled; save plain arrays"
        else:
            said = f"is not a whole .npz file ({first_line(error)}); copy it again"
        raise InputError(f"{what} {str(file)!r} {said}.") from None
    numbered = {int(m[1]): a for n, a in arrays.items() if (m := re.fullmatch(r"arr_(\d+)", n))}
    if len(numbered) == len(arrays):  # numpy.savez(file, *arrays): an order, and no names
        return [_tensor(numbered[i], what, i) for i in sorted(numbered)]
    return {name: _tensor(array, what, name) for name, array in arrays.items()}


def _torch(file: Path, what: str) -> Weights:
    try:
        held = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise InputError(
            f"{what} {str(file)!r} holds more than tensors, and nothing else is ever unpickled; "
            "save model.state_dict() alone."
        ) from None
    except Exception as error:  # torch.load raises whatever a damaged archive leads it to
        raise InputError(
            f"{what} {str(file)!r} is not a whole PyTorch file ({first_line(error)}); "
            "copy it again."
        ) from None
    return weights(held, f"{what} {str(file)!r}")


def _inside(held: Mapping) -> object:
    """The weights in a checkpoint that has more beside them."""
    inner = (held.get(name) for name in NESTED)
    return next((found for found in inner if isinstance(found, Mapping | list | tuple)), held)
