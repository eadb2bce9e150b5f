"""A defence is a function from update to update; the one that does nothing changes nothing."""

from __future__ import annotations

import textwrap
from pathlib import Path

import torch

from smelib import defences
from smelib.types import Update


def update() -> Update:
    draw = torch.Generator().manual_seed(0)
    before, after = ({"w": torch.randn(3, 4, generator=draw)} for _ in range(2))
    return Update(before, after, 5)


def test_none_sends_the_update_itself_and_draws_nothing() -> None:
    sent, generator = update(), torch.Generator().manual_seed(1)
    state = generator.get_state()
    assert defences.none(sent, generator) is sent
    assert torch.equal(generator.get_state(), state)


def test_the_example_of_the_documentation_is_a_defence() -> None:
    text = Path(defences.__file__).read_text(encoding="utf-8")
    example = text.partition(".. code-block:: python\n")[2].partition('"""')[0]
    names = {"Update": Update, "Defence": defences.Defence, "torch": torch}
    exec(textwrap.dedent(example), names)
    held = update()
    kept = {k: v.clone() for k, v in held.after.items()}
    first, again, other = (
        names["noise"](0.1)(held, torch.Generator().manual_seed(s)) for s in (0, 0, 1)
    )
    assert torch.equal(held.after["w"], kept["w"])
    assert torch.equal(first.before["w"], held.before["w"])
    assert torch.equal(first.after["w"], again.after["w"])
    assert not torch.equal(first.after["w"], other.after["w"])
    assert 0.03 < float((first.after["w"] - kept["w"]).std()) < 0.3
