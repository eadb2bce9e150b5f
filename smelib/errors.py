"""Bad input as a sentence: what was wrong, and what to do."""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

Function = TypeVar("Function", bound=Callable)

WAYS = {
    "Network": "smelib.models.wrap(module, shape, classes) makes one of your module",
    "Update": "smelib.local_update(model, client, protocol) gives one, and "
    "smelib.Update(before, after, samples) makes one of two state_dicts",
    "Client": "smelib.Client.of(images, labels) makes one of your data, and "
    "smelib.data.client('mnist') draws one",
    "Protocol": "smelib.Protocol(epochs, batch_size, lr) makes one",
    "Recipe": "smelib.solver.Recipe({'images': 1.0}) makes one",
    "Options": "smelib.solver.Options(steps=200) makes one",
    "DLFASettings": "smelib.presets.DLFA_SETTINGS has those of the authors",
    "Params": "a dictionary of tensors by name, like module.state_dict() or network.params()",
    "labels": "give one whole number per image; smelib.labels.recover(model, update) reads them "
    "from the update",
}
"""How to get what an argument should have been, by its type."""


FUNCTIONS = {
    "Defence": "update, generator",
    "Make": "model, update, labels",
    "Schedule": "step, steps",
}
"""What a function takes that is an argument itself."""


class InputError(ValueError):
    """Something the caller gave cannot be used; the message says what, and what to do."""


def nearest(kind: str, name: object, valid: Iterable[str]) -> InputError:
    """The error for an unknown name, with the closest valid ones first."""
    known = list(valid)
    close = get_close_matches(str(name), known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(repr(c) for c in close)}? " if close else ""
    said = ", ".join(known) if len(known) <= 50 else f"{len(known)}, like {', '.join(known[::20])}"
    return InputError(f"there is no {kind} {name!r}: {hint}choose one of {said}.")


def first_line(error: BaseException) -> str:
    """What somebody else's exception says, short enough for a sentence."""
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    return text if len(text) < 160 else text[:157] + "..."


def whole(value: object, what: str, least: int = 1) -> int:
    """`value` as an int of at least `least`: NumPy's integers too, but no floats and no bools."""
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise InputError(f"{what} is {value!r}; it must be a whole number of at least {least}.")
    return number


def finite(value: object, what: str) -> None:
    """Refuse what is not a finite number: words, NaN, and more than one of them."""
    try:
        words = isinstance(value, (str, bytes, bool))
        number = math.nan if words else float(value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{what} is {_brief(value)}; it must be a finite number.")


def same_layout(a: dict[str, Tensor], b: dict[str, Tensor], a_name: str, b_name: str) -> None:
    """Refuse two sets of weights that differ in names or shapes."""
    for weights, name in ((a, a_name), (b, b_name)):
        _params(weights, f"the weights {name!r}")
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


def same_shape(images: Tensor, originals: Tensor, axes: str = "") -> None:
    """Refuse pictures that cannot be compared; `axes` are those that both must have."""
    for what, given in (("image", images), ("original", originals)):
        if not _is(given, "Tensor"):
            raise InputError(f"the {what} is {_brief(given)}; give a tensor: torch.as_tensor(…).")
    wanted = images.ndim if not axes else axes.count(",") + 1
    if images.shape != originals.shape or images.ndim != wanted or 0 in images.shape:
        must = (
            f"both must be {axes}, with something in them"
            if axes
            else "both must have the same shape"
        )
        raise InputError(
            f"the images are {tuple(images.shape)} and the originals {tuple(originals.shape)}; "
            f"{must}."
        )


def checked(function: Function) -> Function:
    """A function that answers wrong arguments with a sentence that names the way to right ones.

    What an argument must be is what its annotation says: `WAYS` has the types that are known. They
    are known by name, so that this room needs none of those that define them.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def asked(*args: object, **options: object) -> object:
        try:
            given = signature.bind(*args, **options).arguments
        except TypeError as error:
            absent = [k for k, p in signature.parameters.items() if f"'{k}'" in str(error)]
            kind = signature.parameters[absent[0]].annotation if absent else ""
            way = WAYS.get(absent[0] if absent and absent[0] == "labels" else kind.split(" | ")[0])
            said = f"{function.__name__}() {error}" + (f"; {way}" if way else "")
            raise InputError(f"{said}.") from None
        for name, value in given.items():
            parameter = signature.parameters[name]
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD:
                _look(name, value, str(parameter.annotation))
        _together(given)
        return function(*args, **options)

    return asked


def check_fields(record: object) -> None:
    """Refuse a dataclass's numbers, switches and functions that are none; whole ones do it."""
    for field in fields(record):
        if field.type != "int":
            _look(field.name, getattr(record, field.name), str(field.type))


def _look(name: str, value: object, annotation: str) -> None:
    """Refuse a value that is not what the annotation says, as far as it is known."""
    kind, *others = annotation.split(" | ")
    if value is None and "None" in others:
        return
    nouns = {"lr": "the learning rate lr=", **{k.lower(): f"the {k.lower()}" for k in WAYS}}
    what = {**nouns, "model": "the model"}.get(name, f"{name}=")
    if kind.startswith("Sequence["):
        if not isinstance(value, (list, tuple)):
            raise InputError(f"{what} is {_brief(value)}; give a list.")
        for i, part in enumerate(value):
            _look(f"{name}[{i}]", part, kind[len("Sequence[") : -1])
    elif name == "labels" and kind == "Tensor":
        _labels(value)
    elif kind == "float":
        finite(value, what)
    elif kind == "int" and name != "seed":  # which says itself what it may be
        whole(value, what, {"rounds": 0, "classes": 2}.get(name, 1))
    elif kind == "bool" and not type(value).__name__.startswith("bool"):
        raise InputError(f"{what} is {_brief(value)}; write True or False.")
    elif kind == "Params":
        _params(value, what)
    elif kind in FUNCTIONS:
        _function(value, what, FUNCTIONS[kind])
    elif kind in WAYS:
        if not _is(value, kind):
            raise InputError(f"{what} is {_brief(value)} and not {_a(kind)}; {WAYS[kind]}.")
        if kind == "Client":
            _client(value, what)


def _together(given: Mapping[str, object]) -> None:
    """Refuse a client's labels and weights that are not the model's."""
    model, client, before = (given.get(k) for k in ("model", "client", "before"))
    if client is not None and len(client) and not client.labels.is_floating_point():
        highest = int(client.labels.max())
        if highest >= model.classes:
            raise InputError(
                f"the client has the label {highest}, and the network has classes "
                f"0..{model.classes - 1}; build it for client.classes."
            )
    if before is not None and (missing := sorted(model.trainable - set(before))):
        raise InputError(
            f"before= lacks the network's weight {missing[0]!r}; give {WAYS['Params']}."
        )


def _function(value: object, what: str, takes: str) -> None:
    try:
        fits = callable(value)
        if fits:
            inspect.signature(value).bind(*takes.split(", "))
    except TypeError:
        fits = False
    except ValueError:  # a built-in function that does not say what it takes
        return
    if not fits:
        raise InputError(f"{what} is {_brief(value)}; give a function of ({takes}).")


def _is(value: object, kind: str) -> bool:
    return any(c.__name__ == kind for c in type(value).__mro__)


def _brief(value: object) -> str:
    """A value as a sentence says it: itself if it is short, or else what it is."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return repr(value) if len(repr(value)) <= 40 else f"a long {type(value).__name__}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    bare = "bare " if _is(value, "Module") else ""
    return _a(bare + type(value).__name__)


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'AEIOUaeio' else 'a'} {noun}"


def _labels(value: object) -> None:
    import torch

    try:
        if value is None:
            raise TypeError
        kind = torch.as_tensor(value).dtype
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"labels= is {_brief(value)}; {WAYS['labels']}.") from None
    if kind == torch.bool or kind.is_complex:
        raise InputError(f"labels= holds {kind}; {WAYS['labels']}.")


def _params(value: object, what: str) -> None:
    if not isinstance(value, Mapping):
        raise InputError(f"{what} is {_brief(value)}; give {WAYS['Params']}.")
    for name, part in value.items():
        if not isinstance(name, str) or not _is(part, "Tensor"):
            made = "; torch.from_numpy makes a tensor of an array" if _is(part, "ndarray") else ""
            raise InputError(f"{what}: {name!r} is {_brief(part)}; give {WAYS['Params']}{made}.")


def _client(value: object, what: str) -> None:
    images, labels = getattr(value, "images", None), getattr(value, "labels", None)
    good = _is(images, "Tensor") and _is(labels, "Tensor") and images.ndim == 4
    if not good or len(images) != len(labels):
        raise InputError(
            f"{what} holds {_brief(images)} and {_brief(labels)} that are not N images "
            f"[N, C, H, W] and N labels; smelib.Client.of(images, labels) checks them."
        )
