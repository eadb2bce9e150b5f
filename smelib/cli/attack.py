"""`smelib attack`: play client and adversary."""

from __future__ import annotations

import argparse
from pathlib import Path

from smelib import data, models
from smelib.cli.files import room_for, write
from smelib.cli.inverting import invert, labels_of, options, result_of
from smelib.cli.words import DEFENCES, defence, known_names, number
from smelib.errors import InputError
from smelib.federated import local_update
from smelib.metrics import evaluate
from smelib.types import Protocol

MOST_STEPS = 10**7
EXAMPLE = """\
example: four digits, five local epochs, the pictures in found/
  smelib attack --samples 4 --epochs 5 --out found/
"""


def attack(args: argparse.Namespace) -> dict:
    """Play client and adversary: draw a client, train it, invert its update, score the result."""
    known_names(args)
    if args.samples < 1:
        raise InputError(f"--samples {args.samples}: a client needs at least 1.")
    batch = args.samples if args.batch_size is None else args.batch_size
    protocol = Protocol(args.epochs, batch, args.lr)
    if protocol.steps(args.samples) > MOST_STEPS:
        raise InputError(
            f"--epochs {args.epochs} with these batches makes {protocol.steps(args.samples):,} "
            f"local steps, which take days; up to {MOST_STEPS:,} are run here."
        )
    chosen, before_sending = options(args), defence(args.defence)
    client = data.client(
        args.dataset,
        args.samples,
        seed=args.seed,
        distinct_labels=args.distinct_labels,
        root=args.data_root,
        download=args.download,
    )
    model = models.build(args.network, client.shape, client.classes, init=args.init, seed=args.seed)
    update = local_update(model, client, protocol, seed=args.seed, defence=before_sending)
    room_for(args.out, 2 * sum(v.numel() * v.element_size() for v in update.before.values()))
    # Sorted: an adversary who knows the labels knows no order, and `audit` finds the same images.
    in_order = ",".join(map(str, client.labels.sort().values.tolist()))
    given = in_order if args.labels == "known" else args.labels
    known = labels_of(given, model, update, protocol, args.seed)
    found = invert(args.method, model, update, known, protocol, chosen)
    score = evaluate(found.images, client.images)
    result = result_of(
        args,
        found,
        update,
        dataset=args.dataset,
        epochs=protocol.epochs,
        batch_size=protocol.batch_size,
        lr=protocol.lr,
        init=args.init,
        psnr=round(score.psnr, 4),
        ssim=round(score.ssim, 4),
        labels_from=args.labels,
        defence=args.defence,
    )
    if args.out:
        shape = "x".join(map(str, client.shape))
        notes = {"network": args.network, "shape": shape, "classes": str(client.classes)}
        for name in ("mean", "std"):
            notes[name] = ",".join(map(repr, getattr(model, name)))
        write(Path(args.out), update, found, result, notes)
    return result


def add_options(a: argparse.ArgumentParser) -> None:
    """What the command takes."""
    a.epilog = EXAMPLE
    a.add_argument("--dataset", default="mnist", help=f"one of {', '.join(data.LOADERS)} (mnist)")
    a.add_argument("--epochs", type=int, default=10, help="local epochs E (10)")
    a.add_argument("--samples", type=int, default=10, help="the client's images N (10)")
    a.add_argument("--batch-size", type=int, help="local batch size B (all samples)")
    a.add_argument("--lr", type=number, default=0.004, help="local learning rate (0.004)")
    a.add_argument(
        "--init",
        default="torch",
        help="initial weights: torch, lecun, lecun_scale or zero_bias (torch)",
    )
    a.add_argument(
        "--labels", default="known", help="known, recovered, or a list like 3,1,4 (known)"
    )
    a.add_argument(
        "--defence",
        default="none",
        help=f"before sending, like clip:0.1,noise:0.001: {', '.join(DEFENCES)} (none)",
    )
    a.add_argument("--distinct-labels", action="store_true", help="at most one image per class")
    a.add_argument("--data-root", help="folder with femnist.npz, LEAF's JSON, or archives")
    a.add_argument("--download", action="store_true", help="let torchvision fetch the data set")
    a.set_defaults(run=attack)
