"""What a reader with a screen reader, a keyboard or weak eyes meets: axe-core on every page."""

from __future__ import annotations

from pathlib import Path

from chromium import HTML, NO_BOOK, address, browser  # noqa: F401

pytestmark = NO_BOOK

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text(encoding="utf-8")
# What the book's authors write, not the theme's frame around it. Signatures and the list of
# references are Sphinx's: it sets a long signature as a list of definitions without terms.
RUN = """(rules) => axe.run({ include: [".bd-article"], exclude: ["dt.sig", ".citation-list"] }, {
  runOnly: rules, resultTypes: ["violations"],
}).then(({ violations }) => violations
  .filter((v) => ["serious", "critical"].includes(v.impact))
  .flatMap((v) => v.nodes.map((n) =>
    [v.id, n.target.join(" "), `${n.html.slice(0, 120)} ${n.any[0]?.message ?? ""}`])))"""
DARK = "() => { document.documentElement.dataset.theme = 'dark'; }"


def test_no_page_has_a_serious_finding(browser: object, address: str) -> None:  # noqa: F811
    """Everything on the light page, and the contrasts once more on the dark one."""
    context = browser.new_context(
        color_scheme="light", viewport={"width": 1280, "height": 900}, reduced_motion="reduce"
    )
    page, found = context.new_page(), {}
    names = sorted(p.relative_to(HTML).as_posix() for p in HTML.rglob("*.html"))
    names = [n for n in names if n.startswith(("book/", "notebooks/", "assignments/"))]
    assert len(names) > 25
    for name in names:
        page.goto(f"{address}/{name}")
        page.wait_for_load_state("networkidle")
        page.evaluate(AXE)
        seen = page.evaluate(RUN, ["wcag2a", "wcag2aa"])
        page.evaluate(DARK)
        seen += page.evaluate(RUN, ["color-contrast"])
        for rule, target, html in seen:
            found.setdefault(rule, []).append(f"{name} {target}: {html}")
    context.close()
    words = [f"{rule}, {len(at)} times, first {at[0]}" for rule, at in found.items()]
    assert not found, "\n".join(words)
