"""A defence is a function from update to update: what each promises, measured."""

from __future__ import annotations

import math
import textwrap
from pathlib import Path

import pytest
import torch
from scipy.stats import norm as normal
from torch import Tensor

import smelib
from smelib import defences, seeds
from smelib import params as P
from smelib.errors import InputError
from smelib.types import Update

IDENTITIES = {
    "none": defences.none,
    "clip(inf)": defences.clip(math.inf),
    "clip(1000)": defences.clip(1000),
    "noise(0)": defences.noise(0),
    "top_k(1)": defences.top_k(1),
    "random_k(1)": defences.random_k(1),
    "quantise(32)": defences.quantise(32),
    "compose()": defences.compose(),
    "compose(clip(inf), noise(0))": defences.compose(defences.clip(math.inf), defences.noise(0)),
}
DEFENCES = {
    "clip": defences.clip(0.5),
    "noise": defences.noise(0.1),
    "top_k": defences.top_k(0.3),
    "random_k": defences.random_k(0.3),
    "quantise": defences.quantise(3),
    "sign": defences.sign(),
    "compose": defences.compose(defences.clip(0.5), defences.noise(0.1)),
}
RANDOM = ("noise", "random_k", "quantise", "compose")


def update(size: int = 40, dtype: torch.dtype = torch.float32) -> Update:
    draw = torch.Generator().manual_seed(0)
    shapes = {"conv.weight": (size, 3), "conv.bias": (size,), "head.weight": (4, size)}
    before = {k: torch.randn(s, generator=draw, dtype=dtype) for k, s in shapes.items()}
    after = {
        k: v + (1 + i) * 0.1 * torch.randn(v.shape, generator=draw, dtype=dtype)
        for i, (k, v) in enumerate(before.items())
    }
    return Update(before, after, 5)


def sent(defence: defences.Defence, given: Update, seed: int = 0) -> Update:
    return defence(given, torch.Generator().manual_seed(seed))


def move(given: Update) -> Tensor:
    return torch.cat([v.flatten() for v in P.sub(given.after, given.before).values()])


def test_none_sends_the_update_itself_and_draws_nothing() -> None:
    held, generator = update(), torch.Generator().manual_seed(1)
    state = generator.get_state()
    assert defences.none(held, generator) is held
    assert torch.equal(generator.get_state(), state)


def test_the_example_of_the_documentation_is_a_defence() -> None:
    text = Path(defences.seam.__file__).read_text(encoding="utf-8")
    example = text.partition(".. code-block:: python\n")[2].partition('"""')[0]
    names = {"Update": Update, "Defence": defences.Defence, "torch": torch}
    exec(textwrap.dedent(example), names)
    held = update()
    first, again, other = (sent(names["noise"](0.1), held, s) for s in (0, 0, 1))
    assert torch.equal(move(first), move(again))
    assert not torch.equal(move(first), move(other))
    assert 0.08 < float((move(first) - move(held)).std()) < 0.12


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", IDENTITIES)
def test_identity_settings_change_nothing_bit_for_bit(name: str, dtype: torch.dtype) -> None:
    near, far = update(dtype=dtype), update(41, dtype)
    # From other weights altogether: there before + (after - before) is not after.
    after = {k: far.after[k].flatten()[: v.numel()].view(v.shape) for k, v in near.before.items()}
    held = Update(near.before, after, 5)
    got = sent(IDENTITIES[name], held)
    assert got.samples == held.samples
    for k, v in held.after.items():
        assert got.after[k].dtype == dtype
        assert torch.equal(got.after[k], v)
        assert torch.equal(got.before[k], held.before[k])


@pytest.mark.parametrize("name", DEFENCES)
def test_the_callers_update_is_left_untouched(name: str) -> None:
    held = update()
    kept = [{k: v.clone() for k, v in w.items()} for w in (held.before, held.after)]
    got = sent(DEFENCES[name], held)
    assert not torch.equal(move(got), move(held))
    for w, copy in zip((held.before, held.after), kept, strict=True):
        assert all(torch.equal(w[k], copy[k]) for k in copy)
    for value in got.after.values():
        value.zero_()
    assert all(torch.equal(held.after[k], v) for k, v in kept[1].items())


@pytest.mark.parametrize("name", DEFENCES)
def test_the_same_seed_sends_the_same_update(name: str) -> None:
    first, again, other = (move(sent(DEFENCES[name], update(), s)) for s in (0, 0, 1))
    assert torch.equal(first, again)
    assert torch.equal(first, other) == (name not in RANDOM)


def test_counters_are_sent_as_they_are() -> None:
    counted = update()
    for weights, count in ((counted.before, 3), (counted.after, 4)):
        weights["norm.num_batches_tracked"] = torch.tensor(count)
    for defence in DEFENCES.values():
        assert int(sent(defence, counted).after["norm.num_batches_tracked"]) == 4


def test_clipping_bounds_the_norm_and_keeps_the_direction() -> None:
    held = update(dtype=torch.float64)
    longest = float(move(held).norm())
    for norm in (1e-6, 0.1, 0.5 * longest, longest * 0.999):
        clipped = move(sent(defences.clip(norm), held))
        print(f"clip({norm:.3g}): {float(clipped.norm()):.12g}")
        assert float(clipped.norm()) == pytest.approx(norm, rel=1e-9)
        assert float(clipped @ move(held)) == pytest.approx(norm * longest, rel=1e-9)


def test_noise_has_the_deviation_it_says() -> None:
    held = update(4000)
    extra = move(sent(defences.noise(0.02), held)) - move(held)
    print(f"noise(0.02): mean {float(extra.mean()):.2g}, deviation {float(extra.std()):.5f}")
    assert abs(float(extra.mean())) < 5 * 0.02 / len(extra) ** 0.5
    assert float(extra.std()) == pytest.approx(0.02, rel=0.02)


def test_top_k_sends_the_largest_and_random_k_any() -> None:
    held = update()
    whole = move(held)
    count = math.ceil(0.299 * len(whole))
    largest = move(sent(defences.top_k(0.299), held))
    assert int((largest != 0).sum()) == count
    assert torch.equal(largest[largest != 0], whole[largest != 0])
    assert float(whole[largest == 0].abs().max()) <= float(largest[largest != 0].abs().min())
    drawn = move(sent(defences.random_k(0.299), held))
    there = drawn != 0
    assert int(there.sum()) == count
    assert torch.allclose(drawn[there], whole[there] * (len(whole) / count), rtol=1e-3)
    assert float(whole[~there].abs().max()) > float(drawn[there].abs().min())


def test_random_k_is_unbiased() -> None:
    held, runs = update(5, torch.float64), 4000
    mean = sum(move(sent(defences.random_k(0.25), held, s)) for s in range(runs)) / runs
    error = (mean - move(held)) / move(held).abs()
    print(f"random_k(0.25): largest relative error of {runs} means {float(error.abs().max()):.3f}")
    assert float(error.abs().max()) < 5 * (3 / runs) ** 0.5


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_the_quantiser_is_unbiased_and_stays_on_its_grid(bits: int) -> None:
    """Twenty values, each rounded ten thousand times."""
    values = torch.linspace(-1, 0.83, 20, dtype=torch.float64) / 3
    moved = values.repeat_interleave(10_000)
    before = {"w": torch.zeros_like(moved)}
    got = sent(defences.quantise(bits), Update(before, {"w": moved}, 1)).after["w"]
    cell = 2 / 3 / (2**bits - 1)
    assert len(got.unique()) <= 2**bits
    assert float((got - moved).abs().max()) < cell * (1 + 1e-9)
    error = got.view(20, -1).mean(dim=1) - values
    print(
        f"quantise({bits}): largest error of a mean, in cells {float(error.abs().max()) / cell:.4f}"
    )
    assert float(error.abs().max()) < 5 * cell / 2 / 100
    assert bits > 6 or len(got[:10_000].unique()) == 1, "the ends of the grid are values"


def test_sign_sends_one_size_per_layer() -> None:
    held = update()
    got = P.sub(sent(defences.sign(), held).after, held.before)
    for k, v in P.sub(held.after, held.before).items():
        assert torch.equal(got[k].sign(), v.sign())
        assert torch.allclose(got[k].abs(), v.abs().mean().expand_as(v), rtol=1e-3)


def test_compose_goes_from_the_left_and_shares_the_stream() -> None:
    held = update()
    short = move(sent(defences.compose(defences.noise(3.0), defences.clip(0.5)), held))
    long = move(sent(defences.compose(defences.clip(0.5), defences.noise(3.0)), held))
    assert float(short.norm()) == pytest.approx(0.5, rel=1e-4)
    assert float(long.norm()) > 10
    twice = move(sent(defences.compose(defences.noise(1.0), defences.noise(1.0)), held))
    assert float((twice - move(held)).std()) == pytest.approx(2**0.5, rel=0.15), "not 2: two draws"


def test_a_federation_uses_a_composed_defence(tiny: object) -> None:
    defence = defences.compose(defences.clip(0.01), defences.quantise(4))
    got = smelib.local_update(tiny.network, tiny.client, tiny.protocol, seed=3, defence=defence)
    again = defence(
        smelib.local_update(tiny.network, tiny.client, tiny.protocol, seed=3),
        seeds.generator(3, "defence"),
    )
    assert torch.equal(move(got), move(again))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: defences.clip(0), "must be positive"),
        (lambda: defences.clip(math.nan), "finite"),
        (lambda: defences.clip("one"), "finite"),
        (lambda: defences.noise(-0.1), "negative"),
        (lambda: defences.noise(math.inf), "finite"),
        (lambda: defences.top_k(0), "more than 0"),
        (lambda: defences.top_k(1.5), "at most 1"),
        (lambda: defences.random_k("half"), "finite"),
        (lambda: defences.quantise(0), "at least 1"),
        (lambda: defences.quantise(2.5), "whole number"),
        (lambda: defences.compose(defences.clip(1), 0.1), "defence 2 of 2"),
        (lambda: defences.client_epsilon(1, 1, delta=0), "between 0 and 1"),
        (lambda: defences.client_epsilon(0, 1, delta=0.1), "positive"),
        (lambda: defences.reconstruction_bound(1, 0, 10, prior=0.1), "share above 0"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_a_sentence(make: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()


def test_a_clients_epsilon_is_that_of_two_gaussians_two_norms_apart() -> None:
    """Delta is the chance of losing more than epsilon: by the formula's own two normals, drawn."""
    norm, sigma, delta, rounds = 0.5, 4.0, 1e-2, 3
    epsilon = defences.client_epsilon(norm, sigma, delta=delta, rounds=rounds)
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(1_000_000, rounds, generator=draw, dtype=torch.float64) * sigma + 2 * norm
    loss = ((x**2 - (x - 2 * norm) ** 2) / (2 * sigma**2)).sum(dim=1)
    lost = float((1 - (epsilon - loss).exp()).clamp(min=0).mean())
    print(f"client epsilon {epsilon:.4f}: delta {delta} by formula, {lost:.5f} over 1e6 draws")
    assert lost == pytest.approx(delta, rel=0.03)


def test_epsilon_at_its_ends() -> None:
    assert defences.client_epsilon(1.0, 0.0, delta=1e-5) == math.inf
    assert defences.client_epsilon(1.0, 1e9, delta=1e-5) == 0.0
    four = defences.client_epsilon(1.0, 2.0, delta=1e-5, rounds=4)
    assert four == pytest.approx(defences.client_epsilon(2.0, 2.0, delta=1e-5))
    less = [defences.client_epsilon(1.0, s, delta=1e-5) for s in (0.01, 0.1, 1.0, 10.0)]
    assert less == sorted(less, reverse=True)


def test_the_bound_on_reconstruction_is_the_formula_s_where_there_is_one() -> None:
    exact = defences.reconstruction_bound(4.0, 1.0, 9, prior=0.1)
    assert exact == pytest.approx(normal.cdf(normal.ppf(0.1) + 3 / 4))
    drawn = defences.reconstruction_bound(4.0, 1 - 1e-9, 9, prior=0.1)
    print(f"reconstruction bound {exact:.4f}, drawn {drawn:.4f}")
    assert drawn == pytest.approx(exact, abs=0.006)
    once = defences.reconstruction_bound(2.0, 0.3, 1, prior=0.1)
    assert once == pytest.approx(0.7 * 0.1 + 0.3 * normal.cdf(normal.ppf(0.1) + 0.5), abs=0.004)
    # Two steps on a grid: the likeliest points first, until the prior is used up.
    x = torch.linspace(-4, 5, 1200, dtype=torch.float64)
    without = torch.exp(-2 * x**2)
    with_it = 0.7 * without + 0.3 * torch.exp(-2 * (x - 1) ** 2)
    p, q = ((v / v.sum())[:, None] * (v / v.sum()) for v in (without, with_it))
    order = (q / p).flatten().argsort(descending=True)
    within = p.flatten()[order].cumsum(0) <= 0.02
    twice = defences.reconstruction_bound(0.5, 0.3, 2, prior=0.02)
    exact = float(q.flatten()[order][within].sum())
    print(f"two steps: bound {exact:.4f} on a grid, drawn {twice:.4f}")
    assert twice == pytest.approx(exact, abs=0.004)
    rare = defences.reconstruction_bound(4.0, 0.1, 9, prior=0.1)
    assert 0.1 < rare < drawn
