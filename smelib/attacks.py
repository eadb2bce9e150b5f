"""The attacks as a reader calls them: an objective, the loop, and that paper's defaults.

The signature is the threat model. DLG, IG and SME see `update` (w0, wT and N); DLFA also sees
the client's `Protocol`. None can reach the client's images.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypedDict

import torch
from torch import Tensor
from typing_extensions import Unpack

from smelib import objectives
from smelib.metrics import match
from smelib.models import Network
from smelib.objectives import Objective
from smelib.solver import Recipe, Solution, adam, cosine, lbfgs, minimise, staircase
from smelib.types import InputError, Protocol, Reconstruction, Update, nearest

OWN_ORDER = 1_000_003  # the client's batches are its secret: the same seed must not draw them again
SMALL_NETWORK = 1_000_000  # weights; on a CPU, larger ones run faster one restart at a time


class Options(TypedDict, total=False):
    """What every attack takes besides its own arguments."""

    steps: int  #: iterations of the loop
    seed: int  #: of the starting dummies; the same seed gives the same result
    restarts: int  #: independent starts; the one with the lowest final loss is returned
    batched: bool | None  #: restarts at once under vmap, or one by one; by default what is faster
    device: str  #: "auto" takes CUDA, then MPS, then the CPU
    keep: str  #: "last" state (as in the papers) or "best" by the attack's own loss
    snapshots: int  #: how many pictures of the way to keep
    compile: bool  #: hand the step to torch.compile; pays from some 2,000 steps on
    tolerance: float  #: stop early when 25 steps improve the loss by less than this share
    progress: bool | None  #: show a bar; by default on a terminal only


def pick_device(name: str = "auto") -> torch.device:
    """CUDA, then MPS, then CPU; or the device you name."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
        name = "mps" if name == "cpu" and torch.backends.mps.is_available() else name
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"the device {name!r} cannot be used ({reason}).") from None


def check_labels(labels: Tensor, update: Update, classes: int) -> Tensor:
    """One integer label per sample, each a class of the network."""
    labels = torch.as_tensor(labels)
    if labels.ndim != 1 or len(labels) != update.samples or labels.is_floating_point():
        raise InputError(
            f"the update comes from {update.samples} samples, so it needs {update.samples} "
            f"integer labels; these are {tuple(labels.shape)} of {labels.dtype}."
        )
    if int(labels.min()) < 0 or int(labels.max()) >= classes:
        bad = int(labels.max()) if int(labels.max()) >= classes else int(labels.min())
        raise InputError(
            f"the label {bad} is out of range: the network has classes 0..{classes - 1}."
        )
    return labels.long()


def _clamp(network: Network, images: Tensor, aux: dict[str, Tensor]) -> None:
    """Pixels stay between black and white, alpha on the segment."""
    low, high = network.box(images)
    images.clamp_(low, high)
    if "alpha" in aux:
        aux["alpha"].clamp_(0, 1)


def _run(
    objective: Callable[[Update, Tensor | None], Objective],
    network: Network,
    update: Update,
    labels: Tensor | None,
    recipe: Recipe,
    *,
    label: str,
    steps: int,
    epochs: int | None = None,
    aux: Callable[[torch.Generator], dict[str, Tensor]] = lambda generator: {},
    start: Callable[[Tensor], Tensor] = lambda noise: noise,
    finish: Callable[[Tensor], Tensor] = lambda z: z,
    seed: int = 0,
    restarts: int = 1,
    batched: bool | None = None,
    device: str = "auto",
    keep: str = "last",
    snapshots: int = 0,
    tolerance: float = 0.0,
    compile: bool = False,
    progress: bool | None = None,
) -> Reconstruction:
    """Check what came in, draw the starts, run the loop, keep the best restart."""
    update = network.own(update)
    update.check()
    labels = None if labels is None else check_labels(labels, update, network.classes)
    if restarts < 1:
        raise InputError(f"restarts={restarts}: an attack needs at least one start.")
    place = pick_device(device)
    kind = next(iter(update.before.values())).dtype
    update = update.to(place)
    labels = None if labels is None else labels.to(place)
    loss = objective(update, labels)

    generator = torch.Generator().manual_seed(seed)
    shape = (update.samples, *network.shape)
    shape = shape if epochs is None else (epochs, *shape)
    starts, extras = [], []
    for _ in range(restarts):
        starts.append(start(torch.randn(shape, generator=generator, dtype=kind)).to(place))
        extras.append({k: v.to(place, kind) for k, v in aux(generator).items()})

    def solve(chosen: slice) -> Solution:
        return minimise(
            loss,
            torch.stack(starts[chosen]),
            {k: torch.stack([e[k] for e in extras[chosen]]) for k in extras[0]},
            recipe,
            steps=steps,
            keep=keep,
            snapshots=snapshots,
            tolerance=tolerance,
            compile=compile,
            progress=progress,
            label=label,
        )

    if batched is None:
        weights = sum(v.numel() for v in update.before.values())
        small = epochs is None and weights < SMALL_NETWORK
        batched = (place.type == "cuda" or small) and recipe.optimiser is not lbfgs
    groups = [slice(None)] if batched else [slice(i, i + 1) for i in range(restarts)]
    solutions = []
    for group in groups:
        solutions.append(solve(group))
        if solutions[-1].stopped.startswith("interrupted"):
            break
    losses = torch.cat([s.loss for s in solutions]).cpu()
    winner = int(losses.nan_to_num(nan=float("inf")).argmin())
    solution, row = (solutions[0], winner) if batched else (solutions[winner], 0)
    chosen = labels if labels is not None else solution.aux["logits"][row].argmax(dim=-1)

    def picture(z: Tensor) -> Tensor:
        return network.denormalise(finish(z[row])).clamp(0, 1).cpu()

    return Reconstruction(
        images=picture(solution.images),
        labels=chosen.cpu(),
        loss=float(solution.loss[row]),
        similarity=float(solution.terms["similarity"][row]),
        alpha=float(solution.aux["alpha"][row]) if "alpha" in solution.aux else None,
        history={k: v[:, row] for k, v in solution.history.items()},
        restart_losses=losses,
        steps=solution.steps,
        seconds=sum(s.seconds for s in solutions),
        device=place.type,
        stopped=solution.stopped,
        snapshots=torch.stack([picture(z) for z in solution.snapshots]) if snapshots else None,
        snapshot_steps=solution.snapshot_steps,
    )


def dlg(
    model: Network,
    update: Update,
    labels: Tensor | None = None,
    *,
    lr: float,
    **options: Unpack[Options],
) -> Reconstruction:
    """Deep Leakage from Gradients: L-BFGS on the Euclidean distance of gradients.  [Zhu19]

    For a client that took a single step of learning rate `lr`. Without `labels` they are
    optimised together with the images. Keeps the best state, since L-BFGS may jump away from it.
    """
    if not lr > 0:
        raise InputError(f"lr={lr}: give the client's learning rate, which is positive.")
    options = {"steps": 100, "keep": "best", **options}

    def logits(generator: torch.Generator) -> dict[str, Tensor]:
        if labels is not None:
            return {}
        return {"logits": torch.randn(update.samples, model.classes, generator=generator)}

    return _run(
        lambda u, y: objectives.dlg(model, u, y, lr=lr),
        model,
        update,
        labels,
        Recipe(rates={"images": 1.0, "logits": 1.0}, optimiser=lbfgs),
        label="DLG",
        aux=logits,
        **options,
    )


@dataclass(frozen=True)
class Preset:
    """How IG and SME are minimised. `grey`: start near mid-grey with that much noise, not N(0, 1).

    `rate` is the images' learning rate; alpha is updated every `alpha_every` steps at `alpha_rate`.
    """

    steps: int
    schedule: Callable[[int, int], float]
    betas: tuple[float, float]
    alpha_rate: float
    rate: float = 1.0
    alpha_every: int = 1
    grey: float | None = None

    def start(self, network: Network, noise: Tensor) -> Tensor:
        """The first dummies, from unit noise."""
        if self.grey is None:
            return noise
        low, high = network.box(noise)
        return (low + high) / 2 + self.grey * noise

    def recipe(self, network: Network) -> Recipe:
        """For the solver: Adam in the box."""
        return Recipe(
            {"images": self.rate, "alpha": self.alpha_rate},
            optimiser=partial(adam, betas=self.betas),
            schedule=self.schedule,
            project=partial(_clamp, network),
            every={"alpha": self.alpha_every},
        )


PRESETS = {
    "paper": Preset(1000, staircase, (0.9, 0.999), alpha_rate=0.001),
    "fast": Preset(200, cosine, (0.9, 0.99), alpha_rate=0.02, rate=2.0, alpha_every=4, grey=0.1),
}


def _preset(name: str) -> Preset:
    if name not in PRESETS:
        raise nearest("preset", name, list(PRESETS))
    return PRESETS[name]


def ig(
    model: Network,
    update: Update,
    labels: Tensor,
    *,
    tv: float = 0.01,
    preset: str = "paper",
    **options: Unpack[Options],
) -> Reconstruction:
    """Inverting Gradients: cosine distance and total variation, at $w_0$.  [Geiping20]

    `preset` is "paper" (1000 steps) or "fast" (200); see `sme`.
    """
    how = _preset(preset)
    options = {"steps": how.steps, **options}
    return _run(
        lambda u, y: objectives.ig(model, u, y, tv=tv),
        model,
        update,
        labels,
        how.recipe(model),
        label="IG",
        start=partial(how.start, model),
        **options,
    )


def sme(
    model: Network,
    update: Update,
    labels: Tensor,
    *,
    tv: float = 0.01,
    alpha: float = 0.5,
    preset: str = "paper",
    **options: Unpack[Options],
) -> Reconstruction:
    """Surrogate Model Extension: IG at a learned point of the segment w0..wT.  [Zhu23]

    `alpha` is where the point starts: 0 at $w_0$, 1 at $w_T$. `preset` is "paper", the official
    code's schedule of 1000 steps, or "fast", which reaches about the same pictures in 200.
    """
    if not 0 <= alpha <= 1:
        raise InputError(f"alpha={alpha}: the surrogate lies on the segment, between 0 and 1.")
    how = _preset(preset)
    options = {"steps": how.steps, **options}
    return _run(
        lambda u, y: objectives.sme(model, u, y, tv=tv),
        model,
        update,
        labels,
        how.recipe(model),
        label="SME",
        start=partial(how.start, model),
        aux=lambda generator: {"alpha": torch.tensor(float(alpha))},
        **options,
    )


def _geometric(start: float, end: float, until: int, step: Tensor) -> Tensor:
    return start * (end / start) ** (step / until).clamp(max=1)


def merge_epochs(z: Tensor) -> Tensor:
    """Match every epoch's dummies `[E, N, ...]` to the first epoch's, reorder, and average."""
    aligned = [epoch[torch.as_tensor(match(epoch, z[0]), device=z.device)] for epoch in z]
    return torch.stack(aligned).mean(dim=0)


@dataclass(frozen=True)
class DLFASettings:
    """The authors' hyperparameters for one of their data sets.

    The learning rate falls by `decay` per `every` steps; the matching term's factor goes from
    `factor[0]` to `factor[1]`, geometrically, within the first 200 steps.
    """

    lr: float
    decay: float
    every: int
    factor: tuple[float, float]
    tv: float
    clip: float
    order: float
    mean_prior: bool


DLFA_SETTINGS = {
    "femnist": DLFASettings(0.4, 0.995, 10, (1, 2), tv=1e-3, clip=2, order=1000, mean_prior=True),
    "cifar100": DLFASettings(
        0.1, 0.997, 20, (4, 2), tv=2e-4, clip=10, order=6.075, mean_prior=False
    ),
}


def dlfa(
    model: Network,
    update: Update,
    labels: Tensor,
    protocol: Protocol,
    *,
    settings: DLFASettings | None = None,
    checkpoint: bool = True,
    **options: Unpack[Options],
) -> Reconstruction:
    """Data Leakage from Federated Averaging: simulate the client's training.  [Dimitrov22]

    `settings` default to the authors' for FEMNIST (grey images) or CIFAR-100 (colour). Memory grows
    with the square root of T; `checkpoint=False` keeps the whole graph and saves a forward pass.
    """
    chosen = settings or DLFA_SETTINGS["femnist" if model.shape[0] == 1 else "cifar100"]
    options = {"steps": 400, "seed": 0, **options}
    seed = options["seed"]

    def objective(update: Update, labels: Tensor) -> Objective:
        like = next(iter(update.before.values()))
        return objectives.dlfa(
            model,
            update,
            labels,
            protocol,
            tv=chosen.tv,
            clip=chosen.clip,
            order=chosen.order,
            summary=objectives.mean_image
            if chosen.mean_prior
            else objectives.max_features(like, model.shape[0], seed=seed),
            factor=partial(_geometric, *chosen.factor, 200),
            omega=objectives.layer_weights(update.before),
            checkpoint=checkpoint,
            seed=seed + OWN_ORDER,
        )

    return _run(
        objective,
        model,
        update,
        labels,
        Recipe({"images": chosen.lr}, schedule=lambda k, _: chosen.decay ** (k / chosen.every)),
        label="DLFA",
        epochs=protocol.epochs,
        finish=merge_epochs,
        **options,
    )


ATTACKS: dict[str, Callable[..., Reconstruction]] = {"dlg": dlg, "ig": ig, "sme": sme, "dlfa": dlfa}
