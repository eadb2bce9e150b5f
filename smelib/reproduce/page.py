"""The scoreboard as a page of the book: claims, forest plot, cells, and what was not run.

Everything is there without a script; `scoreboard.js` adds filters and sorting.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from smelib.errors import InputError
from smelib.reproduce import names, published, tables, verdicts
from smelib.reproduce.cells import Cell
from smelib.reproduce.plan import ROWS
from smelib.reproduce.scoreboard import Board, between, chance, text, weighed, whom

HERE = Path(__file__).parent
SIMILARITY = r"$L_\mathrm{sim}$"
TITLE = "# The reproduction scoreboard"  # by which a page is known as ours
RULE = (
    "Our mean over clients and the paper's mean over 100 runs are compared by the 95 % interval of "
    "their difference; the paper's standard error and its rounding are in it. **Equal**: the "
    f"interval lies within ±{verdicts.DECIBELS.band:g} dB, for cosines and norm ratios within "
    f"±{verdicts.COSINES.band:g}, for {SIMILARITY}, time and memory within a factor of "
    f"{verdicts.FACTORS.band:g}. **Different**: it lies wholly outside. **Undecided**: everything "
    "else, and every cell with a single client. Time and memory were measured on other machines, "
    "so DLFA's are compared as multiples of SME's on the same client; the paper prints no error "
    "for them, and none is assumed but rounding. Ours are of ten steps on a CPU, scaled up to a "
    "whole attack: where they differ, two machines may differ as much as two programs. At the edge "
    "of the band the interval errs to each side in about 2.5 % of draws; for "
    f"{SIMILARITY}, which is skewed, in up to 5 % to one side."
)
COUNTED = (
    "Every number of the paper counts once, with PyTorch's initial weights and LeNet's second "
    "softmax, which look like the paper's ({doc}`chapter 9 </notebooks/09_shootout>` and "
    "{doc}`chapter 11 </notebooks/11_architectures>` say why); other readings stand in the table "
    "below and are not counted. Rows that the paper restates from another table are left out, and "
    "so is IG's cost as a multiple of SME's, which the paper prints as 1. *No value*: the paper "
    f"prints none, or an {SIMILARITY} of .000, of which there is no factor.",
    "PyTorch's weights were chosen by the cosines of the table `low_rank` and by IG and SME in the "
    "row FEMNIST, E = 10, N = 10, so that agreement there is partly by choice. On the "
    "untrained CNN with ten FEMNIST images DLFA's column looks like LeCun's weights and SME's like "
    "PyTorch's; {doc}`chapter 9 </notebooks/09_shootout>` has what speaks for two kinds in the "
    "paper, and what against. A cell that "
    "has as many clients of the kernel's present version as of an earlier one shows the present "
    "ones alone.",
)


def _apart(one: Sequence[float], other: Sequence[float]) -> str:
    """The difference of two means over different clients, with its interval."""
    gap, scale = verdicts.mean(one) - verdicts.mean(other), verdicts.DECIBELS
    return f"{text(float(gap.value), scale, signed=True)} {between(gap, scale)}".strip()


def _of_sme(board: Board) -> dict[str, Cell]:
    """SME's cells of the main table that were run, by row."""
    where = ("main", "sme", "psnr")
    found = (c for c in board.cells if (c.table, c.method, c.metric) == where)
    return {c.row: c for c in found if c.counted and c.values}


def _elsewhere(board: Board) -> list[str]:
    """SME's runs on the paper's schedule that another comparison made, beside the board's."""
    try:
        stored = json.loads(published.results("fast_preset.json"))
    except InputError:
        return []
    held: dict[str, list[float]] = {}
    for name, value in stored.items():
        setting, _, preset = name.split(" ")
        if preset == "paper":
            held.setdefault(f"{setting}-N10", []).append(value)
    mine = _of_sme(board)
    said, moved = [], []
    for row, v in held.items():
        if row not in mine:
            continue
        c, name = mine[row], names.row("main", row)
        said.append(
            f"{name}: {np.mean(v):.1f} dB over {len(v)} clients, here {c.ours:.1f} over "
            f"{len(c.values)}, which is a difference of {_apart(v, c.values)}"
        )
        pooled = verdicts.mean([*v, *c.values]) - c.theirs
        verdict = str(verdicts.verdict(pooled, c.scale.limit))
        moved += [f"{name} would be {verdict} instead of {c.verdict}"] * (verdict != c.verdict)
    if not said:
        return []
    return [
        "SME also ran on the paper's schedule in a comparison of schedules "
        "(`results/fast_preset.json`), on other clients. Those runs are not pooled with these, for "
        f"they were kept as bare PSNRs, without {SIMILARITY}, version or an IG beside them. "
        + "; ".join(said)
        + f". Pooled, {'; '.join(moved) or 'no verdict would change'}."
    ]


def _over_the_mean_image(board: Board) -> list[str]:
    """In which of the paper's cells an attack gains on the data set's mean image, and where not."""
    held = [c for c in board.cells if c.counted and c.gain is not None]
    if not held:
        return []
    behind = [c for c in held if c.gain.high < 0]
    level = [c for c in held if c.gain.low <= 0 <= c.gain.high]
    said = (
        f"The mean image is known for the clients of {len(held)} cells of the paper's that we ran "
        "on two clients or more. Subtracted client by client, the attack is above the mean image, "
        f"clear of the 95 % interval, in {len(held) - len(behind) - len(level)} of them, and below "
        f"it in {len(behind)}; for {len(level)} our clients do not tell. Were all of them level, "
        f"about {len(held) * 0.025:.0f} would be below by chance."
    )
    lost = [
        "",
        "| below the mean image | attack | mean image | difference | clients |",
        "|---|---:|---:|---:|---:|",
        *(
            f"| {names.row(c.table, c.row)}: {names.METHODS[c.method]} | {c.ours:.1f} dB | "
            f"{np.mean(c.guesses):.1f} dB | {text(float(c.gain.value), c.scale, signed=True)} "
            f"{between(c.gain, c.scale)} | {len(c.values)} |"
            for c in sorted(behind, key=lambda c: c.gain.value)
        ),
        "",
        "There the attack's pictures are further from the client's than a picture that has nothing "
        "of the client in it.",
    ]
    return [
        *("", said),
        *(lost if behind else []),
        *(["", ":::{dropdown} Where our clients do not tell"] if level else []),
        *([f"{_listed(level)}.", ":::"] if level else []),
    ]


def _listed(found: Sequence[Cell]) -> str:
    """Cells by name, the methods of a row together."""
    rows: dict[str, list[str]] = {}
    for c in sorted(found, key=lambda c: (names.row(c.table, c.row), c.method)):
        rows.setdefault(names.row(c.table, c.row), []).append(names.METHODS[c.method])
    return "; ".join(f"{row} ({', '.join(methods)})" for row, methods in rows.items())


def _worth(board: Board) -> list[str]:
    """What a guess without an attack reaches, beside SME."""
    try:
        stored = json.loads(published.results("prior_only.json"))
    except InputError:
        return []
    held: dict[str, list[dict]] = {}
    for name, values in stored.items():
        held.setdefault(name.rpartition(" ")[0], []).append(values)
    mine = _of_sme(board)
    lines = [
        "| | SME | mean image | best of 1,000 |",
        "|---|---:|---:|---:|",
    ]
    every = [v for k, v in board.guesses.items() if k.startswith("femnist 10 ")]
    alone = verdicts.mean(every).interval if len(every) > 1 else None
    for row in (r for r in ROWS["main"] if r in held and r in mine and mine[r].guesses):
        values = held[row]
        best = np.mean([v["best of 1000"] for v in values])
        said = (
            names.row("main", row),
            f"{mine[row].ours:.1f} dB ({len(mine[row].values)})",
            f"{np.mean(mine[row].guesses):.1f} dB",
            f"{best:.1f} dB ({len(values)})",
        )
        lines.append(f"| {' | '.join(said)} |")
    broken = [] if alone is None else [
        "",
        "The paper calls a picture below 18 dB visually broken. On FEMNIST the mean image alone "
        f"has {alone.value:.1f} ± {alone.half:.1f} dB over {len(every)} clients of ten images "
        "(± half of the 95 % interval): 18 dB needs no attack there.",
    ]  # fmt: skip
    return [
        "## What a decibel is worth",
        "",
        "PSNR is not zero for a picture that shows nothing of the client. Two guesses need no "
        "attack: the mean image of the data set, and, of 1,000 sets of other people's images with "
        "the client's labels, the one whose gradient fits the update best. A number below these "
        "is no evidence that anything private was recovered; nor that nothing was, for pictures "
        "below 18 dB can be legible ({doc}`chapter 9 </notebooks/09_shootout>`). Rows with other "
        "numbers of epochs have other clients; in brackets stands how many, for the mean image as "
        "many as for SME.",
        "",
        *lines,
        *broken,
        *_over_the_mean_image(board),
    ]


LEGEND = (
    "Each line is a difference between two measurements **on the same clients**, with its 95 % "
    "t-interval over the pairs; where the number of images differs, on the same first weights. "
    "A claim *holds* where the interval lies wholly on the side of zero "
    "that the paper's numbers give. ◇ is the paper's effect, ● ours."
)
READING = (
    "A claim *does not* hold where the interval lies on the other side. Nor does it where the "
    f"interval has zero in it, reaches no further than ±{verdicts.DECIBELS.band:g} dB, and has "
    "room for less than half of the paper's effect and excludes all of it, if it prints one. "
    "Where the paper's two means are within two standard errors of each other, the claim is that "
    "there is no difference: it holds within "
    f"±{verdicts.DECIBELS.band:g} dB, and does not where the interval lies wholly further out. "
    "A line says so where ours is clear of zero all the same. "
    "Everything else is *undecided*, for want of clients or, "
    f"with {verdicts.LOOKS[-1]} of them and more, because the effect lies too close to where one "
    "verdict ends and another begins.",
    "*As large*, *larger* and *smaller* compare the effect with the paper's, by the rule for cells "
    "below; where none of them stands beside a verdict, that is undecided, or the paper's effect "
    "is smaller than the band within which numbers count as equal.",
    "Where the number of images differs, a seed stands on CIFAR-100 for a client whose images "
    "contain the smaller client's, on FEMNIST mostly for another writer.",
    "After training, the clients are spread over three networks. The interval is over clients, "
    "these networks held fixed. *For these networks* stands where the verdict would be another if "
    "the networks were the sample, three numbers, each the mean of its clients.",
    "Where both sides are no better than a guess (see *What a decibel is worth*), as IG is on "
    "fifty images after many steps and DLFA on LeNet, a verdict says nothing "
    "of protection: there was little to lose.",
    "Where an effect was undecided, clients were added. Looked at with three, with five and with "
    f"ten, a true effect of zero is taken for another in {100 * verdicts.LOOKED:.0f} % of "
    "draws, not in 5 %, and more often in the lines that were looked at more often: read an "
    "interval that just leaves zero out with that in mind.",
    "DLFA's rises after training are one finding and not several: untrained, it is further below "
    "the paper's than after training.",
    "The condition on half of the paper's effect was added when the first clients of one line had "
    "been seen, IG's fall after 20 rounds with E = 20 and N = 50, which was undecided without it.",
)


def _behind(board: Board) -> list[str]:
    """Where the paper has DLFA ahead of SME: the rows of which we have a pair, and the others."""
    mine = (e for e in board.evidence if e.claim == "sme-over-dlfa" and e.effect.init == "torch")
    held = [e for e in mine if e.sign < 0]
    run = [e.effect.label for e in held if e.pairs]
    if len(run) == len(held):
        return []
    which = f"ran of these only {'; '.join(run)}, the others" if run else "ran none of these, they"
    return [
        f"In {len(held)} of the paper's rows SME is clearly behind DLFA, all after training. We "
        f"{which} are under *Not run*: the count of this claim leans towards SME."
    ]


def page(board: Board) -> str:
    """The scoreboard as a page of the book."""
    earlier = sum(c.earlier and c.counted for c in board.cells)
    note = (
        f" {earlier} cells that count are of an earlier version of the kernel." if earlier else ""
    )
    sections = [
        [TITLE],
        [
            "What the paper {cite}`zhu2023` claims, and what this book measured: "
            f"**{whom(board)}**. {' '.join(weighed(board))}{note}"
        ],
        tables.raw(f"<style>\n{(HERE / 'scoreboard.css').read_text('utf-8')}</style>"),
        ["## The claims"],
        [LEGEND],
        [":::{dropdown} How a line is read", "\n\n".join((*READING, *_behind(board))), ":::"],
        tables.claim_table(board),
        ["## The paper's PSNR, cell by cell"],
        tables.forest(board),
        _worth(board),
        ["## The rule, and what chance would give"],
        [RULE],
        ["\n\n".join(COUNTED)],
        tables.count_table(board),
        [
            " ".join(
                [
                    "The last two lines are computed from the cells' own spreads.",
                    *chance(board),
                ]
            )
        ],
        _elsewhere(board),
        ["## All cells that were run"],
        [
            "The largest differences stand first. Lines in italics are readings that do not count. "
            "Below a difference in dB stand the pictures' mean SSIM and how many of the images are "
            "above the paper's 18 dB, where our runs have these, and what the data set's mean "
            "image has for the same clients. "
            "The last column leads to the lines in `results/` that a number is made of."
        ],
        tables.cell_table(board),
        ["## Not run"],
        tables.not_run(board),
        tables.raw(f"<script>\n{(HERE / 'scoreboard.js').read_text('utf-8')}</script>"),
        [
            "`smelib scoreboard --write` writes this page from `results/`, and `smelib reproduce` "
            "fills those files: a table, or with `--claim sme-over-ig` what a claim needs. "
            "`smelib reproduce defences` fills a table of our own, with which no number of the "
            "paper is compared."
        ],
    ]
    return "\n\n".join("\n".join(lines).strip("\n") for lines in sections if lines) + "\n"
