"""What a renewal does where it can be computed by hand: on a loss quadratic in the weights."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

from smelib import theory
from smelib.federated import gradient
from smelib.types import Protocol
from smelib.walking import walk

SIZE, LR = 5, 0.01


def quadratic(curvatures: Tensor, seed: int) -> SimpleNamespace:
    """A stand-in for a network: $\\ell(w, z) = w^\\top H w / 2 - w^\\top B z$, H and B random."""
    draw = torch.Generator().manual_seed(seed)
    basis, mix = (torch.randn(SIZE, SIZE, generator=draw).double() for _ in range(2))
    basis = torch.linalg.qr(basis)[0]
    hessian = basis @ torch.diag(curvatures) @ basis.T
    return SimpleNamespace(
        hessian=hessian,
        basis=basis,
        mix=mix,
        start={"w": torch.randn(SIZE, generator=draw).double()},
        truth=torch.randn(1, SIZE, generator=draw).double(),
        trained=lambda weights: weights,
        logits=lambda weights, z: (weights["w"], z[0]),
        loss=lambda pair, _: pair[0] @ hessian @ pair[0] / 2 - pair[0] @ mix @ pair[1],
    )


def walked(model: SimpleNamespace, z: Tensor, steps: int, nodes: int) -> tuple:
    """The walk's mean move, and the held model of it as a function of the dummies."""
    keep = [int((k + 0.5) * steps / nodes) for k in range(nodes)]
    path = walk(
        model,
        model.start,
        z,
        torch.zeros(1),
        [torch.zeros(1, dtype=torch.long)] * steps,
        Protocol(steps, 1, LR),
        rate=lambda _: torch.tensor(LR, dtype=torch.float64),
        keep=keep,
    )
    rest = path.mean["w"] - sum(s["w"] for s in path.slopes) / nodes

    def held(new: Tensor) -> Tensor:
        return sum(gradient(model, w, new, torch.zeros(1))["w"] for w in path.nodes) / nodes + rest

    return path.mean["w"], held


def renewed(model: SimpleNamespace, z: Tensor, target: Tensor, steps: int, nodes: int) -> Tensor:
    """The dummies that match the target exactly while the walk is held: the search, done."""
    mean, held = walked(model, z, steps, nodes)
    torch.testing.assert_close(held(z), mean)  # before anything moves, the value is the walk's
    found = z + torch.linalg.solve(model.mix, mean - target)
    torch.testing.assert_close(held(found), target)
    return found


def errors(model: SimpleNamespace, z: Tensor) -> np.ndarray:
    """$B (z - z^*)$ along the directions of curvature."""
    return (model.basis.T @ (model.mix @ (z - model.truth)[0])).numpy()


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("nodes", [1, 2, 20])
def test_a_renewal_multiplies_the_error_by_its_factor(seed: int, nodes: int) -> None:
    h = 200 * torch.rand(SIZE, generator=torch.Generator().manual_seed(seed)).double() - 5
    model, steps = quadratic(h, seed), 20
    target, _ = walked(model, model.truth, steps, nodes)
    z = torch.zeros_like(model.truth)
    factor = theory.renewal_factor(h, LR, steps)
    for _ in range(3):
        after = renewed(model, z, target, steps, nodes)
        np.testing.assert_allclose(errors(model, after), factor * errors(model, z), atol=1e-9)
        z = after


def test_where_it_converges() -> None:
    """For every curvature below 2 / lr; where it is negative, for short walks only."""
    bowls = theory.renewal_factor(np.linspace(0, 1.999 / LR, 500), LR, 50)
    assert bowls.min() >= 0
    assert bowls.max() < 1
    half = LR * 49 / 2
    gentle = np.linspace(0, 1 / LR, 200)
    assert (theory.renewal_factor(gentle, LR, 50) <= half * gentle + 1e-12).all()
    # With small steps the edge is where (e^tau - 1) / tau is two, at tau = 1.2564.
    flow = {tau: theory.renewal_factor(-tau / (LR * 1e4), LR, 10_000) for tau in (1.25, 1.26)}
    assert -1 < flow[1.25] < 0
    assert flow[1.26] < -1


@pytest.mark.parametrize("seed", range(5))
def test_what_ig_the_midpoint_and_a_renewal_leave(seed: int) -> None:
    tau, steps, none = 0.5, 40, torch.zeros(1)
    h = torch.full((SIZE,), tau / (LR * steps), dtype=torch.float64)
    model = quadratic(h, seed)
    target, _ = walked(model, model.truth, steps, 1)
    size = float(gradient(model, model.start, model.truth, none)["w"].norm())

    def found(weights: dict) -> Tensor:
        """The dummies whose gradient at these weights is the target."""
        at_truth = gradient(model, weights, model.truth, none)["w"]
        return model.truth + torch.linalg.solve(model.mix, at_truth - target)

    ig = found(model.start)
    middle = found({"w": model.start["w"] - LR * steps * target / 2})
    once = renewed(model, middle, target, steps, 1)
    sizes = [np.linalg.norm(errors(model, z)) / size for z in (ig, middle, once)]
    factor = float(theory.renewal_factor(h[0], LR, steps))
    half = abs(1 - (1 - factor) * (1 + tau / 2))
    np.testing.assert_allclose(sizes, [factor, half, factor * half], rtol=1e-9)


def test_each_renewal_gains_an_order_over_the_midpoint() -> None:
    """For small tau and small steps: tau / 2, tau squared / 12, and tau / 2 of that."""
    steps, tau = 100_000, 0.01
    factor = float(theory.renewal_factor(tau / (LR * steps), LR, steps))
    assert factor == pytest.approx(tau / 2, rel=0.01)
    assert 1 - (1 - factor) * (1 + tau / 2) == pytest.approx(tau**2 / 12, rel=0.02)
