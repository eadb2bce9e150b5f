"""What the repaired random streams changed: PSNR with starts of their own, and with colliding ones.

    python benchmarks/streams.py --data-root DIR [--clients 10] [--networks cnn,mlp]

With one seed for network and attack, the first kernel drew an attack's starting noise from the bits
that the network's weights were made of. Here the same clients, networks and updates are attacked
twice, from independent noise and from such a colliding one; only the start differs.
`results/streams.json` has every run, and a run that is in it is not repeated.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import product
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from kept import between, fill, on_one_core

from smelib import seeds
from smelib.cli import in_sentences
from smelib.reproduce.job import measure
from smelib.reproduce.plan import ROWS

RESULTS = Path(__file__).resolve().parents[1] / "results" / "streams.json"
SETTINGS = {"cnn": ("main", "femnist-E10-N10"), "mlp": ("architectures", "mlp-E10-N10")}


@contextmanager
def colliding():
    """While it lasts, an attack starts from the bits of the network's weights."""
    proper = seeds.generator

    def draw(seed: int, *purpose: str | int) -> torch.Generator:
        return proper(seed, *(("weights",) if purpose == ("start",) else purpose))

    with mock.patch.object(seeds, "generator", draw):
        yield


def psnr(network: str, method: str, start: str, seed: int, root: str) -> float:
    """One client of a network, attacked from its own noise or from a colliding one."""
    table, row = SETTINGS[network]
    with nullcontext() if start == "own" else colliding():
        found = measure(ROWS[table][row], method, "torch", seed, root=root)
    return round(found["psnr"], 4)


def report(runs: dict[str, float]) -> str:
    """Mean PSNR of both, and the paired difference with its 95 % t-interval."""
    lines = [
        f"{'network':8}{'attack':8}{'clients':>8}{'own':>8}{'colliding':>11}   own - colliding"
    ]
    for network in SETTINGS:
        for method in ("ig", "sme"):
            keys = [k for k in runs if k.startswith(f"{network} {method} own ")]
            others = [k.replace(" own ", " colliding ") for k in keys]
            pairs = [(runs[a], runs[b]) for a, b in zip(keys, others, strict=True) if b in runs]
            if len(pairs) < 2:
                continue
            own, other = np.mean(pairs, axis=0)
            lines.append(
                f"{network:8}{method:8}{len(pairs):8}{own:8.2f}{other:11.2f}   {between(pairs)} dB"
            )
    return "\n".join(lines)


def work(args: argparse.Namespace) -> int:
    """Run what is missing and print the table."""
    on_one_core()
    root = args.data_root
    networks, starts = args.networks.split(","), ("own", "colliding")
    cells = product(("sme", "ig"), range(args.clients), networks, starts)
    jobs = (
        (f"{network} {method} {start} {seed}", partial(psnr, network, method, start, seed, root))
        for method, seed, network, start in cells
    )
    print(report(fill(RESULTS, jobs, quiet=True)))
    return 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-root", required=True, help="folder with femnist.npz")
    parser.add_argument("--clients", type=int, default=10, help="clients per network (10)")
    parser.add_argument("--networks", default=",".join(SETTINGS), help="cnn, mlp or both")
    return in_sentences("streams", lambda: work(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
