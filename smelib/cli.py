"""`smelib attack`, `audit`, `reproduce` and `scoreboard`: the kernel from a terminal."""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from smelib import attacks, data, labels, models, presets
from smelib.devices import keep_freed_memory
from smelib.errors import InputError, nearest
from smelib.federated import local_update
from smelib.metrics import evaluate
from smelib.types import Params, Protocol, Reconstruction, Stop, Update
from smelib.version import __version__


class _Parser(argparse.ArgumentParser):
    """One sentence and exit code 2, without the usage text in front of it."""

    def error(self, message: str) -> None:
        self.exit(2, f"smelib: {message}; see '{self.prog} --help'.\n")


def _shape(text: str) -> tuple[int, int, int]:
    try:
        c, h, w = (int(part) for part in text.lower().split("x"))
    except ValueError:
        raise InputError(f"--dataset-shape {text!r}: write it like 1x28x28 (CxHxW).") from None
    if min(c, h, w) < 1:
        raise InputError(f"--dataset-shape {text!r}: every side must be at least 1.")
    return c, h, w


def read_weights(path: str, what: str) -> tuple[Params, dict[str, str]]:
    """Weights and notes of a safetensors file; nothing in it is ever executed."""
    if not Path(path).is_file():
        raise InputError(f"--{what} {path!r}: there is no such file.")
    try:
        with safe_open(path, framework="pt") as file:
            weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return weights, file.metadata() or {}
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(
            f"--{what} {path!r} is not a whole safetensors file ({error}); copy it again."
        ) from None


def _write(folder: Path, update: Update, found: Reconstruction, result: dict, notes: dict) -> None:
    """All files of a run, prepared beside the folder and moved in whole."""
    from smelib import viz

    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".smelib-") as scratch:
        room = Path(scratch)
        for name, weights in (("w0", update.before), ("wT", update.after)):
            contiguous = {k: v.contiguous() for k, v in weights.items()}
            save_file(contiguous, room / f"{name}.safetensors", metadata=notes)
        images = {"images": found.images.contiguous(), "labels": found.labels}
        save_file(images, room / "images.safetensors")
        viz.save_grid(found.images, room / "images.png")
        (room / "result.json").write_text(json.dumps(result, indent=2) + "\n")
        folder.mkdir(exist_ok=True)
        for file in sorted(room.iterdir()):
            os.replace(file, folder / file.name)


def _labels(
    given: str, model: models.Network, update: Update, protocol: Protocol | None, seed: int
) -> torch.Tensor:
    """Labels typed as a list, or recovered from the update."""
    if given != "recovered":
        try:
            typed = torch.tensor([int(part) for part in given.split(",")])
        except ValueError:
            raise InputError(
                f"--labels {given!r}: write 'recovered' or a list like 3,1,4."
            ) from None
        return model.check_labels(typed, update.samples)
    return labels.recover(model, update, protocol, seed=seed)


def _invert(
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
    return attacks.ATTACKS[method](model, update, known, **extra, **options)


def _options(args: argparse.Namespace) -> dict:
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


def _say(result: dict, as_json: bool, out: str | None) -> None:
    if as_json:
        print(json.dumps(result))
        return
    where = f"{result['method'].upper()} on {result['samples']} images, {result['steps']} steps"
    print(f"{where} in {result['seconds']:.1f} s on {result['device']}")
    if "psnr" in result:
        print(f"  PSNR {result['psnr']:.1f} dB, SSIM {result['ssim']:.2f}")
    at = "" if result["alpha"] is None else f", alpha = {result['alpha']:.3f}"
    print(f"  gradient mismatch L_sim = {result['l_sim']:.4f}{at}")
    if result["stopped"] != Stop.FINISHED:
        print(f"  {result['stopped']} after {result['steps']} steps")
    print(f"  pictures and weights in {out}" if out else "  add --out DIR to save the pictures")


def _result(
    args: argparse.Namespace, found: Reconstruction, update: Update, **more: object
) -> dict:
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
        "labels": found.labels.tolist(),
        "stopped": found.stopped.value,
        "version": __version__,
    }


def attack(args: argparse.Namespace) -> dict:
    """Play client and adversary: draw a client, train it, invert its update, score the result."""
    _known_names(args)
    if args.samples < 1:
        raise InputError(f"--samples {args.samples}: a client needs at least 1.")
    protocol = Protocol(args.epochs, args.batch_size or args.samples, args.lr)
    options = _options(args)
    client = data.client(
        args.dataset,
        args.samples,
        seed=args.seed,
        distinct_labels=args.distinct_labels,
        root=args.data_root,
        download=args.download,
    )
    model = models.build(args.network, client.shape, client.classes, init=args.init, seed=args.seed)
    update = local_update(model, client, protocol, seed=args.seed)
    # Sorted: an adversary who knows the labels knows no order, and `audit` finds the same images.
    in_order = ",".join(map(str, client.labels.sort().values.tolist()))
    given = in_order if args.labels == "known" else args.labels
    known = _labels(given, model, update, protocol, args.seed)
    found = _invert(args.method, model, update, known, protocol, options)
    score = evaluate(found.images, client.images)
    result = _result(
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
    )
    if args.out:
        shape = "x".join(map(str, client.shape))
        notes = {"network": args.network, "shape": shape, "classes": str(client.classes)}
        _write(Path(args.out), update, found, result, notes)
    return result


def audit(args: argparse.Namespace) -> dict:
    """Invert an update of your own system: two weight files and what a server knows."""
    _known_names(args)
    before, after = (read_weights(getattr(args, k), k)[0] for k in ("before", "after"))
    update = Update(before, after, args.samples)
    shape = _shape(args.dataset_shape)
    model = models.build(args.network, shape, args.classes)
    update = model.own(update)
    update.check()
    given = (args.epochs, args.batch_size, args.lr)
    protocol = None
    if args.epochs is not None or args.batch_size is not None:
        if None in given:
            raise InputError("give --epochs, --batch-size and --lr together, or none of them.")
        protocol = Protocol(*given)
    options = _options(args)
    known = _labels(args.labels, model, update, protocol, args.seed)
    found = _invert(args.method, model, update, known, protocol, options)
    result = _result(args, found, update, shape=list(shape), classes=args.classes)
    if args.out:
        notes = {"network": args.network, "shape": args.dataset_shape, "classes": str(args.classes)}
        _write(Path(args.out), update, found, result, notes)
    return result


def reproduce(args: argparse.Namespace) -> int:
    """Run the jobs of one of the paper's tables that have no result yet."""
    from smelib.reproduce import drive as runner
    from smelib.reproduce import plan

    def words(text: str | None) -> list[str]:
        return [word for word in (text or "").split(",") if word]

    if args.workers is not None and args.workers < 1:
        raise InputError(f"--workers {args.workers}: at least one is needed.")
    if args.backend not in ("local", "ray"):
        raise nearest("backend", args.backend, ["local", "ray"])
    limit = math.inf if args.time_limit is None else runner.duration(args.time_limit)
    jobs = plan.jobs(
        args.table,
        rows=[row for text in args.rows or () for row in words(text)],
        methods=words(args.methods),
        inits=words(args.inits),
        seeds=args.seeds,
    )
    tally = runner.reproduce(
        jobs,
        Path(args.out),
        data_root=args.data_root,
        backend=args.backend,
        workers=args.workers,
        address=args.address,
        gpus=args.gpus,
        retry_failed=args.retry_failed,
        time_limit=limit,
        compiled=args.compile,
    )
    print(runner.summary(args.table, len(jobs), tally), file=sys.stderr)
    return 130 if tally["interrupted"] else int(tally["failed"] + tally["failed before"] > 0)


def scoreboard(args: argparse.Namespace) -> int:
    """Compare all results with the paper: a page of the book, and the counts."""
    from smelib.reproduce import provenance
    from smelib.reproduce import scoreboard as board

    if not Path(args.out).is_dir():
        raise InputError(f"--out {args.out!r}: there is no such folder.")
    found = board.cells(Path(args.out))
    page = Path(args.page)
    page.write_text(board.page(found), encoding="utf-8")
    provenance.write_manifest(Path(args.out))
    print(board.summary(found))
    return 0


def _known_names(args: argparse.Namespace) -> None:
    if args.method not in attacks.ATTACKS:
        raise nearest("method", args.method, list(attacks.ATTACKS))
    if args.network not in models.NETWORKS:
        raise nearest("network", args.network, list(models.NETWORKS))
    if args.out and Path(args.out).exists() and not Path(args.out).is_dir():
        raise InputError(f"--out {args.out!r} is a file; name a folder.")


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text} is not a number")
    return value


def parser() -> argparse.ArgumentParser:
    """The command line, as `smelib --help` shows it."""
    top = _Parser(prog="smelib", description="What can a federated-learning server reconstruct?")
    top.add_argument("--version", action="version", version=f"smelib {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    simulated = commands.add_parser("attack", help="attack a simulated client and score the result")
    own = commands.add_parser("audit", help="attack your own update: two safetensors files")
    _attack_options(simulated)
    _audit_options(own)
    for command in (simulated, own):
        _shared_options(command)
    _reproduce_options(
        commands.add_parser("reproduce", help="run one of the paper's tables; resumes by itself")
    )
    s = commands.add_parser("scoreboard", help="the paper's numbers beside ours")
    s.add_argument("--out", default="results", help="folder of the CSV files (results)")
    s.add_argument("--page", default="book/scoreboard.md", help="where the page goes")
    s.set_defaults(run=scoreboard)
    return top


def _attack_options(a: argparse.ArgumentParser) -> None:
    a.add_argument("--dataset", default="mnist", help=f"one of {', '.join(data.LOADERS)}")
    a.add_argument("--epochs", type=int, default=10, help="local epochs E (10)")
    a.add_argument("--samples", type=int, default=10, help="the client's images N (10)")
    a.add_argument("--batch-size", type=int, help="local batch size B (all samples)")
    a.add_argument("--lr", type=_number, default=0.004, help="local learning rate (0.004)")
    a.add_argument("--init", default="torch", help="initial weights: torch or lecun")
    a.add_argument("--labels", default="known", help="known, recovered, or a list like 3,1,4")
    a.add_argument("--distinct-labels", action="store_true", help="at most one image per class")
    a.add_argument("--data-root", help="folder with femnist.npz, LEAF's JSON, or archives")
    a.add_argument("--download", action="store_true", help="let torchvision fetch the data set")
    a.set_defaults(run=attack)


def _audit_options(u: argparse.ArgumentParser) -> None:
    u.add_argument("--before", required=True, help="the weights the server sent, w0")
    u.add_argument("--after", required=True, help="the weights the client sent back, wT")
    u.add_argument("--dataset-shape", required=True, help="one image, like 1x28x28")
    u.add_argument("--classes", type=int, required=True, help="how many classes there are")
    u.add_argument("--samples", type=int, required=True, help="the client's sample count N")
    u.add_argument("--labels", default="recovered", help="recovered, or a list like 3,1,4")
    u.add_argument("--epochs", type=int, help="local epochs E, if known")
    u.add_argument("--batch-size", type=int, help="local batch size B, if known")
    u.add_argument("--lr", type=_number, default=0.004, help="local learning rate (0.004)")
    u.set_defaults(run=audit)


def _shared_options(command: argparse.ArgumentParser) -> None:
    add = command.add_argument
    add("--method", default="sme", help=f"{', '.join(attacks.ATTACKS)} (sme)")
    add("--network", default="cnn", help=", ".join(models.NETWORKS))
    add("--preset", default="fast", help="schedule of ig and sme: fast (200 steps) or paper (1000)")
    add("--steps", type=int, help="iterations, if not the preset's number")
    add("--restarts", type=int, default=1, help="independent starts (1)")
    add("--seed", type=int, default=0, help="of everything random (0)")
    add("--device", default="auto", help="auto, cpu, cuda, mps")
    add("--out", help="folder for weights, pictures and result.json")
    add("--json", action="store_true", help="print one JSON object")


def _reproduce_options(r: argparse.ArgumentParser) -> None:
    r.add_argument("table", help="main, cost, low_rank, trained, architectures, large_n, or tiny")
    r.add_argument("--rows", nargs="+", help="like femnist-E10-N10 (all)")
    r.add_argument("--methods", help="like ig,sme,retrace,dlfa (all)")
    r.add_argument("--inits", help="torch, lecun or both (the plan's)")
    r.add_argument("--seeds", type=int, help="clients per cell, also outside the plan")
    r.add_argument("--backend", default="local", help="local or ray (local)")
    r.add_argument("--workers", type=int, help="local processes (one per GPU, or else per core)")
    r.add_argument("--address", default="auto", help="of the Ray cluster (auto)")
    r.add_argument("--gpus", type=_number, help="share of a GPU per job on Ray, like 0.25 (1)")
    r.add_argument("--time-limit", help="like 2h: start no job after that, finish those under way")
    r.add_argument("--compile", action="store_true", help="compile the steps of IG and SME first")
    r.add_argument("--retry-failed", action="store_true", help="run failed jobs once more")
    r.add_argument("--data-root", help="folder with femnist.npz and cifar100.npz")
    r.add_argument("--out", default="results", help="folder of the CSV files (results)")
    r.set_defaults(run=reproduce)


def in_sentences(program: str, work: Callable[[], int]) -> int:
    """Do the work; bad input is a sentence on standard error and exit code 2."""
    try:
        return work()
    except (InputError, FloatingPointError) as error:
        said = str(error)
    except OSError as error:
        said = f"{error.filename or 'a file'}: {error.strerror or error}."
    print(f"{program}: {said}", file=sys.stderr)
    return 2


def main(argv: list[str] | None = None) -> int:
    """Run one command of the command line."""
    args = parser().parse_args(argv)
    keep_freed_memory()
    return in_sentences("smelib", lambda: _obey(args))


def _obey(args: argparse.Namespace) -> int:
    try:
        result = args.run(args)
    except KeyboardInterrupt:
        kept = "finished jobs are kept, and the same command goes on"
        lost = "before anything was found; nothing was written"
        said = f"; {kept}" if args.command == "reproduce" else f" {lost}"
        print(f"smelib: interrupted{said}.", file=sys.stderr)
        return 130
    if isinstance(result, int):
        return result
    _say(result, args.json, args.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
