"""What stays on one line, and where a long name may break.

A browser breaks a line at any space and after any hyphen: between a number and its unit, inside
CIFAR-100, before the 's of a formula. And it breaks a long name of code in the middle of a word.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx

# Code, scripts, drawings and formulas are left as they are, and so is what stands inside a tag.
KEPT = re.compile(
    r"(<(?P<tag>pre|script|style|svg|code|textarea)\b.*?</(?P=tag)>"
    r'|<(?P<math>span|div) class="math [^>]*>.*?</(?P=math)>'
    r"|<[^>]*>)",
    re.DOTALL,
)
SPACES = re.compile(
    r"(?<=\d) (?=(?:%|dB|±|×|MB|GB|ms|s)(?!\w))|(?<=±) (?=\w)|(?<=[÷≤]) (?=\w)"
    r"|(?:(?<=hapter)|(?<=ssignment)|(?<=xercise)) (?=\d)|(?<=\]) (?=dB\b)|(?<=\w) (?=\d+\))"
)
EQUALS = re.compile(r"\b([A-Za-zα-ω]) = (?=\d)")
NAME = re.compile(
    r"\b(?:L-BFGS|DP-SGD|(?:top|random)-k\b|(?=[\w-]{1,13}(?![\w-]))[A-Za-z]\w*(?:-[A-Z]?\d+)+)"
)
POSSESSIVE = re.compile(
    r'(<span class="math notranslate nohighlight">\\\((?:(?!</span>).)*</span>(?:’s|\'s)\b)',
    re.DOTALL,
)
CODE = re.compile(r'(?<=<span class="pre">)[^<]{26,}(?=</span>)')
CLOSED = re.compile(r'</em>(<span class="sig-paren">\)</span>)')
ARGUMENT = re.compile(r'</em>, (?=<em class="sig-param")')
OPTION = re.compile(r'<span class="pre">(--?[\w-]{1,16})</span>')


def _tied(text: str) -> str:
    text = EQUALS.sub("\\1\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}", text)
    text = SPACES.sub("\N{NO-BREAK SPACE}", text)
    return NAME.sub(r'<span class="together">\g<0></span>', text)


def rewrite(body: str) -> str:
    """A page's HTML with its units, names and possessives tied, and breaks in names of code."""
    parts, end = [], 0
    for kept in KEPT.finditer(body):
        parts += [_tied(body[end : kept.start()]), kept[0]]
        end = kept.end()
    body = "".join([*parts, _tied(body[end:])])
    body = POSSESSIVE.sub(r'<span class="together">\1</span>', body)
    # Neither a comma nor a bracket begins a line of a signature.
    body = ARGUMENT.sub(",</em> ", body)
    body = CLOSED.sub(r"\1</em>", body)
    body = OPTION.sub(r'<span class="pre together">\1</span>', body)
    return CODE.sub(lambda name: re.sub(r"([_/]|\.(?=\w{4}))", r"\1<wbr>", name[0]), body)


def _page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    if "body" in context:
        context["body"] = rewrite(context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("html-page-context", _page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
