"""What an assignment is, and what an answer is worth: hidden checks, in the grader's own process.

A part is a function that the student writes. It is worth points in one or more aspects, as a rule
its value and its gradients. An error counts once: a part that is wrong only because it builds on
another wrong one is tried again with the solution's function in the other's place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from assignments import SEED
from assignments.pool import Sandbox
from smelib.checks import engine

HIDDEN = 7919 * SEED  # far from the seeds that a student would try

Case = dict[str, Any]
Verdict = dict[str, str]
Ask = Callable[[list[Case]], list[dict[str, Any]]]  # calls the student's function on many cases


@dataclass(frozen=True)
class Part:
    """A function to write: points by aspect, and how the hidden check judges it.

    Mostly a check of `smelib.checks` on other cases. Otherwise `cases` gives the arguments, and
    `judge` says of what came back what is wrong in each aspect, or nothing. `play` asks as often
    as it needs to, each time a new process, and tells what it measured beside.
    """

    name: str
    points: dict[str, int]
    check: Callable | None = None
    cases: Callable[[int], list[Case]] | None = None
    judge: Callable[[list[Case], list[Any]], Verdict] | None = None
    play: Callable[[Ask], tuple[Verdict, dict[str, float]]] | None = None

    @property
    def worth(self) -> int:
        """All its points."""
        return sum(self.points.values())

    @property
    def slopes(self) -> tuple[str, ...]:
        """The arguments for which the answer is differentiated."""
        return self.check.check.slopes if self.check and not self.judge else ()

    def hidden(self) -> list[Case]:
        """The hidden cases."""
        with engine.undisturbed():
            return (self.cases or self.check.check.cases)(HIDDEN)

    def task(self) -> str:
        """What to tell whoever has not written it."""
        return f"not written yet: {self.name}"

    def verdict(self, cases: list[Case], results: list[dict[str, Any]]) -> Verdict:
        """What is wrong in each aspect; an empty sentence where nothing is."""
        if not results or any(r["raw"] is None for r in results):
            return dict.fromkeys(self.points, self.task())
        if self.judge:
            return self.judge(cases, [r["raw"] for r in results])
        return self._compared(cases, results)

    def _compared(self, cases: list[Case], results: list[dict[str, Any]]) -> Verdict:
        check = self.check.check
        found = [
            engine.Outcome(r["raw"], r["slopes"], tuple(r["cut"]), case, r["attached"])
            for r, case in zip(results, cases, strict=True)
        ]
        with engine.undisturbed():
            worst, sentence = check.judge(cases, found)
        wrong = {"value": worst[""] > engine.CLOSE}
        wrong["gradients"] = any(worst[s] > engine.CLOSE for s in check.slopes)
        if name := next((r["overwrote"] for r in results if r["overwrote"]), ""):
            sentence = sentence or f"yours overwrites its argument {name}: work on a copy."
            wrong["value"] = True
        wrong["value"] |= bool(sentence) and not any(wrong.values())  # right numbers, badly handed
        return {aspect: sentence if wrong[aspect] else "" for aspect in self.points}


@dataclass(frozen=True)
class Assignment:
    """Its parts, what it teaches, and what is closed to answers that are to be written."""

    name: str
    title: str
    minutes: int
    goals: tuple[str, ...]
    parts: tuple[Part, ...]
    reads: tuple[str, ...]  # the chapters that it needs
    rubric: tuple[tuple[str, int, str], ...] = ()  # question, points, what a full answer has
    closed: tuple[str, ...] = ("checks", "objectives", "attacks", "solver", "walking", "auditing")
    cells: tuple[str, ...] = field(default=(), compare=False)  # of the solution

    @property
    def worth(self) -> int:
        """The points that the checks give."""
        return sum(part.worth for part in self.parts)


@dataclass
class Mark:
    """What one aspect of a part got, and why not more."""

    part: str
    aspect: str
    points: int
    of: int
    says: str = ""
    numbers: dict[str, float] = field(default_factory=dict)  # what a part that plays has measured


def _shaped(found: Any) -> list[dict[str, Any]] | None:
    """The results, if they have the form that the sandbox gives them; it can be a forgery."""
    if not isinstance(found, list) or not all(isinstance(r, dict) for r in found):
        return None
    for r in found:
        slopes = r.get("slopes")
        fine = isinstance(slopes, dict) and isinstance(r.get("cut"), list)
        fine = fine and isinstance(r.get("overwrote"), str) and isinstance(r.get("attached"), bool)
        if not fine or "raw" not in r:
            return None
        for group in slopes.values():
            if not isinstance(group, list) or not all(isinstance(t, torch.Tensor) for t in group):
                return None
    return found


class _NoAnswer(Exception):  # noqa: N818
    """Why there are no results, in words for the student."""


def _called(
    box: Sandbox, assignment: Assignment, part: Part, cells: list[str], borrowed: list[str]
) -> Ask:
    """The student's function, in a process of its own for each list of cases."""
    job = {
        "do": "call",
        "cells": cells,
        "function": part.name,
        "slopes": list(part.slopes),
        "closed": [f"smelib.{name}" for name in assignment.closed],
        "solution": list(assignment.cells) if borrowed else [],
        "borrowed": borrowed,
    }

    def ask(cases: list[Case]) -> list[dict[str, Any]]:
        reply = box.do(job, cases)
        if "error" in reply:
            raise _NoAnswer(str(reply["error"])[:500])
        results = _shaped(reply.get("results"))
        if results is None or len(results) not in (0, len(cases)):
            raise _NoAnswer("what came back is not an answer")
        return results

    return ask


def _ask(
    box: Sandbox, assignment: Assignment, part: Part, cells: list[str], borrowed: list[str]
) -> tuple[Verdict, dict[str, float]]:
    ask = _called(box, assignment, part, cells, borrowed)
    try:
        if part.play:
            return part.play(ask)
        cases = part.hidden()
        return part.verdict(cases, ask(cases)), {}
    except _NoAnswer as error:
        return dict.fromkeys(part.points, str(error)), {}
    except Exception as error:  # whatever a forged answer makes of the comparison
        return dict.fromkeys(part.points, f"what came back cannot be compared ({error})"[:200]), {}


def mark(box: Sandbox, assignment: Assignment, cells: list[str], outline: dict) -> list[Mark]:
    """The marks of a submission whose outline is known."""
    functions, found = outline["functions"], []
    wrong: set[str] = set()
    for part in assignment.parts:
        there, measured = functions.get(part.name), {}
        if there is None or there["empty"]:
            says = part.task()
            if there is None and outline["unreadable"]:
                says += f" (cannot be read: {'; '.join(outline['unreadable'])})"
            verdict = dict.fromkeys(part.points, says)
            wrong.add(part.name)
        else:
            verdict, measured = _ask(box, assignment, part, cells, [])
            if any(verdict.values()):
                wrong.add(part.name)
                verdict = _forgiven(box, assignment, part, cells, there, wrong, verdict)
        for aspect, of in part.points.items():
            says = verdict[aspect]
            found.append(Mark(part.name, aspect, 0 if says else of, of, says, measured))
    return found


def _forgiven(
    box: Sandbox,
    assignment: Assignment,
    part: Part,
    cells: list[str],
    there: dict,
    wrong: set[str],
    verdict: Verdict,
) -> Verdict:
    """An error counts once: the same part, with our functions in place of those that are wrong."""
    borrowed = sorted((set(there["needs"]) & wrong) - {part.name})
    if not borrowed or part.play:  # a contest is won with what one has written
        return verdict
    again, _ = _ask(box, assignment, part, cells, borrowed)
    if sum(map(bool, again.values())) >= sum(map(bool, verdict.values())):
        return verdict
    if not any(again.values()):
        wrong.discard(part.name)
    return again
