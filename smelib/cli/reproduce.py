"""`smelib reproduce`: the jobs of one of the paper's tables that have no result yet."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from smelib.cli.files import room_for
from smelib.cli.words import number
from smelib.errors import InputError, nearest
from smelib.reproduce import drive as runner
from smelib.reproduce import plan

MOST = 10_000
EXAMPLE = """\
example: one row of the paper's main table, five clients, for two hours at most
  smelib reproduce main --rows femnist-E10-N10 --seeds 5 --data-root DIR --time-limit 2h
"""


def reproduce(args: argparse.Namespace) -> int:
    """Run the jobs of one of the paper's tables that have no result yet."""

    def words(text: str | None) -> list[str]:
        return [word for word in (text or "").split(",") if word]

    if args.workers is not None and not 1 <= args.workers <= MOST:
        raise InputError(f"--workers {args.workers}: at least one, and at most {MOST:,}.")
    if args.seeds is not None and args.seeds > MOST:
        raise InputError(f"--seeds {args.seeds}: a cell takes up to {MOST:,} clients.")
    if args.gpus is not None and args.gpus < 0:
        raise InputError(f"--gpus {args.gpus:g}: a job's share of a GPU is not negative.")
    if args.backend not in ("local", "ray"):
        raise nearest("backend", args.backend, ["local", "ray"])
    room_for(args.out)
    limit = math.inf if args.time_limit is None else runner.duration(args.time_limit)
    jobs = plan.jobs(
        args.table,
        rows=[row for text in args.rows or () for row in words(text)],
        methods=words(args.methods),
        inits=words(args.inits),
        seeds=args.seeds,
    )
    tally = runner.reproduce(
        jobs,
        Path(args.out),
        data_root=args.data_root,
        backend=args.backend,
        workers=args.workers,
        address=args.address,
        gpus=args.gpus,
        retry_failed=args.retry_failed,
        time_limit=limit,
        compiled=args.compile,
    )
    print(runner.summary(args.table, len(jobs), tally), file=sys.stderr)
    return 130 if tally["interrupted"] else int(tally["failed"] + tally["failed before"] > 0)


def add_options(r: argparse.ArgumentParser) -> None:
    """What the command takes."""
    r.epilog = EXAMPLE
    r.add_argument("table", help="main, cost, low_rank, trained, architectures, large_n, or tiny")
    r.add_argument("--rows", nargs="+", help="like femnist-E10-N10 (all)")
    r.add_argument("--methods", help="like ig,sme,retrace,dlfa (all)")
    r.add_argument("--inits", help="torch, lecun or both (the plan's)")
    r.add_argument("--seeds", type=int, help="clients per cell, also outside the plan")
    r.add_argument("--backend", default="local", help="local or ray (local)")
    r.add_argument("--workers", type=int, help="local processes (one per GPU, or else per core)")
    r.add_argument("--address", default="auto", help="of the Ray cluster (auto)")
    r.add_argument("--gpus", type=number, help="share of a GPU per job on Ray, like 0.25 (1)")
    r.add_argument("--time-limit", help="like 2h: start no job after that, finish those under way")
    r.add_argument("--compile", action="store_true", help="compile the steps of IG and SME first")
    r.add_argument("--retry-failed", action="store_true", help="run failed jobs once more")
    r.add_argument("--data-root", help="folder with femnist.npz and cifar100.npz")
    r.add_argument("--out", default="results", help="folder of the CSV files (results)")
    r.set_defaults(run=reproduce)
