"""The attacks as a reader calls them: an objective, the loop, and that paper's defaults.

The signature is the threat model. DLG, IG, SME and retrace see `update` (w0, wT and N); DLFA also
sees the client's `Protocol`, and retrace may. None can reach the client's images.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import torch
from torch import Tensor

from smelib import objectives, seeds
from smelib.devices import afford, pick_device
from smelib.errors import InputError, checked, whole
from smelib.models import Network
from smelib.objectives import Aux, Objective
from smelib.pairing import match
from smelib.presets import DLFA_SETTINGS, DLFASettings, Preset
from smelib.presets import preset as named
from smelib.solver import Options, Recipe, Solution, lbfgs, minimise
from smelib.types import Protocol, Reconstruction, Stop, Update

SMALL_NETWORK = 1_000_000  # weights; on a CPU, larger ones run faster one restart at a time

Make: TypeAlias = Callable[[Network, Update, Tensor | None], Objective]
"""What makes an attack's objective of what the adversary sees: the network, the update, labels."""


@checked
def reconstruct(
    model: Network,
    update: Update,
    labels: Tensor | None,
    objective: Make,
    recipe: Recipe,
    options: Options = Options(),  # noqa: B008
    *,
    name: str = "attack",
) -> Reconstruction:
    """Run an attack of your own: minimise `objective(model, update, labels)` over the images.

    The objective is made once the model and the update are on the device and in one precision, half
    precision made single. Checks what came in, draws the starts, keeps the best restart.
    """
    place = pick_device(options.device)
    update = model.own(update)
    update.check()
    update = update.to(place, update.dtype)
    model = model.to(place, update.dtype)
    if labels is not None:
        labels = model.check_labels(labels, update.samples).to(place)
    batched = _batched(update, recipe, options)
    starts = _starts(model, update, recipe, options)
    recipe = replace(recipe, bounds=_normalised(model, recipe.bounds, starts[0]))
    loss = objective(model, update, labels)

    solutions: list[Solution] = []
    for group in [starts] if batched else [[start] for start in starts]:
        unknowns = {k: torch.stack([start[k] for start in group]) for k in group[0]}
        images = unknowns.pop("images")
        solutions.append(minimise(loss, images, unknowns, recipe, options, label=name))
        if solutions[-1].stopped is Stop.INTERRUPTED:
            break
    return _answer(model, labels, recipe, solutions, batched)


def _batched(update: Update, recipe: Recipe, options: Options) -> bool:
    """Whether restarts run at once: as asked for, or as is faster."""
    together = recipe.optimiser is lbfgs  # one line search for all unknowns
    if options.batched and options.restarts > 1 and together:
        raise InputError(
            "batched=True would couple the restarts: L-BFGS searches along one line for all of "
            "them. Leave batched= out."
        )
    if options.batched is not None:
        return options.batched
    first = next(iter(update.before.values()))
    small = sum(v.numel() for v in update.before.values()) < SMALL_NETWORK
    return not together and (first.is_cuda or (small and recipe.epochs is None))


def _starts(model: Network, update: Update, recipe: Recipe, options: Options) -> list[Aux]:
    """Every restart's unknowns, drawn on the CPU: the same ones whatever the device."""
    like = next(iter(update.before.values()))
    noise = seeds.generator(options.seed, "start")
    others = seeds.generator(options.seed, "unknowns")
    copies = () if recipe.epochs is None else (recipe.epochs,)
    shape = (*copies, update.samples, *model.shape)
    # An image, its gradient, Adam's moments and the states to go back to; the history's columns.
    numbers = options.restarts * (8 * math.prod(shape) + 3 * options.steps)
    afford(numbers * like.element_size(), f"{options.restarts} × {options.steps} steps on {shape}")
    found = []
    for _ in range(options.restarts):
        images = torch.randn(shape, generator=noise, dtype=like.dtype).to(like.device)
        if recipe.grey is not None:
            images = sum(model.box(images)) / 2 + recipe.grey * images
        found.append(
            {"images": images, **{k: v.to(like) for k, v in recipe.unknowns(others).items()}}
        )
    return found


def _normalised(model: Network, bounds: dict[str, tuple], start: Aux) -> dict[str, tuple]:
    """The bounds as the loop needs them: those of pixels in the network's units."""
    if "images" not in bounds:
        return bounds
    black, white = model.box(start["images"])
    return {**bounds, "images": tuple(torch.lerp(black, white, v) for v in bounds["images"])}


def _answer(
    model: Network, labels: Tensor | None, recipe: Recipe, solutions: list[Solution], batched: bool
) -> Reconstruction:
    """The restart with the lowest loss, as pictures."""
    losses = torch.cat([s.loss for s in solutions]).cpu()
    if not bool(torch.isfinite(losses).any()):
        raise FloatingPointError(
            "the loss is NaN or infinite from the first step, so there is nothing to return; "
            "lower the learning rate or check the update's weights."
        )
    winner = int(losses.nan_to_num(nan=torch.inf).argmin())
    best, row = (solutions[0], winner) if batched else (solutions[winner], 0)
    if best.stopped is Stop.DIVERGED:
        warnings.warn(
            f"the loss turned NaN before step {best.steps}; returning the last good state. Lower "
            "the learning rate, or check the update's weights.",
            RuntimeWarning,
            stacklevel=6,
        )

    def picture(z: Tensor) -> Tensor:
        return model.denormalise(recipe.finish(z[row])).clamp(0, 1).cpu()

    frames = [picture(z) for z in best.snapshots]
    return Reconstruction(
        images=picture(best.images),
        labels=(best.aux["logits"][row].argmax(dim=-1) if labels is None else labels).cpu(),
        loss=float(best.loss[row]),
        similarity=float(best.terms["similarity"][row]),
        alpha=float(best.aux["alpha"][row]) if "alpha" in best.aux else None,
        history={k: v[:, row] for k, v in best.history.items()},
        restart_losses=losses,
        steps=best.steps,
        seconds=sum(s.seconds for s in solutions),
        device=best.images.device.type,
        stopped=max((best.stopped, solutions[-1].stopped), key=Stop.INTERRUPTED.__eq__),
        snapshots=torch.stack(frames) if frames else None,
        snapshot_steps=best.snapshot_steps,
    )


@checked
def dlg(
    model: Network, update: Update, labels: Tensor | None = None, *, lr: float, **options: object
) -> Reconstruction:
    """Deep Leakage from Gradients: L-BFGS on the Euclidean distance of gradients.  [Zhu19]

    For a client that took a single step of learning rate `lr`. Without `labels` they are
    optimised together with the images. Keeps the best state, since L-BFGS may jump away from it.
    `options` are those of `solver.Options`.
    """
    if not lr > 0:
        raise InputError(f"lr={lr}: give the client's learning rate, which is positive.")

    def logits(generator: torch.Generator) -> Aux:
        size = (update.samples, model.classes)
        return {} if labels is not None else {"logits": torch.randn(size, generator=generator)}

    return reconstruct(
        model,
        update,
        labels,
        partial(objectives.dlg, lr=lr),
        Recipe({"images": 1.0, "logits": 1.0}, optimiser=lbfgs, unknowns=logits),
        Options.of(options, steps=100, keep="best"),
        name="DLG",
    )


@checked
def ig(
    model: Network,
    update: Update,
    labels: Tensor,
    *,
    tv: float = 0.01,
    preset: str | Preset = "paper",
    **options: object,
) -> Reconstruction:
    """Inverting Gradients: cosine distance and total variation, at $w_0$.  [Geiping20]

    `preset` is "paper" (1000 steps), "fast" (200), or a `Preset` of your own; see `sme`.
    `options` are those of `solver.Options`.
    """
    how = named(preset)
    loss = partial(objectives.ig, tv=tv)
    given = Options.of(options, steps=how.steps)
    return reconstruct(model, update, labels, loss, how.recipe(), given, name="IG")


@checked
def sme(
    model: Network,
    update: Update,
    labels: Tensor,
    *,
    tv: float = 0.01,
    alpha: float = 0.5,
    preset: str | Preset = "paper",
    **options: object,
) -> Reconstruction:
    """Surrogate Model Extension: IG at a learned point of the segment w0..wT.  [Zhu23]

    `alpha` is where the point starts: 0 at $w_0$, 1 at $w_T$. `preset` is "paper", the official
    code's schedule of 1000 steps, or "fast", which reaches about the same pictures in 200; or a
    `Preset` of your own. `options` are those of `solver.Options`.
    """
    if not 0 <= alpha <= 1:
        raise InputError(f"alpha={alpha}: the surrogate lies on the segment, between 0 and 1.")
    how = named(preset)
    recipe = replace(how.recipe(), unknowns=lambda generator: {"alpha": torch.tensor(float(alpha))})
    loss = partial(objectives.sme, tv=tv)
    given = Options.of(options, steps=how.steps)
    return reconstruct(model, update, labels, loss, recipe, given, name="SME")


@checked
def retrace(
    model: Network,
    update: Update,
    labels: Tensor,
    *,
    nodes: int = 1,
    moves: int = 20,
    protocol: Protocol | None = None,
    tv: float = 0.003,
    preset: str | Preset = "fast",
    every: int = 4,
    warm: float = 0.15,
    **options: object,
) -> Reconstruction:
    """SME that follows the client's path: walked from the dummies `every` so many steps.

    Sees what SME sees, and is SME for a share `warm` of its steps. A walk takes so many `moves`;
    with `protocol`, the client's steps with its optimiser. The path is matched with the gradients
    at K `nodes` of it, and what they leave over is held. `options` are those of `solver.Options`.
    """
    nodes, moves, every = (
        whole(value, name) for value, name in ((nodes, "nodes"), (moves, "moves"), (every, "every"))
    )
    if not 0 <= warm <= 1:
        raise InputError(f"warm={warm}: it is a share of the steps, between 0 and 1.")
    how = named(preset)
    given = Options.of(options, steps=how.steps)
    walks = {"nodes": nodes, "moves": moves, "protocol": protocol, "seed": given.seed}
    loss = partial(objectives.retrace, tv=tv, **walks)
    middle = {"unknowns": lambda generator: {"alpha": torch.tensor(0.5)}}
    recipe = replace(how.recipe(), renew=every, warm=int(warm * given.steps), **middle)
    return reconstruct(model, update, labels, loss, recipe, given, name="retrace")


def merge_epochs(z: Tensor) -> Tensor:
    """Match every epoch's dummies `[E, N, ...]` to the first epoch's, reorder, and average."""
    aligned = [epoch[torch.as_tensor(match(epoch, z[0]), device=z.device)] for epoch in z]
    return torch.stack(aligned).mean(dim=0)


@checked
def dlfa(
    model: Network,
    update: Update,
    labels: Tensor,
    protocol: Protocol,
    *,
    settings: DLFASettings | None = None,
    checkpoint: bool = True,
    **options: object,
) -> Reconstruction:
    """Data Leakage from Federated Averaging: simulate the client's training.  [Dimitrov22]

    `settings` default to the authors' for FEMNIST (grey images) or CIFAR-100 (colour). Memory grows
    with the square root of T; `checkpoint=False` keeps the whole graph and saves a forward pass.
    `options` are those of `solver.Options`.
    """
    chosen = settings or DLFA_SETTINGS["femnist" if model.shape[0] == 1 else "cifar100"]
    given = Options.of(options, steps=400)

    def objective(model: Network, update: Update, labels: Tensor) -> Objective:
        like = next(iter(update.before.values()))
        features = objectives.max_features(like, model.shape[0], seed=given.seed)
        return objectives.dlfa(
            model,
            update,
            labels,
            protocol,
            tv=chosen.tv,
            clip=chosen.clip,
            order=chosen.order,
            summary=objectives.mean_image if chosen.mean_prior else features,
            factor=chosen.factor,
            omega=objectives.layer_weights(update.before),
            checkpoint=checkpoint,
            seed=given.seed,
        )

    recipe = Recipe(
        {"images": chosen.lr},
        schedule=lambda k, _: chosen.decay ** (k / chosen.every),
        epochs=protocol.epochs,
        finish=merge_epochs,
    )
    return reconstruct(model, update, labels, objective, recipe, given, name="DLFA")


ATTACKS: dict[str, Callable[..., Reconstruction]] = {
    "dlg": dlg,
    "ig": ig,
    "sme": sme,
    "retrace": retrace,
    "dlfa": dlfa,
}
