"""The table of defences: planned as chapter 14 needs it, kept through kills, read in means."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from stand_ins import here, killed, once

from smelib import cli, data
from smelib.errors import InputError
from smelib.reproduce import defending, drive, job, networks, plan, provenance, published, tradeoff
from smelib.reproduce.plan import Job, jobs
from smelib.reproduce.store import Ledger

CLIP = "mnist-R0-clip-0.3"


def test_the_plan_has_every_setting_at_the_start_and_one_of_each_later() -> None:
    cells = Counter((j.row, j.method) for j in jobs("defences"))
    for name in ("mnist", "femnist"):
        start = {m: n for (row, m), n in cells.items() if row == f"{name}-R0-top_k-0.001"}
        attackers = dict.fromkeys(plan.DEFENDED[:4], 5)
        assert start == {**attackers, "federation": 3}
        assert cells[f"{name}-R0-none-0", "prior"] == 5
    for stage in (5, 20):
        later = {row for row, m in cells if row.startswith(f"femnist-R{stage}-")}
        assert [r.split("-")[2] for r in plan.ROWS["defences"] if r in later] == list(plan.KNOBS)
        assert cells[f"femnist-R{stage}-clip-0.1", "aware-retrace"] == 3
        assert cells[f"femnist-R{stage}-noise-8", "naive-sme"] == 3
        assert cells[f"femnist-R{stage}-clip-0.1", "federation"] == 0, "accuracy is of R0"
    assert len(jobs("defences")) == 1460


@pytest.mark.parametrize(
    ("row", "methods"),
    [
        ("mnist-R0-none-0", {"naive-sme", "naive-retrace", "prior", "federation"}),
        ("mnist-R0-samples-20", {"naive-sme", "naive-retrace"}),
        ("mnist-R0-sum-2", {*plan.DEFENDED} - {"prior"}),
        ("mnist-R0-sum-4", {*plan.DEFENDED[:4]}),
        ("femnist-R20-clip-0.3", {*plan.DEFENDED[:4]}),
    ],
)
def test_only_what_means_something_is_run_however_many_clients(row: str, methods: set) -> None:
    assert {j.method for j in jobs("defences", rows=[row], seeds=2)} == methods


def test_a_pattern_names_rows() -> None:
    rows = {j.row for j in jobs("defences", rows=["mnist-R0-clip-*", "mnist-R0-sign-1"])}
    assert rows == {f"mnist-R0-clip-{v}" for v in (0.3, 0.1, 0.03)} | {"mnist-R0-sign-1"}


def test_a_row_says_what_is_measured() -> None:
    row = Job("defences", "femnist-R20-samples-50", "naive-sme", 0).setting
    assert (row.dataset, row.rounds, row.samples, row.steps) == ("femnist", 20, 50, 200)
    assert Job("defences", CLIP, "aware-sme", 0).setting.defence == ("clip", 0.3)


def test_kills_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    wanted = jobs("defences", rows=["mnist-R0-*"], methods=["naive-sme"], seeds=4)
    killed(tmp_path, wanted, 5)
    drive.drive(wanted, here(tmp_path), 2, tmp_path)
    assert once(tmp_path, wanted)


def stored(folder: Path, name: str, method: str, seed: int, **numbers: object) -> None:
    line = provenance.line(Job("defences", name, method, seed), folder=folder, device="cpu")
    Ledger(folder / "defences.csv").append({**line, "status": "ok", **numbers})
    provenance.write_manifest(folder)


def test_every_digit_and_every_round_is_kept(tmp_path: Path) -> None:
    exact = {"alpha": 0.4795724153518677, "client_epsilon": 5424345.125, "psnr": 20.128}
    stored(tmp_path, CLIP, "aware-sme", 0, **exact)
    stored(tmp_path, CLIP, "federation", 0, accuracy=0.9, by_round=[0.68, 0.852, 0.9])
    attack, federation = published.finished("defences", within=tmp_path)
    assert {k: attack[k] for k in exact} == exact
    assert (attack["accuracy"], attack["by_round"]) == (None, None)
    assert federation["by_round"] == [0.68, 0.852, 0.9]


def test_a_cell_has_a_mean_an_interval_and_the_gap_of_pairs(tmp_path: Path) -> None:
    """Of three values 1 apart the t-interval is ± 4.302653 / sqrt(3) = 2.484."""
    for seed, (naive, aware) in enumerate([(10.0, 13.0), (11.0, 13.0), (12.0, 13.0)]):
        stored(tmp_path, CLIP, "naive-sme", seed, psnr=naive, read=0.1 * seed)
        stored(tmp_path, CLIP, "aware-sme", seed, psnr=aware)
    stored(tmp_path, CLIP, "aware-sme", 3, psnr=99.0)  # a client without its naive run
    stored(tmp_path, "mnist-R0-none-0", "naive-sme", 0, psnr=20.0)
    found = tradeoff.table(tmp_path)
    none, *clipped = found.values()
    naive, aware = sorted(clipped, key=lambda c: c.method, reverse=True)
    assert (none.defence, none.value, none.gap) == ("none", 0, None)
    assert np.isnan(none.mean("psnr").half), "one client has no interval"
    assert found["mnist", 0, "clip", 0.3, "naive-sme"] is naive
    assert (naive.data, naive.rounds, naive.defence, naive.value) == ("mnist", 0, "clip", 0.3)
    assert naive.gap is None
    assert naive.mean("psnr").value == 11
    assert naive.mean("psnr").half == pytest.approx(2.484, abs=1e-3)
    assert naive.mean("read").value == pytest.approx(0.1)
    assert aware.gaps == [3, 2, 1], "paired by client"
    assert (aware.gap.value, aware.gap.half) == pytest.approx((2, 2.484), abs=1e-3)
    assert aware.mean("psnr").value == pytest.approx((3 * 13 + 99) / 4)
    with pytest.raises(InputError, match=r"no quantity of aware-sme 'read'.*choose one of psnr"):
        aware.mean("read")


def test_accuracy_is_kept_and_lost_by_the_same_federation(tmp_path: Path) -> None:
    """Of a sum, however many clients hide in it, the accuracy is that of the sum of two."""
    for row, scores in {
        "mnist-R0-none-0": {0: 0.8, 1: 0.5, 2: 0.1},
        CLIP: {0: 0.6, 1: 0.25, 3: 0.9},
        "mnist-R0-sum-2": {0: 0.8, 1: 0.4},
    }.items():
        for seed, accuracy in scores.items():
            stored(tmp_path, row, "federation", seed, accuracy=accuracy)
    stored(tmp_path, "mnist-R0-none-0", "prior", 0, mean_of_class=14.0)
    cells = tradeoff.table(tmp_path)
    assert tradeoff.kept(cells, "mnist", "clip", 0.3) == pytest.approx((0.75 + 0.5) / 2)
    assert tradeoff.lost(cells, "mnist", "clip", 0.3) == pytest.approx((0.2 + 0.25) / 2)
    assert tradeoff.lost(cells, "mnist", "sum", 8) == pytest.approx(0.05)
    assert tradeoff.kept(cells, "mnist", "noise", 8) is None, "it was not measured"
    assert tradeoff.lost(cells, "femnist", "clip", 0.3) is None
    assert tradeoff.prior(cells, "mnist").mean("mean_of_class").value == 14


def test_every_setting_of_the_plan_has_words_of_its_own() -> None:
    settings = {row.defence for row in plan.ROWS["defences"].values()}
    said = {tradeoff.setting(*one) for one in settings}
    assert len(said) == len(settings)
    assert {"no defence", "clipping to 0.1", "signs", "noise 8 × the update", "top-k 1%"} <= said
    assert {"random-k 0.1%", "quantisation to 1 bit", "sum of 8 clients"} <= said
    assert {"clip and noise σ = 0.1", "DP-SGD σ = 0.01", "50 samples"} <= said


def test_a_failed_run_is_no_value(tmp_path: Path) -> None:
    stored(tmp_path, CLIP, "naive-sme", 0, psnr=10.0)
    stored(tmp_path, CLIP, "naive-sme", 1, status="failed", error="ValueError: no")
    (cell,) = tradeoff.table(tmp_path).values()
    assert list(cell.runs) == [0]


def test_a_folder_without_results_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist; 'smelib reproduce --out"):
        tradeoff.table(tmp_path)


@pytest.fixture
def few_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A data set whose classifier is trained in no time."""
    held = data.load("mnist")
    chosen = np.arange(0, len(held), 20)
    small = replace(held, images=held.images[chosen], labels=held.labels[chosen])
    monkeypatch.setattr(data, "load", lambda name, root=None: small)
    provenance.data_digest.cache_clear()
    yield
    provenance.data_digest.cache_clear()


@pytest.mark.usefixtures("few_digits")
def test_a_line_is_measured_and_the_reader_is_trained_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = replace(plan.ROWS["defences"][CLIP], steps=2)
    monkeypatch.setitem(plan.ROWS["defences"], CLIP, row)
    line = job.attempt(Job("defences", CLIP, "aware-sme", 0), folder=tmp_path, root=None)
    assert line["status"] == "ok", line
    assert (line["device"], line["version"]) == ("cpu", "1")
    assert line["data"] == provenance.data_digest("mnist", None)
    assert 0 <= line["read"] <= 1
    (kept,) = (tmp_path / ".readers").glob("*.safetensors")
    made = kept.stat().st_mtime_ns
    line = job.attempt(Job("defences", "mnist-R0-none-0", "prior", 0), folder=tmp_path, root=None)
    assert line["mean_image"] < line["best_of_1000"], line
    assert kept.stat().st_mtime_ns == made
    assert networks.notes(tmp_path) == {}, "it is no network of the reproduction"


def test_a_defence_that_is_missing_fails_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(*_: object, **__: object) -> None:
        raise InputError("DP-SGD needs Opacus.")

    monkeypatch.setattr(defending.defences, "dp_sgd", without)
    line = job.attempt(
        Job("defences", "mnist-R0-dp_sgd-1", "naive-sme", 0), folder=tmp_path, root=None
    )
    assert (line["status"], line["error"]) == ("failed", "DP-SGD needs Opacus.")


def test_the_list_names_the_table(capsys: pytest.CaptureFixture) -> None:
    assert cli.main(["reproduce", "--list"]) == 0
    assert "defences          1460 runs in 112 rows" in capsys.readouterr().out
