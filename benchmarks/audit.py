"""How far an audit can be trusted: the normalisation it finds, its warnings, and its scale.

    python benchmarks/audit.py --data-root DIR [--parts normalisation,warnings,scale]

`normalisation`: clients of four data sets that trained on pixels normalised in a usual way; does
the search find which? `warnings`: 20 updates as the attack assumes them and 20 that deviate; how
many of each are warned of? `scale`: what a mismatch and the agreement of two starts say of PSNR.
No threshold was chosen on these clients, but on the first half of the scale's.
`results/audit.json` has every run, and a run that is in it is not repeated.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import torch
from kept import fill, on_one_core
from torch import Tensor, nn

import smelib
from smelib import seeds
from smelib.auditing import audit
from smelib.auditing.normalising import usual
from smelib.auditing.report import judged
from smelib.cli import in_sentences
from smelib.models import wrap
from smelib.types import Protocol, Update

RESULTS = Path(__file__).resolve().parents[1] / "results" / "audit.json"
FIRST = 700  # the first client; of the normalisations', 1000
LR = {"cnn": 0.004, "mlp": 0.01, "lenet": 0.1, "resnet8": 0.004, "vit": 0.004}


def client(name: str, samples: int, seed: int, root: str | None) -> smelib.Client:
    """A client's images; the digits as everybody else has them, white on black."""
    drawn = smelib.data.client(name, samples, seed=seed, root=root)
    return replace(drawn, images=1 - drawn.images) if name == "mnist" else drawn


def normalisation(root: str | None) -> Iterator[tuple[str, Callable[[], dict]]]:
    """Clients who trained on pixels normalised in a usual way."""
    pairs = [("mnist", "mnist"), ("mnist", "raw"), ("femnist", "femnist"), ("femnist", "raw")]
    pairs += [("cifar100", k) for k in ("cifar", "imagenet", "raw", "half")]
    pairs += [("photos", "imagenet"), ("photos", "raw"), ("mnist", "half"), ("cifar100", "cifar")]
    for i, (name, true) in enumerate(pairs):

        def run(i: int = i, name: str = name, true: str = true) -> dict:
            held = client(name, 4, FIRST + 300 + i, root)
            body = smelib.models.cnn(held.shape, held.classes, seed=FIRST + 300 + i).body
            mean, std = usual(true, held.shape[0])
            model = wrap(body, held.shape, held.classes, mean=mean, std=std)
            update = smelib.local_update(model, held, Protocol((5, 10, 20)[i % 3], 4, 0.004))
            sent = {"shape": held.shape, "classes": held.classes, "samples": 4, "progress": False}
            found = audit(body, update.before, update.after, **sent)
            told = audit(body, update.before, update.after, normalisation=true, **sent)
            return {
                "true": true,
                "found": found.normalisation,
                "mismatches": {k: round(v, 4) for k, v in found.tried.items()},
                "psnr_found": round(smelib.evaluate(found.images, held.images).psnr, 2),
                "psnr_true": round(smelib.evaluate(told.images, held.images).psnr, 2),
            }

        yield f"normalisation {name} {true} {FIRST + 300 + i}", run


def honest(i: int) -> tuple[str, Protocol]:
    """The network and the training of an update as the attack assumes it."""
    network = ("cnn", "mlp", "lenet", "resnet8", "vit")[i % 5]
    epochs, batch = (1, 5, 10, 20)[i % 4], (4, 2)[i % 2]
    momentum = 0.9 if i % 7 == 3 else 0.0
    return network, Protocol(epochs, batch, LR[network], momentum=momentum)


def _length(moved: dict[str, Tensor]) -> Tensor:
    return torch.stack([v.square().sum() for v in moved.values()]).sum().sqrt()


def deviate(kind: str, model: smelib.Network, held: smelib.Client, i: int) -> Update:
    """An update that is not what the attack takes it for."""
    protocol = Protocol(10, 4, LR[model.name])
    if kind == "adam":
        protocol = Protocol((1, 5, 10)[i % 3], 4, 1e-3, optimiser="adam")
    sent = smelib.local_update(model, held, protocol, seed=i)
    if kind == "swapped":
        return Update(sent.after, sent.before, sent.samples)
    if kind == "unrelated":
        other = smelib.models.build(model.name, model.shape, model.classes, seed=FIRST + 99 + i)
        return Update(other.params(), sent.after, sent.samples)
    moved = {k: sent.after[k] - sent.before[k] for k in sent.before}
    if kind == "clipped":
        bound = (0.02, 0.01, 0.005)[i % 3]  # well below the length of any of them
        moved = {k: v * (bound / _length(moved)).clamp(max=1) for k, v in moved.items()}
    if kind == "noised":
        size = sum(v.numel() for v in moved.values()) ** 0.5
        level = (0.03, 0.1, 0.3, 1.0)[i % 4] * _length(moved) / size
        draw = seeds.generator(i, "defence")
        moved = {k: v + level * torch.randn(v.shape, generator=draw) for k, v in moved.items()}
    return Update(sent.before, {k: sent.before[k] + v for k, v in moved.items()}, sent.samples)


def in_train_mode(body: nn.Module, held: smelib.Client, i: int) -> Update:
    """What plain PyTorch code sends back: batch norm in train mode, buffers and all."""
    before = {k: v.clone() for k, v in body.state_dict().items()}
    mean, std = (torch.tensor(v).view(-1, 1, 1) for v in usual("femnist", 1))
    images, body = (held.images - mean) / std, body.train()
    optimiser = torch.optim.SGD(body.parameters(), lr=0.004)
    for _ in range(5 + i):
        optimiser.zero_grad()
        nn.functional.cross_entropy(body(images), held.labels).backward()
        optimiser.step()
    return Update(before, {k: v.clone() for k, v in body.state_dict().items()}, len(held))


def warnings(root: str | None) -> Iterator[tuple[str, Callable[[], dict]]]:
    """Twenty updates as assumed, and twenty that are not."""
    kinds = ["swapped"] * 3 + ["unrelated"] * 3 + ["adam"] * 4 + ["clipped"] * 3 + ["noised"] * 4
    kinds += ["train mode"] * 3
    for i, kind in enumerate(["honest"] * 20 + kinds):

        def run(i: int = i, kind: str = kind) -> dict:
            held = smelib.data.client("mnist", 4, seed=FIRST + i)
            network, protocol = honest(i)
            if kind not in ("honest", "train mode"):
                network = ("cnn", "mlp", "lenet")[i % 3]
            network = "resnet8" if kind == "train mode" else network
            model = smelib.models.build(network, held.shape, held.classes, seed=FIRST + i)
            if kind == "honest":
                update = smelib.local_update(model, held, protocol, seed=i)
            elif kind == "train mode":
                update = in_train_mode(smelib.models.resnet8(held.shape, 10).body, held, i - 37)
            else:
                update = deviate(kind, model, held, i)
            found = audit(
                model.body,
                update.before,
                update.after,
                shape=held.shape,
                classes=held.classes,
                samples=4,
                normalisation="femnist",
                steps=100,
                progress=False,
            )
            return {
                "kind": kind,
                "network": network,
                "warnings": found.warnings,
                "verdict": found.verdict,
                "mismatch": round(found.found.similarity, 4),
                "psnr": round(smelib.evaluate(found.images, held.images).psnr, 2),
            }

        yield f"warnings {kind} {FIRST + i}", run


def scale(root: str | None) -> Iterator[tuple[str, Callable[[], dict]]]:
    """Updates of many kinds: mismatch and agreement beside the truth."""
    sets, networks = ("mnist", "femnist", "cifar100", "photos"), ("cnn", "mlp", "lenet")
    for i in range(48):
        name, network = sets[i % 4], networks[i % 3]
        samples, epochs = (1, 4, 10)[(i // 4) % 3], (1, 10, 50)[(i // 12) % 3]

        def run(
            i: int = i,
            name: str = name,
            network: str = network,
            samples: int = samples,
            epochs: int = epochs,
        ) -> dict:
            held = client(name, samples, FIRST + i, root)
            model = smelib.models.build(network, held.shape, held.classes, seed=FIRST + i)
            protocol = Protocol(epochs, 5, LR[network])
            update = smelib.local_update(model, held, protocol, seed=i)
            found = audit(model, update.before, update.after, samples=samples, progress=False)
            return {
                "mismatch": round(found.found.similarity, 4),
                "agreement": round(found.agreement, 2),
                "psnr": round(smelib.evaluate(found.images, held.images).psnr, 2),
                "wrong_labels": int((found.found.labels != held.labels.sort().values).sum()),
            }

        yield f"scale {name} {network} E{epochs} N{samples} {FIRST + i}", run


PARTS = {"normalisation": normalisation, "warnings": warnings, "scale": scale}


def report(runs: dict[str, dict]) -> str:
    """The three tables."""
    lines = []
    found = [r for k, r in runs.items() if k.startswith("normalisation ")]
    if found:
        right = sum(r["found"] == r["true"] for r in found)
        near = sum(r["psnr_found"] > r["psnr_true"] - 1.5 for r in found)
        lines.append(f"normalisation: right on {right} of {len(found)} clients; on {near} within ")
        lines[-1] += "1.5 dB of what the right one gives"
    for kind in ("honest", "swapped", "unrelated", "adam", "clipped", "noised", "train mode"):
        some = [r for k, r in runs.items() if k.startswith(f"warnings {kind} ")]
        if some:
            lines.append(
                f"{kind}: warned of {sum(bool(r['warnings']) for r in some)} of {len(some)}"
            )
    second = [r for k, r in runs.items() if k.startswith("scale ") and int(k[-3:]) >= FIRST + 24]
    for verdict in ("recovered", "partly recovered", "not recovered"):
        some = [r for r in second if judged(r["mismatch"], r["agreement"]) == verdict]
        if some:
            psnr = sorted(r["psnr"] for r in some)
            lines.append(
                f"{verdict}: {len(some)} updates, PSNR {psnr[0]:.1f} to {psnr[-1]:.1f} dB, "
                f"median {psnr[len(psnr) // 2]:.1f}"
            )
    return "\n".join(lines)


def work(args: argparse.Namespace) -> int:
    """Run what is missing and print the tables."""
    on_one_core()
    jobs = (job for part in args.parts.split(",") for job in PARTS[part](args.data_root))
    print(report(fill(RESULTS, jobs)))
    return 0


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data-root", help="folder with femnist.npz and cifar100.npz")
    options.add_argument("--parts", default=",".join(PARTS), help="like normalisation,scale")
    given = options.parse_args()
    sys.exit(in_sentences("audit", lambda: work(given)))
