"""Retrace: the path that the dummies walk, what is held of it, and the loop that renews it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from conftest import Scene, tiny_scene
from torch import Tensor

import smelib
from smelib import attacks, objectives
from smelib import params as P
from smelib.federated import batches, gradient, local_path
from smelib.solver import Options, Recipe, minimise
from smelib.walking import part, walk

CLOCK = torch.zeros((), dtype=torch.float64)
ALPHA = torch.tensor(0.3, dtype=torch.float64)
FULL = {"epochs": 4, "samples": 3, "batch_size": 3}
CLIENTS = {
    "sgd": {},
    "momentum": {"momentum": 0.9},
    "decay": {"weight_decay": 0.1},
    "adam": {"optimiser": "adam", "lr": 0.01},
    "schedule": {"schedule": lambda t, steps: 1 - t / steps},
}


def walked(loss: objectives.Renewed, z: Tensor, times: int = 1) -> dict[str, Tensor]:
    """What is held after the segment and some walks from the same dummies."""
    held = straight(loss, z)
    for _ in range(times):
        held = {**loss.renew(z, held), "alpha": ALPHA}
    return held


def straight(loss: objectives.Renewed, z: Tensor) -> dict[str, Tensor]:
    """What is held before the first walk, and alpha."""
    return {**loss.renew(z, {"alpha": ALPHA}), "alpha": ALPHA}


def slope(loss: objectives.Objective, z: Tensor, aux: dict) -> tuple[Tensor, Tensor]:
    images = z.clone().requires_grad_()
    value, _ = loss(images, aux, CLOCK)
    return value.detach(), torch.autograd.grad(value, images)[0]


def trained_by(name: str, **size: int) -> tuple[Scene, smelib.Protocol, smelib.Update]:
    scene = tiny_scene(**{**FULL, **size})
    protocol = replace(scene.protocol, **CLIENTS[name])
    return scene, protocol, smelib.local_update(scene.network, scene.client, protocol)


def near(scene: Scene) -> Tensor:
    """Dummies from which a walk explains more than the segment does."""
    return scene.network.normalise(scene.client.images) + 0.02 * scene.z


def test_one_node_on_the_straight_path_is_sme(tiny: Scene) -> None:
    """Its value, and the slopes of images and alpha."""
    who = (tiny.network, tiny.update, tiny.labels)
    retrace = objectives.retrace(*who, tv=0.002)  # of the walks; the segment's is SME's
    sme = objectives.sme(*who, tv=0.01)
    found = []
    for loss, held in ((retrace, straight(retrace, tiny.z)), (sme, {})):
        unknowns = [v.clone().requires_grad_() for v in (tiny.z, ALPHA)]
        value, _ = loss(unknowns[0], {**held, "alpha": unknowns[1]}, CLOCK)
        found.append((value.detach(), *torch.autograd.grad(value, unknowns)))
    torch.testing.assert_close(*found, rtol=1e-10, atol=1e-12)


def test_nodes_of_the_straight_path_lie_about_alpha(tiny: Scene) -> None:
    loss = objectives.retrace(tiny.network, tiny.update, tiny.labels, tv=0.0, nodes=2)
    held = straight(loss, tiny.z)
    for k, alpha in enumerate((0.05, 0.55)):
        here = P.add(part(held, f"node {k}"), part(held, "ahead"), ALPHA)
        torch.testing.assert_close(here, P.lerp(tiny.update.before, tiny.update.after, alpha))


@pytest.mark.parametrize("known", [True, False])
def test_one_local_step_gives_ig(known: bool) -> None:
    one = tiny_scene(epochs=1, samples=3, batch_size=3)
    who = (one.network, one.update, one.labels)
    how = {"protocol": one.protocol} if known else {"moves": 1}
    retrace, ig = objectives.retrace(*who, tv=0.01, **how), objectives.ig(*who, tv=0.01)
    z = near(one)
    here, there = slope(retrace, z, walked(retrace, z)), slope(ig, z, {})
    torch.testing.assert_close(here, there, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("nodes", [1, 2, 4])
@pytest.mark.parametrize("name", CLIENTS)
def test_the_true_images_and_protocol_leave_no_mismatch(name: str, nodes: int) -> None:
    scene, protocol, update = trained_by(name)
    z = scene.network.normalise(scene.client.images)
    loss = objectives.retrace(
        scene.network, update, scene.labels, tv=0.0, nodes=nodes, protocol=protocol
    )
    assert abs(float(loss(z, walked(loss, z), CLOCK)[0])) < 1e-12
    assert float(loss(z, straight(loss, z), CLOCK)[0]) > 1e-5, "the segment must not do as well"


def test_the_value_is_that_of_the_simulated_update_whatever_the_nodes() -> None:
    """Of other dummies too: the mismatch of what they would have sent."""
    full = tiny_scene(**FULL)
    z = near(full)
    client = replace(full.client, images=full.network.denormalise(z))
    sent = smelib.local_update(full.network, client, full.protocol)
    target, own = (P.sub(u.before, u.after) for u in (full.update, sent))
    for nodes in (1, 3, 4):
        loss = objectives.retrace(
            full.network, full.update, full.labels, tv=0.0, nodes=nodes, protocol=full.protocol
        )
        value, terms = loss(z, walked(loss, z), CLOCK)
        torch.testing.assert_close(value, 1 - P.cosine(target, own), rtol=1e-6, atol=1e-12)
        assert torch.equal(value, terms["similarity"])


def test_with_every_step_a_node_nothing_is_left_over() -> None:
    full = tiny_scene(**FULL)
    loss = objectives.retrace(
        full.network, full.update, full.labels, tv=0.0, nodes=4, protocol=full.protocol
    )
    held = walked(loss, near(full))
    assert float(held["rate"]) > 0, "it walked"
    assert float(P.norm(part(held, "rest"))) < 1e-12 * float(P.norm(full.update.before))


def test_nodes_lie_in_the_middle_of_their_stretch_of_time() -> None:
    full = tiny_scene(**{**FULL, "epochs": 8})
    z = full.network.normalise(full.client.images)
    path = list(local_path(full.network, full.client, full.protocol))
    for nodes, steps in ((1, [4]), (2, [2, 6]), (3, [1, 4, 6])):
        loss = objectives.retrace(
            full.network, full.update, full.labels, tv=0.0, nodes=nodes, protocol=full.protocol
        )
        held = walked(loss, z)
        for k, step in enumerate(steps):
            torch.testing.assert_close(part(held, f"node {k}"), path[step])


def test_the_clients_batches_make_the_walk_its_training(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = tiny_scene(epochs=3, samples=5, batch_size=2)
    z = scene.network.normalise(scene.client.images)
    who = (scene.network, scene.update, scene.labels)
    own = objectives.retrace(*who, tv=0.0, protocol=scene.protocol)
    assert float(own(z, walked(own, z), CLOCK)[0]) > 1e-8, "an attack does not know the order"
    true = list(batches(5, scene.protocol, smelib.seeds.generator(0, "batches")))
    monkeypatch.setattr(objectives, "own_batches", lambda *_: true)
    told = objectives.retrace(*who, tv=0.0, protocol=scene.protocol)
    assert abs(float(told(z, walked(told, z), CLOCK)[0])) < 1e-12


def test_without_a_protocol_the_walk_finds_its_rate() -> None:
    """From the true images, in as many steps, the client's own learning rate."""
    full = tiny_scene(**FULL)
    z = full.network.normalise(full.client.images)
    loss = objectives.retrace(full.network, full.update, full.labels, tv=0.0, moves=4)
    assert abs(float(walked(loss, z, times=30)["rate"]) - full.protocol.lr) < 1e-6


def test_a_walk_ends_as_far_along_the_update_as_the_client(tiny: Scene) -> None:
    loss = objectives.retrace(tiny.network, tiny.update, tiny.labels, tv=0.0)
    client_like = tiny.network.normalise(tiny.client.images) + 0.1 * tiny.z
    rate = walked(loss, client_like, times=30)["rate"]
    target = P.sub(tiny.update.before, tiny.update.after)
    order = [torch.arange(3)] * 20
    protocol = smelib.Protocol(20, 3)
    mean = walk(
        *(tiny.network, tiny.update.before, client_like, tiny.labels, order, protocol),
        rate=lambda slope: rate,
        keep=[],
    ).mean
    share = 20 * rate * P.dot(mean, target) / P.dot(target, target)
    assert float(share) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("rate", [1e3, 1e200])
def test_a_walk_that_explains_less_is_not_held(tiny: Scene, rate: float) -> None:
    """It ran away, to infinity even: the segment is held, and the next walk is shorter."""
    loss = objectives.retrace(tiny.network, tiny.update, tiny.labels, tv=0.0)
    held = walked(loss, near(tiny))
    assert float(held["rate"]) > 0, "this one is held"
    lost = loss.renew(near(tiny), {**held, "rate": torch.full_like(held["rate"], rate)})
    segment = loss.renew(tiny.z, {"alpha": ALPHA})
    assert all(torch.equal(lost[k], segment[k]) for k in segment if k != "rate")
    assert 0 <= float(lost["rate"]) < rate / 10


def test_the_rate_is_found_while_no_walk_is_held(tiny: Scene) -> None:
    """A walk that explains less than the segment still corrects the next one."""
    loss = objectives.retrace(tiny.network, tiny.update, tiny.labels, tv=0.0)
    held = {**straight(loss, near(tiny)), "rate": torch.tensor(100.0, dtype=torch.float64)}
    first = {**loss.renew(near(tiny), held), "alpha": ALPHA}
    assert float(first["walked"]) == 0
    assert 0 < float(first["rate"]) < 100
    for _ in range(20):
        first = {**loss.renew(near(tiny), first), "alpha": ALPHA}
    right = walked(loss, near(tiny), times=30)["rate"]
    assert float(first["rate"]) == pytest.approx(float(right), rel=0.01)


def test_all_warm_start_is_sme() -> None:
    scene = tiny_scene(**FULL)
    who = (scene.network, scene.update, scene.labels)
    mine = attacks.retrace(*who, steps=15, warm=1.0)
    sme = attacks.sme(*who, steps=15, preset="fast")
    torch.testing.assert_close(mine.images, sme.images)
    early = attacks.retrace(*who, steps=15, warm=0.0)
    assert not torch.allclose(early.images, sme.images)


def test_what_is_held_does_not_grow_with_the_clients_steps() -> None:
    def size(epochs: int) -> int:
        scene = tiny_scene(**{**FULL, "epochs": epochs})
        loss = objectives.retrace(
            scene.network, scene.update, scene.labels, tv=0.0, nodes=2, protocol=scene.protocol
        )
        return sum(v.numel() for v in walked(loss, near(scene)).values())

    assert size(3) == size(30)


def test_the_stretch_is_one_for_sgd_and_the_moves_length_otherwise() -> None:
    for name, check in {
        "sgd": lambda s: torch.equal(s, torch.ones_like(s)),
        "schedule": lambda s: bool((s > 0.25).all() and (s < 1).all()),
        "momentum": lambda s: float(s.median()) > 1.5,
        "adam": lambda s: float(s.median()) > 2,
    }.items():
        scene, protocol, update = trained_by(name)
        loss = objectives.retrace(scene.network, update, scene.labels, tv=0.0, protocol=protocol)
        stretch = part(walked(loss, near(scene)), "stretch")
        assert all(check(v) for v in stretch.values()), name


def test_gradcheck_with_what_is_held_fixed(tiny: Scene) -> None:
    loss = objectives.retrace(tiny.network, tiny.update, tiny.labels, tv=0.01, nodes=2)
    held = walked(loss, near(tiny))
    assert float(held["rate"]) > 0
    assert not any(v.requires_grad for v in held.values())
    z = near(tiny).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: loss(x, held, CLOCK)[0], z, atol=1e-6, rtol=1e-4)


def test_nothing_is_differentiated_through_the_walk() -> None:
    full = tiny_scene(**FULL)
    loss = objectives.retrace(
        full.network, full.update, full.labels, tv=0.0, protocol=full.protocol
    )
    held = walked(loss, near(full))
    target, z = P.sub(full.update.before, full.update.after), near(full).requires_grad_()
    there = gradient(full.network, part(held, "node 0"), z, full.labels)
    by_hand = torch.autograd.grad(1 - P.cosine(target, P.add(there, part(held, "rest"))), z)[0]
    torch.testing.assert_close(slope(loss, near(full), held)[1], by_hand, rtol=1e-9, atol=1e-12)


def test_what_is_held_is_renewed_every_so_many_steps_and_at_the_end() -> None:
    seen = []

    def renew(images: Tensor, aux: dict) -> dict:
        seen.append((float(images.sum()), aux.get("mark")))
        return {"mark": images.sum() * 0 + len(seen)}

    def loss(images: Tensor, aux: dict, step: Tensor) -> tuple[Tensor, dict]:
        value = images.square().sum()
        return value, {"similarity": value, "mark": aux["mark"] + 0 * value}

    found = minimise(
        objectives.Renewed(loss, renew),
        torch.ones(1, 2),
        {},
        Recipe({"images": 0.1}, renew=3),
        Options(steps=7, progress=False),
    )
    assert found.history["mark"][:, 0].tolist() == [1, 1, 1, 2, 2, 2, 3]
    assert [None if m is None else float(m) for _, m in seen] == [None, 1, 2, 3]
    assert seen[-1][0] == pytest.approx(float(found.images.sum())), "the end is judged by its own"
    assert float(found.terms["mark"]) == 4


@pytest.mark.parametrize("known", [True, False])
def test_each_restart_walks_its_own_path(known: bool) -> None:
    scene = tiny_scene(**FULL)
    extra = {"protocol": scene.protocol} if known else {}
    together, apart = (
        attacks.retrace(
            *(scene.network, scene.update, scene.labels),
            **{"steps": 25, "restarts": 3, "every": 5, "nodes": 2, "batched": b, **extra},
        )
        for b in (True, False)
    )
    assert len(set(together.restart_losses.tolist())) == 3
    torch.testing.assert_close(together.restart_losses, apart.restart_losses)
    torch.testing.assert_close(together.images, apart.images)


def test_the_guard_keeps_sme_where_walks_get_lost() -> None:
    """A client at the edge of stability, whose thirty steps ten longer ones cannot follow."""
    wild = tiny_scene(epochs=30, samples=2, batch_size=2, lr=1.0)
    who = (wild.network, wild.update, wild.labels)
    assert attacks.retrace(*who).similarity < 0.05, "0.3 without it"


@pytest.mark.slow
def test_it_explains_more_than_sme_where_the_path_bends() -> None:
    client = smelib.data.client("mnist", 2, seed=0)
    network = smelib.models.cnn(client.shape, client.classes)
    update = smelib.local_update(network, client, smelib.Protocol(40, 2))
    who = (network, update, client.labels)
    sme, mine = (attack(*who, preset="fast") for attack in (attacks.sme, attacks.retrace))
    assert mine.similarity < 0.3 * sme.similarity
    psnr = [smelib.evaluate(found.images, client.images).psnr for found in (sme, mine)]
    assert psnr[1] > psnr[0] + 3


@pytest.mark.slow
def test_a_compiled_run_gives_the_same_pictures() -> None:
    scene = tiny_scene(**FULL)
    who = (scene.network, scene.update, scene.labels)
    plain, compiled = (attacks.retrace(*who, steps=12, every=4, compile=c) for c in (False, True))
    torch.testing.assert_close(plain.images, compiled.images)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"nodes": 0}, "nodes=? is 0; it must be a whole number of at least 1"),
        ({"nodes": 1.5}, "nodes=? is 1.5"),
        ({"every": 0}, "every=? is 0; it must be a whole number of at least 1"),
        ({"moves": 0}, "moves=? is 0; it must be a whole number of at least 1"),
        ({"warm": 1.5}, "warm=1.5: it is a share of the steps"),
        ({"nodes": 21}, "a walk of 20 steps has no 21 nodes"),
        ({"nodes": 7, "protocol": smelib.Protocol(3, 2)}, "a walk of 6 steps has no 7 nodes"),
        ({"knots": 2}, "there is no option 'knots'"),
    ],
)
def test_errors_are_sentences(tiny: Scene, given: dict, sentence: str) -> None:
    with pytest.raises(smelib.InputError, match=sentence):
        attacks.retrace(tiny.network, tiny.update, tiny.labels, steps=2, **given)
