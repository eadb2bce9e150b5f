"""What must be true of the kernel, whatever the data."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from conftest import Scene, tiny_network, tiny_scene
from torch import Tensor, nn

import smelib
from smelib import attacks, labels, objectives
from smelib import params as P
from smelib.federated import batches, gradient, local_path
from smelib.types import Update

CLOCK = torch.zeros((), dtype=torch.float64)


def gradients(loss: objectives.Objective, z: Tensor, **aux: Tensor) -> tuple:
    """The loss and its gradients, images first."""
    unknowns = [v.clone().requires_grad_() for v in (z, *aux.values())]
    value, _ = loss(unknowns[0], dict(zip(aux, unknowns[1:], strict=True)), CLOCK)
    return value.detach(), *torch.autograd.grad(value, unknowns)


def test_alpha_zero_is_ig(tiny: Scene) -> None:
    ig = objectives.ig(tiny.network, tiny.update, tiny.labels, tv=0.01)
    sme = objectives.sme(tiny.network, tiny.update, tiny.labels, tv=0.01)
    ig_loss, ig_grad = gradients(ig, tiny.z)
    sme_loss, sme_grad, _ = gradients(sme, tiny.z, alpha=torch.zeros((), dtype=torch.float64))
    assert torch.equal(ig_loss, sme_loss)
    torch.testing.assert_close(sme_grad, ig_grad, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_gradient_of_alpha_is_an_inner_product(tiny: Scene, alpha: float) -> None:
    at = torch.tensor(alpha, dtype=torch.float64)
    sme = objectives.sme(tiny.network, tiny.update, tiny.labels, tv=0.01)
    *_, measured = gradients(sme, tiny.z, alpha=at)

    weights = {
        k: v.requires_grad_() for k, v in P.lerp(tiny.update.before, tiny.update.after, at).items()
    }
    direction = P.sub(tiny.update.before, tiny.update.after)
    mismatch = 1 - P.cosine(direction, gradient(tiny.network, weights, tiny.z, tiny.labels))
    slope = dict(zip(weights, torch.autograd.grad(mismatch, list(weights.values())), strict=True))
    expected = P.dot(slope, P.sub(tiny.update.after, tiny.update.before))
    assert abs(float(expected)) > 1e-6, "the case must have a slope to compare"
    torch.testing.assert_close(measured, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("alpha", [0, 1])
def test_alpha_points_from_before_to_after(tiny: Scene, alpha: int) -> None:
    """SME's gradient is taken at w0 for alpha = 0 and at wT for alpha = 1, not the other way."""
    sme = objectives.sme(tiny.network, tiny.update, tiny.labels, tv=0.0)
    loss, _ = sme(tiny.z, {"alpha": torch.tensor(float(alpha), dtype=torch.float64)}, CLOCK)
    ends = (tiny.update.before, tiny.update.after)
    direction = P.sub(*ends)
    here, other = (
        1 - P.cosine(direction, gradient(tiny.network, end, tiny.z, tiny.labels))
        for end in (ends[alpha], ends[1 - alpha])
    )
    assert abs(float(here - other)) > 1e-3, "the case must tell the ends apart"
    torch.testing.assert_close(loss, here, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["ig", "sme"])
def test_the_truth_after_one_step_has_loss_zero(name: str) -> None:
    """With T = 1 the true images explain the update exactly, seen from w0."""
    one = tiny_scene(epochs=1, samples=3, batch_size=3)
    z = one.network.normalise(one.client.images)
    aux = {"alpha": torch.zeros((), dtype=torch.float64)} if name == "sme" else {}
    loss, terms = getattr(objectives, name)(one.network, one.update, one.labels, tv=0.0)(
        z, aux, CLOCK
    )
    assert abs(float(loss)) < 1e-12
    assert abs(float(terms["similarity"])) < 1e-12


def textbook_sme(scene: Scene, z: Tensor, alpha: float) -> tuple[Tensor, Tensor, Tensor]:
    """Loss, image gradient and alpha gradient as most repositories compute them."""
    module, images = copy.deepcopy(scene.network.body), z.clone().requires_grad_()
    before, after = scene.update.before, scene.update.after
    with torch.no_grad():
        for name, p in module.named_parameters():
            p.copy_(before[name] + alpha * (after[name] - before[name]))
    names = [name for name, _ in module.named_parameters()]
    loss = nn.functional.cross_entropy(module(images), scene.labels)
    dummy = torch.autograd.grad(loss, list(module.parameters()), create_graph=True)
    target = [before[n] - after[n] for n in names]
    inner = sum((a * b).sum() for a, b in zip(target, dummy, strict=True))
    lengths = sum(a.pow(2).sum() for a in target) * sum(b.pow(2).sum() for b in dummy)
    across, down = images.diff(dim=-1).abs().mean(), images.diff(dim=-2).abs().mean()
    total = 1 - inner / lengths.sqrt() + 0.01 * (across + down) / 2
    total.backward()
    slope = -sum((p.grad * d).sum() for p, d in zip(module.parameters(), target, strict=True))
    return total.detach(), images.grad, slope


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.9])
def test_the_fast_step_is_the_textbook_step(tiny: Scene, alpha: float) -> None:
    """What was done for speed changes the order of additions and nothing else."""
    sme = objectives.sme(tiny.network, tiny.update, tiny.labels, tv=0.01)
    ours = gradients(sme, tiny.z, alpha=torch.tensor(alpha, dtype=torch.float64))
    for mine, theirs in zip(ours, textbook_sme(tiny, tiny.z, alpha), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-13)


def test_an_attack_is_the_textbook_loop(tiny: Scene) -> None:
    """Thirty steps of the whole solver against a loop written by hand."""
    found = attacks.sme(tiny.network, tiny.update, tiny.labels, steps=30, seed=3)
    draw = smelib.seeds.generator(3, "start")
    z = torch.randn(tiny.z.shape, generator=draw, dtype=torch.float64)
    low, high = tiny.network.box(z)
    z, alpha = z.clamp(low, high).requires_grad_(), torch.tensor(0.5, dtype=torch.float64)
    optimizer = torch.optim.Adam([{"params": [z], "lr": 1.0}, {"params": [alpha], "lr": 1e-3}])
    for step in range(30):
        for group, rate in zip(optimizer.param_groups, (1.0, 1e-3), strict=True):
            group["lr"] = rate * 0.1 ** sum(step >= 30 * k / 8 for k in (3, 5, 7))
        _, z.grad, alpha.grad = textbook_sme(tiny, z.detach(), float(alpha))
        optimizer.step()
        with torch.no_grad():
            z.clamp_(low, high)
            alpha.clamp_(0, 1)
    by_hand = tiny.network.denormalise(z.detach()).clamp(0, 1)
    torch.testing.assert_close(found.images, by_hand, rtol=1e-7, atol=1e-9)
    assert found.alpha == pytest.approx(float(alpha), abs=1e-9)


def test_dlfa_with_one_step_is_l2_matching_at_the_start() -> None:
    one = tiny_scene(epochs=1, samples=3, batch_size=3)
    dlfa = objectives.dlfa(one.network, one.update, one.labels, one.protocol)
    dlg = objectives.dlg(one.network, one.update, one.labels, lr=one.protocol.lr)
    dlfa_loss, dlfa_grad = gradients(dlfa, one.z[None])
    dlg_loss, dlg_grad = gradients(dlg, one.z)
    torch.testing.assert_close(dlfa_loss, dlg_loss)
    torch.testing.assert_close(dlfa_grad[0], dlg_grad)


@pytest.mark.parametrize("prior", ["mean image", "maximum of features"])
@pytest.mark.parametrize("epochs", [1, 2, 5, 10])
def test_checkpointing_changes_memory_and_nothing_else(epochs: int, prior: str) -> None:
    """T = 2, 4, 10 and 20: whole segments, and a shorter last one."""
    long = tiny_scene(epochs=epochs, samples=3, batch_size=2)
    draw = torch.Generator().manual_seed(1)
    z = torch.randn(epochs, *long.z.shape, generator=draw, dtype=long.z.dtype)
    features = objectives.max_features(z, long.network.shape[0], seed=0, filters=4)
    summary = objectives.mean_image if prior == "mean image" else features
    scene = (long.network, long.update, long.labels, long.protocol)
    plain, lean = (
        objectives.dlfa(*scene, order=3.0, summary=summary, checkpoint=c) for c in (False, True)
    )
    for a, b in zip(gradients(plain, z), gradients(lean, z), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


def test_dlfa_does_not_know_the_clients_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one seed for client and attack, the attack still draws an order of its own."""
    scene = tiny_scene(epochs=4, samples=6, batch_size=2)
    client = list(batches(6, scene.protocol, smelib.seeds.generator(0, "batches")))
    drawn = []

    def watch(*arguments: object) -> list[Tensor]:
        drawn.extend(batches(*arguments))
        return drawn

    monkeypatch.setattr(objectives, "batches", watch)
    attacks.dlfa(scene.network, scene.update, scene.labels, scene.protocol, seed=0, steps=1)
    assert len(drawn) == len(client)
    assert any(not torch.equal(a, b) for a, b in zip(drawn, client, strict=True))


def test_the_true_data_make_dlfa_vanish_and_not_ig() -> None:
    """A full-batch simulation of the true images is the client's own training."""
    full = tiny_scene(epochs=4, samples=3, batch_size=3)
    z = full.network.normalise(full.client.images)
    dlfa = objectives.dlfa(full.network, full.update, full.labels, full.protocol)
    ig = objectives.ig(full.network, full.update, full.labels, tv=0.0)
    assert float(dlfa(z.expand(4, *z.shape), {}, CLOCK)[0]) < 1e-20
    assert float(ig(z, {}, CLOCK)[0]) > 1e-4


@pytest.mark.parametrize("factor", [1e-3, 7.0])
@pytest.mark.parametrize("name", ["ig", "sme"])
def test_rescaling_the_direction_changes_nothing(tiny: Scene, name: str, factor: float) -> None:
    """With alpha at w0 only the update's direction counts."""
    longer = Update(
        tiny.update.before,
        P.add(tiny.update.before, P.sub(tiny.update.after, tiny.update.before), factor),
        tiny.update.samples,
    )
    aux = {"alpha": torch.zeros((), dtype=torch.float64)} if name == "sme" else {}
    make = getattr(objectives, name)
    plain, scaled = (
        gradients(make(tiny.network, u, tiny.labels, tv=0.01), tiny.z, **aux)[:2]
        for u in (tiny.update, longer)
    )
    for a, b in zip(plain, scaled, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


def test_rescaling_the_surrogates_target_changes_nothing(tiny: Scene) -> None:
    """At any alpha: the same surrogate weights, matched with a target of another length."""
    at = P.lerp(tiny.update.before, tiny.update.after, 0.4)
    dummy = gradient(tiny.network, at, tiny.z, tiny.labels)
    direction = P.sub(tiny.update.before, tiny.update.after)
    torch.testing.assert_close(
        P.cosine(direction, dummy), P.cosine(P.scale(direction, 1 / (0.5 * 6)), dummy)
    )


@pytest.mark.parametrize("name", ["dlg", "ig", "sme", "retrace", "dlfa"])
def test_an_attack_leaves_everything_as_it_was(tiny: Scene, name: str) -> None:
    extra = {"dlg": {"lr": 0.5}, "dlfa": {"protocol": tiny.protocol}}.get(name, {})
    kept = copy.deepcopy((tiny.network.body.state_dict(), tiny.update, tiny.labels))
    random_state = torch.get_rng_state()
    attacks.ATTACKS[name](tiny.network, tiny.update, tiny.labels, steps=3, **extra)
    assert torch.equal(torch.get_rng_state(), random_state)
    state, update, known = kept
    for after, before in (
        (tiny.network.body.state_dict(), state),
        (tiny.update.before, update.before),
        (tiny.update.after, update.after),
    ):
        assert all(torch.equal(after[k], before[k]) for k in before)
        assert not any(v.requires_grad or v.grad is not None for v in after.values())
    assert torch.equal(tiny.labels, known)
    assert all(p.grad is None for p in tiny.network.body.parameters())


def test_building_and_training_use_no_global_randomness() -> None:
    state = torch.get_rng_state()
    client = smelib.data.client("mnist", 2, seed=3)
    network = smelib.models.vit(client.shape, client.classes, init="lecun")
    smelib.local_update(network, client, smelib.Protocol(1, 1))
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("name", ["dlg", "ig", "sme", "retrace", "dlfa"])
def test_the_same_seed_gives_the_same_bits(digits: Scene, name: str) -> None:
    extra = {"dlg": {"lr": 0.004}, "dlfa": {"protocol": smelib.Protocol(2, 4)}}.get(name, {})
    first, again, other = (
        attacks.ATTACKS[name](
            digits.network, digits.update, digits.labels, steps=4, seed=seed, **extra
        ).images
        for seed in (5, 5, 6)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_the_linear_layer_leaks_its_input_exactly() -> None:
    """Row i of the weight gradient over entry i of the bias gradient is the input itself."""
    client = smelib.data.client("mnist", 1, seed=4)
    network = smelib.models.mlp(client.shape, client.classes)
    z = network.normalise(client.images).double()
    weights = {k: v.double() for k, v in network.params().items()}
    slope = gradient(network, weights, z, client.labels)
    row = int(slope["1.bias"].abs().argmax())
    leaked = slope["1.weight"][row] / slope["1.bias"][row]
    torch.testing.assert_close(leaked, z.flatten(), rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_idlg_is_right_on_a_thousand_random_cases() -> None:
    draw = torch.Generator().manual_seed(0)
    wrong = 0
    for case in range(1000):
        network = tiny_network(seed=case % 50)
        images = torch.rand(1, 1, 6, 6, generator=draw, dtype=torch.float64)
        label = torch.randint(0, 4, (1,), generator=draw)
        client = smelib.data.Client(images, label, 4, "random")
        update = smelib.local_update(network, client, smelib.Protocol(1, 1, lr=0.1))
        wrong += labels.idlg(network, update) != int(label)
    assert wrong == 0


@pytest.mark.parametrize("name", ["dlg", "ig", "sme", "dlfa"])
def test_gradcheck(name: str) -> None:
    small = tiny_scene(epochs=2, samples=2, batch_size=2)
    make = {
        "dlg": lambda: objectives.dlg(small.network, small.update, None, lr=0.5),
        "ig": lambda: objectives.ig(small.network, small.update, small.labels, tv=0.01),
        "sme": lambda: objectives.sme(small.network, small.update, small.labels, tv=0.01),
        "dlfa": lambda: objectives.dlfa(
            small.network,
            small.update,
            small.labels,
            small.protocol,
            tv=1e-3,
            clip=2.0,
            order=10.0,
        ),
    }[name]()
    z = small.z.expand(2, *small.z.shape) if name == "dlfa" else small.z
    aux = {
        "dlg": {"logits": torch.linspace(-1, 1, 8, dtype=torch.float64).view(2, 4)},
        "sme": {"alpha": torch.tensor(0.4, dtype=torch.float64)},
    }.get(name, {})
    unknowns = [v.clone().requires_grad_() for v in (z, *aux.values())]

    def loss(images: Tensor, *rest: Tensor) -> Tensor:
        return make(images, dict(zip(aux, rest, strict=True)), CLOCK)[0]

    assert torch.autograd.gradcheck(loss, unknowns, atol=1e-6, rtol=1e-4)


def test_fedavg_is_the_weighted_mean(tiny: Scene) -> None:
    updates = [tiny_scene(samples=n, epochs=1, batch_size=n).update for n in (1, 2, 5)]
    merged = smelib.average(updates)
    for name in merged:
        expected = sum(u.samples * u.after[name] for u in updates) / 8
        torch.testing.assert_close(merged[name], expected)


def test_fedavg_rounds_average_those_who_report() -> None:
    clients = smelib.data.federation("mnist", clients=4, seed=1)
    clients = [smelib.data.Client(c.images[:6], c.labels[:6], 10, "mnist") for c in clients]
    network = smelib.models.lenet((1, 28, 28), 10)
    rounds = list(
        smelib.fedavg(network, clients, smelib.Protocol(1, 3), rounds=3, reporting=0.5, seed=2)
    )
    assert len(rounds) == 3
    assert any(0 < len(r.reporters) < 4 for r in rounds), "some must straggle for this to mean much"
    weights = network.params()
    for r in rounds:
        assert len(r.updates) == len(r.reporters)
        for u in r.updates:
            assert all(torch.equal(u.before[k], weights[k]) for k in weights)
        weights = smelib.average(r.updates) if r.updates else weights
        assert all(torch.equal(r.after[k], weights[k]) for k in weights)


@pytest.mark.parametrize(("samples", "batch"), [(10, 10), (10, 3), (7, 2), (3, 50), (1, 1)])
def test_number_of_steps(samples: int, batch: int) -> None:
    protocol = smelib.Protocol(epochs=4, batch_size=batch)
    drawn = list(batches(samples, protocol, torch.Generator().manual_seed(0)))
    assert len(drawn) == protocol.steps(samples) == 4 * math.ceil(samples / batch)
    per_epoch = len(drawn) // 4
    for epoch in range(4):
        once = torch.cat(drawn[epoch * per_epoch : (epoch + 1) * per_epoch])
        assert sorted(once.tolist()) == list(range(samples)), "an epoch uses each sample once"
    assert all(len(b) <= batch for b in drawn)


def test_the_update_is_the_sum_of_the_gradients_on_the_way(tiny: Scene) -> None:
    path = list(local_path(tiny.network, tiny.client, tiny.protocol))
    assert len(path) == 1 + tiny.protocol.steps(3)
    z = tiny.network.normalise(tiny.client.images)
    total = {k: torch.zeros_like(v) for k, v in path[0].items()}
    order = batches(3, tiny.protocol, smelib.seeds.generator(0, "batches"))
    for weights, batch in zip(path, order, strict=False):
        total = P.add(total, gradient(tiny.network, weights, z[batch], tiny.labels[batch]))
    moved = P.sub(tiny.update.before, tiny.update.after)
    for name in total:
        torch.testing.assert_close(moved[name], tiny.protocol.lr * total[name])


@pytest.mark.parametrize("name", ["dlg", "ig", "sme", "retrace", "dlfa"])
@pytest.mark.parametrize("network", list(smelib.models.NETWORKS))
def test_the_kernel_runs_on_the_meta_device(name: str, network: str) -> None:
    """A stray CPU tensor or an .item() inside the objective fails there."""
    net = smelib.models.build(network, (1, 28, 28), 62).to(torch.device("meta"), torch.float32)
    meta = {k: v.to("meta") for k, v in net.params().items()}
    update = Update(meta, meta, 2)
    known = torch.zeros(2, dtype=torch.long, device="meta")
    protocol = smelib.Protocol(2, 2)
    features = objectives.max_features(meta[net.head()[1]], 1, seed=0)
    make = {
        "dlg": lambda: objectives.dlg(net, update, known, lr=0.1),
        "ig": lambda: objectives.ig(net, update, known, tv=0.01),
        "sme": lambda: objectives.sme(net, update, known, tv=0.01),
        "retrace": lambda: objectives.retrace(net, update, known, tv=0.01, nodes=2),
        "dlfa": lambda: objectives.dlfa(
            net,
            update,
            known,
            protocol,
            tv=1.0,
            clip=1.0,
            order=1.0,
            summary=features,
        ),
    }[name]()
    shape = (2, 2, 1, 28, 28) if name == "dlfa" else (2, 1, 28, 28)
    z = torch.zeros(shape, device="meta", requires_grad=True)
    aux = {"alpha": torch.zeros((), device="meta", requires_grad=True)} if name == "sme" else {}
    if name == "retrace":
        aux = {"alpha": torch.zeros((), device="meta", requires_grad=True)}
        aux |= make.renew(z.detach(), aux | make.renew(z.detach(), aux))
    value, _ = make(z, aux, torch.zeros((), device="meta"))
    value.backward()
    assert z.grad.device.type == "meta"
    assert z.grad.shape == z.shape


@pytest.mark.parametrize("name", list(smelib.models.NETWORKS))
@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32)])
def test_networks_have_second_derivatives(name: str, shape: tuple[int, int, int]) -> None:
    network = smelib.models.build(name, shape, 5)
    z = torch.randn(2, *shape, generator=torch.Generator().manual_seed(0)).requires_grad_()
    slope = gradient(network, network.params(), z, torch.tensor([0, 4]))
    (second,) = torch.autograd.grad(P.dot(slope, slope), z)
    assert network(z.detach().sigmoid()).shape == (2, 5)
    assert bool(torch.isfinite(second).all())
    assert float(second.abs().max()) > 0


def test_layers_are_the_papers() -> None:
    """Parameter counts, computed by hand from the paper's table of layers."""

    def size(name: str, shape: tuple, classes: int) -> int:
        return sum(v.numel() for v in smelib.models.build(name, shape, classes).params().values())

    femnist, cifar = ((1, 28, 28), 62), ((3, 32, 32), 100)
    assert size("cnn", *femnist) == 320 + 18496 + 3136 * 100 + 100 + 100 * 62 + 62
    assert size("cnn", *cifar) == 1792 + 73856 + 8192 * 200 + 200 + 200 * 100 + 100
    assert size("mlp", *femnist) == 784 * 1000 + 1000 + 1000 * 1001 + 1001 * 62
    assert size("lenet", *femnist) == 156 + 2416 + 400 * 120 + 120 + 120 * 84 + 84 + 85 * 62
    resnet = smelib.models.resnet8(*femnist).params()
    assert [v.shape for v in resnet.values() if v.ndim == 2] == [(1000, 2048), (62, 1000)]
    vit = smelib.models.vit(*femnist).params()
    assert vit["embed.weight"].shape == (384, 1, 28, 28)
    assert vit["head.0.weight"].shape == (768, 384)


def test_lecun_weights_are_root_three_wider() -> None:
    wide, narrow = (
        smelib.models.mlp((1, 28, 28), 62, init=init).params() for init in ("lecun", "torch")
    )
    ratio = float(wide["1.weight"].std() / narrow["1.weight"].std())
    assert ratio == pytest.approx(math.sqrt(3), rel=0.01)
    assert float(wide["1.bias"].abs().max()) == 0
