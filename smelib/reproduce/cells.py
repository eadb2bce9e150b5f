"""The paper's numbers, each once, beside what a folder of results has for it."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from smelib.reproduce import networks, provenance, published, verdicts
from smelib.reproduce.plan import INITS, ROWS
from smelib.reproduce.store import by_cell, numbered
from smelib.reproduce.verdicts import Interval, Mean, Scale

MEAN_IMAGE = "mean_image.json"  # by data set, number of images and seed: benchmarks/prior_only.py
TABLES = ("main", "trained", "architectures", "low_rank", "cost")
QUANTITY = {
    "psnr": "PSNR (dB)",
    "l_sim": "L_sim",
    "p2_ratio": "least share in the plane",
    "cos_start": "cosine at α = 0",
    "cos_best": "best cosine",
    "hours_per_100": "time ÷ SME's",
    "gigabytes": "memory ÷ SME's",
}
SCALE = {
    "psnr": verdicts.DECIBELS,
    "p2_ratio": verdicts.COSINES,
    "cos_start": verdicts.COSINES,
    "cos_best": verdicts.COSINES,
    "l_sim": verdicts.FACTORS,
    "hours_per_100": verdicts.FACTORS,
    "gigabytes": verdicts.FACTORS,
}
# To which digit the paper prints a quantity.
UNIT = {"psnr": 0.1, "hours_per_100": 0.01, "gigabytes": 0.1}
COLUMNS = (
    *(verdicts.EQUAL, verdicts.DIFFERENT, verdicts.UNDECIDED),
    *("not run", "failed", "no value"),
)
# the order of the lines: what a reader should see first
ORDER = (verdicts.DIFFERENT, verdicts.UNDECIDED, verdicts.EQUAL, "failed", "not run", "no value")


@dataclass(frozen=True)
class Cell:
    """One number of the paper and what we have of it under one reading.

    A reading is an initialisation and, for LeNet, whether it has a second softmax. `ssim` and
    `above_18`, the share of images above 18 dB, are of the same runs, where these have them.
    `guesses` is beside each PSNR that of a guess without an attack, where all clients have one.
    """

    table: str
    row: str
    method: str
    metric: str
    paper: float | None
    theirs: Mean | None
    source: tuple[str, str]
    init: str = "torch"
    values: tuple[float, ...] = ()
    failed: int = 0
    earlier: bool = False
    lines: tuple[int, ...] = ()
    ssim: float | None = None
    above_18: float | None = None
    guesses: tuple[float, ...] = ()

    @property
    def scale(self) -> Scale:
        """How the quantity is compared."""
        return SCALE[self.metric]

    @property
    def mean(self) -> Mean:
        """Our mean where it is compared. Of ratios between a client's two runs it is geometric."""
        if self.table == "cost":
            return verdicts.mean(np.log(self.values))
        return verdicts.mean(self.values).on(self.scale)

    @property
    def ours(self) -> float:
        """Our mean over clients."""
        return float(np.exp(self.mean.value) if self.table == "cost" else np.mean(self.values))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % t-interval of that mean; none for a single client."""
        if len(self.values) < 2:
            return None
        if self.table == "cost":
            return float(np.exp(self.mean.interval.low)), float(np.exp(self.mean.interval.high))
        found = verdicts.mean(self.values).interval
        return float(found.low), float(found.high)

    @property
    def difference(self) -> Interval | None:
        """Ours minus the paper's, on the scale of the comparison; none where one is missing."""
        if self.theirs is None or not self.values or (self.scale.ratio and self.ours <= 0):
            return None
        return self.mean - self.theirs.on(self.scale)

    @property
    def gain(self) -> Interval | None:
        """What the attack has over the guess, client by client; none for a single client."""
        if len(self.guesses) < 2:
            return None
        return verdicts.mean(np.subtract(self.values, self.guesses)).interval

    @property
    def gap(self) -> float:
        """How far ours is from the paper's, in units of what still counts as the same."""
        return 0.0 if self.difference is None else abs(self.difference.value) / self.scale.limit

    @property
    def verdict(self) -> str:
        """The rule, applied."""
        if self.theirs is None:
            return "no value"
        if self.difference is None:
            return "failed" if self.failed else "not run"
        return str(verdicts.verdict(self.difference, self.scale.limit))

    @property
    def counted(self) -> bool:
        """Whether this is the reading under which the paper's number is counted.

        PyTorch's initialisation, and LeNet with its second softmax: chapters 9 and 11 say why.
        """
        softmaxes = not self.row.startswith("lenet-") or "softmax" in self.source[1]
        return self.init == "torch" and softmaxes

    @property
    def command(self) -> str:
        """What would run the cell's first five clients."""
        return self.running(5)

    def running(self, clients: int) -> str:
        """What would run the cell's first clients."""
        table, row = self.source
        methods = f"{self.method},sme" if table == "cost" else self.method
        which = "" if table == "low_rank" else f" --methods {methods}"
        which += "" if self.init == "torch" else f" --inits {self.init}"
        again = " --retry-failed" if self.failed else ""
        return (
            f"smelib reproduce {table} --rows {row}{which} --seeds {clients}{again} --data-root DIR"
        )


def paper() -> dict[tuple[str, str, str, str], dict]:
    """What the paper prints, by table, row, method and metric; of what it restates, the first."""
    held = json.loads(published.results("paper_tables.json"))
    found: dict[tuple[str, str, str, str], dict] = {}
    for table in TABLES:
        for c in held[table]:
            found.setdefault((table, c["row"], c["method"], c["metric"]), c)
    return found


def theirs(given: dict, table: str, row: str, method: str, metric: str) -> Mean | None:
    """The paper's mean with its standard error; none where it prints no value to compare with.

    The errors of low_rank are standard deviations over 100 clients; the cost table has none. A
    cosine loss that is printed as .000 has no factor.
    """
    cell = given[table, row, method, metric]
    value, error = cell["value"], cell["error"]
    if not value:
        return None
    if table == "low_rank":
        error = error / math.sqrt(verdicts.RUNS)
    return verdicts.printed(value, error, UNIT.get(metric, 0.001))


def ratio(one: Mean, other: Mean) -> Mean:
    """One mean divided by another, with the relative errors added in quadrature."""
    value = one.value / other.value
    return Mean(value, value * np.hypot(one.error / one.value, other.error / other.value), np.inf)


def sources(table: str, row: str) -> list[tuple[str, str]]:
    """Where a row of the paper is measured: LeNet in two forms, all others in one."""
    if row.startswith("lenet-"):
        return [(table, row), (table, row.replace("lenet", "lenet_softmax"))]
    return [(table, row)]


def number(line: dict, metric: str) -> float:
    """A line's value; for the cost table that of a whole attack of the paper's length."""
    if metric == "hours_per_100":
        whole = 400 if line["method"] == "dlfa" else 1000
        clock = "cpu_seconds" if line["device"] == "cpu" else "seconds"
        return float(line[clock]) / int(line["steps"]) * whole
    return float(line["memory_mb" if metric == "gigabytes" else metric])


class Shelf:
    """What a folder of results holds, of one generation in every cell."""

    def __init__(self, folder: Path) -> None:
        lines = []
        for table in (*TABLES, "large_n"):
            file = folder / f"{table}.csv"
            if file.is_file():
                held = numbered(file.read_bytes(), file.name)
                lines += [{**line, "line": i} for i, line in held]
        self.stored = by_cell(lines)
        self.digests = networks.digests(networks.notes(folder))
        guesses = folder / MEAN_IMAGE
        self.guesses = json.loads(guesses.read_text("utf-8")) if guesses.is_file() else {}

    def guess(self, line: dict) -> float | None:
        """The PSNR of the data set's mean image for the client of a line, where it is known."""
        if provenance.draw(line) != provenance.TODAY:
            return None
        return self.guesses.get(" ".join(map(str, client(line)[:3])))

    def of(self, *cells: tuple[str, str, str, str]) -> list[list[dict]]:
        """The lines of cells (table, row, method, init) whose seeds stand for the same clients."""
        made = (self.stored.get(cell, {}) for cell in cells)
        return provenance.richest(*(provenance.by_draw(m, self.digests) for m in made))


def is_earlier(lines: Iterable[dict]) -> bool:
    """Whether lines were measured before the kernel last changed."""
    return any("now" not in line for line in lines)


def good(lines: Iterable[dict]) -> dict[tuple[str, str], dict]:
    """The finished lines by client: its seed, and the trained network it started from."""
    return {(x["seed"], x["network"]): x for x in lines if x["status"] == "ok"}


def client(line: dict) -> tuple[str, int, str, int]:
    """Whose images a line attacked: two lines with the same name are of one client."""
    row = ROWS[line["table"]][line["row"]]
    return row.dataset, row.samples, line["seed"], provenance.draw(line)


def cells(folder: Path | Shelf) -> list[Cell]:
    """Every number of the paper once for each reading that was run.

    Failures first; then, of each verdict, what counts, and of that the furthest off. Not among
    them: what the paper restates from another table, and IG's cost as a multiple of SME's, which
    it prints as 1.
    """
    shelf = folder if isinstance(folder, Shelf) else Shelf(folder)
    given, found = paper(), []
    for (table, row, method, metric), c in given.items():
        if (table == "trained" and row.startswith("R1-")) or (table == "cost" and method != "dlfa"):
            continue
        value, mean = c["value"], theirs(given, table, row, method, metric)
        if table == "cost" and mean is not None:
            mean = ratio(mean, theirs(given, table, row, "sme", metric))
            value = mean.value
        readings = [
            _filled(shelf, Cell(table, row, method, metric, value, mean, source, init))
            for source in sources(table, row)
            for init in INITS
        ]
        run = [r for r in readings if r.values or r.failed]
        missing = not any(r.counted for r in run)
        found += run + [r for r in readings if r.counted and missing]
    return sorted(
        found, key=lambda c: (not c.failed, ORDER.index(c.verdict), not c.counted, -c.gap)
    )


def _filled(shelf: Shelf, cell: Cell) -> Cell:
    """The cell with our values."""
    table, row = cell.source
    methods = (cell.method, "sme") if cell.table == "cost" else (cell.method,)
    held = shelf.of(*((table, row, m, cell.init) for m in methods))
    if not any(held):
        held = [shelf.of((table, row, m, cell.init))[0] for m in methods]
    runs = [good(lines) for lines in held]
    both = [k for k in runs[0] if all(k in run for run in runs)]
    values = {k: [number(run[k], cell.metric) for run in runs] for k in both}
    # a GPU's or a system's count of memory can be nothing; then there is no ratio
    values = {k: v for k, v in values.items() if len(v) == 1 or min(v) > 0}
    guesses = [shelf.guess(runs[0][k]) for k in values] if cell.metric == "psnr" else []
    return replace(
        cell,
        values=tuple(v[0] / v[1] if len(v) == 2 else v[0] for v in values.values()),
        failed=sum(len(lines) - len(run) for lines, run in zip(held, runs, strict=True)),
        earlier=is_earlier(x for lines in held for x in lines),
        lines=tuple(sorted(run[k]["line"] for k in values for run in runs)),
        guesses=() if None in guesses else tuple(guesses),
        **{name: _mean(runs[0].values(), name) for name in ("ssim", "above_18")},
    )


def _mean(lines: Iterable[dict], column: str) -> float | None:
    """The mean of what else was measured of the pictures; none where no line has it."""
    held = [float(x[column]) for x in lines if x[column]]
    return float(np.mean(held)) if held else None


def counts(found: Sequence[Cell]) -> dict[str, Counter]:
    """Verdicts by quantity and table, every number of the paper once."""
    by: dict[str, Counter] = {}
    for c in sorted(found, key=lambda c: (c.metric == "l_sim", TABLES.index(c.table))):
        if c.counted:
            by.setdefault(heading(c), Counter())[c.verdict] += 1
    return by


def heading(cell: Cell) -> str:
    """Under which a cell is counted."""
    if cell.table == "cost":
        return "cost, time and memory"
    if cell.table == "low_rank":
        return "low_rank, cosines and shares"
    return f"{cell.table}, {'PSNR' if cell.metric == 'psnr' else 'L_sim'}"


def by_chance(found: Sequence[Cell], *, at_the_edge: bool) -> tuple[float, float]:
    """How many cells the rule would call equal, and different, if all true differences were one.

    Exactly the band's half-width if `at_the_edge`, or else nothing.
    """
    equal = different = 0.0
    for c in found:
        if c.counted and c.difference is not None:
            truth = c.scale.limit if at_the_edge else 0.0
            chance = verdicts.chances(c.mean, c.theirs.on(c.scale), c.scale.limit, truth)
            equal, different = equal + chance[0], different + chance[1]
    return equal, different
