"""Measured results as the pages of the book read them."""

from __future__ import annotations

import json
from pathlib import Path

from smelib.errors import InputError
from smelib.reproduce import networks, provenance
from smelib.reproduce.store import by_cell, numbers, parse
from smelib.version import REPOSITORY, __version__

PACKAGE = Path(__file__).resolve().parents[1]


def folder() -> Path:
    """The folder of measured results: the clone's, or else what came with the package.

    A clone around the working folder comes first, then one around the package. An installed package
    carries the numbers of its day.
    """
    for place in (Path.cwd(), *Path.cwd().parents, PACKAGE.parent):
        if (place / "_toc.yml").is_file() and (place / "results").is_dir():
            return place / "results"
    return PACKAGE / "results"


def results(name: str, within: Path | None = None) -> str:
    """The text of a file of measured results; `name` is a path under it, like `"speed.json"`.

    `within` is another folder of results than the book's.
    """
    file = (within or folder()) / name
    if file.is_file():
        return file.read_text(encoding="utf-8")
    if within is not None:
        raise InputError(f"{file} does not exist; 'smelib reproduce --out {within}' makes it.")
    if folder() != PACKAGE / "results":
        raise InputError(f"results/{name} is not in the clone: it was not measured yet.")
    raise InputError(
        f"results/{name} is neither in a clone around here nor among the numbers that came with "
        f"smelib {__version__}; run this inside a clone of {REPOSITORY}."
    )


def finished(table: str, *, within: Path | None = None, **where: str) -> list[dict]:
    """Our finished jobs of a table, as the book's pages read them; none where nothing was run.

    `where` restricts by column, as in `finished("main", row="femnist-E10-N10", method="sme")`.
    Measurements are numbers, or None where a job has no such value. A cell with fewer clients in
    the measurement's current version than before shows those of before, with `earlier` set.
    """
    name = f"{table}.csv"
    manifest = json.loads(results("manifest.json", within))
    if table not in manifest["tables"]:
        return []  # asked of the manifest: results that cannot be reached are not "not run"
    digests = networks.digests(manifest["networks"])
    found = []
    for cell in by_cell(parse(results(name, within).encode(), name)).values():
        found += provenance.richest(provenance.by_draw(cell, digests))[0]
    return [
        {
            **line,
            "seed": int(line["seed"]),
            "earlier": not line.pop("now", False),
            **numbers(line),
        }
        for line in found
        if line["status"] == "ok" and all(line[k] == v for k, v in where.items())
    ]
