"""What a reader with a screen reader, a keyboard or weak eyes meets: axe-core on every page."""

from __future__ import annotations

from pathlib import Path

import pytest
from chromium import HTML, NO_BOOK, address, browser  # noqa: F401

pytestmark = NO_BOOK

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text(encoding="utf-8")
# Only what the book's authors write: the article, not the theme's frame around it.
# Signatures are left out: Sphinx sets a long one as a list of definitions without terms.
RUN = """() => axe.run({ include: [".bd-article"], exclude: ["dt.sig"] }, {
  runOnly: ["wcag2a", "wcag2aa"], resultTypes: ["violations"],
}).then(({ violations }) => violations
  .filter((v) => ["serious", "critical"].includes(v.impact))
  .flatMap((v) => v.nodes.map((n) =>
    [v.id, n.target.join(" "), `${n.html.slice(0, 120)} ${n.any[0]?.message ?? ""}`])))"""


def pages() -> list[str]:
    names = [p.relative_to(HTML).as_posix() for p in HTML.rglob("*.html")]
    return sorted(n for n in names if n.startswith(("book/", "notebooks/", "assignments/")))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_serious_finding(browser: object, address: str, scheme: str) -> None:  # noqa: F811
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": 1280, "height": 900}, reduced_motion="reduce"
    )
    page, found = context.new_page(), {}
    for name in pages():
        page.goto(f"{address}/{name}")
        page.wait_for_load_state("networkidle")
        page.evaluate(AXE)
        for rule, target, html in page.evaluate(RUN):
            found.setdefault(rule, []).append(f"{name} {target}: {html}")
    context.close()
    words = [f"{rule}, {len(at)} times, first {at[0]}" for rule, at in found.items()]
    assert not found, "\n".join(words)
