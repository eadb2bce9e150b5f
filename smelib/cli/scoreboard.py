"""`smelib scoreboard`: the paper's numbers beside ours."""

from __future__ import annotations

import argparse
from pathlib import Path

from smelib.errors import InputError
from smelib.reproduce import page as pages
from smelib.reproduce import provenance, store
from smelib.reproduce import scoreboard as boards


def scoreboard(args: argparse.Namespace) -> int:
    """Compare all results with the paper: print the verdicts and, if told to, write the page."""
    folder, page = Path(args.out), Path(args.page)
    if not folder.is_dir():
        raise InputError(f"--results {args.out!r}: there is no such folder.")
    if not provenance.holds_results(folder):
        raise InputError(
            f"--results {args.out!r} holds no results: neither manifest.json nor a table of "
            "`smelib reproduce`; name the folder that has them."
        )
    if args.write:
        _ours(page)
    board = boards.read(folder)
    if args.write:
        with store.replacing(page) as scratch:
            scratch.write_text(pages.page(board), encoding="utf-8")
        provenance.write_manifest(folder)
    print(boards.summary(board))
    return 0


def _ours(page: Path) -> None:
    """Refuse a page that somebody else wrote, or that has no folder."""
    if not page.parent.is_dir():
        raise InputError(
            f"--page {str(page)!r}: there is no folder {str(page.parent)!r}; write the page inside "
            "a clone of the book, or name another place."
        )
    if page.is_dir():
        raise InputError(f"--page {str(page)!r} is a folder; name a file.")
    if page.exists() and not page.read_bytes().startswith(pages.TITLE.encode()):
        raise InputError(
            f"--page {str(page)!r} is not a scoreboard (it does not begin with {pages.TITLE!r}), "
            "so it stays as it is; name another file."
        )


EXAMPLE = """\
example:
  smelib scoreboard                   prints claims and counts, and changes no file
  smelib scoreboard --results DIR     the same of another folder of results
  smelib scoreboard --write           writes book/scoreboard.md and results/manifest.json
"""


def add_options(s: argparse.ArgumentParser) -> None:
    """What the command takes."""
    s.epilog = EXAMPLE
    s.add_argument(
        *("--results", "--out"),
        dest="out",
        metavar="DIR",
        default="results",
        help="folder of the CSV files (results)",
    )
    page = "book/scoreboard.md"
    s.add_argument("--page", default=page, help=f"where --write puts the page ({page})")
    s.add_argument("--write", action="store_true", help="write the page and the manifest")
    s.set_defaults(run=scoreboard)
