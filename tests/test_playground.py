"""Chapter 5's playground in a real browser: SciPy's flow, every control, state in the address."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from chromium import NO_BOOK, address, browser  # noqa: F401
from test_front_page import HANDS, INK, press, settled, slide
from test_front_page import part as part_of
from test_pages import listen

from smelib import theory

pytestmark = NO_BOOK
PAGE = "notebooks/05_gradient_flow_2d.html"


def part(page: object, name: str, panel: str = ".playground") -> object:
    """A part of one of the page's panels."""
    return part_of(page.locator(panel), name)


@pytest.fixture
def page(browser: object, address: str) -> Iterator[object]:  # noqa: F811
    context = browser.new_context(has_touch=True, viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    said = listen(opened)
    opened.goto(f"{address}/{PAGE}")
    opened.locator(".playground[data-ready]").wait_for()
    yield opened
    assert not said
    context.close()


def lands(conditioning: float, turn: float) -> dict[str, theory.Landscape]:
    """The playground's losses, written once more; only their gradients are asked for."""
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    axes = np.array([[c, -s], [s, c]])  # columns: the turned axes

    def convex(w: np.ndarray) -> np.ndarray:
        p, q = w @ axes[:, 0], w @ axes[:, 1]
        return np.stack([2 * np.tanh(2 * p), q**3 / 10 + q / 10], -1) @ axes.T

    return {
        "bowl": theory.quadratic(axes @ np.diag([1, 1 / conditioning]) @ axes.T).gradient,
        "convex": convex,
        "valley": theory.sine_valley(stiffness=6.0).gradient,
    }


FLOW = """async ([loss, conditioning, turn, start, time]) => {
  const { LOSSES, flow, parallel } = await import("/_static/flow.mjs");
  const land = LOSSES[loss]({ conditioning, turn });
  const path = flow(land.gradient, start, time);
  return [path.filter((_, i) => i % 100 === 0), parallel(land.gradient, path)];
}"""


@pytest.mark.parametrize("loss", ["bowl", "convex", "valley"])
def test_the_flow_is_that_of_scipy(page: object, loss: str, capsys: pytest.CaptureFixture) -> None:
    draw, worst = np.random.default_rng(5), 0.0
    for _ in range(20):
        conditioning, turn, time = draw.uniform(1, 50), draw.uniform(-90, 90), draw.uniform(0.5, 12)
        start = draw.uniform(-2, 2, 2)
        gradient = lands(conditioning, turn)[loss]
        path, found = page.evaluate(FLOW, [loss, conditioning, turn, start.tolist(), time])
        theirs = theory.flow(gradient, start, time, points=5)
        worst = max(worst, float(np.abs(np.array(path) - theirs).max()))
        expected = theory.parallel_points(gradient, theirs[0], theirs[-1])
        assert len(found) == len(expected)
        assert np.allclose(found, expected, atol=1e-2)
    with capsys.disabled():
        print(f"\n{loss}: the flow differs from SciPy's by at most {worst:.0e}")
    assert worst < 1e-3


@pytest.mark.parametrize("hand", HANDS)
def test_the_start_can_be_dragged(page: object, hand: str) -> None:
    plane = part(page, "plane")
    before, sentence = plane.evaluate(INK), part(page, "sentence").inner_text()
    assert "The proposition holds: 1 parallel point, cosine +1" in sentence
    plane.scroll_into_view_if_needed()
    if hand == "keyboard":
        plane.focus()
        page.keyboard.press("ArrowLeft")
    else:
        press(page, plane, hand, x=0.3, y=0.4)
    settled(page)
    assert plane.evaluate(INK) != before
    assert "#play=x:" in page.url, "the address keeps the state"


@pytest.mark.parametrize("hand", HANDS)
def test_every_slider_answers(page: object, hand: str) -> None:
    for name in ("time", "alpha", "conditioning", "turn", "rate", "noise"):
        before = part(page, f"{name}-text").inner_text()
        slide(page, part(page, name), hand)
        settled(page)
        assert part(page, f"{name}-text").inner_text() != before, name
    assert "no flow" in part(page, "sentence").inner_text()
    if hand != "keyboard":
        press(page, part(page, "graph"), hand, x=0.5)
        settled(page)
        assert part(page, "alpha-text").inner_text().startswith("0.50")


def test_a_link_brings_the_state_along(page: object, address: str) -> None:  # noqa: F811
    part(page, "loss").select_option("valley")
    part(page, "time").fill("9")
    settled(page)
    assert "2 parallel points" in part(page, "sentence").inner_text()
    other = page.context.new_page()
    other.goto(page.url)
    other.locator(".playground[data-ready]").wait_for()
    assert part(other, "loss").input_value() == "valley"
    assert part(other, "sentence").inner_text() == part(page, "sentence").inner_text()
    other.close()


def test_the_proof_can_be_walked_through(page: object) -> None:
    part(page, "loss").select_option("valley")
    part(page, "time").fill("9")
    settled(page)
    said = []
    for _ in range(4):
        part(page, "proof").click()
        settled(page)
        said.append(part(page, "sentence").inner_text())
    assert [s[:6] for s in said] == ["1 of 4", "2 of 4", "3 of 4", "4 of 4"]
    assert "case 2" in said[2]
    part(page, "proof").click()
    settled(page)
    assert "The proposition holds" in part(page, "sentence").inner_text()


@pytest.mark.parametrize("hand", HANDS)
def test_the_helix_turns_and_has_no_parallel_point(page: object, hand: str) -> None:
    page.locator(".helix[data-ready]").wait_for()
    space = part(page, "space", ".helix")
    assert "0.707: no point is parallel" in part(page, "sentence", ".helix").inner_text()
    before = space.evaluate(INK)
    slide(page, part(page, "turns", ".helix"), hand)
    settled(page)
    assert "After 2.00 turns" in part(page, "sentence", ".helix").inner_text()
    assert space.evaluate(INK) != before
    space.focus()
    before = space.evaluate(INK)
    page.keyboard.press("ArrowLeft")
    settled(page)
    assert space.evaluate(INK) != before
