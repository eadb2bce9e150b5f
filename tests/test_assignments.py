"""The assignments: one source, what students get, and marks that can be trusted."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import nbformat
import numpy as np
import pytest
from handed_in import (
    NAMES,
    ROOT,
    SOLVED,
    Mutant,
    code,
    lost,
    marks,
    mutants,
    repository,
    slides,
    written,
)
from nbclient import NotebookClient

from assignments import build, catalogue, grade, marking
from assignments.pool import Limits, Sandbox
from smelib import theory
from smelib.checks import planes

ALONE = "a5_recount"  # the page that is downloaded alone
ALL = [
    pytest.param(name, mutant, id=f"{name}: {mutant.says}")
    for name in NAMES
    for mutant in mutants(name)
]


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    """Little processor time, lest a loop take long, and much patience: the machine may be busy."""
    with Sandbox(limits=Limits(cpu=4, wall=240)) as found:
        yield found


# What students get.


def test_the_student_versions_are_what_the_source_gives(capsys: pytest.CaptureFixture) -> None:
    assert build.main(["--check"]) == 0, capsys.readouterr().out


def test_a_version_that_is_old_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shutil.copytree(build.RELEASE, tmp_path / "release")
    monkeypatch.setattr(build, "RELEASE", tmp_path / "release")
    page = tmp_path / "release" / f"{NAMES[0]}.ipynb"
    page.write_text(page.read_text("utf-8").replace("minutes", "hours"), "utf-8")
    (tmp_path / "release" / "a9_gone.ipynb").write_text("{}")
    assert build.main(["--check"]) == 1
    assert build.main([]) == 0
    assert build.main(["--check"]) == 0
    assert not (tmp_path / "release" / "a9_gone.ipynb").exists()


@pytest.mark.parametrize("name", NAMES)
def test_no_line_of_a_solution_or_a_hidden_check_is_released(name: str) -> None:
    released = (build.RELEASE / f"{name}.ipynb").read_text("utf-8")
    assert "SOLUTION" not in released
    shown = {
        line.strip()
        for cell in json.loads(released)["cells"]
        for line in "".join(cell["source"]).splitlines()
    }
    solutions = [
        line.strip()
        for cell in catalogue.cells(name)
        for match in catalogue.SOLUTION.finditer(cell.source + "\n")
        for line in match[2].splitlines()
    ]
    hidden = (catalogue.SOURCE / f"{name}.py").read_text("utf-8").splitlines()
    assert len(solutions) > 10
    secret = {line for line in [*solutions, *map(str.strip, hidden)] if len(line) > 8}
    imports = {line for line in secret if re.match(r"(from|import) ", line)}
    assert not (secret - imports) & shown
    assert str(marking.HIDDEN) not in released
    for _, _, answer in catalogue.load()[name].rubric:
        assert answer[:40] not in released


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_a_stub_and_a_visible_check_for_every_part(name: str) -> None:
    assignment = catalogue.load()[name]
    book = nbformat.read(build.RELEASE / f"{name}.ipynb", as_version=4)
    source = "\n".join(c.source for c in book.cells if c.cell_type == "code")
    text = "\n".join(c.source for c in book.cells if c.cell_type == "markdown")
    for part in assignment.parts:
        assert re.search(rf"^def {part.name}\(.*\):\n    \"\"\".*\"\"\"\n    \.\.\.$", source, re.M)
        assert re.search(rf"^checks\.\w+\({part.name}\)$", source, re.M)
        assert f"*`{part.name}`: {part.worth} points" in text
    assert 120 <= assignment.minutes <= 180
    assert len(assignment.goals) == 3
    link = repository.colab(ROOT, build.RELEASE / f"{name}.ipynb")
    assert f"]({link})" in book.cells[0].source
    assert "{{" not in text + source
    for question, _, _ in assignment.rubric:
        assert f"**{question.split(':')[0]}**" in text


@pytest.mark.parametrize("name", NAMES)
def test_visible_checks_name_five_mistakes_or_more(name: str) -> None:
    checks = [part.check for part in catalogue.load()[name].parts if part.check]
    said = {m.says for check in checks for m in check.check.mistakes}
    assert len(said) >= 5


def test_the_book_s_own_counter_example_does_not_count() -> None:
    """Chapter 5's, as its page draws it, however it is turned; a trail of one's own does."""
    page = nbformat.read(ROOT / "notebooks" / "05_gradient_flow_2d.ipynb", as_version=4)
    names = {"np": np, "theory": theory}
    exec(next(c.source for c in page.cells if "stray = theory.trail" in c.source), names)
    turn = np.array([[-0.8, 0.6], [-0.6, -0.8]])
    for shape, size in ((np.diag([-2, 2]), 2), (2.5 * turn, 2.5), (np.eye(2), 1)):
        copy = (names["points"] @ shape, 0.1, 0.3 * size, size**2 * 23.82)
        assert all("chapter 5's own walk" in said for said in planes.broken(copy).values())
    own = {}
    exec("\n".join(catalogue.load()["a3_plane"].cells), own)
    assert not any(planes.broken(own["counter_example"]()).values())


# Marks.


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_solution_gets_full_marks(name: str, box: Sandbox, tmp_path: Path) -> None:
    path = tmp_path / "solved.ipynb"
    path.write_text(SOLVED[name], "utf-8")
    record = grade.grade(box, path)
    assert record["assignment"] == name
    found = [marking.Mark(**m) for m in record["marks"]]
    assert not lost(found)
    assert sum(m.points for m in found) == catalogue.load()[name].worth


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_unchanged_page_gets_zero(name: str, box: Sandbox) -> None:
    record = grade.grade(box, build.RELEASE / f"{name}.ipynb")
    assert record["assignment"] == name
    assert [m["points"] for m in record["marks"]] == [0] * len(record["marks"])
    assert all("not written yet" in m["says"] for m in record["marks"])


@pytest.mark.parametrize("name", NAMES)
def test_five_wrong_answers_or_more(name: str) -> None:
    assert len(mutants(name)) >= 5


@pytest.mark.slow
@pytest.mark.parametrize(("name", "mutant"), ALL)
def test_a_wrong_answer_loses_marks_where_it_is_wrong_and_only_there(
    name: str, mutant: Mutant, box: Sandbox, tmp_path: Path
) -> None:
    path = written(tmp_path / "wrong.ipynb", [*code(name), mutant.source])
    found = lost(marks(box, path))
    assert set(found) == mutant.loses
    assert any(mutant.says in says for says in found.values()), found


# Pages that run.


def executed(cells: list[str], folder: Path) -> nbformat.NotebookNode:
    """A notebook of these cells, run to its end whatever happens on the way."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    where = {"metadata": {"path": str(folder)}}
    return NotebookClient(book, timeout=900, allow_errors=True, resources=where).execute()


def errors(book: nbformat.NotebookNode) -> list[str]:
    outputs = [o for c in book.cells for o in c.outputs if o.output_type == "error"]
    return [f"{o.ename}: {o.evalue}" for o in outputs]


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in NAMES if n != ALONE])
def test_the_solved_page_runs(name: str, tmp_path: Path) -> None:
    """With shorter experiments, which print or draw the same."""
    short = {"steps=80": "steps=2", "steps=150": "steps=2", "steps=40": "steps=4"}
    cells = code(name)
    for old, new in short.items():
        cells = [c.replace(old, new) for c in cells]
    assert errors(executed(cells, tmp_path)) == []


@pytest.mark.slow
def test_a_page_downloaded_alone_installs_runs_and_checks_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel outside the repository, smelib hidden, the git address led to this clone."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git clone, so pip has nothing to clone from")
    site, alone = tmp_path / "site", tmp_path / "downloads"
    for folder in (site, alone):
        folder.mkdir()
    (tmp_path / "gitconfig").write_text(
        f'[url "file://{ROOT}"]\n\tinsteadOf = {repository.address(ROOT)}\n'
        "[safe]\n\tdirectory = *\n"
    )
    settings = {
        "GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig"),
        "PIP_TARGET": str(site),
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as build_isolation=0: nothing is downloaded
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "IPYTHONDIR": str(tmp_path / "ipython"),
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    hide = (
        "import sys, importlib.util\n"
        "sys.meta_path = [f for f in sys.meta_path if '__editable__' not in repr(f)]\n"
        f"sys.path = [p for p in sys.path if p != {str(ROOT)!r} and '__editable__' not in p]\n"
        "assert importlib.util.find_spec('smelib') is None, 'smelib must be hidden'\n"
        f"sys.path.insert(0, {str(site)!r})\n"
    )
    page = nbformat.read(build.RELEASE / f"{ALONE}.ipynb", as_version=4)
    stubs = [c.source for c in page.cells if c.cell_type == "code"]
    where = "print(smelib.__file__)"
    untouched = executed([hide, *stubs, where], alone)
    assert str(site) in untouched.cells[-1].outputs[-1].text, errors(untouched)
    told = [e for e in errors(untouched) if e.startswith("NotYet: write ")]
    assert len(told) == len(catalogue.load()[ALONE].parts), errors(untouched)
    solved = executed([hide.replace("assert ", "# "), *code(ALONE), where], alone)
    assert errors(solved) == []
    assert str(site) in solved.cells[-1].outputs[-1].text
    said = "".join(o.get("text", "") for c in solved.cells for o in c.outputs)
    assert said.count("agrees with smelib on 5") == len(catalogue.load()[ALONE].parts)


@pytest.mark.slow
def test_a_chapter_s_figure_becomes_a_vector_graphic(tmp_path: Path) -> None:
    """Drawn in the book's style, which makes sharp pixels of it on a page."""
    draw = "with smelib.viz.style():\n    plt.plot([1, 2])\nplt.show()"
    cells = ["import smelib\nimport matplotlib.pyplot as plt", draw]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
    ((picture, _, _),) = slides.figures(slides.execute(book, tmp_path))
    assert "<svg" in picture
    assert "<path" in picture


def test_figures_for_slides_are_written_and_listed(tmp_path: Path) -> None:
    cell = nbformat.v4.new_code_cell("1")
    cell.metadata["mystnb"] = {"figure": {"caption": "A\nfinding"}, "image": {"alt": "Two lines."}}
    cell.outputs = [nbformat.v4.new_output("display_data", {"image/svg+xml": "<svg/>"})]
    book = nbformat.v4.new_notebook(cells=[cell])
    slides.write(tmp_path, {"07_sme": slides.figures(book)})
    assert (tmp_path / "07_sme-1.svg").read_text() == "<svg/>"
    index = (tmp_path / "index.md").read_text("utf-8")
    assert "[07_sme-1.svg](07_sme-1.svg): A finding  \n  Two lines." in index
