"""Reproduction runs: nothing is lost, nothing happens twice, and nobody is stopped by a failure."""

from __future__ import annotations

import csv
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from smelib import cli, data, models
from smelib.reproduce import drive as runner
from smelib.reproduce import job as experiments
from smelib.reproduce.drive import Rerun, drive
from smelib.reproduce.job import Job, attempt, estimate, jobs
from smelib.reproduce.store import HEADER, Ledger, key
from smelib.types import Protocol

FAKE = {"psnr": 20.0, "ssim": 0.5, "l_sim": 0.1, "seconds": 0.01, "memory_mb": 1.0, "steps": 3}


def note(folder: Path, text: str) -> None:
    """Remember, across processes and kills, that something happened."""
    with open(Path(folder) / "ran.log", "a") as file:
        file.write(text + "\n")


def noted(folder: Path) -> list[str]:
    file = folder / "ran.log"
    return file.read_text().split("\n")[:-1] if file.exists() else []


def quick(job: Job, *, folder: Path, **_: object) -> dict:
    note(folder, job.key)
    time.sleep(0.01)
    return FAKE


def doomed(job: Job, *, folder: Path, **_: object) -> dict:
    """On the node that will be removed, work until that happens."""
    import ray

    node = ray.get_runtime_context().get_node_id()
    note(folder, f"{node} {job.key}")
    time.sleep(120 if node == (Path(folder) / "doomed").read_text() else 0.1)
    return FAKE


def fragile(job: Job, *, folder: Path, **_: object) -> dict:
    """Seed 0 raises, seed 1 dies without a word, the others work."""
    if job.seed == 0:
        raise RuntimeError("the dummies\nexploded, badly")
    if job.seed == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return quick(job, folder=folder)


def asked(job: Job, *, compiled: bool, **_: object) -> dict:
    return {**FAKE, "compiled": compiled}


def rooted(job: Job, *, root: str, folder: Path, **_: object) -> dict:
    note(folder, root)
    return FAKE


def here(folder: Path) -> Callable[[Job], dict]:
    """A backend without processes of its own, for tests of the ledger."""
    return lambda job: attempt(job, quick, root=None, folder=folder)


def lines(folder: Path) -> list[dict[str, str]]:
    return Ledger(folder / "tiny.csv").lines()


def once(folder: Path, wanted: list[Job]) -> bool:
    """Every job has exactly one line, and it is a good one."""
    found = Counter(key(x) for x in lines(folder) if x["status"] == "ok")
    return found == Counter(j.key for j in wanted) and len(lines(folder)) == len(wanted)


def forked(work: Callable, *args: object) -> int:
    """Call a function in a copy of this process; the copy's id."""
    if (child := os.fork()) == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            work(*args)
            os._exit(0)
        finally:
            os._exit(1)
    return child


def test_keys_are_stable_and_unique() -> None:
    assert Job("main", "femnist-E10-N10", "sme", 3).key == "main/femnist-E10-N10/sme/torch/3"
    for table in experiments.ROWS:
        found = jobs(table)
        assert len({j.key for j in found}) == len(found)


def test_the_plan_is_the_issue_s() -> None:
    cells = Counter((j.row, j.method, j.init) for j in jobs("main"))
    for init in experiments.INITS:
        assert cells["femnist-E50-N10", "sme", init] == cells["cifar100-E10-N10", "ig", init] == 10
    assert cells["femnist-E20-N50", "ig", "torch"] == 5
    assert cells["cifar100-E20-N50", "ig", "torch"] == 2
    assert [cells[f"femnist-E{e}-N10", "dlfa", "torch"] for e in (10, 20, 50)] == [5, 5, 3]
    assert cells["femnist-E10-N10", "dlfa", "lecun"] == 5
    assert cells["cifar100-E50-N50", "dlfa", "torch"] == 0
    paths = Counter(j.init for j in jobs("low_rank"))
    assert paths == {"torch": 90, "lecun": 50}
    assert all(j.setting.rounds == 1 for j in jobs("low_rank", inits=["lecun"], seeds=2))
    assert len(jobs("main", rows=["cifar100-E50-N50"], methods=["dlfa"], seeds=3)) == 3


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
        seeds = [j.seed for j, c in zip(order, cost, strict=True) if c == level]
        assert seeds == sorted(seeds), "all first clients come before the second"


def test_jobs_run_in_that_order(tmp_path: Path) -> None:
    wanted = jobs("tiny", seeds=2)
    drive(wanted, here(tmp_path), 1, tmp_path)
    assert noted(tmp_path) == [j.key for j in wanted]


def test_twenty_kills_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    wanted = jobs("tiny", seeds=80)
    draw = random.Random(5)
    for _ in range(20):
        before = lines(tmp_path)
        ran = len(noted(tmp_path))
        child = forked(drive, wanted, here(tmp_path), 2, tmp_path)
        # Counted in jobs begun: a fast machine must not finish before the last kill.
        begun = ran + draw.randint(1, 12)
        while len(noted(tmp_path)) < begun:
            assert os.waitpid(child, os.WNOHANG) == (0, 0), "the run ended by itself"
            time.sleep(0.001)
        time.sleep(draw.uniform(0, 0.02))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert lines(tmp_path)[: len(before)] == before, "a finished job was lost"
        again = set(noted(tmp_path)[ran:]) & {key(x) for x in before}
        assert not again, "a finished job was run again"
    assert 0 < len(lines(tmp_path)) < len(wanted), "the last kill came after the last job"
    drive(wanted, here(tmp_path), 2, tmp_path)
    assert once(tmp_path, wanted)


def test_two_runs_on_one_folder_share_the_work(tmp_path: Path) -> None:
    wanted = jobs("tiny", seeds=10)
    children = [forked(drive, wanted, here(tmp_path), 2, tmp_path) for _ in range(2)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    assert once(tmp_path, wanted)
    assert sorted(noted(tmp_path)) == sorted(j.key for j in wanted), "a job was run twice"


def test_a_second_result_of_the_same_code_is_dropped(tmp_path: Path) -> None:
    line = here(tmp_path)(jobs("tiny")[0])
    ledger = Ledger(tmp_path / "tiny.csv")
    assert ledger.append(line)
    assert not ledger.append({**line, "psnr": 21.0})
    assert ledger.append({**line, "fingerprint": "other"})
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


def test_a_full_disk_is_an_error_and_loses_no_line(tmp_path: Path) -> None:
    first, second = (here(tmp_path)(j) for j in jobs("tiny")[:2])
    ledger = Ledger(tmp_path / "tiny.csv")
    ledger.append(first)
    before = ledger.path.read_bytes()

    def fill() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, len(before) + 20))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with pytest.raises(OSError, match="No space left"):
            ledger.append(second)

    assert os.waitpid(forked(fill), 0)[1] == 0
    assert ledger.path.read_bytes() == before
    assert ledger.append(second)


def test_the_file_is_plain_csv(tmp_path: Path) -> None:
    drive(jobs("tiny", seeds=1), here(tmp_path), 1, tmp_path)
    with (tmp_path / "tiny.csv").open() as file:
        read = list(csv.DictReader(file))
    assert list(read[0]) == HEADER.split(",")
    assert float(read[0]["psnr"]) == 20


def test_another_file_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "tiny.csv").write_text("my,own,table\n1,2,3\n")
    with pytest.raises(experiments.InputError, match="header differs"):
        drive(jobs("tiny"), here(tmp_path), 1, tmp_path)
    assert (tmp_path / "tiny.csv").read_text() == "my,own,table\n1,2,3\n"


def test_failures_are_recorded_and_retried(tmp_path: Path) -> None:
    wanted = jobs("tiny", methods=["ig"], seeds=3)
    tally = runner.reproduce(wanted, tmp_path, workers=2, runner=fragile)
    assert (tally["ok"], tally["failed"]) == (2, 4)
    errors = {x["seed"]: x["error"] for x in lines(tmp_path)}
    assert errors["0"] == "RuntimeError: the dummies"
    assert "exit code -9" in errors["1"]
    assert errors["2"] == ""
    tally = drive(wanted, here(tmp_path), 1, tmp_path)
    assert (tally["before"], tally["failed before"]) == (2, 4), "failed jobs rest"
    assert "4 failed before" in runner.summary("tiny", 6, tally)
    tally = drive(wanted, here(tmp_path), 1, tmp_path, rerun=Rerun(failed=True))
    assert (tally["before"], tally["ok"]) == (2, 4)
    assert {x["status"] for x in Ledger(tmp_path / "tiny.csv").latest().values()} == {"ok"}


@pytest.mark.parametrize("compiled", [False, True])
def test_a_line_says_whether_the_steps_were_compiled(tmp_path: Path, compiled: bool) -> None:
    wanted = jobs("tiny", methods=["sme"], seeds=1)
    runner.reproduce(wanted, tmp_path, workers=1, compiled=compiled, runner=asked)
    assert {x["compiled"] for x in lines(tmp_path)} == {str(compiled)}


def test_jobs_get_the_data_root_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative, or from an environment that other nodes do not share."""
    monkeypatch.chdir(tmp_path)
    wanted = jobs("tiny", methods=["ig"], seeds=1)
    runner.reproduce(wanted[:1], tmp_path, data_root=".", workers=1, runner=rooted)
    monkeypatch.setenv("SMELIB_DATA", ".")
    runner.reproduce(wanted[1:], tmp_path, workers=1, runner=rooted)
    assert noted(tmp_path) == [str(tmp_path)] * 2


def test_time_limit_starts_nothing_more(tmp_path: Path) -> None:
    wanted = jobs("tiny", seeds=10)
    tally = drive(wanted, here(tmp_path), 1, tmp_path, time_limit=0.15)
    assert 0 < tally["ok"] < len(wanted)
    assert tally["left"] == len(wanted) - tally["ok"]
    assert len(lines(tmp_path)) == tally["ok"], "what had started was finished"
    assert "still to do" in runner.summary("tiny", len(wanted), tally)
    drive(wanted, here(tmp_path), 1, tmp_path)
    assert once(tmp_path, wanted)


@pytest.mark.parametrize(("text", "seconds"), [("2h", 7200), ("90m", 5400), ("1h30m5s", 5405)])
def test_durations(text: str, seconds: float) -> None:
    assert runner.duration(text) == seconds


def test_the_manifest_names_the_git_revision(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[1]
    if shutil.which("git") is None or not (root / ".git").exists():
        pytest.skip("no git, or not a clone: there is no revision to name")
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True)
    drive(jobs("tiny", seeds=1), here(tmp_path), 1, tmp_path)
    made = json.loads((tmp_path / "manifest.json").read_text())["tables"]["tiny"]
    assert made["lines"] == 6
    assert [r.removesuffix("+changes") for r in made["revision"]] == [head.stdout.strip()]
    assert {"fingerprint", "device", "smelib", "torch", "python"} <= set(made)


def test_changed_code_makes_results_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = jobs("tiny", seeds=1)
    drive(wanted, here(tmp_path), 1, tmp_path)
    assert drive(wanted, here(tmp_path), 1, tmp_path, rerun=Rerun(stale=True))["before"] == 6
    monkeypatch.setattr(experiments, "_KERNEL", "another kernel")
    assert drive(wanted, here(tmp_path), 1, tmp_path)["before"] == 6, "stale results stay"
    assert drive(wanted, here(tmp_path), 1, tmp_path, rerun=Rerun(stale=True))["ok"] == 6
    assert len(lines(tmp_path)) == 12


def test_failures_of_other_code_are_stale_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = jobs("tiny", methods=["ig"], seeds=1)
    drive(
        wanted, lambda job: {**here(tmp_path)(job), "status": "failed", "error": "-"}, 1, tmp_path
    )
    assert drive(wanted, here(tmp_path), 1, tmp_path, rerun=Rerun(stale=True))["ok"] == 0
    monkeypatch.setattr(experiments, "_KERNEL", "another kernel")
    assert drive(wanted, here(tmp_path), 1, tmp_path, rerun=Rerun(stale=True))["ok"] == 2


def test_only_code_makes_stale() -> None:
    code = 'def f(x):\n    """Say."""\n    return "# no" + x  # why\n'
    reworded = 'def f(x):\n    """Say\n    more."""\n\n    return "# no" + x\n'
    assert experiments._code(code) == experiments._code(reworded)
    assert experiments._code(code) != experiments._code(code.replace("no", "yes"))


def test_trained_weights_are_part_of_the_fingerprint(tmp_path: Path) -> None:
    job = jobs("trained", rows=["R5-E10-N10"])[0]
    without = experiments.fingerprint(job, tmp_path)
    file = experiments.network_file(tmp_path, 5)
    file.parent.mkdir()
    file.write_bytes(b"weights")
    assert experiments.fingerprint(job, tmp_path) != without


def test_networks_are_federated_and_tested_on_held_out_images(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    images = draw.integers(0, 256, (120, 28, 28), dtype=np.uint8)
    labels, writers = draw.integers(0, 62, 120), np.repeat(np.arange(6), 20)
    np.savez(tmp_path / "femnist.npz", images=images, labels=labels, writers=writers)
    experiments.make_networks(tmp_path, str(tmp_path), rounds=(1, 2))
    notes = experiments.network_notes(tmp_path)
    assert set(notes) == {"femnist-R1.safetensors", "femnist-R2.safetensors"}
    one = notes["femnist-R1.safetensors"]
    assert (one["test_images"], one["train_images"], one["writers"]) == ("12", "108", "6")
    assert 0 <= float(one["test_accuracy"]) <= 1
    held = [
        experiments._part(w, test=True)
        for w in data.federation("femnist", clients=6, split="writer", root=tmp_path)
    ]
    rest = [
        experiments._part(w, test=False)
        for w in data.federation("femnist", clients=6, split="writer", root=tmp_path)
    ]
    seen = {image.numpy().tobytes() for client in rest for image in client.images}
    assert not any(image.numpy().tobytes() in seen for client in held for image in client.images)
    made = experiments.network_file(tmp_path, 1).stat().st_mtime_ns
    experiments.make_networks(tmp_path, str(tmp_path), rounds=(1, 2))
    assert experiments.network_file(tmp_path, 1).stat().st_mtime_ns == made, "made once"


def test_a_path_is_measured() -> None:
    client = data.client("photos", 4, seed=0)
    network = models.lenet(client.shape, client.classes)
    found = experiments._follow(network, client, Protocol(5, 2, 0.1), seed=0, before=None)
    assert found["steps"] == 10
    assert 0 < found["p2_ratio"] <= 1
    assert found["cos_start"] <= found["cos_best"] <= 1
    assert 0 <= found["alpha"] <= 1


def test_a_killed_command_leaves_no_process_and_goes_on(tmp_path: Path) -> None:
    """The real thing: `smelib reproduce` with real attacks in processes of their own."""
    options = ["tiny", "--methods", "ig,sme", "--seeds", "2", "--workers", "2"]
    command = [sys.executable, "-m", "smelib.cli", "reproduce", *options, "--out", str(tmp_path)]
    wanted = jobs("tiny", methods=["ig", "sme"], seeds=2)
    run = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 240
    while len(lines(tmp_path)) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    done = lines(tmp_path)
    assert 2 <= len(done) < len(wanted)
    while time.monotonic() < deadline:
        try:
            os.killpg(run.pid, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("the killed run left processes behind")
    assert subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0
    assert once(tmp_path, wanted)
    assert lines(tmp_path)[: len(done)] == done
    assert all(float(x["psnr"]) > 5 and float(x["memory_mb"]) > 0 for x in lines(tmp_path))


def test_ctrl_c_ends_jobs_that_are_just_starting(tmp_path: Path) -> None:
    """At once, without a traceback, with nothing half done; and the same command goes on."""
    words = ["tiny", "--methods", "ig", "--seeds", "1", "--workers", "2", "--out", str(tmp_path)]
    command = [sys.executable, "-m", "smelib.cli", "reproduce", *words]
    run = subprocess.Popen(
        command, start_new_session=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while not (tmp_path / ".claims").is_dir() and time.monotonic() < deadline:
        time.sleep(0.002)
    os.killpg(run.pid, signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert run.returncode == 130, err
    assert (out, err.count("\n")) == ("", 1), err
    assert "2 still to do" in err
    assert not lines(tmp_path)


def test_a_process_that_does_not_start_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = jobs("tiny", methods=["ig"], seeds=1)[:1]
    call = runner.Local(quick, {"folder": tmp_path}, workers=1)

    def start(_: object) -> None:
        raise OSError(11, "too many processes")

    monkeypatch.setattr(call.context.Process, "start", start)
    assert drive(wanted, call, 1, tmp_path)["failed"] == 1
    assert "too many processes" in lines(tmp_path)[0]["error"]
    assert call.free.qsize() == 1, "its place is free for the next job"


def test_nobody_listening_stops_nothing(tmp_path: Path) -> None:
    words = ["tiny", "--methods", "ig", "--seeds", "1", "--workers", "1", "--out", str(tmp_path)]
    command = [sys.executable, "-m", "smelib.cli", "reproduce", *words]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    run.stdout.close()
    err = run.stderr.read().decode()
    assert run.wait() == 0, err
    assert "2 jobs run" in err
    assert err.count("\n") == 1


def test_damaged_files_beside_the_results_stop_nothing(tmp_path: Path) -> None:
    (tmp_path / "networks").mkdir()
    (tmp_path / "networks" / "femnist-R5.safetensors").write_bytes(b"not weights")
    (tmp_path / "main.csv").write_text("my,own,table\n")
    assert drive(jobs("tiny", seeds=1), here(tmp_path), 1, tmp_path)["ok"] == 6
    made = json.loads((tmp_path / "manifest.json").read_text())
    assert "header differs" in made["tables"]["main"]["unreadable"]
    assert "unreadable" in made["networks"]["femnist-R5.safetensors"]


def small_cluster() -> tuple[object, object]:
    """A real Ray cluster on this machine, of a head and a second node.

    Ray gives a node's helpers 15 s to start, whatever the machine is doing, and then kills the node
    (ray-project/ray#65983): try again, and skip where it never comes up.
    """
    from ray.cluster_utils import Cluster

    lean = {"num_cpus": 1, "include_dashboard": False, "include_log_monitor": False}
    for _ in range(3):
        cluster = Cluster()
        try:
            cluster.add_node(**lean)
            return cluster, cluster.add_node(**lean)
        except Exception as error:
            reason = str(error)
            cluster.shutdown()
    pytest.skip(f"Ray does not start on this machine, perhaps a busy one: {reason}")


def test_a_ray_node_that_leaves_costs_nothing(tmp_path: Path) -> None:
    """Two nodes, one removed while it works: every job still ends exactly once."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'smelib[cluster]'")
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    cluster, second = small_cluster()
    wanted = jobs("tiny", seeds=2)

    (tmp_path / "doomed").write_text(second.node_id)

    def leave() -> None:
        while not any(x.startswith(second.node_id) for x in noted(tmp_path)):
            time.sleep(0.05)
        cluster.remove_node(second, allow_graceful=False)

    try:
        with pytest.raises(experiments.InputError, match="the cluster has 0 GPUs"):
            runner.reproduce(wanted, tmp_path, backend="ray", address=cluster.address, gpus=0.5)
        assert len([n for n in ray.nodes() if n["Alive"]]) == 2
        leaver = threading.Thread(target=leave, daemon=True)
        leaver.start()
        tally = runner.reproduce(
            wanted, tmp_path, backend="ray", address=cluster.address, runner=doomed
        )
        leaver.join(timeout=60)
        assert tally["ok"] == len(wanted)
        assert once(tmp_path, wanted)
        starts = Counter(x.split()[1] for x in noted(tmp_path))
        lost = [x.split()[1] for x in noted(tmp_path) if x.startswith(second.node_id)]
        assert len(lost) == 1
        assert starts[lost[0]] == 2, "the job that the node lost was started once more"
    finally:
        ray.shutdown()
        cluster.shutdown()
        ray.cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


def test_ray_missing_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(experiments.InputError, match="--backend local"):
        runner.reproduce(jobs("tiny"), tmp_path, backend="ray")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mian"], "did you mean 'main'"),
        (["main", "--rows", "femnist-E10-N11"], "did you mean 'femnist-E10-N10'"),
        (["main", "--methods", "ig,smee"], "did you mean 'sme'"),
        (["main", "--inits", "lecunn"], "did you mean 'lecun'"),
        (["trained", "--inits", "lecun"], "choose one of torch"),
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
