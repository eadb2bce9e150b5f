"""What has to be done to put the book, the package and the Colab links online: line by line.

    python book/publish_check.py

Each line is `ok`, `missing` (found here, to be put right here) or `to do` (by hand, online: nothing
here can tell). The exit code is 1 where something is missing. It uses no network. The archives that
it checks stay in `_build/dist`.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import nbformat
import repository
import yaml

CAME_WITH = ("sme-book", "sme-book")  # owner and name of the address before anybody set one
DIST = "_build/dist"
SOURCES = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "smelib", "results")


class Line(NamedTuple):
    """One thing that was looked at: how it stands, and a sentence."""

    state: str
    sentence: str


def verdict(good: object, sentence: str, otherwise: str) -> Line:
    """`ok` and the first sentence, or `missing` and the second."""
    return Line("ok", sentence) if good else Line("missing", otherwise)


def git(root: Path, *words: str) -> str:
    """What git says, or nothing where it fails or is not there."""
    try:
        done = subprocess.run(
            ["git", *words], cwd=root, capture_output=True, text=True, check=False
        )
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def version(root: Path) -> str:
    """The package's version."""
    text = (root / "smelib" / "version.py").read_text(encoding="utf-8")
    return re.search(r'__version__ = "([^"]+)"', text)[1]


def build(root: Path, out: Path) -> list[Path]:
    """The source archive, and the wheel made from it, in `out`; a failure is a RuntimeError.

    Built from a copy: what an earlier build left behind in the clone would be packed too.
    """
    with tempfile.TemporaryDirectory() as scratch:
        for name in SOURCES:
            unwanted = shutil.ignore_patterns("__pycache__", ".*")
            place = Path(scratch) / name
            if (root / name).is_dir():
                shutil.copytree(root / name, place, ignore=unwanted)
            else:
                shutil.copy(root / name, place)
        _tool("build", "--no-isolation", "--outdir", str(out), scratch)
    return sorted(out.iterdir())


def check(archives: list[Path]) -> None:
    """Twine's check of archives; a failure is a RuntimeError."""
    _tool("twine", "check", "--strict", *map(str, archives))


def _tool(name: str, *words: str) -> None:
    if importlib.util.find_spec(name) is None:
        raise RuntimeError(f"{name} is not installed; run `make setup`")
    command = [sys.executable, "-m", name, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: {(done.stdout + done.stderr).strip().splitlines()[-1]}")


def addresses(root: Path) -> Iterator[Line]:
    """One address, which is yours, and everything follows it."""
    url = repository.address(root)
    yield verdict(
        tuple(url.split("/")[3:]) != CAME_WITH,
        f"the repository's address is {url}",
        f"{url} is the address that the book came with; `make repository URL=https://…` sets yours",
    )
    whole = all(p.is_file() for p in repository.notebooks(root))  # or else another line says so
    wanted = repository.wanted(root) if whole else {}
    old = [p.name for p, text in wanted.items() if p.read_text("utf-8") != text]
    yield verdict(
        not old,
        "the README, the package and every setup cell follow that address",
        f"{', '.join(old)}: another address than _config.yml's; run `make repository`",
    )
    given = {line.split()[1] for line in git(root, "remote", "-v").splitlines()}
    remotes = {re.sub(r"^(ssh://)?git@([^:/]+)[:/]", r"https://\2/", r) for r in given}
    yield verdict(
        url in {r.removesuffix("/").removesuffix(".git") for r in remotes},
        "a git remote has that address",
        f"no git remote has that address; `git remote add origin {url}`",
    )


def release(root: Path) -> Iterator[Line]:
    """The branch is whole, and the version has its notes and its tag."""
    branch = yaml.safe_load((root / "_config.yml").read_text("utf-8"))["repository"]["branch"]
    yield verdict(
        git(root, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}"),
        f"there is a branch {branch}, to which the links point",
        f"the links point to a branch {branch}, and there is none here",
    )
    yield verdict(
        git(root, "rev-parse", "HEAD") and not git(root, "status", "--porcelain"),
        "everything is committed",
        "not everything is committed; `git status` says what",
    )
    now, notes = version(root), (root / "CHANGELOG.md").read_text("utf-8")
    yield verdict(
        f"\n## [{now}]" in notes,
        f"CHANGELOG.md has version {now}",
        f"CHANGELOG.md has no version {now}",
    )
    waiting = re.search(r"^## \[Unreleased\]\s*\n(.*?)(?=^## |\Z)", notes, re.DOTALL | re.MULTILINE)
    yield verdict(
        not waiting or not waiting[1].strip(),
        "nothing in CHANGELOG.md waits for a version",
        "CHANGELOG.md has changes under [Unreleased]; give them a version, there and in "
        "smelib/version.py",
    )
    yield verdict(
        git(root, "tag", "--list", f"v{now}"),
        f"there is a tag v{now}",
        f"there is no tag v{now}; `git tag v{now}`",
    )


def package(root: Path) -> Iterator[Line]:
    """Wheel and source archive can be made, are well formed and carry the numbers."""
    out = root / DIST
    shutil.rmtree(out, ignore_errors=True)
    try:
        made = build(root, out)
        check(made)
    except (RuntimeError, OSError) as error:
        yield Line("missing", f"wheel and source archive: {error}")
        return
    yield Line("ok", f"{' and '.join(p.name for p in made)} are in {DIST} and pass twine's check")
    wheel = next(p for p in made if p.suffix == ".whl")
    packed = set(zipfile.ZipFile(wheel).namelist())
    measured = numbers(root)
    lost = [name for name in measured if f"smelib/results/{name}" not in packed]
    yield verdict(
        measured and not lost,
        f"the wheel carries the {len(measured)} files of measured numbers that notebooks read",
        f"the wheel lacks {', '.join(lost) or 'all measured numbers'}; see setup.py",
    )


def numbers(root: Path) -> list[str]:
    """The files of measured numbers, by their paths under `results/`."""
    found = [p for p in (root / "results").rglob("*") if p.suffix in (".json", ".csv")]
    return sorted(p.relative_to(root / "results").as_posix() for p in found)


def stored(path: Path) -> str:
    """What is wrong with a notebook's stored outputs; nothing if they are whole."""
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    if [c.execution_count for c in cells] != list(range(1, len(cells) + 1)):
        return "is not executed from top to bottom"
    if any(o.output_type == "error" for c in cells for o in c.outputs):
        return "has an error among its outputs"
    return "" if any(c.outputs for c in cells) else "has no outputs"


def notebooks(root: Path) -> Iterator[Line]:
    """Every notebook is there, whole, linked, and installs the right thing."""
    listed = repository.notebooks(root)
    lost = [p.name for p in listed if not p.is_file()]
    tracked = git(root, "ls-files", "notebooks").splitlines()
    lost += [p.name for p in listed if tracked and p.relative_to(root).as_posix() not in tracked]
    yield verdict(
        not lost,
        f"the {len(listed)} notebooks of _toc.yml are in the repository",
        f"_toc.yml has notebooks that the repository has not: {', '.join(dict.fromkeys(lost))}",
    )
    here = [p for p in listed if p.is_file()]
    wrong = [f"{p.name} {reason}" for p in here if (reason := stored(p))]
    yield verdict(
        not wrong,
        "they are stored with their outputs, and none is an error",
        f"{'; '.join(wrong)}; run `make notebooks`",
    )
    readme = (root / "README.md").read_text("utf-8")
    links = set(re.findall(r"https://colab\.research\.google\.com/[^\s)\]]+", readme))
    wanted = {repository.colab(root, p) for p in here}
    yield verdict(
        links == wanted,
        "the README's links to Colab open exactly these, in that repository and branch",
        f"{len(links ^ wanted)} links to Colab are wrong or missing; run `make repository`",
    )
    line = f"%pip install -q git+{repository.address(root)}\n"
    other = [p.name for p in here if line not in _setup(p)]
    yield verdict(
        not other,
        "their setup cells install smelib from that repository",
        f"{', '.join(other)}: the setup cell installs from elsewhere; run `make repository`",
    )


def _setup(path: Path) -> str:
    cells = nbformat.read(path, as_version=4).cells
    return next((c.source for c in cells if c.cell_type == "code"), "")


def online(root: Path) -> Iterator[Line]:
    """The workflow that publishes, and what only its owner can do."""
    branch = yaml.safe_load((root / "_config.yml").read_text("utf-8"))["repository"]["branch"]
    file = root / ".github" / "workflows" / "publish.yml"
    text = file.read_text("utf-8") if file.is_file() else ""
    works = all(w in text for w in ("make book", "deploy-pages", "_build/html", f"[{branch}]"))
    yield verdict(
        works,
        f"a push to {branch} renders the book and publishes it (publish.yml)",
        f".github/workflows/publish.yml does not publish the book on a push to {branch}",
    )
    yield from (
        Line("to do", "choose GitHub Actions as the source under Settings, Pages, once"),
        Line("to do", f"push: `git push origin {branch} v{version(root)}`"),
        Line("to do", "open one of the README's links to Colab and run its first two cells"),
        Line("to do", "look whether the name smelib is yours or free on the package index"),
        Line("to do", f"upload: `twine upload {DIST}/*`; the setup cells do not wait for it"),
    )


CHECKS: tuple[Callable[[Path], Iterator[Line]], ...] = (
    addresses,
    release,
    notebooks,
    package,
    online,
)


def main(root: Path) -> int:
    """Print all lines; 1 if something is missing."""
    lines = [line for look in CHECKS for line in look(root)]
    for line in lines:
        print(f"{line.state:8} {line.sentence}")
    count = {state: sum(x.state == state for x in lines) for state in ("ok", "missing", "to do")}
    print(f"{count['ok']} ok, {count['missing']} missing, {count['to do']} to do by hand")
    return int(count["missing"] > 0)


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parents[1]))
