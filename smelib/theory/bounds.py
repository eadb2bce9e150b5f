"""The theorems' bounds, ours and the paper's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Path:
    """What the bounds need to know of a path $w_0, \\dots, w_T$ of gradient descent.

    `outside` is $G_2$, `length` $\\Lambda$, `chord` the norm of $w_0 - w_T$, `beta` the gradient's
    Lipschitz constant, `smallest` the least gradient norm $m$ on the segment.
    """

    outside: float
    length: float
    chord: float
    beta: float
    smallest: float

    @property
    def detour(self) -> float:
        """$\\kappa = \\Lambda / \\lVert w_0 - w_T \\rVert$; 1 for a straight path."""
        return self.length / self.chord

    @property
    def price(self) -> float:
        """$\\varepsilon = \\beta G_2 \\Lambda / (m \\sqrt{1 - G_2^2})$, for leaving the plane."""
        root = np.sqrt(1 - self.outside**2)
        return float(self.beta * self.outside * self.length / (self.smallest * root))


def gd_bound(path: Path) -> float:
    """The proofs' bound for GD on the best $L_{sim}$, $G_2^2 (1 + \\kappa)^2 + \\varepsilon^2$."""
    return (path.outside * (1 + path.detour)) ** 2 + path.price**2


def sgd_bound(path: Path, gap: float) -> float:
    """The proofs' theorem on SGD: where $\\rho < 1$, $L_{sim} \\le \\rho^2$ somewhere.

    `path` is that of gradient descent without noise, and `gap` a bound on the distance between the
    ends of the two runs: $\\eta S \\sqrt{T / \\vartheta}$, or $\\eta$ times the summed noise.
    """
    noise = np.sqrt(2) * (1 / path.chord + path.beta / path.smallest) * gap
    return float((path.outside * (1 + path.detour) + path.price + noise) ** 2)


@dataclass(frozen=True)
class Constants:
    """What the paper's bounds are made of; losses and steps are those of descent without noise.

    `outside` is $G_2$, `lipschitz` $L$, `drop` $\\ell(w_0) - \\ell(w_T)$, `left`
    $\\ell(w_T) - \\ell(w^*)$, `noise` $E_{max}$, the largest norm of a batch's gradient noise.
    """

    outside: float
    lipschitz: float
    beta: float
    gamma: float
    lr: float
    steps: int
    drop: float
    left: float
    noise: float = 0.0

    @property
    def c_gd(self) -> float:
        """$C_{GD} = \\sqrt{T G^2(\\eta, \\beta) L^2 / (\\ell(w_0) - \\ell(w_T))}$."""
        g = self.outside**2 * self.lr / (1 - self.lr * self.beta / 2)
        return float(np.sqrt(self.steps * g * self.lipschitz**2 / self.drop))


def paper_gd_bound(k: Constants) -> float:
    """The paper's bound $(G_2 + C_{GD})^2$, without its unnamed error term. [Zhu23, Theorem 4.3]"""
    return (k.outside + k.c_gd) ** 2


def paper_sgd_bound(k: Constants) -> tuple[float, float]:
    """The paper's bound for SGD, and the probability it comes with. [Zhu23, Theorem 4.5]

    Infinite where $C_{GD} \\ge 1$ or $\\eta \\ge 1$, which the theorem leaves out; a probability of
    zero or less promises nothing.
    """
    growth = (1 + k.lr * k.beta) ** (k.steps - 1)
    c = 1 / (np.sqrt(k.lr) * growth)
    share = k.drop / (k.lipschitz * k.noise) if k.noise else np.inf
    chance = 1 - 3 * k.steps * np.exp(-min(c * share**2 / (4 * k.steps), c * share / 4))
    if k.c_gd >= 1 or k.lr >= 1:
        return float("inf"), float(chance)
    turn = 2 * k.lr**2 * k.beta**2 * k.steps / (k.gamma * (1 - k.outside**2)) * k.drop / k.left
    stray = k.lipschitz * k.steps * k.noise * k.lr * growth / k.drop
    factor = (1 + k.outside) / ((1 - np.sqrt(k.lr)) * (1 - k.c_gd))
    return float(2 * k.lr + turn + factor * (k.c_gd + stray) + k.outside**2), float(chance)
