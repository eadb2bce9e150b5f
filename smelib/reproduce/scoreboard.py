"""The paper's cells beside ours: who agrees, who differs, and what nobody has run yet."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from smelib.reproduce import networks, provenance, published
from smelib.reproduce.plan import INITS, Job
from smelib.reproduce.store import Generation, Ledger, by_cell

TITLE = "# The reproduction scoreboard"  # by which a page is known as ours
DECIBELS, COSINE, FACTOR = 2.0, 0.02, 1.5
RULE = (
    f"A PSNR agrees when our mean lies within {DECIBELS:g} dB of the paper's. A cosine or a norm "
    f"ratio agrees when our mean lies within {COSINE:g} of the paper's, or within the paper's own "
    "standard deviation over clients where that is more. Time and memory were measured on other "
    "machines, so they are compared as multiples of SME's in the same row, and agree within a "
    f"factor of {FACTOR:g}. The interval does not enter: few clients make it wide, and a wide "
    "interval is no agreement."
)
TABLES = ("main", "cost", "low_rank", "trained", "architectures")
ORDER = ("failed", "differs", "not run", "agrees", "no value")
QUANTITY = {
    "psnr": "PSNR (dB)",
    "p2_ratio": "least share in the plane",
    "cos_start": "cosine at α = 0",
    "cos_best": "best cosine",
    "hours_per_100": "time ÷ SME's",
    "gigabytes": "memory ÷ SME's",
}


@dataclass(frozen=True)
class Cell:
    """One number of the paper and what we have of it under one initialisation."""

    table: str
    row: str
    method: str
    metric: str
    paper: float | None
    error: float | None
    source: tuple[str, str]
    init: str = "torch"
    values: tuple[float, ...] = ()
    failed: int = 0
    earlier: bool = False
    similarity: tuple[float | None, float | None] = (None, None)

    @property
    def ours(self) -> float:
        """Our mean over clients."""
        return float(np.mean(self.values))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % t-interval of that mean; none for a single client."""
        n = len(self.values)
        if n < 2:
            return None
        half = student.ppf(0.975, n - 1) * np.std(self.values, ddof=1) / math.sqrt(n)
        return float(self.ours - half), float(self.ours + half)

    @property
    def gap(self) -> float:
        """The difference in units of what still agrees: up to 1 agrees."""
        if self.paper is None or not self.values:
            return 0.0
        if self.metric == "psnr":
            return abs(self.ours - self.paper) / DECIBELS
        if self.table == "cost":
            return abs(math.log(self.ours / self.paper)) / math.log(FACTOR)
        return abs(self.ours - self.paper) / max(COSINE, self.error or 0)

    @property
    def verdict(self) -> str:
        """`RULE`, applied."""
        if self.paper is None:
            return "no value"
        if not self.values:
            return "failed" if self.failed else "not run"
        return "agrees" if self.gap <= 1 else "differs"

    @property
    def command(self) -> str:
        """What would run the cell's first five clients."""
        table, row = self.source
        methods = f"{self.method},sme" if table == "cost" else self.method
        which = "" if table == "low_rank" else f" --methods {methods}"
        which += "" if self.init == "torch" else f" --inits {self.init}"
        again = " --retry-failed" if self.failed else ""
        return f"smelib reproduce {table} --rows {row}{which} --seeds 5{again} --data-root DIR"


def sources(table: str, row: str) -> list[tuple[str, str]]:
    """Where a row of the paper is measured: some stand in two tables, LeNet has two forms."""
    if table == "trained" and row.startswith("R1-"):
        return [("main", row.replace("R1", "femnist"))]
    if row.startswith("lenet-"):
        return [(table, row), (table, row.replace("lenet", "lenet_softmax"))]
    return [(table, row)]


def _number(line: dict, metric: str) -> float:
    """A line's value; for the cost table that of a whole attack of the paper's length."""
    if metric == "hours_per_100":
        whole = 400 if line["method"] == "dlfa" else 1000
        clock = "cpu_seconds" if line["device"] == "cpu" else "seconds"
        return float(line[clock]) / int(line["steps"]) * whole
    return float(line["memory_mb" if metric == "gigabytes" else metric])


def cells(folder: Path) -> list[Cell]:
    """Every cell of the paper, once for each initialisation or variant that was run."""
    paper = json.loads(published.results("paper_tables.json"))
    found: list[Cell] = []
    ours = _Ours(folder)
    for table in TABLES:
        given: dict[tuple, dict] = {}
        for c in paper[table]:  # three of the low-rank settings stand there more than once
            given.setdefault((c["row"], c["method"], c["metric"]), c)
        for (row, method, metric), c in given.items():
            if metric == "l_sim" or (table == "cost" and method == "sme"):
                continue
            value = c["value"]
            if table == "cost":
                value = value and value / given[row, "sme", metric]["value"]
            similarity = given.get((row, method, "l_sim"), {}).get("value")
            measured = [
                ours.fill(
                    Cell(table, row, method, metric, value, c["error"], source, init), similarity
                )
                for source in sources(table, row)
                for init in INITS
            ]
            run = [m for m in measured if m.values or m.failed]
            found += run or measured[:1]
    return sorted(found, key=lambda c: (not c.failed, ORDER.index(c.verdict), -c.gap))


class _Ours:
    """What a folder of results has for each cell."""

    def __init__(self, folder: Path) -> None:
        lines = [x for table in TABLES for x in Ledger(folder / f"{table}.csv").lines()]
        self.stored: dict[tuple, dict[Generation, list[dict]]] = by_cell(lines)
        self.digests = networks.digests(networks.notes(folder))

    def shown(self, cell: Cell, methods: Sequence[str]) -> tuple[list[list[dict]], bool]:
        """The methods' lines, and whether they are of an earlier version: all of them or none."""
        table, row = cell.source
        held = [self.stored.get((table, row, m, cell.init), {}) for m in methods]
        now = [
            provenance.generation(Job(table, row, m, 0, cell.init), self.digests) for m in methods
        ]
        pairs = list(zip(now, held, strict=True))
        if all(n in h or not h for n, h in pairs):
            return [h.get(n, []) for n, h in pairs], False
        older = [[lines for g, lines in h.items() if g != n] for n, h in pairs]
        return [o[-1] if o else [] for o in older], any(older)

    def fill(self, cell: Cell, similarity: float | None) -> Cell:
        """The cell with our values; `similarity` is the paper's."""
        methods = (cell.method, "sme") if cell.table == "cost" else (cell.method,)
        (mine, *others), earlier = self.shown(cell, methods)
        good = [x for x in mine if x["status"] == "ok"]
        values = {x["seed"]: _number(x, cell.metric) for x in good}
        failed = len(mine) - len(good)
        for base in others:
            first = {x["seed"]: _number(x, cell.metric) for x in base if x["status"] == "ok"}
            failed += len(base) - len(first)
            # a GPU's or a system's count of memory can be nothing; then there is no ratio
            values = {s: v / first[s] for s, v in values.items() if v > 0 and first.get(s, 0) > 0}
        ours = np.mean([float(x["l_sim"]) for x in good]) if good and good[0]["l_sim"] else None
        return replace(
            cell,
            values=tuple(values.values()),
            failed=failed,
            earlier=earlier,
            similarity=(similarity, ours),
        )


def ranking(found: Sequence[Cell]) -> tuple[list[str], list[str]]:
    """Rows of main, by initialisation, where SME beats IG; and those where it does not.

    A row counts when both are of the same age.
    """
    shown = [c for c in found if c.table == "main" and c.values]
    mean = {(c.row, c.init, c.method): c.ours for c in shown}
    age = {(c.row, c.init, c.method): c.earlier for c in shown}
    both = {k[:2] for k in mean if k[2] == "ig" and (*k[:2], "sme") in mean}
    rows = sorted(r for r in both if age[(*r, "ig")] == age[(*r, "sme")])
    kept = [r for r in rows if mean[(*r, "sme")] > mean[(*r, "ig")]]
    return [" ".join(r) for r in kept], [" ".join(r) for r in rows if r not in kept]


def counts(found: Sequence[Cell]) -> dict[str, Counter]:
    """Verdicts by table."""
    return {t: Counter(c.verdict for c in found if c.table == t) for t in TABLES}


def one_reading(found: Sequence[Cell]) -> Counter:
    """Verdicts if the paper is read in one way throughout, so that every number counts once.

    PyTorch's initialisation, and LeNet with its second softmax: chapters 9 and 11 say why.
    """
    kept: dict[tuple, str] = {}
    for c in found:
        softmaxes = not c.row.startswith("lenet-") or "softmax" in c.source[1]
        mine = c.verdict if c.init == "torch" and softmaxes else "not run"
        cell = (c.table, c.row, c.method, c.metric)
        if kept.get(cell, "not run") == "not run":
            kept[cell] = mine if c.paper is not None else "no value"
    return Counter(kept.values())


def summary(found: Sequence[Cell]) -> str:
    """The counts and the ranking, for a terminal."""
    by = counts(found)
    lines = [f"{'':14}" + "".join(f"{v:>9}" for v in ORDER)]
    for name, count in [*by.items(), ("all", sum(by.values(), Counter()))]:
        lines.append(f"{name:14}" + "".join(f"{count[v]:9}" for v in ORDER))
    lines.append("one reading   " + "".join(f"{one_reading(found)[v]:9}" for v in ORDER))
    kept, lost = ranking(found)
    lines.append(f"IG < SME in {len(kept)} of {len(kept) + len(lost)} rows of main that were run")
    lines += [f"  not in {row}" for row in lost]
    if earlier := sum(c.earlier for c in found):
        lines.append(f"{earlier} cells show an earlier version: reproduce runs them again")
    return "\n".join(lines)


def _digits(cell: Cell, value: float | None) -> str:
    return "–" if value is None else f"{value:.{1 if cell.metric == 'psnr' else 3}f}"


def _line(cell: Cell) -> str:
    between = cell.interval
    variant = "softmax, " if "softmax" in cell.source[1] else ""
    notes = [f"{cell.failed} failed"] * bool(cell.failed) + ["earlier version"] * cell.earlier
    if cell.similarity[1] is not None and cell.similarity[0] is not None:
        notes.append(f"L<sub>sim</sub> {cell.similarity[0]:.3f}, ours {cell.similarity[1]:.3f}")
    if not cell.values and cell.paper is not None:
        notes.append(f"<code>{escape(cell.command)}</code>")
    columns = (
        cell.verdict,
        cell.table,
        cell.row,
        cell.method.upper() if cell.method != "path" else "–",
        variant + cell.init if cell.values else "–",
        QUANTITY[cell.metric],
        _digits(cell, cell.paper),
        _digits(cell, cell.ours if cell.values else None),
        f"{_digits(cell, between[0])} to {_digits(cell, between[1])}" if between else "–",
        str(len(cell.values)),
        "; ".join(notes),
    )
    tint = cell.verdict.replace(" ", "-")
    return f'<tr class="{tint}">' + "".join(f"<td>{c}</td>" for c in columns) + "</tr>"


HERE = Path(__file__).parent
HEADINGS = (
    *("verdict", "table", "row", "method", "init", "quantity"),
    *("paper", "ours", "interval", "clients", "notes"),
)


def page(found: Sequence[Cell]) -> str:
    """The scoreboard as a page of the book; its table sorts itself without any network."""
    by = counts(found)
    rows = [*by.items(), ("**all**", sum(by.values(), Counter()))]
    rows.append(("*one reading*", one_reading(found)))
    kept, lost = ranking(found)
    head = "".join(f'<th scope="col"><button>{h}</button></th>' for h in HEADINGS)
    exceptions = f" The exceptions: {', '.join(lost)}." if lost else ""
    earlier = sum(c.earlier for c in found)
    note = f" {earlier} cells were measured before the kernel last changed." if earlier else ""
    return "\n".join(
        [
            TITLE,
            "",
            "Every cell of the paper's tables {cite}`zhu2023` beside what this book measured, the "
            "disagreements first. `smelib scoreboard --write` writes this page from `results/`, "
            "and `smelib reproduce` fills those files. A cell that was run under two "
            "initialisations, or with and without LeNet's extra softmax, has a line for each.",
            "",
            RULE,
            "",
            "| table | " + " | ".join(ORDER) + " |",
            "|---|" + "---|" * len(ORDER),
            *(f"| {n} | " + " | ".join(str(c[v]) for v in ORDER) + " |" for n, c in rows),
            "",
            "*One reading*: every number of the paper once, with PyTorch's initialisation and "
            "LeNet's second softmax throughout. Chapters 9 and 11 say why these look like the "
            "paper's.",
            "",
            f"SME beats IG in {len(kept)} of the {len(kept) + len(lost)} rows of `main` that were "
            f"run, each initialisation counted by itself.{exceptions}{note}",
            "",
            "Intervals are 95 % t-intervals of the mean over clients. *No value*: the paper has "
            "none. A cell that was not run names the command for it; put your folder with the "
            "data in place of `DIR`, on a machine with a GPU. Press a heading to sort.",
            "",
            "```{raw} html",
            f"<style>\n{(HERE / 'scoreboard.css').read_text('utf-8')}</style>",
            f'<div class="scores full-width"><table><thead><tr>{head}</tr></thead><tbody>',
            *map(_line, found),
            "</tbody></table></div>",
            f"<script>\n{(HERE / 'scoreboard.js').read_text('utf-8')}</script>",
            "```",
            "",
        ]
    )
