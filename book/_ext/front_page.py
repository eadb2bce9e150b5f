"""What the pages take from elsewhere: the list of chapters, their pictures, the page's description.

The chapters stand in `_toc.yml` and their questions in the notebooks; nobody types them again.
"""

from __future__ import annotations

import base64
import io
import json
import posixpath
import sys
from html import escape
from pathlib import Path
from statistics import mean

import dark_twins
import nbformat
import numpy as np
from docutils import nodes
from docutils.statemachine import StringList
from PIL import Image, ImageChops
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "book"))
import repository  # noqa: E402

CARDS = "_static/cards"
DESCRIPTION = (
    "Your pictures never leave your phone, and the server has them anyway. An executable book on "
    "gradient inversion in federated learning: the attacks, written from scratch, and their limits."
)


PAPER = {"light": (255, 255, 255), "dark": (18, 18, 18)}  # the ground of a card


def picture(path: Path, on: str) -> Image.Image | None:
    """A chapter's picture: of the cell tagged `card`, or else its first, without its margins."""
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    cells.sort(key=lambda cell: "card" not in cell.metadata.get("tags", []))
    for output in (o for cell in cells for o in cell.outputs):
        if found := output.get("data", {}).get("image/png"):
            image = Image.open(io.BytesIO(base64.b64decode(found))).convert("RGBA")
            if on == "dark":
                image = Image.fromarray(dark_twins.twin(np.asarray(image)))
            ground = Image.new("RGBA", image.size, PAPER[on])
            image = Image.alpha_composite(ground, image).convert("RGB")
            return image.crop(ImageChops.difference(image, ground.convert("RGB")).getbbox())
    return None


class Cards(SphinxDirective):
    """The chapters as numbered cards with a picture each."""

    def run(self) -> list[nodes.Node]:
        """One list of links; `pictures` writes what they show."""
        here, items = posixpath.dirname(self.env.docname), []
        for path in repository.chapters(ROOT):
            target = posixpath.relpath(f"notebooks/{path.stem}.html", here)
            image = posixpath.relpath(f"{CARDS}/{path.stem}.webp", here)
            number, question = repository.number(path), escape(repository.question(path))
            items.append(
                f'<li><a href="{target}">{_both(image)}<span><b>{number}</b> {question}</span></a>'
                "</li>"
            )
        return [nodes.raw("", f'<ol class="cards">{"".join(items)}</ol>', format="html")]


def _both(image: str) -> str:
    """A card's picture for light pages and for dark ones; the hidden one is not loaded."""
    shape = 'alt="" loading="lazy" width="480" height="270"'
    light = f'<img class="on-light" src="{image}" {shape}>'
    return light + f'<img class="on-dark" src="{dark_twins.beside(image)}" {shape}>'


class Table(SphinxDirective):
    """The chapters as a table: number and question."""

    def run(self) -> list[nodes.Node]:
        """A table in Markdown, handed back to the page's parser."""
        here, lines = posixpath.dirname(self.env.docname), ["| | question |", "|---|---|"]
        for path in repository.chapters(ROOT):
            target = posixpath.relpath(f"notebooks/{path.name}", here)
            lines.append(f"| {repository.number(path)} | [{repository.question(path)}]({target}) |")
        box = nodes.Element()
        self.state.nested_parse(StringList(lines, "chapters"), self.content_offset, box)
        return box.children


class Status(SphinxDirective):
    """When each page last ran from top to bottom, how long it took, and on what."""

    def run(self) -> list[nodes.Node]:
        """A table in Markdown, from what `book/execute.py` wrote into the notebooks."""
        here = posixpath.dirname(self.env.docname)
        lines = ["| page | seconds | last run | on | Python | torch | smelib |"]
        lines.append("|---|---:|---|---|---|---|---|")
        for path in repository.notebooks(ROOT):
            self.env.note_dependency(str(path))
            ran = nbformat.read(path, as_version=4).metadata.get("ran", {})
            target = posixpath.relpath(f"notebooks/{path.name}", here)
            keys = ("seconds", "date", "device", "python", "torch", "smelib")
            cells = " | ".join(str(ran.get(key, "–")) for key in keys)
            lines.append(f"| [{repository.question(path)}]({target}) | {cells} |")
        box = nodes.Element()
        self.state.nested_parse(StringList(lines, "status"), self.content_offset, box)
        return box.children


class Honest(SphinxDirective):
    """One line on when the attack works and when it does not, from the stored results."""

    def run(self) -> list[nodes.Node]:
        """The line, in Markdown."""
        from smelib.reproduce import published

        def measured(table: str, row: str) -> str:
            jobs = published.finished(table, row=row, init="torch", method="sme")
            clients = f"{len(jobs)} client{'s' if len(jobs) > 1 else ''}"
            return f"{mean(job['psnr'] for job in jobs):.0f} dB ({clients})"

        films = json.loads((ROOT / "book" / "front" / "films.json").read_text("utf-8"))
        digits, photos = (films[name]["psnr"] for name in ("mnist", "photos"))
        few = measured("main", "femnist-E10-N10")
        many = measured("main", "femnist-E50-N50")
        trained = measured("trained", "R20-E10-N50")
        line = (
            f"**When it works, and when not.** The films end at {digits:.0f} and {photos:.0f} dB; "
            "below about 18 dB a picture looks broken. On the paper's handwritten characters SME "
            f"reaches {few} with ten images and ten epochs, {many} with fifty images and fifty "
            f"epochs, and {trained} with fifty images on a network trained for twenty rounds. "
            "Its labels are given; noise, many images and repeated labels break it."
        )
        box = nodes.Element()
        self.state.nested_parse(StringList([line], "honest"), self.content_offset, box)
        return box.children


def pictures(app: Sphinx, error: Exception | None) -> None:
    """Write the cards' pictures beside the other static files."""
    if error or app.builder.format != "html":
        return
    folder = Path(app.outdir) / CARDS
    folder.mkdir(parents=True, exist_ok=True)
    for path in repository.chapters(ROOT):
        for on, ground in PAPER.items():
            image = picture(path, on) or Image.new("RGB", (480, 270), ground)
            image.thumbnail((440, 240))
            card = Image.new("RGB", (480, 270), ground)
            card.paste(image, ((480 - image.width) // 2, (270 - image.height) // 2))
            name = f"{path.stem}.webp"
            name = name if on == "light" else dark_twins.beside(name)
            card.save(folder / name, quality=85, method=6)


def head(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    """A page's description for those who link to it, and no script that the book has no use for."""
    owner, name = repository.address(ROOT).rsplit("/", 2)[-2:]
    online = f"https://{owner}.github.io/{name}"
    tags = {
        'property="og:title"': context.get("title") or app.config.project,
        'property="og:description"': DESCRIPTION,
        'property="og:type"': "book",
        'property="og:image"': f"{online}/_static/social-card.png",
        'name="twitter:card"': "summary_large_image",
    }
    if page == app.config.root_doc:
        tags['name="description"'] = DESCRIPTION
    lines = [f'<meta {key} content="{escape(value)}" />' for key, value in tags.items()]
    context["metatags"] = context.get("metatags", "") + "\n" + "\n".join(lines)
    # Thebe starts kernels on foreign servers; jupyter-book declares it twice, which is an error.
    for kind in ("script_files", "css_files"):
        context[kind] = [
            file for file in context.get(kind, []) if "thebe" not in f"{file}{_body(file)}".lower()
        ]

    if not context.get("display_toc") and "body" in context:
        # The theme's script looks for the list of contents where a page has none.
        context["body"] += '<div class="bd-sidebar-secondary" style="display: none"></div>'


def _body(file: object) -> str:
    return str(getattr(file, "attributes", {}).get("body", ""))


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_directive("chapter-cards", Cards)
    app.add_directive("chapter-table", Table)
    app.add_directive("status", Status)
    app.add_directive("when-it-works", Honest)
    app.connect("html-page-context", head, priority=900)
    app.connect("build-finished", pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
