"""A table of results: HTML on a page, aligned text where there is none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from smelib.errors import InputError
from smelib.viz.figures import COLOURS

UNITS = re.compile(r"\b(dB|ms|s|MB|GB|kB)\b|(?<=\d)e[+-]\d+")  # and powers of ten, 2.7e-05


@dataclass(frozen=True)
class Table:
    """Cells that are already words; `columns` is the head, `note` stands below."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def __repr__(self) -> str:
        lines = [self.columns, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.columns))]
        numeric = self._numeric()
        shown = [
            "  ".join(
                cell.rjust(w) if right else cell.ljust(w)
                for cell, w, right in zip(line, widths, numeric, strict=True)
            ).rstrip()
            for line in lines
        ]
        shown.insert(1, "  ".join("-" * w for w in widths))
        return "\n".join([*shown, *([self.note] if self.note else [])])

    def _repr_html_(self) -> str:
        style = files("smelib.viz").joinpath("table.css").read_text(encoding="utf-8")
        numeric = self._numeric()
        head = _line(self.columns, numeric, "th", 'scope="col"')
        body = "".join(_line(row, numeric, "td") for row in self.rows)
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        name = max(len(row[0]) for row in self.rows)  # how much room a phone gives to rows' names
        return (
            f'<div class="smelib-table"><style>{style}</style><div tabindex="0">'
            f'<table style="--name: {name}"><thead>{head}</thead><tbody>{body}</tbody></table>'
            f"</div>{note}</div>"
        )

    def _numeric(self) -> list[bool]:
        """Which columns hold numbers, and are set to the right."""
        return [
            i > 0 and not any(re.search(r"[^\W\d_]", UNITS.sub("", row[i])) for row in self.rows)
            for i in range(len(self.columns))
        ]


def _line(cells: Sequence[str], numeric: list[bool], tag: str, attributes: str = "") -> str:
    parts = []
    for i, (cell, right) in enumerate(zip(cells, numeric, strict=True)):
        kind, more = (tag, attributes) if i or tag == "th" else ("th", 'scope="row"')
        colour = COLOURS.get(cell.partition(",")[0].lower())
        mark = f'<i style="background:{colour}"></i>' if colour else ""
        number = ' class="number"' if right else ""
        parts.append(f"<{kind}{f' {more}' if more else ''}{number}>{mark}{escape(cell)}</{kind}>")
    return f"<tr>{''.join(parts)}</tr>"


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, note: str = "") -> Table:
    """Results as a table in the book's style, the last line of a cell.

    Give numbers as the text that shall stand there (`f"{mean:+.1f} dB"`). A column of numbers is
    set to the right, and an attack's name gets its colour.
    """
    cells = tuple(tuple(str(cell) for cell in row) for row in rows)
    if not cells:
        raise InputError("there are no rows to show.")
    for row in cells:
        if len(row) != len(columns):
            raise InputError(f"a row of {len(row)} cells under {len(columns)} columns: {row[0]}.")
    return Table(tuple(str(c) for c in columns), cells, note)
