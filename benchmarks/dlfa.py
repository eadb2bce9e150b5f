"""DLFA beside SME: against the number of local steps, and on the network where it wins.

    python benchmarks/dlfa.py --data-root DIR [--clients 5] [--out results/dlfa.json]

FEMNIST, N = B = 10, PyTorch's initial weights, the clients of the reproduction (`Row.first`). SME
takes 200 steps of the fast preset, DLFA its authors' 400, with their settings or "rebalanced", as
in chapter 8. A line that is there is not measured again. E = 10 and 20 of the convolutional network
are in `results/retrace.json`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from kept import by_cell, fill, on_one_core

from smelib import attacks, data, metrics, models, presets
from smelib.cli import in_sentences
from smelib.federated import local_update
from smelib.reproduce.plan import Row

OUT = Path(__file__).resolve().parents[1] / "results" / "dlfa.json"
ROWS = {
    "mlp E10": Row(network="mlp"),
    **{f"cnn E{e}": Row(epochs=e) for e in (1, 2, 5)},
}


def plan(clients: int) -> Iterator[tuple[str, str, int]]:
    """Row, method and seed: three clients of everything before more of anything."""
    for some in (range(min(3, clients)), range(3, clients)):
        for name, row in ROWS.items():
            for k in some:
                methods = ("sme", "dlfa") if row.network == "mlp" else ("sme", "dlfa, rebalanced")
                yield from ((name, method, row.first + k) for method in methods)


def run(row: Row, method: str, seed: int, root: str) -> dict:
    """One attack on one client."""
    client = data.client(row.dataset, row.samples, seed=seed, root=root)
    model = models.build(row.network, client.shape, client.classes, seed=seed)
    protocol = row.protocol()
    update = local_update(model, client, protocol, seed=seed)
    who, how = (model, update, client.labels), {"seed": seed, "device": "cpu", "progress": False}
    busy = time.process_time()
    if method == "sme":
        out = attacks.sme(*who, preset="fast", **how)
    else:
        settings = presets.rebalanced(update, protocol) if "rebalanced" in method else None
        out = attacks.dlfa(*who, protocol, settings=settings, **how)
    return {
        "psnr": round(metrics.evaluate(out.images, client.images).psnr, 3),
        "l_sim": round(out.similarity, 6),
        "cpu_seconds": round(time.process_time() - busy, 2),
        "steps": out.steps,
    }


def work(args: argparse.Namespace) -> int:
    """Run what is missing and print the means."""
    on_one_core()
    jobs = (
        (key, partial(run, ROWS[name], method, seed, args.data_root))
        for name, method, seed in plan(args.clients)
        if args.only in (key := f"{name} | {method} | {seed}")
    )
    for cell, found in by_cell(fill(args.out, jobs)).items():
        psnr = np.mean([line["psnr"] for line in found.values()])
        print(f"{' | '.join(cell):28} {psnr:5.1f} dB, {len(found)} clients")
    return 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-root", required=True, help="folder with the data sets")
    parser.add_argument("--clients", type=int, default=5, help="so many per row (5)")
    parser.add_argument("--only", default="", help="only runs whose name contains this")
    parser.add_argument("--out", type=Path, default=OUT)
    return in_sentences("dlfa", lambda: work(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
