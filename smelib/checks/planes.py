"""Assignment 3: walks in the plane, the proposition's condition, and an example that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.interpolate import CubicSpline

from smelib import seeds, theory
from smelib.checks.cases import named, numbers
from smelib.checks.engine import NotYet, piece
from smelib.errors import InputError

Field = Callable[[np.ndarray], np.ndarray]


def _walks(seed: int) -> list[dict]:
    found = []
    for k, number in enumerate(numbers(seed)):
        draw = seeds.numpy_generator(number, "checks")
        q, _ = np.linalg.qr(draw.normal(size=(2, 2)))
        land = theory.quadratic(q @ np.diag(draw.uniform(0.2, 3.0, 2)) @ q.T)
        found.append(named(gradient=land.gradient, w0=draw.normal(size=2), lr=0.2, steps=3 + k))
    return found


@piece("my_walk(gradient, w0, lr, steps)", _walks, over="bowls")
def plane_walk(gradient: Field, w0: np.ndarray, lr: float, steps: int) -> np.ndarray:
    """the points of gradient descent, [steps + 1, 2]: w0 and where each step of length lr ends."""
    return theory.descend(gradient, w0, lr, steps)


@plane_walk.mistake("you climb: a step is minus lr times the gradient.")
def _(gradient, w0, lr, steps):
    return theory.descend(lambda w: -gradient(w), w0, lr, steps)


@plane_walk.mistake("your walk lacks w0: it has steps + 1 points, the start among them.")
def _(gradient, w0, lr, steps):
    return theory.descend(gradient, w0, lr, steps)[1:]


@plane_walk.mistake("your walk lacks its last point: it has steps + 1 points.")
def _(gradient, w0, lr, steps):
    return theory.descend(gradient, w0, lr, steps)[:-1]


@plane_walk.mistake("all your steps use the gradient at w0: take it where the walker is.")
def _(gradient, w0, lr, steps):
    return w0 - lr * np.arange(steps + 1)[:, None] * gradient(w0)


@plane_walk.mistake("you return the last point: return all of them.")
def _(gradient, w0, lr, steps):
    return theory.descend(gradient, w0, lr, steps)[-1]


def _paths(seed: int) -> list[dict]:
    """Walks in a winding valley that stray, and turn back on the way."""
    found = []
    for k, number in enumerate(numbers(seed)):
        draw = seeds.numpy_generator(number, "checks")
        land = theory.sine_valley(stiffness=float(draw.uniform(3, 8)))
        found.append(named(gradient=land.gradient, path=draw.normal(size=(20 + k, 2)).cumsum(0)))
    return found


def _each(gradient: Field, path: np.ndarray) -> np.ndarray:
    return theory.cosine(path[0] - path[-1], gradient(path))


@piece("my_condition(gradient, path)", _paths, over="walks")
def condition(gradient: Field, path: np.ndarray) -> float:
    """the smallest cosine of w0 - wT and the gradient at a point of the path [n, 2], as a number.

    The proposition's condition holds where it is not negative.
    """
    return theory.condition(gradient, path)


@condition.mistake("you compare with wT - w0: the update is w0 - wT.")
def _(gradient, path):
    return float(theory.cosine(path[-1] - path[0], gradient(path)).min())


@condition.mistake("yours is the mean: one point where the walker turns back breaks the condition.")
def _(gradient, path):
    return float(_each(gradient, path).mean())


@condition.mistake("yours is the largest: the condition is about the smallest.")
def _(gradient, path):
    return float(_each(gradient, path).max())


@condition.mistake("you look at the start only: the condition is about every point of the path.")
def _(gradient, path):
    return float(_each(gradient, path)[0])


@condition.mistake("you look along the segment: the condition is about the points of the path.")
def _(gradient, path):
    points = theory.segment(path[0], path[-1], np.linspace(0, 1, len(path)))
    return float(theory.cosine(path[0] - path[-1], gradient(points)).min())


@condition.mistake("yours are inner products: divide by both lengths.")
def _(gradient, path):
    return float((gradient(path) @ (path[0] - path[-1])).min())


RANGES = {"drop": (0.01, 2.0), "width": (0.1, 3.0), "time": (0.1, 500.0)}


def _read(found: object) -> tuple[np.ndarray, dict[str, float]] | str:
    """The trail's points and its numbers; what is wrong with their form, in words."""
    if not isinstance(found, list | tuple) or len(found) != 4:
        return "return the four of (points, drop, width, time)."
    try:
        points = np.asarray(found[0], dtype=float)
        numbers = dict(zip(RANGES, map(float, found[1:]), strict=True))
    except (TypeError, ValueError):
        return "points is an array [n, 2], and drop, width and time are numbers."
    if points.ndim != 2 or points.shape[1] != 2 or not 2 <= len(points) <= 400:
        return "points is an array [n, 2] with n from 2 to 400."
    if not (np.abs(points) <= 20).all():
        return "keep the points within 20 of the origin."
    for name, (low, high) in RANGES.items():
        if not low <= numbers[name] <= high:
            return f"{name} is {numbers[name]:.3g}: choose it from {low} to {high}."
    return points, numbers


@cache
def _hook() -> np.ndarray:
    """Chapter 5's own example, walked a little further than there."""
    x = [-0.35, 0, 0.4, 2, 4, 4.3, 3.4, 2.5, 2.1, 1.8]
    y = [-0.9, 0, 1.3, 2.3, 1.6, -0.4, -1.6, -1, 0, 0.7]
    points = CubicSpline(np.arange(10), np.stack([x, y], -1))(np.linspace(0, 9, 80))
    return theory.flow(theory.trail(points, drop=0.1, width=0.3).gradient, [0, 0], 25.0)


def _evenly(path: np.ndarray, part: float = 1.0) -> np.ndarray:
    """Sixty points at equal distances along the first part of a path, as complex numbers."""
    along = np.r_[0, np.linalg.norm(np.diff(path, axis=0), axis=1).cumsum()]
    return np.interp(np.linspace(0, part * along[-1], 60), along, path @ [1, 1j])


def copied(path: np.ndarray) -> bool:
    """Is a walk from the origin chapter 5's, turned, mirrored or enlarged? To 1.5 % of its size."""
    yours = _evenly(path)
    for part in np.linspace(0.8, 1, 41):
        book = _evenly(_hook(), part)
        for shape in (book, book.conj()):
            gap = yours - np.vdot(shape, yours) / np.vdot(shape, shape) * shape
            if np.linalg.norm(gap) < 0.015 * np.linalg.norm(yours):
                return True
    return False


def broken(found: object) -> dict[str, str]:
    """What an example lacks in each of three respects; an empty sentence where it lacks nothing.

    `walk`: the flow from the origin ends at x ≤ −3. `condition`: it turns back on the way.
    `segment`: no gradient on the segment is parallel to the update. The book's own has none.
    """
    names = ("walk", "condition", "segment")
    read = _read(found)
    if isinstance(read, str):
        return dict.fromkeys(names, read)
    points, at = read
    land = theory.trail(points, drop=at["drop"], width=at["width"])
    try:
        path = theory.flow(land.gradient, [0.0, 0.0], at["time"])
        smallest = theory.condition(land.gradient, path)
        alphas = np.linspace(0, 1, 401)
        cosines = np.abs(theory.cosines(land.gradient, path[0], path[-1], alphas))
        # Along a straight trail all gradients are parallel, and rounding alone has signs.
        parallel = [*theory.parallel_points(land.gradient, path[0], path[-1])]
        parallel += [*alphas[cosines > 0.999]]
    except InputError as error:
        return dict.fromkeys(names, f"there is no walk to look at: {error}")
    if not np.isfinite(path).all():
        return dict.fromkeys(names, "the walk leaves the plane.")
    if np.linalg.norm(land.gradient(path[-1])) < 0.01:  # what follows would be rounding
        return dict.fromkeys(
            names, "the walk has come to rest on its trail: choose a smaller time."
        )
    if copied(path):
        return dict.fromkeys(
            names,
            "this is chapter 5's own walk, turned, mirrored or enlarged: lay a trail of your own.",
        )
    ends, said = path[-1, 0], dict.fromkeys(names, "")
    if ends > -3:
        said["walk"] = f"the walk ends at x = {ends:.2f}: it should end at -3 or further left."
    if smallest >= 0:
        said["condition"] = (
            f"the condition holds, with a smallest cosine of {smallest:.2f}: let the walker turn "
            "back on the way."
        )
    if parallel:
        said["segment"] = (
            f"the walk ends at ({ends:.2f}, {path[-1, 1]:.2f}), and the gradient is parallel to "
            f"the update at alpha = {parallel[0]:.2f}: the segment must not meet the place where "
            "downhill changes sides. Try other times."
        )
    return said


def counter_example(yours: Callable[[], tuple]) -> None:
    """Check your `counter_example()`: a trail on which the proposition's conclusion fails.

    It returns `(points, drop, width, time)` of a `theory.trail` whose flow from the origin ends at
    x ≤ −3, breaks the condition on its way, and has no parallel point on its segment. Chapter 5's
    own, turned, mirrored or enlarged, does not count.
    """
    found = yours()
    if found is None or found is Ellipsis:
        raise NotYet("write counter_example(): return (points, drop, width, time).") from None
    if wrong := [sentence for sentence in dict.fromkeys(broken(found).values()) if sentence]:
        raise NotYet(" ".join(wrong)) from None
    print("counter_example breaks the condition, and no gradient on its segment is parallel")
