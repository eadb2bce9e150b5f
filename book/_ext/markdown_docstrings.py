"""smelib's docstrings are Markdown, as help() shows them; autodoc expects reStructuredText."""

from __future__ import annotations

import re

from sphinx.application import Sphinx

SPAN = re.compile(r"``.+?``|`(?P<code>[^`]+)`|\$(?P<math>[^$]+)\$|(?P<special>[|_*](?!\w))", re.S)


def to_rst(text: str) -> str:
    """Write `code` and $mathematics$ as roles; *emphasis* is the same in both languages."""

    def span(match: re.Match[str]) -> str:
        if match["code"]:
            return f"``{match['code']}``"
        if match["math"]:
            return f":math:`{match['math']}`"
        return match[0]

    return SPAN.sub(span, text)


def convert(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list) -> None:
    """Replace a docstring's lines, in place, as autodoc asks."""
    lines[:] = to_rst("\n".join(lines)).split("\n")


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", convert)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
