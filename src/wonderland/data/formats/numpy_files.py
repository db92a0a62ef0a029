"""NumPy's own files: `.npy` with one array and `.npz` with several. Nothing in them is executed."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Any

import numpy as np

from ...errors import InputError
from ..record import DatasetRecord
from .files import damaged, read_bytes

# the pairs of names that people give, and the four of a file that is split already
_PAIRS = (("x", "y"), ("X", "y"), ("features", "targets"), ("data", "target"), ("images", "labels"), ("data", "labels"))
_SPLIT = ("x_train", "y_train", "x_test", "y_test")


def read_npy(path: Any, *, expect_size: int | None = None, expect_sha256: str | None = None) -> np.ndarray:
    """The array in an `.npy` file. Arrays of Python objects are refused: reading them would run code.

    >>> import os, tempfile, numpy as np, wonderland as wl
    >>> path = os.path.join(tempfile.mkdtemp(), "a.npy")
    >>> np.save(path, np.arange(3))
    >>> wl.data.read_npy(path)
    array([0, 1, 2])
    """
    data = read_bytes("read_npy", path, expect_size, expect_sha256)
    if not data.startswith(b"\x93NUMPY"):
        raise damaged("read_npy", path, f"an .npy file, found {data[:6]!r} at its beginning")
    try:
        return np.load(io.BytesIO(data), allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise damaged("read_npy", path, "one array of numbers", error) from None


def read_npz(path: Any, *, expect_size: int | None = None, expect_sha256: str | None = None) -> dict[str, np.ndarray]:
    """All arrays of an `.npz` file by name."""
    data = read_bytes("read_npz", path, expect_size, expect_sha256)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if (broken := archive.testzip()) is not None:
                raise damaged("read_npz", path, f"whole members, found a wrong checksum in {broken!r}")
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except InputError:
        raise
    except (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error, NotImplementedError) as error:
        raise damaged("read_npz", path, "a zip of arrays of numbers", error) from None


def npz_record(path: Any, *, features: str | None = None, targets: str | None = None, **checks: Any) -> DatasetRecord:
    """The record of an `.npz` file, whose arrays are named as usual (x and y, x_train ...) or by the options."""
    arrays = read_npz(path, **checks)
    if features is None and targets is None and set(_SPLIT) <= set(arrays):
        x_train, y_train, x_test, y_test = (arrays[name] for name in _SPLIT)
        parts = {"train": np.arange(len(x_train)), "test": np.arange(len(x_train), len(x_train) + len(x_test))}
        x, y = np.concatenate([x_train, x_test]), np.concatenate([y_train, y_test])
        return DatasetRecord(x, y, str(path), parts=parts)
    if features is None:
        known = [pair for pair in _PAIRS if set(pair) <= set(arrays)]
        if len(arrays) == 1:
            features = next(iter(arrays))
        elif known:
            features, targets = known[0][0], targets or known[0][1]
        else:
            raise InputError(
                f"load: {str(path)!r} holds {', '.join(map(repr, arrays)) or 'nothing'}; which are the features?",
                "load(path, features='name', targets='name')",
            )
    for name in (features, targets):
        if name is not None and name not in arrays:
            raise InputError(f"load: no array {name!r} in {str(path)!r}.", f"one of {', '.join(map(repr, arrays))}")
    return DatasetRecord(arrays[features], None if targets is None else arrays[targets], str(path))
