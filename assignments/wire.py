"""Arguments and answers as data: a tree in JSON, then the arrays' bytes. Nothing here runs code.

The grader writes a submission's arguments with `encode` and reads its answers with `decode`; both
sides of the sandbox speak this and nothing else. What cannot be said becomes an `Opaque`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from smelib import theory
from smelib.checks.cases import Bowl
from smelib.models import Network, wrap
from smelib.types import Update

DEEPEST = 20
KINDS = ("float64", "float32", "int64", "int32", "bool", "uint8", "float16", "int16", "int8")
LAYERS: dict[str, tuple[type, Callable[[Any], dict]]] = {
    "conv": (
        nn.Conv2d,
        lambda m: {
            "in_channels": m.in_channels,
            "out_channels": m.out_channels,
            "kernel_size": m.kernel_size[0],
            "padding": m.padding[0],
        },
    ),
    "linear": (
        nn.Linear,
        lambda m: {"in_features": m.in_features, "out_features": m.out_features},
    ),
    "sigmoid": (nn.Sigmoid, lambda m: {}),
    "relu": (nn.ReLU, lambda m: {}),
    "flatten": (nn.Flatten, lambda m: {}),
}


class Unreadable(ValueError):  # noqa: N818
    """What came back is not in the form that was agreed on."""


@dataclass(frozen=True)
class Opaque:
    """Something that is not data: only the name of its type is told."""

    type: str


@dataclass(frozen=True)
class Slope:
    """The gradient of one of `smelib.theory`'s landscapes: a function that can be sent."""

    name: str
    options: dict[str, Any]

    def __call__(self, w: np.ndarray) -> np.ndarray:
        """The gradient at a point."""
        return getattr(theory, self.name)(**self.options).gradient(w)


def _layers(network: Network) -> list[list]:
    found = []
    for layer in network.body:
        name = next(n for n, (cls, _) in LAYERS.items() if type(layer) is cls)
        found.append([name, LAYERS[name][1](layer)])
    return found


def _network(layers: list, weights: dict[str, Tensor], rest: dict[str, Any]) -> Network:
    body = nn.Sequential(
        *(nn.utils.skip_init(LAYERS[n][0], **o) if o else LAYERS[n][0]() for n, o in layers)
    )
    body.to(next(iter(weights.values())).dtype).load_state_dict(weights)
    return wrap(body, tuple(rest["shape"]), rest["classes"], mean=rest["mean"], std=rest["std"])


class _Writer:
    """Builds the tree, and collects the bytes of its arrays."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.size = 0

    def array(self, kind: str, value: np.ndarray) -> dict:
        raw = np.ascontiguousarray(value).tobytes()
        node = {"is": kind, "dtype": str(value.dtype), "shape": list(value.shape), "at": self.size}
        self.chunks.append(raw)
        self.size += len(raw)
        return node

    def node(self, thing: Any, depth: int = 0) -> Any:
        if depth > DEEPEST:
            return {"is": "opaque", "type": "something nested too deeply"}
        if thing is None or isinstance(thing, bool | str) or type(thing) in (int, float):
            return thing
        if thing is Ellipsis:
            return None
        if isinstance(thing, Tensor):
            return self.array("tensor", thing.detach().cpu().resolve_conj().numpy())
        if isinstance(thing, np.ndarray | np.generic):
            value = np.asarray(thing)
            known = str(value.dtype) in KINDS
            return self.array("array", value) if known else self.opaque(thing)
        for kind in (list, tuple):
            if isinstance(thing, kind):
                return {"is": kind.__name__, "of": [self.node(v, depth + 1) for v in thing]}
        if isinstance(thing, dict):
            pairs = [[self.node(k), self.node(v, depth + 1)] for k, v in thing.items()]
            return {"is": "dict", "of": pairs}
        return self.object(thing, depth)

    def object(self, thing: Any, depth: int) -> dict:
        if isinstance(thing, Update):
            parts = [thing.before, thing.after, thing.samples]
        elif isinstance(thing, Network):
            rest = {k: getattr(thing, k) for k in ("shape", "classes", "mean", "std")}
            parts = [_layers(thing), thing.params(), rest]
        elif isinstance(thing, Slope):
            parts = [thing.name, thing.options]
        elif isinstance(thing, Bowl):
            parts = [thing.images, thing.place]
        else:
            return self.opaque(thing)
        name = type(thing).__name__.lower()
        return {"is": name, "of": [self.node(v, depth + 1) for v in parts]}

    @staticmethod
    def opaque(thing: Any) -> dict:
        return {"is": "opaque", "type": type(thing).__name__[:80]}


OBJECTS: dict[str, Callable] = {
    "update": Update,
    "network": _network,
    "slope": Slope,
    "bowl": Bowl,
}


def encode(thing: Any) -> bytes:
    """A thing as bytes."""
    writer = _Writer()
    tree = json.dumps(writer.node(thing)).encode()
    return b"".join([struct.pack(">Q", len(tree)), tree, *writer.chunks])


def _array(node: dict, blob: memoryview) -> np.ndarray:
    shape = [int(n) for n in node["shape"]]
    if node["dtype"] not in KINDS or any(n < 0 for n in shape) or len(shape) > 8:
        raise Unreadable("an array of no known kind")
    kind = np.dtype(node["dtype"])
    start, size = int(node["at"]), int(np.prod(shape, dtype=object)) * kind.itemsize
    if start < 0 or start + size > len(blob):
        raise Unreadable("an array that is not there")
    return np.frombuffer(blob[start : start + size], kind).reshape(shape).copy()


def _thing(node: Any, blob: memoryview, objects: dict[str, Callable]) -> Any:
    if not isinstance(node, dict):
        return node
    kind = node["is"]
    if kind in ("tensor", "array"):
        value = _array(node, blob)
        return torch.from_numpy(value) if kind == "tensor" else value
    if kind == "opaque":
        name = str(node["type"])[:80]
        return type(name, (Opaque,), {})(name)  # a type of that name, for sentences about it
    if kind == "dict":
        return {_thing(k, blob, {}): _thing(v, blob, objects) for k, v in node["of"]}
    parts = [_thing(v, blob, objects) for v in node["of"]]
    if kind in ("list", "tuple"):
        return tuple(parts) if kind == "tuple" else parts
    if kind not in objects:
        raise Unreadable(f"no such kind: {str(kind)[:80]}")
    return objects[kind](*parts)


def decode(raw: bytes, *, objects: bool = False) -> Any:
    """The thing again. Only the sandbox asks for `objects`, such as networks: the grader's side."""
    try:
        (size,) = struct.unpack_from(">Q", raw)
        if size > len(raw) - 8:
            raise Unreadable("cut off")
        tree = json.loads(raw[8 : 8 + size])
        return _thing(tree, memoryview(raw)[8 + size :], OBJECTS if objects else {})
    except Unreadable:
        raise
    except (ValueError, TypeError, KeyError, struct.error, RecursionError, OverflowError) as error:
        raise Unreadable(type(error).__name__) from None
