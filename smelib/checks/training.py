"""Chapters 1, 4, 8 and 13: a client's training, and training simulated from dummies."""

from __future__ import annotations

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from smelib import attacks, federated, objectives, priors, seeds, walking
from smelib import params as P
from smelib.checks.cases import Scene, dummies, named, normal, numbers, scene
from smelib.checks.engine import piece
from smelib.data import Client
from smelib.federated import gradient
from smelib.models import Network
from smelib.types import Params, Protocol, Update

Order = list[list[Tensor]]


def _held(s: Scene) -> dict:
    """Weights that are not the network's own, and a client's data."""
    w0 = {k: v + 0.3 * normal(s.draw, *v.shape) for k, v in s.model.params().items()}
    return {"w0": w0, "images": s.client.images, "labels": s.client.labels}


def _trainings(seed: int) -> list[dict]:
    how = {"epochs": 3, "batch_size": 2, "lr": 0.3}
    return [
        named(model=s.model, **_held(s), **how, seed=k)
        for k, s in enumerate(map(scene, numbers(seed)))
    ]


@piece(
    "train_locally(model, w0, images, labels, epochs, batch_size, lr, seed)",
    _trainings,
    over="clients",
)
def train_locally(
    model: Network,
    w0: Params,
    images: Tensor,
    labels: Tensor,
    epochs: int,
    batch_size: int,
    lr: float,
    seed: int,
) -> Params:
    """wT after SGD from w0, every epoch a new `torch.randperm` of the stream `(seed, "batches")`.

    `images` are pixels, so normalise them. The stream is `seeds.generator(seed, "batches")`, made
    once; the loss is the mean cross-entropy of a batch.
    """
    client = Client(images, labels, model.classes, "noise")
    how = Protocol(epochs, batch_size, lr)
    return federated.local_update(model, client, how, seed=seed, before=w0).after


def _descent(model, w0, z, labels, batches, lr) -> Params:
    for batch in batches:
        w0 = P.add(w0, gradient(model, w0, z[batch], labels[batch]), -lr)
    return w0


def _drawn(samples: int, epochs: int, batch_size: int, seed: int) -> list[Tensor]:
    stream = seeds.generator(seed, "batches")
    return list(federated.batches(samples, Protocol(epochs, batch_size), stream))


@train_locally.mistake("you train on pixels: the network takes model.normalise(images).")
def _(model, w0, images, labels, epochs, batch_size, lr, seed):
    drawn = _drawn(len(labels), epochs, batch_size, seed)
    return _descent(model, w0, images, labels, drawn, lr)


@train_locally.mistake("you climb: a step is w - lr times the gradient.")
def _(model, w0, images, labels, epochs, batch_size, lr, seed):
    drawn = _drawn(len(labels), epochs, batch_size, seed)
    return _descent(model, w0, model.normalise(images), labels, drawn, -lr)


@train_locally.mistake(
    "all epochs of yours have one order: make the generator once, draw a randperm in each epoch."
)
def _(model, w0, images, labels, epochs, batch_size, lr, seed):
    drawn = _drawn(len(labels), 1, batch_size, seed) * epochs
    return _descent(model, w0, model.normalise(images), labels, drawn, lr)


@train_locally.mistake("you do not shuffle: each epoch's order is a torch.randperm.")
def _(model, w0, images, labels, epochs, batch_size, lr, seed):
    drawn = list(torch.arange(len(labels)).split(batch_size)) * epochs
    return _descent(model, w0, model.normalise(images), labels, drawn, lr)


@train_locally.mistake("your weights never move: keep what a step gives for the next one.")
def _(model, w0, images, labels, epochs, batch_size, lr, seed):
    return w0


@train_locally.mistake("you start from the network's own weights: start from w0.")
def _(model, w0, images, labels, epochs, batch_size, lr, seed):
    drawn = _drawn(len(labels), epochs, batch_size, seed)
    return _descent(model, model.params(), model.normalise(images), labels, drawn, lr)


@train_locally.mistake("you return the update w0 - wT: return the weights wT.")
def _(model, w0, images, labels, epochs, batch_size, lr, seed):
    drawn = _drawn(len(labels), epochs, batch_size, seed)
    return P.sub(w0, _descent(model, w0, model.normalise(images), labels, drawn, lr))


@train_locally.mistake("you take one step per epoch, with all images: split them into batches.")
def _(model, w0, images, labels, epochs, batch_size, lr, seed):
    drawn = [torch.arange(len(labels))] * epochs
    return _descent(model, w0, model.normalise(images), labels, drawn, lr)


def _walks(seed: int) -> list[dict]:
    how = {"epochs": 3, "batch_size": 2, "lr": 0.3}
    pairs = enumerate(map(scene, numbers(seed)))
    return [named(model=s.model, client=s.client, **how, seed=k) for k, s in pairs]


def _visited(model, client, epochs, batch_size, lr, seed, whole=False, still=False):
    """The path, and the gradients; of all images where `whole`, and at w0 where `still`."""
    z, y = model.normalise(client.images), client.labels
    path, slopes = [model.params()], []
    for drawn in _drawn(len(y), epochs, batch_size, seed):
        batch = torch.arange(len(y)) if whole else drawn
        slopes.append(gradient(model, path[0 if still else -1], z[batch], y[batch]))
        path.append(P.add(path[-1], slopes[-1], -lr))
    return path, slopes


@piece("walk(model, client, epochs, batch_size, lr, seed)", _walks, over="clients")
def local_walk(
    model: Network, client: Client, epochs: int, batch_size: int, lr: float, seed: int
) -> tuple[list[Params], list[Params]]:
    """all weights w0, ..., wT of a client's training, and the gradient of each of its T steps.

    A pair of lists, of T + 1 and of T dicts; lr times the sum of the gradients is w0 - wT. The
    batches are those of chapter 1, from the stream `seeds.generator(seed, "batches")`. (This is
    chapter 4's `walk`; `walk` itself is chapter 13's.)
    """
    path = list(federated.local_path(model, client, Protocol(epochs, batch_size, lr), seed=seed))
    return path, _visited(model, client, epochs, batch_size, lr, seed)[1]


@local_walk.mistake("your path ends before the last step: it has w0, wT and all between, T + 1.")
def _(model, client, epochs, batch_size, lr, seed):
    path, slopes = _visited(model, client, epochs, batch_size, lr, seed)
    return path[:-1], slopes


@local_walk.mistake("your path lacks w0: it has w0, wT and all between, T + 1.")
def _(model, client, epochs, batch_size, lr, seed):
    path, slopes = _visited(model, client, epochs, batch_size, lr, seed)
    return path[1:], slopes


@local_walk.mistake("your steps use all images: step t uses those of its batch.")
def _(model, client, epochs, batch_size, lr, seed):
    return _visited(model, client, epochs, batch_size, lr, seed, whole=True)


@local_walk.mistake("you take all gradients at w0: take each at the weights its step starts from.")
def _(model, client, epochs, batch_size, lr, seed):
    return _visited(model, client, epochs, batch_size, lr, seed, still=True)


@local_walk.mistake("your second list has the moves, lr times the gradients: leave out lr.")
def _(model, client, epochs, batch_size, lr, seed):
    path, slopes = _visited(model, client, epochs, batch_size, lr, seed)
    return path, [P.scale(g, lr) for g in slopes]


def _simulations(seed: int) -> list[dict]:
    found = []
    for k, s in enumerate(map(scene, numbers(seed))):
        drawn, per = _drawn(len(s.client), 3, 2, k), -(-len(s.client) // 2)
        order = [list(drawn[e * per : (e + 1) * per]) for e in range(3)]
        z = normal(s.draw, 3, len(s.client), *s.model.shape)
        given = {"w0": s.update.before, "dummies": z, "labels": s.client.labels}
        found.append(named(model=s.model, **given, order=order, lr=0.3))
    return found


@piece(
    "train(model, w0, dummies, labels, order, lr)", _simulations, over="runs", slopes=("dummies",)
)
def simulate(
    model: Network, w0: Params, dummies: Tensor, labels: Tensor, order: Order, lr: float
) -> Params:
    """train on dummies `[E, N, C, H, W]`, epoch e on `dummies[e]`; the sum of all T gradients.

    `order[e]` has the batches of epoch e; `dummies` are normalised. The answer is a dict, and it
    can be differentiated by the dummies through all the steps. (Chapter 8's `train`.)
    """
    how = Protocol(len(order), len(order[0][0]), lr)
    return objectives.simulate(model, w0, dummies, labels, order, how, checkpoint=False)


def _sum(model, w0, dummies, labels, order, lr, *, first=False, still=False, cut=False) -> Params:
    w, total = w0, P.scale(w0, 0.0)
    for e, epoch in enumerate(order):
        for batch in epoch:
            z = dummies[0 if first else e][batch]
            g = gradient(model, w0 if still else w, z, labels[batch])
            moved = P.add(w, g, -lr)
            w = {k: v.detach() for k, v in moved.items()} if cut else moved
            total = P.add(total, g)
    return total


@simulate.mistake("you return w0 - wT, which is lr times the sum of the gradients: leave out lr.")
def _(model, w0, dummies, labels, order, lr):
    return P.scale(_sum(model, w0, dummies, labels, order, lr), lr)


@simulate.mistake("you return the weights wT: return the sum of the gradients.")
def _(model, w0, dummies, labels, order, lr):
    return P.add(w0, _sum(model, w0, dummies, labels, order, lr), -lr)


@simulate.mistake("every epoch of yours uses the first epoch's dummies: epoch e has dummies[e].")
def _(model, w0, dummies, labels, order, lr):
    return _sum(model, w0, dummies, labels, order, lr, first=True)


@simulate.mistake("you take all gradients at w0: the weights must move after each step.")
def _(model, w0, dummies, labels, order, lr):
    return _sum(model, w0, dummies, labels, order, lr, still=True)


@simulate.mistake(
    "the value is right, but not its gradient: you detach the weights between the steps, and each "
    "step must be differentiated through those before it."
)
def _(model, w0, dummies, labels, order, lr):
    return _sum(model, w0, dummies, labels, order, lr, cut=True)


@simulate.mistake("you give the batches the first labels: index labels with the batch, as images.")
def _(model, w0, dummies, labels, order, lr):
    w, total = w0, P.scale(w0, 0.0)
    for images, epoch in zip(dummies, order, strict=True):
        for batch in epoch:
            g = gradient(model, w, images[batch], labels[: len(batch)])
            w, total = P.add(w, g, -lr), P.add(total, g)
    return total


@simulate.mistake("you return the mean of the gradients: return their sum.")
def _(model, w0, dummies, labels, order, lr):
    steps = sum(len(epoch) for epoch in order)
    return P.scale(_sum(model, w0, dummies, labels, order, lr), 1 / steps)


def _epochs(seed: int) -> list[dict]:
    scenes = map(scene, numbers(seed))
    return [named(dummies=normal(s.draw, 2 + k, 4, 1, 5, 4)) for k, s in enumerate(scenes)]


@piece("order_prior(dummies)", _epochs, over="sets of dummies", slopes=("dummies",))
def order_prior(dummies: Tensor) -> Tensor:
    """the mean squared difference of the epochs' mean images, over all E × E pairs of epochs.

    `dummies` are `[E, N, C, H, W]`; an epoch's pair with itself counts. Pure, so that it can be
    tried alone: in chapter 8 it is part of `dlfa_loss`.
    """
    return priors.order_gap(priors.mean_image(dummies))


def _pairwise(x: Tensor) -> Tensor:
    """The mean squared difference of all pairs, `[E, E]`."""
    return (x[:, None] - x[None]).square().flatten(2).mean(dim=2)


@order_prior.mistake("you leave out the pairs of an epoch with itself: the mean is over E × E.")
def _(dummies: Tensor) -> Tensor:
    e = len(dummies)
    return _pairwise(dummies.mean(dim=1)).sum() / (e * (e - 1))


@order_prior.mistake("you add up the pairs: take their mean.")
def _(dummies: Tensor) -> Tensor:
    return _pairwise(dummies.mean(dim=1)).sum()


@order_prior.mistake(
    "you compare image with image, so the order counts: compare the epochs' mean images."
)
def _(dummies: Tensor) -> Tensor:
    return _pairwise(dummies).mean()


@order_prior.mistake("you average over the epochs: the mean image of an epoch is over dim=1.")
def _(dummies: Tensor) -> Tensor:
    return _pairwise(dummies.mean(dim=0)).mean()


@order_prior.mistake("you add up the pixels' squares: take their mean.")
def _(dummies: Tensor) -> Tensor:
    return _pairwise(dummies.mean(dim=1)).mean() * dummies[0, 0].numel()


def _shuffles(seed: int) -> list[dict]:
    """Noisy copies of a few images, each epoch in another order."""
    found = []
    for s in map(scene, numbers(seed)):
        one, n = normal(s.draw, 5, 1, 5, 4), 5
        orders = [torch.randperm(n, generator=s.draw) for _ in range(4)]
        found.append(
            named(z=torch.stack([one[p] + 1.2 * normal(s.draw, *one.shape) for p in orders]))
        )
    return found


@piece("merge(z)", _shuffles, over="sets of dummies")
def merge(z: Tensor) -> Tensor:
    """match each epoch's images to the first epoch's, reorder them, and average over the epochs.

    `z` is `[E, N, C, H, W]` and the answer `[N, C, H, W]`. The matching is the linear sum
    assignment of least total squared distance.
    """
    return attacks.merge_epochs(z)


def _costs(z: Tensor) -> list[Tensor]:
    return [torch.cdist(z[0].flatten(1), epoch.flatten(1)).square() for epoch in z]


def _mean(z: Tensor, orders: list) -> Tensor:
    pairs = zip(z, orders, strict=True)
    return torch.stack([epoch[torch.as_tensor(p)] for epoch, p in pairs]).mean(dim=0)


@merge.mistake("you average without matching: every epoch has its images in another order.")
def _(z: Tensor) -> Tensor:
    return z.mean(dim=0)


@merge.mistake("you take the nearest for each, so that one may serve twice: match one to one.")
def _(z: Tensor) -> Tensor:
    return _mean(z, [cost.argmin(dim=1) for cost in _costs(z)])


@merge.mistake(
    "your matching is inverted: for each image of the first epoch take its partner's index."
)
def _(z: Tensor) -> Tensor:
    return _mean(z, [linear_sum_assignment(cost.T.numpy())[1] for cost in _costs(z)])


@merge.mistake("you return the first epoch: average over the epochs, once they are matched.")
def _(z: Tensor) -> Tensor:
    return z[0]


@merge.mistake("you match the worst: the assignment is of least cost.")
def _(z: Tensor) -> Tensor:
    return _mean(z, [linear_sum_assignment(-cost.numpy())[1] for cost in _costs(z)])


def _traces(seed: int) -> list[dict]:
    found = []
    for s, moves in zip(map(scene, numbers(seed)), (4, 6, 8, 5, 7), strict=True):
        # Near the client's images, where a walk leads along the update.
        z = s.model.normalise(s.client.images) + 0.1 * dummies(s)
        given = {"update": s.update, "labels": s.client.labels, "z": z}
        found.append(named(model=s.model, **given, length=0.2, moves=moves))
    return found


@piece("walk(model, update, labels, z, length, moves=20)", _traces, over="walks")
def walk(
    model: Network, update: Update, labels: Tensor, z: Tensor, length: float, moves: int
) -> tuple[Params, Params, float]:
    """train on the dummies from w0, all at once; the middle, the remainder, the next length.

    `moves` steps of length `length`. The middle is the weights before step `moves // 2`; the
    remainder is the mean $\\bar g$ of all gradients minus the one at the middle; the next length
    is $\\lVert u \\rVert^2 / (n \\langle \\bar g, u \\rangle)$ with $u = w_0 - w_T$, $n$ `moves`.
    Pure: chapter 13's `walk` takes model, update and labels from outside.
    """
    order, how = [torch.arange(len(labels))] * moves, Protocol(moves, len(labels))
    rate = torch.tensor(length, dtype=z.dtype)
    path = walking.walk(
        model,
        update.before,
        z,
        labels,
        order,
        how,
        rate=lambda _: rate,
        keep=[moves // 2],
    )
    u = P.sub(update.before, update.after)
    further = P.dot(u, u) / (moves * P.dot(path.mean, u))
    return path.nodes[0], P.sub(path.mean, path.slopes[0]), float(further)


def _path(model, update, labels, z, length, moves):
    """The weights before each step, their gradients, and w0 - wT."""
    path, slopes = [update.before], []
    for _ in range(moves):
        slopes.append(gradient(model, path[-1], z, labels))
        path.append(P.add(path[-1], slopes[-1], -length))
    return path, slopes, P.sub(update.before, update.after)


def _summed(slopes: list[Params], share: float) -> Params:
    return P.scale({k: sum(g[k] for g in slopes) for k in slopes[0]}, share)


def _rate(u: Params, mean: Params, moves: int) -> float:
    return float(P.dot(u, u) / (moves * P.dot(mean, u)))


@walk.mistake("your middle is the segment's: it is the walk's own, before step moves // 2.")
def _(model, update, labels, z, length, moves):
    _, slopes, u = _path(model, update, labels, z, length, moves)
    middle, mean = P.lerp(update.before, update.after, 0.5), _summed(slopes, 1 / moves)
    return middle, P.sub(mean, gradient(model, middle, z, labels)), _rate(u, mean, moves)


@walk.mistake("your middle is one step late: keep the weights before step moves // 2.")
def _(model, update, labels, z, length, moves):
    path, slopes, u = _path(model, update, labels, z, length, moves)
    mean, m = _summed(slopes, 1 / moves), moves // 2
    return path[m + 1], P.sub(mean, slopes[m]), _rate(u, mean, moves)


@walk.mistake("your mean of the gradients is their sum: divide it by moves.")
def _(model, update, labels, z, length, moves):
    path, slopes, u = _path(model, update, labels, z, length, moves)
    total, m = _summed(slopes, 1.0), moves // 2
    return path[m], P.sub(total, slopes[m]), _rate(u, total, moves)


@walk.mistake("your remainder has the wrong sign: it is the mean minus the gradient at the middle.")
def _(model, update, labels, z, length, moves):
    path, slopes, u = _path(model, update, labels, z, length, moves)
    mean, m = _summed(slopes, 1 / moves), moves // 2
    return path[m], P.sub(slopes[m], mean), _rate(u, mean, moves)


@walk.mistake("you return the length you were given: the next one is u.u / (moves mean.u).")
def _(model, update, labels, z, length, moves):
    path, slopes, _ = _path(model, update, labels, z, length, moves)
    return path[moves // 2], P.sub(_summed(slopes, 1 / moves), slopes[moves // 2]), length


def _retraced(seed: int) -> list[dict]:
    found = []
    for case in _traces(seed):
        middle, rest, _ = walk.check.reference(**case)
        given = {k: case[k] for k in ("model", "update", "labels")}
        found.append(named(**given, z=2 * case["z"], middle=middle, remainder=rest, tv=0.1))
    return found


@piece(
    "retrace_loss(model, update, labels, z, middle, remainder, tv=0.003)",
    _retraced,
    over="walks",
    slopes=("z",),
)
def retrace_loss(
    model: Network,
    update: Update,
    labels: Tensor,
    z: Tensor,
    middle: Params,
    remainder: Params,
    tv: float,
) -> Tensor:
    """one minus the cosine of w0 - wT and (gradient at the middle + remainder), plus TV.

    The total variation counts `tv` times. Pure: chapter 13's `retrace_loss` takes model, update
    and labels from outside.
    """
    parts = {"node 0": middle, "rest": remainder}
    parts["ahead"] = {k: torch.zeros_like(v) for k, v in middle.items()}
    parts["stretch"] = {k: torch.ones_like(v) for k, v in middle.items()}
    held = {f"{part} {k}": v for part, w in parts.items() for k, v in w.items()}
    held |= {"alpha": z.new_zeros(()), "walked": z.new_ones(())}
    return objectives.retrace(model, update, labels, tv=tv).loss(z, held, torch.tensor(0))[0]


def _matched(update: Update, guess: Params, z: Tensor, tv: float) -> Tensor:
    u = P.sub(update.before, update.after)
    return 1 - P.cosine(u, guess) + tv * priors.total_variation(z)


@retrace_loss.mistake("you leave out the remainder: add it to the gradient at the middle.")
def _(model, update, labels, z, middle, remainder, tv):
    return _matched(update, gradient(model, middle, z, labels), z, tv)


@retrace_loss.mistake("you subtract the remainder: add it to the gradient at the middle.")
def _(model, update, labels, z, middle, remainder, tv):
    return _matched(update, P.sub(gradient(model, middle, z, labels), remainder), z, tv)


@retrace_loss.mistake("you take the gradient at w0: take it at the middle of the walk.")
def _(model, update, labels, z, middle, remainder, tv):
    return _matched(update, P.add(gradient(model, update.before, z, labels), remainder), z, tv)


@retrace_loss.mistake("you leave out the total variation: add tv times it.")
def _(model, update, labels, z, middle, remainder, tv):
    return _matched(update, P.add(gradient(model, middle, z, labels), remainder), z, 0.0)


@retrace_loss.mistake(
    "the value is right, but only the total variation has a gradient: the gradient at the middle "
    "must not be detached, nor computed without create_graph=True."
)
def _(model, update, labels, z, middle, remainder, tv):
    g = {k: v.detach() for k, v in gradient(model, middle, z, labels).items()}
    return _matched(update, P.add(g, remainder), z, tv)
