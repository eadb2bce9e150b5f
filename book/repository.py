"""Write the repository's address, which stands in `_config.yml`, wherever else it is needed.

    python book/repository.py [URL]

With a URL, `_config.yml` takes it first. Then follow the notebooks' setup cells, the package, and
the README's links to Colab.
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


def chapters(root: Path) -> list[Path]:
    """The notebooks in the order of `_toc.yml`."""
    toc = yaml.safe_load((root / "_toc.yml").read_text())
    files = [chapter["file"] for part in toc["parts"] for chapter in part["chapters"]]
    return [root / f"{f}.ipynb" for f in files if f.startswith("notebooks/")]


def table(root: Path) -> str:
    """The README's list of chapters, each with its link to Colab."""
    branch = yaml.safe_load((root / "_config.yml").read_text())["repository"]["branch"]
    owner_and_name = address(root).split("/", 3)[3]
    colab = f"https://colab.research.google.com/github/{owner_and_name}/blob/{branch}"
    lines = ["| | question | run it |", "|---|---|---|"]
    for path in chapters(root):
        title = nbformat.read(path, as_version=4).cells[0].source.splitlines()[0].lstrip("# ")
        name = path.relative_to(root)
        number = int(path.stem.split("_")[0])
        lines.append(f"| {number} | [{title}]({name}) | [Colab]({colab}/{name}) |")
    return "\n".join(lines)


def wanted(root: Path) -> dict[Path, str]:
    """Every file that holds the address, as it should read."""
    url, found = address(root), {}
    for path in chapters(root):
        notebook = nbformat.read(path, as_version=4)
        setup = next(c for c in notebook.cells if c.cell_type == "code")
        setup.source = re.sub(r"git\+https://\S+", f"git+{url}", setup.source)
        found[path] = nbformat.writes(notebook) + "\n"
    version = root / "smelib" / "version.py"
    found[version] = re.sub(
        r'REPOSITORY = "[^"]*"', f'REPOSITORY = "{url}"', version.read_text(encoding="utf-8")
    )
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
