"""Write the chapters' figures as SVG, for slides: `python book/slides.py [NUMBER ...]`.

Written to `_build/slides`, with an `index.md` that lists each figure with its caption and its
description. The stored notebooks are not touched.
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import repository
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[1]
VECTORS = "%config InlineBackend.figure_formats = ['svg']"


def execute(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """Run a notebook so that it draws SVG."""
    notebook.cells.insert(0, nbformat.v4.new_code_cell(VECTORS))
    where = {"metadata": {"path": str(folder)}}
    return NotebookClient(notebook, timeout=1800, resources=where).execute()


def figures(notebook: NotebookNode) -> list[tuple[str, str, str]]:
    """An executed notebook's figures as SVG text, each with its caption and its description."""
    found = []
    for cell in notebook.cells:
        shown = cell.metadata.get("mystnb", {})
        caption = shown.get("figure", {}).get("caption", "")
        description = shown.get("image", {}).get("alt", "")
        for output in cell.get("outputs", []):
            if picture := output.get("data", {}).get("image/svg+xml"):
                found.append((picture, " ".join(caption.split()), description))
    return found


def write(out: Path, pages: dict[str, list[tuple[str, str, str]]]) -> None:
    """The files, and the list of them."""
    out.mkdir(parents=True, exist_ok=True)
    lines = ["# Figures for slides", ""]
    for page, figures in pages.items():
        lines += [f"## {page}", ""]
        for k, (picture, caption, description) in enumerate(figures, 1):
            name = f"{page}-{k}.svg"
            (out / name).write_text(picture, encoding="utf-8")
            lines.append(f"- [{name}]({name}): {caption or 'no caption'}  \n  {description}")
        lines.append("")
    (out / "index.md").write_text("\n".join(lines), encoding="utf-8")


def main(numbers: list[str]) -> int:
    """All chapters, or those whose numbers are given."""
    wanted = {int(n) for n in numbers}
    pages = {}
    for path in repository.chapters(ROOT):
        if not wanted or repository.number(path) in wanted:
            book = execute(nbformat.read(path, as_version=4), path.parent)
            pages[path.stem] = figures(book)
            write(ROOT / "_build" / "slides", pages)  # after each, lest a stop cost all
            print(f"{path.stem}: {len(pages[path.stem])} figures", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
