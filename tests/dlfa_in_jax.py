"""DLFA against a second transcription of its published equations, in the authors' language, JAX.

Prints how far apart they are, relative: the value, and the gradient. A program of its own, because
JAX has threads, and a process with threads should not fork, as other tests do.
"""

from __future__ import annotations

import json
from functools import partial

import jax
import jax.numpy as jnp
import torch

from smelib import Protocol, data, federated, models, objectives

PROTOCOL = Protocol(epochs=3, batch_size=2, lr=0.05)
MEAN_PRIOR = {"tv": 1e-3, "clip": 2.0, "order": 1000.0, "factor": (1.0, 2.0), "until": 200}


def logits(w: dict, x):
    """Two convolutions with ReLU and mean pooling, then two dense layers."""
    for name in ("0", "3"):
        x = jax.lax.conv(x, w[f"{name}.weight"], (1, 1), "SAME")
        x = jax.nn.relu(x + w[f"{name}.bias"][:, None, None])
        n, c, h, v = x.shape
        x = x.reshape(n, c, h // 2, 2, v // 2, 2).mean(axis=(3, 5))
    x = jax.nn.relu(x.reshape(len(x), -1) @ w["7.weight"].T + w["7.bias"])
    return x @ w["9.weight"].T + w["9.bias"]


def cross_entropy(w: dict, x, y):
    return -jax.nn.log_softmax(logits(w, x))[jnp.arange(len(y)), y].mean()


def published_loss(images, *, w0, wT, y, order, mean, std, step):  # noqa: N803
    """`fac/T Σ ω_l ‖Δ_l − Δ~_l‖² + λ_TV TV + λ_clip Clip + λ_inv R`, dummies per epoch."""
    w, T = w0, 0  # noqa: N806
    for dummies, batches in zip(images, order, strict=True):
        for batch in batches:
            g = jax.grad(cross_entropy)(w, dummies[batch], y[batch])
            w = {k: w[k] - PROTOCOL.lr * g[k] for k in w}
            T += 1  # noqa: N806
    omega = {"0": 1.0, "3": jnp.exp(-1.0), "7": jnp.exp(-2.0), "9": jnp.exp(-3.0)}
    match = sum(
        omega[k.split(".")[0]] * (((w0[k] - wT[k]) - (w0[k] - w[k])) ** 2).sum() for k in w0
    )
    match = match / PROTOCOL.lr**2
    flat = images.reshape(-1, *images.shape[2:])
    across, down = (flat - jnp.roll(flat, 1, axis=a) for a in (-1, -2))
    tv = (across**2 + down**2).sum(axis=(1, 2, 3)).mean()
    pixels = flat * std + mean
    clip = ((pixels - pixels.clip(0, 1)) ** 2).sum(axis=(1, 2, 3)).mean()
    means = images.mean(axis=1)
    pairs = jnp.stack([((a - b) ** 2).mean() for a in means for b in means])
    factor = 1.0 * 2.0 ** (step / 200)
    return factor / T * match + 1e-3 * tv + 2.0 * clip + 1000.0 * pairs.mean()


def gaps() -> dict[str, float]:
    """Of one client with two batches an epoch."""
    step = 50  # where the matching term's factor is on its way
    client = data.client("mnist", 4, seed=3)
    model = models.cnn(client.shape, client.classes, seed=3)
    sent = federated.local_update(model, client, PROTOCOL, seed=3)
    update = sent.to(torch.device("cpu"), torch.float64)
    z = torch.randn(3, 4, *client.shape, generator=torch.Generator().manual_seed(1)).double()
    z.requires_grad_()

    ours = objectives.dlfa(
        model,
        update,
        client.labels,
        PROTOCOL,
        **MEAN_PRIOR,
        omega=objectives.layer_weights(update.before),
        seed=5,
    )
    value = ours(z, {}, torch.tensor(float(step)))[0]
    (slope,) = torch.autograd.grad(value, z)

    def whole(tensor: torch.Tensor):
        return jnp.asarray(tensor.detach().numpy())

    one = torch.ones(1, *client.shape).double()
    std = float((model.normalise(one) - model.normalise(0 * one)).mean().reciprocal())
    mean = float(-(model.normalise(0 * one)).mean() * std)
    drawn = [whole(b) for b in objectives.own_batches(client.labels, PROTOCOL, 5)]
    theirs = partial(
        published_loss,
        w0={k: whole(v) for k, v in update.before.items()},
        wT={k: whole(v) for k, v in update.after.items()},
        y=whole(client.labels),
        order=[drawn[2 * e : 2 * e + 2] for e in range(3)],
        mean=mean,
        std=std,
        step=step,
    )
    their_value, their_slope = jax.jit(jax.value_and_grad(theirs))(whole(z))
    gap = torch.from_numpy(their_slope.__array__().copy()) - slope
    return {
        "value": abs(float(value.detach()) / float(their_value) - 1),
        "gradient": float(gap.norm() / slope.norm()),
    }


if __name__ == "__main__":
    with jax.enable_x64(True):
        print(json.dumps(gaps()))
