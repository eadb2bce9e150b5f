"""The notebooks and the configuration around them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from html import escape
from pathlib import Path

import nbformat
import pytest
import yaml

from smelib.viz.film import script
from smelib.viz.live import WIDGET

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text())
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text())


def code_cells(path: Path) -> list:
    return [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]


def compared(cell: nbformat.NotebookNode) -> bool:
    """Whether nbval compares what the cell prints: it is told by a comment, or by a tag."""
    return "NBVAL_CHECK_OUTPUT" in cell.source or "nbval-check-output" in cell.metadata.get(
        "tags", []
    )


def setup_cell(path: Path) -> str:
    return code_cells(path)[0].source


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_is_executed_checked_and_clean(path: Path) -> None:
    cells = code_cells(path)
    assert all(c.execution_count for c in cells), "run `make notebooks`"
    counts = [c.execution_count for c in cells]
    assert counts == list(range(1, len(cells) + 1)), "executed out of order; run `make notebooks`"
    assert sum(map(compared, cells)) >= 5
    for cell in cells:
        if compared(cell):
            assert cell.outputs, "a checked cell must print something to compare"
        for output in cell.outputs:
            assert output.output_type != "error"
            assert output.get("name") != "stderr", output.get("text")
            assert WIDGET not in output.get("data", {}), "a dead slider: `make notebooks`"
    assert "widgets" not in nbformat.read(path, as_version=4).metadata, "state of dead sliders"
    assert path.stat().st_size < 1_500_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_every_figure_has_a_caption_and_alt_text(path: Path) -> None:
    for cell in code_cells(path):
        if any("image/png" in o.get("data", {}) for o in cell.outputs):
            shown = cell.metadata.get("mystnb", {})
            assert shown.get("figure", {}).get("caption"), cell.source[:80]
            assert len(shown.get("image", {}).get("alt", "")) > 30, cell.source[:80]


def stored_films() -> list[tuple[str, str]]:
    """Every filmstrip that a page shows, with the page's name."""
    found = [(p.name, p.read_text("utf-8")) for p in (ROOT / "book/front").glob("film-*.html")]
    for path in NOTEBOOKS:
        outputs = [output for cell in code_cells(path) for output in cell.outputs]
        shown = [output.get("data", {}).get("text/html", "") for output in outputs]
        found += [(path.name, html) for html in shown if 'class="smelib-film"' in html]
    return found


def test_stored_films_have_the_present_script() -> None:
    films = stored_films()
    assert len(films) >= 4
    for name, html in films:
        assert escape(script()) in html, f"{name}: run `python book/films.py --shell`"
        assert len(html) <= 600_000


def test_every_notebook_is_in_the_table_of_contents() -> None:
    listed = {c["file"] for part in TOC["parts"] for c in part["chapters"]}
    assert {f"notebooks/{p.stem}" for p in NOTEBOOKS} <= listed


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)
def test_the_setup_cell_follows_the_configuration(path: Path) -> None:
    assert f"git+{CONFIG['repository']['url']}\n" in setup_cell(path)
    assert setup_cell(path) == setup_cell(NOTEBOOKS[0])


@pytest.mark.slow
def test_the_setup_cell_works_where_smelib_is_missing(tmp_path: Path) -> None:
    """A kernel outside the repository, smelib hidden, the git address led to this clone."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git clone, so pip has nothing to clone from")
    target = tmp_path / "site"
    target.mkdir()
    (tmp_path / "gitconfig").write_text(
        f'[url "file://{ROOT}"]\n\tinsteadOf = {CONFIG["repository"]["url"]}\n'
        "[safe]\n\tdirectory = *\n"
    )
    # Blocks the editable install's own finder, so that only pip's copy can be imported.
    hide = (
        "import sys, importlib.util\n"
        "sys.meta_path = [f for f in sys.meta_path if '__editable__' not in repr(f)]\n"
        f"sys.path = [p for p in sys.path if p != {str(ROOT)!r} and '__editable__' not in p]\n"
        "assert importlib.util.find_spec('smelib') is None, 'smelib must be hidden'\n"
        f"sys.path.insert(0, {str(target)!r})\n"
    )
    tell = (
        "from smelib.reproduce import provenance, published\n"
        "print('found', smelib.__file__, DEVICE, SCALE)\n"
        "print('made of', provenance.revision(), 'with', len(published.finished('main')) > 0)"
    )
    cells = [hide, setup_cell(NOTEBOOKS[0]), tell]
    script = tmp_path / "cells.ipy"
    script.write_text("\n".join(cells))
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig"),
        "PIP_TARGET": str(target),
        "PIP_NO_DEPS": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it as build_isolation=0: nothing is downloaded
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "IPYTHONDIR": str(tmp_path / "ipython"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--colors=NoColor", str(script)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert f"found {target}" in done.stdout, done.stdout + done.stderr
    words = ["git", "rev-parse", "HEAD"]
    head = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert f"made of {head.strip()} with True" in done.stdout, done.stdout + done.stderr


def test_notebooks_hold_no_machine_paths() -> None:
    for path in NOTEBOOKS:
        text = json.dumps(nbformat.read(path, as_version=4))
        assert str(ROOT) not in text
        assert str(Path.home()) + "/" not in text


@pytest.mark.slow
def test_nbval_begins_with_the_notebook_that_takes_longest() -> None:
    """Several processes share the notebooks: one that is long and last keeps all waiting."""
    words = ["--collect-only", "--nbval-lax", "notebooks"]
    command = [sys.executable, "-m", "pytest", *words]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    cells = [line.partition("::")[0] for line in listed.splitlines() if "::" in line]
    names = list(dict.fromkeys(cells))
    assert sorted(names) == [f"notebooks/{p.name}" for p in NOTEBOOKS]
    took = [nbformat.read(ROOT / name, as_version=4).metadata.ran.seconds for name in names]
    assert took == sorted(took, reverse=True)


def serve(folder: Path, port: str) -> subprocess.CompletedProcess:
    """`book/read.py` of a copy of the book's folder; it must not get as far as serving."""
    (folder / "book").mkdir()
    script = folder / "book" / "read.py"
    script.write_text((ROOT / "book" / "read.py").read_text())
    return subprocess.run(
        [sys.executable, script, port], capture_output=True, text=True, timeout=30, check=False
    )


@pytest.mark.parametrize(
    ("port", "rendered", "words"),
    [
        ("80x", True, "80x is no port"),
        ("70000", True, "a number up to 65535"),
        ("0", False, "make book renders it"),
    ],
)
def test_what_cannot_be_read_is_a_sentence(
    tmp_path: Path, port: str, rendered: bool, words: str
) -> None:
    if rendered:
        (tmp_path / "_build" / "html").mkdir(parents=True)
        (tmp_path / "_build" / "html" / "index.html").touch()
    said = serve(tmp_path, port)
    assert said.returncode == 2
    assert words in said.stderr
    assert "Traceback" not in said.stderr


def test_a_port_that_is_taken_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "_build" / "html").mkdir(parents=True)
    (tmp_path / "_build" / "html" / "index.html").touch()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = serve(tmp_path, str(taken.getsockname()[1]))
    assert said.returncode == 2
    assert "try another" in said.stderr
