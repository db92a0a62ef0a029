"""The header of an `.npy` file: a magic string, a version, a length, and a Python dict of plain values as text.

Read here and not by `np.load`, which allocates what the header says before it looks how much there is.
"""

from __future__ import annotations

import ast
import re
from typing import Any, Literal, NamedTuple

import numpy as np

from ...storage.bounds import array_bytes

MAGIC = b"\x93NUMPY"
_LONGEST = 10_000  # characters, as NumPy demands
_FIELDS = {"descr", "fortran_order", "shape"}


class Header(NamedTuple):
    """What an array is, where its numbers begin, and how many bytes they have."""

    dtype: np.dtype
    shape: tuple[int, ...]
    fortran: bool
    start: int
    size: int

    @property
    def order(self) -> Literal["F", "C"]:
        return "F" if self.fortran else "C"


def read_header(head: bytes) -> Header:
    """The header in the first bytes of a file; ValueError with the reason if there is none.

    >>> import io
    >>> file = io.BytesIO()
    >>> np.save(file, np.zeros((2, 3), np.float32))
    >>> read_header(file.getvalue())
    Header(dtype=dtype('float32'), shape=(2, 3), fortran=False, start=128, size=24)
    """
    if not head.startswith(MAGIC) or len(head) < 12:
        raise ValueError(f"it begins with {head[:6]!r}")
    version = (head[6], head[7])
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"version {version[0]}.{version[1]} is unknown")
    wide = 2 if version == (1, 0) else 4
    start = 8 + wide + int.from_bytes(head[8 : 8 + wide], "little")
    if start > _LONGEST + 12 or start > len(head):
        raise ValueError(f"its header should have {start:,} bytes")
    fields = _literal(head[8 + wide : start].decode("utf-8" if version == (3, 0) else "latin-1"))
    if not isinstance(fields, dict) or fields.keys() != _FIELDS:
        raise ValueError("its header has other fields than descr, fortran_order and shape")
    shape, fortran = fields["shape"], fields["fortran_order"]
    if not isinstance(shape, tuple) or not all(type(size) is int for size in shape) or type(fortran) is not bool:
        raise ValueError("its header has no shape and order")
    dtype = _dtype(fields["descr"])
    return Header(dtype, shape, fortran, start, array_bytes(shape, dtype.itemsize))


def _literal(text: str) -> object:
    try:
        # Python 2 wrote long integers with an L
        return ast.literal_eval(re.sub(r"(?<=[0-9])L(?=[,)])", "", text).strip())
    except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(f"its header is no literal: {str(error) or 'it is nested too deeply'}") from None


def _dtype(description: Any) -> np.dtype:
    try:
        dtype = np.lib.format.descr_to_dtype(description)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, SyntaxError, RecursionError) as error:
        raise ValueError(f"its header has no element type: {error}") from None
    if dtype.hasobject:
        raise ValueError("it holds Python objects, and reading them would run code")
    if not dtype.itemsize:
        raise ValueError(f"elements of type {dtype} have no bytes")
    return dtype
