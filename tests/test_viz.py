"""Figures, the player and the quiz: what a reader of the static page gets to see."""

from __future__ import annotations

import base64
import io
import random
import re
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from smelib import viz
from smelib.types import InputError

CHROMIUM = shutil.which("chromium")


def pictures(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


# Pictures.


def test_pixels_are_rounded_and_clipped() -> None:
    image = torch.tensor([-1.0, 0.0, 0.5, 1.0, 2.0]).view(1, 1, 5)
    assert viz.as_pixels(image).tolist() == [[0, 0, 128, 255, 255]]
    assert viz.as_pixels(pictures(3, 4, 5)).shape == (4, 5, 3)


def test_a_grid_has_every_image_in_reading_order() -> None:
    images = torch.arange(5).view(5, 1, 1, 1).expand(5, 1, 2, 3) / 10
    sheet = viz.grid(images, columns=3, gap=1)
    assert sheet.shape == (2 * 2 + 1, 3 * 3 + 2)
    corners = sheet[::3, ::4]
    assert corners.tolist() == [[0, 26, 51], [76, 102, 255]], "the last place stays white"
    assert np.array_equal(viz.grid(images, zoom=2)[::2, ::2], viz.grid(images))


def test_a_grid_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="no images"):
        viz.grid(torch.empty(0, 1, 4, 4))


def test_a_saved_grid_is_the_grid(tmp_path: Path) -> None:
    images = pictures(3, 3, 4, 4)
    viz.save_grid(images, tmp_path / "sheet.png", zoom=2)
    assert np.array_equal(np.asarray(Image.open(tmp_path / "sheet.png")), viz.grid(images, zoom=2))


def test_compare_shows_each_reconstruction_under_its_original() -> None:
    images = pictures(3, 1, 6, 6)
    figure = viz.compare(images, {"IG": images.flip(0), "SME": images}, title="Both match")
    assert len(figure.axes) == 9
    shown = [ax.get_images()[0].get_array() for ax in figure.axes]
    for column in range(3):
        for row in (1, 2):
            assert np.array_equal(shown[3 * row + column], shown[column])


def test_an_attack_keeps_its_colour_and_the_style_stays_inside() -> None:
    before = mpl.rcParams.copy()
    figure = viz.curves(
        {"SME": [3, 2, 1], "other": [1, 1, 1]},
        xlabel="step",
        ylabel="loss",
        title="Falls",
        log=True,
    )
    first, _ = figure.axes[0].get_lines()
    assert first.get_color() == viz.COLOURS["sme"]
    assert figure.axes[0].get_yscale() == "log"
    assert figure.axes[0].get_legend() is not None
    assert mpl.rcParams == before


# The player.


class Elements(HTMLParser):
    """Every start tag of a piece of HTML, with its attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.found.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict]:
        return [attributes for name, attributes in self.found if name == tag]


def test_without_scripts_the_player_is_its_last_frame() -> None:
    page = Elements(viz.play(pictures(3, 4, 1, 8, 8), [0, 5, 9], name="ch1")._repr_html_())
    assert page.all("div")[0]["id"] == "ch1"
    frames = page.all("img")
    assert [f["data-step"] for f in frames] == ["0", "5", "9"]
    assert ["hidden" in f for f in frames] == [True, True, False]
    assert all(f["alt"] for f in frames)
    (slider,) = page.all("input")
    assert (slider["min"], slider["max"], slider["value"]) == ("0", "2", "2")
    assert slider["aria-label"]
    assert len(page.all("output")) == 1


def test_the_player_loads_nothing_and_defines_nothing() -> None:
    """No address, no script element, and styles for its own class only: two players can meet."""
    html = viz.play(pictures(2, 1, 3, 4, 4), [0, 9])._repr_html_()
    assert "//" not in re.sub(r'"data:image/png;base64,[^"]*"', "", html)
    assert "<script" not in html
    style = html.partition("<style>")[2].partition("</style>")[0]
    assert all(rule.strip().startswith(".smelib-player ") for rule in style.split("}")[:-1])


def test_a_frame_is_the_grid_of_its_images() -> None:
    frames = pictures(2, 4, 3, 5, 5)
    page = Elements(viz.play(frames, [0, 9])._repr_html_())
    data = page.all("img")[1]["src"].partition(",")[2]
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))
    assert np.array_equal(shown, viz.grid(frames[1], zoom=2))


def test_a_name_cannot_break_the_page() -> None:
    page = Elements(viz.play(pictures(1, 1, 1, 4, 4), [0], name='a"><b>')._repr_html_())
    assert page.all("div")[0]["id"] == 'a"><b>'
    assert not page.all("b")


def test_a_player_without_frames_says_what_to_do() -> None:
    for nothing in (None, torch.empty(0, 1, 1, 4, 4)):
        with pytest.raises(InputError, match="snapshots="):
            viz.play(nothing, [])
    with pytest.raises(InputError, match="2 frames"):
        viz.play(pictures(2, 1, 1, 4, 4), [0])


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_the_slider_shows_the_frame_of_its_step() -> None:
    playwright = pytest.importorskip("playwright.sync_api")
    players = [
        viz.play(pictures(3, 1, 1, 8, 8), [0, 5, 9], name=name)._repr_html_() for name in "ab"
    ]
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page()
        page.set_content("".join(players))
        first, second = page.locator("#a"), page.locator("#b")
        assert first.locator("img:visible").get_attribute("data-step") == "9"
        first.locator("input").fill("1")
        assert first.locator("img:visible").get_attribute("data-step") == "5"
        assert first.locator("output").inner_text() == "step 5"
        assert second.locator("img:visible").get_attribute("data-step") == "9"
        browser.close()


# The quiz.


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A shell that displays, as a notebook's kernel does."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    pytest.importorskip("jupyterquiz")
    shell.instance(history_length=0)
    yield
    shell.clear_instance()


def shown_by_the_quiz() -> str:
    from IPython.utils.capture import capture_output

    with capture_output() as shown:
        viz.quiz("ch0", {"Why?": [("The longest of all.", "Yes."), ("Chance.", "Think.")]})
    return "".join(str(part.data) for part in shown.outputs)


def test_a_quiz_is_the_same_every_time_and_leaves_the_generator_alone(notebook: None) -> None:
    random.seed(7)
    state = random.getstate()
    first = shown_by_the_quiz()
    assert random.getstate() == state
    random.seed(8)
    assert shown_by_the_quiz() == first
    assert "cdn.jsdelivr.net" not in first, "a page loads nothing from elsewhere"
    assert first.index("Chance.") < first.index("The longest of all."), "short answers first"
