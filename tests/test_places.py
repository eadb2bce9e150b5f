"""Films where notebooks are read: JupyterLab, and stand-ins for Colab, VS Code and GitHub."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import nbformat
import pytest
from chromium import CHROMIUM, browser  # noqa: F401

ROOT = Path(__file__).resolve().parents[1]
CHAPTERS = ("03_ig", "14_defences")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine"),
]

# An output of Colab is a frame of its own, of another origin, as tall as it says that it is.
COLAB = """<style>iframe { width: 100%; height: 20px; border: 0 }</style><script>
const frame = `<html theme="dark"><style>
  html[theme=dark] { background: #383838; color: #d5d5d5 }
  body { margin: 0; font: 14px Roboto, sans-serif }
</style><body><div id="output-area"></div><script>
  const area = document.getElementById("output-area");
  addEventListener("message", ({ data }) => {
    area.innerHTML = data;
    for (const old of area.querySelectorAll("script")) {
      const copy = document.createElement("script");
      copy.textContent = old.textContent;
      old.replaceWith(copy);
    }
  });
  new ResizeObserver(() => parent.postMessage(area.offsetHeight, "*")).observe(area);
<\\/script></body></html>`;
function show(outputs) {
  for (const html of outputs) {
    const output = document.createElement("iframe");
    output.sandbox = "allow-scripts";
    output.srcdoc = frame;
    output.onload = () => output.contentWindow.postMessage(html, "*");
    addEventListener("message", ({ source, data }) => {
      if (source === output.contentWindow) output.style.height = `${data}px`;
    });
    document.body.append(output);
  }
}
</script>"""

# All outputs of VS Code share one page, under this policy; keys that reach its window are commands.
VSCODE = """<html><head><meta http-equiv="Content-Security-Policy" content="
  default-src 'none'; script-src https: 'unsafe-inline' 'unsafe-eval';
  style-src https: 'unsafe-inline'; img-src https: http: data:; font-src https:;
  connect-src https:; child-src https: data:;">
<style>
  :root { --vscode-editor-foreground: #cccccc; --vscode-editor-background: #1f1f1f }
  body {
    margin: 0; padding: 0 20px; font: 13px system-ui, sans-serif;
    color: var(--vscode-editor-foreground); background: var(--vscode-editor-background);
  }
  img { max-width: 100%; max-height: 100% }
  input:focus { outline: 1px solid red; outline-offset: -1px }
  .output { width: calc(100% - 40px); margin-left: 32px; overflow-x: auto }
</style></head>
<body class="vscode-dark" data-vscode-theme-kind="vscode-dark"><div id="container"></div><script>
const commands = [];
addEventListener("keydown", (event) => commands.push(event.key));
function show(outputs, shadow) {
  for (const html of outputs) {
    const output = document.createElement("div");
    const element = document.createElement("div");
    output.className = "output";
    element.innerHTML = html;
    (shadow ? output.attachShadow({ mode: "open" }) : output).append(element);
    document.getElementById("container").append(output);
    for (const old of element.getElementsByTagName("script")) {
      const copy = document.createElement("script");
      copy.text = old.innerText;
      element.appendChild(copy).remove();
    }
  }
}
</script></body></html>"""

# GitHub, and JupyterLab until a notebook is trusted, keep elements and little else.
GITHUB = """<script>
function show(outputs) {
  for (const html of outputs) {
    const parsed = new DOMParser().parseFromString(html, "text/html");
    for (const part of parsed.querySelectorAll("script, style, iframe")) part.remove();
    for (const part of parsed.querySelectorAll("*")) {
      for (const { name } of [...part.attributes]) {
        if (!["src", "alt", "href", "title", "width", "height"].includes(name)) {
          part.removeAttribute(name);
        }
      }
    }
    document.body.append(...parsed.body.childNodes);
  }
}
</script>"""


@cache
def films() -> list[str]:
    """The first film of each of two chapters, as stored."""
    found = []
    for chapter in CHAPTERS:
        notebook = nbformat.read(ROOT / "notebooks" / f"{chapter}.ipynb", as_version=4)
        outputs = (o for cell in notebook.cells for o in cell.get("outputs", []))
        shown = (output.get("data", {}).get("text/html", "") for output in outputs)
        found.append(next(html for html in shown if 'class="smelib-film"' in html))
    return found


class Place:
    """A page with two films on it, and what its console complains of."""

    def __init__(self, page: object) -> None:
        self.page, self.complaints = page, []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda m: m.type == "error" and self.complaints.append(m.text))

    def show(self, place: str, *, shadow: bool) -> list:
        """The films on a stand-in's page, each with the part of the page that holds it."""
        self.page.set_content(place)
        self.page.evaluate("([outputs, shadow]) => show(outputs, shadow)", [films(), shadow])
        if place == COLAB:
            frames = [self.page.frame_locator("iframe").nth(i) for i in range(len(CHAPTERS))]
            return [frame.locator(".smelib-film") for frame in frames]
        return [self.page.locator(".smelib-film").nth(i) for i in range(len(CHAPTERS))]


@pytest.fixture
def place(browser: object) -> Iterator[Place]:  # noqa: F811
    context = browser.new_context(viewport={"width": 900, "height": 1100})
    yield Place(context.new_page())
    context.close()


def label(film: object) -> str:
    return film.locator("output").inner_text()


def until(what: object, wanted: object) -> None:
    """Wait until a function gives what is wanted, ten seconds at most."""
    end = time.monotonic() + 10
    while (found := what()) != wanted and time.monotonic() < end:
        time.sleep(0.05)
    assert found == wanted


# Play, pause at the first step, and look a second later.
PAUSED = """film => new Promise((resolve) => {
  const [button, label] = ["button", "output"].map((tag) => film.shadowRoot.querySelector(tag));
  const watch = new MutationObserver(() => {
    watch.disconnect();
    button.click();
    setTimeout(() => resolve([label.innerText, button.ariaLabel]), 1000);
  });
  watch.observe(label, { childList: true });
  button.click();
})"""


def works(page: object, film: object, other: object) -> None:
    """A film obeys its slider, its keys, its button and its plot, and leaves the other alone."""
    film.locator(".film").wait_for()
    assert not film.locator("img").is_visible(), "the contact sheet, beside the film"
    carried = json.loads(film.locator("img").get_attribute("data-film"))
    frames = [f"{carried['axis']} {frame['label']}" for frame in carried["frames"]]
    untouched, picture = label(other), film.locator("canvas").nth(1)
    first = picture.evaluate("canvas => canvas.toDataURL()")
    slider, button = film.locator("input"), film.locator("button")
    slider.fill("2")
    assert label(film) == frames[2]
    for key, frame in (("Home", 0), ("ArrowRight", 1), ("ArrowUp", 2), ("ArrowLeft", 1)):
        slider.press(key)
        until(lambda: label(film), frames[frame])
    assert picture.evaluate("canvas => canvas.toDataURL()") != first
    slider.fill(str(len(frames) - 2))
    button.press("Space")
    until(lambda: label(film), frames[-1])
    until(lambda: button.get_attribute("aria-label"), "Play")
    slider.fill("0")
    assert film.evaluate(PAUSED) == [frames[1], "Play"]
    plot = film.locator(".plot").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    page.mouse.click(box["x"] + 0.99 * box["width"], box["y"] + box["height"] / 2)
    places = [frame["at"] for frame in carried["frames"]]
    assert label(film) == frames[places.index(max(places))]
    assert label(other) == untouched, "another film moved"


INK = "film => getComputedStyle(film.shadowRoot.querySelector('.film')).color"
TOO_WIDE = "film => film.scrollWidth - film.clientWidth"
# How far the lowest sign of a film stands above the end of the page that holds it.
BELOW = """film => innerHeight - Math.max(...[...film.shadowRoot.querySelectorAll(".x")].map(
  (mark) => mark.getBoundingClientRect().bottom))"""


@pytest.mark.parametrize(
    ("page", "shadow", "ink"),
    [
        pytest.param(COLAB, False, "rgb(213, 213, 213)", id="Colab"),
        pytest.param(VSCODE, False, "rgb(204, 204, 204)", id="VS Code"),
        pytest.param(VSCODE, True, "rgb(204, 204, 204)", id="VS Code, outputs in shadow roots"),
    ],
)
def test_two_films_work(place: Place, page: str, shadow: bool, ink: str) -> None:
    one, two = place.show(page, shadow=shadow)
    two.locator(".film").wait_for()
    works(place.page, one, two)
    works(place.page, two, one)
    assert {film.evaluate(INK) for film in (one, two)} == {ink}, "the ink of a dark page"
    place.page.set_viewport_size({"width": 340, "height": 900})
    for film in (one, two):
        assert film.evaluate(TOO_WIDE) == 0
        if page == COLAB:
            until(lambda film=film: film.evaluate(BELOW) >= 0, True)
    assert place.complaints == []


def test_a_film_s_keys_are_no_commands_of_vs_code(place: Place) -> None:
    film, _ = place.show(VSCODE, shadow=False)
    film.locator("input").press("ArrowDown")
    film.locator("button").press("Enter")
    assert place.page.evaluate("commands") == []
    film.locator("input").press("Control+Enter")
    assert place.page.evaluate("commands") == ["Control", "Enter"], "a cell still runs"


def test_where_html_is_cleaned_the_contact_sheets_stand(place: Place) -> None:
    place.show(GITHUB, shadow=False)
    sheets = place.page.locator("img")
    for i in range(len(CHAPTERS)):
        sheet = sheets.nth(i)
        assert sheet.is_visible()
        assert "Contact sheet: 4 pictures" in sheet.get_attribute("alt")
        sheet.evaluate("sheet => sheet.decode()")
        wide, tall = sheet.evaluate("sheet => [sheet.width, sheet.height]")
        assert 500 < wide < 900, "it fits a column"
        assert [wide, tall] == sheet.evaluate("sheet => [sheet.naturalWidth, sheet.naturalHeight]")
    assert place.page.locator("button, input, script, style").count() == 1, "the page's own script"
    assert place.complaints == []


# JupyterLab itself.

SETTINGS = {
    "themes": {"theme": "JupyterLab Dark"},
    "notification": {"fetchNews": "false", "checkForUpdates": False},
}
OWN = {  # what a reader's JupyterLab keeps elsewhere
    "JUPYTER_CONFIG_DIR": "config",
    "JUPYTER_DATA_DIR": "data",
    "JUPYTER_RUNTIME_DIR": "runtime",
    "JUPYTERLAB_SETTINGS_DIR": "settings",
    "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    "IPYTHONDIR": "ipython",
}


def write_films(path: Path) -> None:
    """A notebook that nobody has signed, with two films and headings to jump to."""
    cells = []
    for html in films():
        output = nbformat.v4.new_output("display_data", {"text/html": html})
        cells.append(nbformat.v4.new_code_cell("film", outputs=[output]))
        cells.append(nbformat.v4.new_markdown_cell("## A heading"))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(notebook, path)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """The address of a JupyterLab of its own."""
    pytest.importorskip("jupyterlab")
    chosen = tmp_path / "settings" / "@jupyterlab" / "apputils-extension"
    chosen.mkdir(parents=True)
    for name, values in SETTINGS.items():
        (chosen / f"{name}.jupyterlab-settings").write_text(json.dumps(values), "utf-8")
    write_films(tmp_path / "films.ipynb")
    options = {"ip": "127.0.0.1", "port": 0, "token": "", "password": "", "root_dir": tmp_path}
    options |= {"open_browser": False, "allow_root": True}
    named = [f"--ServerApp.{name}={value}" for name, value in options.items()]
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *named, "--LabApp.expose_app_in_browser=True"],
        env=os.environ | {name: str(tmp_path / folder) for name, folder in OWN.items()},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    yield listening(server, tmp_path / "runtime")
    server.terminate()
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def listening(server: subprocess.Popen, runtime: Path) -> str:
    """Where a server listens, as soon as it has written that down."""
    end = time.monotonic() + 60
    while time.monotonic() < end and server.poll() is None:
        for about in runtime.glob("jpserver-*.json"):
            if found := re.search(r'"port": (\d+)', about.read_text("utf-8")):
                return f"http://127.0.0.1:{found[1]}"
        time.sleep(0.1)
    server.kill()
    pytest.fail("JupyterLab did not start within a minute")


def test_two_films_in_jupyterlab_before_and_after_trust(place: Place, lab: str) -> None:
    page = place.page
    page.set_default_timeout(60_000)
    page.goto(f"{lab}/doc/tree/films.ipynb?reset")
    one, two = page.locator(".smelib-film").nth(0), page.locator(".smelib-film").nth(1)
    for film in (one, two):
        film.locator("img").wait_for()
        assert film.locator("button, input, .film").count() == 0, "dead controls"
    page.evaluate("() => { jupyterapp.commands.execute('notebook:trust') }")
    page.locator(".jp-Dialog .jp-mod-accept").click()
    two.locator(".film").wait_for()
    assert one.evaluate(INK) == "rgb(255, 255, 255)", "the ink of JupyterLab's dark theme"
    works(page, one, two)
    assert place.complaints == []
