"""Bad input as a sentence: what was wrong, and what to do."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


class InputError(ValueError):
    """Something the caller gave cannot be used; the message says what, and what to do."""


def nearest(kind: str, name: object, valid: Iterable[str]) -> InputError:
    """The error for an unknown name, with the closest valid ones first."""
    known = list(valid)
    close = get_close_matches(str(name), known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(repr(c) for c in close)}? " if close else ""
    return InputError(f"there is no {kind} {name!r}: {hint}choose one of {', '.join(known)}.")


def whole(value: object, what: str, least: int = 1) -> int:
    """`value` as an int of at least `least`: NumPy's integers too, but no floats and no bools."""
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise InputError(f"{what} is {value!r}; it must be a whole number of at least {least}.")
    return number


def same_layout(a: dict[str, Tensor], b: dict[str, Tensor], a_name: str, b_name: str) -> None:
    """Refuse two sets of weights that differ in names or shapes."""
    if missing := sorted(set(a) ^ set(b)):
        raise InputError(
            f"the weights {a_name!r} and {b_name!r} do not name the same parameters: "
            f"{', '.join(missing[:4])}{' and others' if len(missing) > 4 else ''} "
            "stand in one of them only; are both from the same network?"
        )
    for name in a:
        if a[name].shape != b[name].shape:
            raise InputError(
                f"{name!r} has shape {tuple(a[name].shape)} in {a_name!r} but "
                f"{tuple(b[name].shape)} in {b_name!r}; are both from the same network?"
            )
