"""Labels from an update: the last layer gives them away before any image is rebuilt."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from smelib import params as P
from smelib import seeds
from smelib.errors import InputError, checked, nearest
from smelib.models import Network
from smelib.types import Protocol, Update


@checked
def idlg(model: Network, update: Update) -> int:
    """The label of a single sample: the only negative entry of the last bias's gradient.  [Zhao20]

    Cross-entropy's gradient there is softmax minus one-hot, so exactly one entry is negative.
    """
    if update.samples != 1:
        raise InputError(
            f"iDLG reads the label of one sample; this update comes from {update.samples}. "
            "Use labels.counts()."
        )
    return int(falls(model, _ready(model, update))["bias"].argmin())


def _ready(model: Network, update: Update) -> Update:
    """The update, checked, in a precision that holds its differences."""
    if getattr(model.loss, "func", model.loss) is not cross_entropy:
        raise InputError(
            "labels are read off the gradient of cross-entropy, and this network has another loss; "
            "give the labels instead."
        )
    update = model.own(update)
    update.check()
    return update.to(next(iter(update.before.values())).device, update.dtype)


def falls(model: Network, update: Update) -> dict[str, Tensor]:
    """How far the last layer's bias fell, and the sums of its weight's rows."""
    weight, bias = model.head()
    fall = {k: update.before[k] - update.after[k] for k in (weight, bias)}
    if not bool(fall[bias].any()):
        raise InputError(
            f"the last bias {bias!r} did not move, so no label can be read from it; was it frozen? "
            "Give the labels instead."
        )
    return {"bias": fall[bias], "rows": fall[weight].sum(dim=1)}


def statistics(model: Network, weights: P.Params, z: Tensor) -> tuple[Tensor, Tensor]:
    """Mean softmax, and mean summed input of the last layer, of dummies under these weights."""
    module = model.structure.get_submodule(model.head()[0].rpartition(".")[0])
    seen: list[Tensor] = []
    hook = module.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    try:
        with torch.no_grad():
            p = model.logits(weights, z).softmax(dim=-1).mean(dim=0)
    finally:
        hook.remove()
    return p.cpu(), seen[0].sum(dim=-1).mean().cpu()


@checked
def counts(
    model: Network,
    update: Update,
    protocol: Protocol | None = None,
    *,
    layer: str = "bias",
    seed: int = 0,
    dummies: int = 256,
) -> Tensor:
    """How many samples of each class the client holds.

    $n_i = N p_i - N \\Delta_i / (O T)$, where $\\Delta$ is the fall of the last layer's bias over
    the learning rate, and $O = 1$. With `layer="rows"` it is that of the sums of its weight's rows,
    and $O$ the summed activation: the published form [Geng21; as in Dimitrov22], which misreads
    more labels.

    The mean softmax $p$ and $O$ are estimated on random dummies and interpolated along the segment;
    the counts are rounded to sum to N.

    Without a `protocol` one factor is missing, and a class that the client does not have supplies
    it, as $N p_i$ equals the factor times its fall. With more classes than samples every class
    that falls is absent, and the median is taken; else the largest factor that no count forbids.
    """
    if layer not in ("bias", "rows"):
        raise nearest("layer", layer, ["bias", "rows"])
    update = _ready(model, update)
    model, n, fall = model.like(update.before), update.samples, falls(model, update)[layer].cpu()
    z = torch.randn(dummies, *model.shape, generator=seeds.generator(seed, "label dummies"))
    z = z.to(next(iter(update.before.values())))
    (p0, o0), (p1, o1) = (statistics(model, w, z) for w in (update.before, update.after))
    if protocol is None:
        p = (p0 + p1) / 2
        absent = fall > 0 if bool((fall > 0).any()) else fall != 0
        ratios = (n * p / fall)[absent]
        factor = ratios.median() if model.classes > n else ratios.min()
    else:
        steps = protocol.steps(n)
        mix = (steps - 1) / (2 * steps)  # the mean of t/T
        p, o = torch.lerp(p0, p1, mix), torch.lerp(o0, o1, mix)
        factor = n / (steps * protocol.lr * (1 if layer == "bias" else o))
    return round_to_total(n * p - factor * fall, n)


def round_to_total(estimate: Tensor, total: int) -> Tensor:
    """Non-negative integers that sum to `total`, largest residuals first."""
    estimate = estimate.cpu().double().clamp(min=0)
    if float(estimate.sum()) > 0:
        estimate = estimate * (total / estimate.sum())
    whole = estimate.floor().long()
    rest = total - int(whole.sum())
    whole[(estimate - whole).argsort(descending=True, stable=True)[:rest]] += 1
    return whole


@checked
def recover(
    model: Network,
    update: Update,
    protocol: Protocol | None = None,
    *,
    layer: str = "bias",
    seed: int = 0,
) -> Tensor:
    """The client's labels, as an attack wants them: N of them, in ascending order."""
    if update.samples == 1:
        return torch.tensor([idlg(model, update)])
    found = counts(model, update, protocol, layer=layer, seed=seed)
    return torch.repeat_interleave(torch.arange(len(found)), found)
