"""DP-SGD through Opacus: it trains as we do without noise, and its epsilon is another's too."""

from __future__ import annotations

import math
import sys
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
import torch
from torch import nn

import smelib
from smelib import models
from smelib.defences import client_epsilon, dp_sgd, sample_epsilon
from smelib.errors import InputError

installed = pytest.mark.skipif(
    find_spec("opacus") is None,
    reason="Opacus is not installed: pip install 'smelib[defences]'",
)


def renyi_epsilon(noise: float, rate: float, steps: int, delta: float) -> float:
    """The accountant of the subsampled Gaussian by numerical integration.  [Mironov19, Canonne20]

    $A(a) = E[((1 - q) + q e^{(2x - 1) / 2s^2})^a]$ over $x \\sim N(0, s^2)$, then
    $\\epsilon = T \\log A / (a - 1) + \\log((a - 1) / a) - (\\log\\delta + \\log a) / (a - 1)$.
    """
    best = math.inf
    for order in np.concatenate([np.arange(1.02, 12, 0.02), np.arange(12, 80, 0.5)]):
        x = np.linspace(-12 * noise, order + 12 * noise, 40_001)
        ratio = np.logaddexp(
            math.log1p(-rate) if rate < 1 else -np.inf,
            math.log(rate) + (2 * x - 1) / (2 * noise**2),
        )
        terms = order * ratio - x**2 / (2 * noise**2)
        peak = terms.max()
        area = np.exp(terms - peak).sum() * (x[1] - x[0]) / (noise * math.sqrt(2 * math.pi))
        spent = steps * (math.log(area) + peak) / (order - 1)
        extra = math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
        best = min(best, spent + extra)
    return best


@installed
@pytest.mark.parametrize(
    ("noise", "rate", "steps", "delta"),
    [(1.0, 0.5, 20, 1e-5), (0.7, 0.1, 100, 1e-5), (2.0, 0.01, 1000, 1e-6), (4.0, 1.0, 50, 1e-3)],
)
def test_opacus_s_epsilon_is_an_independent_accountant_s(
    noise: float, rate: float, steps: int, delta: float
) -> None:
    theirs = sample_epsilon(noise, rate, steps, delta=delta)
    ours = renyi_epsilon(noise, rate, steps, delta)
    print(f"noise {noise}, rate {rate}, {steps} steps: Opacus {theirs:.4f}, integrated {ours:.4f}")
    assert theirs == pytest.approx(ours, rel=0.01)


@installed
def test_opacus_s_epsilon_is_above_the_exact_one_of_full_batches() -> None:
    """Without sampling, DP-SGD is T Gaussians one norm apart: the client's formula at C/2."""
    exact = client_epsilon(0.5, 4.0, delta=1e-3, rounds=50)
    theirs = sample_epsilon(4.0, 1.0, 50, delta=1e-3)
    print(f"full batches: exact {exact:.4f}, Opacus's Renyi bound {theirs:.4f}")
    assert exact < theirs < 1.15 * exact


@installed
@pytest.mark.parametrize(
    "how", [{}, {"momentum": 0.9, "weight_decay": 0.01}, {"optimiser": "adam"}]
)
def test_without_noise_and_clipping_it_is_plain_training(tiny: object, how: dict) -> None:
    protocol = smelib.Protocol(3, len(tiny.client), 0.05, schedule=lambda t, n: 1 - t / n, **how)
    start = {k: 1.1 * v for k, v in tiny.network.params().items()}
    found = dp_sgd(tiny.network, tiny.client, protocol, noise=0.0, norm=1e9, before=start)
    plain = smelib.local_update(tiny.network, tiny.client, protocol, before=start)
    assert (found.epsilon, found.rate, found.steps) == (math.inf, 1.0, 3)
    for k, v in plain.after.items():
        assert torch.allclose(found.update.after[k], v, atol=1e-9)


@installed
def test_each_samples_gradient_is_clipped_and_noise_added(tiny: object) -> None:
    protocol = smelib.Protocol(1, len(tiny.client), 1.0)
    start = tiny.network.params()
    kept = {k: v.clone() for k, v in start.items()}

    def move(**how: float) -> torch.Tensor:
        got = dp_sgd(tiny.network, tiny.client, protocol, before=start, **how).update
        return torch.cat([(got.after[k] - v).flatten() for k, v in got.before.items()])

    short = move(noise=0.0, norm=1e-3)
    assert float(short.norm()) <= 1e-3 * (1 + 1e-6)
    noisy = move(noise=2.0, norm=1e-3) - short
    deviation = 2e-3 / len(tiny.client)
    assert float(noisy.std()) == pytest.approx(deviation, rel=0.2)
    assert torch.equal(move(noise=2.0, norm=1e-3), move(noise=2.0, norm=1e-3))
    assert not torch.equal(move(noise=2.0, norm=1e-3), move(noise=2.0, norm=1e-3, seed=1))
    assert all(torch.equal(kept[k], v) for k, v in start.items())
    own = tiny.network.params()
    assert all(torch.equal(kept[k], v) for k, v in own.items()), "the network is not trained"


@installed
def test_its_epsilon_is_the_accountant_s_for_its_own_steps(tiny: object) -> None:
    found = dp_sgd(tiny.network, tiny.client, tiny.protocol, noise=1.0, norm=0.1, delta=1e-3)
    assert (found.rate, found.steps) == (0.5, 6)
    assert found.epsilon == pytest.approx(sample_epsilon(1.0, 0.5, 6, delta=1e-3))


@installed
def test_an_empty_batch_and_little_noise_pass_in_silence(tiny: object) -> None:
    """Each of three samples is in a batch with chance 1/3: of 30 batches some have none."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        protocol = smelib.Protocol(10, 1, 0.1)
        found = dp_sgd(tiny.network, tiny.client, protocol, noise=0.05, norm=1.0)
    assert (found.steps, found.rate) == (30, pytest.approx(1 / 3))
    assert all(bool(torch.isfinite(v).all()) for v in found.update.after.values())


@installed
def test_a_network_with_batch_norm_is_refused() -> None:
    body = nn.Sequential(nn.BatchNorm2d(1), nn.Flatten(), nn.Linear(36, 4))
    network = models.wrap(body, (1, 6, 6), 4)
    client = smelib.Client.of(torch.rand(3, 1, 6, 6), [0, 1, 2], classes=4)
    with pytest.raises(InputError, match=r"DP-SGD cannot train .*BatchNorm"):
        dp_sgd(network, client, smelib.Protocol(1, 3), noise=1.0, norm=1.0)


@pytest.mark.parametrize(
    "how", [{"noise": -1.0}, {"norm": 0.0}, {"delta": 0.0}, {"delta": 2.0}], ids=str
)
def test_settings_that_cannot_be_meant_are_a_sentence(tiny: object, how: dict) -> None:
    given = {"noise": 1.0, "norm": 1.0, **how}
    with pytest.raises(InputError, match="not negative"):
        dp_sgd(tiny.network, tiny.client, tiny.protocol, **given)


def test_without_opacus_the_sentence_says_how_to_get_it(
    tiny: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opacus", None)
    with pytest.raises(InputError, match=r"pip install 'smelib\[defences\]'"):
        dp_sgd(tiny.network, tiny.client, tiny.protocol, noise=1.0, norm=1.0)
