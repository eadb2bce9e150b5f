"""What a narrow page needs and a style sheet cannot see.

A figure's own width, of which `book.css` keeps enough to read its words; and that a full stop is
not to begin a line because a formula ended the line before.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx

FIGURE = re.compile(
    r'(<a class="[^"]*image-reference" href="[^"]*")(><img [^>]*style="width: (\d+)px;)'
)
FORMULA = re.compile(
    r'(<span class="math notranslate nohighlight">\\\((?:(?!</span>).)*</span>[.,;:?)\]]+)',
    re.DOTALL,
)


def rewrite(body: str) -> str:
    """A page's HTML, with widths on its figures and formulas tied to the sign that follows."""
    body = FIGURE.sub(r'\1 style="--own: \3px"\2', body)
    return FORMULA.sub(r'<span class="together">\1</span>', body)


def _page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    if "body" in context:
        context["body"] = rewrite(context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("html-page-context", _page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
