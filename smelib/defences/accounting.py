"""What differential privacy promises, in numbers: a client's epsilon, a bound on any attack."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr, ndtri

from smelib import seeds
from smelib.errors import InputError, checked, finite


@checked
def client_epsilon(norm: float, sigma: float, *, delta: float, rounds: int = 1) -> float:
    """Epsilon of a whole client that sends `compose(clip(norm), noise(sigma))`, `rounds` times.

    The server sees this client's update alone, so its neighbour is a client with any other data,
    up to $2C$ away, $C$ the `norm`: $\\mu = 2 C \\sqrt{R} / \\sigma$ after $R$ rounds. It is the
    smallest $\\varepsilon$ with $\\Phi(\\mu/2 - \\varepsilon/\\mu) -
    e^\\varepsilon \\Phi(-\\mu/2 - \\varepsilon/\\mu) \\le \\delta$.
    For Gaussian noise that is exact, and not a bound.  [Balle18, Theorem 8; Dong22]
    """
    _probability(delta, "delta")
    if not norm > 0 or sigma < 0:
        raise InputError(f"norm={norm}, sigma={sigma}: the first is positive, the second not less.")
    if sigma == 0:
        return math.inf
    mu = 2 * norm * math.sqrt(rounds) / sigma

    def excess(epsilon: float) -> float:
        below = math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))
        return float(ndtr(mu / 2 - epsilon / mu)) - below - delta

    if excess(0.0) <= 0:
        return 0.0
    # At this epsilon the first term alone is below delta.
    return float(brentq(excess, 0.0, mu * (mu / 2 - ndtri(delta / 2)), xtol=1e-12, rtol=1e-12))


@checked
def reconstruction_bound(
    noise: float, rate: float, steps: int, *, prior: float, draws: int = 200_000, seed: int = 0
) -> float:
    """The most that any attack on DP-SGD can succeed, if it could guess with chance `prior`.

    `noise` is DP-SGD's multiplier, `rate` the share of samples in a batch, `steps` their number;
    the attacker knows every sample but one, and all gradients on the way.  [Hayes23]
    Of all events that have the chance `prior` without the sample, the likeliest with it: for
    `rate=1` that is $\\Phi(\\Phi^{-1}(\\kappa) + \\sqrt T / \\sigma)$, where $\\kappa$ is `prior`,
    $T$ `steps` and $\\sigma$ `noise`; for a smaller rate it is drawn `draws` times.
    """
    _probability(prior, "the chance to guess, prior=,")
    if not 0 < rate <= 1 or not noise > 0:
        raise InputError(f"rate={rate}, noise={noise}: a share above 0, and a positive multiplier.")
    if rate == 1:
        return float(ndtr(ndtri(prior) + math.sqrt(steps) / noise))
    generator = seeds.numpy_generator(seed, "bound")

    def ratios(taken: float) -> np.ndarray:
        """Log-likelihood ratios of what a run shows that used the sample with this chance."""
        total = np.zeros(draws)
        for _ in range(steps):
            x = noise * generator.standard_normal(draws) + (generator.random(draws) < taken)
            total += np.logaddexp(math.log1p(-rate), math.log(rate) + (2 * x - 1) / (2 * noise**2))
        return total

    threshold = np.quantile(ratios(0.0), 1 - prior)
    return float((ratios(rate) >= threshold).mean())


def _probability(value: float, what: str) -> None:
    finite(value, what)
    if not 0 < value < 1:
        raise InputError(f"{what} is {value!r}; it lies between 0 and 1.")
