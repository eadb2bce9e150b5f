"""`network`, the one boundary to a module; `wrapping`, for your own; `zoo`, the paper's."""

from smelib.models.network import NORMALISATION, Loss, Network, squared_error
from smelib.models.wrapping import channels_last, check_derivatives, wrap
from smelib.models.zoo import INITS, NETWORKS, build, cnn, lenet, mlp, resnet8, vit

__all__ = [
    "INITS",
    "NETWORKS",
    "NORMALISATION",
    "Loss",
    "Network",
    "build",
    "channels_last",
    "check_derivatives",
    "cnn",
    "lenet",
    "mlp",
    "resnet8",
    "squared_error",
    "vit",
    "wrap",
]
