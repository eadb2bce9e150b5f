"""The commands and their options, as `smelib --help` shows them."""

from __future__ import annotations

import argparse

from smelib import attacks, models
from smelib.cli import attack, audit, reproduce, scoreboard
from smelib.version import __version__


class _Parser(argparse.ArgumentParser):
    """One sentence and exit code 2, without the usage text in front of it."""

    def error(self, message: str) -> None:
        self.exit(2, f"smelib: {message}; see '{self.prog} --help'.\n")


def parser() -> argparse.ArgumentParser:
    """The command line, as `smelib --help` shows it."""
    top = _Parser(prog="smelib", description="What can a federated-learning server reconstruct?")
    top.add_argument("--version", action="version", version=f"smelib {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    simulated = commands.add_parser("attack", help="attack a simulated client and score the result")
    own = commands.add_parser("audit", help="attack your own update: two safetensors files")
    attack.add_options(simulated)
    audit.add_options(own)
    for command in (simulated, own):
        _shared_options(command)
    reproduce.add_options(
        commands.add_parser("reproduce", help="run one of the paper's tables; resumes by itself")
    )
    scoreboard.add_options(
        commands.add_parser("scoreboard", help="the paper's numbers beside ours")
    )
    return top


def _shared_options(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--method", default="sme", help=f"{', '.join(attacks.ATTACKS)} (sme)")
    add("--network", default="cnn", help=", ".join(models.NETWORKS))
    add("--preset", default="fast", help="schedule of ig and sme: fast (200 steps) or paper (1000)")
    add("--steps", type=int, help="iterations, if not the preset's number")
    add("--restarts", type=int, default=1, help="independent starts (1)")
    add("--seed", type=int, default=0, help="of everything random (0)")
    add("--device", default="auto", help="auto, cpu, cuda, mps")
    add("--out", help="folder for weights, pictures and result.json")
    add("--json", action="store_true", help="print one JSON object")
