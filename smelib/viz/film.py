"""The book's one moving figure: pictures and curves over one axis, alive on a static page.

What moves is in two files beside this one, `film.mjs` and `film.css`; this module turns
tensors into what they show: one sheet with every picture, and every number already placed.
"""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from smelib.errors import InputError
from smelib.pairing import match
from smelib.viz.figures import COLOURS, as_pixels, style

LARGEST = 600_000  # bytes of one figure's HTML
QUALITIES = (None, 95, 90, 85, 80, 70, 60, 50, 40, 30)  # of the sheet: lossless first
SPREAD = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00")
POINTS = 400  # of a curve: more than a screen can show
APART = 120  # thousandths of the axis between two ticks that a phone can hold

Curve = Sequence[float] | Tensor | tuple[Sequence[float], Sequence[float]]


class Filmstrip:
    """Pictures and curves over one axis: a slider, play and pause, without a kernel.

    Where scripts do not run (an untrusted notebook, GitHub, print) it is a contact sheet.
    """

    def __init__(
        self, film: dict[str, Any], tiles: Tensor, sheet: bytes, *, name: str | None, largest: int
    ) -> None:
        self.film, self.tiles, self.sheet, self.name = film, tiles, sheet, name
        self._html = self._page(largest)

    def _page(self, largest: int) -> str:
        """The HTML, with the best pictures that keep it under so many bytes."""
        for quality in QUALITIES:
            html = self._with(encode(self.tiles, quality))
            if len(html) <= largest:
                return html
        raise InputError(
            f"this filmstrip may have {largest // 1000} kB, and {len(self.film['frames'])} frames "
            "of this size need more; show fewer frames or fewer images."
        )

    def _with(self, pictures: str) -> str:
        film = json.dumps({**self.film, "sheet": pictures}, ensure_ascii=False)
        identity = f' id="{escape(self.name)}"' if self.name else ""
        return (
            f'<div class="smelib-film"{identity}><img alt="{escape(self.film["alt"])}" '
            f'style="max-width:100%" src="{_url("png", self.sheet)}" '
            f'data-film="{escape(film)}" onload="{escape(script())}"></div>'
        )

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        png = base64.b64encode(self.sheet).decode()
        return {"text/html": self._html, "image/png": png, "text/plain": repr(self)}

    def _repr_html_(self) -> str:
        return self._html

    def __repr__(self) -> str:
        labels = [frame["label"] for frame in self.film["frames"]]
        return f"Filmstrip: {len(labels)} frames, {self.film['axis']} {labels[0]} to {labels[-1]}"


def filmstrip(
    axis: str,
    values: Sequence[float] | Sequence[str],
    images: Tensor | Mapping[str, Tensor],
    curves: Mapping[str, Mapping[str, Curve]] | None = None,
    originals: Tensor | None = None,
    *,
    title: str = "",
    start: int = 0,
    log: bool = False,
    follow: bool = True,
    autoplay: bool = False,
    name: str | None = None,
    largest: int = LARGEST,
) -> Filmstrip:
    """One figure over one axis: time, alpha, lambda, epochs, rounds, noise.

    `images` are `[K, N, C, H, W]`, one frame for each of the `values` of `axis`, or several such
    rows by name. `curves` has panels by the name of their unit, and in each curves by name: K
    numbers, or a pair of positions on the axis and heights. `originals` are `[N, C, H, W]`; the
    pictures are paired with them, by the last frame's pairing or, without `follow`, each frame by
    its own. It opens at frame `start`. `log` spaces the values by their ratios. The axis of the
    curves runs as the slider does, from the first value to the last, be it the larger one.
    The pictures are lossless unless the figure would have more than `largest` bytes.
    """
    rows = dict(images) if isinstance(images, Mapping) else {"server": images}
    frames = _checked(rows, values, originals, start)
    if originals is not None:
        rows = {k: _paired(v, originals, follow=follow) for k, v in rows.items()}
    places = Axis(values, log=log)
    panels = [_panel(unit, group, places, values) for unit, group in (curves or {}).items()]
    labels = [_number(v) for v in values]
    film = {
        "axis": axis,
        "title": title,
        "start": start,
        "autoplay": autoplay,
        "log": log,
        "rows": [{"name": k, "colour": COLOURS.get(k.lower(), "")} for k in rows],
        "originals": originals is not None,
        "count": next(iter(rows.values())).shape[1],
        "size": list(next(iter(rows.values())).shape[-2:])[::-1],
        "ticks": places.ticks(values),
        "panels": panels,
        "frames": [
            {"at": places.of(values)[i], "label": labels[i], "say": _spoken(panels, i)}
            for i in range(frames)
        ],
    }
    film["alt"] = _alt(film)
    tiles = torch.cat([*rows.values(), *([originals[None]] if originals is not None else [])])
    sheet = contact_sheet(film, rows, originals, curves or {}, values, places)
    return Filmstrip(film, tiles, sheet, name=name, largest=largest)


def play(
    frames: Tensor | None,
    steps: Sequence[int],
    originals: Tensor | None = None,
    *,
    name: str | None = None,
    **options: Any,
) -> Filmstrip:
    """A filmstrip over time, of a `Reconstruction`'s `snapshots` and `snapshot_steps`."""
    if frames is None or len(frames) == 0:
        raise InputError("there are no snapshots to play; run the attack with snapshots=20.")
    return filmstrip("step", steps, frames, originals=originals, name=name, **options)


class Axis:
    """Where a value stands: a whole number from 0, the first frame's end, to 1000."""

    def __init__(self, values: Sequence[float] | Sequence[str], *, log: bool) -> None:
        self.even = any(isinstance(v, str) for v in values)
        self.log = log
        if self.even:
            self.first, self.last = 0.0, float(max(len(values) - 1, 1))
            return
        found = np.asarray([float(v) for v in values])
        if not np.isfinite(found).all() or (log and (found <= 0).any()):
            raise InputError("the values of an axis are finite, and with log=True positive.")
        found = np.log(found) if log else found
        ends = float(found.min()), float(found.max())
        self.first, self.last = ends if found[0] <= found[-1] else ends[::-1]

    def of(self, values: Sequence[float] | Sequence[str]) -> list[int]:
        """The places of some values; names stand at equal distances."""
        if any(isinstance(v, str) for v in values):
            values = range(len(values))
        found = np.asarray([float(v) for v in values])
        found = np.log(found) if self.log and not self.even else found
        return _scaled(found, self.first, self.last)

    def ticks(self, values: Sequence[float] | Sequence[str]) -> list[list]:
        """A few places and what to write there: the frames' own where these are few."""
        labels = [_number(v) for v in values]
        if self.even:
            few = np.linspace(0, len(labels) - 1, min(len(labels), 6)).round().astype(int)
            return [[place, labels[i]] for i, place in zip(few, self.of(few), strict=True)]
        own = dict(sorted(zip(self.of(values), labels, strict=True)))
        if len(own) <= 6 and np.all(np.diff(list(own)) >= APART):
            return [list(tick) for tick in own.items()]
        import matplotlib.ticker as ticker

        low, high = sorted((self.first, self.last))
        low, high = np.exp([low, high]) if self.log else (low, high)
        slack = 1e-6 * (high - low)
        whole = all(float(v).is_integer() for v in values)

        def within(locator: ticker.Locator) -> np.ndarray:
            found = locator.tick_values(low, high)
            return found[(found >= low - slack) & (found <= high + slack)]

        if not self.log:
            found = within(ticker.MaxNLocator(6, steps=[1, 2, 2.5, 5, 10], integer=whole))
        elif len(found := within(ticker.LogLocator(numticks=7))) < 3:  # less than two decades
            found = within(ticker.LogLocator(subs=(1, 2, 5), numticks=7))
        return sorted([place, _number(v)] for v, place in zip(found, self.of(found), strict=True))


def encode(tiles: Tensor, quality: int | None) -> str:
    """Every picture of `[K, N, C, H, W]` on one sheet, a frame to a line, as a data address."""
    rows = [np.concatenate([as_pixels(tile) for tile in frame], axis=1) for frame in tiles]
    sheet, buffer = Image.fromarray(np.concatenate(rows)), io.BytesIO()
    if quality is None:
        sheet.save(buffer, format="PNG", optimize=True)
        return _url("png", buffer.getvalue())
    sheet.save(buffer, format="JPEG", quality=quality, subsampling=0)
    return _url("jpeg", buffer.getvalue())


def contact_sheet(
    film: dict[str, Any],
    rows: Mapping[str, Tensor],
    originals: Tensor | None,
    curves: Mapping[str, Mapping[str, Curve]],
    values: Sequence[float] | Sequence[str],
    places: Axis,
) -> bytes:
    """The static form as a PNG: the originals, a few frames, and the curves."""
    import matplotlib.pyplot as plt

    last = len(film["frames"]) - 1
    shares = (0, 0.1, 0.35, 1) if len(rows) == 1 else (0, 0.2, 1)
    chosen = np.unique(np.ceil([last * share for share in shares]).astype(int))
    lines = [("original", originals)] if originals is not None else []
    for k in chosen:
        for row, tiles in rows.items():
            prefix = f"{row}, " if len(rows) > 1 else ""
            lines.append((f"{prefix}{film['axis']} {film['frames'][k]['label']}", tiles[k]))
    wide, tall = min(0.62 * film["count"] + 1.6, 8), 0.66 * len(lines) + 0.3
    with style():
        figure = plt.figure(figsize=(max(wide, 5.5), tall + 2.0 * len(curves)))
        parts = figure.subfigures(1 + len(curves), 1, height_ratios=[tall, *[2.0] * len(curves)])
        parts = list(np.atleast_1d(parts))
        axes = parts[0].subplots(len(lines), 1, squeeze=False)[:, 0]
        for axis, (label, tiles) in zip(axes, lines, strict=True):
            pixels = np.concatenate([_framed(as_pixels(t)) for t in tiles], 1)
            axis.imshow(pixels, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
            axis.set(xticks=[], yticks=[], frame_on=False)
            axis.set_ylabel(label, rotation=0, ha="right", va="center", fontsize=9)
            axis.grid(False)
        for part, (unit, group) in zip(parts[1:], curves.items(), strict=True):
            axis = part.subplots()
            _draw(axis, unit, group, values, places)
            axis.set_xlabel(film["axis"])
        if film["title"]:
            figure.suptitle(film["title"], x=0.01, ha="left", fontsize=12, fontweight="bold")
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=110, facecolor="white")
        plt.close(figure)
    small, result = Image.open(buffer).convert("RGB").quantize(96), io.BytesIO()
    small.save(result, format="PNG", optimize=True)
    return result.getvalue()


def _framed(pixels: np.ndarray) -> np.ndarray:
    """White around a picture, so that neighbours do not touch."""
    return np.pad(pixels, [(1, 1), (1, 1), (0, 0)][: pixels.ndim], constant_values=255)


def _draw(axis: Any, unit: str, group: Mapping[str, Curve], values: Sequence, places: Axis) -> None:
    """A panel's curves where the film has them, with the film's ticks."""
    for i, (name, curve) in enumerate(group.items()):
        x, y = _pair(curve, values, places)
        axis.plot(x, y, label=name, color=_colour(name, i))
    axis.set_xticks(*zip(*places.ticks(values), strict=True))
    axis.set_ylabel(unit)
    if len(group) > 1:
        axis.legend()


def _checked(
    rows: Mapping[str, Tensor], values: Sequence, originals: Tensor | None, start: int
) -> int:
    """How many frames there are, once everything fits together."""
    for name, tiles in rows.items():
        if not isinstance(tiles, Tensor) or tiles.ndim != 5 or 0 in tiles.shape:
            raise InputError(f"the images of {name!r} are no tensor [K, N, C, H, W] with pictures.")
        if len(tiles) != len(values):
            raise InputError(f"{len(tiles)} frames need as many values, not {len(values)}.")
    shapes = {tuple(tiles.shape) for tiles in rows.values()}
    if len(shapes) != 1:
        raise InputError(f"the rows of a filmstrip have one shape, not {sorted(shapes)}.")
    (shape,) = shapes
    if originals is not None and tuple(originals.shape) != shape[1:]:
        raise InputError(
            f"originals of shape {tuple(originals.shape)} do not stand beside frames of "
            f"{shape[1:]}."
        )
    if not 0 <= start < len(values):
        raise InputError(f"start is a frame from 0 to {len(values) - 1}, not {start}.")
    return len(values)


def _paired(frames: Tensor, originals: Tensor, *, follow: bool) -> Tensor:
    if follow:
        return frames[:, match(frames[-1], originals)]
    return torch.stack([frame[match(frame, originals)] for frame in frames])


def _pair(curve: Curve, values: Sequence, places: Axis) -> tuple[np.ndarray, np.ndarray]:
    """A curve's places, which rise, and heights; the places are the frames' or its own."""
    own = isinstance(curve, tuple) and len(curve) == 2 and np.ndim(curve[0]) == 1
    x, y = curve if own else (values, curve)
    at, y = np.asarray(places.of(x)), np.asarray(y, dtype=float)
    if len(at) != len(y):
        raise InputError(f"a curve has {len(y)} heights for {len(at)} positions on the axis.")
    order = np.argsort(at, kind="stable")  # a film may run from large to small
    return at[order], y[order]


def _panel(unit: str, group: Mapping[str, Curve], places: Axis, values: Sequence) -> dict[str, Any]:
    """The curves of one unit, thinned out and placed on a square of 1000 by 1000."""
    import matplotlib.ticker as ticker

    pairs = {name: _pair(curve, values, places) for name, curve in group.items()}
    heights = np.concatenate([y[np.isfinite(y)] for _, y in pairs.values()] or [np.zeros(1)])
    if not len(heights):
        raise InputError(f"the curves of {unit!r} have no finite number to show.")
    low, high = float(heights.min()), float(heights.max())
    ticks = ticker.MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(low, high)
    whole = all(v.is_integer() for v in heights.tolist())
    decimals = 0 if whole else _decimals((high - low) / 100)
    low, high = min(low, ticks[0]), max(high, ticks[-1])
    at, drawn = places.of(values), []
    for i, (name, (x, y)) in enumerate(pairs.items()):
        keep = np.isfinite(y)
        thin = np.unique(np.linspace(0, keep.sum() - 1, min(keep.sum(), POINTS)).astype(int))
        across = x[keep][thin].tolist()
        here = np.interp(at, x[keep], y[keep]) if keep.any() else []
        drawn.append(
            {
                "name": name,
                "colour": _colour(name, i),
                "line": list(zip(across, _scaled(y[keep][thin], low, high), strict=True)),
                "dots": _scaled(np.asarray(here), low, high),
                "texts": [_fixed(v, decimals) for v in here],
            }
        )
    texts = [_fixed(v, _decimals(ticks[1] - ticks[0])) for v in ticks]
    marks = zip(_scaled(ticks, low, high), texts, strict=True)
    return {"unit": unit, "ticks": [list(mark) for mark in marks], "curves": drawn}


def _scaled(found: np.ndarray, low: float, high: float) -> list[int]:
    return [round(1000 * float(v - low) / ((high - low) or 1.0)) for v in found]


def _decimals(step: float) -> int:
    """How many digits behind the point tell numbers apart that differ by a step."""
    return int(np.clip(np.ceil(-np.log10(step) - 1e-9), 0, 6)) if step > 0 else 3


def _fixed(value: float, decimals: int) -> str:
    """A number beside others of its axis: all have as many decimals, and none is minus zero."""
    return f"{round(float(value), decimals) + 0.0:.{decimals}f}".replace("-", "−")


def _number(value: float | str) -> str:
    """Three figures, and a minus sign that is one."""
    if isinstance(value, str):
        return value
    if float(value).is_integer() and abs(value) < 1e6:
        return f"{int(value)}".replace("-", "−")
    return f"{float(value):.3g}".replace("-", "−")


def _colour(name: str, position: int) -> str:
    """An attack keeps its colour; other curves take one by their place."""
    first = re.split(r"[\s,:]|'s\b", name.lower())[0]
    return COLOURS.get(first, SPREAD[position % len(SPREAD)])


def _spoken(panels: list[dict], frame: int) -> str:
    """What a screen reader says of a frame, after the axis and its value."""
    return "; ".join(
        f"{panel['unit']}, "
        + ", ".join(f"{c['name']} {c['texts'][frame]}" for c in panel["curves"] if c["texts"])
        for panel in panels
    )


def _alt(film: dict[str, Any]) -> str:
    first, last = film["frames"][0], film["frames"][-1]
    beside = " under the originals" if film["originals"] else ""
    said = " ".join(
        f"At {film['axis']} {frame['label']}: {frame['say']}."
        for frame in (first, last)
        if frame["say"]
    )
    heading = f"{film['title']}. " if film["title"] else ""
    return (
        f"{heading}Contact sheet: {film['count']} pictures{beside}, {film['axis']} "
        f"{first['label']} to {last['label']}. {said}"
    ).strip()


def script() -> str:
    """The module and the style as the body of the picture's `onload`, which every page runs."""
    module = re.sub(r"^export ", "", _read("film.mjs"), flags=re.MULTILINE)
    return f"{{{module}\nfilmstrip(this, {json.dumps(_read('film.css'))})}}"


def _read(name: str) -> str:
    return files("smelib.viz").joinpath(name).read_text(encoding="utf-8")


def _url(kind: str, data: bytes) -> str:
    return f"data:image/{kind};base64," + base64.b64encode(data).decode()
