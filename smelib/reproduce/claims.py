"""The paper's claims: each is a list of effects, differences on the same clients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from smelib.errors import InputError, nearest
from smelib.reproduce import cells, names, verdicts
from smelib.reproduce.plan import INITS, REBALANCED, ROWS, Job, cheapest_first, planned
from smelib.reproduce.verdicts import DECIBELS, FACTORS, Interval, Mean, Scale

HOLDS, FAILS, UNDECIDED = "holds", "does not", "undecided"


class Side(NamedTuple):
    """One of the two things that are compared: a quantity of a cell."""

    table: str
    row: str
    method: str
    metric: str = "psnr"


@dataclass(frozen=True)
class Effect:
    """One line of a claim: what `more` has over `less`, and which sign the claim gives it.

    `sign` is 0 where the paper's own numbers give it; `init` says whose initial weights.
    """

    label: str
    more: Side
    less: Side
    init: str = "torch"
    sign: int = 0
    scale: Scale = DECIBELS


@dataclass(frozen=True)
class Claim:
    """What is claimed, in words, and the effects that show it."""

    name: str
    words: str
    effects: tuple[Effect, ...]
    unit: str = "dB"
    ours: bool = False


@dataclass(frozen=True)
class Evidence:
    """An effect as the paper has it and as we measured it on pairs of the same client.

    `networks` says for each pair from which trained network it started; nothing where from none.
    """

    claim: str
    effect: Effect
    paper: Mean | None
    pairs: tuple[float, ...]
    earlier: bool = False
    networks: tuple[str, ...] = ()

    @property
    def counted(self) -> bool:
        """Whether it counts, as cells do: with PyTorch's weights and LeNet's second softmax."""
        rows = (self.effect.more.row, self.effect.less.row)
        single = any(row.startswith("lenet") and "softmax" not in row for row in rows)
        return self.effect.init == "torch" and not single

    @property
    def ours(self) -> Interval:
        """The mean over pairs, with Student's interval; of ratios, their logarithms'."""
        return verdicts.mean(self.pairs).interval

    @property
    def sign(self) -> int:
        """What the claim says: 1 more, -1 less, 0 that there is no difference.

        A difference of the paper's below two of its own standard errors is none.
        """
        if self.effect.sign or self.paper is None:
            return self.effect.sign
        return int(np.sign(self.paper.value)) * (abs(self.paper.value) > 2 * self.paper.error)

    @property
    def level(self) -> bool:
        """Whether the paper has no difference here: its own number lies within two errors of 0."""
        return self.paper is not None and self.sign == 0

    @property
    def verdict(self) -> str:
        """Whether the sign is as claimed; where no difference is claimed, whether there is one.

        The interval lies wholly on the claimed side of zero: it holds; on the other: it does not.
        Nor does it where the interval has zero in it and next to nothing of what is claimed.
        """
        return self._judged(verdicts.mean(self.pairs)) if self.pairs else "not run"

    def _judged(self, mean: Mean) -> str:
        """The verdict on a mean over clients, or over networks."""
        ours = mean.interval
        said = str(verdicts.verdict(ours, self.effect.scale.limit))
        if self.sign == 0:
            return {verdicts.EQUAL: HOLDS, verdicts.DIFFERENT: FAILS}.get(said, UNDECIDED)
        if self.sign * ours.value > ours.half:
            return HOLDS
        against = -self.sign * ours.value > ours.half
        nothing = said == verdicts.EQUAL and self._next_to_nothing(mean)
        return FAILS if nothing or against else UNDECIDED

    def _next_to_nothing(self, mean: Mean) -> bool:
        """Whether less than half of the paper's effect has room, and that effect is excluded."""
        if self.paper is None:
            return True
        gap, most = mean - self.paper, self.sign * mean.value
        small = most + mean.half < abs(self.paper.value) / 2
        return bool(small and abs(gap.value) > gap.half)

    @property
    def over_networks(self) -> Mean | None:
        """The mean where the trained networks are the sample, each the mean of its clients.

        None where there are not two. The interval of `ours` is over clients, networks held fixed.
        """
        held: dict[str, list[float]] = {}
        for network, value in zip(self.networks, self.pairs, strict=False):
            held.setdefault(network, []).append(value)
        if len(held) < 2:
            return None
        return verdicts.mean([np.mean(values) for values in held.values()])

    @property
    def of_these_networks(self) -> bool:
        """Whether there would be another verdict if the trained networks were the sample."""
        mean = self.over_networks
        return mean is not None and self._judged(mean) != self.verdict

    @property
    def close(self) -> bool:
        """Whether it is undecided though there are as many clients as were ever added."""
        return self.verdict == UNDECIDED and len(self.pairs) >= verdicts.LOOKS[-1]

    @property
    def why(self) -> str:
        """What leaves it undecided, in words; empty where it is decided."""
        if self.verdict != UNDECIDED:
            return ""
        return "too close" if self.close else "too few clients"

    @property
    def size(self) -> str:
        """Whether the effect is as large as the paper's, by the rule for cells; or empty.

        Empty too where the paper's is smaller than the band, in which anything would be equal.
        """
        if self.paper is None or not self.pairs:
            return ""
        gap = verdicts.mean(self.pairs) - self.paper
        said = str(verdicts.verdict(gap, self.effect.scale.limit))
        small = abs(self.paper.value) <= self.effect.scale.limit
        return "" if said == verdicts.EQUAL and small else said


def _settings(sizes: Sequence[int] = (10, 50)) -> Iterator[tuple[str, str]]:
    """Rows of the main table with their names for readers."""
    for data in ("femnist", "cifar100"):
        for n in sizes:
            for e in (10, 20, 50):
                row = f"{data}-E{e}-N{n}"
                yield row, names.row("main", row)


def _over(more: str, less: str, rows: Iterator[tuple[str, str]], **common: object) -> list[Effect]:
    """One attack against another in rows of the main table."""
    return [
        Effect(said, Side("main", row, more), Side("main", row, less), **common)
        for row, said in rows
    ]


def _against_dlfa() -> list[Effect]:
    rows = [(r, said) for r, said in _settings() if r != "cifar100-E50-N50"]
    found = _over("sme", "dlfa", rows)
    for r in (5, 10, 20):
        for n in (10, 50):
            for e in (10, 20):
                row = f"R{r}-E{e}-N{n}"
                sides = (Side("trained", row, m) for m in ("sme", "dlfa"))
                found.append(Effect(names.row("trained", row), *sides))
    for printed, ours in (
        ("mlp", "mlp"),
        ("lenet", "lenet_softmax"),  # the form that is the paper's
        ("resnet8", "resnet8"),
        ("vit", "vit"),
    ):
        sides = (Side("architectures", f"{ours}-E10-N10", m) for m in ("sme", "dlfa"))
        found.append(Effect(names.row("architectures", f"{printed}-E10-N10"), *sides))
    return found


def _rounds() -> list[Effect]:
    """The first round's clients again, with networks that have been trained for longer."""
    found = []
    for method in ("sme", "ig", "dlfa"):
        for n in (10, 50):
            for e in (10, 20):
                for r in (5, 10, 20):
                    later = Side("trained", f"R{r}-E{e}-N{n}", method)
                    first = Side("main", f"femnist-E{e}-N{n}", method)
                    said = f"{method.upper()} after {r} rounds, E = {e}, N = {n}"
                    found.append(Effect(said, later, first))
    return found


def _large() -> list[Effect]:
    found = []
    for data, said in (("femnist", "FEMNIST"), ("cifar100", "CIFAR-100")):
        for e in (10, 20, 50):
            sides = (Side("main", f"{data}-E{e}-N{n}", "sme") for n in (50, 10))
            found.append(Effect(f"SME, {said}, E = {e}, N = 50 against 10", *sides, sign=-1))
    fifty = Side("main", "cifar100-E20-N50", "sme")
    for n in (100, 200):
        many = Side("large_n", f"cifar100-E20-N{n}", "sme")
        found.append(Effect(f"SME, CIFAR-100, E = 20, N = {n} against 50", many, fifty, sign=-1))
    for n in (100, 200):
        sides = (Side("large_n", f"cifar100-E20-N{n}", m) for m in ("sme", "ig"))
        found.append(Effect(f"SME minus IG, CIFAR-100, E = 20, N = {n}", *sides, sign=1))
    return found


def _cost() -> list[Effect]:
    found = []
    for row in ROWS["cost"]:
        sides = (Side("cost", row, m, "hours_per_100") for m in ("dlfa", "sme"))
        found.append(Effect(names.row("cost", row), *sides, sign=1, scale=FACTORS))
    return found


def _low_rank() -> list[Effect]:
    found = []
    for row in ("E10-B10-R1", "E10-B50-R1", "E10-B10-R5", "E10-B10-R10", "E10-B10-R20"):
        sides = (Side("low_rank", row, "path", m) for m in ("cos_best", "cos_start"))
        _, batch, rounds = row.split("-")
        after = "untrained" if rounds == "R1" else f"after {rounds[1:]} rounds"
        said = f"{after}, batches of {batch[1:]}"
        found.append(Effect(said, *sides, sign=1, scale=verdicts.COSINES))
    return found


def _rebalanced() -> list[Effect]:
    cnn = partial(Side, "main", "femnist-E10-N10")
    lenet = partial(Side, "architectures", "lenet_softmax-E10-N10")
    trained = {r: partial(Side, "trained", f"R{r}-E10-N10") for r in (5, 10, 20)}
    return [
        Effect("over the authors' factor, FEMNIST, E = 10", cnn(REBALANCED), cnn("dlfa"), sign=1),
        Effect("over the authors' factor, LeNet, E = 10", lenet(REBALANCED), lenet("dlfa"), sign=1),
        *(
            Effect(
                f"over the authors' factor, FEMNIST after {r} rounds, E = 10",
                at(REBALANCED),
                at("dlfa"),
                sign=1,
            )
            for r, at in trained.items()
        ),
        Effect("under SME, FEMNIST, E = 10", cnn(REBALANCED), cnn("sme"), sign=-1),
    ]


def _recovered() -> list[Effect]:
    return [
        Effect(
            f"{method.upper()}, FEMNIST, E = {e}, N = {n}",
            Side("main", f"femnist-E{e}-N{n}-recovered", method),
            Side("main", f"femnist-E{e}-N{n}", method),
        )
        for e, n in ((10, 10), (10, 50), (50, 50))
        for method in ("sme", "ig")
    ]


def _beyond() -> tuple[Claim, ...]:
    """What the book says of its own account."""
    return (
        Claim(
            "retrace-over-sme",
            "Beyond the paper: retrace, which sees what SME sees, recovers better images",
            tuple(_over("retrace", "sme", _settings(), sign=1)),
            ours=True,
        ),
        Claim(
            "rebalanced",
            "Beyond the paper: DLFA gains when its matching term is weighed by the update's length",
            tuple(_rebalanced()),
            ours=True,
        ),
        Claim(
            "recovered-labels",
            "Beyond the paper: labels read from the update, few of them wrong, serve as well as "
            "the true ones",
            tuple(_recovered()),
            ours=True,
        ),
    )


@cache
def claims() -> dict[str, Claim]:
    """All claims by name, in the order in which a reader meets them."""
    found = (
        Claim(
            "sme-over-ig",
            "SME recovers better images than IG",
            tuple(_over("sme", "ig", _settings())),
        ),
        Claim(
            "sme-over-dlfa",
            "SME against DLFA: ahead after few epochs, level later",
            tuple(_against_dlfa()),
        ),
        Claim(
            "slow-lenet",
            "DLFA on LeNet gains where the client learns more slowly",
            tuple(
                Effect(
                    f"{said}, rate 0.004 against 0.4",
                    Side("architectures", f"{form}_slow-E10-N10", "dlfa"),
                    Side("architectures", f"{form}-E10-N10", "dlfa"),
                    sign=1,
                )
                for form, said in (("lenet", "one softmax"), ("lenet_softmax", "two softmaxes"))
            ),
        ),
        Claim("rounds", "Training protects: PSNR falls with the rounds before", tuple(_rounds())),
        Claim(
            "large-n",
            "PSNR falls with the images, and so the steps, and SME stays ahead of IG",
            tuple(_large()),
        ),
        Claim(
            "cost",
            "DLFA's 400 steps take many times the computing time of SME's 1000",
            tuple(_cost()),
            unit="times",
        ),
        Claim(
            "low-rank",
            "The best point of the segment has a better cosine with the update than w0",
            tuple(_low_rank()),
            unit="",
        ),
    )
    return {claim.name: claim for claim in (*found, *_beyond())}


def _paper(given: dict, side: Side) -> Mean | None:
    """The paper's value of one side; none where it prints none."""
    row = side.row.replace("lenet_softmax", "lenet")
    if (side.table, row, side.method, side.metric) not in given:
        return None
    return cells.theirs(given, side.table, row, side.method, side.metric)


def _effect(given: dict, effect: Effect) -> Mean | None:
    """The paper's effect. It prints no paired error, so the two errors are added: too much."""
    more, less = (_paper(given, side) for side in (effect.more, effect.less))
    if more is None or less is None:
        return None
    more, less = more.on(effect.scale), less.on(effect.scale)
    freedom = min(more.freedom, less.freedom)
    return Mean(float(more.value - less.value), float(np.hypot(more.error, less.error)), freedom)


def _pairs(shelf: cells.Shelf, effect: Effect) -> tuple[list[tuple[dict, dict]], bool]:
    """The finished lines of both sides, client by client, and whether they are of an old kernel."""
    sides = (effect.more, effect.less)
    runs = shelf.of(*((s.table, s.row, s.method, effect.init) for s in sides))
    more, less = (cells.good(lines) for lines in runs)
    if effect.more.row != effect.less.row:  # before and after: another network, the same client
        less = {seed: line for (seed, _), line in less.items()}
        found = [(line, less[seed]) for (seed, _), line in more.items() if seed in less]
    else:
        found = [(line, less[k]) for k, line in more.items() if k in less]
    return found, cells.is_earlier(line for pair in found for line in pair)


def weigh(shelf: cells.Shelf) -> list[Evidence]:
    """Every effect of every claim, beside what a folder of results has for it.

    With PyTorch's weights always; with the other initialisation where there are pairs.
    """
    given, found = cells.paper(), []
    for claim in claims().values():
        for effect in claim.effects:
            for init in INITS:
                one = replace(effect, init=init)
                pairs, earlier = _pairs(shelf, one)
                values = [
                    [
                        cells.number(x, s.metric)
                        for x, s in zip(p, (one.more, one.less), strict=True)
                    ]
                    for p in pairs
                ]
                if one.scale.ratio:
                    values = np.log(values) if values else []
                if not pairs and init != "torch":
                    continue
                found.append(
                    Evidence(
                        claim.name,
                        one,
                        None if claim.ours else _effect(given, one),
                        tuple(float(a - b) for a, b in values),
                        earlier,
                        tuple(more["network"] for more, _ in pairs if more["network"]),
                    )
                )
    return found


def jobs(name: str, *, seeds: int | None = None) -> list[Job]:
    """What a claim needs: both sides of each of its effects on the same clients, cheapest first.

    So many clients as the plan gives to both sides, or `seeds` of them everywhere.
    """
    if name not in claims():
        raise nearest("claim", name, list(claims()))
    if seeds is not None and seeds < 1:
        raise InputError(f"--seeds {seeds}: a claim needs at least one client.")
    found = set()
    for effect in claims()[name].effects:
        for init in INITS:
            sides = [(s.table, s.row, s.method, init) for s in (effect.more, effect.less)]
            count = min(planned(*side) for side in sides)
            if seeds is not None and (count or init == "torch"):
                count = seeds
            for table, row, method, weights in sides:
                first = ROWS[table][row].first
                found |= {Job(table, row, method, first + k, weights) for k in range(count)}
    return cheapest_first(found)
