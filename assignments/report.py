"""What people read: a page of feedback per submission, similar answers, and a leaderboard."""

from __future__ import annotations

import math
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
svg {width: 100%; height: auto; font: 12px system-ui, sans-serif}
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
    return _html(title, f"<p>{escape(line['file'])}</p>{total}{note}{table if marks else ''}")


def _html(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{STYLE}</style></head><body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )


WIDE, HIGH, EDGE = 640, 400, 50  # of the scatter, in its own units


def _scatter(dots: list[tuple[str, str, float, float]]) -> str:
    """Dots (name, kind, dB taken, accuracy): up is useful, left is private."""
    lowest = math.floor(min(d[2] for d in dots)) - 1
    most = math.ceil(max(d[2] for d in dots)) + 1
    across, up = (WIDE - 2 * EDGE) / (most - lowest), HIGH - 2 * EDGE

    def place(taken: float, accuracy: float) -> tuple[float, float]:
        return EDGE + (taken - lowest) * across, HIGH - EDGE - accuracy * up

    drawn = [f'<path d="M{EDGE} {EDGE}V{HIGH - EDGE}H{WIDE - EDGE}" fill="none" stroke="#555"/>']
    for tick in range(lowest, most + 1, max(1, (most - lowest) // 6)):
        x, y = place(tick, 0)
        drawn.append(f'<text x="{x:.0f}" y="{y + 18:.0f}" text-anchor="middle">{tick}</text>')
    for share in (0, 0.25, 0.5, 0.75, 1):
        x, y = place(lowest, share)
        drawn.append(f'<text x="{x - 6:.0f}" y="{y + 4:.0f}" text-anchor="end">{share}</text>')
    middle = f'x="{WIDE / 2:.0f}" y="{HIGH - 8}" text-anchor="middle"'
    drawn.append(f"<text {middle}>PSNR taken by an attacker who knows, in dB</text>")
    drawn.append(f'<text x="8" y="{EDGE - 16}">accuracy kept by the federation</text>')
    for name, kind, taken, accuracy in dots:
        x, y = place(taken, accuracy)
        mark = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="#00624a"/>'
        if kind == "reference":
            mark = f'<path d="M{x:.1f} {y - 7:.1f}l7 7l-7 7l-7 -7z" fill="#a33f00"/>'
        words = f'<text x="{x + 9:.1f}" y="{y + 4:.1f}">{escape(name)}</text>'
        drawn.append(f"<g>{mark}<title>{escape(name)}</title>{words}</g>")
    label = "Accuracy kept against PSNR taken, a dot for each submission"
    return (
        f'<svg viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="{label}">{"".join(drawn)}</svg>'
    )


def leaderboard(entries: list[dict]) -> str:
    """Assignment 6's defences, the best first: what each kept, and what was taken.

    An entry has `name` and what was measured: accuracy, taken, score, prior, references.
    """
    rows = [("submission", e["name"], e["accuracy"], e["taken"], e["score"]) for e in entries]
    rows += [("reference", name, *found) for name, found in entries[0]["references"].items()]
    rows.sort(key=lambda r: (-r[4], r[0] == "reference", r[1]))
    dots = [(name, kind, taken, accuracy) for kind, name, accuracy, taken, _ in rows]
    lines = []
    for kind, name, accuracy, taken, score in rows:
        shown = f'<span class="lost">{escape(name)} (reference)</span>'
        shown = escape(name) if kind == "submission" else shown
        cells = f"<td>{score:.0f}</td><td>{accuracy:.3f}</td><td>{taken:.1f}</td>"
        lines.append(f"<tr><td>{shown}</td>{cells}</tr>")
    head = "<tr><th>defence</th><th>score</th><th>accuracy</th><th>PSNR taken, dB</th></tr>"
    prior = (
        "<p>Up and to the left is better. The prior alone, the mean image of each class, has "
        f"{entries[0]['prior']:.1f} dB, and no attacker is counted with less.</p>"
    )
    table = f"<table><thead>{head}</thead><tbody>{''.join(lines)}</tbody></table>"
    return _html("Leaderboard: defend the client", _scatter(dots) + prior + table)


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
