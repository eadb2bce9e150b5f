"""`smelib reproduce`: the jobs of a table, or of one of the paper's claims, that are not done."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

from smelib.cli.files import room_for
from smelib.cli.words import number
from smelib.errors import InputError, nearest
from smelib.reproduce import claims, plan
from smelib.reproduce import drive as runner

MOST = 10_000
EXAMPLE = """\
examples:
  one row of the paper's main table, five clients, for two hours at most
    smelib reproduce main --rows femnist-E10-N10 --seeds 5 --data-root DIR --time-limit 2h
  what the claim that SME beats IG needs: both attacks on the same clients
    smelib reproduce --claim sme-over-ig --data-root DIR
  clipping on the embedded digits: both attackers, naive and aware, and the accuracy kept
    smelib reproduce defences --rows 'mnist-R0-clip-*' --workers 2
  tables and claims, with what the plan has for each
    smelib reproduce --list
"""


def _words(text: str | None) -> list[str]:
    return [word for word in (text or "").split(",") if word]


def _jobs(args: argparse.Namespace) -> list[plan.Job]:
    """What the table or the claim that was named needs."""
    chosen = {"--rows": args.rows, "--methods": args.methods, "--inits": args.inits}
    if args.claim is None:
        if args.table is None:
            raise InputError(
                f"name a table ({', '.join(plan.ROWS)}) or a claim (--claim "
                f"{', '.join(claims.claims())})."
            )
        return plan.jobs(
            args.table,
            rows=[row for text in args.rows or () for row in _words(text)],
            methods=_words(args.methods),
            inits=_words(args.inits),
            seeds=args.seeds,
        )
    if args.table is not None:
        raise InputError(f"{args.table!r} and --claim {args.claim}: name one of the two.")
    if given := [name for name, value in chosen.items() if value]:
        raise InputError(f"--claim chooses rows, methods and inits; leave {given[0]} away.")
    return claims.jobs(args.claim, seeds=args.seeds)


def _list() -> int:
    """What can be run, with the plan's number of runs."""
    print("tables")
    for table in plan.ROWS:
        print(f"  {table:17} {len(plan.jobs(table)):4} runs in {len(plan.ROWS[table])} rows")
    print("claims")
    for name, claim in claims.claims().items():
        print(f"  {name:17} {len(claims.jobs(name)):4} runs. {claim.words}")
    return 0


def reproduce(args: argparse.Namespace) -> int:
    """Run the jobs of a table, or of a claim, that have no result yet."""
    if args.list:
        return _list()
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
    jobs = _jobs(args)
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
    print(runner.summary(args.claim or args.table, len(jobs), tally), file=sys.stderr)
    return 130 if tally["interrupted"] else int(tally["failed"] + tally["failed before"] > 0)


def add_options(r: argparse.ArgumentParser) -> None:
    """What the command takes."""
    r.epilog = EXAMPLE
    r.add_argument("table", nargs="?", help=", ".join(plan.ROWS))
    r.add_argument("--claim", metavar="NAME", help=", ".join(claims.claims()))
    r.add_argument("--list", action="store_true", help="print tables and claims, and run nothing")
    r.add_argument("--rows", nargs="+", help="like femnist-E10-N10 or 'femnist-*' (all)")
    r.add_argument("--methods", help="like ig,sme,retrace,dlfa or aware-sme (all)")
    r.add_argument("--inits", help="like torch,lecun (the plan's)")
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
