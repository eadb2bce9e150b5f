"""The machine: which device to use, and how its memory is kept."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

import torch

from smelib.errors import InputError


def pick_device(name: str = "auto") -> torch.device:
    """CUDA, then MPS, then CPU; or the device you name."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
        name = "mps" if name == "cpu" and torch.backends.mps.is_available() else name
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"the device {name!r} cannot be used ({reason}).") from None


@cache
def keep_freed_memory() -> None:
    """Ask glibc to keep what is freed for the next step; for a process that is ours alone.

    By default it returns the megabytes of every step's weight gradients to the system and takes
    them back page by page: a tenth to a fifth of a step on the CPU. Elsewhere it does nothing.
    """
    if not sys.platform.startswith("linux"):
        return
    trim_threshold, top_pad, map_threshold = -1, -2, -3
    try:
        tune = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # not glibc
        return
    tune(map_threshold, 2**25)  # the largest it takes; above, each tensor is its own mapping
    tune(trim_threshold, 2**31 - 1)
    tune(top_pad, 2**26)
