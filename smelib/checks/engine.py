"""One engine for all checks: your function against the kernel's answer and typical wrong ones."""

from __future__ import annotations

import dis
import inspect
import math
import random
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from smelib.data import Client
from smelib.models import Network
from smelib.types import Update

CLOSE = 1e-5  # the largest relative error of an answer that agrees
DIGITS, SLOPE_DIGITS = 9, 7  # all that is printed: the last ones differ between machines
ATTACHED = "the numbers are right, but still have a gradient attached: return them with .detach()."

NUMBERS = Tensor | np.ndarray | np.generic | int | float


class NotYet(AssertionError):  # noqa: N818
    """Your function does not do yet what it should; the message says what is wrong.

    In a notebook it is shown as that one sentence, without a traceback.
    """

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback."""
        return [f"NotYet: {self}"]


@dataclass(frozen=True)
class Mistake:
    """A typical wrong version of the answer, and the sentence for whoever wrote it."""

    says: str
    does: Callable


@dataclass(frozen=True)
class Outcome:
    """What a function made of a case: its values, and the slopes of the arguments asked for.

    A slope that automatic differentiation cannot find is zero, and its name in `cut`. `given` is
    the arguments, as the function left them. `attached`: has the answer a gradient?
    """

    raw: Any
    slopes: dict[str, list[Tensor]]
    cut: tuple[str, ...]
    given: dict[str, Any]
    attached: bool = False

    @property
    def values(self) -> list[Tensor]:
        """The numbers, in double precision."""
        return [v.detach().cpu().double() for v in tensors(self.raw)]


def mapped(change: Callable[[Tensor], Tensor], thing: Any) -> Any:
    """The same thing with `change` made to every tensor in it."""
    if isinstance(thing, Tensor):
        return change(thing)
    if isinstance(thing, np.ndarray):
        return thing.copy()
    if isinstance(thing, dict):
        return {k: mapped(change, v) for k, v in thing.items()}
    if type(thing) in (list, tuple):
        return type(thing)(mapped(change, v) for v in thing)
    if isinstance(thing, Update):
        ends = (mapped(change, w) for w in (thing.before, thing.after))
        return Update(*ends, thing.samples)
    if isinstance(thing, Client):
        return replace(thing, images=change(thing.images), labels=change(thing.labels))
    return thing


def tensors(thing: Any) -> Iterator[Tensor]:
    """Every number in an argument or an answer, as tensors; a dict's in the order of its names."""
    if isinstance(thing, float):
        yield torch.tensor(thing, dtype=torch.float64)  # as_tensor would round it to float32
    elif isinstance(thing, NUMBERS):
        yield torch.as_tensor(thing)
    elif isinstance(thing, dict):
        for name in sorted(thing, key=str):
            yield from tensors(thing[name])
    elif isinstance(thing, list | tuple):
        for item in thing:
            yield from tensors(item)
    elif isinstance(thing, Update):
        yield from tensors([thing.before, thing.after])
    elif isinstance(thing, Client):
        yield from (thing.images, thing.labels)
    elif isinstance(thing, Network):
        yield from tensors(dict(thing.body.named_parameters()))


def form(thing: Any) -> str:
    """What kind of answer it is, in words."""
    if isinstance(thing, NUMBERS):
        shape = list(getattr(thing, "shape", ()))
        return f"an array of shape {shape}" if shape else "a number"
    if isinstance(thing, dict):
        return f"a dict with the names {', '.join(map(str, thing))}"
    if isinstance(thing, list | tuple):
        return f"a {type(thing).__name__} of length {len(thing)}"
    return f"of type {type(thing).__name__}"


def difference(found: Any, right: Any, where: str = "your answer") -> str:
    """The first place where an answer has another form than the right one, in words."""
    if isinstance(right, dict):
        same = isinstance(found, dict) and found.keys() == right.keys()
        inside = [(found[k], right[k], f"{where}[{k!r}]") for k in right] if same else []
    elif isinstance(right, list | tuple):
        same = isinstance(found, list | tuple) and len(found) == len(right)
        inside = [(found[i], right[i], f"{where}[{i}]") for i in range(len(right))] if same else []
    else:
        same, inside = isinstance(found, NUMBERS) and form(found) == form(right), []
    if not same:
        return f"{where} is {form(found)}; it should be {form(right)}."
    return next(filter(None, (difference(*pair) for pair in inside)), "")


def error(found: list[Tensor], right: list[Tensor]) -> float:
    """The largest relative error; infinite where shapes differ, or other entries are not finite."""
    if [v.shape for v in found] != [v.shape for v in right]:
        return math.inf
    worst = 0.0
    for a, b in zip(found, right, strict=True):
        finite = a.isfinite() & b.isfinite()
        if not torch.equal(a[~finite].nan_to_num(), b[~finite].nan_to_num()):
            return math.inf
        worst = max(worst, float((a - b)[finite].norm()) / (float(b[finite].norm()) or 1.0))
    return worst


def digits(worst: float, most: int) -> int:
    """How many digits agree."""
    return most if worst < 10.0**-most else max(0, math.floor(-math.log10(min(worst, 1.0))))


@contextmanager
def undisturbed() -> Iterator[None]:
    """Whatever your function draws, the random streams of the notebook stay where they were."""
    plain, legacy = random.getstate(), np.random.get_state()
    kind = torch.get_default_dtype()
    try:
        with torch.random.fork_rng(devices=[]), torch.enable_grad(), torch.device("cpu"):
            yield
    finally:
        random.setstate(plain)
        np.random.set_state(legacy)
        torch.set_default_dtype(kind)


def outcome(function: Callable, case: dict[str, Any], wanted: tuple[str, ...]) -> Outcome:
    """Call the function on a copy of the case; differentiate its answer for `wanted`."""
    copy = {name: mapped(lambda t: t.detach().clone(), value) for name, value in case.items()}
    for name in wanted:
        copy[name] = mapped(lambda t: t.requires_grad_(), copy[name])
    raw = function(*copy.values())
    found = [v.cpu() for v in tensors(raw)]
    # Any fixed weighing will do where the answer is more than a number.
    weighed = [
        (v.double() * torch.arange(1.0, v.numel() + 1).cos().view(v.shape)).sum() for v in found
    ]
    alive = [v for v in weighed if v.requires_grad]
    slopes, cut = {}, []
    for name in wanted:
        leaves = list(tensors(copy[name]))
        got = (
            torch.autograd.grad(sum(alive), leaves, retain_graph=True, allow_unused=True)
            if alive
            else [None] * len(leaves)
        )
        if any(g is None for g in got):
            cut.append(name)
        slopes[name] = [
            torch.zeros_like(v) if g is None else g.double()
            for g, v in zip(got, leaves, strict=True)
        ]
    return Outcome(raw, slopes, tuple(cut), copy, bool(alive))


def overwritten(given: dict[str, Any], fresh: dict[str, Any]) -> str:
    """The name of an argument that is not what it was, or nothing."""
    for name in fresh:
        now, once = ([v.detach() for v in tensors(side[name])] for side in (given, fresh))
        if len(now) != len(once) or not all(map(torch.equal, now, once)):
            return name
    return ""


@dataclass
class Check:
    """One piece of the book: its signature, the right answer, the cases, the typical mistakes."""

    signature: str
    reference: Callable
    cases: Callable[[int], list[dict[str, Any]]]
    over: str
    slopes: tuple[str, ...] = ()
    detached: bool = False
    mistakes: list[Mistake] = field(default_factory=list)

    @property
    def task(self) -> str:
        """What to write."""
        return f"write {self.signature}: {inspect.getdoc(self.reference).splitlines()[0]}"

    def mistake(self, says: str) -> Callable[[Callable], Callable]:
        """Register a wrong version of the reference, and what to tell its author."""

        def register(does: Callable) -> Callable:
            self.mistakes.append(Mistake(says, does))
            return does

        return register

    def run(self, yours: Callable, seed: int = 0) -> str:
        """The line for a function that is right; raises `NotYet` for any other."""
        if not callable(yours):
            name, own = self.reference.__name__, self.signature.partition("(")[0]
            raise NotYet(f"hand over the function itself, as in checks.{name}({own}).")
        with undisturbed():
            found = [self._tried(yours, case) for case in self.cases(seed)]
            cases = self.cases(seed)  # anew, whatever your function did to the first ones
            worst, sentence = self.judge(cases, found)
            if sentence:
                raise NotYet(sentence)
        return self._praise(yours, found, worst)

    def judge(self, cases: list[dict[str, Any]], found: list[Outcome]) -> tuple[dict, str]:
        """The largest errors, of the value under "" and of each slope, and what is wrong if any."""
        right = [outcome(self.reference, case, self.slopes) for case in cases]
        worst = self._errors(found, right)
        for o, case in zip(found, cases, strict=True):
            if name := overwritten(o.given, case):
                return worst, f"yours overwrites its argument {name}: work on a copy."
        if max(worst.values()) > CLOSE:
            return worst, self._diagnosis(cases, found, right, worst)
        return worst, ATTACHED if self.detached and any(o.attached for o in found) else ""

    def _tried(self, yours: Callable, case: dict[str, Any]) -> Outcome:
        """What your function makes of a case; the reasons why it may make nothing."""
        try:
            inspect.signature(yours).bind(*case.values())
        except TypeError:
            takes = inspect.signature(yours)
            raise NotYet(f"yours takes {takes}; it should be {self.signature}.") from None
        except ValueError:  # a built-in function that does not tell its arguments
            pass
        try:
            found = outcome(yours, case, self.slopes)
        except NotImplementedError:
            raise NotYet(self.task) from None
        except Exception as problem:
            words = " ".join(str(problem).split())[:200]
            where = _line(yours, problem)
            raise NotYet(f"yours raises {type(problem).__name__}{where}: {words}") from None
        if found.raw is None or found.raw is Ellipsis:
            raise NotYet(self.task)
        return found

    def _errors(self, found: list[Outcome], right: list[Outcome]) -> dict[str, float]:
        """The largest error over all cases, of the value and of each slope."""
        pairs = list(zip(found, right, strict=True))
        if any(difference(a.raw, b.raw) for a, b in pairs):
            return dict.fromkeys(("", *self.slopes), math.inf)
        worst = {"": max(error(a.values, b.values) for a, b in pairs)}
        for name in self.slopes:
            worst[name] = max(error(a.slopes[name], b.slopes[name]) for a, b in pairs)
        return worst

    def _diagnosis(
        self, cases: list[dict], found: list[Outcome], right: list[Outcome], worst: dict[str, float]
    ) -> str:
        """A mistake we know; failing that, what can be said of any wrong answer."""
        for mistake in self.mistakes:
            wrong = (outcome(mistake.does, case, self.slopes) for case in cases)
            errors = (self._errors([a], [b]) for a, b in zip(found, wrong, strict=True))
            if all(max(e.values()) < CLOSE for e in errors):  # most differ on the first case
                return mistake.says
        other = (difference(a.raw, b.raw) for a, b in zip(found, right, strict=True))
        if sentence := next(filter(None, other), ""):
            return sentence
        values, true = ([o.values for o in group] for group in (found, right))
        if any(bool(v.isnan().any()) for group in values for v in group):
            return "yours contains NaN: is something divided by zero?"
        if max(worst.values()) < 1e-3:
            return (
                f"yours agrees to {digits(max(worst.values()), DIGITS)} digits only: compute in "
                "the precision of what you are given, which is double."
            )
        if worst[""] <= CLOSE:
            cut = [name for name in self.slopes if any(name in o.cut for o in found)]
            if cut:
                return (
                    f"the value is right, but no gradient gets back to {' and '.join(cut)}: is "
                    "there a .detach(), .item(), float() or no_grad() on the way, or no "
                    "create_graph=True?"
                )
            name = max(self.slopes, key=lambda s: worst[s])
            return (
                f"the value is right, but its gradient for {name} is not: is a part of it detached "
                "on the way?"
            )
        if len(cases) > 1 and all(error(v, values[0]) < CLOSE for v in values[1:]):
            return (
                f"yours gives the same on all {len(cases)} {self.over}: it seems to read a "
                "variable from outside instead of its arguments."
            )
        if factor := _factor(values, true):
            return (
                f"yours is {factor:.4g} times what it should be, on all {len(cases)} {self.over}."
            )
        return _comparison(cases, values, true, self.over)

    def _praise(self, yours: Callable, found: list[Outcome], worst: dict[str, float]) -> str:
        """The line with numbers."""
        name = getattr(yours, "__name__", "")
        name = name if name.isidentifier() else self.signature.partition("(")[0]
        line = f"{name} agrees with smelib on {len(found)} {self.over}: "
        whole = all(not v.is_floating_point() for o in found for v in tensors(o.raw))
        line += "exactly" if whole else f"value to {digits(worst[''], DIGITS)} digits"
        if self.slopes:
            least = min(digits(worst[s], SLOPE_DIGITS) for s in self.slopes)
            line += f", {'gradient' if len(self.slopes) == 1 else 'both gradients'} to {least}"
        return line


def unless_written(yours: Callable) -> Callable[[Callable], Callable]:
    """A solution steps aside for your own function; it is used where yours is still empty.

    Put above a solution: `@checks.unless_written(sme_loss)`.
    """

    def chosen(solution: Callable) -> Callable:
        return solution if is_empty(yours) else yours

    return chosen


def is_empty(function: Callable) -> bool:
    """Is there nothing in it but a docstring, `...`, `pass` or a `NotImplementedError`?"""
    code = function.__code__
    reads = any(step.opname.startswith("LOAD_FAST") for step in dis.get_instructions(code))
    words = (constant for constant in code.co_consts if constant not in (None, ...))
    return (
        not reads
        and set(code.co_names) <= {"NotImplementedError"}
        and all(isinstance(word, str) for word in words)
    )


def _line(yours: Callable, problem: Exception) -> str:
    """Where in your function it happened."""
    code = getattr(yours, "__code__", None)
    frames = traceback.extract_tb(problem.__traceback__)
    place = (code.co_filename, code.co_name) if code else ()
    lines = [f.lineno for f in frames if (f.filename, f.name) == place]
    return f" in its line {lines[-1] - code.co_firstlineno + 1}" if lines else ""


def _factor(values: list[list[Tensor]], true: list[list[Tensor]]) -> float:
    """The one number by which all answers are off, or zero."""
    a, b = (torch.cat([v.flatten() for group in side for v in group]) for side in (values, true))
    factor = float(a @ b / (b @ b))
    return factor if math.isfinite(factor) and error([a], [factor * b]) < CLOSE else 0.0


def _comparison(cases: list, values: list, true: list, over: str) -> str:
    """Where it differs most, in numbers."""
    gaps = [error(a, b) for a, b in zip(values, true, strict=True)]
    worst = max(range(len(gaps)), key=gaps.__getitem__)
    right = sum(gap <= CLOSE for gap in gaps)
    a, b = (torch.cat([v.flatten() for v in side[worst]]) for side in (values, true))
    at = int((a - b).abs().argmax())
    entry = "" if len(a) == 1 else f" in entry {at} of {len(a)}"
    return (
        f"yours is right on {right} of {len(cases)} {over}; on number {worst + 1} it gives "
        f"{float(a[at]):.6g}{entry} where smelib has {float(b[at]):.6g}."
    )


def piece(
    signature: str,
    cases: Callable[[int], list[dict[str, Any]]],
    *,
    over: str,
    slopes: tuple[str, ...] = (),
    detached: bool = False,
) -> Callable[[Callable], Callable[[Callable], None]]:
    """Make a check of a reference answer: a function of the reader's function.

    `cases` gives the arguments by name; `slopes` names those for which the answer is
    differentiated, and `over` says what the cases are. A `detached` answer has no gradient.
    """

    def made(reference: Callable) -> Callable[[Callable], None]:
        check = Check(signature, reference, cases, over, slopes, detached)

        def public(yours: Callable, *, seed: int = 0) -> None:
            try:
                print(check.run(yours, seed))
            except NotYet as problem:
                raise problem from None

        public.__name__ = public.__qualname__ = reference.__name__
        public.__module__ = reference.__module__
        public.__doc__ = f"Check your `{signature}`: {inspect.getdoc(reference)}"
        public.check, public.mistake = check, check.mistake
        return public

    return made
