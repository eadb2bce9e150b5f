"""What each defence took from the attacker and what it cost, as the book's pages read it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from smelib.errors import nearest
from smelib.reproduce import published, verdicts
from smelib.reproduce.plan import ROWS
from smelib.reproduce.store import DEFENCES
from smelib.reproduce.verdicts import Interval

Number = float | list[float] | None


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
        """The mean over clients with Student's 95 % interval; of a single one `half` is nan."""
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


def table(folder: Path | None = None) -> list[Cell]:
    """Every cell that has finished runs, in the plan's order: the book's results, or a folder's."""
    by: dict[tuple[str, str], dict[int, dict]] = {}
    for line in published.finished("defences", within=folder):
        by.setdefault((line["row"], line["method"]), {})[line["seed"]] = line
    rows = {name: i for i, name in enumerate(ROWS["defences"])}
    found = []
    for (name, method), runs in sorted(by.items(), key=lambda cell: rows.get(cell[0][0], -1)):
        if (row := ROWS["defences"].get(name)) is None:
            continue  # it has left the plan
        rounds = row.rounds if row.rounds > 1 else 0
        naive = by.get((name, method.replace("aware", "naive")), {}) if "aware" in method else {}
        found.append(Cell(row.dataset, rounds, *row.defence, method, runs, naive))
    return found
