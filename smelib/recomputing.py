"""Memory saved by computing again on the way back what would otherwise be kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.func import vjp


class _Recomputed(torch.autograd.Function):
    """A function whose inner graph is not kept: backward runs it again.  [Chen16]"""

    generate_vmap_rule = True

    @staticmethod
    def forward(run: Callable[..., tuple[Tensor, ...]], *inputs: Tensor) -> tuple[Tensor, ...]:
        return run(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
        ctx.run = inputs[0]
        ctx.save_for_backward(*inputs[1:])

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple:
        _, pull_back = vjp(ctx.run, *ctx.saved_tensors)
        return None, *pull_back(slopes)


def recomputed(run: Callable[..., tuple[Tensor, ...]], *inputs: Tensor) -> tuple[Tensor, ...]:
    """`run(*inputs)`, whose graph is not kept: the way back runs it again."""
    return _Recomputed.apply(run, *inputs)
