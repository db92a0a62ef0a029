"""Data that a program has in memory: arrays, tensors and records, as the data of a run."""

from __future__ import annotations

import numpy as np

from ..core.errors import InputError
from ..core.tensor import Tensor
from ..data import DatasetRecord


def as_record(source: object) -> DatasetRecord:
    """A record of an array of inputs, of a pair (inputs, targets), or of nested lists; one that is a record stays.

    >>> as_record([[0.0, 1.0], [2.0, 3.0]])
    DatasetRecord('data', features (2, 2) float32)
    >>> as_record((np.zeros((3, 2)), np.arange(3)))
    DatasetRecord('data', features (3, 2) float64, targets (3,) int64)
    """
    if isinstance(source, DatasetRecord):
        return source
    if isinstance(source, tuple) and len(source) == 2 and all(hasattr(part, "shape") for part in source):
        return DatasetRecord(np.asarray(source[0]), np.asarray(source[1]))
    if isinstance(source, (np.ndarray, Tensor)) or hasattr(source, "__array__"):
        array = np.asarray(source)
    elif isinstance(source, (list, tuple)):
        array = _of_lists(source)
    else:
        raise InputError(
            f"a {type(source).__name__} is no data.",
            "a path, a table (a DataFrame, dicts of columns or rows), an array, or a record of wl.data",
        )
    if array.dtype.kind not in "biuf" or not array.ndim:
        raise InputError(f"the data are an array of type {array.dtype} and shape {array.shape}.", "numbers, a row each")
    return DatasetRecord(array)


def _of_lists(source: list[object] | tuple[object, ...]) -> np.ndarray:
    try:
        array = np.array(source)
    except ValueError:
        raise InputError("the data are lists of different lengths.", "rows of one length") from None
    # what is written as 0.5 is as exact as what models compute with
    return array.astype(np.float32) if array.dtype == np.float64 else array
