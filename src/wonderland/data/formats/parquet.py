"""Parquet, read by pyarrow (`pip install wonderland[arrow]`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...core.typing import DTypeLike, PathLike
from ..record import DatasetRecord
from ..tables.arrow import read_parquet_table
from .schema import TableSchema
from .tables import places_to_read, record_of_table


def read_parquet(
    path: PathLike,
    *,
    target: str | int | None = None,
    columns: Sequence[str | int] | None = None,
    categorical: Sequence[str | int] = (),
    encode: str = "one_hot",
    task: str = "auto",
    on_missing: str = "error",
    dtype: DTypeLike = np.float32,
    like: TableSchema | None = None,
    expect_size: int | None = None,
    expect_sha256: str | None = None,
) -> DatasetRecord:
    """The record of a Parquet file of numbers and texts. The options are those of `read_csv`; rows count from 1.

    >>> import wonderland as wl
    >>> wl.data.read_parquet("loans.parquet", target="repaid")  # doctest: +SKIP
    DatasetRecord('loans.parquet', features (1000, 7) float32, targets (1000,) int64, 2 classes)
    """

    def chosen(names: list[str]) -> list[str]:
        places, _, _ = places_to_read(str(path), names, True, target, columns, categorical, encode, task, like)
        return [names[place] for place in places]

    table, every = read_parquet_table("read_parquet", path, chosen, expect_size, expect_sha256)
    return record_of_table(
        table,
        target=target,
        columns=columns,
        categorical=categorical,
        encode=encode,
        task=task,
        on_missing=on_missing,
        dtype=dtype,
        like=like,
        every=every,
    )
