"""How large things in a file may be: sizes are checked against what is there before anything is allocated.

A packed file may unpack to `RATIO` times its own size, or to a fixed number of bytes if that is more. Data that people
keep packs by a factor of 2 to 50, so what exceeds this is damage or an attack (a few kilobytes that become gigabytes).
"""

from __future__ import annotations

import gzip
import io
import math
import zlib
from collections.abc import Sequence
from typing import Protocol

RATIO = 100
LEAST_ARRAY = 1 << 27  # bytes that numbers or pixels may always unpack to
LEAST_TEXT = 1 << 24  # and text, of which each field becomes an object
MOST_AXES = 64  # of a NumPy array
MOST_EMPTY = 1 << 24  # rows of an array without numbers, which no file size bounds
_STEP = 1 << 20


def unpacked_limit(packed: int, least: int = LEAST_ARRAY) -> int:
    """The bytes that a packed file of some size may unpack to.

    >>> unpacked_limit(300_000) / 2**20
    128.0
    """
    return max(RATIO * packed, least)


def array_bytes(shape: Sequence[int], itemsize: int) -> int:
    """The bytes of an array with these sizes; ValueError for sizes that no array has.

    >>> array_bytes((3, 4), 8)
    96
    >>> array_bytes((2**40, 2**40), 8)
    Traceback (most recent call last):
        ...
    ValueError: the shape (1099511627776, 1099511627776) is beyond any memory
    """
    if len(shape) > MOST_AXES:
        raise ValueError(f"{len(shape)} axes, where {MOST_AXES} are possible")
    if any(size < 0 for size in shape):
        raise ValueError(f"the shape {tuple(shape)} has a negative size")
    rows = 1
    for size in shape:
        rows *= max(size, 1)
        if rows * itemsize >= 2**63:
            shown = f"the shape {tuple(shape)}" if max(shape) < 2**64 else "a size"
            raise ValueError(f"{shown} is beyond any memory")
    if rows > MOST_EMPTY and (0 in shape or not itemsize):
        raise ValueError(f"the shape {tuple(shape)} has no numbers and {rows:,} rows")
    return math.prod(shape) * itemsize


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes: ...


def drained(file: Readable, most: int) -> bytes:
    """All bytes of a stream that unpacks as it is read; ValueError as soon as there are more than `most`."""
    pieces, size = [], 0
    while piece := file.read(min(_STEP, most + 1 - size)):
        pieces.append(piece)
        size += len(piece)
        if size > most:
            raise ValueError(f"it unpacks to more than {most:,} bytes")
    return b"".join(pieces)


def gunzip(packed: bytes, most: int) -> bytes:
    """The content of a gzip file, whose checksum is right; else, or if there are more than `most` bytes, ValueError.

    >>> import gzip
    >>> gunzip(gzip.compress(b"abc"), 3)
    b'abc'
    """
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
            return drained(file, most)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(str(error) or "it breaks off") from None


def gunzip_head(packed: bytes, count: int) -> bytes:
    """The first bytes of the content of a gzip file, or all of it if there are fewer."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as file:
            return file.read(count)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(str(error) or "it breaks off") from None
