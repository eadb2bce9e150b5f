"""Does learning alpha pay? SME with alpha learned, fixed, and fixed where the true data would be.

    python benchmarks/fixed_alpha.py --data-root DIR [--clients 10] [--epochs 10 20 50]
                                     [--ways 0.5 best …] [--preset fast]
                                     [--out results/fixed_alpha.json]

FEMNIST, N = B = 10, the clients of the reproduction (`Row.first`). Every run has a line: PSNR, the
mismatch `l_sim` of what was found, alpha at the end, and there the mismatch `truth` of the client's
own images; `loss` and `truth_loss` are the same with the prior. A line that is there is not
measured again. `best` is the place of least mismatch for the client's own images, of 101.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from kept import by_cell, keep, on_one_core, stored

from smelib import attacks, data, metrics, models, objectives, presets
from smelib.cli import in_sentences
from smelib.federated import local_update
from smelib.reproduce.plan import Row

OUT = Path(__file__).resolve().parents[1] / "results" / "fixed_alpha.json"
PLACES = np.linspace(0, 1, 101)
WAYS = ("0", "0.1", "0.3", "0.5", "0.7", "0.9", "best", "learned")
TV = 0.01


def held(preset: str) -> presets.Preset:
    """The same search, with alpha nailed to where it starts."""
    return replace(presets.preset(preset), alpha_rate=0.0)


def client_lines(epochs: int, seed: int, names: list[str], preset: str, root: str) -> dict:
    """What each way of choosing alpha finds of one client."""
    row = Row(epochs=epochs)
    client = data.client(row.dataset, row.samples, seed=seed, root=root)
    model = models.build(row.network, client.shape, client.classes, seed=seed)
    update = local_update(model, client, row.protocol(), seed=seed)
    mismatch = objectives.sme(model, update, client.labels, tv=0.0)
    z = model.normalise(client.images)
    smooth = TV * float(objectives.total_variation(z))

    @torch.no_grad()
    def at(alpha: float) -> float:
        return float(mismatch(z, {"alpha": torch.tensor(float(alpha))}, torch.tensor(0))[0])

    best = float(PLACES[np.argmin([at(a) for a in PLACES])])
    found = {}
    for name in names:
        place = {"learned": 0.5, "best": best}.get(name)
        place = float(name) if place is None else place
        out = attacks.sme(
            *(model, update, client.labels),
            tv=TV,
            alpha=place,
            preset=preset if name == "learned" else held(preset),
            seed=seed,
            device="cpu",
            progress=False,
        )
        truth = at(out.alpha)
        line = {
            "psnr": metrics.evaluate(out.images, client.images).psnr,
            "l_sim": out.similarity,
            "alpha": out.alpha,
            "truth": truth,
            "best": best,
            "loss": out.loss,
            "truth_loss": truth + smooth,
        }
        found[name] = {k: round(v, 5) for k, v in line.items()} | {"steps": out.steps}
    return found


def work(args: argparse.Namespace) -> int:
    """Run what is missing, all settings of a client together, and print the means."""
    on_one_core()
    for k in range(args.clients):
        for epochs in args.epochs:
            seed = Row(epochs=epochs).first + k
            keys = {n: f"{args.preset} | E{epochs} | {n} | {seed}" for n in args.ways}
            missing = [n for n, key in keys.items() if key not in stored(args.out)]
            if missing:
                lines = client_lines(epochs, seed, missing, args.preset, args.data_root)
                keep(args.out, {keys[n]: line for n, line in lines.items()})
                shown = ", ".join(f"{n} {line['psnr']:.1f}" for n, line in lines.items())
                print(f"E{epochs} client {seed}: {shown} dB", flush=True)
    print(report(stored(args.out)))
    return 0


def report(done: dict[str, dict]) -> str:
    """Every setting's mean, and its mean paired difference to the learned alpha."""
    cells, lines = by_cell(done), []
    for (preset, epochs, name), found in cells.items():
        base = cells.get((preset, epochs, "learned"), {})
        gap = [line["psnr"] - base[s]["psnr"] for s, line in found.items() if s in base]
        mean = {k: np.mean([line[k] for line in found.values()]) for k in ("psnr", "l_sim")}
        lines.append(
            f"{preset:6}{epochs:5}{name:8}{len(found):3} clients {mean['psnr']:6.2f} dB, mismatch "
            f"{mean['l_sim']:.4f}, {np.mean(gap) if gap else np.nan:+.2f} dB over learned"
        )
    return "\n".join(lines)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-root", required=True, help="folder with the data sets")
    parser.add_argument("--clients", type=int, default=10, help="so many per number of epochs (10)")
    parser.add_argument("--epochs", type=int, nargs="*", default=[10, 20, 50])
    parser.add_argument("--ways", nargs="*", choices=WAYS, default=WAYS, help="of choosing alpha")
    parser.add_argument("--preset", choices=list(presets.PRESETS), default="fast")
    parser.add_argument("--out", type=Path, default=OUT)
    return in_sentences("fixed_alpha", lambda: work(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
