"""The datasets that come with the package, checked by hash when they are read. CREDITS.txt says where they are from."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...core.typing import DTypeLike
from ..formats.numpy_files import read_npz
from ..record import DatasetRecord

_SHA256 = {
    "digits": "1687b4e0f83a9ccbbb8b5e512163af1206abf6feaa4159df1eeec5eae5e9b9aa",
    "iris": "0ee04fa615123c7b3ea19d56db8b1ec28861d65f2e44a730cf9e00b1eccfa3bf",
}


def digits(*, flat: bool = False, raw: bool = False) -> DatasetRecord:
    """1,797 handwritten digits of 8 x 8 pixels, 1,437 to train and 360 to test, with the shares of the classes kept.

    >>> import wonderland as wl
    >>> wl.data.digits()
    DatasetRecord('digits', features (1797, 8, 8, 1) float32, targets (1797,) int64, 10 classes, train 1437, test 360)
    >>> x, y = wl.data.digits(flat=True).train.arrays
    >>> x.shape, float(x.max())
    ((1437, 64), 1.0)

    Pixels are in [0, 1]; `raw=True` leaves them as stored, counts from 0 to 16 (uint8). `flat=True` gives vectors of 64
    numbers. The examples are scikit-learn's, in its order (UCI, Alpaydin and Kaynak 1998, CC BY 4.0).
    """
    arrays, parts = _read("digits")
    images = arrays["images"] if raw else arrays["images"].astype(np.float32) / 16
    return DatasetRecord(
        images.reshape((-1, 64) if flat else (-1, 8, 8, 1)),
        arrays["labels"].astype(np.int64),
        "digits",
        tuple(f"pixel_{i}_{j}" for i in range(8) for j in range(8)) if flat else (),
        tuple("0123456789"),
        "Handwritten digits, 8 x 8 pixels. UCI, Alpaydin and Kaynak (1998), CC BY 4.0.",
        parts,
    )


def iris(*, dtype: DTypeLike = np.float32) -> DatasetRecord:
    """Four lengths (cm) of 150 flowers of three kinds, 120 to train and 30 to test. Book, chapter 4 (exercises).

    >>> import wonderland as wl
    >>> wl.data.iris().features[0]
    array([5.1, 3.5, 1.4, 0.2], dtype=float32)
    """
    arrays, parts = _read("iris")
    return DatasetRecord(
        (arrays["millimetres"] / 10).astype(dtype),
        arrays["labels"].astype(np.int64),
        "iris",
        ("sepal length (cm)", "sepal width (cm)", "petal length (cm)", "petal width (cm)"),
        ("setosa", "versicolor", "virginica"),
        "Lengths of sepals and petals of three kinds of iris. UCI, Fisher (1936), CC BY 4.0.",
        parts,
    )


def _read(name: str) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    arrays = read_npz(Path(__file__).with_name(f"{name}.npz"), expect_sha256=_SHA256[name])
    test = np.unpackbits(arrays["test"], count=len(arrays["labels"])).astype(bool)
    return arrays, {"train": np.flatnonzero(~test), "test": np.flatnonzero(test)}
