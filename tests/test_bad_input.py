"""Bad input of every kind, one row each: what was given, and what the sentence says of it.

At the command line a row ends with exit code 2, one line on standard error, nothing on standard
output and no new file; in Python it raises `InputError`. A row more is a line more.
"""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

import smelib
from smelib import (
    InputError,
    Protocol,
    Update,
    attacks,
    cli,
    data,
    federated,
    labels,
    metrics,
    models,
)
from smelib.reproduce.store import HEADER

NAN, INF = float("nan"), float("inf")


def everything(folder: Path) -> dict[str, bytes | None]:
    """All files and folders, and what is in them."""
    return {str(f): f.read_bytes() if f.is_file() else None for f in sorted(folder.rglob("*"))}


def refused(argv: list[str], folder: Path, capsys: pytest.CaptureFixture) -> str:
    """Run a command that must fail, and leave no trace in a folder; return its sentence."""
    before = everything(folder)
    try:
        code = cli.main(argv)
    except SystemExit as stop:
        code = stop.code
    said = capsys.readouterr()
    assert code == 2, said
    assert said.out == ""
    assert said.err.startswith("smelib: "), said.err
    assert said.err.count("\n") == 1, said.err
    assert "Traceback" not in said.err
    assert everything(folder) == before, "something was written"
    return said.err


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of a short attack, some files of others, and a table of results."""
    room = tmp_path_factory.mktemp("place")
    words = "--samples 2 --epochs 1 --steps 1 --network lenet --json"
    assert cli.main(["attack", *words.split(), "--out", str(room / "run")]) == 0
    (room / "file").write_text("keep me")
    (room / "dangling").symlink_to(room / "nowhere")
    (room / "blocked" / "result.json").mkdir(parents=True)
    (room / "foreign").mkdir()
    (room / "foreign" / "main.csv").write_text("name,price\n")
    (room / "ours").mkdir()
    (room / "ours" / "main.csv").write_text(HEADER + "\n")
    (room / "old").mkdir()
    (room / "old" / "main.csv").write_text("table,row,method,seed\n")
    (room / "notes.md").write_text("my notes")
    return room


# The command line: no command, a wrong one, and what every command takes

TOP = [
    ("", "required: COMMAND"),
    ("atack", "invalid choice: 'atack'"),
    ("--verison", "required: COMMAND"),
    ("-x", "required: COMMAND"),
    ("attack attack", "unrecognized arguments: attack"),
    ("attack --steps", "expected one argument"),
    ("attack --s 3", "ambiguous option"),
    ("attack -- x", "unrecognized arguments"),
    ("audit", "required: --before, --after"),
    ("reproduce", "name a table (main"),
    ("scoreboard results", "unrecognized arguments: results"),
    ("scoreboard --wirte", "unrecognized arguments: --wirte"),
]

ATTACK = [
    ("--method smee", "did you mean 'sme'"),
    ("--method SME", "choose one of dlg, ig, sme"),
    ("--method=", "there is no method ''"),
    ("--method dlg", "single step"),
    ("--method dlg --epochs 1 --batch-size 5", "single step"),
    ("--network cnnn", "did you mean 'cnn'"),
    ("--network resnet18", "did you mean 'resnet8'"),
    ("--network=", "there is no network ''"),
    ("--network lenet.pt", "did you mean 'lenet'"),
    ("--dataset mnits", "did you mean 'mnist'"),
    ("--dataset MNIST", "choose one of mnist"),
    ("--dataset=", "there is no data set ''"),
    ("--dataset imagenet", "choose one of mnist"),
    ("--init xavier", "choose one of torch, lecun"),
    ("--init=", "choose one of torch, lecun"),
    ("--samples 0", "at least 1"),
    ("--samples -3", "at least 1"),
    ("--samples 2.5", "'2.5' is not a whole number"),
    ("--samples ten", "'ten' is not a whole number"),
    ("--samples=", "'' is not a whole number"),
    ("--samples nan", "'nan' is not a whole number"),
    ("--samples 5001", "has only 5000 images"),
    ("--samples 1000000000", "has only 5000 images"),
    ("--samples 1" + 30 * "0", "has only 5000 images"),
    ("--samples 11 --distinct-labels", "has only 10 different labels"),
    ("--dataset photos --samples 481", "has only 480 images"),
    ("--epochs 0", "epochs is 0"),
    ("--epochs -1", "epochs is -1"),
    ("--epochs 1.5", "'1.5' is not a whole number"),
    ("--epochs ten", "'ten' is not a whole number"),
    ("--epochs 1000000000000", "local steps"),
    ("--epochs 10000001", "local steps"),
    ("--epochs 2000000 --batch-size 1", "20,000,000 local steps"),
    ("--batch-size 0", "batch_size is 0"),
    ("--batch-size -1", "batch_size is -1"),
    ("--batch-size 2.0", "'2.0' is not a whole number"),
    ("--batch-size all", "'all' is not a whole number"),
    ("--lr 0", "positive"),
    ("--lr -1", "positive"),
    ("--lr nan", "not a number"),
    ("--lr inf", "not a number"),
    ("--lr 1e400", "not a number"),
    ("--lr 1e-400", "positive"),
    ("--lr x", "'x' is not a number"),
    ("--lr 0,004", "'0,004' is not a number"),
    ("--lr=", "'' is not a number"),
    ("--steps 0", "at least one"),
    ("--steps -5", "at least one"),
    ("--steps 1e3", "'1e3' is not a whole number"),
    ("--steps many", "'many' is not a whole number"),
    ("--steps 1000000000000", "GB of memory"),
    ("--steps 1" + 25 * "0", "GB of memory"),
    ("--restarts 0", "at least one start"),
    ("--restarts -1", "at least one start"),
    ("--restarts 0.5", "'0.5' is not a whole number"),
    ("--restarts 1000000000", "GB of memory"),
    ("--seed -1", "'-1' is not a whole number from 0"),
    ("--seed 1e20", "'1e20' is not a whole number from 0"),
    ("--seed 1.5", "'1.5' is not a whole number from 0"),
    ("--seed 100000000000000000000", "from 0 to 2^63 - 1"),
    ("--seed 9223372036854775808", "from 0 to 2^63 - 1"),
    ("--seed random", "'random' is not a whole number from 0"),
    ("--seed=", "'' is not a whole number from 0"),
    ("--preset fats", "did you mean 'fast'"),
    ("--preset=", "choose one of paper, fast"),
    ("--labels 1,2", "10 integer labels"),
    ("--labels some", "a list like 3,1,4"),
    ("--labels=", "a list like 3,1,4"),
    ("--labels 1,,2", "a list like 3,1,4"),
    ("--labels 1.5,2", "a list like 3,1,4"),
    ("--samples 2 --labels 1,10", "label 10 is out of range"),
    ("--samples 2 --labels 1,-1", "label -1 is out of range"),
    ("--samples 2 --labels 1,99999999999999999999", "a list like 3,1,4"),
    ("--samples 2 --labels 1,2,3", "needs 2 integer labels"),
    ("--device cuda:77", "cannot be used"),
    ("--device gpu", "cannot be used"),
    ("--device=", "cannot be used"),
    ("--methd ig", "unrecognized arguments"),
    ("--out", "expected one argument"),
    ("--out {place}/file", "is a file; name a folder"),
    ("--out {place}/file/deeper", "is a file; name a folder"),
    ("--out {place}/file/deep/er", "is a file; name a folder"),
    ("--out {place}/dangling", "is a file; name a folder"),
    ("--out {place}/blocked", "has a folder called result.json"),
    ("--out {place}/" + 300 * "x", "File name too long"),
    ("--out {place}/" + 60 * "deep/" + 300 * "x", "File name too long"),
    ("--out /proc/nowhere", "cannot be written"),
    ("--out /dev/null", "is a file; name a folder"),
    ("--dataset femnist", "Three ways"),
    ("--dataset cifar100", "smelib attack --dataset cifar100 --download"),
    ("--dataset femnist --data-root /no/such/folder", "does not exist"),
    ("--dataset femnist --data-root {place}/file", "is the file file, which is not femnist.npz"),
    ("--dataset femnist --data-root {place}/dangling", "does not exist"),
    ("--dataset emnist --data-root {place}/foreign", "Three ways"),
    ("--dataset femnist --data-root {place}/foreign", "Three ways"),
]

AUDIT = [
    ("--before {place}/none.safetensors", "no such file"),
    ("--after {place}/none.safetensors", "no such file"),
    ("--before {place}", "is a folder"),
    ("--before {place}/file", "safetensors"),
    ("--after {place}/run/images.png", "safetensors"),
    ("--after {place}/run/images.safetensors", "is it another network"),
    ("--after {place}/run/w0.safetensors", "are equal"),
    ("--network mlp", "is it another network"),
    ("--network cnnn", "did you mean 'cnn'"),
    ("--method smee", "did you mean 'sme'"),
    ("--method dlfa", "add --epochs"),
    ("--method dlg", "add --epochs"),
    ("--classes 11", "shape"),
    ("--classes 1", "at least 2"),
    ("--classes 0", "at least 2"),
    ("--classes -2", "at least 2"),
    ("--classes ten", "'ten' is not a whole number"),
    ("--classes 1000000000000", "GB of memory"),
    ("--samples 0", "at least 1"),
    ("--samples -2", "at least 1"),
    ("--samples x", "'x' is not a whole number"),
    ("--samples 10000000000", "GB of memory"),
    ("--dataset-shape 28x28", "like 1x28x28"),
    ("--dataset-shape 28", "like 1x28x28"),
    ("--dataset-shape 1x28x28x1", "like 1x28x28"),
    ("--dataset-shape 1,28,28", "like 1x28x28"),
    ("--dataset-shape axbxc", "like 1x28x28"),
    ("--dataset-shape=", "like 1x28x28"),
    ("--dataset-shape 28x28x1", "did you mean 1x28x28?"),
    ("--dataset-shape 32x32x3", "did you mean 3x32x32?"),
    ("--dataset-shape 0x28x28", "at least 1"),
    ("--dataset-shape 1x-28x28", "at least 1"),
    ("--dataset-shape 2x28x28", "mean= and std="),
    ("--dataset-shape 1x1x1", "do not fit images of 1×1×1"),
    ("--dataset-shape 1x8x8", "do not fit images of 1×8×8"),
    ("--dataset-shape 1x8x8 --network cnn", "do not name the same parameters"),
    ("--dataset-shape 1x1000000x1000000", "GB of memory"),
    ("--dataset-shape 1x1" + 12 * "0" + "x1" + 12 * "0", "do not fit images"),
    ("--lr 0.1", "give --epochs, --batch-size and --lr together"),
    ("--epochs 2 --batch-size 2", "together"),
    ("--normalisation raww", "did you mean 'raw'"),
    ("--normalisation imagenet", "for 1 channels"),
    ("--normalisation raw --mean 0", "and not both"),
    ("--mean 0.5", "--mean and --std together"),
    ("--std 0.5", "--mean and --std together"),
    ("--mean x --std 1", "no list of numbers"),
    ("--mean nan --std 1", "nan"),
    ("--mean 0.5 --std 0", "std positive"),
    ("--mean 0.5,0.5 --std 1,1", "1 values each"),
    ("--batch-norm btach", "did you mean 'batch'"),
    ("--network nowhere:make", "there is no module 'nowhere'"),
    ("--network json:laods", "did you mean 'loads'"),
    ("--network json:dumps", "calling it failed"),
    ("--network fractions:Fraction", "gives a Fraction"),
    ("--network os.path", "name the function or class too"),
    ("--network none.pt2", "no such file"),
    ("--network {place}/run/images.pt2", "no such file"),
    ("--labels 1,12", "out of range"),
    ("--labels 1", "2 integer labels"),
    ("--labels x", "a list like 3,1,4"),
    ("--labels 1,99999999999999999999", "a list like 3,1,4"),
    ("--seed -1", "'-1' is not a whole number from 0"),
    ("--seed 1.5", "'1.5' is not a whole number from 0"),
    ("--seed 1e20", "'1e20' is not a whole number from 0"),
    ("--steps 0", "at least one"),
    ("--steps 1000000000000", "GB of memory"),
    ("--restarts 1000000000", "GB of memory"),
    ("--lr x", "'x' is not a number"),
    ("--lr nan", "not a number"),
    ("--device cuda:77", "cannot be used"),
    ("--preset fats", "did you mean 'fast'"),
    ("--out {place}/file", "is a file; name a folder"),
    ("--out /proc/nowhere", "cannot be written"),
]

REPRODUCE = [
    ("mian", "did you mean 'main'"),
    ("main extra", "unrecognized arguments: extra"),
    ("main --claim rounds", "name one of the two"),
    ("--claim sme-over-gi", "did you mean 'sme-over-ig'"),
    ("--claim cost --rows femnist-E10-N50", "leave --rows away"),
    ("--claim rounds --seeds 0", "at least one client"),
    ("--claim sme-over-ig", "is not here. Three ways"),
    ("main --rows femnist-E10-N11", "did you mean 'femnist-E10-N10'"),
    ("main --methods smee", "did you mean 'sme'"),
    ("main --inits xavier", "choose one of torch, lecun"),
    ("trained --inits xavier", "choose one of torch, lecun"),
    ("main --seeds 0", "at least one client"),
    ("main --seeds -1", "at least one client"),
    ("main --seeds 1.5", "'1.5' is not a whole number"),
    ("main --seeds 1000000000000", "up to 10,000 clients"),
    ("main --workers 0", "at most 10,000"),
    ("main --workers -1", "at most 10,000"),
    ("main --workers 1000000000", "at most 10,000"),
    ("main --workers all", "'all' is not a whole number"),
    ("main --backend rya", "did you mean 'ray'"),
    ("main --gpus x", "'x' is not a number"),
    ("main --gpus -1", "not negative"),
    ("main --gpus nan", "not a number"),
    ("main --time-limit 2", "like 2h, 90m"),
    ("main --time-limit 2hours", "like 2h, 90m"),
    ("main --time-limit=", "like 2h, 90m"),
    ("main --time-limit -1h", "expected one argument"),
    ("main --data-root /no/such/folder", "does not exist"),
    ("main --data-root {place}/file", "is not"),
    ("main", "is not here. Three ways"),
    ("tiny --out {place}/file", "is a file; name a folder"),
    ("tiny --out {place}/file/deeper", "is a file; name a folder"),
    ("tiny --out /proc/nowhere", "cannot be written"),
    ("tiny --out {place}/dangling", "is a file; name a folder"),
]

SCOREBOARD = [
    ("--results {place}/none", "there is no such folder"),
    ("--out {place}/file", "there is no such folder"),
    ("--out {place}/foreign", "holds no results"),
    ("--out {place}/foreign --write", "holds no results"),
    ("--out {place}/run", "holds no results"),
    ("--out {place}/old", "was not written by this version"),
    ("--out {place}/ours --write --page {place}/notes.md", "is not a scoreboard"),
    ("--out {place}/ours --write --page {place}/run/images.png", "is not a scoreboard"),
    ("--out {place}/ours --write --page {place}/none/page.md", "there is no folder"),
    ("--out {place}/ours --write --page {place}/run", "is a folder; name a file"),
    ("--out {place}/ours --write --page {place}/file/page.md", "there is no folder"),
]


def words(text: str, place: Path) -> list[str]:
    return text.replace("{place}", str(place)).split()


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No data set but those that packages carry."""
    monkeypatch.delenv("SMELIB_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


AUDITED = "--before {place}/run/w0.safetensors --after {place}/run/wT.safetensors --network lenet "
AUDITED += "--dataset-shape 1x28x28 --classes 10 --samples 2 --steps 1 "


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    ("typed", "says"),
    [
        *TOP,
        *(("attack " + typed, says) for typed, says in ATTACK),
        *(("audit " + AUDITED + typed, says) for typed, says in AUDIT),
        *(("reproduce " + typed, says) for typed, says in REPRODUCE),
        *(("scoreboard " + typed, says) for typed, says in SCOREBOARD),
    ],
    ids=lambda text: text.replace(AUDITED, "")[:60],
)
def test_at_the_terminal(place: Path, typed: str, says: str, capsys: pytest.CaptureFixture) -> None:
    assert says in refused(words(typed, place), place, capsys)


# Files under the data root, and weights

PIXELS = np.zeros((3, 28, 28), np.uint8)
NUMBERS = np.arange(3)
WRITER = {"x": [[0.5] * 784] * 3, "y": [1, 2, 3]}


def npz(**arrays: object) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def leaf(**held: object) -> bytes:
    """One of LEAF's files, in which one writer holds something else."""
    return json.dumps({"user_data": {"ann": WRITER, "bob": {**WRITER, **held}}}).encode()


def bomb() -> bytes:
    """An archive that claims an array larger than any memory."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        header = "{'descr': '|u1', 'fortran_order': False, 'shape': (4611686018427387904,)}"
        padded = header.ljust(117) + "\n"
        file.writestr("images.npy", b"\x93NUMPY\x01\x00v\x00" + padded.encode())
        file.writestr("labels.npy", b"")
    return out.getvalue()


NPZ = {
    "no archive": (b"hello", "cannot be read as plain arrays"),
    "nothing": (b"", "cannot be read as plain arrays"),
    "half an archive": (npz(images=PIXELS, labels=NUMBERS)[:-100], "cannot be read"),
    "the head of an archive": (b"PK\x03\x04" + 100 * b"0", "cannot be read"),
    "a pickle": (b"\x80\x04.", "never unpickled"),
    "an array of its own": (b"\x93NUMPY\x01\x00", "cannot be read"),
    "objects": (npz(images=np.array([None]), labels=NUMBERS), "never unpickled"),
    "a bomb": (bomb(), "cannot be read"),
    "other names": (npz(pixels=PIXELS), "must hold the arrays"),
    "no labels": (npz(images=PIXELS), "must hold the arrays"),
    "no arrays": (npz(), "must hold the arrays"),
    "floats": (npz(images=PIXELS.astype(float), labels=NUMBERS), "must be uint8"),
    "a number": (npz(images=np.uint8(1), labels=NUMBERS), "must be uint8"),
    "words": (npz(images=np.array(["a"]), labels=NUMBERS), "must be uint8"),
    "29 pixels": (npz(images=np.zeros((3, 29, 28), np.uint8), labels=NUMBERS), "28×28 each"),
    "colours": (npz(images=np.zeros((3, 28, 28, 3), np.uint8), labels=NUMBERS), "28×28 each"),
    "no images": (npz(images=PIXELS[:0], labels=NUMBERS[:0]), "holds no images"),
    "fewer labels": (npz(images=PIXELS, labels=NUMBERS[:2]), "3 images and 2 labels"),
    "one label": (npz(images=PIXELS, labels=np.int64(3)), "one whole number per image"),
    "float labels": (npz(images=PIXELS, labels=NUMBERS / 1), "one whole number per image"),
    "dates": (npz(images=PIXELS, labels=NUMBERS.astype("M8[Y]")), "one whole number per image"),
    "records": (npz(images=PIXELS, labels=np.zeros(3, [("a", int)])), "one whole number"),
    "truths": (npz(images=PIXELS, labels=np.zeros(3, bool)), "one whole number per image"),
    "label 62": (npz(images=PIXELS, labels=NUMBERS + 60), "from 0 to 61"),
    "label -1": (npz(images=PIXELS, labels=NUMBERS - 1), "from 0 to 61"),
    "huge labels": (npz(images=PIXELS, labels=np.full(3, 2**64 - 1)), "from 0 to 61"),
    "two writers": (npz(images=PIXELS, labels=NUMBERS, writers=NUMBERS[:2]), "writers must be"),
    "half writers": (npz(images=PIXELS, labels=NUMBERS, writers=NUMBERS / 2), "writers must be"),
}

LEAF = {
    "nothing": (b"", "not one of the FEMNIST files"),
    "no JSON": (b"hello", "not one of the FEMNIST files"),
    "bytes": (bytes(range(256)), "not one of the FEMNIST files"),
    "half": (leaf()[:-100], "not one of the FEMNIST files"),
    "deep": (100_000 * b"[", "not one of the FEMNIST files"),
    "a list": (b"[1, 2]", "not one of the FEMNIST files"),
    "null": (b"null", "not one of the FEMNIST files"),
    "a number": (b"3", "not one of the FEMNIST files"),
    "an app's": (b'{"name": "an app"}', "not one of the FEMNIST files"),
    "a list of writers": (b'{"user_data": [1]}', "not one of the FEMNIST files"),
    "null for writers": (b'{"user_data": null}', "not one of the FEMNIST files"),
    "no writers": (b'{"user_data": {}}', "holds no images"),
    "a writer of numbers": (b'{"user_data": {"a": [1]}}', "not one of the FEMNIST files"),
    "null for a writer": (b'{"user_data": {"a": null}}', "not one of the FEMNIST files"),
    "783 pixels": (leaf(x=[[0.5] * 783] * 3), "bob: 3 labels, images (3, 783)"),
    "ragged": (leaf(x=[[0.5] * 784, [0.5] * 783]), "not one of the FEMNIST files"),
    "words for pixels": (leaf(x=[["a"] * 784] * 3), "not one of the FEMNIST files"),
    "bright pixels": (leaf(x=[[2.0] * 784] * 3), "outside [0, 1]"),
    "huge pixels": (leaf(x=[[10**400] * 784] * 3), "not one of the FEMNIST files"),
    "overflowing pixels": (leaf(x=[[1e308] * 784] * 3), "outside [0, 1]"),
    "long numbers": (b'{"user_data": {"a": {"x": [[' + 5000 * b"9" + b"]]}}}", "not one of"),
    "NaN pixels": (leaf(x=[[NAN] * 784] * 3), "outside [0, 1]"),
    "null for pixels": (leaf(x=None), "not one of the FEMNIST files"),
    "a number for pixels": (leaf(x=3), "not one of the FEMNIST files"),
    "two labels": (leaf(y=[1, 2]), "bob: 2 labels"),
    "no labels": (leaf(y=[]), "bob: 0 labels"),
    "null for labels": (leaf(y=None), "not one of the FEMNIST files"),
    "float labels": (leaf(y=[1, 2, 2.5]), "one whole number per image"),
    "words for labels": (leaf(y=["a", "b", "c"]), "one whole number per image"),
    "nested labels": (leaf(y=[[1], [2], [3]]), "not one of the FEMNIST files"),
    "named labels": (leaf(y={"a": 1}), "not one of the FEMNIST files"),
    "label 62": (leaf(y=[1, 2, 62]), "from 0 to 61"),
    "label -1": (leaf(y=[1, 2, -1]), "from 0 to 61"),
    "huge labels": (leaf(y=[1, 2, 10**400]), "one whole number per image"),
}


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        *(pytest.param("femnist.npz", *row, id=f"npz, {k}") for k, row in NPZ.items()),
        *(pytest.param("train/part.json", *row, id=f"LEAF, {k}") for k, row in LEAF.items()),
        pytest.param("package.json", b'{"name": "an app"}', "package.json is not", id="foreign"),
        pytest.param("train/a.json/b", b"", "Is a directory", id="LEAF, a folder"),
        pytest.param("femnist.npz/b", b"", "is not here", id="npz, a folder"),
    ],
)
def test_files_under_the_data_root(
    tmp_path: Path, name: str, content: bytes, says: str, capsys: pytest.CaptureFixture
) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    argv = ["attack", "--samples", "2", "--dataset", "femnist", "--data-root", str(tmp_path)]
    assert says in refused([*argv, "--out", str(tmp_path / "out")], tmp_path, capsys)


def header(**entries: object) -> bytes:
    """A safetensors file that says something of its tensors, with 8 bytes of them."""
    text = json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text + bytes(8)


def entry(**changes: object) -> dict:
    return {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changes}


WEIGHTS = {
    "nothing": (b"", "safetensors"),
    "seven bytes": (b"1234567", "safetensors"),
    "words": (b"hello world, this is no weight file", "safetensors"),
    "a pickle": (b"\x80\x04\x95" + 40 * b"0", "safetensors"),
    "a zip": (npz(a=NUMBERS), "safetensors"),
    "a header without end": ((2**60).to_bytes(8, "little") + b"{}", "safetensors"),
    "a header that is no JSON": ((4).to_bytes(8, "little") + b"{{{{", "safetensors"),
    "a list": ((2).to_bytes(8, "little") + b"[]", "safetensors"),
    "too few bytes": (header(a=entry(data_offsets=[0, 4])), "safetensors"),
    "beyond the end": (header(a=entry(shape=[4], data_offsets=[0, 16])), "safetensors"),
    "backwards": (header(a=entry(data_offsets=[8, 0])), "safetensors"),
    "unknown numbers": (header(a=entry(dtype="F33")), "safetensors"),
    "a negative shape": (header(a=entry(shape=[-2])), "safetensors"),
    "an overflowing shape": (header(a=entry(shape=[2**62, 2**62])), "safetensors"),
    "no tensors": ((2).to_bytes(8, "little") + b"{}", "holds no weights"),
    "another network's": (header(a=entry()), "is it another network"),
}


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("kind", WEIGHTS)
def test_weights(
    place: Path, tmp_path: Path, kind: str, side: str, capsys: pytest.CaptureFixture
) -> None:
    content, says = WEIGHTS[kind]
    file = tmp_path / "weights.safetensors"
    file.write_bytes(content)
    typed = words("audit " + AUDITED, place)
    argv = [*typed, f"--{side}", str(file), "--out", str(tmp_path / "out")]
    assert says in refused(argv, tmp_path, capsys)


TAMPERED = {
    "NaN": (lambda w: {**w, "0.bias": torch.full((6,), NAN)}, "NaN or infinite"),
    "infinite": (lambda w: {**w, "0.bias": torch.full((6,), INF)}, "NaN or infinite"),
    "another shape": (lambda w: {**w, "0.bias": torch.zeros(7)}, "has shape"),
    "another name": (lambda w: {**w, "extra": torch.zeros(7)}, "do not name the same"),
    "one missing": (lambda w: {k: w[k] for k in list(w)[1:]}, "which the network has"),
    "whole numbers": (lambda w: {k: v.int() for k, v in w.items()}, "floating-point"),
    "truths": (lambda w: {k: v > 0 for k, v in w.items()}, "floating-point"),
}


@pytest.mark.parametrize("kind", TAMPERED)
def test_weights_that_can_be_read(
    place: Path, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture
) -> None:
    tamper, says = TAMPERED[kind]
    save_file(tamper(load_file(place / "run" / "wT.safetensors")), tmp_path / "wT.safetensors")
    typed = words("audit " + AUDITED, place)
    argv = [*typed, "--after", str(tmp_path / "wT.safetensors"), "--out", str(tmp_path / "out")]
    assert says in refused(argv, tmp_path, capsys)


# In Python


class Scene:
    """What a right call is made of."""

    def __init__(self) -> None:
        self.client = data.client("mnist", 2)
        self.net = models.lenet(self.client.shape, self.client.classes)
        self.protocol = Protocol(1, 2)
        self.update = smelib.local_update(self.net, self.client, self.protocol)
        self.labels = self.client.labels
        self.images = self.client.images
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))

    def attack(self, name: str, **changes: object) -> object:
        """An attack with a right argument for each but those that are changed."""
        right = {"model": self.net, "update": self.update, "labels": self.labels, "steps": 1}
        right |= {"dlfa": {"protocol": self.protocol}, "dlg": {"lr": 0.1}}.get(name, {})
        return attacks.ATTACKS[name](**{**right, **changes})


@pytest.fixture(scope="module")
def s() -> Scene:
    return Scene()


Call = Callable[[Scene], object]
ARGUMENTS: dict[str, tuple[str, Callable[[Scene], object], str]] = {
    "a bare module": ("model", lambda s: s.body, "models.wrap(module, shape, classes)"),
    "a class": ("model", lambda s: nn.Linear, "the class Linear and not a Network"),
    "a name": ("model", lambda s: "lenet", "'lenet' and not a Network"),
    "no model": ("model", lambda s: None, "None and not a Network"),
    "an update for a model": ("model", lambda s: s.update, "an Update and not a Network"),
    "a state_dict": ("update", lambda s: s.body.state_dict(), "Update(before, after, samples)"),
    "a pair": ("update", lambda s: (s.update.before, s.update.after), "a tuple and not an Update"),
    "a client for an update": ("update", lambda s: s.client, "local_update(model, client"),
    "no update": ("update", lambda s: None, "None and not an Update"),
    "a path": ("update", lambda s: "wT.safetensors", "and not an Update"),
    "float labels": ("labels", lambda s: s.labels.float(), "2 integer labels"),
    "typed labels": ("labels", lambda s: "3,1", "labels.recover(model, update)"),
    "one label": ("labels", lambda s: s.labels[:1], "2 integer labels"),
    "no label": ("labels", lambda s: [], "2 integer labels"),
    "a number": ("labels", lambda s: 3, "2 integer labels"),
    "a column": ("labels", lambda s: s.labels[:, None], "2 integer labels"),
    "one-hot labels": ("labels", lambda s: torch.eye(10)[s.labels], "2 integer labels"),
    "truths": ("labels", lambda s: [True, False], "torch.bool"),
    "a hole": ("labels", lambda s: [None, 1], "labels.recover"),
    "ragged labels": ("labels", lambda s: [[1], [1, 2]], "labels.recover"),
    "a dictionary": ("labels", lambda s: {"a": 1}, "labels.recover"),
    "huge labels": ("labels", lambda s: [10**30, 1], "labels.recover"),
    "label 10": ("labels", lambda s: [1, 10], "out of range"),
    "label -1": ("labels", lambda s: [1, -1], "out of range"),
    "no steps": ("steps", lambda s: 0, "steps is 0"),
    "typed steps": ("steps", lambda s: "10", "steps is '10'"),
    "half a step": ("steps", lambda s: 1.5, "steps is 1.5"),
    "None for steps": ("steps", lambda s: None, "steps is None"),
    "endless": ("steps", lambda s: 10**13, "GB of memory"),
    "no restart": ("restarts", lambda s: 0, "restarts is 0"),
    "True restarts": ("restarts", lambda s: True, "restarts is True"),
    "too many restarts": ("restarts", lambda s: 10**12, "GB of memory"),
    "a negative seed": ("seed", lambda s: -1, "from 0 to 2^63 - 1"),
    "a typed seed": ("seed", lambda s: "x", "from 0 to 2^63 - 1"),
    "a large seed": ("seed", lambda s: 2**63, "from 0 to 2^63 - 1"),
    "a float seed": ("seed", lambda s: 1.0, "from 0 to 2^63 - 1"),
    "no seed": ("seed", lambda s: None, "from 0 to 2^63 - 1"),
    "a mistyped device": ("device", lambda s: "cudda", "cannot be used"),
    "a device that is not there": ("device", lambda s: "cuda:9", "cannot be used"),
    "a number for a device": ("device", lambda s: 3.5, "like 'auto', 'cpu' or 'cuda'"),
    "no device": ("device", lambda s: None, "like 'auto', 'cpu' or 'cuda'"),
    "keep='first'": ("keep", lambda s: "first", "choose 'last' or 'best'"),
    "keep=None": ("keep", lambda s: None, "choose 'last' or 'best'"),
    "an unknown option": ("stesp", lambda s: 1, "did you mean 'steps'"),
    "an option of others": ("epochs", lambda s: 1, "there is no option 'epochs'"),
    "negative snapshots": ("snapshots", lambda s: -1, "snapshots is -1"),
    "all snapshots": ("snapshots", lambda s: "all", "snapshots is 'all'"),
    "a typed tolerance": ("tolerance", lambda s: "x", "finite number"),
    "a NaN tolerance": ("tolerance", lambda s: NAN, "finite number"),
    "batched='yes'": ("batched", lambda s: "yes", "True or False"),
    "progress='yes'": ("progress", lambda s: "yes", "True or False"),
    "compile=1": ("compile", lambda s: 1, "True or False"),
}
OF_ONE: dict[str, tuple[str, dict, str]] = {
    "labels": ("sme", {"labels": None}, "labels.recover(model, update)"),
    "ig's labels": ("ig", {"labels": None}, "labels.recover(model, update)"),
    "dlfa's labels": ("dlfa", {"labels": None}, "labels.recover(model, update)"),
    "a typed tv": ("ig", {"tv": "x"}, "tv= is 'x'"),
    "no tv": ("sme", {"tv": None}, "tv= is None"),
    "a NaN tv": ("sme", {"tv": NAN}, "tv= is nan"),
    "several tv": ("ig", {"tv": [0.1, 0.2]}, "tv= is a list"),
    "a mistyped preset": ("ig", {"preset": "fats"}, "did you mean 'fast'"),
    "a number for a preset": ("sme", {"preset": 3}, "choose one of paper, fast"),
    "a list for a preset": ("sme", {"preset": ["fast"]}, "choose one of paper, fast"),
    "a typed alpha": ("sme", {"alpha": "x"}, "alpha= is 'x'"),
    "alpha beyond": ("sme", {"alpha": 2}, "between 0 and 1"),
    "no alpha": ("sme", {"alpha": None}, "alpha= is None"),
    "ig's alpha": ("ig", {"alpha": 0.5}, "there is no option 'alpha'"),
    "no protocol": ("dlfa", {"protocol": None}, "Protocol(epochs, batch_size, lr)"),
    "a dictionary for it": ("dlfa", {"protocol": {"epochs": 1}}, "Protocol(epochs, batch_size"),
    "a pair for it": ("dlfa", {"protocol": (1, 2)}, "Protocol(epochs, batch_size, lr)"),
    "a name for settings": ("dlfa", {"settings": "femnist"}, "DLFA_SETTINGS"),
    "checkpoint='no'": ("dlfa", {"checkpoint": "no"}, "True or False"),
    "no rate": ("dlg", {"lr": 0}, "learning rate"),
    "a negative rate": ("dlg", {"lr": -1.0}, "learning rate"),
    "a typed rate": ("dlg", {"lr": "x"}, "learning rate"),
    "None for a rate": ("dlg", {"lr": None}, "learning rate"),
    "an infinite rate": ("dlg", {"lr": INF}, "learning rate"),
    "batched L-BFGS": ("dlg", {"batched": True, "restarts": 2}, "couple the restarts"),
}


@pytest.mark.parametrize("name", ["ig", "sme", "dlfa", "dlg"])
@pytest.mark.parametrize("kind", ARGUMENTS)
def test_an_attack_s_arguments(s: Scene, kind: str, name: str) -> None:
    argument, value, says = ARGUMENTS[kind]
    with pytest.raises(InputError) as caught:
        s.attack(name, **{argument: value(s)})
    assert says in str(caught.value)


@pytest.mark.parametrize("kind", OF_ONE)
def test_arguments_of_one_attack(s: Scene, kind: str) -> None:
    name, changes, says = OF_ONE[kind]
    with pytest.raises(InputError) as caught:
        s.attack(name, **changes)
    assert says in str(caught.value)


def times(weights: dict, factor: float) -> dict:
    return {k: v * factor for k, v in weights.items()}


CALLS: dict[str, tuple[Call, str]] = {
    "sme without labels": (lambda s: attacks.sme(s.net, s.update), "labels.recover"),
    "dlfa without a protocol": (lambda s: attacks.dlfa(s.net, s.update, s.labels), "Protocol("),
    "dlg without a rate": (lambda s: attacks.dlg(s.net, s.update), "argument: 'lr'"),
    "ig without anything": (lambda s: attacks.ig(), "models.wrap"),
    "ig with too much": (lambda s: attacks.ig(s.net, s.update, s.labels, 3), "too many"),
    "swapped": (lambda s: attacks.ig(s.update, s.net, s.labels), "not a Network"),
    "another network": (
        lambda s: attacks.ig(models.mlp((1, 28, 28), 10), s.update, s.labels),
        "do not name the same parameters",
    ),
    "another number of classes": (
        lambda s: attacks.ig(models.lenet((1, 28, 28), 11), s.update, s.labels),
        "has shape",
    ),
    "NaN weights": (
        lambda s: s.attack("ig", update=Update(s.update.before, times(s.update.after, NAN), 2)),
        "NaN or infinite",
    ),
    "nothing learned": (
        lambda s: s.attack("ig", update=Update(s.update.before, s.update.before, 2)),
        "are equal",
    ),
    "no weights": (lambda s: s.attack("ig", update=Update({}, {}, 2)), "do not name the same"),
    "an objective that is none": (
        lambda s: attacks.reconstruct(
            s.net, s.update, s.labels, None, smelib.solver.Recipe({"images": 1.0})
        ),
        "a function of (model, update, labels)",
    ),
    "a recipe that is none": (
        lambda s: attacks.reconstruct(s.net, s.update, s.labels, lambda a, b, c: None, {}),
        "solver.Recipe",
    ),
    "options that are none": (
        lambda s: attacks.reconstruct(
            *(s.net, s.update, s.labels, lambda a, b, c: None),
            *(smelib.solver.Recipe({"images": 1.0}), {"steps": 3}),
        ),
        "solver.Options",
    ),
    # Update
    "lists for weights": (lambda s: Update([1], [2], 3), "like module.state_dict()"),
    "arrays for weights": (
        lambda s: Update({"a": np.zeros(3)}, {"a": np.ones(3)}, 3),
        "torch.from_numpy",
    ),
    "modules for weights": (lambda s: Update(s.body, s.body, 3), "like module.state_dict()"),
    "networks for weights": (lambda s: Update(s.net, s.net, 3), "network.params()"),
    "numbers for weights": (lambda s: Update({"a": 1.0}, {"a": 2.0}, 1), "'a' is 1.0"),
    "numbered weights": (
        lambda s: Update({1: torch.zeros(3)}, {1: torch.zeros(3)}, 1),
        "a dictionary of tensors by name",
    ),
    "no weights at all": (lambda s: Update(None, None, 1), "like module.state_dict()"),
    "two names": (
        lambda s: Update({"a": torch.zeros(3)}, {"b": torch.zeros(3)}, 1),
        "do not name the same parameters",
    ),
    "two shapes": (
        lambda s: Update({"a": torch.zeros(3)}, {"a": torch.zeros(4)}, 1),
        "has shape (3,)",
    ),
    "no samples": (lambda s: Update(s.update.before, s.update.after, 0), "at least 1"),
    "two and a half": (lambda s: Update(s.update.before, s.update.after, 2.5), "at least 1"),
    "typed samples": (lambda s: Update(s.update.before, s.update.after, "2"), "at least 1"),
    # Protocol
    "no epochs": (lambda s: Protocol(0, 1), "epochs is 0"),
    "half an epoch": (lambda s: Protocol(0.5, 1), "epochs is 0.5"),
    "typed epochs": (lambda s: Protocol("1", 1), "epochs is '1'"),
    "no batch": (lambda s: Protocol(1, 0), "batch_size is 0"),
    "None for a batch": (lambda s: Protocol(1, None), "batch_size is None"),
    "no learning": (lambda s: Protocol(1, 1, 0.0), "positive"),
    "a typed rate": (lambda s: Protocol(1, 1, "0.1"), "the learning rate"),
    "None for a rate": (lambda s: Protocol(1, 1, None), "the learning rate"),
    "typed momentum": (lambda s: Protocol(1, 1, momentum="x"), "momentum= is 'x'"),
    "full momentum": (lambda s: Protocol(1, 1, momentum=1.0), "lies in [0, 1)"),
    "typed decay": (lambda s: Protocol(1, 1, weight_decay="x"), "weight_decay= is 'x'"),
    "a mistyped optimiser": (lambda s: Protocol(1, 1, optimiser="sdg"), "did you mean 'sgd'"),
    "an optimiser's class": (lambda s: Protocol(1, 1, optimiser=torch.optim.SGD), "choose one of"),
    "a number for a schedule": (lambda s: Protocol(1, 1, schedule=3), "function of (step, steps)"),
    "a schedule of one": (
        lambda s: Protocol(1, 1, schedule=lambda step: 1.0),
        "function of (step, steps)",
    ),
    # Local training
    "training a bare module": (
        lambda s: smelib.local_update(s.body, s.client, s.protocol),
        "models.wrap",
    ),
    "images for a client": (
        lambda s: smelib.local_update(s.net, s.images, s.protocol),
        "Client.of(images, labels)",
    ),
    "a pair for a client": (
        lambda s: smelib.local_update(s.net, (s.images, s.labels), s.protocol),
        "Client.of(images, labels)",
    ),
    "a data set for a client": (
        lambda s: smelib.local_update(s.net, data.load("mnist"), s.protocol),
        "Client.of(images, labels)",
    ),
    "no client": (lambda s: smelib.local_update(s.net, None, s.protocol), "Client.of"),
    "lists in a client": (
        lambda s: smelib.local_update(s.net, data.Client([[1]], [1], 10, "raw"), s.protocol),
        "Client.of(images, labels) checks them",
    ),
    "a client of another size": (
        lambda s: smelib.local_update(s.net, data.Client.of(s.images[..., :8], [0, 1]), s.protocol),
        "the network takes (1, 28, 28)",
    ),
    "a client of other classes": (
        lambda s: smelib.local_update(s.net, data.Client.of(s.images, [1, 55]), s.protocol),
        "build it for client.classes",
    ),
    "a dictionary for a protocol": (
        lambda s: smelib.local_update(s.net, s.client, {"epochs": 1}),
        "Protocol(epochs, batch_size, lr)",
    ),
    "client and model swapped": (
        lambda s: smelib.local_update(s.client, s.net, s.protocol),
        "not a Network",
    ),
    "lists before": (
        lambda s: smelib.local_update(s.net, s.client, s.protocol, before=[1]),
        "before= is a list",
    ),
    "nothing before": (
        lambda s: smelib.local_update(s.net, s.client, s.protocol, before={}),
        "before= lacks the network's weight",
    ),
    "others before": (
        lambda s: smelib.local_update(s.net, s.client, s.protocol, before={"a": torch.zeros(1)}),
        "before= lacks the network's weight",
    ),
    "a name for a defence": (
        lambda s: smelib.local_update(s.net, s.client, s.protocol, defence="clip"),
        "function of (update, generator)",
    ),
    "a defence of one": (
        lambda s: smelib.local_update(s.net, s.client, s.protocol, defence=lambda update: update),
        "function of (update, generator)",
    ),
    "training with a negative seed": (
        lambda s: smelib.local_update(s.net, s.client, s.protocol, seed=-1),
        "from 0 to 2^63 - 1",
    ),
    "an unknown word": (
        lambda s: smelib.local_update(s.net, s.client, s.protocol, sed=1),
        "unexpected keyword argument 'sed'",
    ),
    # FedAvg
    "nobody to average": (lambda s: smelib.average([]), "nothing to average"),
    "one update to average": (lambda s: smelib.average(s.update), "give a list"),
    "numbers to average": (lambda s: smelib.average([1]), "updates[0]= is 1 and not an Update"),
    "a hole to average": (lambda s: smelib.average([s.update, None]), "updates[1]="),
    "typed rounds": (
        lambda s: list(smelib.fedavg(s.net, [s.client], s.protocol, rounds="x")),
        "rounds= is 'x'",
    ),
    "one client to federate": (
        lambda s: list(smelib.fedavg(s.net, s.client, s.protocol, rounds=1)),
        "give a list",
    ),
    "numbers to federate": (
        lambda s: list(smelib.fedavg(s.net, [1], s.protocol, rounds=1)),
        "Client.of",
    ),
    "a typed share": (
        lambda s: list(smelib.fedavg(s.net, [s.client], s.protocol, rounds=1, reporting="x")),
        "reporting= is 'x'",
    ),
    "accuracy of nothing": (
        lambda s: federated.accuracy(s.net, s.update.after, None),
        "Client.of",
    ),
    # Labels
    "labels of a bare module": (lambda s: labels.recover(s.body, s.update), "models.wrap"),
    "labels of a state_dict": (lambda s: labels.recover(s.net, s.update.before), "Update(before"),
    "labels of a client": (lambda s: labels.recover(s.net, s.client), "local_update"),
    "labels of nothing": (lambda s: labels.recover(s.net), "local_update"),
    "labels with a pair": (lambda s: labels.recover(s.net, s.update, (1, 2)), "Protocol("),
    "labels of a layer": (lambda s: labels.counts(s.net, s.update, layer="head"), "bias, rows"),
    "labels from no dummies": (
        lambda s: labels.counts(s.net, s.update, dummies=0),
        "dummies= is 0",
    ),
    "iDLG on two": (lambda s: labels.idlg(s.net, s.update), "one sample"),
    "iDLG on a dictionary": (lambda s: labels.idlg(s.net, {}), "not an Update"),
    # Scores
    "lists to compare": (lambda s: smelib.evaluate([1], [1]), "give a tensor"),
    "arrays to compare": (
        lambda s: smelib.evaluate(s.images.numpy(), s.images.numpy()),
        "torch.as_tensor",
    ),
    "a client to compare": (lambda s: smelib.evaluate(s.images, s.client), "give a tensor"),
    "one image to compare": (lambda s: smelib.evaluate(s.images[0], s.images[0]), "[N, C, H, W]"),
    "no image to compare": (lambda s: smelib.evaluate(s.images[:0], s.images[:0]), "[N, C, H, W]"),
    "two with one": (lambda s: smelib.evaluate(s.images, s.images[:1]), "[N, C, H, W]"),
    "NaN to compare": (lambda s: smelib.evaluate(s.images * NAN, s.images), "NaN pixels"),
    "PSNR of lists": (lambda s: metrics.psnr([1.0], [1.0]), "give a tensor"),
    "PSNR of two shapes": (lambda s: metrics.psnr(s.images, s.images[0]), "same shape"),
    "SSIM of nothing": (lambda s: metrics.ssim(s.images[0], None), "the original is None"),
    "SSIM of many": (lambda s: metrics.ssim(s.images, s.images), "[C, H, W]"),
    "lists to pair": (lambda s: smelib.pairing.match([1], [1]), "torch.as_tensor"),
    # Networks
    "no channels": (lambda s: models.cnn((28, 28), 10), "(channels, height, width)"),
    "four axes": (lambda s: models.cnn((1, 1, 28, 28), 10), "(channels, height, width)"),
    "channels last": (lambda s: models.cnn((28, 28, 1), 10), "did you mean (1, 28, 28)?"),
    "colours last": (lambda s: models.vit((32, 32, 3), 10), "did you mean (3, 32, 32)?"),
    "a typed shape": (lambda s: models.cnn("1x28x28", 10), "(channels, height, width)"),
    "one side": (lambda s: models.mlp(28, 10), "(channels, height, width)"),
    "no shape": (lambda s: models.mlp(None, 10), "(channels, height, width)"),
    "float sides": (lambda s: models.mlp((1.0, 28, 28), 10), "side of the image is 1.0"),
    "no side": (lambda s: models.lenet((1, 0, 28), 10), "side of the image is 0"),
    "a negative side": (lambda s: models.lenet((1, -28, 28), 10), "side of the image is -28"),
    "two channels": (lambda s: models.cnn((2, 28, 28), 10), "mean= and std="),
    "one class": (lambda s: models.cnn((1, 28, 28), 1), "at least 2"),
    "typed classes": (lambda s: models.cnn((1, 28, 28), "10"), "whole number"),
    "float classes": (lambda s: models.cnn((1, 28, 28), 10.0), "whole number"),
    "endless classes": (lambda s: models.resnet8((1, 28, 28), 10**12), "GB of memory"),
    "an endless image": (lambda s: models.cnn((1, 10**6, 10**6), 10), "GB of memory"),
    "a pixel for cnn": (lambda s: models.cnn((1, 1, 1), 10), "do not fit images of 1×1×1"),
    "3×3 for cnn": (lambda s: models.cnn((1, 3, 3), 10), "do not fit images of 1×3×3"),
    "8×8 for lenet": (lambda s: models.lenet((1, 8, 8), 10), "do not fit images of 1×8×8"),
    "a row for lenet": (lambda s: models.lenet((1, 1, 28), 10), "do not fit images of 1×1×28"),
    "a mistyped init": (lambda s: models.cnn((1, 28, 28), 10, init="lecum"), "'lecun'"),
    "no init": (lambda s: models.cnn((1, 28, 28), 10, init=None), "choose one of torch"),
    "a network's negative seed": (lambda s: models.cnn((1, 28, 28), 10, seed=-1), "2^63 - 1"),
    "a network's unknown option": (lambda s: models.cnn((1, 28, 28), 10, sed=1), "'sed'"),
    "a mistyped network": (lambda s: models.build("cnnn", (1, 28, 28), 10), "did you mean 'cnn'"),
    "a list of networks": (lambda s: models.build(["cnn"], (1, 28, 28), 10), "choose one of"),
    "patches of nothing": (lambda s: models.vit((1, 28, 28), 10, patch=0), "at least 1"),
    "patches that do not tile": (lambda s: models.vit((1, 28, 28), 10, patch=5), "do not tile"),
    "typed patches": (lambda s: models.vit((1, 28, 28), 10, patch="7"), "whole number"),
    # Data
    "a mistyped data set": (lambda s: data.client("mnits"), "did you mean 'mnist'"),
    "no data set": (lambda s: data.client(None), "map-style"),
    "a list for a data set": (lambda s: data.client([1]), "not (image, label)"),
    "no name": (lambda s: data.load(None), "not the name of a data set"),
    "no images": (lambda s: data.client("mnist", 0), "at least 1"),
    "typed images": (lambda s: data.client("mnist", "3"), "at least 1"),
    "too many images": (lambda s: data.client("mnist", 10**30), "has only 5000 images"),
    "too many labels": (lambda s: data.client("mnist", 11, distinct_labels=True), "only 10"),
    "a client's negative seed": (lambda s: data.client("mnist", seed=-1), "2^63 - 1"),
    "a root that is not there": (lambda s: data.client("femnist", root="/no/such"), "not exist"),
    "a number for a root": (lambda s: data.client("femnist", root=3), "does not exist"),
    "no clients": (lambda s: data.federation("mnist", clients=0), "at least 1"),
    "typed clients": (lambda s: data.federation("mnist", clients="x"), "at least 1"),
    "endless clients": (lambda s: data.federation("mnist", clients=10**12), "GB of memory"),
    "a mistyped split": (lambda s: data.federation("mnist", split="wirter"), "'writer'"),
    "writers of digits": (lambda s: data.federation("mnist", split="writer"), "who wrote what"),
    "no concentration": (lambda s: data.federation("mnist", concentration=0), "positive number"),
    "typed concentration": (lambda s: data.federation("mnist", concentration="x"), "positive"),
    # The rest
    "a list of devices": (lambda s: smelib.pick_device(["cpu"]), "like 'auto', 'cpu'"),
    "an empty device": (lambda s: smelib.pick_device(""), "cannot be used"),
    "an unknown purpose": (lambda s: smelib.seeds.generator(0, "luck"), "purpose"),
    "no purpose": (lambda s: smelib.seeds.generator(0), "purpose"),
    "a typed seed": (lambda s: smelib.seeds.generator("0", "client"), "2^63 - 1"),
}


@pytest.mark.parametrize("kind", CALLS)
def test_in_python(s: Scene, kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    call, says = CALLS[kind]
    with pytest.raises(InputError) as caught:
        call(s)
    assert says in str(caught.value)


# Signals and pipes, in processes of their own

FRESH = {k: v for k, v in os.environ.items() if k not in ("SMELIB_DATA", "PYTHONUNBUFFERED")}
QUICK = "attack --samples 2 --epochs 1 --steps 3 --network lenet"
COMMANDS = {
    "help": "--help",
    "version": "--version",
    "attack's help": "attack --help",
    "attack": QUICK,
    "attack, JSON": QUICK + " --json",
    "scoreboard": "scoreboard",
    "reproduce's help": "reproduce --help",
}


children: list[subprocess.Popen] = []


@pytest.fixture(autouse=True)
def nothing_runs_on() -> Iterator[None]:
    """What a failed test started ends with it."""
    yield
    while children:
        process = children.pop()
        if process.poll() is None:
            process.kill()
            process.wait()


def started(typed: str, *, code: str = "", **options: object) -> subprocess.Popen:
    """A command that hears Ctrl-C also where the tests run in the background, which ignores it."""
    command = [sys.executable, *(["-c", code] if code else ["-m", "smelib.cli", *typed.split()])]
    # A script's background ignores Ctrl-C, and what it starts would too.
    hears = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": FRESH}
    pipes["preexec_fn"] = hears
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        children.append(subprocess.Popen(command, **{**pipes, **options}))
    finally:
        signal.signal(signal.SIGINT, before)
    return children[-1]


@pytest.mark.slow
@pytest.mark.parametrize("at_once", ["", "1"], ids=["buffered", "at once"])
@pytest.mark.parametrize("name", COMMANDS)
def test_nobody_listens(name: str, at_once: str) -> None:
    """`smelib … | true`: no traceback, and the exit code of a command that SIGPIPE ended."""
    reader, writer = os.pipe()
    os.close(reader)
    process = started(COMMANDS[name], stdout=writer, env={**FRESH, "PYTHONUNBUFFERED": at_once})
    os.close(writer)
    assert process.communicate(timeout=120)[1] == ""
    assert process.returncode == 141


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("at_once", ["", "1"], ids=["buffered", "at once"])
@pytest.mark.parametrize("name", COMMANDS)
def test_standard_output_is_a_full_disk(name: str, at_once: str) -> None:
    with Path("/dev/full").open("w") as full:
        environment = {**FRESH, "PYTHONUNBUFFERED": at_once}
        process = started(COMMANDS[name], stdout=full, env=environment)
        error = process.communicate(timeout=120)[1]
    assert error.startswith("smelib: standard output")
    assert error.endswith(": No space left on device.\n")
    assert error.count("\n") == 1
    assert process.returncode == 2


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0])
def test_ctrl_c_while_starting(tmp_path: Path, delay: float) -> None:
    """At any moment of the imports: a sentence and 130; what is before `main` is Python's own."""
    process = started(f"attack --steps 20000 --restarts 2 --out {tmp_path / 'out'}")
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=120)[1]
    if "KeyboardInterrupt" in error and not re.search(r'cli.__init__\.py", line \d+, in \w', error):
        pytest.skip("before the first line of `main`, which is Python's own")
    assert process.returncode == 130, error
    assert "Traceback" not in error
    assert error.startswith("smelib: interrupted"), error
    assert error.count("\n") == 1


LATE = """
import atexit, os, signal, sys
from smelib.cli import main

atexit.register(os.kill, os.getpid(), signal.SIGINT)
sys.argv = ["smelib", "--version"]
sys.exit(main())
"""


@pytest.mark.slow
def test_ctrl_c_while_ending() -> None:
    """When everything is said and Python tidies up: nothing more is said."""
    process = started("", code=LATE)
    assert process.communicate(timeout=120)[1] == ""
    assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("often", [1, 2])
def test_ctrl_c_in_the_middle(tmp_path: Path, often: int) -> None:
    """Once or twice in a row: 130, and either all files or none."""
    out = tmp_path / "out"
    process = started(f"{QUICK.replace('3', '100000')} --out {out} --json")
    time.sleep(12)
    for _ in range(often):
        process.send_signal(signal.SIGINT)
        time.sleep(0.01)
    said, error = process.communicate(timeout=120)
    assert process.returncode == 130, error
    assert "Traceback" not in error
    assert [line for line in error.splitlines() if line.startswith("smelib: interrupted")]
    if out.exists():
        assert len(list(out.iterdir())) == 5
        assert json.loads(said)["stopped"] == "interrupted"
    assert not list(tmp_path.glob(".smelib-*"))


@pytest.mark.slow
@pytest.mark.parametrize("typed", ["--help", QUICK])
def test_an_ascii_terminal(typed: str) -> None:
    process = started(typed, env={**FRESH, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    assert process.communicate(timeout=120)[1] == ""
    assert process.returncode == 0


def test_the_table_is_long() -> None:
    terminal = len(TOP) + len(ATTACK) + len(AUDIT) + len(REPRODUCE) + len(SCOREBOARD)
    files = len(NPZ) + len(LEAF) + 3 + 2 * len(WEIGHTS) + len(TAMPERED)
    python = len(ARGUMENTS) + len(OF_ONE) + len(CALLS)
    assert terminal + files + python >= 250
