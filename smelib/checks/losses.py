"""Chapters 2, 3 and 7: the leak of a linear layer, and the losses of DLG, IG and SME."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from smelib import objectives, priors
from smelib import params as P
from smelib.checks.cases import dummies, named, normal, numbers, scene
from smelib.checks.engine import piece
from smelib.federated import gradient
from smelib.models import Network
from smelib.types import Params, Update

NOW = torch.tensor(0)  # the step number, which these losses do not look at


def _leaks(seed: int) -> list[dict]:
    scenes = [
        scene(s, kind="linear", samples=n)
        for s, n in zip(numbers(seed), (1, 2, 3, 3, 2), strict=True)
    ]
    return [named(model=s.model, update=s.update) for s in scenes]


def _division(model: Network, update: Update) -> tuple[Tensor, Tensor]:
    weight, bias = list(update.before)[:2]
    return tuple(update.before[k] - update.after[k] for k in (weight, bias))


def _loudest(rows: Tensor, db: Tensor) -> Tensor:
    order = db.abs().argsort(descending=True)
    order = order[db[order].abs() > 1e-5]
    return rows[order] / db[order, None]


@piece("divide(model, update)", _leaks, over="updates")
def divide(model: Network, update: Update) -> Tensor:
    """each row of the first layer's weight update over its entry of the bias update, as pixels.

    Units whose bias moved by at most 1e-5 are left out, the largest move comes first, and the
    answer is images `[units, C, H, W]`, denormalised.
    """
    return model.denormalise(_loudest(*_division(model, update)).view(-1, *model.shape))


@divide.mistake("yours are normalised values: model.denormalise() makes pixels of them.")
def _(model: Network, update: Update) -> Tensor:
    return _loudest(*_division(model, update)).view(-1, *model.shape)


@divide.mistake("you divide the weights themselves: the image is in their change, w0 - wT.")
def _(model: Network, update: Update) -> Tensor:
    weight, bias = list(update.before.values())[:2]
    return model.denormalise(_loudest(weight, bias).view(-1, *model.shape))


@divide.mistake("you divide by units that never moved: leave out those with |db| <= 1e-5.")
def _(model: Network, update: Update) -> Tensor:
    rows, db = _division(model, update)
    order = db.abs().argsort(descending=True)
    return model.denormalise((rows[order] / db[order, None]).view(-1, *model.shape))


def _sorted(model: Network, update: Update, key: Callable[[Tensor], Tensor]) -> Tensor:
    """The right pictures, in another order."""
    rows, db = _division(model, update)
    order = key(db).argsort(descending=True)
    order = order[db[order].abs() > 1e-5]
    return model.denormalise((rows[order] / db[order, None]).view(-1, *model.shape))


@divide.mistake("you sort by db with its sign: a large negative entry is loud too, so take |db|.")
def _(model: Network, update: Update) -> Tensor:
    return _sorted(model, update, lambda db: db)


@divide.mistake("you sort by |db|, the smallest first: put the largest first.")
def _(model: Network, update: Update) -> Tensor:
    return _sorted(model, update, lambda db: -db.abs())


@divide.mistake("the pictures are right, but not in order: sort by |db|, the largest first.")
def _(model: Network, update: Update) -> Tensor:
    rows, db = _division(model, update)
    alive = db.abs() > 1e-5
    return model.denormalise((rows[alive] / db[alive, None]).view(-1, *model.shape))


def _gradients(seed: int) -> list[dict]:
    found = []
    for s in map(scene, numbers(seed)):
        true = gradient(
            s.model, s.update.before, s.model.normalise(s.client.images), s.client.labels
        )
        given = {"w0": s.update.before, "g": true, "images": dummies(s), "labels": s.client.labels}
        found.append(named(model=s.model, **given))
    return found


def _gap(model: Network, w0: Params, g: Params, images: Tensor, labels: Tensor) -> Params:
    return P.sub(gradient(model, w0, images, labels), g)


@piece("dlg_loss(model, w0, g, images, labels)", _gradients, over="gradients", slopes=("images",))
def dlg_loss(model: Network, w0: Params, g: Params, images: Tensor, labels: Tensor) -> Tensor:
    """the squared distance between the client's gradient g and that of the dummies at w0.

    `g` is a dict, and `images` are normalised. The answer can be differentiated by the images.
    """
    lr = 0.1
    update = Update(w0, P.add(w0, g, -lr), len(labels))
    return objectives.dlg(model, update, labels, lr=lr)(images, {}, NOW)[0]


@dlg_loss.mistake("yours is a mean over the weights: the squared distance is the sum.")
def _(model: Network, w0: Params, g: Params, images: Tensor, labels: Tensor) -> Tensor:
    gap = _gap(model, w0, g, images, labels)
    return sum(v.square().mean() for v in gap.values())


@dlg_loss.mistake("yours is a mean over all weights: the squared distance is the sum.")
def _(model: Network, w0: Params, g: Params, images: Tensor, labels: Tensor) -> Tensor:
    gap = _gap(model, w0, g, images, labels)
    return torch.cat([v.flatten() for v in gap.values()]).square().mean()


@dlg_loss.mistake("yours is the distance: leave out the root, the loss is its square.")
def _(model: Network, w0: Params, g: Params, images: Tensor, labels: Tensor) -> Tensor:
    return P.norm(_gap(model, w0, g, images, labels))


@dlg_loss.mistake(
    "you normalise the images, which are normalised: use model.body, or model.logits, directly."
)
def _(model: Network, w0: Params, g: Params, images: Tensor, labels: Tensor) -> Tensor:
    gap = _gap(model, w0, g, model.normalise(images), labels)
    return P.dot(gap, gap)


@dlg_loss.mistake(
    "the value is right, but nothing leads back to the images: the inner gradient needs "
    "create_graph=True, and no .detach() or .item() after it."
)
def _(model: Network, w0: Params, g: Params, images: Tensor, labels: Tensor) -> Tensor:
    gap = _gap(model, w0, g, images, labels)
    return P.dot(gap, gap).detach()


def _pairs(seed: int) -> list[dict]:
    """Lists of three layers of unlike sizes."""
    found = []
    for s in map(scene, numbers(seed)):
        u = [normal(s.draw, *shape) for shape in ((2, 3, 3), (5,), (4, 7))]
        v = [x + 10**k * normal(s.draw, *x.shape) for k, x in enumerate(u)]
        found.append(named(u=u, v=v))
    return found


def _dot(a: list[Tensor], b: list[Tensor]) -> Tensor:
    return sum((x * y).sum() for x, y in zip(a, b, strict=True))


def _each(u: list[Tensor], v: list[Tensor]) -> list[Tensor]:
    return [angle.check.reference([x], [y]) for x, y in zip(u, v, strict=True)]


@piece("angle(u, v)", _pairs, over="pairs", slopes=("u", "v"))
def angle(u: list[Tensor], v: list[Tensor]) -> Tensor:
    """one minus the cosine of u and v, two lists of layers that count as one long vector each."""
    return 1 - P.cosine(dict(enumerate(u)), dict(enumerate(v)))


@angle.mistake("yours is the cosine: the distance is one minus it, 0 for equal directions.")
def _(u: list[Tensor], v: list[Tensor]) -> Tensor:
    return 1 - angle.check.reference(u, v)


@angle.mistake("you average the layers' cosines: all layers make one vector with one cosine.")
def _(u: list[Tensor], v: list[Tensor]) -> Tensor:
    return torch.stack(_each(u, v)).mean()


@angle.mistake("you add up the layers' distances: all layers make one vector with one cosine.")
def _(u: list[Tensor], v: list[Tensor]) -> Tensor:
    return sum(_each(u, v))


@angle.mistake("you divide by squared lengths: take the root of each inner product.")
def _(u: list[Tensor], v: list[Tensor]) -> Tensor:
    return 1 - _dot(u, v) / (_dot(u, u) * _dot(v, v))


@angle.mistake("you forget to divide by the lengths, so that a longer update counts for more.")
def _(u: list[Tensor], v: list[Tensor]) -> Tensor:
    return 1 - _dot(u, v)


@piece("free_length(u, v)", _pairs, over="pairs", slopes=("v",))
def free_length(u: list[Tensor], v: list[Tensor]) -> Tensor:
    """the least squared distance of t v to u over all factors t, divided by that of u to zero.

    `u` and `v` are lists of layers that count as one long vector each.
    """
    return 1 - P.cosine(dict(enumerate(u)), dict(enumerate(v))).square()


def _stretched(u: list[Tensor], v: list[Tensor], t: Tensor | float) -> Tensor:
    gap = [t * y - x for x, y in zip(u, v, strict=True)]
    return _dot(gap, gap)


@free_length.mistake("you leave v as long as it is: stretch it by the best factor t first.")
def _(u: list[Tensor], v: list[Tensor]) -> Tensor:
    return _stretched(u, v, 1.0) / _dot(u, u)


@free_length.mistake("you forget to divide by the squared length of u.")
def _(u: list[Tensor], v: list[Tensor]) -> Tensor:
    return _stretched(u, v, _dot(u, v) / _dot(v, v))


@free_length.mistake("yours is one minus the cosine: the least distance is one minus its square.")
def _(u: list[Tensor], v: list[Tensor]) -> Tensor:
    return angle.check.reference(u, v)


@free_length.mistake("you return the factor t: return the distance that it leaves.")
def _(u: list[Tensor], v: list[Tensor]) -> Tensor:
    return _dot(u, v) / _dot(v, v)


@free_length.mistake("your t divides by the squared length of u: divide by that of v.")
def _(u: list[Tensor], v: list[Tensor]) -> Tensor:
    return _stretched(u, v, _dot(u, v) / _dot(u, u)) / _dot(u, u)


def _pictures(seed: int) -> list[dict]:
    scenes = [scene(s, channels=1 + 2 * (s % 2)) for s in numbers(seed)]
    return [named(z=dummies(s)) for s in scenes]


def _jumps(z: Tensor) -> tuple[Tensor, Tensor]:
    return z.diff(dim=-1), z.diff(dim=-2)


@piece("total_variation(z)", _pictures, over="batches", slopes=("z",))
def total_variation(z: Tensor) -> Tensor:
    """the mean absolute difference of neighbours, the mean of across and down.

    `z` is `[N, C, H, W]`; the answer is one number.
    """
    return priors.total_variation(z)


@total_variation.mistake("you add across and down: take half of the sum, the mean of the two.")
def _(z: Tensor) -> Tensor:
    return sum(gap.abs().mean() for gap in _jumps(z))


@total_variation.mistake("you square the differences: total variation is of their absolute values.")
def _(z: Tensor) -> Tensor:
    return sum(gap.square().mean() for gap in _jumps(z)) / 2


@total_variation.mistake("you take sums: take means, or lambda would depend on the image's size.")
def _(z: Tensor) -> Tensor:
    return sum(gap.abs().sum() for gap in _jumps(z)) / 2


@total_variation.mistake("you take sums: take means, and half of across plus down.")
def _(z: Tensor) -> Tensor:
    return sum(gap.abs().sum() for gap in _jumps(z))


def _pooled(z: Tensor) -> Tensor:
    """One mean over the differences of both directions, as if all were of one kind."""
    return torch.cat([gap.flatten() for gap in _jumps(z)]).abs().mean()


@total_variation.mistake(
    "you take one mean over all differences: across and down are not equally many unless the image "
    "is square. Take the mean of each, then of the two."
)
def _(z: Tensor) -> Tensor:
    return _pooled(z)


@total_variation.mistake("you look across only: the rows' differences, down, are missing.")
def _(z: Tensor) -> Tensor:
    return z.diff(dim=-1).abs().mean()


@total_variation.mistake("you look down only: the columns' differences, across, are missing.")
def _(z: Tensor) -> Tensor:
    return z.diff(dim=-2).abs().mean()


@total_variation.mistake("you forget the absolute value, so that ups and downs cancel.")
def _(z: Tensor) -> Tensor:
    return sum(gap.mean() for gap in _jumps(z)) / 2


@total_variation.mistake("you wrap around: the last column and the first are no neighbours.")
def _(z: Tensor) -> Tensor:
    return sum((z - z.roll(1, d)).abs().mean() for d in (-1, -2)) / 2


@total_variation.mistake(
    "your differences are between images and between channels: height and width are the last two."
)
def _(z: Tensor) -> Tensor:
    gaps = z[:, 1:] - z[:, :-1], z[1:] - z[:-1]
    return sum(gap.abs().mean() for gap in gaps if gap.numel()) / 2


def _updates(seed: int) -> list[dict]:
    found = []
    for s in map(scene, numbers(seed)):
        target = list(P.sub(s.update.before, s.update.after).values())
        given = {"w0": s.update.before, "target": target, "z": dummies(s)}
        found.append(named(model=s.model, **given, labels=s.client.labels, tv=0.1))
    return found


def _slope(model: Network, w0: Params, z: Tensor, labels: Tensor) -> list[Tensor]:
    return list(gradient(model, w0, z, labels).values())


@piece("ig_loss(model, w0, target, z, labels, tv)", _updates, over="updates", slopes=("z",))
def ig_loss(
    model: Network, w0: Params, target: list[Tensor], z: Tensor, labels: Tensor, tv: float
) -> Tensor:
    """one minus the cosine of the target and the dummies' gradient at w0, plus tv times their TV.

    `target` is the list of the update's layers, and `z` is normalised.
    """
    end = {k: v - t for (k, v), t in zip(w0.items(), target, strict=True)}
    loss = objectives.ig(model, Update(w0, end, len(labels)), labels, tv=tv)
    return loss(z, {}, NOW)[0]


@ig_loss.mistake("you leave out the total variation: add tv times it.")
def _(model, w0, target, z, labels, tv):
    return ig_loss.check.reference(model, w0, target, z, labels, 0.0)


@ig_loss.mistake("you add the whole total variation: multiply it by tv.")
def _(model, w0, target, z, labels, tv):
    return ig_loss.check.reference(model, w0, target, z, labels, 1.0)


@ig_loss.mistake(
    "the value is right, but only the total variation has a gradient: the inner gradient needs "
    "create_graph=True, and no .detach() after it."
)
def _(model, w0, target, z, labels, tv):
    slope = [g.detach() for g in _slope(model, w0, z, labels)]
    return angle.check.reference(target, slope) + tv * priors.total_variation(z)


@ig_loss.mistake("you average the layers' cosines: all layers make one vector with one cosine.")
def _(model, w0, target, z, labels, tv):
    apart = torch.stack(_each(target, _slope(model, w0, z, labels))).mean()
    return apart + tv * priors.total_variation(z)


@ig_loss.mistake(
    "your cosine has the wrong sign: the loss is one minus it, small where they agree."
)
def _(model, w0, target, z, labels, tv):
    apart = angle.check.reference(target, _slope(model, w0, z, labels))
    return 2 - apart + tv * priors.total_variation(z)


@ig_loss.mistake("yours has the cosine itself: the loss has one minus it.")
def _(model, w0, target, z, labels, tv):
    apart = angle.check.reference(target, _slope(model, w0, z, labels))
    return 1 - apart + tv * priors.total_variation(z)


@ig_loss.mistake("you compare by distance, as DLG does: IG compares directions, by the cosine.")
def _(model, w0, target, z, labels, tv):
    slope = _slope(model, w0, z, labels)
    gap = sum((a - b).square().sum() for a, b in zip(target, slope, strict=True))
    return gap + tv * priors.total_variation(z)


@ig_loss.mistake(
    "your total variation is one mean over all differences: take the mean across, the mean down, "
    "and of the two the mean."
)
def _(model, w0, target, z, labels, tv):
    return ig_loss.check.reference(model, w0, target, z, labels, 0.0) + tv * _pooled(z)


@ig_loss.mistake("your total variation is twice ours: take the mean of across and down.")
def _(model, w0, target, z, labels, tv):
    return ig_loss.check.reference(model, w0, target, z, labels, 2 * tv)


def _strays(seed: int) -> list[dict]:
    scenes = [scene(s, channels=1 + 2 * (s % 2)) for s in numbers(seed)]
    return [named(model=s.model, z=3 * dummies(s)) for s in scenes]


@piece("project(model, z)", _strays, over="batches")
def project(model: Network, z: Tensor) -> Tensor:
    """the nearest dummies with pixels between black and white, as a new tensor.

    Pure, so that it can be tried alone: `z` is normalised, and so is the answer. `model.box(z)`
    has the normalised values of black and white, channel by channel.
    """
    return z.clamp(*model.box(z))


@project.mistake("you clamp to [0, 1], but z is normalised: black and white are model.box(z).")
def _(model: Network, z: Tensor) -> Tensor:
    return z.clamp(0, 1)


@project.mistake("you return pixels: normalise them again, as the search goes on with z.")
def _(model: Network, z: Tensor) -> Tensor:
    return model.denormalise(z).clamp(0, 1)


@project.mistake("you clamp to [-1, 1]: black and white are model.box(z).")
def _(model: Network, z: Tensor) -> Tensor:
    return z.clamp(-1, 1)


@project.mistake("you clamp at black only: pixels brighter than white stay.")
def _(model: Network, z: Tensor) -> Tensor:
    return z.clamp(min=model.box(z)[0])


@project.mistake("you use the first channel's bounds for all: model.box(z) has one per channel.")
def _(model: Network, z: Tensor) -> Tensor:
    return z.clamp(*(bound[0] for bound in model.box(z)))


def _places(seed: int) -> list[dict]:
    found = []
    for s, place in zip(map(scene, numbers(seed)), (0.3, 0.8, 0.0, 1.0, 0.55), strict=True):
        alpha = torch.tensor(place, dtype=torch.float64)
        found.append(named(update=s.update, alpha=alpha))
    return found


@piece("surrogate(update, alpha)", _places, over="updates", slopes=("alpha",))
def surrogate(update: Update, alpha: Tensor) -> Params:
    """the weights w0 + alpha (wT - w0), as a dict: alpha = 0 is the start of the segment.

    Pure, so that it can be tried alone. `alpha` is a tensor with one number, and the answer can be
    differentiated by it.
    """
    return P.lerp(update.before, update.after, alpha)


@surrogate.mistake("at alpha = 0 yours gives wT: your alpha runs from the other end.")
def _(update: Update, alpha: Tensor) -> Params:
    return P.lerp(update.after, update.before, alpha)


@surrogate.mistake("you walk away from wT: the direction is wT - w0, not w0 - wT.")
def _(update: Update, alpha: Tensor) -> Params:
    return P.lerp(update.before, update.after, -alpha)


@surrogate.mistake("you forget to subtract w0: the step is alpha (wT - w0), and not alpha wT.")
def _(update: Update, alpha: Tensor) -> Params:
    return P.add(update.before, update.after, alpha)


@surrogate.mistake(
    "the value is right, but alpha has no gradient: use the tensor as it is, without float(), "
    ".item() or .detach()."
)
def _(update: Update, alpha: Tensor) -> Params:
    return P.lerp(update.before, update.after, alpha.detach())


def _segments(seed: int) -> list[dict]:
    found = []
    for s, place in zip(map(scene, numbers(seed)), (0.3, 0.8, 0.0, 1.0, 0.55), strict=True):
        alpha = torch.tensor(place, dtype=torch.float64)
        given = {"update": s.update, "labels": s.client.labels, "z": dummies(s), "alpha": alpha}
        found.append(named(model=s.model, **given, tv=0.1))
    return found


@piece(
    "sme_loss(model, update, labels, z, alpha, tv=0.01)",
    _segments,
    over="updates",
    slopes=("z", "alpha"),
)
def sme_loss(
    model: Network, update: Update, labels: Tensor, z: Tensor, alpha: Tensor, tv: float
) -> Tensor:
    """one minus the cosine of w0 - wT and the dummies' gradient at w0 + alpha (wT - w0), plus TV.

    `z` is normalised and `alpha` a tensor with one number; the answer can be differentiated by
    both. The total variation counts `tv` times.
    """
    return objectives.sme(model, update, labels, tv=tv)(z, {"alpha": alpha}, NOW)[0]


def _apart(model, weights, update, labels, z):
    return 1 - P.cosine(P.sub(update.before, update.after), gradient(model, weights, z, labels))


@sme_loss.mistake(
    "at alpha = 0 yours gives the gradient at wT: your alpha runs from the other end."
)
def _(model, update, labels, z, alpha, tv):
    return sme_loss.check.reference(model, update, labels, z, 1 - alpha, tv)


@sme_loss.mistake("your alpha walks away from wT: the surrogate is w0 + alpha (wT - w0).")
def _(model, update, labels, z, alpha, tv):
    return sme_loss.check.reference(model, update, labels, z, -alpha, tv)


@sme_loss.mistake(
    "the value is right, but alpha has no gradient: use the tensor as it is, without float(), "
    ".item() or .detach()."
)
def _(model, update, labels, z, alpha, tv):
    return sme_loss.check.reference(model, update, labels, z, alpha.detach(), tv)


@sme_loss.mistake("you compare with wT - w0: a step goes against the gradient, so it is w0 - wT.")
def _(model, update, labels, z, alpha, tv):
    weights = P.lerp(update.before, update.after, alpha)
    return 2 - _apart(model, weights, update, labels, z) + tv * priors.total_variation(z)


@sme_loss.mistake("you leave out the total variation: add tv times it.")
def _(model, update, labels, z, alpha, tv):
    return sme_loss.check.reference(model, update, labels, z, alpha, 0.0)


@sme_loss.mistake("your total variation is twice ours: take the mean of across and down.")
def _(model, update, labels, z, alpha, tv):
    return sme_loss.check.reference(model, update, labels, z, alpha, 2 * tv)


@sme_loss.mistake(
    "your total variation is one mean over all differences: take the mean across, the mean down, "
    "and of the two the mean."
)
def _(model, update, labels, z, alpha, tv):
    without = sme_loss.check.reference(model, update, labels, z, alpha, 0.0)
    return without + tv * _pooled(z)


@sme_loss.mistake("your loss ignores alpha: take the gradient at the surrogate, not at w0.")
def _(model, update, labels, z, alpha, tv):
    return _apart(model, update.before, update, labels, z) + tv * priors.total_variation(z)


@sme_loss.mistake(
    "your cosine has the wrong sign: the loss is one minus it, small where they agree."
)
def _(model, update, labels, z, alpha, tv):
    weights = P.lerp(update.before, update.after, alpha)
    return 1 - _apart(model, weights, update, labels, z) + tv * priors.total_variation(z)


@sme_loss.mistake("you average the layers' cosines: all layers make one vector with one cosine.")
def _(model, update, labels, z, alpha, tv):
    slope = gradient(model, P.lerp(update.before, update.after, alpha), z, labels)
    target = P.sub(update.before, update.after)
    apart = torch.stack(_each(list(target.values()), list(slope.values()))).mean()
    return apart + tv * priors.total_variation(z)
