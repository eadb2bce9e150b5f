"""Reconstruction quality on real data, against what the paper lets us expect.

    python benchmarks/quality.py --data-root DIR [--out FOLDER]

DIR holds femnist.npz and cifar100.npz. The clients are jobs of the paper's main table: those that
FOLDER (default results/) does not have in their current version are run now, one per core.
Then one line per client, one per mean, and one verdict per figure.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

from smelib.cli import in_sentences
from smelib.reproduce import drive as runner
from smelib.reproduce import provenance
from smelib.reproduce.plan import Job
from smelib.reproduce.store import Ledger

# row of the main table, initialisation, methods, clients
CELLS = (
    ("femnist-E10-N10", "torch", ("ig", "sme"), 5),
    ("femnist-E50-N10", "torch", ("ig", "sme"), 5),
    ("cifar100-E10-N10", "torch", ("sme",), 2),
    ("femnist-E10-N10", "lecun", ("dlfa",), 3),
)


def jobs() -> list[Job]:
    """The jobs behind the figures, in the order of the table above."""
    return [
        Job("main", row, method, seed, init)
        for row, init, methods, clients in CELLS
        for method in methods
        for seed in range(clients)
    ]


def verdicts(mean: dict[str, float]) -> list[tuple[str, float, str, bool]]:
    """Figure, measured, goal, met."""
    rows = []
    for cell, least, lead in (("femnist-E10-N10", 29.0, 2.0), ("femnist-E50-N10", 24.5, 5.0)):
        sme = mean[f"{cell} torch sme"]
        over = sme - mean[f"{cell} torch ig"]
        rows.append((f"{cell} SME", sme, f">= {least}", sme >= least))
        rows.append((f"{cell} SME - IG", over, f">= {lead}", over >= lead))
    cifar, dlfa = mean["cifar100-E10-N10 torch sme"], mean["femnist-E10-N10 lecun dlfa"]
    rows.append(("cifar100-E10-N10 SME", cifar, ">= 27.0", cifar >= 27))
    rows.append(("femnist-E10-N10 DLFA, LeCun", dlfa, "24.9 ± 2.5", abs(dlfa - 24.9) <= 2.5))
    return rows


def main() -> int:
    """Run what is missing, then print the verdicts; exit code 1 when a figure is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-root", required=True)
    parser.add_argument("--out", type=Path, default=Path("results"))
    args = parser.parse_args()
    wanted = jobs()
    tally = runner.reproduce(wanted, args.out, data_root=args.data_root, retry_failed=True)
    print(runner.summary("main", len(wanted), tally), end="\n\n")

    lines = Ledger(args.out / "main.csv").latest()
    psnrs: dict[str, list[float]] = {}
    for job in wanted:
        line = lines.get((job.key, provenance.generation(job, {})), {"status": "missing"})
        if line["status"] != "ok":
            print(f"{job.key}: {line.get('error') or 'not run'}; no verdict without it.")
            return 1
        psnr, ssim, l_sim, seconds = (
            float(line[k]) for k in ("psnr", "ssim", "l_sim", "cpu_seconds")
        )
        print(f"{job.key:36} {psnr:5.1f} dB  SSIM {ssim:.2f}  L_sim {l_sim:.4f}  {seconds:5.0f} s")
        psnrs.setdefault(f"{job.row} {job.init} {job.method}", []).append(psnr)
    print()
    for key, values in psnrs.items():
        spread = np.std(values, ddof=1) / np.sqrt(len(values))
        print(f"{key:36} {np.mean(values):5.1f} ± {spread:.1f} dB (standard error)")
    print()
    rows = verdicts({k: float(np.mean(v)) for k, v in psnrs.items()})
    for name, measured, goal, met in rows:
        print(f"{name:36} {measured:5.1f} dB  goal {goal:12} {'met' if met else 'NOT MET'}")
    return 0 if all(met for *_, met in rows) else 1


if __name__ == "__main__":
    sys.exit(in_sentences("quality", main))
