"""Paths of networks: how flat they are, and how their gradients lie to the update."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike

from smelib import federated
from smelib import params as P
from smelib.data import Client
from smelib.errors import InputError
from smelib.models import Network
from smelib.types import Params, Update


def path_gradients(model: Network, client: Client, path: Iterable[Params]) -> list[Params]:
    """The gradient of *all* the client's data at every point of its path, batches or not.

    They are computed where the weights are and in their precision. The server cannot compute
    them: they need the client's images.
    """
    found = []
    for weights in path:
        here = model.like(weights)
        z = here.normalise(client.images.to(next(iter(weights.values()))))
        found.append(federated.gradient(here, weights, z, client.labels.to(z.device)))
    return found


def gram(vectors: Sequence[Params], *, chunk: int = 1 << 18) -> np.ndarray:
    """All inner products $\\langle g_s, g_t \\rangle$, `[T, T]` in double precision.

    The vectors are widened a `chunk` of coordinates at a time: a stack of all of them in double
    precision, and the factors of its singular value decomposition, need several times the memory.
    """
    if not vectors:
        raise InputError("there are no vectors, so there are no inner products.")
    if any(v.keys() != vectors[0].keys() for v in vectors):
        raise InputError("the vectors do not have the same names; are all from one network?")
    total = torch.zeros(len(vectors), len(vectors), dtype=torch.float64)
    for name in vectors[0]:
        flat = [v[name].detach().flatten() for v in vectors]
        for start in range(0, len(flat[0]), chunk):
            part = torch.stack([f[start : start + chunk] for f in flat]).cpu().double()
            total += part @ part.T
    return total.numpy()


def plane_ratios(products: ArrayLike, *, fit: int | None = None, rank: int = 2) -> np.ndarray:
    """The share $\\lVert P_2 g_t \\rVert / \\lVert g_t \\rVert$ of each vector in the best plane.

    The plane is spanned by the two leading right singular vectors of the first `fit` vectors (all,
    unless told otherwise), stacked and not centred. `products` is their Gram matrix, whose leading
    eigenvectors know that plane. `rank` is the number of directions. A zero vector has no share:
    NaN. [Zhu23, Section 5.1]
    """
    g = np.asarray(products, dtype=float)
    if g.ndim != 2 or g.shape[0] != g.shape[1]:
        raise InputError(f"a Gram matrix is square; this one has shape {g.shape}.")
    fit = len(g) if fit is None else fit
    if not 1 <= fit <= len(g) or rank < 1:
        raise InputError(
            f"fit is {fit!r} and rank {rank!r}; fit to between 1 and all {len(g)} vectors, "
            "and keep at least one direction."
        )
    values, vectors = np.linalg.eigh(g[:fit, :fit])
    kept = values[-rank:] > len(g) * np.finfo(float).eps * values[-1]  # rounding is no direction
    inside = g[:, :fit] @ vectors[:, -rank:][:, kept] / np.sqrt(values[-rank:][kept])
    square = np.where(np.diag(g) > 0, np.diag(g), np.nan)
    return np.sqrt((inside**2).sum(-1) / square).clip(max=1.0)


def segment_cosines(
    model: Network, client: Client, update: Update, alpha: Iterable[float]
) -> np.ndarray:
    """The cosine of $w_0 - w_T$ with $\\nabla \\ell(w_\\alpha, D)$: `cosines`, for a network.

    $D$ is the client's true data, so this is what an attack could reach and not what it reaches.
    Weights that the client keeps frozen count in neither.
    """
    update = model.own(update)
    update.check()
    start, end = model.trained(update.before), model.trained(update.after)
    points = ({**update.before, **P.lerp(start, end, float(a))} for a in alpha)
    direction = P.sub(start, end)
    return np.array([float(P.cosine(direction, g)) for g in path_gradients(model, client, points)])


def renewal_factor(curvature: ArrayLike, lr: float, steps: int) -> np.ndarray:
    """What a renewal of retrace's walk leaves of an error along a direction of this curvature.

    $1 - \\frac{1}{T} \\sum_{t<T} (1 - \\eta h)^t$, exact for a quadratic loss: the iteration
    converges where it is below one in size. DLFA, which keeps the derivative, has 0.
    """
    h = np.asarray(curvature, dtype=float)
    return 1 - ((1 - lr * h)[..., None] ** np.arange(steps)).mean(-1)
