"""Reproduction runs: nothing is lost, nothing happens twice, and nobody is stopped by a failure."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from stand_ins import asked, forked, fragile, here, killed, lines, noted, once, rooted

from smelib import cli
from smelib.reproduce import drive, provenance
from smelib.reproduce.plan import Job, jobs
from smelib.reproduce.store import Ledger


def test_jobs_run_in_that_order(tmp_path: Path) -> None:
    wanted = jobs("tiny", seeds=2)
    drive.drive(wanted, here(tmp_path), 1, tmp_path)
    assert noted(tmp_path) == [j.key for j in wanted]


@pytest.mark.slow
def test_twenty_kills_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    wanted = jobs("tiny", seeds=80)
    killed(tmp_path, wanted, 20)
    drive.drive(wanted, here(tmp_path), 2, tmp_path)
    assert once(tmp_path, wanted)


def test_two_runs_on_one_folder_share_the_work(tmp_path: Path) -> None:
    wanted = jobs("tiny", seeds=10)
    children = [forked(drive.drive, wanted, here(tmp_path), 2, tmp_path) for _ in range(2)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    assert once(tmp_path, wanted)
    assert sorted(noted(tmp_path)) == sorted(j.key for j in wanted), "a job was run twice"


def test_failures_are_recorded_and_retried(tmp_path: Path) -> None:
    wanted = jobs("tiny", methods=["ig"], seeds=3)
    tally = drive.reproduce(wanted, tmp_path, workers=2, runner=fragile)
    assert (tally["ok"], tally["failed"]) == (2, 4)
    errors = {x["seed"]: x["error"] for x in lines(tmp_path)}
    assert errors["0"] == "RuntimeError: the dummies"
    assert "exit code -9" in errors["1"]
    assert errors["2"] == ""
    tally = drive.drive(wanted, here(tmp_path), 1, tmp_path)
    assert (tally["before"], tally["failed before"]) == (2, 4), "failed jobs rest"
    assert "4 failed before" in drive.summary("tiny", 6, tally)
    tally = drive.drive(wanted, here(tmp_path), 1, tmp_path, retry_failed=True)
    assert (tally["before"], tally["ok"]) == (2, 4)
    assert {x["status"] for x in Ledger(tmp_path / "tiny.csv").latest().values()} == {"ok"}


@pytest.mark.parametrize("compiled", [False, True])
def test_a_line_says_whether_the_steps_were_compiled(tmp_path: Path, compiled: bool) -> None:
    wanted = jobs("tiny", methods=["sme"], seeds=1)
    drive.reproduce(wanted, tmp_path, workers=1, compiled=compiled, runner=asked)
    assert {x["compiled"] for x in lines(tmp_path)} == {str(compiled)}


def test_jobs_get_the_data_root_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative, or from an environment that other nodes do not share."""
    monkeypatch.chdir(tmp_path)
    wanted = jobs("tiny", methods=["ig"], seeds=1)
    drive.reproduce(wanted[:1], tmp_path, data_root=".", workers=1, runner=rooted)
    monkeypatch.setenv("SMELIB_DATA", ".")
    drive.reproduce(wanted[1:], tmp_path, workers=1, runner=rooted)
    assert noted(tmp_path) == [str(tmp_path)] * 2


def test_time_limit_starts_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that only jobs move, a second each: at 0, 1, 2 and 3 one may start, at 4 none."""
    wanted, clock = jobs("tiny", seeds=10), [0.0]

    def slowly(job: Job) -> dict:
        clock[0] += 1
        return here(tmp_path)(job)

    with monkeypatch.context() as patch:
        patch.setattr(drive, "time", SimpleNamespace(monotonic=lambda: clock[0]))
        tally = drive.drive(wanted, slowly, 1, tmp_path, time_limit=3.5)
    assert (tally["ok"], tally["left"]) == (4, len(wanted) - 4)
    assert noted(tmp_path) == [j.key for j in wanted[:4]]
    assert len(lines(tmp_path)) == 4, "what had started was finished"
    assert "still to do" in drive.summary("tiny", len(wanted), tally)
    drive.drive(wanted, here(tmp_path), 1, tmp_path)
    assert once(tmp_path, wanted)


@pytest.mark.parametrize(("text", "seconds"), [("2h", 7200), ("90m", 5400), ("1h30m5s", 5405)])
def test_durations(text: str, seconds: float) -> None:
    assert drive.duration(text) == seconds


def test_the_manifest_names_the_git_revision(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[1]
    if shutil.which("git") is None or not (root / ".git").exists():
        pytest.skip("no git, or not a clone: there is no revision to name")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True)
    drive.drive(jobs("tiny", seeds=1), here(tmp_path), 1, tmp_path)
    made = json.loads((tmp_path / "manifest.json").read_text())["tables"]["tiny"]
    assert made["lines"] == 8
    assert [r.removesuffix("+changes") for r in made["revision"]] == [head.stdout.strip()]
    assert {"version", "data", "device", "smelib", "torch", "python"} <= set(made)


def test_damaged_files_beside_the_results_stop_nothing(tmp_path: Path) -> None:
    (tmp_path / "networks").mkdir()
    (tmp_path / "networks" / "femnist-R5.safetensors").write_bytes(b"not weights")
    (tmp_path / "main.csv").write_text("my,own,table\n")
    assert drive.drive(jobs("tiny", seeds=1), here(tmp_path), 1, tmp_path)["ok"] == 8
    made = json.loads((tmp_path / "manifest.json").read_text())
    assert "header differs" in made["tables"]["main"]["unreadable"]
    assert "unreadable" in made["networks"]["femnist-R5.safetensors"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mian"], "did you mean 'main'"),
        (["main", "--rows", "femnist-E10-N11"], "did you mean 'femnist-E10-N10'"),
        (["main", "--methods", "ig,smee"], "did you mean 'sme'"),
        (["main", "--rows", "mnist-*"], "did you mean"),
        (["defences", "--rows", "mnist-R0-clip-0.4"], "did you mean 'mnist-R0-clip-0.3'"),
        (["defences", "--methods", "aware-smee"], "did you mean 'aware-sme'"),
        (["defences", "--rows", "mnist-R0-none-0", "--methods", "aware-sme"], "no cell"),
        (["defences", "--inits", "lecun"], "choose one of torch"),
        (["main", "--inits", "lecunn"], "did you mean 'lecun'"),
        (["trained", "--inits", "xavier"], "choose one of torch, lecun"),
        (["tiny", "--seeds", "0"], "at least one client"),
        (["tiny", "--workers", "0"], "at least one"),
        (["tiny", "--backend", "rya"], "did you mean 'ray'"),
        (["tiny", "--time-limit", "soon"], "a time like 2h"),
        (["main", "--rows", "cifar100-E50-N50", "--methods", "dlfa"], "add --seeds"),
        (["main", "--data-root", "/no/such/folder"], "does not exist"),
        (["main"], "Three ways"),
    ],
)
def test_reproduce_refuses(
    words: list[str],
    message: str,
    capsys: pytest.CaptureFixture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SMELIB_DATA", raising=False)
    assert cli.main(["reproduce", *words, "--out", str(tmp_path / "never")]) == 2
    caught = capsys.readouterr()
    assert message in caught.err
    assert caught.err.startswith("smelib: ")
    assert caught.err.count("\n") == 1
    assert not (tmp_path / "never").exists()


def test_a_raised_version_runs_its_jobs_again_and_keeps_the_old_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = jobs("tiny", seeds=1)
    drive.drive(wanted, here(tmp_path), 1, tmp_path)
    before = lines(tmp_path)
    assert drive.drive(wanted, here(tmp_path), 1, tmp_path)["before"] == len(wanted) == 8
    monkeypatch.setitem(provenance.RESULTS_VERSION, "ig", 99)
    tally = drive.drive(wanted, here(tmp_path), 1, tmp_path)
    assert (tally["ok"], tally["before"]) == (2, 6), "the other measurements did not move"
    assert lines(tmp_path)[:8] == before
    assert {x["version"] for x in lines(tmp_path)[8:]} == {"99"}
    assert drive.drive(wanted, here(tmp_path), 1, tmp_path)["before"] == 8


def test_failures_of_an_earlier_version_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = jobs("tiny", methods=["ig"], seeds=1)

    def fail(job: Job) -> dict:
        return {**here(tmp_path)(job), "status": "failed", "error": "-"}

    drive.drive(wanted, fail, 1, tmp_path)
    assert drive.drive(wanted, here(tmp_path), 1, tmp_path)["failed before"] == 2
    monkeypatch.setitem(provenance.RESULTS_VERSION, "ig", 99)
    assert drive.drive(wanted, here(tmp_path), 1, tmp_path)["ok"] == 2


@pytest.fixture
def hearing() -> Iterator[None]:
    """Ctrl-C as at a terminal; a test run in the background of a script ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.usefixtures("hearing")
def test_ctrl_c_in_a_destructor_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception that falls there is lost."""

    class Trap:
        def __del__(self) -> None:
            interrupt()

    def estimate(job: Job) -> float:
        Trap()
        return 1.0

    monkeypatch.setattr(drive, "estimate", estimate)
    wanted = jobs("tiny", seeds=20)
    tally = drive.drive(wanted, here(tmp_path), 1, tmp_path)
    assert tally["interrupted"]
    assert tally["ok"] < len(wanted)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("hearing")
def test_ctrl_c_abandons_and_keeps_what_has_ended(tmp_path: Path) -> None:
    wanted, abandoned = jobs("tiny", seeds=20), []

    def call(job: Job) -> dict:
        if job == wanted[3]:
            interrupt()
        return here(tmp_path)(job)

    tally = drive.drive(wanted, call, 1, tmp_path, abandon=lambda: abandoned.append(True))
    assert (tally["interrupted"], abandoned) == (1, [True])
    assert 4 <= tally["ok"] == len(lines(tmp_path)) < len(wanted), "every line is counted"


@pytest.mark.usefixtures("hearing")
def test_ctrl_c_that_was_ignored_stays_ignored(tmp_path: Path) -> None:
    """So it is for a command in the background of a script."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wanted = jobs("tiny", methods=["ig"], seeds=1)

    def call(job: Job) -> dict:
        interrupt()
        return here(tmp_path)(job)

    tally = drive.drive(wanted, call, 1, tmp_path)
    assert (tally["ok"], tally["interrupted"]) == (2, 0)
