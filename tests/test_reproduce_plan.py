"""The plan is the paper's, a job is measured as it says, and a line tells what made it."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from stand_ins import quick

from smelib import data, models
from smelib.reproduce import job, names, networks, plan, provenance
from smelib.reproduce.plan import METHODS, Job, estimate, jobs
from smelib.types import Protocol

PAIRED = ("ig", "sme", "retrace")


def test_keys_are_stable_and_unique() -> None:
    assert Job("main", "femnist-E10-N10", "sme", 3).key == "main/femnist-E10-N10/sme/torch/3"
    for table in plan.ROWS:
        found = jobs(table)
        assert len({j.key for j in found}) == len(found)


def test_a_row_s_name_says_the_setting_and_is_no_other_row_s() -> None:
    assert names.row("trained", "R5-E10-N50") == "FEMNIST after 5 rounds, E = 10, N = 50"
    assert names.row("main", "cifar100-E20-N10") == "CIFAR-100, E = 20, N = 10"
    assert names.row("low_rank", "E10-B50-R1") == "FEMNIST, E = 10, B = 50"
    assert names.row("architectures", "vit-E10-N10") == "ViT, E = 10, N = 10"
    assert names.short("trained", "R5-E10-N50") == "R5 E10 N50"
    for table in set(plan.ROWS) - {"defences"}:  # whose pages say what a setting does
        assert len({names.row(table, row) for row in plan.ROWS[table]}) == len(plan.ROWS[table])


def test_the_plan_is_a_table_whose_largest_number_counts() -> None:
    cells = Counter((j.row, j.method, j.init) for j in jobs("main"))
    for init, cifar, longest in (("torch", 10, 10), ("lecun", 5, 3)):
        assert cells["femnist-E50-N10", "sme", init] == 10
        assert cells["cifar100-E10-N10", "ig", init] == cifar
        dlfa = [cells[f"femnist-E{e}-N10", "dlfa", init] for e in (10, 20, 50)]
        assert dlfa == [10, 10, longest]
        assert cells["femnist-E10-N50", "dlfa", init] == 5
        assert cells["cifar100-E10-N10", "dlfa", init] == 3
    assert cells["femnist-E20-N50", "ig", "torch"] == 10
    assert cells["femnist-E20-N50", "sme", "torch"] == 10
    assert cells["femnist-E50-N50", "ig", "torch"] == 5
    assert cells["femnist-E20-N50", "ig", "lecun"] == cells["cifar100-E20-N50", "sme", "torch"] == 3
    assert (
        cells["cifar100-E20-N50", "ig", "lecun"] == cells["cifar100-E50-N50", "dlfa", "torch"] == 0
    )
    other = Counter((j.row, j.method, j.init) for j in jobs("architectures"))
    assert other["resnet8-E10-N10", "ig", "torch"] == other["resnet8-E50-N10", "sme", "torch"] == 5
    assert other["resnet8-E10-N10", "dlfa", "torch"] == other["vit-E10-N10", "dlfa", "lecun"] == 2
    assert other["lenet_slow-E10-N10", "dlfa", "lecun"] == other["mlp-E10-N10", "sme", "lecun"] == 5
    assert other["vit-E20-N10", "ig", "torch"] == 3
    assert other["lenet_softmax-E50-N50", "ig", "torch"] == 2
    assert {j.row for j in jobs("trained", inits=["lecun"])} == {
        f"R{r}-E10-N10" for r in networks.ROUNDS
    }
    rounds = Counter((j.row, j.method) for j in jobs("trained", inits=["torch"]))
    assert (rounds["R20-E20-N10", "sme"], rounds["R20-E10-N10", "dlfa"]) == (10, 10)
    assert (rounds["R20-E20-N50", "sme"], rounds["R10-E10-N10", "dlfa"]) == (10, 5)
    assert (rounds["R5-E20-N50", "ig"], rounds["R5-E20-N50", "dlfa"]) == (10, 0)
    large = Counter((j.row, j.method) for j in jobs("large_n") if j.table == "large_n")
    assert large == {(f"cifar100-E20-N{n}", m): 3 for n in (20, 100, 200) for m in ("ig", "sme")}


def test_every_line_of_the_plan_is_of_use() -> None:
    for share in plan.PLAN:
        fits = [
            planned
            for row in plan.ROWS[share.table]
            for method in share.methods.split()
            for init in share.inits.split()
            if any(fnmatchcase(row, pattern) for pattern in share.rows.split())
            and (planned := plan.planned(share.table, row, method, init)) == share.clients
        ]
        assert fits, share
        for pattern in share.rows.split():
            assert any(fnmatchcase(row, pattern) for row in plan.ROWS[share.table]), pattern


def test_pairs_are_of_the_same_clients() -> None:
    for table in ("main", "trained", "architectures"):
        found = {
            m: Counter(
                (j.row, j.seed)
                for j in jobs(table, methods=[m])
                if j.init == "torch" and plan.applies(j.setting, "retrace")
            )
            for m in PAIRED
        }
        assert found["ig"] == found["sme"]
        assert found["retrace"] <= found["sme"]
        assert {row for row, _ in found["retrace"]} == {row for row, _ in found["sme"]}
    assert not any(j.method == "retrace" and j.table == "cost" for j in jobs("cost"))
    paths = Counter(j.init for j in jobs("low_rank"))
    assert paths == {"torch": 90, "lecun": 50}
    assert len(jobs("main", rows=["cifar100-E50-N50"], methods=["dlfa"], seeds=3)) == 3


def test_a_gpu_gets_exactly_the_cells_that_the_plan_leaves_out() -> None:
    left = plan.gpu_jobs(seeds=2)
    cells = Counter((j.table, j.row, j.method) for j in left)
    assert set(cells.values()) == {2}, "none twice, though tables share rows"
    planned = {(j.table, j.row, j.method) for t in plan.ROWS for j in jobs(t, inits=["torch"])}
    theirs = set(plan.ROWS) - {"low_rank", "defences"}
    every = {
        (t, r, m) for t in theirs for r, row in plan.ROWS[t].items() for m in METHODS
        if plan.applies(row, m)
    }  # fmt: skip
    assert set(cells) == every - planned
    assert ("main", "cifar100-E50-N50", "dlfa") in cells
    cost = [int(estimate(j)).bit_length() for j in left]
    assert cost == sorted(cost)
    assert {j.row for j in plan.gpu_jobs(["large_n"]) if j.table == "main"} == {
        "cifar100-E20-N10",
        "cifar100-E20-N50",
    }
    assert plan.gpu_jobs(["tiny"]) == []


def test_the_first_round_is_measured_once() -> None:
    shared = [j for j in jobs("trained") if j.table == "main"]
    assert shared
    assert {j.key for j in shared} <= {j.key for j in jobs("main")}


@pytest.mark.parametrize("table", ["main", "architectures"])
def test_cheapest_first_and_evenly(table: str) -> None:
    order = jobs(table)
    cost = [int(estimate(j)).bit_length() for j in order]
    assert cost == sorted(cost)
    for level in set(cost):
        seeds = [j.seed % 100 for j, c in zip(order, cost, strict=True) if c == level]
        assert seeds == sorted(seeds), "all first clients come before the second"


def test_rows_of_as_many_epochs_share_clients_and_others_do_not() -> None:
    by_epochs: dict[int, set] = {}
    for table in ("main", "trained", "architectures"):
        for j in jobs(table):
            by_epochs.setdefault(j.setting.epochs, set()).add(j.seed)
    assert by_epochs == {e: set(range(k, k + 10)) for e, k in ((10, 0), (20, 100), (50, 200))}


def test_networks_are_federated_and_tested_on_held_out_images(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    images = draw.integers(0, 256, (120, 28, 28), dtype=np.uint8)
    labels, writers = draw.integers(0, 62, 120), np.repeat(np.arange(6), 20)
    np.savez(tmp_path / "femnist.npz", images=images, labels=labels, writers=writers)
    networks.make(tmp_path, str(tmp_path), rounds=(1, 2))
    notes = networks.notes(tmp_path)
    assert set(notes) == {"femnist-R1.safetensors", "femnist-R2.safetensors"}
    one = notes["femnist-R1.safetensors"]
    assert (one["test_images"], one["train_images"], one["writers"]) == ("12", "108", "6")
    assert 0 <= float(one["test_accuracy"]) <= 1
    held = [
        networks._part(w, test=True)
        for w in data.federation("femnist", clients=6, split="writer", root=tmp_path)
    ]
    rest = [
        networks._part(w, test=False)
        for w in data.federation("femnist", clients=6, split="writer", root=tmp_path)
    ]
    seen = {image.numpy().tobytes() for client in rest for image in client.images}
    assert not any(image.numpy().tobytes() in seen for client in held for image in client.images)
    made = networks.path(tmp_path, 1).stat().st_mtime_ns
    networks.make(tmp_path, str(tmp_path), rounds=(1, 2))
    assert networks.path(tmp_path, 1).stat().st_mtime_ns == made, "made once"


def test_clients_are_spread_over_three_federations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Counter(j.network for j in jobs("trained", rows=["R20-E20-N10"], methods=["sme"]))
    assert found == {(20, k, "torch"): clients for k, clients in enumerate((4, 3, 3))}
    assert {j.network for j in jobs("low_rank", rows=["E10-B10-R20"])} == {
        (20, k, "torch") for k in range(3)
    }
    assert {j.network[:2] for j in jobs("low_rank", rows=["E10-B10-R1"])} == {(1, 0)}
    root = small_femnist(tmp_path / "data", writers=np.repeat(np.arange(6), 2))
    drawn, build = [], models.cnn

    def cnn(*size: object, init: str, seed: int) -> models.Network:
        drawn.append((init, seed))
        return build(*size, init=init, seed=seed)

    monkeypatch.setattr(models, "cnn", cnn)
    begun = [("torch", 0), ("torch", 1), ("lecun", 0), ("lecun", 1)]
    for init, which in begun:
        networks.make(tmp_path, root, rounds=(1,), which=which, init=init)
    assert drawn == begun, "each begins with weights of its own"
    made = networks.digests(networks.notes(tmp_path))
    wanted = ("R1", "R1-1", "R1-lecun", "R1-lecun-1")
    assert set(made) == {f"femnist-{name}.safetensors" for name in wanted}
    assert len(set(made.values())) == 4


def test_a_client_starts_from_a_federation_of_its_own_kind_of_first_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = small_femnist(tmp_path / "data", writers=np.repeat(np.arange(6), 2))
    seen = {}
    monkeypatch.setattr(job, "measure", lambda *_, before, **__: seen.update(before) or {})
    for init in plan.INITS:
        networks.make(tmp_path, root, rounds=(5,), init=init)
        job.run(Job("trained", "R5-E10-N10", "sme", 0, init), root=root, folder=tmp_path)
        mine = networks.load(tmp_path, 5, 0, init)
        assert all(torch.equal(seen[k], mine[k]) for k in mine)
    other = networks.load(tmp_path, 5)
    assert not any(torch.equal(mine[k], other[k]) for k in mine)


def test_recovered_labels_come_from_the_update(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {}

    def spy(model: object, update: object, labels: torch.Tensor, **_: object) -> object:
        seen["labels"] = labels
        raise KeyboardInterrupt

    monkeypatch.setitem(job.attacks.ATTACKS, "sme", spy)
    monkeypatch.setattr(job.labels, "recover", lambda *_, seed: torch.tensor([7, 7]))
    row = plan.Row("photos", "lenet", samples=2, batch_size=2, epochs=1, recovered=True)
    with pytest.raises(KeyboardInterrupt):
        job.measure(row, "sme", "torch", 0, device="cpu")
    assert seen["labels"].tolist() == [7, 7]


def test_batch_norms_have_the_statistics_that_a_row_asks_for() -> None:
    client = data.client("mnist", 2, seed=0)

    def norm(kind: str) -> torch.nn.BatchNorm2d:
        row = plan.Row("mnist", "resnet8", options=(("batch_norm", kind),))
        return job._network(row, client, "torch", 0, None).body[1]

    first, batch, seen = map(norm, ("frozen", "batch", "data"))
    assert (first.running_mean == 0).all()
    assert (first.running_var == 1).all()
    assert batch.running_mean is None
    held = data.load("mnist")
    body = models.resnet8(client.shape, client.classes).body
    images = held.client(np.arange(len(held))).images
    z = models.resnet8(client.shape, client.classes).normalise(images)
    with torch.no_grad():
        wanted = body[0](z).mean(dim=(0, 2, 3))
    assert torch.allclose(seen.running_mean, wanted, atol=0.05), "of 1,000 of 5,000 images"
    assert not torch.allclose(seen.running_mean, first.running_mean, atol=0.05)


def test_a_path_is_measured() -> None:
    client = data.client("photos", 4, seed=0)
    network = models.lenet(client.shape, client.classes)
    found = job._follow(network, client, Protocol(5, 2, 0.1), seed=0, before=None)
    assert found["steps"] == 10
    assert 0 < found["p2_ratio"] <= 1
    assert found["cos_start"] <= found["cos_best"] <= 1
    assert 0 <= found["alpha"] <= 1


def small_femnist(folder: Path, **changes: np.ndarray) -> str:
    draw = np.random.default_rng(0)
    arrays = {
        "images": draw.integers(0, 256, (12, 28, 28), dtype=np.uint8),
        "labels": draw.integers(0, 62, 12),
        "writers": np.repeat(np.arange(3), 4),
    }
    folder.mkdir()
    np.savez(folder / "femnist.npz", **{**arrays, **changes})
    return str(folder)


def test_the_data_s_digest_is_that_of_the_arrays(tmp_path: Path) -> None:
    first = provenance.data_digest("femnist", small_femnist(tmp_path / "a"))
    with np.load(tmp_path / "a" / "femnist.npz") as held:
        images, labels = held["images"], held["labels"]
    again = small_femnist(tmp_path / "b", labels=labels.astype(np.uint8))
    assert provenance.data_digest("femnist", again) == first, "wherever and however it is kept"
    images[3, 3, 3] ^= 1
    other = small_femnist(tmp_path / "c", images=images)
    assert provenance.data_digest("femnist", other) != first
    assert provenance.data_digest("mnist", None) != provenance.data_digest("photos", None)


def test_a_line_names_version_data_and_torch(tmp_path: Path) -> None:
    line = job.attempt(jobs("tiny", methods=["ig"])[0], folder=tmp_path, root=None, device="cpu")
    assert line["status"] == "ok", line
    assert line["version"] == str(provenance.RESULTS_VERSION["ig"])
    assert line["data"] == provenance.data_digest("photos", None)
    assert line["torch"] == torch.__version__
    assert line["network"] == ""


def test_the_network_s_weights_decide_and_not_its_notes(tmp_path: Path) -> None:
    wanted = jobs("trained", rows=["R5-E10-N10"])[0]
    file = networks.path(tmp_path, 5)
    file.parent.mkdir()

    def made(value: float, **notes: str) -> tuple[str, str]:
        save_file({"w": torch.full((3,), value)}, file, metadata=notes)
        found = provenance.generation(wanted, networks.digests(networks.notes(tmp_path)))
        assert provenance.line(wanted, folder=tmp_path)["network"] == found[1]
        return found

    first = made(1.0)
    assert first[1]
    assert made(1.0, smelib="another version") == first
    assert made(2.0) != first


def test_a_path_names_the_device_it_was_measured_on(tmp_path: Path) -> None:
    path, attack = Job("low_rank", "E5-B5-R1", "path", 0), Job("tiny", "photos-E1-N2", "ig", 0)
    lines = [job.attempt(j, quick, folder=tmp_path, device="meta") for j in (path, attack)]
    assert [x["device"] for x in lines] == ["cpu", "meta"]


def test_every_module_can_be_imported_without_unix() -> None:
    """As on Windows, which has none of these."""
    code = """
import importlib, pkgutil, sys
import torch
for name in ("fcntl", "resource", "pwd", "grp", "termios", "_posixshmem"):
    sys.modules[name] = None
import smelib.reproduce
for module in pkgutil.iter_modules(smelib.reproduce.__path__):
    importlib.import_module("smelib.reproduce." + module.name)
    print(module.name)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert {"backends", "drive", "published", "scoreboard", "store"} <= set(ran.stdout.split())


@pytest.mark.parametrize(
    ("change", "recomputed"), [({}, False), ({"epochs": 101}, True), ({"steps": 3}, True)]
)
def test_dlfa_keeps_a_short_simulation_whole_but_where_its_cost_is_measured(
    monkeypatch: pytest.MonkeyPatch, change: dict, recomputed: bool
) -> None:
    asked = {}

    def attack(*_: object, **options: object) -> None:
        asked.update(options)
        raise RuntimeError("enough")

    monkeypatch.setitem(job.attacks.ATTACKS, "dlfa", attack)
    row = plan.Row("photos", "lenet", samples=2, batch_size=2, **{"epochs": 2, **change})
    with pytest.raises(RuntimeError, match="enough"):
        job.measure(row, "dlfa", "torch", 0)
    assert asked["checkpoint"] is recomputed
