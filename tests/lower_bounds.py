"""Print the oldest versions that pyproject.toml allows, as constraints for pip: `a>=1` as `a==1`.

    python tests/lower_bounds.py > constraints.txt

A lower bound that nobody installs is a guess; `make lower-bounds` runs the tests on all of them.
"""

from __future__ import annotations

import re
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10, where pip brings its own copy
    from pip._vendor import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]


def constraints(project: dict) -> list[str]:
    """The lower bounds of what smelib needs to run, each as the only version allowed."""
    found = []
    for requirement in project["dependencies"]:
        bound = re.fullmatch(r"([\w-]+)>=([\d.]+)", requirement)
        if bound is None:
            raise SystemExit(f"{requirement!r} is not a lower bound like 'numpy>=1.24'")
        found.append(f"{bound[1]}=={bound[2]}")
    return found


if __name__ == "__main__":
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    print("\n".join(constraints(tomllib.loads(text)["project"])))
