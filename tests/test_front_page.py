"""The front page and the films in a real browser, by mouse, by touch and by keyboard."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
import torch
import yaml
from chromium import HTML, NO_BOOK, address, browser  # noqa: F401
from PIL import Image
from test_pages import listen
from torch.nn.functional import cross_entropy

ROOT = Path(__file__).resolve().parents[1]
HANDS = ["mouse", "touch", "keyboard"]
pytestmark = NO_BOOK
INK = "canvas => canvas.toDataURL()"


@pytest.fixture
def page(browser: object, address: str) -> Iterator[object]:  # noqa: F811
    """The front page on a machine with a mouse and a touch screen; it must stay silent."""
    context = browser.new_context(has_touch=True, viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    said = listen(opened)
    opened.goto(f"{address}/book/index.html")
    opened.locator(".leak[data-ready]").wait_for()
    yield opened
    assert not said
    context.close()


def part(page: object, name: str) -> object:
    return page.locator(f'[data-part="{name}"]')


def press(page: object, target: object, hand: str, x: float = 0.5, y: float = 0.5) -> None:
    """Touch a control at a share of its width and height, or press Enter on it."""
    target.scroll_into_view_if_needed()
    box = target.bounding_box()
    place = {"x": box["width"] * x, "y": box["height"] * y}
    if hand == "mouse":
        target.click(position=place)
    elif hand == "touch":
        target.tap(position=place)
    else:
        target.focus()
        page.keyboard.press("Enter")


def slide(page: object, slider: object, hand: str) -> None:
    """Move a slider to its last value."""
    if hand == "keyboard":
        slider.focus()
        page.keyboard.press("End")
    else:
        press(page, slider, hand, x=0.997)


def settled(page: object) -> None:
    page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )


@pytest.mark.parametrize("hand", HANDS)
def test_a_drawing_reaches_the_server(page: object, hand: str) -> None:
    sheet, server = part(page, "sheet"), part(page, "server")
    press(page, part(page, "clear"), hand)
    settled(page)
    assert "empty sheet" in part(page, "verdict").inner_text()
    empty = server.evaluate(INK)
    if hand == "keyboard":
        sheet.focus()
        for key in ("Space", *["ArrowRight"] * 5, *["ArrowDown"] * 4):
            page.keyboard.press(key)
    elif hand == "touch":
        sheet.tap(position={"x": 60, "y": 80})
        sheet.tap(position={"x": 160, "y": 120})
    else:
        box = sheet.bounding_box()
        page.mouse.move(box["x"] + 40, box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + 180, box["y"] + 160, steps=8)
        page.mouse.up()
    settled(page)
    assert sheet.evaluate(INK) == server.evaluate(INK) != empty
    assert "No pixel is off by more than" in part(page, "verdict").inner_text()


@pytest.mark.parametrize("hand", HANDS)
def test_two_sliders_break_it(page: object, hand: str) -> None:
    sheet, server = part(page, "sheet"), part(page, "server")
    assert sheet.evaluate(INK) == server.evaluate(INK)
    slide(page, part(page, "batch"), hand)
    settled(page)
    assert sheet.evaluate(INK) != server.evaluate(INK), "sixteen pictures blend"
    assert "one of the 16 pictures alone" in part(page, "verdict").inner_text()
    slide(page, part(page, "noise"), hand)
    settled(page)
    assert "broken" in part(page, "verdict").inner_text()
    assert part(page, "noise").get_attribute("aria-valuetext") == "20 × the update"


@pytest.mark.parametrize("hand", HANDS)
def test_units_and_drawings_can_be_picked(page: object, hand: str) -> None:
    units, before = part(page, "units"), part(page, "unit").inner_text()
    if hand == "keyboard":
        units.focus()
        page.keyboard.press("ArrowUp")
    else:
        press(page, units, hand, x=0.06, y=0.1)
    settled(page)
    assert part(page, "unit").inner_text() != before
    first = part(page, "sheet").evaluate(INK)
    press(page, part(page, "another"), hand)
    settled(page)
    assert part(page, "sheet").evaluate(INK) != first


@pytest.mark.parametrize("hand", HANDS)
def test_a_film_plays_pauses_and_slides(page: object, hand: str) -> None:
    film = page.locator("#film-photos")
    button, slider, label = (film.locator(tag) for tag in ("button", "input", "output"))
    first = film.locator("canvas").nth(1).evaluate(INK)
    assert label.inner_text() == "step 0"
    press(page, button, hand)
    assert button.get_attribute("aria-label") == "Pause"
    page.wait_for_timeout(700)
    press(page, button, hand)
    assert button.get_attribute("aria-label") == "Play"
    shown = label.inner_text()
    assert shown != "step 0"
    page.wait_for_timeout(400)
    assert label.inner_text() == shown, "paused"
    slide(page, slider, hand)
    assert label.inner_text() == "step 200"
    assert film.locator("canvas").nth(1).evaluate(INK) != first
    assert "PSNR in dB, SME" in slider.get_attribute("aria-valuetext")
    if hand == "keyboard":
        page.keyboard.press("ArrowLeft")
    else:
        press(page, film.locator(".plot").first, hand, x=0.5)
        assert label.inner_text() in ("step 93", "step 100", "step 106")
    assert label.inner_text() != "step 200"


def test_the_first_film_plays_by_itself_unless_told_not_to(
    page: object,
    browser: object,  # noqa: F811
    address: str,  # noqa: F811
) -> None:
    label = page.locator("#film-mnist output")
    page.locator("#film-mnist").scroll_into_view_if_needed()
    page.wait_for_timeout(900)
    assert label.inner_text() != "step 0"
    still = browser.new_context(reduced_motion="reduce").new_page()
    still.goto(f"{address}/book/index.html")
    still.locator("#film-mnist").scroll_into_view_if_needed()
    still.wait_for_timeout(900)
    assert still.locator("#film-mnist output").inner_text() == "step 0"
    still.close()


DRAWINGS = """async () => {
  const { line, SIDE } = await import("/_static/drawings.mjs");
  const { change, divide, network, train, uniform } = await import("/_static/leak.mjs");
  const [draw, net] = [uniform(11), network(SIDE * SIDE, 32, 10, 1)];
  const cases = Array.from({ length: 20 }, (_, i) => {
    const images = Array.from({ length: 1 + (i % 4) }, () => {
      const picture = new Float64Array(SIDE * SIDE);
      let pen = [SIDE * draw(), SIDE * draw()];
      for (let k = 0; k < 6; k += 1) {
        const next = [SIDE * draw(), SIDE * draw()];
        line(picture, pen, next);
        pen = next;
      }
      return picture;
    });
    const labels = images.map(() => Math.floor(10 * draw()));
    const rows = divide(change(net, train(net, images, labels, 0.1)));
    return { images: images.map((x) => [...x]), labels, rows: rows.map((row) => row && [...row]) };
  });
  return { net: Object.fromEntries(Object.entries(net).map(([k, v]) => [k, [...v]])), cases };
}"""


def test_the_division_is_that_of_torch(page: object, capsys: pytest.CaptureFixture) -> None:
    """Twenty drawings, alone and in batches: the same rows, and the same units silent."""
    found = page.evaluate(DRAWINGS)
    net = {k: torch.tensor(v, dtype=torch.float64) for k, v in found["net"].items()}
    weights = [net["W1"].view(32, 784), net["b1"], net["W2"].view(10, 32), net["b2"]]
    worst = 0.0
    for case in found["cases"]:
        w1, b1, w2, b2 = (w.clone().requires_grad_() for w in weights)
        x = torch.tensor(case["images"], dtype=torch.float64)
        loss = cross_entropy((x @ w1.T + b1).relu() @ w2.T + b2, torch.tensor(case["labels"]))
        dw, db = torch.autograd.grad(loss, (w1, b1))
        for row, change, bias in zip(case["rows"], dw, db, strict=True):
            assert (row is None) == (abs(float(bias)) < 1e-11)
            if row is not None:
                ours = torch.tensor(row, dtype=torch.float64)
                worst = max(worst, float((ours - change / bias).abs().max()))
    with capsys.disabled():
        print(f"\nthe division differs from torch's by at most {worst:.0e}")
    assert worst < 1e-5


def test_the_front_page_is_light_and_soon_ready(
    browser: object,  # noqa: F811
    address: str,  # noqa: F811
    capsys: pytest.CaptureFixture,
) -> None:
    page = browser.new_context().new_page()
    sizes: dict[str, int] = {}
    page.on("response", lambda r: sizes.update({r.url: len(r.body())}) if r.ok else None)
    page.goto(f"{address}/book/index.html")
    page.wait_for_load_state("networkidle")
    ready = int(page.locator(".leak").get_attribute("data-ready"))
    sizes = {k: v for k, v in sizes.items() if not k.startswith("data:")}
    total = sum(size for url, size in sizes.items() if "/mathjax/" not in url)
    with capsys.disabled():
        print(f"\nready after {ready} ms; {total / 1e6:.3f} MB without MathJax, the largest:")
        for url, size in sorted(sizes.items(), key=lambda pair: -pair[1])[:6]:
            print(f"  {size / 1000:6.0f} kB {url.removeprefix(address)}")
    assert ready < 2000
    assert total < 1_500_000
    page.close()


def test_the_cards_are_the_table_of_contents(page: object) -> None:
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    listed = [c["file"] for p in toc["parts"] for c in p["chapters"]]
    chapters = [f for f in listed if f.startswith("notebooks/") and "/00_" not in f]
    links = page.locator(".cards a").evaluate_all("all => all.map(a => new URL(a.href).pathname)")
    assert [unquote(link).strip("/") for link in links] == [f"{c}.html" for c in chapters]
    for place in [
        *links,
        *page.locator(".doors a").evaluate_all("all => all.map(a => new URL(a.href).pathname)"),
    ]:
        assert (HTML / place.strip("/")).is_file(), place
    page.locator(".cards").scroll_into_view_if_needed()
    page.locator(".cards li").last.scroll_into_view_if_needed()
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(300)
    wide = "all => all.map(i => i.naturalWidth)"
    assert page.locator(".cards .on-light").evaluate_all(wide) == [480] * len(chapters)
    assert page.locator(".cards .on-dark").evaluate_all(wide) == [0] * len(chapters), "not loaded"


def test_those_who_link_here_get_a_sentence_and_a_picture(page: object) -> None:
    for name in ('meta[name="description"]', 'meta[property="og:description"]'):
        assert len(page.locator(name).get_attribute("content")) > 80
    card = page.locator('meta[property="og:image"]').get_attribute("content")
    assert Image.open(HTML / "_static" / card.rsplit("/", 1)[1]).size == (1200, 630)


@pytest.mark.skipif(shutil.which("node") is None, reason="no node on this machine")
def test_the_modules_pass_their_own_tests() -> None:
    files = sorted(str(p) for p in (ROOT / "tests" / "js").glob("*.test.mjs"))
    done = subprocess.run(
        ["node", "--test", *files], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_page_opened_as_a_file_says_why_its_playground_is_asleep(
    browser: object,  # noqa: F811
    page: object,
) -> None:
    """Browsers run no modules from a file: the reader is told, and only there."""
    assert page.locator(".asleep").count() == 0
    opened = browser.new_page()
    for name in ("book/index.html", "notebooks/02_dlg.html"):
        opened.goto((HTML / name).as_uri())
        assert "make read" in opened.locator(".asleep").first.inner_text()
    opened.close()
