"""What each defence took from the attacker and what it cost, as the book's pages read it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from smelib.errors import nearest
from smelib.reproduce import published, verdicts
from smelib.reproduce.plan import ROWS
from smelib.reproduce.store import DEFENCES
from smelib.reproduce.verdicts import Interval

Number = float | list[float] | None
Key = tuple[str, int, str, float, str]

WORDS = {
    "none": "no defence",
    "clip": "clipping to {:g}",
    "noise": "noise {:g} × the update",
    "top_k": "top-k {:g}%",
    "random_k": "random-k {:g}%",
    "quantise": "quantisation to {:g} bit",
    "sign": "signs",
    "sum": "sum of {:g} clients",
    "client_dp": "clip and noise σ = {:g}",
    "dp_sgd": "DP-SGD σ = {:g}",
    "samples": "{:g} samples",
}


@dataclass(frozen=True)
class Cell:
    """A method's runs at one setting of one defence, by the client's (or federation's) seed.

    `data` is the data set, `rounds` after how many rounds of training the client is met; `naive`
    are the same attacker's runs without knowledge of the defence, where the method is `aware`.
    """

    data: str
    rounds: int
    defence: str
    value: float
    method: str
    runs: dict[int, dict[str, Number]]
    naive: dict[int, dict[str, Number]]

    def of(self, column: str) -> list[float]:
        """A quantity's values, those that were measured, in the order of the seeds."""
        runs = [self.runs[seed] for seed in sorted(self.runs)]
        if found := [r[column] for r in runs if r.get(column) is not None]:
            return found
        known = [c for c in DEFENCES if any(r[c] is not None for r in runs)]
        raise nearest(f"quantity of {self.method}", column, known)

    def mean(self, column: str) -> Interval:
        """The mean over clients, Student's 95 % interval; of a single one `half` has no number."""
        return verdicts.mean(self.of(column)).interval

    @property
    def gaps(self) -> list[float]:
        """What knowing the defence brings the attacker, in dB: aware − naive on each client."""
        both = sorted(set(self.runs) & set(self.naive))
        return [self.runs[s]["psnr"] - self.naive[s]["psnr"] for s in both]

    @property
    def gap(self) -> Interval | None:
        """The mean of those paired differences, with its interval; none where there is no pair."""
        return verdicts.mean(self.gaps).interval if self.gaps else None


def table(folder: Path | None = None) -> dict[Key, Cell]:
    """Every cell that has finished runs, in the plan's order: the book's results, or a folder's.

    By data set, rounds, defence, its setting and method.
    """
    by: dict[tuple[str, str], dict[int, dict]] = {}
    for line in published.finished("defences", within=folder):
        by.setdefault((line["row"], line["method"]), {})[line["seed"]] = line
    rows = {name: i for i, name in enumerate(ROWS["defences"])}
    found = {}
    for (name, method), runs in sorted(by.items(), key=lambda cell: rows.get(cell[0][0], -1)):
        if (row := ROWS["defences"].get(name)) is None:
            continue  # it has left the plan
        rounds = row.rounds if row.rounds > 1 else 0
        naive = by.get((name, method.replace("aware", "naive")), {}) if "aware" in method else {}
        key = (row.dataset, rounds, *row.defence, method)
        found[key] = Cell(*key, runs, naive)
    return found


def setting(defence: str, value: float) -> str:
    """A defence at a setting, in words."""
    words = WORDS[defence]
    return words.format(100 * value if words.endswith("%") else value)


def prior(cells: dict[Key, Cell], data: str) -> Cell:
    """What needs no update: the mean image, the mean of each label's class, the best of 1,000.

    For the last two also the share that is read as the client's labels.
    """
    return cells[data, 0, "none", 0, "prior"]


def kept(cells: dict[Key, Cell], data: str, defence: str, value: float) -> float | None:
    """The mean share of its accuracy that a federation keeps; none where that was not measured."""
    both = _federations(cells, data, defence, value)
    return float(np.mean([defended / plain for plain, defended in both])) if both else None


def lost(cells: dict[Key, Cell], data: str, defence: str, value: float) -> float | None:
    """The mean accuracy that a federation loses; none where that was not measured."""
    both = _federations(cells, data, defence, value)
    return float(np.mean([plain - defended for plain, defended in both])) if both else None


def _federations(
    cells: dict[Key, Cell], data: str, defence: str, value: float
) -> list[tuple[float, float]]:
    """The same federations' accuracies, undefended and defended."""
    value = 2 if defence == "sum" else value  # an exact sum's, however many clients hide in it
    ends = [(data, 0, "none", 0, "federation"), (data, 0, defence, value, "federation")]
    plain, defended = (cells[key].runs if key in cells else {} for key in ends)
    seeds = sorted(set(plain) & set(defended))
    return [(plain[s]["accuracy"], defended[s]["accuracy"]) for s in seeds]
