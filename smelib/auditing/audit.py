"""The audit: read an update, find out how it was made, attack it, and say what that means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from smelib import attacks, labels, metrics, models
from smelib.auditing import networks, normalising, traces
from smelib.auditing.naming import fitted
from smelib.auditing.report import PARTLY, Report
from smelib.auditing.weights import weights
from smelib.errors import InputError, nearest
from smelib.models import Network
from smelib.types import Protocol, Reconstruction, Update

SWAPPED = 0.5  # the other way round must leave less than this share of the mismatch


def audit(
    network: nn.Module | Network | str,
    before: object,
    after: object,
    *,
    samples: int,
    shape: tuple[int, int, int] | None = None,
    classes: int | None = None,
    known_labels: Sequence[int] | Tensor | None = None,
    normalisation: str | normalising.Normalisation | None = None,
    batch_norm: str | None = None,
    protocol: Protocol | None = None,
    method: str = "sme",
    preset: str = "fast",
    seed: int = 0,
    device: str = "auto",
    progress: bool | None = None,
    **options: object,
) -> Report:
    """What can the server rebuild of this update?

    `network` is your module, or its name (see `auditing.networks`); `before` and `after` are the
    weights it sent and got back: state_dicts, lists of arrays in the network's order, or files.
    `shape` is that of one image, channels first.

    Without `known_labels` they are read from the update. `normalisation` is "raw", the name of a
    usual one, or `(mean, std)`; without it the usual ones are tried, and the one that explains the
    update best is taken. `batch_norm` is "batch" where the client's layers normalised with the
    batch's statistics, "frozen" where with the running ones; without it, what the file shows.
    """
    if method not in attacks.ATTACKS:
        raise nearest("method", method, list(attacks.ATTACKS))
    case = _Case.of(network, before, after, samples, shape, classes, batch_norm)

    def known(model: Network) -> Tensor:
        if known_labels is not None:
            return model.check_labels(torch.as_tensor(known_labels), samples)
        return labels.recover(model, case.update, protocol, seed=seed)

    quiet = {"seed": seed, "device": device, "progress": progress}
    name, model, tried = case.normalised(normalisation, known, quiet)
    found_traces = traces.traces(model, case.update)
    given = {**quiet, **options}
    if method in ("ig", "sme"):
        given |= normalising.in_pixels(model, preset)
    elif protocol is None:
        raise InputError(f"{method} needs the client's training: give protocol=.")
    else:
        given |= {"protocol": protocol} if method == "dlfa" else {"lr": protocol.lr}

    def attack(seed: int) -> Reconstruction:
        run = attacks.ATTACKS[method]
        return run(model, case.update, known(model), **{**given, "seed": seed})

    first, second = attack(seed), attack(seed + 1)
    best = min(first, second, key=lambda r: r.loss)
    said = traces.warnings(found_traces)
    said += case.doubts(found_traces, batch_norm)
    if best.similarity > PARTLY:
        said += _unexplained(model, case.update, best, known_labels, seed, device)
    return Report(
        found=best,
        agreement=metrics.evaluate(first.images, second.images).psnr,
        normalisation=name,
        traces=found_traces,
        warnings=said,
        assumed=_assumed(case, model, name, known_labels, method),
        tried=tried,
        renamed=case.renamed,
    )


class _Case:
    """An update and the module it belongs to, once both are understood."""

    def __init__(
        self,
        body: nn.Module,
        update: Update,
        shape: tuple[int, int, int],
        classes: int,
        renamed: dict[str, str],
        batch_norm: str,
        fixed: Network | None,
    ) -> None:
        self.body, self.shape, self.classes = body, shape, classes
        self.renamed, self.batch_norm, self.fixed = renamed, batch_norm, fixed
        self.update = self.wrapped(*normalising.default(shape[0])).own(update)
        self.update.check()

    @classmethod
    def of(
        cls,
        network: nn.Module | Network | str,
        before: object,
        after: object,
        samples: int,
        shape: tuple[int, int, int] | None,
        classes: int | None,
        batch_norm: str | None,
    ) -> _Case:
        """Read and name everything; what does not fit is a sentence."""
        fixed = network if isinstance(network, Network) else None
        if fixed is not None:
            shape, classes, body = fixed.shape, fixed.classes, fixed.body
        elif shape is None or classes is None:
            raise InputError("give shape=, that of one image like (1, 28, 28), and classes=.")
        else:
            body = networks.module(network, shape, classes) if isinstance(network, str) else network
        if not isinstance(body, nn.Module):
            raise InputError(
                f"network is a {type(body).__name__}; give a torch.nn.Module, a Network, or a name."
            )
        start, renamed = fitted(body, weights(before, "before"), "before")
        end, _ = fitted(body, weights(after, "after"), "after")
        moved = any(
            not torch.equal(start[k], end[k])
            for k in start
            if k.rpartition(".")[2] in traces.STATISTICS and k in end
        )
        if batch_norm is None:
            batch_norm = "batch" if moved else "frozen"
        return cls(body, Update(start, end, samples), shape, classes, renamed, batch_norm, fixed)

    def wrapped(self, mean: tuple[float, ...], std: tuple[float, ...]) -> Network:
        if self.fixed is not None:
            return replace(self.fixed, mean=mean, std=std)
        return models.wrap(
            self.body, self.shape, self.classes, mean=mean, std=std, batch_norm=self.batch_norm
        )

    def normalised(
        self,
        given: str | normalising.Normalisation | None,
        known: Callable[[Network], Tensor],
        quiet: dict,
    ) -> tuple[str, Network, dict[str, float]]:
        """The network with the normalisation given, or with the one that explains the update."""
        if given is None and self.fixed is not None:
            given = (self.fixed.mean, self.fixed.std)
        if isinstance(given, str):
            chosen = normalising.usual(given, self.shape[0])
            return given, self.wrapped(*chosen), {}
        if given is not None:
            mean, std = given
            return (
                f"mean {_list(mean)}, std {_list(std)}",
                self.wrapped(tuple(mean), tuple(std)),
                {},
            )
        made = {k: self.wrapped(*v) for k, v in normalising.candidates(self.shape[0]).items()}
        models.check_derivatives(next(iter(made.values())))
        found = normalising.search(made, self.update, known, **quiet)
        return found.name, made[found.name], found.mismatches

    def doubts(self, found: traces.Traces, batch_norm: str | None) -> list[str]:
        """What the batch-norm layers say."""
        layers = [m for m in self.body.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
        if not layers:
            return []
        if found.statistics_moved and batch_norm is None:
            return [
                "The batch-norm statistics moved: the client trained in train mode. The attack "
                "takes the statistics of all its samples at once, the client those of each batch."
            ]
        if found.statistics_moved and batch_norm == "frozen":
            return ["The batch-norm statistics moved, so the client's layers were not frozen."]
        if not any(k.rpartition(".")[2] in traces.STATISTICS for k in self.update.before):
            return [
                "The network has batch norm, and the update does not hold its running statistics: "
                "the network's own were used."
            ]
        return []


def _unexplained(
    model: Network,
    update: Update,
    best: Reconstruction,
    known_labels: object,
    seed: int,
    device: str,
) -> list[str]:
    """Why an update may stay unexplained: a swap is tried, the rest is named."""
    turned = Update(update.after, update.before, update.samples)
    try:
        guess = (
            best.labels if known_labels is not None else labels.recover(model, turned, seed=seed)
        )
        other = attacks.sme(
            model,
            turned,
            guess,
            **normalising.in_pixels(model, replace(normalising.PRESETS["fast"], steps=100)),
            seed=seed,
            device=device,
            progress=False,
        )
        if other.similarity < SWAPPED * best.similarity:
            return [
                f"The other way round the update is explained better (mismatch "
                f"{other.similarity:.2f} instead of {best.similarity:.2f}): are before and after "
                "swapped?"
            ]
    except (InputError, FloatingPointError):
        pass
    return [
        f"A mismatch of {best.similarity:.2f} is more than this book's honest updates leave. Check "
        "the pair of files, the labels, the normalisation, the optimiser, and whether the update "
        "was noised or compressed."
    ]


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{v:g}" for v in values)


def _assumed(
    case: _Case, model: Network, name: str, known_labels: object, method: str
) -> list[str]:
    """What the attack took for granted."""
    said = ["plain SGD on cross-entropy" if method != "dlfa" else "the protocol you gave"]
    said.append(f"pixels normalised as {name} (mean {_list(model.mean)}, std {_list(model.std)})")
    said.append("labels as you gave them" if known_labels is not None else "labels as recovered")
    if any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in case.body.modules()):
        how = {"batch": "of the batch (train mode)", "frozen": "running (eval mode)"}
        said.append(f"batch-norm statistics: {how[case.batch_norm]}")
    return said
