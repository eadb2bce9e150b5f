"""A notebook that is opened alone, as on Colab: the device's scale, the wheel, and no clone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import reading
import torch
from stand_ins import noted, quick

import smelib
from smelib.reproduce import drive, plan
from smelib.reproduce.store import Ledger

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book"))
import publish_check  # noqa: E402

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SETUP = {"smelib": smelib, "torch": torch, "DEVICE": "cpu"}  # what a setup cell leaves behind
NUMBERS = publish_check.numbers(ROOT)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> object:
    """A way to pretend that torch has a device: all of it that `pick_device` looks at."""

    def pretend(kind: str) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: kind == "cuda")
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: kind == "mps")
        index = 0 if kind == "cuda" else None

        def empty(*_: int, device: str) -> SimpleNamespace:
            place = torch.device(device) if index is None else torch.device(device, index)
            return SimpleNamespace(device=place)

        monkeypatch.setattr(torch, "empty", empty)

    return pretend


@pytest.mark.parametrize(("kind", "scale"), [("cuda", "full"), ("mps", "quick"), ("cpu", "quick")])
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_the_device_decides_the_scale(path: Path, kind: str, scale: str, machine: object) -> None:
    machine(kind)
    assert str(smelib.pick_device()) == {"cuda": "cuda:0"}.get(kind, kind), "as torch says it"
    names: dict = {}
    exec(compile(reading.setup(path), path.name, "exec"), names)
    assert torch.device(names["DEVICE"]).type == kind
    assert names["SCALE"] == scale


def fresh(command: list[str], *, site: Path, cwd: Path) -> str:
    """What a command prints that finds the installed wheel before the clone."""
    environment = {**os.environ, "PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def python(code: str, *arguments: str, site: Path, cwd: Path) -> str:
    """What some code prints in an interpreter of its own."""
    return fresh([sys.executable, "-c", code, *arguments], site=site, cwd=cwd)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source archive and the wheel that was built from it."""
    pytest.importorskip("build", reason="run `make setup`: requirements.txt has build")
    out = tmp_path_factory.mktemp("dist")
    publish_check.build(ROOT, out)
    return out


def installed(out: Path, site: Path) -> Path:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-index", "--target", str(site), *map(str, out.glob("*.whl"))]
    subprocess.run(command, check=True, timeout=300)
    return site


@pytest.fixture(scope="module")
def site(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, installed into an empty folder."""
    return installed(built, tmp_path_factory.mktemp("wheel") / "site")


HIDE = """
import socket, sys
from pathlib import Path
sys.meta_path = [f for f in sys.meta_path if "__editable__" not in repr(f)]
sys.path = [p for p in sys.path if "__editable__" not in p]

def offline(*_, **__):
    raise OSError("there is no network in this test")

socket.socket.connect = socket.getaddrinfo = socket.create_connection = offline
import smelib
assert Path(smelib.__file__).is_relative_to(sys.argv[1]), smelib.__file__
"""
READ = (
    HIDE
    + """
import contextlib, io, json
from smelib.reproduce import published

read, told = published.results, {}
for file in sys.argv[2:]:
    name, seen = Path(file).stem, []
    published.results = lambda what, *at: seen.append(what) or read(what, *at)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(Path(file).read_text(), name, "exec"), {})
    told[name] = {what: read(what) for what in seen}
print(json.dumps(told))
"""
)


@pytest.mark.slow
def test_a_notebook_needs_neither_a_clone_nor_the_network(site: Path, tmp_path: Path) -> None:
    scripts = {path.stem: reading.script(path) for path in NOTEBOOKS}
    for path in NOTEBOOKS:
        whole = scripts[path.stem] or reading.setup(path)
        (tmp_path / f"{path.stem}.py").write_text(whole, encoding="utf-8")
    files = [f"{path.stem}.py" for path in NOTEBOOKS]
    told = json.loads(python(READ, str(site), *files, site=site, cwd=tmp_path))
    assert list(told) == [path.stem for path in NOTEBOOKS]
    readers = {name for name, script in scripts.items() if script}
    assert len(readers) >= 8
    for name, found in told.items():
        assert bool(found) == (name in readers), name
        for file, text in found.items():
            assert text == (ROOT / "results" / file).read_text(encoding="utf-8"), (name, file)


@pytest.mark.slow
def test_what_came_with_the_package_is_said_to_be_all(site: Path, tmp_path: Path) -> None:
    ask = HIDE + (
        "from smelib.reproduce import published\n"
        "try:\n    published.results('nothing.json')\n"
        "except smelib.InputError as error:\n    print(error)\n"
    )
    said = python(ask, str(site), site=site, cwd=tmp_path)
    assert "neither in a clone around here nor among the numbers" in said
    assert smelib.version.REPOSITORY in said


def absent() -> None:
    raise smelib.InputError("it is not here")


def cells_of(path: Path) -> list[str]:
    cells = nbformat.read(path, as_version=4).cells
    return [c.source for c in cells if c.cell_type == "code"][1:]


@pytest.mark.slow
def test_the_gpu_page_goes_on_after_a_disconnect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    """With a GPU's scale and stand-ins for attacks, in two clones that share a kept folder."""
    reproduce, gpu_jobs = drive.reproduce, plan.gpu_jobs
    monkeypatch.setattr(drive, "reproduce", partial(reproduce, runner=quick, workers=2))
    monkeypatch.setattr(smelib.data, "load", lambda name, **_: absent() if name == "femnist" else 0)
    source = "\n".join(cells_of(ROOT / "notebooks" / "00_run_everything_on_a_gpu.ipynb"))
    source = source.replace('KEEP = ""', f"KEEP = {str(tmp_path / 'kept')!r}")
    said = []
    for name, count in (("one", 13), ("two", None)):
        clone = tmp_path / name
        (clone / "results").mkdir(parents=True)
        (clone / "_toc.yml").touch()
        monkeypatch.chdir(clone)
        monkeypatch.setattr(plan, "gpu_jobs", lambda t, seeds, n=count: gpu_jobs(["main"])[:n])
        exec(compile(source, name, "exec"), SETUP | {"SCALE": "full"})
        said.append(capsys.readouterr().out)
    todo = [j for j in gpu_jobs(["main"]) if j.setting.dataset == "cifar100"]
    assert "kept from earlier runs: 0\n" in said[0]
    assert "femnist is left out: it is not here" in said[0]
    first = noted(tmp_path / "one" / "results")
    assert 0 < len(first) < len(todo)
    assert f"kept from earlier runs: {len(first)}\n" in said[1]
    assert sorted(first + noted(tmp_path / "two" / "results")) == sorted(j.key for j in todo)
    assert f"0 jobs run, {len(todo)} done before" in said[1]
    assert "git add results/main.csv\n" in said[1]
    kept = Ledger(tmp_path / "kept" / "main.csv").lines()
    assert kept == Ledger(tmp_path / "two" / "results" / "main.csv").lines()
    assert len(kept) == len(todo)


def inside(archive: Path) -> set[str]:
    if archive.suffix == ".whl":
        return set(zipfile.ZipFile(archive).namelist())
    with tarfile.open(archive) as opened:
        return {held.name.partition("/")[2] for held in opened if held.isfile()}


def packaged(files: Sequence[str], place: str) -> list[str]:
    return sorted(f.removeprefix(place) for f in files if f.startswith(place) and f != place)


@pytest.mark.slow
def test_the_wheel_and_the_source_archive_are_complete(built: Path) -> None:
    (wheel,), (source,) = built.glob("*.whl"), built.glob("*.tar.gz")
    assert packaged(inside(wheel), "smelib/results/") == NUMBERS
    assert packaged(inside(source), "results/") == NUMBERS
    code = [p for p in (ROOT / "smelib").rglob("*") if p.is_file() and p.suffix != ".pyc"]
    assert {p.relative_to(ROOT).as_posix() for p in code} <= inside(wheel)
    assert wheel.stat().st_size < 1_000_000, "the networks' weights stay in the repository"
    assert not [f for f in inside(wheel) if f.startswith(("tests/", "book/", "results/"))]


@pytest.mark.slow
def test_the_archives_pass_twine_s_check(built: Path) -> None:
    pytest.importorskip("twine", reason="run `make setup`: requirements.txt has twine")
    publish_check.check(sorted(built.iterdir()))
    with pytest.raises(RuntimeError, match="twine"):
        publish_check.check([ROOT / "README.md"])


@pytest.mark.slow
def test_the_installed_command_attacks(site: Path, tmp_path: Path) -> None:
    (command,) = (site / "bin").glob("smelib*")
    said = fresh([str(command), "--version"], site=site, cwd=tmp_path)
    assert said == f"smelib {smelib.__version__}\n"
    attack = HIDE + "from smelib.cli import main\nsys.exit(main(sys.argv[2:]))\n"
    words = ["attack", "--samples=1", "--epochs=1", "--steps=2", "--device=cpu", "--json"]
    found = json.loads(python(attack, str(site), *words, site=site, cwd=tmp_path))
    assert found["steps"] == 2
