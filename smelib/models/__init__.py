"""`network`, the one boundary to a module; and `zoo`, the paper's networks."""

from smelib.models.network import NORMALISATION, Network, wrap
from smelib.models.zoo import INITS, NETWORKS, build, cnn, lenet, mlp, resnet8, vit

__all__ = [
    "INITS",
    "NETWORKS",
    "NORMALISATION",
    "Network",
    "build",
    "cnn",
    "lenet",
    "mlp",
    "resnet8",
    "vit",
    "wrap",
]
