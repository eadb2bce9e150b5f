"""The paper's networks, with PyTorch's or LeCun's initial weights, or the scale of one alone."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from smelib import seeds
from smelib.devices import afford
from smelib.errors import InputError, checked, nearest, whole
from smelib.models.network import Network
from smelib.models.wrapping import sizes, wrap


def _torch_init(body: nn.Module) -> None:
    """PyTorch's default: uniform, standard deviation $1/\\sqrt{3 \\cdot \\text{fan-in}}$."""


def _lecun_scale(body: nn.Module) -> None:
    """LeCun's weights: truncated normal, standard deviation $1/\\sqrt{\\text{fan-in}}$."""
    for module in body.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            fan_in = module.weight[0].numel()
            # 0.8796 is the standard deviation of a unit normal cut at two standard deviations.
            std = 1 / math.sqrt(fan_in) / 0.87962566103423978
            nn.init.trunc_normal_(module.weight, std=std, a=-2 * std, b=2 * std)


def _zero_bias(body: nn.Module) -> None:
    """No bias, at PyTorch's scale."""
    for module in body.modules():
        if isinstance(module, nn.Linear | nn.Conv2d) and module.bias is not None:
            nn.init.zeros_(module.bias)


def _lecun_init(body: nn.Module) -> None:
    """JAX's default: LeCun's scale and zero bias."""
    _lecun_scale(body)
    _zero_bias(body)


INITS = {
    "torch": _torch_init,
    "lecun": _lecun_init,
    "lecun_scale": _lecun_scale,
    "zero_bias": _zero_bias,
}


def _build(
    name: str,
    make: Callable[[], nn.Module],
    shape: tuple[int, int, int],
    classes: int,
    init: str,
    seed: int,
) -> Network:
    if not isinstance(init, str) or init not in INITS:
        raise nearest("initialisation", init, list(INITS))
    _fits(name, make, shape, classes)
    with torch.random.fork_rng(devices=[]):
        # The CPU's generator alone: torch.manual_seed would seed the GPUs' too.
        torch.default_generator.manual_seed(seeds.derive(seed, "weights"))
        body = make()
        with torch.no_grad():
            INITS[init](body)
    return wrap(body, shape, classes, name=name)


def _fits(name: str, make: Callable[[], nn.Module], shape: tuple, classes: int) -> None:
    """Refuse images that the layers do not take, and weights that no memory holds.

    Tried on PyTorch's device without numbers, which takes neither memory nor time.
    """
    size = "×".join(map(str, shape))
    try:
        with torch.device("meta"):
            body = make()
        empty = [k for k, v in body.named_parameters() if v.numel() == 0]
    except (RuntimeError, OverflowError, TypeError) as error:
        empty = [str(error).splitlines()[0]]
    if empty:
        raise InputError(
            f"the layers of {name!r} do not fit images of {size} ({empty[0]}); take larger images, "
            "or 'mlp', which takes any size."
        )
    weights = sum(v.numel() * v.element_size() for v in body.parameters())
    afford(4 * weights, f"a {name!r} for images of {size} and {classes:,} classes")


def _flat(features: nn.Module, shape: tuple[int, int, int]) -> int:
    """How many numbers the convolutions hand to the first linear layer."""
    with torch.no_grad():
        return features(torch.zeros(1, *shape)).numel()


@checked
def cnn(
    shape: tuple[int, int, int], classes: int, *, init: str = "torch", seed: int = 0
) -> Network:
    """The paper's network: two 3×3 convolutions and two linear layers; wider for RGB images."""
    shape, classes = sizes(shape, classes)
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


@checked
def mlp(
    shape: tuple[int, int, int], classes: int, *, init: str = "torch", seed: int = 0
) -> Network:
    """Three linear layers, a thousand units in each of the two hidden ones."""
    shape, classes = sizes(shape, classes)

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


@checked
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
    shape, classes = sizes(shape, classes)

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


@checked
def resnet8(
    shape: tuple[int, int, int], classes: int, *, init: str = "torch", seed: int = 0
) -> Network:
    """Three residual blocks (32, 64, 128 channels); batch-norm statistics stay frozen."""
    shape, classes = sizes(shape, classes)

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


@checked
def vit(
    shape: tuple[int, int, int],
    classes: int,
    *,
    init: str = "torch",
    seed: int = 0,
    patch: int | None = None,
) -> Network:
    """A small vision transformer of APRIL's type A; one patch of the whole image by default."""
    shape, classes = sizes(shape, classes)
    patch = shape[1] if patch is None else whole(patch, "patch")
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
    if not isinstance(name, str) or name not in NETWORKS:
        raise nearest("network", name, list(NETWORKS))
    return NETWORKS[name](shape, classes, **options)
