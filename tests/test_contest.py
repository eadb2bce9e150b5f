"""Assignment 6's contest: honest defences pass, each cheat has its name, and the page is safe."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from handed_in import code, mutants, written

import smelib
from assignments import grade, report
from assignments.pool import Limits
from assignments.source import a6_defend
from smelib import checks, defences
from smelib.checks import arena
from smelib.checks.arena import Played
from smelib.types import Update

NAME = "a6_defend"
CHEATS = {m.says: m.source for m in mutants(NAME) if ("my_defence", "honest") in m.loses}


def of(defend: defences.Defence) -> Callable:
    """One of the kernel's defences in the students' form."""

    def made(before, after, seed):
        generator = torch.Generator().manual_seed(seed)
        return defend(Update(before, after, 4), generator).after

    return made


def last_layer(before, after, seed):
    names = list(before)[2:]
    return {k: after[k] if k in names else w for k, w in before.items()}


HONEST = {
    "nothing": of(defences.none),
    "clip": of(defences.clip(0.01)),
    "noise": of(defences.noise(0.05)),
    "clip and noise": of(defences.compose(defences.clip(0.1), defences.noise(0.01))),
    "top-k": of(defences.top_k(0.001)),
    "random-k": of(defences.random_k(0.01)),
    "quantise": of(defences.quantise(1)),
    "signs": of(defences.sign()),
    "the last layer": last_layer,
}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_defence_keeps_the_rules(name: str, capsys: pytest.CaptureFixture) -> None:
    checks.defence(HONEST[name])
    assert "keeps the rules" in capsys.readouterr().out


def test_at_least_five_cheats_have_a_name() -> None:
    assert len(CHEATS) >= 5


@pytest.mark.parametrize("says", CHEATS)
def test_a_cheat_is_refused_by_name_on_the_student_s_own_page(says: str) -> None:
    names = {"torch": torch, "math": math}
    exec(CHEATS[says], names)
    with pytest.raises(checks.NotYet, match=says):
        checks.defence(names["my_defence"])


def own_training(before, after, seed):
    """A move that is not the client's: towards other weights, whatever after is."""
    draw = torch.Generator().manual_seed(3)
    aim = {k: torch.randn(w.shape, generator=draw) for k, w in before.items()}
    return {k: w + 0.1 * (aim[k] - w) for k, w in before.items()}


def negated(before, after, seed):
    return {k: 2 * w - after[k] if w.ndim == 2 else after[k] for k, w in before.items()}


def unseeded(before, after, seed):
    return {k: w + 0.01 * torch.randn(w.shape) for k, w in after.items()}


@pytest.mark.parametrize(
    ("cheat", "says"),
    [
        (own_training, "a constant part"),
        (negated, "it is encoded"),
        (unseeded, "two answers"),
        (lambda before, after, seed: None, "it sends of type NoneType"),
        (lambda before, after, seed: dict(list(after.items())[1:]), "other names"),
    ],
)
def test_more_cheats(cheat: Callable, says: str) -> None:
    with pytest.raises(arena.Refused, match=says):
        arena.rules(arena.asking(cheat), 1)


def test_a_stub_is_told_what_to_write() -> None:
    def my_defence(before, after, seed):
        """The weights to send: a defence of your own."""
        ...

    for check in (checks.defence, checks.contest):
        with pytest.raises(checks.NotYet, match=r"write my_defence\(before, after, seed\)"):
            check(my_defence)


def played(accuracy: float, taken: float) -> Played:
    return Played(accuracy, {"naive": 5.0, "asks again": taken}, 13.0)


def test_the_score_is_what_is_kept_times_what_is_stopped() -> None:
    plain = played(0.6, 19.0)
    assert plain.score(plain) == 0
    assert played(0.6, 16.0).score(plain) == pytest.approx(50)
    assert played(0.35, 16.0).score(plain) == pytest.approx(25)
    assert played(0.35, 8.0).score(plain) == pytest.approx(50), "nobody has less than the prior"
    assert played(0.05, 8.0).score(plain) == 0
    assert played(0.7, 22.0).score(plain) == 0


def test_marks_come_in_steps_relative_to_the_references() -> None:
    others = {"nothing": played(0.6, 19.0), "noise": played(0.6, 18.0), "top-k": played(0.4, 13.0)}

    def lost(accuracy: float, taken: float) -> set[str]:
        said, _ = a6_defend._verdict(played(accuracy, taken), others)
        return {aspect for aspect, sentence in said.items() if sentence}

    assert lost(0.58, 14.0) == set()
    assert lost(0.6, 19.0) == {"private", "noise", "topk"}
    assert lost(0.2, 13.0) == {"useful", "topk"}
    assert lost(0.5, 15.5) == {"topk"}


def taken(defend: Callable) -> dict[str, float]:
    """PSNR of each attack on the first client of a federation in its first round."""
    at = arena.ground(2)
    update = smelib.local_update(at.model, at.clients[0], arena.PROTOCOL)
    cases = [{"before": update.before, "after": update.after, "seed": s} for s in range(16)]
    answers = [a.raw for a in arena.asking(defend)(cases)]
    return arena._taken(at, 0, update.before, answers)


def loud(before, after, seed):
    """Noise that drowns the cosine, and that the network does not hear: two black pixels cancel."""
    name, w = next(iter(after.items()))
    noise = 100 * torch.randn(len(w), generator=torch.Generator().manual_seed(seed))
    sent = w.clone()
    sent[:, 0] += noise
    sent[:, 1] -= noise
    return {**after, name: sent}


def test_the_attacker_averages_noise_away_and_leaves_out_what_is_loud() -> None:
    plain = taken(HONEST["nothing"])
    assert plain["naive"] > 16
    noisy = taken(of(defences.noise(0.005)))
    assert noisy["asks again"] > noisy["naive"] + 2
    found = taken(loud)
    assert found["naive"] < plain["naive"] - 5
    assert found["quiet weights only"] > plain["naive"] - 2


# The leaderboard.

REFERENCES = {"nothing": [0.6, 19.0, 0.0], "noise": [0.6, 17.0, 33.0]}
ENTRY = {"accuracy": 0.55, "taken": 14.0, "prior": 13.0, "references": REFERENCES}


def test_the_leaderboard_is_sorted_and_shows_no_html_of_a_student() -> None:
    page = report.leaderboard(
        [
            {"name": "<script>alert(1)</script>", "score": 20.0, **ENTRY},
            {"name": "anna", "score": 80.0, **ENTRY},
        ]
    )
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    rows = page[page.index("<tbody>") :]
    places = [rows.index(name) for name in ("anna", "noise (ref", "&lt;script", "nothing (ref")]
    assert places == sorted(places)
    assert page.count("<circle") == 2
    assert page.count('fill="#a33f00"') == 2


def test_pseudonyms_are_kept_and_tell_no_names(tmp_path: Path) -> None:
    found = grade.Submission("anna", tmp_path / "anna.ipynb", "anna.ipynb")
    mark = {"part": "my_defence", "aspect": "useful", "points": 2, "of": 2, "says": ""}
    record = {"assignment": NAME, "marks": [{**mark, "numbers": {"score": 80.0, **ENTRY}}]}
    record |= {"note": "", "sources": {}}
    pages = []
    for _ in range(2):
        grade._publish(tmp_path, {found: record}, grade._salt(tmp_path))
        pages.append((tmp_path / "leaderboard.html").read_text("utf-8"))
    assert "anna" not in pages[0]
    assert pages[0] == pages[1]
    name = pages[0][pages[0].index("defender ") :][:14]
    (line,) = csv.DictReader((tmp_path / "grades.csv").open())
    assert name in line["note"]
    assert name in next(tmp_path.glob("feedback/*.html")).read_text("utf-8")
    grade._publish(tmp_path, {found: record})
    assert "anna" in (tmp_path / "leaderboard.html").read_text("utf-8")
    grade._publish(tmp_path, {found: {**record, "marks": []}})
    assert not (tmp_path / "leaderboard.html").exists()


@pytest.mark.slow
def test_a_folder_with_a_defence_gets_a_leaderboard(tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    written(folder / "anna.ipynb", code(NAME))
    written(folder / "ben.ipynb", [*code(NAME), CHEATS["it returns the old weights"]])
    options = {"workers": 1, "limits": Limits(cpu=10, wall=240)}
    rows = {r["student"]: r for r in grade.run(folder, out, **options)}
    assert rows["anna"]["points"] == rows["anna"]["of"] == 20
    assert rows["ben"]["points"] == 12
    page = (out / "leaderboard.html").read_text("utf-8")
    assert "anna" in page
    assert "ben" not in page, "what is refused is not shown"
    (out / "leaderboard.html").unlink()
    assert len(grade.run(folder, out, **options)) == 2
    assert (out / "leaderboard.html").read_text("utf-8") == page, "resumed without a new contest"
