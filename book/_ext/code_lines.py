"""Each line of code knows its indentation, so that a line that is wrapped goes on under itself.

It may be wrapped behind an opening bracket and in front of a dot, and neither in front of its first
word nor inside an option such as --out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pygments.formatters import HtmlFormatter
from sphinx.application import Sphinx
from sphinx.highlighting import PygmentsBridge

TAG = re.compile(r"<[^>]+>")
HEAD = re.compile(r'^((?:<span></span>)?)( +<span class="[^"]*">[^<\s]{1,20}</span>)')
OPENED = re.compile(r'(<span class="p">[^<]*[(\[{]</span>)(?=.)')
OPTION = re.compile(r"(?<=[ >])--[a-z][\w-]{1,20}")
DOT = re.compile(r'(<span class="o">\.</span>)')


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
        html = HEAD.sub(r'\1<span class="code-head">\2</span>', html)
        html = OPTION.sub(r'<span class="code-head">\g<0></span>', html)
        html = DOT.sub(r"<wbr>\1", OPENED.sub(r"\1<wbr>", html))
        return is_code, f'<span class="code-line" style="--in:{spaces}">{html}</span>'


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    PygmentsBridge.html_formatter = Lines
    return {"parallel_read_safe": True, "parallel_write_safe": True}
