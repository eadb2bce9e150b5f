"""What a run would cost on a GPU, estimated from its floating-point operations."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from smelib.reproduce import published
from smelib.reproduce.plan import Job, kind

SUSTAINED = 2e12  # operations a second: a tenth of an A100's float32 peak, for images are few
LAUNCHING = 0.002  # seconds a gradient takes however small it is: some hundred kernels to launch
DOLLARS = 2.0  # an hour of one A100, hired
ASSUMED = (
    f"{SUSTAINED / 1e12:g} TFLOP/s sustained, a tenth of an A100's peak in float32; "
    f"{1000 * LAUNCHING:g} ms for every gradient, to launch its kernels; "
    f"{DOLLARS:g} US dollars an hour"
)
STEPS = {"ig": 1000, "sme": 1000, "retrace": 200, "dlfa": 400}


class Price(NamedTuple):
    """An estimate: operations, and hours on the GPU assumed."""

    operations: float
    hours: float

    @property
    def dollars(self) -> float:
        """What those hours cost."""
        return self.hours * DOLLARS

    def __str__(self) -> str:
        minutes = 60 * self.hours
        time = f"{minutes:.0f} min" if minutes < 90 else f"{self.hours:.1f} h"
        return f"{'under 1 min' if minutes < 1 else time}, ${self.dollars:.2f}"


@cache
def _counted() -> dict[str, int]:
    """Operations per image and step, as `benchmarks/flops.py` counted them."""
    return json.loads(published.results("flops.json"))


def price(jobs: Iterable[Job]) -> Price:
    """What jobs would cost together. A client's path is followed on a CPU, and costs nothing."""
    operations = hours = 0.0
    for job in jobs:
        if job.method == "path":
            continue
        row, attack = job.setting, kind(job.method)
        steps = row.steps or STEPS[attack]
        each = _counted()[f"{row.network} {row.dataset} {attack}"]
        simulated = row.protocol().steps(row.samples) if attack == "dlfa" else 1
        images = min(row.batch_size, row.samples) if attack == "dlfa" else row.samples
        mine = steps * simulated * images * each
        operations += mine
        hours += (mine / SUSTAINED + steps * simulated * LAUNCHING) / 3600
    return Price(operations, hours)
