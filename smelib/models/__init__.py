"""`network`, the one boundary to a module; and `zoo`, the paper's networks."""

from smelib.models.network import NORMALISATION, Loss, Network, squared_error, wrap
from smelib.models.zoo import INITS, NETWORKS, build, channels_last, cnn, lenet, mlp, resnet8, vit

__all__ = [
    "INITS",
    "NETWORKS",
    "NORMALISATION",
    "Loss",
    "Network",
    "build",
    "channels_last",
    "cnn",
    "lenet",
    "mlp",
    "resnet8",
    "squared_error",
    "vit",
    "wrap",
]
