"""The scoreboard: claims from pairs of one client, cells by the rule, every number once."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import smelib
from smelib import cli
from smelib.reproduce import (
    cells,
    claims,
    networks,
    page,
    plan,
    prices,
    provenance,
    published,
    strips,
    tables,
    verdicts,
)
from smelib.reproduce import scoreboard as boards
from smelib.reproduce.cells import Cell
from smelib.reproduce.claims import Evidence
from smelib.reproduce.plan import Job
from smelib.reproduce.store import Ledger

ROW = "femnist-E10-N10"  # the paper: SME 30.3, IG 27.8
SAID = "FEMNIST, E = 10, N = 10"
NOW = provenance.RESULTS_VERSION


def measured(folder: Path, method: str, *psnrs: float, **changes: object) -> None:
    """Write results of the main table as a run would have."""
    for seed, psnr in enumerate(psnrs):
        job = Job("main", str(changes.get("row", ROW)), method, seed)
        line = {**vars(job), "status": "ok", "psnr": psnr, "l_sim": 0.02, "steps": 1000}
        line |= {"seconds": 1.0, "version": NOW[method], **changes}
        Ledger(folder / "main.csv").append(line)


def the(found: list[Cell], method: str, row: str = ROW, metric: str = "psnr") -> Cell:
    where = ("main", row, method, metric)
    (cell,) = (c for c in found if (c.table, c.row, c.method, c.metric) == where)
    return cell


def test_every_number_of_the_paper_has_one_cell(tmp_path: Path) -> None:
    found = cells.cells(tmp_path)
    by = cells.counts(found)
    assert {t: sum(c.values()) for t, c in by.items()} == {
        "main, PSNR": 36,
        "trained, PSNR": 36,  # the first round is main's, and stands there
        "architectures, PSNR": 72,
        "low_rank, cosines and shares": 27,
        "cost, time and memory": 12,  # DLFA's; IG's is printed as SME's
        "main, L_sim": 36,
        "trained, L_sim": 36,
        "architectures, L_sim": 72,
    }
    assert {c.verdict for c in found} == {"not run", "no value"}
    empty = [c for c in found if c.verdict == "no value"]
    assert all(not c.paper for c in empty), "none is printed, or .000"
    assert len({(c.table, c.row, c.method, c.metric) for c in found}) == len(found)


def test_every_command_names_cells_that_exist(tmp_path: Path) -> None:
    for cell in cells.cells(tmp_path):
        table, row = cell.source
        words = cell.command.split()
        methods = words[words.index("--methods") + 1].split(",") if "--methods" in words else []
        assert plan.jobs(table, rows=[row], methods=methods, seeds=5)


def test_the_interval_decides_and_not_the_mean(tmp_path: Path) -> None:
    measured(tmp_path, "sme", 30.4, 30.5, 30.6)
    measured(tmp_path, "ig", 31.9, 32.0, 32.1)
    measured(tmp_path, "dlfa", 24.9)  # the paper's very number, from one client
    measured(tmp_path, "sme", 20.0, 37.2, row="femnist-E20-N10")  # 28.6 on average, as printed
    found = cells.cells(tmp_path)
    assert the(found, "sme").verdict == "equal"
    assert the(found, "ig").verdict == "different"
    assert the(found, "dlfa").verdict == "undecided"
    assert the(found, "sme", "femnist-E20-N10").verdict == "undecided"
    assert the(found, "ig", "femnist-E20-N10").verdict == "not run"


def test_l_sim_is_scored_by_its_factor(tmp_path: Path) -> None:
    measured(tmp_path, "sme", 30.0, 30.1, 30.2, l_sim=0.0195)  # the paper: .019
    measured(tmp_path, "ig", 30.0, 30.1, 30.2, l_sim=0.1)  # the paper: .044
    found = cells.cells(tmp_path)
    assert the(found, "sme", metric="l_sim").verdict == "equal"
    assert the(found, "ig", metric="l_sim").verdict == "different"


def test_a_cosine_has_the_paper_s_standard_error_and_not_its_spread(tmp_path: Path) -> None:
    for seed in range(3):  # the paper: .872, with a deviation of .037 over 100 clients
        line = {**vars(Job("low_rank", "E10-B10-R1", "path", seed)), "status": "ok"}
        values = {"cos_start": 0.905 + 0.001 * seed, "cos_best": 0.98, "p2_ratio": 0.98}
        Ledger(tmp_path / "low_rank.csv").append({**line, **values, "version": NOW["path"]})
    found = {c.metric: c for c in cells.cells(tmp_path) if c.values}
    assert found["cos_start"].theirs.error == pytest.approx(0.0037, abs=1e-4)
    assert found["cos_start"].verdict == "different"
    assert found["cos_best"].verdict == "equal"


def test_the_interval_is_student_s(tmp_path: Path) -> None:
    measured(tmp_path, "sme", 29.0, 30.0, 31.0)
    low, high = the(cells.cells(tmp_path), "sme").interval
    assert (low, high) == pytest.approx((30 - 2.4841, 30 + 2.4841), abs=1e-3)
    measured(tmp_path, "ig", 29.0)
    assert the(cells.cells(tmp_path), "ig").interval is None


def test_a_cell_shows_its_earlier_version_until_as_many_clients_are_new(tmp_path: Path) -> None:
    measured(tmp_path, "sme", 20.0, 22.0, 24.0, version=0)
    measured(tmp_path, "sme", 30.0, 32.0, version=1)
    board = boards.read(tmp_path)
    cell = the(board.cells, "sme")
    assert (cell.values, cell.earlier) == ((30.0, 32.0), True), "the last of the earlier ones"
    assert "earlier version" in boards.summary(board)
    assert "2 cells that count are of an earlier version" in page.page(board)
    measured(tmp_path, "ig", 40.0)
    assert "earlier version</small></td>" in page.page(boards.read(tmp_path)), (
        "said of each, if not all"
    )
    measured(tmp_path, "sme", 40.0)
    cell = the(boards.read(tmp_path).cells, "sme")
    assert (cell.values, cell.earlier) == ((30.0, 32.0), True), "two clients tell more than one"
    measured(tmp_path, "sme", 40.0, 41.0)
    board = boards.read(tmp_path)
    cell = the(board.cells, "sme")
    assert (cell.values, cell.earlier) == ((40.0, 41.0), False), "one cell never mixes the two"
    assert "earlier version" not in boards.summary(board)


def test_a_new_failure_is_not_hidden_by_an_earlier_success(tmp_path: Path) -> None:
    measured(tmp_path, "sme", 30.0, version=1)
    measured(tmp_path, "sme", 0.0, status="failed", error="no memory", psnr=None)
    assert the(cells.cells(tmp_path), "sme").verdict == "failed"


def test_a_cell_is_made_of_clients_of_several_networks(tmp_path: Path) -> None:
    for which in range(3):
        file = networks.path(tmp_path, 5, which)
        file.parent.mkdir(exist_ok=True)
        save_file({"w": torch.full((3,), float(which))}, file)
    made = networks.digests(networks.notes(tmp_path))
    for seed in range(4):
        job = Job("trained", "R5-E10-N10", "sme", seed)
        line = {**vars(job), "status": "ok", "psnr": 20.0 + seed, "l_sim": 0.02}
        line |= {"version": NOW["sme"], "network": made[networks.file_name(*job.network)]}
        Ledger(tmp_path / "trained.csv").append(line)
    wrong = {**line, "seed": 1, "psnr": 99.0}  # client 1 from client 0's network
    Ledger(tmp_path / "trained.csv").append(wrong)
    (cell,) = (c for c in cells.cells(tmp_path) if c.values and c.metric == "psnr")
    assert (sorted(cell.values), cell.earlier) == ([20.0, 21.0, 22.0, 23.0], False)


def test_a_retrained_network_makes_an_earlier_version(tmp_path: Path) -> None:
    file = networks.path(tmp_path, 5)
    file.parent.mkdir()
    save_file({"w": torch.ones(3)}, file)
    now = networks.digests(networks.notes(tmp_path))[file.name]
    for network, psnr in (("of old", 20.0), (now, 30.0)):
        line = {**vars(Job("trained", "R5-E10-N10", "sme", 0)), "status": "ok", "psnr": psnr}
        line |= {"version": NOW["sme"], "network": network, "l_sim": 0.02}
        Ledger(tmp_path / "trained.csv").append(line)
        (cell,) = (c for c in cells.cells(tmp_path) if c.values and c.metric == "psnr")
        assert (cell.values, cell.earlier) == ((psnr,), network != now)


def cost(folder: Path, method: str, **changes: object) -> None:
    """Write a result of the cost table."""
    line = {**vars(Job("cost", "femnist-E10-N50", method, 0)), "status": "ok", "steps": 1}
    line |= {"cpu_seconds": 1.0, "memory_mb": 5.0, "device": "cpu", "version": NOW[method]}
    Ledger(folder / "cost.csv").append({**line, **changes})


def test_a_ratio_is_of_two_results_of_the_same_age(tmp_path: Path) -> None:
    def ratio() -> tuple[tuple[float, ...], bool]:
        shown = [c for c in cells.cells(tmp_path) if c.table == "cost" and c.method == "dlfa"]
        (cell,) = (c for c in shown if c.metric == "gigabytes" and c.source[1] == "femnist-E10-N50")
        return cell.values, cell.earlier

    cost(tmp_path, "dlfa", memory_mb=20.0, version=1)
    cost(tmp_path, "sme", memory_mb=10.0, version=1)
    cost(tmp_path, "dlfa", memory_mb=90.0)
    assert ratio() == ((2.0,), True)
    cost(tmp_path, "sme", memory_mb=30.0)
    assert ratio() == ((3.0,), False)


def test_failures_stand_first_and_then_the_largest_differences(tmp_path: Path) -> None:
    measured(tmp_path, "sme", 30.0, 30.1, 30.2)
    measured(tmp_path, "ig", 20.0, 20.1, 20.2)
    measured(tmp_path, "ig", 29.0, 29.1, 29.2, row="cifar100-E10-N10")
    measured(tmp_path, "dlfa", 0.0, status="failed", error="no memory", psnr=None)
    found = [c for c in cells.cells(tmp_path) if c.metric == "psnr" and (c.values or c.failed)]
    assert [c.verdict for c in found] == ["failed", "different", "different", "equal"]
    assert found[1].row == ROW, "the largest difference comes first"
    assert "--retry-failed" in found[0].command


def test_a_failed_sme_fails_the_costs_beside_it(tmp_path: Path) -> None:
    cost(tmp_path, "sme", status="failed", memory_mb="")
    cost(tmp_path, "dlfa")
    row = "femnist-E10-N50"
    found = [c for c in cells.cells(tmp_path) if c.table == "cost" and c.row == row]
    assert {c.verdict for c in found if c.method == "dlfa"} == {"failed"}


def test_no_memory_is_no_ratio(tmp_path: Path) -> None:
    for method, mb in (("sme", 0.0), ("dlfa", 5.0)):
        cost(tmp_path, method, memory_mb=mb)
    found = [c for c in cells.cells(tmp_path) if c.table == "cost" and c.values]
    assert {c.metric for c in found} == {"hours_per_100"}


def test_cost_is_a_multiple_of_sme_s_on_the_same_client(tmp_path: Path) -> None:
    for method, seconds in (("sme", (1.0, 2.0, 9.0)), ("dlfa", (49.0, 102.0))):
        for seed, value in enumerate(seconds):
            cost(tmp_path, method, cpu_seconds=value, steps=10, seed=seed)
    found = [c for c in cells.cells(tmp_path) if c.values]
    time, memory = (next(c for c in found if c.metric == m) for m in ("hours_per_100", "gigabytes"))
    assert time.ours == pytest.approx((49 * 51) ** 0.5 * 400 / 1000), "the geometric mean"
    assert time.paper == pytest.approx(5.9 / 0.29)
    assert time.verdict == "equal"
    assert memory.ours == 1
    (effect,) = (e for e in claims.weigh(cells.Shelf(tmp_path)) if e.claim == "cost" and e.pairs)
    assert np.exp(effect.ours.value) == pytest.approx(time.ours), "one number, one value"


def test_one_reading_counts_every_number_once(tmp_path: Path) -> None:
    measured(tmp_path, "sme", 30.2, 30.3, 30.4)
    measured(tmp_path, "sme", 10.0, 10.1, 10.2, init="lecun")
    for row, psnr in (("lenet-E10-N10", 10.0), ("lenet_softmax-E10-N10", 29.5)):  # paper: 29.5
        for seed in range(3):
            job = Job("architectures", row, "sme", seed)
            line = {**vars(job), "status": "ok", "psnr": psnr + seed / 10, "l_sim": 0.02}
            Ledger(tmp_path / "architectures.csv").append({**line, "version": NOW["sme"]})
    found = [c for c in cells.cells(tmp_path) if c.metric == "psnr"]
    shown = Counter((c.verdict, c.counted) for c in found if c.values)
    assert shown == {("equal", True): 2, ("different", False): 2}
    assert sum(cells.counts(found).values(), Counter()) == {
        "equal": 2,
        "not run": 140,
        "no value": 2,
    }
    measured(tmp_path, "ig", 10.0, init="lecun")
    ig = [c for c in cells.cells(tmp_path) if (c.row, c.method, c.metric) == (ROW, "ig", "psnr")]
    assert {(c.verdict, c.counted) for c in ig} == {("undecided", False), ("not run", True)}


def test_beside_a_psnr_stands_what_else_is_known_of_the_pictures(tmp_path: Path) -> None:
    """Means over the runs that have it; earlier ones lack the share above 18 dB."""
    measured(tmp_path, "sme", 30.0, ssim=0.75, above_18=0.6)
    measured(tmp_path, "sme", 30.0, seed=1, ssim=0.25)
    measured(tmp_path, "ig", 30.0, 31.0)
    cell = the(cells.cells(tmp_path), "sme")
    assert (cell.ssim, cell.above_18) == (0.5, 0.6)
    shown = page.page(boards.read(tmp_path))
    assert shown.count("SSIM 0.50, 60 % over 18 dB") == 1, "and not beside L_sim"
    assert shown.count("<small>SSIM") == 1, "and not where no run has it"


def effect(folder: Path, claim: str, label: str) -> Evidence:
    found = claims.weigh(cells.Shelf(folder))
    (one,) = (e for e in found if (e.claim, e.effect.label) == (claim, label))
    return one


FIRST = "FEMNIST, E = 10, N = 10"


def test_a_claim_is_about_pairs_of_the_same_client(tmp_path: Path) -> None:
    measured(tmp_path, "ig", 20.0, 30.0, 40.0, 12.0)
    measured(tmp_path, "sme", 22.4, 32.5, 42.6)
    measured(tmp_path, "sme", 99.0, seed=8)
    one = effect(tmp_path, "sme-over-ig", FIRST)
    assert one.pairs == pytest.approx((2.4, 2.5, 2.6))
    assert (one.verdict, one.size, len(one.pairs)) == ("holds", "equal", 3)
    assert float(one.paper.value) == pytest.approx(2.5)


@pytest.mark.parametrize(
    ("sme", "verdict", "size"),
    [
        ((17.5, 27.4, 37.6), "does not", "different"),  # SME loses, though the paper's wins
        ((28.0, 38.1, 48.2), "holds", "different"),  # it wins by far more
        ((19.9, 30.0, 40.1), "does not", "undecided"),  # nothing is seen of the paper's 2.5
        ((20.4, 31.0, 41.2), "undecided", "undecided"),  # there is room for more than half of it
        ((10.0, 32.5, 60.0), "undecided", "undecided"),
        ((22.5,), "undecided", "undecided"),
        ((), "not run", ""),
    ],
)
def test_a_claim_s_verdict(tmp_path: Path, sme: tuple, verdict: str, size: str) -> None:
    measured(tmp_path, "ig", 20.0, 30.0, 40.0)
    measured(tmp_path, "sme", *sme)
    one = effect(tmp_path, "sme-over-ig", FIRST)
    assert (one.verdict, one.size) == (verdict, size)


NINE = (1.0, 1.1, 0.9, 4.0, 4.1, 3.9, 7.0, 7.1, 6.9)


@pytest.mark.parametrize(
    ("networks", "over", "these"),
    [
        ("aaabbbccc", (1.0, 4.0, 7.0), True),  # three numbers: 4 +- 7.5
        ("abcabcabc", (4.0, 4.1, 3.9), False),  # the networks are alike
        ("aaaaaaaaa", None, False),
        ("", None, False),
    ],
)
def test_a_verdict_says_where_it_is_of_these_networks(
    networks: str, over: tuple[float, ...] | None, these: bool
) -> None:
    """Nine clients of three trained networks are nine numbers only for these three."""
    (training, *_) = claims.claims()["sme-over-ig"].effects
    e = Evidence("sme-over-ig", training, None, NINE, networks=tuple(networks))
    e = replace(e, effect=replace(training, sign=1))
    assert e.verdict == "holds"
    found = e.over_networks
    expected = None if over is None else pytest.approx(verdicts.mean(over).half)
    assert (found and found.half) == expected
    assert e.of_these_networks == these
    assert ("for these networks" in tables._size(e)) == these


def test_an_effect_within_the_band_is_not_called_as_large(tmp_path: Path) -> None:
    """The paper's +0.5 dB: anything would be equal. Its +2.5 has a size."""
    row = "femnist-E10-N50"
    for method, level in (("dlfa", 21.0), ("sme", 21.5)):
        measured(tmp_path, method, *(level + x for x in (0, 0.1, 0.2)), row=row)
    one = effect(tmp_path, "sme-over-dlfa", "FEMNIST, E = 10, N = 50")
    assert (float(one.paper.value), one.size) == (pytest.approx(0.5), "")


def test_effects_are_counted_as_cells_are(tmp_path: Path) -> None:
    """With PyTorch's weights, once; what another reading gives is said apart."""
    for init in ("torch", "lecun"):
        measured(tmp_path, "ig", 20.0, 30.0, 40.0, init=init)
        measured(tmp_path, "sme", 22.4, 32.5, 42.6, init=init)
    said = " ".join(boards.weighed(boards.read(tmp_path)))
    assert "Of 1 effect behind the paper's claims, 1 holds." in said
    assert "Of 1 with LeCun's weights or LeNet's one softmax, 1 holds." in said


def test_a_seed_is_one_client_of_cifar_and_two_of_femnist(tmp_path: Path) -> None:
    """More of CIFAR-100's images are the same client's and others; FEMNIST draws a writer anew."""
    for data in ("femnist", "cifar100"):
        for n in (10, 50):
            measured(tmp_path, "sme", 30.0, row=f"{data}-E10-N{n}")
    assert boards.read(tmp_path).clients == {"femnist": 2, "cifar100": 1}


@pytest.mark.parametrize(
    ("sme", "verdict"),
    [((19.9, 30.0, 40.1), "does not"), ((14.0, 30.0, 46.0), "undecided")],
)
def test_a_claimed_effect_of_which_nothing_is_seen_does_not_hold(
    tmp_path: Path, sme: tuple, verdict: str
) -> None:
    """Here the paper's 6.2 dB, where ours are none; in too wide an interval they may hide."""
    measured(tmp_path, "ig", 20.0, 30.0, 40.0, row="femnist-E50-N10")
    measured(tmp_path, "sme", *sme, row="femnist-E50-N10")
    assert effect(tmp_path, "sme-over-ig", "FEMNIST, E = 50, N = 10").verdict == verdict


@pytest.mark.parametrize(("clients", "why"), [(9, "too few clients"), (10, "too close")])
def test_an_undecided_effect_says_whether_clients_are_wanting(
    tmp_path: Path, clients: int, why: str
) -> None:
    draw = np.random.default_rng(0).normal(0, 1, clients)
    measured(tmp_path, "ig", *[30.0] * clients)
    measured(tmp_path, "sme", *(30 + 4 * (draw - draw.mean())))
    board = boards.read(tmp_path)
    assert f"undecided, {why}" in boards.summary(board)
    text = page.page(board)
    assert f"{why}</small>" in text
    wanted = f"{10 - clients} more clients, where these leave it undecided: SME minus IG, {SAID}"
    command = f"smelib reproduce main --rows {ROW} --methods sme,ig --inits torch --seeds 10"
    assert (wanted in text) == (command in text) == (why == "too few clients")


def test_our_own_claims_are_counted_apart_and_few_clients_are_said(tmp_path: Path) -> None:
    assert boards.weighed(boards.read(tmp_path)) == ["No effect behind a claim was run."]
    for method, psnr in (("ig", 20.0), ("sme", 22.0), ("retrace", 25.0)):
        measured(tmp_path, method, psnr, psnr + 0.1, psnr - 0.1)
    paper, ours, few = boards.weighed(boards.read(tmp_path))
    assert paper == "Of 1 effect behind the paper's claims, 1 holds."
    assert ours == "Of 1 effect behind claims of our own, 1 holds."
    assert few.startswith("2 of the 2 that hold rest on five clients or fewer")
    for method, psnr in (("ig", 20.0), ("sme", 22.0), ("retrace", 25.0)):
        measured(tmp_path, method, *(psnr + seed % 3 / 10 for seed in range(6)))
    assert len(boards.weighed(boards.read(tmp_path))) == 2, "six clients are not few"


@pytest.mark.parametrize(("slow", "verdict"), [(12.1, "does not"), (12.9, "holds")])
def test_a_claim_without_a_number_does_not_hold_where_nothing_is_seen(
    tmp_path: Path, slow: float, verdict: str
) -> None:
    for seed in range(3):
        for row, psnr in (("lenet-E10-N10", 12.0), ("lenet_slow-E10-N10", slow - seed % 2 / 5)):
            line = vars(Job("architectures", row, "dlfa", seed)) | {"status": "ok", "psnr": psnr}
            Ledger(tmp_path / "architectures.csv").append({**line, "version": NOW["dlfa"]})
    label = "one softmax, rate 0.004 against 0.4"
    assert effect(tmp_path, "slow-lenet", label).verdict == verdict


@pytest.mark.parametrize(("sme", "verdict"), [(20.1, "holds"), (25.0, "does not")])
def test_where_the_paper_sees_no_difference_the_claim_is_that_there_is_none(
    tmp_path: Path, sme: float, verdict: str
) -> None:
    row = "femnist-E50-N10"  # the paper: SME 25.7 ± 0.3, DLFA 26.4 ± 0.3
    measured(tmp_path, "dlfa", 20.0, 20.1, 20.2, row=row)
    measured(tmp_path, "sme", sme, sme + 0.11, sme + 0.22, row=row)
    one = effect(tmp_path, "sme-over-dlfa", "FEMNIST, E = 50, N = 10")
    assert one.sign == 0
    assert one.verdict == verdict


def test_seeds_of_old_and_of_today_are_different_clients(tmp_path: Path) -> None:
    """retrace's first version already ran on today's clients; IG's and SME's on others."""
    measured(tmp_path, "sme", 30.0, 31.0, version=1)
    measured(tmp_path, "retrace", 32.0, 33.5, version=1)
    assert effect(tmp_path, "retrace-over-sme", FIRST).pairs == ()
    measured(tmp_path, "ig", 28.0, 29.5, version=1)
    measured(tmp_path, "ig", 27.0, 27.0)
    one = effect(tmp_path, "sme-over-ig", FIRST)
    assert (one.pairs, one.earlier) == ((2.0, 1.5), True), "both of old"
    board = boards.read(tmp_path)
    assert board.clients == {"femnist": 4}, "seeds 0 and 1, twice"
    measured(tmp_path, "sme", 30.0, 31.0)
    one = effect(tmp_path, "sme-over-ig", FIRST)
    assert (one.pairs, one.earlier) == ((3.0, 4.0), False)
    assert effect(tmp_path, "retrace-over-sme", FIRST).pairs == (2.0, 2.5)
    assert boards.read(tmp_path).clients == {"femnist": 2}


def test_the_fall_with_training_is_paired_over_clients(tmp_path: Path) -> None:
    measured(tmp_path, "sme", 30.0, 40.0, 50.0)
    for seed, psnr in enumerate((25.0, 34.9)):
        line = {**vars(Job("trained", "R5-E10-N10", "sme", seed)), "status": "ok", "psnr": psnr}
        line |= {"version": NOW["sme"], "network": "a digest", "l_sim": 0.02}
        Ledger(tmp_path / "trained.csv").append(line)
    one = effect(tmp_path, "rounds", "SME after 5 rounds, E = 10, N = 10")
    assert one.pairs == pytest.approx((-5.0, -5.1))
    assert one.verdict == "holds"


def test_an_effect_near_zero_is_drawn_with_its_whole_interval() -> None:
    near, far = verdicts.Interval(0.1, 3.0), verdicts.Interval(9.0, 1.0)
    axis = strips.Axis.around([(near, None), (far, None)])
    assert axis.low < near.low, "its left end"
    assert axis.high > far.high


def test_an_interval_beyond_twice_the_outermost_dot_is_cut() -> None:
    axis = strips.Axis.around([(verdicts.Interval(4.0, 500.0), None)])
    assert -10 < axis.low < -8
    assert 8 < axis.high < 10


def test_every_effect_names_cells_of_the_plan() -> None:
    for claim in claims.claims().values():
        assert claim.effects
        for one in claim.effects:
            for side in (one.more, one.less):
                assert side.row in plan.ROWS[side.table], side
    names = [(c.name, e.label) for c in claims.claims().values() for e in c.effects]
    assert len(set(names)) == len(names)


def test_a_claim_runs_both_sides_on_the_same_clients() -> None:
    found = claims.jobs("sme-over-dlfa")
    first = {(j.method, j.init, j.seed) for j in found if (j.table, j.row) == ("main", ROW)}
    assert first == {(m, i, k) for m in ("sme", "dlfa") for i in plan.INITS for k in range(10)}
    assert not [j for j in found if j.row == "cifar100-E20-N50"], "left to a GPU"
    assert {j.row for j in claims.jobs("sme-over-dlfa", seeds=1)} >= {"cifar100-E20-N50"}
    cost = [int(plan.estimate(j)).bit_length() for j in found]
    assert cost == sorted(cost)
    with pytest.raises(smelib.InputError, match="did you mean 'rounds'"):
        claims.jobs("round")


def test_a_price_grows_with_what_is_simulated() -> None:
    def price(row: str, method: str) -> prices.Price:
        return prices.price([Job("main", row, method, 0)])

    ten, fifty = (price(f"femnist-E{e}-N10", "dlfa") for e in (10, 50))
    assert fifty.operations == pytest.approx(5 * ten.operations)
    assert price("femnist-E10-N50", "sme").operations == 5 * price(ROW, "sme").operations
    assert price("femnist-E50-N10", "sme") == price(ROW, "sme"), "which simulates nothing"
    assert price("cifar100-E10-N10", "ig").operations > 3 * price(ROW, "ig").operations
    assert prices.price([Job("low_rank", "E5-B5-R1", "path", 0)]) == (0, 0)
    assert str(prices.Price(0, 3.0)) == "3.0 h, $6.00"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(f): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def test_the_command_prints_the_counts_and_changes_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    measured(tmp_path, "sme", 30.0, 31.0)
    before = contents(tmp_path)
    where = tmp_path / "page.md"
    assert cli.main(["scoreboard", "--out", str(tmp_path), "--page", str(where)]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^all +1 +0 +1 +314 +0 +11$", said, re.M), said
    assert said.startswith("2 attacks on 2 distinct clients (2 of FEMNIST)")
    assert contents(tmp_path) == before
    assert cli.main(["scoreboard", "--results", str(tmp_path)]) == 0
    assert capsys.readouterr().out == said


def test_told_to_the_command_writes_the_page_and_the_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    measured(tmp_path, "sme", 30.0, 31.0)
    where = tmp_path / "page.md"
    words = ["scoreboard", "--results", str(tmp_path), "--page", str(where), "--write"]
    assert cli.main(words) == 0
    text = where.read_text()
    assert page.RULE in text
    assert text.count('<td data-is="difference">') == 2, "PSNR and L_sim"
    assert not re.search(r"(src|href)=.http", text), "outside of a clone there is no address"
    assert json.loads((tmp_path / "manifest.json").read_text())["tables"]["main"]["lines"] == 2
    assert cli.main(words) == 0, "a page of ours is written anew"
    assert not [f for f in tmp_path.iterdir() if f.name.startswith((".page", ".manifest"))]


def test_the_book_s_own_page_is_known_as_ours() -> None:
    ours = Path(__file__).resolve().parents[1] / "book" / "scoreboard.md"
    assert ours.read_text("utf-8").startswith(page.TITLE)


def test_the_book_s_own_page_is_what_its_results_give() -> None:
    root = Path(__file__).resolve().parents[1]
    written = (root / "book" / "scoreboard.md").read_text("utf-8")
    assert written == page.page(boards.read(root / "results")), "run `make scoreboard`"


def test_a_row_links_to_its_lines(tmp_path: Path) -> None:
    (tmp_path / "_toc.yml").touch()
    measured(tmp_path / "results" / "next", "ig", 20.0)
    measured(tmp_path / "results" / "next", "sme", 30.0, 31.0)
    measured(tmp_path / "results" / "next", "ig", 20.0, 21.0)
    text = page.page(boards.read(tmp_path / "results" / "next"))
    assert f"{smelib.version.REPOSITORY}/blob/main/results/next/main.csv?plain=1#L3" in text
    assert 'title="main.csv, 3–4">2 lines</a>' in text
    assert 'title="main.csv, 2, 5">2 lines</a>' in text
    lines = (tmp_path / "results" / "next" / "main.csv").read_text().splitlines()
    assert ",sme,torch,0," in lines[3 - 1]
    assert tables.runs([2, 3, 4, 9, 11, 12]) == "2–4, 9, 11–12"


@pytest.mark.parametrize(
    ("folder", "page", "message"),
    [
        ("resluts", "page.md", "there is no such folder"),
        ("foreign", "page.md", "holds no results"),
        ("ours", "notes.md", "is not a scoreboard"),
        ("ours", "foreign", "is a folder"),
        ("ours", "none/page.md", "there is no folder"),
    ],
)
def test_nothing_is_written_in_a_folder_that_is_not_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture, folder: str, page: str, message: str
) -> None:
    measured(tmp_path / "ours", "sme", 30.0)
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "main.csv").write_text("name,price\n")
    (tmp_path / "foreign" / "manifest.json").write_text('{"name": "an app"}')
    (tmp_path / "notes.md").write_text("my notes")
    before = contents(tmp_path)
    words = ["--out", str(tmp_path / folder), "--page", str(tmp_path / page), "--write"]
    assert cli.main(["scoreboard", *words]) == 2
    assert message in capsys.readouterr().err
    assert contents(tmp_path) == before


@pytest.mark.parametrize("fails", ["write_text", "replace"])
def test_a_manifest_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    measured(tmp_path, "sme", 30.0)
    provenance.write_manifest(tmp_path)
    before = contents(tmp_path)

    def half(self: Path, text: str, *_: object, **__: object) -> None:
        self.write_bytes(text.encode()[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def never(*_: object) -> None:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    if fails == "replace":
        monkeypatch.setattr(os, "replace", never)
    else:
        monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(OSError, match=r"space|denied"):
        provenance.write_manifest(tmp_path)
    assert contents(tmp_path) == before


@pytest.mark.slow
def test_filters_and_headings_work_and_nothing_is_thrown(tmp_path: Path) -> None:
    chromium = shutil.which("chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if chromium is None:
        pytest.skip("no chromium on this machine")
    measured(tmp_path, "sme", 30.0, 30.1, 30.2)
    measured(tmp_path, "ig", 20.0, 20.1, 22.0)
    measured(tmp_path, "ig", 24.0, row="cifar100-E10-N10")
    text = page.page(boards.read(tmp_path))
    html = "".join(re.findall(r"```{raw} html\n(.*?)```", text, re.S))
    with sync_api.sync_playwright() as p:
        browser = p.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        tab = browser.new_page()
        thrown: list[object] = []
        tab.on("pageerror", lambda error: thrown.append(error))
        tab.set_content(html)

        def shown(name: str) -> list[str]:
            return tab.locator(f".cells tr:visible td[data-is={name}]").all_inner_texts()

        assert len(shown("paper")) == 6
        tab.get_by_label("method").select_option("IG")
        tab.get_by_label("quantity").select_option("L_sim")
        assert shown("row") == [SAID, "CIFAR-100, E = 10, N = 10"]
        assert tab.locator(".filters output").inner_text() == "2 of 6 shown"
        for name in ("method", "quantity"):
            tab.get_by_label(name).select_option("")
        tab.get_by_label("verdict").select_option("different")
        assert set(shown("verdict")) == {"different"}
        tab.get_by_label("verdict").select_option("")
        for column in ("paper", "difference"):
            n = tables.HEADINGS.index(column) + 1
            head = tab.locator(f".cells th:nth-child({n}) button")
            head.click()
            rising = [float(x.split()[0].rstrip("×").replace("−", "-")) for x in shown(column)]
            assert rising == sorted(rising)
            head.click()
            assert shown(column)[0] != shown(column)[-1]
        assert not thrown
        browser.close()


def test_the_paper_s_numbers_are_the_paper_s() -> None:
    paper = json.loads(published.results("paper_tables.json"))
    wanted = {"row": ROW, "method": "sme", "metric": "psnr", "value": 30.3, "error": 0.3}
    assert wanted in paper["main"]


def test_pages_read_the_last_finished_line_of_every_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "_toc.yml").touch()
    folder = tmp_path / "results"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(smelib.InputError, match=r"manifest\.json"):
        published.finished("main")  # out of reach is not the same as not run
    provenance.write_manifest(folder)
    assert published.finished("main") == []
    measured(folder, "sme", 30.0, 31.0)
    provenance.write_manifest(folder)
    measured(folder, "ig", 20.0, status="failed", psnr=None)
    found = published.finished("main", row=ROW, method="sme")
    assert sorted((x["seed"], x["psnr"]) for x in found) == [(0, 30.0), (1, 31.0)]
    assert found[0]["alpha"] is None
    assert not any(x["earlier"] for x in found)
    assert published.finished("main", method="ig") == []


def test_pages_never_mix_two_versions_in_a_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "_toc.yml").touch()
    folder = tmp_path / "results"
    monkeypatch.chdir(tmp_path)
    measured(folder, "sme", 30.0, 31.0, version=1)
    measured(folder, "ig", 20.0, 21.0, version=1)
    measured(folder, "sme", 32.0, 33.0)
    measured(folder, "ig", 25.0)
    provenance.write_manifest(folder)
    found = {m: published.finished("main", method=m) for m in ("ig", "sme")}
    assert [(x["psnr"], x["earlier"]) for x in found["sme"]] == [(32.0, False), (33.0, False)]
    assert [(x["psnr"], x["earlier"]) for x in found["ig"]] == [(20.0, True), (21.0, True)]


def test_a_clone_around_the_working_folder_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "_toc.yml").touch()
    for name in ("results", "notebooks"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")
    assert published.folder() == tmp_path / "results"
    with pytest.raises(smelib.InputError, match="was not measured yet"):
        published.results("speed.json")
    monkeypatch.setattr(published, "PACKAGE", tmp_path / "site" / "smelib")
    (tmp_path / "_toc.yml").unlink()
    assert published.folder() == tmp_path / "site" / "smelib" / "results"
    with pytest.raises(smelib.InputError, match="neither in a clone around here"):
        published.results("speed.json")


def test_what_needs_no_attack_stands_beside_sme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mean image for SME's own clients, and over all clients the level that it reaches."""
    measured(tmp_path, "sme", 30.0, 31.0)
    mean_images(tmp_path, 18.0, 18.4, 17.0)
    board = boards.read(tmp_path)
    held = json.dumps({f"{ROW} {k}": {"best of 1000": 11.0} for k in (0, 1, 2)})
    monkeypatch.setattr(page.published, "results", lambda name: held)
    text = "\n".join(page._worth(board))
    assert f"| {SAID} | 30.5 dB (2) | 18.2 dB | 11.0 dB (3) |" in text
    half = verdicts.mean([18.0, 18.4, 17.0]).half
    assert f"17.8 ± {half:.1f} dB over 3 clients of ten images" in text


def mean_images(folder: Path, *levels: float) -> None:
    """Say what the mean image has for the clients of `measured`."""
    held = {f"femnist 10 {seed}": level for seed, level in enumerate(levels)}
    (folder / cells.MEAN_IMAGE).write_text(json.dumps(held))


@pytest.mark.parametrize(
    ("levels", "said"),
    [
        ((18.0, 18.4, 18.2), "in 1 of them, and below it in 0; for 0"),
        ((33.0, 33.4, 34.2), "in 0 of them, and below it in 1; for 0"),
        ((25.0, 33.4, 34.2), "in 0 of them, and below it in 0; for 1"),
    ],
)
def test_an_attack_is_set_beside_the_mean_image_client_by_client(
    tmp_path: Path, levels: tuple[float, ...], said: str
) -> None:
    measured(tmp_path, "sme", 30.0, 31.0, 32.0)
    mean_images(tmp_path, *levels)
    board = boards.read(tmp_path)
    cell = the(board.cells, "sme")
    gain = verdicts.mean(np.subtract(cell.values, levels)).interval
    assert (cell.gain.value, cell.gain.half) == pytest.approx((gain.value, gain.half))
    text = "\n".join(page._over_the_mean_image(board))
    assert said in text
    assert (f"| {SAID}: SME | 31.0 dB" in text) == (gain.high < 0)
    assert f"mean image {np.mean(levels):.1f} dB" in "\n".join(tables.cell_table(board))


def test_a_guess_is_for_the_clients_of_today(tmp_path: Path) -> None:
    """A seed stood for another client once; and where one client lacks a guess, none is shown."""
    measured(tmp_path, "sme", 30.0, 31.0, version=1)
    measured(tmp_path, "ig", 27.0, 28.0)
    mean_images(tmp_path, 18.0, 18.4)
    found = cells.cells(tmp_path)
    assert the(found, "ig").guesses == (18.0, 18.4)
    assert the(found, "sme").guesses == ()
    mean_images(tmp_path, 18.0)
    assert the(cells.cells(tmp_path), "ig").guesses == ()
    assert not page._over_the_mean_image(boards.read(tmp_path))


def test_what_the_plan_has_of_lecun_s_weights_is_priced_until_it_ran(tmp_path: Path) -> None:
    """The scoreboard is the one place for what was not run, under every reading of the plan."""
    row, said = "femnist-E10-N50", "DLFA, FEMNIST, E = 10, N = 50, LeCun's weights"

    def listed() -> dict[str, str]:
        return {words: command for words, command, _ in tables._missing(boards.read(tmp_path))}

    clients = plan.planned("main", row, "dlfa", "lecun")
    assert f"--inits lecun --seeds {clients} " in listed()[said]
    assert not any("N = 200, LeCun" in words for words in listed()), "the plan has none"
    measured(tmp_path, "dlfa", 20.0, 21.0, row=row, init="lecun")
    assert said not in listed()


def test_an_end_that_rounds_to_zero_shows_on_which_side_it_lies() -> None:
    for half, said in ((0.77, "[−1.55, −0.01]"), (0.79, "[−1.57, +0.01]"), (0.5, "[−1.3, −0.3]")):
        assert boards.between(verdicts.Interval(-0.78, half), verdicts.DECIBELS) == said
    assert boards.between(verdicts.Interval(0.0, 0.0), verdicts.DECIBELS) == "[+0.00, +0.00]"


@pytest.mark.parametrize(
    ("lead", "side"), [(1.0, "ours is above zero"), (-1.0, "ours is below zero"), (0.0, "")]
)
def test_a_line_that_the_paper_has_level_says_where_ours_is_clear_of_zero(
    tmp_path: Path, lead: float, side: str
) -> None:
    """Here the paper's 25.7 against 26.4 dB; ours hold as level, and are no draw all the same."""
    for method, more in (("sme", lead), ("dlfa", 0.0)):
        psnrs = (25.0 + more, 26.1 + more * 1.1, 27.0 + more, 26.5 + more * 0.9)
        measured(tmp_path, method, *psnrs, row="femnist-E50-N10")
        measured(tmp_path, method, *(x + 10 * (method == "sme") for x in (20.0, 20.5, 21.0)))
    board = boards.read(tmp_path)
    found = effect(tmp_path, "sme-over-dlfa", "FEMNIST, E = 50, N = 10")
    assert found.level
    assert found.verdict == "holds"
    text = page.page(board)
    assert ("claimed: level; ours is" in text) == bool(side)
    assert side in text
    beside = ", and 1 of ours is clear of zero" * bool(side)
    assert f"2 hold; 1 of these the paper has level{beside}" in text
