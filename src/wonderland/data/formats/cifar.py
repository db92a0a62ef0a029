"""CIFAR's binary files: records of one or two label bytes and 3 x 32 x 32 pixels, plane after plane."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from ...core.errors import InputError
from ...core.typing import PathLike
from ..record import DatasetRecord
from .files import as_path, damaged, read_bytes

PIXELS = 3 * 32 * 32
_CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


def read_cifar10(
    path: PathLike, *, expect_size: int | None = None, expect_sha256: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 32, 32, 3) uint8 and labels (n,) int64 of one CIFAR-10 file, as `data_batch_1.bin`.

    >>> import pathlib, tempfile, wonderland as wl
    >>> path = pathlib.Path(tempfile.mkdtemp(), "test_batch.bin")
    >>> _ = path.write_bytes(bytes([3]) + bytes(3072))
    >>> images, labels = wl.data.read_cifar10(path)
    >>> images.shape, labels
    ((1, 32, 32, 3), array([3]))
    """
    images, labels = _read("read_cifar10", path, (10,), expect_size, expect_sha256)
    return images, labels[:, 0]


def read_cifar100(
    path: PathLike, *, labels: str = "fine", expect_size: int | None = None, expect_sha256: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Images (n, 32, 32, 3) and the "fine" (100) or "coarse" (20) labels of one CIFAR-100 file, as `train.bin`."""
    if labels not in ("fine", "coarse"):
        raise InputError(f"read_cifar100: labels={labels!r}.", "'fine' or 'coarse'")
    images, both = _read("read_cifar100", path, (20, 100), expect_size, expect_sha256)
    return images, both[:, int(labels == "fine")]


def cifar10(path: PathLike, *, expect_sha256: Mapping[str, str] | None = None) -> DatasetRecord:
    """CIFAR-10 from the folder of its binary files: 50,000 images to train and 10,000 to test, uint8.

    >>> import wonderland as wl
    >>> wl.data.cifar10("cifar-10-batches-bin")  # doctest: +SKIP
    DatasetRecord('cifar10', features (60000, 32, 32, 3) uint8, ...)

    `expect_sha256` gives the hashes of files by their names.
    """
    folder = as_path("cifar10", path)
    hashes = expect_sha256 or {}

    def read(file: Path) -> tuple[np.ndarray, np.ndarray]:
        return read_cifar10(file, expect_sha256=hashes.get(file.name))

    train = [read(file) for file in sorted(folder.glob("data_batch_*.bin"))]
    return _joined("cifar10", folder, train, read, "test_batch.bin", _names(folder, "batches.meta.txt", 10))


def cifar100(path: PathLike, *, labels: str = "fine", expect_sha256: Mapping[str, str] | None = None) -> DatasetRecord:
    """CIFAR-100 from the folder with `train.bin` and `test.bin`, with its 100 fine or 20 coarse labels."""
    folder = as_path("cifar100", path)
    hashes = expect_sha256 or {}

    def read(file: Path) -> tuple[np.ndarray, np.ndarray]:
        return read_cifar100(file, labels=labels, expect_sha256=hashes.get(file.name))

    train = [read(file) for file in folder.glob("train.bin")]
    names = _names(folder, f"{labels}_label_names.txt", 100 if labels == "fine" else 20)
    return _joined("cifar100", folder, train, read, "test.bin", names)


def _read(
    name: str, path: PathLike, classes: tuple[int, ...], size: int | None, sha256: str | None
) -> tuple[np.ndarray, np.ndarray]:
    data = read_bytes(name, path, size, sha256)
    length = len(classes) + PIXELS
    if not data or len(data) % length:
        raise damaged(name, path, f"records of {length} bytes each, found {len(data):,} bytes")
    records = np.frombuffer(data, np.uint8).reshape(-1, length)
    labels = records[:, : len(classes)]
    wrong = np.argwhere(labels >= np.array(classes))
    if len(wrong):
        row, column = wrong[0]
        raise damaged(name, path, f"labels below {classes[column]}, found {labels[row, column]} in record {row}")
    images = records[:, len(classes) :].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)  # planes to channels-last
    return np.ascontiguousarray(images), labels.astype(np.int64)


def _joined(
    name: str,
    folder: Path,
    train: list[tuple[np.ndarray, np.ndarray]],
    read: Callable[[Path], tuple[np.ndarray, np.ndarray]],
    test: str,
    names: tuple[str, ...],
) -> DatasetRecord:
    if not train or not (folder / test).exists():
        found = ", ".join(sorted(file.name for file in folder.glob("*"))[:8]) or "nothing"
        raise InputError(
            f"{name}: {str(folder)!r} lacks the training files or {test}; it holds {found}.",
            "the unpacked folder of the binary version",
        )
    files = [*train, read(folder / test)]
    n_test = len(files[-1][0])
    images, labels = (np.concatenate(columns) for columns in zip(*files, strict=True))
    n_train = len(images) - n_test
    parts = {"train": np.arange(n_train), "test": np.arange(n_train, n_train + n_test)}
    text = "Small colour photographs of one object each (Krizhevsky, 2009)."
    return DatasetRecord(images, labels, name, target_names=names, description=text, parts=parts)


def _names(folder: Path, file: str, count: int) -> tuple[str, ...]:
    """The class names of the file beside the data, if it is there."""
    path = folder / file
    if path.exists():
        try:
            names = tuple(read_bytes("cifar", path, unpack=False).decode("utf-8").split())
        except UnicodeDecodeError as error:
            raise damaged("cifar", path, "the names of classes in UTF-8", error) from None
        if len(names) == count:
            return names
    return _CLASSES if count == 10 else tuple(str(label) for label in range(count))
