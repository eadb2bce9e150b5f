"""Submissions that crash, loop, cheat or are none: each gets its marks or a reason, alone."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from handed_in import NAMES, ROOT, SOLVED, below, code, ended, lost, marks, mutants, written

from assignments import answers, build, grade, isolation, report, wire
from assignments.pool import Limits, Sandbox

pytestmark = pytest.mark.slow

FIRST = "a5_recount"  # NumPy alone: the cheapest to grade
WORTH = 20
ONE = {("confidence", "value")}


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    """Little processor time, lest a loop take long, and much patience: the machine may be busy."""
    with Sandbox(limits=Limits(cpu=4, wall=240)) as found:
        if not found.walls:
            pytest.skip("no namespaces here: the submissions below would reach what they aim at")
        yield found


@pytest.fixture(scope="module")
def bare() -> Iterator[Sandbox]:
    """Without namespaces, as on other systems."""
    with Sandbox(limits=Limits(cpu=4, wall=240), walls=False) as found:
        yield found


def confidence(body: str, *above: str) -> list[str]:
    """A solved page whose first function does something else; lines of a body."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return [*code(FIRST), *above, f"def confidence(values):\n{lines}"]


HONEST = """
values = np.asarray(values, dtype=float)
n = len(values)
return float(values.mean()), float(t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n))
"""


# Each does harm in one function: that part has its reason, all others have their marks.

HARM = {
    "crashes": ("raise ValueError('oh no')", "ValueError: oh no"),
    "loops for ever": ("while True: pass", "longer than 4 s"),
    "allocates 50 GB": ("return bytearray(50_000_000_000)", "MemoryError"),
    "allocates 50 GB with torch": (
        "import torch\nreturn torch.zeros(12_500_000_000)",
        "can't allocate memory",
    ),
    "calls exit": ("exit()", "yours calls exit"),
    "ends its process": ("import os\nos._exit(0)", "ended the process"),
    "opens a socket": (
        "import socket\nsocket.create_connection(('127.0.0.1', PORT), 5)",
        "unreachable",
    ),
    "kills its process": ("import os, signal\nos.kill(os.getpid(), 9)", "was killed"),
    "kills everybody": ("import os\nos.kill(-1, 9)\nos.kill(1, 9)", "yours"),
    "forks for ever": ("import os\nwhile True: os.fork()", "yours"),
    "leaves a process behind": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(3600)\nos._exit(0)",
        "ended the process",
    ),
    "writes 200 MB": ("open('big', 'wb').write(bytes(200_000_000))", "File too large"),
    "reads a null pointer": ("import ctypes\nctypes.string_at(0)", "was killed"),
    "forges a reply": (
        "import os, struct\nos.write(3, struct.pack('>QQ', 2, 4) + b'{}' + b'oops')\n"
        "import time\ntime.sleep(60)",
        "cannot be read",
    ),
    "promises a long reply": (
        "import os\nos.write(3, b'\\x7f' * 16)\nwhile True: pass",
        "more than",
    ),
    "returns what is no number": ("return open, print", "builtin_function_or_method"),
    "returns itself": ("x = []\nx.append(x)\nreturn x", "RecursionError"),
    "recurses for ever": ("return confidence(values)", "RecursionError"),
    "asks for the checks": ("import smelib.checks.counting", "smelib.checks"),
    "asks for the grader": ("import assignments.source.a5_recount", "assignments"),
}


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A server of this machine that nobody should reach."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize("name", HARM)
def test_harm_costs_its_own_part_and_nothing_else(
    name: str, box: Sandbox, port: int, tmp_path: Path
) -> None:
    body, says = HARM[name]
    path = written(tmp_path / "x.ipynb", confidence(body.replace("PORT", str(port))))
    found = lost(marks(box, path))
    assert set(found) == ONE
    assert says in found["confidence", "value"], found


BARE = [
    "crashes",
    "loops for ever",
    "allocates 50 GB",
    "calls exit",
    "ends its process",
    "kills its process",
    "leaves a process behind",
    "writes 200 MB",
    "forges a reply",
]


@pytest.mark.parametrize("name", BARE)
def test_the_same_without_namespaces(name: str, bare: Sandbox, tmp_path: Path) -> None:
    body, says = HARM[name]
    assert not bare.walls
    found = lost(marks(bare, written(tmp_path / "x.ipynb", confidence(body))))
    assert set(found) == ONE
    assert says in found["confidence", "value"], found
    assert ended(below(bare._process.pid)), "nothing that a submission started is left"


# Each looks dangerous, and changes nothing: full marks.

HARMLESS = {
    "prints a gigabyte": confidence(
        "for _ in range(0 if hasattr(np, 'printed') else 1000):\n    print('x' * 1_000_000)\n"
        "np.printed = True" + HONEST
    ),
    "a cell crashes": ["1 / 0", *code(FIRST), "raise SystemExit"],
    "a cell loops for ever": ["while True: pass", *code(FIRST)],
    "a cell calls exit": ["exit()", "import os; os._exit(1)", *code(FIRST), "quit()"],
    "a cell cannot be read": ["def broken(:", *code(FIRST)],
    "cells twice": [*code(FIRST), *code(FIRST)],
    "the stubs below": [*code(FIRST), "def confidence(values):\n    ...", "def paired(a, b): pass"],
    "magics": ["%matplotlib inline\n!ls /", "%%time\nx = 1", "files = !ls", *code(FIRST)],
    "the setup cell is gone": code(FIRST)[1:],
    "a lambda": [
        *code(FIRST),
        "confidence = lambda v: (np.mean(v), t.ppf(0.975, len(v) - 1) * np.std(v, ddof=1)"
        " / len(v) ** 0.5)",
    ],
    "a star": [
        *(c.replace("import numpy as np", "from numpy import *") for c in code(FIRST)[:2]),
        *(c.replace("np.", "") for c in code(FIRST)[2:-2]),
    ],
    "sleeps for a moment": confidence("import time\ntime.sleep(0.01)" + HONEST),
    "a setting changed below": [
        *confidence("return SETTING['scale'] * np.mean(values), confident(values)"),
        "SETTING = {}\nSETTING['scale'] = 1",
        "def confident(values):\n"
        "    return t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5",
    ],
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_does_no_harm_costs_nothing(name: str, box: Sandbox, tmp_path: Path) -> None:
    assert not lost(marks(box, written(tmp_path / "x.ipynb", HARMLESS[name])))


# Cheating.

SHADOWS = {
    "replaces the check": "import smelib\nsmelib.checks.confidence = lambda f: None",
    "replaces every check": "import sys\nsys.modules['smelib.checks'] = None",
    "patches torch": "import torch\ntorch.equal = torch.allclose = lambda *a, **k: True\n"
    "torch.Tensor.norm = lambda *a, **k: 0.0",
    "patches numpy": "import numpy\nnumpy.allclose = numpy.array_equal = lambda *a, **k: True",
    "patches the sandbox": "import assignments.wire as w\nw.encode = lambda x: b''",
    "patches comparison": "import builtins\nbuiltins.max = builtins.abs = lambda *a, **k: 0",
}


@pytest.mark.parametrize("name", SHADOWS)
def test_replacing_what_compares_gives_no_marks(name: str, box: Sandbox, tmp_path: Path) -> None:
    """In a cell of its own, and again inside the function, where it runs for certain."""
    wrong = f"{SHADOWS[name]}\nreturn 0.0, 0.0"
    path = written(tmp_path / "x.ipynb", confidence(wrong, SHADOWS[name]))
    assert ("confidence", "value") in lost(marks(box, path))
    honest = grade.grade(box, written(tmp_path / "y.ipynb", code(FIRST)))
    assert sum(m["points"] for m in honest["marks"]) == WORTH


def told(box: Sandbox, tmp_path: Path, expression: str) -> str:
    """What a submission sees, by way of its error."""
    path = written(tmp_path / "spy.ipynb", confidence(f"raise ValueError({expression})"))
    return lost(marks(box, path))["confidence", "value"]


def test_a_submission_cannot_read_solutions_checks_or_others(box: Sandbox, tmp_path: Path) -> None:
    other = written(tmp_path / "other.ipynb", code(FIRST))
    for path in (ROOT / "assignments" / "source", ROOT / "tests", ROOT / "results", Path.home()):
        said = told(box, tmp_path, f"__import__('os').listdir({str(path)!r})")
        assert "FileNotFoundError" in said or "ValueError: []" in said or ".pyenv" in said, said
    assert "FileNotFoundError" in told(box, tmp_path, f"open({str(other)!r}).read()")
    assert "FileNotFoundError" in told(box, tmp_path, "open('/proc/1/environ').read()")
    assert "FileNotFoundError" in told(box, tmp_path, "open('/etc/passwd').read()")
    seen = told(box, tmp_path, "sorted(__import__('sys').modules)")
    assert "a5_recount" not in seen
    words = "[m for m in __import__('sys').modules if m.startswith(('smelib.ch', 'assignments.s'))]"
    assert told(box, tmp_path, words).endswith("['smelib.checks'] in line 2 of its cell")


def test_a_submission_cannot_change_another(box: Sandbox, tmp_path: Path) -> None:
    other = written(tmp_path / "other.ipynb", code(FIRST))
    before, folder = other.read_bytes(), tmp_path.stat().st_mode
    tmp_path.chmod(0o777)
    other.chmod(0o666)
    for attempt in (
        f"open({str(other)!r}, 'w').write('{{}}')",
        f"__import__('os').remove({str(other)!r})",
    ):
        path = written(tmp_path / "evil.ipynb", confidence(f"{attempt}\nreturn 0.0, 0.0"))
        assert "FileNotFoundError" in lost(marks(box, path))["confidence", "value"]
    tmp_path.chmod(folder)
    assert other.read_bytes() == before
    assert not lost(marks(box, other))


def test_nothing_that_is_written_outlives_its_answer(box: Sandbox, tmp_path: Path) -> None:
    path = written(tmp_path / "x.ipynb", confidence("open('note', 'w').write('x')" + HONEST))
    assert not lost(marks(box, path))
    assert told(box, tmp_path, "__import__('os').listdir('.')").startswith(
        "yours raises ValueError: []"
    )
    if box.root:
        assert int(told(box, tmp_path, "__import__('os').getuid()").split()[3]) >= 200_000


# What is no submission.


def test_what_is_no_notebook_gets_a_reason(box: Sandbox, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "empty").mkdir(parents=True)
    (folder / "essay").mkdir()
    (folder / "essay" / "essay.pdf").write_bytes(b"%PDF-1.4 \xff\xfe")
    (folder / "text.ipynb").write_text("def confidence(values): ...")
    (folder / "nothing.ipynb").touch()
    (folder / "list.ipynb").write_text("[1, 2]")
    (folder / "deep.ipynb").write_text("[" * 200_000)
    (folder / "prose.ipynb").write_text(json.dumps({"cells": [{"cell_type": "markdown"}]}))
    (folder / "link.ipynb").symlink_to("/etc/passwd")
    (folder / "lost.ipynb").symlink_to("/nowhere")
    (folder / "=1+1.ipynb").write_text("{}")
    written(folder / "other.ipynb", ["def unrelated(x):\n    return x"])
    written(folder / "deep code.ipynb", ["x = " + "(" * 5000 + ")" * 5000])
    (folder / ".DS_Store").touch()
    rows = {s.file: grade.row(s, grade.grade(box, s.path)) for s in grade.submissions(folder)}
    assert ".DS_Store" not in rows
    assert len(rows) == 12
    for file, row in rows.items():
        assert (row["points"], row["assignment"]) == (0, ""), file
        assert len(row["note"]) > 10, file
    assert "no function of any assignment" in rows["other.ipynb"]["note"]
    assert "not a notebook" in rows["text.ipynb"]["note"]
    assert "not a file" in rows["link.ipynb"]["note"]
    assert "root:" not in json.dumps(rows)
    assert grade._plain("=1+1") == "'=1+1"


def test_an_error_counts_once(box: Sandbox, tmp_path: Path) -> None:
    """`recount` builds on three functions that are wrong, and is right itself."""
    wrong = [m.source for m in mutants(FIRST) if m.says in ("ddof=1", "add as squares")]
    wrong += [m.source for m in mutants(FIRST) if "you test against zero" in m.says]
    found = lost(marks(box, written(tmp_path / "x.ipynb", [*code(FIRST), *wrong])))
    assert set(found) == {("confidence", "value"), ("apart", "value"), ("verdict", "value")}


def test_a_sleeper_is_woken(tmp_path: Path) -> None:
    """If it is not, this test takes eleven days."""
    cells = confidence("import time\ntime.sleep(1_000_000)")
    job = {"do": "call", "cells": cells, "function": "confidence", "slopes": [], "closed": []}
    with Sandbox(limits=Limits(cpu=60, wall=2)) as box:
        said = box.do({**job, "solution": [], "borrowed": []}, [{"values": 1.0}])
    assert "2 s in all" in said["error"]


@pytest.mark.parametrize("words", [["--map-root-user"], ["--map-user=1000", "--map-group=1000"]])
def test_walls_need_no_root(words: list[str], tmp_path: Path) -> None:
    """In a user's own namespace: as the only user of a container, and as somebody."""
    through = ["unshare", "--user", *words]
    if subprocess.run([*through, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this system gives no user a namespace")
    with Sandbox(limits=Limits(cpu=20, wall=240), through=through) as box:
        assert box.walls
        assert not lost(marks(box, written(tmp_path / "x.ipynb", code(FIRST))))
        seen = told(box, tmp_path, f"__import__('os').listdir({str(ROOT)!r})")
        names = set(re.findall(r"'([^']+)'", seen))  # Python itself may live here
        assert {"smelib"} <= names <= {"smelib", ".venv"}, seen
        assert "Errno" in told(box, tmp_path, "open('/usr/x', 'w')")


def test_a_sandbox_that_is_killed_starts_again(tmp_path: Path) -> None:
    path = written(tmp_path / "x.ipynb", code(FIRST))
    with Sandbox(limits=Limits(cpu=20, wall=240)) as box:
        box._process.kill()
        box._process.wait()
        assert "cannot be read" in grade.grade(box, path)["note"]
        assert not lost(marks(box, path))


# A class.


def a_class(folder: Path) -> Path:
    """Thirty students: solved, wrong, unchanged, hostile, and one who copied."""
    wrong = mutants(FIRST)
    for k in range(30):
        cells = [*code(FIRST), wrong[k % len(wrong)].source]
        if k % 5 == 0:
            cells = code(FIRST)
        if k == 7:
            cells = confidence("while True: pass")
        written(folder / f"student {k:02}" / "Copy of a5.ipynb", cells)
    shutil.copy(build.RELEASE / f"{NAMES[0]}.ipynb", folder / "student 11" / "Copy of a5.ipynb")
    return folder


def command(folder: Path, out: Path) -> list[str]:
    words = [sys.executable, "-m", "assignments.grade", str(folder), "--out", str(out)]
    return [*words, "--workers", "2", "--cpu", "3", "--wall", "240"]


def test_a_class_killed_half_way_resumes_to_the_same_grades(tmp_path: Path) -> None:
    folder = a_class(tmp_path / "class")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    out, whole = tmp_path / "resumed", tmp_path / "whole"
    words = {"cwd": ROOT, "env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    running = subprocess.Popen(command(folder, out), **words)
    reader = threading.Thread(target=running.communicate, daemon=True)
    reader.start()
    deadline = time.monotonic() + 900
    while len(list(out.glob("records/*.json"))) < 12:
        assert running.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    started = below(running.pid)
    assert started
    running.send_signal(signal.SIGKILL)
    running.wait()
    assert ended(started), "what it had started ends with it"
    done = {p.name: p.stat().st_mtime_ns for p in out.glob("records/*.json")}
    assert 12 <= len(done) < 30
    assert not (out / "grades.csv").exists()
    for place in (out, whole):
        said = subprocess.run(command(folder, place), **words, text=True, timeout=900, check=True)
        assert "30 submissions graded" in said.stdout
        assert "grading: 100%" in said.stderr, "a progress bar"
    after = {p.name: p.stat().st_mtime_ns for p in out.glob("records/*.json")}
    assert len(after) == 30
    assert done.items() <= after.items(), "what was graded is not graded again"
    assert (out / "grades.csv").read_bytes() == (whole / "grades.csv").read_bytes()
    rows = {row["student"]: row for row in csv.DictReader((out / "grades.csv").open())}
    assert len(rows) == len(list(out.glob("feedback/*.html"))) == 30
    assert rows["student 00"]["points"] == rows["student 00"]["of"] == "20"
    assert (rows["student 11"]["assignment"], rows["student 11"]["points"]) == (NAMES[0], "0")
    assert "confidence 0/4" in rows["student 07"]["parts"]
    assert rows["student 07"]["points"] == "16"
    said = next(out.glob("feedback/student-07*.html")).read_text("utf-8")
    assert "longer than 3 s" in said
    same = list(csv.DictReader((out / "similar.csv").open()))
    assert {(p["file"].split("/")[0], p["other"].split("/")[0]) for p in same} >= {
        ("student 00", "student 05")
    }


def test_a_changed_submission_is_graded_again(box: Sandbox, tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    path = written(folder / "a.ipynb", code(FIRST))
    options = {"workers": 1, "limits": Limits(cpu=4, wall=240)}
    assert [r["points"] for r in grade.run(folder, out, **options)] == [20]
    path.write_bytes((build.RELEASE / f"{FIRST}.ipynb").read_bytes())
    assert [r["points"] for r in grade.run(folder, out, **options)] == [0]
    assert len(list(out.glob("records/*"))) == 2


# The pieces, without processes.


def test_renamed_and_reordered_copies_are_similar() -> None:
    found = answers.read(code("a4_sme")).functions()["alpha_slope"]
    copy = answers.read(
        [
            "\n".join(code("a4_sme"))
            .replace("leaves", "tree")
            .replace("guess", "other")
            .replace('"""The derivative', '"""My own derivative')
        ]
    ).functions()["alpha_slope"]
    assert answers.normal(found) == answers.normal(copy)
    other = next(m.source for m in mutants("a4_sme") if "second derivative" in m.says)
    own = answers.normal(answers.read([other]).functions()["alpha_slope"])
    sources = {"a": {"f": answers.normal(found)}, "b": {"f": answers.normal(copy)}, "c": {"f": own}}
    (pair,) = report.similar(sources)
    assert (pair["file"], pair["other"], pair["functions"]) == ("a", "b", "f")


def test_a_page_of_feedback_shows_no_html_of_a_student() -> None:
    line = {"student": "<b>x", "assignment": "a", "file": "f", "note": "<i>", "points": 0, "of": 1}
    mark = {
        "part": "f",
        "aspect": "value",
        "points": 0,
        "of": 1,
        "says": "<script>alert(1)</script>",
    }
    page = report.page(line, [mark])
    assert "<script>" not in page
    assert "<b>x" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\0" * 8,
        b"\xff" * 40,
        wire.encode([1, 2])[:-1],
        wire.encode({"a": 1}).replace(b"dict", b"Dict"),
        wire.encode([np.zeros(3)]).replace(b"[3]", b"[9]"),
        wire.encode([np.zeros(3)]).replace(b"float64", b"objects"),
    ],
)
def test_bytes_that_are_no_answer_are_refused(raw: bytes) -> None:
    with pytest.raises(wire.Unreadable):
        wire.decode(raw)


def test_the_grader_makes_no_objects_of_answers() -> None:
    slope = wire.Slope("quadratic", {"hessian": [[1.0, 0.0], [0.0, 1.0]]})
    assert wire.decode(wire.encode(slope), objects=True) == slope
    with pytest.raises(wire.Unreadable, match="no such kind"):
        wire.decode(wire.encode(slope))


def test_the_solved_pages_are_notebooks_for_the_instructor(tmp_path: Path) -> None:
    assert build.main(["--solved", str(tmp_path)]) == 0
    assert {p.stem: p.read_text("utf-8") for p in tmp_path.glob("*.ipynb")} == SOLVED
    assert isolation.INSIDE != 0
