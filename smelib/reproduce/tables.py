"""The scoreboard's tables and its forest plot, in HTML that needs no script."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path

import numpy as np

from smelib.reproduce import names, prices, strips, verdicts
from smelib.reproduce.cells import COLUMNS, ORDER, QUANTITY, Cell, by_chance, counts
from smelib.reproduce.claims import Evidence, claims
from smelib.reproduce.plan import ROWS, Job, planned
from smelib.reproduce.scoreboard import Board, between, came_out, text
from smelib.version import REPOSITORY

HEADINGS = (
    *("verdict", "table", "row", "method", "quantity", "weights"),
    *("paper", "ours", "difference", "clients", "results"),
)


def raw(*lines: str) -> list[str]:
    """HTML as it stands, inside a page of Markdown."""
    return ["", "```{raw} html", *lines, "```", ""]


def count_table(board: Board) -> list[str]:
    """The verdicts by table and quantity, and the numbers to be expected."""
    by = counts(board.cells)
    rows = [(_set(name), count) for name, count in by.items()]
    rows.append(("<strong>all</strong>", sum(by.values(), Counter())))
    texts = [(name, {v: str(count[v]) for v in COLUMNS}) for name, count in rows]
    for words, edge in (("lay at the edge", True), ("were the paper's", False)):
        equal, different = by_chance(board.cells, at_the_edge=edge)
        said = {verdicts.EQUAL: f"{equal:.1f}", verdicts.DIFFERENT: f"{different:.1f}"}
        texts.append((f"<em>expected if all {words}</em>", said))
    head = "".join(f'<th scope="col">{h}</th>' for h in ("cells", *COLUMNS))
    lines = []
    for name, said in texts:
        columns = [(v, said[v]) for v in COLUMNS if v in said]
        blank = "<td></td>" * (len(COLUMNS) - len(columns))
        lines.append("<tr>" + _cells("td", ("cell", name), *columns) + f"{blank}</tr>")
    table = f"<table><thead><tr>{head}</tr></thead><tbody>"
    return raw(f'<div class="scores counts">{table}', *lines, "</tbody></table></div>")


def _cells(kind: str, *pairs: tuple[str, str]) -> str:
    """A row of a table; each cell says what it is, for narrow screens."""
    return "".join(f'<{kind} data-is="{label}">{value}</{kind}>' for label, value in pairs)


def _set(words: str) -> str:
    """Words as HTML, with their symbols set as in the text."""
    found = escape(words).replace("L_sim", "<i>L</i><sub>sim</sub>")
    return re.sub(r"\bw0\b", "<i>w</i><sub>0</sub>", found)


def _badge(word: str) -> str:
    return f'<span class="verdict {word.replace(" ", "-")}">{word}</span>'


def _size(e: Evidence) -> str:
    """How large an effect is beside the paper's, or why it is undecided; else nothing."""
    level = ["claimed: level"] * e.level
    if e.level and abs(e.ours.value) > e.ours.half:  # within the band or not
        level += ["ours is above zero" if e.ours.value > 0 else "ours is below zero"]
    these = ["for these networks"] * e.of_these_networks
    if level or e.why:
        return "; ".join([*level, *[e.why] * bool(e.why), *these])
    size = {verdicts.EQUAL: "as large", verdicts.DIFFERENT: "smaller"}.get(e.size)
    if size == "smaller" and float(e.ours.value) * np.sign(e.paper.value) > abs(e.paper.value):
        size = "larger"
    return "; ".join([*[size] * bool(size), *these])


def _claim(mine: Sequence[Evidence], words: str, unit: str) -> str:
    """A claim: its words and its count, then a line for each effect that was measured."""
    said = came_out(e for e in mine if e.pairs)
    head = f'<tr class="claim"><th colspan="6" scope="rowgroup">{_set(words)}'
    head += f'<span class="count">{said or "not run"}</span></th></tr>'
    shown = [e for e in mine if e.pairs]
    axis = strips.Axis.around([(e.ours, e.paper) for e in shown])
    lines = [head]
    for e in shown:
        scale = e.effect.scale
        paper = "–" if e.paper is None else text(e.paper.value, scale, signed=True)
        ours = f"{text(e.ours.value, scale, signed=True)} <small>{between(e.ours, scale)}</small>"
        label = escape(e.effect.label)
        if e.effect.init != "torch":
            label += f" <small>{names.WEIGHTS[e.effect.init]} weights</small>"
        same = f'<small class="size">{_size(e)}</small>'
        picture = strips.effect(axis, e.ours, e.paper, e.verdict)
        lines.append(
            "<tr>"
            + _cells(
                "td",
                ("setting", label),
                ("paper", f"{paper} {unit}".strip() if paper != "–" else paper),
                ("ours", ours),
                ("picture", picture),
                ("pairs", str(len(e.pairs))),
                ("verdict", _badge(e.verdict) + same),
            )
            + "</tr>"
        )
    return "<tbody>" + "".join(lines) + "</tbody>"


def claim_table(board: Board) -> list[str]:
    """The claims, each with the effects that were measured."""
    heads = ("setting", "paper", "ours, 95 % interval", "", "pairs", "verdict")
    head = "".join(f'<th scope="col">{h}</th>' for h in heads)
    bodies = [
        _claim(
            [e for e in board.evidence if e.claim == name], c.words, "" if c.unit != "dB" else "dB"
        )
        for name, c in claims().items()
    ]
    kept = [b for b in bodies if "<td" in b]
    return [
        "```{raw} html",
        f'<div class="scores claims full-width"><table><thead><tr>{head}</tr></thead>',
        *kept,
        "</table></div>",
        "```",
    ]


def forest(board: Board) -> list[str]:
    """The PSNR cells in order of their difference."""
    shown = [
        c for c in board.cells if c.metric == "psnr" and c.counted and c.difference is not None
    ]
    if not shown:
        return []
    shown.sort(key=lambda c: c.difference.value)
    count = Counter(c.verdict for c in shown)
    title = (
        f"Of {len(shown)} PSNR cells, {count['equal']} are the paper's, {count['different']} are "
        f"not, and {count['undecided']} are undecided"
    )
    axis = strips.Axis(-10.0, 10.0)
    alone = any(len(c.values) == 1 for c in shown)
    single = "A hollow dot is a single client. " if alone else ""
    rows = []
    for c in shown:
        name = f"{names.short(c.table, c.row)} {names.METHODS[c.method]}"
        picture = strips.difference(axis, c.difference, c.verdict, c.scale.limit)
        rows.append(f'<div class="label">{name}</div>{picture}')
    return [
        "```{raw} html",
        '<figure class="forest full-width">',
        f"<figcaption><strong>{title}.</strong> Ours minus the paper's PSNR in dB, with the 95 % "
        f"interval; shaded: ±{verdicts.DECIBELS.band:g} dB. {single}"
        "Intervals are cut at 10 dB. R5: after five rounds of training; E: epochs; N: images."
        "</figcaption>",
        f'<div class="rows"><div></div>{strips.ticks(axis, (-10, -5, -2, 0, 2, 5, 10))}',
        *rows,
        "</div></figure>",
        "```",
    ]


def _number(cell: Cell, value: float | None) -> str:
    if value is None:
        return "–"
    if cell.table == "cost":
        return f"{value:.1f}×"
    return f"{value:.{1 if cell.metric == 'psnr' else 3}f}"


def runs(numbers: Iterable[int]) -> str:
    """Numbers of lines, like `2, 5–7`."""
    found: list[list[int]] = []
    for n in numbers:
        if found and found[-1][1] == n - 1:
            found[-1][1] = n
        else:
            found.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}–{b}" for a, b in found)


def _source(cell: Cell, where: str | None, *, earlier: bool) -> str:
    """Of which lines a number is made, with a link to them where there is a clone."""
    notes = [f"{cell.failed} failed"] * bool(cell.failed)
    if cell.lines:
        file = f"{cell.source[0]}.csv"
        said = f"{len(cell.lines)} line{'s' * (len(cell.lines) > 1)}"
        title = f'title="{file}, {runs(cell.lines)}"'
        if where is None:
            notes.append(f"<span {title}>{said}</span>")
        else:
            address = f"{REPOSITORY}/blob/main/{where}/{file}?plain=1#L{cell.lines[0]}"
            notes.append(f'<a href="{address}" {title}>{said}</a>')
    notes += ["<small>earlier version</small>"] * (earlier and cell.earlier)
    return "<br>".join(notes)


def _seen(cell: Cell) -> str:
    """Beside a PSNR, what else is known of the pictures."""
    said = [] if cell.ssim is None else [f"SSIM {cell.ssim:.2f}"]
    said += [] if cell.above_18 is None else [f"{cell.above_18:.0%} over 18 dB".replace("%", " %")]
    lines = [", ".join(said)] if said else []
    lines += [f"mean image {np.mean(cell.guesses):.1f} dB"] if cell.guesses else []
    return "".join(f"<br><small>{line}</small>" for line in lines) if cell.metric == "psnr" else ""


def _line(cell: Cell, source: str) -> str:
    gap = cell.difference
    variant = ", softmax" if "softmax" in cell.source[1] else ""
    uncounted = "" if cell.counted else ' class="aside"'
    differs = "–"
    if gap is not None:
        differs = f"{text(float(gap.value), cell.scale, signed=True)} "
        differs += f"<small>{between(gap, cell.scale)}</small>{_seen(cell)}"
    columns = (
        _badge(cell.verdict),
        cell.table,
        names.row(cell.table, cell.row),
        names.METHODS[cell.method],
        _set(QUANTITY[cell.metric]),
        names.WEIGHTS[cell.init] + variant,
        _number(cell, cell.paper),
        _number(cell, cell.ours if cell.values else None),
        differs,
        str(len(cell.values)),
        source,
    )
    return f"<tr{uncounted}>" + _cells("td", *zip(HEADINGS, columns, strict=True)) + "</tr>"


def cell_table(board: Board) -> list[str]:
    """The cells that were run, with filters."""
    shown = [c for c in board.cells if c.values or c.failed]
    if not shown:
        return ["Nothing was run yet."]
    where, mixed = _in_clone(board.folder), not all(c.earlier for c in shown)
    head = "".join(f'<th scope="col"><button>{h}</button></th>' for h in HEADINGS)
    filters = []
    for name, options in (
        ("table", dict.fromkeys(c.table for c in shown)),
        ("method", dict.fromkeys(names.METHODS[c.method] for c in shown)),
        ("verdict", [v for v in ORDER if any(c.verdict == v for c in shown)]),
        ("quantity", dict.fromkeys(QUANTITY[c.metric] for c in shown)),
    ):
        items = "".join(f"<option>{escape(o)}</option>" for o in options)
        filters.append(
            f'<label>{name} <select data-column="{name}"><option value="">all</option>{items}'
            "</select></label>"
        )
    return [
        "```{raw} html",
        f'<div class="filters" hidden>{"".join(filters)}<output></output></div>',
        f'<div class="scores cells full-width"><table><thead><tr>{head}</tr></thead><tbody>',
        *(_line(c, _source(c, where, earlier=mixed)) for c in shown),
        "</tbody></table></div>",
        "```",
    ]


def _in_clone(folder: Path) -> str | None:
    """The folder's path inside a clone of the book; none where it lies elsewhere."""
    folder = folder.resolve()
    for root in folder.parents:
        if (root / "_toc.yml").is_file():
            return folder.relative_to(root).as_posix()
    return None


def _missing(board: Board) -> list[tuple[str, str, list[Job]]]:
    """What was not run: in words, the command, and the jobs of five clients. Each cell once.

    Also the clients that undecided effects want.
    """
    found: dict[tuple, Cell] = {}
    for c in board.cells:
        if c.verdict == "not run":
            found.setdefault((c.source, c.method), c)
    rows = []
    for ((table, row), method), c in found.items():
        methods = (method, "sme") if table == "cost" else (method,)
        jobs = [Job(table, row, m, k, c.init) for m in methods for k in range(5)]
        rows.append((f"{names.METHODS[method]}, {names.row(table, row)}", c.command, jobs))
    covered = {(c.source, c.method) for c in board.cells}
    for name in claims():
        empty = [e.effect for e in board.evidence if e.claim == name and not e.pairs]
        sides = {(s.table, s.row, s.method) for e in empty for s in (e.more, e.less)}
        beyond = sorted(side for side in sides if (side[:2], side[2]) not in covered)
        if jobs := [Job(*side, k) for side in beyond for k in range(5)]:
            words = f"{len(beyond)} cells of the claim {name}, beyond the paper's tables"
            rows.append((words, f"smelib reproduce --claim {name} --data-root DIR", jobs))
    rows += _other_readings(board)
    rows += [_wanting(e) for e in board.evidence if e.why and not e.close]
    return sorted(rows, key=lambda row: prices.price(row[2]).hours)


def _other_readings(board: Board) -> list[tuple[str, str, list[Job]]]:
    """What the plan has under LeCun's weights, and no run yet: in words, command and jobs."""
    known = {(*c.source, c.method): c for c in board.cells if c.metric == "psnr"}
    run = {(*c.source, c.method, c.init) for c in board.cells if c.values or c.failed}
    rows = []
    for (table, row, method), c in sorted(known.items()):
        clients = planned(table, row, method, "lecun")
        if clients and (table, row, method, "lecun") not in run:
            first = ROWS[table][row].first
            jobs = [Job(table, row, method, first + k, "lecun") for k in range(clients)]
            words = f"{names.METHODS[method]}, {names.row(table, row)}, LeCun's weights"
            rows.append((words, replace(c, init="lecun").running(clients), jobs))
    return rows


def _wanting(e: Evidence) -> tuple[str, str, list[Job]]:
    """The clients that would bring an undecided effect to as many as were ever added."""
    most, init = verdicts.LOOKS[-1], e.effect.init
    methods: dict[tuple[str, str], list[str]] = {}
    for side in (e.effect.more, e.effect.less):
        methods.setdefault((side.table, side.row), []).append(side.method)
    commands = (
        f"smelib reproduce {table} --rows {row} --methods {','.join(given)} --inits {init} "
        f"--seeds {most} --data-root DIR"
        for (table, row), given in methods.items()
    )
    jobs = [
        Job(table, row, method, ROWS[table][row].first + k, init)
        for (table, row), given in methods.items()
        for method in given
        for k in range(len(e.pairs), most)
    ]
    whose = "" if init == "torch" else f", {names.WEIGHTS[init]} weights"
    pair = " minus ".join(names.METHODS[s.method] for s in (e.effect.more, e.effect.less))
    named = e.effect.more.method == e.effect.less.method or pair in e.effect.label
    said = e.effect.label if named else f"{pair}, {e.effect.label}"
    words = f"{most - len(e.pairs)} more clients, where these leave it undecided: {said}{whose}"
    return words, " && ".join(commands), jobs


def not_run(board: Board) -> list[str]:
    """What was not run, with its command and its price."""
    rows = _missing(board)
    if not rows:
        return ["Every cell was run."]
    total = prices.price(job for _, _, jobs in rows for job in jobs)
    head = "".join(f'<th scope="col">{h}</th>' for h in ("cell", "on a GPU", "command"))
    lines = [
        "<tr>"
        + _cells(
            "td",
            ("cell", escape(words)),
            ("on a GPU", str(prices.price(jobs))),
            ("command", f"<code>{escape(command)}</code>"),
        )
        + "</tr>"
        for words, command, jobs in rows
    ]
    return [
        f"Together {total}: ".replace("$", r"\$") + "estimated for five clients each, with "
        "LeCun's weights as many as the plan has, for undecided effects those that they want, from "
        f"operations that `benchmarks/flops.py` counted, assuming {prices.ASSUMED}. Put your "
        "folder with the data in place of `DIR`. What the plan leaves to a GPU, {doc}`a page "
        "</notebooks/00_run_everything_on_a_gpu>` runs on Colab.",
        "",
        "```{raw} html",
        f'<details class="scores not-run"><summary>{len(rows)} commands and prices</summary>'
        f"<table><thead><tr>{head}</tr></thead><tbody>",
        *lines,
        "</tbody></table></details>",
        "```",
    ]
