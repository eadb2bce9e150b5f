"""The rendered book in a real browser: offline, silent, no sideways scrolling, mathematics set."""

from __future__ import annotations

import re

import pytest
from bs4 import BeautifulSoup
from chromium import HTML, NO_BOOK, address, browser  # noqa: F401

pytestmark = NO_BOOK

# What the theme tells every page's console of its own accord; no fault and not ours.
CHATTER = ("[PST]: ", "[togglebutton]: ")


def listen(page: object) -> list[str]:
    """Everything that a page says on its console from now on, faults included."""
    said: list[str] = []
    page.on("console", lambda m: m.text.startswith(CHATTER) or said.append(f"{m.type}: {m.text}"))
    page.on("pageerror", lambda fault: said.append(str(fault)))
    return said


# Equations wider than their box: they would be clipped, or slide under a finger.
WIDE = """() => [...document.querySelectorAll("div.math mjx-container")]
  .filter((box) => box.offsetParent && box.scrollWidth > box.clientWidth + 1)
  .map((box) => `${box.closest("div.math").id || box.innerText.slice(0, 60)}: ` +
    `${box.scrollWidth} pixels in ${box.clientWidth}`)"""
# A box that hides what is too long for it: an admonition cuts off the end of a long name.
CUT = """() => [...document.querySelectorAll(".bd-article .admonition")]
  .filter((box) => box.offsetParent && box.scrollWidth > box.clientWidth + 1)
  .map((box) => box.innerText.slice(0, 60))"""
# Tables wider than a screen's page, how many lines a phone's give to names of how many words, and
# cells whose longest word is wider than they are.
TABLES = """() => [".smelib-table > div", ".pst-scrollable-table-container"]
  .flatMap((kind) => [...document.querySelectorAll(kind)])
  .filter((box) => box.offsetParent && box.scrollWidth > box.clientWidth + 1)
  .map((box) => box.innerText.slice(0, 60))"""
NAMES = """() => [...document.querySelectorAll(".smelib-table tbody th")]
  .filter((name) => name.offsetParent && name.lastChild)
  .map((name) => {
    const text = document.createRange();
    text.selectNodeContents(name.lastChild);
    const lines = new Set([...text.getClientRects()].map((line) => Math.round(line.top)));
    return [name.innerText, lines.size, name.innerText.trim().split(/\\s+/).length];
  })"""
TIGHT = """() => [...document.querySelectorAll(".smelib-table :is(th, td)")]
  .filter((cell) => cell.offsetParent && cell.scrollWidth > cell.clientWidth + 1)
  .map((cell) => cell.innerText)"""
DISTORTED = """() => [...document.querySelectorAll(".bd-article img")]
  .filter((i) => i.clientHeight && i.naturalHeight)
  .map((i) => [i, i.clientWidth / i.clientHeight, i.naturalWidth / i.naturalHeight])
  .filter(([, shown, own]) => Math.abs(shown / own - 1) > 0.05)
  .map(([i]) => i.alt || i.src)"""


@pytest.mark.parametrize("width", [1280, 390])
def test_pages_are_offline_silent_and_fit(browser: object, address: str, width: int) -> None:  # noqa: F811
    names = [p.relative_to(HTML).as_posix() for p in HTML.rglob("*.html")]
    names = [n for n in names if n.startswith(("book/", "notebooks/", "assignments/"))]
    assert len(names) > 40
    page = browser.new_page(viewport={"width": width, "height": 900})
    foreign: list[str] = []
    thrown: list[str] = []
    page.on("pageerror", lambda e: thrown.append(str(e)))
    page.on(
        "request",
        lambda r: None if r.url.startswith((address, "data:", "blob:")) else foreign.append(r.url),
    )
    said = listen(page)
    for name in names:
        page.goto(f"{address}/{name}")
        page.wait_for_load_state("networkidle")
        assert not thrown, f"{name}: its scripts say {thrown[0]}"
        assert not foreign, f"{name} loads {foreign[:3]} from elsewhere"
        assert not said, f"{name} says {said[:3]}"
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{name} is {wide} pixels wide in a window of {width}"
        bent = page.evaluate(DISTORTED)
        assert not bent, f"{name} distorts {bent[0]}"
        if page.locator("span.math, div.math").count():
            assert page.locator("mjx-container").count(), f"{name}: mathematics is raw TeX"
        page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
        broad = page.evaluate(WIDE)
        assert not broad, f"{name} has equations that do not fit: {broad}"
        cut = page.evaluate(CUT)
        assert not cut, f"{name} cuts off {cut[0]!r}"
        if width > 767:
            sliding = page.evaluate(TABLES)
            assert not sliding, f"{name} has a table that does not fit: {sliding[0]!r}"
        else:
            tight = page.evaluate(TIGHT)
            assert not tight, f"{name} has a column too narrow for {tight[0]!r}"
            for row, lines, words in page.evaluate(NAMES):
                assert lines <= max(3, words / 1.3), f"{name} gives {row!r} a line to a word"
    page.close()


# Grounds that are nearly white under a cell's output, or an image that asks for the page's.
LIGHT = """() => ["div.output.text_html", "div.cell_output img", "img.on-both"]
  .flatMap((kind) => [...document.querySelectorAll(kind)])
  .filter((box) => getComputedStyle(box).backgroundColor !== "rgba(0, 0, 0, 0)")
  .map((box) => box.outerHTML.slice(0, 80))"""


@pytest.mark.parametrize("width", [768, 820, 1024, 1200, 1280])
def test_the_scoreboard_fits_tablets_and_small_windows(
    browser: object,  # noqa: F811
    address: str,  # noqa: F811
    width: int,
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(f"{address}/book/scoreboard.html")
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_a_dark_page_has_no_light_ground_under_outputs(browser: object, address: str) -> None:  # noqa: F811
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="dark")
    names = sorted(p.name for p in (HTML / "notebooks").glob("*.html"))
    for name in [*(f"notebooks/{n}" for n in names), "book/performance.html"]:
        page.goto(f"{address}/{name}")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        light = page.evaluate(LIGHT)
        assert not light, f"{name} has a light ground under {light[0]}"
    page.close()


# Of each figure: the files that are seen and where they lead, whether they are described and keep
# their places while they come, and whether the caption is seen.
TWINS = """() => [...document.querySelectorAll(".bd-article figure:has(> .image-reference)")]
  .map((box) => {
    const seen = [...box.querySelectorAll("img")].filter((i) => i.getClientRects().length);
    return { name: box.id, files: seen.map((i) => i.src),
      links: seen.map((i) => i.closest("a").href), described: seen.every((i) => i.alt),
      tall: seen.every((i) => i.clientHeight > 20), caption: box.innerText.length > 10 };
  })"""
WAYS = {  # of opening a page: the reader's system, scripts, the medium
    "light": ("light", True, "screen"),
    "dark": ("dark", True, "screen"),
    "dark, printed": ("dark", True, "print"),
    "dark, no scripts": ("dark", False, "screen"),
}


@pytest.mark.parametrize("way", WAYS)
def test_each_figure_is_seen_once_in_the_page_s_ink(
    browser: object,  # noqa: F811
    address: str,  # noqa: F811
    way: str,
) -> None:
    system, scripts, medium = WAYS[way]
    window = {"width": 1280, "height": 900}
    reader = browser.new_context(color_scheme=system, java_script_enabled=scripts, viewport=window)
    page, fetched, figures = reader.new_page(), [], 0
    page.on("request", lambda r: fetched.append(r.url))
    names = [f"notebooks/{p.name}" for p in sorted((HTML / "notebooks").glob("*.html"))]
    for name in [*names, "book/performance.html"]:
        page.goto(f"{address}/{name}")
        page.emulate_media(media=medium)
        for figure in page.evaluate(TWINS):
            figures += 1
            where = f"{name}: {figure}"
            assert len(figure["files"]) == 1, where
            (file,) = figure["files"]
            assert file.endswith("-dark.png") == (way == "dark"), where
            assert figure["links"] == [file], where
            assert all(figure[what] for what in ("described", "tall", "caption")), where
            assert (HTML / file.removeprefix(f"{address}/")).is_file(), where
        page.emulate_media(media="screen")
    assert figures > 80
    if way == "light":
        assert not any(url.endswith("-dark.png") for url in fetched), "hidden, and fetched"
    if way == "dark":
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == "rgb(18, 18, 18)", "tests/test_dark_twins.py takes another for granted"
    reader.close()


# Of each figure: how much of its own size is shown, whether it has to be slid, whether it says so.
FIGURES = """() => [...document.querySelectorAll(".bd-article figure > .image-reference")]
  .filter((box) => box.offsetParent)
  .map((box) => {
    const own = parseFloat(getComputedStyle(box).getPropertyValue("--own"));
    const hint = parseFloat(getComputedStyle(box, "::after").height);
    return { name: box.parentElement.id, share: box.querySelector("img").clientWidth / own,
      slides: box.scrollWidth > box.clientWidth + 1, says: hint > 10 };
  })"""
WORDS = 11 * 100 / 72  # pixels of a figure's words at its own size: 11 points, 100 dots to an inch


@pytest.mark.parametrize("width", [1280, 390])
def test_words_in_figures_can_be_read_and_what_slides_says_so(
    browser: object,  # noqa: F811
    address: str,  # noqa: F811
    width: int,
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    figures = []
    for name in sorted(p.name for p in (HTML / "notebooks").glob("*.html")):
        page.goto(f"{address}/notebooks/{name}")
        page.wait_for_load_state("networkidle")
        figures += page.evaluate(FIGURES)
    page.close()
    assert len(figures) > 60
    for figure in figures:
        pixels = figure["share"] * WORDS
        assert pixels > 9, f"{figure['name']} has words of {pixels:.1f} pixels at {width}"
        assert figure["slides"] == figure["says"], figure["name"]
    assert any(figure["slides"] for figure in figures) == (width == 390)


# Signs behind a formula that begin a line, and names of code that stick out of their box.
ASTRAY = """() => {
  const astray = [];
  for (const formula of document.querySelectorAll(".bd-article mjx-container:not([display])")) {
    const next = formula.closest("span.math")?.nextSibling;
    if (!formula.offsetParent || next?.nodeType !== 3 || !/^[.,;:?)]/.test(next.data)) continue;
    const range = document.createRange();
    range.setStart(next, 0);
    range.setEnd(next, 1);
    const sign = range.getBoundingClientRect();
    if (sign.left < formula.getBoundingClientRect().right - 3) astray.push(next.data.slice(0, 40));
  }
  for (const name of document.querySelectorAll(".bd-article :is(p, li) > code")) {
    const box = name.closest(".admonition, p, li").getBoundingClientRect();
    if (name.offsetParent && name.getBoundingClientRect().right > box.right + 1)
      astray.push(name.innerText);
  }
  return astray;
}"""


def test_on_a_phone_no_sign_and_no_name_goes_astray(browser: object, address: str) -> None:  # noqa: F811
    page = browser.new_page(viewport={"width": 390, "height": 900})
    for name in sorted(p.name for p in (HTML / "notebooks").glob("*.html")):
        page.goto(f"{address}/notebooks/{name}")
        page.wait_for_load_state("networkidle")
        astray = page.evaluate(ASTRAY)
        assert not astray, f"{name}: {astray}"
    page.close()


SET = """() => {
  const shown = [...document.querySelectorAll("div.cell pre")].filter((pre) => pre.offsetParent);
  const long = [...document.querySelectorAll(".bd-article section > p")].filter(
    (p) => p.innerText.length > 300 && !p.querySelector("mjx-container"));
  return {
    clipped: shown.filter((pre) => pre.scrollWidth > pre.clientWidth + 1).map((p) => p.innerText),
    size: [...new Set([...document.querySelectorAll("div.cell_input pre")].map(
      (pre) => getComputedStyle(pre).fontSize))],
    lines: long.map((p) =>
      p.innerText.length / Math.round(p.clientHeight / parseFloat(getComputedStyle(p).lineHeight))),
  };
}"""


def test_text_has_seventy_characters_to_a_line_and_no_code_is_clipped(
    browser: object,  # noqa: F811
    address: str,  # noqa: F811
    capsys: pytest.CaptureFixture,
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    lines: list[float] = []
    for name in sorted(p.name for p in (HTML / "notebooks").glob("*.html")):
        page.goto(f"{address}/notebooks/{name}")
        page.wait_for_load_state("networkidle")
        found = page.evaluate(SET)
        assert not found["clipped"], f"{name} clips {found['clipped'][0][:200]}"
        assert found["size"] == ["14px"], name
        lines += found["lines"]
    lines.sort()
    middle = lines[len(lines) // 2]
    with capsys.disabled():
        print(f"\n{len(lines)} paragraphs: {middle:.0f} characters to a line in the middle")
    assert 60 < middle < 72
    page.close()


# Where a line of code is wrapped, its second row must begin to the right of its first.
HANGING = """() => [...document.querySelectorAll("div.cell_input .code-line")]
  .filter((line) => line.offsetParent && line.textContent.trim())
  .flatMap((line) => {
    const words = document.createTreeWalker(line, NodeFilter.SHOW_TEXT), rows = new Map();
    for (let node = words.nextNode(); node; node = words.nextNode()) {
      for (let i = 0; i < node.length; i += 1) {
        if (!node.data[i].trim()) continue;
        const range = document.createRange();
        range.setStart(node, i);
        range.setEnd(node, i + 1);
        const box = range.getBoundingClientRect();
        const row = Math.round(box.top / 4);
        rows.set(row, Math.min(rows.get(row) ?? Infinity, box.left));
      }
    }
    const [first, ...others] = rows.values();
    return others.length ? [[line.textContent, Math.min(...others) - first]] : [];
  })"""


def test_a_wrapped_line_of_code_goes_on_under_itself(browser: object, address: str) -> None:  # noqa: F811
    """On a phone, where most lines are wrapped: two characters, give or take a pixel."""
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.set_default_timeout(120_000)
    page.goto(f"{address}/notebooks/00_audit_your_own_model.html")
    wrapped = page.evaluate(HANGING)
    assert len(wrapped) > 20
    for line, further in wrapped:
        assert further > 10, f"{line!r} goes on {further:.0f} pixels to the right"
    shown = page.locator("div.cell_input pre").first.inner_text()
    assert "\n\n" not in shown, "copied code has lines in between"
    page.close()


def test_every_reference_is_keyed_as_cited_and_has_a_link() -> None:
    def soup(name: str) -> BeautifulSoup:
        return BeautifulSoup((HTML / f"{name}.html").read_text("utf-8"), "html.parser")

    keys: dict[str, str] = {}
    for entry in soup("book/bibliography").select(".citation"):
        key = entry.select_one(".label").get_text().strip("[]")
        assert entry.select('a[href^="https:"]'), f"{key} has no link"
        assert key not in keys.values(), f"two are called {key}"
        keys[entry["id"]] = key
    assert len(keys) > 30
    pages = [p.relative_to(HTML).with_suffix("").as_posix() for p in HTML.rglob("*.html")]
    cited = 0
    for name in (p for p in pages if p.startswith(("book/", "notebooks/"))):
        for link in soup(name).select('.bd-article a[href*="bibliography.html#"]'):
            key = keys[link["href"].partition("#")[2]]
            assert link.get_text() == key, f"{name} calls [{key}] {link.get_text()}"
            cited += 1
    assert cited > 100


@pytest.mark.parametrize(
    ("page", "name"),
    [("objectives", "Objective"), ("federated", "Params"), ("defences", "Defence")],
)
def test_a_type_s_name_in_a_signature_leads_to_what_it_is(page: str, name: str) -> None:
    text = (HTML / "book" / "api" / f"{page}.html").read_text("utf-8")
    links = re.findall(rf'<a class="reference internal" href="([^"]*)" title="{name}">', text)
    assert links
    for link in links:
        where, _, anchor = link.partition("#")
        target = HTML / "book" / "api" / where if where else HTML / "book" / "api" / f"{page}.html"
        assert f'id="{anchor}"' in target.read_text("utf-8")


def test_a_film_s_contact_sheet_fits_on_paper(browser: object, address: str) -> None:  # noqa: F811
    page = browser.new_page()
    for name in ("04_many_steps", "07_sme"):
        page.goto(f"{address}/notebooks/{name}.html")
        page.wait_for_load_state("networkidle")
        page.emulate_media(media="print")
        tall = page.locator(".smelib-film img").evaluate_all("(i) => i.map((i) => i.clientHeight)")
        assert tall
        assert max(tall) < 22 / 2.54 * 96, f"{name}: {max(tall)} pixels, more than 22 centimetres"
        page.emulate_media(media="screen")
    page.close()


def test_a_page_prints_light_and_unfolded(browser: object, address: str) -> None:  # noqa: F811
    page = browser.new_context(color_scheme="dark").new_page()
    page.goto(f"{address}/notebooks/01_what_the_server_sees.html")
    page.emulate_media(media="print")
    assert page.locator("#ch1-film img").is_visible(), "the contact sheet"
    assert page.get_by_text("All six fall below 18 dB").is_visible(), "a folded solution"
    folded = "div.cell.tag_hide-input:not(.tag_solution) details.hide"
    assert not page.locator(folded).first.is_visible(), "the code of a figure"
    assert page.locator("div.cell.tag_solution pre").first.is_visible(), "one solution"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.close()


SHOWN = """() => {
  const lines = (node) => node.innerText.split("\\n").filter((line) => line.trim());
  const open = [...document.querySelectorAll("div.cell")].filter(
    (cell) => !cell.matches(".tag_hide-input, .tag_hide-cell, .tag_your-turn"));
  return {
    code: open.flatMap((cell) => [...cell.querySelectorAll("div.cell_input pre")])
      .map((pre) => lines(pre).length),
    tests: [...document.querySelectorAll("div.cell_output pre")].flatMap(lines)
      .filter((line) => /(True|False)[.)]?$/.test(line.trim())),
    runner: document.body.innerText.includes("NBVAL"),
  };
}"""


def test_a_chapter_shows_an_idea_and_not_its_tests(browser: object, address: str) -> None:  # noqa: F811
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    names = sorted(p.name for p in (HTML / "notebooks").glob("*.html") if p.name[:2] != "00")
    assert len(names) >= 13
    for name in names:
        page.goto(f"{address}/notebooks/{name}")
        found = page.evaluate(SHOWN)
        assert not found["runner"], name
        assert not found["tests"], f"{name} prints {found['tests'][0]}"
        assert found["code"], name
        assert max(found["code"]) <= 15, f"{name} has a cell of {max(found['code'])} lines"
        assert sum(found["code"]) <= 150, f"{name} shows {sum(found['code'])} lines of code"
    page.close()
