"""The audit: read an update, find out how it was made, attack it, and say what that means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from smelib import attacks, labels, metrics, models
from smelib.auditing import networks, normalising, traces
from smelib.auditing.naming import fitted
from smelib.auditing.normalising import Normalisation
from smelib.auditing.report import PARTLY, Report
from smelib.auditing.weights import weights
from smelib.devices import afford
from smelib.errors import InputError, nearest, whole
from smelib.models import Network
from smelib.types import Protocol, Reconstruction, Stop, Update

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
    normalisation: str | Normalisation | None = None,
    batch_norm: str | None = None,
    protocol: Protocol | None = None,
    method: str = "sme",
    preset: str = "fast",
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
    `options` are those of `solver.Options`.
    """
    if method not in attacks.ATTACKS:
        raise nearest("method", method, list(attacks.ATTACKS))
    if method in ("dlfa", "dlg") and protocol is None:
        raise InputError(f"{method} needs the client's training: give protocol=Protocol(…).")
    body, shape, classes = _body(network, shape, classes)
    samples = whole(samples, "the update's sample count")
    afford(samples * (8 + 4 * math.prod(shape)), f"{samples} images")
    start, renamed = fitted(body, weights(before, "before"), "before")
    end, _ = fitted(body, weights(after, "after"), "after")
    sent = Update(start, end, samples)
    case = _Case(network, body, shape, classes, sent, batch_norm, known_labels, protocol, options)
    name, model, tried = case.normalised(normalisation)
    pair = case.attacked(model, method, preset)
    best = min(pair, key=lambda found: found.loss)
    # Where the batch's statistics are used, the network has no running ones to compare.
    marks = replace(traces.traces(model, case.update), statistics_moved=case.moved)
    said = [*traces.warnings(marks), *case.doubts(marks)]
    return Report(
        found=best,
        agreement=metrics.evaluate(*(found.images for found in pair)).psnr if pair[1:] else None,
        normalisation=name,
        traces=marks,
        warnings=[*said, *case.unexplained(model, best)],
        assumed=case.assumed(model, name, method),
        tried=tried,
        renamed=renamed,
        update=case.update,
    )


def _body(
    network: nn.Module | Network | str,
    shape: tuple[int, int, int] | None,
    classes: int | None,
) -> tuple[nn.Module, tuple[int, int, int], int]:
    if isinstance(network, Network):
        return network.body, network.shape, network.classes
    if shape is None or classes is None:
        raise InputError("give shape=, that of one image like (1, 28, 28), and classes=.")
    body = networks.module(network, shape, classes) if isinstance(network, str) else network
    if not isinstance(body, nn.Module):
        raise InputError(
            f"the network is a {type(body).__name__}; give a torch.nn.Module, a Network, or a name."
        )
    return body, shape, classes


@dataclass
class _Case:
    """An update and the module it belongs to, once both are understood."""

    network: nn.Module | Network | str
    body: nn.Module
    shape: tuple[int, int, int]
    classes: int
    update: Update
    batch_norm: str | None
    known_labels: Sequence[int] | Tensor | None
    protocol: Protocol | None
    options: dict

    def __post_init__(self) -> None:
        self.told = self.batch_norm is not None
        self.moved = traces.statistics_moved(self.update)
        self.batch_norm = self.batch_norm or ("batch" if self.moved else "frozen")
        self.layers = [m for m in self.body.modules() if isinstance(m, _BatchNorm)]
        model = self.wrapped(*normalising.default(self.shape[0]))
        self.update = model.own(self.update)
        self.update.check()
        models.check_derivatives(model)

    def wrapped(self, mean: tuple[float, ...], std: tuple[float, ...]) -> Network:
        if isinstance(self.network, Network):
            return replace(self.network, mean=mean, std=std)
        return models.wrap(
            self.body, self.shape, self.classes, mean=mean, std=std, batch_norm=self.batch_norm
        )

    def labels(self, model: Network, update: Update | None = None) -> Tensor:
        if self.known_labels is not None:
            return model.check_labels(torch.as_tensor(self.known_labels), self.update.samples)
        seed = self.options.get("seed", 0)
        return labels.recover(model, update or self.update, self.protocol, seed=seed)

    def normalised(
        self, given: str | Normalisation | None
    ) -> tuple[str, Network, dict[str, float]]:
        """The network with the normalisation given, or with the one that explains the update."""
        if given is None and isinstance(self.network, Network):
            given = (self.network.mean, self.network.std)
        if isinstance(given, str):
            return given, self.wrapped(*normalising.usual(given, self.shape[0])), {}
        if given is not None:
            mean, std = (tuple(values) for values in given)
            return "given", self.wrapped(mean, std), {}
        made = {k: self.wrapped(*v) for k, v in normalising.candidates(self.shape[0]).items()}
        kept = {k: v for k, v in self.options.items() if k in ("seed", "device", "progress")}
        found = normalising.search(made, self.update, self.labels, **kept)
        return found.name, made[found.name], found.mismatches

    def attacked(self, model: Network, method: str, preset: str) -> list[Reconstruction]:
        """The attack from two independent starts."""
        given = dict(self.options)
        if method == "retrace":
            given |= {"protocol": self.protocol}
        elif method in ("ig", "sme"):
            given |= normalising.in_pixels(model, preset)
        else:
            known = {"protocol": self.protocol}
            given |= known if method == "dlfa" else {"lr": self.protocol.lr}
        if method == "dlg" and self.protocol.steps(self.update.samples) != 1:
            raise InputError("dlg inverts a single step: one epoch, and all samples in a batch.")
        seed, found = given.pop("seed", 0), []
        for start in (seed, seed + 1):
            one = attacks.ATTACKS[method](
                model, self.update, self.labels(model), seed=start, **given
            )
            if one.stopped is Stop.INTERRUPTED:
                return found or [one]
            found.append(one)
        return found

    def doubts(self, marks: traces.Traces) -> list[str]:
        """What the batch-norm layers say."""
        if not self.layers:
            return []
        if marks.statistics_moved and not self.told:
            return [
                "The batch-norm statistics moved: the client trained in train mode. The attack "
                "takes the statistics of all its samples at once, the client those of each batch."
            ]
        if marks.statistics_moved and self.batch_norm == "frozen":
            return ["The batch-norm statistics moved, so the client's layers were not frozen."]
        return []

    def unexplained(self, model: Network, best: Reconstruction) -> list[str]:
        """Why an update may stay unexplained: a swap is tried, the rest is named."""
        if best.similarity <= PARTLY or best.stopped is Stop.INTERRUPTED:
            return []
        turned = Update(self.update.after, self.update.before, self.update.samples)
        kept = {k: v for k, v in self.options.items() if k in ("seed", "device")}
        most = min(normalising.STEPS, self.options.get("steps") or normalising.STEPS)
        short = normalising.in_pixels(model, replace(normalising.PRESETS["fast"], steps=most))
        try:
            guess = self.labels(model, turned)
            other = attacks.sme(model, turned, guess, progress=False, **short, **kept).similarity
        except (InputError, FloatingPointError):  # then it is not the other way round
            other = 1.0
        if other < SWAPPED * best.similarity and other <= PARTLY:
            labels = "; or are the labels wrong" if self.known_labels is not None else ""
            return [
                f"The other way round the update is explained better (mismatch {other:.2f} instead "
                f"of {best.similarity:.2f}): are before and after swapped{labels}?"
            ]
        said = [
            f"A mismatch of {best.similarity:.2f} is more than this book's honest updates leave. "
            "Check the pair of files, the network, the sample count, the labels, the pixels (0 to "
            "1, and their normalisation), the optimiser, and whether the update was noised, "
            "compressed or is itself a difference."
        ]
        if self.layers and not self.told and not self._statistics_sent():
            said.append(
                "The update holds no batch-norm statistics, and most clients train in train mode: "
                'try batch_norm="batch", --batch-norm batch at the command line.'
            )
        return said

    def _statistics_sent(self) -> bool:
        return any(k.rpartition(".")[2] in traces.STATISTICS for k in self.update.before)

    def assumed(self, model: Network, name: str, method: str) -> list[str]:
        """What the attack took for granted."""
        trained = "plain SGD on cross-entropy"
        mean, std = (", ".join(f"{v:g}" for v in values) for values in (model.mean, model.std))
        said = [trained if self.protocol is None else "the training you described"]
        said.append(f"pixels normalised as {name} (mean {mean}; std {std})")
        given = self.known_labels is not None
        said.append("labels as you gave them" if given else "labels as read from the update")
        if self.layers:
            own = (
                ""
                if self._statistics_sent()
                else ", those of the network you gave, as the update holds none"
            )
            how = {"batch": "the batch's (train mode)", "frozen": f"running (eval mode){own}"}
            said.append(f"batch-norm statistics: {how[self.batch_norm]}")
        return said
