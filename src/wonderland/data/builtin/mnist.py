"""MNIST, and sets of the same form (Fashion-MNIST, KMNIST), from their IDX files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ...core.errors import InputError, ShapeError
from ...core.typing import PathLike
from ..formats.files import as_path
from ..formats.idx import read_idx
from ..record import DatasetRecord


def mnist(
    path: PathLike, *, flat: bool = False, raw: bool = False, expect_sha256: Mapping[str, str] | None = None
) -> DatasetRecord:
    """The digits of MNIST from the folder with its files `train-images-idx3-ubyte.gz` and so on.

    >>> import wonderland as wl
    >>> wl.data.mnist("mnist")  # doctest: +SKIP
    DatasetRecord('mnist', features (70000, 28, 28, 1) float32, targets (70000,) int64, 10 classes, train 60000, ...)

    Pixels are in [0, 1]; `raw=True` keeps bytes. Names may have a prefix, and files may be unpacked. If only one
    of the two parts is there (`train-*` or `t10k-*`), its first four fifths are to train and the last fifth to test.
    `expect_sha256` gives the hashes of files by their names.
    """
    folder = as_path("mnist", path)
    found = {part: _files(folder, part) for part in ("train", "t10k")}
    arrays = {part: _read(*files, expect_sha256 or {}) for part, files in found.items() if files is not None}
    if not arrays:
        raise InputError(
            f"mnist: no images and labels in {str(folder)!r}.",
            "a folder with train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, and the same for t10k",
        )
    images = np.concatenate([images for images, _ in arrays.values()])
    labels = np.concatenate([labels for _, labels in arrays.values()])
    n = len(images)
    n_train = len(arrays["train"][0]) if len(arrays) == 2 else n * 4 // 5
    features = images if raw else images.astype(np.float32) / 255
    return DatasetRecord(
        features.reshape(n, -1) if flat else features[..., None],
        labels.astype(np.int64),
        "mnist",
        target_names=tuple(str(label) for label in range(int(labels.max()) + 1)),
        description="Handwritten digits, 28 x 28 pixels (LeCun, Cortes and Burges).",
        parts={"train": np.arange(n_train), "test": np.arange(n_train, n)},
    )


def has_mnist(folder: Path) -> bool:
    """Whether a folder holds files as MNIST's."""
    return any(_files(folder, part) for part in ("train", "t10k"))


def _files(folder: Path, part: str) -> tuple[Path, Path] | None:
    """The images and labels of a part."""
    images, labels = (sorted(folder.glob(f"*{part}-{kind}[-.]idx*")) for kind in ("images", "labels"))
    return (images[0], labels[0]) if images and labels else None


def _read(image_file: Path, label_file: Path, hashes: Mapping[str, str]) -> tuple[np.ndarray, np.ndarray]:
    images, labels = (read_idx(file, expect_sha256=hashes.get(file.name)) for file in (image_file, label_file))
    if images.ndim != 3 or labels.ndim != 1 or len(images) != len(labels) or not len(images):
        raise ShapeError(
            f"mnist: {image_file.name} has shape {images.shape} and {label_file.name} {labels.shape}.",
            "images (n, h, w) and labels (n,) of the same part",
        )
    return images, labels
