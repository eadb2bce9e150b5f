"""An audit: weights in every form, other names, traces that warn, and words that never lull."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import smelib
from smelib.auditing import audit, naming, networks, normalising, report, traces, weights
from smelib.types import InputError, Protocol, Update


def said(found: report.Report) -> str:
    """A report on one line."""
    return " ".join(str(found).split())


def small(*, seed: int = 0) -> nn.Module:
    """A network with batch norm on 1×8×8 images."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(
            *(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Tanh(), nn.Conv2d(4, 4, 3)),
            *(nn.BatchNorm2d(4), nn.Tanh(), nn.Flatten(), nn.Linear(64, 5)),
        )


def client(samples: int = 3) -> smelib.Client:
    draw = torch.Generator().manual_seed(1)
    images = torch.rand(samples, 1, 8, 8, generator=draw)
    return smelib.Client(images, torch.arange(samples) % 5, 5, "random")


def sent(protocol: Protocol | None = None, **wrapped: object) -> tuple[nn.Module, Update]:
    body = small()
    model = smelib.models.wrap(body, (1, 8, 8), 5, mean=(0.0,), std=(1.0,), **wrapped)
    return body, smelib.local_update(model, client(), protocol or Protocol(4, 3, 0.1))


def whole(body: nn.Module, params: dict) -> dict:
    """A state_dict with these parameters."""
    return {**body.state_dict(), **params}


QUICK = {"shape": (1, 8, 8), "classes": 5, "samples": 3, "steps": 3, "progress": False}


# Weights


def saved(form: str, state: dict, folder: Path) -> object:
    arrays = {k: v.numpy() for k, v in state.items()}
    if form == "state_dict":
        return state
    if form == "module":
        body = small()
        body.load_state_dict(state)
        return body
    if form == "numpy dict":
        return arrays
    if form == "flower":
        return list(arrays.values())
    if form == "npz by name":
        np.savez(folder / "w.npz", **arrays)
        return folder / "w.npz"
    if form == "npz in order":
        np.savez(folder / "w.npz", *arrays.values())
        return folder / "w.npz"
    if form == "checkpoint":
        torch.save({"epoch": 3, "model_state_dict": state}, folder / "w.pt")
        return folder / "w.pt"
    if form == "pt":
        torch.save(state, folder / "w.pth")
        return str(folder / "w.pth")
    save_file({k: v.contiguous() for k, v in state.items()}, folder / "w.safetensors")
    return folder / "w.safetensors"


FORMS = ["state_dict", "module", "numpy dict", "flower", "npz by name", "npz in order"]
FORMS += ["checkpoint", "pt", "safetensors"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_weights(form: str, tmp_path: Path) -> None:
    body = small(seed=3)
    state = {k: v.clone() for k, v in body.state_dict().items()}
    found, _ = naming.fitted(body, weights.weights(saved(form, state, tmp_path), "w"), "w")
    assert set(found) == set(state)
    assert all(torch.equal(found[k], state[k]) for k in state)


def test_nothing_in_a_file_is_executed(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple:
            return (Path.touch, (tmp_path / "executed",))

    torch.save({"0.weight": Trap()}, tmp_path / "w.pt")
    np.savez(tmp_path / "w.npz", a=np.array([Trap()], dtype=object))
    for name in ("w.pt", "w.npz"):
        with pytest.raises(InputError, match="unpickled"):
            weights.read(tmp_path / name, "w")
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize("kind", ["npz", "pt", "safetensors"])
def test_a_damaged_file_is_a_sentence(kind: str, tmp_path: Path) -> None:
    forms = {"npz": "npz by name", "pt": "pt", "safetensors": "safetensors"}
    file = Path(str(saved(forms[kind], small().state_dict(), tmp_path)))
    content = file.read_bytes()
    for cut in (0, 1, 40, len(content) // 2, len(content) - 3):
        file.write_bytes(content[:cut])
        with pytest.raises(InputError, match=r"copy it again|unpickled"):
            weights.read(file, "w")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "is a int"),
        ({"a": "b"}, "no weight"),
        ([[1.0, [2.0]]], "no weight"),
        ("weights.h5", "no such file"),
        (__file__, "are read from"),
    ],
)
def test_what_is_no_weights(given: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        weights.weights(given, "before")


# Names


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "model._orig_mod."])
def test_prefixes_of_wrappers_are_taken_off(prefix: str) -> None:
    state = {k: v + i for i, (k, v) in enumerate(small().state_dict().items())}
    backwards = {prefix + k: v for k, v in reversed(state.items())}
    found, renamed = naming.fitted(small(), backwards, "w")
    assert all(torch.equal(found[k], state[k]) for k in state)
    assert renamed[f"{prefix}0.weight"] == "0.weight"


def test_other_names_are_fitted_by_shape_and_kind_and_order() -> None:
    """Twelve layers alike, in an alphabetical file: 10 comes after 2."""
    body = nn.Sequential(*(nn.Linear(3, 3) for _ in range(12)))
    state = {k: torch.randn_like(v) for k, v in body.state_dict().items()}
    other = {
        f"stack/layer{int(k.split('.')[0]) + 1}/{'kernel' if 'weight' in k else 'b'}": v
        for k, v in state.items()
    }
    shuffled = dict(sorted(other.items()))
    found, renamed = naming.fitted(body, shuffled, "w")
    assert all(torch.equal(found[k], state[k]) for k in state)
    assert renamed["stack/layer11/kernel"] == "10.weight"


def test_other_words_for_weight_and_bias() -> None:
    """Two vectors of one size, of which the alphabet puts the bias first."""
    body = nn.Sequential(nn.BatchNorm1d(4, track_running_stats=False), nn.Linear(4, 2))
    state = {k: torch.randn_like(v) for k, v in body.state_dict().items()}
    other = ["norm/gamma", "norm/beta", "out/kernel", "out/bias"]
    given = dict(sorted(zip(other, state.values(), strict=True)))
    found, renamed = naming.fitted(body, given, "w")
    assert renamed["norm/beta"] == "0.bias"
    assert all(torch.equal(found[k], state[k]) for k in state)


def test_batch_norm_without_its_buffers_can_be_fitted() -> None:
    body = small()
    params = {f"x{k}": v.detach() for k, v in body.named_parameters()}
    found, _ = naming.fitted(body, params, "w")
    assert list(found) == [k for k, _ in body.named_parameters()]
    arrays = [v.detach() for v in body.parameters()]
    found, renamed = naming.fitted(body, arrays, "w")
    assert list(found) == [k for k, _ in body.named_parameters()]
    assert renamed["array 2"] == "1.weight"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: [*w[:2], w[2].new_zeros(9), *w[3:]], "array 2 has shape \\(9,\\)"),
        (lambda w: [*w, *w[:3]], "array 4 has shape"),
    ],
)
def test_arrays_that_do_not_fit(change: object, message: str) -> None:
    arrays = [v for k, v in small().state_dict().items() if v.ndim]
    with pytest.raises(InputError, match=message):
        naming.fitted(small(), change(arrays), "w")


def test_too_many_arrays() -> None:
    body = nn.Linear(3, 2)
    with pytest.raises(InputError, match="has 3 arrays; the network has 2 parameters"):
        naming.fitted(body, [*body.parameters(), torch.zeros(1)], "w")


# Networks


def test_a_factory_of_your_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mynets.py").write_text(
        "from torch import nn\n"
        "def make(shape, num_classes):\n"
        "    size = shape[0] * shape[1] * shape[2]\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(size, num_classes))\n"
        "def broken():\n    raise RuntimeError('no weights today')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    body = networks.module("mynets:make", (1, 8, 8), 5)
    assert body(torch.zeros(2, 1, 8, 8)).shape == (2, 5)
    with pytest.raises(InputError, match="did you mean 'make'"):
        networks.module("mynets:maek", (1, 8, 8), 5)
    with pytest.raises(InputError, match="no weights today"):
        networks.module("mynets:broken", (1, 8, 8), 5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")  # torch's own, of its own files
def test_an_exported_program_trains_and_leaks_like_its_module(tmp_path: Path) -> None:
    body = small().eval()
    many = torch.export.Dim("batch", min=1, max=64)
    program = torch.export.export(body, (torch.zeros(2, 1, 8, 8),), dynamic_shapes=({0: many},))
    torch.export.save(program, tmp_path / "net.pt2")
    loaded = networks.module(str(tmp_path / "net.pt2"), (1, 8, 8), 5)
    _, update = sent()
    known = {"known_labels": [0, 1, 2], "normalisation": "raw"}
    ours, theirs = (audit(b, update.before, update.after, **known, **QUICK) for b in (body, loaded))
    assert torch.allclose(ours.images, theirs.images, atol=1e-5)
    (tmp_path / "bad.pt2").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(InputError, match=r"torch\.export\.save"):
        networks.module(str(tmp_path / "bad.pt2"), (1, 8, 8), 5)


# Normalisation


def test_steps_and_smoothing_are_the_same_in_pixels() -> None:
    """Raw pixels and doubled ones, w halved: the same pictures, bit for bit in the first layer."""
    held = client()
    plain = nn.Sequential(nn.Flatten(), nn.Linear(64, 5))
    raw = smelib.models.wrap(plain, (1, 8, 8), 5, mean=(0.0,), std=(1.0,))
    half = smelib.models.wrap(plain, (1, 8, 8), 5, mean=(0.0,), std=(0.5,))
    one, two = (normalising.in_pixels(m, "fast") for m in (raw, half))
    assert two["preset"].rate == 2 * one["preset"].rate
    assert two["tv"] == one["tv"] / 2
    assert held.shape == raw.shape


@pytest.mark.parametrize("channels", [1, 3])
def test_the_range_must_be_used_and_not_be_too_narrow(
    channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide, middle, half, raw = normalising.candidates(channels)
    shape = (channels, 8, 8)
    body = nn.Sequential(nn.Flatten(), nn.Linear(channels * 64, 5))
    made = {
        k: smelib.models.wrap(body, shape, 5, mean=m, std=s)
        for k, (m, s) in normalising.candidates(channels).items()
    }
    ramp = torch.linspace(0.02, 0.98, 3 * channels * 64).view(3, *shape)
    pictures = dict.fromkeys(made, ramp)
    left = {wide: 0.3, middle: 0.05, half: 0.052, raw: 0.07}

    def pretended(model: smelib.Network, *_: object, **__: object) -> object:
        name = next(k for k, m in made.items() if m is model)
        return SimpleNamespace(similarity=left[name], images=pictures[name])

    def found() -> normalising.Search:
        return normalising.search(made, sent()[1], lambda m: torch.arange(3))

    monkeypatch.setattr(smelib.attacks, "sme", pretended)
    assert (found().name, found().mismatches) == (middle, left)
    pictures[middle] = 0.3 + 0.4 * ramp
    assert found().name == half, "the middle one leaves most of its range unused"
    pictures[half] = torch.arange(3 * channels * 64).view(3, *shape).remainder(2).float()
    assert found().name == (raw if channels == 3 else half), "photographs are not black and white"
    pictures |= dict.fromkeys(made, pictures[half])
    assert found().name == middle, "where none is free, the mismatch alone"


def test_candidates_are_ordered_by_the_range_they_allow() -> None:
    for usual in normalising.USUAL.values():
        widths = [1 / s[0] for _, s in usual.values()]
        assert widths == sorted(widths, reverse=True)


def test_a_normalisation_by_name_or_by_numbers() -> None:
    body, update = sent()
    named = audit(body, update.before, update.after, normalisation="half", **QUICK)
    given = audit(body, update.before, update.after, normalisation=((0.5,), (0.5,)), **QUICK)
    assert torch.equal(named.images, given.images)
    assert "mean 0.5; std 0.5" in said(given)
    raw = audit(body, update.before, update.after, normalisation="raw", **QUICK)
    assert not torch.equal(raw.images, named.images)
    with pytest.raises(InputError, match="did you mean 'half'"):
        audit(body, update.before, update.after, normalisation="hlaf", **QUICK)
    with pytest.raises(InputError, match="no usual normalisation"):
        normalising.usual("half", 2)


# Traces


def marks(update: Update, body: nn.Module | None = None) -> traces.Traces:
    model = smelib.models.wrap(body or small(), (1, 8, 8), 5, mean=(0.0,), std=(1.0,))
    return traces.traces(model, model.own(update))


def moved(update: Update, change: object) -> Update:
    after = {k: v + change(update.after[k] - v) for k, v in update.before.items()}
    return Update(update.before, after, update.samples)


def test_plain_sgd_leaves_the_last_layer_in_balance() -> None:
    for protocol in (Protocol(1, 3, 0.1), Protocol(5, 2, 0.05, momentum=0.9)):
        found = marks(sent(protocol)[1])
        assert found.imbalance < 1e-5
        assert traces.warnings(found) == []


@pytest.mark.parametrize(
    ("protocol", "says"),
    [
        (Protocol(3, 3, 1e-3, optimiser="adam"), "Adam"),
        (Protocol(3, 3, 0.1, weight_decay=0.1), "weight decay"),
    ],
)
def test_another_training_is_seen(protocol: Protocol, says: str) -> None:
    (text,) = traces.warnings(marks(sent(protocol)[1]))
    assert says in text


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d + 0.05 * d.square().mean().sqrt() * torch.randn_like(d), "noised"),
        (lambda d: 1e-3 * d.sign(), "signs"),
        (lambda d: torch.where(d.abs() > d.abs().quantile(0.9), d, 0), "sparsification"),
    ],
)
def test_what_was_done_to_an_update_is_seen(change: object, says: str) -> None:
    torch.manual_seed(0)
    assert any(says in text for text in traces.warnings(marks(moved(sent()[1], change))))


def test_a_clipped_update_has_a_round_length() -> None:
    update = sent()[1]
    found = marks(moved(update, lambda d: d * (0.25 / marks(update).norm)))
    assert any("clipped" in text for text in traces.warnings(found))
    assert not any("clipped" in text for text in traces.warnings(marks(update)))
    assert traces.is_round(2.0)
    assert not traces.is_round(0.2503)


def test_two_networks_that_never_met() -> None:
    update = sent()[1]
    other = {k: torch.randn_like(v) for k, v in update.before.items()}
    texts = traces.warnings(marks(Update(other, update.after, 3)))
    assert "hardly resemble" in texts[0]


def test_half_precision_is_not_called_quantised() -> None:
    update = sent(Protocol(1, 3, 0.001))[1]
    half = Update(*({k: v.half() for k, v in w.items()} for w in (update.before, update.after)), 3)
    (text,) = traces.warnings(marks(half))
    assert "precision" in text


def test_train_mode_shows_in_the_statistics() -> None:
    body, update = sent()
    before = {k: v.clone() for k, v in whole(body, update.before).items()}
    after = {**before, **update.after, "1.running_mean": before["1.running_mean"] + 0.1}
    found = audit(body, before, after, normalisation="raw", **QUICK)
    assert any("train mode" in text for text in found.warnings)
    assert "the batch's (train mode)" in said(found)
    told = audit(body, before, after, normalisation="raw", batch_norm="frozen", **QUICK)
    assert any("not frozen" in text for text in told.warnings)
    bare = audit(body, update.before, update.after, normalisation="raw", **QUICK)
    assert "the update holds none" in said(bare)
    assert bare.warnings == []


def test_a_swap_is_noticed() -> None:
    held = smelib.data.client("mnist", 2, seed=5)
    model = smelib.models.mlp(held.shape, held.classes, seed=5)
    update = smelib.local_update(model, held, Protocol(5, 2, 0.01))
    right = audit(model, update.before, update.after, samples=2, steps=60, progress=False)
    wrong = audit(model, update.after, update.before, samples=2, steps=60, progress=False)
    assert right.warnings == []
    assert any("swapped" in text for text in wrong.warnings)


# Words


def words(mismatch: float, agreement: float) -> report.Report:
    body, update = sent()
    found = audit(body, update.before, update.after, normalisation="raw", **QUICK)
    return replace(
        found, found=replace(found.found, similarity=mismatch), agreement=agreement, warnings=[]
    )


def test_an_interrupted_audit_does_not_agree_with_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    real = smelib.attacks.ATTACKS["sme"]
    for cut in (1, 2):
        calls = []

        def stopped(*args: object, calls: list = calls, cut: int = cut, **given: object) -> object:
            calls.append(1)
            found = real(*args, **given)
            done = len(calls) < cut
            return found if done else replace(found, stopped=smelib.Stop.INTERRUPTED)

        monkeypatch.setitem(smelib.attacks.ATTACKS, "sme", stopped)
        body, update = sent()
        found = audit(body, update.before, update.after, normalisation="raw", **QUICK)
        assert (found.verdict, found.agreement, len(calls)) == ("not finished", None, cut)
        assert "second start" in said(found)
        assert "inf" not in said(found)


def test_a_checkpoint_in_memory(tmp_path: Path) -> None:
    state = small().state_dict()
    held = {"optimizer": {"lr": 0.1}, "state_dict": state}
    assert set(weights.weights(held, "w")) == set(state)


def test_labels_are_said() -> None:
    body, update = sent()
    found = audit(body, update.before, update.after, normalisation="raw", **QUICK)
    assert f"Labels: {', '.join(map(str, found.found.labels.tolist()))}." in said(found)


def test_the_verdict_follows_the_scale_and_never_says_safe() -> None:
    good, some, none = words(0.001, 40.0), words(0.001, 5.0), words(0.9, 5.0)
    assert [r.verdict for r in (good, some, none)] == [
        "recovered",
        "partly recovered",
        "not recovered",
    ]
    assert "no proof of safety" in said(none)
    assert words(0.15, 30.0).verdict == "partly recovered"
    assert words(0.8, 30.0).verdict == "not recovered", "two starts may agree on nothing"
    for one in (good, some, none):
        assert " safe" not in said(one).replace("proof of safety", "")
        assert "Assumed: plain SGD" in said(one)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"shape": None}, "give shape="),
        ({"method": "smee"}, "did you mean 'sme'"),
        ({"method": "dlfa"}, "needs the client's training"),
        ({"samples": 0}, "at least 1"),
        ({"batch_norm": "btach"}, "did you mean 'batch'"),
        ({"known_labels": [9, 0, 0]}, "out of range"),
        ({"stepss": 3}, "stepss"),
    ],
)
def test_bad_input_is_a_sentence(given: dict, message: str) -> None:
    body, update = sent()
    with pytest.raises(InputError, match=message):
        audit(body, update.before, update.after, **{**QUICK, "normalisation": "raw", **given})


def test_no_network_at_all() -> None:
    _, update = sent()
    with pytest.raises(InputError, match="the network is a"):
        audit(3, update.before, update.after, **QUICK)


def test_an_update_whose_trained_weights_stood_still() -> None:
    body, update = sent()
    before = whole(body, update.before)
    after = {**before, "1.running_mean": before["1.running_mean"] + 1}
    found = marks(Update(before, after, 3), body)
    assert (found.alike, found.coarse, found.imbalance, found.norm) == (0.0, 0.0, None, 0.0)
    assert traces.warnings(found) == []
