"""Figures in one palette and one style, and a player that works on a static page."""

from __future__ import annotations

import base64
import io
import os
import random
from collections.abc import Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image
from torch import Tensor

from smelib.metrics import match

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart with every kind of colour vision. An attack keeps its own.
COLOURS = {
    "truth": "#5A5A5A",
    "dlg": "#CC79A7",
    "ig": "#D55E00",
    "sme": "#0072B2",
    "dlfa": "#009E73",
    "accent": "#E69F00",
}

STYLE = {
    "figure.dpi": 100,
    "savefig.dpi": 100,
    "figure.constrained_layout.use": True,
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "lines.linewidth": 2,
    "legend.frameon": False,
    "svg.hashsalt": "smelib",
}


@contextmanager
def style() -> Iterator[None]:
    """The book's figure style, for the figures drawn inside the `with` block."""
    import matplotlib.pyplot as plt

    with plt.rc_context(STYLE):
        yield


def as_pixels(image: Tensor) -> np.ndarray:
    """A `[C, H, W]` image in [0, 1] as 8-bit pixels: grey `[H, W]`, or `[H, W, 3]`."""
    pixels = (image.detach().cpu().clamp(0, 1) * 255).round().byte().permute(1, 2, 0).numpy()
    return pixels[..., 0] if pixels.shape[-1] == 1 else pixels


def grid(images: Tensor, *, columns: int | None = None, gap: int = 2, zoom: int = 1) -> np.ndarray:
    """All images of a `[N, C, H, W]` tensor as one picture on white."""
    n = len(images)
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
                name, rotation=0, ha="right", va="center", color=COLOURS.get(name.lower(), "black")
            )
        if title:
            fig.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
    return fig


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


def _data_url(pixels: np.ndarray) -> str:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


class Player:
    """A step-through of an attack's snapshots: a slider in plain HTML, alive without a kernel."""

    def __init__(self, frames: Tensor, steps: Sequence[int], *, name: str, zoom: int = 2) -> None:
        """`frames` are `[K, N, C, H, W]`, taken at `steps`; `name` identifies it on the page."""
        self.frames, self.steps, self.name, self.zoom = frames, list(steps), name, zoom

    def _repr_html_(self) -> str:
        pictures = [_data_url(grid(f, zoom=self.zoom)) for f in self.frames]
        layers = "".join(
            f'<img src="{url}" alt="The dummies after {step} steps" data-step="{step}" '
            f'style="display:{"block" if i == len(pictures) - 1 else "none"};max-width:100%;'
            'image-rendering:pixelated">'
            for i, (url, step) in enumerate(zip(pictures, self.steps, strict=True))
        )
        last = len(pictures) - 1
        show = (
            "const box=this.closest('.smelib-player');"
            "box.querySelectorAll('img').forEach((f,i)=>{"
            "f.style.display=i==this.value?'block':'none'});"
            "box.querySelector('output').textContent="
            "'step '+box.querySelectorAll('img')[this.value].dataset.step"
        )
        return (
            f'<div class="smelib-player" id="{self.name}">{layers}'
            '<label style="display:flex;gap:.8em;align-items:center;max-width:32em">'
            f'<input type="range" min="0" max="{last}" value="{last}" style="flex:1" '
            f'aria-label="Step of the attack" oninput="{show}">'
            f'<output style="min-width:6em">step {self.steps[-1]}</output></label></div>'
        )

    def __repr__(self) -> str:
        return f"Player: {len(self.steps)} frames, steps {self.steps[0]} to {self.steps[-1]}"


def play(frames: Tensor, steps: Sequence[int], *, name: str = "player") -> Player:
    """The step-through player for a `Reconstruction`'s `snapshots` and `snapshot_steps`."""
    return Player(frames, steps, name=name)


def quiz(name: str, questions: dict[str, Sequence[tuple[str, str]]]) -> None:
    """Show a self-check quiz that works on the static page and loads nothing from the network.

    Each question has its answers with the reason why each is right or wrong; the first one is
    right, and they are shown from short to long. `name` gives the quiz a fixed place on the page.
    """
    from IPython.utils.capture import capture_output
    from jupyterquiz import display_quiz

    made = []
    for question, answers in questions.items():
        options = [
            {"answer": answer, "correct": i == 0, "feedback": why}
            for i, (answer, why) in enumerate(answers)
        ]
        options.sort(key=lambda option: len(option["answer"]))
        made.append({"question": question, "type": "multiple_choice", "answers": options})
    state = random.getstate()
    random.seed(name)  # jupyterquiz draws the element's name
    try:
        with capture_output() as shown:
            display_quiz(made, shuffle_questions=False, shuffle_answers=False)
    finally:
        random.setstate(state)
    for part in shown.outputs:  # the page brings its own MathJax
        for kind, text in part.data.items():
            part.data[kind] = text.replace(
                "https://cdn.jsdelivr.net/npm/mathjax@3/es5/tex-svg.js", "data:text/javascript,"
            )
    shown.show()
