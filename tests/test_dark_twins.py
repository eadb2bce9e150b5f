"""The dark twins of figures: ink that can be read, colours told apart, pictures left alone."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import ImageColor
from skimage.color import deltaE_ciede2000, rgb2lab

from smelib.viz.figures import COLOURS, INK

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "book" / "_ext"))
import dark_twins

GROUND = (18, 18, 18)  # of a dark page; tests/test_pages.py sees whether it still is
PALETTE = {**COLOURS, "ink": INK}


def colour(name: str) -> np.ndarray:
    return np.array(ImageColor.getrgb(PALETTE[name]))


def contrast(one: np.ndarray, other: np.ndarray) -> float:
    """The web's measure: 4.5 is asked of words."""
    parts = np.array([one, other]) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    low, high = sorted(linear @ [0.2126, 0.7152, 0.0722])
    return (high + 0.05) / (low + 0.05)


def difference(one: np.ndarray, other: np.ndarray) -> float:
    lab = [rgb2lab(np.array(c)[None, None] / 255) for c in (one, other)]
    return deltaE_ciede2000(*lab).item()


def figure(*, height: int = 120, width: int = 160) -> np.ndarray:
    """Nothing but a transparent ground."""
    return np.zeros((height, width, 4), np.uint8)


@pytest.mark.parametrize("name", PALETTE)
def test_ink_can_be_read_on_a_dark_page(name: str) -> None:
    assert contrast(dark_twins.lighten(colour(name)), GROUND) >= 4.5


def test_words_are_as_clear_as_the_text_around_them() -> None:
    assert contrast(dark_twins.lighten(colour("ink")), GROUND) > 7


def test_colours_stay_apart() -> None:
    ours = {name: c for name, c in COLOURS.items() if name != "prior"}  # the truth's grey
    for one, other in itertools.combinations(ours, 2):
        apart = difference(*(dark_twins.lighten(colour(name)) for name in (one, other)))
        assert apart > 15, f"{one} and {other}"


def test_grey_is_told_from_green_by_lightness_alone() -> None:
    grey, green = (dark_twins.lighten(colour(name)) for name in ("truth", "dlfa"))
    assert contrast(grey, green) > 1.4


def test_a_line_gets_lighter_and_its_soft_edge_stays_soft() -> None:
    drawn = figure()
    drawn[50:54, 10:150] = (*colour("ink"), 255)
    drawn[54, 10:150] = (*colour("ink"), 90)
    shown = dark_twins.twin(drawn)
    assert (shown[..., 3] == drawn[..., 3]).all()
    assert (shown[50:55, 10:150, :3] == dark_twins.lighten(colour("ink"))).all()
    assert (drawn[50, 10, :3] == colour("ink")).all(), "what was given has changed"
    assert not shown[drawn[..., 3] == 0].any()


def test_a_bar_gets_lighter_though_it_is_solid() -> None:
    drawn = figure()
    drawn[20:110, 30:70] = (*colour("sme"), 255)
    drawn[20:60, 48:52] = (*colour("ink"), 255)  # an error bar
    shown = dark_twins.twin(drawn)
    assert (shown[80, 40, :3] == dark_twins.lighten(colour("sme"))).all()
    assert (shown[30, 50, :3] == dark_twins.lighten(colour("ink"))).all()


def test_a_picture_stays_as_it_is_and_its_frame_does_not() -> None:
    drawn = figure()
    noise = np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8)
    drawn[30:90, 40:120] = np.dstack((noise, np.full((60, 80), 255)))
    drawn[26:28, 36:124] = (*colour("ink"), 255)
    shown = dark_twins.twin(drawn)
    assert (shown[30:90, 40:120] == drawn[30:90, 40:120]).all()
    assert (shown[26, 60, :3] == dark_twins.lighten(colour("ink"))).all()


def test_a_digit_on_much_white_is_a_picture() -> None:
    drawn = figure()
    drawn[20:100, 20:100] = 255
    drawn[50:66, 52:68, :3] = np.arange(0, 256).reshape(16, 16, 1)
    assert (dark_twins.twin(drawn) == drawn).all()


def test_a_bar_beside_a_picture_is_still_a_bar() -> None:
    drawn = figure()
    noise = np.random.default_rng(1).integers(0, 256, (60, 60, 3), dtype=np.uint8)
    drawn[30:90, 10:70] = np.dstack((noise, np.full((60, 60), 255)))
    drawn[30:90, 90:150] = (*colour("ig"), 255)
    found = dark_twins.pictures(drawn)
    assert found[30:90, 10:70].all()
    assert found.sum() == 60 * 60


LINKED = (
    '<a class="reference internal image-reference" href="../_images/f.png" style="--own: 60px">'
    '<img alt="A line." src="../_images/f.png" style="width: 60px; height: 40px;" />\n</a>'
)


@pytest.mark.parametrize(
    "html", [LINKED, '<img alt="A line." src="../_images/f.png" />'], ids=["linked", "alone"]
)
def test_each_page_has_its_own_of_two(html: str) -> None:
    assert dark_twins.FIGURE.fullmatch(html)
    light, dark = dark_twins.FIGURE.findall(dark_twins.both(html, "f.png", (120, 80)))
    assert 'class="on-light ' in light
    assert 'class="on-dark ' in dark
    assert "f-dark.png" not in light
    assert "/f.png" not in dark
    for one in (light, dark):
        assert one.count('alt="A line."') == one.count('loading="lazy"') == 1
        assert one.count("f.png") + one.count("f-dark.png") == html.count("f.png")
