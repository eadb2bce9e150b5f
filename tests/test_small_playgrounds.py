"""The smaller playgrounds of chapters 2, 3, 6 and 9 in a real browser, by every hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from chromium import NO_BOOK, address, browser  # noqa: F401
from test_front_page import HANDS, INK, part, press, settled, slide
from test_pages import listen

pytestmark = NO_BOOK
PAGES = {
    "units": "02_dlg",
    "arrows": "03_ig",
    "turning": "06_low_rank",
    "sampling": "09_shootout",
}


@pytest.fixture
def panel(browser: object, address: str) -> Callable[[str], tuple]:  # noqa: F811
    """A function that opens a playground; the page must stay silent."""
    context = browser.new_context(has_touch=True, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    said = listen(page)

    def opened(name: str) -> tuple:
        page.goto(f"{address}/notebooks/{PAGES[name]}.html")
        page.locator(f".{name}[data-ready]").wait_for()
        return page, page.locator(f".{name}")

    yield opened
    assert not said
    context.close()


def sentence(root: object) -> str:
    return part(root, "sentence").inner_text()


@pytest.mark.parametrize("hand", HANDS)
def test_a_hidden_unit_shows_its_picture(panel: Callable, hand: str) -> None:
    page, root = panel("units")
    assert "only " in sentence(root), "it opens on a unit that one drawing passes alone"
    before, picture = sentence(root), part(root, "picture").evaluate(INK)
    grid = part(root, "grid")
    if hand == "keyboard":
        grid.focus()
        page.keyboard.press("ArrowRight")
    else:
        press(page, grid, hand, x=0.9, y=0.9)
    settled(page)
    assert sentence(root) != before
    assert part(root, "picture").evaluate(INK) != picture
    slide(page, part(root, "count"), hand)
    settled(page)
    assert int(part(root, "clean").inner_text()) < int(part(root, "blended").inner_text())


@pytest.mark.parametrize("hand", HANDS)
def test_an_arrow_can_be_dragged_until_the_rankings_disagree(panel: Callable, hand: str) -> None:
    page, root = panel("arrows")
    assert "disagree" in sentence(root)
    plane = part(root, "plane")
    before = part(root, "yours-angle").inner_text()
    if hand == "keyboard":
        plane.focus()
        for _ in range(6):
            page.keyboard.press("ArrowRight")
    else:
        press(page, plane, hand, x=0.52, y=0.5)
    settled(page)
    assert part(root, "yours-angle").inner_text() != before
    assert "Both agree: yours" in sentence(root)


@pytest.mark.parametrize("hand", HANDS)
def test_the_path_can_be_turned(panel: Callable, hand: str) -> None:
    page, root = panel("turning")
    space = part(root, "space")
    assert "three" in sentence(root)
    drawn = {space.evaluate(INK)}
    for name in ("above", "edge"):
        press(page, part(root, name), hand)
        settled(page)
        drawn.add(space.evaluate(INK))
    slide(page, part(root, "stretch"), hand)
    settled(page)
    drawn.add(space.evaluate(INK))
    space.focus()
    page.keyboard.press("ArrowDown")
    settled(page)
    drawn.add(space.evaluate(INK))
    assert len(drawn) == 5, "every control turns or stretches the path"


@pytest.mark.parametrize("hand", HANDS)
def test_the_interval_shrinks_with_clients(panel: Callable, hand: str) -> None:
    page, root = panel("sampling")
    before = sentence(root)
    slide(page, part(root, "clients"), hand)
    settled(page)
    most = sentence(root)
    assert most != before
    press(page, part(root, "again"), hand)
    settled(page)
    start = "The same for both attacks: "
    alone = [s.partition(start)[2].partition(". Others")[0] for s in (most, sentence(root))]
    assert alone[0] == alone[1], "with all clients the order does not matter to the pairs"


@pytest.mark.parametrize("name", PAGES)
def test_a_playground_fits_a_phone(browser: object, address: str, name: str) -> None:  # noqa: F811
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(f"{address}/notebooks/{PAGES[name]}.html")
    page.locator(f".{name}[data-ready]").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()
