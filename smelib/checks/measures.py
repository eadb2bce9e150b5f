"""Chapters 4, 5, 6 and 12, and PSNR: what is measured along paths, in labels and in pictures."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from smelib import labels as kernel_labels
from smelib import metrics, seeds, theory
from smelib import params as P
from smelib.checks.cases import named, normal, numbers, scene, uniform
from smelib.checks.engine import piece
from smelib.data import Client
from smelib.federated import gradient
from smelib.models import Network
from smelib.types import Params, Protocol, Update

Field = Callable[[np.ndarray], np.ndarray]


def _ends(seed: int) -> list[dict]:
    places = (0.0, 0.3, 0.8, 1.0, 0.55)
    return [
        named(model=s.model, client=s.client, start=s.update.before, end=s.update.after, alpha=a)
        for s, a in zip(map(scene, numbers(seed)), places, strict=True)
    ]


@piece("intrinsic_error(model, client, start, end, alpha=0.0)", _ends, over="clients")
def intrinsic_error(
    model: Network, client: Client, start: Params, end: Params, alpha: float
) -> float:
    """one minus the cosine of start - end and the client's gradient at start + alpha (end - start).

    The gradient is that of all the client's images, normalised.
    """
    update = Update(start, end, len(client))
    return 1 - float(theory.segment_cosines(model, client, update, [alpha])[0])


@intrinsic_error.mistake("at alpha = 0 yours is at the end: your alpha runs from the other end.")
def _(model, client, start, end, alpha):
    return intrinsic_error.check.reference(model, client, start, end, 1 - alpha)


@intrinsic_error.mistake("your error is the cosine: it is one minus the cosine.")
def _(model, client, start, end, alpha):
    return 1 - intrinsic_error.check.reference(model, client, start, end, alpha)


@intrinsic_error.mistake("you compare with end - start: a step goes against the gradient.")
def _(model, client, start, end, alpha):
    return 2 - intrinsic_error.check.reference(model, client, start, end, alpha)


@intrinsic_error.mistake("you ignore alpha: take the gradient at start + alpha (end - start).")
def _(model, client, start, end, alpha):
    return intrinsic_error.check.reference(model, client, start, end, 0.0)


@intrinsic_error.mistake("your images are pixels: the network takes model.normalise(images).")
def _(model, client, start, end, alpha):
    raw = Client(model.denormalise(client.images), client.labels, client.classes, "raw")
    return intrinsic_error.check.reference(model, raw, start, end, alpha)


def _pieces(seed: int) -> list[dict]:
    return [
        named(model=s.model, client=s.client, start=s.update.before, end=s.update.after, nodes=k)
        for k, s in enumerate(map(scene, numbers(seed)), 2)
    ]


@piece("nodes_error(model, client, start, end, nodes)", _pieces, over="clients")
def nodes_error(model: Network, client: Client, start: Params, end: Params, nodes: int) -> float:
    """the intrinsic error of the client's gradient, averaged over the middles of equal pieces.

    The segment from start to end has `nodes` pieces; the gradient is that of all the client's
    images, normalised.
    """
    return _averaged(model, client, start, end, [(k + 0.5) / nodes for k in range(nodes)])


def _averaged(model, client, start, end, places) -> float:
    z = model.normalise(client.images)
    slopes = [gradient(model, P.lerp(start, end, a), z, client.labels) for a in places]
    mean = P.mean(slopes, [1.0] * len(slopes))
    return 1 - float(P.cosine(P.sub(start, end), mean))


@nodes_error.mistake("your points are the pieces' first ends: take their middles.")
def _(model, client, start, end, nodes):
    return _averaged(model, client, start, end, [k / nodes for k in range(nodes)])


@nodes_error.mistake("your points run from one end to the other: take the middles of the pieces.")
def _(model, client, start, end, nodes):
    return _averaged(model, client, start, end, [k / (nodes - 1) for k in range(nodes)])


@nodes_error.mistake("you average the errors: average the gradients, then compare once.")
def _(model, client, start, end, nodes):
    places = [(k + 0.5) / nodes for k in range(nodes)]
    return sum(_averaged(model, client, start, end, [a]) for a in places) / nodes


@nodes_error.mistake("you use the middle of the segment only: one point for each piece.")
def _(model, client, start, end, nodes):
    return _averaged(model, client, start, end, [0.5])


@nodes_error.mistake("you compare with end - start: a step goes against the gradient.")
def _(model, client, start, end, nodes):
    return 2 - nodes_error.check.reference(model, client, start, end, nodes)


def _bowls(seed: int) -> list[tuple[Field, np.ndarray, np.ndarray]]:
    """Convex bowls, turned at random, where a flow starts and ends.

    The cross product is affine on the segment, so that each has one parallel point.
    """
    found, draw = [], seeds.numpy_generator(seed, "checks")
    for _ in numbers(seed):
        q, _ = np.linalg.qr(draw.normal(size=(2, 2)))
        # exp(-A t) w0, with which a flow in a bowl ends
        curvature, w0, time = draw.uniform(0.2, 3.0, 2), draw.normal(size=2), draw.uniform(0.5, 2)
        land = theory.quadratic(q @ np.diag(curvature) @ q.T)
        end = q @ np.diag(np.exp(-curvature * time)) @ q.T @ w0
        found.append((land.gradient, w0, end))
    return found


def _on_segments(seed: int) -> list[dict]:
    places = (0.0, 0.3, 0.8, 1.0, 0.55)
    return [
        named(gradient=g, w0=w0, end=end, alpha=a)
        for (g, w0, end), a in zip(_bowls(seed), places, strict=True)
    ]


@piece("my_cosine(gradient, w0, end, alpha)", _on_segments, over="bowls")
def segment_cosine(gradient: Field, w0: np.ndarray, end: np.ndarray, alpha: float) -> float:
    """the cosine of w0 - end and the gradient at w0 + alpha (end - w0), in NumPy."""
    return float(theory.cosines(gradient, w0, end, alpha))


@segment_cosine.mistake("at alpha = 0 yours is at the end: your alpha runs from the other end.")
def _(gradient, w0, end, alpha):
    return float(theory.cosines(gradient, w0, end, 1 - alpha))


@segment_cosine.mistake("you compare with end - w0: the update is w0 - end.")
def _(gradient, w0, end, alpha):
    return -float(theory.cosines(gradient, w0, end, alpha))


@segment_cosine.mistake("yours is the inner product: divide by both lengths.")
def _(gradient, w0, end, alpha):
    return float((w0 - end) @ gradient(w0 + alpha * (end - w0)))


@segment_cosine.mistake("you divide by squared lengths: take the root.")
def _(gradient, w0, end, alpha):
    d, g = w0 - end, gradient(w0 + alpha * (end - w0))
    return float(d @ g / ((d @ d) * (g @ g)))


def _in_bowls(seed: int) -> list[dict]:
    return [named(gradient=g, w0=w0, end=end) for g, w0, end in _bowls(seed)]


@piece("my_root(gradient, w0, end)", _in_bowls, over="bowls")
def parallel_point(gradient: Field, w0: np.ndarray, end: np.ndarray) -> float:
    """the alpha in (0, 1) where the gradient at w0 + alpha (end - w0) is parallel to w0 - end.

    There `theory.cross(w0 - end, gradient)` changes its sign; fifty halvings of [0, 1] find it.
    """
    (found,) = theory.parallel_points(gradient, w0, end)
    return float(found)


def _zero(side: Callable[[float], float], *, keep: bool = True) -> float:
    """Bisection; without `keep` it goes on in the half where the sign does not change."""
    low, high = 0.0, 1.0
    left = side(low) > 0
    for _ in range(50):
        middle = (low + high) / 2
        right_half = ((side(middle) > 0) == left) == keep
        low, high = (middle, high) if right_half else (low, middle)
    return (low + high) / 2


@parallel_point.mistake("your alpha runs from the other end: yours and ours add up to one.")
def _(gradient, w0, end):
    return 1 - parallel_point.check.reference(gradient, w0, end)


@parallel_point.mistake("you return the point: return its place alpha on the segment.")
def _(gradient, w0, end):
    return theory.segment(w0, end, parallel_point.check.reference(gradient, w0, end))


@parallel_point.mistake(
    "you look for a zero of the inner product, where the two are perpendicular: take the cross."
)
def _(gradient, w0, end):
    return _zero(lambda a: (w0 - end) @ gradient(w0 + a * (end - w0)))


@parallel_point.mistake("you keep the half without the change of sign: keep the other.")
def _(gradient, w0, end):
    return _zero(lambda a: theory.cross(w0 - end, gradient(w0 + a * (end - w0))), keep=False)


def _stacks(seed: int) -> list[dict]:
    """Gradients of a walk: four directions, each weaker than the one before, and an offset."""
    found = []
    for k, number in enumerate(numbers(seed)):
        draw = seeds.numpy_generator(number, "checks")
        sizes = np.array([4.0, 2.0, 1.0, 0.5])
        found.append(
            named(stack=draw.normal(size=(6 + k, 4)) * sizes @ draw.normal(size=(4, 30)) + 0.5)
        )
    return found


def _shares(stack: np.ndarray, basis: np.ndarray) -> np.ndarray:
    return np.linalg.norm(stack @ basis.T, axis=1) / np.linalg.norm(stack, axis=1)


@piece("plane_ratios(stack)", _stacks, over="stacks of gradients")
def plane_ratios(stack: np.ndarray) -> np.ndarray:
    """each row's share in the plane of the two leading right singular vectors of the stack.

    `stack` is `[T, P]`, a gradient in each row; the answer is `[T]`, length inside over length. The
    rows are not centred.
    """
    return theory.plane_ratios(stack @ stack.T)


@plane_ratios.mistake("you square the shares: it is length over length, so take the root.")
def _(stack):
    return theory.plane_ratios(stack @ stack.T) ** 2


@plane_ratios.mistake("your plane is a line: take two singular vectors.")
def _(stack):
    return theory.plane_ratios(stack @ stack.T, rank=1)


@plane_ratios.mistake("you keep three directions: a plane has two.")
def _(stack):
    return theory.plane_ratios(stack @ stack.T, rank=3)


@plane_ratios.mistake("you centre the rows before the decomposition: leave them as they are.")
def _(stack):
    return _shares(stack, np.linalg.svd(stack - stack.mean(0), full_matrices=False)[2][:2])


@plane_ratios.mistake(
    "you take the two weakest directions: np.linalg.eigh's values ascend, np.linalg.svd's descend."
)
def _(stack):
    return _shares(stack, np.linalg.svd(stack, full_matrices=False)[2][-2:])


@plane_ratios.mistake("yours are lengths inside the plane: divide each by the row's own length.")
def _(stack):
    return theory.plane_ratios(stack @ stack.T) * np.linalg.norm(stack, axis=1)


def _grams(seed: int) -> list[dict]:
    return [named(products=case["stack"] @ case["stack"].T) for case in _stacks(seed)]


def _squares(products: np.ndarray) -> np.ndarray:
    """The squared singular values, the largest first."""
    return np.linalg.eigvalsh(products)[::-1].clip(min=0)


@piece("spectrum(products)", _grams, over="matrices of inner products")
def spectrum(products: np.ndarray) -> np.ndarray:
    """the share of all squared lengths that the best 1, 2, ... directions hold, from M Mᵀ.

    `products` is the Gram matrix `[T, T]` of the gradients; the answer is `[T]`, and ends with 1.
    """
    squares = _squares(products)
    return np.cumsum(squares) / squares.sum()


@spectrum.mistake("yours are shares of single directions: add them up, so that the last is 1.")
def _(products):
    return _squares(products) / _squares(products).sum()


@spectrum.mistake("you begin with the weakest direction: np.linalg.eigvalsh's values ascend.")
def _(products):
    return np.cumsum(_squares(products)[::-1]) / _squares(products).sum()


@spectrum.mistake("you take roots: an eigenvalue of the Gram matrix is a squared length already.")
def _(products):
    return np.cumsum(np.sqrt(_squares(products))) / np.sqrt(_squares(products)).sum()


@spectrum.mistake("you square: an eigenvalue of the Gram matrix is a squared length already.")
def _(products):
    return np.cumsum(_squares(products) ** 2) / (_squares(products) ** 2).sum()


@spectrum.mistake("yours are squared lengths: divide by their sum.")
def _(products):
    return np.cumsum(_squares(products))


def _evidence(seed: int) -> list[dict]:
    found = []
    for k in numbers(seed):
        s = scene(k, kind="linear", epochs=2 + k % 2)
        z = normal(s.draw, 32, *s.model.shape)
        fall = kernel_labels.falls(s.model, s.update)
        ends = [kernel_labels.statistics(s.model, w, z) for w in (s.update.before, s.update.after)]
        p, o = ([end[i] for end in ends] for i in (0, 1))
        seen = {"p": p, "o": o, "rows": fall["rows"], "bias": fall["bias"], "N": len(s.client)}
        found.append(named(seen=seen, protocol=s.protocol, layer="bias"))
    return found


def _counted(seen: dict, protocol: Protocol, *, layer: str = "bias", steps: float = 0.0) -> Tensor:
    n = seen["N"]
    taken = protocol.steps(n)
    p = torch.lerp(*seen["p"], (taken - 1) / (2 * taken))
    return n * (p - seen[layer] / (protocol.lr * (steps or taken)))


@piece('estimate(seen, protocol, layer="bias")', _evidence, over="updates")
def estimate(seen: dict, protocol: Protocol, layer: str) -> Tensor:
    """counts as real numbers, N (p - fall / (lr T)), from the fall of the last layer's bias.

    `seen` has the mean softmax at both ends in `seen["p"]`, the fall w0 - wT of the bias in
    `seen["bias"]`, and `seen["N"]`. `p` is interpolated to (T - 1) / 2T of the way, the mean of
    t / T over the steps, with T = `protocol.steps(N)`.
    """
    return _counted(seen, protocol)


@estimate.mistake("you add the fall: a class that is there *rises*, so subtract its fall.")
def _(seen, protocol, layer):
    return _counted({**seen, "bias": -seen["bias"]}, protocol)


@estimate.mistake("you forget the number of steps: the bias fell T times, so divide by lr T.")
def _(seen, protocol, layer):
    return _counted(seen, protocol, steps=1)


@estimate.mistake("you divide by the epochs: there are T = protocol.steps(N) steps.")
def _(seen, protocol, layer):
    return _counted(seen, protocol, steps=protocol.epochs)


@estimate.mistake("you forget the learning rate: the fall is lr times the gradients, divide by it.")
def _(seen, protocol, layer):
    return _counted(seen, protocol, steps=protocol.steps(seen["N"]) / protocol.lr)


@estimate.mistake("yours are shares of one: multiply by N for counts.")
def _(seen, protocol, layer):
    return _counted(seen, protocol) / seen["N"]


@estimate.mistake("you read the sums of the weight's rows: layer says which, and here the bias.")
def _(seen, protocol, layer):
    return _counted(seen, protocol, layer="rows")


@estimate.mistake("you take the softmax at w0 only: interpolate it to (T - 1) / 2T of the way.")
def _(seen, protocol, layer):
    return _counted({**seen, "p": [seen["p"][0]] * 2}, protocol)


def _blindly(seed: int) -> list[dict]:
    """Evidence of clients with 8 classes, and with 4 or 10 samples in turn."""
    found = []
    for k, number in enumerate(numbers(seed)):
        draw, n = seeds.generator(number, "checks"), 4 + 6 * (k % 2)
        p = [(0.3 * normal(draw, 8)).softmax(dim=0) for _ in range(2)]
        held = torch.bincount(torch.randint(8, (n,), generator=draw), minlength=8)
        fall = 0.1 * (sum(p) / 2 - held.double() / n) + 0.001 * normal(draw, 8)
        found.append(named(seen={"p": p, "bias": fall, "N": n}, layer="bias"))
    return found


def _scaled_by(seen: dict, factor: Callable, p: Tensor | None = None) -> Tensor:
    """Counts with the factor that is made of the softmax, the falls and N."""
    p = sum(seen["p"]) / 2 if p is None else p
    fall, n = seen["bias"], seen["N"]
    return n * (p - factor(p, fall, n) * fall)


def _absent(p: Tensor, fall: Tensor, n: int) -> Tensor:
    ratios = (p / fall)[fall > 0]
    return ratios.median() if len(p) > n else ratios.min()


@piece('blind(seen, layer="bias")', _blindly, over="updates")
def blind(seen: dict, layer: str) -> Tensor:
    """counts as real numbers without a protocol, N (p - c fall), c from the classes that fall.

    `p` is the mean of both ends' `seen["p"]`, and the fall of the bias is `seen["bias"]`. Each
    class that falls proposes c = p / fall. With more classes than samples c is the median of
    these, else the least.
    """
    return _scaled_by(seen, _absent)


@blind.mistake("your ratios are upside down: an absent class has p = c fall, so c = p / fall.")
def _(seen, layer):
    return _scaled_by(seen, lambda p, fall, n: 1 / _absent(p, fall, n))


@blind.mistake("you take the median always: with as many samples as classes take the least ratio.")
def _(seen, layer):
    return _scaled_by(seen, lambda p, fall, _: (p / fall)[fall > 0].median())


@blind.mistake("you take the least ratio always: with more classes than samples take the median.")
def _(seen, layer):
    return _scaled_by(seen, lambda p, fall, _: (p / fall)[fall > 0].min())


@blind.mistake("you let all classes propose: only those with a positive fall may be absent.")
def _(seen, layer):
    def factor(p: Tensor, fall: Tensor, n: int) -> Tensor:
        return (p / fall).median() if len(p) > n else (p / fall).min()

    return _scaled_by(seen, factor)


@blind.mistake("you take the largest ratio: it would make another absent class negative.")
def _(seen, layer):
    return _scaled_by(seen, lambda p, fall, _: (p / fall)[fall > 0].max())


@blind.mistake("you add the fall: a class that is there *rises*, so subtract its fall.")
def _(seen, layer):
    return _scaled_by(seen, lambda *given: -_absent(*given))


@blind.mistake("yours are shares of one: multiply by N for counts.")
def _(seen, layer):
    return _scaled_by(seen, _absent) / seen["N"]


@blind.mistake("you take the softmax at w0 only: take the mean of both ends.")
def _(seen, layer):
    return _scaled_by(seen, _absent, seen["p"][0])


def _fractions(seed: int) -> list[dict]:
    """Counts that are not whole, some of them negative."""
    found = []
    for k, number in enumerate(numbers(seed)):
        draw = seeds.generator(number, "checks")
        counts = 3 * uniform(draw, 16 + k) - 0.8
        found.append(named(counts=counts, total=11 + 2 * k))
    return found


@piece("whole(counts, total)", _fractions, over="counts")
def whole(counts: Tensor, total: int) -> Tensor:
    """non-negative integers that sum to total; the largest remainders are rounded up.

    First what is negative becomes zero, then all are scaled to sum to `total`.
    """
    return kernel_labels.round_to_total(counts, total)


def _scaled(counts: Tensor, total: int) -> Tensor:
    counts = counts.clamp(min=0)
    return counts * total / counts.sum()


@whole.mistake("you round each alone, so that they need not sum to total.")
def _(counts, total):
    return _scaled(counts, total).round().long()


@whole.mistake("you only round down: the rest goes to the largest remainders, one each.")
def _(counts, total):
    return _scaled(counts, total).floor().long()


@whole.mistake("you give the rest to the largest counts: it goes to the largest remainders.")
def _(counts, total):
    scaled = _scaled(counts, total)
    down = scaled.floor().long()
    down[scaled.argsort(descending=True, stable=True)[: total - int(down.sum())]] += 1
    return down


@whole.mistake("you scale before you set what is negative to zero: first clamp, then scale.")
def _(counts, total):
    scaled = (counts * total / counts.sum()).clamp(min=0)
    down = scaled.floor().long()
    down[
        (scaled - down).argsort(descending=True, stable=True)[: max(0, total - int(down.sum()))]
    ] += 1
    return down


def _blurred(seed: int) -> list[dict]:
    found = []
    for k, number in enumerate(numbers(seed)):
        draw = seeds.generator(number, "checks")
        true = uniform(draw, 1 + 2 * (k % 2), 5, 4)
        found.append(named(image=(true + 0.02 * 4**k * normal(draw, *true.shape)), original=true))
    return found


@piece("psnr(image, original)", _blurred, over="pictures")
def psnr(image: Tensor, original: Tensor) -> float:
    """10 log₁₀(1 / MSE), in decibels, of two images with pixels in [0, 1]."""
    return metrics.psnr(image, original)


@psnr.mistake("yours has the wrong sign: a better picture has more decibels.")
def _(image, original):
    return -metrics.psnr(image, original)


@psnr.mistake("yours is the natural logarithm: take log10.")
def _(image, original):
    return metrics.psnr(image, original) * math.log(10)


@psnr.mistake("you take twice as many decibels: 10 times the logarithm of the squared error.")
def _(image, original):
    return 2 * metrics.psnr(image, original)


@psnr.mistake("you take the absolute error: square it before the mean.")
def _(image, original):
    return -10 * math.log10(float((image - original).abs().mean()))


@psnr.mistake("you add up the squares: take their mean.")
def _(image, original):
    return metrics.psnr(image, original) - 10 * math.log10(image.numel())


@psnr.mistake("your peak is 255: pixels lie in [0, 1] here, so it is 1.")
def _(image, original):
    return metrics.psnr(image, original) + 20 * math.log10(255)
