"""What the benchmarks keep: a run is measured once, and neither kills nor neighbours lose one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from stand_ins import forked, note, noted

from smelib.errors import InputError

SCRIPTS = Path(__file__).resolve().parents[1] / "benchmarks"
sys.path.insert(0, str(SCRIPTS))

import kept  # noqa: E402


def many(file: Path, names: range) -> None:
    kept.fill(file, ((str(n), lambda n=n: note(file.parent, str(n)) or {"n": n}) for n in names))


def test_only_what_is_missing_runs_and_all_is_given_back(tmp_path: Path) -> None:
    file = tmp_path / "new" / "runs.json"
    kept.keep(file, {"a": {"psnr": 1.0}})
    ran = []
    found = kept.fill(file, [(k, lambda k=k: ran.append(k) or {"psnr": 2.0}) for k in "ab"])
    assert ran == ["b"]
    assert found == kept.stored(file) == {"a": {"psnr": 1.0}, "b": {"psnr": 2.0}}


def test_kills_leave_the_file_whole_and_repeat_nothing(tmp_path: Path) -> None:
    file, names = tmp_path / "runs.json", range(200)
    for _ in range(5):
        ran, before = len(noted(tmp_path)), set(kept.stored(file))
        child = forked(many, file, names)
        while len(noted(tmp_path)) < ran + 5:
            time.sleep(0.001)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert before <= set(kept.stored(file))
        assert not before & set(noted(tmp_path)[ran:])
    assert len(kept.stored(file)) < len(names), "the last kill came after the last run"


def test_two_processes_lose_nothing_of_each_other_s(tmp_path: Path) -> None:
    file = tmp_path / "runs.json"
    children = [forked(many, file, range(k, k + 20)) for k in (0, 100)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    assert len(kept.stored(file)) == 40


def test_a_damaged_file_is_a_sentence_and_stays(tmp_path: Path) -> None:
    file = tmp_path / "runs.json"
    file.write_text('{"a": ')
    with pytest.raises(InputError, match="not whole JSON; move it away"):
        kept.fill(file, [("a", dict)])
    assert file.read_text() == '{"a": '


def test_runs_are_read_cell_by_cell_and_client_by_client() -> None:
    runs = {"cnn | sme | 0": {"psnr": 1.0}, "cnn | ig | 0": {}, "cnn | sme | 10": {"psnr": 2.0}}
    found = kept.by_cell(runs)
    assert found == {
        ("cnn", "sme"): {"0": {"psnr": 1.0}, "10": {"psnr": 2.0}},
        ("cnn", "ig"): {"0": {}},
    }


def test_pairs_have_a_difference_and_from_two_on_an_interval() -> None:
    """Of three differences 1 apart the t-interval is ± 4.302653 / sqrt(3) = 2.484."""
    assert kept.between([(3.0, 1.0)]) == "+2.00"
    assert kept.between([(1.0, 2.0), (4.0, 6.0), (5.0, 8.0)]) == "-2.00 [-4.48, +0.48]"


def test_the_finished_steps_are_not_run_again(tmp_path: Path) -> None:
    """A whole script, with every run but one kept."""
    file = tmp_path / "steps.json"
    every = json.loads((SCRIPTS.parent / "results" / "steps.json").read_text())
    mine = {k: v for k, v in every.items() if k.endswith(" 0")}
    file.write_text(json.dumps({k: v for k, v in mine.items() if k != "LeNet 0"}))
    command = [sys.executable, SCRIPTS / "steps.py", "--seeds", "0", "--steps", "1", "--out", file]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout.count("\n")) == (0, 1), ran.stderr
    assert ran.stdout.startswith("LeNet 0: {'steps'")
    assert set(kept.stored(file)) == set(mine)
