"""A terminal's bad days: full disks, closed pipes, Ctrl-C, a busy machine. Nothing is lost."""

from __future__ import annotations

import errno
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import fuzz
import pytest
import torch

import smelib
from smelib import cli, devices
from smelib.cli import attack, files, inverting
from smelib.types import Stop

QUICK = ["attack", "--samples", "2", "--epochs", "1", "--steps", "3", "--network", "lenet"]
FRESH = {k: v for k, v in os.environ.items() if k not in ("SMELIB_DATA", "PYTHONUNBUFFERED")}


def everything(folder: Path) -> set[str]:
    return {str(f.relative_to(folder)) for f in folder.rglob("*")}


def no_space(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# --out


@pytest.fixture
def no_attack(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attack that must not start."""

    def never(*_: object) -> None:
        raise AssertionError("the attack ran before --out was tried")

    monkeypatch.setattr(attack, "invert", never)


@pytest.mark.usefixtures("no_attack")
@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOSPC])
@pytest.mark.parametrize("there", [True, False])
def test_out_is_tried_before_the_attack(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
    number: int,
    there: bool,
) -> None:
    """Root may write everywhere, so the refusal is the system's answer, put in its mouth."""
    out = tmp_path / "a" / "b"
    if there:
        out.mkdir(parents=True)
    before = everything(tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.tempfile, "mkdtemp", refuse)
    assert cli.main([*QUICK, "--out", str(out)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("smelib: --out")
    assert os.strerror(number) in said.err
    assert everything(tmp_path) == before


@pytest.mark.usefixtures("no_attack")
def test_a_disk_too_small_for_the_weights_is_noticed_before_the_attack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    full = type("Usage", (), {"free": 2**17})
    monkeypatch.setattr(files.shutil, "disk_usage", lambda place: full)
    assert cli.main([*QUICK, "--out", str(tmp_path / "out")]) == 2
    assert "0.1 are free" in capsys.readouterr().err
    assert everything(tmp_path) == set()


def test_trying_out_leaves_nothing_behind(tmp_path: Path) -> None:
    files.room_for(str(tmp_path / "new" / "er"))
    (tmp_path / "old").mkdir()
    files.room_for(str(tmp_path / "old"))
    assert everything(tmp_path) == {"old"}


@pytest.mark.parametrize("fails", ["weights", "pictures", "result", "moving"])
@pytest.mark.parametrize("there", [True, False])
def test_a_disk_that_fills_up_costs_the_files_and_not_the_result(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
    fails: str,
    there: bool,
) -> None:
    out = tmp_path / "deep" / "out"
    if there:
        out.mkdir(parents=True)
        (out / "result.json").write_text("of yesterday")
    before = everything(tmp_path)

    def unwritable(*_: object, **__: object) -> None:
        raise files.SafetensorError("I/O error: No space left on device (os error 28)")

    if fails == "weights":
        monkeypatch.setattr(files, "save_file", unwritable)
    elif fails == "pictures":
        monkeypatch.setattr(files.viz, "save_grid", no_space)
    elif fails == "result":
        monkeypatch.setattr(Path, "write_text", no_space)
    else:
        monkeypatch.setattr(files.os, "replace", no_space)
    assert cli.main([*QUICK, "--out", str(out), "--json"]) == 2
    said = capsys.readouterr()
    assert json.loads(said.out)["psnr"] > 0, "what was measured is said all the same"
    assert said.err.startswith("smelib: --out")
    assert said.err.count("\n") == 1
    assert "No space left on device" in said.err
    assert everything(tmp_path) == before


def test_an_existing_folder_keeps_its_other_files(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    assert cli.main([*QUICK, "--out", str(tmp_path)]) == 0
    assert everything(tmp_path) == {"mine.txt", *files.FILES}


# Ctrl-C


def interrupted_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the given step of the loop."""
    whole = smelib.solver._Loop.step

    def one(self: smelib.solver._Loop) -> None:
        if self.done == step:
            raise KeyboardInterrupt
        whole(self)

    monkeypatch.setattr(smelib.solver._Loop, "step", one)


def test_an_interrupted_attack_says_and_writes_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    interrupted_at(2, monkeypatch)
    out = tmp_path / "out"
    assert cli.main([*QUICK, "--out", str(out)]) == 130
    said = capsys.readouterr()
    assert said.err == "smelib: interrupted after 2 steps.\n"
    assert "interrupted after 2 steps" in said.out
    result = json.loads((out / "result.json").read_text())
    assert (result["stopped"], result["steps"]) == (Stop.INTERRUPTED, 2)
    assert everything(out) == set(files.FILES)


def test_interrupted_in_the_first_step_there_is_nothing_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    interrupted_at(0, monkeypatch)
    assert cli.main([*QUICK, "--out", str(tmp_path / "out")]) == 130
    said = capsys.readouterr()
    assert said.err == "smelib: interrupted before anything was found; nothing was written.\n"
    assert said.out == ""
    assert everything(tmp_path) == set()


# A light start


def fresh(code: str) -> str:
    """What a new interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=FRESH
    )
    return done.stdout.strip()


@pytest.mark.slow
def test_importing_smelib_imports_no_torch() -> None:
    heavy = "sorted({'torch', 'numpy', 'scipy', 'matplotlib'} & set(sys.modules))"
    assert fresh(f"import smelib, sys; print({heavy})") == "[]"
    code = "import sys; from smelib import cli\ntry: cli.main(['--version'])\nexcept SystemExit: "
    assert fresh(f"{code}print({heavy})").endswith("[]")


@pytest.mark.slow
def test_every_name_is_there_when_it_is_asked_for() -> None:
    code = "import smelib\nfor name in smelib.__all__: assert name in dir(smelib), name\n"
    code += "from smelib import *\nprint(all(n in globals() for n in smelib.__all__))"
    assert fresh(code) == "True"
    assert fresh("import smelib; print(smelib.Client.__module__)") == "smelib.data.clients"
    assert fresh("from smelib import attacks; print(attacks.sme.__name__)") == "sme"
    assert fresh("import smelib; print(smelib.devices.__name__)") == "smelib.devices"
    assert fresh("import smelib; print(hasattr(smelib, 'atacks'))") == "False"


def test_names_are_the_same_things_wherever_they_come_from() -> None:
    assert smelib.Network is smelib.models.Network
    assert pickle.loads(pickle.dumps(smelib.Protocol(1, 2))) == smelib.Protocol(1, 2)
    assert pickle.loads(pickle.dumps(smelib.local_update)) is smelib.local_update
    with pytest.raises(AttributeError, match="no attribute 'sme'"):
        smelib.sme  # noqa: B018


# Threads


@pytest.mark.parametrize(
    ("cores", "load", "threads"),
    [
        (8, 0.0, 8),
        (8, 0.4, 8),
        (8, 3.2, 5),
        (8, 7.9, 1),
        (2, 0.3, 2),
        (2, 1.0, 1),
        (2, 3.0, 1),
        (2, 13.0, 1),
        (1, 0.0, 1),
        (1, 9.0, 1),
    ],
)
def test_threads_are_the_cores_that_are_free(cores: int, load: float, threads: int) -> None:
    assert devices.free_threads(cores, load) == threads


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of threads that were set, on a machine of eight cores, five of them free."""
    found: list[int] = []
    monkeypatch.setattr(devices.torch, "set_num_threads", found.append)
    monkeypatch.setattr(devices.torch, "get_num_threads", lambda: 8)
    monkeypatch.setattr(devices, "cores", lambda: 8)
    monkeypatch.setattr(devices.os, "getloadavg", lambda: (3.1, 0.0, 0.0))
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    return found


def test_a_busy_machine_gets_fewer_threads(asked: list[int]) -> None:
    devices.use_free_threads()
    assert asked == [5]


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "MKL_NUM_THREADS"])
def test_threads_that_somebody_chose_stay(
    asked: list[int], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "4")
    devices.use_free_threads()
    assert asked == []


def test_threads_are_said(capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inverting.torch, "get_num_threads", lambda: 1)
    assert cli.main(QUICK) == 0
    assert "on cpu, 1 thread\n" in capsys.readouterr().out
    monkeypatch.setattr(inverting.torch, "get_num_threads", lambda: 2)
    assert cli.main(QUICK) == 0
    assert "on cpu, 2 threads\n" in capsys.readouterr().out


def test_only_the_command_sets_threads() -> None:
    """Neither importing the library nor calling an attack does."""
    before = torch.get_num_threads()
    client = smelib.data.client("mnist", 1)
    model = smelib.models.lenet(client.shape, client.classes)
    update = smelib.local_update(model, client, smelib.Protocol(1, 1))
    smelib.attacks.ig(model, update, client.labels, steps=1)
    assert torch.get_num_threads() == before


# Networks that do not fit leave no trace


def test_trying_a_network_draws_no_number_and_takes_no_memory() -> None:
    state = torch.random.get_rng_state()
    with pytest.raises(smelib.InputError, match="GB"):
        smelib.models.mlp((1, 28, 28), 10**12)
    smelib.models.cnn((1, 28, 28), 10)
    assert torch.equal(torch.random.get_rng_state(), state)


# Damaged files


@pytest.mark.slow
def test_five_seconds_of_damaged_files_give_data_or_a_sentence() -> None:
    """`python tests/fuzz.py --minutes 10` looks further."""
    tally = fuzz.fuzz(5)
    assert not fuzz.findings(tally)
    assert {name for name, _ in tally} == {"safetensors", "arrays", "pt", "npz", "LEAF", "audit"}
    assert {came for _, came in tally} == {"read", "sentence"}, "some can be read, some cannot"


@pytest.mark.parametrize("found", ["wrong", "slow", "large"])
def test_the_fuzz_run_notices(found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test of the test: a reader that raises something else, hangs, or fills the memory."""
    monkeypatch.setattr(fuzz, "SECONDS", 0.2 if found == "slow" else 30)
    monkeypatch.setattr(fuzz, "MEGABYTES", 100)
    kept = []

    def read(path: Path) -> None:
        if found == "wrong":
            raise KeyError("images")
        if found == "slow":
            time.sleep(3)
        kept.append(b"1" * (2**28 * (found == "large")))

    target = fuzz.Target(tmp_path / "file", lambda rng: b"abc", lambda raw, rng: raw, read)
    before = signal.signal(signal.SIGALRM, fuzz.ring)
    try:
        came, _ = fuzz.one(target, "0")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert came.startswith({"wrong": "KeyError", "slow": "HANG", "large": "MEMORY"}[found])
