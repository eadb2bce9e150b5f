"""Assignment 6: points, hidden checks, and what a person has to mark."""

import threading

from assignments.marking import HIDDEN, Ask, Assignment, Part, Verdict
from smelib import checks
from smelib.checks import arena

POINTS = {"honest": 1, "useful": 2, "private": 2, "noise": 2, "topk": 1}
USEFUL, PRIVATE = 0.75, 0.5
_one_at_a_time = threading.Lock()  # the references are measured once, whoever asks first


def _references() -> dict[str, arena.Played]:
    with _one_at_a_time:
        return {name: arena.reference(name, HIDDEN) for name in arena.REFERENCES}


def _contest(ask: Ask) -> tuple[Verdict, dict]:
    """The rules, then the federation; the answers come from the student's process."""

    def asked(cases: list[dict]) -> list[arena.Answer]:
        results = ask(cases)
        if not results:
            raise arena.Refused("it is not written yet.")
        return [arena.Answer(r["raw"], r["overwrote"]) for r in results]

    try:
        arena.rules(asked, HIDDEN)
        own = arena.play(asked, HIDDEN)
    except arena.Refused as error:
        return dict.fromkeys(POINTS, f"refused: {error}"), {}
    return _verdict(own, _references())


def _verdict(own: arena.Played, others: dict[str, arena.Played]) -> tuple[Verdict, dict]:
    """Steps relative to what the references reach on the same clients."""
    plain, said = others["nothing"], dict.fromkeys(POINTS, "")
    kept, stopped, score = own.kept(plain), own.stopped(plain), own.score(plain)
    if kept < USEFUL:
        said["useful"] = (
            f"it keeps {kept:.0%} of the accuracy above chance ({own.accuracy:.2f} of "
            f"{plain.accuracy:.2f}), and {USEFUL:.0%} are asked for: the server cannot take off "
            "what you put on, and only its mean over the clients makes noise smaller."
        )
    if stopped < PRIVATE:
        best = max(own.psnrs, key=own.psnrs.__getitem__)
        said["private"] = (
            f"the attack {best!r} takes {own.taken:.1f} dB, and the prior alone has "
            f"{own.prior:.1f}: {stopped:.0%} of the leak are stopped, and {PRIVATE:.0%} are asked "
            "for."
        )
    for aspect, name in (("noise", "noise"), ("topk", "top-k")):
        theirs = others[name].score(plain)
        if score <= theirs:
            said[aspect] = f"a score of {score:.0f}; the reference {name} has {theirs:.0f}."
    numbers = {"accuracy": own.accuracy, "taken": own.taken, "score": score, "prior": own.prior}
    points = {n: [o.accuracy, o.taken, o.score(plain)] for n, o in others.items()}
    return said, {**numbers, "references": points}


ASSIGNMENT = Assignment(
    name="a6_defend",
    title="Defend the client against an attacker who knows how",
    minutes=150,
    reads=("07_sme", "14_defences"),
    goals=(
        "write the two common defences, and say what each promises and what it does not",
        "attack a defence as one who knows it, and win back what the naive attack lost",
        "measure a defence of your own by what it keeps and what is still taken",
    ),
    parts=(
        Part("clip_and_noise", {"value": 4}, checks.clip_and_noise),
        Part("keep_largest", {"value": 3}, checks.keep_largest),
        Part("seen", {"value": 1, "gradients": 1}, checks.seen),
        Part("combine", {"value": 3}, checks.combine),
        Part("my_defence", POINTS, play=_contest),
    ),
    closed=(
        "checks",
        "aware",
        "defences",
        "data",
        "params",
        "objectives",
        "attacks",
        "solver",
        "walking",
        "auditing",
    ),
    rubric=(
        (
            "Question A: what won it back",
            3,
            "1 for the naive and the aware PSNR over at least three clients, with their spread; 1 "
            "for naming what the attacker had to know for it; 1 for a defence that this knowledge "
            "does not help against, or the reason why there is none among those written.",
        ),
        (
            "Question B: your own defence",
            3,
            "1 for the threat model in a sentence: what is secret, how often the server may ask; 1 "
            "for the trade at two settings at least, both numbers each; 1 for an attack that was "
            "not tried and could succeed.",
        ),
    ),
)
