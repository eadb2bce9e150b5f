"""What must be true beyond the plane: the share in a plane, and the second half of the proofs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

import smelib
from smelib import theory
from smelib.types import InputError

ALPHA = np.linspace(0, 1, 801)


def outside(vectors: np.ndarray, plane: np.ndarray) -> np.ndarray:
    """The share of each vector that lies outside the plane with these orthonormal rows."""
    rest = vectors - vectors @ plane.T @ plane
    return np.linalg.norm(rest, axis=-1) / np.linalg.norm(vectors, axis=-1)


def length(path: np.ndarray) -> float:
    return float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())


@dataclass(frozen=True)
class Problem:
    """A convex loss in eight dimensions of which two are steep, and a step it can bear."""

    land: theory.Landscape
    hessian: np.ndarray
    w0: np.ndarray
    lr: float
    steps: int

    @property
    def beta(self) -> float:
        return float(np.linalg.eigvalsh(self.hessian)[-1])

    def descend(self) -> np.ndarray:
        return theory.descend(self.land.gradient, self.w0, self.lr, self.steps)


def steep_plane(seed: int) -> Problem:
    """Two large curvatures and a start that lies mostly in their plane."""
    draw, p = np.random.default_rng(seed), 8
    q, _ = np.linalg.qr(draw.normal(size=(p, p)))
    curvatures = np.concatenate([draw.uniform(0.2, 2, 2), draw.uniform(0.001, 0.3, p - 2)])
    start = np.concatenate([draw.normal(size=2), draw.normal(size=p - 2) * draw.uniform(0.01, 0.5)])
    a = q @ np.diag(curvatures) @ q.T
    lr = draw.uniform(0.05, 1) / curvatures.max()
    return Problem(theory.quadratic(a), a, q @ start, lr, int(draw.integers(2, 40)))


def measured(problem: Problem, path: np.ndarray) -> tuple[theory.Path, float] | None:
    """The path's constants and its best mismatch, or nothing where the assumptions fail."""
    gradients = problem.land.gradient(path)
    on_segment = problem.land.gradient(theory.segment(path[0], path[-1], ALPHA))
    plane = np.linalg.svd(gradients)[2][:2]
    g2 = float(outside(np.concatenate([gradients, on_segment]), plane).max())
    if theory.condition(problem.land.gradient, path) < g2:
        return None
    chord = float(np.linalg.norm(path[0] - path[-1]))
    smallest = float(np.linalg.norm(on_segment, axis=1).min())
    best = 1 - theory.cosine(path[0] - path[-1], on_segment).max()
    return theory.Path(g2, length(path), chord, problem.beta, smallest), float(best)


def drop(problem: Problem, path: np.ndarray) -> float:
    return float(problem.land.loss(path[0]) - problem.land.loss(path[-1]))


# The share in a plane.


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_the_gram_matrix_gives_what_the_svd_gives(seed: int, rank: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(7, 40))
    kept = np.linalg.svd(rows, full_matrices=False)[2][:rank]
    expected = np.linalg.norm(rows @ kept.T, axis=1) / np.linalg.norm(rows, axis=1)
    np.testing.assert_allclose(theory.plane_ratios(rows @ rows.T, rank=rank), expected, rtol=1e-9)


def test_the_plane_can_be_that_of_the_first_vectors_only() -> None:
    rows = np.random.default_rng(0).normal(size=(9, 30))
    kept = np.linalg.svd(rows[:5], full_matrices=False)[2][:2]
    expected = np.linalg.norm(rows @ kept.T, axis=1) / np.linalg.norm(rows, axis=1)
    np.testing.assert_allclose(theory.plane_ratios(rows @ rows.T, fit=5), expected, rtol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_no_plane_holds_more_energy(seed: int) -> None:
    draw = np.random.default_rng(seed)
    rows = draw.normal(size=(6, 10))
    square = np.diag(rows @ rows.T)
    best = (square * theory.plane_ratios(rows @ rows.T) ** 2).sum()
    other = np.linalg.qr(draw.normal(size=(10, 2)))[0]
    assert ((rows @ other) ** 2).sum() < best < square.sum()


@pytest.mark.parametrize("count", [1, 2, 3, 20])
def test_vectors_of_a_plane_lie_in_it(count: int) -> None:
    draw = np.random.default_rng(count)
    rows = draw.normal(size=(count, 2)) @ draw.normal(size=(2, 50))
    np.testing.assert_allclose(theory.plane_ratios(rows @ rows.T), 1, atol=1e-12)


@pytest.mark.parametrize("chunk", [1, 5, 1000])
def test_the_gram_matrix_does_not_depend_on_the_chunk(chunk: int) -> None:
    draw = torch.Generator().manual_seed(0)
    vectors = [
        {"a": torch.randn(3, 4, generator=draw), "b": torch.randn(7, generator=draw)}
        for _ in range(5)
    ]
    flat = torch.stack([torch.cat([v["a"].flatten(), v["b"]]) for v in vectors]).double()
    np.testing.assert_allclose(theory.gram(vectors, chunk=chunk), flat @ flat.T, rtol=1e-12)


def test_the_helix_is_as_far_from_a_plane_in_any_dimension() -> None:
    """The dimension of the space is not what matters: its three directions are."""
    path = theory.flow(theory.helix().gradient, [0, 0, 0], 2 * np.pi, points=401)[:-1]
    basis, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(5000, 3)))
    small = theory.helix().gradient(path)
    large = small @ basis.T
    ratios = theory.plane_ratios(large @ large.T)
    np.testing.assert_allclose(ratios, theory.plane_ratios(small @ small.T), atol=1e-6)
    assert ratios.min() == pytest.approx(0.5**0.5, abs=1e-3)


def test_one_full_step_is_parallel_at_the_start(tiny: object) -> None:
    protocol = smelib.Protocol(epochs=1, batch_size=len(tiny.client), lr=0.5)
    update = smelib.local_update(tiny.network, tiny.client, protocol)
    found = theory.segment_cosines(tiny.network, tiny.client, update, [0.0, 1.0])
    assert found[0] == pytest.approx(1, abs=1e-9)
    assert found[1] < found[0]


def test_with_full_batches_the_path_gradients_add_up_to_the_update(tiny: object) -> None:
    protocol = smelib.Protocol(epochs=4, batch_size=len(tiny.client), lr=0.5)
    path = list(smelib.local_path(tiny.network, tiny.client, protocol))
    gradients = theory.path_gradients(tiny.network, tiny.client, path[:-1])
    for name in path[0]:
        total = 0.5 * sum(g[name] for g in gradients)
        torch.testing.assert_close(path[0][name] - path[-1][name], total)


def widened(weights: dict, dtype: torch.dtype) -> dict:
    return {k: v.to(dtype) for k, v in weights.items()}


def test_paths_are_measured_in_the_weights_precision() -> None:
    """A client's images are float32; weights in double precision give a finer answer."""
    client = smelib.data.client("mnist", 2, seed=0)
    model = smelib.models.mlp(client.shape, client.classes)
    update = smelib.local_update(model, client, smelib.Protocol(2, 2, lr=0.1), seed=0)
    fine = smelib.Update(
        widened(update.before, torch.float64), widened(update.after, torch.float64), 2
    )
    (narrow,), (wide,) = (theory.path_gradients(model, client, [u.before]) for u in (update, fine))
    for name, value in wide.items():
        assert value.dtype == torch.float64
        torch.testing.assert_close(value.float(), narrow[name], rtol=1e-3, atol=1e-6)
    found = theory.segment_cosines(model, client, fine, [0.0, 0.5, 1.0])
    expected = theory.segment_cosines(model, client, update, [0.0, 0.5, 1.0])
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_segment_cosines_do_not_see_frozen_weights() -> None:
    """One full step is parallel to its own gradient, also where a layer stays as it is."""
    body = torch.nn.Sequential(
        torch.nn.Flatten(), torch.nn.Linear(36, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4)
    )
    body[1].requires_grad_(False)
    model = smelib.models.wrap(body, (1, 6, 6), 4)
    draw = torch.Generator().manual_seed(0)
    images = torch.rand(3, 1, 6, 6, generator=draw)
    client = smelib.data.Client(images, torch.tensor([0, 1, 3]), 4, "random")
    update = smelib.local_update(model, client, smelib.Protocol(1, 3, lr=0.5), seed=0)
    found = theory.segment_cosines(model, client, update, [0.0])
    assert found[0] == pytest.approx(1, abs=1e-5), "the frozen layer is in one of the two"


def test_an_update_that_says_nothing_has_no_direction(tiny: object) -> None:
    still = smelib.Update(tiny.update.before, tiny.update.before, 3)
    with pytest.raises(InputError, match="equal"):
        theory.segment_cosines(tiny.network, tiny.client, still, [0.0])


def test_a_gram_matrix_needs_vectors_of_one_layout() -> None:
    a, b = torch.ones(2), torch.ones(3)
    with pytest.raises(InputError, match="no vectors"):
        theory.gram([])
    with pytest.raises(InputError, match="names"):
        theory.gram([{"a": a}, {"a": a, "b": b}])


@pytest.mark.parametrize("asked", [{"rank": 0}, {"rank": -1}, {"fit": 0}, {"fit": 4}])
def test_a_plane_is_fitted_to_enough_vectors(asked: dict) -> None:
    """A rank of zero once meant all directions."""
    with pytest.raises(InputError, match=r"rank|fit"):
        theory.plane_ratios(np.eye(3), **asked)


def test_a_zero_vector_has_no_share() -> None:
    rows = np.array([[1.0, 0, 0], [0, 2, 0], [0, 0, 0]])
    np.testing.assert_array_equal(theory.plane_ratios(rows @ rows.T), [1, 1, np.nan])


# The plane and three dimensions, where test_theory.py leaves off.


def test_two_dimensional_descent_has_a_parallel_point() -> None:
    """prf-gd2, on losses that are not convex, with the longest step allowed."""
    checked = 0
    for seed in range(300):
        draw = np.random.default_rng(seed)
        a, phase = draw.normal(size=(6, 2)) * draw.uniform(0.3, 2), draw.uniform(0, 2 * np.pi, 6)
        height, bowl = draw.normal(size=6), draw.uniform(0, 1, 2)

        def gradient(w: np.ndarray, a=a, phase=phase, height=height, bowl=bowl) -> np.ndarray:
            return bowl * w - (height * np.sin(w @ a.T + phase)) @ a

        beta = bowl.max() + (np.abs(height) * (a**2).sum(1)).sum()
        path = theory.descend(gradient, 2 * draw.normal(size=2), 1 / beta, draw.integers(2, 60))
        u = path[0] - path[-1]
        if (gradient(path[:-1]) @ u).min() < 0:
            continue
        push = theory.cross(u, gradient(theory.segment(path[0], path[-1], np.linspace(0, 1, 2001))))
        checked += 1
        slack = 1e-4 * np.abs(push).max()  # a zero may lie between two points of the grid
        assert push.min() <= slack
        assert push.max() >= -slack
    assert checked > 100


@pytest.mark.parametrize("seed", range(20))
def test_three_curvatures_have_no_parallel_point(seed: int) -> None:
    """prf-quadratic: the quotients of the proof never agree, and the cosine stays below one."""
    draw = np.random.default_rng(seed)
    curvatures = np.cumsum(draw.uniform(0.5, 2, 3))
    land, w0 = theory.quadratic(np.diag(curvatures)), draw.choice([-1, 1], 3) * draw.uniform(1, 2)
    end = np.exp(-curvatures) * w0
    cosines = theory.cosines(land.gradient, w0, end, np.linspace(-3, 4, 7001))
    assert np.abs(cosines).max() < 1 - 1e-7


def test_the_best_cosine_of_the_page_on_proofs() -> None:
    land = theory.quadratic(np.diag([1.0, 2.0, 4.0]))
    best = theory.cosines(land.gradient, np.ones(3), np.exp([-1.0, -2.0, -4.0]), ALPHA).max()
    assert best == pytest.approx(0.998, abs=5e-4)


def test_a_convex_valley_can_turn_the_flow_by_more_than_a_right_angle() -> None:
    """prf-convex-gap's three planes, rounded off: the last gradient points back."""
    angles = np.radians([0, 60, 120])
    slopes = np.array([1, 0.3, 0.1])[:, None] * np.stack([np.cos(angles), np.sin(angles)], -1)

    def gradient(w: np.ndarray) -> np.ndarray:
        heights = (slopes @ w + [0, 0, -0.25]) / 0.005
        weights = np.exp(heights - heights.max())
        return weights @ slopes / weights.sum()

    path = theory.descend(gradient, [5.0, 0.0], 2e-3, 6000)
    backwards = theory.cosine(path[0] - path[1:], np.array([gradient(w) for w in path[1:]]))
    assert backwards.min() < -0.2


# Many dimensions: the lemmas and the theorem for gradient descent.


@pytest.mark.parametrize("seed", range(50))
def test_inner_products_in_the_plane(seed: int) -> None:
    """prf-plane."""
    draw = np.random.default_rng(seed)
    plane = np.linalg.qr(draw.normal(size=(6, 2)))[0].T
    a, v = draw.normal(size=(2, 6)) * draw.uniform(0.1, 3, 6)
    g2 = outside(a, plane)
    least = (theory.cosine(a, v) - g2) * np.linalg.norm(a) * np.linalg.norm(v)
    assert (plane @ a) @ (plane @ v) >= least - 1e-12


@pytest.mark.parametrize("seed", range(50))
def test_the_path_stays_near_the_plane(seed: int) -> None:
    """prf-near, both claims; neither needs the path to keep its direction."""
    problem = steep_plane(seed)
    path = problem.descend()
    gradients = problem.land.gradient(path)
    plane = np.linalg.svd(gradients)[2][:2]
    room = outside(gradients, plane).max() * length(path)
    chord = theory.segment(path[0], path[-1], np.linspace(0, 1, 21))
    apart = path[:, None] - chord[None]
    assert np.linalg.norm(apart - apart @ plane.T @ plane, axis=-1).max() <= room * (1 + 1e-9)


def test_the_bound_for_gradient_descent_holds() -> None:
    """prf-gd, wherever its assumptions do."""
    pairs = []
    for seed in range(500):
        problem = steep_plane(seed)
        if (found := measured(problem, problem.descend())) is not None:
            path, best = found
            assert best <= theory.gd_bound(path) + 1e-9
            pairs.append((best, theory.gd_bound(path)))
    assert len(pairs) > 100
    best, bound = np.median(pairs, axis=0)
    assert bound > 100 * best  # true, and mostly empty


def test_the_bound_holds_where_the_curvature_changes() -> None:
    """prf-gd on a ridge-regularised logistic loss, whose curvature is at most beta."""
    informative = 0
    for seed in range(100):
        draw = np.random.default_rng(seed)
        x = draw.normal(size=(20, 8)) * np.array([2, 1, *draw.uniform(0.001, 0.05, 6)])
        y = draw.choice([-1.0, 1.0], 20)

        def gradient(w: np.ndarray, x=x, y=y) -> np.ndarray:
            return -(y / (1 + np.exp(y * (w @ x.T)))) @ x / len(x) + 1e-3 * w

        hessian = x.T @ x / (4 * len(x)) + 1e-3 * np.eye(8)
        land = theory.Landscape(loss=lambda w: np.zeros(w.shape[:-1]), gradient=gradient)
        beta = np.linalg.eigvalsh(hessian)[-1]
        w0 = draw.normal(size=8) * 0.1
        problem = Problem(land, hessian, w0, draw.uniform(0.1, 1) / beta, int(draw.integers(2, 20)))
        if (found := measured(problem, problem.descend())) is not None:
            path, best = found
            assert best <= theory.gd_bound(path) + 1e-9
            informative += theory.gd_bound(path) < 1
    assert informative > 20


def test_an_invariant_plane_has_no_price() -> None:
    """prf-gd-gap, part 1: where the plane's gradient depends on the plane only, epsilon is zero."""
    checked = 0
    for seed in range(300):
        problem = steep_plane(seed)
        path = problem.descend()
        plane = np.linalg.eigh(problem.hessian)[1][:, -2:].T
        on_segment = problem.land.gradient(theory.segment(path[0], path[-1], ALPHA))
        gradients = problem.land.gradient(path)
        g2 = outside(np.concatenate([gradients, on_segment]), plane).max()
        if theory.condition(problem.land.gradient, path) < g2:
            continue
        checked += 1
        best = 1 - theory.cosine(path[0] - path[-1], on_segment).max()
        detour = length(path) / np.linalg.norm(path[0] - path[-1])
        assert best <= (g2 * (1 + detour)) ** 2 + 1e-6  # the best alpha is between two of the grid
    assert checked > 50


@pytest.mark.parametrize("seed", range(50))
def test_the_length_of_the_path_is_bounded_by_the_drop(seed: int) -> None:
    """prf-length."""
    problem = steep_plane(seed)
    path, lr = problem.descend(), problem.lr
    room = lr * problem.steps / (1 - lr * problem.beta / 2) * drop(problem, path)
    assert length(path) ** 2 <= room * (1 + 1e-9)


def test_the_bound_in_the_papers_terms() -> None:
    """prf-gd-loss and prf-gd-vacuous: the loss's fall bounds the detour and the price."""
    checked = 0
    for seed in range(200):
        problem = steep_plane(seed)
        path = problem.descend()
        if (found := measured(problem, path)) is None:
            continue
        checked += 1
        known, _ = found
        k = theory.Constants(
            outside=known.outside,
            lipschitz=float(np.linalg.norm(problem.land.gradient(path), axis=1).max()),
            beta=known.beta,
            gamma=float(np.linalg.eigvalsh(problem.hessian)[0]),
            lr=problem.lr,
            steps=problem.steps,
            drop=drop(problem, path),
            left=float(problem.land.loss(path[-1])),
        )
        assert known.outside * known.detour <= k.c_gd * (1 + 1e-9)
        g = k.outside**2 * k.lr / (1 - k.lr * k.beta / 2)
        price = k.beta**2 * k.steps * g / (2 * k.gamma * (1 - k.outside**2)) * k.drop / k.left
        assert known.price**2 <= price * (1 + 1e-9)
        assert k.c_gd >= k.outside * (1 - 1e-9)
        assert theory.paper_gd_bound(k) >= 4 * k.outside**2 * (1 - 1e-9)
    assert checked > 50


# Noise.


def noisy(problem: Problem, size: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A path of descent with independent noise of mean zero, and that noise."""
    draw = np.random.default_rng(seed)
    noise = size * draw.normal(size=(problem.steps, len(problem.w0)))
    path = [problem.w0]
    for e in noise:
        path.append(path[-1] - problem.lr * (problem.land.gradient(path[-1]) + e))
    return np.stack(path), noise


@pytest.mark.parametrize("seed", range(50))
def test_two_runs_from_one_start_stay_close(seed: int) -> None:
    """prf-runs, parts 1 and 2, which hold for every noise."""
    problem = steep_plane(seed)
    path, noise = noisy(problem, 10.0 ** (seed % 5 - 3), seed)
    gap = np.linalg.norm(path[-1] - problem.descend()[-1])
    sums = np.linalg.norm(np.cumsum(noise, axis=0), axis=1).max()
    growth = (1 + problem.lr * problem.beta) ** (problem.steps - 1)
    assert gap <= problem.lr * sums * growth * (1 + 1e-9)
    assert gap <= problem.lr * np.linalg.norm(noise, axis=1).sum() * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_the_mean_square_gap_grows_with_the_steps_only(seed: int) -> None:
    """prf-runs, part 3: the mean over 400 runs, and the share beyond Markov's bound."""
    problem, size = steep_plane(seed), 0.1
    end = problem.descend()[-1]
    gaps = [np.linalg.norm(noisy(problem, size, 1000 + i)[0][-1] - end) for i in range(400)]
    square = problem.lr**2 * problem.steps * size**2 * len(problem.w0)  # eta^2 T S^2
    assert np.mean(np.square(gaps)) <= 1.1 * square
    assert np.mean(np.array(gaps) > np.sqrt(square / 0.1)) <= 0.1


@pytest.mark.parametrize("seed", range(50))
def test_directions_of_close_vectors(seed: int) -> None:
    """prf-directions."""
    draw = np.random.default_rng(seed)
    a, b, c = draw.normal(size=(3, 5)) * 10.0 ** draw.uniform(-2, 2, (3, 1))

    def apart(x: np.ndarray, y: np.ndarray) -> float:
        return float(np.sqrt(2 * max(0.0, 1 - theory.cosine(x, y))))

    unit = [x / np.linalg.norm(x) for x in (a, b)]
    assert apart(a, b) == pytest.approx(np.linalg.norm(unit[0] - unit[1]), abs=1e-7)
    assert apart(a, b) <= 2 * np.linalg.norm(a - b) / np.linalg.norm(b) + 1e-12
    assert apart(a, c) <= apart(a, b) + apart(b, c) + 1e-12


def test_the_bound_for_stochastic_descent_holds() -> None:
    """prf-sgd with the gap that is certain, and with the one that holds in nine of ten runs."""
    certain = likely = broken = 0
    for seed in range(400):
        problem = steep_plane(seed)
        if (found := measured(problem, problem.descend())) is None:
            continue
        known, size = found[0], 10.0 ** (seed % 4 - 5)
        path, noise = noisy(problem, size, seed)
        best = 1 - theory.cosines(problem.land.gradient, path[0], path[-1], ALPHA).max()
        sure = problem.lr * np.linalg.norm(noise, axis=1).sum()
        if (bound := theory.sgd_bound(known, sure)) < 1:
            certain += 1
            assert best <= bound + 1e-9
        probable = problem.lr * size * np.sqrt(len(problem.w0) * problem.steps / 0.1)
        if (bound := theory.sgd_bound(known, probable)) < 1:
            likely += 1
            broken += best > bound + 1e-9
    assert min(certain, likely) > 20
    assert broken <= 0.1 * likely


def test_without_noise_the_two_bounds_agree_up_to_a_cross_term() -> None:
    path = theory.Path(outside=0.1, length=2.0, chord=1.6, beta=1.0, smallest=4.0)
    assert theory.gd_bound(path) <= theory.sgd_bound(path, 0.0) <= 2 * theory.gd_bound(path)
    assert theory.sgd_bound(path, 0.1) > theory.sgd_bound(path, 0.0)


def test_gradients_in_a_plane_need_no_allowance() -> None:
    path = theory.Path(outside=0.0, length=2.0, chord=1.6, beta=1.0, smallest=4.0)
    assert theory.gd_bound(path) == theory.sgd_bound(path, 0.0) == 0


def test_the_papers_bound_for_sgd_says_where_it_says_nothing() -> None:
    known = {"outside": 0.01, "lipschitz": 1.0, "beta": 1.0, "gamma": 0.1, "steps": 5}
    quiet = theory.Constants(**known, lr=0.01, drop=0.04, left=1.0)
    bound, chance = theory.paper_sgd_bound(quiet)
    assert 0 < bound < 1
    assert chance == 1
    loud = theory.Constants(**known, lr=0.01, drop=0.04, left=1.0, noise=1.0)
    assert theory.paper_sgd_bound(loud)[0] > bound
    assert theory.paper_sgd_bound(loud)[1] < 0
    flat = theory.Constants(**known, lr=0.01, drop=1e-6, left=1.0)
    assert theory.paper_sgd_bound(flat)[0] == np.inf


def test_the_papers_probability_is_that_of_its_lemma() -> None:
    """Bernstein's inequality for its sum of noise; with $c$ for $c^2$ it would promise more."""
    draw, binding = np.random.default_rng(0), 0
    for _ in range(300):
        lr, beta, noise, drop = 10.0 ** draw.uniform((-4, -1, -2, -2), (-1, 2, 1, 1))
        steps = int(draw.integers(1, 60))
        known = {"outside": 0.01, "lipschitz": 1.0, "gamma": 0.1, "left": 1.0, "noise": noise}
        k = theory.Constants(**known, beta=beta, lr=lr, steps=steps, drop=drop)
        chance = theory.paper_sgd_bound(k)[1]
        c = 1 / (np.sqrt(lr) * (1 + lr * beta) ** (steps - 1))
        reach = c * drop  # what the norm of the summed noise must stay below
        tail = np.exp(-(reach**2) / 2 / (steps * noise**2 + noise * reach / 3))
        assert chance <= 1 - 3 * steps * tail + 1e-9
        assert chance <= 1 - 3 * steps * np.exp(-drop / (4 * np.sqrt(lr) * noise)) + 1e-9
        binding += c < 1
    assert binding > 30


KNOWN = {"outside": 0.1, "length": 2.0, "chord": 1.6, "beta": 1.0, "smallest": 4.0}


@pytest.mark.parametrize("change", [{"outside": 1.0}, {"smallest": 0.0}])
def test_a_bound_that_says_nothing_is_infinite(change: dict) -> None:
    path = theory.Path(**{**KNOWN, **change})
    assert theory.gd_bound(path) == theory.sgd_bound(path, 0.1) == np.inf


@pytest.mark.parametrize(
    "change",
    [
        {"outside": 1.1},
        {"outside": np.nan},
        {"chord": 0.0},
        {"length": 1.0},
        {"beta": -1.0},
        {"smallest": -1.0},
    ],
)
def test_constants_of_no_path_are_refused(change: dict) -> None:
    with pytest.raises(InputError, match=next(iter(change))):
        theory.Path(**{**KNOWN, **change})


def test_a_gap_between_two_runs_is_no_negative_number() -> None:
    with pytest.raises(InputError, match="gap"):
        theory.sgd_bound(theory.Path(**KNOWN), -0.1)


PAPER = {
    "outside": 0.01,
    "lipschitz": 1.0,
    "beta": 1.0,
    "gamma": 0.1,
    "lr": 0.01,
    "steps": 5,
    "drop": 0.04,
    "left": 1.0,
}


@pytest.mark.parametrize(
    "change", [{"beta": 200.0}, {"beta": 300.0}, {"drop": 0.0}, {"drop": -1.0}]
)
def test_the_papers_bounds_are_infinite_where_descent_is_not_sure_to_descend(change: dict) -> None:
    """At $\\eta \\beta \\ge 2$ the constant was the root of a negative number."""
    k = theory.Constants(**{**PAPER, **change})
    assert k.c_gd == theory.paper_gd_bound(k) == theory.paper_sgd_bound(k)[0] == np.inf


@pytest.mark.parametrize("change", [{"left": 0.0}, {"gamma": 0.0}, {"outside": 1.0}])
def test_the_papers_bound_for_sgd_is_infinite_without_strong_convexity(change: dict) -> None:
    assert theory.paper_sgd_bound(theory.Constants(**{**PAPER, **change}))[0] == np.inf


def test_the_papers_bound_for_sgd_stands_many_steps() -> None:
    """The growth over the steps once overflowed, and zero noise times infinity is no number."""
    many = {**PAPER, "beta": 100.0, "outside": 1e-9, "steps": 5000}
    bound, chance = theory.paper_sgd_bound(theory.Constants(**many))
    assert np.isfinite(bound)
    assert chance == 1
    bound, chance = theory.paper_sgd_bound(theory.Constants(**many, noise=0.1))
    assert bound == np.inf
    assert chance <= 0


@pytest.mark.parametrize("change", [{"steps": 0}, {"lr": 0.0}, {"noise": -1.0}, {"drop": np.nan}])
def test_constants_of_no_descent_are_refused(change: dict) -> None:
    with pytest.raises(InputError, match=next(iter(change))):
        theory.Constants(**{**PAPER, **change})


def test_every_test_named_in_the_proofs_exists() -> None:
    root = Path(__file__).resolve().parents[1]
    named = re.findall(r"`(test_\w+)`", (root / "book" / "proofs.md").read_text())
    written = "\n".join(p.read_text() for p in (root / "tests").glob("test_*.py"))
    assert len(named) > 20
    assert not [name for name in named if f"def {name}(" not in written]
