"""Figures in one palette and one style, the same in every chapter."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image
from torch import Tensor

from smelib.errors import InputError
from smelib.pairing import match

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart with every kind of colour vision. An attack keeps its own.
COLOURS = {
    "truth": "#767676",
    "prior": "#767676",  # what needs no update: the mean of a class
    "dlg": "#CC79A7",
    "ig": "#D55E00",
    "sme": "#0072B2",
    "retrace": "#56B4E9",
    "dlfa": "#009E73",
    "accent": "#E69F00",
}

INK = "#767676"  # of axes and words: told from a white and from a dark page alike
FACE = "Smelib Serif"  # Source Serif, the face of the pages, cut to what figures need
STYLE = {
    "font.family": [FACE, "DejaVu Sans"],  # a sign that ours lacks is matplotlib's own
    "mathtext.fontset": "dejavuserif",  # stix is thin beside our face, and dim on a dark page
    "figure.dpi": 100,
    "savefig.dpi": 100,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    **dict.fromkeys(
        (
            *("text.color", "axes.labelcolor", "axes.titlecolor", "axes.edgecolor"),
            *("xtick.color", "ytick.color", "legend.labelcolor"),
            "patch.edgecolor",  # of arrows that name no colour
        ),
        INK,
    ),
    "figure.constrained_layout.use": True,
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,  # no lines across bars
    "grid.alpha": 0.25,
    "grid.color": f"{INK}40",  # a quarter again: in three dimensions a grid has no alpha of its own
    "lines.linewidth": 2,
    "legend.frameon": False,
    "svg.hashsalt": "smelib",
}


@contextmanager
def style() -> Iterator[None]:
    """The book's figure style, for the figures drawn inside the `with` block."""
    import matplotlib.pyplot as plt

    _sharp()
    _know_face()
    before = plt.get_fignums()
    with plt.rc_context(STYLE):
        yield
        for number in plt.get_fignums():
            if number not in before:
                _clear_behind_legends(plt.figure(number))


def _clear_behind_legends(figure: Figure) -> None:
    """Cut grid and level lines where a legend stands: it has no ground that would hide them.

    A ground would have to be white on a light page and dark on a dark one.
    """
    from matplotlib.contour import ContourSet
    from matplotlib.path import Path as Outline

    flat = [axes for axes in figure.axes if axes.get_legend() and axes.name != "3d"]
    if flat:
        figure.draw_without_rendering()  # only then does a legend have its place
    for axes in flat:
        box = axes.get_legend().get_window_extent().transformed(axes.transAxes.inverted())
        if not box.overlaps(axes.patch.get_path().get_extents()):
            continue
        corners = [(box.x0, box.y0), (box.x0, box.y1), (box.x1, box.y1), (box.x1, box.y0)]
        hole = Outline([*corners, corners[0]], closed=True)  # clockwise: cut out of the whole
        around = Outline.make_compound_path(Outline.unit_rectangle(), hole)
        lines = [*axes.get_xgridlines(), *axes.get_ygridlines()]
        for line in lines + [c for c in axes.collections if isinstance(c, ContourSet)]:
            line.set_clip_path(around, axes.transAxes)


def _sharp() -> None:
    """In a notebook that asks for no other format, figures get two pixels where there was one."""
    import matplotlib as mpl

    if "inline" in mpl.get_backend():
        from matplotlib_inline.backend_inline import set_matplotlib_formats
        from matplotlib_inline.config import InlineBackend

        if InlineBackend.instance().figure_formats == {"png"}:
            set_matplotlib_formats("retina")


@cache
def _know_face() -> None:
    """Tell matplotlib where the face of the figures is; once is enough."""
    from matplotlib.font_manager import fontManager

    for cut in sorted((Path(__file__).parent / "fonts").glob("*.ttf")):
        fontManager.addfont(cut)


def as_pixels(image: Tensor) -> np.ndarray:
    """A `[C, H, W]` image in [0, 1] as 8-bit pixels: grey `[H, W]`, or `[H, W, 3]`."""
    pixels = (image.detach().cpu().clamp(0, 1) * 255).round().byte().permute(1, 2, 0).numpy()
    return pixels[..., 0] if pixels.shape[-1] == 1 else pixels


def grid(images: Tensor, *, columns: int | None = None, gap: int = 2, zoom: int = 1) -> np.ndarray:
    """All images of a `[N, C, H, W]` tensor as one picture on white."""
    n = len(images)
    if n == 0:
        raise InputError("there are no images to show.")
    columns = columns or min(n, 10)
    tiles = [as_pixels(image) for image in images]
    h, w = tiles[0].shape[:2]
    rows = -(-n // columns)
    canvas = np.full(
        (rows * (h + gap) - gap, columns * (w + gap) - gap, *tiles[0].shape[2:]), 255, np.uint8
    )
    for i, tile in enumerate(tiles):
        top, left = i // columns * (h + gap), i % columns * (w + gap)
        canvas[top : top + h, left : left + w] = tile
    return canvas.repeat(zoom, axis=0).repeat(zoom, axis=1)


def save_grid(images: Tensor, path: str | os.PathLike, *, zoom: int = 4) -> None:
    """Write all images as one PNG, enlarged without smoothing."""
    Image.fromarray(grid(images, zoom=zoom)).save(path, format="PNG")


def compare(
    originals: Tensor,
    reconstructions: Tensor | dict[str, Tensor],
    *,
    title: str | None = None,
    most: int = 10,
) -> Figure:
    """Originals in the first row; below, each reconstruction matched to them.

    Give one tensor, or a dict of row names to tensors.
    """
    import matplotlib.pyplot as plt

    found = reconstructions if isinstance(reconstructions, dict) else {"stolen": reconstructions}
    rows = {"original": originals[:most]}
    for name, images in found.items():
        rows[name] = images[match(images, originals)][:most]
    columns = min(len(originals), most)
    with style():
        fig, axes = plt.subplots(
            len(rows), columns, figsize=(0.85 * columns + 0.9, 0.9 * len(rows) + 0.4), squeeze=False
        )
        for line, (name, images) in zip(axes, rows.items(), strict=True):
            for ax, image in zip(line, images, strict=True):
                pixels = as_pixels(image)
                ax.imshow(pixels, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
                ax.set(xticks=[], yticks=[])
                ax.grid(False)
                for spine in ax.spines.values():
                    spine.set(visible=True, color="#BBBBBB", linewidth=0.6)
            line[0].set_ylabel(
                name, rotation=0, ha="right", va="center", labelpad=6, color=_legible(name.lower())
            )
        if title:
            fig.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    return fig


def _legible(name: str) -> str:
    """An attack's colour where words can be read in it, or else the ink's."""
    from matplotlib.colors import to_rgb

    colour = COLOURS.get(name, INK)
    parts = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in to_rgb(colour)]
    luminance = float(np.dot([0.2126, 0.7152, 0.0722], parts))
    return colour if 1.05 / (luminance + 0.05) >= 3 else INK


def curves(
    series: dict[str, Sequence[float] | Tensor],
    *,
    xlabel: str,
    ylabel: str,
    title: str,
    log: bool = False,
    ax: Axes | None = None,
) -> Figure:
    """Named curves over the step number; an attack's name gives the curve its colour."""
    import matplotlib.pyplot as plt

    with style():
        if ax is None:
            _, ax = plt.subplots(figsize=(6.4, 3.4))
        for name, values in series.items():
            ax.plot(np.asarray(values), label=name, color=COLOURS.get(name.lower()))
        ax.set(xlabel=xlabel, ylabel=ylabel, title=title)
        if log:
            ax.set_yscale("log")
        if len(series) > 1:
            ax.legend()
    return ax.figure
