"""Figures in one palette and one style, and one moving figure that works on a static page."""

from smelib.viz.figures import (
    COLOURS,
    INK,
    STYLE,
    as_pixels,
    compare,
    curves,
    grid,
    save_grid,
    style,
)
from smelib.viz.film import Filmstrip, filmstrip, play
from smelib.viz.live import Live, live
from smelib.viz.quiz import quiz
from smelib.viz.table import Table, table

__all__ = [
    "COLOURS",
    "INK",
    "STYLE",
    "Filmstrip",
    "Live",
    "Table",
    "as_pixels",
    "compare",
    "curves",
    "filmstrip",
    "grid",
    "live",
    "play",
    "quiz",
    "save_grid",
    "style",
    "table",
]
