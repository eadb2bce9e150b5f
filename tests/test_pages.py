"""The rendered book in a real browser: offline, no sideways scrolling, mathematics set."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HTML = ROOT / "_build" / "html"
CHROMIUM = shutil.which("chromium")

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine"),
    pytest.mark.skipif(not (HTML / "index.html").is_file(), reason="no book: run `make book`"),
]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The book on a local port, as a reader's server would show it."""
    handler = functools.partial(_Quiet, directory=str(HTML))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    playwright = pytest.importorskip("playwright.sync_api")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with playwright.sync_playwright() as p:
        running = p.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield running
        running.close()


@pytest.mark.parametrize("width", [1280, 390])
def test_pages_are_offline_and_fit(browser: object, address: str, width: int) -> None:
    names = [p.relative_to(HTML).as_posix() for p in HTML.rglob("*.html")]
    names = [n for n in names if n.startswith(("book/", "notebooks/"))]
    assert names
    page = browser.new_page(viewport={"width": width, "height": 900})
    foreign: list[str] = []
    thrown: list[str] = []
    # the theme declares this name twice, on every page
    page.on("pageerror", lambda e: "THEBE_JS_URL" in str(e) or thrown.append(str(e)))
    page.on(
        "request",
        lambda r: None if r.url.startswith((address, "data:", "blob:")) else foreign.append(r.url),
    )
    for name in names:
        page.goto(f"{address}/{name}")
        page.wait_for_load_state("networkidle")
        assert not thrown, f"{name}: its scripts say {thrown[0]}"
        assert not foreign, f"{name} loads {foreign[:3]} from elsewhere"
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, f"{name} is {wide} pixels wide in a window of {width}"
        if page.locator("span.math, div.math").count():
            assert page.locator("mjx-container").count(), f"{name}: mathematics is raw TeX"
    page.close()


def test_the_player_moves(browser: object, address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}/notebooks/01_what_the_server_sees.html")
    player = page.locator("#ch1-player")
    shown = player.locator("img:visible")
    last = player.locator("img").last.get_attribute("data-step")
    assert shown.get_attribute("data-step") == last != "0"
    player.locator("input").fill("0")
    assert shown.get_attribute("data-step") == "0"
    assert player.locator("output").inner_text() == "step 0"
    page.close()
