"""Restarts side by side: one leading dimension, and which of them are well, or better."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.func import vmap

from smelib.objectives import Aux, Objective


def over_restarts(objective: Objective, restarts: int) -> Objective:
    """The objective with a leading dimension; a single run skips vmap, which costs a little."""
    if restarts > 1:
        return vmap(objective, in_dims=(0, 0, None))

    def single(images: Tensor, aux: Aux, step: Tensor) -> tuple:
        first = images[0]
        if first.ndim == 4:
            first = first.contiguous(memory_format=torch.channels_last)
        loss, terms = objective(first, {k: v[0] for k, v in aux.items()}, step)
        return loss[None], {k: v[None] for k, v in terms.items()}

    return single


def finite(state: dict[str, Tensor]) -> Tensor:
    """Restart by restart, whether all numbers are finite."""
    rows = [torch.isfinite(v.detach()).view(len(v), -1).all(dim=1) for v in state.values()]
    return torch.stack(rows).all(dim=0)


def choose(which: Tensor, yes: dict[str, Tensor], no: dict[str, Tensor]) -> dict[str, Tensor]:
    """Restart by restart, one state or the other."""
    return {
        k: torch.where(which.view(-1, *[1] * (v.ndim - 1)), v.detach(), no[k])
        for k, v in yes.items()
    }


def better(
    score: Tensor, state: dict[str, Tensor], best_score: Tensor, best: dict[str, Tensor]
) -> tuple[dict[str, Tensor], Tensor]:
    """Keep, restart by restart, the state with the lower score; NaN is never lower."""
    won = score < best_score
    return choose(won, state, best), torch.where(won, score.detach(), best_score)
