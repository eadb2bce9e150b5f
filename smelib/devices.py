"""The machine: which device to use, how many threads, and how its memory is kept."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from pathlib import Path

import torch

from smelib.errors import InputError


def pick_device(name: str = "auto") -> torch.device:
    """CUDA, then MPS, then CPU; or the device you name."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
        name = "mps" if name == "cpu" and torch.backends.mps.is_available() else name
    if not isinstance(name, (str, torch.device)):
        raise InputError(f"the device is {name!r}; name one, like 'auto', 'cpu' or 'cuda'.")
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"the device {name!r} cannot be used ({reason}).") from None


def cores() -> int:
    """How many cores this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def free_threads(cores: int, load: float) -> int:
    """How many threads a busy machine has room for: its cores less its load, and at least one.

    A step's threads wait for each other. Where one of them has to share its core, all of them wait
    for its next turn, hundreds of times a second: one thread is then many times as fast as two.
    """
    return max(1, min(cores, round(cores - load)))


def use_free_threads() -> None:
    """Compute with as many threads as the machine has free; for a process that is ours alone.

    What OMP_NUM_THREADS or MKL_NUM_THREADS say is left as it is.
    """
    if {"OMP_NUM_THREADS", "MKL_NUM_THREADS"} & set(os.environ) or not hasattr(os, "getloadavg"):
        return
    try:
        load = os.getloadavg()[0]
    except OSError:
        return
    torch.set_num_threads(min(torch.get_num_threads(), free_threads(cores(), load)))


@cache
def memory() -> int:
    """The bytes of memory that this process may hope for; 0 where the system does not say."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):  # a container's
        try:
            found = min(found, int((Path("/sys/fs/cgroup") / limit).read_text()))
        except (OSError, ValueError):
            continue
    return found


def afford(size: float, what: str) -> None:
    """Refuse what takes more memory than the machine has, before any of it is taken."""
    if 0 < memory() < size:
        raise InputError(
            f"{what} would take at least {size / 2**30:,.0f} GB of memory, and this machine has "
            f"{memory() / 2**30:.0f}; ask for less."
        )


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
