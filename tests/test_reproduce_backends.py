"""Processes, signals and clusters: a crash costs one job, Ctrl-C ends all of ours and no other."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
import stand_ins
from stand_ins import doomed, lines, noted, once, placed, quick

from smelib.reproduce import backends, drive
from smelib.reproduce.plan import Job, jobs
from smelib.types import InputError


@pytest.mark.slow
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
    assert subprocess.run(command, stdout=subprocess.DEVNULL, timeout=300).returncode == 0
    assert once(tmp_path, wanted)
    assert lines(tmp_path)[: len(done)] == done
    assert all(float(x["psnr"]) > 5 and float(x["memory_mb"]) > 0 for x in lines(tmp_path))


@pytest.mark.slow
def test_ctrl_c_ends_jobs_that_are_just_starting(tmp_path: Path) -> None:
    """At once, without a traceback, with nothing half done; and the same command goes on."""
    words = ["tiny", "--methods", "ig", "--seeds", "1", "--workers", "2", "--out", str(tmp_path)]
    command = [sys.executable, "-m", "smelib.cli", "reproduce", *words]
    run = subprocess.Popen(
        command,
        start_new_session=True,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # A test run in the background of a script ignores Ctrl-C and would hand that on.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
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
    call = backends.Local(quick, {"folder": tmp_path}, workers=1)

    def start(_: object) -> None:
        raise OSError(11, "too many processes")

    monkeypatch.setattr(call.context.Process, "start", start)
    assert drive.drive(wanted, call, 1, tmp_path)["failed"] == 1
    assert "too many processes" in lines(tmp_path)[0]["error"]
    assert call.free.qsize() == 1, "its place is free for the next job"


@pytest.mark.slow
def test_nobody_listening_stops_nothing(tmp_path: Path) -> None:
    words = ["tiny", "--methods", "ig", "--seeds", "1", "--workers", "1", "--out", str(tmp_path)]
    command = [sys.executable, "-m", "smelib.cli", "reproduce", *words]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    run.stdout.close()
    err = run.stderr.read().decode()
    assert run.wait() == 0, err
    assert "2 jobs run" in err
    assert err.count("\n") == 1


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


@pytest.mark.slow
def test_a_ray_node_that_leaves_costs_nothing(tmp_path: Path) -> None:
    """Two nodes, one removed while it works: every job still ends exactly once."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'smelib[cluster]'")
    ray.cloudpickle.register_pickle_by_value(stand_ins)
    cluster, second = small_cluster()
    wanted = jobs("tiny", seeds=2)

    (tmp_path / "doomed").write_text(second.node_id)

    def leave() -> None:
        while not any(x.startswith(second.node_id) for x in noted(tmp_path)):
            time.sleep(0.05)
        cluster.remove_node(second, allow_graceful=False)

    try:
        with pytest.raises(InputError, match="the cluster has 0 GPUs"):
            drive.reproduce(wanted, tmp_path, backend="ray", address=cluster.address, gpus=0.5)
        assert len([n for n in ray.nodes() if n["Alive"]]) == 2
        leaver = threading.Thread(target=leave, daemon=True)
        leaver.start()
        tally = drive.reproduce(
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
        ray.cloudpickle.unregister_pickle_by_value(stand_ins)


def test_ray_missing_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError, match="--backend local"):
        drive.reproduce(jobs("tiny"), tmp_path, backend="ray")


@pytest.mark.parametrize(("gpus", "device"), [(0, "cpu"), (0.5, "auto"), (None, "auto")])
def test_ray_jobs_without_a_gpu_run_on_the_cpu(
    gpus: float | None, device: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on nodes that have GPUs, which then belong to somebody else."""
    ray = SimpleNamespace(
        is_initialized=lambda: True,
        cluster_resources=lambda: {"CPU": 4, "GPU": 2},
        remote=lambda **asked: lambda work: SimpleNamespace(remote=work),
        get=lambda found: found,
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    threads: list[int] = []
    monkeypatch.setattr(backends.torch, "set_num_threads", threads.append)
    cluster = backends.Cluster(placed, {"folder": tmp_path}, "auto", gpus)
    assert cluster(Job("tiny", "photos-E1-N2", "ig", 0))["error"] == f"ran on {device}"
    assert threads == [1]


def test_as_many_workers_as_cores_we_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 5, 7}, raising=False)
    assert backends.Local(quick, {"folder": tmp_path}).workers == 3


def test_abandoning_ends_our_jobs_and_no_other_process(tmp_path: Path) -> None:
    other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,))
    other.start()
    try:
        local = backends.Local(sleeper, {"folder": tmp_path}, workers=1)
        threading.Timer(0.5, local.abandon).start()
        with pytest.raises(ChildProcessError, match="exit code -9"):
            local(Job("tiny", "photos-E1-N2", "ig", 0))
        time.sleep(0.2)
        assert other.is_alive()
    finally:
        other.kill()
        other.join()


def sleeper(job: Job, **_: object) -> dict:
    time.sleep(60)
    return stand_ins.FAKE


def test_ctrl_c_while_a_process_starts_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = jobs("tiny", methods=["ig"], seeds=1)
    local = backends.Local(sleeper, {"folder": tmp_path}, workers=1)
    start = local.context.Process.start

    def interrupted(process: multiprocessing.Process) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        start(process)

    monkeypatch.setattr(local.context.Process, "start", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        tally = drive.drive(wanted, local, 1, tmp_path, abandon=local.abandon)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (tally["interrupted"], tally["left"], lines(tmp_path)) == (1, 1, [])


FIRST_JOB = """
import signal, sys
import test_reproduce_backends as here

local = here.backends.Local(here.masked, {"folder": sys.argv[1]}, workers=1)
print(local(here.Job("tiny", "photos-E1-N2", "ig", 0))["error"])
assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, []), "but we do"
"""


@pytest.mark.slow
def test_a_job_s_process_does_not_hear_ctrl_c(tmp_path: Path) -> None:
    """From its first moment: it is the mask that the process began with.

    In a fresh interpreter, since jobs are forked from one server, and another test may have one.
    """
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", FIRST_JOB, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "blocks SIGINT\n", done.stderr


def masked(job: Job, **_: object) -> dict:
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    return {**stand_ins.FAKE, "error": "blocks " + " ".join(s.name for s in blocked)}
