"""Randomness: one seed for everything, and no two streams alike."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch

import smelib
from smelib import attacks, seeds
from smelib.errors import InputError


def correlation(a: torch.Tensor, b: torch.Tensor) -> float:
    n = min(a.numel(), b.numel())
    return abs(float(np.corrcoef(a.flatten()[:n], b.flatten()[:n])[0, 1]))


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_no_two_purposes_correlate(seed: int) -> None:
    drawn = {p: torch.randn(20_000, generator=seeds.generator(seed, p)) for p in seeds.PURPOSES}
    for a, b in combinations(seeds.PURPOSES, 2):
        assert correlation(drawn[a], drawn[b]) < 0.03, (a, b)


def test_neighbouring_seeds_and_parts_of_a_purpose_differ() -> None:
    keys = [(0, "start"), (1, "start"), (0, "round", 1, 2), (0, "round", 2, 1), (0, "round", 1)]
    drawn = [torch.randn(20_000, generator=seeds.generator(*key)) for key in keys]
    for a, b in combinations(drawn, 2):
        assert correlation(a, b) < 0.03


def test_the_same_seed_and_purpose_give_the_same_numbers_everywhere() -> None:
    """Stored numbers, so that results stay what they are from one release to the next."""
    assert seeds.derive(0, "start") == 3981951593391211276
    assert seeds.derive(7, "round", 3, 1) == 7706174584805005063
    assert seeds.numpy_generator(0, "client").integers(1000) == 780


def test_an_attack_does_not_start_from_the_networks_weights() -> None:
    """With one seed for client, network and attack, as the command line has it."""
    client = smelib.data.client("mnist", 4, seed=0)
    model = smelib.models.mlp(client.shape, client.classes, seed=0)
    update = smelib.local_update(model, client, smelib.Protocol(1, 4), seed=0)
    found = attacks.ig(model, update, client.labels, seed=0, steps=1, snapshots=2)
    start = model.normalise(found.snapshots[0])
    assert correlation(as_noise(update.before["1.weight"]), start) < 0.05


def as_noise(weights: torch.Tensor) -> torch.Tensor:
    """The normal noise that PyTorch makes of the bits of these uniform weights: Box and Muller."""
    unit = (weights.flatten() - weights.min()) / (weights.max() - weights.min())
    u = unit[: unit.numel() // 16 * 16].view(-1, 2, 8)
    radius, angle = (-2 * (1 - u[:, 0]).clamp(min=1e-7).log()).sqrt(), 2 * torch.pi * u[:, 1]
    return torch.cat([radius * angle.cos(), radius * angle.sin()], dim=1)


def test_the_collision_would_show() -> None:
    """Weights and noise from one generator, as they were before: the noise is the weights'."""
    weights, noise = (
        draw(4000, generator=torch.Generator().manual_seed(0)) for draw in (torch.rand, torch.randn)
    )
    assert correlation(as_noise(weights), noise) > 0.99


def test_a_misspelt_purpose_is_no_new_stream() -> None:
    with pytest.raises(InputError, match="did you mean 'start'"):
        seeds.generator(0, "strat")


@pytest.mark.parametrize("bad", [-1, 2**63, 10**20, 1.5, "0", None])
def test_a_bad_seed_is_a_sentence(bad: object) -> None:
    with pytest.raises(InputError, match="seed"):
        seeds.generator(bad, "start")


def test_building_a_network_leaves_the_gpus_generator_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    touched = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", lambda seed: touched.append(seed))
    monkeypatch.setattr(torch.cuda, "_is_in_bad_fork", lambda: False)
    state = torch.get_rng_state()
    smelib.models.cnn((1, 28, 28), 10)
    assert touched == []
    assert torch.equal(torch.get_rng_state(), state)
