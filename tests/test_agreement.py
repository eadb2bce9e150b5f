"""A number that stands on two pages has one value: the scoreboard's, and the chapters' outputs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from html import unescape
from itertools import product
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
METHODS = ("IG", "SME", "DLFA")
FIRST = "FEMNIST, E = 10, N = 10"
WEIGHTS = {"torch": "PyTorch's", "lecun": "LeCun's"}
NUMBER = r"[-+−]?\d+\.\d+"
# ours, its error if it has one, and in brackets how many clients
OURS = rf"({NUMBER})(?: ± +{NUMBER})? +\((\d+)\)"
Fact = tuple[tuple[str, ...], str, str]  # what, its value as printed, clients


def bare(html: str) -> str:
    """The words of a piece of HTML, without its asides."""
    return unescape(re.sub(r"<small.*?</small>|<[^>]+>", "", html, flags=re.S))


def rows(kind: str) -> list[dict[str, str]]:
    """The lines of one of the scoreboard's tables, by the names of their columns."""
    text = (ROOT / "book" / "scoreboard.md").read_text("utf-8")
    table = text.split(f'<div class="scores {kind} ')[1].split("</table>")[0]
    found = []
    for line in re.findall(r"<tr[^>]*>(.*?)</tr>", table, re.S):
        cells = re.findall(r'<td data-is="(.*?)">(.*?)</td>', line, re.S)
        found.append({name: bare(v) for name, v in cells})
    return [row for row in found if row]


@cache
def board() -> dict[tuple[str, ...], tuple[str, str]]:
    """Every number on the scoreboard: what it is, its value and its clients."""
    found = {}
    for row in rows("cells"):
        found[row["quantity"], row["row"], row["method"], row["weights"]] = (
            row["ours"],
            row["clients"],
        )
    text = (ROOT / "book" / "scoreboard.md").read_text("utf-8")
    claims = text.split('<div class="scores claims ')[1].split("</table>")[0]
    for claim in claims.split('<tr class="claim">')[1:]:
        words = bare(claim.split('<span class="count"')[0])
        for line in re.findall(r"<tr>(.*?)</tr>", claim, re.S):
            cells = dict(re.findall(r'<td data-is="(.*?)">(.*?)</td>', line, re.S))
            weights = "LeCun's" if "LeCun" in cells["setting"] else "PyTorch's"
            label = re.sub(r" <small.*", "", cells["setting"])
            found[words, label, weights] = re.sub(r" <small.*", "", cells["ours"]), cells["pairs"]
    return found


def printed(chapter: str) -> list[str]:
    """The lines that a chapter's stored outputs print, those of its tables among them."""
    (path,) = (ROOT / "notebooks").glob(f"{chapter}_*.ipynb")
    cells = json.loads(path.read_text("utf-8"))["cells"]
    outputs = [o for c in cells for o in c.get("outputs", ())]
    texts = ["".join(o.get("text", "")) for o in outputs]
    for kind in ("text/plain", "text/markdown"):
        texts += ["".join(o.get("data", {}).get(kind, "")) for o in outputs]
    return [line for text in texts for line in text.splitlines()]


def spelt(name: str) -> str:
    """A row's name as the scoreboard spells it; a wide table says `R5 E10 N50`."""
    short = re.fullmatch(r"(untrained|R(\d+)|[\w-]+) E(\d+) N(\d+)", name)
    if short is None:
        return name
    who, rounds, epochs, images = short.groups()
    who = "FEMNIST" if who == "untrained" else who
    who = f"FEMNIST after {rounds} rounds" if rounds else who
    return f"{who}, E = {epochs}, N = {images}"


def tabled(chapter: str) -> Iterator[dict[str, str]]:
    """The lines of a chapter's tables, by the names of their columns."""
    (path,) = (ROOT / "notebooks").glob(f"{chapter}_*.ipynb")
    cells = json.loads(path.read_text("utf-8"))["cells"]
    for output in (o for c in cells for o in c.get("outputs", ())):
        page = "".join(output.get("data", {}).get("text/html", ""))
        if 'class="smelib-table"' not in page:
            continue
        rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in page.split("<tr>")[1:]]
        rows = [[unescape(re.sub(r"<[^>]+>", "", cell)) for cell in row] for row in rows]
        for row in rows[1:]:
            row[0] = spelt(row[0])
            yield dict(zip(rows[0], row, strict=True))


def chapter_3() -> Iterator[Fact]:
    pattern = rf"^E = (\d+) +{NUMBER} dB +({NUMBER}) dB +(\d+)$"
    for e, value, n in re.findall(pattern, "\n".join(printed("03")), re.M):
        yield ("PSNR (dB)", f"FEMNIST, E = {e}, N = 10", "IG", "PyTorch's"), value, n


def chapter_7() -> Iterator[Fact]:
    pattern = rf"([\w-]+), E = (\d+) +(IG|SME) +{NUMBER} dB +({NUMBER}) ± {NUMBER} dB +(\d+)"
    for name, e, method, value, n in re.findall(pattern, "\n".join(printed("07"))):
        yield ("PSNR (dB)", f"{name}, E = {e}, N = 10", method, "PyTorch's"), value, n


def chapter_8() -> Iterator[Fact]:
    pattern = (
        rf"^(IG|SME|DLFA) +{NUMBER} dB +({NUMBER}) ± {NUMBER} dB +{NUMBER} +({NUMBER}) ± {NUMBER} +"
        r"(\d+)$"
    )
    for method, psnr, loss, n in re.findall(pattern, "\n".join(printed("08")), re.M):
        yield ("PSNR (dB)", FIRST, method, "PyTorch's"), psnr, n
        yield ("Lsim", FIRST, method, "PyTorch's"), loss, n


def chapter_9() -> Iterator[Fact]:
    for line in tabled("09"):
        name = next(iter(line.values()))
        if "PSNR in dB" in line and f"{METHODS[0]}, ours" in line:
            for method in METHODS:
                if match := re.match(OURS, line[f"{method}, ours"]):
                    yield ("PSNR (dB)", name, method, "PyTorch's"), match[1], match[2]
        for second, words in (("IG", "SME recovers better"), ("DLFA", "SME against DLFA")):
            if match := re.match(OURS, line.get(f"SME − {second}, ours", "")):
                yield (words, name, "PyTorch's"), match[1], match[2]
        for quantity in ("time", "memory"):
            if "DLFA over SME" in line and (ours := line[f"{quantity}, ours"]):
                value, n = re.fullmatch(rf"({NUMBER}×) \((\d+)\)", ours).groups()
                yield (f"{quantity} ÷ SME's", name, "DLFA", "PyTorch's"), value, n
        for whose in WEIGHTS.values() if "cosine at w0" in line else ():
            if match := re.match(OURS, line[f"ours, {whose}"]):
                yield ("cosine at α = 0", name, "path", whose), match[1], match[2]
        if match := re.match(OURS, line.get("ours, dB (clients)", "")):
            yield ("PSNR (dB)", name, line["attack"], line["weights"]), match[1], match[2]


def chapter_10() -> Iterator[Fact]:
    for line in tabled("10"):
        name = next(iter(line.values()))
        for method in METHODS:
            if not (match := re.match(OURS, line.get(f"{method}, ours", ""))):
                continue
            if "change of PSNR in dB" in line:
                label = name.replace("FEMNIST", method)
                yield ("Training protects", label, "PyTorch's"), match[1], match[2]
            elif "PSNR in dB" in line:
                yield ("PSNR (dB)", name, method, "PyTorch's"), match[1], match[2]
        for method, whose in product(METHODS, WEIGHTS.values()):
            if match := re.match(OURS, line.get(f"{method}: {whose}", "")):
                yield ("PSNR (dB)", name, method, whose), match[1], match[2]


def chapter_11() -> Iterator[Fact]:
    for line in printed("11"):
        if found := re.match(r"(\w+, E = \d+, N = \d+) +\d", line):
            columns = re.findall(rf"{NUMBER} \| ({NUMBER}) \((\d+)\)|  (–)", line)
            # LeNet in the form that the chapter finds to be the paper's
            weights = "PyTorch's, softmax" if line.startswith("LeNet") else "PyTorch's"
            for method, (value, n, _) in zip(METHODS, columns, strict=False):
                if value:
                    yield ("PSNR (dB)", found[1], method, weights), value, n
    for line in tabled("11"):
        form = re.fullmatch(r"(one|two) softmax(?:es)?, rate 0.4, (.*)", next(iter(line.values())))
        for method, column in zip(METHODS, ("IG", "SME", "DLFA, at the end"), strict=True):
            if form and (match := re.match(OURS, line[column])):
                weights = form[2] + ", softmax" * (form[1] == "two")
                yield ("PSNR (dB)", "LeNet, E = 10, N = 10", method, weights), match[1], match[2]


def chapter_12() -> Iterator[Fact]:
    for line in tabled("12"):
        for method in ("IG", "SME") if "recovered minus given" in line else ():
            if match := re.match(rf"({NUMBER}) \[.*?\] \((\d+)\)", line[method]):
                setting = f"{method}, {line['recovered minus given']}"
                what = ("Beyond the paper: labels read", setting, line["weights"])
                yield what, match[1], match[2]


CHAPTERS = {  # and how many numbers of the scoreboard each prints at least
    chapter_3: 3,
    chapter_7: 6,
    chapter_8: 6,
    chapter_9: 60,
    chapter_10: 61,
    chapter_11: 40,
    chapter_12: 8,
}


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.__name__)
def test_a_chapter_prints_the_scoreboard_s_numbers(chapter) -> None:
    """The same cell, the same value, the same clients; and the test does find the numbers."""
    seen = 0
    for what, value, n in chapter():
        if len(what) == 3:  # a claim is named by how its words begin
            keys = [k for k in board() if len(k) == 3 and k[0].startswith(what[0])]
            keys = [k for k in keys if k[1:] == what[1:]]
            if not keys:
                continue  # the chapter has settings that no claim has
            (what,) = keys
        assert what in board(), f"{what} is not on the scoreboard; run `make scoreboard`"
        ours, clients = board()[what]
        same = ours == value and n in ("", clients)
        assert same, f"{what}: {value} ({n}) in {chapter.__name__}, {ours} ({clients}) on the board"
        seen += 1
    assert seen >= CHAPTERS[chapter], f"only {seen} numbers were recognised"
