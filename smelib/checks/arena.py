"""Assignment 6's federation: what a defence costs its clients, and what is taken in spite of it.

The attacker knows the defence's code, the network, the labels and how long a client's move usually
is. It does not know the client's images or the seed that the client drew; it may ask again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from smelib import attacks, aware, data, federated, metrics, seeds
from smelib import params as P
from smelib.checks import engine
from smelib.checks.defending import clip_and_noise, combine, keep_largest
from smelib.checks.engine import NotYet
from smelib.data import Client
from smelib.models import Network, wrap
from smelib.types import Params, Protocol, Reconstruction, Update

CLIENTS, SAMPLES, ROUNDS = 16, 4, 12
PROTOCOL = Protocol(2, SAMPLES, 0.1)
WATCHED, ATTACKED = 2, (0, ROUNDS - 1)  # the attacked clients, and the rounds in which they are
ASKED = 64  # how often the server asks each of them, with new seeds
STEPS = 100
CHANCE = 0.1

Case: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What a defence made of a case, and the argument that it overwrote, if any."""

    raw: Any
    overwrote: str = ""


Ask: TypeAlias = Callable[[list[Case]], list[Answer]]
"""A defence, called on many cases at once: `before`, `after` and `seed` of each."""


class Refused(ValueError):  # noqa: N818
    """A rule that a defence breaks; the message is its name and what to do."""


@dataclass(frozen=True)
class Ground:
    """A federation of digits, and what its attacker knows without any update."""

    seed: int
    model: Network
    clients: tuple[Client, ...]
    other: Client  # whose move tells the usual length
    test: Client
    prior: float  # dB of each class's mean image, taken for the watched clients' images


@cache
def ground(seed: int) -> Ground:
    """The federation that a seed stands for."""
    held = data.load("mnist")
    rng = seeds.numpy_generator(seed, "checks", "federation")
    order = rng.permutation(len(held))
    test, rest = held.client(order[:1000]), order[1000:]
    queues = [list(rest[held.labels[rest] == y]) for y in range(held.classes)]
    # Four different digits each: of two alike an attacker mixes the strokes.
    own = [
        held.client([queues[y].pop() for y in rng.permutation(held.classes)[:SAMPLES]])
        for _ in range(CLIENTS + 1)
    ]
    public = held.client(np.concatenate(queues))
    means = [public.images[public.labels == y].mean(dim=0) for y in range(test.classes)]
    pairs = [
        (means[int(y)], image)
        for client in own[:WATCHED]
        for image, y in zip(client.images, client.labels, strict=True)
    ]
    prior = float(np.mean([metrics.psnr(*pair) for pair in pairs]))
    return Ground(seed, _network(seed, test), tuple(own[:-1]), own[-1], test, prior)


def _network(seed: int, like: Client) -> Network:
    draw = seeds.generator(seed, "checks", "weights")
    sizes = (math.prod(like.shape), 64, like.classes)
    layers: list[nn.Module] = [nn.Flatten()]
    for inputs, outputs in pairwise(sizes):
        layer = nn.utils.skip_init(nn.Linear, inputs, outputs)
        for p in layer.parameters():
            p.data = (2 * torch.rand(p.shape, generator=draw) - 1) / inputs**0.5
        layers += [layer, nn.Tanh()]
    return wrap(nn.Sequential(*layers[:-1]), like.shape, like.classes, mean=(0.5,), std=(0.5,))


def asking(defend: Callable[[Params, Params, int], Params]) -> Ask:
    """A defence of this process as one that is asked."""

    def ask(cases: list[Case]) -> list[Answer]:
        with engine.undisturbed():
            found = [engine.outcome(defend, case, ()) for case in cases]
        pairs = zip(found, cases, strict=True)
        return [Answer(o.raw, engine.overwritten(o.given, case)) for o, case in pairs]

    return ask


def _case(before: Params, after: Params, seed: int) -> Case:
    return {"before": before, "after": after, "seed": seed}


def _secret(draw: torch.Generator) -> int:
    return int(torch.randint(2**31, (), generator=draw))


# The rules.


def told(case: Case, answer: Answer) -> Params:
    """What was sent, if it is weights; refused otherwise."""
    before, sent = case["before"], answer.raw
    if answer.overwrote:
        raise Refused(f"it overwrites its argument {answer.overwrote}: work on a copy.")
    if not isinstance(sent, dict) or not all(isinstance(v, Tensor) for v in sent.values()):
        raise Refused(f"it sends {engine.form(sent)}: send a dict of tensors, like after.")
    if sent.keys() != before.keys():
        raise Refused(f"it sends weights of other names: {', '.join(map(str, sent))}.")
    for name, w in before.items():
        if sent[name].shape != w.shape or not sent[name].is_floating_point():
            raise Refused(
                f"it sends another form: {name} is {engine.form(sent[name])} of "
                f"{sent[name].dtype}, and should be {engine.form(w)} of {w.dtype}."
            )
        if not bool(sent[name].isfinite().all()):
            raise Refused(f"it sends NaN or infinity in {name}: every number must be finite.")
    return {k: sent[k].to(w) for k, w in before.items()}


def _asked(ask: Ask, cases: list[Case]) -> list[Params]:
    return [told(*pair) for pair in zip(cases, ask(cases), strict=True)]


def _flat(weights: Params) -> Tensor:
    return torch.cat([v.flatten() for v in weights.values()]).double()


def _repeats(ask: Ask, cases: list[Case], sent: list[Params]) -> None:
    """The same calls again, in a process of their own where there is one, the last first."""
    again = _asked(ask, cases[::-1])[::-1]
    for one, other, case in zip(sent, again, cases, strict=True):
        gap = (_flat(one) - _flat(other)).norm()
        if float(gap) > 1e-4 * float((_flat(one) - _flat(case["before"])).norm()):
            raise Refused(
                "two answers to one question: the same before, after and seed gave other weights "
                "when asked again. Draw from torch.Generator().manual_seed(seed) alone, and "
                "remember nothing between calls."
            )


def _consistent(moves: Tensor) -> tuple[Tensor, float]:
    """The mean of several moves, and the square of its length that is not chance."""
    mean = moves.mean(dim=0)
    chance = float(moves.var(dim=0).sum()) / len(moves)
    square = float(mean.square().sum())
    return mean, square - chance if square > 1.5 * chance else 0.0


def _along(before: Params, move: Params, sent: Tensor) -> None:
    """In every large layer of which something is sent, it is sent along the client's move."""
    sizes = [v.numel() for v in before.values()]
    for name, a, d in zip(before, sent.split(sizes), _flat(move).split(sizes), strict=True):
        d = d * (a != 0)
        cosine = float(a @ d) / (float(a.norm() * d.norm()) or 1.0)
        if len(d) >= 100 and bool(a.any()) and cosine < 0.2:
            raise Refused(
                f"it is encoded: what it sends of {name} is not along the client's move (cosine "
                f"{cosine:.2f}), turned or shuffled. An attacker who knows your code turns it back."
            )


def rules(ask: Ask, seed: int, *, many: int = 16) -> None:
    """Refuse, by name, a defence that hides nothing from one who knows its code, or sends nothing.

    It is asked for a client's move and for the move mirrored, with the same seeds.
    """
    at = ground(seed)
    draw = seeds.generator(seed, "checks", "rules")
    update = federated.local_update(at.model, at.clients[0], PROTOCOL, seed=seed)
    before, move = update.before, P.sub(update.after, update.before)
    chosen = [_secret(draw) for _ in range(many)]
    ways = [P.add(before, move, sign) for sign in (1.0, -1.0)]
    cases = [_case(before, way, s) for way in ways for s in chosen]
    near = _case(before, P.add(before, move, 1.001), chosen[0])
    *answers, nearby = _asked(ask, [*cases, near])
    start = _flat(before)
    sent = torch.stack([_flat(a) - start for a in answers])
    if not bool(sent.any()):
        raise Refused("it returns the old weights: a client that sends nothing is not defended.")
    _repeats(ask, [cases[i] for i in (0, 1, many)], [answers[i] for i in (0, 1, many)])
    there, back = sent[:many], sent[many:]
    different = len({row.numpy().tobytes() for row in there})
    if 1 < different < many:
        raise Refused(
            f"few values: {many} seeds gave {different} different answers, so an attacker who "
            "knows your code tries them all. Use the whole seed."
        )
    if float((_flat(nearby) - start - there[0]).norm()) > 0.2 * float(there[0].norm()):
        raise Refused(
            "it draws from the weights: a move longer by a thousandth, with the same seed, gives "
            "another answer altogether. Randomness comes from the seed, which is the only secret."
        )
    _, constant = _consistent((there + back) / 2)
    odd, own = _consistent((there - back) / 2)
    if constant > 0.25 * own:
        raise Refused(
            "it has a constant part: the same comes for a move and for its mirror image, a fixed "
            "mask or training on data of your own. An attacker who knows your code subtracts it."
        )
    if own:
        _along(before, move, odd)


# The federation, and its attacker.


@dataclass(frozen=True)
class Played:
    """What a defence kept and what was taken: accuracy, and dB by attack; the prior's for nothing.

    The score is $100 \\cdot \\text{kept} \\cdot \\text{stopped}$: the share of the undefended
    accuracy above chance that is left, times the share of the undefended leak that is gone. A leak
    is in dB above the prior.
    """

    accuracy: float
    psnrs: dict[str, float]
    prior: float

    @property
    def taken(self) -> float:
        """The best attack's PSNR in dB; whoever fails completely still has the prior."""
        return max(self.prior, *self.psnrs.values())

    def kept(self, undefended: Played) -> float:
        """The share of the accuracy above chance that is left."""
        share = (self.accuracy - CHANCE) / (undefended.accuracy - CHANCE)
        return min(1.0, max(0.0, share))

    def stopped(self, undefended: Played) -> float:
        """The share of the leak that is gone."""
        leak = (self.taken - self.prior) / max(1e-9, undefended.taken - undefended.prior)
        return min(1.0, max(0.0, 1 - leak))

    def score(self, undefended: Played) -> float:
        """From 0 to 100."""
        return 100 * self.kept(undefended) * self.stopped(undefended)


def _quiet(before: Params, known: Params, answers: list[Params]) -> Params | None:
    """What is known without the weights whose answers vary far more than most; none do: nothing."""
    spread = torch.stack([_flat(a) for a in answers]).std(dim=0)
    calm = spread <= 4 * spread.median()
    if bool(calm.all()) or not bool(calm.any()):
        return None
    parts = calm.split([w.numel() for w in before.values()])
    named = zip(before.items(), parts, strict=True)
    return {k: torch.where(part.view(w.shape), known[k], w) for (k, w), part in named}


def _taken(at: Ground, who: int, before: Params, answers: list[Params]) -> dict[str, float]:
    """PSNR of each attack on one client in one round."""
    client = at.clients[who]
    usual = federated.local_update(at.model, at.other, PROTOCOL, before=before)
    sent = Update(before, answers[0], len(client))
    known = combine.check.reference(before, answers)
    typical = float(P.norm(P.sub(usual.after, before)))
    given = {"seed": at.seed, "steps": STEPS, "progress": False, "device": "cpu"}

    def knows(after: Params, *, signs: bool = False, **options: float) -> Reconstruction:
        """SME on what was sent of these weights, brought back to the usual length."""
        update = Update(before, after, len(client))
        only, soft = aware.sent_only(update), aware.soft_signs(update)
        length = float(P.norm(P.sub(after, before)))
        update = aware.longer(update, typical / length) if length else update
        seen = (lambda slope: only(soft(slope))) if signs else only
        return aware.sme(at.model, update, client.labels, seen=seen, **given, **options)

    ways: dict[str, Callable[[], Reconstruction]] = {
        "naive": lambda: attacks.sme(at.model, sent, client.labels, preset="fast", **given),
        "asks again": lambda: knows(known),
        "asks again, smoother": lambda: knows(known, tv=0.05),
    }
    if (quiet := _quiet(before, known, answers)) is not None:
        ways["quiet weights only"] = lambda: knows(quiet)
    if all(len(v.abs().unique()) <= 3 for v in P.sub(answers[0], before).values()):
        ways["signs"] = lambda: knows(known, signs=True)
    found = {}
    for name, way in ways.items():
        try:
            found[name] = metrics.evaluate(way().images, client.images).psnr
        except FloatingPointError:  # nothing to compare with
            found[name] = -math.inf
    return found


def play(ask: Ask, seed: int) -> Played:
    """Train a federation with a defence, and attack some of its own updates on the way.

    Nothing tells a defence whether its answer is averaged, attacked, or asked for a second time.
    """
    at = ground(seed)
    draw = seeds.generator(seed, "checks", "secrets")
    weights, taken, kept = at.model.params(), [], []
    for r in range(ROUNDS):
        asked = [i for i in range(WATCHED) for _ in range(ASKED - 1)] if r in ATTACKED else []
        whose = [*range(CLIENTS), *asked]
        train = partial(federated.local_update, at.model, protocol=PROTOCOL, before=weights)
        trained = [train(client=c, seed=seed).after for c in at.clients]
        cases = [_case(weights, trained[i], _secret(draw)) for i in whose]
        order = torch.randperm(len(cases), generator=draw).tolist()
        sent = dict(zip(order, _asked(ask, [cases[j] for j in order]), strict=True))
        kept += [(cases[order[0]], sent[order[0]])]
        for i in range(WATCHED) if asked else ():
            answers = [sent[j] for j, holder in enumerate(whose) if holder == i]
            taken.append(_taken(at, i, weights, answers))
        weights = P.mean([sent[i] for i in range(CLIENTS)], [1] * CLIENTS)
    _repeats(ask, *map(list, zip(*kept, strict=True)))
    every = [name for name in taken[0] if all(name in t for t in taken)]
    means = {name: float(np.mean([t[name] for t in taken])) for name in every}
    return Played(federated.accuracy(at.model, weights, at.test), means, at.prior)


def _usual_length(seed: int) -> float:
    at = ground(seed)
    usual = federated.local_update(at.model, at.other, PROTOCOL)
    return float(P.norm(P.sub(usual.after, usual.before)))


def _noise(seed: int, ratio: float) -> Callable[[Params, Params, int], Params]:
    """Clip to the usual length and add noise of so many times the usual root mean square."""
    norm = _usual_length(seed)
    sigma = ratio * norm / len(_flat(ground(seed).model.params())) ** 0.5
    reference = clip_and_noise.check.reference
    return lambda before, after, s: reference(before, after, norm, sigma, s)


REFERENCES: dict[str, Callable[[int], Callable[[Params, Params, int], Params]]] = {
    "nothing": lambda seed: lambda before, after, s: after,
    "noise": lambda seed: _noise(seed, 1.0),
    "top-k": lambda seed: lambda b, a, s: keep_largest.check.reference(b, a, 0.01),
}


@cache
def reference(name: str, seed: int) -> Played:
    """How a reference defence fares on the same clients."""
    return play(asking(REFERENCES[name](seed)), seed)


VISIBLE = 0  # the federation of the student's own checks; the grader has another


def _written(yours: Callable) -> None:
    if not callable(yours) or engine.is_empty(yours):
        raise NotYet("write my_defence(before, after, seed): the weights to send, as a dict.")


def defence(yours: Callable[[Params, Params, int], Params]) -> None:
    """Check your `my_defence(before, after, seed)`: that it keeps the rules, each with a name."""
    _written(yours)
    try:
        rules(asking(yours), VISIBLE)
    except Refused as error:
        raise NotYet(f"refused: {error}") from None
    print("my_defence keeps the rules: it sends weights, and its only secret is the seed")


def contest(yours: Callable[[Params, Params, int], Params], *, seed: int = VISIBLE) -> Played:
    """What your defence keeps and what is taken, beside the references, on one federation."""
    _written(yours)
    try:
        own = play(asking(yours), seed)
    except Refused as error:
        raise NotYet(f"refused: {error}") from None
    open_ = reference("nothing", seed)
    for name, found in {**{n: reference(n, seed) for n in REFERENCES}, "yours": own}.items():
        best = max(found.psnrs, key=found.psnrs.__getitem__)
        print(
            f"{name:8} accuracy {found.accuracy:.2f}, taken {found.taken:.1f} dB (best attack: "
            f"{best}), kept {found.kept(open_):.2f} x stopped {found.stopped(open_):.2f} = "
            f"score {found.score(open_):.0f}"
        )
    print(f"the prior alone has {own.prior:.1f} dB")
    return own
