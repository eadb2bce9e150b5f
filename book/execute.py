"""Execute the notebooks of the table of contents, in order, and store their outputs.

    python book/execute.py [NAME ...]

A notebook that fails keeps its old outputs, and the error is shown.
"""

from __future__ import annotations

import platform
import sys
import time
from datetime import date
from pathlib import Path

import nbformat
import torch
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from repository import notebooks
from tqdm.auto import tqdm

import smelib
from smelib import pick_device
from smelib.viz.live import WIDGET

ROOT = Path(__file__).resolve().parents[1]


def execute(path: Path) -> float:
    """Run one notebook in a fresh kernel and write it back; returns the seconds it took."""
    notebook = nbformat.read(path, as_version=4)
    started = time.perf_counter()
    place = {"metadata": {"path": str(ROOT)}}
    how = {"coalesce_streams": True, "store_widget_state": False}
    NotebookClient(notebook, timeout=600, resources=place, **how).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # time stamps, which would change at every run
        if cell.cell_type == "code":  # a slider dies with its kernel
            cell.outputs = [o for o in cell.outputs if WIDGET not in o.get("data", {})]
    notebook.metadata["language_info"] = {"name": "python"}
    seconds = time.perf_counter() - started
    notebook.metadata["ran"] = {"seconds": round(seconds), **machine()}
    nbformat.write(notebook, path)
    return seconds


def machine() -> dict[str, str]:
    """On what, with what and when: the book's status page shows it."""
    kind = pick_device().type
    name = torch.cuda.get_device_name() if kind == "cuda" else kind.upper()
    return {
        "date": date.today().isoformat(),
        "device": name,
        "python": platform.python_version(),
        "torch": torch.__version__.partition("+")[0],
        "smelib": smelib.__version__,
    }


def main() -> int:
    """Execute the named notebooks, or all; exit code 1 if one fails."""
    wanted = sys.argv[1:]
    found = [p for p in notebooks(ROOT) if not wanted or any(w in p.stem for w in wanted)]
    if not found:
        print(f"no notebook is called like {' or '.join(wanted)}", file=sys.stderr)
        return 2
    bar = tqdm(found, disable=None)
    for path in bar:
        bar.set_description(path.stem)
        try:
            print(f"{path.stem}: {execute(path):.0f} s", flush=True)
        except CellExecutionError as error:
            print(f"{path.stem} failed:\n{error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
