"""Figures of notebooks have two pixels where the page has one; here they get their size."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from PIL import Image
from sphinx.application import Sphinx


def sized(app: Sphinx, doctree: nodes.document) -> None:
    """Give every sharp figure that a cell drew half of its pixels as its width."""
    for node in doctree.findall(nodes.image):
        file = Path(app.srcdir) / node["uri"]
        if "jupyter_execute" in node["uri"] and "width" not in node and file.suffix == ".png":
            with Image.open(file) as image:
                if image.info.get("dpi", (0, 0))[0] > 150:
                    node["width"] = f"{image.width // 2}px"


def setup(app: Sphinx) -> dict:
    """Once a page is read."""
    app.connect("doctree-read", sized, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
