"""Gradient flow, the segment between its ends, and the point where the gradient is parallel to it.

The plane is small enough to see: a loss, the flow $\\dot w = -\\nabla \\ell(w)$ from $w_0$ to
$w_T$, and the segment $w_\\alpha = w_0 + \\alpha (w_T - w_0)$ the server can walk along. Networks
have more dimensions; what counts there is how much of the gradients one plane holds. [Zhu23]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp
from scipy.optimize import brentq
from scipy.special import logsumexp, softmax

from smelib.errors import InputError

Field = Callable[[np.ndarray], np.ndarray]
"""A function of points `[..., d]`: a loss, which is `[...]`, or a gradient, `[..., d]`."""


@dataclass(frozen=True)
class Landscape:
    """A loss $\\ell$ and its gradient, both for points of shape `[..., d]`."""

    loss: Field
    gradient: Field


def quadratic(hessian: ArrayLike) -> Landscape:
    """The bowl $\\ell(w) = \\tfrac12 w^\\top A w$; convex when $A$ is positive semi-definite."""
    a = np.asarray(hessian, dtype=float)
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise InputError(f"the matrix of a bowl is square; this one has shape {a.shape}.")
    a = (a + a.T) / 2  # the part that the loss sees, and the gradient must
    return Landscape(
        loss=lambda w: 0.5 * np.einsum("...i,ij,...j", w, a, w), gradient=lambda w: w @ a
    )


def sine_valley(*, amplitude: float = 1.0, slope: float = 1.0, stiffness: float = 4.0) -> Landscape:
    """A valley that winds like a sine and falls to the right; not convex.

    $\\ell(x, y) = -s x + \\tfrac{k}{2} (y - a \\sin x)^2$.
    """

    def loss(w: np.ndarray) -> np.ndarray:
        x, y = w[..., 0], w[..., 1]
        return -slope * x + stiffness / 2 * (y - amplitude * np.sin(x)) ** 2

    def gradient(w: np.ndarray) -> np.ndarray:
        x, y = w[..., 0], w[..., 1]
        pull = stiffness * (y - amplitude * np.sin(x))
        return np.stack([-slope - pull * amplitude * np.cos(x), pull], axis=-1)

    return Landscape(loss, gradient)


def bumps(hessian: ArrayLike, centres: ArrayLike, heights: ArrayLike, width: float) -> Landscape:
    """A bowl with Gaussian hills on it (pits, where a height is negative); not convex.

    $\\ell(w) = \\tfrac12 w^\\top A w + \\sum_i h_i e^{-\\lVert w - c_i \\rVert^2 / 2 \\sigma^2}$.
    """
    bowl, c, h = quadratic(hessian), np.asarray(centres, float), np.asarray(heights, float)

    def hills(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        offset = w[..., None, :] - c
        return offset, h * np.exp(-(offset**2).sum(-1) / (2 * width**2))

    return Landscape(
        loss=lambda w: bowl.loss(w) + hills(w)[1].sum(-1),
        gradient=lambda w: bowl.gradient(w) - np.einsum("...ki,...k", *hills(w)) / width**2,
    )


def trail(points: ArrayLike, *, drop: float = 0.1, width: float = 0.25) -> Landscape:
    """A valley along a trail of `points`, each `drop` lower than the one before; not convex.

    $\\ell(w) = -\\log \\sum_i e^{i \\delta - \\lVert w - p_i \\rVert^2 / 2 \\sigma^2}$.
    """
    p = np.asarray(points, dtype=float)

    def terms(w: np.ndarray) -> np.ndarray:
        return drop * np.arange(len(p)) - ((w[..., None, :] - p) ** 2).sum(-1) / (2 * width**2)

    return Landscape(
        loss=lambda w: -logsumexp(terms(w), axis=-1),
        gradient=lambda w: (w - softmax(terms(w), axis=-1) @ p) / width**2,
    )


def helix_field(w: np.ndarray) -> np.ndarray:
    """The gradient of the paper's example, $(\\sin z, -\\cos z, -1)$, which depends on $z$ only.

    Following its negative from the origin gives $(\\cos t - 1, \\sin t, t)$. [Zhu23, Section 4.2]
    """
    z = w[..., 2]
    return np.stack([np.sin(z), -np.cos(z), -np.ones_like(z)], axis=-1)


def helix() -> Landscape:
    """A loss in three dimensions whose flow from the origin is exactly the helix of `helix_field`.

    $\\ell(x, y, z) = -2 z - y \\cos z + (x + 1) \\sin z$. Unlike `helix_field` it has no curl.
    """

    def loss(w: np.ndarray) -> np.ndarray:
        x, y, z = np.moveaxis(w, -1, 0)
        return -2 * z - y * np.cos(z) + (x + 1) * np.sin(z)

    def gradient(w: np.ndarray) -> np.ndarray:
        x, y, z = np.moveaxis(w, -1, 0)
        along = -2 + y * np.sin(z) + (x + 1) * np.cos(z)
        return np.stack([np.sin(z), -np.cos(z), along], axis=-1)

    return Landscape(loss, gradient)


def flow(gradient: Field, w0: ArrayLike, time: float, *, points: int = 201) -> np.ndarray:
    """The gradient flow $\\dot w = -\\nabla \\ell(w)$ from `w0` for `time`, as `[points, d]`.

    A flow that ends earlier, because it runs off to infinity or meets a hole in the gradient, is
    refused with the time it reached.
    """
    start = np.asarray(w0, dtype=float)
    if not 0 < time < np.inf:
        raise InputError(f"time is {time!r}; a flow takes a positive and finite time.")
    if points < 2:
        raise InputError(f"points is {points!r}; a flow has at least its two ends.")
    if not np.isfinite([start, gradient(start)]).all():
        # Checked here because the integrator would look for its first step forever.
        raise InputError(f"at the start {start} the gradient is {gradient(start)}: not finite.")
    with np.errstate(over="ignore", invalid="ignore"):
        solution = solve_ivp(
            lambda _, w: -gradient(w),
            (0.0, time),
            start,
            method="DOP853",
            dense_output=True,
            rtol=1e-10,
            atol=1e-12,
        )
    if not (solution.success and np.isfinite(solution.y).all()):
        raise InputError(
            f"the flow was followed to time {solution.t[-1]:.4g} of {time:.4g}, where it is at "
            f"{solution.y[:, -1]}; it runs off to infinity there, or the gradient is not smooth. "
            "Ask for less time."
        )
    return solution.sol(np.linspace(0.0, time, points)).T


def descend(gradient: Field, w0: ArrayLike, lr: float, steps: int) -> np.ndarray:
    """Gradient descent $w_{t+1} = w_t - \\eta \\nabla \\ell(w_t)$, as `[steps + 1, d]`."""
    path = [np.asarray(w0, dtype=float)]
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(1, steps + 1):
            path.append(path[-1] - lr * gradient(path[-1]))
            if not np.isfinite(path[-1]).all():
                raise InputError(
                    f"the descent left all bounds at step {step} of {steps}; "
                    f"take a learning rate below {lr}, or fewer steps."
                )
    return np.stack(path)


def segment(w0: np.ndarray, wT: np.ndarray, alpha: ArrayLike) -> np.ndarray:  # noqa: N803
    """$w_\\alpha = w_0 + \\alpha (w_T - w_0)$ for one alpha or many; alpha = 0 is the start."""
    return w0 + np.asarray(alpha)[..., None] * (wT - w0)


def cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """$\\langle a, b \\rangle / (\\lVert a \\rVert \\lVert b \\rVert)$ over the last axis.

    NaN where one of them is zero: it points nowhere.
    """
    norms = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return (a * b).sum(-1) / np.where(norms > 0, norms, np.nan)


def cosines(gradient: Field, w0: np.ndarray, wT: np.ndarray, alpha: ArrayLike) -> np.ndarray:  # noqa: N803
    """The cosine between the update $w_0 - w_T$ and $\\nabla \\ell(w_\\alpha)$."""
    return cosine(_update(w0, wT), gradient(segment(w0, wT, alpha)))


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """$a \\times b = a_1 b_2 - a_2 b_1$: positive when `b` points to the left of `a`."""
    if not a.shape[-1] == b.shape[-1] == 2:
        raise InputError(
            f"left and right belong to the plane; these vectors have {a.shape[-1]} and "
            f"{b.shape[-1]} components."
        )
    return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]


def condition(gradient: Field, path: np.ndarray) -> float:
    """The smallest cosine between the update and a gradient on the path.

    The proposition asks for $\\langle \\nabla \\ell(w_t), w_0 - w_T \\rangle \\ge 0$ at every $t$.
    """
    return float(cosine(_update(path[0], path[-1]), gradient(path)).min())


def _update(w0: np.ndarray, wT: np.ndarray) -> np.ndarray:  # noqa: N803
    """$w_0 - w_T$, which must point somewhere."""
    if np.array_equal(w0, wT):
        raise InputError(f"the path starts and ends at the same point {w0}: it has no direction.")
    return w0 - wT


def parallel_points(
    gradient: Field,
    w0: np.ndarray,
    wT: np.ndarray,  # noqa: N803
    *,
    grid: int = 400,
) -> np.ndarray:
    """Each alpha of [0, 1] found where the gradient is parallel to the update, cosine +1 or -1.

    They are zeros of $(w_0 - w_T) \\times \\nabla \\ell(w_\\alpha)$: a sign change between two
    neighbours of the grid, refined by Brent's method. Two zeros between neighbours escape it, and a
    zero without a change of sign. The grid is finer towards the ends, where a flow that has almost
    arrived hides two zeros close together. A point where the gradient vanishes is none of them.
    """
    update = _update(w0, wT)

    def turn(alpha: ArrayLike) -> np.ndarray:
        return cross(update, gradient(segment(w0, wT, alpha)))

    alphas = (1 - np.cos(np.linspace(0.0, np.pi, grid + 1))) / 2
    values = turn(alphas)
    if not np.isfinite(values).all():
        raise InputError("the gradient is NaN or infinite somewhere on the segment.")
    values[np.abs(values) < 1e-13 * np.abs(values).max()] = 0.0
    zeros = alphas[values == 0]
    found = list(zeros[np.linalg.norm(gradient(segment(w0, wT, zeros)), axis=-1) > 0])
    for i in np.flatnonzero(values[:-1] * values[1:] < 0):
        found.append(brentq(turn, alphas[i], alphas[i + 1], xtol=1e-14))
    return np.sort(np.array(found))
