"""Every defence against an attacker who does not know it and one who does, and what it costs.

    python benchmarks/defences.py --data-root DIR [--parts baseline,attack,utility] [--only REGEX]
                                  [--rows "mnist R0,femnist R0"] [--clients 5] [--seeds 3]
                                  [--steps 200] [--results FILE]

`attack` inverts the same clients' updates under each setting of each defence, by SME and retrace,
naive and aware, and asks a classifier that was trained on originals which of the pictures it still
reads. `utility` is the accuracy of a federation of non-IID clients with the same
knobs. `baseline` is what the prior alone gives: the mean image, and the best of 1,000 images of
others. Lengths are in units of an undefended update's own, so that a knob means the same in each
part. Every run is stored in `results/defences.json`, and one that is there is not repeated.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch
from scipy.stats import t as student
from torch import Tensor

from smelib import attacks, aware, data, defences, metrics, models
from smelib import params as P
from smelib.cli import in_sentences
from smelib.defences import Defence
from smelib.devices import keep_freed_memory
from smelib.errors import nearest
from smelib.federated import accuracy, average, local_update
from smelib.pairing import match
from smelib.reproduce import networks
from smelib.types import Params, Protocol, Reconstruction, Update

RESULTS = Path(__file__).resolve().parents[1] / "results" / "defences.json"
PARTS = ("baseline", "attack", "utility")
ROWS = ("mnist R0", "femnist R0", "femnist R5", "femnist R20")
HOLDERS = 100  # seeds of the other clients in a sum begin here
DELTA = 1e-5
TRAINING = Protocol(5, 10, 0.05)  # of the federation whose accuracy is measured
FEDERATION, HELD = 10, 100  # its clients, and the most images of one
AGAIN = 4  # how often the server asks the client again, to average its noise away

SETTINGS: dict[str, tuple[float, ...]] = {
    "none": (0,),
    "clip": (0.3, 0.1, 0.03),  # of the update's length
    "noise": (0.5, 2, 8),  # of the update's root mean square
    "top_k": (0.1, 0.01, 0.001),
    "random_k": (0.1, 0.01, 0.001),
    "quantise": (8, 2, 1),
    "sign": (1,),
    "sum": (2, 4, 8),  # clients
    "client_dp": (0.01, 0.1, 1),  # clipped to the typical length, noise in units of it
    "dp_sgd": (0.01, 0.1, 1),  # the noise multiplier; every sample's gradient clipped to 1
    "samples": (20, 50),  # instead of 10
}
NAIVE_ONLY = ("none", "samples")


@dataclass(frozen=True)
class Scene:
    """A network, one client's data, how it trains, and how long its update is undefended."""

    model: models.Network
    client: data.Client
    protocol: Protocol
    before: Params
    seed: int
    length: float

    def train(self, defence: Defence = defences.none, seed: int | None = None) -> Update:
        """What the client sends."""
        seed = self.seed if seed is None else seed
        given = {"seed": seed, "before": self.before, "defence": defence}
        return local_update(self.model, self.client, self.protocol, **given)


def scene(row: str, seed: int, root: str | None, samples: int = 10) -> Scene:
    """A client of a row: the data set, and after how many rounds of training it is met."""
    name, stage = row.split(" R")
    client = data.client(name, samples, seed=seed, root=root)
    model = models.build("cnn", client.shape, client.classes, seed=seed)
    before = networks.load(RESULTS.parent, int(stage)) if int(stage) else model.params()
    protocol = Protocol(10, 10, 0.004)
    plain = local_update(model, client, protocol, seed=seed, before=before)
    length = float(P.norm(P.sub(plain.after, plain.before)))
    return Scene(model, client, protocol, before, seed, length)


def knob(kind: str, value: float, length: float, weights: int) -> Defence:
    """The defence at a setting, for updates of this length."""
    if kind in ("none", "sum", "samples"):
        return defences.none
    if kind == "clip":
        return defences.clip(value * length)
    if kind == "noise":
        return defences.noise(value * length / weights**0.5)
    if kind == "client_dp":
        return defences.compose(defences.clip(length), defences.noise(value * length))
    if kind == "sign":
        return defences.sign()
    make = {"top_k": defences.top_k, "random_k": defences.random_k, "quantise": defences.quantise}
    return make[kind](int(value) if kind == "quantise" else value)


def sent(kind: str, value: float, at: Scene, again: int = 0) -> Update:
    """What the client sends at a setting; `again` draws its noise anew."""
    seed = at.seed + 1000 * again
    if kind == "dp_sgd":
        how = {"noise": value, "norm": 1.0, "seed": seed, "before": at.before}
        return defences.dp_sgd(at.model, at.client, at.protocol, **how).update
    weights = sum(v.numel() for v in at.before.values())
    return at.train(knob(kind, value, at.length, weights), seed)


def promised(kind: str, value: float, samples: int) -> dict:
    """What differential privacy promises at a setting, for one round."""
    if kind == "client_dp":
        return {"client_epsilon": round(defences.client_epsilon(1.0, value, delta=DELTA), 3)}
    if kind == "dp_sgd":
        rate, steps = 1 / -(-samples // 10), 10 * -(-samples // 10)
        return {
            "sample_epsilon": round(defences.sample_epsilon(value, rate, steps, delta=DELTA), 3),
            "bound": round(defences.reconstruction_bound(value, rate, steps, prior=0.1), 4),
        }
    return {}


def holders(at: Scene, row: str, count: int, root: str | None) -> list[data.Client]:
    """The client and `count - 1` others whose updates are added to its own."""
    name = row.split(" R")[0]
    seeds = [HOLDERS * (at.seed + 1) + i for i in range(count - 1)]
    return [at.client, *(data.client(name, len(at.client), seed=s, root=root) for s in seeds)]


def added(at: Scene, clients: list[data.Client]) -> Update:
    """The secure sum of their updates."""
    train = partial(local_update, at.model, protocol=at.protocol, before=at.before)
    updates = [train(client=c, seed=at.seed + i) for i, c in enumerate(clients)]
    return defences.secure_sum(updates, seed=at.seed)


def knows(kind: str, value: float, method: str, at: Scene, update: Update) -> tuple[Update, dict]:
    """The update as the aware attacker reads it, and what it tells its attack."""
    if kind == "clip":
        # The usual length of an update is no secret: the truth is within twice of it.
        further = {"longest": max(1.0, 2 / value)} if method == "sme" else {"protocol": at.protocol}
        return update, further
    if kind == "top_k":
        return update, {"seen": aware.sent_only(update)}
    if kind == "sign":
        return update, {"seen": aware.soft_signs(update)}
    # What the client draws at random is drawn anew each time the server asks.
    mean = aware.averaged([update, *(sent(kind, value, at, i) for i in range(1, AGAIN))])
    light = {"noise": value < 4, "random_k": value > 0.05, "quantise": value > 4}.get(kind, False)
    heavy = {} if light else {"tv": 0.03 if method == "sme" else 0.01}
    if kind == "random_k":
        return aware.longer(mean, value), {"seen": aware.sent_only(mean), **heavy}
    return mean, heavy


def invert(
    row: str, kind: str, value: float, method: str, at: Scene, root: str | None, options: dict
) -> Reconstruction:
    """One attack, `naive` or `aware`, on what the client sent; of a sum all images, ours first."""
    who, name = method.split(" ")
    given = {"seed": at.seed, "device": "cpu", "progress": False, **options}
    labels, clients = at.client.labels, {}
    if kind == "sum":
        everyone = holders(at, row, int(value), root)
        update = added(at, everyone)
        if who == "naive":  # as if it were the client's own
            update = Update(update.before, update.after, len(at.client))
        else:
            labels = torch.cat([c.labels for c in everyone])
            clients = {"clients": [len(c) for c in everyone]} if name == "retrace" else {}
    else:
        update = sent(kind, value, at)
    if who == "naive":
        preset = {"preset": "fast"} if name == "sme" else {}
        return attacks.ATTACKS[name](at.model, update, labels, **preset, **given)
    if kind != "sum":
        update, clients = knows(kind, value, name, at, update)
    attack = aware.sme if name == "sme" else aware.retrace
    return attack(at.model, update, labels, **clients, **given)


@cache
def reader(name: str, root: str | None) -> tuple[models.Network, Params]:
    """A small classifier of originals: two epochs of Adam on up to 20,000 images."""
    held = data.load(name, root=root)
    chosen = np.random.default_rng(0).permutation(len(held))[:20_000]
    everyone = held.client(chosen)
    model = models.build("cnn", everyone.shape, everyone.classes, seed=7)
    protocol = Protocol(4 if len(chosen) < 10_000 else 2, 50, 0.001, optimiser="adam")
    return model, local_update(model, everyone, protocol).after


def read(name: str, root: str | None, images: Tensor, labels: Tensor) -> float:
    """The share of these pictures that the classifier takes for what the originals show."""
    model, weights = reader(name, root)
    shown = data.Client(images.float(), labels, model.classes, name)
    return round(accuracy(model, weights, shown), 4)


def attack(
    row: str, kind: str, value: float, method: str, seed: int, root: str | None, options: dict
) -> dict:
    """How much one attack takes from one client at one setting of a defence."""
    name = row.split(" R")[0]
    at = scene(row, seed, root, int(value) if kind == "samples" else 10)
    busy = time.process_time()
    found = invert(row, kind, value, method, at, root, options)
    busy = time.process_time() - busy
    joint = len(found.images) > len(at.client)
    whose = holders(at, row, int(value), root) if joint else [at.client]
    # All pictures with all originals, then ours: to pick the best of a sum's would flatter it.
    order = match(found.images, torch.cat([c.images for c in whose]))[: len(at.client)]
    ours = found.images[torch.as_tensor(order)]
    score = metrics.evaluate(ours, at.client.images)
    return {
        "psnr": round(score.psnr, 3),
        "ssim": round(score.ssim, 4),
        "read": read(name, root, ours, at.client.labels),
        "l_sim": round(found.similarity, 6),
        "alpha": found.alpha,
        **promised(kind, value, len(at.client)),
        "cpu_seconds": round(busy, 2),
    }


def baseline(row: str, seed: int, root: str | None) -> dict:
    """What a prior alone gives of a client: PSNR of pictures that no update was needed for."""
    name = row.split(" R")[0]
    held = data.load(name, root=root)
    client = data.client(name, 10, seed=seed, root=root)
    others = held.client(np.random.default_rng(seed + 1).permutation(len(held))[:1010])
    # Pixel by pixel: a distance of rounded sums is not 0 for the client's own images.
    same = (others.images[:, None] == client.images).flatten(2).all(dim=2).any(dim=1)
    pool, of = others.images[~same][:1000], others.labels[~same][:1000]
    mean = pool.mean(dim=0)
    by_class = [pool[of == y].mean(dim=0) if bool((of == y).any()) else mean for y in client.labels]
    nearest_of = torch.cdist(client.images.flatten(1), pool.flatten(1)).argmin(dim=1)

    def score(images: Tensor) -> float:
        pairs = zip(images, client.images, strict=True)
        return round(float(np.mean([metrics.psnr(a, b) for a, b in pairs])), 3)

    return {
        "mean_image": score(mean.expand_as(client.images)),
        "mean_of_class": score(torch.stack(by_class)),
        "best_of_1000": score(pool[nearest_of]),
        "read_mean_of_class": read(name, root, torch.stack(by_class), client.labels),
        "read_best_of_1000": read(name, root, pool[nearest_of], client.labels),
        "read_originals": read(name, root, client.images, client.labels),
    }


def utility(
    name: str, kind: str, value: float, seed: int, root: str | None, rounds: int = 8
) -> dict:
    """Accuracy after R rounds of non-IID clients: by Dirichlet weights, or by writer."""
    split = {"split": "writer"} if name == "femnist" else {"concentration": 0.5}
    everyone = data.federation(name, clients=FEDERATION, seed=seed, root=root, **split)
    rng, clients, kept = np.random.default_rng(seed), [], []
    for c in everyone:
        # A client's images come class by class: unshuffled, it would be tested on other classes.
        order = torch.as_tensor(rng.permutation(len(c)))
        n = max(1, min(HELD, int(0.8 * len(c))))
        clients.append(data.Client(c.images[order[:n]], c.labels[order[:n]], c.classes, name))
        kept.append((c.images[order[n:]], c.labels[order[n:]]))
    images, labels = (torch.cat(parts) for parts in zip(*kept, strict=True))
    # Of all clients alike: the first thousand would be those of the first few.
    drawn = torch.as_tensor(rng.permutation(len(labels))[:1000])
    test = data.Client(images[drawn], labels[drawn], clients[0].classes, name)
    model = models.build("cnn", test.shape, test.classes, seed=seed)
    protocol, weights = TRAINING, model.params()
    size = sum(v.numel() for v in weights.values())
    busy, length, reached = time.process_time(), 0.0, []
    for r in range(rounds):
        updates = []
        for i, client in enumerate(clients):
            given = {"seed": (seed * rounds + r) * len(clients) + i, "before": weights}
            if kind == "dp_sgd":
                made = defences.dp_sgd(model, client, protocol, noise=value, norm=1.0, **given)
                updates.append(made.update)
                continue
            if not length:  # the first client's, which the server may ask for in the open
                plain = local_update(model, client, protocol, **given)
                length = float(P.norm(P.sub(plain.after, plain.before)))
            way = knob(kind, value, length, size)
            updates.append(local_update(model, client, protocol, **given, defence=way))
        whole = defences.secure_sum(updates, seed=r) if kind == "sum" else None
        weights = whole.after if whole else average(updates)
        finite = all(bool(torch.isfinite(v).all()) for v in weights.values())
        reached.append(round(accuracy(model, weights, test), 4) if finite else 0.0)
    spent = {}
    if kind == "client_dp":
        many = defences.client_epsilon(1.0, value, delta=DELTA, rounds=rounds)
        spent = {"client_epsilon": round(many, 3)}
    if kind == "dp_sgd":
        # The smallest client's samples are in the most batches: it is promised the least.
        batches = -(-min(len(c) for c in clients) // protocol.batch_size)
        steps = rounds * protocol.epochs * batches
        spent = {"sample_epsilon": round(defences.sample_epsilon(value, 1 / batches, steps), 3)}
    return {
        "accuracy": reached[-1],
        "by_round": reached,
        **spent,
        "cpu_seconds": round(time.process_time() - busy, 2),
    }


def plan(part: str, args: argparse.Namespace) -> Iterator[tuple[str, Callable[[], dict]]]:
    """Key and work of each run of a part; all settings of one client, then the next client."""
    root = args.data_root
    if part == "utility":
        for seed in range(args.seeds):
            for name in dict.fromkeys(row.split(" R")[0] for row in args.rows.split(",")):
                for kind, values in SETTINGS.items():
                    if kind == "samples":
                        continue
                    for value in values[:1] if kind == "sum" else values:
                        key = f"utility | {name} | {kind} | {value} | federation | {seed}"
                        yield key, partial(utility, name, kind, value, seed, root)
        return
    for row in args.rows.split(","):
        if row not in ROWS:
            raise nearest("row", row, ROWS)
        for seed in range(args.first, args.first + args.clients):
            if part == "baseline":
                key = f"baseline | {row} | none | 0 | prior | {seed}"
                yield key, partial(baseline, row, seed, root)
                continue
            for kind, values in SETTINGS.items():
                for value in values:
                    for who in ("naive",) if kind in NAIVE_ONLY else ("naive", "aware"):
                        for name in ("sme", "retrace"):
                            job = (row, kind, value, f"{who} {name}", seed)
                            key = " | ".join(map(str, ("attack", *job)))
                            yield key, partial(attack, *job, root, {"steps": args.steps})


def between(values: list[float]) -> str:
    """A mean with its 95 % t-interval."""
    n, mean = len(values), float(np.mean(values))
    if n < 3:
        return f"{mean:8.3f}"
    half = student.ppf(0.975, n - 1) * np.std(values, ddof=1) / n**0.5
    return f"{mean:8.3f} ± {half:.3f}"


def report(runs: dict[str, dict]) -> str:
    """Every cell's mean; for the aware attack also what it has over the naive one, in pairs."""
    cells: dict[tuple, dict[str, dict]] = {}
    for key, found in runs.items():
        *cell, seed = key.split(" | ")
        cells.setdefault(tuple(cell), {})[seed] = found
    lines = []
    for (part, row, kind, value, method), found in cells.items():
        kept = "accuracy" if part == "utility" else "psnr" if part == "attack" else "best_of_1000"
        line = f"{f'{part}: {row}, {kind} {value}, {method}':56}{len(found):3}"
        line += between([f[kept] for f in found.values()])
        if part == "attack":
            line += f"   read {np.mean([f['read'] for f in found.values()]):.2f}"
        base = cells.get((part, row, kind, value, method.replace("aware", "naive")), {})
        if "aware" in method and (pairs := [s for s in found if s in base]):
            gaps = [found[s]["psnr"] - base[s]["psnr"] for s in pairs]
            line += f"   over naive{between(gaps)}"
        busy = [f.get("cpu_seconds", 0.0) for f in found.values()]
        lines.append(f"{line}   {np.mean(busy):.1f} CPU s")
    total = sum(f.get("cpu_seconds", 0.0) for f in runs.values())
    return "\n".join([*lines, f"{len(runs)} runs, {total:.0f} CPU seconds"])


def work(args: argparse.Namespace) -> int:
    """Run what is missing and print the table."""
    torch.set_num_threads(1)
    keep_freed_memory()
    file = Path(args.results)

    def stored() -> dict[str, dict]:
        return json.loads(file.read_text()) if file.is_file() else {}

    for part in args.parts.split(","):
        if part not in PARTS:
            raise nearest("part", part, PARTS)
        for key, job in plan(part, args):
            if key in stored() or not re.search(args.only, key):
                continue
            found = job()
            file.write_text(json.dumps({**stored(), key: found}, indent=1) + "\n")
            print(f"{key}: {found}", flush=True)
    print(report(stored()))
    return 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-root", help="folder with femnist.npz")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--rows", default=",".join(ROWS), help="data set and rounds of training")
    parser.add_argument("--clients", type=int, default=5, help="per row (5)")
    parser.add_argument("--seeds", type=int, default=3, help="federations per setting (3)")
    parser.add_argument("--steps", type=int, default=200, help="of every attack (200)")
    parser.add_argument("--only", default="", help="only runs whose name matches this")
    parser.add_argument("--first", type=int, default=0, help="the first client's seed")
    parser.add_argument("--results", default=str(RESULTS), help="where the runs are stored")
    return in_sentences("defences", lambda: work(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
