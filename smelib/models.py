"""The paper's networks as pure functions of their weights.

A `Network` holds no state an attack could disturb: its weights are a dict that you pass in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from smelib.types import InputError, Params, Update, nearest, same_layout

# The one place where pixels are normalised: FEMNIST's and CIFAR-100's mean and standard deviation.
NORMALISATION = {
    1: ((0.96424,), (0.15768,)),
    3: ((0.5071, 0.4866, 0.4409), (0.2673, 0.2564, 0.2762)),
}


@dataclass(frozen=True)
class Network:
    """A classifier of `shape` images into `classes` classes, and how its pixels are normalised.

    `logits(params, z)` takes *normalised* images `z` and any weights; `network(images)` takes
    images in [0, 1] and uses the network's own weights. `body` is any `nn.Module` from normalised
    images to logits; it runs in eval mode and is never changed.
    """

    body: nn.Module
    shape: tuple[int, int, int]
    classes: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    name: str = "custom"

    def __post_init__(self) -> None:
        self.body.eval()

    def params(self) -> Params:
        """A copy of the network's own weights."""
        return {k: v.detach().clone() for k, v in self.body.named_parameters()}

    def logits(self, params: Params, z: Tensor) -> Tensor:
        """Class scores of normalised images under the given weights."""
        buffers = {k: v.to(z) for k, v in self.body.named_buffers() if v.is_floating_point()}
        return functional_call(self.body, {**params, **buffers}, (z,))

    def __call__(self, images: Tensor) -> Tensor:
        """Class scores of images in [0, 1] under the network's own weights."""
        return self.logits(self.params(), self.normalise(images))

    def normalise(self, images: Tensor) -> Tensor:
        """[0, 1] pixels to the space in which the network and the attacks work."""
        return (images - self._channel(self.mean, images)) / self._channel(self.std, images)

    def denormalise(self, z: Tensor) -> Tensor:
        """The inverse of `normalise`."""
        return z * self._channel(self.std, z) + self._channel(self.mean, z)

    def box(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """The normalised values of a black and a white pixel, channel by channel."""
        zero = torch.zeros(len(self.mean), 1, 1, device=like.device, dtype=like.dtype)
        return self.normalise(zero), self.normalise(zero + 1)

    def head(self) -> tuple[str, str]:
        """Names of the last linear layer's weight and bias, where the labels leak."""
        own = dict(self.body.named_parameters())
        weight = [k for k, v in own.items() if v.ndim == 2 and v.shape[0] == self.classes]
        bias = [k for k, v in own.items() if v.ndim == 1 and v.shape[0] == self.classes]
        if not weight or not bias:
            raise InputError(
                f"{self.name!r} has no last linear layer with a bias and {self.classes} outputs, "
                "and labels are read from there; give the labels instead."
            )
        return weight[-1], bias[-1]

    def own(self, update: Update) -> Update:
        """The update in the network's order of parameters; refused if it is another network's.

        Files sort names as they like, and sums over layers depend on the order.
        """
        names = dict(self.body.named_parameters())
        same_layout(update.before, names, "before", self.name)
        before, after = ({k: w[k] for k in names} for w in (update.before, update.after))
        return Update(before, after, update.samples)

    @staticmethod
    def _channel(values: tuple[float, ...], like: Tensor) -> Tensor:
        return torch.tensor(values, device=like.device, dtype=like.dtype).view(-1, 1, 1)


def wrap(
    body: nn.Module,
    shape: tuple[int, int, int],
    classes: int,
    *,
    mean: tuple[float, ...] | None = None,
    std: tuple[float, ...] | None = None,
    name: str = "custom",
) -> Network:
    """Make a `Network` of your own module; `mean` and `std` default to the paper's data sets'."""
    if len(shape) != 3 or (shape[0] not in NORMALISATION and (mean is None or std is None)):
        raise InputError(
            f"images of shape {tuple(shape)} need mean= and std=, one value per channel; "
            "only [1, H, W] and [3, H, W] have defaults."
        )
    defaults = NORMALISATION.get(shape[0], ((), ()))
    mean = tuple(defaults[0] if mean is None else mean)
    std = tuple(defaults[1] if std is None else std)
    if len(mean) != shape[0] or len(std) != shape[0] or min(std) <= 0:
        raise InputError(f"mean and std need {shape[0]} values each, and std positive ones.")
    return Network(body, tuple(shape), classes, mean, std, name)


def _torch_init(body: nn.Module) -> None:
    """PyTorch's default: uniform, standard deviation $1/\\sqrt{3 \\cdot \\text{fan-in}}$."""


def _lecun_init(body: nn.Module) -> None:
    """JAX's default: truncated normal, standard deviation $1/\\sqrt{\\text{fan-in}}$, zero bias."""
    for module in body.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            fan_in = module.weight[0].numel()
            # 0.8796 is the standard deviation of a unit normal cut at two standard deviations.
            std = 1 / math.sqrt(fan_in) / 0.87962566103423978
            nn.init.trunc_normal_(module.weight, std=std, a=-2 * std, b=2 * std)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


INITS = {"torch": _torch_init, "lecun": _lecun_init}


def _build(
    name: str,
    make: Callable[[], nn.Module],
    shape: tuple[int, int, int],
    classes: int,
    init: str,
    seed: int,
) -> Network:
    if init not in INITS:
        raise nearest("initialisation", init, list(INITS))
    if classes < 2:
        raise InputError(f"a classifier needs at least 2 classes, not {classes}.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        body = make()
        with torch.no_grad():
            INITS[init](body)
    return wrap(body, shape, classes, name=name)


def _flat(features: nn.Module, shape: tuple[int, int, int]) -> int:
    """How many numbers the convolutions hand to the first linear layer."""
    with torch.no_grad():
        return features(torch.zeros(1, *shape)).numel()


def cnn(
    shape: tuple[int, int, int], classes: int, *, init: str = "torch", seed: int = 0
) -> Network:
    """The paper's network: two 3×3 convolutions and two linear layers; wider for RGB images."""
    a, b, hidden = (32, 64, 100) if shape[0] == 1 else (64, 128, 200)

    def make() -> nn.Module:
        features = nn.Sequential(
            nn.Conv2d(shape[0], a, 3, padding=1),
            nn.ReLU(),
            nn.AvgPool2d(2),
            nn.Conv2d(a, b, 3, padding=1),
            nn.ReLU(),
            nn.AvgPool2d(2),
            nn.Flatten(),
        )
        flat = _flat(features, shape)
        return nn.Sequential(
            *features, nn.Linear(flat, hidden), nn.ReLU(), nn.Linear(hidden, classes)
        )

    return _build("cnn", make, shape, classes, init, seed)


def mlp(
    shape: tuple[int, int, int], classes: int, *, init: str = "torch", seed: int = 0
) -> Network:
    """Three linear layers with a thousand hidden units each."""

    def make() -> nn.Module:
        return nn.Sequential(
            nn.Flatten(),
            nn.Linear(math.prod(shape), 1000),
            nn.ReLU(),
            nn.Linear(1000, 1000),
            nn.ReLU(),
            nn.Linear(1000, classes),
        )

    return _build("mlp", make, shape, classes, init, seed)


def lenet(
    shape: tuple[int, int, int],
    classes: int,
    *,
    init: str = "torch",
    seed: int = 0,
    softmax: bool = False,
) -> Network:
    """LeNet-5 with tanh and average pooling.

    `softmax=True` adds the softmax that the official SME code puts before the cross-entropy.
    """

    def make() -> nn.Module:
        features = nn.Sequential(
            nn.Conv2d(shape[0], 6, 5, padding=2 if shape[-1] <= 28 else 0),
            nn.Tanh(),
            nn.AvgPool2d(2),
            nn.Conv2d(6, 16, 5),
            nn.Tanh(),
            nn.AvgPool2d(2),
            nn.Flatten(),
        )
        layers = [nn.Linear(_flat(features, shape), 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh()]
        end = [nn.Linear(84, classes)] + ([nn.Softmax(dim=-1)] if softmax else [])
        return nn.Sequential(*features, *layers, *end)

    return _build("lenet", make, shape, classes, init, seed)


class _Block(nn.Module):
    """Two 3×3 convolutions around a shortcut; the first halves the picture."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=2, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride=2, bias=False)
        self.norm3 = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm2(self.conv2(self.norm1(self.conv1(x)).relu()))
        return (y + self.norm3(self.shortcut(x))).relu()


def resnet8(
    shape: tuple[int, int, int], classes: int, *, init: str = "torch", seed: int = 0
) -> Network:
    """Three residual blocks (32, 64, 128 channels); batch-norm statistics stay frozen."""

    def make() -> nn.Module:
        features = nn.Sequential(
            nn.Conv2d(shape[0], 32, 3, padding=1, bias=False),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            _Block(32, 32),
            _Block(32, 64),
            _Block(64, 128),
            nn.Flatten(),
        ).eval()
        flat = _flat(features, shape)
        return nn.Sequential(*features, nn.Linear(flat, 1000), nn.ReLU(), nn.Linear(1000, classes))

    return _build("resnet8", make, shape, classes, init, seed)


class _Attention(nn.Module):
    """Multi-head self-attention, spelt out: the fused kernels have no second derivative."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        n, tokens, dim = x.shape
        q, k, v = self.qkv(x).reshape(n, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-1, -2) / math.sqrt(dim // self.heads)).softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(n, tokens, dim))


class _Encoder(nn.Module):
    """A transformer block; `bare` drops the attention's LayerNorm and shortcut (APRIL type A)."""

    def __init__(self, dim: int, heads: int, ratio: int, bare: bool) -> None:
        super().__init__()
        self.norm1 = None if bare else nn.LayerNorm(dim)
        self.attention = _Attention(dim, heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(
            nn.Linear(dim, ratio * dim), nn.GELU(), nn.Linear(ratio * dim, dim)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.attention(x) if self.norm1 is None else x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class _ViT(nn.Module):
    def __init__(self, shape: tuple[int, int, int], classes: int, patch: int, dim: int) -> None:
        super().__init__()
        tokens = (shape[1] // patch) * (shape[2] // patch)
        self.embed = nn.Conv2d(shape[0], dim, patch, stride=patch)
        self.token = nn.Parameter(0.02 * torch.randn(1, 1, dim))
        self.position = nn.Parameter(0.02 * torch.randn(1, 1 + tokens, dim))
        self.blocks = nn.Sequential(*(_Encoder(dim, 4, 2, bare=i == 0) for i in range(4)))
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, classes))

    def forward(self, z: Tensor) -> Tensor:
        patches = self.embed(z).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(z), -1, -1), patches], dim=1) + self.position
        return self.head(self.norm(self.blocks(x))[:, 0])


def vit(
    shape: tuple[int, int, int],
    classes: int,
    *,
    init: str = "torch",
    seed: int = 0,
    patch: int | None = None,
) -> Network:
    """A small vision transformer of APRIL's type A; one patch of the whole image by default."""
    patch = patch or shape[1]
    if shape[1] % patch or shape[2] % patch:
        raise InputError(f"patches of {patch} pixels do not tile a {shape[1]}×{shape[2]} image.")
    return _build("vit", lambda: _ViT(shape, classes, patch, 384), shape, classes, init, seed)


NETWORKS: dict[str, Callable[..., Network]] = {
    "cnn": cnn,
    "mlp": mlp,
    "lenet": lenet,
    "resnet8": resnet8,
    "vit": vit,
}


def build(name: str, shape: tuple[int, int, int], classes: int, **options: object) -> Network:
    """A network by name, for the command line."""
    if name not in NETWORKS:
        raise nearest("network", name, list(NETWORKS))
    return NETWORKS[name](shape, classes, **options)
