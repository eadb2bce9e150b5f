"""Every chapter has its parts, its words, its quiz and its exercises."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from html import escape, unescape
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book"))
import repository  # noqa: E402

NOTEBOOKS = repository.chapters(ROOT)
PARTS = (  # the words of a heading, in the order of the page; the first is an admonition's title
    "What you will learn",
    "The question",
    "The idea",
    "The mathematics",
    "from scratch",
    "what we measured",
    "Check yourself",
    "Exercises",
    "What would have stopped",
    "How long this page took",
)
FENCE = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1 *$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(#+) +(.*?) *$", re.MULTILINE)
MATHEMATICS = re.compile(r"\$\$.*?\$\$(?: \([\w-]+\))?|\$[^$\n]+(?:\n[^$\n]+)?\$", re.DOTALL)
EQUATION = re.compile(r"\$\$ \((eq-[\w-]+)\)|^:label: (eq-[\w-]+)", re.MULTILINE)
EXERCISE = re.compile(r"^\*\*\d+\.\*\*", re.MULTILINE)
MARK = re.compile(r"\*\*(\d)\.\*\* \((easy|medium|hard), \d+ minutes\)")
SOLUTION = re.compile(
    r"^(:{3,}|`{3,})\{dropdown\} Solution *\n(.*?)^\1 *$", re.MULTILINE | re.DOTALL
)


def text(notebook: NotebookNode) -> str:
    """All markdown of a notebook."""
    return "\n\n".join(c.source for c in notebook.cells if c.cell_type == "markdown")


def prose(markdown: str) -> str:
    """What is read as sentences: no code, mathematics, tables, headings or citations."""
    plain = MATHEMATICS.sub(" ", FENCE.sub(" ", markdown))
    plain = re.sub(r"\{(?:doc|ref|term)\}`([^`<]+?) *<[^`]*>`", r"\1", plain)
    plain = re.sub(r"\{[\w:]+\}`[^`]*`", " ", plain)  # citations, references to equations
    plain = re.sub(r"`[^`]*`", " code ", plain)  # a name counts as one word
    plain = re.sub(r"\]\([^)]*\)", "]", plain)
    skipped = ("|", "#", ":::", ":class:", ":label:", "```")
    lines = [x for x in plain.splitlines() if not x.lstrip().startswith(skipped)]
    return "\n".join(lines)


def words(markdown: str) -> int:
    """How many words of prose, counting only what has a letter or a digit."""
    return sum(bool(re.search(r"\w", word)) for word in prose(markdown).split())


def section(notebook: NotebookNode, name: str) -> str:
    """The markdown under a heading of the second level."""
    pieces = re.split(
        r"^## +",
        FENCE.sub(lambda m: m[0].replace("\n## ", "\n "), text(notebook)),
        flags=re.MULTILINE,
    )
    return next((p for p in pieces if p.startswith(name)), "")


QUESTION = re.compile(r"<p><b>\d+\.</b> (.*?)</p>((?:<details.*?</details>)*)", re.DOTALL)
ANSWER = re.compile(r'<summary>(.*?)</summary><p class="(right|wrong)">(.*?)</p>', re.DOTALL)


def quizzes(notebook: NotebookNode) -> list[tuple[NotebookNode, list[dict]]]:
    """Cells that show a quiz, each with the questions in its stored output."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            page = output.get("data", {}).get("text/html", "")
            if 'class="smelib-quiz"' in page:
                found.append((cell, [asked(*m.groups()) for m in QUESTION.finditer(page)]))
    return found


def asked(question: str, answers: str) -> dict:
    """One question of a quiz, read back from its HTML."""
    return {
        "question": unescape(question),
        "answers": [
            {"answer": unescape(a), "correct": kind == "right", "feedback": unescape(why)}
            for a, kind, why in ANSWER.findall(answers)
        ],
    }


Complaints = Iterator[str]


def title(notebook: NotebookNode) -> Complaints:
    """The page opens with its question."""
    first = notebook.cells[0].source.splitlines()[0]
    if not re.fullmatch(r"# .+\?", first):
        yield f"the first line is no heading that asks a question: {first!r}"


def parts(notebook: NotebookNode) -> Complaints:
    """Every part is there, in the brief's order."""
    plain = FENCE.sub("", text(notebook))
    headings = [(m.start(), m[2].lower()) for m in HEADING.finditer(plain)]
    places = [plain.find(f"{{admonition}} {PARTS[0]}\n")]
    for part in PARTS[1:]:
        places.append(next((at for at, words in headings if part.lower() in words), -1))
    for part, at in zip(PARTS, places, strict=True):
        if at < 0:
            yield f"there is no part {part!r}"
    if sorted(places) != places:
        yield f"the parts are not in the order {', '.join(PARTS)}"


def length(notebook: NotebookNode) -> Complaints:
    """Long enough to explain, short enough to read."""
    count = words(text(notebook))
    if not 1200 <= count <= 3000:
        yield f"{count} words of prose; a chapter has 1,200 to 3,000"


def exercises(notebook: NotebookNode) -> Complaints:
    """Three, with difficulty and minutes, each with its solution folded away."""
    held = section(notebook, "Exercises")
    starts = [m.start() for m in EXERCISE.finditer(held)]
    if len(starts) != 3:
        yield f"{len(starts)} exercises, not three"
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(held)], strict=True), 1):
        one = held[start:end]
        mark = MARK.match(one)
        if not mark or mark[1] != str(number):
            yield f"exercise {number} is not marked '**{number}.** (easy|medium|hard, N minutes)'"
        solutions = [m[2].strip() for m in SOLUTION.finditer(one)]
        if len(solutions) != 1 or not solutions[0]:
            yield f"exercise {number} has {len(solutions)} folded solutions, or an empty one"


def quiz(notebook: NotebookNode) -> Complaints:
    """One quiz of three to five questions that says why each answer is right or wrong."""
    found = quizzes(notebook)
    if len(found) != 1:
        yield f"{len(found)} cells with a stored quiz, not one"
        return
    cell, questions = found[0]
    if "hide-input" not in cell.metadata.get("tags", []):
        yield "the quiz cell shows its answers: it needs the tag hide-input"
    calls = [n for n in ast.walk(ast.parse(cell.source)) if isinstance(n, ast.Call)]
    if not any(ast.unparse(call.func) == "smelib.viz.quiz" for call in calls):
        yield "the quiz cell does not call smelib.viz.quiz"
    if not 3 <= len(questions) <= 5:
        yield f"the quiz has {len(questions)} questions; it should have 3 to 5"
    for asked in questions:
        name, answers = asked["question"], asked["answers"]
        if len(answers) < 2 or sum(a["correct"] for a in answers) != 1:
            yield f"{name!r} needs two answers or more, one of them right"
        if any(not a.get("feedback", "").strip() for a in answers):
            yield f"{name!r} has an answer without feedback"
        if "$" in name + "".join(a["answer"] + a.get("feedback", "") for a in answers):
            yield f"{name!r} has a formula, which the quiz cannot set"


def cells(notebook: NotebookNode) -> Complaints:
    """No cell is longer than a screen."""
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and (lines := len(cell.source.splitlines())) > 30:
            yield f"code cell {number} has {lines} lines: {cell.source.splitlines()[0]}"


@cache
def equations() -> Counter[str]:
    """The labels of all equations of the book, and how often each is defined."""
    pages = [p.read_text(encoding="utf-8") for p in sorted((ROOT / "book").glob("*.md"))]
    pages += [text(nbformat.read(p, as_version=4)) for p in NOTEBOOKS]
    return Counter(a or b for page in pages for a, b in EQUATION.findall(page))


def labels(notebook: NotebookNode) -> Complaints:
    """Every equation that the page refers to exists, here or on another page, and once."""
    here, defined = text(notebook), equations()
    for label in sorted(set(re.findall(r"\{eq\}`(eq-[\w-]+)`", here))):
        if label not in defined:
            yield f"there is no equation {label}"
    own = Counter(a or b for a, b in EQUATION.findall(here))
    for label in own:
        if max(own[label], defined[label]) > 1:
            yield f"the equation {label} is defined more than once"


HIDDEN = {"hide-input", "remove-input", "hide-cell", "remove-cell"}


def tags(cell: NotebookNode) -> set[str]:
    return set(cell.metadata.get("tags", []))


def code_lines(cell: NotebookNode) -> int:
    return sum(bool(line.strip()) for line in cell.source.splitlines())


def shown(notebook: NotebookNode) -> Complaints:
    """The reader meets the idea: short cells, no test runner's comments, no tests of the page."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    visible = [cell for cell in code if not tags(cell) & HIDDEN]
    for cell in code:
        if "NBVAL" in cell.source:
            yield f"a test runner's comment: {cell.source.splitlines()[0]}"
        if tags(cell) & {"remove-cell", "remove-output"}:
            continue
        for line in "".join(o.get("text", "") for o in cell.outputs).splitlines():
            if re.search(r"(True|False)[.)]?$", line.strip()):
                yield f"a line of output that is a test: {line}"
    for cell in visible:
        if "your-turn" not in tags(cell) and code_lines(cell) > 15:
            yield f"a visible cell of {code_lines(cell)} lines: {cell.source.splitlines()[0]}"
        if re.search(r"^\s*assert ", cell.source, re.MULTILINE):
            yield f"a visible assert in the cell {cell.source.splitlines()[0]}"
    total = sum(code_lines(c) for c in visible if "your-turn" not in tags(c))
    if total > 150:
        yield f"{total} visible lines of code; at most 150"
    if (compared := sum("nbval-check-output" in tags(c) for c in code)) < 5:
        yield f"nbval compares {compared} cells; at least five"


def your_turn(notebook: NotebookNode) -> Complaints:
    """Two or three functions are the reader's: empty, one solution folded below, then a check."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    empty = [i for i, cell in enumerate(code) if "your-turn" in tags(cell)]
    if not 2 <= len(empty) <= 3:
        yield f"{len(empty)} cells tagged your-turn, not two or three"
    for i in empty:
        name = re.search(r"^def (\w+)\(", code[i].source, re.MULTILINE)
        if not name:
            yield f"no function to write in {code[i].source.splitlines()[0]}"
            continue
        solution = code[i + 1] if i + 1 < len(code) else code[i]
        if not {"solution", "hide-input"} <= tags(solution):
            yield f"{name[1]} has no folded solution right below"
        if f"@checks.unless_written({name[1]})" not in solution.source:
            yield f"the solution of {name[1]} overwrites the reader's"
        later = "\n".join(c.source for c in code[i + 1 :] if not tags(c) & HIDDEN)
        if not re.search(rf"^checks\.\w+\({name[1]}", later, re.MULTILINE):
            yield f"nothing checks {name[1]} in the open"


def links(notebook: NotebookNode) -> Complaints:
    """A chapter that is named is a link."""
    plain = re.sub(r"\{(?:doc|ref|numref)\}`[^`]*`|\[[^\]]*\]\([^)]*\)", " ", text(notebook))
    for found in re.findall(r"\b[Cc]hapters? \d+", FENCE.sub(" ", plain)):
        yield f"{found} is not a link"


SECOND_EDITION = (shown, your_turn, links)


@pytest.mark.parametrize("check", SECOND_EDITION, ids=lambda c: c.__name__)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_chapter_reads_as_a_book(path: Path, check: Callable) -> None:
    assert not list(check(nbformat.read(path, as_version=4)))


CHECKS: tuple[Callable[[NotebookNode], Complaints], ...] = (
    title,
    parts,
    length,
    exercises,
    quiz,
    cells,
    labels,
)


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_chapter_is_complete(path: Path, check: Callable) -> None:
    assert not list(check(nbformat.read(path, as_version=4)))


def swap(old: str, new: str) -> Callable[[NotebookNode], None]:
    """A way to break a notebook: other words, wherever the old ones stand in its markdown."""

    def change(notebook: NotebookNode) -> None:
        assert old in text(notebook), f"the copy has no {old!r} to break"
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = cell.source.replace(old, new)

    return change


def requiz(change: Callable[[list[dict]], object]) -> Callable[[NotebookNode], None]:
    """A way to break a notebook: other questions in its stored quiz."""

    def rewrite(notebook: NotebookNode) -> None:
        cell, questions = quizzes(notebook)[0]
        change(questions)
        shown = ""
        for i, q in enumerate(questions, 1):
            shown += f"<p><b>{i}.</b> {escape(q['question'])}</p>"
            for a in q["answers"]:
                kind, why = "right" if a["correct"] else "wrong", escape(a.get("feedback", ""))
                shown += f"<details><summary>{escape(a['answer'])}</summary>"
                shown += f'<p class="{kind}">{why}</p></details>'
        cell.outputs[0].data["text/html"] = f'<div class="smelib-quiz">{shown}</div>'

    return rewrite


def unfold(notebook: NotebookNode) -> None:
    """The first solution stands in the open."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = cell.source.replace(":::{dropdown} Solution", ":::{note}", 1)


def shorten(notebook: NotebookNode) -> None:
    """Headings, code and mathematics alone do not make a chapter."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            kept = [m[0] for m in HEADING.finditer(cell.source)]
            cell.source = "\n\n".join(
                [*kept, "$$ " + "a b " * 900 + "$$", "```\n" + "x " * 900 + "\n```"]
            )


def lengthen(notebook: NotebookNode) -> None:
    notebook.cells[2].source += " word" * 3000


def stretch(notebook: NotebookNode) -> None:
    next(c for c in notebook.cells if c.cell_type == "code").source += "\n" * 30 + "pass"


def show_answers(notebook: NotebookNode) -> None:
    quizzes(notebook)[0][0].metadata["tags"] = []


def reverse(notebook: NotebookNode) -> None:
    notebook.cells.reverse()


def visible(notebook: NotebookNode) -> NotebookNode:
    """A code cell in the open."""
    return next(c for c in notebook.cells if c.cell_type == "code" and not tags(c) & HIDDEN)


def prepend(line: str) -> Callable[[NotebookNode], None]:
    """A way to break a notebook: a line more in its first visible cell."""

    def change(notebook: NotebookNode) -> None:
        visible(notebook).source = f"{line}\n{visible(notebook).source}"

    return change


def overwrite(notebook: NotebookNode) -> None:
    for cell in notebook.cells:
        cell.source = cell.source.replace("@checks.unless_written", "@checks.another")


BREAKS = {
    "a test runner's comment": (shown, prepend("# NBVAL_CHECK_OUTPUT")),
    "an assert in the open": (shown, prepend("assert 1 == 1")),
    "a long visible cell": (shown, prepend("x = 1\n" * 16)),
    "a solution that overwrites": (your_turn, overwrite),
    "a chapter that is no link": (
        links,
        swap("## The question", "See chapter 4.\n\n## The question"),
    ),
    "the title is a statement": (title, swap("?\n\n:::{admonition}", "\n\n:::{admonition}")),
    "the parts stand upside down": (parts, reverse),
    **{f"no {p!r}": (parts, swap(p, "Something else")) for p in PARTS if p[0].isupper()},
    "nothing from scratch": (parts, swap("rom scratch", "rom elsewhere")),
    "nothing measured": (parts, swap("what we measured", "what we think")),
    "too short": (length, shorten),
    "too long": (length, lengthen),
    "two exercises": (exercises, swap("**3.**", "3.")),
    "four exercises": (exercises, swap("**2.**", "**2.** (easy, 5 minutes)\n\n**2.**")),
    "no minutes": (exercises, swap(" minutes)", ")")),
    "no such difficulty": (exercises, swap("(easy,", "(simple,")),
    "a solution in the open": (exercises, unfold),
    "no solution": (exercises, swap("Solution", "Hint")),
    "two questions": (quiz, requiz(lambda q: q.__delitem__(slice(2, None)))),
    "six questions": (quiz, requiz(lambda q: q.extend(q[:1] * 5))),
    "no feedback": (quiz, requiz(lambda q: q[0]["answers"][-1].pop("feedback"))),
    "empty feedback": (quiz, requiz(lambda q: q[1]["answers"][0].update(feedback=" "))),
    "all answers right": (
        quiz,
        requiz(lambda q: [a.update(correct=True) for a in q[0]["answers"]]),
    ),
    "a formula": (quiz, requiz(lambda q: q[0].update(question="What is $w_0$?"))),
    "the quiz shows its answers": (quiz, show_answers),
    "a cell of 40 lines": (cells, stretch),
    "a label that is nowhere": (labels, swap("{eq}`eq-update`", "{eq}`eq-upgrade`")),
    "a label twice": (labels, swap("$$ (eq-update)", "$$ (eq-update)\n\n$$ a $$ (eq-update)")),
}


@pytest.mark.parametrize("name", BREAKS)
def test_each_check_notices_a_broken_copy(name: str) -> None:
    check, damage = BREAKS[name]
    notebook = nbformat.read(ROOT / "notebooks/01_what_the_server_sees.ipynb", as_version=4)
    assert not list(check(notebook)), "the copy must be whole before it is broken"
    damage(notebook)
    assert list(check(notebook))


def test_words_are_counted_honestly() -> None:
    page = "# A title\n\nYou see $a + b$ two `x = 1` words {cite}`key`.\n\n| a | b |\n"
    assert words(page) == 5
    assert words("```python\nnot = prose\n```\n$$\na b c\n$$ (eq-x)\nprose") == 1
    assert words(":::{dropdown} Solution\nSee [the page](link.md), or {doc}`that <x>`.\n:::") == 5
