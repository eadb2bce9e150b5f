"""Figures in one palette and one style, and a player that works on a static page."""

from smelib.viz.figures import COLOURS, STYLE, as_pixels, compare, curves, grid, save_grid, style
from smelib.viz.player import Player, play
from smelib.viz.quiz import quiz

__all__ = [
    "COLOURS",
    "STYLE",
    "Player",
    "as_pixels",
    "compare",
    "curves",
    "grid",
    "play",
    "quiz",
    "save_grid",
    "style",
]
