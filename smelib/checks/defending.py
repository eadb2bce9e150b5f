"""Assignment 6: two defences, and the two things that an attacker does who knows them.

The sparser update, `keep_largest`, is chapter 14's too.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from smelib import params as P
from smelib import seeds
from smelib.checks.cases import named, normal, numbers, scene, uniform
from smelib.checks.engine import piece
from smelib.types import Params


def _drawn(like: Tensor, draw: torch.Generator) -> Tensor:
    return torch.randn(like.shape, generator=draw, dtype=like.dtype)


def _noisy(weights: Params, sigma: float, seed: int) -> Params:
    """Each layer with noise of its own, from one stream."""
    draw = torch.Generator().manual_seed(seed)
    return {k: w + sigma * _drawn(w, draw) for k, w in weights.items()}


def _clipped(before: Params, after: Params, norm: float) -> Params:
    length = float(P.norm(P.sub(after, before)))
    return P.lerp(before, after, min(1.0, norm / length))


def _clippings(seed: int) -> list[dict]:
    """Moves that are too long, and one that is not."""
    found = []
    for k, s in enumerate(map(scene, numbers(seed))):
        before, after = s.update.before, s.update.after
        norm = (0.5, 0.2, 3.0, 0.7, 0.1)[k] * float(P.norm(P.sub(after, before)))
        sigma = 0.02 * (k + 1)
        found.append(named(before=before, after=after, norm=norm, sigma=sigma, seed=1000 + k))
    return found


@piece("clip_and_noise(before, after, norm, sigma, seed)", _clippings, over="updates")
def clip_and_noise(before: Params, after: Params, norm: float, sigma: float, seed: int) -> Params:
    """the weights to send: the move clipped to norm over all layers, then noise of that sigma.

    The stream is one `torch.Generator().manual_seed(seed)`; each layer, in the dict's order, draws
    its own `torch.randn(w.shape, generator=..., dtype=w.dtype)`.
    """
    return _noisy(_clipped(before, after, norm), sigma, seed)


@clip_and_noise.mistake("you clip every layer by itself: the norm is that of all layers together.")
def _(before, after, norm, sigma, seed):
    short = {k: _clipped({k: w}, {k: after[k]}, norm)[k] for k, w in before.items()}
    return _noisy(short, sigma, seed)


@clip_and_noise.mistake("you lengthen a move that is short enough: the factor is at most 1.")
def _(before, after, norm, sigma, seed):
    return _noisy(P.lerp(before, after, norm / P.norm(P.sub(after, before))), sigma, seed)


@clip_and_noise.mistake("you clip the weights wT: clip the move wT - w0.")
def _(before, after, norm, sigma, seed):
    return _noisy(P.scale(after, min(1.0, norm / float(P.norm(after)))), sigma, seed)


@clip_and_noise.mistake("you clip after the noise, which shortens it too: clip first.")
def _(before, after, norm, sigma, seed):
    return _clipped(before, _noisy(after, sigma, seed), norm)


@clip_and_noise.mistake("sigma is the noise's standard deviation: you take it for the variance.")
def _(before, after, norm, sigma, seed):
    return _noisy(_clipped(before, after, norm), math.sqrt(sigma), seed)


@clip_and_noise.mistake(
    "every layer of yours starts the stream anew, so that all have the same noise: make one "
    "generator, before the loop."
)
def _(before, after, norm, sigma, seed):
    short = _clipped(before, after, norm)
    return {k: _noisy({k: w}, sigma, seed)[k] for k, w in short.items()}


@clip_and_noise.mistake("you return the move: return weights, w0 + the move + noise.")
def _(before, after, norm, sigma, seed):
    return P.sub(_noisy(_clipped(before, after, norm), sigma, seed), before)


@clip_and_noise.mistake("there is no noise in yours: without it clipping hides nothing.")
def _(before, after, norm, sigma, seed):
    return _clipped(before, after, norm)


@clip_and_noise.mistake("yours does not clip: without a largest length no noise is enough.")
def _(before, after, norm, sigma, seed):
    return _noisy(after, sigma, seed)


@clip_and_noise.mistake("you draw in single precision: give randn dtype=w.dtype.")
def _(before, after, norm, sigma, seed):
    draw = torch.Generator().manual_seed(seed)
    short = _clipped(before, after, norm)
    return {k: w + sigma * torch.randn(w.shape, generator=draw).to(w) for k, w in short.items()}


def _kept(before: Params, after: Params, size: Params, share: float) -> Params:
    """`after` where `size` is among the largest, `before` elsewhere."""
    every = torch.cat([v.flatten() for v in size.values()])
    count = math.ceil(share * len(every))
    least = every.topk(count).values[-1]
    return {k: torch.where(size[k] >= least, after[k], w) for k, w in before.items()}


def _sizes(before: Params, after: Params) -> Params:
    return {k: (after[k] - w).abs() for k, w in before.items()}


def _sparsities(seed: int) -> list[dict]:
    shares = (0.3, 0.1, 0.05, 0.5, 0.02)
    found = zip(map(scene, numbers(seed)), shares, strict=True)
    return [named(before=s.update.before, after=s.update.after, share=x) for s, x in found]


@piece("keep_largest(before, after, share)", _sparsities, over="updates")
def keep_largest(before: Params, after: Params, share: float) -> Params:
    """the weights to send: wT for the share of weights that moved most, w0 for all others.

    Of n weights in all layers together, `math.ceil(share * n)` are sent.
    """
    return _kept(before, after, _sizes(before, after), share)


@keep_largest.mistake("you choose in every layer by itself: compare the moves of all layers.")
def _(before, after, share):
    sizes = _sizes(before, after)
    return {k: _kept({k: w}, {k: after[k]}, {k: sizes[k]}, share)[k] for k, w in before.items()}


@keep_largest.mistake("you forget the sign: a weight that moved far down has moved far.")
def _(before, after, share):
    return _kept(before, after, P.sub(after, before), share)


@keep_largest.mistake("you choose the largest weights: choose those that moved most.")
def _(before, after, share):
    return _kept(before, after, {k: w.abs() for k, w in after.items()}, share)


@keep_largest.mistake("what is not sent is 0 in yours: it stays at w0.")
def _(before, after, share):
    sizes = _sizes(before, after)
    return _kept({k: torch.zeros_like(w) for k, w in before.items()}, after, sizes, share)


@keep_largest.mistake("you return the move: return weights.")
def _(before, after, share):
    return P.sub(_kept(before, after, _sizes(before, after), share), before)


@keep_largest.mistake("you send the weights that moved least.")
def _(before, after, share):
    least = {k: -v for k, v in _sizes(before, after).items()}
    return _kept(before, after, least, share)


@keep_largest.mistake("you drop that share of the weights: send it, and leave the others at w0.")
def _(before, after, share):
    return _kept(after, before, _sizes(before, after), share)


@keep_largest.mistake("you divide what is sent by the share: leave it as long as it was.")
def _(before, after, share):
    return P.lerp(before, _kept(before, after, _sizes(before, after), share), 1 / share)


def _views(seed: int) -> list[dict]:
    """What top-k sent, from weights some of which are 0, and a gradient of dummies."""
    found = []
    for s, share in zip(map(scene, numbers(seed)), (0.3, 0.1, 0.2, 0.5, 0.4), strict=True):
        ends = s.update.before, s.update.after
        before, after = ({k: v * (v.abs() > 0.1) for k, v in w.items()} for w in ends)
        sent = _kept(before, after, _sizes(before, after), share)
        slope = {k: normal(s.draw, *v.shape) for k, v in before.items()}
        found.append(named(before=before, sent=sent, gradient=slope))
    return found


@piece("seen(before, sent, gradient)", _views, over="updates", slopes=("gradient",))
def seen(before: Params, sent: Params, gradient: Params) -> Params:
    """the dummies' gradient where the client sent something, and 0 where its weight is still w0."""
    return {k: g * (sent[k] != before[k]) for k, g in gradient.items()}


@seen.mistake("you keep what was not sent: keep the gradient where sent differs from before.")
def _(before, sent, gradient):
    return {k: g * (sent[k] == before[k]) for k, g in gradient.items()}


@seen.mistake("a weight that is not 0 need not have moved: compare sent with before.")
def _(before, sent, gradient):
    return {k: g * (sent[k] != 0) for k, g in gradient.items()}


@seen.mistake("you multiply with the move: keep the gradient's own values.")
def _(before, sent, gradient):
    return {k: g * (sent[k] - before[k]) for k, g in gradient.items()}


@seen.mistake(
    "you keep the largest of the dummies' gradient: which weights were sent shows in the update."
)
def _(before, sent, gradient):
    count = sum(int((sent[k] != w).sum()) for k, w in before.items())
    sizes = {k: g.abs() for k, g in gradient.items()}
    share = count / sum(g.numel() for g in gradient.values())
    return _kept({k: 0 * g for k, g in gradient.items()}, gradient, sizes, share - 1e-9)


@seen.mistake("you keep all of the gradient: that is what the naive attacker compares with.")
def _(before, sent, gradient):
    return {k: 1 * g for k, g in gradient.items()}


@seen.mistake("the value is right, but no gradient gets back to gradient: multiply, do not copy.")
def _(before, sent, gradient):
    return {k: g.detach() * (sent[k] != before[k]) for k, g in gradient.items()}


def _questions(seed: int) -> list[dict]:
    """Several answers of one client: with noise, or of a few weights each."""
    found = []
    for k, s in enumerate(map(scene, numbers(seed))):
        before, after = s.update.before, s.update.after
        answers = []
        for i in range(3 + k % 2):
            noisy = _noisy(after, 0.05, seeds.derive(seed, "checks", "answers", k, i))
            there = {n: uniform(s.draw, *w.shape) < 0.4 for n, w in before.items()}
            some = {n: torch.where(there[n], w, before[n]) for n, w in noisy.items()}
            answers.append(noisy if k == 0 else some)
        found.append(named(before=before, answers=answers))
    return found


def _tally(before: Params, answers: list[Params]) -> tuple[Params, Params]:
    """The sum of the moves, and how many answers moved a weight."""
    total = {k: sum(a[k] - w for a in answers) for k, w in before.items()}
    said = {k: sum((a[k] != w).to(w) for a in answers) for k, w in before.items()}
    return total, said


@piece("combine(before, answers)", _questions, over="clients")
def combine(before: Params, answers: list[Params]) -> Params:
    """for each weight the mean of those answers that moved it; w0 where none did."""
    total, said = _tally(before, answers)
    return {k: w + total[k] / said[k].clamp(min=1) for k, w in before.items()}


@combine.mistake(
    "you take the mean of all answers: one that leaves a weight at w0 says nothing about it."
)
def _(before, answers):
    total, _ = _tally(before, answers)
    return {k: w + total[k] / len(answers) for k, w in before.items()}


@combine.mistake("yours is NaN where no answer moved the weight: it stays at w0.")
def _(before, answers):
    total, said = _tally(before, answers)
    return {k: w + total[k] / said[k] for k, w in before.items()}


@combine.mistake("you add the moves up: take their mean.")
def _(before, answers):
    return P.add(before, _tally(before, answers)[0])


@combine.mistake("you look at one answer: the noise is new in each, and the data are not.")
def _(before, answers):
    return answers[0]


@combine.mistake("you return the mean move: return weights, w0 + the mean.")
def _(before, answers):
    total, said = _tally(before, answers)
    return {k: v / said[k].clamp(min=1) for k, v in total.items()}
