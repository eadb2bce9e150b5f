"""The rule on synthetic cells whose truth is known: it errs as often as it says it may."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from smelib.reproduce import claims, verdicts
from smelib.reproduce.verdicts import DECIBELS, DIFFERENT, EQUAL, FACTORS, UNDECIDED, Mean

DRAWS = 10_000
PAPER = 25.0
BAND = DECIBELS.limit
CLIENTS = [2, 3, 5, 10]


def rates(n: int, truth: float, spread: float, seed: int = 0) -> dict[str, float]:
    """How often each verdict falls over 10,000 draws of our clients and of the paper's hundred."""
    draw = np.random.default_rng([seed, n])
    ours = draw.normal(PAPER + truth, spread, (DRAWS, n))
    hundred = draw.normal(PAPER, spread, (DRAWS, verdicts.RUNS))
    theirs = verdicts.mean(hundred)
    said = verdicts.verdict(verdicts.mean(ours) - theirs, BAND)
    return {v: float((said == v).mean()) for v in (EQUAL, DIFFERENT, UNDECIDED)}


@pytest.mark.parametrize("n", CLIENTS)
@pytest.mark.parametrize("truth", [-BAND, BAND])
def test_at_the_edge_each_error_is_half_of_five_per_cent(n: int, truth: float) -> None:
    """A true difference of exactly 2 dB is neither; each side of the interval errs in 2.5 %."""
    said = rates(n, truth, spread=0.1)  # so little that the interval fits into the band
    assert said[EQUAL] == pytest.approx(0.023, abs=0.006)
    assert said[DIFFERENT] == pytest.approx(0.023, abs=0.006)


@pytest.mark.parametrize("n", CLIENTS)
def test_with_the_clients_usual_spread_no_error_is_more_frequent(n: int) -> None:
    """Clients differ by about 3 dB: `equal` then needs many, and is never given away."""
    said = rates(n, BAND, spread=3.0)
    assert said[EQUAL] <= 0.025 + 0.005
    assert said[DIFFERENT] == pytest.approx(0.023, abs=0.006)


@pytest.mark.parametrize("n", CLIENTS)
def test_no_difference_is_almost_never_called_one(n: int) -> None:
    assert rates(n, 0.0, spread=3.0)[DIFFERENT] <= 0.025
    said = rates(n, 0.0, spread=0.1)
    assert said[DIFFERENT] == 0
    assert said[EQUAL] > (0.9 if n == 2 else 0.999)


@pytest.mark.parametrize("n", CLIENTS)
@pytest.mark.parametrize("spread", [0.1, 1.5, 3.0])
@pytest.mark.parametrize("truth", [0.0, BAND])
def test_the_expected_numbers_are_those_of_the_draws(n: int, spread: float, truth: float) -> None:
    """What stands beside the counts is computed; here it is drawn."""
    ours, theirs = Mean(0.0, spread / np.sqrt(n), n - 1), Mean(0.0, spread / 10, 99)
    expected = verdicts.chances(ours, theirs, BAND, truth)
    said = rates(n, truth, spread, seed=1)
    assert expected == pytest.approx((said[EQUAL], said[DIFFERENT]), abs=0.012)


def test_satterthwaite_s_degrees_of_freedom_would_err_twice_as_often() -> None:
    """Why the rule does not use them: a small spread by chance makes a few clients look certain."""
    draw = np.random.default_rng(0)
    ours, hundred = draw.normal(0, 3, (DRAWS, 2)), draw.normal(0, 3, (DRAWS, 100))
    welch = stats.ttest_ind(ours, hundred, axis=1, equal_var=False).confidence_interval(0.95)
    missed = ((welch.low > 0) | (welch.high < 0)).mean()
    found = verdicts.mean(ours) - verdicts.mean(hundred)
    assert missed > 0.10
    assert ((found.low > 0) | (found.high < 0)).mean() == pytest.approx(0.045, abs=0.008)


def test_for_many_clients_the_difference_is_welch_s() -> None:
    draw = np.random.default_rng(0)
    a, b = draw.normal(30, 3, 60), draw.normal(29, 3, 100)
    welch = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    found = verdicts.mean(a) - verdicts.mean(b)
    assert (found.low, found.high) == pytest.approx(tuple(welch), abs=0.02)


def test_the_interval_of_a_mean_is_student_s() -> None:
    found = verdicts.mean((29.0, 30.0, 31.0)).interval
    assert (found.low, found.high) == pytest.approx((30 - 2.4841, 30 + 2.4841), abs=1e-3)


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        ((29.9, 30.0, 30.1), EQUAL),
        ((31.9, 32.0, 32.1), UNDECIDED),  # on the edge
        ((33.9, 34.0, 34.1), DIFFERENT),
        ((25.9, 26.0, 26.1), DIFFERENT),
        ((26.0, 30.0, 34.0), UNDECIDED),  # the right mean, and an interval of 20 dB
        ((30.0,), UNDECIDED),
        ((99.0,), UNDECIDED),
    ],
)
def test_three_verdicts(ours: tuple[float, ...], verdict: str) -> None:
    difference = verdicts.mean(ours) - verdicts.printed(30.0, 0.3, 0.1)
    assert verdicts.verdict(difference, BAND) == verdict


def test_the_paper_s_error_counts() -> None:
    ours = verdicts.mean((31.0, 31.05, 31.1))
    assert verdicts.verdict(ours - verdicts.printed(30.0, 0.1, 0.1), BAND) == EQUAL
    assert verdicts.verdict(ours - verdicts.printed(30.0, 0.9, 0.1), BAND) == UNDECIDED


def test_a_factor_is_a_factor_in_both_directions() -> None:
    theirs = verdicts.printed(0.2, 0.002, 0.001).on(FACTORS)

    def said(*values: float) -> str:
        return str(verdicts.verdict(verdicts.mean(values).on(FACTORS) - theirs, FACTORS.limit))

    assert said(0.259, 0.26, 0.261) == said(0.149, 0.15, 0.151) == EQUAL
    assert said(0.319, 0.32, 0.321) == said(0.119, 0.12, 0.121) == DIFFERENT
    assert said(0.2, 0.3, 0.4) == UNDECIDED


def test_what_is_printed_was_rounded() -> None:
    coarse, fine = verdicts.printed(0.001, 0.0, 0.001), verdicts.printed(0.100, 0.0, 0.001)
    assert coarse.error == fine.error == pytest.approx(0.001 / np.sqrt(12))
    assert coarse.on(FACTORS).error == pytest.approx(0.29, abs=0.01), "0.001 may be 0.0014"
    assert verdicts.printed(20.0, None, 0.1).freedom == np.inf


@pytest.mark.parametrize("n", CLIENTS)
def test_paired_intervals_cover_the_truth(n: int) -> None:
    """Both attacks share a client's luck; a claim's interval is of their difference."""
    draw = np.random.default_rng(n)
    luck = draw.normal(0, 3, (DRAWS, n))
    sme, ig = luck + draw.normal(3, 0.7, (DRAWS, n)), luck + draw.normal(0, 0.7, (DRAWS, n))
    found = verdicts.mean(sme - ig).interval
    assert ((found.low <= 3) & (found.high >= 3)).mean() == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize("n", [3, 5, 10])
@pytest.mark.parametrize("spread", [0.3, 1.5])
def test_a_true_effect_is_seldom_said_not_to_hold(n: int, spread: float) -> None:
    """The paper's effect is true, and small: that nothing is seen of it is said in 2.5 %."""
    draw, truth = np.random.default_rng(n), 1.6
    pairs = draw.normal(truth, spread, (2000, n))
    printed = draw.normal(truth, 0.3, 2000)
    effect = claims.claims()["sme-over-ig"].effects[0]
    said = [
        claims.Evidence("", effect, Mean(p, 0.3, 99), tuple(mine)).verdict
        for p, mine in zip(printed, pairs, strict=True)
    ]
    assert said.count(claims.FAILS) <= 2000 * 0.03


def test_clients_added_while_undecided_err_as_often_as_the_page_says() -> None:
    """Whoever looks again until there is a verdict finds one more often than in 5 %."""
    pairs = np.random.default_rng(0).normal(0, 3, (DRAWS, max(verdicts.LOOKS)))
    seen = [verdicts.mean(pairs[:, :n]).interval for n in verdicts.LOOKS]
    called = np.any([(x.low > 0) | (x.high < 0) for x in seen], axis=0)
    assert called.mean() == pytest.approx(verdicts.LOOKED, abs=0.01)


@pytest.mark.parametrize("n", CLIENTS)
@pytest.mark.parametrize("factor", [1.5, 1 / 1.5])
def test_skewed_clients_err_on_one_side_more_but_not_in_all(n: int, factor: float) -> None:
    """L_sim varies by about 40 % between clients, and more upwards than downwards."""
    draw = np.random.default_rng(n)
    ours = verdicts.mean(factor * draw.lognormal(0, 0.4, (DRAWS, n))).on(FACTORS)
    theirs = verdicts.mean(draw.lognormal(0, 0.4, (DRAWS, verdicts.RUNS))).on(FACTORS)
    said = verdicts.verdict(ours - theirs, FACTORS.limit)
    wrong = [float((said == v).mean()) for v in (EQUAL, DIFFERENT)]
    assert max(wrong) < 0.05
    assert sum(wrong) == pytest.approx(0.05, abs=0.015)
