"""Labels from an update: the last layer gives them away before any image is rebuilt."""

from __future__ import annotations

import torch
from torch import Tensor

from smelib import params as P
from smelib.models import Network
from smelib.types import InputError, Protocol, Update


def idlg(network: Network, update: Update) -> int:
    """The label of a single sample: the only negative entry of the last bias's gradient.  [Zhao20]

    Cross-entropy's gradient there is softmax minus one-hot, so exactly one entry is negative.
    """
    if update.samples != 1:
        raise InputError(
            f"iDLG reads the label of one sample; this update comes from {update.samples}. "
            "Use labels.counts()."
        )
    bias = network.head()[1]
    return int((update.before[bias] - update.after[bias]).argmin())


def _statistics(network: Network, weights: P.Params, z: Tensor) -> tuple[Tensor, Tensor]:
    """Mean softmax, and mean summed input of the last layer, of dummies under these weights."""
    module = network.body.get_submodule(network.head()[0].rpartition(".")[0])
    seen: list[Tensor] = []
    hook = module.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    try:
        with torch.no_grad():
            p = network.logits(weights, z).softmax(dim=-1).mean(dim=0)
    finally:
        hook.remove()
    return p, seen[0].sum(dim=-1).mean()


def counts(
    network: Network,
    update: Update,
    protocol: Protocol | None = None,
    *,
    seed: int = 0,
    dummies: int = 256,
) -> Tensor:
    """How many samples of each class the client holds.  [Geng21; in the form of Dimitrov22]

    $n_i = N p_i - N \\Delta W_i / (O T)$: the mean softmax $p$ and the summed activation $O$ are
    estimated on random dummies and interpolated along the segment; then rounded to sum to N.

    Without a `protocol`, T and the learning rate are unknown and one factor is missing. Most
    classes are absent from a small client, and there $N p_i$ equals the factor times the row sum,
    so their median ratio supplies it.
    """
    update = network.own(update)
    update.check()
    weight = network.head()[0]
    n, like = update.samples, update.before[weight]
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(dummies, *network.shape, generator=generator).to(like)
    (p0, o0), (p1, o1) = (_statistics(network, w, z) for w in (update.before, update.after))
    row_sums = (update.before[weight] - update.after[weight]).sum(dim=1)
    if protocol is None:
        p = (p0 + p1) / 2
        absent = row_sums > 0 if bool((row_sums > 0).any()) else row_sums != 0
        factor = (n * p / row_sums)[absent].median()
    else:
        steps = protocol.steps(n)
        mix = (torch.arange(steps, dtype=like.dtype, device=like.device) / steps).mean()
        p, o = torch.lerp(p0, p1, mix), torch.lerp(o0, o1, mix)
        factor = n / (o * steps * protocol.lr)
    return _round_to_total(n * p - factor * row_sums, n)


def _round_to_total(estimate: Tensor, total: int) -> Tensor:
    """Non-negative integers that sum to `total`, largest residuals first."""
    estimate = estimate.double().cpu().clamp(min=0)
    if float(estimate.sum()) > 0:
        estimate = estimate * (total / estimate.sum())
    whole = estimate.floor().long()
    rest = total - int(whole.sum())
    whole[(estimate - whole).argsort(descending=True, stable=True)[:rest]] += 1
    return whole


def recover(
    network: Network, update: Update, protocol: Protocol | None = None, *, seed: int = 0
) -> Tensor:
    """The client's labels, as an attack wants them: N of them, in ascending order."""
    if update.samples == 1:
        return torch.tensor([idlg(network, update)])
    found = counts(network, update, protocol, seed=seed)
    return torch.repeat_interleave(torch.arange(len(found)), found)
