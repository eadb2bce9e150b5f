"""Chapter 14: a sparser update, an attack on what was sent of it, and masks that cancel."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from smelib import aware, defences, seeds
from smelib import params as P
from smelib.checks.cases import named, normal, numbers, scene
from smelib.checks.engine import piece
from smelib.types import Params, Update

RING = 2**16  # what the masks of this check count modulo


def _moves(seed: int) -> list[dict]:
    found = []
    for number in numbers(seed):
        s = scene(number)
        move = P.sub(s.update.after, s.update.before)
        found.append(named(move=move, share=(0.5, 0.2, 0.1, 0.05, 0.02)[number % 5]))
    return found


@piece("sparsify(move, share)", _moves, over="updates")
def sparsify(move: Params, share: float) -> Params:
    """the move with only the share of its entries that are largest in size, of all layers together.

    As many as `math.ceil(share * n)` of the n entries are kept as they are; the others are 0.
    """
    still = {k: torch.zeros_like(v) for k, v in move.items()}
    return defences.top_k(share)(Update(still, move, 1), torch.Generator()).after


def _kept(move: Params, share: float, size) -> Params:
    every = torch.cat([v.flatten() for v in move.values()])
    least = size(every).sort(descending=True).values[math.ceil(share * len(every)) - 1]
    return {k: v * (size(v) >= least) for k, v in move.items()}


@sparsify.mistake("you keep the largest values: a large step down counts too, so take abs().")
def _(move, share):
    return _kept(move, share, lambda v: v)


@sparsify.mistake("you keep the smallest entries: keep the largest.")
def _(move, share):
    return _kept(move, share, lambda v: -v.abs())


@sparsify.mistake("you keep a share of every layer: the largest of all layers together.")
def _(move, share):
    return {k: _kept({k: v}, share, torch.abs)[k] for k, v in move.items()}


@sparsify.mistake("you drop that share of the entries: keep it, and drop the others.")
def _(move, share):
    most = _kept(move, share, torch.abs)
    return {k: v - most[k] for k, v in move.items()}


@sparsify.mistake("you divide what is kept by the share: leave it as long as it was.")
def _(move, share):
    return P.scale(_kept(move, share, torch.abs), 1 / share)


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
