"""The rule: when is a number of ours the paper's? Three verdicts, read off one interval.

Two means are compared by the 95 % interval of their difference. Ours and the paper's mean each have
an interval of Student's; the difference's half-width is the root of the sum of their squares. (With
Satterthwaite's degrees of freedom instead, two clients would give a false verdict twice as often as
the interval allows: `tests/test_verdicts.py` draws both.) A band says how much still counts as the
same. **Equal**: the interval lies within the band. **Different**: it lies wholly outside.
**Undecided**: everything else, and always when there is one client, whose interval has no ends.
Everything here takes numbers or arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2, norm
from scipy.stats import t as student

EQUAL, DIFFERENT, UNDECIDED = "equal", "different", "undecided"
CONFIDENCE = 0.95
RUNS = 100  # of the paper's, behind each of its means
LOOKS = (3, 5, 10)  # clients, added where an effect was undecided
LOOKED = 0.12  # how often an effect of zero is then called one: more than 5 %, by looking thrice
_TAIL = 1 - (1 - CONFIDENCE) / 2


@dataclass(frozen=True)
class Scale:
    """How two numbers are compared: by their difference, or, if `ratio`, by its logarithm's.

    `band` is what still counts as the same: so many units, or a factor.
    """

    band: float
    ratio: bool = False

    @property
    def limit(self) -> float:
        """The band's half-width, on the scale on which numbers are compared."""
        return float(np.log(self.band)) if self.ratio else self.band


DECIBELS, COSINES, FACTORS = Scale(2.0), Scale(0.02), Scale(1.5, ratio=True)


@dataclass(frozen=True)
class Interval:
    """What a mean or a difference may be: the estimate, and how far the truth may lie from it."""

    value: ArrayLike
    half: ArrayLike

    @property
    def low(self) -> ArrayLike:
        """The lower end."""
        return self.value - self.half

    @property
    def high(self) -> ArrayLike:
        """The upper end."""
        return self.value + self.half


@dataclass(frozen=True)
class Mean:
    """A mean, its standard error, and the degrees of freedom behind that error."""

    value: ArrayLike
    error: ArrayLike
    freedom: ArrayLike

    def on(self, scale: Scale) -> Mean:
        """The same mean where it is compared; a logarithm's error is the relative one."""
        if not scale.ratio:
            return self
        value = np.asarray(self.value, float)
        return Mean(np.log(value), self.error / value, self.freedom)

    @property
    def half(self) -> ArrayLike:
        """Half of Student's 95 % interval; no number for a single client."""
        return student.ppf(_TAIL, self.freedom) * self.error

    @property
    def interval(self) -> Interval:
        """Student's 95 % interval."""
        return Interval(self.value, self.half)

    def __sub__(self, other: Mean) -> Interval:
        """The interval of the difference of two independent means."""
        return Interval(np.subtract(self.value, other.value), np.hypot(self.half, other.half))


def mean(values: Sequence[float] | np.ndarray) -> Mean:
    """The mean over clients, which are the last axis. A single client has no standard error."""
    values = np.asarray(values, float)
    n = values.shape[-1]
    none = np.full(values.shape[:-1], np.nan)
    error = values.std(axis=-1, ddof=1) / np.sqrt(n) if n > 1 else none
    return Mean(values.mean(axis=-1), error, n - 1)


def printed(value: float, error: float | None, unit: float) -> Mean:
    """A mean as the paper prints it: with its standard error, and rounded to a multiple of `unit`.

    Rounding is uniform, with a variance of a twelfth of the unit's square. Where the paper prints
    no error, as for time and memory, rounding is the only one.
    """
    rounding = unit / np.sqrt(12)
    if error is None:
        return Mean(value, rounding, np.inf)
    return Mean(value, float(np.hypot(error, rounding)), RUNS - 1)


def verdict(difference: Interval, limit: float) -> np.ndarray:
    """Equal, different or undecided, for a difference and the band's half-width."""
    low, high = difference.low, difference.high
    within = (low >= -limit) & (high <= limit)
    outside = (low > limit) | (high < -limit)
    return np.where(within, EQUAL, np.where(outside, DIFFERENT, UNDECIDED))


def chances(ours: Mean, theirs: Mean, limit: float, truth: float) -> tuple[float, float]:
    """With which probability the rule says equal, and different, if the true difference is `truth`.

    For a cell with our clients' spread and number. Their spread varies from draw to draw as a
    chi-square, over whose quantiles the probabilities are averaged; the paper's error is taken as
    known.
    """
    if not np.isfinite(ours.error):
        return 0.0, 0.0
    quantiles = (np.arange(400) + 0.5) / 400
    spread = ours.error * np.sqrt(chi2.ppf(quantiles, ours.freedom) / ours.freedom)
    half = (Mean(0.0, spread, ours.freedom) - theirs).half
    sigma = np.hypot(ours.error, theirs.error)
    below, above = (-limit - truth) / sigma, (limit - truth) / sigma
    half = half / sigma
    equal = np.maximum(0, norm.cdf(above - half) - norm.cdf(below + half))
    different = norm.sf(above + half) + norm.cdf(below - half)
    return float(equal.mean()), float(different.mean())
