"""Assignment 5: intervals, verdicts, and a scoreboard counted again."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import norm, t

from smelib import seeds
from smelib.checks.cases import named, numbers
from smelib.checks.engine import piece

EQUAL, DIFFERENT, UNDECIDED = 1, -1, 0
Estimate = tuple[float, float]  # a mean, and half of its 95 % interval


def _samples(seed: int) -> list[dict]:
    found = []
    for k, number in enumerate(numbers(seed)):
        draw = seeds.numpy_generator(number, "checks")
        found.append(named(values=draw.normal(25, 3, 3 + k)))
    return found


def _estimate(values: np.ndarray, *, ddof: int = 1, tail: float = 0.975) -> Estimate:
    n = len(values)
    half = t.ppf(tail, n - 1) * np.std(values, ddof=ddof) / math.sqrt(n)
    return float(np.mean(values)), float(half)


@piece("confidence(values)", _samples, over="samples")
def confidence(values: np.ndarray) -> Estimate:
    """the mean of a sample and half the width of Student's 95 % interval around it, as a pair.

    The half-width is t times the standard error, t the 97.5 % quantile with n - 1 degrees of
    freedom.
    """
    return _estimate(values)


@confidence.mistake("your quantile is the normal one, 1.96: few clients need Student's.")
def _(values):
    return float(np.mean(values)), float(
        norm.ppf(0.975) * np.std(values, ddof=1) / math.sqrt(len(values))
    )


@confidence.mistake("you divide the squares by n: a sample's spread divides by n - 1, ddof=1.")
def _(values):
    return _estimate(values, ddof=0)


@confidence.mistake("yours is about a single client: the mean's error is the spread over root n.")
def _(values):
    mean, half = _estimate(values)
    return mean, half * math.sqrt(len(values))


@confidence.mistake("you leave 5 % on each side: a 95 % interval leaves 2.5 %.")
def _(values):
    return _estimate(values, tail=0.95)


@confidence.mistake("yours is the whole width: half of it.")
def _(values):
    mean, half = _estimate(values)
    return mean, 2 * half


@confidence.mistake("yours is the standard error: multiply it by Student's quantile.")
def _(values):
    return float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values)))


def _two(seed: int) -> list[dict]:
    found = []
    for number in numbers(seed):
        draw = seeds.numpy_generator(number, "checks")
        ours, theirs = ((float(draw.normal(25, 3)), float(draw.uniform(0.5, 3))) for _ in range(2))
        found.append(named(ours=ours, theirs=theirs))
    return found


@piece("apart(ours, theirs)", _two, over="pairs")
def apart(ours: Estimate, theirs: Estimate) -> Estimate:
    """the interval (low, high) of ours minus theirs, each a mean with its half-width.

    The two are independent, so that the difference's half-width is the root of the sum of squares.
    """
    gap, half = ours[0] - theirs[0], math.hypot(ours[1], theirs[1])
    return gap - half, gap + half


@apart.mistake("your difference is theirs minus ours.")
def _(ours, theirs):
    return apart.check.reference(theirs, ours)


@apart.mistake("you add the half-widths: independent errors add as squares.")
def _(ours, theirs):
    gap, half = ours[0] - theirs[0], ours[1] + theirs[1]
    return gap - half, gap + half


@apart.mistake("you take the paper's mean as exact: it has an interval, too.")
def _(ours, theirs):
    return apart.check.reference(ours, (theirs[0], 0.0))


@apart.mistake("you return the difference and its half-width: return its two ends.")
def _(ours, theirs):
    return ours[0] - theirs[0], math.hypot(ours[1], theirs[1])


@apart.mistake("you forget the root: add the squares, then take it.")
def _(ours, theirs):
    gap, half = ours[0] - theirs[0], ours[1] ** 2 + theirs[1] ** 2
    return gap - half, gap + half


def _intervals(seed: int) -> list[dict]:
    """Forty intervals each, of all kinds, one of them endless."""
    found = []
    for number in numbers(seed):
        draw = seeds.numpy_generator(number, "checks")
        middle, half = draw.uniform(-6, 6, 40), draw.uniform(0.2, 4, 40)
        half[-1] = 1e6
        found.append(named(low=middle - half, high=middle + half, limit=2.0))
    return found


@piece("verdict(low, high, limit)", _intervals, over="sets of intervals")
def verdict(low: np.ndarray, high: np.ndarray, limit: float) -> np.ndarray:
    """1 (equal) where the interval is within −limit to limit, −1 (different) where outside, else 0.

    `low` and `high` are arrays, and the answer is one of integers.
    """
    within, outside = (low >= -limit) & (high <= limit), (low > limit) | (high < -limit)
    return np.where(within, EQUAL, np.where(outside, DIFFERENT, UNDECIDED))


@verdict.mistake("you call equal what is not shown to differ: that is undecided.")
def _(low, high, limit):
    outside = (low > limit) | (high < -limit)
    return np.where(outside, DIFFERENT, EQUAL)


@verdict.mistake("you call different what is not shown to be equal: that is undecided.")
def _(low, high, limit):
    return np.where((low >= -limit) & (high <= limit), EQUAL, DIFFERENT)


@verdict.mistake("you test against zero: different is an interval wholly outside the band.")
def _(low, high, limit):
    within, outside = (low >= -limit) & (high <= limit), (low > 0) | (high < 0)
    return np.where(within, EQUAL, np.where(outside, DIFFERENT, UNDECIDED))


@verdict.mistake("you look at the middle only: the whole interval has to lie within, or outside.")
def _(low, high, limit):
    return np.where(np.abs(low + high) / 2 <= limit, EQUAL, DIFFERENT)


@verdict.mistake("your signs are swapped: 1 is equal, -1 is different.")
def _(low, high, limit):
    return -verdict.check.reference(low, high, limit)


def _clients(seed: int) -> list[dict]:
    """Two attacks on the same clients, which are harder or easier for both."""
    found = []
    for k, number in enumerate(numbers(seed)):
        draw = seeds.numpy_generator(number, "checks")
        hard = draw.normal(20, 4, 4 + k)
        a, b = (hard + draw.normal(shift, 1, 4 + k) for shift in (2, 0))
        found.append(named(sme=a, ig=b))
    return found


@piece("gain(sme, ig)", _clients, over="sets of clients")
def gain(sme: np.ndarray, ig: np.ndarray) -> Estimate:
    """the interval (low, high) of SME's gain over IG on the same clients, entry by entry."""
    mean, half = _estimate(sme - ig)
    return mean - half, mean + half


@gain.mistake("you compare the two means as if the clients were others: take differences first.")
def _(sme, ig):
    return apart.check.reference(_estimate(sme), _estimate(ig))


@gain.mistake("yours is IG's gain over SME: the sign is the other.")
def _(sme, ig):
    return gain.check.reference(ig, sme)


@gain.mistake("you return the gain and its half-width: return its two ends.")
def _(sme, ig):
    return _estimate(sme - ig)


@gain.mistake("yours is about a single client: the mean's error is the spread over root n.")
def _(sme, ig):
    mean, half = _estimate(sme - ig)
    half *= math.sqrt(len(sme))
    return mean - half, mean + half


def _boards(seed: int) -> list[dict]:
    """Scoreboards of 24 cells: our clients, the paper's mean and its standard error."""
    found = []
    for number in numbers(seed):
        draw = seeds.numpy_generator(number, "checks")
        cells = []
        for k in range(24):
            mean, error = float(draw.normal(25, 3)), float(draw.uniform(0.1, 0.5))
            shift, n = draw.choice([0.0, 1.5, 5.0]), 1 + k % 8
            cells.append((draw.normal(mean + shift, 1.2, n), mean, error))
        found.append(named(cells=cells, limit=2.0, runs=100))
    return found


def _count(
    cells: list, limit: float, runs: int, judge: object, *, least: int = 2
) -> dict[str, int]:
    found = dict.fromkeys(("equal", "different", "undecided"), 0)
    for values, mean, error in cells:
        ours = _estimate(values) if len(values) >= least else (float(np.mean(values)), math.nan)
        half = float(t.ppf(0.975, runs - 1)) * error
        low, high = apart.check.reference(ours, (mean, half))
        said = int(judge(np.array([low]), np.array([high]), limit)[0])
        found[{EQUAL: "equal", DIFFERENT: "different", UNDECIDED: "undecided"}[said]] += 1
    return found


@piece("recount(cells, limit, runs)", _boards, over="scoreboards")
def recount(cells: list, limit: float, runs: int) -> dict[str, int]:
    """how many cells are equal, different and undecided, as a dict with those three names.

    A cell is (our clients' values, the paper's mean, its standard error over `runs` runs). A cell
    with one client is undecided.
    """
    return _count(cells, limit, runs, verdict.check.reference)


@recount.mistake("you decide cells with one client: without a spread there is no verdict.")
def _(cells, limit, runs):
    found = dict.fromkeys(("equal", "different", "undecided"), 0)
    alone = [cell for cell in cells if len(cell[0]) == 1]
    for values, mean, _ in alone:
        found["equal" if abs(values[0] - mean) <= limit else "different"] += 1
    rest = recount.check.reference([c for c in cells if len(c[0]) > 1], limit, runs)
    return {name: found[name] + rest[name] for name in found}


@recount.mistake("you leave out the cells with one client: they count as undecided.")
def _(cells, limit, runs):
    return recount.check.reference([c for c in cells if len(c[0]) > 1], limit, runs)


@recount.mistake("you decide by the means alone: the intervals decide.")
def _(cells, limit, runs):
    near = sum(abs(np.mean(values) - mean) <= limit for values, mean, _ in cells)
    return {"equal": int(near), "different": len(cells) - int(near), "undecided": 0}


@recount.mistake("you call equal what is not shown to differ: that is undecided.")
def _(cells, limit, runs):
    found = recount.check.reference(cells, limit, runs)
    return {
        "equal": found["equal"] + found["undecided"],
        "different": found["different"],
        "undecided": 0,
    }
