"""The table of defences as text: what each attacker took, what it cost, by client.

smelib reproduce defences --data-root DIR     measures it
python benchmarks/defences.py [FOLDER]        prints what a folder of results has (the book's)
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from smelib.cli import in_sentences
from smelib.reproduce import tradeoff
from smelib.reproduce.tradeoff import Cell
from smelib.reproduce.verdicts import Interval


def interval(found: Interval, digits: int) -> str:
    """A mean, and half of its interval where it has one."""
    mean = f"{found.value:{digits + 4}.{digits}f}"
    return f"{mean} ± {found.half:.{digits}f}" if found.half == found.half else mean


def line(cell: Cell) -> str:
    """One cell: PSNR, the best guess of the prior, or accuracy; what the aware attacker gains."""
    column = {"prior": "best_of_1000", "federation": "accuracy"}.get(cell.method, "psnr")
    digits = 3 if column == "accuracy" else 2
    name = f"{cell.data} R{cell.rounds}, {cell.defence} {cell.value:g}, {cell.method}"
    text = f"{name:48}{len(cell.runs):3}  {interval(cell.mean(column), digits)}"
    if column == "psnr":
        text += f"   read {cell.mean('read').value:.2f}"
    return text + (f"   over naive {interval(cell.gap, 2)}" if cell.gap else "")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, help="of results (the book's)")
    for cell in tradeoff.table(parser.parse_args().folder).values():
        print(line(cell))
    return 0


if __name__ == "__main__":
    sys.exit(in_sentences("defences", main))
