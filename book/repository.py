"""Write the repository's address, which stands in `_config.yml`, wherever else it is needed.

    python book/repository.py [URL]

With a URL, `_config.yml` takes it first. Then follow the notebooks' setup cells, the assignments'
and their links to Colab, the package, its metadata, and the README's links to Colab.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat
import yaml

START, END = "<!-- chapters: written by make repository -->", "<!-- end of chapters -->"


def address(root: Path) -> str:
    """The address in `_config.yml`."""
    return yaml.safe_load((root / "_config.yml").read_text())["repository"]["url"]


def notebooks(root: Path) -> list[Path]:
    """All notebooks, in the order of `_toc.yml`."""
    toc = yaml.safe_load((root / "_toc.yml").read_text())
    files = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    return [root / f"{f}.ipynb" for f in files if f.startswith("notebooks/")]


def assignments(root: Path) -> list[Path]:
    """The students' versions of the assignments."""
    return sorted((root / "assignments" / "release").glob("*.ipynb"))


def number(path: Path) -> int:
    """A notebook's number: 0 for one that is a tool and not a chapter."""
    return int(path.stem.split("_")[0])


def chapters(root: Path) -> list[Path]:
    """The notebooks that are chapters of the book."""
    return [path for path in notebooks(root) if number(path)]


def question(path: Path) -> str:
    """What a notebook asks: its title."""
    return nbformat.read(path, as_version=4).cells[0].source.splitlines()[0].lstrip("# ")


def colab(root: Path, path: Path) -> str:
    """The address that opens a notebook on Colab."""
    branch = yaml.safe_load((root / "_config.yml").read_text())["repository"]["branch"]
    owner_and_name = address(root).split("/", 3)[3]
    name = path.relative_to(root).as_posix()
    return f"https://colab.research.google.com/github/{owner_and_name}/blob/{branch}/{name}"


def table(root: Path) -> str:
    """The README's list of notebooks, each with its link to Colab."""
    lines = ["| | question | run it |", "|---|---|---|"]
    for path in notebooks(root):
        name = path.relative_to(root).as_posix()
        link = f"[{question(path)}]({name})"
        lines.append(f"| {number(path) or ''} | {link} | [Colab]({colab(root, path)}) |")
    return "\n".join(lines)


def wanted(root: Path) -> dict[Path, str]:
    """Every file that holds the address, as it should read."""
    url, found = address(root), {}
    for path in notebooks(root) + assignments(root):
        notebook = nbformat.read(path, as_version=4)
        setup = next(c for c in notebook.cells if c.cell_type == "code")
        setup.source = re.sub(r"git\+https://\S+", f"git+{url}", setup.source)
        if path in assignments(root):
            link = r"https://colab\.research\.google\.com/github/[^)]*"
            first = notebook.cells[0]
            first.source = re.sub(link, colab(root, path), first.source)
        found[path] = nbformat.writes(notebook) + "\n"
    for name, key in (("smelib/version.py", "REPOSITORY"), ("pyproject.toml", "Repository")):
        text = (root / name).read_text(encoding="utf-8")
        found[root / name] = re.sub(rf'{key} = "[^"]*"', f'{key} = "{url}"', text)
    board = root / "book" / "scoreboard.md"
    if board.is_file():
        text = board.read_text(encoding="utf-8")
        found[board] = re.sub(r'(?<=href=")https://[^"]*(?=/blob/main/results/)', url, text)
    readme = root / "README.md"
    before, rest = readme.read_text(encoding="utf-8").split(START)
    found[readme] = f"{before}{START}\n{table(root)}\n{END}{rest.split(END)[1]}"
    return found


def main(arguments: list[str], root: Path) -> int:
    """Rewrite what disagrees and say so; exit code 2 for an address that cannot be one."""
    if len(arguments) > 1 or not all(
        re.fullmatch(r"https://[\w.-]+/[\w.-]+/[\w.-]+", a) for a in arguments
    ):
        given = " ".join(arguments)
        print(
            f"{given!r} is not a repository's address; it reads https://github.com/OWNER/NAME",
            file=sys.stderr,
        )
        return 2
    if arguments:
        config = root / "_config.yml"
        text = config.read_text(encoding="utf-8")
        url = arguments[0].removesuffix(".git")
        config.write_text(text.replace(f"url: {address(root)}\n", f"url: {url}\n"), "utf-8")
    for path, text in wanted(root).items():
        if path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"{path.relative_to(root)} now follows {address(root)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).resolve().parents[1]))
