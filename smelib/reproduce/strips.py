"""Dots with intervals, drawn as strips of SVG that are as wide as the place they stand in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from smelib.reproduce.verdicts import Interval, Mean

HEIGHT = 16
DIAMOND = "M0,-4.5 4.5,0 0,4.5 -4.5,0z"


@dataclass(frozen=True)
class Axis:
    """From where to where a strip reaches."""

    low: float
    high: float

    @classmethod
    def around(cls, effects: Sequence[tuple[Interval, Mean | None]]) -> Axis:
        """An axis on which zero, all dots and their intervals have room.

        An interval that goes beyond twice the outermost dot of them all is cut there.
        """
        dots = [float(ours.value) for ours, _ in effects]
        dots += [float(paper.value) for _, paper in effects if paper is not None]
        bounded = [ours for ours, _ in effects if np.isfinite(ours.half)]
        widest = max((float(ours.half) for ours in bounded), default=1.0)
        most = 2 * max(map(abs, dots), default=0.0) or widest
        ends = [float(end) for x in bounded for end in (x.low, x.high)]
        points = [0.0, *dots, *np.clip(ends, -most, most).tolist()]
        room = 0.06 * (max(points) - min(points) or 1.0)
        return cls(min(points) - room, max(points) + room)

    def at(self, value: float) -> str:
        """Where a value lies, in per cent of the width; what lies outside stands at the end."""
        share = (value - self.low) / (self.high - self.low)
        return f"{100 * min(max(share, 0.0), 1.0):.1f}%"


def _strip(inside: str, verdict: str, words: str) -> str:
    kind = verdict.replace(" ", "-")
    return (
        f'<svg class="strip {kind}" width="100%" height="{HEIGHT}" role="img" '
        f'aria-label="{escape(words)}">{inside}</svg>'
    )


def _line(axis: Axis, low: float, high: float, kind: str) -> str:
    where = f'x1="{axis.at(low)}" x2="{axis.at(high)}"'
    return f'<line class="{kind}" {where} y1="50%" y2="50%"/>'


def _ours(axis: Axis, ours: Interval) -> str:
    """Our interval and our dot, hollow where there is one client."""
    one = not np.isfinite(ours.half)
    bar = "" if one else _line(axis, float(ours.low), float(ours.high), "interval")
    kind = "dot one" if one else "dot"
    return f'{bar}<circle class="{kind}" cx="{axis.at(float(ours.value))}" cy="50%" r="3.5"/>'


def _zero(axis: Axis) -> str:
    return f'<line class="zero" x1="{axis.at(0)}" x2="{axis.at(0)}" y1="0" y2="100%"/>'


def effect(axis: Axis, ours: Interval, paper: Mean | None, verdict: str) -> str:
    """A claim's strip: zero, our interval, and the paper's effect as a diamond."""
    mark, words = "", "ours"
    if paper is not None:
        mark = f'<svg x="{axis.at(float(paper.value))}" y="50%" overflow="visible">'
        mark += f'<path class="paper" d="{DIAMOND}"/></svg>'
        words += " beside the paper's"
    return _strip(_zero(axis) + mark + _ours(axis, ours), verdict, words)


def difference(axis: Axis, gap: Interval, verdict: str, band: float) -> str:
    """A cell's strip: ours minus the paper's, on a band of what still counts as the same."""
    left, right = (float(axis.at(x)[:-1]) for x in (-band, band))
    shade = f'<rect class="band" x="{left}%" width="{right - left}%" y="0" height="100%"/>'
    words = f"{verdict}, {float(gap.value):+.1f}"
    return _strip(shade + _zero(axis) + _ours(axis, gap), verdict, words)


def ticks(axis: Axis, values: Sequence[float]) -> str:
    """The axis over a column of strips."""
    marks = "".join(
        f'<text x="{axis.at(v)}" y="12" text-anchor="middle">{v:+g}</text>'.replace(
            ">-", ">−"
        ).replace(">+0<", ">0<")
        for v in values
    )
    return f'<svg class="ticks" width="100%" height="{HEIGHT}" aria-hidden="true">{marks}</svg>'
