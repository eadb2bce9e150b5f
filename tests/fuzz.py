"""Damaged files for every reader: whatever they hold, the answer is data or a sentence.

    python tests/fuzz.py --minutes 10 [--seed 0]

Valid safetensors, npz, pt and LEAF files are mutated (bits, bytes, cuts, copies, numbers in their
headers), or made up of random bytes. A reader may return what it read or raise `InputError`; any
other exception, more than five seconds, or more than a gigabyte of memory is a finding. (A whole
audit has ninety seconds: a file that can be read is attacked.) What was
found is printed with its seed and kept in the folder that `--keep` names.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import io
import itertools
import json
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file

import smelib
from smelib import InputError, cli, data
from smelib.auditing import weights

SECONDS, MEGABYTES = 5, 1024
INTERESTING = (0, 1, -1, 7, 8, 27, 29, 62, 255, 2**31, 2**32, 2**62, 2**63, 2**64, 10**40, -(2**63))


class Hang(BaseException):
    """A reader took too long; no reader may catch this."""


def ring(*_: object) -> None:
    """The time is up."""
    raise Hang


def damage(raw: bytes, rng: random.Random) -> bytes:
    """A few mutations of a file."""
    found = bytearray(raw)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        at = rng.randrange(len(found) + 1)
        # Half of all mutations fall on the first or last kilobyte, where the headers are.
        if rng.random() < 0.5:
            at = rng.choice((min(at, 1024), max(0, len(found) - at % 1024)))
        kind = rng.randrange(8)
        if kind == 0 and at < len(found):
            found[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(found):
            found[at] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
        elif kind == 2:
            del found[at:]
        elif kind == 3:
            del found[at : at + rng.randrange(1, 64)]
        elif kind == 4:
            found[at:at] = rng.randbytes(rng.randrange(1, 64))
        elif kind == 5:
            found[at:at] = found[at : at + rng.randrange(1, 256)]
        elif kind == 6:
            number = rng.choice(INTERESTING)
            width = rng.choice((1, 2, 4, 8))
            found[at : at + width] = (number % 256**width).to_bytes(width, "little")
        else:
            _number(found, rng)
    return bytes(found)


def _number(found: bytearray, rng: random.Random) -> None:
    """Another number in the place of one that is written out, as in a JSON header."""
    head = bytes(found[:4096])
    places = [i for i, c in enumerate(head) if chr(c).isdigit()]
    if places:
        start = end = rng.choice(places)
        while end < len(head) and chr(head[end]).isdigit():
            end += 1
        words = (str(rng.choice(INTERESTING)), "1e999", "NaN", "null", "[]", '"a"', "{}", "true")
        found[start:end] = rng.choice(words).encode()


VALUES = (None, True, 0, 1, -1, 61, 62, 0.5, 1.5, 1e308, 10**400, "", "a", "\ud800", [], {}, [[]])


def bend_tree(tree: object, rng: random.Random) -> None:
    """Put another value somewhere into a tree of lists and dictionaries."""
    while True:
        keys = list(tree) if isinstance(tree, dict) else range(len(tree))
        if not keys:
            return
        key = rng.choice(keys)
        if not isinstance(tree[key], (dict, list)) or rng.random() < 0.3:
            kind = rng.randrange(3)
            if kind == 0 and isinstance(tree, dict):
                tree[str(rng.choice(VALUES))] = tree.pop(key)
            elif kind == 1:
                del tree[key]
            else:
                tree[key] = copy.deepcopy(rng.choice((*VALUES, float("nan"), [tree[key]])))
            return
        tree = tree[key]


def bend_json(raw: bytes, rng: random.Random) -> bytes:
    """JSON that says something else."""
    tree = json.loads(raw)
    for _ in range(rng.choice((1, 1, 2, 5))):
        bend_tree(tree, rng)
    return json.dumps(tree).encode()


def bend_weights(raw: bytes, rng: random.Random) -> bytes:
    """A safetensors file whose header has the right length and says something else."""
    length = int.from_bytes(raw[:8], "little")
    text = bend_json(raw[8 : 8 + length], rng)
    return len(text).to_bytes(8, "little") + text + raw[8 + length :]


def bend_archive(raw: bytes, rng: random.Random) -> bytes:
    """An archive with right checksums and damaged arrays."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            hurt = rng.random()
            if hurt < 0.1:
                continue
            new.writestr(name, damage(content, rng) if hurt < 0.6 else content)
    return out.getvalue()


def writers(rng: random.Random) -> bytes:
    """One of LEAF's files."""
    held = {
        f"w{i}": {"x": [[round(rng.random(), 3)] * 784 for _ in range(2)], "y": [i, i + 1]}
        for i in range(3)
    }
    return json.dumps({"users": list(held), "num_samples": [2] * 3, "user_data": held}).encode()


def archive(rng: random.Random) -> bytes:
    """A small FEMNIST in arrays."""
    out = io.BytesIO()
    save = rng.choice((np.savez, np.savez_compressed))
    images = np.frombuffer(rng.randbytes(4 * 784), np.uint8).reshape(4, 28, 28)
    save(out, images=images, labels=np.arange(4), writers=np.array(["a", "a", "b", "b"]))
    return out.getvalue()


Bend = Callable[[bytes, random.Random], bytes]


class Target:
    """A reader, a valid file for it, how to bend one without breaking it, and where it lies."""

    def __init__(
        self,
        path: Path,
        valid: Callable[[random.Random], bytes],
        bend: Bend,
        read: Callable[[Path], object],
        seconds: int = 0,
    ) -> None:
        self.path, self.valid, self.bend, self.read, self.seconds = path, valid, bend, read, seconds


def audit(run: Path) -> Callable[[Path], object]:
    """The whole command on a damaged file; its exit code 2 counts as the sentence it printed."""
    turn = itertools.cycle((("--before", "--after"), ("--after", "--before")))

    def read(path: Path) -> object:
        hurt, whole = next(turn)
        words = [hurt, path, whole, run / "w0.safetensors", "--samples", 2, "--steps", 1]
        words += ["--normalisation", "raw"]
        said = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
            code = cli.main(["audit", *map(str, words)])
        if code not in (0, 2) or "Traceback" in said.getvalue():
            raise AssertionError(f"exit code {code}: {said.getvalue()}")
        if code == 2:
            raise InputError(said.getvalue())
        return code

    return read


def targets(room: Path) -> dict[str, Target]:
    """All readers, each in a folder of its own."""
    run = room / "run"
    typed = "attack --samples 2 --epochs 1 --steps 1 --network lenet --json --out"
    with contextlib.redirect_stdout(io.StringIO()):
        assert cli.main([*typed.split(), str(run)]) == 0
    trained = (run / "wT.safetensors").read_bytes()
    out = io.BytesIO()
    np.savez(out, **{k: v.numpy() for k, v in load_file(run / "wT.safetensors").items()})
    arrays = out.getvalue()
    torch.save(load_file(run / "wT.safetensors"), out := io.BytesIO())
    pickled = out.getvalue()
    (room / "npz").mkdir()
    (room / "leaf" / "train").mkdir(parents=True)

    def load(path: Path) -> object:
        root = path.parents[1] if path.parent.name == "train" else path.parent
        return data.client("femnist", 1, root=root)

    return {
        "safetensors": Target(
            room / "some.safetensors",
            lambda rng: trained,
            bend_weights,
            lambda p: weights.read(p, "--after"),
        ),
        "arrays": Target(
            room / "some.npz",
            lambda rng: arrays,
            bend_archive,
            lambda p: weights.read(p, "--after"),
        ),
        "pt": Target(
            room / "some.pt",
            lambda rng: pickled,
            bend_archive,
            lambda p: weights.read(p, "--after"),
        ),
        "npz": Target(room / "npz" / "femnist.npz", archive, bend_archive, load),
        "LEAF": Target(room / "leaf" / "train" / "some.json", writers, bend_json, load),
        "audit": Target(
            room / "audit.safetensors", lambda rng: trained, bend_weights, audit(run), 90
        ),
    }


def resident() -> int:
    """Megabytes of memory in use, where the system says so."""
    status = Path("/proc/self/statm")
    if not status.is_file():
        return 0
    return int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 2**20


def one(target: Target, seed: str) -> tuple[str, bytes]:
    """Read one damaged file; what came of it, and the file."""
    rng = random.Random(seed)
    if rng.random() < 0.1:
        content = rng.randbytes(rng.choice((0, 1, 7, 8, 9, 100, 5000)))
    elif rng.random() < 0.5:
        content = damage(target.valid(rng), rng)
    else:
        content = target.bend(target.valid(rng), rng)
    target.path.write_bytes(content)
    before = resident()
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, target.seconds or SECONDS)
    try:
        target.read(target.path)
        came = "read"
    except InputError:
        came = "sentence"
    except Hang:
        came = f"HANG of more than {SECONDS} s"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        came = f"{type(error).__name__} at {where}: {str(error)[:100]}"
    finally:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
    if resident() - before > MEGABYTES:
        came = f"MEMORY: {resident() - before} MB"
    return came, content


def fuzz(seconds: float, seed: int = 0, keep: Path | None = None) -> Counter:
    """Damaged files until the time is up, every reader in turn; what came of them, counted."""
    tally: Counter = Counter()
    end = time.monotonic() + seconds
    heard = hasattr(signal, "SIGALRM")
    before = signal.signal(signal.SIGALRM, ring) if heard else None
    try:
        with tempfile.TemporaryDirectory() as scratch:
            room = targets(Path(scratch))
            number = 0
            while time.monotonic() < end:
                for name, target in room.items():
                    # The whole command takes as long as fifty files of the others.
                    for i in range(1 if name == "audit" else 25):
                        came, content = one(target, f"{seed}/{name}/{number}/{i}")
                        tally[name, came] += 1
                        if came not in ("read", "sentence") and keep is not None:
                            keep.mkdir(parents=True, exist_ok=True)
                            (keep / f"{name}-{number}-{i}").write_bytes(content)
                number += 1
    finally:
        if heard:
            signal.signal(signal.SIGALRM, before)
    return tally


def findings(tally: Counter) -> dict:
    """What is neither data nor a sentence."""
    return {k: n for k, n in tally.items() if k[1] not in ("read", "sentence")}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for the files that found something")
    args = parser.parse_args()
    total = fuzz(60 * args.minutes, args.seed, args.keep)
    print(f"smelib {smelib.__version__}: {sum(total.values()):,} files, seed {args.seed}")
    for (name, came), count in sorted(total.items()):
        print(f"  {name:12} {count:8,}  {came}")
    sys.exit(bool(findings(total)))
