"""Reconstruction quality on real data, against what the paper lets us expect.

    python benchmarks/quality.py --data-root DIR [--out FILE.json]

DIR holds femnist.npz and cifar100.npz. Prints one line per client and one verdict per figure;
finished clients are kept in --out (default results/quality.json), so a run that was cut off goes
on where it stopped; delete the file to measure anew.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

import smelib

# name: data set, epochs, init, clients, methods
CELLS = {
    "femnist-E10": ("femnist", 10, "torch", 5, ("ig", "sme")),
    "femnist-E50": ("femnist", 50, "torch", 5, ("ig", "sme")),
    "cifar100-E10": ("cifar100", 10, "torch", 2, ("sme",)),
    "femnist-E10-lecun": ("femnist", 10, "lecun", 3, ("dlfa",)),
}


def run(cell: str, method: str, seed: int, root: str) -> dict:
    """One client, one attack, the paper's settings with N = B = 10."""
    dataset, epochs, init, _, _ = CELLS[cell]
    client = smelib.data.client(dataset, 10, seed=seed, root=root)
    network = smelib.models.cnn(client.shape, client.classes, init=init, seed=seed)
    protocol = smelib.Protocol(epochs=epochs, batch_size=10)
    update = smelib.local_update(network, client, protocol, seed=seed)
    extra = {"protocol": protocol} if method == "dlfa" else {}
    found = smelib.attacks.ATTACKS[method](network, update, client.labels, seed=seed, **extra)
    score = smelib.evaluate(found.images, client.images)
    return {
        "psnr": score.psnr,
        "ssim": score.ssim,
        "l_sim": found.similarity,
        "alpha": found.alpha,
        "s": found.seconds,
    }


def verdicts(mean: dict[str, float]) -> list[tuple[str, float, str, bool]]:
    """Figure, measured, goal, met."""
    rows = []
    for cell, least, lead in (("femnist-E10", 29.0, 2.0), ("femnist-E50", 24.5, 5.0)):
        sme, over = mean[f"{cell} sme"], mean[f"{cell} sme"] - mean[f"{cell} ig"]
        rows.append((f"{cell} SME", sme, f">= {least}", sme >= least))
        rows.append((f"{cell} SME - IG", over, f">= {lead}", over >= lead))
    cifar, dlfa = mean["cifar100-E10 sme"], mean["femnist-E10-lecun dlfa"]
    rows.append(("cifar100-E10 SME", cifar, ">= 27.0", cifar >= 27))
    rows.append(("femnist-E10-lecun DLFA", dlfa, "24.9 ± 2.5", abs(dlfa - 24.9) <= 2.5))
    return rows


def main() -> int:
    """Run what is missing, then print the verdicts; exit code 1 when a figure is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-root", required=True)
    parser.add_argument("--out", type=Path, default=Path("results/quality.json"))
    args = parser.parse_args()
    done = json.loads(args.out.read_text()) if args.out.exists() else {}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    psnrs: dict[str, list[float]] = {}
    for cell, (_, _, _, clients, methods) in CELLS.items():
        for method in methods:
            for seed in range(clients):
                key = f"{cell} {method} {seed}"
                if key not in done:
                    done[key] = run(cell, method, seed, args.data_root)
                    args.out.write_text(json.dumps(done, indent=1))
                r = done[key]
                print(
                    f"{key:28} {r['psnr']:5.1f} dB  SSIM {r['ssim']:.2f}  L_sim {r['l_sim']:.4f}"
                    f"  {r['s']:6.1f} s",
                    flush=True,
                )
                psnrs.setdefault(f"{cell} {method}", []).append(r["psnr"])
    print()
    for key, values in psnrs.items():
        spread = np.std(values, ddof=1) / np.sqrt(len(values))
        print(f"{key:28} {np.mean(values):5.1f} ± {spread:.1f} dB (standard error)")
    print()
    rows = verdicts({k: float(np.mean(v)) for k, v in psnrs.items()})
    for name, measured, goal, met in rows:
        print(f"{name:28} {measured:5.1f} dB  goal {goal:12} {'met' if met else 'NOT MET'}")
    return 0 if all(met for *_, met in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
