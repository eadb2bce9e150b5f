"""What `attack` and `audit` share: labels, the attack itself, and what is said of its result."""

from __future__ import annotations

import argparse
import json
import math
from textwrap import indent

import torch

from smelib import attacks, labels, models, presets
from smelib.cli.words import typed_labels
from smelib.devices import afford
from smelib.errors import InputError, nearest
from smelib.types import Protocol, Reconstruction, Stop, Update
from smelib.version import __version__


def labels_of(
    given: str, model: models.Network, update: Update, protocol: Protocol | None, seed: int
) -> torch.Tensor:
    """Labels typed as a list, or recovered from the update."""
    afford(update.samples * (8 + 4 * math.prod(model.shape)), f"{update.samples} images")
    typed = typed_labels(given)
    if typed is not None:
        return model.check_labels(typed, update.samples)
    return labels.recover(model, update, protocol, seed=seed)


def invert(
    method: str,
    model: models.Network,
    update: Update,
    known: torch.Tensor,
    protocol: Protocol | None,
    options: dict,
) -> Reconstruction:
    """The chosen attack with the extra knowledge that it, and only it, needs."""
    extra: dict = {"protocol": protocol} if method == "retrace" else {}
    if method in ("dlfa", "dlg"):
        if protocol is None:
            raise InputError(
                f"{method} needs the client's training: add --epochs, --batch-size and --lr."
            )
        extra = {"protocol": protocol} if method == "dlfa" else {"lr": protocol.lr}
    if method == "dlg" and protocol.steps(update.samples) != 1:
        raise InputError("dlg inverts a single step: use --epochs 1 and --batch-size >= --samples.")
    found = attacks.ATTACKS[method](model, update, known, **extra, **options)
    if found.stopped is Stop.INTERRUPTED and found.steps == 0:
        raise KeyboardInterrupt
    return found


def options(args: argparse.Namespace) -> dict:
    """What was typed, and the attack's own default where nothing was."""
    if args.steps is not None and args.steps < 1:
        raise InputError(f"--steps {args.steps}: an attack needs at least one.")
    if args.restarts < 1:
        raise InputError(f"--restarts {args.restarts}: an attack needs at least one start.")
    if args.preset not in presets.PRESETS:
        raise nearest("preset", args.preset, list(presets.PRESETS))
    return {
        **({} if args.steps is None else {"steps": args.steps}),
        **({"preset": args.preset} if args.method in ("ig", "sme") else {}),
        "seed": args.seed,
        "restarts": args.restarts,
        "device": args.device,
        "progress": None if not args.json else False,
    }


def result_of(
    args: argparse.Namespace, found: Reconstruction, update: Update, **more: object
) -> dict:
    """What a run found, as `--json` prints it."""
    return {
        "method": args.method,
        "preset": args.preset if args.method in ("ig", "sme") else "paper",
        "network": args.network,
        "samples": update.samples,
        "seed": args.seed,
        **more,
        "steps": found.steps,
        "l_sim": found.similarity,
        "alpha": found.alpha,
        "seconds": round(found.seconds, 3),
        "device": found.device,
        "threads": torch.get_num_threads(),
        "labels": found.labels.tolist(),
        "stopped": found.stopped.value,
        "version": __version__,
    }


def say(result: dict, as_json: bool, out: str | None) -> None:
    """Print a result: one object, or sentences."""
    if as_json:
        print(json.dumps(result))
        return
    where = f"{result['method'].upper()} on {result['samples']} images, {result['steps']} steps"
    threads = f", {result['threads']} thread{'s' if result['threads'] > 1 else ''}"
    on = result["device"] + (threads if result["device"] == "cpu" else "")
    print(f"{where} in {result['seconds']:.1f} s on {on}")
    if "psnr" in result:
        print(f"  PSNR {result['psnr']:.1f} dB, SSIM {result['ssim']:.2f}")
    at = "" if result["alpha"] is None else f", at alpha {result['alpha']:.3f}"
    print(f"  gradient mismatch {result['l_sim']:.4f}{at}")
    if result["stopped"] != Stop.FINISHED:
        print(f"  {result['stopped']} after {result['steps']} steps")
    if "said" in result:
        print(indent(result["said"], "  "))
    print(f"  pictures and weights in {out}" if out else "  add --out DIR to save the pictures")
