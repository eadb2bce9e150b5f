"""How nbval runs the notebooks: the longest first, and with patience."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort by the seconds that each notebook took when it was stored; its cells keep their order.

    Several processes share the notebooks, and one that begins the longest last keeps all waiting.
    A cell's output may take two minutes to arrive on a busy machine; nbval's own limit is 5 s.
    """
    cells = [item for item in items if hasattr(item, "output_timeout")]
    for cell in cells:
        cell.output_timeout = 120
    cells.sort(key=lambda cell: -cell.parent.nb.metadata.get("ran", {}).get("seconds", 0))
    items[:] = cells + [item for item in items if item not in set(cells)]
