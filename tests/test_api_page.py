"""The examples of the API pages run, one after the other, as a reader would paste them."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib as mpl
import pytest

BOOK = Path(__file__).resolve().parents[1] / "book"
PAGES = [BOOK / "api.md", BOOK / "api" / "extend.md"]
EXAMPLES = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_every_example_runs(capsys: pytest.CaptureFixture) -> None:
    mpl.use("Agg")
    examples = [e for page in PAGES for e in EXAMPLES.findall(page.read_text("utf-8"))]
    names: dict = {"__name__": "page"}
    for source in examples:
        short = re.sub(r"\bsteps=\d+", "steps=2", source)
        try:
            exec(compile(short, "the API pages", "exec"), names)
        except Exception as error:
            pytest.fail(f"{type(error).__name__}: {error}\nin the example\n{source}")
    assert len(examples) >= 8
    assert "PSNR" in capsys.readouterr().out
