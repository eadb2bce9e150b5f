"""The client's side of FedAvg, and the server's: what produces the update an attack sees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor
from torch.func import grad

from smelib import params as P
from smelib import seeds
from smelib.data import Client
from smelib.defences import Defence, none
from smelib.errors import InputError, checked
from smelib.models import Network
from smelib.types import Params, Protocol, Update

Memory: TypeAlias = dict[str, Params]
"""What an optimiser remembers between steps: "momentum", or Adam's "first" and "second" moment."""


def gradient(model: Network, weights: Params, z: Tensor, labels: Tensor) -> Params:
    """$\\nabla_w \\ell(w, D)$ for the trainable weights: of the mean loss on normalised images `z`.

    Integer labels, or probabilities `[N, classes]`. Differentiable in weights, images and labels.
    """
    moving = model.trained(weights)

    def loss(w: Params) -> Tensor:
        return model.loss(model.logits({**weights, **w}, z), labels)

    return grad(loss)(moving)


def batches(samples: int, protocol: Protocol, generator: torch.Generator) -> Iterator[Tensor]:
    """The indices of each of the T local steps: every epoch reshuffled, its last batch smaller."""
    for _ in range(protocol.epochs):
        yield from torch.randperm(samples, generator=generator).split(protocol.batch_size)


def blank(protocol: Protocol, weights: Params) -> Memory:
    """An optimiser's memory before the first step."""
    plain = ["momentum"] if protocol.momentum else []
    names = plain if protocol.optimiser == "sgd" else ["first", "second"]
    return {name: {k: torch.zeros_like(v) for k, v in weights.items()} for name in names}


def move(
    protocol: Protocol, weights: Params, slope: Params, memory: Memory, step: int, steps: int
) -> tuple[Params, Memory]:
    """The move $d_t$ of the client's optimiser: $w_{t+1} = w_t - \\eta d_t$. And its new memory.

    Pure, and differentiable in everything: clients train with it, and attacks simulate them. For
    plain SGD $d_t$ is the gradient `slope`. As in `torch.optim`, `step` counting from 0.
    """
    decay = protocol.weight_decay
    if decay and protocol.optimiser != "adamw":
        slope = P.add(slope, weights, decay)
    if protocol.optimiser == "sgd":
        if protocol.momentum:
            slope = P.add(slope, memory["momentum"], protocol.momentum)
            memory = {"momentum": slope}
    else:
        first = {k: torch.lerp(m, slope[k], 0.1) for k, m in memory["first"].items()}
        second = {k: torch.lerp(v, slope[k] ** 2, 0.001) for k, v in memory["second"].items()}
        memory = {"first": first, "second": second}
        slope = {
            # The clamp keeps the root's slope finite at weights that have no gradient.
            k: (m / (1 - 0.9 ** (step + 1)))
            / ((second[k] / (1 - 0.999 ** (step + 1))).clamp(min=1e-30).sqrt() + 1e-8)
            for k, m in first.items()
        }
        if decay and protocol.optimiser == "adamw":
            slope = P.add(slope, weights, decay)
    factor = protocol.schedule(step, steps)
    return (slope if factor == 1 else P.scale(slope, factor)), memory


@checked
def local_path(
    model: Network,
    client: Client,
    protocol: Protocol,
    *,
    seed: int = 0,
    before: Params | None = None,
) -> Iterator[Params]:
    """The weights $w_0, w_1, \\dots, w_T$ of local training, which the server never sees."""
    if client.shape != model.shape:
        raise InputError(
            f"the client's images are {client.shape} but the network takes {model.shape}."
        )
    weights = model.params() if before is None else before
    model = model.like(weights)
    z = model.normalise(client.images.to(next(iter(weights.values()))))
    labels = client.labels.to(z.device)
    memory, steps = blank(protocol, model.trained(weights)), protocol.steps(len(client))
    yield weights
    order = batches(len(client), protocol, seeds.generator(seed, "batches"))
    for t, batch in enumerate(order):
        moving, slope = model.trained(weights), gradient(model, weights, z[batch], labels[batch])
        d, memory = move(protocol, moving, slope, memory, t, steps)
        weights = {**weights, **P.add(moving, d, -protocol.lr)}
        yield weights


@checked
def local_update(
    model: Network,
    client: Client,
    protocol: Protocol,
    *,
    seed: int = 0,
    before: Params | None = None,
    defence: Defence = none,
) -> Update:
    """What the client sends after E epochs of local training, starting at `before` ($w_0$).

    `seed` shuffles the batches; `before` defaults to the network's own weights; `defence` is what
    the client does to the update before it sends it.
    """
    first = last = None
    for last in local_path(model, client, protocol, seed=seed, before=before):
        first = last if first is None else first
    return defence(Update(first, last, len(client)), seeds.generator(seed, "defence"))


@checked
def average(updates: Sequence[Update]) -> Params:
    """The server's new weights: the clients' weights averaged by sample count.  [McMahan17]"""
    if not updates:
        raise InputError("no client reported, so there is nothing to average.")
    return P.mean([u.after for u in updates], [u.samples for u in updates])


@dataclass(frozen=True)
class Round:
    """One round of FedAvg: who reported, what each sent, and the weights that came of it."""

    reporters: list[int]
    updates: list[Update]
    after: Params


@checked
def fedavg(
    model: Network,
    clients: Sequence[Client],
    protocol: Protocol,
    *,
    rounds: int,
    reporting: float = 1.0,
    seed: int = 0,
    before: Params | None = None,
    defence: Defence = none,
) -> Iterator[Round]:
    """Rounds of FedAvg; each client reports back with probability `reporting`, the rest straggle.

    A round in which nobody reports leaves the weights as they are.
    """
    weights = model.params() if before is None else before
    generator = seeds.generator(seed, "rounds")
    for r in range(rounds):
        drawn = torch.rand(len(clients), generator=generator) < reporting
        reporters = [i for i, reports in enumerate(drawn.tolist()) if reports]
        train = partial(local_update, model, protocol=protocol, before=weights, defence=defence)
        updates = [
            train(client=clients[i], seed=seeds.derive(seed, "round", r, i)) for i in reporters
        ]
        weights = average(updates) if updates else weights
        yield Round(reporters, updates, weights)


@checked
def accuracy(model: Network, weights: Params, client: Client, *, chunk: int = 500) -> float:
    """The share of a client's images that these weights classify correctly."""
    model = model.like(weights)
    z = model.normalise(client.images.to(next(iter(weights.values()))))
    with torch.no_grad():
        guesses = [model.logits(weights, part).argmax(dim=1) for part in z.split(chunk)]
    return float((torch.cat(guesses).cpu() == client.labels.cpu()).float().mean())
