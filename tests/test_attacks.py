"""What each attack hands to the loop, and what comes back from it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from conftest import Scene
from torch import Tensor

import smelib
from smelib import attacks, objectives, presets
from smelib.presets import DLFA_SETTINGS, PRESETS
from smelib.solver import Options, Recipe
from smelib.types import InputError


@pytest.fixture
def handed(monkeypatch: pytest.MonkeyPatch) -> list[tuple]:
    """The objective, recipe and options that an attack gives to `reconstruct`."""
    seen = []
    monkeypatch.setattr(
        attacks,
        "reconstruct",
        lambda model, update, labels, *given, name: seen.append(given),
    )
    return seen


@pytest.mark.parametrize(("channels", "name"), [(1, "femnist"), (3, "cifar100")])
def test_dlfa_has_the_authors_settings(
    handed: list, monkeypatch: pytest.MonkeyPatch, channels: int, name: str
) -> None:
    model = smelib.models.mlp((channels, 8, 8), 3)
    update = smelib.Update(model.params(), model.params(), 2)
    labels, protocol, terms = torch.tensor([0, 1]), smelib.Protocol(5, 2), {}
    attacks.dlfa(model, update, labels, protocol, seed=4)
    ((make, recipe, options),) = handed
    authors = DLFA_SETTINGS[name]
    assert (options.steps, options.keep, recipe.epochs) == (400, "last", 5)
    assert recipe.rates == {"images": authors.lr}
    falls = [recipe.schedule(k, 400) for k in (0, authors.every, 3 * authors.every)]
    assert falls == pytest.approx([1, authors.decay, authors.decay**3])
    assert recipe.finish is attacks.merge_epochs

    monkeypatch.setattr(objectives, "dlfa", lambda *args, **given: terms.update(given))
    make(model, update, labels)
    for term in ("tv", "clip", "order", "factor"):
        assert terms[term] == getattr(authors, term)
    assert (terms["summary"] is objectives.mean_image) == authors.mean_prior
    assert terms["omega"] == objectives.layer_weights(update.before)
    assert (terms["checkpoint"], terms["seed"]) == (True, 4)


def test_dlg_keeps_the_best(handed: list, tiny: Scene) -> None:
    attacks.dlg(tiny.network, tiny.update, lr=0.5)
    attacks.dlg(tiny.network, tiny.update, tiny.labels, lr=0.5, keep="last", steps=7)
    (_, _, first), (_, _, second) = handed
    assert (first.steps, first.keep) == (100, "best")
    assert (second.steps, second.keep) == (7, "last")


def test_arguments_that_cannot_be(tiny: Scene) -> None:
    scene = (tiny.network, tiny.update, tiny.labels)
    for lr in (0.0, -1.0, float("nan")):
        with pytest.raises(InputError, match="learning rate"):
            attacks.dlg(*scene, lr=lr)
    for alpha in (-0.1, 1.1, float("nan")):
        with pytest.raises(InputError, match=r"between 0 and 1|a finite number"):
            attacks.sme(*scene, alpha=alpha)


def test_images_and_other_unknowns_start_from_streams_of_their_own(tiny: Scene) -> None:
    update = tiny.update.to(torch.device("cpu"), torch.float32)
    recipe = Recipe({}, unknowns=lambda g: {"x": torch.randn(tiny.z.shape, generator=g)})
    first, second = attacks._starts(tiny.network, update, recipe, Options(restarts=2))
    drawn = torch.stack([v.flatten() for v in (first["images"], first["x"], second["images"])])
    assert float(torch.corrcoef(drawn).triu(1).abs().max()) < 0.5


def test_epochs_are_put_in_the_firsts_order_and_averaged() -> None:
    z = torch.rand(5, 1, 6, 6, generator=torch.Generator().manual_seed(0))
    order = torch.tensor([1, 2, 3, 4, 0])  # not its own inverse
    merged = attacks.merge_epochs(torch.stack([z + 0.01, z[order] - 0.02, z[order.flip(0)] + 0.07]))
    torch.testing.assert_close(merged, z + 0.02)


def test_what_comes_back_are_pixels(tiny: Scene) -> None:
    """Also where nothing bounds the dummies on the way."""

    def outwards(model: object, update: object, labels: object) -> objectives.Objective:
        def loss(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
            value = -images.square().sum()
            return value, {"similarity": value}

        return loss

    options = Options(steps=9, snapshots=3, progress=False)
    found = attacks.reconstruct(
        tiny.network, tiny.update, tiny.labels, outwards, Recipe({"images": 1.0}), options
    )
    for pictures in (found.images, found.snapshots):
        assert (float(pictures.min()), float(pictures.max())) == (0, 1)


@pytest.mark.parametrize("batched", [True, False])
def test_the_restart_with_the_lowest_loss_comes_back(tiny: Scene, batched: bool) -> None:
    def levels(model: object, update: object, labels: object) -> objectives.Objective:
        def loss(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
            value = 0 * images.sum() + aux["alpha"]
            return value, {"similarity": value}

        return loss

    marks = iter([0.3, 0.1, 0.2])
    recipe = Recipe(
        {"images": 0.0, "alpha": 0.0}, unknowns=lambda g: {"alpha": torch.tensor(next(marks))}
    )
    options = Options(steps=2, restarts=3, batched=batched, progress=False)
    found = attacks.reconstruct(tiny.network, tiny.update, tiny.labels, levels, recipe, options)
    assert (found.loss, found.alpha) == pytest.approx((0.1, 0.1))
    assert found.restart_losses.tolist() == pytest.approx([0.3, 0.1, 0.2])


@pytest.mark.parametrize("begin", [0.05, 0.95])
def test_alpha_stays_on_the_segment(tiny: Scene, begin: float) -> None:
    hasty = replace(PRESETS["paper"], alpha_rate=0.4)
    found = attacks.sme(tiny.network, tiny.update, tiny.labels, alpha=begin, preset=hasty, steps=12)
    alpha = found.history["alpha"]
    assert 0 <= float(alpha.min()) <= float(alpha.max()) <= 1
    assert 0 <= found.alpha <= 1
    assert float(alpha.min()) == 0 or float(alpha.max()) == 1, "the case must reach an end"


def test_a_presets_betas_reach_adam() -> None:
    recipe = presets.PRESETS["fast"].recipe()
    optimiser = recipe.optimiser([{"params": [torch.zeros(1, requires_grad=True)], "lr": 1.0}])
    assert optimiser.param_groups[0]["betas"] == (0.9, 0.99)


def test_the_presets_are_the_papers_and_a_fifth_of_it() -> None:
    paper, fast = PRESETS["paper"], PRESETS["fast"]
    assert (paper.steps, paper.rate, paper.alpha_rate, paper.betas) == (1000, 1, 1e-3, (0.9, 0.999))
    assert (paper.schedule, paper.alpha_every, paper.grey) == (smelib.solver.staircase, 1, None)
    assert 5 * fast.steps == paper.steps
    assert fast.schedule is smelib.solver.cosine


def test_a_warning_points_at_the_caller(tiny: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at the rooms in between: that line is what a reader can change."""
    whole = smelib.solver._Loop.look
    monkeypatch.setattr(
        smelib.solver._Loop, "look", lambda self: whole(self) and smelib.Stop.DIVERGED
    )
    with pytest.warns(RuntimeWarning, match="turned NaN") as caught:
        attacks.ig(tiny.network, tiny.update, tiny.labels, steps=25)
    assert caught[0].filename == __file__
