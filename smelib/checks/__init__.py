"""Checks of what you write yourself: each takes your function and tries it against the kernel.

`checks.sme_loss(sme_loss)` prints one line where your function is right, and raises `NotYet`, with
one sentence that names the mistake where it knows it, where it is not. The docstring of a check has
the signature that it expects. Another `seed` tries other cases.
"""

from smelib.checks.engine import NotYet, unless_written
from smelib.checks.layers import corner, solve_patches
from smelib.checks.losses import (
    angle,
    divide,
    dlg_loss,
    ig_loss,
    project,
    sme_loss,
    surrogate,
    total_variation,
)
from smelib.checks.measures import (
    blind,
    estimate,
    intrinsic_error,
    parallel_point,
    plane_ratios,
    psnr,
    segment_cosine,
    whole,
)
from smelib.checks.training import (
    local_walk,
    merge,
    order_prior,
    retrace_loss,
    simulate,
    train_locally,
    walk,
)

__all__ = [
    "NotYet",
    "angle",
    "blind",
    "corner",
    "divide",
    "dlg_loss",
    "estimate",
    "ig_loss",
    "intrinsic_error",
    "local_walk",
    "merge",
    "order_prior",
    "parallel_point",
    "plane_ratios",
    "project",
    "psnr",
    "retrace_loss",
    "segment_cosine",
    "simulate",
    "sme_loss",
    "solve_patches",
    "surrogate",
    "total_variation",
    "train_locally",
    "unless_written",
    "walk",
    "whole",
]
