"""`smelib audit`: what an update of your own system gives away."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from smelib import attacks, models
from smelib.auditing import Report
from smelib.auditing import audit as examine
from smelib.auditing.weights import read
from smelib.cli.files import room_for, write
from smelib.cli.inverting import options, result_of
from smelib.cli.words import number, numbers, shape, typed_labels
from smelib.errors import InputError, nearest
from smelib.types import Protocol

EXAMPLE = """\
examples: what a client's answer wT to the weights w0 gives away
  smelib audit --before w0.safetensors --after wT.safetensors --network cnn \\
               --dataset-shape 1x28x28 --classes 10 --samples 4 --out found/
  smelib audit --before w0.pt --after wT.pt --network mypackage.nets:make_net \\
               --dataset-shape 3x32x32 --classes 10 --samples 8 --normalisation raw

Without --normalisation the usual ones are tried. Weights may be .safetensors, .npz, .pt or .pth;
nothing in them is executed. What `smelib attack --out` wrote needs --before, --after and --samples.
"""


def audit(args: argparse.Namespace) -> dict:
    """Invert an update of your own system: two weight files and what a server knows."""
    if args.method not in attacks.ATTACKS:
        raise nearest("method", args.method, list(attacks.ATTACKS))
    protocol = _protocol(args)
    if args.method in ("dlfa", "dlg") and protocol is None:
        raise InputError(
            f"{args.method} needs the client's training: add --epochs, --batch-size and --lr."
        )
    room_for(args.out)
    before, notes = read(args.before, "--before")
    notes = _trusted(notes)
    after, _ = read(args.after, "--after")
    typed = {k: getattr(args, k) for k in ("network", "shape", "classes")}
    known = {k: notes.get(k) if v is None else v for k, v in typed.items()}
    for name, option in (("shape", "--dataset-shape"), ("classes", "--classes")):
        if known[name] is None:
            raise InputError(f"add {option}: the file --before does not say it.")
    image, classes = shape(known["shape"]), int(known["classes"])
    given = options(args)
    report = examine(
        known["network"] or "cnn",
        before,
        after,
        samples=args.samples,
        shape=image,
        classes=classes,
        known_labels=typed_labels(args.labels),
        normalisation=_normalisation(args, notes),
        batch_norm=args.batch_norm,
        protocol=protocol,
        method=args.method,
        **({"preset": "fast"} | given),
    )
    result = _result(args, report, known, image)
    if args.out:
        told = {"network": known["network"] or "cnn", "shape": known["shape"]}
        told |= {"classes": str(classes)}
        write(Path(args.out), report.update, report.found, result, told)
    return result


def _trusted(notes: dict[str, str]) -> dict[str, str]:
    """Of a file's notes what `smelib attack` wrote: names and numbers, and never code to call."""
    decimal = r"\d+(\.\d+)?(e-\d+)?"
    forms = {
        "network": "|".join(models.NETWORKS),
        "shape": r"\d{1,6}x\d{1,6}x\d{1,6}",
        "classes": r"\d{1,9}",
        "mean": rf"{decimal}(,{decimal})*",
        "std": rf"{decimal}(,{decimal})*",
    }
    return {k: notes[k] for k, form in forms.items() if re.fullmatch(form, notes.get(k, ""))}


def _result(args: argparse.Namespace, report: Report, known: dict, image: tuple) -> dict:
    args.network = known["network"] or "cnn"
    return result_of(
        args,
        report.found,
        report.update,
        shape=list(image),
        classes=int(known["classes"]),
        verdict=report.verdict,
        agreement_db=None if report.agreement is None else round(report.agreement, 2),
        normalisation=report.normalisation,
        normalisations_tried={k: round(v, 5) for k, v in report.tried.items()},
        warnings=report.warnings,
        assumed=report.assumed,
        renamed=report.renamed,
        said=str(report),
    )


def _normalisation(args: argparse.Namespace, notes: dict) -> str | tuple | None:
    mean, std = args.mean, args.std
    if args.normalisation is not None:
        if mean is not None or std is not None:
            raise InputError("give --normalisation, or --mean and --std, and not both.")
        return None if args.normalisation == "search" else args.normalisation
    if (mean is None) != (std is None):
        raise InputError("give --mean and --std together, or --normalisation raw.")
    if mean is None and {"mean", "std"} <= set(notes):
        mean, std = (numbers(notes[k]) for k in ("mean", "std"))
    return None if mean is None else (mean, std)


def _protocol(args: argparse.Namespace) -> Protocol | None:
    given = (args.epochs, args.batch_size, args.lr)
    if given == (None, None, None):
        return None
    if None in given:
        raise InputError("give --epochs, --batch-size and --lr together, or none of them.")
    return Protocol(*given)


def add_options(u: argparse.ArgumentParser) -> None:
    """What the command takes."""
    u.epilog = EXAMPLE
    u.add_argument("--before", required=True, help="the weights the server sent, w0")
    u.add_argument("--after", required=True, help="the weights the client sent back, wT")
    u.add_argument("--samples", type=int, required=True, help="the client's sample count N")
    u.add_argument("--dataset-shape", dest="shape", help="one image, channels first, like 1x28x28")
    u.add_argument("--classes", type=int, help="how many classes there are")
    u.add_argument(
        "--labels", default="recovered", help="recovered, or a list like 3,1,4 (recovered)"
    )
    u.add_argument(
        "--normalisation",
        help="how pixels in [0, 1] were normalised: raw, half, mnist, femnist, cifar, imagenet, or "
        "search, which tries them (search)",
    )
    u.add_argument("--mean", type=numbers, help="the mean that was subtracted, like 0.49,0.48,0.45")
    u.add_argument("--std", type=numbers, help="the deviation that was divided by")
    u.add_argument("--batch-norm", help="frozen or batch statistics (what the files show)")
    u.add_argument("--epochs", type=int, help="local epochs E, if known")
    u.add_argument("--batch-size", type=int, help="local batch size B, if known")
    u.add_argument("--lr", type=number, help="local learning rate, if known")
    u.set_defaults(run=audit)
