"""The attacker who knows: naive where there is nothing to know, and at the truth where there is."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from conftest import Scene, tiny_network, tiny_scene
from torch import Tensor

import smelib
from smelib import attacks, aware, defences
from smelib.errors import InputError
from smelib.presets import PRESETS
from smelib.types import Protocol, Update

QUICK = {"steps": 12, "progress": False, "device": "cpu"}
NOW = torch.tensor(0.0)


def at(alpha: float) -> dict[str, Tensor]:
    return {"alpha": torch.tensor(alpha, dtype=torch.float64)}


@pytest.fixture(scope="module")
def scene() -> Scene:
    """Three full-batch epochs, so that no order of batches is hidden."""
    return tiny_scene(epochs=3, samples=3, batch_size=3)


@pytest.fixture(scope="module")
def step() -> Scene:
    """A single step: the update is the gradient at w0."""
    return tiny_scene(epochs=1, samples=3, batch_size=3)


def sent(scene: Scene, defence: defences.Defence) -> Update:
    return smelib.local_update(scene.network, scene.client, scene.protocol, defence=defence)


def truth(scene: Scene) -> Tensor:
    return scene.network.normalise(scene.client.images)


def walked(loss: object, images: Tensor) -> dict[str, Tensor]:
    """The loss's terms after a walk from these images: first the segment is held, then the walk."""
    held = {**at(0.5), **loss.renew(images, at(0.5))}
    held = {**at(0.5), **loss.renew(images, held)}
    return loss(images, held, NOW)[1]


def test_with_nothing_to_know_it_is_the_naive_attack(scene: Scene) -> None:
    who = (scene.network, scene.update, scene.labels)
    for naive, knowing in (
        (attacks.sme(*who, preset="fast", **QUICK), aware.sme(*who, **QUICK)),
        (attacks.retrace(*who, **QUICK), aware.retrace(*who, **QUICK)),
    ):
        assert torch.equal(naive.images, knowing.images)
        assert naive.alpha == knowing.alpha


@pytest.mark.parametrize(
    "defence", [defences.top_k(0.2), defences.random_k(0.2)], ids=["top", "any"]
)
def test_at_the_truth_only_the_sent_weights_match(step: Scene, defence: defences.Defence) -> None:
    given = sent(step, defence)
    who = (step.network, given, step.labels)
    found = {
        name: float(loss(truth(step), at(0.0), NOW)[1]["similarity"])
        for name, loss in (
            ("naive", aware.along_the_segment(*who, tv=0.0)),
            ("aware", aware.along_the_segment(*who, tv=0.0, seen=aware.sent_only(given))),
        )
    }
    assert found["aware"] == pytest.approx(0, abs=1e-9)
    assert found["naive"] > 0.05


def test_a_walk_from_the_truth_gives_the_sent_weights(scene: Scene) -> None:
    given = sent(scene, defences.top_k(0.2))
    how = {"tv": 0.0, "protocol": scene.protocol, "seen": aware.sent_only(given)}
    loss = aware.along_the_path(scene.network, given, scene.labels, **how)
    assert float(walked(loss, truth(scene))["similarity"]) == pytest.approx(0, abs=1e-9)


def test_soft_signs_match_the_signs_better_than_the_gradient_does(step: Scene) -> None:
    given = sent(step, defences.sign())
    who = (step.network, given, step.labels)
    naive, knowing = (
        float(aware.along_the_segment(*who, tv=0.0, seen=seen)(truth(step), at(0.0), NOW)[0])
        for seen in (aware.everything, aware.soft_signs(given))
    )
    assert 0 < knowing < 0.7 * naive


def test_a_clipped_update_at_alpha_four_is_the_whole_one_at_one(scene: Scene) -> None:
    length = (
        sum(
            float((scene.update.after[k] - v).square().sum())
            for k, v in scene.update.before.items()
        )
        ** 0.5
    )
    short = sent(scene, defences.clip(length / 4))
    values = [
        aware.along_the_segment(scene.network, u, scene.labels, tv=0.01)(scene.z, at(a), NOW)[0]
        for u, a in ((short, 4.0), (scene.update, 1.0), (short, 1.0))
    ]
    assert float(values[0]) == pytest.approx(float(values[1]), rel=1e-9)
    assert float(values[2]) != pytest.approx(float(values[1]), rel=1e-4)
    restored = aware.longer(short, 4.0)
    assert all(torch.allclose(v, scene.update.after[k]) for k, v in restored.after.items())
    free = aware.sme(scene.network, short, scene.labels, longest=50.0, **QUICK)
    tied = aware.sme(scene.network, short, scene.labels, **QUICK)
    assert tied.alpha <= 1
    assert free.alpha != tied.alpha
    bold = replace(PRESETS["fast"], alpha_rate=100.0)
    far = aware.sme(scene.network, short, scene.labels, longest=3.0, preset=bold, **QUICK)
    assert {float(a) for a in far.history["alpha"]} == {0.5, 3.0} | {0.0}


def test_who_knows_the_protocol_walks_as_far_whatever_was_clipped(scene: Scene) -> None:
    short = sent(scene, defences.clip(1e-3))
    for given in (scene.update, short):
        loss = aware.along_the_path(
            scene.network, given, scene.labels, tv=0.0, protocol=scene.protocol
        )
        assert float(walked(loss, truth(scene))["similarity"]) == pytest.approx(0, abs=1e-9)


def test_several_rounds_are_matched_together(scene: Scene) -> None:
    """From other weights too: the second round starts where the first one ended."""
    second = smelib.local_update(
        scene.network, scene.client, scene.protocol, before=scene.update.after
    )
    who = (scene.network, scene.update, scene.labels)
    both = aware.sme(*who, others=[second], **QUICK)
    alone = aware.sme(*who, **QUICK)
    assert not torch.allclose(both.images, alone.images, atol=1e-3)
    assert {"alpha", "alpha 1"} <= set(both.history)
    assert not torch.equal(both.history["alpha"], both.history["alpha 1"])
    twice = aware.sme(*who, others=[scene.update], **QUICK)
    assert torch.allclose(twice.images, alone.images, atol=1e-6)
    assert torch.allclose(twice.history["alpha"], twice.history["alpha 1"], atol=1e-9)


def test_averaging_the_same_round_halves_the_noise(scene: Scene) -> None:
    noisy = [
        smelib.local_update(
            *(scene.network, scene.client, scene.protocol), seed=s, defence=defences.noise(0.1)
        )
        for s in range(16)
    ]
    mean = aware.averaged(noisy)

    def off(update: Update) -> float:
        gaps = [(update.after[k] - v).flatten() for k, v in scene.update.after.items()]
        return float(torch.cat(gaps).std())

    assert off(mean) == pytest.approx(off(noisy[0]) / 4, rel=0.25)
    for k, v in mean.after.items():
        assert torch.allclose(v, torch.stack([u.after[k] for u in noisy]).mean(dim=0))
    assert mean.samples == scene.update.samples
    other = Update(scene.update.after, scene.update.before, 3)
    with pytest.raises(InputError, match="other weights"):
        aware.averaged([noisy[0], other])


def test_what_was_sent_in_some_rounds_only_is_averaged_over_those(scene: Scene) -> None:
    drawn = [
        defences.random_k(0.5)(scene.update, torch.Generator().manual_seed(s)) for s in range(3)
    ]
    mean, before = aware.averaged(drawn), scene.update.before
    there = {k: v != before[k] for k, v in mean.after.items()}
    every = torch.cat([v.flatten() for v in there.values()])
    assert 0.8 < float(every.float().mean()) < 0.95  # in one round of three or more: 7/8
    for k, moved in there.items():
        right = 2 * (scene.update.after[k] - before[k])  # random_k at one half sends the double
        assert torch.allclose((mean.after[k] - before[k])[moved], right[moved], atol=1e-6)


def test_a_sum_is_walked_client_by_client() -> None:
    """From the truth of all clients, their own walks add up to the sum, and one walk of all not."""
    network, protocol = tiny_network(), Protocol(6, 4, 2.0)
    draw = torch.Generator().manual_seed(3)
    clients = [
        smelib.Client(
            torch.rand(n, 1, 6, 6, generator=draw, dtype=torch.float64),
            torch.randint(0, 4, (n,), generator=draw),
            4,
            "random",
        )
        for n in (2, 3)
    ]
    total = defences.secure_sum([smelib.local_update(network, c, protocol) for c in clients])
    labels = torch.cat([c.labels for c in clients])
    images = network.normalise(torch.cat([c.images for c in clients]))
    how = {"tv": 0.0, "protocol": Protocol(6, 5, 2.0)}
    joint = aware.along_the_path(network, total, labels, clients=(2, 3), **how)
    pooled = aware.along_the_path(network, total, labels, **how)
    right, wrong = (float(walked(loss, images)["similarity"]) for loss in (joint, pooled))
    assert right == pytest.approx(0, abs=1e-9)
    assert wrong > 1e-6
    found = aware.retrace(network, total, labels, clients=(2, 3), **QUICK)
    assert len(found.images) == 5


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda who: aware.sme(*who, longest=0.5), "at least as long"),
        (lambda who: aware.retrace(*who, clients=(1, 1), **QUICK), "there are 3"),
        (lambda who: aware.longer(who[1], 0), "must be positive"),
        (lambda who: aware.averaged([]), "no update"),
    ],
)
def test_what_cannot_be_meant_is_a_sentence(scene: Scene, make: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make((scene.network, scene.update, scene.labels))
