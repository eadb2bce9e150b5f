"""What `make publish-check` says of a copy that is ready, and of one that is not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book"))
import publish_check  # noqa: E402
import repository  # noqa: E402

FORK = "https://github.com/some-class/their-fork"
FILES = ("_config.yml", "_toc.yml", "CHANGELOG.md", *publish_check.SOURCES)
pytestmark = pytest.mark.slow  # a repository of git's for every test
FAST = [look for look in publish_check.CHECKS if look is not publish_check.package]


def git(root: Path, *words: str) -> None:
    who = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.org"]
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fork with its address, its remote, its notes and its tag."""
    root = tmp_path_factory.mktemp("fork")
    unwanted = shutil.ignore_patterns("__pycache__", ".claims", ".ipynb_checkpoints")
    for name in (*FILES, "notebooks", ".github"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name, ignore=unwanted)
        else:
            shutil.copy(ROOT / name, root / name)
    (root / ".gitignore").write_text("_build/\n")
    (root / "CHANGELOG.md").write_text(
        f"# Changelog\n\n## [{publish_check.version(root)}]\n\n- It.\n"
    )
    assert repository.main([FORK], root) == 0
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "remote", "add", "origin", "git@github.com:some-class/their-fork.git")
    commit(root)
    git(root, "tag", f"v{publish_check.version(root)}")
    return root


def commit(root: Path) -> None:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "All of it")


@pytest.fixture
def fork(ready: Path, tmp_path: Path) -> Path:
    return shutil.copytree(ready, tmp_path / "fork")


def missing(root: Path) -> list[str]:
    lines = [line for look in FAST for line in look(root)]
    assert {line.state for line in lines} <= {"ok", "missing", "to do"}
    return [line.sentence for line in lines if line.state == "missing"]


def test_a_fork_that_is_ready_lacks_nothing(fork: Path, capsys: pytest.CaptureFixture) -> None:
    pytest.importorskip("build", reason="run `make setup`: requirements.txt has build")
    assert publish_check.main(fork) == 0
    said = capsys.readouterr().out
    assert "\nmissing" not in said
    assert ".whl and smelib-" in said
    assert said.count("\nto do ") == 5, "what only its owner can do"
    (fork / "LICENSE").unlink()
    assert publish_check.main(fork) == 1
    assert "\nmissing  wheel and source archive: " in capsys.readouterr().out


def test_the_quick_lines_of_a_fork_that_is_ready(fork: Path) -> None:
    assert missing(fork) == []


def replace(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        text = (root / name).read_text(encoding="utf-8")
        assert old in text
        (root / name).write_text(text.replace(old, new), encoding="utf-8")
        commit(root)

    return change


def spoil(change: Callable[[nbformat.NotebookNode], object]) -> Callable[[Path], None]:
    def rewrite(root: Path) -> None:
        path = root / "notebooks" / "07_sme.ipynb"
        notebook = nbformat.read(path, as_version=4)
        change([c for c in notebook.cells if c.cell_type == "code"])
        nbformat.write(notebook, path)
        commit(root)

    return rewrite


def back_to_the_first_address(root: Path) -> None:
    came_with = "https://github.com/" + "/".join(publish_check.CAME_WITH)
    assert repository.main([came_with], root) == 0
    git(root, "remote", "set-url", "origin", came_with)
    commit(root)


def add_file(root: Path) -> None:
    (root / "new.txt").touch()


def remove_notebook(root: Path) -> None:
    (root / "notebooks" / "07_sme.ipynb").unlink()
    commit(root)


def remove_workflow(root: Path) -> None:
    (root / ".github" / "workflows" / "publish.yml").unlink()
    commit(root)


FAULTS = {
    "the first address": (back_to_the_first_address, "the address that the book came with"),
    "another address": (replace("pyproject.toml", FORK, FORK + "s"), "pyproject.toml: another"),
    "another remote": (lambda r: git(r, "remote", "rename", "origin", "x"), None),
    "no remote": (lambda r: git(r, "remote", "remove", "origin"), "no git remote"),
    "another branch": (replace("_config.yml", "branch: main", "branch: old"), "a branch old"),
    "a new file": (add_file, "not everything is committed"),
    "no version": (replace("CHANGELOG.md", "## [", "## v["), "has no version"),
    "changes wait": (
        replace("CHANGELOG.md", "## [", "## [Unreleased]\n\n- More.\n\n## ["),
        "under [Unreleased]",
    ),
    "no tag": (lambda r: git(r, "tag", "--delete", f"v{publish_check.version(r)}"), "no tag v"),
    "a lost notebook": (remove_notebook, "that the repository has not: 07_sme.ipynb"),
    "not executed": (
        spoil(lambda cells: cells[3].update(execution_count=None)),
        "07_sme.ipynb is not executed",
    ),
    "an error": (
        spoil(
            lambda cells: cells[2].update(
                outputs=[nbformat.v4.new_output("error", ename="E", evalue="", traceback=[])]
            )
        ),
        "07_sme.ipynb has an error",
    ),
    "no outputs": (
        spoil(lambda cells: [c.update(outputs=[]) for c in cells]),
        "07_sme.ipynb has no outputs",
    ),
    "a wrong link": (
        replace("README.md", "blob/main/notebooks/07", "blob/x/notebooks/07"),
        "links",
    ),
    "a wrong setup cell": (
        spoil(lambda cells: cells[0].update(source=cells[0].source.replace("git+", "hg+"))),
        "07_sme.ipynb: the setup cell installs from elsewhere",
    ),
    "no workflow": (remove_workflow, "does not publish the book"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_has_its_line(fork: Path, name: str) -> None:
    damage, sentence = FAULTS[name]
    damage(fork)
    found = missing(fork)
    assert any(sentence in line for line in found) if sentence else not found, found


def test_a_folder_without_git_is_not_an_accident(fork: Path) -> None:
    shutil.rmtree(fork / ".git")
    assert any("no git remote" in line for line in missing(fork))
