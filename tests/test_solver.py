"""The loop: what it records, what it keeps, and how it ends."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial

import pytest
import torch
from conftest import Scene, tiny_scene
from torch import Tensor

import smelib
from smelib import attacks, presets
from smelib.solver import (
    Options,
    Recipe,
    Solution,
    _evenly,
    adam,
    cosine,
    lbfgs,
    minimise,
    staircase,
)
from smelib.types import Stop

OLD = tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 6)


def run(
    objective: Callable, start: Tensor, recipe: Recipe, aux: dict | None = None, **options: object
) -> Solution:
    return minimise(objective, start, aux or {}, recipe, Options(progress=False, **options))


def bowl(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
    loss = images.square().sum()
    return loss, {"similarity": loss}


def test_staircase_falls_at_the_official_steps() -> None:
    rates = [staircase(k, 1000) for k in (0, 374, 375, 624, 625, 874, 875, 999)]
    assert rates == pytest.approx([1, 1, 0.1, 0.1, 0.01, 0.01, 0.001, 0.001])


def test_history_has_every_step_and_every_term(digits: Scene) -> None:
    found = attacks.sme(digits.network, digits.update, digits.labels, steps=7, snapshots=3)
    assert set(found.history) == {"loss", "similarity", "tv", "alpha"}
    assert all(len(v) == 7 for v in found.history.values())
    assert float(found.history["alpha"][0]) == pytest.approx(0.5)
    total = found.history["similarity"] + 0.01 * found.history["tv"]
    torch.testing.assert_close(total, found.history["loss"])
    assert found.snapshot_steps == [0, 3, 7]
    assert found.snapshots.shape == (3, 4, 1, 28, 28)
    assert torch.equal(found.snapshots[-1], found.images)


def test_an_attack_makes_progress(digits: Scene) -> None:
    found = attacks.sme(digits.network, digits.update, digits.labels, steps=60)
    assert found.similarity < 0.5 * float(found.history["similarity"][0])
    start = torch.rand(4, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    before = smelib.evaluate(start, digits.client.images).psnr
    assert smelib.evaluate(found.images, digits.client.images).psnr > before + 5


def test_keep_best_is_never_worse_than_keep_last(digits: Scene) -> None:
    last, best = (
        attacks.sme(digits.network, digits.update, digits.labels, steps=12, keep=keep)
        for keep in ("last", "best")
    )
    assert best.loss <= last.loss
    assert best.loss <= float(best.history["loss"].min()) * (1 + 1e-6)


def test_keep_best_returns_the_state_it_reports() -> None:
    start = torch.ones(1, 3)
    jumpy = Recipe({"images": 1.5})
    found = run(bowl, start, jumpy, steps=9, keep="best")
    assert float(found.images.square().sum()) == pytest.approx(float(found.loss))
    assert float(found.loss) == pytest.approx(float(found.history["loss"].min()))


@pytest.mark.parametrize("name", ["ig", "sme", "dlfa"])
def test_batched_restarts_equal_those_one_by_one(tiny: Scene, name: str) -> None:
    extra = {"protocol": tiny.protocol} if name == "dlfa" else {}
    together, apart = (
        attacks.ATTACKS[name](
            tiny.network, tiny.update, tiny.labels, steps=5, restarts=3, batched=batched, **extra
        )
        for batched in (True, False)
    )
    torch.testing.assert_close(together.restart_losses, apart.restart_losses)
    torch.testing.assert_close(together.images, apart.images)
    assert together.loss == pytest.approx(float(together.restart_losses.min()))
    assert len(set(together.restart_losses.tolist())) == 3


def test_nan_stops_the_loop_and_keeps_the_last_good_state() -> None:
    def breaks(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
        loss = images.square().sum() + torch.where((step >= 60) & (step < 75), torch.nan, 0.0)
        return loss, {"similarity": loss}

    found = run(breaks, torch.ones(1, 3), Recipe({"images": 0.1}), steps=200)
    assert found.stopped is Stop.DIVERGED
    assert found.steps == 75
    well = run(breaks, torch.ones(1, 3), Recipe({"images": 0.1}), steps=50)
    assert torch.equal(found.images, well.images), "the state of the last look"


def rough(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
    """A finite loss whose gradient is NaN at the origin: the root of a square."""
    loss = images.square().sum().sqrt()
    return loss, {"similarity": loss}


def test_a_nan_gradient_is_no_good_state() -> None:
    """The loss is finite at the step whose gradient is NaN; the state after it is not."""
    found = run(rough, torch.zeros(1, 3), Recipe({"images": 0.1}), steps=1)
    assert found.stopped is Stop.DIVERGED
    assert torch.equal(found.images, torch.zeros(1, 3)), "the start is all there was"
    assert float(found.loss) == 0

    def late(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
        return rough(images * torch.where(step >= 49, 0.0, 1.0), aux, step)

    found = run(late, torch.ones(1, 3), Recipe({"images": 0.01}), steps=200)
    assert found.stopped is Stop.DIVERGED
    assert found.steps == 50
    assert bool(torch.isfinite(found.images).all())


def test_an_attack_says_when_it_diverged(tiny: Scene) -> None:
    def breaks(model: object, update: object, labels: object) -> Callable:
        def loss(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
            value = images.square().sum() + torch.where((step >= 30) & (step < 50), torch.nan, 0.0)
            return value, {"similarity": value}

        return loss

    recipe, options = Recipe({"images": 0.1}), Options(steps=200, progress=False)
    with pytest.warns(RuntimeWarning, match="turned NaN before step 50"):
        found = attacks.reconstruct(tiny.network, tiny.update, tiny.labels, breaks, recipe, options)
    assert found.stopped == "diverged"


@pytest.mark.parametrize("where", ["one pixel", "alpha"])
def test_one_bad_number_is_enough(where: str) -> None:
    """A root's slope at zero, in one pixel of three or in the other unknown alone."""

    def rooted(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
        root = images[0] if where == "one pixel" else aux["alpha"]
        loss = images[1:].square().sum() + root.square().sqrt()
        return loss, {"similarity": loss}

    recipe = Recipe({"images": 0.1, "alpha": 0.1})
    start, alpha = torch.tensor([[0.0, 1.0, 1.0]]), {"alpha": torch.zeros(1)}
    found = run(rooted, start, recipe, alpha, steps=1)
    assert found.stopped is Stop.DIVERGED
    assert torch.equal(found.images, start)


def test_interrupted_where_the_loss_has_no_value_a_restart_goes_back() -> None:
    """The first of two restarts has just stepped over the edge; the other one is well."""
    calls = []

    def edge(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
        calls.append(1)
        if len(calls) == 30:
            raise KeyboardInterrupt
        loss = torch.where(images > 0, images, torch.nan).sum()
        return loss, {"similarity": loss}

    recipe = Recipe({"images": 0.1})
    found = run(edge, torch.tensor([[2.85], [9.0]]), recipe, steps=100)
    assert found.stopped is Stop.INTERRUPTED
    assert found.steps == 29
    assert float(found.images[0]) == pytest.approx(2.85 - 25 * 0.1, abs=1e-4), "the last look's"
    assert float(found.images[1]) == pytest.approx(9.0 - 29 * 0.1, abs=1e-4), "the last state"
    assert torch.equal(found.loss, found.images[:, 0])
    assert torch.equal(found.terms["similarity"], found.loss)


@pytest.mark.parametrize("steps", [29, 54])
def test_a_last_step_over_the_edge_is_taken_back(steps: int) -> None:
    """No step saw a loss that is not finite: only the state after the last one has such a loss."""

    def edge(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
        loss = torch.where(images > 0, images, torch.nan).sum()
        return loss, {"similarity": loss}

    start = torch.tensor([[0.1 * steps - 0.05]])
    found = run(edge, start, Recipe({"images": 0.1}), steps=steps)
    good = 25 * (steps // 25)
    assert float(found.loss) == pytest.approx(float(start) - 0.1 * good, abs=1e-4)


@pytest.mark.parametrize("batched", [True, False])
def test_a_restart_over_the_edge_at_a_look_goes_back_alone(batched: bool) -> None:
    """The state at step 25 is finite and its loss is not: the state before it is the last good."""

    def edge(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
        loss = torch.where(images > 0, images, torch.nan).sum()
        return loss, {"similarity": loss}

    starts = torch.tensor([[2.45], [20.0]])
    for given in [starts] if batched else starts.split(1):
        found = run(edge, given, Recipe({"images": 0.1}), steps=60)
        expected = [2.45 if float(x) < 3 else 14.0 for x in given]
        assert found.loss.tolist() == pytest.approx(expected, abs=1e-4)


def test_keep_best_never_takes_nan_for_the_best() -> None:
    """The best state is that of step 4, and step 5 has no loss."""

    def gap(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
        loss = images.square().sum() + torch.where(step == 5, torch.nan, 0.0)
        return loss, {"similarity": loss}

    found = run(gap, torch.ones(1, 3), Recipe({"images": 1.5}), steps=9, keep="best")
    losses = found.history["loss"].nan_to_num(nan=torch.inf)
    assert int(losses.argmin()) == 4
    assert float(found.loss) == pytest.approx(float(losses.min()))


@pytest.mark.parametrize("batched", [True, False])
def test_a_restart_that_turns_nan_does_not_stop_the_others(tiny: Scene, batched: bool) -> None:
    """One start of two is worse than useless: the other one's result comes back."""

    def fragile(model: object, update: object, labels: object) -> Callable:
        def loss(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
            value = images.square().sum() * torch.where(aux["bad"] > 0, torch.nan, 1.0)
            return value, {"similarity": value}

        return loss

    for order in ([1.0, 0.0], [0.0, 1.0]):
        marks = iter(order)
        recipe = Recipe(
            {"images": 0.1, "bad": 0.0},
            unknowns=lambda generator, marks=marks: {"bad": torch.tensor(next(marks))},
        )
        options = Options(steps=30, restarts=2, batched=batched, progress=False)
        found = attacks.reconstruct(
            tiny.network, tiny.update, tiny.labels, fragile, recipe, options
        )
        assert found.stopped == "finished"
        assert torch.isfinite(found.restart_losses).tolist() == [mark == 0 for mark in order]
        assert found.loss == float(found.restart_losses[order.index(0.0)])


def test_nan_from_the_start_is_an_error(tiny: Scene) -> None:
    def nothing(model: object, update: object, labels: object) -> Callable:
        def loss(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
            value = (images * torch.nan).sum()
            return value, {"similarity": value}

        return loss

    recipe, options = Recipe({"images": 0.1}), Options(steps=30, progress=False)
    with pytest.raises(FloatingPointError, match="from the first step"):
        attacks.reconstruct(tiny.network, tiny.update, tiny.labels, nothing, recipe, options)


def test_ctrl_c_returns_what_there_is() -> None:
    calls = []

    def interrupted(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
        calls.append(1)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return bowl(images, aux, step)

    # Snapshots at 0, at 7, where the interruption comes, and at the end.
    found = run(interrupted, torch.ones(1, 3), Recipe({"images": 0.1}), steps=14, snapshots=3)
    assert found.stopped is Stop.INTERRUPTED
    assert found.snapshot_steps == [0, 7]
    assert len(found.snapshots) == 2
    assert len(found.history["loss"]) == found.steps == 7
    assert float(found.loss) < 3


def test_tolerance_stops_early() -> None:
    def raised(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
        loss = images.square().sum() + 1
        return loss, {"similarity": loss}

    recipe = Recipe({"images": 0.5}, schedule=staircase)
    found = run(raised, torch.ones(1, 3), recipe, steps=1000, tolerance=1e-3)
    assert found.steps < 1000
    assert found.stopped is Stop.STALLED


def test_tolerance_stops_only_what_is_at_rest() -> None:
    """A share of the loss, whatever its size; and all restarts must have come to rest."""

    def falls(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
        loss = aux["size"] * (2.0 + 0 * images.sum() - aux["speed"] * step / 100)
        return loss, {"similarity": loss}

    recipe = Recipe({"images": 0.0, "size": 0.0, "speed": 0.0})

    def stops(size: float, *speeds: float, tolerance: float = 0.01) -> Stop:
        aux = {"size": torch.full((len(speeds),), size), "speed": torch.tensor(speeds)}
        start = torch.ones(len(speeds), 1)
        return run(falls, start, recipe, aux, steps=100, tolerance=tolerance).stopped

    for size in (1e-4, 1.0, 1e4):
        assert stops(size, 1.0) is Stop.FINISHED, "a quarter every 25 steps"
        assert stops(size, 0.01) is Stop.STALLED
    assert stops(1.0, 0.01, 1.0) is Stop.FINISHED, "one of two still falls"
    assert stops(1.0, 0.01, 0.02) is Stop.STALLED
    assert stops(1.0, -1.0, tolerance=0.0) is Stop.FINISHED, "a loss that grows, nobody asked"


def test_the_start_is_the_callers() -> None:
    start, aux = torch.ones(1, 3), {"alpha": torch.ones(1)}
    run(bowl, start, Recipe({"images": 0.1, "alpha": 0.1}), aux, steps=3)
    for given in (start, aux["alpha"]):
        assert bool((given == 1).all())
        assert not given.requires_grad


def test_adam_has_the_momentum_it_is_given() -> None:
    start = torch.tensor([[1.0, 2.0, 5.0]])
    for betas in (None, (0.5, 0.9)):
        optimiser = adam if betas is None else partial(adam, betas=betas)
        found = run(bowl, start, Recipe({"images": 0.3}, optimiser=optimiser), steps=8)
        x = start.clone().requires_grad_()
        by_hand = torch.optim.Adam([x], lr=0.3, betas=betas or (0.9, 0.999))
        for _ in range(8):
            by_hand.zero_grad()
            x.square().sum().backward()
            by_hand.step()
        torch.testing.assert_close(found.images, x.detach())


def valley(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
    """Rosenbrock's, between the pixel and the other unknown."""
    x, y = images[0], aux["alpha"]
    loss = (1 - x) ** 2 + 100 * (y - x**2) ** 2
    return loss, {"similarity": loss}


def test_l_bfgs_moves_all_unknowns_and_never_uphill() -> None:
    recipe = Recipe({"images": 1.0, "alpha": 1.0}, optimiser=lbfgs)
    start, alpha = torch.tensor([[-1.2]]).double(), torch.ones(1).double()
    found = run(valley, start, recipe, {"alpha": alpha}, steps=4)
    losses = found.history["loss"][:, 0]
    assert float(losses[0]) == pytest.approx(24.2), "noted where a step begins, not at a trial"
    assert bool((losses.diff() <= 0).all())
    assert float(found.loss) < 1e-8
    assert float(found.aux["alpha"]) == pytest.approx(1, abs=1e-4)


def test_l_bfgs_searches_along_its_line() -> None:
    optimiser = lbfgs([{"params": [torch.zeros(1, requires_grad=True)], "lr": 0.5}])
    (group,) = optimiser.param_groups
    assert (group["line_search_fn"], group["lr"], group["max_iter"]) == ("strong_wolfe", 0.5, 20)


def test_an_unknown_can_be_updated_now_and_then(tiny: Scene) -> None:
    objective = smelib.objectives.sme(tiny.network, tiny.update, tiny.labels, tv=0.01)
    recipe = Recipe({"images": 0.1, "alpha": 0.01}, every={"alpha": 4})
    alpha = {"alpha": torch.tensor([0.5], dtype=torch.float64)}
    found = run(objective, tiny.z[None], recipe, alpha, steps=12)
    moves = found.history["alpha"][:, 0].diff().nonzero().flatten().tolist()
    assert moves == [0, 4, 8]


def test_bounds_are_kept_at_every_step() -> None:
    """Adam would carry each pixel a whole unit further; the box is in the loop, not at the end."""
    seen = []

    def pulls(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
        seen.append(images.detach().clone())
        loss = -images.sum()
        return loss, {"similarity": loss}

    recipe = Recipe({"images": 1.0}, bounds={"images": (-0.5, 2.25)})
    found = run(pulls, torch.zeros(1, 3), recipe, steps=5)
    assert [float(x.max()) for x in seen[:5]] == pytest.approx([0, 1, 2, 2.25, 2.25])
    assert float(found.images.max()) == 2.25


def test_dummies_stay_in_the_pixels_box(digits: Scene) -> None:
    """Watched from inside the objective, where nothing has been clamped for show."""
    seen = []

    def watched(model: object, update: object, labels: object) -> Callable:
        loss = smelib.objectives.ig(model, update, labels, tv=0.01)

        def inner(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
            pixels = model.denormalise(images.detach())
            seen.append((float(pixels.min()), float(pixels.max())))
            return loss(images, aux, step)

        return inner

    recipe, options = presets.PRESETS["paper"].recipe(), Options(steps=4, progress=False)
    attacks.reconstruct(digits.network, digits.update, digits.labels, watched, recipe, options)
    assert min(low for low, _ in seen) > -1e-5
    assert max(high for _, high in seen) == pytest.approx(1, abs=1e-5)


def test_keep_best_compares_under_one_factor() -> None:
    """Where the goal moves, as in DLFA, early losses look better than they are."""

    def moving(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
        distance = images.square().sum()
        loss = (1 + step) ** 2 * distance
        return loss, {"similarity": distance, "score": distance.detach()}

    recipe = Recipe({"images": 0.01})
    best, last = (run(moving, torch.ones(1, 3), recipe, steps=9, keep=k) for k in ("best", "last"))
    assert int(best.history["loss"].argmin()) == 0, "the loss itself only grows"
    assert torch.equal(best.images, last.images)


def test_keep_best_goes_by_the_score_on_the_way() -> None:
    """The goal moves away by ten at every step; the best state by its score is that of step 4."""

    def moving(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
        distance = images.square().sum()
        return distance + 10 * step, {"similarity": distance, "score": distance.detach()}

    found = run(moving, torch.ones(1, 3), Recipe({"images": 1.5}), steps=9, keep="best")
    assert int(found.history["loss"].argmin()) == 0
    assert int(found.history["score"].argmin()) == 4
    assert float(found.terms["score"]) == pytest.approx(float(found.history["score"].min()))


def test_dlfas_score_is_its_loss_under_the_last_factor(tiny: Scene) -> None:
    loss = smelib.objectives.dlfa(
        tiny.network, tiny.update, tiny.labels, tiny.protocol, tv=0.1, factor=(4.0, 2.0), until=10
    )
    z = tiny.z.expand(3, *tiny.z.shape)
    first, half, last, later = (loss(z, {}, torch.tensor(float(k))) for k in (0, 5, 10, 99))
    d, steps = first[1]["distance"], tiny.protocol.steps(3)
    assert float(first[0] - last[0]) == pytest.approx(float(2 / steps * d))
    assert float(half[0] - last[0]) == pytest.approx(float((8**0.5 - 2) / steps * d))
    for value, terms in (first, half, last, later):
        assert float(terms["score"]) == pytest.approx(float(later[0]))
        assert float(value) >= float(later[0]) * (1 - 1e-12)


def test_cosine_schedule_ends_at_nothing() -> None:
    assert [cosine(k, 4) for k in range(5)] == pytest.approx(
        [1, 0.853553, 0.5, 0.146447, 0], abs=1e-6
    )


def test_a_compiler_that_fails_is_done_without(
    tiny: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object) -> None:
        raise OSError("no compiler")

    plain = attacks.sme(tiny.network, tiny.update, tiny.labels, steps=3)
    monkeypatch.setattr(torch, "compile", lambda function, **how: broken)
    with pytest.warns(RuntimeWarning, match="going on without it") as caught:
        found = attacks.sme(tiny.network, tiny.update, tiny.labels, steps=3, compile=True)
    assert len(caught) == 1
    assert torch.equal(found.images, plain.images)


@pytest.mark.parametrize("preset", ["paper", "fast"])
@pytest.mark.parametrize("name", ["ig", "sme"])
def test_the_traced_gradient_is_the_eager_one(
    tiny: Scene, name: str, preset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is handed to the compiler, run without it: the compiler itself is torch's business."""
    attack = partial(
        attacks.ATTACKS[name], tiny.network, tiny.update, tiny.labels, steps=5, preset=preset
    )
    plain = attack()
    monkeypatch.setattr(torch, "compile", lambda function, **how: function)
    traced = attack(compile=True)
    torch.testing.assert_close(traced.images, plain.images)


def test_the_fast_preset_starts_grey_and_moves_alpha_every_fourth_step(digits: Scene) -> None:
    found = attacks.sme(
        digits.network, digits.update, digits.labels, preset="fast", steps=12, snapshots=2
    )
    assert float(found.snapshots[0].mean()) == pytest.approx(0.5, abs=0.02)
    assert float(found.snapshots[0].std()) < 0.1
    assert found.history["alpha"].diff().nonzero().flatten().tolist() == [0, 4, 8]
    with pytest.raises(smelib.InputError, match="did you mean 'fast'"):
        attacks.sme(digits.network, digits.update, digits.labels, preset="fsat")


def test_options_are_checked_by_name(tiny: Scene) -> None:
    scene = (tiny.network, tiny.update, tiny.labels)
    for options, message in (
        ({"setps": 3}, "did you mean 'steps'"),
        ({"steps": 0}, "steps is 0"),
        ({"steps": 2.5}, "whole number"),
        ({"restarts": 0}, "restarts is 0"),
        ({"keep": "first"}, "choose 'last' or 'best'"),
        ({"seed": -1}, "seed -1"),
        ({"seed": 10**20}, "2\\^63"),
        ({"device": "cuda:77"}, "cannot be used"),
    ):
        with pytest.raises(smelib.InputError, match=message):
            attacks.sme(*scene, **options)


def test_a_preset_of_your_own(tiny: Scene) -> None:
    scene = (tiny.network, tiny.update, tiny.labels)
    mine = presets.Preset(7, staircase, (0.9, 0.999), alpha_rate=0.001)
    found, paper = attacks.sme(*scene, preset=mine), attacks.sme(*scene, steps=7)
    assert found.steps == 7
    assert torch.equal(found.images, paper.images)


def test_an_attack_of_your_own_in_a_few_lines(tiny: Scene) -> None:
    """IG with a Euclidean prior, written with `reconstruct`; without the prior it is IG."""

    def shrinking(weight: float) -> Callable:
        def make(model: object, update: object, labels: object) -> Callable:
            ig = smelib.objectives.ig(model, update, labels, tv=0.01)

            def loss(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
                value, terms = ig(images, aux, step)
                return value + weight * images.square().mean(), terms

            return loss

        return make

    scene = (tiny.network, tiny.update, tiny.labels)
    recipe, options = presets.PRESETS["paper"].recipe(), Options(steps=9, seed=2)
    plain, pulled = (
        attacks.reconstruct(*scene, shrinking(w), recipe, options) for w in (0.0, 10.0)
    )
    assert torch.equal(plain.images, attacks.ig(*scene, steps=9, seed=2).images)
    assert float(pulled.images.std()) < float(plain.images.std())


def test_batched_l_bfgs_is_refused(tiny: Scene) -> None:
    """One line search for all restarts would couple them."""
    with pytest.raises(smelib.InputError, match="couple the restarts"):
        attacks.dlg(tiny.network, tiny.update, tiny.labels, lr=0.5, restarts=2, batched=True)
    alone = attacks.dlg(tiny.network, tiny.update, tiny.labels, lr=0.5, steps=3, seed=1)
    many = attacks.dlg(tiny.network, tiny.update, tiny.labels, lr=0.5, steps=3, seed=1, restarts=2)
    assert float(many.restart_losses[0]) == alone.loss


@pytest.mark.slow
@pytest.mark.skipif(OLD, reason="the compiler of torch before 2.6 cannot trace an attack")
def test_every_attack_is_compiled_however_many_there_were(
    tiny: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dynamo gives up on a function after eight versions of it, and says nothing."""
    compiled, real = [], torch.compile

    def counting(graph: torch.fx.GraphModule, inputs: list) -> Callable:
        compiled[-1] += 1
        return graph.forward

    monkeypatch.setattr(torch, "compile", lambda f, **how: real(f, backend=counting, **how))
    for count in range(10):
        compiled.append(0)
        scene = tiny_scene(samples=2 + count % 5, epochs=1)
        found = attacks.sme(scene.network, scene.update, scene.labels, steps=2, compile=True)
        plain = attacks.sme(scene.network, scene.update, scene.labels, steps=2)
        torch.testing.assert_close(found.images, plain.images)
    assert min(compiled) >= 1, compiled


@pytest.mark.slow
@pytest.mark.skipif(OLD, reason="the compiler of torch before 2.6 cannot trace an attack")
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler on this machine")
def test_the_compiled_attack_finds_the_same_pictures(
    tiny: Scene, recwarn: pytest.WarningsRecorder
) -> None:
    """The real compiler, from the graph to machine code."""
    scene = (tiny.network, tiny.update, tiny.labels)
    plain, compiled = (attacks.sme(*scene, steps=6, compile=c) for c in (False, True))
    assert not [w for w in recwarn if "going on without it" in str(w.message)]
    torch.testing.assert_close(compiled.images, plain.images, rtol=1e-6, atol=1e-8)


@pytest.mark.skipif(not OLD, reason="the compiler of this torch can trace an attack")
def test_an_old_compiler_says_that_it_cannot(tiny: Scene) -> None:
    with pytest.warns(RuntimeWarning, match="going on without it"):
        attacks.sme(tiny.network, tiny.update, tiny.labels, steps=2, compile=True)


@pytest.mark.slow
def test_dlg_recovers_one_image_and_its_label(tiny: Scene) -> None:
    client = smelib.data.client("mnist", 1, seed=1)
    network = smelib.models.lenet(client.shape, client.classes)
    update = smelib.local_update(network, client, smelib.Protocol(1, 1, lr=0.1))
    found = attacks.dlg(network, update, None, lr=0.1, restarts=3, steps=40)
    assert found.labels.tolist() == client.labels.tolist()
    assert smelib.evaluate(found.images, client.images).psnr > 20


def test_snapshots_are_spread_evenly() -> None:
    assert _evenly(100, 5) == [0, 25, 50, 75]
    assert _evenly(100, 0) == []
