"""Print the oldest versions that pyproject.toml allows, as constraints for pip: `a>=1` as `a==1`.

    python tests/lower_bounds.py > constraints.txt

A lower bound that nobody installs is a guess; `make lower-bounds` runs the tests on all of them.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def dependencies(text: str) -> list[str]:
    """What smelib needs to run. Python 3.10 cannot read TOML, but this list is Python too."""
    return ast.literal_eval(re.search(r"^dependencies = (\[.*?^\])", text, re.M | re.S)[1])


def constraints(requirements: list[str]) -> list[str]:
    """The lower bounds, each as the only version allowed."""
    found = []
    for requirement in requirements:
        bound = re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement)
        if bound is None:
            raise SystemExit(f"{requirement!r} is not a lower bound like 'numpy>=1.24'")
        found.append(f"{bound[1]}=={bound[2]}")
    return found


if __name__ == "__main__":
    print("\n".join(constraints(dependencies((ROOT / "pyproject.toml").read_text("utf-8")))))
