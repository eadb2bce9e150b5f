"""Run one job: attack one client and compare with the truth, or measure its path."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

from smelib import attacks, data, labels, metrics, models, presets, seeds, theory
from smelib.errors import InputError
from smelib.federated import local_path, local_update
from smelib.reproduce import defending, networks, provenance
from smelib.reproduce.plan import REBALANCED, Job, Row, kind
from smelib.types import Params, Protocol, Update

Runner = Callable[..., dict]
KEPT = (
    100  # local steps whose simulation is kept whole: DLFA is a quarter faster, bit for bit alike
)


def run(
    job: Job, *, root: str | None, folder: Path, device: str = "auto", compiled: bool = False
) -> dict:
    """One job's measurements; a trained network is read from the folder of results."""
    row = job.setting
    if row.defence is not None:
        return defending.run(job, root=root, folder=folder)
    before = None if row.rounds == 1 else networks.load(folder, *job.network)
    found = measure(
        *(row, job.method, job.init, job.seed),
        root=root,
        before=before,
        device=device,
        compiled=compiled,
    )
    return {**found, "data": provenance.data_digest(row.dataset, root)}


def measure(
    row: Row,
    method: str,
    init: str,
    seed: int,
    *,
    root: str | None = None,
    before: Params | None = None,
    device: str = "auto",
    compiled: bool = False,
    preset: str = "paper",
) -> dict:
    """What a method gives on one client of a setting, the network at `before` or untrained.

    `compiled` hands the steps of IG and SME to `torch.compile`, which pays for long jobs only.
    """
    protocol = row.protocol()
    client = data.client(row.dataset, row.samples, seed=seed, root=root)
    model = _network(row, client, init, seed, root)
    if method == "path":
        return _follow(model, client, protocol, seed=seed, before=before)
    update = local_update(model, client, protocol, seed=seed, before=before)
    attack = kind(method)
    compiled = compiled and attack != "dlfa"
    extra = {"preset": preset, "compile": compiled}
    if attack == "dlfa":
        settings = presets.rebalanced(update, protocol) if method == REBALANCED else None
        longer = protocol.steps(row.samples) > KEPT
        # where a row is cut short, it is the cost of DLFA's default that is measured
        extra = {"checkpoint": longer or row.steps is not None}
        extra |= {"protocol": protocol, "settings": settings}
    if method == "retrace":
        extra = {"compile": compiled}  # it sees what SME sees, and has a preset of its own
    if row.steps is not None:
        extra["steps"] = row.steps
    known = labels.recover(model, update, seed=seed) if row.recovered else client.labels
    held, busy = provenance.memory_mb(device), time.process_time()
    found = attacks.ATTACKS[attack](
        model, update, known, seed=seed, device=device, progress=False, **extra
    )
    busy = time.process_time() - busy
    if found.stopped != "finished":
        raise FloatingPointError("the attack did not finish: " + found.stopped)
    score = metrics.evaluate(found.images, client.images)
    return {
        "psnr": score.psnr,
        "ssim": score.ssim,
        "above_18": sum(p > 18 for p in score.psnrs) / len(score.psnrs),  # a share of the images
        "l_sim": found.similarity,
        "alpha": found.alpha,
        "seconds": found.seconds,
        "cpu_seconds": busy,  # what a shared machine does not stretch
        "memory_mb": provenance.memory_mb(device, peak=True) - held,
        "steps": found.steps,
        "compiled": compiled,
    }


def _network(
    row: Row, client: data.Client, init: str, seed: int, root: str | None
) -> models.Network:
    """The row's network before training, its batch norms with the statistics that the row asks for.

    Those of the first weights (mean 0, variance 1); "batch": of the batch at hand; "data": those
    that 1,000 images of the data set have in the untrained network.
    """
    options = dict(row.options)
    norm = options.pop("batch_norm", "frozen")
    size = (client.shape, client.classes)
    model = models.build(row.network, *size, init=init, seed=seed, **options)
    if norm == "batch":
        return models.wrap(model.body, *size, name=row.network, batch_norm="batch")
    if norm == "data":
        held = data.load(row.dataset, root=root)
        rng = seeds.numpy_generator(seed, "client", "statistics")
        images = held.client(rng.choice(len(held), min(1000, len(held)), replace=False)).images
        body = copy.deepcopy(model.body).train()
        for layer in body.modules():
            if isinstance(layer, nn.BatchNorm2d):
                layer.momentum = None  # one batch, whose statistics are taken as they are
        with torch.no_grad():
            body(model.normalise(images))
        return models.wrap(body.eval(), *size, name=row.network)
    return model


def _follow(
    model: models.Network,
    client: data.Client,
    protocol: Protocol,
    *,
    seed: int,
    before: Params | None,
) -> dict:
    """How flat a client's path is: the least share of a true gradient in the best plane.

    And the cosine between the update and the true gradient at w0 and at the best of 101 points.
    """
    started = time.perf_counter()
    path = list(local_path(model, client, protocol, seed=seed, before=before))
    slopes = theory.path_gradients(model, client, path[:-1])
    alphas = torch.linspace(0, 1, 101).tolist()
    update = Update(path[0], path[-1], len(client))
    cosines = theory.segment_cosines(model, client, update, alphas)
    return {
        "p2_ratio": float(theory.plane_ratios(theory.gram(slopes)).min()),
        "cos_start": float(cosines[0]),
        "cos_best": float(cosines.max()),
        "alpha": alphas[int(cosines.argmax())],
        "seconds": time.perf_counter() - started,
        "steps": len(slopes),
    }


def attempt(
    job: Job, runner: Runner = run, *, folder: Path, device: str = "auto", **options: object
) -> dict:
    """A job's whole line: its measurements or its error, and what they were made with."""
    try:
        found = runner(job, folder=folder, device=device, **options)
    except Exception as error:  # whatever went wrong, the other jobs go on
        return failure(job, error, folder=folder, device=device)
    return {**provenance.line(job, folder=folder, device=device), "status": "ok", **found}


def failure(job: Job, error: Exception, *, folder: Path, device: str = "auto") -> dict:
    """The line of a job that gave no result."""
    text = (str(error).strip() or "no message").splitlines()[0]
    said = text if isinstance(error, InputError) else f"{type(error).__name__}: {text}"
    known = provenance.line(job, folder=folder, device=device)
    return {**known, "status": "failed", "error": said}
