"""A picture that follows a slider where a kernel runs, and stands still where none does."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from smelib.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDGET = "application/vnd.jupyter.widget-view+json"


class Live:
    """A picture, and above it a slider for a front end that has widgets.

    They are two outputs: a notebook that was saved and is opened again has a slider without a
    kernel, which a front end replaces by an error, and the picture still stands.
    """

    def __init__(self, draw: Callable[[Any], Figure], name: str, values: list) -> None:
        self.picture = cache(lambda value: _png(draw(value)))
        self.name, self.values, self.value = name, values, values[len(values) // 2]

    def __repr__(self) -> str:
        return f"{self.name} = {self.value}, one of {len(self.values)} values"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> tuple:
        png, size = self.picture(self.value)
        shown = {"text/plain": repr(self), "image/png": base64.b64encode(png).decode()}
        return shown, {"image/png": size}

    def _ipython_display_(self) -> None:
        from IPython.display import display

        slider = self._slider()
        if slider is not None:
            said = f"{self.name} has a slider while a kernel runs"
            view = {"version_major": 2, "version_minor": 0, "model_id": slider.model_id}
            display({WIDGET: view, "text/plain": said}, raw=True)
        data, about = self._repr_mimebundle_()
        shown = display(data, metadata=about, raw=True, display_id=True)

        def move(change: dict) -> None:
            self.value = change["new"]
            data, about = self._repr_mimebundle_()
            shown.update(data, metadata=about, raw=True)

        if slider is not None:
            slider.observe(move, "value")

    def _slider(self) -> Any:
        """A slider at the present value, or None where there are no widgets."""
        try:
            import ipywidgets
        except ImportError:
            return None
        choice = {"options": self.values, "value": self.value, "description": self.name}
        return ipywidgets.SelectionSlider(**choice, continuous_update=False)


def live(draw: Callable[[Any], Figure], **axis: Sequence) -> Live:
    """Let the reader move one value: `live(draw, T=[1, 10, 50])` shows `draw(10)` at first.

    A figure is drawn when its value is first chosen, then kept.
    """
    if len(axis) != 1 or not len(*axis.values()):
        raise InputError("a slider moves one value among some: write live(draw, T=[1, 10, 50]).")
    ((name, values),) = axis.items()
    return Live(draw, name, list(values))


def _png(figure: Figure) -> tuple[bytes, dict[str, int]]:
    """A figure with two pixels where there was one, and how large it stands on a page."""
    import matplotlib.pyplot as plt

    figure.savefig(buffer := io.BytesIO(), format="png", dpi=2 * figure.dpi)
    plt.close(figure)
    wide, tall = figure.bbox.size
    return buffer.getvalue(), {"width": int(wide), "height": int(tall)}
