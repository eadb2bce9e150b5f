"""The theorems' bounds, ours and the paper's."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smelib.errors import InputError


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

    def __post_init__(self) -> None:
        _demand("outside", self.outside, 0 <= self.outside <= 1 + 1e-9, "from 0 to 1")
        _demand("chord", self.chord, 0 < self.chord < np.inf, "positive and finite")
        # A straight path is as long as its chord, up to rounding.
        longer = self.chord * (1 - 1e-6) <= self.length < np.inf
        _demand("length", self.length, longer, f"finite, and at least the chord, {self.chord}")
        _demand("beta", self.beta, 0 <= self.beta < np.inf, "finite and not negative")
        _demand("smallest", self.smallest, 0 <= self.smallest < np.inf, "finite and not negative")

    @property
    def detour(self) -> float:
        """$\\kappa = \\Lambda / \\lVert w_0 - w_T \\rVert$; 1 for a straight path."""
        return self.length / self.chord

    @property
    def price(self) -> float:
        """$\\varepsilon = \\beta G_2 \\Lambda / (m \\sqrt{1 - G_2^2})$, for leaving the plane.

        Infinite where $m = 0$ or $G_2 = 1$, of which the theorem says nothing.
        """
        if self.smallest == 0 or self.outside >= 1:
            return float("inf")
        root = np.sqrt(1 - self.outside**2)
        return float(self.beta * self.outside * self.length / (self.smallest * root))


def _demand(name: str, value: float, holds: bool, kind: str) -> None:
    if not holds:  # also where the value is NaN, which compares with nothing
        raise InputError(f"{name} is {value!r}; it must be {kind}.")


def gd_bound(path: Path) -> float:
    """The proofs' bound for GD on the best $L_{\\mathrm{sim}}$.

    It is $G_2^2 (1 + \\kappa)^2 + \\varepsilon^2$, with the path's `detour` $\\kappa$ and `price`
    $\\varepsilon$.
    """
    return (path.outside * (1 + path.detour)) ** 2 + path.price**2


def sgd_bound(path: Path, gap: float) -> float:
    """The proofs' theorem on SGD: where $\\rho < 1$, $L_{\\mathrm{sim}} \\le \\rho^2$ somewhere.

    `path` is that of gradient descent without noise, and `gap` a bound on the distance between the
    ends of the two runs: $\\eta S \\sqrt{T / \\vartheta}$, or $\\eta$ times the summed noise.
    """
    _demand("gap", gap, gap >= 0, "a distance, at least 0")
    if path.price == np.inf:
        return float("inf")
    noise = np.sqrt(2) * (1 / path.chord + path.beta / path.smallest) * gap
    return float((path.outside * (1 + path.detour) + path.price + noise) ** 2)


@dataclass(frozen=True)
class Constants:
    """What the paper's bounds are made of; losses and steps are those of descent without noise.

    `outside` is $G_2$, `lipschitz` $L$, `drop` $\\ell(w_0) - \\ell(w_T)$, `left`
    $\\ell(w_T) - \\ell(w^*)$, `noise` $E_{\\max}$, the largest norm of a batch's gradient noise;
    `beta` $\\beta$, the gradient's Lipschitz constant; `gamma` $\\gamma$, the least curvature
    (strong convexity); `lr` $\\eta$, the learning rate; `steps` $T$, how many there are.
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

    def __post_init__(self) -> None:
        _demand("outside", self.outside, 0 <= self.outside <= 1 + 1e-9, "from 0 to 1")
        _demand("steps", self.steps, self.steps >= 1, "at least 1")
        _demand("lr", self.lr, 0 < self.lr < np.inf, "positive and finite")
        for name in ("lipschitz", "beta", "gamma", "noise"):
            value = getattr(self, name)
            _demand(name, value, 0 <= value < np.inf, "finite and not negative")
        for name in ("drop", "left"):
            value = getattr(self, name)
            _demand(name, value, np.isfinite(value), "finite")

    @property
    def c_gd(self) -> float:
        """The constant $C_{\\mathrm{GD}}$ of the paper's theorems.

        $C_{\\mathrm{GD}}^2 = \\dfrac{T \\, G^2(\\eta, \\beta) \\, L^2}{\\ell(w_0) - \\ell(w_T)}$,
        where $G^2(\\eta, \\beta) = \\dfrac{\\eta \\, G_2^2}{1 - \\eta \\beta / 2}$.

        Infinite where the loss did not fall or $\\eta \\beta \\ge 2$, when it need not.
        """
        room = 1 - self.lr * self.beta / 2
        if room <= 0 or self.drop <= 0:
            return float("inf")
        g = self.outside**2 * self.lr / room
        return float(np.sqrt(self.steps * g * self.lipschitz**2 / self.drop))


def paper_gd_bound(k: Constants) -> float:
    """The paper's bound $(G_2 + C_{\\mathrm{GD}})^2$, without its unnamed error term.

    [Zhu23, Theorem 4.3]
    """
    return (k.outside + k.c_gd) ** 2


def paper_sgd_bound(k: Constants) -> tuple[float, float]:
    """The paper's bound for SGD, and the probability it comes with. [Zhu23, Theorem 4.5]

    Infinite where $C_{\\mathrm{GD}} \\ge 1$ or $\\eta \\ge 1$, which the theorem leaves out, and
    where it divides by zero ($\\gamma = 0$, $G_2 = 1$, a run that ends at the minimum). A
    probability of zero or less promises nothing. Its exponent has the $c^2$ of the paper's lemma,
    which the proof gives; the theorem prints $c$.
    """
    with np.errstate(over="ignore"):
        growth = np.float64(1 + k.lr * k.beta) ** (k.steps - 1)
    chance, stray = 1.0, 0.0
    if k.noise and k.drop > 0:
        c = 1 / (np.sqrt(k.lr) * growth)
        share = k.drop / (k.lipschitz * k.noise)
        chance -= 3 * k.steps * np.exp(-min((c * share) ** 2 / (4 * k.steps), c * share / 4))
        stray = k.lipschitz * k.steps * k.noise * k.lr * growth / k.drop
    if k.c_gd >= 1 or k.lr >= 1 or k.outside >= 1 or min(k.gamma, k.left) <= 0:
        return float("inf"), float(chance)
    turn = 2 * k.lr**2 * k.beta**2 * k.steps / (k.gamma * (1 - k.outside**2)) * k.drop / k.left
    factor = (1 + k.outside) / ((1 - np.sqrt(k.lr)) * (1 - k.c_gd))
    return float(2 * k.lr + turn + factor * (k.c_gd + stray) + k.outside**2), float(chance)
