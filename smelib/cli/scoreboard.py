"""`smelib scoreboard`: the paper's numbers beside ours."""

from __future__ import annotations

import argparse
from pathlib import Path

from smelib.errors import InputError
from smelib.reproduce import provenance
from smelib.reproduce import scoreboard as board


def scoreboard(args: argparse.Namespace) -> int:
    """Compare all results with the paper: a page of the book, and the counts."""
    if not Path(args.out).is_dir():
        raise InputError(f"--out {args.out!r}: there is no such folder.")
    found = board.cells(Path(args.out))
    page = Path(args.page)
    page.write_text(board.page(found), encoding="utf-8")
    provenance.write_manifest(Path(args.out))
    print(board.summary(found))
    return 0


def add_options(s: argparse.ArgumentParser) -> None:
    """What the command takes."""
    s.add_argument("--out", default="results", help="folder of the CSV files (results)")
    s.add_argument("--page", default="book/scoreboard.md", help="where the page goes")
    s.set_defaults(run=scoreboard)
