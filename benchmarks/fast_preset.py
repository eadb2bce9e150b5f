"""Does the fast preset reach the paper schedule's pictures? On clients it was not chosen on.

    python benchmarks/fast_preset.py --data-root DIR [--out results/fast_preset.json] [--only CELL]

Finished clients are kept in --out, so a run that was cut off goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

import numpy as np
from kept import fill

import smelib
from smelib.reproduce import names

CELLS = {
    "femnist-E10": ("femnist", 10, range(200, 210)),
    "femnist-E20": ("femnist", 20, range(210, 220)),
    "femnist-E50": ("femnist", 50, range(220, 230)),
    "cifar100-E10": ("cifar100", 10, range(200, 205)),
}


def psnr(dataset: str, epochs: int, seed: int, preset: str, root: str) -> float:
    """One client with N = B = 10, attacked with SME."""
    client = smelib.data.client(dataset, 10, seed=seed, root=root)
    model = smelib.models.cnn(client.shape, client.classes, seed=seed)
    update = smelib.local_update(model, client, smelib.Protocol(epochs, 10), seed=seed)
    found = smelib.attacks.sme(model, update, client.labels, preset=preset, seed=seed, compile=True)
    return round(smelib.evaluate(found.images, client.images).psnr, 3)


def table(done: dict) -> str:
    """The comparison as a Markdown table."""
    lines = [
        "| PSNR in dB | clients | paper's schedule, 1000 steps | fast, 200 steps | difference |",
        "|---|---:|---:|---:|---:|",
    ]
    for cell, (_, _, seeds) in CELLS.items():
        have = [s for s in seeds if f"{cell} {s} fast" in done and f"{cell} {s} paper" in done]
        if have:
            paper, fast = (
                np.array([done[f"{cell} {s} {p}"] for s in have]) for p in ("paper", "fast")
            )
            gap = fast - paper
            error = np.std(gap, ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else float("nan")
            change = f"{gap.mean():+.2f} ± {error:.2f}".replace("-", "−")
            lines.append(
                f"| {names.row('main', f'{cell}-N10')} | {len(have)} | {paper.mean():.2f} | "
                f"{fast.mean():.2f} | {change} |"
            )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run what is missing, cell by cell, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-root", required=True)
    parser.add_argument("--out", type=Path, default=Path("results/fast_preset.json"))
    parser.add_argument("--only", nargs="*", default=list(CELLS))
    args = parser.parse_args()
    jobs = (
        (f"{cell} {seed} {preset}", partial(psnr, *CELLS[cell][:2], seed, preset, args.data_root))
        for cell in args.only
        for seed in CELLS[cell][2]
        for preset in ("fast", "paper")
    )
    text = table(fill(args.out, jobs))
    args.out.with_name("fast_table.md").write_text(text)
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
