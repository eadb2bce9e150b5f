"""Retrace beside SME, DLFA and the surrogates between them, on the same clients and updates.

    python benchmarks/retrace.py --data-root DIR [--parts pairs,dlfa,cost,limits,surrogates,slopes]
                                 [--only TEXT] [--clients 10] [--steps 200] [--results FILE]

`slopes` is how far the slope of a held path is from that through the training, at the true images;
`pairs` are paired differences to SME with as many steps, `dlfa` those to DLFA; `cost` is time and
memory against T; `limits` hands the attack one thing at a time that it cannot see; `surrogates` are
other stand-ins for the path, with as many steps and with as much time. Every run is stored in
`results/retrace.json`, and one that is there is not repeated.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from kept import between, by_cell, fill, on_one_core
from torch import Tensor
from torch.func import jvp

from smelib import attacks, data, metrics, models, objectives, presets, seeds, walking
from smelib import params as P
from smelib.cli import in_sentences
from smelib.errors import nearest
from smelib.federated import batches, gradient, local_path, local_update
from smelib.reproduce import networks, provenance
from smelib.reproduce.plan import Row
from smelib.solver import Options

RESULTS = Path(__file__).resolve().parents[1] / "results" / "retrace.json"
PARTS = ("pairs", "dlfa", "cost", "limits", "surrogates", "slopes")
NODES = 4  # of the surrogates that have several

ROWS = {
    **{f"femnist E{e} N10": Row(epochs=e) for e in (10, 20, 50)},
    **{f"femnist E{e} N50": Row(epochs=e, samples=50) for e in (10, 50)},
    **{f"cifar100 E{e} N10": Row("cifar100", epochs=e) for e in (10, 50)},
    "trained R20 E10 N10": Row(epochs=10, rounds=20),
    "mlp E10 N10": Row(network="mlp"),
    "lenet E10 N10": Row(network="lenet", lr=0.4),
}
PAIRS = [("femnist E50 N10", "torch", 10), ("femnist E10 N10", "torch", 10)]
PAIRS += [("femnist E20 N10", "torch", 10)]
PAIRS += [(f"femnist E{e} N10", "lecun", 10) for e in (50, 10, 20)]
FEW = {"mlp E10 N10": 3, **{f"femnist E{e} N50": 6 for e in (10, 50)}}  # and 10 of the others
PAIRS += [
    (name, "torch", FEW.get(name, 10))
    for name in ROWS
    if not name.startswith("femnist") or "N50" in name
]


def scene(row: Row, init: str, seed: int, root: str) -> tuple:
    """The network, the client, and what it sent."""
    client = data.client(row.dataset, row.samples, seed=seed, root=root)
    model = models.build(row.network, client.shape, client.classes, init=init, seed=seed)
    before = None if row.rounds == 1 else networks.load(RESULTS.parent, row.rounds)
    return model, client, local_update(model, client, row.protocol(), seed=seed, before=before)


def chord(model, update, labels, *, tv: float, nodes: int, learned: bool) -> objectives.Objective:
    """K points of the segment, in the middles of K stretches (as AWA interpolates) or learned."""
    start = model.trained(update.before)
    ahead = P.sub(model.trained(update.after), start)
    fixed = (torch.arange(nodes) + 0.5) / nodes

    def surrogate(images: Tensor, aux: dict) -> dict:
        at = aux["places"] if learned else fixed
        weights = ({**update.before, **P.add(start, ahead, a)} for a in at)
        return P.mean([gradient(model, w, images, labels) for w in weights], [1] * nodes)

    return objectives.match_direction(model, update, tv, surrogate)


def bezier(model, update, labels, *, tv: float) -> objectives.Objective:
    """A learned point of a quadratic Bézier curve with a learned control point, as NL-SME's.

    The control point's offset from the segment is learned in units of each layer's mean move.
    """
    start, end = model.trained(update.before), model.trained(update.after)
    unit = {k: float((end[k] - v).square().mean().sqrt()) for k, v in start.items()}

    def surrogate(images: Tensor, aux: dict) -> dict:
        a, bend = aux["places"][0], 2 * aux["places"][0] * (1 - aux["places"][0])
        here = P.lerp(start, end, a)
        bent = {k: v + bend * unit[k] * aux[f"bend {k}"] for k, v in here.items()}
        return gradient(model, {**update.before, **bent}, images, labels)

    return objectives.match_direction(model, update, tv, surrogate)


def surrogate(name: str, model, update, labels, **options: object) -> object:
    """One of the stand-ins for the path, minimised as the fast preset minimises SME."""
    tv = options.pop("tv", 0.01)
    how = presets.PRESETS["fast"].recipe()
    middles = (torch.arange(NODES) + 0.5) / NODES
    unknowns = {"places": middles} if name == "learned nodes" else {}
    make = partial(chord, tv=tv, nodes=NODES, learned=name == "learned nodes")
    if name == "bezier":
        shapes = model.trained(update.before)
        unknowns = {"places": torch.full((1,), 0.5)}
        unknowns |= {f"bend {k}": torch.zeros_like(v) for k, v in shapes.items()}
        make = partial(bezier, tv=tv)
    rates = {"images": how.rates["images"], **{k: how.rates["alpha"] for k in unknowns}}
    bounds = {"images": (0, 1), **({"places": (0, 1)} if unknowns else {})}
    recipe = replace(how, rates=rates, bounds=bounds, every={}, unknowns=lambda _: dict(unknowns))
    given = Options.of({"steps": 200, **options})
    return attacks.reconstruct(model, update, labels, make, recipe, given, name=name)


def handed(what: str, model, client, update, row: Row, seed: int) -> ExitStack:
    """While it lasts, retrace is told one thing that it cannot see."""
    stack = ExitStack()
    truth = model.normalise(client.images)
    if what == "true path":
        proper = walking.Walker.renew
        stack.enter_context(
            mock.patch.object(walking.Walker, "renew", lambda s, z, held: proper(s, truth, held))
        )
    elif what == "true start":
        proper = attacks._starts

        def starts(*given: object) -> list:
            return [{**start, "images": truth.clone()} for start in proper(*given)]

        stack.enter_context(mock.patch.object(attacks, "_starts", starts))
    elif what == "true order":
        order = list(batches(len(client), row.protocol(), seeds.generator(seed, "batches")))
        stack.enter_context(mock.patch.object(objectives, "own_batches", return_value=order))
    return stack


def attack(name: str, model, client, update, row: Row, seed: int, options: dict) -> object:
    """The attack behind a method's name."""
    who, knows = (model, update, client.labels), {"protocol": row.protocol()}
    options = {"seed": seed, "device": "cpu", "progress": False, **options}
    if name == "sme":
        return attacks.sme(*who, preset="fast", **options)
    if name == "sme, retrace's tv":
        return attacks.sme(*who, preset="fast", tv=0.003, **options)
    if name == "retrace":
        return attacks.retrace(*who, **options)
    if name in ("known protocol", "true order"):
        with handed(name, model, client, update, row, seed):
            return attacks.retrace(*who, **knows, **options)
    if name in ("true path", "true start"):
        with handed(name, model, client, update, row, seed):
            return attacks.retrace(*who, **options)
    if name == "every step a node":  # DLFA with the derivative dropped
        nodes = row.protocol().steps(row.samples)
        return attacks.retrace(*who, **knows, nodes=nodes, every=1, **options)
    if name == "dlfa":
        return attacks.dlfa(*who, row.protocol(), **options)
    if name == "dlfa, rebalanced":
        how = presets.rebalanced(update, row.protocol())
        return attacks.dlfa(*who, row.protocol(), settings=how, **options)
    return surrogate(name, *who, **options)


def slopes(row: Row, init: str, seed: int, root: str, *, directions: int = 8) -> dict:
    """What a renewal would leave of a small error: the size of $(J - A) v$ over that of $A v$.

    At the true images, for random changes $v$ of them: $J$ is the slope of the mean move through
    the whole training, $A$ that of the gradient at the middle of the path, which is held.
    """
    model, client, update = scene(row, init, seed, root)
    z, protocol = model.normalise(client.images), row.protocol()
    steps = protocol.steps(len(client))
    order = [[torch.arange(len(client))]] * row.epochs  # full batches: N = B

    def trained(images: Tensor) -> tuple:
        every = images.expand(row.epochs, *images.shape)
        who = (model, update.before, every, client.labels, order, protocol)
        return tuple(v / steps for v in objectives.simulate(*who, checkpoint=False).values())

    path = local_path(model, client, protocol, seed=seed, before=update.before)
    middle = next(islice(path, steps // 2, None))

    def held(images: Tensor) -> tuple:
        return tuple(gradient(model, middle, images, client.labels).values())

    def length(parts: tuple) -> float:
        return float(sum(v.square().sum() for v in parts).sqrt())

    found, generator = [], torch.Generator().manual_seed(seed)
    for _ in range(directions):
        v = torch.randn(z.shape, generator=generator)
        through, fixed = (jvp(f, (z,), (v,))[1] for f in (trained, held))
        gap = tuple(a - b for a, b in zip(through, fixed, strict=True))
        found.append(length(gap) / length(fixed))
    return {"factor": round(float(np.mean(found)), 4)}


def run(name: str, row: Row, init: str, seed: int, root: str, options: dict) -> dict:
    """One attack on one client: how well, how long, how much memory."""
    if name == "held path":
        return slopes(row, init, seed, root)
    model, client, update = scene(row, init, seed, root)
    held, busy = provenance.memory_mb("cpu"), time.process_time()
    found = attack(name, model, client, update, row, seed, options)
    busy = time.process_time() - busy
    return {
        "psnr": round(metrics.evaluate(found.images, client.images).psnr, 3),
        "l_sim": round(found.similarity, 6),
        "cpu_seconds": round(busy, 2),
        "memory_mb": round(provenance.memory_mb("cpu", peak=True) - held, 1),
        "steps": found.steps,
    }


def plan(part: str, clients: int, steps: int, first: int = 0) -> Iterator[tuple]:
    """Key, method, row, initialisation, seed and options of each run of a part."""
    few = min(3, clients)

    def cell(row: str, init: str, methods: list[str], count: int, given: dict) -> Iterator[tuple]:
        for seed in range(ROWS[row].first + first, ROWS[row].first + first + count):
            for method in methods:
                said = given.get(method, {"steps": steps})
                key = f"{part} | {row} | {init} | {method} | {seed}"
                yield key, method, ROWS[row], init, seed, said

    if part == "pairs":
        for row, init, count in PAIRS:
            yield from cell(row, init, ["sme", "retrace"], min(count, clients), {})
    elif part == "dlfa":
        for row in ("femnist E10 N10", "femnist E20 N10"):
            names = ["retrace", "known protocol", "dlfa"]
            names += ["dlfa, rebalanced"] if "E10" in row else []
            given = dict.fromkeys(names[2:], {} if steps == 200 else {"steps": steps})
            yield from cell(row, "torch", names, min(5, clients), given)
    elif part == "cost":
        for epochs in (1, 5, 10, 20, 50, 100):
            row = Row(epochs=epochs)
            for name in ("sme", "retrace", "known protocol", "dlfa"):
                key = f"cost | femnist E{epochs} N10 | torch | {name} | {first}"
                yield key, name, row, "torch", first, {"steps": min(steps, 20)}
    elif part == "slopes":
        for row in ROWS:
            for init in ("torch", "lecun"):
                if "N10" in row:
                    yield from cell(row, init, ["held path"], few, {})
    elif part == "limits":
        names = ["sme", "sme, retrace's tv", "retrace", "known protocol", "true path", "true start"]
        for row in ("femnist E50 N10", "femnist E10 N10"):
            for init in ("torch", "lecun"):
                yield from cell(row, init, names, few, {})
        names = ["sme", "retrace", "known protocol", "true order"]
        yield from cell("femnist E10 N50", "torch", names, few, {})
    else:
        names = ["sme", "interpolated nodes", "learned nodes", "bezier", "retrace"]
        longer = {"sme": 3, "interpolated nodes": 0.75, "learned nodes": 0.75, "bezier": 2.5}
        for row in ("femnist E50 N10", "femnist E10 N10"):
            yield from cell(row, "torch", names, few, {})
            for key, method, *rest, said in cell(row, "torch", list(longer), few, {}):
                said = {"steps": int(said["steps"] * longer[method])}
                yield key.replace("surrogates |", "surrogates, same time |"), method, *rest, said
        yield from cell("femnist E10 N10", "torch", ["every step a node"], few, {})


def report(runs: dict[str, dict]) -> str:
    """Every cell's mean, and its paired difference to SME (or what retrace has over DLFA)."""
    cells = by_cell(runs)
    lines = [f"{'':66}{'n':>3}{'dB':>8}{'l_sim':>9}{'CPU s':>8}{'MB':>7}   dB over the base"]
    for (part, row, init, method), found in cells.items():
        base = cells.get((part.split(",")[0], row, init, "dlfa" if part == "dlfa" else "sme"), {})
        pairs = [(found[s]["psnr"], base[s]["psnr"]) for s in found if s in base]
        mean = {k: np.mean([f[k] for f in found.values()]) for k in next(iter(found.values()))}
        if "factor" in mean:
            lines.append(
                f"{f'{part}: {row} {init}, {method}':66}{len(found):3}  factor {mean['factor']:.3f}"
            )
            continue
        lines.append(
            f"{f'{part}: {row} {init}, {method}':66}{len(found):3}{mean['psnr']:8.2f}"
            f"{mean['l_sim']:9.4f}{mean['cpu_seconds']:8.1f}{mean['memory_mb']:7.0f}   "
            + (between(pairs) if pairs and found is not base else "")
        )
    return "\n".join(lines)


def work(args: argparse.Namespace) -> int:
    """Run what is missing and print the table."""
    on_one_core()
    parts = args.parts.split(",")
    for part in parts:
        if part not in PARTS:
            raise nearest("part", part, PARTS)
    jobs = (
        (key, partial(run, *job, args.data_root, options))
        for part in parts
        for key, *job, options in plan(part, args.clients, args.steps, args.first)
        if args.only in key
    )
    print(report(fill(args.results, jobs, quiet=True)))
    return 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-root", required=True, help="folder with the data sets")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--clients", type=int, default=10, help="at most so many per row (10)")
    parser.add_argument("--steps", type=int, default=200, help="of every attack but DLFA (200)")
    parser.add_argument("--only", default="", help="only runs whose name contains this")
    parser.add_argument("--first", type=int, default=0, help="added to all seeds: other clients")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the runs are stored")
    return in_sentences("retrace", lambda: work(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
