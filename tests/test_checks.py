"""Each check passes what is right, names what is wrong, and leaves everything else alone."""

from __future__ import annotations

import dataclasses
import json
import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import smelib
from smelib import checks, labels
from smelib import params as P
from smelib.checks import engine

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
NAMES = [name for name in checks.__all__ if hasattr(getattr(checks, name), "check")]
MISTAKES = [
    pytest.param(name, mistake, id=f"{name}: {mistake.says[:40]}")
    for name in NAMES
    for mistake in getattr(checks, name).check.mistakes
]


def refused(name: str, function: object) -> str:
    """What the check says of a function that is wrong."""
    with pytest.raises(checks.NotYet) as caught:
        getattr(checks, name)(function)
    return str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_s_own_function_passes_with_one_line(name: str, capsys) -> None:
    check = getattr(checks, name)
    assert check(check.check.reference) is None
    line = capsys.readouterr().out
    exact = name in ("masked", "read_label", "recount", "verdict", "whole")
    digits = "exactly" if exact else r"value to 9 digits(, (both gradients|gradient) to 7)?"
    assert re.fullmatch(rf"{name} agrees with smelib on 5 [a-z ]+: {digits}\n", line), line


@pytest.mark.parametrize("name", NAMES)
def test_a_check_takes_at_most_two_seconds(name: str) -> None:
    check = getattr(checks, name).check
    check.run(check.reference)  # the first of a process loads 800 modules of torch: not its time
    start = time.process_time()
    check.run(check.reference)
    assert time.process_time() - start < 2


@pytest.mark.parametrize(("name", "mistake"), MISTAKES)
def test_a_typical_mistake_is_named(name: str, mistake: engine.Mistake, capsys) -> None:
    assert refused(name, mistake.does) == mistake.says
    assert capsys.readouterr().out == ""


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("name", NAMES)
def test_other_cases_tell_the_same_mistakes(name: str, seed: int) -> None:
    check = getattr(checks, name).check
    drawn = check.cases(seed)  # once, for all of them: drawing takes longer than judging
    check = dataclasses.replace(check, cases=lambda _: drawn)
    assert "agrees with smelib" in check.run(check.reference)
    for mistake in check.mistakes:
        with pytest.raises(checks.NotYet, match=re.escape(mistake.says)):
            check.run(mistake.does)


@pytest.mark.parametrize("name", NAMES)
def test_at_least_three_mistakes_each_and_every_sentence_is_one(name: str) -> None:
    said = [mistake.says for mistake in getattr(checks, name).check.mistakes]
    assert len(set(said)) == len(said) >= 3
    assert all(s.endswith(".") and "\n" not in s and len(s) < 180 for s in said)


def unfinished(*args: object) -> None:
    raise NotImplementedError


@pytest.mark.parametrize("stub", [lambda *args: None, lambda *args: ..., unfinished])
@pytest.mark.parametrize("name", NAMES)
def test_a_stub_is_told_what_to_write(name: str, stub: Callable) -> None:
    check = getattr(checks, name).check
    said = refused(name, stub)
    assert said.startswith(f"write {check.signature}: ")
    assert said.endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_the_docstring_has_the_signature_and_the_task(name: str) -> None:
    check = getattr(checks, name)
    assert check.__doc__.startswith(f"Check your `{check.check.signature}`: ")
    assert check.__name__ == name


# The chapters' own functions, and what a slip of the pen in one of them is told.


def chapter(number: str, *needed: str, swap: tuple[str, str] | None = None) -> dict:
    """The names that a chapter's cells define, after one change of their text."""
    book = json.loads(next(NOTEBOOKS.glob(f"{number}_*.ipynb")).read_text("utf-8"))
    names: dict = {"torch": torch, "np": np, "smelib": smelib, "P": P, "theory": smelib.theory}
    exec("from torch.func import functional_call, grad", names)
    exec("from torch.nn.functional import cosine_similarity, cross_entropy", names)
    exec("import math", names)
    exec("from scipy import stats", names)
    exec("from scipy.optimize import linear_sum_assignment, linprog", names)
    exec("from smelib.federated import gradient", names)
    for cell in book["cells"]:
        if "your-turn" in cell["metadata"].get("tags", []):
            continue  # the reader's empty one
        source = "".join(cell["source"])
        for function in re.findall(r"^def \w+\(.*?(?=^\S|\Z)", source, re.M | re.S):
            name = re.match(r"def (\w+)", function)[1]
            if name in needed and name not in names:
                if swap and name == needed[0]:
                    assert function.count(swap[0]) == 1, f"{swap[0]!r} in {function}"
                    function = function.replace(*swap)
                exec(function, names)
    return names


WRITTEN = {  # check: chapter, and its function with what that calls
    "train_locally": ("01", ("train_locally",)),
    "divide": ("02", ("divide",)),
    "dlg_loss": ("02", ("dlg_loss",)),
    "angle": ("03", ("angle", "dot")),
    "total_variation": ("03", ("total_variation",)),
    "ig_loss": ("03", ("ig_loss", "total_variation", "angle", "dot")),
    "local_walk": ("04", ("walk",)),
    "intrinsic_error": ("04", ("intrinsic_error",)),
    "segment_cosine": ("05", ("my_cosine",)),
    "parallel_point": ("05", ("my_root",)),
    "spectrum": ("06", ("spectrum",)),
    "plane_ratios": ("06", ("plane_ratios",)),
    "surrogate": ("07", ("surrogate",)),
    "sme_loss": ("07", ("sme_loss", "surrogate")),
    "simulate": ("08", ("train",)),
    "order_prior": ("08", ("order_prior",)),
    "merge": ("08", ("merge",)),
    "score": ("09", ("score",)),
    "paired": ("09", ("paired",)),
    "parts": ("10", ("parts",)),
    "left_out": ("10", ("left_out",)),
    "corner": ("11", ("corner",)),
    "solve_patches": ("11", ("solve_patches",)),
    "estimate": ("12", ("estimate",)),
    "whole": ("12", ("whole",)),
    "blind": ("12", ("blind",)),
    "walk": ("13", ("walk",)),
    "retrace_loss": ("13", ("retrace_loss",)),
    "keep_largest": ("14", ("keep_largest",)),
    "match_sent": ("14", ("match_sent",)),
    "masked": ("14", ("masked",)),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_the_chapter_s_function_passes_as_it_stands(name: str, capsys) -> None:
    number, needed = WRITTEN[name]
    getattr(checks, name)(chapter(number, *needed)[needed[0]])
    assert f"{needed[0]} agrees with smelib on 5" in capsys.readouterr().out


SLIPS = [
    ("train_locally", ("- lr *", "+ lr *"), "you climb"),
    ("train_locally", ("model.normalise(images)", "images"), "you train on pixels"),
    (
        "train_locally",
        ("torch.randperm(len(images), generator=generator)", "torch.arange(len(images))"),
        "you do not shuffle",
    ),
    ("divide", ("model.denormalise", ""), "normalised values"),
    ("divide", ("ratio[order]", "ratio"), "not in order"),
    ("divide", ("db.abs() > 1e-5", "db.abs() >= 0"), "units that never moved"),
    ("dlg_loss", ("create_graph=True", "create_graph=False"), "create_graph=True"),
    ("dlg_loss", (".square().sum()", ".square().mean()"), "a mean over the weights"),
    ("angle", ("1 - dot(u, v)", "dot(u, v)"), "yours is the cosine"),
    ("total_variation", ("(across + down) / 2", "across + down"), "take half"),
    ("ig_loss", ("tv * total", "total"), "multiply it by tv"),
    ("local_walk", ("(model, path[-1]", "(model, path[0]"), "all gradients at w0"),
    ("intrinsic_error", ("float(1 - P", "float(P"), "your error is the cosine"),
    ("segment_cosine", ("u, g = w0 - end,", "u, g = end - w0,"), "the update is w0 - end"),
    ("parallel_point", ("== left", "!= left"), "keep the other"),
    ("spectrum", ("[::-1]", ""), "the weakest direction"),
    ("spectrum", ("np.cumsum(squares)", "squares"), "add them up"),
    ("plane_ratios", ("[:2]", "[:3]"), "a plane has two"),
    ("surrogate", ("w + alpha *", "w - alpha *"), "you walk away from wT"),
    ("surrogate", ("w + alpha *", "w + alpha.item() *"), "alpha has no gradient"),
    ("sme_loss", ("(update, alpha)", "(update, -alpha)"), "walks away from wT"),
    ("sme_loss", ("(update, alpha)", "(update, 1 - alpha)"), "runs from the other end"),
    ("sme_loss", ("(update, alpha)", "(update, alpha.item())"), "alpha has no gradient"),
    ("sme_loss", ("tv * smelib", "2 * tv * smelib"), "twice ours"),
    ("simulate", ("images[batch]", "dummies[0][batch]"), "first epoch's dummies"),
    ("simulate", ("model, w, images", "model, w0, images"), "all gradients at w0"),
    ("simulate", ("w[k] - lr * g[k]", "(w[k] - lr * g[k]).detach()"), "you detach"),
    ("merge", ("(c.numpy())[1]", "(c.T.numpy())[1]"), "your matching is inverted"),
    ("score", ("cost[rows, columns]", "cost.diagonal()"), "in the order given"),
    ("score", ("cost[rows, columns]", "cost.min(axis=1)"), "one image may serve twice"),
    ("paired", ("ddof=1", "ddof=0"), "you divide the squares by n"),
    ("paired", ("0.975", "0.95"), "leaves 5 % above"),
    ("paired", (" / np.sqrt(len(d))", ""), "spread of single clients"),
    ("parts", ("y[None]", "labels[:1]"), "every image the first label"),
    (
        "parts",
        ("model, w, x", "model, model.params(), x"),
        "the network's own weights",
    ),
    ("left_out", ("1 - torch", "torch"), "yours is the cosine that is left"),
    ("left_out", ("u - rows", "rows"), "you compare each part with the sum"),
    ("corner", ("linprog(goal", "linprog(-goal"), "you maximise"),
    ("solve_patches", (".solution", ".solution.T"), "one row per patch"),
    ("estimate", ("protocol.lr * steps *", "protocol.lr *"), "number of steps"),
    ("whole", ("down[up] += 1", "pass"), "you only round down"),
    ("blind", ("len(p) > n", "True"), "you take the median always"),
    ("blind", ("(p / fall)[fall > 0]", "(p / fall)"), "you let all classes propose"),
    ("walk", ("P.sub(mean, there)", "P.sub(there, mean)"), "remainder has the wrong sign"),
    ("walk", ("P.scale(total, 1 / moves)", "P.scale(total, 1.0)"), "is their sum"),
    (
        "retrace_loss",
        (
            "P.add(gradient(model, middle, z, labels), remainder)",
            "gradient(model, middle, z, labels)",
        ),
        "leave out",
    ),
    (
        "retrace_loss",
        ("gradient(model, middle, z", "gradient(model, update.before, z"),
        "take it at the middle",
    ),
    ("retrace_loss", (" + tv * ", " + 0 * "), "leave out the total variation"),
    ("keep_largest", (">= least", "< least"), "you drop that share"),
    ("match_sent", (" * (u[k] != 0)", ""), "compare with the whole gradient"),
    ("match_sent", ("1 - P.cosine", "P.cosine"), "yours is the cosine"),
    ("masked", ("- earlier.sum", "+ earlier.sum"), "you add every mask"),
    ("masked", (") % ring", ")"), "you count past the ring"),
]


@pytest.mark.parametrize(("name", "swap", "said"), SLIPS, ids=lambda x: str(x))
def test_a_slip_in_the_chapter_s_function_is_named(name: str, swap: tuple, said: str) -> None:
    number, needed = WRITTEN[name]
    sentence = refused(name, chapter(number, *needed, swap=swap)[needed[0]])
    assert said in sentence
    assert sentence in [m.says for m in getattr(checks, name).check.mistakes]


# What the chapters have in the open, or as functions that read variables from outside.


def project(model, z):
    mean, std = torch.tensor(model.mean), torch.tensor(model.std)
    pixels = (z * std.view(-1, 1, 1) + mean.view(-1, 1, 1)).clamp(0, 1)
    return (pixels - mean.view(-1, 1, 1)) / std.view(-1, 1, 1)


def free_length(u, v):
    u, v = (torch.cat([x.flatten() for x in side]) for side in (u, v))
    return (u - (u @ v) / (v @ v) * v).square().sum() / (u @ u)


def nodes_error(model, client, start, end, nodes):
    z = model.normalise(client.images)
    total = {k: torch.zeros_like(v) for k, v in start.items()}
    for node in range(nodes):
        w = P.lerp(start, end, (node + 0.5) / nodes)
        total = P.add(total, smelib.federated.gradient(model, w, z, client.labels))
    return float(1 - P.cosine(P.sub(start, end), total))


def surrogate(update, alpha):
    return {k: (1 - alpha) * w + alpha * update.after[k] for k, w in update.before.items()}


def order_prior(dummies):
    means = dummies.mean(dim=1)
    return torch.stack([(a - b).square().mean() for a in means for b in means]).mean()


def plane_ratios(M):  # noqa: N803
    plane = np.linalg.svd(M, full_matrices=False)[2][:2]
    return np.linalg.norm(M @ plane.T, axis=1) / np.linalg.norm(M, axis=1)


def psnr(image, original):
    return 10 * torch.log10(1 / ((image - original) ** 2).mean())


OPEN = {
    "free_length": free_length,
    "nodes_error": nodes_error,
    "project": project,
    "surrogate": surrogate,
    "order_prior": order_prior,
    "plane_ratios": plane_ratios,
    "psnr": psnr,
}


@pytest.mark.parametrize("name", OPEN)
def test_the_same_written_in_another_way_passes(name: str, capsys) -> None:
    getattr(checks, name)(OPEN[name])
    assert capsys.readouterr().out.startswith(f"{name} agrees with smelib on 5")


def test_every_check_has_met_a_function_that_is_not_the_kernel_s() -> None:
    pages = (NOTEBOOKS.parent / "assignments" / "source").glob("*.md")
    solved = re.findall(r"^checks\.(\w+)\(", "\n".join(p.read_text("utf-8") for p in pages), re.M)
    assert {*WRITTEN, *OPEN, *solved} >= set(NAMES)


def away(update, alpha):
    return {k: w - alpha * (update.after[k] - w) for k, w in update.before.items()}


def other_end(update, alpha):
    return {k: alpha * w + (1 - alpha) * update.after[k] for k, w in update.before.items()}


def distinct_pairs(dummies):
    means, es = dummies.mean(dim=1), range(len(dummies))
    pairs = [(means[a] - means[b]).square().mean() for a in es for b in es if a != b]
    return torch.stack(pairs).mean()


def centred(rows):
    plane = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)[2][:2]
    return np.linalg.norm(rows @ plane.T, axis=1) / np.linalg.norm(rows, axis=1)


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("surrogate", away, "you walk away from wT"),
        ("surrogate", other_end, "your alpha runs from the other end"),
        ("surrogate", lambda u, a: surrogate(u, a.item()), "alpha has no gradient"),
        ("project", lambda model, z: z.clamp(0.0, 1.0), "you clamp to [0, 1]"),
        ("project", lambda model, z: z.maximum(model.box(z)[0]), "you clamp at black only"),
        ("order_prior", distinct_pairs, "pairs of an epoch with itself"),
        ("plane_ratios", lambda rows: plane_ratios(rows) ** 2, "you square the shares"),
        ("plane_ratios", centred, "you centre the rows"),
        ("psnr", lambda a, b: -10 * ((a - b) ** 2).mean().log(), "the natural logarithm"),
        ("psnr", lambda a, b: -10 * ((a - b) ** 2).sum().log10(), "you add up the squares"),
    ],
)
def test_a_mistake_written_in_another_way_is_named(name: str, wrong: Callable, said: str) -> None:
    sentence = refused(name, wrong)
    assert said in sentence
    assert sentence in [m.says for m in getattr(checks, name).check.mistakes]


# What can be said of any wrong function.


def sme_loss(model, update, labels, z, alpha, tv=0.01):
    """A right one, in one piece."""
    return checks.sme_loss.check.reference(model, update, labels, z, alpha, tv)


def test_what_is_no_function_is_refused() -> None:
    assert (
        refused("sme_loss", 3.0)
        == "hand over the function itself, as in checks.sme_loss(sme_loss)."
    )
    assert refused("local_walk", []).endswith("checks.local_walk(walk).")


def test_a_wrong_signature_is_shown_beside_the_right_one() -> None:
    said = refused("sme_loss", lambda z, alpha: 0)
    assert said == (
        "yours takes (z, alpha); it should be sme_loss(model, update, labels, z, alpha, tv=0.01)."
    )


def test_an_exception_is_told_with_its_line() -> None:
    def total_variation(z):
        z = z + 1
        return z.across

    said = refused("total_variation", total_variation)
    assert said.startswith("yours raises AttributeError in its line 3: ")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            lambda z: z.abs().mean().view(1),
            "your answer is an array of shape [1]; it should be a number.",
        ),
        (lambda z: {"tv": 0.0}, "your answer is a dict with the names tv; it should be a number."),
        (lambda z: [1.0, 2.0], "your answer is a list of length 2; it should be a number."),
        (lambda z: "one", "your answer is of type str; it should be a number."),
        (
            lambda z: z.abs().mean() * float("nan"),
            "yours contains NaN: is something divided by zero?",
        ),
        (lambda z: z.mean() * 0 + 3, "yours gives the same on all 5 batches"),
        (lambda z: 1.7 * checks.total_variation.check.reference(z), "yours is 1.7 times"),
        (
            lambda z: checks.total_variation.check.reference(z) + 1,
            "yours is right on 0 of 5 batches",
        ),
        (
            lambda z: checks.total_variation.check.reference(z) * (1 + 1e-4 * z.detach().max()),
            "to 3 digits only",
        ),
    ],
)
def test_any_other_answer_gets_what_can_be_said_of_it(answer: Callable, said: str) -> None:
    assert said in refused("total_variation", answer)


def test_a_gradient_in_single_precision_is_told_from_one_that_is_wrong() -> None:
    def rounded(z):
        right = checks.total_variation.check.reference(z)
        return right + 1e-4 * (right - right.detach())

    assert "to 3 digits only" in refused("total_variation", rounded)


def test_answers_of_unlike_shapes_are_compared_too() -> None:
    assert "on number" in refused("plane_ratios", lambda rows: np.abs(rows[:, 0]))


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_s_settings_do_not_matter(name: str) -> None:
    check = getattr(checks, name).check
    kind = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        torch.set_default_device("meta")
        assert "agrees" in check.run(check.reference)
    finally:
        torch.set_default_device(None)
        torch.set_default_dtype(kind)


def test_a_wrong_form_is_shown_where_it_is() -> None:
    def train(*args):
        found = checks.simulate.check.reference(*args)
        return {k: v.flatten() if k.endswith("bias") else v[..., 0] for k, v in found.items()}

    assert refused("simulate", train).startswith(
        "your answer['0.weight'] is an array of shape [2, 1, 3];"
    )
    renamed = lambda *args: {f"w{k}": v for k, v in checks.simulate.check.reference(*args).items()}  # noqa: E731
    assert refused("simulate", renamed).startswith(
        "your answer is a dict with the names w0.weight,"
    )


def test_a_right_answer_in_another_order_of_names_passes(capsys) -> None:
    def train(*args):
        return dict(reversed(checks.simulate.check.reference(*args).items()))

    checks.simulate(train)
    assert "agrees" in capsys.readouterr().out


def test_an_overwritten_argument_is_named() -> None:
    def project(model, z):
        black, white = model.box(z)
        return z.clamp_(black, white)

    def loads(model, z):
        with torch.no_grad():
            next(model.body.parameters()).zero_()
        return z.clamp(*model.box(z))

    assert refused("project", project) == "yours overwrites its argument z: work on a copy."
    assert refused("project", loads) == "yours overwrites its argument model: work on a copy."


@pytest.mark.parametrize("name", [n for n in NAMES if getattr(checks, n).check.slopes])
def test_the_right_value_without_its_gradient_is_refused(name: str) -> None:
    check = getattr(checks, name).check

    def detached(*args):
        return engine.mapped(lambda v: v.detach(), check.reference(*args))

    def disguised(*args):
        case = dict(zip(check.cases(0)[0], args, strict=True))
        leaves = [v for s in check.slopes for v in engine.tensors(case[s])]
        nothing = sum(0 * v.sum() for v in leaves)
        return engine.mapped(lambda v: v + nothing, detached(*args))

    def backwards(*args):
        right = check.reference(*args)
        return engine.mapped(lambda v: 2 * v.detach() - v, right)

    for function in (detached, disguised, backwards):
        assert "the value is right, but" in refused(name, function), function.__name__
    with torch.no_grad():  # where nothing else has a gradient either
        assert "the value is right, but" in refused(name, detached)


def test_the_right_gradient_of_the_sum_alone_is_refused() -> None:
    def evened(*args):
        right = checks.simulate.check.reference(*args)
        return {k: v.detach() + (v.sum() - v.sum().detach()) / v.numel() for k, v in right.items()}

    assert "its gradient for dummies is not" in refused("simulate", evened)


def test_one_of_two_gradients_missing_is_not_enough() -> None:
    def images_cut(model, update, labels, z, alpha, tv):
        return sme_loss(model, update, labels, z.detach(), alpha, tv)

    assert "no gradient gets back to z:" in refused("sme_loss", images_cut)


def test_the_notebook_shows_one_sentence_and_no_traceback() -> None:
    shown = checks.NotYet("you climb.")._render_traceback_()
    assert shown == ["NotYet: you climb."]
    assert isinstance(checks.NotYet(""), AssertionError)


def test_an_error_has_no_chain_of_others() -> None:
    with pytest.raises(checks.NotYet) as caught:
        checks.total_variation(unfinished)
    assert caught.value.__suppress_context__


# Nothing else changes.


def settings() -> list:
    """Whatever a check might leave behind."""
    return [
        torch.get_rng_state().tolist(),
        np.random.get_state()[1].tolist(),
        random.getstate(),
        torch.get_default_dtype(),
        torch.is_grad_enabled(),
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_check_leaves_random_streams_and_settings_alone(name: str) -> None:
    check = getattr(checks, name).check

    def careless(*args):
        torch.manual_seed(3)
        np.random.seed(3)
        random.seed(3)
        torch.set_default_dtype(torch.float64)
        return check.reference(*args)

    before = settings()
    check.run(careless)
    assert settings() == before
    refused(name, unfinished)
    with torch.no_grad():
        check.run(check.reference)  # gradients are found all the same
        assert not torch.is_grad_enabled()
    assert settings() == before


def test_the_cases_are_the_same_every_time() -> None:
    for name in NAMES:
        first, again = (getattr(checks, name).check.cases(0) for _ in range(2))
        assert all(not engine.overwritten(a, b) for a, b in zip(first, again, strict=True)), name


def test_the_counts_before_rounding_are_those_of_the_kernel() -> None:
    """`estimate` has no function of its own in the kernel; rounded, it is `labels.counts`."""
    for seed in range(5):
        s = checks.cases.scene(seed, kind="linear")
        z = torch.randn(64, *s.model.shape, generator=smelib.seeds.generator(0, "label dummies"))
        ends = [
            labels.statistics(s.model, w, z.double()) for w in (s.update.before, s.update.after)
        ]
        seen = {"p": [p for p, _ in ends], "bias": labels.falls(s.model, s.update)["bias"]}
        seen["N"] = len(s.client)
        found = checks.estimate.check.reference(seen, s.protocol, "bias")
        rounded = checks.whole.check.reference(found, seen["N"])
        assert torch.equal(rounded, labels.counts(s.model, s.update, s.protocol, dummies=64))
        found = checks.blind.check.reference(seen, "bias")
        rounded = checks.whole.check.reference(found, seen["N"])
        assert torch.equal(rounded, labels.counts(s.model, s.update, dummies=64))


def test_a_corner_is_one_of_the_images() -> None:
    """`corner` has no function in the kernel: the truth is the images that were mixed."""
    for seed in range(3):
        for case in checks.corner.check.cases(seed):
            found, n = checks.corner.check.reference(**case), case["samples"]
            own = np.isclose(found[:n], case["low"])  # each image has one pixel of its own
            assert own.sum() == 1
            assert np.allclose(found[:n][~own], case["high"])


def test_one_image_falls_out_of_the_division_whole() -> None:
    """`divide` has no function in the kernel: the truth is the client's own image."""
    for number in range(3):
        s = checks.cases.scene(number, kind="linear", samples=1)
        s.protocol = smelib.Protocol(1, 1, 0.3)
        found = checks.divide.check.reference(s.model, s.update)
        assert len(found) >= 2
        assert torch.allclose(found, s.client.images.expand_as(found))


def test_a_seed_given_to_a_check_is_that_of_its_cases() -> None:
    met = []

    def psnr(image, original):
        met.append({"image": image, "original": original})
        return checks.psnr.check.reference(image, original)

    checks.psnr(psnr, seed=2)
    assert not any(map(engine.overwritten, met, checks.psnr.check.cases(2)))


def test_another_seed_has_other_cases() -> None:
    for name in NAMES:
        one, two = (getattr(checks, name).check.cases(seed) for seed in (0, 1))
        assert all(engine.overwritten(a, b) for a, b in zip(one, two, strict=True)), name


def test_a_walk_s_gradients_are_its_moves() -> None:
    """The second list of `local_walk` is not the kernel's, but its path follows from it."""
    for case in checks.local_walk.check.cases(0):
        path, slopes = checks.local_walk.check.reference(**case)
        total = {k: case["lr"] * sum(g[k] for g in slopes) for k in path[0]}
        gap = P.sub(P.sub(path[0], path[-1]), total)
        assert float(P.norm(gap)) < 1e-12


def untouched(x: int) -> int:
    """Twice x."""
    ...


def raising(x: int) -> int:
    """Twice x."""
    raise NotImplementedError("write me")


def written(x: int) -> int:
    return x


@pytest.mark.parametrize("stub", [untouched, raising], ids=lambda f: f.__name__)
def test_a_solution_stands_in_for_an_empty_function(stub) -> None:
    @checks.unless_written(stub)
    def double(x):
        return 2 * x

    assert double(4) == 8


def test_a_solution_steps_aside_for_the_readers_function() -> None:
    @checks.unless_written(written)
    def double(x):
        return 2 * x

    assert double is written
    constant = checks.unless_written(lambda x: 7)(lambda x: 2 * x)
    assert constant(4) == 7, "a function that returns a number is not empty"
