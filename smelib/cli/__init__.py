"""`smelib attack`, `audit`, `reproduce` and `scoreboard`: the kernel from a terminal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from smelib.cli.inverting import say
from smelib.cli.parser import parser
from smelib.devices import keep_freed_memory
from smelib.errors import InputError


def in_sentences(program: str, work: Callable[[], int]) -> int:
    """Do the work; bad input is a sentence on standard error and exit code 2."""
    try:
        return work()
    except (InputError, FloatingPointError) as error:
        said = str(error)
    except OSError as error:
        said = f"{error.filename or 'a file'}: {error.strerror or error}."
    print(f"{program}: {said}", file=sys.stderr)
    return 2


def main(argv: list[str] | None = None) -> int:
    """Run one command of the command line."""
    args = parser().parse_args(argv)
    keep_freed_memory()
    return in_sentences("smelib", lambda: _obey(args))


def _obey(args: argparse.Namespace) -> int:
    try:
        result = args.run(args)
    except KeyboardInterrupt:
        kept = "finished jobs are kept, and the same command goes on"
        lost = "before anything was found; nothing was written"
        said = f"; {kept}" if args.command == "reproduce" else f" {lost}"
        print(f"smelib: interrupted{said}.", file=sys.stderr)
        return 130
    if isinstance(result, int):
        return result
    say(result, args.json, args.out)
    return 0
