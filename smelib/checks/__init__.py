"""Checks of what you write yourself: each takes your function and tries it against the kernel.

`checks.sme_loss(sme_loss)` prints one line where your function is right, and raises `NotYet`, with
one sentence that names the mistake where it knows it, where it is not. The docstring of a check has
the signature that it expects. Another `seed` tries other cases.
"""

from smelib.checks.arena import contest, defence
from smelib.checks.comparing import left_out, paired, parts, score
from smelib.checks.counting import apart, confidence, gain, recount, verdict
from smelib.checks.defending import clip_and_noise, combine, keep_largest, seen
from smelib.checks.engine import NotYet, unless_written
from smelib.checks.layers import corner, solve_patches
from smelib.checks.loops import (
    alpha_slope,
    descend,
    ig_steps,
    read_label,
    sent_gradient,
    sme_steps,
)
from smelib.checks.losses import (
    angle,
    divide,
    dlg_loss,
    free_length,
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
    nodes_error,
    parallel_point,
    plane_ratios,
    psnr,
    segment_cosine,
    spectrum,
    whole,
)
from smelib.checks.planes import condition, counter_example, plane_walk
from smelib.checks.sending import masked, match_sent
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
    "alpha_slope",
    "angle",
    "apart",
    "blind",
    "clip_and_noise",
    "combine",
    "condition",
    "confidence",
    "contest",
    "corner",
    "counter_example",
    "defence",
    "descend",
    "divide",
    "dlg_loss",
    "estimate",
    "free_length",
    "gain",
    "ig_loss",
    "ig_steps",
    "intrinsic_error",
    "keep_largest",
    "left_out",
    "local_walk",
    "masked",
    "match_sent",
    "merge",
    "nodes_error",
    "order_prior",
    "paired",
    "parallel_point",
    "parts",
    "plane_ratios",
    "plane_walk",
    "project",
    "psnr",
    "read_label",
    "recount",
    "retrace_loss",
    "score",
    "seen",
    "segment_cosine",
    "sent_gradient",
    "simulate",
    "sme_loss",
    "sme_steps",
    "solve_patches",
    "spectrum",
    "surrogate",
    "total_variation",
    "train_locally",
    "unless_written",
    "verdict",
    "walk",
    "whole",
]
