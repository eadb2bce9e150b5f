"""Grade a folder of notebooks: `python -m assignments.grade SUBMISSIONS [--out FOLDER]`.

A submission is a notebook `NAME.ipynb` in the folder, or a notebook in a sub-folder `NAME/`; which
assignment it is follows from the functions in it. Written are `grades.csv`, a page of feedback per
submission, `similar.csv`, and for assignment 6 `leaderboard.html`. Stopped at any point, the same
command goes on where it was: each result is a file of its own, under the digest of what it depends
on.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import secrets
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue

from tqdm import tqdm

from assignments import SEED, answers, catalogue, marking, report
from assignments.pool import Limits, Sandbox
from smelib.checks import engine

HERE = Path(__file__).parent
COLUMNS = ("student", "file", "assignment", "points", "of", "parts", "note")


@dataclass(frozen=True)
class Submission:
    """Who handed in which file."""

    student: str
    path: Path
    file: str  # relative to the folder

    @property
    def slug(self) -> str:
        """A file name that no other submission has."""
        plain = "".join(c if c.isalnum() else "-" for c in self.file)[:60]
        return f"{plain}-{hashlib.sha256(self.file.encode()).hexdigest()[:8]}"


def submissions(folder: Path) -> Iterator[Submission]:
    """All that was handed in, in order; in a student's folder only notebooks, if there are any."""
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith("."):
            continue
        if entry.is_dir() and not entry.is_symlink():
            inside = [p for p in sorted(entry.rglob("*")) if _handed_in(p, entry)]
            books = [p for p in inside if p.suffix == ".ipynb"]
            for path in books or inside or [entry]:
                yield Submission(entry.name, path, path.relative_to(folder).as_posix())
        else:
            yield Submission(entry.stem, entry, entry.name)


def _handed_in(path: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return not hidden and (path.is_file() or path.is_symlink())


def rules() -> str:
    """A digest of everything but the submission that marks depend on."""
    digest = hashlib.sha256(str(SEED).encode())
    checks = Path(engine.__file__).parent
    for path in sorted([*HERE.glob("*.py"), *HERE.glob("source/*"), *checks.glob("*.py")]):
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()


def grade(box: Sandbox, path: Path) -> dict:
    """One submission's record: the marks, or the reason why there are none."""
    blank = {"assignment": "", "marks": [], "note": "", "sources": {}}
    try:
        if path.is_symlink() or not path.is_file():
            raise answers.NotANotebook("this is not a file")
        cells = answers.cells(path)
    except (answers.NotANotebook, OSError) as error:
        return blank | {"note": str(error) if isinstance(error, ValueError) else "cannot be read"}
    names = [p.name for a in catalogue.load().values() for p in a.parts]
    outline = box.do({"do": "outline", "cells": cells, "names": names})
    if "error" in outline:
        return blank | {"note": f"the notebook cannot be read: {outline['error']}"}
    assignment = catalogue.recognised(set(outline["functions"]))
    if assignment is None:
        return blank | {"note": "no function of any assignment is in it"}
    marks = marking.mark(box, assignment, cells, outline)
    return {
        "assignment": assignment.name,
        "marks": [asdict(m) for m in marks],
        "note": "; ".join(f"cannot be read: {u}" for u in outline["unreadable"]),
        "sources": {k: v["normal"] for k, v in outline["functions"].items()},
    }


def _write(path: Path, text: str) -> None:
    """All of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    half.write_text(text, encoding="utf-8")
    half.replace(path)


def row(found: Submission, record: dict) -> dict:
    """A line of `grades.csv`."""
    marks = [marking.Mark(**m) for m in record["marks"]]
    parts: dict[str, list[int]] = {}
    for m in marks:
        got = parts.setdefault(m.part, [0, 0])
        got[0], got[1] = got[0] + m.points, got[1] + m.of
    return {
        "student": found.student,
        "file": found.file,
        "assignment": record["assignment"],
        "points": sum(m.points for m in marks),
        "of": sum(m.of for m in marks),
        "parts": "; ".join(f"{name} {got}/{of}" for name, (got, of) in parts.items()),
        "note": record["note"],
    }


def _table(path: Path, columns: tuple[str, ...], rows: list[dict]) -> None:
    lines = [columns, *([_plain(r[c]) for c in columns] for r in rows)]
    half = path.with_name(f".{path.name}.{os.getpid()}")
    with half.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(lines)
    half.replace(path)


def _plain(value: object) -> object:
    """A spreadsheet must not take a student's words for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in tuple("=+-@") else value


def run(
    folder: Path,
    out: Path,
    *,
    workers: int,
    limits: Limits,
    walls: bool = True,
    pseudonyms: bool = False,
) -> list[dict]:
    """Grade what is not graded yet, in parallel, and write all tables and pages."""
    version, todo, known = rules(), [], {}
    for found in submissions(folder):
        small = found.path.is_file() and found.path.stat().st_size <= answers.LARGEST
        content = found.path.read_bytes() if small else b""
        key = hashlib.sha256(version.encode() + found.file.encode() + b"\0" + content).hexdigest()
        path = out / "records" / f"{found.slug}-{key[:16]}.json"
        known[found] = path
        if not path.is_file():
            todo.append(found)
    boxes: SimpleQueue[Sandbox] = SimpleQueue()
    started = []

    def one(found: Submission) -> None:
        box = boxes.get()
        try:
            _write(known[found], json.dumps(grade(box, found.path)))
        finally:
            boxes.put(box)

    try:
        for _ in range(min(workers, len(todo))):
            started.append(Sandbox(limits=limits, walls=walls))
            boxes.put(started[-1])
        if started:
            print(f"each answer runs in {started[0].isolation}")
        with ThreadPoolExecutor(max(1, len(started))) as pool:
            list(tqdm(pool.map(one, todo), total=len(todo), desc="grading", disable=not todo))
    finally:
        for box in started:
            box.close()
    records = {found: json.loads(path.read_text("utf-8")) for found, path in known.items()}
    return _publish(out, records, _salt(out) if pseudonyms else "")


def _salt(out: Path) -> str:
    """A secret of this folder, lest a pseudonym be found by trying the names of files."""
    path = out / "records" / ".salt"
    if not path.is_file():
        _write(path, secrets.token_hex())
    return path.read_text("utf-8")


def _publish(out: Path, records: dict[Submission, dict], salt: str = "") -> list[dict]:
    rows = [row(found, record) for found, record in records.items()]
    out.mkdir(parents=True, exist_ok=True)
    entries = []
    for (found, record), line in zip(records.items(), rows, strict=True):
        measured = next((m["numbers"] for m in record["marks"] if m["numbers"]), None)
        if measured:
            hidden = hashlib.sha256(f"{salt} {found.file}".encode()).hexdigest()[:5]
            name = f"defender {hidden}" if salt else found.student
            entries.append({"name": name, **measured})
            where = f"on the leaderboard: {name}"
            line["note"] = "; ".join(filter(None, (line["note"], where)))
    board = out / "leaderboard.html"
    if entries:
        _write(board, report.leaderboard(entries))
    else:
        board.unlink(missing_ok=True)
    for (found, record), line in zip(records.items(), rows, strict=True):
        _write(out / "feedback" / f"{found.slug}.html", report.page(line, record["marks"]))
    sources = {found.file: record["sources"] for found, record in records.items()}
    _table(out / "similar.csv", report.SIMILAR, report.similar(sources))
    _table(out / "grades.csv", COLUMNS, rows)
    return rows


def main(arguments: list[str]) -> int:
    """Exit code 2 where there is no such folder."""
    parser = argparse.ArgumentParser(prog="python -m assignments.grade", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="SUBMISSIONS")
    parser.add_argument("--out", type=Path, help="where grades go; SUBMISSIONS-graded if not said")
    parser.add_argument("--workers", type=int, default=max(1, os.cpu_count() or 1))
    parser.add_argument("--cpu", type=int, default=Limits.cpu, help="seconds for a function")
    parser.add_argument("--wall", type=int, help="seconds in all; three times as many if not said")
    parser.add_argument(
        "--pseudonyms", action="store_true", help="no names on the leaderboard of assignment 6"
    )
    parser.add_argument("--no-walls", action="store_true", help="do without namespaces")
    given = parser.parse_args(arguments)
    if not given.folder.is_dir():
        print(f"there is no folder {given.folder}", file=sys.stderr)
        return 2
    folder = given.folder.resolve()
    out = given.out or folder.with_name(f"{folder.name}-graded")
    limits = Limits(cpu=given.cpu, wall=given.wall or 3 * given.cpu)
    rows = run(
        folder,
        out,
        workers=given.workers,
        limits=limits,
        walls=not given.no_walls,
        pseudonyms=given.pseudonyms,
    )
    print(f"{len(rows)} submissions graded: {out / 'grades.csv'}, pages in {out / 'feedback'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
