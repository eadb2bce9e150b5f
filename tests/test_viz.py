"""Figures, the filmstrip and the quiz: what a reader of the static page gets to see."""

from __future__ import annotations

import ast
import base64
import io
import json
import logging
import re
import sys
import warnings
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import matplotlib as mpl
import matplotlib.figure
import nbformat
import numpy as np
import pytest
import torch
from chromium import CHROMIUM, browser  # noqa: F401
from matplotlib.font_manager import FontProperties, findfont, get_font
from PIL import Image
from torch import Tensor

from smelib import viz
from smelib.types import InputError
from smelib.viz.film import Axis
from smelib.viz.live import WIDGET


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


def test_a_row_s_name_can_be_read_on_paper() -> None:
    import matplotlib.pyplot as plt

    images = pictures(2, 1, 4, 4)
    figure = viz.compare(images, {"SME": images, "retrace": images})
    inks = {a.get_ylabel(): a.yaxis.label.get_color() for a in figure.axes if a.get_ylabel()}
    assert inks["SME"] == viz.COLOURS["sme"]
    assert inks["retrace"] == viz.INK, "its own colour is too light for words"
    plt.close(figure)


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


def test_no_grid_line_runs_behind_a_legend() -> None:
    import matplotlib.pyplot as plt

    def drawn() -> np.ndarray:
        figure.canvas.draw()
        return np.array(figure.canvas.buffer_rgba())[..., 3]

    with viz.style():
        figure, axis = plt.subplots()
        axis.plot([0, 1], [0, 1], label="rises")
        legend = axis.legend(loc="center left")
    with_legend = drawn()
    box = legend.get_window_extent()
    rows, columns = (slice(int(a) + 2, int(b) - 2) for a, b in (box.intervaly, box.intervalx))
    legend.set_visible(False)
    behind = drawn()[::-1][rows, columns]
    assert with_legend[::-1][rows, columns].any()  # its words
    assert not behind.any()
    assert drawn()[:, columns].any()  # elsewhere the grid is there
    plt.close(figure)


def test_an_arrow_without_a_colour_is_seen_on_a_dark_page() -> None:
    import matplotlib.pyplot as plt

    with viz.style():
        _, axis = plt.subplots()
        drawn = axis.annotate("", (1, 1), (0, 0), arrowprops={"arrowstyle": "->"})
    assert mpl.colors.to_hex(drawn.arrow_patch.get_edgecolor()) == viz.INK


# The face.

ROOT = Path(__file__).resolve().parents[1]
FONTS = ROOT / "smelib" / "viz" / "fonts"


def written() -> list[str]:
    """Every text in the code of notebooks and of `viz`: what figures may have to set."""
    pages = [nbformat.read(p, as_version=4) for p in sorted((ROOT / "notebooks").glob("*.ipynb"))]
    code = [c.source for page in pages for c in page.cells if c.cell_type == "code"]
    code += [p.read_text("utf-8") for p in (ROOT / "smelib" / "viz").glob("*.py")]
    plain = [re.sub(r"^( *)%.*", r"\1pass", source, flags=re.MULTILINE) for source in code]
    nodes = [node for source in plain for node in ast.walk(ast.parse(source))]
    docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
    constants = [n.value for n in nodes if isinstance(n, ast.Constant) and n not in docstrings]
    return [value for value in constants if isinstance(value, str)]


@pytest.mark.parametrize(("weight", "cut"), [("normal", "regular.ttf"), ("bold", "bold.ttf")])
def test_figures_are_set_in_the_pages_face(weight: str, cut: str) -> None:
    with viz.style():
        asked = FontProperties(family=mpl.rcParams["font.family"][0], weight=weight)
        assert Path(findfont(asked, fallback_to_default=False)) == FONTS / cut
    assert (FONTS / "OFL.txt").exists(), "the licence goes where the face goes"
    assert sum(p.stat().st_size for p in FONTS.glob("*.ttf")) <= 120_000


def test_the_face_has_every_sign_that_a_figure_may_use() -> None:
    signs = {s for text in written() for s in text if s.isprintable()}
    assert {"±", "−", "×", "α"} <= signs, "the notebooks were read"
    for cut in FONTS.glob("*.ttf"):
        assert not {s for s in signs if ord(s) not in get_font(cut).get_charmap()}


def test_no_figure_warns_of_a_face_or_a_sign(caplog: pytest.LogCaptureFixture) -> None:
    """Every sign and every formula of the notebooks, drawn after the style's block has ended."""
    texts = written()
    formulas = {f for text in texts for f in re.findall(r"\$[^${}\n]+\$", text)}
    formulas -= {f for f in formulas if r"\ge " in f}  # in a sentence, which MathJax sets
    signs = sorted({s for text in texts for s in text if s.isprintable()} - {"$"})
    assert len(formulas) > 10
    with caplog.at_level(logging.WARNING), warnings.catch_warnings():
        warnings.filterwarnings("error", "Glyph")
        with viz.style():
            figure = mpl.figure.Figure()
            figure.subplots().set(yscale="log", ylim=(1e-3, 1), title="−3 ± α")
            for text in ("✗ is matplotlib's own", "".join(signs), *formulas):
                figure.text(0, 0.1, text)
        figure.savefig(io.BytesIO(), format="png")
    assert not caplog.messages


# The filmstrip.


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


def carried(strip: viz.Filmstrip) -> dict:
    """What a filmstrip's HTML hands to its script."""
    (picture,) = Elements(strip._repr_html_()).all("img")
    return json.loads(picture["data-film"])


def sheet(film: dict) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(film["sheet"].partition(",")[2]))))


def a_strip(**changes: object) -> viz.Filmstrip:
    given = {
        "axis": "step",
        "values": [0, 5, 9],
        "images": {"IG": pictures(3, 4, 1, 8, 8), "SME": pictures(3, 4, 1, 8, 8, seed=1)},
        "curves": {"PSNR in dB": {"IG": [6, 8, 10], "SME": ([0, 3, 9], [6.0, 9.0, 21.0])}},
        "originals": pictures(4, 1, 8, 8, seed=2),
        "title": "Legible",
        **changes,
    }
    return viz.filmstrip(**given)


def test_without_scripts_a_filmstrip_is_a_contact_sheet() -> None:
    """One picture with a text, and the same picture where a page takes no HTML."""
    strip = a_strip()
    shown = strip._repr_mimebundle_()
    (picture,) = Elements(shown["text/html"]).all("img")
    assert picture["src"] == "data:image/png;base64," + shown["image/png"]
    size = Image.open(io.BytesIO(base64.b64decode(shown["image/png"]))).size
    assert min(size) > 300
    for word in ("Legible", "4 pictures", "step 0 to 9", "IG 10", "SME 21"):
        assert word in picture["alt"]
    assert shown["text/plain"] == "Filmstrip: 3 frames, step 0 to 9"


def test_a_filmstrip_loads_nothing_and_names_nothing() -> None:
    """No address, no element with a name unless asked, no script that a sanitiser would show."""
    html = a_strip()._repr_html_()
    assert Elements(html).all("div") == [{"class": "smelib-film"}]
    assert "<script" not in html
    addresses = set(re.findall(r"https?://[^\s&\"]+", html))
    assert addresses == {"http://www.w3.org/2000/svg"}, "the name of SVG, which nobody loads"
    assert "import" not in Elements(html).all("img")[0]["onload"]


def test_every_picture_is_on_the_sheet() -> None:
    film = carried(a_strip(originals=None))
    every = sheet(film)
    assert every.shape == (6 * 8, 4 * 8)
    second = viz.as_pixels(pictures(3, 4, 1, 8, 8, seed=1)[2, 3])
    assert np.array_equal(every[5 * 8 : 6 * 8, 3 * 8 :], second)


def test_pictures_stand_under_their_originals() -> None:
    originals = pictures(4, 1, 8, 8)
    frames = torch.stack([torch.zeros_like(originals), originals.flip(0)])
    film = carried(viz.filmstrip("step", [0, 9], frames, originals=originals))
    every = sheet(film)
    assert np.array_equal(every[8:16], every[16:24]), "the last frame, put in the originals' order"
    swapped = torch.stack([originals, originals.flip(0)])
    each = carried(viz.filmstrip("a", [0, 1], swapped, originals=originals, follow=False))
    assert np.array_equal(sheet(each)[:8], sheet(each)[8:16])


def test_curves_are_placed_on_the_axis() -> None:
    film = carried(a_strip())
    assert [frame["at"] for frame in film["frames"]] == [0, 556, 1000]
    (panel,) = film["panels"]
    ig, sme = panel["curves"]
    assert [x for x, _ in sme["line"]] == [0, 333, 1000]
    assert ig["texts"] == ["6", "8", "10"]
    assert sme["texts"] == ["6", "13", "21"], "between its own positions a curve is read off"
    assert sme["colour"] == viz.COLOURS["sme"]
    assert film["frames"][1]["say"] == "PSNR in dB, IG 8, SME 13"


def test_an_axis_may_be_logarithmic_or_have_names() -> None:
    frames = pictures(3, 1, 1, 4, 4)
    log = carried(viz.filmstrip("noise", [0.01, 0.1, 1], frames, log=True))
    assert [frame["at"] for frame in log["frames"]] == [0, 500, 1000]
    named = carried(
        viz.filmstrip("labels", ["all", "two", "one"], frames, {"dB": {"SME": [3, 2, 1]}})
    )
    assert [frame["at"] for frame in named["frames"]] == [0, 500, 1000]
    assert [text for _, text in named["ticks"]] == ["all", "two", "one"]


@pytest.mark.parametrize("values", [(0.5, 2, 8), (0.3, 0.1, 0.03), (1, 2, 8), (0.001, 0.1, 1)])
def test_a_logarithmic_axis_has_three_ticks_or_more(values: tuple[float, ...]) -> None:
    ticks = Axis(values, log=True).ticks(values)
    assert len(ticks) >= 3
    assert all(0 <= place <= 1000 for place, _ in ticks)


def test_numbers_that_are_none_leave_a_gap() -> None:
    film = carried(a_strip(curves={"dB": {"SME": [1.0, float("nan"), 3.0]}}))
    assert len(film["panels"][0]["curves"][0]["line"]) == 2
    with pytest.raises(InputError, match="no finite number"):
        a_strip(curves={"dB": {"SME": [float("nan")] * 3}})


def test_a_filmstrip_is_never_larger_than_its_limit() -> None:
    """Noise does not compress: the sheet gives up quality, and says so when that is not enough."""
    many = viz.filmstrip("step", range(40), pictures(40, 10, 3, 32, 32))
    assert len(many._repr_html_()) <= 600_000
    assert carried(many)["sheet"].startswith("data:image/jpeg")
    few = viz.filmstrip("step", range(4), pictures(4, 10, 3, 32, 32))
    assert carried(few)["sheet"].startswith("data:image/png"), "lossless where there is room"
    with pytest.raises(InputError, match="fewer frames"):
        viz.filmstrip("step", range(400), pictures(400, 20, 3, 32, 32))


def test_a_name_or_a_title_cannot_break_the_page() -> None:
    strip = a_strip(name='a"><b>', title="</script>\"'<b>&amp;")
    page = Elements(strip._repr_html_())
    assert page.all("div")[0]["id"] == 'a"><b>'
    assert not page.all("b")
    assert carried(strip)["title"] == "</script>\"'<b>&amp;"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"values": [0, 5]}, "3 frames"),
        ({"images": pictures(3, 4, 8, 8)}, r"\[K, N, C, H, W\]"),
        ({"images": {"a": pictures(3, 4, 1, 8, 8), "b": pictures(3, 2, 1, 8, 8)}}, "one shape"),
        ({"originals": pictures(3, 1, 8, 8)}, "do not stand beside"),
        ({"start": 3}, "from 0 to 2"),
        ({"curves": {"dB": {"SME": [1, 2]}}}, "2 heights for 3"),
        ({"values": [0, 1, 2], "log": True}, "positive"),
    ],
)
def test_a_filmstrip_that_cannot_be_says_why(changes: dict, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        a_strip(**changes)


def test_a_film_of_an_attack_without_snapshots_says_what_to_do() -> None:
    for nothing in (None, torch.empty(0, 1, 1, 4, 4)):
        with pytest.raises(InputError, match="snapshots="):
            viz.play(nothing, [])
    assert carried(viz.play(pictures(2, 1, 1, 4, 4), [0, 9]))["axis"] == "step"


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_two_films_on_a_page_do_not_meet(browser: object) -> None:  # noqa: F811
    """Inserted as a notebook does, by innerHTML; and an insertion twice is one film."""
    page = browser.new_page()
    page.set_content("<body></body>")
    films = a_strip(name="a")._repr_html_() + a_strip(name="b", start=2)._repr_html_()
    page.evaluate("html => { document.body.innerHTML = html }", films)
    first, second = page.locator("#a"), page.locator("#b")
    assert first.locator("output").inner_text() == "step 0"
    first.locator("input").fill("1")
    assert first.locator("output").inner_text() == "step 5"
    assert first.locator(".entry b").all_inner_texts() == ["8", "13"]
    assert second.locator("output").inner_text() == "step 9"
    assert not page.evaluate("'filmstrip' in window || 'nearest' in window")
    page.close()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_on_paper_and_without_scripts_the_contact_sheet_shows(browser: object) -> None:  # noqa: F811
    page = browser.new_page()
    page.set_content(a_strip()._repr_html_())
    page.locator(".film").wait_for()
    assert not page.locator("img").is_visible()
    page.emulate_media(media="print")
    assert page.locator("img").is_visible()
    assert not page.locator(".film").is_visible()
    page.close()
    still = browser.new_context(java_script_enabled=False).new_page()
    still.set_content(a_strip()._repr_html_())
    assert still.locator("img").is_visible()
    still.close()


# The slider of a running notebook.


def a_figure(value: float) -> mpl.figure.Figure:
    figure = mpl.figure.Figure(figsize=(2, 1))
    figure.text(0, 0, f"{value}")
    return figure


def displayed(thing: object) -> list:
    from IPython.display import display
    from IPython.utils.capture import capture_output

    with capture_output() as shown:
        display(thing)
    return shown.outputs


def test_a_slider_s_static_form_is_the_middle_picture(
    notebook: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[int] = []
    moved = viz.live(lambda value: [drawn.append(value), a_figure(value)][1], T=[1, 10, 50])
    shown, about = moved._repr_mimebundle_()
    png = base64.b64decode(shown["image/png"])
    assert drawn == [10], "what nobody chose is not computed"
    size = about["image/png"]
    assert Image.open(io.BytesIO(png)).size == (2 * size["width"], 2 * size["height"])
    assert shown["text/plain"] == "T = 10, one of 3 values"
    slider, picture = displayed(moved)
    assert WIDGET in slider.data
    assert picture.data == shown, "a slider without a kernel would hide a picture beside it"
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    (alone,) = displayed(moved)
    assert alone.data == shown, "without ipywidgets, no slider"
    assert drawn == [10], "what was drawn is kept"


def test_a_slider_moves_one_value_among_some() -> None:
    for axes in ({}, {"T": []}, {"T": [1], "E": [1]}):
        with pytest.raises(InputError, match="one value among some"):
            viz.live(a_figure, **axes)


CELL = """
import matplotlib.figure
from smelib import viz
def draw(T):
    return matplotlib.figure.Figure(figsize=(T, 1))
viz.live(draw, T=[1, 2, 3])
"""


@pytest.mark.slow
def test_a_front_end_s_slider_redraws_the_picture() -> None:
    """The message that a browser sends when a slider is moved, and the picture that comes back."""
    pytest.importorskip("ipywidgets")
    nbclient = pytest.importorskip("nbclient")
    run_sync = pytest.importorskip("jupyter_core.utils").run_sync
    page = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    client = nbclient.NotebookClient(page, timeout=300, resources={"metadata": {"path": str(ROOT)}})
    with client.setup_kernel():
        client.execute_cell(page.cells[0], 0)
        model = {s["_model_name"]: name for name, s in client.widget_state.items()}
        moved = {"method": "update", "state": {"index": 2}, "buffer_paths": []}
        slider = {"comm_id": model["SelectionSliderModel"], "data": moved}
        client.kc.shell_channel.send(client.kc.session.msg("comm_msg", slider))
        said = {"msg_type": ""}
        while said["msg_type"] != "update_display_data":
            said = run_sync(client.kc.get_iopub_msg)(timeout=60)
    above, stored = page.cells[0].outputs
    assert WIDGET in above.data
    assert WIDGET not in stored.data
    for data, wide in ((stored.data, 400), (said["content"]["data"], 600)):
        picture = Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
        assert picture.size == (wide, 200), "T = 2, and then 3"


# The quiz.


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A shell that displays, as a notebook's kernel does."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    shell.instance(history_length=0)
    yield
    shell.clear_instance()


def shown_by_the_quiz() -> str:
    from IPython.utils.capture import capture_output

    with capture_output() as shown:
        viz.quiz("ch0", {"Why <b>?": [("The longest of all.", "Yes."), ("Chance.", "Think.")]})
    (part,) = shown.outputs
    return part.data["text/html"]


def test_a_quiz_unfolds_and_needs_no_script(notebook: None) -> None:
    html = shown_by_the_quiz()
    page = Elements(html)
    assert not page.all("script")
    assert [d["name"] for d in page.all("details")] == ["ch0-1", "ch0-1"], "one open at a time"
    assert html.index("Chance.") < html.index("The longest of all."), "short answers first"
    assert [p.get("class") for p in page.all("p")] == [None, "wrong", "right"]
    assert "Why &lt;b&gt;?" in html
    assert "//" not in html, "a page loads nothing from elsewhere"
    assert html == shown_by_the_quiz()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_a_quiz_works_by_keyboard_and_does_not_scroll_away(notebook: None, browser: object) -> None:  # noqa: F811
    page = browser.new_page(viewport={"width": 600, "height": 400})
    page.set_content(f"<div style='height: 2000px'></div>{shown_by_the_quiz()}")
    page.locator("summary").first.focus()
    before = page.evaluate("scrollY")
    assert before > 1000
    page.keyboard.press("Enter")
    assert page.get_by_text("Think.").is_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert page.get_by_text("Yes.").is_visible()
    assert not page.get_by_text("Think.").is_visible()
    assert abs(page.evaluate("scrollY") - before) < 300
    page.close()


def test_a_table_is_text_and_html() -> None:
    shown = viz.table(
        ["attack", "PSNR", "said"], [["SME", "9.5 dB", "<b>"], ["IG", "[−1.0, 12.0]", "b"]]
    )
    assert repr(shown).splitlines()[2:] == [
        "SME           9.5 dB  <b>",
        "IG      [−1.0, 12.0]  b",
    ]
    page = shown._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert page.count('class="number"') == 3, "numbers and their head are set to the right"
    assert viz.COLOURS["sme"] in page
    assert page.count('scope="row"') == 2


def test_a_power_of_ten_is_a_number_in_a_table() -> None:
    shown = viz.table(["client", "slope"], [["0", "-1e-03"], ["1", "2.7e-05"]])
    assert shown._repr_html_().count('class="number"') == 3
    words = viz.table(["client", "seen"], [["0", "shape 3"], ["1", "e-mail"]])
    assert 'class="number"' not in words._repr_html_()


def test_a_table_says_how_long_its_longest_name_is() -> None:
    shown = viz.table(["claim", "n"], [["IG", 1], ["SME over IG", 2]])._repr_html_()
    assert '<table style="--name: 11">' in shown


def test_a_table_says_what_does_not_fit() -> None:
    with pytest.raises(InputError, match="2 cells under 3 columns"):
        viz.table(["a", "b", "c"], [["1", "2"]])
    with pytest.raises(InputError, match="no rows"):
        viz.table(["a"], [])


def test_a_film_from_large_to_small_shows_each_frame_s_own_numbers() -> None:
    images = torch.rand(3, 2, 1, 4, 4)
    strip = viz.filmstrip("share", [1.0, 0.1, 0.01], images, {"dB": {"SME": [3.0, 2, 1]}}, log=True)
    assert strip.film["panels"][0]["curves"][0]["texts"] == ["3", "2", "1"]


@pytest.mark.parametrize(
    "values", [[1.0, 0.1, 0.01], [8, 4, 2, 1], [0.5, 2, 8, 32], range(9, 0, -1)]
)
@pytest.mark.parametrize("log", [False, True])
def test_the_axis_of_the_curves_runs_as_the_slider_does(values: list[float], log: bool) -> None:
    heights = [float(k) for k in range(len(values))]
    images = pictures(len(values), 1, 1, 4, 4)
    film = viz.filmstrip("share", values, images, {"dB": {"SME": heights}}, log=log).film
    (curve,) = film["panels"][0]["curves"]
    at = [frame["at"] for frame in film["frames"]]
    assert at == sorted(at)
    assert (at[0], at[-1]) == (0, 1000)
    assert [x for x, _ in curve["line"]] == at
    assert curve["texts"] == [f"{k}" for k in range(len(values))]
    assert [place for place, _ in film["ticks"]] == sorted(place for place, _ in film["ticks"])
    falls = values[0] > values[-1]
    written = [float(text) for _, text in film["ticks"]]
    assert written == sorted(written, reverse=falls)

    axis = mpl.figure.Figure().subplots()
    viz.film._draw(axis, "dB", {"SME": heights}, values, Axis(values, log=log))
    assert list(axis.lines[0].get_xdata()) == at, "so does the contact sheet's"


def test_the_numbers_of_a_panel_have_as_many_decimals_each() -> None:
    heights = {"dB": [5.25, 21.0, 27.125], "1 - cos": [0.2, 0.1, -0.0], "images": [3.0, 12.0, 30.0]}
    curves = {unit: {"SME": values} for unit, values in heights.items()}
    film = viz.filmstrip("step", [0, 1, 2], pictures(3, 1, 1, 4, 4), curves).film
    read = {p["unit"]: p["curves"][0]["texts"] for p in film["panels"]}
    assert read == {
        "dB": ["5.2", "21.0", "27.1"],
        "1 - cos": ["0.200", "0.100", "0.000"],
        "images": ["3", "12", "30"],
    }
    for panel in film["panels"]:
        assert len({len(text.partition(".")[2]) for _, text in panel["ticks"]}) == 1


@pytest.mark.parametrize("values", [[1, 2, 3, 4], [4, 3, 2, 1], [1, 2, 3, 4, 5, 7, 10], range(13)])
def test_an_axis_of_whole_numbers_has_whole_ticks(values: list[int]) -> None:
    texts = [text for _, text in Axis(values, log=False).ticks(values)]
    assert len(texts) >= 3
    assert all(text.isdigit() for text in texts)
    if len(values) == 4:
        assert texts == [f"{v}" for v in values], "where there are few, the frames' own"


def test_many_names_stand_at_their_frames() -> None:
    names = [f"n{k}" for k in range(11)]
    places = Axis(names, log=False)
    at = dict(zip(names, places.of(names), strict=True))
    assert all(at[text] == place for place, text in places.ticks(names))


def test_a_contact_sheet_spaces_its_curves_as_the_film_does() -> None:
    images, values = torch.rand(3, 2, 1, 4, 4), [0.01, 0.1, 1.0]
    even, by_ratio = (
        viz.filmstrip("share", values, images, {"dB": {"SME": [1.0, 2, 3]}}, log=log)
        for log in (False, True)
    )
    assert even._repr_mimebundle_()["image/png"] != by_ratio._repr_mimebundle_()["image/png"]


def test_named_values_stand_below_a_contact_sheet_s_curves() -> None:
    figure = mpl.figure.Figure()
    axis = figure.subplots()
    names = ["0", "0.01", "1"]
    viz.film._draw(axis, "dB", {"IG": [3.0, 2.0, 1.0]}, names, Axis(names, log=False))
    assert [label.get_text() for label in axis.get_xticklabels()] == ["0", "0.01", "1"]
