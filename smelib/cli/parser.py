"""The commands and their options, as `smelib --help` shows them."""

from __future__ import annotations

import argparse
import re
from importlib import import_module
from typing import IO

from smelib.version import __version__

COMMANDS = {
    "attack": "attack a simulated client and score the result",
    "audit": "what an update of your own gives away: two weight files",
    "reproduce": "run one of the paper's tables; resumes by itself",
    "scoreboard": "the paper's numbers beside ours",
}
EXAMPLE = """\
example:
  smelib attack --samples 4 --epochs 5 --out found/
  smelib COMMAND --help shows one for each command
"""
# What argparse says of a type, and what somebody who typed a word understands.
WORDS = (
    (r"invalid int value: (.*)", r"\1 is not a whole number"),
    (r"invalid (?:number|float) value: (.*)", r"\1 is not a number"),
)


class _Parser(argparse.ArgumentParser):
    """One sentence and exit code 2, without the usage text in front of it."""

    def error(self, message: str) -> None:
        for pattern, words in WORDS:
            message = re.sub(pattern, words, message)
        self.exit(2, f"smelib: {' '.join(message.split())}; see '{self.prog} --help'.\n")

    def _print_message(self, message: str, file: IO[str] | None = None) -> None:
        print(message, end="", file=file)  # argparse's own hides that it could not be said


class _Command(_Parser):
    """A command whose module is imported once it is called: `smelib --help` needs no torch."""

    filled = False

    def parse_known_args(self, args=None, namespace=None):
        """Fill in the options, then parse as ever."""
        if not self.filled:
            name = self.prog.split()[-1]
            import_module(f"smelib.cli.{name}").add_options(self)
            if name in ("attack", "audit"):
                _shared_options(self)
            if name == "audit":
                self.set_defaults(network=None)  # a file's notes may name it
            self.filled = True
        return super().parse_known_args(args, namespace)


def parser() -> argparse.ArgumentParser:
    """The command line, as `smelib --help` shows it."""
    raw = argparse.RawDescriptionHelpFormatter
    what = "What can a federated-learning server reconstruct?"
    top = _Parser(prog="smelib", description=what, epilog=EXAMPLE, formatter_class=raw)
    top.add_argument("--version", action="version", version=f"smelib {__version__}")
    commands = top.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=_Command
    )
    for name, does in COMMANDS.items():
        commands.add_parser(name, help=does, description=does.capitalize(), formatter_class=raw)
    return top


def _shared_options(command: argparse.ArgumentParser) -> None:
    from smelib import attacks, models
    from smelib.cli.words import seed

    add = command.add_argument
    add("--method", default="sme", help=f"{', '.join(attacks.ATTACKS)} (sme)")
    own = ", package.module:factory, or a torch.export file.pt2"
    own = own if command.prog.endswith("audit") else ""
    add("--network", default="cnn", help=f"{', '.join(models.NETWORKS)}{own} (cnn)")
    schedule = "schedule of ig and sme: fast, 200 steps, or paper, 1000 (fast)"
    add("--preset", default="fast", help=schedule)
    add("--steps", type=int, help="iterations, if not the preset's number")
    add("--restarts", type=int, default=1, help="independent starts (1)")
    add("--seed", type=seed, default=0, help="of everything random (0)")
    add("--device", default="auto", help="auto, cpu, cuda, mps (auto)")
    add("--out", help="folder for weights, pictures and result.json")
    add("--json", action="store_true", help="print one JSON object")
