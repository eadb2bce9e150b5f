"""The numbers of one tiny job per table and method, which move only when they are meant to.

    python tests/test_golden.py

stores today's numbers in `golden.json`. Where a measurement's numbers moved it refuses until
`RESULTS_VERSION` in `smelib/reproduce/provenance.py` was raised for it.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from smelib import data, metrics
from smelib.reproduce import defending, networks
from smelib.reproduce.job import measure
from smelib.reproduce.plan import METHODS, ROWS, Row
from smelib.reproduce.provenance import RESULTS_VERSION

STORED = Path(__file__).with_name("golden.json")
NUMBERS = ("psnr", "l_sim", "alpha", "p2_ratio", "cos_start", "cos_best")
TOLERANCE = 1e-3  # of the number: other processors round differently, an altered loss does more
SMALL = {"samples": 2, "epochs": 3, "batch_size": 1, "steps": 8}
ROOM = tempfile.TemporaryDirectory(prefix="smelib-golden-")  # removed when Python ends
EMBEDDED = {"femnist": "mnist", "cifar100": "photos", "photos": "photos"}


@dataclass(frozen=True)
class Case:
    """A row of the plan made small, on data that every machine has."""

    row: Row
    method: str
    init: str = "torch"
    preset: str = "paper"

    @property
    def measurement(self) -> str:
        """Whose version must be raised when the numbers move."""
        return self.method if self.row.defence is None else "defences"


def _cases() -> dict[str, Case]:
    found = {}
    for table, rows in ROWS.items():
        if table == "defences":
            continue
        # One row per network and data set: the others differ in sizes, which are cut anyway.
        kinds = {(r.network, r.dataset, r.options): (k, r) for k, r in reversed(rows.items())}
        for name, row in reversed(kinds.values()):
            small = replace(row, **SMALL)
            if row.rounds == 1:
                small = replace(small, dataset=EMBEDDED[row.dataset])
            first = row == next(iter(rows.values()))
            every = METHODS if first else ("ig", "sme")  # DLFA is slow, and one network shows it
            for method in ("path",) if table == "low_rank" else every:
                found[f"{table} {name.partition('-')[0]} {method}"] = Case(small, method)
    cnn = found["main femnist sme"].row
    for method in ("ig", "sme"):
        found[f"fast preset {method}"] = Case(cnn, method, preset="fast")
        found[f"lecun {method}"] = Case(cnn, method, init="lecun")
    for knob, method in (
        ("clip-0.1", "aware-sme"),
        ("top_k-0.01", "aware-retrace"),
        ("noise-2", "naive-retrace"),
        ("sum-2", "aware-retrace"),
    ):
        row = replace(ROWS["defences"][f"mnist-R0-{knob}"], **SMALL)
        found[f"defences {knob} {method}"] = Case(row, method)
    return found


CASES = _cases()


@cache
def trained_network() -> tuple[str, dict]:
    """A folder with a small FEMNIST made of digits, and the network that its writers trained."""
    folder = Path(ROOM.name)
    held = data.load("mnist")
    chosen = np.arange(0, 5000, 42)[:120]  # the digits lie in order
    np.savez(
        folder / "femnist.npz",
        images=held.images[chosen, 0],
        labels=held.labels[chosen],
        writers=np.tile(np.arange(12), 10),
    )
    networks.make(folder, str(folder), rounds=(5,))
    return str(folder), networks.load(folder, 5)


def defended(case: Case) -> dict[str, float]:
    """One attack of the table of defences, without the classifier that looks at its pictures."""
    at = defending.scene(case.row, 0, defending.Place(None, Path(ROOM.name)))
    found = defending.invert(case.row, case.method, at, None)
    psnr = metrics.evaluate(found.images[: len(at.client)], at.client.images).psnr
    return {"psnr": psnr, "l_sim": found.similarity, "alpha": found.alpha}


@cache  # some tables differ in sizes only
def measured(case: Case) -> dict[str, float]:
    """A case's numbers, rounded to what another machine gives too."""
    if case.row.defence is not None:
        return {k: float(f"{v:.6g}") for k, v in defended(case).items()}
    root, before = (None, None) if case.row.rounds == 1 else trained_network()
    row = replace(case.row, rounds=1)
    found = measure(
        *(row, case.method, case.init, 0),
        root=root,
        before=before,
        device="cpu",
        preset=case.preset,
    )
    return {k: float(f"{found[k]:.6g}") for k in NUMBERS if found.get(k) is not None}


def moved(before: dict[str, float], now: dict[str, float]) -> bool:
    """Whether any number is another one."""
    return before.keys() != now.keys() or not all(
        math.isclose(before[k], now[k], rel_tol=TOLERANCE, abs_tol=1e-5) for k in now
    )


def stored() -> dict:
    empty = {"versions": {}, "numbers": {}}
    return json.loads(STORED.read_text()) if STORED.is_file() else empty


@pytest.mark.parametrize("name", CASES)
def test_the_numbers_stand(name: str) -> None:
    method, before = CASES[name].measurement, stored()["numbers"].get(name, {})
    now = measured(CASES[name])
    assert not moved(before, now), (
        f"the numbers of {name!r} moved from {before} to {now}. If that was meant, raise "
        f"RESULTS_VERSION[{method!r}] in smelib/reproduce/provenance.py, so that all results of "
        "it are measured again, and run 'python tests/test_golden.py' to store the new numbers."
    )


def test_the_stored_numbers_are_of_today_s_versions() -> None:
    assert stored()["versions"] == RESULTS_VERSION, (
        "RESULTS_VERSION was raised: run 'python tests/test_golden.py' to store the new numbers."
    )
    assert set(stored()["numbers"]) == set(CASES)


def refused(before: dict, now: dict[str, dict[str, float]]) -> list[str]:
    """The cases whose numbers moved although their measurement's version did not."""
    return [
        name
        for name, numbers in now.items()
        if name in before["numbers"]
        and moved(before["numbers"][name], numbers)
        and before["versions"].get(made := CASES[name].measurement) == RESULTS_VERSION[made]
    ]


def test_numbers_are_stored_anew_only_under_a_raised_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = "main femnist sme"
    before = {"versions": dict(RESULTS_VERSION), "numbers": {name: {"psnr": 20.0}}}
    assert refused(before, {name: {"psnr": 20.001}}) == []
    assert refused(before, {name: {"psnr": 21.0}}) == [name]
    monkeypatch.setitem(RESULTS_VERSION, "sme", 99)
    assert refused(before, {name: {"psnr": 21.0}}) == []


def main() -> int:
    """Measure all cases and store them."""
    now = {name: measured(case) for name, case in CASES.items()}
    if names := refused(stored(), now):
        methods = sorted({CASES[name].measurement for name in names})
        print(
            f"golden: the numbers of {', '.join(names)} moved, and the version of "
            f"{', '.join(methods)} did not. Raise it in RESULTS_VERSION, or undo the change.",
            file=sys.stderr,
        )
        return 1
    STORED.write_text(json.dumps({"versions": RESULTS_VERSION, "numbers": now}, indent=1) + "\n")
    print(f"golden: {len(now)} cases stored in {STORED.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
