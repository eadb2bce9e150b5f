"""Each line of code knows its indentation, so that a line that is wrapped goes on under itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pygments.formatters import HtmlFormatter
from sphinx.application import Sphinx
from sphinx.highlighting import PygmentsBridge

TAG = re.compile(r"<[^>]+>")


class Lines(HtmlFormatter):
    """Pygments' HTML with a span around each line; `book.css` says what it does."""

    def wrap(self, source: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
        """The usual frame around lines that carry their indentation."""
        return super().wrap(map(self._indented, source))

    @staticmethod
    def _indented(item: tuple[int, str]) -> tuple[int, str]:
        is_code, html = item
        text = TAG.sub("", html)
        spaces = len(text) - len(text.lstrip(" "))
        return is_code, f'<span class="code-line" style="--in:{spaces}">{html}</span>'


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    PygmentsBridge.html_formatter = Lines
    return {"parallel_read_safe": True, "parallel_write_safe": True}
