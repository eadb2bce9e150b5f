"""Whose weight is which: names that differ, and arrays without names, fitted to a network."""

from __future__ import annotations

import re
from collections import defaultdict

from torch import nn

from smelib.auditing.weights import Weights
from smelib.errors import InputError
from smelib.types import Params

PREFIXES = ("module.", "_orig_mod.", "_module.", "model.", "net.", "network.")
LEAVES = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
ALIASES = {
    **{"kernel": "weight", "gamma": "weight", "scale": "weight", "w": "weight"},
    **{"beta": "bias", "b": "bias", "offset": "bias"},
    **{"moving_mean": "running_mean", "moving_variance": "running_var"},
    **{"moving_var": "running_var", "mean": "running_mean", "var": "running_var"},
}


def fitted(body: nn.Module, given: Weights, what: str) -> tuple[Params, dict[str, str]]:
    """The weights under the network's own names; and, where names differ, which became which."""
    state = body.state_dict()
    wanted = {k for k, _ in body.named_parameters()}
    if isinstance(given, list):
        names = _in_order(state, wanted, [tuple(v.shape) for v in given], what)
        return dict(zip(names, given, strict=True)), {f"array {i}": n for i, n in enumerate(names)}
    if not given:
        raise InputError(f"{what} holds no weights.")
    if wanted <= set(given):
        return given, {}
    if missing := sorted(wanted - set(given)) if 2 * len(wanted & set(given)) > len(wanted) else []:
        raise InputError(
            f"{what} lacks {', '.join(missing[:4])}{' and others' if len(missing) > 4 else ''}, "
            "which the network has; is it another network's?"
        )
    bare = _without_prefixes(given, wanted)
    if bare is not None:
        return {new: given[old] for old, new in bare.items()}, bare
    names = _by_shape(state, wanted, given, what)
    return {new: given[old] for old, new in names.items()}, names


def _without_prefixes(given: Params, wanted: set[str]) -> dict[str, str] | None:
    """Names with what wrappers such as DataParallel or a compiler put in front of them."""
    names = {name: name for name in given}
    for _ in range(4):
        for prefix in PREFIXES:
            if names and all(n.startswith(prefix) for n in names.values()):
                names = {old: n.removeprefix(prefix) for old, n in names.items()}
                if wanted <= set(names.values()):
                    return names
    return None


def _forms(state: Params, wanted: set[str]) -> list[list[str]]:
    """The orders in which people send a network: with all buffers, with none, without counters."""
    everything = list(state)
    floats = [k for k in everything if k in wanted or state[k].is_floating_point()]
    return [everything, floats, [k for k in everything if k in wanted]]


def _in_order(state: Params, wanted: set[str], shapes: list[tuple], what: str) -> list[str]:
    forms = _forms(state, wanted)
    for names in forms:
        if [tuple(state[k].shape) for k in names] == shapes:
            return names
    names = next((f for f in forms if len(f) == len(shapes)), forms[-1])
    for place, (name, shape) in enumerate(zip(names, shapes, strict=False)):
        if tuple(state[name].shape) != shape:
            raise InputError(
                f"{what}: array {place} has shape {shape}, and the network's {name!r} has "
                f"{tuple(state[name].shape)}; arrays must come in the order of "
                "network.state_dict() or network.parameters()."
            )
    raise InputError(
        f"{what} has {len(shapes)} arrays; the network has {len(forms[-1])} parameters, and "
        f"{len(forms[0])} with its buffers."
    )


def _by_shape(state: Params, wanted: set[str], given: Params, what: str) -> dict[str, str]:
    """Partners of the same shape and kind, in order within the network."""
    for names in _forms(state, wanted):
        if [tuple(state[k].shape) for k in names] == [tuple(v.shape) for v in given.values()]:
            return dict(zip(given, names, strict=True))
    theirs, ours = defaultdict(list), defaultdict(list)
    for name in sorted(given, key=_natural):
        theirs[_kind(name), tuple(given[name].shape)].append(name)
    for name, value in state.items():
        ours[_kind(name), tuple(value.shape)].append(name)
    found: dict[str, str] = {}
    for (kind, shape), names in ours.items():
        needed = [n for n in names if n in wanted]
        partners = theirs.pop((kind, shape), []) or theirs.pop(("", shape), [])
        if len(partners) not in (len(names), *([0] if not needed else [])):
            raise InputError(
                f"{what}: the network has {len(names)} of kind {kind or 'weight'!r} and shape "
                f"{shape} ({', '.join(names[:3])}), the file {len(partners)}; "
                "is it another network's?"
            )
        found |= dict(zip(partners, names, strict=False))
    if theirs:
        (kind, shape), names = next(iter(theirs.items()))
        raise InputError(
            f"{what}: {names[0]!r} has shape {shape}, and the network has nothing of that kind "
            "and shape left; is it another network's?"
        )
    return found


def _kind(name: str) -> str:
    """What a name ends in, in PyTorch's words."""
    leaf = re.split(r"[./:]", name)[-1].lower()
    leaf = ALIASES.get(leaf, leaf)
    return leaf if leaf in LEAVES else next((k for k in LEAVES if leaf.endswith(k)), "")


def _natural(name: str) -> list:
    """A key that puts layer 2 before layer 10."""
    return [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in re.findall(r"\d+|\D+", name)]
