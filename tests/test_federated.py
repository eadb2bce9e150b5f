"""The client's training: the same step as PyTorch's optimisers, in one pure function."""

from __future__ import annotations

import copy
from functools import partial

import pytest
import torch
from conftest import tiny_network, tiny_scene
from torch import nn
from torch.nn import functional as F

import smelib
from smelib import attacks, federated, models, objectives, seeds
from smelib.federated import accuracy, batches, gradient
from smelib.solver import cosine
from smelib.types import InputError, Protocol, Update


def halving(step: int, steps: int) -> float:
    return 0.5 ** (step // 3)


PROTOCOLS = {
    "plain": Protocol(4, 2, 0.3),
    "momentum": Protocol(4, 2, 0.3, momentum=0.9),
    "decay": Protocol(4, 2, 0.3, weight_decay=0.1),
    "momentum and decay": Protocol(4, 2, 0.3, momentum=0.5, weight_decay=0.1),
    "adam": Protocol(4, 2, 0.05, optimiser="adam"),
    "adam with decay": Protocol(4, 2, 0.05, optimiser="adam", weight_decay=0.2),
    "adamw": Protocol(4, 2, 0.05, optimiser="adamw", weight_decay=0.2),
    "scheduled": Protocol(4, 2, 0.3, momentum=0.9, schedule=halving),
    "cosine": Protocol(4, 2, 0.3, schedule=cosine),
    "adamw, scheduled": Protocol(4, 2, 0.05, optimiser="adamw", weight_decay=0.2, schedule=halving),
}


def by_torch(model: models.Network, client: smelib.Client, protocol: Protocol) -> dict:
    """The client's weights after training with torch.optim."""
    body = copy.deepcopy(model.body)
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    extra = {"momentum": protocol.momentum} if protocol.optimiser == "sgd" else {}
    optimiser = kind[protocol.optimiser](
        body.parameters(), lr=protocol.lr, weight_decay=protocol.weight_decay, **extra
    )
    steps = protocol.steps(len(client))
    rates = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda t: protocol.schedule(t, steps))
    z = model.normalise(client.images)
    for batch in batches(len(client), protocol, seeds.generator(0, "batches")):
        optimiser.zero_grad()
        F.cross_entropy(body(z[batch]), client.labels[batch]).backward()
        optimiser.step()
        rates.step()
    return {k: v.detach() for k, v in body.named_parameters()}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_local_training_is_torch_optims(name: str) -> None:
    scene, protocol = tiny_scene(), PROTOCOLS[name]
    after = smelib.local_update(scene.network, scene.client, protocol).after
    for k, v in by_torch(scene.network, scene.client, protocol).items():
        torch.testing.assert_close(after[k], v, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("checkpoint", [True, False])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_dlfa_simulates_the_same_step(name: str, checkpoint: bool) -> None:
    """At the true images, in full batches, the simulated training is the client's."""
    protocol = PROTOCOLS[name]
    protocol = Protocol(**{**vars(protocol), "batch_size": 3})
    scene = tiny_scene()
    update = smelib.local_update(scene.network, scene.client, protocol)
    z = scene.network.normalise(scene.client.images)
    z = z.expand(protocol.epochs, *z.shape).clone().requires_grad_()
    loss = objectives.dlfa(scene.network, update, scene.labels, protocol, checkpoint=checkpoint)
    _, terms = loss(z, {}, None)
    assert float(terms["distance"].detach()) < 1e-16
    (slope,) = torch.autograd.grad(loss(z + 0.1, {}, None)[0], z)
    assert bool(torch.isfinite(slope).all())
    assert float(slope.abs().max()) > 0


def test_adams_slope_is_finite_where_a_weight_has_no_gradient() -> None:
    """A dead ReLU: the root in Adam's denominator has an infinite slope at zero."""
    torch.manual_seed(0)
    body = nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.ReLU(), nn.Linear(8, 4))
    body[1].bias.data[:4] = -100.0
    model = models.wrap(body, (1, 6, 6), 4, mean=(0.5,), std=(0.5,))
    client = smelib.Client(torch.rand(3, 1, 6, 6), torch.tensor([0, 1, 2]), 4, "random")
    protocol = Protocol(2, 3, 0.01, optimiser="adam")
    update = smelib.local_update(model, client, protocol)
    found = attacks.dlfa(model, update, client.labels, protocol, steps=5)
    assert found.stopped == "finished"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"optimiser": "sdg"}, "did you mean 'sgd'"),
        ({"momentum": 1.0}, r"lies in \[0, 1\)"),
        ({"momentum": -0.1}, r"lies in \[0, 1\)"),
        ({"weight_decay": -1.0}, "not negative"),
        ({"optimiser": "adam", "momentum": 0.9}, "moments of its own"),
        ({"lr": float("nan")}, "finite"),
        ({"lr": float("inf")}, "finite"),
        ({"lr": 0.0}, "positive and finite"),
    ],
)
def test_a_protocol_that_cannot_be(given: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Protocol(1, 1, **given)


@pytest.mark.parametrize(
    "loss",
    [partial(F.cross_entropy, label_smoothing=0.2), models.squared_error, F.multi_margin_loss],
)
def test_another_loss_is_trained_and_matched(loss: models.Loss) -> None:
    """One step of a client with this loss: its own images explain it, cross-entropy's do not."""
    plain, client = tiny_network(), tiny_scene().client
    model = models.wrap(plain.body, (1, 6, 6), 4, mean=(0.5,), std=(0.5,), loss=loss)
    update = smelib.local_update(model, client, Protocol(1, 3, 0.1))
    z, known = model.normalise(client.images), client.labels
    right, wrong = (
        float(objectives.ig(m, update, known, tv=0.0)(z, {}, None)[0]) for m in (model, plain)
    )
    assert right == pytest.approx(0, abs=1e-12)
    assert wrong > 1e-4


def test_a_defence_changes_what_is_sent() -> None:
    scene = tiny_scene()

    def halved(update: Update, generator: torch.Generator) -> Update:
        middle = smelib.params.lerp(update.before, update.after, 0.5)
        return Update(update.before, middle, update.samples)

    scene_of = (scene.network, scene.client, scene.protocol)
    plain, sent = smelib.local_update(*scene_of), smelib.local_update(*scene_of, defence=halved)
    for k, v in plain.before.items():
        torch.testing.assert_close(sent.after[k] - v, (plain.after[k] - v) / 2)
    rounds = smelib.fedavg(scene.network, [scene.client], scene.protocol, rounds=1, defence=halved)
    assert not torch.equal(next(rounds).after["0.weight"], plain.after["0.weight"])


def test_a_defence_has_randomness_of_its_own() -> None:
    scene, drawn = tiny_scene(), []

    def draws(update: Update, generator: torch.Generator) -> Update:
        drawn.append(torch.randn(3, generator=generator).tolist())
        return update

    for seed in (0, 0, 1):
        smelib.local_update(scene.network, scene.client, scene.protocol, seed=seed, defence=draws)
    assert drawn[0] == drawn[1] != drawn[2]


def test_gradient_is_that_of_autograd() -> None:
    scene = tiny_scene()
    body = copy.deepcopy(scene.network.body)
    F.cross_entropy(body(scene.z), scene.labels).backward()
    slope = gradient(scene.network, scene.network.params(), scene.z, scene.labels)
    for k, v in body.named_parameters():
        torch.testing.assert_close(slope[k], v.grad)


def test_every_epoch_is_shuffled_anew() -> None:
    drawn = list(batches(20, Protocol(3, 20), seeds.generator(0, "batches")))
    assert len({tuple(epoch.tolist()) for epoch in drawn}) == 3
    assert all(epoch.tolist() != list(range(20)) for epoch in drawn)


def test_the_seed_shuffles_the_batches() -> None:
    scene = tiny_scene()
    first, again, other = (
        smelib.local_update(scene.network, scene.client, scene.protocol, seed=seed).after["0.bias"]
        for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_defences_noise_does_not_show_the_batches() -> None:
    scene, drawn = tiny_scene(), []

    def draws(update: Update, generator: torch.Generator) -> Update:
        drawn.append(torch.randn(5, generator=generator))
        return update

    smelib.local_update(scene.network, scene.client, scene.protocol, seed=3, defence=draws)
    same = torch.randn(5, generator=seeds.generator(3, "batches"))
    assert not torch.equal(drawn[0], same)


def test_a_round_uses_the_defence() -> None:
    """In full batches, where no shuffle can make the difference."""
    scene, protocol = tiny_scene(), Protocol(2, 3, 0.5)

    def silent(update: Update, generator: torch.Generator) -> Update:
        return Update(update.before, update.before, update.samples)

    rounds = smelib.fedavg(scene.network, [scene.client], protocol, rounds=1, defence=silent)
    start = scene.network.params()
    assert all(torch.equal(v, start[k]) for k, v in next(rounds).after.items())


def test_who_reports_in_a_round() -> None:
    scene = tiny_scene()
    clients, start = [scene.client] * 10, scene.network.params()

    def reporters(share: float) -> int:
        rounds = smelib.fedavg(scene.network, clients, Protocol(1, 3), rounds=4, reporting=share)
        found = list(rounds)
        if share == 0:
            assert all(torch.equal(found[-1].after[k], v) for k, v in start.items())
        return sum(len(r.reporters) for r in found)

    assert reporters(0.0) == 0
    assert 25 <= reporters(0.8) < 40
    assert reporters(1.0) == 40


def test_every_client_shuffles_on_its_own_in_every_round(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, used, real = tiny_scene(), [], federated.local_update

    def watched(*args: object, seed: int, **options: object) -> Update:
        used.append(seed)
        return real(*args, seed=seed, **options)

    monkeypatch.setattr(federated, "local_update", watched)
    list(smelib.fedavg(scene.network, [scene.client] * 3, scene.protocol, rounds=4))
    assert len(set(used)) == len(used) == 12


def test_accuracy_by_hand() -> None:
    """Class 1 where the normalised pixel is positive: pixels above the mean of 0.5."""
    body = nn.Sequential(nn.Flatten(), nn.Linear(1, 2, bias=False))
    model = models.wrap(body, (1, 1, 1), 2, mean=(0.5,), std=(0.5,))
    weights = {"1.weight": torch.tensor([[-1.0], [1.0]])}
    images = torch.tensor([0.1, 0.4, 0.6, 0.9]).view(4, 1, 1, 1)
    client = smelib.Client(images, torch.tensor([0, 0, 1, 0]), 2, "random")
    for chunk in (1, 3, 500):
        assert accuracy(model, weights, client, chunk=chunk) == 0.75
