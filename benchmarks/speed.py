"""How fast and how lean is a step, beside the alternatives and the machine's own limit?

    python benchmarks/speed.py [--rounds 11] [--out results/speed.json]

Everything is timed interleaved in this one run, medians over the rounds: machines are noisy, and
only the ratios count. JAX takes part where it is installed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

import smelib
from smelib import objectives
from smelib.compiling import differentiator
from smelib.devices import keep_freed_memory
from smelib.models import Network
from smelib.presets import DLFA_SETTINGS
from smelib.restarts import over_restarts

SHAPES = {"femnist": ((1, 28, 28), 62), "cifar100": ((3, 32, 32), 100)}
CASES = [("femnist", 10), ("femnist", 50), ("cifar100", 10), ("cifar100", 50)]
# data set, samples, epochs; batches of 10
DLFA = [("femnist", 10, e) for e in (10, 50, 100, 250)]
DLFA += [("femnist", 50, 10), ("cifar100", 10, 10), ("cifar100", 10, 50)]
AT_ONCE = {"femnist": (1, 2, 4, 8, 16), "cifar100": (1, 2, 4)}
Step = Callable[[], object]
# Every step is measured in a process of its own; forked from one that has imported torch and done
# nothing else, it starts at once.
CHEAP = "forkserver" in multiprocessing.get_all_start_methods()
PROCESSES = multiprocessing.get_context("forkserver" if CHEAP else "spawn")


def scene(dataset: str, samples: int) -> tuple[Network, smelib.Update, Tensor, Tensor]:
    """A network, an update of the right size, labels, and dummies: speed needs no real data."""
    shape, classes = SHAPES[dataset]
    draw = torch.Generator().manual_seed(0)
    model = smelib.models.cnn(shape, classes)
    before = model.params()
    after = {k: v + 0.01 * torch.randn(v.shape, generator=draw) for k, v in before.items()}
    labels = torch.randint(0, classes, (samples,), generator=draw)
    z = torch.randn(samples, *shape, generator=draw)
    return model, smelib.Update(before, after, samples), labels, z


def ours(method: str, dataset: str, samples: int, *, compiled: bool = False) -> Step:
    """One step as the solver takes it: loss, gradients, Adam, projection."""
    keep_freed_memory()
    model, update, labels, z = scene(dataset, samples)
    objective = getattr(objectives, method)(model, update.to(z.device), labels, tv=0.01)
    differentiate = differentiator(over_restarts(objective, 1), compiled)
    images = z[None].clone().requires_grad_()
    aux = {"alpha": torch.full((1,), 0.5, requires_grad=True)} if method == "sme" else {}
    return _with_adam(lambda: differentiate(images, aux, torch.zeros(())), model, images, aux)


def _with_adam(gradients: Step, model: Network, images: Tensor, aux: dict) -> Step:
    groups = [{"params": [images], "lr": 1.0}]
    groups += [{"params": [v], "lr": 1e-3} for v in aux.values()]
    optimizer = torch.optim.Adam(groups)
    low, high = model.box(images)

    def step() -> None:
        optimizer.zero_grad()
        gradients()
        optimizer.step()
        with torch.no_grad():
            images.clamp_(low, high)

    return step


def sometimes(dataset: str, samples: int, every: int, *, compiled: bool = False) -> Step:
    """SME that updates alpha at every so many steps only, as the fast preset does."""
    keep_freed_memory()
    model, update, labels, z = scene(dataset, samples)
    objective = objectives.sme(model, update.to(z.device), labels, tv=0.01)
    differentiate = differentiator(over_restarts(objective, 1), compiled)
    images = z[None].clone().requires_grad_()
    alpha, count = torch.full((1,), 0.5, requires_grad=True), [0]

    def gradients() -> None:
        now = alpha if count[0] % every == 0 else alpha.detach()
        count[0] += 1
        differentiate(images, {"alpha": now}, torch.zeros(()))

    return _with_adam(gradients, model, images, {"alpha": alpha})


def four_steps(dataset: str, samples: int, *, compiled: bool = False) -> Step:
    """A whole cycle of SME that updates alpha at every fourth step."""
    step = sometimes(dataset, samples, 4, compiled=compiled)

    def run() -> None:
        for _ in range(4):
            step()

    return run


def textbook(method: str, dataset: str, samples: int) -> Step:
    """The loop most repositories have: a module copy, create_graph, a hand-made alpha gradient."""
    import copy

    model, update, labels, z = scene(dataset, samples)
    module = copy.deepcopy(model.body)
    direction = [update.before[k] - update.after[k] for k in update.before]
    images, alpha = z.clone().requires_grad_(), torch.tensor(0.5)

    def gradients() -> None:
        if method == "sme":
            with torch.no_grad():
                for p, start, d in zip(
                    module.parameters(), update.before.values(), direction, strict=True
                ):
                    p.copy_(start - alpha * d)
        module.zero_grad()
        loss = F.cross_entropy(module(images), labels)
        dummy = torch.autograd.grad(loss, list(module.parameters()), create_graph=True)
        dot = sum((a * b).sum() for a, b in zip(direction, dummy, strict=True))
        norms = sum(a.pow(2).sum() for a in direction) * sum(b.pow(2).sum() for b in dummy)
        tv = (images[..., 1:] - images[..., :-1]).abs().mean()
        tv = (tv + (images[..., 1:, :] - images[..., :-1, :]).abs().mean()) / 2
        (1 - dot / norms.sqrt() + 0.01 * tv).backward()
        if method == "sme":
            alpha.grad = -sum(
                (p.grad * d).sum() for p, d in zip(module.parameters(), direction, strict=True)
            )

    return _with_adam(gradients, model, images, {"alpha": alpha} if method == "sme" else {})


def in_jax(method: str, dataset: str, samples: int) -> Step:
    """The same objective, jitted; gradients only, without the optimiser."""
    import jax
    from jax import lax
    from jax import numpy as jnp

    _, update, labels, z = scene(dataset, samples)
    start, end = (
        {k: jnp.asarray(v.numpy()) for k, v in w.items()} for w in (update.before, update.after)
    )
    y, x = jnp.asarray(labels.numpy()), jnp.asarray(z.numpy())

    def conv(v: object, w: dict, i: int) -> object:
        v = lax.conv_general_dilated(
            v, w[f"{i}.weight"], (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW")
        )
        v = jax.nn.relu(v + w[f"{i}.bias"][:, None, None])
        return lax.reduce_window(v, 0.0, lax.add, (1, 1, 2, 2), (1, 1, 2, 2), "VALID") / 4

    def ell(w: dict, v: object) -> object:
        v = conv(conv(v, w, 0), w, 3).reshape(len(y), -1)
        v = jax.nn.relu(v @ w["7.weight"].T + w["7.bias"]) @ w["9.weight"].T + w["9.bias"]
        return -jnp.take_along_axis(jax.nn.log_softmax(v), y[:, None], 1).mean()

    def inner(a: dict, b: dict) -> object:
        return sum(jnp.vdot(a[k], b[k]) for k in a)

    def loss(v: object, alpha: object) -> object:
        d = {k: start[k] - end[k] for k in start}
        g = jax.grad(ell)({k: start[k] - alpha * d[k] for k in start}, v)
        tv = jnp.abs(jnp.diff(v, axis=-1)).mean() + jnp.abs(jnp.diff(v, axis=-2)).mean()
        return 1 - inner(d, g) / jnp.sqrt(inner(d, d) * inner(g, g)) + 0.005 * tv

    step = jax.jit(jax.grad(loss, argnums=(0, 1) if method == "sme" else 0))
    alpha = 0.5 if method == "sme" else 0.0
    return lambda: jax.block_until_ready(step(x, alpha))


class Recorder(TorchDispatchMode):
    """Keeps the convolutions and matrix products of a step, to run them alone."""

    NAMES = ("convolution", "convolution_backward", "mm", "addmm", "bmm")

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket.__name__ in self.NAMES:
            self.calls.append((func, args, kwargs or {}))
        return func(*args, **(kwargs or {}))


def floor(method: str, dataset: str, samples: int) -> Step:
    """A step's convolutions and products and nothing else."""
    step = ours(method, dataset, samples)
    with Recorder() as recorder:
        step()

    def arithmetic() -> None:
        for func, args, kwargs in recorder.calls:
            func(*args, **kwargs)

    return arithmetic


def count_flops(step: Step) -> int:
    """The floating-point operations of a step."""
    with FlopCounterMode(display=False) as counter:
        step()
    return counter.get_total_flops()


def dlfa(dataset: str, samples: int, epochs: int, *, lean: bool = True) -> Step:
    """One step of the simulation attack."""
    model, update, labels, z = scene(dataset, samples)
    chosen = DLFA_SETTINGS[dataset]
    objective = objectives.dlfa(
        model,
        update.to(z.device),
        labels,
        smelib.Protocol(epochs, batch_size=10),
        tv=chosen.tv,
        clip=chosen.clip,
        order=chosen.order,
        summary=objectives.mean_image
        if chosen.mean_prior
        else objectives.max_features(z, model.shape[0], seed=0),
        checkpoint=lean,
    )
    images = z.expand(epochs, *z.shape).clone().requires_grad_()

    def step() -> None:
        images.grad = None
        objective(images, {}, torch.zeros(()))[0].backward()

    return step


def serve(build: Callable[[], Step], pipe: Connection) -> None:
    """In a process of its own: make the step, warm it up, and time it whenever asked."""
    step = build()
    step()
    step()
    pipe.send("ready")
    while pipe.recv():
        started = time.perf_counter()
        step()
        pipe.send(1e3 * (time.perf_counter() - started))


def interleaved(contenders: dict[str, Callable[[], Step]], rounds: int) -> dict[str, float]:
    """Median milliseconds of each, taken in turn, each in a process of its own.

    So that one library's threads and one's memory settings do not meet the others.
    """
    pipes, workers = {}, []
    for name, build in contenders.items():
        pipes[name], theirs = PROCESSES.Pipe()
        workers.append(PROCESSES.Process(target=serve, args=(build, theirs), daemon=True))
        workers[-1].start()
    for pipe in pipes.values():  # they get ready side by side, and are timed in turn
        pipe.recv()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, pipe in pipes.items():
            pipe.send(True)
            times[name].append(pipe.recv())
            time.sleep(0.05)  # lets waiting threads go to sleep before the next one
    for pipe, worker in zip(pipes.values(), workers, strict=True):
        pipe.send(False)
        worker.join()
    return {name: statistics.median(values) for name, values in times.items()}


def throughput(method: str, dataset: str, restarts: int) -> Step:
    """One step of several attacks at once, under vmap."""
    keep_freed_memory()
    model, update, labels, z = scene(dataset, 10)
    objective = getattr(objectives, method)(model, update.to(z.device), labels, tv=0.01)
    differentiate = differentiator(over_restarts(objective, restarts), False)
    images = z.expand(restarts, *z.shape).clone().requires_grad_()
    aux = {"alpha": torch.full((restarts,), 0.5, requires_grad=True)} if method == "sme" else {}
    return _with_adam(lambda: differentiate(images, aux, torch.zeros(())), model, images, aux)


def peak_memory(*what: object, **options: object) -> dict:
    """Peak resident memory and time of a few steps in a process of their own."""
    ours, theirs = PROCESSES.Pipe()
    process = PROCESSES.Process(target=one, args=(theirs, *what), kwargs=options, daemon=True)
    process.start()
    theirs.close()
    found = ours.recv()
    process.join()
    return found


def high_water() -> float:
    """This process's peak resident memory in megabytes."""
    # Linux's ru_maxrss would count what the parent had when it forked; VmHWM starts anew.
    status = Path("/proc/self/status")
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one(
    pipe: Connection,
    method: str,
    dataset: str,
    samples: int,
    *,
    epochs: int = 1,
    steps: int = 3,
    lean: bool = True,
) -> None:
    """Send what some steps of a method took."""
    base = high_water()
    step = (
        dlfa(dataset, samples, epochs, lean=lean)
        if method == "dlfa"
        else ours(method, dataset, samples)
    )
    if epochs <= 50 and steps < 3:
        step()  # the first one is slower, which only short ones notice
    started = time.perf_counter()
    for _ in range(steps):
        step()
    seconds = (time.perf_counter() - started) / steps
    pipe.send({"mb": high_water(), "base_mb": base, "seconds": seconds})


def main() -> int:
    """Measure everything and print one line per figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--out", type=Path, default=Path("results/speed.json"))
    args = parser.parse_args()
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # no pool of compilers for each contender
    if CHEAP:
        PROCESSES.set_forkserver_preload(["torch._inductor", "torch.optim", "smelib.attacks"])
    try:
        import jax

        print(f"JAX {jax.__version__} takes part")
        with_jax = True
    except ImportError:
        print("JAX is not installed: its column is left out (pip install jax)")
        with_jax = False

    found: dict = {"torch": torch.__version__, "threads": torch.get_num_threads(), "cases": {}}
    for dataset, samples in CASES:
        case = (dataset, samples)
        compiled_too = case in (("femnist", 50), ("cifar100", 10))
        # Alpha at every fourth step: timed over whole cycles of four.
        steps = {"sme alpha/4": partial(four_steps, *case)}
        if compiled_too:
            steps["sme compiled alpha/4"] = partial(four_steps, *case, compiled=True)
        cycles = set(steps)
        for method in ("ig", "sme"):
            steps[f"{method} ours"] = partial(ours, method, *case)
            if compiled_too:
                steps[f"{method} compiled"] = partial(ours, method, *case, compiled=True)
            steps[f"{method} textbook"] = partial(textbook, method, *case)
            steps[f"{method} floor"] = partial(floor, method, *case)
            if with_jax:
                steps[f"{method} jax"] = partial(in_jax, method, *case)
        quick = case == ("femnist", 10)  # short steps scatter more, and cost little
        times = interleaved(steps, args.rounds * (3 if quick else 1))
        times = {name: ms / 4 if name in cycles else ms for name, ms in times.items()}
        memory = {m: peak_memory(m, *case) for m in ("ig", "sme")}
        flops = {m: count_flops(ours(m, *case)) for m in ("ig", "sme")}
        found["cases"][f"{dataset}-N{samples}"] = {"ms": times, "flops": flops, "memory": memory}
        print(f"\n{dataset} N = {samples}, milliseconds a step")
        for name, value in times.items():
            print(f"  {name:20} {value:8.1f}", flush=True)
        for name, m in memory.items():
            print(f"  {name:4} peak memory {m['mb'] - m['base_mb']:8.0f} MB beyond torch's own")
    found["dlfa"] = {}
    print("\nDLFA, a step with and without checkpoints")
    for dataset, samples, epochs in DLFA:
        lean, full = (
            peak_memory("dlfa", dataset, samples, epochs=epochs, steps=1, lean=x)
            for x in (True, False)
        )
        name = f"{dataset} N = {samples}, T = {epochs * samples // 10}"
        found["dlfa"][name] = {"lean": lean, "full": full}
        a, b = (f"{m['seconds']:6.2f} s {m['mb'] - m['base_mb']:6.0f} MB" for m in (lean, full))
        print(f"  {name:26}  {a}   without {b}", flush=True)
    big = found["dlfa"]["cifar100 N = 50, T = 250"] = {
        "lean": peak_memory("dlfa", "cifar100", 50, epochs=50),
        "full": None,
    }
    seconds, total = big["lean"]["seconds"], big["lean"]["mb"]
    print(f"  CIFAR N = 50, T = 250: {seconds:.1f} s, {total:.0f} MB in all")
    print("\nSeveral attacks at once, milliseconds per attack and step (N = 10)")
    found["batched"] = {}
    for dataset, counts in AT_ONCE.items():
        for method in ("ig", "sme"):
            steps = {str(r): partial(throughput, method, dataset, r) for r in counts}
            times = interleaved(steps, args.rounds)
            each = {r: ms / int(r) for r, ms in times.items()}
            found["batched"][f"{dataset} {method}"] = each
            line = "  ".join(f"{r}: {ms:.1f}" for r, ms in each.items())
            print(f"  {dataset:8} {method:4} {line}", flush=True)
    found["verdicts"] = verdicts(found)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(found, indent=1) + "\n")
    picture(found, args.out.with_suffix(".png"))
    throughput_picture(found, args.out.with_name("throughput.png"))
    (args.out.with_name("speed_table.md")).write_text(speed_table(found))
    (args.out.with_name("dlfa_table.md")).write_text(dlfa_table(found))
    print()
    for name, mine, other, ratio, goal, met in found["verdicts"]:
        verdict = "met" if met else "NOT MET"
        print(f"{name:44} {mine:8.1f} {other:8.1f}  {ratio:5.2f}  <= {goal:4.2f}  {verdict}")
    print(f"written to {args.out} and {args.out.with_suffix('.png').name}")
    return 0


NAMES = {"femnist": "FEMNIST", "cifar100": "CIFAR-100", "jax": "JAX"}


def named(case: str) -> str:
    """A case as people write it: `femnist-N50` is FEMNIST, N = 50."""
    dataset, _, samples = case.partition("-N")
    return f"{NAMES[dataset]}, N = {samples}" if samples else NAMES.get(dataset, dataset)


def speed_table(found: dict) -> str:
    """The verdicts, memory, and the throughput of several attacks at once, as Markdown."""
    ratios = {name: (mine, ratio, met) for name, mine, _, ratio, _, met in found["verdicts"]}
    steps = dict.fromkeys(n.partition(" / ")[0] for n in ratios if n.endswith("/ floor"))

    def mark(name: str) -> str:
        if name not in ratios:
            return ""
        _, ratio, met = ratios[name]
        return f"{ratio:.2f}\N{NO-BREAK SPACE}✓" if met else f"**{ratio:.2f}\N{NO-BREAK SPACE}✗**"

    lines = ["| step | ms | ÷ floor, ≤ 1.5 | ÷ textbook, ≤ 0.7 | ÷ JAX, ≤ 0.5 |"]
    lines += ["|---|---:|---:|---:|---:|"]
    for step in steps:
        cells = [mark(f"{step} / {other}") for other in ("floor", "textbook", "jax")]
        case, method, *kind = step.split()
        label = " ".join([f"{named(case)}:", method.upper(), *kind]).removesuffix(" ours")
        milliseconds = ratios[f"{step} / floor"][0]
        lines.append(f"| {label} | {milliseconds:.1f} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "| SME ÷ IG | alpha at every step, ≤ 1.2 | alpha/4, ≤ 1.05 | alpha/4 compiled, ≤ 1.05 |",
    ]
    lines += ["|---|---:|---:|---:|"]
    for case in found["cases"]:
        names = ("sme / ig", "sme alpha/4 / ig", "sme alpha/4 / ig, compiled")
        cells = [mark(f"{case} {n}") for n in names]
        lines.append(f"| {named(case)} | " + " | ".join(cells) + " |")
    lines += ["", "Peak memory of IG and SME beyond what Python and torch take, in MB:", ""]
    lines += ["| | IG | SME |", "|---|---:|---:|"]
    for name, held in found["cases"].items():
        cells = [f"{m['mb'] - m['base_mb']:.0f}" for m in held["memory"].values()]
        lines.append(f"| {named(name)} | " + " | ".join(cells) + " |")
    lines += ["", "Several attacks at once under `vmap`, milliseconds per attack and step, N = 10:"]
    counts = AT_ONCE["femnist"]
    lines += ["", "| | " + " | ".join(f"{r} at once" for r in counts) + " |"]
    lines += ["|---" + "|---:" * len(counts) + "|"]
    for name, row in found["batched"].items():
        cells = [f"{row[str(r)]:.1f}" if str(r) in row else "" for r in counts]
        dataset, method = name.split()
        lines.append(f"| {method.upper()}, {named(dataset)} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def dlfa_table(found: dict) -> str:
    """Time and memory of a DLFA step, beyond what Python and torch take by themselves."""
    lines = ["| | checkpointed | kept whole |", "|---|---:|---:|"]
    for name, row in found["dlfa"].items():
        cells = [
            f"{m['seconds']:.2f} s, {m['mb'] - m['base_mb']:.0f} MB" if m else "not tried"
            for m in (row["lean"], row["full"])
        ]
        case, _, steps = name.partition(", ")
        label = f"{named(case.replace(' N = ', '-N'))}, {steps}"
        lines.append(f"| {label} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines) + "\n"


def picture(found: dict, path: Path) -> None:
    """Bars: a step of each implementation as a multiple of the floor."""
    import matplotlib.pyplot as plt

    kinds = ("compiled", "ours", "textbook", "jax")
    shades = dict(zip(kinds, ("#0072B2", "#56B4E9", "#999999", "#E69F00"), strict=True))
    cases = [(c, m) for c in ("femnist-N50", "cifar100-N10") for m in ("ig", "sme")]
    with smelib.viz.style():
        figure, axis = plt.subplots(figsize=(7.2, 3.4))
        for i, kind in enumerate(kinds):
            ms = [found["cases"][c]["ms"] for c, _ in cases]
            if f"ig {kind}" not in ms[0]:
                continue
            bars = [t[f"{m} {kind}"] / t[f"{m} floor"] for t, (_, m) in zip(ms, cases, strict=True)]
            places = [x + 0.2 * i - 0.3 for x in range(4)]
            axis.bar(places, bars, 0.19, label=named(kind), color=shades[kind])
        axis.axhline(1, color=smelib.viz.INK, linewidth=1)
        labels = [f"{m.upper()}\n{named(c)}" for c, m in cases]
        axis.set(xticks=range(4), xticklabels=labels, ylabel="time of a step / floor")
        axis.set_title("A compiled step is close to its arithmetic alone", pad=30)
        axis.legend(ncols=4, loc="lower left", bbox_to_anchor=(-0.01, 1), columnspacing=1.2)
        axis.grid(axis="x", visible=False)
        axis.set_axisbelow(True)
    figure.savefig(path)


def throughput_picture(found: dict, path: Path) -> None:
    """Curves: the cost of one attack's step against how many run at once."""
    import matplotlib.pyplot as plt

    with smelib.viz.style():
        figure, axes = plt.subplots(1, 2, figsize=(7.2, 2.8))
        for axis, dataset in zip(axes, AT_ONCE, strict=True):
            for method in ("ig", "sme"):
                row = found["batched"][f"{dataset} {method}"]
                at = [int(r) for r in row]
                colour = smelib.viz.COLOURS[method]
                axis.plot(at, row.values(), marker="o", color=colour, label=method.upper())
            axis.set(xlabel="attacks at once", xticks=at)
            axis.set_ylim(0, 1.05 * axis.get_ylim()[1])
            axis.set_title(f"{named(dataset)}, N = 10", fontsize=10, fontweight="normal")
        title = "Several attacks at once: the small network gains, the large one does not"
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, fontweight="bold")
        axes[0].set_ylabel("ms per attack and step")
        axes[0].legend(loc="lower left")
    figure.savefig(path)


def verdicts(found: dict) -> list[tuple]:
    """One row per figure: name, ours, alternative, ratio, goal, met or not."""
    lines = []

    def compare(name: str, ours: float, other: float, goal: float) -> None:
        lines.append((name, ours, other, ours / other, goal, ours / other <= goal))

    for case in ("femnist-N50", "cifar100-N10"):
        ms = found["cases"][case]["ms"]
        for method in ("ig", "sme"):
            for kind in ("ours", "compiled", "compiled alpha/4"):
                if f"{method} {kind}" not in ms:
                    continue
                mine = ms[f"{method} {kind}"]
                name = f"{case} {method} {kind}"
                compare(f"{name} / floor", mine, ms[f"{method} floor"], 1.5)
                compare(f"{name} / textbook", mine, ms[f"{method} textbook"], 0.7)
                if f"{method} jax" in ms:
                    compare(f"{name} / jax", mine, ms[f"{method} jax"], 0.5)
    for case, held in found["cases"].items():
        ms = held["ms"]
        compare(f"{case} sme / ig", ms["sme ours"], ms["ig ours"], 1.2)
        compare(f"{case} sme alpha/4 / ig", ms["sme alpha/4"], ms["ig ours"], 1.05)
        if "sme compiled alpha/4" in ms:
            mine, other = ms["sme compiled alpha/4"], ms["ig compiled"]
            compare(f"{case} sme alpha/4 / ig, compiled", mine, other, 1.05)
    return lines


if __name__ == "__main__":
    sys.exit(main())
