"""Checks of what a first layer gives away by algebra: the corners of a space, and patches."""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import linprog
from torch import Tensor

from smelib import seeds
from smelib.checks.cases import named, normal, numbers
from smelib.checks.engine import piece


def _spaces(seed: int) -> list[dict]:
    """Rows that mix three or four images of twelve pixels, each with a pixel of its own."""
    found = []
    for k, number in enumerate(numbers(seed)):
        draw, n = np.random.default_rng([number, 11]), 3 + k % 2
        low, high = -1.0 - 0.1 * k, 2.0 + 0.1 * k
        images = draw.uniform(low, high, (n, 12))
        images[:, :n] = np.where(np.eye(n) > 0, low, high)
        mixed = draw.normal(size=(9, n)) @ np.column_stack([images, np.ones(n)])
        goal = draw.normal(size=12)
        found.append(named(rows=mixed, samples=n, goal=goal, low=low, high=high))
    return found


def _lowest(rows, samples, goal, low, high, *, one: bool = True, bias: bool = False) -> np.ndarray:
    basis = np.linalg.svd(rows, full_matrices=False)[2][:samples]
    pixels, last = basis[:, :-1].T, basis[:, -1:].T
    both = np.vstack([pixels, -pixels])
    limits = np.repeat([high, -low], len(pixels))
    equal = (last, [1.0]) if one else (None, None)
    x = linprog(goal @ pixels, both, limits, *equal, bounds=(None, None)).x
    return (basis.T if bias else pixels) @ x


@piece("corner(rows, samples, goal, low, high)", _spaces, over="spaces")
def corner(rows: np.ndarray, samples: int, goal: np.ndarray, low: float, high: float) -> np.ndarray:
    """the picture of the space of rows with the least `goal @ picture`, pixels in [low, high].

    `rows` are `[units, pixels + 1]`, the first layer's update with the bias as last column. The
    space is that of the first `samples` right singular vectors; its last coordinate must be 1.
    """
    return _lowest(rows, samples, goal, low, high)


@corner.mistake("you leave the last coordinate free: the bias's must be 1, or no mixture is kept.")
def _(rows, samples, goal, low, high):
    return _lowest(rows, samples, goal, low, high, one=False)


@corner.mistake("you maximise the goal: linprog minimises, so hand it over as it is.")
def _(rows, samples, goal, low, high):
    return _lowest(rows, samples, -goal, low, high)


@corner.mistake("you return the bias's coordinate too: a picture has one number per pixel.")
def _(rows, samples, goal, low, high):
    return _lowest(rows, samples, goal, low, high, bias=True)


def _embeddings(seed: int) -> list[dict]:
    found = []
    for k, number in enumerate(numbers(seed)):
        draw = seeds.generator(number, "checks")
        positions, patches = normal(draw, 3 + k, 9), normal(draw, 3 + k, 6)
        found.append(named(embedding=positions.T @ patches, positions=positions))
    return found


@piece("solve_patches(embedding, positions)", _embeddings, over="images")
def solve_patches(embedding: Tensor, positions: Tensor) -> Tensor:
    """the patches `[m, pixels]` that solve `embedding = positions.T @ patches`.

    `embedding` is `[dim, pixels]` and `positions` `[m, dim]`: the update of both.
    """
    return torch.linalg.lstsq(positions.T, embedding).solution


@solve_patches.mistake("you multiply by the positions: they are not orthogonal, so solve.")
def _(embedding, positions):
    return positions @ embedding


@solve_patches.mistake("you divide by each position's length only: they overlap, so solve.")
def _(embedding, positions):
    return positions @ embedding / positions.square().sum(dim=1, keepdim=True)


@solve_patches.mistake("yours is [pixels, m]: return one row per patch.")
def _(embedding, positions):
    return torch.linalg.lstsq(positions.T, embedding).solution.T
