"""Secure aggregation: the server learns the sum of m updates, and of a single one nothing.

The protocol of [Bonawitz17] without its cryptography: every two clients share a mask, which one of
them adds and the other subtracts, so that the masks cancel in the sum. Arithmetic is modulo $2^k$,
on fixed-point numbers: there a mask is uniform and cancels exactly, and with floats it would do
neither. Here one seed stands for all keys that the clients agreed on, and for their shares.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from smelib import params as P
from smelib import seeds
from smelib.errors import InputError, checked, whole
from smelib.types import Params, Update


@dataclass(frozen=True)
class Message:
    """What the server gets of one client: whole numbers below $2^k$, and N in the clear."""

    numbers: Tensor
    samples: int


@dataclass(frozen=True)
class SecureSum:
    """One round of secure aggregation among `clients` clients.

    Numbers have `fraction` bits after the point and count modulo $2^k$, k = `modulus`. With fewer
    than `least` reports nothing is revealed. Every client also adds a mask of its own
    (`double=True`), without which a message that comes late is an open book: see `late`.
    """

    clients: int
    seed: int = 0
    least: int = 2
    fraction: int = 28
    modulus: int = 56
    double: bool = True

    def __post_init__(self) -> None:
        for name in ("clients", "least", "fraction", "modulus"):
            object.__setattr__(self, name, whole(getattr(self, name), f"{name}="))
        if not self.least <= self.clients:
            raise InputError(f"least={self.least} of {self.clients} clients can never report.")
        if not self.fraction < self.modulus <= 62:
            raise InputError(
                f"{self.fraction} bits after the point of {self.modulus}: there must be some "
                "before it, and at most 62 altogether."
            )

    def send(self, client: int, update: Update) -> Message:
        """What client i sends: $N_i \\Delta_i$ in fixed point, under all its masks."""
        self._known([client])
        own = self._ring(self.encode(update) + self._pairs(client, range(self.clients), update))
        if self.double:
            own = self._ring(own + self._mask(update, client))
        return Message(own, update.samples)

    def receive(self, before: Params, messages: Mapping[int, Message]) -> Update:
        """What the server learns: the sum of those who reported, as the update of one client.

        Who reported and who dropped out is settled first. Of the former the others reveal the own
        mask, of the latter the shared ones, which cancel with nobody's now; never both of one.
        """
        self._known(messages)
        if len(messages) < self.least:
            raise InputError(
                f"{len(messages)} of {self.clients} clients reported and {self.least} must; the "
                "others reveal no masks, and the round is lost."
            )
        total = sum(message.numbers for message in messages.values())
        dropped = [c for c in range(self.clients) if c not in messages]
        for client in messages:
            total = total - self._pairs(client, dropped, total)
            if self.double:
                total = total - self._mask(total, client)
        samples = sum(message.samples for message in messages.values())
        return self._decode(before, self._ring(total), samples)

    def late(self, before: Params, client: int, message: Message) -> Update:
        """What the server reads in a message that comes after its sender was counted as dropped.

        Its shared masks were revealed, so only its own is left. Without one the server reads the
        update, and a server that lies about who dropped out reads anybody's.
        """
        self._known([client])
        bare = message.numbers - self._pairs(client, range(self.clients), message.numbers)
        return self._decode(before, self._ring(bare), message.samples)

    def encode(self, update: Update) -> Tensor:
        """$N \\Delta$ as whole numbers of $2^{-f}$, refused where the clients' sum could wrap."""
        move = torch.cat([v.detach().double().flatten() for v in _move(update).values()])
        scaled = (move * update.samples * 2.0**self.fraction).round()
        if not bool((scaled.abs() < 2.0 ** (self.modulus - 1) / self.clients).all()):
            raise InputError(
                f"the update times N={update.samples} is too long for {self.modulus} bits with "
                f"{self.fraction} after the point, or not finite; clip it first, or take fewer "
                "after the point."
            )
        return scaled.long().cpu()

    def _decode(self, before: Params, numbers: Tensor, samples: int) -> Update:
        half = 1 << (self.modulus - 1)
        mean = (self._ring(numbers + half) - half).double() / (2.0**self.fraction * samples)
        parts = mean.split([v.numel() for v in before.values()])
        after = {
            k: v + part.view(v.shape).to(v)
            for (k, v), part in zip(before.items(), parts, strict=True)
        }
        return Update(before, after, samples)

    def _ring(self, numbers: Tensor) -> Tensor:
        # Two's complement: where 64 bits overflowed, the lower ones are right all the same.
        return numbers & ((1 << self.modulus) - 1)

    def _mask(self, like: Update | Tensor, *who: int) -> Tensor:
        size = like.numel() if isinstance(like, Tensor) else _size(like)
        generator = seeds.generator(self.seed, "masks", *who)
        return torch.randint(1 << self.modulus, (size,), generator=generator)

    def _pairs(self, client: int, others: Iterable[int], like: Update | Tensor) -> Tensor:
        """The masks that a client shares with others: it adds those with later ones."""
        size = like.numel() if isinstance(like, Tensor) else _size(like)
        total = torch.zeros(size, dtype=torch.int64)
        for other in others:
            if other != client:
                mask = self._mask(like, min(client, other), max(client, other))
                total = total + (mask if client < other else -mask)
        return total

    def _known(self, clients: Iterable[int]) -> None:
        for client in clients:
            if client not in range(self.clients):
                raise InputError(f"there is no client {client!r}: they are 0..{self.clients - 1}.")


@checked
def secure_sum(
    updates: Sequence[Update], *, dropped: Collection[int] = (), seed: int = 0, least: int = 2
) -> Update:
    """What the server sees of these clients' updates, all masked and those in `dropped` lost.

    The sum, as one update: the mean move weighed by N, and the N of all who reported.
    """
    if not updates:
        raise InputError("no client takes part, so there is nothing to add up.")
    protocol = SecureSum(len(updates), seed, min(least, len(updates)))
    first = updates[0].before
    for i, update in enumerate(updates):
        same = update.before.keys() == first.keys() and all(
            torch.equal(v, update.before[k]) for k, v in first.items()
        )
        if not same:
            raise InputError(f"update {i} starts from other weights than update 0; a sum has one.")
    sent = {i: protocol.send(i, u) for i, u in enumerate(updates) if i not in dropped}
    return protocol.receive(first, sent)


def _move(update: Update) -> Params:
    return P.sub(update.after, update.before)


def _size(update: Update) -> int:
    return sum(v.numel() for v in update.before.values())
