"""Your own images as clients: arrays, tensors, lists, and torch data sets."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import IterableDataset, Subset, TensorDataset

import smelib
from smelib.data import Client, Dataset
from smelib.types import InputError


class Pairs(TorchDataset):
    """The smallest map-style data set."""

    def __init__(self, items: list) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> object:
        return self.items[index]


# The two worked examples of the API page


def test_example_your_own_arrays_are_attacked() -> None:
    images = torch.rand(4, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    client = smelib.data.Client.of(images, labels=[0, 1, 2, 3], classes=10)

    network = smelib.models.lenet(client.shape, client.classes)
    update = smelib.local_update(network, client, smelib.Protocol(epochs=1, batch_size=4))
    stolen = smelib.attacks.ig(network, update, labels=client.labels, steps=2)
    assert stolen.images.shape == client.images.shape


def test_example_any_torch_data_set_becomes_clients() -> None:
    draw = torch.Generator().manual_seed(0)
    images, labels = torch.rand(60, 1, 8, 8, generator=draw), torch.arange(60) % 5
    held = smelib.data.Dataset.of(TensorDataset(images, labels), name="squares")

    client = smelib.data.client(held, samples=5, seed=1, distinct_labels=True)
    assert sorted(client.labels.tolist()) == [0, 1, 2, 3, 4]
    members = smelib.data.federation(held, clients=3)
    assert sum(len(member) for member in members) == 60
    assert (client.dataset, client.classes, client.shape) == ("squares", 5, (1, 8, 8))


# Client.of


def test_uint8_is_scaled_and_floats_are_kept() -> None:
    pixels = np.array([0, 51, 255, 102], np.uint8).reshape(1, 1, 2, 2)
    for given in (pixels, torch.from_numpy(pixels), list(torch.from_numpy(pixels))):
        held = Client.of(given, [0])
        assert held.images.flatten().tolist() == pytest.approx([0, 0.2, 1, 0.4])
        assert held.images.dtype == torch.float32
    floats = torch.rand(2, 3, 4, 5, dtype=torch.float64)
    assert torch.equal(Client.of(floats, [0, 1]).images, floats), "in its own precision"
    assert Client.of(floats.numpy(), [0, 1]).images.dtype == torch.float32
    assert Client.of(floats.half(), [0, 1]).images.dtype == torch.float32
    assert Client.of(floats.bfloat16(), [0, 1]).images.dtype == torch.float32


def test_nested_lists_and_odd_arrays_are_images() -> None:
    held = Client.of([[[0.0, 0.25], [0.5, 1.0]]], [1])
    assert held.shape == (1, 2, 2)
    assert held.images.flatten().tolist() == [0, 0.25, 0.5, 1]
    mirrored = np.linspace(0, 1, 8, dtype=">f4").reshape(2, 2, 2)[:, :, ::-1]
    assert Client.of(mirrored, [0, 1]).images.numpy().tolist() == mirrored[:, None].tolist()
    with_graph = [torch.rand(1, 2, 2, requires_grad=True) for _ in range(2)]
    assert torch.equal(Client.of(with_graph, [0, 1]).images, torch.stack(with_graph))
    locked = np.zeros((1, 2, 2), np.float32)
    locked.flags.writeable = False
    assert len(Client.of(locked, [0])) == 1


def test_grey_images_get_their_channel() -> None:
    images = torch.rand(3, 5, 6)
    assert torch.equal(Client.of(images, [0, 1, 1]).images, images[:, None])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_client_is_a_copy_without_a_graph(dtype: torch.dtype) -> None:
    images = torch.rand(2, 1, 4, 4, dtype=dtype, requires_grad=True)
    labels = torch.tensor([0, 1])
    held = Client.of(images, labels)
    before = held.images.clone()
    with torch.no_grad():
        images.zero_()
    labels.zero_()
    assert torch.equal(held.images, before)
    assert held.labels.tolist() == [0, 1]
    assert not held.images.requires_grad


@pytest.mark.parametrize(
    "labels", [[2, 0], (2, 0), np.array([2, 0], np.uint8), torch.tensor([2, 0], dtype=torch.int32)]
)
def test_labels_become_int64(labels: object) -> None:
    held = Client.of(torch.zeros(2, 1, 4, 4), labels)
    assert held.labels.tolist() == [2, 0]
    assert held.labels.dtype == torch.int64
    assert (held.classes, held.dataset) == (3, "own")


def test_classes_are_two_at_least_and_can_be_said() -> None:
    images = torch.zeros(1, 1, 4, 4)
    assert Client.of(images, [0]).classes == 2
    assert Client.of(images, [0], classes=62, name="mine").classes == 62
    assert Client.of(images, [0], classes=np.int64(5), name="mine").dataset == "mine"


ZEROS = torch.zeros(2, 3, 8, 8)
BAD_CLIENTS = {
    "channels last": ((torch.zeros(2, 8, 8, 3), [0, 1]), r"permute\(0, 3, 1, 2\)"),
    "channels last, grey": ((np.zeros((2, 8, 8, 1)), [0, 1]), r"permute\(0, 3, 1, 2\)"),
    "channels last, RGBA": ((np.zeros((2, 8, 8, 4)), [0, 1]), r"permute\(0, 3, 1, 2\)"),
    "no images": ((torch.zeros(0, 1, 8, 8), []), "no images"),
    "an empty list": (([], []), "no images"),
    "no pixels": ((torch.zeros(2, 1, 0, 8), [0, 1]), "no images"),
    "one row": ((torch.zeros(2, 8), [0, 1]), r"\[N, C, H, W\]"),
    "five axes": ((torch.zeros(2, 1, 1, 8, 8), [0, 1]), r"\[N, C, H, W\]"),
    "NaN": ((ZEROS / 0, [0, 1]), "NaN"),
    "infinite": ((ZEROS + float("inf"), [0, 1]), "NaN or infinite"),
    "too bright": ((ZEROS + 1.01, [0, 1]), r"\[0, 1\]"),
    "negative": ((ZEROS - 0.5, [0, 1]), r"\[0, 1\]"),
    "0 to 255 as floats": ((ZEROS + 255.0, [0, 1]), "divide"),
    "0 to 255 as int64": ((ZEROS.long() + 255, [0, 1]), "uint8"),
    "booleans": ((ZEROS.bool(), [0, 1]), "uint8"),
    "complex": ((np.zeros((2, 1, 8, 8), complex), [0, 1]), "uint8"),
    "words": (([["ink"]], [0]), "uint8"),
    "ragged": (([[[0.0, 1.0], [0.0]]], [0]), "same size"),
    "tensors of two sizes": (([torch.zeros(1, 8, 8), torch.zeros(1, 9, 9)], [0, 1]), "same size"),
    "nothing": ((None, [0]), "uint8"),
    "too few labels": ((ZEROS, [0]), "2 images and 1 label"),
    "one image without its axis": ((ZEROS[0], [0]), r"images\[None\]"),
    "one number as labels": ((ZEROS, 1), "one whole number per image"),
    "float labels": ((ZEROS, [0.0, 1.0]), "one whole number per image"),
    "NaN labels": ((ZEROS, [0, float("nan")]), "one whole number per image"),
    "one-hot labels": ((ZEROS, torch.eye(2, dtype=torch.int64)), r"argmax\(1\)"),
    "words as labels": ((ZEROS, ["cat", "dog"]), "one whole number per image"),
    "true and false": ((ZEROS, [True, False]), "one whole number per image"),
    "ragged labels": ((ZEROS, [[0], [1, 2]]), "one whole number per image"),
    "no labels": ((ZEROS, None), "one whole number per image"),
    "a negative label": ((ZEROS, [-1, 0]), "0 to"),
    "a label too large": ((ZEROS, [0, 4], 4), "0 to 3"),
    "a huge label": ((ZEROS, np.array([0, 2**64 - 1], np.uint64), 4), "0 to 3"),
    "one class": ((ZEROS, [0, 0], 1), "classes"),
    "half a class": ((ZEROS, [0, 0], 2.5), "classes"),
}


@pytest.mark.parametrize("case", BAD_CLIENTS)
def test_what_cannot_be_a_client(case: str) -> None:
    arguments, message = BAD_CLIENTS[case]
    with pytest.raises(InputError, match=message):
        Client.of(*arguments)


def test_ambiguous_shapes_have_their_channels_first() -> None:
    for shape in ((2, 3, 3, 3), (2, 1, 8, 1), (2, 3, 8, 1), (2, 1, 1, 3)):
        assert Client.of(torch.zeros(shape), [0, 1]).shape == shape[1:]


def test_direct_construction_checks_nothing() -> None:
    assert len(Client(torch.zeros(2, 1, 4, 4), torch.zeros(2), 0, "raw")) == 2


# Dataset.of


def test_every_kind_of_item_gives_the_same_images() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (4, 3, 5, 6), dtype=np.uint8)
    kinds = {
        "uint8 tensor": torch.from_numpy,
        "float tensor": lambda p: torch.from_numpy(p) / 255,
        "array": lambda p: p,
        "PIL": lambda p: Image.fromarray(p.transpose(1, 2, 0)),
    }
    for kind in kinds.values():
        held = Dataset.of(Pairs([(kind(p), i) for i, p in enumerate(pixels)]))
        client = held.client(np.arange(4))
        assert torch.allclose(client.images * 255, torch.from_numpy(pixels).float(), atol=1e-4)
        assert client.labels.tolist() == [0, 1, 2, 3]


def test_floats_are_not_rounded_to_bytes() -> None:
    exact = torch.rand(2, 1, 5, 6)
    held = Dataset.of(TensorDataset(exact, torch.tensor([0, 1])))
    assert torch.equal(held.client([0, 1]).images, exact)


@pytest.mark.parametrize(
    ("mode", "shape"),
    [("L", (1, 5, 6)), ("1", (1, 5, 6)), ("LA", (1, 5, 6)), ("P", (3, 5, 6)), ("RGBA", (3, 5, 6))],
)
def test_pil_images_of_every_mode(mode: str, shape: tuple) -> None:
    picture = Image.new("RGB", (6, 5), "white").convert(mode)
    held = Dataset.of(Pairs([(picture, 0), (picture, 1)])).client([0, 1])
    assert held.shape == shape
    assert held.images.unique().tolist() == [1.0]
    with pytest.raises(InputError, match=r"item 0.*mode"):
        Dataset.of(Pairs([(picture.convert("F"), 0)]))


def test_labels_of_items_are_whole_numbers_in_any_form() -> None:
    image = torch.zeros(1, 4, 4)
    held = Dataset.of(Pairs([(image, 1), (image, np.uint8(2)), (image, torch.tensor(3), "a name")]))
    assert held.labels.tolist() == [1, 2, 3]
    assert (held.classes, held.name) == (4, "own")


def test_classes_are_those_the_torch_data_set_names() -> None:
    pairs = Pairs([(torch.zeros(1, 4, 4), 1)])
    pairs.classes = ["cat", "dog", "owl", "fox"]
    assert Dataset.of(pairs).classes == 4
    assert Dataset.of(pairs, classes=9).classes == 9
    pairs.classes = ["cat"]
    assert Dataset.of(pairs).classes == 2
    pairs.items[0] = (torch.zeros(1, 4, 4), 5)
    assert Dataset.of(pairs).classes == 6, "a list of names that is too short is not believed"


def test_most_takes_items_from_all_over_and_only_those() -> None:
    asked = []

    class Sorted(Pairs):
        def __getitem__(self, index: int) -> tuple:
            asked.append(index)
            return super().__getitem__(index)

    large = Sorted([(torch.zeros(1, 4, 4), i // 100) for i in range(1000)])
    held = Dataset.of(large, most=20)
    assert np.bincount(held.labels).tolist() == [2] * 10
    assert len(asked) == len(set(asked)) == 20
    assert all(isinstance(index, int) for index in asked)
    assert len(Dataset.of(large, most=2000).labels) == 1000
    assert len(Dataset.of(large, most=np.int64(1)).labels) == 1
    for most in (0, -1, 1.5, "2"):
        with pytest.raises(InputError, match="most"):
            Dataset.of(large, most=most)


class Stream(IterableDataset):
    def __iter__(self) -> Iterator[tuple]:
        return iter([(torch.zeros(1, 4, 4), 0)])

    def __len__(self) -> int:
        return 1


class Endless(TorchDataset):
    def __getitem__(self, index: int) -> tuple:
        return torch.zeros(1, 4, 4), 0


IMAGE = torch.zeros(1, 4, 4)
BAD_SETS = {
    "a stream": (Stream(), "map-style"),
    "without a length": (Endless(), "map-style"),
    "a number": (3, "map-style"),
    "empty": (Pairs([]), "empty"),
    "dictionaries": (Pairs([{"image": IMAGE, "label": 0}]), r"item 0.*\(image, label\)"),
    "images alone": (Pairs([IMAGE]), r"item 0.*\(image, label\)"),
    "one thing": (Pairs([(IMAGE,)]), r"item 0.*\(image, label\)"),
    "a float label": (Pairs([(IMAGE, 0), (IMAGE, 0.5)]), "item 1.*whole number"),
    "a one-hot label": (Pairs([(IMAGE, torch.tensor([0, 1]))]), "item 0.*whole number"),
    "a word": (Pairs([(IMAGE, "cat")]), "item 0.*whole number"),
    "two sizes": (Pairs([(IMAGE, 0), (torch.zeros(1, 5, 5), 1)]), "item 1.*1×5×5.*1×4×4"),
    "a file's name": (Pairs([("cat.png", 0)]), "item 0.*'str'"),
    "channels last": (Pairs([(np.zeros((8, 8, 3), np.uint8), 0)]), r"permute\(2, 0, 1\)"),
    "too bright": (Pairs([(IMAGE + 2, 0)]), r"\[0, 1\]"),
    "a negative label": (Pairs([(IMAGE, -1)]), "0 to"),
}


@pytest.mark.parametrize("case", BAD_SETS)
def test_what_cannot_be_a_data_set(case: str) -> None:
    given, message = BAD_SETS[case]
    with pytest.raises(InputError, match=message):
        Dataset.of(given)


# Drawing from them


def test_a_torch_data_set_can_be_drawn_from_directly() -> None:
    images = torch.rand(30, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    pairs = TensorDataset(images, torch.arange(30) % 3)
    straight, through = (smelib.data.client(s, 6, seed=4) for s in (pairs, Dataset.of(pairs)))
    assert torch.equal(straight.images, through.images)
    assert len(smelib.data.federation(Subset(pairs, range(10)), clients=2)) == 2
    with pytest.raises(InputError, match="'own' has only 30 images"):
        smelib.data.client(pairs, 31)
    with pytest.raises(InputError, match="map-style"):
        smelib.data.client(3)
    with pytest.raises(InputError, match="root="):
        smelib.data.client(pairs, 2, root=".")


def test_own_data_with_writers_is_drawn_by_writer() -> None:
    images = np.arange(6, dtype=np.uint8)[:, None, None, None] * np.ones((1, 2, 2), np.uint8)
    held = Dataset("notes", images, np.arange(6), 6, np.array([1, 1, 1, 2, 2, 2]))
    assert sorted(smelib.data.client(held, 3).labels.tolist()) in ([0, 1, 2], [3, 4, 5])
    assert len(smelib.data.federation(held, split="writer")) == 2
