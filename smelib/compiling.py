"""A step's gradients, by PyTorch's compiler where it is asked for and able."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor
from torch.func import grad

from smelib.models.network import twice_differentiable
from smelib.objectives import Aux, Objective


def differentiator(evaluate: Objective, compiled: bool) -> Objective:
    """Evaluate, and leave the gradients in the unknowns' `.grad`, as optimisers expect them."""

    def eager(images: Tensor, aux: Aux, step: Tensor) -> tuple:
        loss, terms = evaluate(images, aux, step)
        loss.sum().backward()
        return loss, terms

    if not compiled:
        return eager

    def summed(unknowns: dict, fixed: dict, step: Tensor) -> tuple:
        loss, terms = evaluate(unknowns["images"], {**fixed, **unknowns["aux"]}, step)
        return loss.sum(), (loss, terms)

    def slopes_of(unknowns: dict, fixed: dict, step: Tensor) -> tuple:
        return grad(summed, has_aux=True)(unknowns, fixed, step)

    # Dynamo compiles a function anew for every attack, and after eight gives up without a word.
    torch.compiler.reset()
    # Both derivatives in one traced function: the compiler cannot differentiate twice by itself.
    # Whole or not at all: what the compiler cannot trace would run as before, without a word.
    traced = torch.compile(slopes_of, fullgraph=True)

    def through_compiler(images: Tensor, aux: Aux, step: Tensor) -> tuple:
        nonlocal compiled
        if not compiled:
            return eager(images, aux, step)
        live = {k: v for k, v in aux.items() if v.requires_grad}
        plain = {k: v.detach() for k, v in live.items()}
        fixed = {k: v for k, v in aux.items() if k not in live}
        try:
            with twice_differentiable():
                slopes, found = traced({"images": images.detach(), "aux": plain}, fixed, step)
        except Exception as error:  # whatever goes wrong in a compiler, the attack can do without
            warnings.warn(
                f"torch.compile failed ({type(error).__name__}); going on without it.",
                RuntimeWarning,
                stacklevel=2,
            )
            compiled = False
            return eager(images, aux, step)
        images.grad = slopes["images"]
        for k, v in live.items():
            v.grad = slopes["aux"][k]
        return found

    return through_compiler
