"""The terms of the objectives, each against its formula written out."""

from __future__ import annotations

import math

import pytest
import torch
from conftest import Scene, tiny_scene
from torch import Tensor

from smelib import objectives, seeds
from smelib.federated import batches

CLOCK = torch.zeros((), dtype=torch.float64)


def dummies(scene: Scene, epochs: int, seed: int = 1) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(epochs, *scene.z.shape, generator=draw, dtype=scene.z.dtype)


def dlfa(scene: Scene, **options: object) -> objectives.Objective:
    return objectives.dlfa(scene.network, scene.update, scene.labels, scene.protocol, **options)


def test_the_feature_prior_is_the_largest_response() -> None:
    """Over the images of an epoch, pixel by pixel; a response to noise is of size one."""
    images = torch.randn(2, 5, 3, 8, 9, generator=torch.Generator().manual_seed(0))
    summary = objectives.max_features(images, 3, seed=0)
    alone = torch.stack([summary(images[:, [n]]) for n in range(5)])
    assert alone.shape == (5, 2, 96, 8, 9), "as large as the image"
    torch.testing.assert_close(summary(images), alone.max(dim=0).values)
    assert float(alone[..., 1:-1, 1:-1].std()) == pytest.approx(1, rel=0.1)


def test_the_mean_prior_is_every_epochs_mean_image() -> None:
    images = torch.arange(12.0).view(2, 3, 1, 1, 2)
    assert objectives.mean_image(images).flatten().tolist() == [2, 3, 8, 9]


def test_wrapped_variation_by_hand() -> None:
    """A bright column of three pixels has two edges across and none down."""
    z = torch.zeros(2, 1, 3, 4)
    z[0, :, :, 1] = 2.0
    assert float(objectives.wrapped_variation(z[:1])) == 3 * 2 * 4
    assert float(objectives.wrapped_variation(z)) == 3 * 2 * 4 / 2, "the mean over images"
    z = torch.zeros(1, 1, 3, 4)
    z[..., 0, :] = 1.0
    assert float(objectives.wrapped_variation(z)) == 4 * 2, "the border has a neighbour too"


def test_early_layers_count_most_and_a_bias_as_its_weight() -> None:
    names = ("a.0.weight", "a.0.bias", "b.weight", "c.weight", "c.bias")
    found = objectives.layer_weights(dict.fromkeys(names, torch.zeros(1)))
    assert list(found.values()) == pytest.approx([math.exp(-layer) for layer in (0, 0, 1, 2, 2)])


def test_dlfas_loss_is_the_sum_of_its_terms(tiny: Scene) -> None:
    z, weight = dummies(tiny, 3), {"tv": 0.3, "clip": 0.7, "order": 1.1}
    value, terms = dlfa(tiny, **weight, factor=(2.0, 5.0))(z, {}, CLOCK)
    priors = sum(weight[k] * float(terms[k]) for k in weight)
    steps = tiny.protocol.steps(3)
    assert all(float(terms[k]) > 1e-3 for k in weight)
    assert float(value) == pytest.approx(2 / steps * float(terms["distance"]) + priors)
    assert float(terms["score"]) == pytest.approx(5 / steps * float(terms["distance"]) + priors)
    pixels = tiny.network.denormalise(z)
    outside = (-pixels).clamp(min=0) ** 2 + (pixels - 1).clamp(min=0) ** 2
    assert float(terms["clip"]) == pytest.approx(float(outside.sum()) / 9)


def test_dlfas_layers_are_weighed(tiny: Scene) -> None:
    z, names = dummies(tiny, 3), list(tiny.update.before)
    alone = {
        k: float(dlfa(tiny, omega=dict.fromkeys(names, 0.0) | {k: 1.0})(z, {}, CLOCK)[0])
        for k in names
    }
    omega = {k: float(i + 1) for i, k in enumerate(names)}
    weighed = float(dlfa(tiny, omega=omega)(z, {}, CLOCK)[0])
    assert weighed == pytest.approx(sum(omega[k] * alone[k] for k in names))
    assert float(dlfa(tiny)(z, {}, CLOCK)[0]) == pytest.approx(sum(alone.values()))


def test_every_epoch_has_dummies_of_its_own(tiny: Scene) -> None:
    z = dummies(tiny, 3).requires_grad_()
    (slope,) = torch.autograd.grad(dlfa(tiny)(z, {}, CLOCK)[0], z)
    assert bool((slope.flatten(2).abs().amax(dim=2) > 0).all()), "each image of each epoch counts"


def test_every_epoch_has_batches_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, seen = tiny_scene(epochs=4, samples=6, batch_size=4), []
    real = objectives.simulate

    def watch(model: object, before: object, images: object, labels: object, order: list, *rest):
        seen.extend(order)
        return real(model, before, images, labels, order, *rest)

    monkeypatch.setattr(objectives, "simulate", lambda *args, checkpoint: watch(*args))
    dlfa(scene, seed=3)(dummies(scene, 4), {}, CLOCK)
    drawn = list(batches(6, scene.protocol, seeds.generator(3, "simulated batches")))
    assert [len(epoch) for epoch in seen] == [2, 2, 2, 2]
    for mine, expected in zip([b for epoch in seen for b in epoch], drawn, strict=True):
        assert torch.equal(mine, expected)


def test_what_is_only_reported_has_no_slope(tiny: Scene) -> None:
    value, terms = dlfa(tiny, tv=0.1)(dummies(tiny, 3).requires_grad_(), {}, CLOCK)
    assert value.requires_grad
    assert not terms["similarity"].requires_grad
    assert not terms["score"].requires_grad


def graph_size(value: Tensor) -> int:
    """How many operations autograd remembers for this value."""
    found, waiting = set(), [value.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found:
            found.add(node)
            waiting += [after for after, _ in node.next_functions]
    return len(found)


def test_checkpointing_keeps_no_step_of_the_simulation() -> None:
    scene = tiny_scene(epochs=8, samples=3, batch_size=2)
    z = dummies(scene, 8).requires_grad_()
    lean, plain = (
        graph_size(dlfa(scene, checkpoint=c)(z, {}, CLOCK)[1]["distance"]) for c in (True, False)
    )
    assert lean < plain / 3


def test_dlgs_unknown_labels_are_probabilities_image_by_image() -> None:
    scene = tiny_scene(epochs=1, samples=3, batch_size=3)
    unknown, known = (
        objectives.dlg(scene.network, scene.update, labels, lr=0.5)
        for labels in (None, scene.labels)
    )
    sure = 100.0 * torch.nn.functional.one_hot(scene.labels, 4).double()
    value, terms = unknown(scene.z, {"logits": sure}, CLOCK)
    torch.testing.assert_close(value, known(scene.z, {}, CLOCK)[0])
    shifted = unknown(scene.z, {"logits": sure + torch.arange(3.0).view(3, 1)}, CLOCK)[0]
    torch.testing.assert_close(shifted, value)
    assert float(terms["similarity"]) > 0.01
    truth = scene.network.normalise(scene.client.images)
    value, terms = unknown(truth, {"logits": sure}, CLOCK)
    assert float(value) < 1e-20
    assert float(terms["similarity"]) == pytest.approx(0, abs=1e-12)
