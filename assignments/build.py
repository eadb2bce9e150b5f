"""Write the student versions: `python -m assignments.build [--check | --solved FOLDER]`.

With `--check` nothing is written, and the exit code is 1 where a file is out of date. `--solved`
writes the instructor's versions, with the solutions, to a folder that you keep to yourself.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode, v4

from assignments import catalogue
from assignments.marking import Assignment

ROOT = Path(__file__).resolve().parents[1]
RELEASE = ROOT / "assignments" / "release"
sys.path.insert(0, str(ROOT / "book"))
import repository  # noqa: E402

WORDS = {"topk": "top-k"}  # aspects that students read under another name
HAND_IN = """## Hand in

Choose *Kernel, Restart and run all* (on Colab *Runtime, Restart session and run all*) and read the
checks' lines once more. Download the notebook as `.ipynb` (on Colab *File, Download*) and hand in
that file. What counts is what your functions return: neither the file's name nor the order of the
cells matters, but the functions' names do."""


def _title(assignment: Assignment, number: int) -> str:
    link = repository.colab(ROOT, ROOT / "assignments" / "release" / f"{assignment.name}.ipynb")
    goals = "\n".join(f"{i}. {goal}" for i, goal in enumerate(assignment.goals, 1))
    chapters = ", ".join(f"{{doc}}`{int(c[:2])} <../../notebooks/{c}>`" for c in assignment.reads)
    by_hand = sum(points for _, points, _ in assignment.rubric)
    return f"""# Assignment {number}: {assignment.title}

[Open in Colab]({link})

:::{{admonition}} What you will learn to do
:class: tip
{goals}
:::

About {assignment.minutes} minutes; {assignment.worth} points by checks and {by_hand} by a person.
Read first: {"chapters" if len(assignment.reads) > 1 else "chapter"} {chapters}."""


def _worth(assignment: Assignment, source: str) -> str:
    """Each `{{name}}` becomes what the part is worth; each question says its points."""
    for part in assignment.parts:
        detail = ", ".join(f"{WORDS.get(aspect, aspect)} {n}" for aspect, n in part.points.items())
        words = f"*`{part.name}`: {part.worth} points*"
        if len(part.points) > 1:
            words = f"*`{part.name}`: {part.worth} points ({detail})*"
        source = source.replace(f"{{{{{part.name}}}}}", words)
    for what, points, _ in assignment.rubric:
        question = f"**{what.partition(':')[0]}** ("
        source = source.replace(question, f"{question}{points} points, ")
    return source


def notebook(assignment: Assignment, number: int, *, solved: bool = False) -> NotebookNode:
    """The student's version, or the instructor's."""
    setup = next(
        c
        for c in nbformat.read(repository.chapters(ROOT)[0], as_version=4).cells
        if c.cell_type == "code"
    )
    made = [v4.new_markdown_cell(_title(assignment, number))]
    made.append(v4.new_code_cell(setup.source, metadata={"tags": ["hide-input"]}))
    for cell in catalogue.cells(assignment.name):
        if cell.code:
            hide = catalogue.SOLUTION.sub(r"\g<1>...\n", cell.source + "\n").rstrip()
            mine = {"tags": ["your-turn"]} if hide != cell.source and not solved else {}
            made.append(v4.new_code_cell(cell.source if solved else hide, metadata=mine))
        else:
            made.append(v4.new_markdown_cell(_worth(assignment, cell.source)))
    made.append(v4.new_markdown_cell(HAND_IN))
    for i, cell in enumerate(made):
        cell["id"] = f"{assignment.name}-{i}".replace("_", "-")
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return v4.new_notebook(cells=made, metadata={"kernelspec": kernel})


def texts(*, solved: bool = False) -> dict[str, str]:
    """Every version as the text of its file."""
    found = {}
    for number, assignment in enumerate(catalogue.load().values(), 1):
        book = notebook(assignment, number, solved=solved)
        nbformat.validate(book)
        found[f"{assignment.name}.ipynb"] = nbformat.writes(book) + "\n"
    return found


def main(arguments: list[str]) -> int:
    """The exit code: 1 where `--check` finds something out of date."""
    parser = argparse.ArgumentParser(prog="python -m assignments.build", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, say what is old")
    parser.add_argument("--solved", type=Path, metavar="FOLDER", help="the instructor's versions")
    given = parser.parse_args(arguments)
    folder = given.solved or RELEASE
    wanted = texts(solved=bool(given.solved))
    old = {p.name for p in folder.glob("*.ipynb")} - set(wanted)
    stale = [n for n, t in wanted.items() if _text(folder / n) != t] + sorted(old)
    if given.check:
        for name in stale:
            print(f"assignments/release/{name} is out of date: run `make assignments`")
        return int(bool(stale))
    folder.mkdir(parents=True, exist_ok=True)
    for name in stale:
        if name in old:
            (folder / name).unlink()
        else:
            (folder / name).write_text(wanted[name], encoding="utf-8")
        print(f"{'removed' if name in old else 'wrote'} {folder.name}/{name}")
    return 0


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
