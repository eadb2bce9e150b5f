"""What people read: a page of feedback per submission, and which answers are nearly the same."""

from __future__ import annotations

import re
from html import escape
from itertools import combinations

SIMILAR = ("file", "other", "answers", "of", "functions")
NEAR, LEAST = 0.9, 30  # the share of common runs of tokens; the tokens that a function must have

STYLE = """
body {font: 16px/1.5 system-ui, sans-serif; max-width: 46em; margin: 2em auto; padding: 0 1em}
table {border-collapse: collapse; width: 100%}
td, th {text-align: left; vertical-align: top; padding: .3em .6em; border-bottom: 1px solid #ccc}
td:nth-child(2) {white-space: nowrap}
.full {color: #00624a}
.lost {color: #a33f00}
"""


def page(line: dict, marks: list[dict]) -> str:
    """The feedback on a submission, as HTML that needs nothing else."""
    rows = []
    for m in marks:
        kind = "full" if m["points"] == m["of"] else "lost"
        says = m["says"] or "agrees with the solution on cases that you have not seen"
        name = f"<code>{escape(m['part'])}</code>, {escape(m['aspect'])}"
        got = f'<span class="{kind}">{m["points"]} of {m["of"]}</span>'
        rows.append(f"<tr><td>{name}</td><td>{got}</td><td>{escape(says)}</td></tr>")
    table = (
        "<table><thead><tr><th>part</th><th>points</th><th>what the check says</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
    )
    title = f"{line['student']}: {line['assignment'] or 'no assignment'}"
    note = f"<p>{escape(line['note'])}</p>" if line["note"] else ""
    total = (
        f"<p><strong>{line['points']} of {line['of']} points</strong> by checks; questions in "
        "words are marked by a person.</p>"
    )
    if not marks:
        total = "<p><strong>Nothing could be graded.</strong></p>"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head><body><h1>{escape(title)}</h1>"
        f"<p>{escape(line['file'])}</p>{total}{note}{table if marks else ''}</body></html>\n"
    )


def _runs(source: str, size: int = 5) -> set[tuple[str, ...]]:
    """The runs of so many tokens in a function; none for a function too short to tell."""
    tokens = re.findall(r"\w+|[^\w\s]", source)
    if len(tokens) < LEAST:
        return set()
    return {tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)}


def similar(sources: dict[str, dict[str, str]]) -> list[dict]:
    """Pairs of submissions with near-identical functions, most of them first."""
    runs = {
        file: {name: found for name, text in functions.items() if (found := _runs(text))}
        for file, functions in sources.items()
    }
    pairs = []
    for (file, a), (other, b) in combinations(runs.items(), 2):
        both = sorted(a.keys() & b.keys())
        same = [n for n in both if len(a[n] & b[n]) >= NEAR * len(a[n] | b[n])]
        if same:
            row = {"file": file, "other": other, "answers": len(same), "of": len(both)}
            pairs.append(row | {"functions": " ".join(same)})
    return sorted(pairs, key=lambda p: (-p["answers"] / p["of"], -p["answers"], p["file"]))
