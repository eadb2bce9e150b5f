"""The rendered book in a real browser: offline, silent, no sideways scrolling, mathematics set."""

from __future__ import annotations

import pytest
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


@pytest.mark.parametrize("width", [1280, 390])
def test_pages_are_offline_silent_and_fit(browser: object, address: str, width: int) -> None:  # noqa: F811
    names = [p.relative_to(HTML).as_posix() for p in HTML.rglob("*.html")]
    names = [n for n in names if n.startswith(("book/", "notebooks/"))]
    assert names
    page = browser.new_page(viewport={"width": width, "height": 900})
    foreign: list[str] = []
    page.on(
        "request",
        lambda r: None if r.url.startswith((address, "data:", "blob:")) else foreign.append(r.url),
    )
    said = listen(page)
    for name in names:
        page.goto(f"{address}/{name}")
        page.wait_for_load_state("networkidle")
        assert not foreign, f"{name} loads {foreign[:3]} from elsewhere"
        assert not said, f"{name} says {said[:3]}"
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{name} is {wide} pixels wide in a window of {width}"
        if page.locator("span.math, div.math").count():
            assert page.locator("mjx-container").count(), f"{name}: mathematics is raw TeX"
    page.close()
