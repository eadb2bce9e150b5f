"""What somebody typed, as values; or a sentence that says how to write it."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from smelib import attacks, models
from smelib.errors import InputError, nearest


def number(text: str) -> float:
    """A finite number."""
    value = float(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text} is not a number")
    return value


def shape(text: str) -> tuple[int, int, int]:
    """An image's channels, height and width."""
    try:
        c, h, w = (int(part) for part in text.lower().split("x"))
    except ValueError:
        raise InputError(f"--dataset-shape {text!r}: write it like 1x28x28 (CxHxW).") from None
    if min(c, h, w) < 1:
        raise InputError(f"--dataset-shape {text!r}: every side must be at least 1.")
    return c, h, w


def known_names(args: argparse.Namespace) -> None:
    """Refuse a method, network or folder that cannot be meant."""
    if args.method not in attacks.ATTACKS:
        raise nearest("method", args.method, list(attacks.ATTACKS))
    if args.network not in models.NETWORKS:
        raise nearest("network", args.network, list(models.NETWORKS))
    if args.out and Path(args.out).exists() and not Path(args.out).is_dir():
        raise InputError(f"--out {args.out!r} is a file; name a folder.")
