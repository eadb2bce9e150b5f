"""The source keeps to the map in CONTRIBUTING.md: rooms, import order, sizes."""

from __future__ import annotations

import re

import pytest
import rooms


def test_every_module_has_its_place_on_the_map() -> None:
    found = {p.stem for p in rooms.PACKAGE.iterdir() if p.suffix == ".py" or p.is_dir()}
    assert found - {"__init__", "__pycache__", "py"} == {room.name for room in rooms.ROOMS}


@pytest.mark.parametrize("room", rooms.ROOMS, ids=lambda room: room.name)
def test_nothing_imports_upwards(room: rooms.Room) -> None:
    order = [r.name for r in rooms.ROOMS]
    above = set(order[: order.index(room.name)])
    assert rooms.imports(room) <= above, "move what is needed down, or the room up"


def test_attacks_cannot_see_the_truth() -> None:
    """The threat model is the import list too: neither clients nor scores."""
    for room in rooms.ROOMS:
        if room.name in ("objectives", "solver", "labels", "attacks", "aware"):
            assert not rooms.imports(room) & {"data", "metrics"}, room.name


def test_what_a_student_reads_stays_small() -> None:
    total = sum(rooms.lines(rooms.read_by_students(room)) for room in rooms.ROOMS)
    assert total <= rooms.STUDENT_LINES


def test_every_function_fits_on_a_screen() -> None:
    assert not list(rooms.long_functions())


def test_the_map_is_true() -> None:
    text = rooms.PAGE.read_text("utf-8")
    true = rooms.page(text) == text
    assert true, "the table in CONTRIBUTING.md is not the source's: run `make rooms`"


def test_an_import_is_found_wherever_it_stands() -> None:
    """The test of the tests: viz imports pairing, reproduce imports attacks."""
    by_name = {room.name: room for room in rooms.ROOMS}
    assert "pairing" in rooms.imports(by_name["viz"])
    assert "attacks" in rooms.imports(by_name["reproduce"])


def test_the_api_pages_have_the_rooms_in_their_order() -> None:
    listed = re.findall(r"book/api/\w+", (rooms.ROOT / "_toc.yml").read_text("utf-8"))
    pages = [rooms.ROOT / f"{page}.md" for page in listed]
    assert sorted(pages) == sorted((rooms.ROOT / "book" / "api").glob("*.md"))
    text = "\n".join(page.read_text("utf-8") for page in pages)
    found = re.findall(r"automodule:: smelib\.(\w+)", text)
    assert list(dict.fromkeys(found)) == [r.name for r in rooms.ROOMS if r.name != "version"]
    for module in re.findall(r"automodule:: (\S+)", text):
        file = rooms.ROOT / module.replace(".", "/")
        assert file.is_dir() or file.with_suffix(".py").is_file(), f"there is no {module}"
