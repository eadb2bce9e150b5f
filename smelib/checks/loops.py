"""The assignments' checks: what a step reveals, and loops, each tried on a loss of its own."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from smelib import params as P
from smelib.checks.cases import Bowl, dummies, named, normal, numbers, scene
from smelib.checks.engine import piece
from smelib.federated import gradient
from smelib.models import Network
from smelib.types import Params, Update


def _sent(seed: int) -> list[dict]:
    rates = (0.3, 0.1, 0.05, 0.2, 0.7)
    return [
        named(update=scene(s, epochs=1, lr=lr).update, lr=lr)
        for s, lr in zip(numbers(seed), rates, strict=True)
    ]


@piece("sent_gradient(update, lr)", _sent, over="updates")
def sent_gradient(update: Update, lr: float) -> Params:
    """the gradient behind an update of one step, (w0 - w1) / lr, as a dict like `update.before`."""
    return P.scale(P.sub(update.before, update.after), 1 / lr)


@sent_gradient.mistake("yours points the other way: a step goes against the gradient, w0 - w1.")
def _(update: Update, lr: float) -> Params:
    return P.scale(P.sub(update.after, update.before), 1 / lr)


@sent_gradient.mistake("yours is the whole step: divide it by lr.")
def _(update: Update, lr: float) -> Params:
    return P.sub(update.before, update.after)


@sent_gradient.mistake("you multiply by lr: the step was lr times the gradient, so divide.")
def _(update: Update, lr: float) -> Params:
    return P.scale(P.sub(update.before, update.after), lr)


@sent_gradient.mistake("you divide by the number of samples: the client's loss is a mean already.")
def _(update: Update, lr: float) -> Params:
    return P.scale(P.sub(update.before, update.after), 1 / (lr * update.samples))


def _alone(seed: int) -> list[dict]:
    scenes = [scene(s, kind="linear", samples=1, epochs=1) for s in numbers(seed)]
    return [named(update=s.update) for s in scenes]


def _last(update: Update, which: int = -1) -> Tensor:
    name = [k for k in update.before if k.endswith("bias")][which]
    return update.before[name] - update.after[name]


@piece("read_label(update)", _alone, over="updates")
def read_label(update: Update) -> int:
    """the label of the only image: where the gradient of the last bias is negative, as an int.

    The last bias is the last entry of `update.before`.
    """
    return int(_last(update).argmin())


@read_label.mistake("yours has the wrong sign: the bias of the true class rises in a step.")
def _(update: Update) -> int:
    return int(_last(update).argmax())


@read_label.mistake("you look at the first bias: labels are in the last layer's.")
def _(update: Update) -> int:
    return int(_last(update, 0).argmin())


@read_label.mistake("you look at the bias itself: the label is in its change.")
def _(update: Update) -> int:
    return int(list(update.after.values())[-1].argmax())


@read_label.mistake("you look for the smallest change: look for the one entry of another sign.")
def _(update: Update) -> int:
    return int(_last(update).abs().argmin())


def _descents(seed: int) -> list[dict]:
    found = []
    for k, s in enumerate(map(scene, numbers(seed))):
        loss = Bowl(normal(s.draw, 2, 1, 3, 3), 0.4)
        found.append(named(loss=loss, start=normal(s.draw, 2, 1, 3, 3), steps=2 + k, lr=0.3))
    return found


Loss = Callable[[Tensor], Tensor]


def _descended(loss: Loss, start: Tensor, steps: int, lr: float) -> Tensor:
    z = start
    for _ in range(steps):
        z = z - lr * _slope(loss, z)
    return z


def _slope(loss: Loss, z: Tensor) -> Tensor:
    z = z.detach().requires_grad_()
    return torch.autograd.grad(loss(z), z)[0]


@piece("descend(loss, start, steps, lr)", _descents, over="losses", detached=True)
def descend(loss: Loss, start: Tensor, steps: int, lr: float) -> Tensor:
    """so many steps of gradient descent on `loss(images)` from `start`: z becomes z - lr gradient.

    The answer is the last images, without a gradient; `start` stays as it is.
    """
    return _descended(loss, start, steps, lr)


@descend.mistake("you climb: a step is minus lr times the gradient.")
def _(loss: Loss, start: Tensor, steps: int, lr: float) -> Tensor:
    return _descended(loss, start, steps, -lr)


@descend.mistake("you take one step: take as many as `steps` says.")
def _(loss: Loss, start: Tensor, steps: int, lr: float) -> Tensor:
    return _descended(loss, start, 1, lr)


@descend.mistake("you take a step too few: loop over range(steps).")
def _(loss: Loss, start: Tensor, steps: int, lr: float) -> Tensor:
    return _descended(loss, start, steps - 1, lr)


@descend.mistake("all your steps use the gradient at the start: take it where z is now.")
def _(loss: Loss, start: Tensor, steps: int, lr: float) -> Tensor:
    return start - steps * lr * _slope(loss, start)


@descend.mistake("your gradients add up from step to step: zero them, or use torch.autograd.grad.")
def _(loss: Loss, start: Tensor, steps: int, lr: float) -> Tensor:
    z, total = start, torch.zeros_like(start)
    for _ in range(steps):
        total = total + _slope(loss, z)
        z = z - lr * total
    return z


@descend.mistake("you return the loss: return the images.")
def _(loss: Loss, start: Tensor, steps: int, lr: float) -> Tensor:
    return loss(_descended(loss, start, steps, lr))


def _signed(seed: int) -> list[dict]:
    found = []
    for k, s in enumerate(map(scene, numbers(seed))):
        start = normal(s.draw, 2, 1, 3, 3).clamp(-1, 1.5)
        loss = Bowl(2 * normal(s.draw, 2, 1, 3, 3), 0.4)
        found.append(named(loss=loss, start=start, steps=4 + k, lr=0.4, box=(-1.0, 1.5)))
    return found


Box = tuple[float, float]


def _signs(loss: Loss, z: Tensor, lr: float) -> Tensor:
    return z - lr * _slope(loss, z).sign()


@piece("ig_steps(loss, start, steps, lr, box)", _signed, over="losses", detached=True)
def ig_steps(loss: Loss, start: Tensor, steps: int, lr: float, box: Box) -> Tensor:
    """so many times: a step of length lr against the gradient's sign, then into the box.

    `box` is the pair (black, white) of numbers between which all values stay. The answer is the
    images, without a gradient.
    """
    z = start
    for _ in range(steps):
        z = _signs(loss, z, lr).clamp(*box)
    return z


@ig_steps.mistake(
    "you step by the gradient itself: IG steps by its sign, the same for every pixel."
)
def _(loss: Loss, start: Tensor, steps: int, lr: float, box: Box) -> Tensor:
    z = start
    for _ in range(steps):
        z = (z - lr * _slope(loss, z)).clamp(*box)
    return z


@ig_steps.mistake("you never go back into the box: clamp after every step.")
def _(loss: Loss, start: Tensor, steps: int, lr: float, box: Box) -> Tensor:
    z = start
    for _ in range(steps):
        z = _signs(loss, z, lr)
    return z


@ig_steps.mistake("you clamp once, at the end: clamp after every step.")
def _(loss: Loss, start: Tensor, steps: int, lr: float, box: Box) -> Tensor:
    z = start
    for _ in range(steps):
        z = _signs(loss, z, lr)
    return z.clamp(*box)


@ig_steps.mistake("you climb: a step goes against the gradient's sign.")
def _(loss: Loss, start: Tensor, steps: int, lr: float, box: Box) -> Tensor:
    return ig_steps.check.reference(loss, start, steps, -lr, box)


@ig_steps.mistake("you clamp before the step: clamp after it, so that the last one is inside too.")
def _(loss: Loss, start: Tensor, steps: int, lr: float, box: Box) -> Tensor:
    z = start
    for _ in range(steps):
        z = _signs(loss, z.clamp(*box), lr)
    return z


@ig_steps.mistake(
    "your gradients add up from step to step, and you take the sum's sign: zero them, or use "
    "torch.autograd.grad."
)
def _(loss: Loss, start: Tensor, steps: int, lr: float, box: Box) -> Tensor:
    z, total = start, torch.zeros_like(start)
    for _ in range(steps):
        total = total + _slope(loss, z)
        z = (z - lr * total.sign()).clamp(*box)
    return z


@ig_steps.mistake("you take a step too few: loop over range(steps).")
def _(loss: Loss, start: Tensor, steps: int, lr: float, box: Box) -> Tensor:
    return ig_steps.check.reference(loss, start, steps - 1, lr, box)


def _alphas(seed: int) -> list[dict]:
    found = []
    for s, place in zip(map(scene, numbers(seed)), (0.3, 0.8, 0.1, 0.9, 0.55), strict=True):
        given = {"update": s.update, "labels": s.client.labels, "z": dummies(s)}
        alpha = torch.tensor(place, dtype=torch.float64)
        found.append(named(model=s.model, **given, alpha=alpha))
    return found


def _mismatch(model: Network, update: Update, labels: Tensor, z: Tensor, weights: Params) -> Tensor:
    return 1 - P.cosine(P.sub(update.before, update.after), gradient(model, weights, z, labels))


def _by_weights(model, update, labels, z, alpha) -> Params:
    """The mismatch's gradient by the weights, at a place of the segment."""
    weights = P.lerp(update.before, update.after, alpha)
    weights = {k: w.detach().requires_grad_() for k, w in weights.items()}
    loss = _mismatch(model, update, labels, z, weights)
    slopes = torch.autograd.grad(loss, list(weights.values()))
    return dict(zip(weights, slopes, strict=True))


@piece("alpha_slope(model, update, labels, z, alpha)", _alphas, over="updates")
def alpha_slope(model: Network, update: Update, labels: Tensor, z: Tensor, alpha: Tensor) -> Tensor:
    """the derivative of SME's mismatch by alpha: its gradient by the weights, times wT - w0.

    The mismatch is one minus the cosine, without total variation; the answer is one number.
    """
    slope = _by_weights(model, update, labels, z, alpha)
    return P.dot(slope, P.sub(update.after, update.before))


@alpha_slope.mistake("your sign is wrong: the surrogate moves by wT - w0 as alpha grows.")
def _(model, update, labels, z, alpha):
    return -alpha_slope.check.reference(model, update, labels, z, alpha)


@alpha_slope.mistake("you take the gradient at w0: take it at the surrogate, w0 + alpha (wT - w0).")
def _(model, update, labels, z, alpha):
    return alpha_slope.check.reference(model, update, labels, z, torch.zeros_like(alpha))


@alpha_slope.mistake("at alpha = 0 yours is at wT: your alpha runs from the other end.")
def _(model, update, labels, z, alpha):
    return alpha_slope.check.reference(model, update, labels, z, 1 - alpha)


@alpha_slope.mistake(
    "you take the inner product with the dummies' gradient: it is with the mismatch's gradient, a "
    "second derivative."
)
def _(model, update, labels, z, alpha):
    weights = P.lerp(update.before, update.after, alpha)
    return P.dot(gradient(model, weights, z, labels), P.sub(update.after, update.before))


@alpha_slope.mistake("yours is a length: take the inner product with wT - w0.")
def _(model, update, labels, z, alpha):
    return P.norm(_by_weights(model, update, labels, z, alpha))


@alpha_slope.mistake("yours is a cosine: the inner product is not divided by lengths.")
def _(model, update, labels, z, alpha):
    slope = _by_weights(model, update, labels, z, alpha)
    return P.cosine(slope, P.sub(update.after, update.before))


def _joint(seed: int) -> list[dict]:
    """Bowls whose alpha is driven out of [0, 1] at one end or the other, or stays inside."""
    found = []
    places = (1.6, -0.7, 0.4, 1.4, 0.2)
    for k, (s, place) in enumerate(zip(map(scene, numbers(seed)), places, strict=True)):
        start = normal(s.draw, 2, 1, 3, 3).clamp(-1, 1.5)
        alpha = torch.tensor(0.5, dtype=torch.float64)
        loss = Bowl(2 * normal(s.draw, 2, 1, 3, 3) / 3, place)
        given = {"steps": 3 + k, "lr": 0.4, "lr_alpha": 0.02, "box": (-1.0, 1.0)}
        found.append(named(loss=loss, start=start, alpha=alpha, **given))
    return found


Pair = tuple[Tensor, Tensor]
Joint = Callable[[Tensor, Tensor], Tensor]


def _both(loss: Joint, z: Tensor, alpha: Tensor) -> Pair:
    z, alpha = z.detach().requires_grad_(), alpha.detach().requires_grad_()
    return torch.autograd.grad(loss(z, alpha), (z, alpha))


def _jointly(
    loss: Joint, start: Tensor, alpha: Tensor, steps: int, lr: float, lr_alpha: float, box: Box
) -> Pair:
    z = start
    for _ in range(steps):
        dz, da = _both(loss, z, alpha)
        z, alpha = (z - lr * dz).clamp(*box), (alpha - lr_alpha * da).clamp(0, 1)
    return z, alpha


@piece(
    "sme_steps(loss, start, alpha, steps, lr, lr_alpha, box)", _joint, over="losses", detached=True
)
def sme_steps(
    loss: Joint, start: Tensor, alpha: Tensor, steps: int, lr: float, lr_alpha: float, box: Box
) -> Pair:
    """so many times: descend on loss(images, alpha) in both at once, then clamp both.

    Images step by `lr` and stay in `box`; alpha steps by `lr_alpha` and stays in [0, 1]. Both
    gradients are taken at the same point. The answer is the pair (images, alpha), without a
    gradient.
    """
    return _jointly(loss, start, alpha, steps, lr, lr_alpha, box)


@sme_steps.mistake("your alpha leaves [0, 1]: clamp it after every step.")
def _(loss, start, alpha, steps, lr, lr_alpha, box):
    z = start
    for _ in range(steps):
        dz, da = _both(loss, z, alpha)
        z, alpha = (z - lr * dz).clamp(*box), alpha - lr_alpha * da
    return z, alpha


@sme_steps.mistake("your images leave the box: clamp them after every step.")
def _(loss, start, alpha, steps, lr, lr_alpha, box):
    return _jointly(loss, start, alpha, steps, lr, lr_alpha, (-torch.inf, torch.inf))


@sme_steps.mistake("your alpha never moves: it is an unknown like the images.")
def _(loss, start, alpha, steps, lr, lr_alpha, box):
    return _jointly(loss, start, alpha, steps, lr, 0.0, box)


@sme_steps.mistake("your alpha steps by lr: it has its own, lr_alpha.")
def _(loss, start, alpha, steps, lr, lr_alpha, box):
    return _jointly(loss, start, alpha, steps, lr, lr, box)


@sme_steps.mistake("you move the images first, then alpha: take both gradients at the same point.")
def _(loss, start, alpha, steps, lr, lr_alpha, box):
    z = start
    for _ in range(steps):
        z = (z - lr * _both(loss, z, alpha)[0]).clamp(*box)
        alpha = (alpha - lr_alpha * _both(loss, z, alpha)[1]).clamp(0, 1)
    return z, alpha


@sme_steps.mistake("your alpha climbs: it steps against its gradient, as the images do.")
def _(loss, start, alpha, steps, lr, lr_alpha, box):
    return _jointly(loss, start, alpha, steps, lr, -lr_alpha, box)


@sme_steps.mistake(
    "your gradients add up from step to step: zero both, the images' and alpha's, or use "
    "torch.autograd.grad."
)
def _(loss, start, alpha, steps, lr, lr_alpha, box):
    z, total, totals = start, torch.zeros_like(start), torch.zeros_like(alpha)
    for _ in range(steps):
        dz, da = _both(loss, z, alpha)
        total, totals = total + dz, totals + da
        z, alpha = (z - lr * total).clamp(*box), (alpha - lr_alpha * totals).clamp(0, 1)
    return z, alpha


@sme_steps.mistake("alpha's gradients add up from step to step: zero alpha.grad like the images'.")
def _(loss, start, alpha, steps, lr, lr_alpha, box):
    z, total = start, torch.zeros_like(alpha)
    for _ in range(steps):
        dz, da = _both(loss, z, alpha)
        total = total + da
        z, alpha = (z - lr * dz).clamp(*box), (alpha - lr_alpha * total).clamp(0, 1)
    return z, alpha
