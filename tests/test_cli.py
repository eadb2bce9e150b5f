"""The command line: results a program can read, and bad input as one sentence."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import smelib
from smelib import cli

QUICK = ["--samples", "2", "--epochs", "2", "--steps", "8", "--network", "lenet"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a short attack."""
    out = tmp_path_factory.mktemp("run") / "out"
    assert cli.main(["attack", *QUICK, "--out", str(out)]) == 0
    return out


def audit_args(folder: Path, **changes: str) -> list[str]:
    given = {
        "before": str(folder / "w0.safetensors"),
        "after": str(folder / "wT.safetensors"),
        "network": "lenet",
        "dataset-shape": "1x28x28",
        "classes": "10",
        "samples": "2",
        "steps": "8",
        **changes,
    }
    return ["audit", *(word for k, v in given.items() for word in (f"--{k}", v))]


def test_json_is_one_object(capsys: pytest.CaptureFixture) -> None:
    assert cli.main(["attack", *QUICK, "--json"]) == 0
    out = capsys.readouterr().out
    result = json.loads(out)
    assert out.count("\n") == 1
    wanted = (
        "method dataset network epochs samples batch_size steps seed psnr ssim l_sim alpha "
        "seconds device"
    )
    assert set(wanted.split()) <= set(result)
    assert result["method"] == "sme"
    assert result["steps"] == 8


def test_attack_writes_everything(saved: Path) -> None:
    names = {"w0.safetensors", "wT.safetensors", "images.safetensors", "images.png", "result.json"}
    assert {f.name for f in saved.iterdir()} == names
    assert not list(saved.parent.glob(".smelib-*")), "no scratch folder is left"


@pytest.mark.parametrize("labels", ["result", "recovered"])
def test_audit_reconstructs_what_the_attack_did(saved: Path, tmp_path: Path, labels: str) -> None:
    truth = json.loads((saved / "result.json").read_text())["labels"]
    given = ",".join(map(str, truth)) if labels == "result" else "recovered"
    code = cli.main([*audit_args(saved, labels=given), "--out", str(tmp_path / "audit")])
    assert code == 0
    ours, theirs = (load_file(f / "images.safetensors") for f in (tmp_path / "audit", saved))
    assert ours["labels"].tolist() == theirs["labels"].tolist()
    # The notes in the file tell the normalisation; the better of two starts is kept.
    second = smelib.attacks.sme(
        smelib.models.lenet((1, 28, 28), 10),
        smelib.Update(*(load_file(saved / f"{w}.safetensors") for w in ("w0", "wT")), 2),
        theirs["labels"],
        preset="fast",
        steps=8,
        seed=1,
    )
    assert any(torch.equal(ours["images"], found) for found in (theirs["images"], second.images))


def test_audit_with_dlfa_needs_and_uses_the_protocol(
    saved: Path, capsys: pytest.CaptureFixture
) -> None:
    """The client of `saved` took two epochs of one batch at 0.004."""
    known = {"method": "dlfa", "epochs": "2", "batch-size": "2", "lr": "0.004"}
    assert cli.main([*audit_args(saved, **known), "--json"]) == 0
    right = json.loads(capsys.readouterr().out)
    assert (right["method"], right["steps"], right["alpha"]) == ("dlfa", 8, None)
    assert cli.main([*audit_args(saved, **{**known, "lr": "0.4"}), "--json"]) == 0
    wrong = json.loads(capsys.readouterr().out)
    assert right["l_sim"] != wrong["l_sim"], "the simulation trains at the rate it is told"


def refused(argv: list[str], capsys: pytest.CaptureFixture, tmp_path: Path) -> str:
    """Run a command that must fail; return its sentence."""
    out = tmp_path / "never"
    try:
        code = cli.main([*argv, "--out", str(out)])
    except SystemExit as stop:
        code = stop.code
    caught = capsys.readouterr()
    assert code == 2
    assert caught.out == ""
    assert caught.err.count("\n") == 1, caught.err
    assert caught.err.startswith("smelib: ")
    assert "Traceback" not in caught.err
    assert not out.exists()
    assert not list(tmp_path.glob(".smelib-*"))
    return caught.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--method", "smee"], "did you mean 'sme'"),
        (["--network", "cnnn"], "did you mean 'cnn'"),
        (["--dataset", "mnits"], "did you mean 'mnist'"),
        (["--init", "xavier"], "choose one of torch, lecun"),
        (["--samples", "0"], "at least 1"),
        (["--epochs", "0"], "epochs is 0"),
        (["--epochs", "ten"], "'ten' is not a whole number"),
        (["--lr", "-1"], "positive"),
        (["--lr", "nan"], "not a number"),
        (["--steps", "0"], "at least one"),
        (["--preset", "fats"], "did you mean 'fast'"),
        (["--restarts", "0"], "at least one"),
        (["--labels", "1,2"], "10 integer labels"),
        (["--labels", "some"], "a list like 3,1,4"),
        (["--samples", "2", "--labels", "1,10"], "label 10 is out of range"),
        (["--samples", "2", "--labels", "1,-1"], "label -1 is out of range"),
        (["--dataset", "femnist", "--data-root", "/no/such/folder"], "does not exist"),
        (["--device", "cuda:77"], "cannot be used"),
        (["--method", "dlg"], "single step"),
        (["--methd", "ig"], "unrecognized arguments"),
        (["--defence", "nois:0.1"], "did you mean 'noise'"),
        (["--defence", "noise"], "write a number after it, like noise:0.1"),
        (["--defence", "clip:"], "'' is not a number"),
        (["--defence", "clip:0.1,topk:lots"], "--defence topk:lots: 'lots' is not a number"),
        (["--defence", "quantise:2.5"], "'2.5' is not a whole number"),
        (["--defence", "clip:-1"], "--defence clip:-1: the norm to clip to is -1.0"),
        (["--defence", "topk:2"], "at most 1"),
        (["--defence", "noise:nan"], "finite"),
        (["--defence", "sign:1"], "sign has no number"),
        (["--defence", ""], "there is no defence ''"),
    ],
)
def test_attack_refuses(
    words: list[str], message: str, capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    assert message in refused(["attack", *words], capsys, tmp_path)


def test_a_defence_changes_what_is_sent_and_is_written_down(tmp_path: Path) -> None:
    """Clipped first and quantised then, as typed; the client's training is the same."""
    sent = {}
    for words in ("none", "clip:0.001,quantise:2", "quantise:2,clip:0.001"):
        out = tmp_path / words.replace(":", "-")
        assert cli.main(["attack", *QUICK, "--defence", words, "--out", str(out)]) == 0
        assert json.loads((out / "result.json").read_text())["defence"] == words
        before, after = (load_file(out / f"{w}.safetensors") for w in ("w0", "wT"))
        sent[words] = torch.cat([(after[k] - v).flatten() for k, v in before.items()])
    plain, first, last = sent.values()
    assert float(plain.norm()) > 0.002
    assert float(last.norm()) == pytest.approx(0.001, rel=0.01)
    assert float(first.norm()) > 0.0011, "the quantiser's noise comes after the clipping"


def test_no_command(capsys: pytest.CaptureFixture) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main([])
    assert capsys.readouterr().err.startswith("smelib: ")


def test_femnist_without_a_root(
    capsys: pytest.CaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SMELIB_DATA", raising=False)
    assert "Three ways" in refused(["attack", "--dataset", "femnist"], capsys, tmp_path)


def test_npz_with_objects_is_refused(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple:
            return (Path.touch, (tmp_path / "executed",))

    held = np.array([Trap()], dtype=object)
    np.savez(tmp_path / "femnist.npz", images=held, labels=np.zeros(1, int))
    argv = ["attack", "--dataset", "femnist", "--data-root", str(tmp_path)]
    assert "never unpickled" in refused(argv, capsys, tmp_path)
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"samples": "0"}, "at least 1"),
        ({"network": "mlp"}, "is it another network"),
        ({"classes": "11"}, "shape"),
        ({"dataset-shape": "28x28"}, "like 1x28x28"),
        ({"dataset-shape": "2x28x28"}, "mean= and std="),
        ({"labels": "1,12"}, "out of range"),
        ({"before": "missing.safetensors"}, "no such file"),
        ({"method": "dlfa"}, "add --epochs"),
        ({"epochs": "2"}, "together"),
    ],
)
def test_audit_refuses(
    saved: Path, changes: dict, message: str, capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    assert message in refused(audit_args(saved, **changes), capsys, tmp_path)


def damaged(saved: Path, tmp_path: Path, kind: str) -> str:
    file = tmp_path / "bad.safetensors"
    whole = load_file(saved / "wT.safetensors")
    if kind == "truncated":
        file.write_bytes((saved / "wT.safetensors").read_bytes()[:-100])
    elif kind == "empty":
        file.write_bytes(b"")
    elif kind == "nan":
        save_file({**whole, "0.bias": torch.full((6,), float("nan"))}, file)
    elif kind == "shape":
        save_file({**whole, "0.bias": torch.zeros(7)}, file)
    elif kind == "name":
        save_file({**whole, "extra": torch.zeros(7)}, file)
    else:
        save_file(load_file(saved / "w0.safetensors"), file)
    return str(file)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("truncated", "not a whole safetensors file"),
        ("empty", "not a whole safetensors file"),
        ("nan", "NaN or infinite"),
        ("shape", "has shape"),
        ("name", "do not name the same parameters"),
        ("equal", "are equal"),
    ],
)
def test_audit_refuses_files(
    saved: Path, kind: str, message: str, capsys: pytest.CaptureFixture, tmp_path: Path
) -> None:
    argv = audit_args(saved, after=damaged(saved, tmp_path, kind))
    assert message in refused(argv, capsys, tmp_path)


@pytest.mark.parametrize("there", [False, True])
def test_ctrl_c_while_files_are_moved_is_too_late(
    capsys: pytest.CaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    """All of them arrive, the result is said, and who called hears Ctrl-C again."""
    out = tmp_path / "out"
    if there:  # then the files are moved one by one
        out.mkdir()
    replace, before = os.replace, signal.getsignal(signal.SIGINT)

    def hit(*places: Path) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        replace(*places)

    monkeypatch.setattr("os.replace", hit)
    assert cli.main(["attack", *QUICK, "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 8
    assert {f.name for f in out.iterdir()} == set(cli.files.FILES)
    assert signal.getsignal(signal.SIGINT) is before


def test_out_that_is_a_file(capsys: pytest.CaptureFixture, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("keep me")
    assert cli.main(["attack", *QUICK, "--out", str(file)]) == 2
    assert "name a folder" in capsys.readouterr().err
    assert file.read_text() == "keep me"


def test_notes_in_a_file_are_never_code(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    """A file may say which of our networks it holds, and nothing that would be imported."""
    weights = load_file(saved / "w0.safetensors")
    for number, bad in enumerate(
        (
            {"network": "os:system"},
            {"network": "evil.pt2"},
            {"classes": "x"},
            {"classes": "1e9"},
            {"shape": "a"},
            {"mean": "1,,2"},
        )
    ):
        notes = {"network": "lenet", "shape": "1x28x28", "classes": "10", **bad}
        file = tmp_path / f"{number}.safetensors"
        save_file(weights, file, metadata=notes)
        argv = ["audit", "--before", str(file), "--after", str(saved / "wT.safetensors")]
        code = cli.main([*argv, "--samples", "2", "--steps", "1", "--normalisation", "raw"])
        caught = capsys.readouterr()
        assert code in (0, 2)
        assert "Traceback" not in caught.err
        assert "os:system" not in caught.err + caught.out
        assert "evil" not in caught.err + caught.out
