"""The few symbols that words on a page write in plain letters, set as mathematics.

Docstrings, quizzes and the tables that cells print say w0, wT, L_sim, alpha, -1.3 and 2e-05, as
code does. A reader of the page sees a subscript, a Greek letter, a minus sign, a power of ten.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx
from unbroken import KEPT

GREEK = {"alpha": "α", "beta": "β", "epsilon": "ε", "lambda": "λ", "sigma": "σ"}
BELOW = {"T": "<var>T</var>"}

# Signatures are code; a heading stands in the list of contents too; a form takes no mark-up.
LEFT = re.compile(
    r'(?:<dt class="sig .*?</dt>|<(?P<plain>h[1-6]|option|output)\b.*?</(?P=plain)>)'
    rf"|{KEPT.pattern}",
    re.DOTALL,
)
LETTER = re.compile(rf"(?<![\w.-])({'|'.join(GREEK)})(?![\w-])( = (?=\d))?", re.IGNORECASE)
INDEXED = re.compile(r"(?<![\w-])(?:(w)_?([01T])|(L)_(sim))(?![\w-])")
POWER = re.compile(r"(?<![\w.])(-?)(\d+(?:\.\d+)?)e([+-])0*(\d+)(?!\w)")
MINUS = re.compile(r" - |(?<![\w.\-)/])-(?=\d)")


def _power(found: re.Match) -> str:
    sign, factor, below, exponent = found.groups()
    times = "" if factor == "1" else f"{factor}\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}"
    return f"{sign}{times}10<sup>{'−' if below == '-' else ''}{exponent}</sup>"


def _set(text: str) -> str:
    text = INDEXED.sub(
        lambda m: f"<var>{m[1] or m[3]}</var><sub>{BELOW.get(m[2] or m[4], m[2] or m[4])}</sub>",
        text,
    )
    text = LETTER.sub(
        lambda m: f"<var>{GREEK[m[1].lower()]}</var>{(m[2] or '').replace(' ', chr(160))}", text
    )
    return MINUS.sub(lambda m: m[0].replace("-", "−"), POWER.sub(_power, text))


def rewrite(body: str) -> str:
    """A page's HTML with its symbols set, wherever they are words and not code."""
    parts, end = [], 0
    for left in LEFT.finditer(body):
        parts += [_set(body[end : left.start()]), left[0]]
        end = left.end()
    return "".join([*parts, _set(body[end:])])


def _page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    if "body" in context:
        context["body"] = rewrite(context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("html-page-context", _page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
