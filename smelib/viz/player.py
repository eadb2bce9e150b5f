"""A step-through of an attack that works on a static page, without a kernel.

What the reader sees is in three files beside this one: `player.html`, `player.css`, `player.js`.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template

import numpy as np
from PIL import Image
from torch import Tensor

from smelib.errors import InputError
from smelib.viz.figures import grid


class Player:
    """A step-through of an attack's snapshots: a slider in plain HTML, alive without a kernel.

    Without scripts or styles, as on GitHub, it is the picture after the last step.
    """

    def __init__(self, frames: Tensor, steps: Sequence[int], *, name: str, zoom: int = 2) -> None:
        """`frames` are `[K, N, C, H, W]`, taken at `steps`; `name` identifies it on the page."""
        if frames is None or len(frames) == 0:
            raise InputError("there are no snapshots to play; run the attack with snapshots=20.")
        if len(frames) != len(steps):
            raise InputError(f"{len(frames)} frames need as many steps, not {len(steps)}.")
        self.frames, self.steps, self.name, self.zoom = frames, list(steps), name, zoom

    def _repr_html_(self) -> str:
        last = len(self.steps) - 1
        return Template(_read("player.html")).substitute(
            name=escape(self.name),
            style=_read("player.css"),
            frames="\n".join(self._frame(i, hidden=i != last) for i in range(len(self.steps))),
            last=last,
            step=self.steps[last],
            script=escape(_read("player.js")),
        )

    def _frame(self, i: int, *, hidden: bool) -> str:
        picture, step = _data_url(grid(self.frames[i], zoom=self.zoom)), self.steps[i]
        return (
            f'<img src="{picture}" alt="The dummies after {step} steps" data-step="{step}"'
            f"{' hidden' if hidden else ''}>"
        )

    def __repr__(self) -> str:
        return f"Player: {len(self.steps)} frames, steps {self.steps[0]} to {self.steps[-1]}"


def play(frames: Tensor, steps: Sequence[int], *, name: str = "player") -> Player:
    """The step-through player for a `Reconstruction`'s `snapshots` and `snapshot_steps`."""
    return Player(frames, steps, name=name)


def _read(name: str) -> str:
    return files("smelib.viz").joinpath(name).read_text(encoding="utf-8")


def _data_url(pixels: np.ndarray) -> str:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
