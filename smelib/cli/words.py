"""What somebody typed, as values; or a sentence that says how to write it."""

from __future__ import annotations

import argparse
import math

import torch

from smelib import attacks, defences, models
from smelib.cli.files import room_for
from smelib.errors import InputError, nearest


def number(text: str) -> float:
    """A finite number."""
    value = float(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text} is not a number")
    return value


def seed(text: str) -> int:
    """A seed, as `smelib.seeds` takes it."""
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not 0 <= value < 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 to 2^63 - 1")
    return value


def shape(text: str) -> tuple[int, int, int]:
    """An image's channels, height and width."""
    try:
        c, h, w = (int(part) for part in text.lower().split("x"))
    except ValueError:
        raise InputError(f"--dataset-shape {text!r}: write it like 1x28x28 (CxHxW).") from None
    if min(c, h, w) < 1:
        raise InputError(f"--dataset-shape {text!r}: every side must be at least 1.")
    if models.channels_last((c, h, w)):
        raise InputError(
            f"--dataset-shape {text!r}: the channels come first (CxHxW); did you mean {w}x{c}x{h}?"
        )
    return c, h, w


DEFENCES = {
    "clip": defences.clip,
    "noise": defences.noise,
    "topk": defences.top_k,
    "randomk": defences.random_k,
    "quantise": defences.quantise,
    "sign": defences.sign,
}


def defence(text: str) -> defences.Defence:
    """What the client does before it sends, like clip:0.1,noise:0.001: one after the other."""
    steps = []
    for word in text.split(",") if text != "none" else []:
        name, colon, value = (part.strip() for part in word.partition(":"))
        if name not in DEFENCES:
            raise nearest("defence", name, [*DEFENCES, "none"])
        if bool(colon) == (name == "sign"):
            how = "sign has no number" if colon else f"write a number after it, like {name}:0.1"
            raise InputError(f"--defence {word}: {how}.")
        try:
            given = [int(value) if name == "quantise" else float(value)] if colon else []
        except ValueError:
            kind = "whole number" if name == "quantise" else "number"
            raise InputError(f"--defence {word}: {value!r} is not a {kind}.") from None
        try:
            steps.append(DEFENCES[name](*given))
        except InputError as error:
            raise InputError(f"--defence {word}: {error}") from None
    return defences.compose(*steps)


def known_names(args: argparse.Namespace) -> None:
    """Refuse a method, network or folder that cannot be meant."""
    if args.method not in attacks.ATTACKS:
        raise nearest("method", args.method, list(attacks.ATTACKS))
    if args.network not in models.NETWORKS:
        raise nearest("network", args.network, list(models.NETWORKS))
    room_for(args.out)


def numbers(text: str) -> tuple[float, ...]:
    """A list of finite numbers, like 0.49,0.48,0.45."""
    try:
        return tuple(number(part) for part in text.split(","))
    except ValueError:
        said = f"{text!r} is no list of numbers like 0.5,0.5,0.5"
        raise argparse.ArgumentTypeError(said) from None


def typed_labels(text: str) -> torch.Tensor | None:
    """A list of labels; none where they are to be recovered."""
    if text == "recovered":
        return None
    try:
        return torch.tensor([int(part) for part in text.split(",")])
    except (ValueError, RuntimeError, OverflowError):
        raise InputError(f"--labels {text!r}: write 'recovered' or a list like 3,1,4.") from None
