"""The boundary to a module: what trains, what leaks, where it lives, and who may use it at once."""

from __future__ import annotations

import copy
import pickle
import threading
from functools import partial

import pytest
import torch
from conftest import tiny_network, tiny_scene
from torch import Tensor, nn
from torch.nn import functional as F

import smelib
from smelib import attacks, labels, objectives
from smelib import params as P
from smelib.federated import gradient
from smelib.models import wrap
from smelib.types import InputError, Update

CLOCK = torch.zeros(())


def client_of(shape: tuple[int, int, int], samples: int = 4, classes: int = 4, seed: int = 1):
    draw = torch.Generator().manual_seed(seed)
    images = torch.rand(samples, *shape, generator=draw)
    return smelib.data.Client(
        images, torch.randint(classes, (samples,), generator=draw), classes, "random"
    )


def sends(model, client, epochs: int = 1, lr: float = 0.1) -> Update:
    return smelib.local_update(model, client, smelib.Protocol(epochs, len(client), lr))


def small(*layers: nn.Module, seed: int = 0) -> nn.Module:
    return nn.Sequential(nn.Flatten(), *layers)


# Frozen layers


def frozen_scene():
    torch.manual_seed(0)
    body = small(nn.Linear(36, 20), nn.Tanh(), nn.Linear(20, 4))
    body[1].requires_grad_(False)
    model = wrap(body, (1, 6, 6), 4, mean=(0.5,), std=(0.5,))
    client = client_of((1, 6, 6))
    return model, client, sends(model, client)


def test_training_leaves_frozen_layers_alone() -> None:
    _, _, update = frozen_scene()
    assert torch.equal(update.before["1.weight"], update.after["1.weight"])
    assert not torch.equal(update.before["3.weight"], update.after["3.weight"])


@pytest.mark.parametrize("name", ["ig", "sme"])
def test_the_truth_explains_the_update_of_a_client_with_a_frozen_layer(name: str) -> None:
    model, client, update = frozen_scene()
    loss = getattr(objectives, name)(model, update, client.labels, tv=0.0)
    aux = {"alpha": torch.zeros(())} if name == "sme" else {}
    _, terms = loss(model.normalise(client.images), aux, CLOCK)
    assert float(terms["similarity"]) == pytest.approx(0, abs=1e-5)


def test_dlfa_simulates_a_frozen_layer_as_frozen() -> None:
    model, client, _ = frozen_scene()
    protocol = smelib.Protocol(3, len(client), 0.1)
    update = smelib.local_update(model, client, protocol)
    z = model.normalise(client.images)
    _, terms = objectives.dlfa(model, update, client.labels, protocol)(z.expand(3, *z.shape), {}, 0)
    assert float(terms["distance"]) < 1e-8


def test_a_network_without_trainable_weights_is_refused() -> None:
    with pytest.raises(InputError, match="no trainable weights"):
        wrap(small(nn.Linear(36, 4)).requires_grad_(False), (1, 6, 6), 4)


# The caller's module, and threads


def test_wrapping_leaves_the_module_as_it_was() -> None:
    body = small(nn.Linear(36, 20), nn.BatchNorm1d(20), nn.Linear(20, 4)).train()
    kept = copy.deepcopy(body.state_dict())
    for how in ("frozen", "batch"):
        model = wrap(body, (1, 6, 6), 4, batch_norm=how)
        sends(model, client_of((1, 6, 6)))
    assert body.training
    assert all(module.training for module in body.modules())
    assert body[2].running_mean is not None
    assert all(torch.equal(v, kept[k]) for k, v in body.state_dict().items())


def test_the_network_goes_its_own_way() -> None:
    """What becomes of the caller's module, or of the weights handed out, does not reach it."""
    body = small(nn.Linear(36, 20), nn.BatchNorm1d(20), nn.Linear(20, 4))
    model, images = wrap(body, (1, 6, 6), 4), torch.rand(3, 1, 6, 6)
    scores = model(images)
    with torch.no_grad():
        for tensor in (*body.parameters(), body[2].running_mean, *model.params().values()):
            tensor += 1
    assert torch.equal(model(images), scores)


def test_a_network_is_in_eval_mode() -> None:
    model = wrap(small(nn.Dropout(0.5), nn.Linear(36, 4)).train(), (1, 6, 6), 4)
    z = torch.randn(2, 1, 6, 6)
    assert torch.equal(model.logits(model.params(), z), model.logits(model.params(), z))


def test_a_network_takes_pixels_and_its_logits_normalised_ones() -> None:
    model, images = tiny_network(), torch.rand(2, 1, 6, 6, dtype=torch.float64)
    z = (images - 0.5) / 0.5
    torch.testing.assert_close(model(images), model.logits(model.params(), z))


def test_two_threads_get_their_own_answers() -> None:
    torch.manual_seed(0)
    model = wrap(small(nn.Linear(36, 50), nn.Tanh(), nn.Linear(50, 4)), (1, 6, 6), 4)
    z = torch.randn(16, 1, 6, 6)
    weights = [P.scale(model.params(), s) for s in (1.0, 3.0)]
    right = [model.logits(w, z) for w in weights]
    wrong = [0, 0]

    def ask(i: int) -> None:
        for _ in range(400):
            wrong[i] += not torch.equal(model.logits(weights[i], z), right[i])

    threads = [threading.Thread(target=ask, args=(i,)) for i in (0, 1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == [0, 0]


def test_a_network_can_be_copied_and_sent() -> None:
    model = wrap(tiny_network().body, (1, 6, 6), 4, name="mine", loss=smelib.models.squared_error)
    z = torch.randn(2, 1, 6, 6, dtype=torch.float64)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert (other.name, other.loss) == (model.name, model.loss)
        assert torch.equal(other.logits(other.params(), z), model.logits(model.params(), z))


# The head


def test_the_head_is_one_layer() -> None:
    """The bias of another layer with as many outputs is not the head's."""
    body = small(nn.Linear(36, 4), nn.ReLU(), nn.Linear(4, 4, bias=False))
    with pytest.raises(InputError, match="give the labels"):
        wrap(body, (1, 6, 6), 4).head()
    body = small(nn.Linear(36, 4), nn.ReLU(), nn.Linear(4, 4))
    assert wrap(body, (1, 6, 6), 4).head() == ("3.weight", "3.bias")
    assert wrap(nn.Sequential(nn.Flatten(), nn.Linear(36, 4)), (1, 6, 6), 4).head()[1] == "1.bias"


def test_the_head_may_be_the_module_itself_and_other_layers_come_after_it() -> None:
    class Flat(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x.flatten(1))

    class WithMore(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.out, self.more = Flat(36, 4), nn.Linear(4, 5)

        def forward(self, x: Tensor) -> Tensor:
            return self.out(x)

    assert wrap(Flat(36, 4), (1, 6, 6), 4).head() == ("weight", "bias")
    assert wrap(WithMore(), (1, 6, 6), 4).head() == ("out.weight", "out.bias")


@pytest.mark.parametrize("missing", [True, False])
def test_labels_are_not_guessed_from_a_missing_or_frozen_bias(missing: bool) -> None:
    body = small(nn.Linear(36, 20), nn.Tanh(), nn.Linear(20, 4, bias=not missing))
    if not missing:
        body[3].bias.requires_grad_(False)
    model = wrap(body, (1, 6, 6), 4)
    for samples in (1, 4):
        update = sends(model, client_of((1, 6, 6), samples))
        with pytest.raises(InputError, match="give the labels"):
            labels.recover(model, update)


def test_labels_are_not_guessed_from_a_bias_that_did_not_move() -> None:
    model, _, update = frozen_scene()
    still = Update(update.before, {**update.after, "3.bias": update.before["3.bias"]}, 4)
    with pytest.raises(InputError, match="did not move"):
        labels.counts(model, still)


def test_labels_are_read_off_cross_entropy_only() -> None:
    body = small(nn.Linear(36, 4))
    client = client_of((1, 6, 6), 1)
    smooth = wrap(body, (1, 6, 6), 4, loss=partial(F.cross_entropy, label_smoothing=0.1))
    assert labels.recover(smooth, sends(smooth, client)).tolist() == client.labels.tolist()
    other = wrap(body, (1, 6, 6), 4, loss=smelib.models.squared_error)
    with pytest.raises(InputError, match="another loss"):
        labels.recover(other, sends(other, client))


# Precision


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["ig", "sme"])
def test_half_precision_weights_are_attacked_in_single(name: str, kind: torch.dtype) -> None:
    scene = tiny_scene(lr=0.5)
    client = smelib.data.Client(scene.client.images.float(), scene.labels, 4, "random")
    model = tiny_network(torch.float32)
    update = smelib.local_update(model, client, scene.protocol).to(torch.device("cpu"), kind)
    wide = update.to(torch.device("cpu"), torch.float32)
    attack = attacks.ATTACKS[name]
    found, same = (attack(model, u, client.labels, steps=30) for u in (update, wide))
    assert found.stopped == "finished"
    assert found.images.dtype == torch.float32
    assert torch.equal(found.images, same.images)


def test_mixed_precision_takes_the_widest() -> None:
    scene = tiny_scene()
    mixed = {k: v.float() if "bias" in k else v for k, v in scene.update.after.items()}
    update = Update(scene.update.before, mixed, 3)
    found = attacks.sme(scene.network, update, scene.labels, steps=3)
    assert found.images.dtype == torch.float64


def test_a_network_in_another_precision() -> None:
    model = wrap(small(nn.Linear(36, 4), nn.BatchNorm1d(4)), (1, 6, 6), 4)
    wide, images = model.to(torch.device("cpu"), torch.float64), torch.rand(2, 1, 6, 6)
    assert {v.dtype for v in wide.params().values()} == {torch.float64}
    assert wide.body[2].running_mean.dtype == torch.float64
    assert wide.body[2].num_batches_tracked.dtype == torch.int64
    torch.testing.assert_close(wide(images).float(), model(images), rtol=1e-4, atol=1e-5)
    assert wide.to(torch.device("cpu"), torch.float64) is wide
    assert {v.dtype for v in model.params().values()} == {torch.float32}


def test_everything_works_in_double_precision() -> None:
    scene = tiny_scene()
    client = smelib.data.Client(scene.client.images.float(), scene.labels, 4, "random")
    assert scene.network(client.images).dtype == torch.float64
    share = smelib.federated.accuracy(scene.network, scene.update.after, client)
    assert share in [i / 3 for i in range(4)] or share == pytest.approx(2 / 3)
    cosines = smelib.theory.segment_cosines(scene.network, client, scene.update, [0.0, 1.0])
    assert cosines.shape == (2,)
    slopes = smelib.theory.path_gradients(scene.network, client, [scene.update.before])
    assert slopes[0]["0.weight"].dtype == torch.float64


def test_whole_number_weights_are_a_sentence() -> None:
    scene = tiny_scene()
    before, after = (
        {k: (100 * v).long() for k, v in w.items()}
        for w in (scene.update.before, scene.update.after)
    )
    with pytest.raises(InputError, match="floating-point"):
        attacks.sme(scene.network, Update(before, after, 3), scene.labels, steps=2)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("end", ["before", "after"])
def test_one_weight_that_is_no_number_is_a_sentence(end: str, value: float) -> None:
    scene = tiny_scene()
    ends = {k: dict(getattr(scene.update, k)) for k in ("before", "after")}
    ends[end]["0.weight"] = ends[end]["0.weight"].clone()
    ends[end]["0.weight"][0, 0, 0, 0] = value
    with pytest.raises(InputError, match=rf"'{end}' hold NaN or infinite values in '0\.weight'"):
        Update(**ends, samples=3).check()


def test_an_updates_ends_belong_to_one_network() -> None:
    before, after = tiny_scene().update.before, tiny_scene().update.after
    with pytest.raises(InputError, match=r"0\.bias"):
        Update(before, {k: v for k, v in after.items() if k != "0.bias"}, 3)
    with pytest.raises(InputError, match="has shape"):
        Update(before, {**after, "0.bias": torch.zeros(3)}, 3)


def test_numpy_counts_are_counts() -> None:
    import numpy as np

    scene = tiny_scene()
    update = Update(scene.update.before, scene.update.after, np.int64(3))
    assert update.samples == 3
    assert type(smelib.Protocol(np.int64(2), np.int32(3)).epochs) is int
    for bad in (True, 2.0, "3", 0, None):
        with pytest.raises(InputError, match="whole number"):
            Update(scene.update.before, scene.update.after, bad)


# Batch norm


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3)
        self.out = nn.Linear(108, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.norm(self.conv(x)).tanh().flatten(1))


def state_update(batch: bool, statistics: float = 0.3) -> tuple:
    """A client written with PyTorch alone; what it sends is its `state_dict`."""
    torch.manual_seed(0)
    body, client = Normed(), client_of((1, 6, 6))
    body.norm.running_mean.fill_(statistics)
    before = copy.deepcopy(body.state_dict())
    z = (client.images - 0.5) / 0.5
    body.train(batch)
    optimiser = torch.optim.SGD(body.parameters(), lr=0.1)
    F.cross_entropy(body(z), client.labels).backward()
    optimiser.step()
    return Normed(), client, Update(before, copy.deepcopy(body.state_dict()), 4), z


@pytest.mark.parametrize("batch", [False, True])
def test_a_state_dict_with_running_statistics_is_understood(batch: bool) -> None:
    """The attacker's module has other statistics: those of the update count."""
    body, client, update, z = state_update(batch)
    how = "batch" if batch else "frozen"
    model = wrap(body, (1, 6, 6), 4, mean=(0.5,), std=(0.5,), batch_norm=how)
    own = model.own(update)
    assert ("norm.running_mean" in own.before) == (not batch)
    assert not any("num_batches" in k for k in own.before)
    for loss in (objectives.ig, objectives.sme):
        _, terms = loss(model, own, client.labels, tv=0.0)(z, {"alpha": CLOCK}, CLOCK)
        assert float(terms["similarity"]) == pytest.approx(0, abs=1e-5)
    found = attacks.sme(model, update, client.labels, steps=3)
    assert found.stopped == "finished"
    with pytest.raises(InputError, match="did you mean 'batch'"):
        wrap(body, (1, 6, 6), 4, batch_norm="btach")


def test_the_wrong_kind_of_batch_norm_shows() -> None:
    body, client, update, z = state_update(batch=True)
    model = wrap(body, (1, 6, 6), 4, mean=(0.5,), std=(0.5,))
    _, terms = objectives.ig(model, model.own(update), client.labels, tv=0.0)(z, {}, CLOCK)
    assert float(terms["similarity"]) > 0.01


def test_an_update_of_another_network_is_refused() -> None:
    body, _, update, _ = state_update(batch=False)
    model = wrap(body, (1, 6, 6), 4)
    more = {**update.before, "other.weight": torch.zeros(3)}
    with pytest.raises(InputError, match=r"other\.weight"):
        model.own(Update(more, {**update.after, "other.weight": torch.zeros(3)}, 4))
    fewer = [{k: v for k, v in w.items() if k != "out.bias"} for w in (update.before, update.after)]
    with pytest.raises(InputError, match=r"out\.bias"):
        model.own(Update(*fewer, 4))


def test_an_update_is_put_in_the_networks_order() -> None:
    scene = tiny_scene()
    names = list(scene.update.before)
    ends = ({k: w[k] for k in reversed(names)} for w in (scene.update.before, scene.update.after))
    assert list(scene.network.own(Update(*ends, 3)).before) == names


# Labels and losses


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (torch.tensor([0, 1]), "3 integer labels"),
        (torch.eye(4)[:3].long(), "3 integer labels"),
        (torch.tensor([0.0, 1.0, 2.0]), "3 integer labels"),
        (torch.tensor([0, 4, 1]), "label 4 is out of range"),
        (torch.tensor([0, -1, 1]), "label -1 is out of range"),
    ],
)
def test_labels_that_cannot_be(given: Tensor, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tiny_network().check_labels(given, 3)


def test_any_whole_number_is_a_label() -> None:
    for given in (torch.tensor([3, 0], dtype=torch.int32), [3, 0]):
        found = tiny_network().check_labels(given, 2)
        assert found.dtype == torch.int64
        assert found.tolist() == [3, 0]


def test_squared_error_by_hand() -> None:
    scores = torch.tensor([[0.5, 0.0], [0.0, 3.0]])
    expected = (0.5**2 + 0 + 0 + 2**2) / 4
    for target in (torch.tensor([0, 1]), torch.eye(2)):
        assert float(smelib.models.squared_error(scores, target)) == pytest.approx(expected)


# Attention


def test_a_transformer_of_pytorchs_own_has_second_derivatives() -> None:
    class Attends(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(6, 2, 12, dropout=0.0, batch_first=True)
            self.out = nn.Linear(36, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.out(self.layer(x[:, 0]).flatten(1))

    torch.manual_seed(0)
    model, client = wrap(Attends(), (1, 6, 6), 4), client_of((1, 6, 6))
    found = attacks.sme(model, sends(model, client), client.labels, steps=5)
    assert found.stopped == "finished"
    z = model.normalise(client.images).requires_grad_()
    slope = gradient(model, model.params(), z, client.labels)
    (second,) = torch.autograd.grad(P.dot(slope, slope), z)
    assert float(second.abs().max()) > 0


# Pixels


def test_the_papers_normalisation() -> None:
    """Mean and standard deviation as the paper's data sets have them."""
    grey = smelib.models.mlp((1, 4, 4), 3)
    assert grey.normalise(torch.tensor([[[0.96424]]])).item() == pytest.approx(0, abs=1e-6)
    assert grey.normalise(torch.tensor([[[0.96424 + 0.15768]]])).item() == pytest.approx(1)
    colour = smelib.models.mlp((3, 4, 4), 3)
    pixel = torch.tensor([0.5071 + 0.2673, 0.4866 + 0.2564, 0.4409 + 0.2762]).view(3, 1, 1)
    torch.testing.assert_close(colour.normalise(pixel), torch.ones(3, 1, 1))
    images = torch.rand(2, 3, 4, 4)
    torch.testing.assert_close(colour.denormalise(colour.normalise(images)), images)
    black, white = colour.box(images)
    torch.testing.assert_close(colour.denormalise(black).flatten(), torch.zeros(3))
    torch.testing.assert_close(colour.denormalise(white).flatten(), torch.ones(3))


def test_pixels_that_cannot_be_normalised() -> None:
    body = small(nn.Linear(36, 4))
    for given in ({"std": (0.0,)}, {"std": (-1.0,)}, {"std": (1.0, 1.0)}, {"mean": (0.0, 0.0)}):
        with pytest.raises(InputError, match="mean and std need 1 values"):
            wrap(body, (1, 6, 6), 4, **given)
    with pytest.raises(InputError, match="need mean= and std="):
        wrap(body, (2, 6, 6), 4, mean=(0.0, 0.0))


def test_a_thin_image_has_a_smoothness() -> None:
    torch.manual_seed(0)
    model = wrap(small(nn.Linear(8, 4)), (1, 1, 8), 4)
    client = client_of((1, 1, 8))
    found = attacks.sme(model, sends(model, client), client.labels, steps=3)
    assert found.stopped == "finished"
    flat = objectives.total_variation(torch.arange(4.0).view(1, 1, 1, 4))
    assert float(flat) == pytest.approx(0.5)
    assert float(objectives.total_variation(torch.ones(1, 1, 1, 1))) == 0


class Rounded(nn.Module):
    """Scores that a small change of the image does not move."""

    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(36, 4)

    def forward(self, z: Tensor) -> Tensor:
        return self.out(z.flatten(1).round())


class Pair(Rounded):
    def forward(self, z: Tensor) -> tuple:
        return super().forward(z), z


@pytest.mark.parametrize(
    ("body", "shape", "classes", "message"),
    [
        (nn.Linear(36, 4), (6, 6, 1), 4, r"did you mean \(1, 6, 6\)"),
        (nn.Sequential(nn.Flatten(), nn.Linear(36, 4)), (1, 6, 7), 4, "cannot take images"),
        (nn.Sequential(nn.Flatten(), nn.Linear(36, 4)), (1, 6, 6), 5, r"\(2, 4\) for two images"),
        (Pair(), (1, 6, 6), 4, "the scores alone"),
        (nn.Conv2d(1, 4, 3), (1, 6, 6), 4, r"\(2, 4, 4, 4\) for two images"),
        (nn.Conv2d(3, 4, 3), (1, 6, 6), 4, "cannot take images"),
    ],
)
def test_wrap_tries_the_module_and_explains(
    body: nn.Module, shape: tuple, classes: int, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        wrap(body, shape, classes)


def test_a_network_without_the_needed_derivative_is_named() -> None:
    with pytest.raises(InputError, match="does not depend on the image"):
        smelib.models.check_derivatives(wrap(Rounded(), (1, 6, 6), 4))
    for name in smelib.models.NETWORKS:
        smelib.models.check_derivatives(smelib.models.build(name, (1, 28, 28), 10))


def test_mixed_initialisations_take_one_half_each() -> None:
    """LeCun's scale with PyTorch's bias, and the reverse: what tells the two apart."""
    names = ("torch", "lecun", "lecun_scale", "zero_bias")
    torchs, lecuns, scaled, bare = (
        smelib.models.cnn((1, 28, 28), 10, init=name, seed=3).params() for name in names
    )
    for key in torchs:
        bias = key.endswith("bias")
        assert torch.equal(scaled[key], (torchs if bias else lecuns)[key])
        assert torch.equal(bare[key], (lecuns if bias else torchs)[key])
        assert not torch.equal(torchs[key], lecuns[key])
