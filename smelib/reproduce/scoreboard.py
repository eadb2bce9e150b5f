"""The scoreboard: the paper's claims first, then its cells, as a terminal prints them.

`page` has the same as a page of the book. The rule is in `verdicts`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from smelib.reproduce import names, verdicts
from smelib.reproduce.cells import COLUMNS, Cell, Shelf, by_chance, cells, client, counts, good
from smelib.reproduce.claims import HOLDS, Evidence, claims, weigh

__all__ = ["DECIBELS", "Board", "Cell", "cells", "read", "summary"]

DECIBELS = verdicts.DECIBELS.band
FEW = 5  # clients: fewer than six never reach 5 % by symmetry alone
ATTACKED = ("main", "trained", "architectures", "large_n")


@dataclass(frozen=True)
class Board:
    """Everything that the scoreboard shows of one folder of results."""

    folder: Path
    cells: list[Cell]
    evidence: list[Evidence]
    attacks: int
    clients: dict[str, int]
    guesses: dict[str, float] = field(default_factory=dict)  # as in cells.MEAN_IMAGE

    @property
    def distinct(self) -> int:
        """How many clients stand behind the PSNRs, each counted once."""
        return sum(self.clients.values())


def read(folder: Path) -> Board:
    """Compare a folder of results with the paper."""
    shelf = Shelf(folder)
    shown = [line for cell in shelf.stored for line in good(shelf.of(cell)[0]).values()]
    attacked = [line for line in shown if line["table"] in ATTACKED]
    # with more images the same seed is the same client of CIFAR-100, and another writer of FEMNIST
    met = {client(line) for line in attacked}
    people = Counter(
        who[0] for who in {(d, n if d == "femnist" else 0, *rest) for d, n, *rest in met}
    )
    named = dict(sorted(people.items(), reverse=True))
    return Board(folder, cells(shelf), weigh(shelf), len(attacked), named, shelf.guesses)


def text(value: float, scale: verdicts.Scale, *, signed: bool = False, more: int = 0) -> str:
    """A number as the page and the terminal print it; a logarithm as the factor it stands for."""
    if scale.ratio:
        factor = float(np.exp(value))
        return f"{factor:.{1 if factor >= 2 else 2}f}×"
    digits = more + (1 if scale == verdicts.DECIBELS else 3)
    value = round(value, digits) + 0.0  # no negative zero
    found = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    return found.replace("-", "−")


def between(found: verdicts.Interval, scale: verdicts.Scale, *, signed: bool = True) -> str:
    """An interval in brackets; nothing for a single client.

    With one decimal more where an end would be printed as zero: on which side it lies is the point.
    """
    if not np.isfinite(found.half):
        return ""
    for more in (0, 1):
        ends = [text(float(x), scale, signed=signed, more=more) for x in (found.low, found.high)]
        if not any(re.fullmatch(r"[+−]?0\.0+", end) for end in ends):
            break
    return f"[{', '.join(ends)}]"


def tally(names: Iterable[str]) -> str:
    """Counts of a claim's verdicts in words, like `10 hold, 5 are undecided`."""
    count = Counter(names)
    words = {
        "holds": ("holds", "hold"),
        "does not": ("does not", "do not"),
        "undecided": ("is undecided", "are undecided"),
        "not run": ("was not run", "were not run"),
    }
    return ", ".join(
        f"{count[name]} {said[count[name] > 1]}" for name, said in words.items() if count[name]
    )


def came_out(evidence: Iterable[Evidence]) -> str:
    """A claim's verdicts in words, and how many of them are on rows that the paper has level."""
    every = list(evidence)
    level = [e for e in every if e.pairs and e.level]
    said = tally(e.verdict for e in every)
    if not level or len(level) == len(every):
        return said
    clear = sum(abs(e.ours.value) > e.ours.half for e in level)
    beside = f", and {clear} of ours {'is' if clear == 1 else 'are'} clear of zero" * bool(clear)
    return f"{said}; {len(level)} of these the paper has level{beside}"


def whom(board: Board) -> str:
    """On how many clients the numbers rest."""
    parts = ", ".join(f"{n} of {names.DATA.get(data, data)}" for data, n in board.clients.items())
    return f"{board.attacks:,} attacks on {board.distinct} distinct clients ({parts or 'none'})"


def weighed(board: Board) -> list[str]:
    """How the effects came out, the paper's apart from our own, and what they rest on.

    As of cells, each counts once: with PyTorch's weights, and LeNet with its second softmax.
    """
    sentences = []
    for ours, whose in ((False, "the paper's claims"), (True, "claims of our own")):
        every = [e for e in board.evidence if e.pairs and claims()[e.claim].ours is ours]
        mine = [e for e in every if e.counted]
        if mine:
            some = f"{len(mine)} effect{'s' * (len(mine) > 1)}"
            sentences.append(f"Of {some} behind {whose}, {tally(e.verdict for e in mine)}.")
        if others := [e.verdict for e in every if not e.counted]:
            sentences.append(
                f"Of {len(others)} with LeCun's weights or LeNet's one softmax, {tally(others)}."
            )
    held = [e for e in board.evidence if e.pairs and e.verdict == HOLDS]
    few = sum(len(e.pairs) <= FEW for e in held)
    if few:
        sentences.append(
            f"{few} of the {len(held)} that hold rest on five clients or fewer, where an interval "
            "leans on the normal curve. Effects share clients, and none is corrected for the "
            "number of lines."
        )
    return sentences or ["No effect behind a claim was run."]


def chance(board: Board) -> list[str]:
    """How many verdicts chance alone would give, in sentences."""
    edge, none = (by_chance(board.cells, at_the_edge=e) for e in (True, False))
    run = sum(c.counted and c.difference is not None for c in board.cells)
    found = sum(counts(board.cells).values(), Counter())
    return [
        f"If each of the {run} cells that were run truly lay at the edge of its band, chance alone "
        f"would call {edge[0]:.1f} of them equal and {edge[1]:.1f} different.",
        f"If each were truly the paper's, chance would call {none[1]:.1f} different, and "
        f"{none[0]:.1f} would be found equal: for the others there are too few clients. Found were "
        f"{found[verdicts.EQUAL]} equal and {found[verdicts.DIFFERENT]} different. Cells share "
        "clients, so these are expectations without a spread.",
    ]


def _claim_lines(board: Board, name: str) -> list[str]:
    mine = [e for e in board.evidence if e.claim == name]
    lines = [f"{claims()[name].words}: {came_out(mine)}"]
    for e in mine:
        if not e.pairs:
            continue
        scale = e.effect.scale
        paper = "–" if e.paper is None else text(e.paper.value, scale, signed=True)
        whose = "" if e.effect.init == "torch" else f" ({e.effect.init})"
        ours = text(e.ours.value, scale, signed=True)
        size = f", {e.why}" if e.why else f", size {e.size}" if e.size else ""
        lines.append(
            f"  {e.effect.label + whose:50} paper {paper:>6}  ours {ours:>6} "
            f"{between(e.ours, scale):16} {len(e.pairs):2}  {e.verdict}{size}"
        )
    return lines


def summary(board: Board) -> str:
    """The claims, then the counts and what chance would give, for a terminal."""
    lines = [whom(board), "", "claims: paired differences, 95 % interval, pairs, verdict"]
    for name in claims():
        lines += _claim_lines(board, name)
    by = counts(board.cells)
    rows = [*by.items(), ("all", sum(by.values(), Counter()))]
    lines += ["", f"{'cells':30}" + "".join(f"{v:>10}" for v in COLUMNS)]
    lines += [f"{name:30}" + "".join(f"{count[v]:10}" for v in COLUMNS) for name, count in rows]
    lines += ["", *chance(board)]
    if earlier := sum(c.earlier for c in board.cells):
        lines.append(f"{earlier} cells show an earlier version: reproduce runs them again.")
    return "\n".join(lines)
