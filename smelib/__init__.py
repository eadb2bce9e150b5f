"""smelib: the attack kernel of the book *What the Server Sees*."""

from __future__ import annotations

from importlib import import_module

from smelib.version import __version__

TYPE_CHECKING = False  # as `typing` has it, which would take longer than all the rest
if TYPE_CHECKING:
    from smelib import (
        attacks,
        auditing,
        aware,
        checks,
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
    from smelib.auditing import audit
    from smelib.data import Client
    from smelib.devices import pick_device
    from smelib.errors import InputError
    from smelib.federated import average, fedavg, local_path, local_update
    from smelib.metrics import evaluate
    from smelib.models import Network
    from smelib.types import Protocol, Reconstruction, Stop, Update

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
    "audit",
    "auditing",
    "average",
    "aware",
    "checks",
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

_HOMES = {
    "auditing": ("audit",),
    "data": ("Client",),
    "devices": ("pick_device",),
    "errors": ("InputError",),
    "federated": ("average", "fedavg", "local_path", "local_update"),
    "metrics": ("evaluate",),
    "models": ("Network",),
    "types": ("Protocol", "Reconstruction", "Stop", "Update"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """A room or a name, imported when it is first asked for: torch alone takes a second."""
    if name not in __all__ and name not in ("compiling", "devices", "errors", "types"):
        raise AttributeError(f"module 'smelib' has no attribute {name!r}")
    found = import_module(f"smelib.{_HOME.get(name, name)}")
    globals()[name] = found = getattr(found, name) if name in _HOME else found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
