"""Labels from an update: the formula with its pieces put in by hand, and what is refused."""

from __future__ import annotations

import pytest
import torch
from conftest import tiny_network, tiny_scene
from torch import Tensor

import smelib
from smelib import labels
from smelib.types import InputError, Protocol, Update

P0 = torch.tensor([0.10, 0.20, 0.30, 0.40], dtype=torch.float64)
P1 = torch.tensor([0.50, 0.30, 0.15, 0.05], dtype=torch.float64)
O0, O1 = torch.tensor(2.0, dtype=torch.float64), torch.tensor(6.0, dtype=torch.float64)
TRUE = [6, 3, 1, 0]


def update_that_falls(fall: Tensor, layer: str, samples: int) -> Update:
    """An update of the tiny network whose last layer falls by this much in all."""
    before = tiny_network().params()
    after = {k: v.clone() for k, v in before.items()}
    other = 1e-3 * torch.arange(1.0, len(fall) + 1, dtype=torch.float64)  # the layer not asked
    after["3.bias"] -= fall if layer == "bias" else other
    after["3.weight"] -= ((fall if layer == "rows" else other) / 72).view(-1, 1)
    return Update(before, after, samples)


@pytest.fixture
def statistics(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """The network's statistics are P0 and O0 at w0, and P1 and O1 at wT; notes the dummies."""
    seen, start = [], tiny_network().params()["3.bias"]

    def found(model: object, weights: dict, z: Tensor) -> tuple[Tensor, Tensor]:
        seen.append(z)
        return (P0, O0) if torch.equal(weights["3.bias"], start) else (P1, O1)

    monkeypatch.setattr(labels, "statistics", found)
    return seen


@pytest.mark.parametrize("layer", ["bias", "rows"])
@pytest.mark.parametrize("epochs", [1, 2, 5])
def test_counts_by_the_formula(statistics: list, epochs: int, layer: str) -> None:
    """T gradients, the t-th of them at the share t/T of the way: (T - 1) / 2T on average."""
    protocol = Protocol(epochs, 5, lr=0.02)
    steps = 2 * epochs
    mix = sum(t / steps for t in range(steps)) / steps
    p, o = torch.lerp(P0, P1, mix), torch.lerp(O0, O1, mix)
    for true in (TRUE, [0, 0, 10, 0], [1, 2, 3, 4]):
        share = 10 * p - torch.tensor(true)
        fall = share * steps * protocol.lr / 10 * (o if layer == "rows" else 1)
        update = update_that_falls(fall, layer, 10)
        found = labels.counts(tiny_network(), update, protocol, layer=layer)
        assert found.tolist() == true


def test_blind_counts_take_the_largest_factor_that_no_count_forbids(statistics: list) -> None:
    p = (P0 + P1) / 2  # 0.3, 0.25, 0.225, 0.225
    for true in (TRUE, [2, 1, 0, 7]):
        update = update_that_falls((10 * p - torch.tensor(true)) / 400, "bias", 10)
        assert labels.counts(tiny_network(), update).tolist() == true


@pytest.mark.parametrize(
    ("true", "wrong"),
    [([0, 3, 0, 0], {2: 3.0, 3: 1 / 3}), ([1, 2, 0, 0], {3: 0.1})],
)
def test_blind_counts_of_few_samples_take_the_median(
    statistics: list, true: list, wrong: dict
) -> None:
    """Of the absent classes, some fell too far and others not far enough."""
    fall = (3 * (P0 + P1) / 2 - torch.tensor(true)) / 400
    for i, factor in wrong.items():
        fall[i] *= factor
    found = labels.counts(tiny_network(), update_that_falls(fall, "bias", 3))
    assert found.tolist() == true


def test_a_class_that_did_not_move_is_no_reason_to_refuse(statistics: list) -> None:
    fall = torch.tensor([0.01, -0.01, 0.0, 0.02], dtype=torch.float64)
    found = labels.counts(tiny_network(), update_that_falls(fall, "bias", 10), Protocol(1, 10))
    assert int(found.sum()) == 10


def test_statistics_are_those_of_the_last_layer() -> None:
    """Its softmax and its summed input, averaged over the dummies; and no hook stays behind."""
    model = tiny_network()
    z = torch.randn(5, 1, 6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    p, o = labels.statistics(model, model.params(), z)
    inputs = model.body[:3](z)
    torch.testing.assert_close(p, model.body[3](inputs).softmax(dim=1).mean(dim=0).detach())
    torch.testing.assert_close(o, (inputs.sum() / 5).detach())
    assert not any(module._forward_pre_hooks for module in model.structure.modules())


def test_the_dummies_follow_the_seed(statistics: list) -> None:
    update = tiny_scene().update
    for seed in (0, 0, 1):
        labels.counts(tiny_network(), update, seed=seed)
    assert torch.equal(statistics[0], statistics[2])
    assert not torch.equal(statistics[0], statistics[4])


@pytest.mark.parametrize(
    ("estimate", "total", "expected"),
    [
        ([1.6, 0.9, 0.5], 3, [2, 1, 0]),
        ([-1.0, 2.0, 1.0], 3, [0, 2, 1]),
        ([2.0, 2.0, 4.0], 4, [1, 1, 2]),
        ([0.0, 0.0, 0.0], 2, [1, 1, 0]),
    ],
)
def test_counts_are_rounded_to_their_sum(estimate: list, total: int, expected: list) -> None:
    assert labels.round_to_total(torch.tensor(estimate), total).tolist() == expected


def test_recover_asks_counts_as_it_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, asked = tiny_scene(), []

    def counts(*args: object, **options: object) -> Tensor:
        asked.append((args, options))
        return torch.tensor([0, 2, 0, 1])

    monkeypatch.setattr(labels, "counts", counts)
    given = (scene.network, scene.update, scene.protocol)
    assert labels.recover(*given, layer="rows", seed=7).tolist() == [1, 1, 3]
    assert asked == [(given, {"layer": "rows", "seed": 7})]


def test_idlg_reads_the_label() -> None:
    draw = torch.Generator().manual_seed(0)
    for case in range(12):
        images = torch.rand(1, 1, 6, 6, generator=draw, dtype=torch.float64)
        client = smelib.data.Client(images, torch.tensor([case % 4]), 4, "random")
        network = tiny_network(seed=case)
        update = smelib.local_update(network, client, Protocol(1, 1, lr=0.1))
        assert labels.idlg(network, update) == case % 4


def test_what_gives_no_labels_is_refused() -> None:
    scene = tiny_scene()
    before, after = scene.update.before, scene.update.after
    with pytest.raises(InputError, match="iDLG reads the label of one sample"):
        labels.idlg(scene.network, scene.update)
    broken = {**after, "0.weight": after["0.weight"] * torch.nan}
    with pytest.raises(InputError, match="NaN"):
        labels.recover(scene.network, Update(before, broken, 3))
    more = ({**w, "4.weight": torch.ones(2)} for w in (before, after))
    with pytest.raises(InputError, match=r"4\.weight"):
        labels.recover(scene.network, Update(*more, 3))
