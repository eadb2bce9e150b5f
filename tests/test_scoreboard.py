"""The scoreboard: the rule is applied as it is stated, and the worst news stands first."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import smelib
from smelib import cli
from smelib.reproduce import networks, plan, provenance, published, scoreboard
from smelib.reproduce.plan import Job
from smelib.reproduce.scoreboard import Cell
from smelib.reproduce.store import Ledger

ROW = "femnist-E10-N10"  # the paper: SME 30.3, IG 27.8
NOW = provenance.RESULTS_VERSION


def measured(folder: Path, method: str, *psnrs: float, **changes: object) -> None:
    """Write results of the main table as a run would have."""
    for seed, psnr in enumerate(psnrs):
        job = Job("main", str(changes.get("row", ROW)), method, seed)
        line = {**vars(job), "status": "ok", "psnr": psnr, "l_sim": 0.02, "steps": 1000}
        line |= {"seconds": 1.0, "version": NOW[method], **changes}
        Ledger(folder / "main.csv").append(line)


def the(found: list[Cell], method: str, row: str = ROW) -> Cell:
    (cell,) = (c for c in found if (c.table, c.row, c.method) == ("main", row, method))
    return cell


def test_every_number_of_the_paper_has_a_cell(tmp_path: Path) -> None:
    found = scoreboard.cells(tmp_path)
    by = scoreboard.counts(found)
    assert {t: sum(c.values()) for t, c in by.items()} == {
        "main": 36,
        "cost": 24,
        "low_rank": 27,
        "trained": 48,
        "architectures": 72,
    }
    assert {c.verdict for c in found} == {"not run", "no value"}
    assert all(c.paper is None for c in found if c.verdict == "no value")


def test_every_command_names_cells_that_exist(tmp_path: Path) -> None:
    for cell in scoreboard.cells(tmp_path):
        table, row = cell.source
        words = cell.command.split()
        methods = words[words.index("--methods") + 1].split(",") if "--methods" in words else []
        assert plan.jobs(table, rows=[row], methods=methods, seeds=5)


def test_two_decibels_agree_and_more_differ(tmp_path: Path) -> None:
    measured(tmp_path, "sme", 28.4, 28.4)
    measured(tmp_path, "ig", 29.7, 30.1)
    found = scoreboard.cells(tmp_path)
    assert the(found, "sme").verdict == "agrees"
    assert the(found, "ig").verdict == "differs"
    assert the(found, "dlfa").verdict == "not run"


def test_a_wide_interval_is_no_agreement(tmp_path: Path) -> None:
    measured(tmp_path, "sme", 20.0, 35.0)
    cell = the(scoreboard.cells(tmp_path), "sme")
    low, high = cell.interval
    assert low < cell.paper < high
    assert cell.verdict == "differs"


def test_the_interval_is_student_s(tmp_path: Path) -> None:
    measured(tmp_path, "sme", 29.0, 30.0, 31.0)
    low, high = the(scoreboard.cells(tmp_path), "sme").interval
    assert (low, high) == pytest.approx((30 - 2.4841, 30 + 2.4841), abs=1e-3)
    measured(tmp_path, "ig", 29.0)
    assert the(scoreboard.cells(tmp_path), "ig").interval is None


def test_a_cell_shows_its_earlier_version_until_there_is_a_new_line(tmp_path: Path) -> None:
    measured(tmp_path, "sme", 20.0, 22.0, 24.0, version=0)
    measured(tmp_path, "sme", 30.0, 32.0, version=1)
    cell = the(found := scoreboard.cells(tmp_path), "sme")
    assert (cell.values, cell.earlier) == ((30.0, 32.0), True), "the last of the earlier ones"
    assert "earlier version" in scoreboard.summary(found)
    assert "earlier version" in scoreboard._line(cell)
    measured(tmp_path, "sme", 40.0)
    cell = the(found := scoreboard.cells(tmp_path), "sme")
    assert (cell.values, cell.earlier) == ((40.0,), False), "one cell never mixes the two"
    assert "earlier version" not in scoreboard.summary(found)


def test_a_new_failure_is_not_hidden_by_an_earlier_success(tmp_path: Path) -> None:
    measured(tmp_path, "sme", 30.0, version=1)
    measured(tmp_path, "sme", 0.0, status="failed", error="no memory", psnr=None)
    assert the(scoreboard.cells(tmp_path), "sme").verdict == "failed"


def test_a_retrained_network_makes_an_earlier_version(tmp_path: Path) -> None:
    file = networks.path(tmp_path, 5)
    file.parent.mkdir()
    save_file({"w": torch.ones(3)}, file)
    now = networks.digests(networks.notes(tmp_path))[file.name]
    for network, psnr in (("of old", 20.0), (now, 30.0)):
        line = {**vars(Job("trained", "R5-E10-N10", "sme", 0)), "status": "ok", "psnr": psnr}
        line |= {"version": NOW["sme"], "network": network, "l_sim": 0.02}
        Ledger(tmp_path / "trained.csv").append(line)
        (cell,) = (c for c in scoreboard.cells(tmp_path) if c.values)
        assert (cell.values, cell.earlier) == ((psnr,), network != now)


def cost(folder: Path, method: str, **changes: object) -> None:
    """Write a result of the cost table."""
    line = {**vars(Job("cost", "femnist-E10-N50", method, 0)), "status": "ok", "steps": 1}
    line |= {"cpu_seconds": 1.0, "memory_mb": 5.0, "device": "cpu", "version": NOW[method]}
    Ledger(folder / "cost.csv").append({**line, **changes})


def test_a_ratio_is_of_two_results_of_the_same_age(tmp_path: Path) -> None:
    def ratio() -> tuple[tuple[float, ...], bool]:
        shown = [c for c in scoreboard.cells(tmp_path) if c.table == "cost" and c.method == "dlfa"]
        (cell,) = (c for c in shown if c.metric == "gigabytes" and c.source[1] == "femnist-E10-N50")
        return cell.values, cell.earlier

    cost(tmp_path, "dlfa", memory_mb=20.0, version=1)
    cost(tmp_path, "sme", memory_mb=10.0, version=1)
    cost(tmp_path, "dlfa", memory_mb=90.0)
    assert ratio() == ((2.0,), True)
    cost(tmp_path, "sme", memory_mb=30.0)
    assert ratio() == ((3.0,), False)


def test_failures_stand_first(tmp_path: Path) -> None:
    measured(tmp_path, "sme", 30.0)
    measured(tmp_path, "ig", 20.0)
    measured(tmp_path, "ig", 24.0, row="cifar100-E10-N10")
    measured(tmp_path, "dlfa", 0.0, status="failed", error="no memory", psnr=None)
    found = scoreboard.cells(tmp_path)
    verdicts = [c.verdict for c in found]
    assert verdicts[:3] == ["failed", "failed", "differs"]  # DLFA also stands in trained
    assert found[2].gap == max(c.gap for c in found), "the largest difference comes first"
    places = [scoreboard.ORDER.index(v) for v in verdicts]
    assert places == sorted(places)
    assert "--retry-failed" in found[0].command
    measured(tmp_path, "sme", 28.5, row="cifar100-E10-N10")
    job = Job("main", "cifar100-E10-N10", "sme", 1)
    line = {**vars(job), "status": "failed", "version": NOW["sme"]}
    Ledger(tmp_path / "main.csv").append(line)
    first = scoreboard.cells(tmp_path)[:3]
    assert [c.verdict for c in first] == ["failed", "failed", "agrees"], "one client failed"


def test_a_failed_sme_fails_the_costs_beside_it(tmp_path: Path) -> None:
    cost(tmp_path, "sme", status="failed", memory_mb="")
    cost(tmp_path, "dlfa")
    row = "femnist-E10-N50"
    found = [c for c in scoreboard.cells(tmp_path) if c.table == "cost" and c.row == row]
    assert {c.verdict for c in found if c.method == "dlfa"} == {"failed"}


def test_no_memory_is_no_ratio(tmp_path: Path) -> None:
    for method, mb in (("sme", 0.0), ("ig", 5.0), ("dlfa", 0.0)):
        cost(tmp_path, method, memory_mb=mb)
    found = [c for c in scoreboard.cells(tmp_path) if c.table == "cost" and c.values]
    assert {c.metric for c in found} == {"hours_per_100"}


def test_the_first_round_of_trained_is_main_s(tmp_path: Path) -> None:
    measured(tmp_path, "sme", 30.0)
    (cell,) = (
        c
        for c in scoreboard.cells(tmp_path)
        if (c.table, c.row, c.method) == ("trained", "R1-E10-N10", "sme")
    )
    assert cell.values == (30.0,)


def test_cost_is_a_multiple_of_sme_s(tmp_path: Path) -> None:
    for method, seconds in (("sme", 1.0), ("dlfa", 50.0)):
        cost(tmp_path, method, cpu_seconds=seconds, steps=10)
    found = [c for c in scoreboard.cells(tmp_path) if c.values]
    time, memory = (next(c for c in found if c.metric == m) for m in ("hours_per_100", "gigabytes"))
    assert time.ours == pytest.approx(50 * 400 / 1000)
    assert time.paper == pytest.approx(5.9 / 0.29)
    assert time.verdict == "agrees"
    assert memory.ours == 1


def test_the_ranking_counts_rows_where_both_were_run(tmp_path: Path) -> None:
    measured(tmp_path, "sme", 30.0)
    measured(tmp_path, "ig", 27.0)
    measured(tmp_path, "sme", 20.0, row="femnist-E20-N10")
    measured(tmp_path, "ig", 21.0, row="femnist-E20-N10")
    measured(tmp_path, "ig", 21.0, row="femnist-E50-N10")
    kept, lost = scoreboard.ranking(scoreboard.cells(tmp_path))
    assert (kept, lost) == (["femnist-E10-N10 torch"], ["femnist-E20-N10 torch"])


def test_one_reading_counts_every_number_once(tmp_path: Path) -> None:
    measured(tmp_path, "sme", 30.0)  # agrees, in main and in the first round of trained
    measured(tmp_path, "sme", 10.0, init="lecun")
    for row, psnr in (("lenet-E10-N10", 10.0), ("lenet_softmax-E10-N10", 29.0)):  # paper: 29.5
        job = Job("architectures", row, "sme", 0)
        line = {**vars(job), "status": "ok", "psnr": psnr, "l_sim": 0.02}
        line["version"] = NOW["sme"]
        Ledger(tmp_path / "architectures.csv").append(line)
    found = scoreboard.cells(tmp_path)
    assert sum(scoreboard.counts(found).values(), Counter())["differs"] == 3
    assert scoreboard.one_reading(found) == {"agrees": 3, "not run": 201, "no value": 3}
    measured(tmp_path, "ig", 10.0, init="lecun")
    assert scoreboard.one_reading(scoreboard.cells(tmp_path))["differs"] == 0


def contents(folder: Path) -> dict[str, bytes]:
    return {str(f): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def test_the_command_prints_the_counts_and_changes_no_file(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    measured(tmp_path, "sme", 30.0, 31.0)
    before = contents(tmp_path)
    page = tmp_path / "page.md"
    assert cli.main(["scoreboard", "--out", str(tmp_path), "--page", str(page)]) == 0
    assert re.search(r"^all +0 +0 +202 +2 +3$", capsys.readouterr().out, re.M)
    assert contents(tmp_path) == before


def test_told_to_the_command_writes_the_page_and_the_manifest(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    measured(tmp_path, "sme", 30.0, 31.0)
    page = tmp_path / "page.md"
    words = ["scoreboard", "--out", str(tmp_path), "--page", str(page), "--write"]
    assert cli.main(words) == 0
    said = capsys.readouterr().out
    assert re.search(r"^all +0 +0 +202 +2 +3$", said, re.M), said
    text = page.read_text()
    assert scoreboard.RULE in text
    assert text.count("<tr") == 1 + 207
    assert "http" not in text, "the page needs no network"
    assert json.loads((tmp_path / "manifest.json").read_text())["tables"]["main"]["lines"] == 2
    assert cli.main(words) == 0, "a page of ours is written anew"
    assert not [f for f in tmp_path.iterdir() if f.name.startswith((".page", ".manifest"))]


def test_the_book_s_own_page_is_known_as_ours() -> None:
    page = Path(__file__).resolve().parents[1] / "book" / "scoreboard.md"
    assert page.read_text("utf-8").startswith(scoreboard.TITLE)


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
def test_headings_sort_the_table(tmp_path: Path) -> None:
    chromium = shutil.which("chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if chromium is None:
        pytest.skip("no chromium on this machine")
    measured(tmp_path, "sme", 30.0)
    html = scoreboard.page(scoreboard.cells(tmp_path)).partition("```{raw} html\n")[2]
    with sync_api.sync_playwright() as p:
        browser = p.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        tab = browser.new_page()
        tab.set_content(html.rpartition("```")[0])

        def column(name: str) -> list[str]:
            n = scoreboard.HEADINGS.index(name) + 1
            tab.locator(f"th:nth-child({n}) button").click()
            return tab.locator(f"tbody td:nth-child({n})").all_inner_texts()

        rising, falling = column("paper"), column("paper")
        numbers = [float(x) for x in rising if x != "–"]
        assert numbers == sorted(numbers)
        assert len(numbers) > 190
        assert falling != rising
        assert column("clients")[0] == "0"
        assert column("clients")[0] == "1"
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
    measured(folder, "sme", 32.0)
    provenance.write_manifest(folder)
    found = {m: published.finished("main", method=m) for m in ("ig", "sme")}
    assert [(x["psnr"], x["earlier"]) for x in found["sme"]] == [(32.0, False)]
    assert [(x["psnr"], x["earlier"]) for x in found["ig"]] == [(20.0, True), (21.0, True)]
