"""smelib: the attack kernel of the book *What the Server Sees*."""

from smelib import (
    attacks,
    data,
    defences,
    federated,
    labels,
    metrics,
    models,
    objectives,
    pairing,
    params,
    presets,
    seeds,
    solver,
    theory,
    viz,
)
from smelib.data import Client
from smelib.devices import pick_device
from smelib.errors import InputError
from smelib.federated import average, fedavg, local_path, local_update
from smelib.metrics import evaluate
from smelib.models import Network
from smelib.types import Protocol, Reconstruction, Stop, Update
from smelib.version import __version__

__all__ = [
    "Client",
    "InputError",
    "Network",
    "Protocol",
    "Reconstruction",
    "Stop",
    "Update",
    "__version__",
    "attacks",
    "average",
    "data",
    "defences",
    "evaluate",
    "fedavg",
    "federated",
    "labels",
    "local_path",
    "local_update",
    "metrics",
    "models",
    "objectives",
    "pairing",
    "params",
    "pick_device",
    "presets",
    "seeds",
    "solver",
    "theory",
    "viz",
]
