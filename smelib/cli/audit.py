"""`smelib audit`: what an update of your own system gives away."""

from __future__ import annotations

import argparse
from pathlib import Path

from smelib import models
from smelib.cli.files import read_weights, write
from smelib.cli.inverting import invert, labels_of, options, result_of
from smelib.cli.words import known_names, number, shape
from smelib.errors import InputError
from smelib.types import Protocol, Update

EXAMPLE = """\
example: what a client's answer wT to the weights w0 gives away
  smelib audit --before w0.safetensors --after wT.safetensors --network cnn \\
               --dataset-shape 1x28x28 --classes 10 --samples 4 --out found/
"""


def audit(args: argparse.Namespace) -> dict:
    """Invert an update of your own system: two weight files and what a server knows."""
    known_names(args)
    before, after = (read_weights(getattr(args, k), k)[0] for k in ("before", "after"))
    update = Update(before, after, args.samples)
    image = shape(args.dataset_shape)
    model = models.build(args.network, image, args.classes)
    update = model.own(update)
    update.check()
    given = (args.epochs, args.batch_size, args.lr)
    protocol = None
    if args.epochs is not None or args.batch_size is not None:
        if None in given:
            raise InputError("give --epochs, --batch-size and --lr together, or none of them.")
        protocol = Protocol(*given)
    chosen = options(args)
    known = labels_of(args.labels, model, update, protocol, args.seed)
    found = invert(args.method, model, update, known, protocol, chosen)
    result = result_of(args, found, update, shape=list(image), classes=args.classes)
    if args.out:
        notes = {"network": args.network, "shape": args.dataset_shape, "classes": str(args.classes)}
        write(Path(args.out), update, found, result, notes)
    return result


def add_options(u: argparse.ArgumentParser) -> None:
    """What the command takes."""
    u.epilog = EXAMPLE
    u.add_argument("--before", required=True, help="the weights the server sent, w0")
    u.add_argument("--after", required=True, help="the weights the client sent back, wT")
    u.add_argument("--dataset-shape", required=True, help="one image, like 1x28x28")
    u.add_argument("--classes", type=int, required=True, help="how many classes there are")
    u.add_argument("--samples", type=int, required=True, help="the client's sample count N")
    u.add_argument("--labels", default="recovered", help="recovered, or a list like 3,1,4")
    u.add_argument("--epochs", type=int, help="local epochs E, if known")
    u.add_argument("--batch-size", type=int, help="local batch size B, if known")
    u.add_argument("--lr", type=number, default=0.004, help="local learning rate (0.004)")
    u.set_defaults(run=audit)
