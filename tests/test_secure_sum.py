"""Secure aggregation: the masks cancel exactly, and one message alone says nothing."""

from __future__ import annotations

import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor

import smelib
from smelib import params as P
from smelib.defences import SecureSum, secure_sum
from smelib.errors import InputError
from smelib.types import Update

SIZE = 30_000


def updates(count: int = 3, size: int = SIZE) -> list[Update]:
    draw = torch.Generator().manual_seed(0)
    before = {"a": torch.randn(size - 7, generator=draw), "b": torch.randn(7, generator=draw)}
    return [
        Update(
            before,
            {k: v + 0.01 * torch.randn(v.shape, generator=draw) for k, v in before.items()},
            10 + i,
        )
        for i in range(count)
    ]


def p_values(numbers: Tensor, bits: int) -> list[float]:
    """Chi-square tests that the highest and the lowest seven bits are uniform."""
    ends = (numbers >> (bits - 7), numbers & 127)
    return [float(chisquare(part.bincount(minlength=128).numpy()).pvalue) for part in ends]


def test_masks_cancel_exactly() -> None:
    """In the numbers that the server adds up, not only in what it makes of them."""
    given, protocol = updates(), SecureSum(3, seed=4, double=False)
    ring = (1 << protocol.modulus) - 1
    masked = sum(protocol.send(i, u).numbers for i, u in enumerate(given)) & ring
    bare = sum(protocol.encode(u) for u in given) & ring
    print(f"numbers that differ after the masks: {int((masked != bare).sum())} of {SIZE}")
    assert torch.equal(masked, bare)


@pytest.mark.parametrize("double", [True, False])
@pytest.mark.parametrize("dropped", [(), (0,), (1,), (2,)])
def test_the_server_learns_the_sum_of_those_who_reported(dropped: tuple, double: bool) -> None:
    given = updates(4, 500)
    protocol = SecureSum(4, seed=1, double=double)
    there = {i: u for i, u in enumerate(given) if i not in dropped}
    got = protocol.receive(given[0].before, {i: protocol.send(i, u) for i, u in there.items()})
    assert got.samples == sum(u.samples for u in there.values())
    exact = sum(protocol.encode(u) for u in there.values()).double() / 2**protocol.fraction
    mean = torch.cat([v for v in P.sub(got.after, got.before).values()]).double()
    assert torch.allclose(mean, exact / got.samples, atol=3e-7)
    average = smelib.average(list(there.values()))
    assert all(torch.allclose(v, average[k], atol=3e-7) for k, v in got.after.items())


@pytest.mark.parametrize("double", [True, False])
def test_one_masked_update_is_uniform(double: bool) -> None:
    given, protocol = updates(), SecureSum(3, seed=0, double=double)
    for i, u in enumerate(given):
        found = p_values(protocol.send(i, u).numbers, protocol.modulus)
        print(f"client {i}: chi-square p-values {found[0]:.3f} (high bits), {found[1]:.3f} (low)")
        assert min(found) > 0.001
    bare = protocol.encode(given[0]) & ((1 << protocol.modulus) - 1)
    assert min(p_values(bare, protocol.modulus)) < 1e-100, "the test sees what is not"


def test_no_two_masks_are_the_same() -> None:
    """Else the difference of two messages would be that of two updates."""
    given, protocol = updates(3, 200), SecureSum(3)
    ring = (1 << protocol.modulus) - 1
    left = [(protocol.send(i, u).numbers - protocol.encode(u)) & ring for i, u in enumerate(given)]
    assert all(int((a == b).sum()) == 0 for a, b in [left[:2], left[1:], left[::2]])
    other = SecureSum(3, seed=1).send(0, given[0]).numbers
    assert int((other == protocol.send(0, given[0]).numbers).sum()) == 0


def test_a_late_message_is_an_open_book_without_a_mask_of_its_own() -> None:
    given = updates(3, 2000)
    read = {}
    for double in (False, True):
        protocol = SecureSum(3, double=double)
        got = protocol.late(given[1].before, 1, protocol.send(1, given[1]))
        read[double] = float(P.norm(P.sub(got.after, given[1].after)))
    length = float(P.norm(P.sub(given[1].after, given[1].before)))
    print(f"error of a late message, single mask {read[False]:.2g}, double {read[True]:.2g}")
    assert read[False] < 1e-4 * length
    assert read[True] > 1e4 * length


def test_the_sum_of_real_updates_is_an_update_that_an_attack_takes(tiny: object) -> None:
    sent = [
        smelib.local_update(tiny.network, tiny.client, tiny.protocol, seed=seed) for seed in (0, 1)
    ]
    got = secure_sum(sent)
    assert got.samples == 2 * len(tiny.client)
    labels = torch.cat([tiny.labels, tiny.labels])
    stolen = smelib.attacks.sme(tiny.network, got, labels, steps=2, progress=False)
    assert len(stolen.images) == got.samples
    alone = secure_sum(sent, dropped=[1], least=1)
    assert all(torch.allclose(v, sent[0].after[k], atol=1e-8) for k, v in alone.after.items())


def test_no_update_is_changed() -> None:
    given = updates(2, 100)
    kept = [{k: v.clone() for k, v in u.after.items()} for u in given]
    secure_sum(given)
    assert all(
        torch.equal(u.after[k], v) for u, w in zip(given, kept, strict=True) for k, v in w.items()
    )


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: secure_sum([]), "nothing to add up"),
        (lambda: secure_sum(updates(3, 20), dropped=[0, 1]), "1 of 3 clients reported and 2 must"),
        (lambda: secure_sum([updates(1, 20)[0], updates(1, 30)[0]]), "other weights"),
        (lambda: SecureSum(2, least=3), "can never report"),
        (lambda: SecureSum(2, fraction=60, modulus=50), "some before it"),
        (lambda: SecureSum(2).send(2, updates(1, 20)[0]), "no client 2"),
        (lambda: SecureSum(50, modulus=29).send(0, updates(1, 20)[0]), "too long for 29 bits"),
        (
            lambda: SecureSum(2).encode(
                Update({"w": torch.ones(1)}, {"w": torch.full((1,), torch.nan)}, 1)
            ),
            "not finite",
        ),
    ],
)
def test_what_cannot_be_summed_is_a_sentence(make: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        make()
