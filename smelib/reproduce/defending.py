"""The table of defences: each against an attacker who knows it and one who does not, and its price.

An attack inverts what a client sends at one setting of a defence, and a classifier that was trained
on originals says which of the pictures it still reads. `prior` is what needs no update at all: the
mean image, the mean of each label's class, and the best of 1,000 images of others. `federation` is
the accuracy that non-IID clients reach with the same knob.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from filelock import FileLock
from safetensors.torch import load_file, save_file
from torch import Tensor

from smelib import attacks, aware, data, defences, metrics, models
from smelib import params as P
from smelib.defences import Defence
from smelib.federated import accuracy, average, local_update
from smelib.pairing import match
from smelib.reproduce import networks, provenance, store
from smelib.reproduce.plan import Job, Row
from smelib.types import Params, Protocol, Reconstruction, Update

HOLDERS = 100  # seeds of the other clients in a sum begin here
DELTA = 1e-5
TRAINING = Protocol(5, 10, 0.05)  # of the federation whose accuracy is measured
FEDERATION, HELD = 10, 100  # its clients, and the most images of one
AGAIN = 4  # how often the server asks the client again, to average its noise away


@dataclass(frozen=True)
class Place:
    """Where the data are, and the folder of results with its trained networks."""

    root: str | None
    folder: Path


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


def run(job: Job, *, root: str | None, folder: Path) -> dict:
    """One job's measurements."""
    row, place, begun = job.setting, Place(root, folder), time.perf_counter()
    if job.method == "prior":
        found = prior(row, job.seed, place)
    elif job.method == "federation":
        found = federation(row, job.seed, root)
    else:
        found = attack(row, job.method, job.seed, place)
    digest = provenance.data_digest(row.dataset, root)
    return {**found, "seconds": round(time.perf_counter() - begun, 2), "data": digest}


def scene(row: Row, seed: int, place: Place) -> Scene:
    """A client of a row."""
    client = data.client(row.dataset, row.samples, seed=seed, root=place.root)
    model = models.build(row.network, client.shape, client.classes, seed=seed)
    before = networks.load(place.folder, row.rounds) if row.rounds > 1 else model.params()
    plain = local_update(model, client, row.protocol(), seed=seed, before=before)
    length = float(P.norm(P.sub(plain.after, plain.before)))
    return Scene(model, client, row.protocol(), before, seed, length)


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


def holders(row: Row, at: Scene, root: str | None) -> list[data.Client]:
    """The client and the others whose updates are added to its own."""
    others = int(row.defence[1]) - 1
    seeds = [HOLDERS * (at.seed + 1) + i for i in range(others)]
    draw = partial(data.client, row.dataset, len(at.client), root=root)
    return [at.client, *(draw(seed=s) for s in seeds)]


def added(at: Scene, clients: list[data.Client]) -> Update:
    """The secure sum of their updates."""
    train = partial(local_update, at.model, protocol=at.protocol, before=at.before)
    updates = [train(client=c, seed=at.seed + i) for i, c in enumerate(clients)]
    return defences.secure_sum(updates, seed=at.seed)


def knows(kind: str, value: float, name: str, at: Scene, update: Update) -> tuple[Update, dict]:
    """The update as the aware attacker reads it, and what it tells its attack."""
    if kind == "clip":
        # The usual length of an update is no secret: the truth is within twice of it.
        further = {"longest": max(1.0, 2 / value)} if name == "sme" else {"protocol": at.protocol}
        return update, further
    if kind == "top_k":
        return update, {"seen": aware.sent_only(update)}
    if kind == "sign":
        return update, {"seen": aware.soft_signs(update)}
    # What the client draws at random is drawn anew each time the server asks.
    mean = aware.averaged([update, *(sent(kind, value, at, i) for i in range(1, AGAIN))])
    light = {"noise": value < 4, "random_k": value > 0.05, "quantise": value > 4}.get(kind, False)
    heavy = {} if light else {"tv": 0.03 if name == "sme" else 0.01}
    if kind == "random_k":
        return aware.longer(mean, value), {"seen": aware.sent_only(mean), **heavy}
    return mean, heavy


def invert(row: Row, method: str, at: Scene, root: str | None) -> Reconstruction:
    """One attack, `naive` or `aware`, on what the client sent; of a sum all images, ours first."""
    (kind, value), (who, name) = row.defence, method.split("-")
    given = {"seed": at.seed, "device": "cpu", "progress": False, "steps": row.steps}
    labels, further = at.client.labels, {}
    if kind == "sum":
        everyone = holders(row, at, root)
        update = added(at, everyone)
        if who == "naive":  # as if it were the client's own
            update = Update(update.before, update.after, len(at.client))
        else:
            labels = torch.cat([c.labels for c in everyone])
            further = {"clients": [len(c) for c in everyone]} if name == "retrace" else {}
    else:
        update = sent(kind, value, at)
    if who == "naive":
        preset = {"preset": "fast"} if name == "sme" else {}
        return attacks.ATTACKS[name](at.model, update, labels, **preset, **given)
    if kind != "sum":
        update, further = knows(kind, value, name, at, update)
    attacker = aware.sme if name == "sme" else aware.retrace
    return attacker(at.model, update, labels, **further, **given)


def reader(name: str, place: Place) -> tuple[models.Network, Params]:
    """A small classifier of originals: two epochs of Adam on up to 20,000 images.

    Trained once in a folder of results and kept there in `.readers`, by the digest of the data.
    """
    held = data.load(name, root=place.root)
    chosen = np.random.default_rng(0).permutation(len(held))[:20_000]
    everyone = held.client(chosen)
    model = models.build("cnn", everyone.shape, everyone.classes, seed=7)
    digest = provenance.data_digest(name, place.root)
    file = place.folder / ".readers" / f"{name}-{digest}.safetensors"
    file.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(file.with_suffix(".lock")):
        if not file.is_file():
            epochs = 4 if len(chosen) < 10_000 else 2
            protocol = Protocol(epochs, 50, 0.001, optimiser="adam")
            weights = local_update(model, everyone, protocol).after
            with store.replacing(file) as scratch:
                save_file({k: v.contiguous() for k, v in weights.items()}, scratch)
    return model, load_file(file)


def read(name: str, images: Tensor, labels: Tensor, place: Place) -> float:
    """The share of these pictures that the classifier takes for what the originals show."""
    model, weights = reader(name, place)
    shown = data.Client(images.float(), labels, model.classes, name)
    return round(accuracy(model, weights, shown), 4)


def attack(row: Row, method: str, seed: int, place: Place) -> dict:
    """How much one attack takes from one client at one setting of a defence."""
    at = scene(row, seed, place)
    busy = time.process_time()
    found = invert(row, method, at, place.root)
    busy = time.process_time() - busy
    joint = len(found.images) > len(at.client)
    whose = holders(row, at, place.root) if joint else [at.client]
    # All pictures with all originals, then ours: to pick the best of a sum's would flatter it.
    order = match(found.images, torch.cat([c.images for c in whose]))[: len(at.client)]
    ours = found.images[torch.as_tensor(order)]
    score = metrics.evaluate(ours, at.client.images)
    return {
        "psnr": round(score.psnr, 3),
        "ssim": round(score.ssim, 4),
        "read": read(row.dataset, ours, at.client.labels, place),
        "l_sim": round(found.similarity, 6),
        "alpha": found.alpha,
        **promised(*row.defence, len(at.client)),
        "cpu_seconds": round(busy, 2),
    }


def prior(row: Row, seed: int, place: Place) -> dict:
    """What a prior alone gives of a client: PSNR of pictures that no update was needed for."""
    held = data.load(row.dataset, root=place.root)
    client = data.client(row.dataset, 10, seed=seed, root=place.root)
    others = held.client(np.random.default_rng(seed + 1).permutation(len(held))[:1010])
    # Pixel by pixel: a distance of rounded sums is not 0 for the client's own images.
    same = (others.images[:, None] == client.images).flatten(2).all(dim=2).any(dim=1)
    pool, of = others.images[~same][:1000], others.labels[~same][:1000]
    mean = pool.mean(dim=0)
    by_class = [pool[of == y].mean(dim=0) if bool((of == y).any()) else mean for y in client.labels]
    nearest = torch.cdist(client.images.flatten(1), pool.flatten(1)).argmin(dim=1)

    def score(images: Tensor) -> float:
        pairs = zip(images, client.images, strict=True)
        return round(float(np.mean([metrics.psnr(a, b) for a, b in pairs])), 3)

    def legible(images: Tensor) -> float:
        return read(row.dataset, images, client.labels, place)

    return {
        "mean_image": score(mean.expand_as(client.images)),
        "mean_of_class": score(torch.stack(by_class)),
        "best_of_1000": score(pool[nearest]),
        "read_mean_of_class": legible(torch.stack(by_class)),
        "read_best_of_1000": legible(pool[nearest]),
        "read_originals": legible(client.images),
    }


def gathered(name: str, seed: int, root: str | None) -> tuple[list[data.Client], data.Client]:
    """Non-IID clients, by Dirichlet weights or by writer, and images that they held back."""
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
    return clients, data.Client(images[drawn], labels[drawn], clients[0].classes, name)


def spent(kind: str, value: float, rounds: int, clients: list[data.Client]) -> dict:
    """What differential privacy still promises after all rounds of a federation."""
    if kind == "client_dp":
        many = defences.client_epsilon(1.0, value, delta=DELTA, rounds=rounds)
        return {"client_epsilon": round(many, 3)}
    if kind == "dp_sgd":
        # The smallest client's samples are in the most batches: it is promised the least.
        batches = -(-min(len(c) for c in clients) // TRAINING.batch_size)
        steps = rounds * TRAINING.epochs * batches
        return {"sample_epsilon": round(defences.sample_epsilon(value, 1 / batches, steps), 3)}
    return {}


def federation(row: Row, seed: int, root: str | None, rounds: int = 8) -> dict:
    """Accuracy after some rounds of clients who all defend themselves alike."""
    kind, value = row.defence
    clients, test = gathered(row.dataset, seed, root)
    model = models.build("cnn", test.shape, test.classes, seed=seed)
    weights = model.params()
    size = sum(v.numel() for v in weights.values())
    busy, length, reached = time.process_time(), 0.0, []
    for r in range(rounds):
        updates = []
        for i, client in enumerate(clients):
            given = {"seed": (seed * rounds + r) * len(clients) + i, "before": weights}
            if kind == "dp_sgd":
                made = defences.dp_sgd(model, client, TRAINING, noise=value, norm=1.0, **given)
                updates.append(made.update)
                continue
            if not length:  # the first client's, which the server may ask for in the open
                plain = local_update(model, client, TRAINING, **given)
                length = float(P.norm(P.sub(plain.after, plain.before)))
            way = knob(kind, value, length, size)
            updates.append(local_update(model, client, TRAINING, **given, defence=way))
        whole = defences.secure_sum(updates, seed=r) if kind == "sum" else None
        weights = whole.after if whole else average(updates)
        finite = all(bool(torch.isfinite(v).all()) for v in weights.values())
        reached.append(round(accuracy(model, weights, test), 4) if finite else 0.0)
    return {
        "accuracy": reached[-1],
        "by_round": reached,
        **spent(kind, value, rounds, clients),
        "cpu_seconds": round(time.process_time() - busy, 2),
    }
