"""smelib: the attack kernel of the book *What the Server Sees*."""

from smelib import (
    attacks,
    data,
    federated,
    labels,
    metrics,
    models,
    objectives,
    params,
    solver,
    theory,
    viz,
)
from smelib.federated import average, fedavg, local_path, local_update
from smelib.metrics import evaluate
from smelib.types import InputError, Protocol, Reconstruction, Update
from smelib.version import __version__

__all__ = [
    "InputError",
    "Protocol",
    "Reconstruction",
    "Update",
    "__version__",
    "attacks",
    "average",
    "data",
    "evaluate",
    "fedavg",
    "federated",
    "labels",
    "local_path",
    "local_update",
    "metrics",
    "models",
    "objectives",
    "params",
    "solver",
    "theory",
    "viz",
]
