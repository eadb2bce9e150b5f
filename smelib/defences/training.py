"""DP-SGD: privacy for every sample, by a training that clips each gradient and adds noise."""

from __future__ import annotations

import copy
import math
import warnings
from dataclasses import dataclass

import torch
from torch.optim import SGD, Adam, AdamW, Optimizer
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset

from smelib import seeds
from smelib.data import Client
from smelib.errors import InputError, checked, first_line
from smelib.models import Network
from smelib.types import Params, Protocol, Update


@dataclass(frozen=True)
class Private:
    """What DP-SGD gives: the update to send, and what each sample was promised.

    `rate` is a sample's chance to be in a batch, `steps` the number of batches.
    """

    update: Update
    epsilon: float
    delta: float
    rate: float
    steps: int


@checked
def dp_sgd(
    model: Network,
    client: Client,
    protocol: Protocol,
    *,
    noise: float,
    norm: float,
    delta: float = 1e-5,
    seed: int = 0,
    before: Params | None = None,
) -> Private:
    """Local training by Opacus: each sample's gradient clipped to `norm`, then noise.  [Abadi16]

    `noise` is the multiplier: a batch's sum gets Gaussian noise of deviation `noise * norm`.
    Batches are drawn, every sample with the same chance, so that about B are in one. This protects
    one sample of the client, where `clip` and `noise` on the update protect all of them at once.
    """
    _check(noise, norm, delta)
    opacus = _opacus()
    weights = model.params() if before is None else before
    model = model.like(weights)
    body = copy.deepcopy(model.body).train()
    with torch.no_grad():
        for name, value in body.named_parameters():
            value.copy_(weights[name])
    if problems := opacus.validators.ModuleValidator.validate(body, strict=False):
        raise InputError(f"DP-SGD cannot train {model.name!r}: {first_line(problems[0])}")
    z = model.normalise(client.images.to(next(iter(weights.values()))))
    held = TensorDataset(z, client.labels.to(z.device))
    loader = DataLoader(held, protocol.batch_size, generator=seeds.generator(seed, "batches"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of hooks, and that noise for a study is not secret
        engine = opacus.PrivacyEngine(accountant="rdp")
        private, optimiser, drawn = engine.make_private(
            module=body,
            optimizer=_optimiser(protocol, body),
            data_loader=loader,
            noise_multiplier=noise,
            max_grad_norm=norm,
            noise_generator=seeds.generator(seed, "defence"),
        )
        steps = protocol.epochs * len(drawn)
        schedule = LambdaLR(optimiser, lambda t: protocol.schedule(min(t, steps - 1), steps))
        for _ in range(protocol.epochs):
            for images, labels in drawn:
                optimiser.zero_grad()
                model.loss(private(images), labels).backward()
                optimiser.step()
                schedule.step()
        epsilon = engine.get_epsilon(delta) if noise else math.inf
    trained = {k: v.detach() for k, v in body.named_parameters()}
    after = {k: trained[k].clone() if k in trained else v for k, v in weights.items()}
    update = Update(weights, after, len(client))
    return Private(update, epsilon, delta, drawn.sample_rate, steps)


def sample_epsilon(noise: float, rate: float, steps: int, *, delta: float = 1e-5) -> float:
    """Opacus's epsilon of one sample after so many steps of DP-SGD, of however many rounds."""
    _check(noise, 1.0, delta)
    if not 0 < rate <= 1 or steps < 1:
        raise InputError(f"rate={rate}, steps={steps}: a share above 0, and at least one step.")
    accountant = _opacus().accountants.RDPAccountant()
    accountant.history = [(noise, rate, steps)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the best order is the first or the last
        return accountant.get_epsilon(delta) if noise else math.inf


def _optimiser(protocol: Protocol, body: torch.nn.Module) -> Optimizer:
    moving = [p for p in body.parameters() if p.requires_grad]
    given = {"lr": protocol.lr, "weight_decay": protocol.weight_decay}
    if protocol.optimiser == "sgd":
        return SGD(moving, **given, momentum=protocol.momentum)
    return (Adam if protocol.optimiser == "adam" else AdamW)(moving, **given)


def _check(noise: float, norm: float, delta: float) -> None:
    if not (noise >= 0 and norm > 0 and 0 < delta < 1):
        raise InputError(
            f"noise={noise}, norm={norm}, delta={delta}: the noise multiplier is not negative, the "
            "norm positive, and delta between 0 and 1."
        )


def _opacus() -> object:
    try:
        import opacus
        import opacus.validators
    except ImportError:
        raise InputError("DP-SGD needs Opacus: pip install 'smelib[defences]'.") from None
    return opacus
