"""On the way to a GPU: whole attacks on another device than the CPU, so that stray tensors show.

There is no GPU here, but there is PyTorch's `meta` device, whose tensors have a shape and a type
and no numbers. As on a GPU, an operation on tensors of two devices is an error there; and what
would make a GPU wait for its numbers has to be replaced for the test, so that it shows too. (A
CUDA device under `FakeTensorMode` cannot stand in: without CUDA, autograd aborts the process.)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import smelib
from smelib import attacks, devices, federated, labels, metrics, pairing
from smelib.types import InputError, Update


class Traffic(TorchDispatchMode):
    """Counts copies from the host to the device."""

    def __init__(self) -> None:
        super().__init__()
        self.uploads = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if func is torch.ops.aten._to_copy.default:
            self.uploads += args[0].device.type == "cpu" and out.device.type == "meta"
        return out


waits: list[str] = []  # every time the host asked the device for a number


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A device without numbers; where one is asked for, it is always the same."""
    waits.clear()

    def answer(name: str, value: object) -> None:
        real = getattr(Tensor, name)

        def asked(self: Tensor, *args: object) -> object:
            if self.device.type != "meta":
                return real(self, *args)
            waits.append(name)
            return value(self) if callable(value) else value

        monkeypatch.setattr(Tensor, name, asked)

    for name, value in (
        *(("__bool__", True), ("__float__", 1.0), ("__int__", 0), ("item", 1)),
        ("cpu", lambda t: torch.zeros(t.shape, dtype=t.dtype)),
    ):
        answer(name, value)
    equal = torch.equal
    monkeypatch.setattr(torch, "equal", lambda a, b: a.device.type != "meta" and equal(a, b))
    monkeypatch.setattr(attacks, "match", lambda images, originals: np.arange(len(originals)))
    return "meta"


def scene(network: str, place: str) -> tuple:
    """A client's update, its weights on the host or already on the device."""
    model = smelib.models.build(network, (1, 28, 28), 10)
    images, known = torch.rand(2, 1, 28, 28), torch.zeros(2, dtype=torch.long)
    client = smelib.Client(images, known, 10, "random")
    before = {k: v.to(place) for k, v in model.params().items()}
    update = smelib.local_update(model, client, smelib.Protocol(2, 1), before=before)
    assert {v.device.type for v in update.after.values()} == {place}
    return model, client, update


LARGE = [pytest.param(name, marks=pytest.mark.slow) for name in ("resnet8", "vit")]
EXTRA = {"dlg": {"lr": 0.1}, "dlfa": {"protocol": smelib.Protocol(2, 1)}}


@pytest.mark.parametrize("begins", ["host", "device"])
@pytest.mark.parametrize(
    "network", ["cnn", *(pytest.param(n, marks=pytest.mark.slow) for n in ("resnet8", "vit"))]
)
@pytest.mark.parametrize("name", ["dlg", "ig", "sme", "dlfa"])
def test_a_whole_attack_stays_on_the_device(
    device: str, name: str, network: str, begins: str
) -> None:
    model, client, update = scene(network, device if begins == "device" else "cpu")
    found = attacks.ATTACKS[name](
        model, update, client.labels, device=device, steps=2, snapshots=2, **EXTRA.get(name, {})
    )
    assert found.device == device
    assert found.images.device.type == "cpu"


@pytest.mark.parametrize("options", [{"restarts": 2}, {"keep": "best"}, {"preset": "fast"}])
def test_options_stay_on_the_device(device: str, options: dict) -> None:
    model, client, update = scene("cnn", "cpu")
    attacks.sme(model, update, client.labels, device=device, steps=30, **options)


@pytest.mark.parametrize("network", ["cnn", "resnet8"])
@pytest.mark.parametrize("name", ["ig", "sme", "dlfa"])
def test_no_step_uploads_anything_or_waits(device: str, name: str, network: str) -> None:
    """What the device needs it gets once, and between two looks at the loss nothing waits."""
    model, client, update = scene(network, "cpu")
    uploads, waited = [], []
    for steps in (2, 6):
        waits.clear()
        with Traffic() as seen:
            attacks.ATTACKS[name](
                model, update, client.labels, device=device, steps=steps, **EXTRA.get(name, {})
            )
        uploads.append(seen.uploads)
        waited.append(len(waits))
    assert uploads[0] == uploads[1] > 0
    assert waited[0] == waited[1] > 0


def test_a_client_trains_without_an_upload_per_step(device: str) -> None:
    model, client, update = scene("resnet8", device)
    uploads = []
    for epochs in (1, 4):
        protocol = smelib.Protocol(epochs, 2)
        with Traffic() as seen:
            smelib.local_update(model, client, protocol, before=update.before)
        uploads.append(seen.uploads)
    assert uploads[0] == uploads[1] > 0


def test_labels_and_accuracy_work_on_the_device(device: str) -> None:
    model, client, update = scene("resnet8", device)
    federated.accuracy(model, update.after, client)
    labels.idlg(model, Update(update.before, update.after, 1))
    labels.recover(model, update, smelib.Protocol(2, 1))


def test_nothing_needs_double_precision_on_the_device(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apple's GPUs have none; what is compared in double is brought to the host first."""
    seen, double = [], Tensor.double

    def watched(self: Tensor) -> Tensor:
        seen.append(self.device.type)
        return double(self)

    monkeypatch.setattr(Tensor, "double", watched)
    images = torch.zeros(2, 1, 8, 8, device=device)
    pairing.match(images, images)
    metrics.evaluate(images, images)
    labels.round_to_total(torch.zeros(3, device=device), 2)
    assert set(seen) == {"cpu"}


def test_an_unknown_device_is_a_sentence() -> None:
    with pytest.raises(InputError, match="cannot be used"):
        devices.pick_device("cudda")
