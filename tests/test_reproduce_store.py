"""The ledger: nothing is lost, nothing half written is read, and a claim has one holder."""

from __future__ import annotations

import csv
import os
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest
from stand_ins import forked, here

from smelib.reproduce import drive
from smelib.reproduce.plan import jobs
from smelib.reproduce.store import HEADER, Ledger, by_cell, merge
from smelib.types import InputError


def test_a_second_result_of_one_version_is_dropped(tmp_path: Path) -> None:
    line = here(tmp_path)(jobs("tiny")[0])
    ledger = Ledger(tmp_path / "tiny.csv")
    assert ledger.append(line)
    assert not ledger.append({**line, "psnr": 21.0})
    assert ledger.append({**line, "version": 99})
    assert len(ledger.lines()) == 2


def test_every_half_written_line_is_dropped(tmp_path: Path) -> None:
    first, second = (here(tmp_path)(j) for j in jobs("tiny")[:2])
    ledger = Ledger(tmp_path / "tiny.csv")
    ledger.append(first)
    one = ledger.path.read_bytes()
    ledger.append(second)
    two = ledger.path.read_bytes()
    for length in range(len(two)):
        ledger.path.write_bytes(two[:length])
        assert len(ledger.lines()) == (length >= len(one)) + (length >= len(two))
    for length in (5, len(one) - 9, len(one) - 1, len(one) + 9, len(two) - 2, len(two) - 1):
        ledger.path.write_bytes(two[:length])
        ledger.append(first)
        ledger.append(second)
        assert ledger.path.read_bytes() == two, "the next writer cuts off what was left"


def test_a_line_that_was_altered_is_not_read(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "tiny.csv")
    for j in jobs("tiny")[:2]:
        ledger.append(here(tmp_path)(j))
    second = ledger.lines()[1]
    whole = ledger.path.read_bytes()
    assert whole.count(b",ok,20,") == 2
    ledger.path.write_bytes(whole.replace(b",ok,20,", b",ok,30,", 1))
    assert ledger.lines() == [second]


def test_a_full_disk_is_an_error_and_loses_no_line(tmp_path: Path) -> None:
    first, second = (here(tmp_path)(j) for j in jobs("tiny")[:2])
    ledger = Ledger(tmp_path / "tiny.csv")
    ledger.append(first)
    before = ledger.path.read_bytes()

    resource = pytest.importorskip("resource", reason="needs a Unix system")

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, len(before) + 20))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with pytest.raises(OSError, match="No space left"):
            ledger.append(second)

    assert os.waitpid(forked(fill), 0)[1] == 0
    assert ledger.path.read_bytes() == before
    assert ledger.append(second)


def test_the_file_is_plain_csv(tmp_path: Path) -> None:
    drive.drive(jobs("tiny", seeds=1), here(tmp_path), 1, tmp_path)
    with (tmp_path / "tiny.csv").open() as file:
        read = list(csv.DictReader(file))
    assert list(read[0]) == HEADER.split(",")
    assert float(read[0]["psnr"]) == 20


def test_another_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "tiny.csv").write_text("my,own,table\n1,2,3\n")
    with pytest.raises(InputError, match="header differs"):
        drive.drive(jobs("tiny"), here(tmp_path), 1, tmp_path)
    assert (tmp_path / "tiny.csv").read_text() == "my,own,table\n1,2,3\n"


def test_a_claim_released_while_another_opens_it_has_one_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second opens the claim's file, the first lets go, the second locks, a third comes."""
    fcntl = pytest.importorskip("fcntl", reason="needs a Unix system")
    ledger, first, flock = Ledger(tmp_path / "tiny.csv"), ExitStack(), fcntl.flock
    assert first.enter_context(ledger.claim("job"))

    def late(file: int, how: int) -> None:
        first.close()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with ledger.claim("job") as second:
        monkeypatch.undo()
        with ledger.claim("job") as third:
            assert (second, third) == (True, False)


def test_a_cell_s_generations_stay_apart_and_the_newest_is_last() -> None:
    def line(seed: str, version: str, network: str = "", psnr: str = "20") -> dict[str, str]:
        where = {"table": "main", "row": "r", "method": "sme", "init": "torch", "seed": seed}
        return {**where, "version": version, "network": network, "psnr": psnr}

    (cell,) = by_cell(
        [
            line("0", "2", "old"),
            line("0", "10", "old"),
            line("0", "10", "new"),
            line("0", "2", "old", psnr="21"),
            line("1", "10", "old"),
        ]
    ).values()
    assert list(cell) == [("2", "old"), ("10", "new"), ("10", "old")], "10 is more than 2"
    assert [x["psnr"] for x in cell["2", "old"]] == ["21"], "a client's last line counts"
    assert [x["seed"] for x in cell["10", "old"]] == ["0", "1"]


def test_merging_adds_what_is_finished_and_missing(tmp_path: Path) -> None:
    lines = [here(tmp_path)(j) for j in jobs("tiny")[:4]]
    (tmp_path / "kept").mkdir()
    ours, kept = Ledger(tmp_path / "ours" / "tiny.csv"), Ledger(tmp_path / "kept" / "tiny.csv")
    ours.append(lines[0])
    for line in (lines[0], lines[1], lines[2] | {"status": "failed"}, lines[1] | {"version": 99}):
        kept.append(line)
    assert merge(kept.path.parent, ours.path.parent) == 2
    assert ours.lines() == [kept.lines()[i] for i in (0, 1, 3)], "word for word"
    assert merge(kept.path.parent, ours.path.parent) == 0
    assert merge(tmp_path / "nowhere", ours.path.parent) == 0
