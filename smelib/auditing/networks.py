"""A network by its name in the zoo, by `package.module:factory`, or from a torch.export file."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from pathlib import Path

import torch
from torch import nn

from smelib import models
from smelib.errors import InputError, first_line, nearest

EXPORTED = ".pt2"


def module(name: str, shape: tuple[int, int, int], classes: int) -> nn.Module:
    """The module that a name stands for; `shape` and `classes` go to those that ask for them."""
    if name in models.NETWORKS:
        return models.build(name, shape, classes).body
    if name.endswith(EXPORTED):
        return _exported(Path(name))
    if ":" in name:
        return _made(name, shape, classes)
    if name.endswith(".py") or "." in name:
        raise InputError(
            f"--network {name!r}: name the function or class too, like package.module:factory; "
            f"or a {EXPORTED} file that torch.export.save wrote."
        )
    raise nearest("network", name, [*models.NETWORKS, "package.module:factory", "file.pt2"])


def _made(name: str, shape: tuple[int, int, int], classes: int) -> nn.Module:
    where, _, what = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # your code beside you, as `python -m` would find it
    try:
        found = importlib.import_module(where.removesuffix(".py").replace("/", "."))
    except ModuleNotFoundError as error:
        raise InputError(
            f"--network {name!r}: there is no module {error.name!r}; run the command where Python "
            "finds it, or install it."
        ) from None
    except Exception as error:  # the module is somebody else's
        raise InputError(
            f"--network {name!r}: importing {where!r} failed ({type(error).__name__}: {error})."
        ) from None
    if not hasattr(found, what):
        public = [k for k in vars(found) if not k.startswith("_")]
        raise nearest(f"factory in {where!r}", what, public)
    factory = getattr(found, what)
    if isinstance(factory, nn.Module):
        return factory
    try:
        accepted = inspect.signature(factory).parameters
        known = {"shape": shape, "classes": classes, "num_classes": classes}
        body = factory(**{k: v for k, v in known.items() if k in accepted})
    except Exception as error:
        raise InputError(
            f"--network {name!r}: calling it failed ({type(error).__name__}: {error}); it is "
            "called without arguments, or with shape=, classes= or num_classes= if it has them."
        ) from None
    if isinstance(body, models.Network):
        return body.body
    if not isinstance(body, nn.Module):
        raise InputError(
            f"--network {name!r} gives a {type(body).__name__}; it must give a torch.nn.Module."
        )
    return body


def _exported(file: Path) -> nn.Module:
    if not file.is_file():
        raise InputError(f"--network {str(file)!r}: there is no such file.")
    try:
        body = torch.export.load(file).module()
    except Exception as error:  # whatever a damaged archive leads to
        raise InputError(
            f"--network {str(file)!r} is not a program that torch.export.save wrote "
            f"({first_line(error)})."
        ) from None
    for name in ("train", "eval"):
        vars(body).pop(name, None)  # they only refuse; without them a module's own are found
    return body
