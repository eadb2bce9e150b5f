"""The loop: what it records, what it keeps, and how it ends."""

from __future__ import annotations

import pytest
import torch
from conftest import Scene
from torch import Tensor

import smelib
from smelib import attacks
from smelib.solver import Recipe, _evenly, minimise, staircase


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


def test_images_stay_in_the_box(digits: Scene) -> None:
    found = attacks.ig(digits.network, digits.update, digits.labels, steps=3)
    assert 0 <= float(found.images.min()) <= float(found.images.max()) <= 1


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
    found = minimise(bowl, start, {}, jumpy, steps=9, keep="best", progress=False)
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
        loss = images.square().sum() + torch.where(step >= 60, float("nan"), 0.0)
        return loss, {"similarity": loss}

    with pytest.warns(RuntimeWarning, match="turned NaN at step 60"):
        found = minimise(
            lambda i, a, s: breaks(i, a, torch.where(s >= 75, 0.0, s)),
            torch.ones(1, 3),
            {},
            Recipe({"images": 0.1}),
            steps=200,
            progress=False,
        )
    assert found.steps == 75
    assert bool(torch.isfinite(found.images).all())


def test_a_restart_that_turns_nan_does_not_stop_the_others() -> None:
    def one_breaks(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
        loss = images.square().sum().sqrt() * torch.where(images[0] > 5, float("nan"), 1.0)
        return loss, {"similarity": loss}

    start = torch.tensor([[1.0, 1.0], [9.0, 1.0]])
    found = minimise(one_breaks, start, {}, Recipe({"images": 0.01}), steps=60, progress=False)
    assert found.stopped == "finished"
    assert torch.isfinite(found.loss).tolist() == [True, False]


def test_nan_from_the_start_is_an_error() -> None:
    def nothing(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
        loss = (images * float("nan")).sum()
        return loss, {"similarity": loss}

    with pytest.raises(FloatingPointError, match="from the first step"):
        minimise(nothing, torch.ones(1, 3), {}, Recipe({"images": 0.1}), steps=30, progress=False)


def test_ctrl_c_returns_what_there_is() -> None:
    calls = []

    def interrupted(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
        calls.append(1)
        if len(calls) == 8:
            raise KeyboardInterrupt
        return bowl(images, aux, step)

    found = minimise(
        interrupted,
        torch.ones(1, 3),
        {},
        Recipe({"images": 0.1}),
        steps=14,
        snapshots=3,  # at 0, at 7, where the interruption comes, and at the end
        progress=False,
    )
    assert found.stopped == "interrupted after 7 of 14 steps"
    assert found.snapshot_steps == [0, 7]
    assert len(found.snapshots) == 2
    assert len(found.history["loss"]) == found.steps == 7
    assert float(found.loss) < 3


def test_tolerance_stops_early() -> None:
    def raised(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
        loss = images.square().sum() + 1
        return loss, {"similarity": loss}

    found = minimise(
        raised,
        torch.ones(1, 3),
        {},
        Recipe({"images": 0.5}, schedule=staircase),
        steps=1000,
        tolerance=1e-3,
        progress=False,
    )
    assert found.steps < 1000
    assert "stopped falling" in found.stopped


def test_an_unknown_can_be_updated_now_and_then(tiny: Scene) -> None:
    objective = smelib.objectives.sme(tiny.network, tiny.update, tiny.labels, tv=0.01)
    found = minimise(
        objective,
        tiny.z[None],
        {"alpha": torch.tensor([0.5], dtype=torch.float64)},
        Recipe({"images": 0.1, "alpha": 0.01}, every={"alpha": 4}),
        steps=12,
        progress=False,
    )
    moves = found.history["alpha"][:, 0].diff().nonzero().flatten().tolist()
    assert moves == [0, 4, 8]


def test_a_compiler_that_fails_is_done_without(
    tiny: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object) -> None:
        raise OSError("no compiler")

    plain = attacks.sme(tiny.network, tiny.update, tiny.labels, steps=3)
    monkeypatch.setattr(torch, "compile", lambda function: broken)
    with pytest.warns(RuntimeWarning, match="going on without it") as caught:
        found = attacks.sme(tiny.network, tiny.update, tiny.labels, steps=3, compile=True)
    assert len(caught) == 1
    assert torch.equal(found.images, plain.images)


@pytest.mark.parametrize("name", ["ig", "sme"])
def test_the_traced_gradient_is_the_eager_one(
    tiny: Scene, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is handed to the compiler, run without it: the compiler itself is torch's business."""
    attack = attacks.ATTACKS[name]
    plain = attack(tiny.network, tiny.update, tiny.labels, steps=5)
    monkeypatch.setattr(torch, "compile", lambda function: function)
    traced = attack(tiny.network, tiny.update, tiny.labels, steps=5, compile=True)
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
