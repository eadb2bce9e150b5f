"""Did a change make the kernel slower? Two clones, step by step in turn, on one core.

    python benchmarks/interleaved.py OTHER [--rounds 15] [--only sme]

OTHER is a clone of the repository at an earlier revision. Each clone works in a process of its own,
and the two take turns case by case, so that a busy machine slows both. The ratio is that of the
least CPU times, with the median of the rounds' ratios beside it; over 1.05 is slower.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parents[1]
CASES = {
    "ig cnn N=10": ("ig", "cnn", 10, 12),
    "sme cnn N=10": ("sme", "cnn", 10, 12),
    "sme cnn N=50": ("sme", "cnn", 50, 3),
    "sme mlp N=10": ("sme", "mlp", 10, 12),
    "sme lenet N=10": ("sme", "lenet", 10, 25),
    "sme resnet8 N=10": ("sme", "resnet8", 10, 3),
    "sme vit N=10": ("sme", "vit", 10, 3),
    "dlfa cnn E=10 N=10": ("dlfa", "cnn", 10, 2),
}
# What a clone runs: it answers each case's name with the CPU seconds of one step.
WORKER = """
import sys, time, torch, smelib
torch.set_num_threads(1)
try:
    from smelib.devices import keep_freed_memory
except ImportError:
    from smelib.solver import keep_freed_memory
keep_freed_memory()
made = {}
for line in sys.stdin:
    method, network, n, steps = line.split()
    n, steps = int(n), int(steps)
    if (network, n) not in made:
        client = smelib.data.client("mnist", n, seed=0)
        model = smelib.models.build(network, client.shape, 62, seed=0)
        made[network, n] = client, model, smelib.local_update(model, client, smelib.Protocol(2, n))
    client, model, update = made[network, n]
    extra = {"protocol": smelib.Protocol(10, n)} if method == "dlfa" else {}
    began = time.process_time()
    smelib.attacks.ATTACKS[method](
        model, update, client.labels, steps=steps, device="cpu", progress=False, **extra
    )
    print((time.process_time() - began) / steps, flush=True)
"""


def worker(clone: Path) -> subprocess.Popen:
    """A process that runs the kernel of one clone."""
    environment = {**os.environ, "PYTHONPATH": str(clone), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", WORKER],
        cwd=clone,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def ask(process: subprocess.Popen, case: tuple) -> float:
    """Let a worker run a case; its seconds."""
    process.stdin.write(" ".join(map(str, case)) + "\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def main() -> int:
    """Run the rounds and print the table; exit code 1 if a case got more than 5 % slower."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, help="a clone at an earlier revision")
    parser.add_argument("--rounds", type=int, default=15, help="turns of each clone (15)")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    args = parser.parse_args()
    if not (args.other / "smelib").is_dir():
        print(f"interleaved: {args.other} is no clone: it has no smelib.", file=sys.stderr)
        return 2
    cases = {k: v for k, v in CASES.items() if args.only in k}
    workers = [worker(args.other.resolve()), worker(HERE)]
    times = {k: np.zeros((args.rounds + 1, 2)) for k in cases}
    for turn in range(args.rounds + 1):
        for name, case in cases.items():
            for i in (0, 1) if turn % 2 else (1, 0):
                times[name][turn, i] = ask(workers[i], case)
    print(f"{'case':20}{'before':>10}{'now':>10}{'ratio':>8}{'median':>8}")
    slower = False
    for name, found in times.items():
        found = found[1:]  # the first round warms up
        (before, now), median = found.min(axis=0), np.median(found[:, 1] / found[:, 0])
        slower |= now / before > 1.05
        print(f"{name:20}{1000 * before:7.1f} ms{1000 * now:7.1f} ms", end="")
        print(f"{now / before:8.3f}{median:8.3f}")
    return int(slower)


if __name__ == "__main__":
    sys.exit(main())
