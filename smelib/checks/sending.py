"""Chapter 14: an attack on what a sparse update sent, and masks that cancel."""

from __future__ import annotations

import torch
from torch import Tensor

from smelib import aware, defences, seeds
from smelib import params as P
from smelib.checks.cases import named, normal, numbers, scene
from smelib.checks.engine import piece
from smelib.types import Params, Update

RING = 2**16  # what the masks of this check count modulo


def _sparse(seed: int) -> list[dict]:
    found = []
    for number in numbers(seed):
        s = scene(number)
        sent = defences.top_k((0.5, 0.2, 0.1, 0.05, 0.02)[number % 5])(s.update, s.draw)
        slope = {
            k: (sent.before[k] - s.update.after[k]) + 0.05 * normal(s.draw, *v.shape)
            for k, v in sent.before.items()
        }
        found.append(named(update=sent, slope=slope))
    return found


@piece("match_sent(update, slope)", _sparse, over="sparse updates", slopes=("slope",))
def match_sent(update: Update, slope: Params) -> Tensor:
    """1 - cos between w0 - wT and the dummies' gradient, both only at the weights that moved."""
    return 1 - P.cosine(P.sub(update.before, update.after), aware.sent_only(update)(slope))


def _sent(update: Update) -> Params:
    return P.sub(update.before, update.after)


@match_sent.mistake(
    "you compare with the whole gradient: of the weights that did not move, nothing was said."
)
def _(update, slope):
    return 1 - P.cosine(_sent(update), slope)


@match_sent.mistake("yours is the cosine: the loss is 1 minus it.")
def _(update, slope):
    return P.cosine(_sent(update), aware.sent_only(update)(slope))


@match_sent.mistake("your update points from w0 to wT: the gradient points the other way, w0 - wT.")
def _(update, slope):
    return 1 + P.cosine(_sent(update), aware.sent_only(update)(slope))


@match_sent.mistake("yours is the distance: the update's length says nothing here, take the angle.")
def _(update, slope):
    far = P.sub(_sent(update), aware.sent_only(update)(slope))
    return P.dot(far, far)


@match_sent.mistake("you keep the weights that did not move: keep those that did.")
def _(update, slope):
    seen = aware.sent_only(update)(slope)
    return 1 - P.cosine(_sent(update), P.sub(slope, seen))


def _rounds(seed: int) -> list[dict]:
    found = []
    for number in numbers(seed):
        draw, clients = seeds.generator(number, "checks"), 3 + number % 2
        shared = torch.zeros(clients, clients, 6, dtype=torch.int64)
        for i in range(clients):
            for j in range(i + 1, clients):
                shared[i, j] = shared[j, i] = torch.randint(RING, (6,), generator=draw)
        values = torch.randint(1000, (6,), generator=draw)
        found.append(named(values=values, client=1 + number % 2, shared=shared, ring=RING))
    return found


@piece("masked(values, client, shared, ring)", _rounds, over="messages")
def masked(values: Tensor, client: int, shared: Tensor, ring: int) -> Tensor:
    """the values plus the masks shared with later clients, minus those with earlier ones, mod ring.

    `shared[i, j]` is the mask of clients i and j, and the same as `shared[j, i]`; `shared[i, i]` is
    of no use. Every number of the answer is a whole one from 0 to `ring - 1`.
    """
    return _masked(values, client, shared) % ring


def _masked(values: Tensor, client: int, shared: Tensor) -> Tensor:
    later, earlier = shared[client, client + 1 :], shared[client, :client]
    return values + later.sum(dim=0) - earlier.sum(dim=0)


@masked.mistake("you add every mask: in the sum they would double, and must cancel.")
def _(values, client, shared, ring):
    return (values + shared[client].sum(dim=0)) % ring


@masked.mistake("you add the earlier clients' masks: add the later ones', subtract the earlier.")
def _(values, client, shared, ring):
    return (2 * values - _masked(values, client, shared)) % ring


@masked.mistake("you count past the ring: take the result modulo ring, or its size tells of it.")
def _(values, client, shared, ring):
    return _masked(values, client, shared)


@masked.mistake("you leave out the earlier clients' masks: nothing would cancel theirs.")
def _(values, client, shared, ring):
    return (values + shared[client, client + 1 :].sum(dim=0)) % ring


@masked.mistake("you leave out the later clients' masks: nothing would cancel theirs.")
def _(values, client, shared, ring):
    return (values - shared[client, :client].sum(dim=0)) % ring


@masked.mistake("your message has no values in it: add the masks to them.")
def _(values, client, shared, ring):
    return (_masked(values, client, shared) - values) % ring
