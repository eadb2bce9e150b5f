"""The repository's address stands in one place, and everything else follows it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book"))
import repository  # noqa: E402

FORK = "https://github.com/some-class/their-fork"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    names = ("_config.yml", "_toc.yml", "README.md", "pyproject.toml", "smelib/version.py")
    for name in (*names, "book/scoreboard.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for folder in ("notebooks", "assignments/release"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def texts(root: Path) -> dict[str, str]:
    files = [p for p in root.rglob("*") if p.is_file()]
    return {str(p.relative_to(root)): p.read_text(encoding="utf-8") for p in files}


def test_everything_agrees_with_the_configuration() -> None:
    for path, text in repository.wanted(ROOT).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run `make repository`"


def test_the_address_stands_only_where_it_is_rewritten() -> None:
    """And no link to Colab, no git address, stands anywhere else."""
    follow = {*repository.wanted(ROOT), ROOT / "_config.yml", Path(__file__)}
    owner_and_name = repository.address(ROOT).split("/", 3)[3]
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git clone, so nothing says which files are ours")
    for name in listed.stdout.decode().split("\0")[:-1]:
        path = ROOT / name
        if (
            path.suffix in (".png", ".safetensors", ".ttf", ".woff2")
            or not path.is_file()
            or path in follow
        ):
            continue
        text = path.read_text(encoding="utf-8")
        for word in (owner_and_name, "colab.research.google.com/github/", "git+https://"):
            makes_it = path == ROOT / "book" / "repository.py" and word != owner_and_name
            assert word not in text or makes_it, f"{name} has {word}, and no command rewrites it"


def test_a_fork_takes_one_command(copy: Path) -> None:
    old = repository.address(copy)
    before = texts(copy)
    assert repository.main([FORK + ".git"], copy) == 0
    after = texts(copy)
    assert repository.address(copy) == FORK
    for name, text in after.items():
        assert old.split("/", 3)[3] not in text, name
        assert text.count("\n") == before[name].count("\n"), f"{name} changed elsewhere too"
    repository.main([old], copy)
    assert texts(copy) == before, "there and back again changes nothing"


@pytest.mark.parametrize("url", ["github.com/a/b", "https://github.com/alone", "git@x:a/b", "a b"])
def test_a_wrong_address_changes_nothing(
    copy: Path, url: str, capsys: pytest.CaptureFixture
) -> None:
    before = texts(copy)
    assert repository.main([url], copy) == 2
    assert "not a repository's address" in capsys.readouterr().err
    assert texts(copy) == before
