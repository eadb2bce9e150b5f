"""The client's side of FedAvg, and the server's: what produces the update an attack sees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import grad

from smelib import params as P
from smelib.data import Client
from smelib.models import Network
from smelib.types import InputError, Params, Protocol, Update


def gradient(network: Network, weights: Params, z: Tensor, labels: Tensor) -> Params:
    """$\\nabla_w \\ell(w, D)$: the mean cross-entropy's gradient on normalised images `z`.

    Integer labels, or probabilities `[N, classes]`. Differentiable in weights, images and labels.
    """

    def loss(w: Params) -> Tensor:
        return torch.nn.functional.cross_entropy(network.logits(w, z), labels)

    return grad(loss)(weights)


def batches(samples: int, protocol: Protocol, generator: torch.Generator) -> Iterator[Tensor]:
    """The indices of each of the T local steps: every epoch reshuffled, its last batch smaller."""
    for _ in range(protocol.epochs):
        yield from torch.randperm(samples, generator=generator).split(protocol.batch_size)


def local_path(
    network: Network,
    client: Client,
    protocol: Protocol,
    *,
    seed: int = 0,
    before: Params | None = None,
) -> Iterator[Params]:
    """The weights $w_0, w_1, \\dots, w_T$ of local training, which the server never sees."""
    weights = network.params() if before is None else before
    z = network.normalise(client.images.to(next(iter(weights.values()))))
    yield weights
    for batch in batches(len(client), protocol, torch.Generator().manual_seed(seed)):
        step = gradient(network, weights, z[batch], client.labels[batch].to(z.device))
        weights = P.add(weights, step, -protocol.lr)
        yield weights


def local_update(
    network: Network,
    client: Client,
    protocol: Protocol,
    *,
    seed: int = 0,
    before: Params | None = None,
) -> Update:
    """What the client sends after E epochs of plain SGD, starting at `before` ($w_0$).

    `seed` shuffles the batches; `before` defaults to the network's own weights.
    """
    if client.shape != network.shape:
        raise InputError(
            f"the client's images are {client.shape} but the network takes {network.shape}."
        )
    first = last = None
    for last in local_path(network, client, protocol, seed=seed, before=before):
        first = last if first is None else first
    return Update(first, last, len(client))


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


def fedavg(
    network: Network,
    clients: Sequence[Client],
    protocol: Protocol,
    *,
    rounds: int,
    reporting: float = 1.0,
    seed: int = 0,
    before: Params | None = None,
) -> Iterator[Round]:
    """Rounds of FedAvg; each client reports back with probability `reporting`, the rest straggle.

    A round in which nobody reports leaves the weights as they are.
    """
    weights = network.params() if before is None else before
    generator = torch.Generator().manual_seed(seed)
    for r in range(rounds):
        drawn = torch.rand(len(clients), generator=generator) < reporting
        reporters = [i for i, reports in enumerate(drawn.tolist()) if reports]
        seeds = (seed + 1 + r * len(clients) + i for i in reporters)
        updates = [
            local_update(network, clients[i], protocol, seed=s, before=weights)
            for i, s in zip(reporters, seeds, strict=True)
        ]
        weights = average(updates) if updates else weights
        yield Round(reporters, updates, weights)


def accuracy(network: Network, weights: Params, client: Client, *, chunk: int = 500) -> float:
    """The share of a client's images that these weights classify correctly."""
    z = network.normalise(client.images)
    with torch.no_grad():
        guesses = [network.logits(weights, part).argmax(dim=1) for part in z.split(chunk)]
    return float((torch.cat(guesses) == client.labels).double().mean())
