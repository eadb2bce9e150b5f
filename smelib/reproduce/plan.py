"""The paper's tables as a grid of jobs, each of which can be run anywhere and at any time.

And one table of our own, `defences`. A job is one attack on one client. Its seed draws the client,
the network's weights, the order of its batches and the attack's start. `RESULTS/<table>.csv` has
one line per finished job.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import NamedTuple

from smelib import models
from smelib.errors import InputError, nearest
from smelib.types import Protocol

METHODS = ("ig", "sme", "retrace", "dlfa")
REBALANCED = "dlfa_rebalanced"  # DLFA with its matching term in units of the update: chapter 8
INITS = ("torch", "lecun")  # those of the scoreboard
MIXED = tuple(i for i in models.INITS if i not in INITS)  # which half of LeCun's it is

# Of the table of defences: two attackers, each naive or aware of the defence; what a prior alone
# gives; the accuracy that a federation keeps.
DEFENDED = (
    *("naive-sme", "naive-retrace", "aware-sme", "aware-retrace"),
    *("prior", "federation"),
)
# Lengths are in units of an undefended update's own: a knob means the same wherever it is turned.
KNOBS: dict[str, tuple[float, ...]] = {
    "none": (0,),
    "clip": (0.3, 0.1, 0.03),  # of the update's length
    "noise": (0.5, 2, 8),  # of the update's root mean square
    "top_k": (0.1, 0.01, 0.001),
    "random_k": (0.1, 0.01, 0.001),
    "quantise": (8, 2, 1),
    "sign": (1,),
    "sum": (2, 4, 8),  # clients
    "client_dp": (0.01, 0.1, 1),  # clipped to the typical length, noise in units of it
    "dp_sgd": (0.01, 0.1, 1),  # the noise multiplier; every sample's gradient clipped to 1
    "samples": (20, 50),  # instead of 10
}


@dataclass(frozen=True)
class Row:
    """One setting of the paper: who trains what, and for how long. `rounds` = 1: at the start.

    `steps` cuts the attack short, for measuring speed. `networks`: over so many trained networks
    the clients are spread. `recovered`: the attack reads the labels from the update. `options` are
    the network's. `defence` is a knob and its setting.
    """

    dataset: str = "femnist"
    network: str = "cnn"
    epochs: int = 10
    samples: int = 10
    batch_size: int = 10
    lr: float = 0.004
    rounds: int = 1
    steps: int | None = None
    networks: int = 1
    recovered: bool = False
    options: tuple[tuple[str, object], ...] = ()
    defence: tuple[str, float] | None = None

    def protocol(self) -> Protocol:
        """How the client trains."""
        return Protocol(self.epochs, self.batch_size, self.lr)

    @property
    def first(self) -> int:
        """The seed of the row's first client: other clients for other numbers of epochs.

        Rows with as many epochs share theirs, so that training rounds, networks and
        initialisations are compared on the same clients.
        """
        return {20: 100, 50: 200}.get(self.epochs, 0)


@dataclass(frozen=True)
class Job:
    """One attack on one client."""

    table: str
    row: str
    method: str
    seed: int
    init: str = "torch"

    @property
    def key(self) -> str:
        """A name that never changes."""
        return f"{self.table}/{self.row}/{self.method}/{self.init}/{self.seed}"

    @property
    def setting(self) -> Row:
        """What the row's name stands for."""
        return ROWS[self.table][self.row]

    @property
    def network(self) -> tuple[int, int, str]:
        """The trained network that the client starts from.

        After how many rounds, which of the federations, and from which first weights.
        """
        row = self.setting
        return row.rounds, (self.seed - row.first) % row.networks, self.init


_SOFTMAX = (("softmax", True),)
_NETWORKS = {
    "mlp": Row(network="mlp"),
    "lenet": Row(network="lenet", lr=0.4),
    "lenet_softmax": Row(network="lenet", lr=0.4, options=_SOFTMAX),
    "resnet8": Row(network="resnet8"),
    # other statistics of its batch norms than those of the first weights
    "resnet8_batch": Row(network="resnet8", options=(("batch_norm", "batch"),)),
    "resnet8_data": Row(network="resnet8", options=(("batch_norm", "data"),)),
    "vit": Row(network="vit"),
}


def _rows() -> dict[str, dict[str, Row]]:
    size = [(e, n) for n in (10, 50) for e in (10, 20, 50)]
    sets = ("femnist", "cifar100")
    paths = [(10, 50, 1), (50, 50, 1), (10, 10, 1), (10, 50, 20), (25, 25, 1), (5, 5, 1)]
    paths += [(10, 10, r) for r in (5, 10, 20)]
    return {
        "main": {
            **{f"{d}-E{e}-N{n}": Row(d, epochs=e, samples=n) for d in sets for e, n in size},
            # the last of these is one in which some labels are misread
            **{
                f"femnist-E{e}-N{n}-recovered": Row(epochs=e, samples=n, recovered=True)
                for e, n in ((10, 10), (10, 50), (50, 50))
            },
        },
        "cost": {
            f"{d}-E{e}-N50": Row(d, epochs=e, samples=50, steps=10)
            for d in sets
            for e in (10, 20, 50)
        },
        "low_rank": {
            f"E{e}-B{b}-R{r}": Row("femnist", "cnn", e, 50, b, rounds=r, networks=min(r, 3))
            for e, b, r in paths
        },
        "trained": {
            f"R{r}-E{e}-N{n}": Row(epochs=e, samples=n, rounds=r, networks=3)
            for r in (5, 10, 20)
            for n in (10, 50)
            for e in (10, 20)
        },
        "architectures": {
            **{
                f"{k}-E{e}-N{n}": replace(v, epochs=e, samples=n)
                for k, v in _NETWORKS.items()
                for e, n in size
                if n == 10 or not k.startswith("resnet8_")
            },
            # "DLFA works when the learning rate of LeNet is lower", says the appendix
            "lenet_slow-E10-N10": Row(network="lenet"),
            "lenet_softmax_slow-E10-N10": Row(network="lenet", options=_SOFTMAX),
        },
        "large_n": {
            f"cifar100-E20-N{n}": Row("cifar100", epochs=20, samples=n) for n in (20, 100, 150, 200)
        },
        "tiny": {
            f"photos-E{e}-N2": Row("photos", "lenet", epochs=e, samples=2, batch_size=2, steps=3)
            for e in (1, 2)
        },
    }


def _defended() -> dict[str, Row]:
    """Rows like mnist-R0-clip-0.3: whose images, met after how many rounds, and which setting."""
    found = {}
    for name, stage in (("mnist", 0), ("femnist", 0), ("femnist", 5), ("femnist", 20)):
        for kind, values in KNOBS.items():
            for value in values:
                found[f"{name}-R{stage}-{kind}-{value:g}"] = Row(
                    name,
                    samples=int(value) if kind == "samples" else 10,
                    rounds=stage or 1,
                    steps=200,
                    defence=(kind, value),
                )
    return found


ROWS = {**_rows(), "defences": _defended()}
# After training one setting of each: the middle one, and of noise that which hides something.
_one = {**{kind: values[len(values) // 2] for kind, values in KNOBS.items()}, "noise": 8}
LATER = " ".join(f"*-R[1-9]*-{kind}-{value:g}" for kind, value in _one.items())
# The same setting, measured once: the trained table's first round, and N = 10 and 50 of large_n.
SHARED = {
    "trained": [f"femnist-E{e}-N{n}" for n in (10, 50) for e in (10, 20)],
    "large_n": ["cifar100-E20-N10", "cifar100-E20-N50"],
}


class Share(NamedTuple):
    """A line of the plan: so many clients for these rows, methods and initialisations.

    `rows` and `methods` are patterns and names, separated by spaces.
    """

    table: str
    rows: str
    methods: str
    inits: str
    clients: int


BOTH = "torch lecun"
# Of lines that fit the same cell the largest number counts; a cell without a line is left to a GPU.
PLAN = tuple(
    Share(*line)
    for line in (
        # SME against IG, and retrace against SME: the paper's main table
        ("main", "femnist-E*-N10", "ig sme retrace", BOTH, 10),
        ("main", "cifar100-E*-N10", "ig sme retrace", "torch", 10),
        ("main", "femnist-E*-N50", "ig sme retrace", "torch", 5),
        ("main", "cifar100-E*-N50", "ig sme retrace", "torch", 3),
        ("main", "femnist-E*-N50", "ig sme retrace", "lecun", 3),
        ("main", "cifar100-E*-N10", "ig sme retrace", "lecun", 5),
        # SME against DLFA: both initialisations, the same clients
        ("main", "femnist-E10-N10 femnist-E20-N10", "dlfa", BOTH, 10),
        ("main", "femnist-E10-N10", "ig sme dlfa", " ".join(MIXED), 5),
        ("main", "femnist-E10-N10", REBALANCED, BOTH, 10),
        ("architectures", "lenet_softmax-E10-N10", REBALANCED, "torch", 5),
        ("trained", "R*-E10-N10", REBALANCED, "torch", 10),
        ("main", "femnist-E50-N10", "dlfa", BOTH, 3),
        ("main", "femnist-E50-N10", "dlfa", "torch", 10),  # where three left it open
        ("main", "femnist-E10-N50", "sme dlfa", BOTH, 5),
        ("main", "cifar100-E10-N10", "dlfa", BOTH, 3),
        ("trained", "R*-E10-N10", "dlfa", "torch", 5),
        ("trained", "R*-E10-N10", "ig sme dlfa", "lecun", 5),
        ("trained", "R20-*-N10", "dlfa", "torch", 10),  # where the paper has DLFA level or ahead
        ("architectures", "mlp-E10-N10 lenet*-E10-N10", "sme dlfa", BOTH, 5),
        ("architectures", "resnet8-E10-N10 vit-E10-N10", "sme dlfa", BOTH, 2),
        # ResNet8, whose IG cells are furthest off: three kinds of batch norm
        ("architectures", "resnet8-E*-N10", "ig sme retrace", "torch", 5),
        ("architectures", "resnet8_*-N10", "ig sme", "torch", 5),
        ("architectures", "resnet8-E*-N10", "ig sme", "lecun", 3),  # larger first weights
        # the labels, recovered and not given
        ("main", "*-recovered", "ig sme", "torch", 5),
        ("main", "femnist-E10-N50-recovered", "ig sme", "lecun", 3),  # some are misread here too
        # after training, other networks, more images
        ("trained", "R*-N10", "ig sme retrace", "torch", 10),
        ("trained", "R*-N50", "ig sme retrace", "torch", 3),
        ("trained", "R20-*-N50", "ig sme retrace", "torch", 5),
        ("trained", "R*-N50", "ig sme", "torch", 10),  # falls too small for five to decide
        ("main", "femnist-E10-N50 femnist-E20-N50", "ig sme", "torch", 10),
        ("architectures", "mlp-*-N10 lenet*-N10", "ig sme retrace", "torch", 5),
        ("architectures", "vit-*-N10", "ig sme retrace", "torch", 3),
        ("architectures", "*-N50", "ig sme retrace", "torch", 2),
        ("large_n", "*-N20 *-N100 *-N200", "ig sme", "torch", 3),
        # what the theory says of a client's path, and what an attack costs
        ("low_rank", "*", "path", "torch", 10),
        ("low_rank", "*-R1", "path", "lecun", 10),
        ("cost", "*", "ig sme dlfa", "torch", 3),
        ("tiny", "*", "ig sme retrace dlfa", "torch", 3),
        # our own: every setting of every defence at the start, and one of each after training
        ("defences", "*-R0-*", " ".join(DEFENDED[:-1]), "torch", 5),
        ("defences", "*-R0-*", "federation", "torch", 3),
        ("defences", LATER, " ".join(DEFENDED[:-1]), "torch", 3),
    )
)


def applies(row: Row, method: str) -> bool:
    """Whether a method means anything in a row.

    In the table of defences not all do; rows that vary what the paper does are for IG and SME.
    """
    if row.defence is None:
        ours = row.recovered or dict(row.options).get("batch_norm")
        return method in ("ig", "sme") if ours else True
    kind, value = row.defence
    if method == "prior":
        return kind == "none"
    if method == "federation":  # its accuracy is that of a sum, of however many clients
        return row.rounds == 1 and kind != "samples" and (kind, value) not in _SUMS[1:]
    return method.startswith("naive") or kind not in ("none", "samples")


def kind(method: str) -> str:
    """The attack behind a method of the tables: DLFA, whichever way it is balanced."""
    return "dlfa" if method == REBALANCED else method


_SUMS = [("sum", value) for value in KNOBS["sum"]]


def planned(table: str, row: str, method: str, init: str) -> int:
    """How many clients a cell gets by default; 0 for a cell that is left to a GPU."""
    if not applies(ROWS[table][row], method):
        return 0
    fitting = (
        share.clients
        for share in PLAN
        if share.table == table
        and any(fnmatchcase(row, pattern) for pattern in share.rows.split())
        and method in share.methods.split()
        and init in share.inits.split()
    )
    return max(fitting, default=0)


def jobs(
    table: str,
    *,
    rows: Sequence[str] = (),
    methods: Sequence[str] = (),
    inits: Sequence[str] = (),
    seeds: int | None = None,
) -> list[Job]:
    """The jobs of a table, cheapest first.

    `rows` (names, or patterns like `mnist-R0-*`), `methods` and `inits` restrict; `seeds` replaces
    the planned number of clients in every cell that is left. Among jobs of like cost (within a
    factor of two) the first clients of all cells come before the second, so that a table fills up
    evenly.
    """
    if table not in ROWS:
        raise nearest("table", table, list(ROWS))
    own = [(table, r) for r in ROWS[table]] + [("main", r) for r in SHARED.get(table, ())]
    attacked = ("main", "trained", "architectures")
    every = (*METHODS, REBALANCED) if table in attacked else METHODS
    valid = {"low_rank": ("path",), "defences": DEFENDED}.get(table, every)
    for kind, given, known in (
        ("row", rows, [r for _, r in own]),
        ("method", methods, list(valid)),
        (
            "initialisation",
            inits,
            list((*INITS, *MIXED) if table in (*attacked, "low_rank") else ["torch"]),
        ),
    ):
        for name in given:
            if not any(fnmatchcase(k, name) for k in known):
                raise nearest(f"{kind} in {table}", name, known)
    if seeds is not None and seeds < 1:
        raise InputError(f"--seeds {seeds}: a cell needs at least one client.")
    found = []
    for where, row in own:
        for method in methods or valid:
            for init in inits or (*INITS, *MIXED):
                if not applies(ROWS[where][row], method):
                    continue
                count = planned(where, row, method, init)
                if where != table and init != "torch":
                    count = 0
                asked = method in methods or method != REBALANCED
                if seeds is not None and (count or (asked and (init in inits or init == "torch"))):
                    count = seeds
                first = ROWS[where][row].first
                found += [Job(where, row, method, first + s, init) for s in range(count)]
    chosen = [j for j in found if not rows or any(fnmatchcase(j.row, name) for name in rows)]
    if not chosen:
        raise InputError(
            "no cell of the plan is left; add --seeds K to run cells outside of the plan."
        )
    return cheapest_first(chosen)


def gpu_jobs(tables: Sequence[str] = (), *, seeds: int = 5) -> list[Job]:
    """The first `seeds` clients of every cell that the plan leaves to a GPU, cheapest first.

    All of the paper's tables, or those that you name.
    """
    every = [table for table in ROWS if table != "defences"]
    found = {j for table in tables or every for j in jobs(table, inits=["torch"], seeds=seeds)}
    left = [j for j in found if not planned(j.table, j.row, j.method, j.init)]
    return cheapest_first(left)


def cheapest_first(jobs: Iterable[Job]) -> list[Job]:
    """Jobs in the order in which they run; among like ones all first clients come first."""

    def when(job: Job) -> tuple:
        client = job.seed - job.setting.first
        return int(estimate(job)).bit_length(), client, estimate(job), job.key

    return sorted(jobs, key=when)


def estimate(job: Job) -> float:
    """Seconds that a job takes, roughly, on one CPU core; only the order matters."""
    r = job.setting
    image = {"cnn": 0.6, "mlp": 0.2, "lenet": 0.15, "resnet8": 2.5, "vit": 0.5}[r.network]
    image *= 5 if r.dataset == "cifar100" else 1
    milliseconds = {"mlp": 8.0, "resnet8": 12.0, "vit": 30.0}.get(r.network, 3.0)
    if job.method == "path":
        return 0.5 * r.epochs * r.samples / 50
    if job.method in ("prior", "federation"):
        return {"prior": 1.0, "federation": 30.0}[job.method]
    if kind(job.method) == "dlfa":
        one = r.protocol().steps(r.samples) * (milliseconds + image * 1.5 * r.batch_size)
    else:
        joint = r.defence[1] if r.defence in _SUMS and job.method.startswith("aware") else 1
        one = (3 if "retrace" in job.method else 1) * (milliseconds + image * r.samples * joint)
    steps = {"dlfa": 400, "retrace": 200}.get(kind(job.method), 1000)
    return (r.steps or steps) * one / 1000
