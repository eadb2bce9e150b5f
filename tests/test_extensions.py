"""What the book's own extensions do to a page: ties, breaks, and a command's options."""

from __future__ import annotations

from pathlib import Path

import pytest
from chromium import browser  # noqa: F401

EXTENSIONS = Path(__file__).resolve().parents[1] / "book" / "_ext"


@pytest.fixture
def extensions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXTENSIONS))


@pytest.mark.parametrize(
    ("html", "tied"),
    [
        ("<p>95 % of 5.3 dB</p>", "<p>95\xa0% of 5.3\xa0dB</p>"),
        ("<p>+5.4 ± 9.1 dB</p>", "<p>+5.4\xa0±\xa09.1\xa0dB</p>"),
        ("<p>see chapter 13</p>", "<p>see chapter\xa013</p>"),
        ("<th>MLP, E = 10</th>", "<th>MLP, E\xa0=\xa010</th>"),
        ("<p>CIFAR-100.</p>", '<p><span class="together">CIFAR-100</span>.</p>'),
        ("<p>L-BFGS</p>", '<p><span class="together">L-BFGS</span></p>'),
        ("<p>random-k 1 %</p>", '<p><span class="together">random-k</span> 1\xa0%</p>'),
        ("<p>[−2.8, −0.1] dB (exercise 2)</p>", "<p>[−2.8, −0.1]\xa0dB (exercise\xa02)</p>"),
        ("<p>(value 3, gradients 1)</p>", "<p>(value 3, gradients\xa01)</p>"),
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


def test_two_classes_of_one_name_are_told_apart(extensions: None) -> None:
    import markdown_docstrings

    given = "(source: str | ~smelib.data.Dataset | ~torch.utils.data.dataset.Dataset)"
    shown, _ = markdown_docstrings.signature(None, "function", "client", object, None, given, "")
    assert shown == "(source: str | ~smelib.data.Dataset | torch.utils.data.Dataset)"


@pytest.mark.parametrize(
    ("html", "shown"),
    [
        ("<th>cosine at w0</th>", "<th>cosine at <var>w</var><sub>0</sub></th>"),
        (
            "<p>Alpha goes to wT</p>",
            "<p><var>α</var> goes to <var>w</var><sub><var>T</var></sub></p>",
        ),
        ("<p>a lower L_sim</p>", "<p>a lower <var>L</var><sub>sim</sub></p>"),
        ("<p>alpha = 0</p>", "<p><var>α</var>\xa0=\xa00</p>"),
        ("<td>-4.1 dB [-11.7, +3.5]</td>", "<td>−4.1 dB [−11.7, +3.5]</td>"),
        ("<td>-1e-03</td>", "<td>−10<sup>−3</sup></td>"),
        ("<td>2.7e-05</td>", "<td>2.7\xa0×\xa010<sup>−5</sup></td>"),
        ("<p>1 - (-1) = 2</p>", "<p>1 − (−1) = 2</p>"),
    ],
)
def test_symbols_in_words_are_set_as_mathematics(extensions: None, html: str, shown: str) -> None:
    import symbols

    assert symbols.rewrite(html) == shown
    assert symbols.rewrite(shown) == shown, "a page may be rewritten twice"


@pytest.mark.parametrize(
    "html",
    [
        "<code>alpha -1</code>",
        '<dt class="sig sig-object py"><em class="sig-param">alpha</em></dt>',
        "<h2>Which way does alpha point?</h2>",
        "<option>L_sim</option>",
        '<a href="prf-alpha" title="w0 - wT">CIFAR-100, 2026-11-18, 10-20, prf-alpha</a>',
        "<p>alpha_rate, alphabet, 0x1e-3</p>",
    ],
)
def test_code_names_and_headings_keep_their_letters(extensions: None, html: str) -> None:
    import symbols

    assert symbols.rewrite(html) == html


def test_neither_a_comma_nor_a_bracket_begins_a_line_of_a_signature(extensions: None) -> None:
    import unbroken

    first, second = '<em class="sig-param">a</em>', '<em class="sig-param">b</em>'
    bracket = '<span class="sig-paren">)</span>'
    shown = unbroken.rewrite(f"<dt>{first}, {second}{bracket}</dt>")
    a, b = '<em class="sig-param">a,</em>', f'<em class="sig-param">b{bracket}</em>'
    assert shown == f"<dt>{a} {b}</dt>"


def test_a_field_that_holds_a_function_is_no_method(extensions: None) -> None:
    from markdown_docstrings import Field
    from sphinx.ext.autodoc import ClassDocumenter, MethodDocumenter

    from smelib.solver import Options, Recipe

    def taken(owner: type, name: str) -> bool:
        parent = object.__new__(ClassDocumenter)
        parent.object = owner
        return Field.can_document_member(getattr(owner, name), name, False, parent)

    assert taken(Recipe, "schedule")
    assert taken(Recipe, "optimiser")
    assert not taken(Options, "of"), "a method stays one"
    assert Field.priority > MethodDocumenter.priority
    assert Field.directivetype == "attribute"


# Of each table: whether it slides, and how much of the words that say so is seen.
HINTS = """() => [...document.querySelectorAll("table")].map((table) => {
  const said = getComputedStyle(table, "::after"), box = table.parentElement;
  return [box.scrollWidth > box.clientWidth, parseFloat(said.paddingBottom), said.content];
})"""


def test_a_table_says_that_it_slides_only_where_it_does(browser: object) -> None:  # noqa: F811
    style = (EXTENSIONS.parent / "_static" / "book.css").read_text("utf-8")
    wide = "<td style='min-width: 400px'>" * 2
    tables = "".join(
        f"<div class='{outer}'><div class='{inner}' style='overflow-x: auto'>"
        f"<table><tr>{cells}</tr></table></div></div>"
        for outer, inner in (("smelib-table", ""), ("", "pst-scrollable-table-container"))
        for cells in ("<td>1</td>", wide)
    )
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.set_content(f"<style>{style}</style><div class='bd-article'>{tables}</div>")
    seen = page.evaluate(HINTS)
    assert [slides for slides, _, _ in seen] == [False, True, False, True]
    for slides, height, words in seen:
        assert height > 15 if slides else height == 0
        assert "slide" in words
    page.emulate_media(media="print")
    assert all(words == "none" for _, _, words in page.evaluate(HINTS))
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(media="screen")
    assert [height for _, height, _ in page.evaluate(HINTS)] == [0, 0, 0, 0]
    page.close()
