"""Checks of what compares attacks, and of what an update is made of."""

from __future__ import annotations

import math

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from scipy.stats import norm, t
from torch import Tensor

from smelib import federated, metrics, seeds
from smelib.checks.cases import dummies, named, normal, numbers, scene, uniform
from smelib.checks.engine import piece
from smelib.models import Network
from smelib.types import Params


def _stolen(seed: int) -> list[dict]:
    """Originals, and reconstructions of them in another order; two lie near the same original."""
    found = []
    for number in numbers(seed):
        draw = seeds.generator(number, "checks")
        n = 4 + number % 3
        originals = uniform(draw, n, 1, 5, 4)
        level = torch.linspace(0.02, 0.3, n, dtype=torch.float64).view(-1, 1, 1, 1)
        images = originals + level * normal(draw, *originals.shape)
        images[1] = originals[0] + 0.1 * normal(draw, 1, 5, 4)
        images = images[torch.arange(n).roll(1 + number % 2)]
        found.append(named(images=images, originals=originals))
    return found


def _costs(images: Tensor, originals: Tensor) -> np.ndarray:
    """The mean squared error of every original, a row, with every image, a column."""
    gaps = originals.flatten(1)[:, None] - images.flatten(1)[None]
    return gaps.square().mean(dim=2).numpy()


def _decibels(errors: np.ndarray) -> float:
    return float((-10 * np.log10(errors)).mean())


@piece("score(images, originals)", _stolen, over="clients")
def score(images: Tensor, originals: Tensor) -> float:
    """match one to one so that the sum of the squared errors is least; the mean PSNR in dB.

    Both are (N, channels, height, width) with pixels in [0, 1], in any order.
    """
    return metrics.evaluate(images, originals).psnr


@score.mistake("you compare in the order given: first find who belongs to whom.")
def _(images, originals):
    return _decibels(_costs(images, originals).diagonal())


@score.mistake("each original takes its nearest, so one image may serve twice: match one to one.")
def _(images, originals):
    return _decibels(_costs(images, originals).min(axis=1))


@score.mistake("each image takes its nearest, so an original may be left out: match one to one.")
def _(images, originals):
    return _decibels(_costs(images, originals).min(axis=0))


@score.mistake("you match the worst: the matching is of least total error.")
def _(images, originals):
    errors = _costs(images, originals)
    return _decibels(errors[linear_sum_assignment(errors, maximize=True)])


@score.mistake("you average the squared errors first: take each image's PSNR, then the mean.")
def _(images, originals):
    errors = _costs(images, originals)
    return _decibels(errors[linear_sum_assignment(errors)].mean(keepdims=True))


def _scores(seed: int) -> list[dict]:
    """Two attacks' PSNRs on the same clients."""
    found = []
    for number in numbers(seed):
        draw = seeds.generator(number, "checks")
        n = 3 + number % 5
        luck = 3 * normal(draw, n)
        found.append(
            named(
                a=(30 + luck + normal(draw, n)).numpy(),
                b=(28 + luck + 0.5 * normal(draw, n)).numpy(),
            )
        )
    return found


def _interval(d: np.ndarray, *, ddof: int = 1, root: bool = True, factor: float = 0.0) -> tuple:
    n = len(d)
    error = d.std(ddof=ddof) / (math.sqrt(n) if root else 1)
    return float(d.mean()), float((factor or t.ppf(0.975, n - 1)) * error)


@piece("paired(a, b)", _scores, over="pairs of attacks")
def paired(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """the mean of a - b over the clients, and half the width of its 95 % interval of Student's.

    `a` and `b` are scores of two attacks on the same n clients, in the same order; n is at least 2.
    """
    return _interval(a - b)


@paired.mistake("you forget that they are pairs: take the differences first, then their spread.")
def _(a, b):
    error = math.sqrt((a.var(ddof=1) + b.var(ddof=1)) / len(a))
    return float((a - b).mean()), float(t.ppf(0.975, len(a) - 1) * error)


@paired.mistake("you divide the squares by n: the standard deviation of a sample has n - 1.")
def _(a, b):
    return _interval(a - b, ddof=0)


@paired.mistake("yours is the spread of single clients: the mean's is smaller by the root of n.")
def _(a, b):
    return _interval(a - b, root=False)


@paired.mistake("you take the normal factor 1.96: with few clients Student's is larger.")
def _(a, b):
    return _interval(a - b, factor=norm.ppf(0.975))


@paired.mistake("you take 1.96, rounded and normal: with few clients Student's factor is larger.")
def _(a, b):
    return _interval(a - b, factor=1.96)


@paired.mistake("your factor leaves 5 % above: both sides together have 5 %, so take t.ppf(0.975).")
def _(a, b):
    return _interval(a - b, factor=t.ppf(0.95, len(a) - 1))


@paired.mistake("your factor is that of n: the degrees of freedom are n - 1.")
def _(a, b):
    return _interval(a - b, factor=t.ppf(0.975, len(a)))


@paired.mistake("yours is the standard error: multiply it by Student's factor.")
def _(a, b):
    return _interval(a - b, factor=1.0)


@paired.mistake("you subtract the other way round: it is a - b.")
def _(a, b):
    return _interval(b - a)


def _several(seed: int) -> list[dict]:
    """Networks at weights that are not their own, with a few normalised images."""
    found = []
    for number in numbers(seed):
        s = scene(number, kind=("conv", "linear")[number % 2])
        found.append(named(model=s.model, w=s.update.after, z=dummies(s), labels=s.client.labels))
    return found


def _own(model: Network, w: Params, z: Tensor, labels: Tensor) -> list[Tensor]:
    """Each image's own gradient, as one long vector."""
    slopes = [federated.gradient(model, w, z[i : i + 1], labels[i : i + 1]) for i in range(len(z))]
    return [torch.cat([g[k].flatten() for k in w]) for g in slopes]


@piece("parts(model, w, z, labels)", _several, over="clients")
def parts(model: Network, w: Params, z: Tensor, labels: Tensor) -> Tensor:
    """each image's own gradient of the cross-entropy at w, flattened in w's order, a row each."""
    return torch.stack(_own(model, w, z, labels)).detach()


@parts.mistake("your rows are shares of the mean: the images' own gradients are N times as long.")
def _(model, w, z, labels):
    return torch.stack(_own(model, w, z, labels)).detach() / len(z)


@parts.mistake("all your rows are the mean gradient: take each image with its label alone.")
def _(model, w, z, labels):
    rows = torch.stack(_own(model, w, z, labels)).detach()
    return rows.mean(dim=0).expand_as(rows)


@parts.mistake("you take the gradient at the network's own weights: take it at w.")
def _(model, w, z, labels):
    return torch.stack(_own(model, model.params(), z, labels)).detach()


@parts.mistake("you normalise again: z is normalised already.")
def _(model, w, z, labels):
    return torch.stack(_own(model, w, model.normalise(z), labels)).detach()


@parts.mistake("your columns are images: each image is a row.")
def _(model, w, z, labels):
    return torch.stack(_own(model, w, z, labels)).detach().T


@parts.mistake("you give every image the first label: labels[i] belongs to z[i].")
def _(model, w, z, labels):
    return torch.stack(_own(model, w, z, labels[:1].expand(len(z)))).detach()


def _rows(seed: int) -> list[dict]:
    """Parts of unlike lengths."""
    found = []
    for number in numbers(seed):
        draw = seeds.generator(number, "checks")
        n = 3 + number % 3
        lengths = torch.logspace(0, -1.5, n, dtype=torch.float64)[:, None]
        found.append(named(rows=lengths * normal(draw, n, 12)))
    return found


def _lost(u: Tensor, others: Tensor) -> Tensor:
    return 1 - torch.cosine_similarity(u[None], others, dim=1)


@piece("left_out(rows)", _rows, over="updates")
def left_out(rows: Tensor) -> Tensor:
    """for each row, what the cosine with the sum of all loses without it: 1 - cos(u, u - row)."""
    u = rows.sum(dim=0)
    return _lost(u, u - rows)


@left_out.mistake("yours is the cosine that is left: what is lost is one minus it.")
def _(rows):
    u = rows.sum(dim=0)
    return 1 - _lost(u, u - rows)


@left_out.mistake("you compare each part with the sum: compare the sum without it.")
def _(rows):
    return _lost(rows.sum(dim=0), rows)


@left_out.mistake("you take a part out of the mean: take it out of the sum, or divide it by N.")
def _(rows):
    u = rows.mean(dim=0)
    return _lost(u, u - rows)


@left_out.mistake("you add the part once more: leave it out.")
def _(rows):
    u = rows.sum(dim=0)
    return _lost(u, u + rows)


@left_out.mistake("yours is the bound, which knows lengths only: take the cosine itself.")
def _(rows):
    rho = (rows.norm(dim=1) / rows.sum(dim=0).norm()).clamp(max=1)
    return 1 - (1 - rho.square()).sqrt()
