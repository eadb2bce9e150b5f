"""What the book's own extensions do to a page: ties, breaks, and a command's options."""

from __future__ import annotations

from pathlib import Path

import pytest

EXTENSIONS = Path(__file__).resolve().parents[1] / "book" / "_ext"


@pytest.fixture
def extensions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXTENSIONS))


@pytest.mark.parametrize(
    ("html", "tied"),
    [
        ("<p>95 % of 5.3 dB</p>", "<p>95\xa0% of 5.3\xa0dB</p>"),
        ("<p>+5.4 ± 9.1 dB</p>", "<p>+5.4\xa0±\xa09.1\xa0dB</p>"),
        ("<th>MLP, E = 10</th>", "<th>MLP, E\xa0=\xa010</th>"),
        ("<p>CIFAR-100.</p>", '<p><span class="together">CIFAR-100</span>.</p>'),
        ("<p>a well-known name</p>", "<p>a well-known name</p>"),
    ],
)
def test_a_number_keeps_its_unit_and_a_name_its_hyphen(
    extensions: None, html: str, tied: str
) -> None:
    import unbroken

    assert unbroken.rewrite(html) == tied


@pytest.mark.parametrize(
    "html",
    [
        "<pre>5 % 3, E = 10, CIFAR-100</pre>",
        '<img alt="95 % of CIFAR-100">',
        "<script>x = 5 % 3</script>",
        '<span class="math notranslate nohighlight">\\(E = 10\\)</span>',
    ],
)
def test_code_attributes_and_formulas_are_left_alone(extensions: None, html: str) -> None:
    import unbroken

    assert unbroken.rewrite(html) == html


def test_a_long_name_of_code_may_break_between_its_words(extensions: None) -> None:
    import unbroken

    name = "test_the_linear_layer_leaks_its_input"
    broken = unbroken.rewrite(f'<code><span class="pre">{name}</span></code>')
    assert "test_<wbr>the_<wbr>linear_" in broken
    assert broken.replace("<wbr>", "") == f'<code><span class="pre">{name}</span></code>'


def test_wrapped_code_is_the_same_text(extensions: None) -> None:
    import code_lines
    from bs4 import BeautifulSoup
    from pygments import highlight
    from pygments.lexers import BashLexer, PythonLexer

    source = "def f(x):\n    return network.normalise(x[0]).clamp(0, 1)\n"
    html = highlight(source, PythonLexer(), code_lines.Lines())
    assert BeautifulSoup(html, "html.parser").get_text().strip() == source.strip()
    assert '<span class="code-head">    <span class="k">return</span></span>' in html
    assert '<wbr><span class="o">.</span>' in html
    typed = highlight("smelib attack --out found\n", BashLexer(), code_lines.Lines())
    assert '<span class="code-head">--out</span>' in typed


def test_the_page_of_the_command_line_has_every_command(extensions: None) -> None:
    import command_line

    from smelib.cli.parser import COMMANDS

    page = (EXTENSIONS.parent / "api" / "cli.md").read_text("utf-8")
    for command in COMMANDS:
        assert f"```{{options}} {command}\n" in page
        assert len(command_line.actions(command)) >= 3


def test_defaults_that_are_functions_have_names(extensions: None) -> None:
    import markdown_docstrings

    given = "(optimiser=<function adam>, finish=<function Recipe.<lambda>>, every=<factory>)"
    shown, _ = markdown_docstrings.signature(None, "class", "Recipe", object, None, given, "")
    assert shown == "(optimiser=adam, finish=..., every=...)"
