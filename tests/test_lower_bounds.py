"""Every dependency has a lower bound that `make lower-bounds` can install."""

from __future__ import annotations

import lower_bounds
import pytest


def test_a_lower_bound_becomes_the_only_version() -> None:
    found = lower_bounds.constraints(["numpy>=1.24", "scikit-image>=0.21"])
    assert found == ["numpy==1.24", "scikit-image==0.21"]


@pytest.mark.parametrize("requirement", ["numpy", "numpy==1.24", "numpy>=1.24,<2"])
def test_anything_but_a_lower_bound_is_named(requirement: str) -> None:
    """An upper bound or a pin would replace what a Colab runtime has."""
    with pytest.raises(SystemExit, match="numpy"):
        lower_bounds.constraints([requirement])


def test_the_projects_own_dependencies_have_one_each() -> None:
    own = lower_bounds.dependencies((lower_bounds.ROOT / "pyproject.toml").read_text("utf-8"))
    assert any(bound.startswith("torch==") for bound in lower_bounds.constraints(own))
