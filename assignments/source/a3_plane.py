"""Assignment 3: points, hidden checks, and what a person has to mark."""

import numpy as np

from assignments.marking import Assignment, Part
from assignments.wire import Slope
from smelib import checks, seeds
from smelib.checks.planes import broken


def _bowl(draw: np.random.Generator) -> tuple[Slope, np.ndarray, np.ndarray]:
    """A turned bowl, where a flow in it starts, and where it ends."""
    q, _ = np.linalg.qr(draw.normal(size=(2, 2)))
    curvature, w0, time = draw.uniform(0.2, 3.0, 2), draw.normal(size=2), draw.uniform(0.5, 2)
    end = q @ np.diag(np.exp(-curvature * time)) @ q.T @ w0
    return Slope("quadratic", {"hessian": q @ np.diag(curvature) @ q.T}), w0, end


def _bowls(seed: int) -> list[tuple[Slope, np.ndarray, np.ndarray]]:
    draw = seeds.numpy_generator(seed, "checks")
    return [_bowl(draw) for _ in range(5)]


def _walks(seed: int) -> list[dict]:
    found = enumerate(_bowls(seed))
    return [{"gradient": g, "w0": w0, "lr": 0.15, "steps": 4 + k} for k, (g, w0, _) in found]


def _places(seed: int) -> list[dict]:
    pairs = zip(_bowls(seed), (0.1, 0.9, 0.0, 1.0, 0.45), strict=True)
    return [{"gradient": g, "w0": w0, "end": end, "alpha": a} for (g, w0, end), a in pairs]


def _segments(seed: int) -> list[dict]:
    return [{"gradient": g, "w0": w0, "end": end} for g, w0, end in _bowls(seed)]


def _paths(seed: int) -> list[dict]:
    found, draw = [], seeds.numpy_generator(seed, "checks")
    for k in range(5):
        slope = Slope("sine_valley", {"stiffness": float(draw.uniform(3, 8))})
        found.append({"gradient": slope, "path": draw.normal(size=(25 + k, 2)).cumsum(0)})
    return found


ASSIGNMENT = Assignment(
    name="a3_plane",
    title="A parallel gradient in the plane, and a walk without one",
    minutes=150,
    reads=("05_gradient_flow_2d",),
    goals=(
        "find the point of the segment whose gradient has the update's direction",
        "test a theorem's condition on a walk, and tell it from the conclusion",
        "build an example in which the condition fails and the conclusion with it",
    ),
    parts=(
        Part("my_walk", {"value": 3}, checks.plane_walk, cases=_walks),
        Part("my_cosine", {"value": 3}, checks.segment_cosine, cases=_places),
        Part("my_root", {"value": 4}, checks.parallel_point, cases=_segments),
        Part("my_condition", {"value": 4}, checks.condition, cases=_paths),
        Part(
            "counter_example",
            {"walk": 1, "condition": 2, "segment": 3},
            cases=lambda seed: [{}],
            judge=lambda cases, found: broken(found[0]),
        ),
    ),
    closed=("checks", "theory"),
    rubric=(
        (
            "Question A: what the condition is for",
            3,
            "1 for: without it the crossing point w_s may lie outside the ends; 2 for saying which "
            "line of the proof fails on the student's own walk, with the place where it does.",
        ),
        (
            "Question B: broken condition, and yet a parallel point",
            3,
            "1 for an example or the random bumps of the chapter; 2 for the logic: a sufficient "
            "condition that fails says nothing, so that one example with a point refutes nothing.",
        ),
    ),
)
