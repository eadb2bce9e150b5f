"""What must be true of gradient flow and of the segment between its ends."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.linalg import expm

from smelib import theory
from smelib.types import InputError

TURN = 2 * np.pi


def random_bowl(seed: int, d: int = 2) -> tuple[theory.Landscape, np.ndarray, np.ndarray]:
    """A strongly convex quadratic, its matrix, and a start."""
    draw = np.random.default_rng(seed)
    q, _ = np.linalg.qr(draw.normal(size=(d, d)))
    a = q @ np.diag(draw.uniform(0.1, 3.0, d)) @ q.T
    return theory.quadratic(a), a, draw.normal(size=d)


def random_bumps(seed: int) -> tuple[theory.Landscape, np.ndarray]:
    """A bowl with twelve hills and pits, and the flow from a random start."""
    draw = np.random.default_rng(seed)
    bowl, centres = np.diag(draw.uniform(0.05, 0.3, 2)), draw.uniform(-2.5, 2.5, (12, 2))
    land = theory.bumps(bowl, centres, draw.normal(0, 1.2, 12), 0.7)
    return land, theory.flow(land.gradient, draw.uniform(-3, 3, 2), draw.uniform(0.5, 4))


def hook() -> tuple[theory.Landscape, np.ndarray]:
    """A trail whose ends lean towards each other, and the walk along it."""
    x = [-0.35, 0, 0.4, 2, 4, 4.3, 3.4, 2.5, 2.1, 1.8]
    y = [-0.9, 0, 1.3, 2.3, 1.6, -0.4, -1.6, -1, 0, 0.7]
    points = CubicSpline(np.arange(10), np.stack([x, y], -1))(np.linspace(0, 9, 80))
    land = theory.trail(points, drop=0.1, width=0.3)
    return land, theory.flow(land.gradient, [0, 0], 23.82)


LANDSCAPES = {
    "bowl": (random_bowl(0)[0], 2),
    "valley": (theory.sine_valley(amplitude=0.7, slope=0.4, stiffness=3.0), 2),
    "bumps": (random_bumps(0)[0], 2),
    "trail": (hook()[0], 2),
    "helix": (theory.helix(), 3),
}


@pytest.mark.parametrize("name", LANDSCAPES)
def test_the_gradient_is_that_of_the_loss(name: str) -> None:
    land, d = LANDSCAPES[name]
    w, h = np.random.default_rng(1).normal(size=(20, d)), 1e-6
    for i, step in enumerate(h * np.eye(d)):
        slope = (land.loss(w + step) - land.loss(w - step)) / (2 * h)
        np.testing.assert_allclose(land.gradient(w)[:, i], slope, atol=1e-7)


@pytest.mark.parametrize("name", LANDSCAPES)
def test_the_loss_falls_along_the_flow(name: str) -> None:
    land, d = LANDSCAPES[name]
    path = theory.flow(land.gradient, np.full(d, 0.7), 0.5)
    assert (np.diff(land.loss(path)) < 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_the_flow_of_a_quadratic_is_the_matrix_exponential(seed: int) -> None:
    bowl, a, w0 = random_bowl(seed, d=3)
    path = theory.flow(bowl.gradient, w0, 2.0, points=11)
    exact = [expm(-t * a) @ w0 for t in np.linspace(0, 2, 11)]
    np.testing.assert_allclose(path, exact, atol=1e-9)


def test_descent_with_small_steps_approaches_the_flow() -> None:
    bowl, _, w0 = random_bowl(3)
    end = theory.flow(bowl.gradient, w0, 1.0)[-1]
    gaps = [
        np.linalg.norm(theory.descend(bowl.gradient, w0, 1 / n, n)[-1] - end) for n in (50, 100)
    ]
    assert gaps[1] < 0.01
    assert gaps[0] / gaps[1] == pytest.approx(2, rel=0.1)


def test_the_segment_starts_at_the_start() -> None:
    w0, end = np.array([1.0, 2.0]), np.array([5.0, -2.0])
    np.testing.assert_array_equal(theory.segment(w0, end, [0, 0.25, 1]), [w0, [2, 1], end])


@pytest.mark.parametrize("seed", range(50))
def test_a_convex_quadratic_has_one_parallel_point(seed: int) -> None:
    bowl, _, w0 = random_bowl(seed)
    path = theory.flow(bowl.gradient, w0, 1.5)
    assert theory.condition(bowl.gradient, path) >= 0
    alpha = theory.parallel_points(bowl.gradient, path[0], path[-1])
    assert len(alpha) == 1
    assert 0 < alpha[0] < 1
    cosine = theory.cosines(bowl.gradient, path[0], path[-1], alpha)
    np.testing.assert_allclose(cosine, 1, atol=1e-8)


def test_one_step_of_descent_is_parallel_at_the_start() -> None:
    bowl, _, w0 = random_bowl(4)
    w0, end = theory.descend(bowl.gradient, w0, 0.3, 1)
    assert theory.cosines(bowl.gradient, w0, end, 0.0) == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(theory.parallel_points(bowl.gradient, w0, end), [0], atol=1e-9)


@pytest.mark.parametrize("time", [2.0, 6.0, 9.0, 11.0])
def test_the_valley_is_parallel_somewhere(time: float) -> None:
    """Times on either side of the proof's two cases."""
    valley = theory.sine_valley(stiffness=6.0)
    path = theory.flow(valley.gradient, [0, 0], time)
    alpha = theory.parallel_points(valley.gradient, path[0], path[-1])
    assert len(alpha)
    cosine = theory.cosines(valley.gradient, path[0], path[-1], alpha)
    np.testing.assert_allclose(np.abs(cosine), 1, atol=1e-8)


def test_with_the_condition_every_landscape_is_parallel_somewhere() -> None:
    counts = []
    for seed in range(60):
        land, path = random_bumps(seed)
        arrived = np.linalg.norm(land.gradient(path[-1])) < 0.05
        if arrived or theory.condition(land.gradient, path) < 0:
            continue
        alpha = theory.parallel_points(land.gradient, path[0], path[-1])
        cosine = theory.cosines(land.gradient, path[0], path[-1], alpha)
        np.testing.assert_allclose(np.abs(cosine), 1, atol=1e-8)
        counts.append(len(alpha))
    assert len(counts) > 20
    assert min(counts) >= 1


def test_without_the_condition_there_may_be_no_parallel_point() -> None:
    """A trail that runs past the end of the segment and comes back to it from below."""
    land, path = hook()
    assert theory.condition(land.gradient, path) < -0.5
    assert len(theory.parallel_points(land.gradient, path[0], path[-1])) == 0


def test_not_convex_may_be_parallel_backwards() -> None:
    centres, heights = [[-2.47, 0.43], [-1.93, -0.43]], [0.77, 1.0]
    land = theory.bumps(np.diag([0.4, 0.38]), centres, heights, 0.4)
    path = theory.flow(land.gradient, [-3.0, 0.1], 6.0)
    assert theory.condition(land.gradient, path) > 0
    alpha = theory.parallel_points(land.gradient, path[0], path[-1])
    cosine = theory.cosines(land.gradient, path[0], path[-1], alpha)
    np.testing.assert_allclose(cosine, [-1], atol=1e-8)


@pytest.mark.parametrize("field", [theory.helix_field, theory.helix().gradient])
def test_the_flow_is_the_helix(field: theory.Field) -> None:
    t = np.linspace(0, TURN, 201)
    exact = np.stack([np.cos(t) - 1, np.sin(t), t], axis=-1)
    np.testing.assert_allclose(theory.flow(field, [0, 0, 0], TURN), exact, atol=1e-7)


def test_the_helix_never_points_along_its_segment() -> None:
    start, end, alpha = np.zeros(3), np.array([0, 0, TURN]), np.linspace(0, 1, 100)
    paper = theory.cosines(theory.helix_field, start, end, alpha)
    np.testing.assert_allclose(paper, 1 / np.sqrt(2), atol=1e-12)
    ours = theory.cosines(theory.helix().gradient, start, end, [0.0, 0.5, 1.0])
    np.testing.assert_allclose(ours, [1 / np.sqrt(2), 3 / np.sqrt(10), 1 / np.sqrt(2)], atol=1e-12)


# What cannot be answered is refused, and never answered wrongly.


@pytest.mark.parametrize(
    ("gradient", "reached"),
    [
        (lambda w: -(w**2), "1"),  # w = 1 / (1 - t)
        (lambda w: -1000 * w, r"0\.69"),  # beyond the largest float
    ],
)
def test_a_flow_past_a_blow_up_names_the_time_it_reached(
    gradient: theory.Field, reached: str
) -> None:
    with pytest.raises(InputError, match=rf"time {reached}\d* of 2"):
        theory.flow(gradient, [1.0], 2.0)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_flow_needs_a_gradient_at_its_start(value: float) -> None:
    with pytest.raises(InputError, match="start"):
        theory.flow(lambda w: w * value, [1.0], 1.0)


def test_a_flow_over_a_pole_ends_with_a_sentence() -> None:
    with pytest.raises(InputError, match="of 2"):
        theory.flow(lambda w: np.where(w > 0.5, 1.0, np.nan), [1.0], 2.0)


@pytest.mark.parametrize("time", [0.0, -1.0, np.nan, np.inf])
def test_a_flow_needs_a_time(time: float) -> None:
    with pytest.raises(InputError, match="time"):
        theory.flow(lambda w: w, [1.0], time)


def test_a_flow_has_as_many_points_as_asked() -> None:
    assert theory.flow(lambda w: w, [1.0, 2.0], 1.0, points=7).shape == (7, 2)
    with pytest.raises(InputError, match="points"):
        theory.flow(lambda w: w, [1.0], 1.0, points=1)


def test_a_descent_that_diverges_names_its_step() -> None:
    with pytest.raises(InputError, match=r"step \d+ of 2000.*learning rate"):
        theory.descend(lambda w: w, [1.0], 3.0, 2000)


def test_a_bowl_that_is_not_symmetric_still_has_the_gradient_of_its_loss() -> None:
    land, h = theory.quadratic([[1.0, 2.0], [0.0, 3.0]]), 1e-6
    w = np.array([0.3, -0.7])
    slope = [(land.loss(w + s) - land.loss(w - s)) / (2 * h) for s in h * np.eye(2)]
    np.testing.assert_allclose(land.gradient(w), slope, atol=1e-8)
    with pytest.raises(InputError, match="square"):
        theory.quadratic([[1.0, 2.0, 3.0], [0.0, 3.0, 1.0]])


def test_parallel_points_belong_to_the_plane() -> None:
    """In three dimensions a zero of one component of the cross product is no parallel point."""
    with pytest.raises(InputError, match="plane"):
        theory.parallel_points(theory.helix().gradient, np.zeros(3), np.array([0, 0, TURN]))
    with pytest.raises(InputError, match="plane"):
        theory.cross(np.ones(3), np.ones(3))


def test_without_a_segment_there_is_no_direction() -> None:
    bowl, point = theory.quadratic(np.eye(2)), np.ones(2)
    for ask in (theory.parallel_points, lambda *a: theory.cosines(*a, 0.5)):
        with pytest.raises(InputError, match="same point"):
            ask(bowl.gradient, point, point)
    with pytest.raises(InputError, match="same point"):
        theory.condition(bowl.gradient, np.ones((3, 2)))


def test_a_vanishing_gradient_is_parallel_to_nothing() -> None:
    """At the bottom of the bowl the cross product is zero, and there is no cosine to speak of."""
    bowl = theory.quadratic(np.diag([1.0, 0.2]))
    assert len(theory.parallel_points(bowl.gradient, np.ones(2), np.zeros(2))) == 0
    assert np.isnan(theory.cosines(bowl.gradient, np.ones(2), np.zeros(2), 1.0))


def test_parallel_points_of_a_field_with_a_hole_are_refused() -> None:
    with pytest.raises(InputError, match="NaN"):
        theory.parallel_points(lambda w: w * np.nan, np.zeros(2), np.ones(2))


@pytest.mark.parametrize("start", [[0.0, 0.0, 0.0], [0.3, -0.2, 0.5]])
def test_the_middle_of_a_short_path_is_two_orders_better(start: list[float]) -> None:
    """Half the time leaves a quarter of the mismatch at the start, a sixteenth half-way."""
    land, found = theory.helix(), []
    for time in (0.2, 0.1):
        path = theory.flow(land.gradient, start, time, points=2)
        found.append(1 - theory.cosines(land.gradient, path[0], path[-1], [0.0, 0.5]))
    first, middle = found[0] / found[1]
    assert 3.5 < first < 4.5
    assert 14 < middle < 18
