"""Blocks of bytes cut into fields by arithmetic on all of them at once, where quotes and rows are regular."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .delimited_columns import Fields

_NEWLINE, _RETURN, _SPACE, _QUOTE = b'\n\r "'
_WIDEST = 256  # bytes of the longest field, up to which the fields of a column are put side by side


@dataclass(frozen=True)
class Batch:
    """Some rows of one length: the fields of each column, and the line in which each row ends."""

    columns: Sequence[Fields]
    lines: np.ndarray


def last_row_end(data: bytes) -> int:
    """Where the last whole row ends: after a line end that stands in no quotes, or 0.

    >>> last_row_end(b'1,2\\n3,"x\\n'), last_row_end(b"1")
    (4, 0)
    """
    if b'"' not in data:
        return data.rfind(b"\n") + 1
    letters = np.frombuffer(data, np.uint8)
    inside = np.cumsum(letters == _QUOTE, dtype=np.uint8) & 1
    ends = np.flatnonzero((letters == _NEWLINE) & (inside == 0))
    return int(ends[-1]) + 1 if len(ends) else 0


def split_block(data: bytes, delimiter: int, width: int, line: int) -> Batch | None:
    """The batch of whole rows that follow some lines; None if a row or a quote is not as it mostly is.

    >>> batch = split_block(b'1,"a ""b"" c"\\r\\n2,c\\n', ord(","), 2, line=1)
    >>> [column.tolist() for column in batch.columns], batch.lines.tolist()
    ([[b'1', b'2'], [b'a "b" c', b'c']], [2, 3])
    >>> split_block(b"1,2\\n3\\n", ord(","), 2, line=1) is None
    True
    """
    letters = np.frombuffer(data, np.uint8)
    quotes = _Quotes(letters) if b'"' in data else None
    is_line_end = letters == _NEWLINE
    is_end = is_line_end | (letters == delimiter)
    if quotes is not None:
        is_end &= ~quotes.inside
    stops = np.flatnonzero(is_end)
    rows = len(stops) // width
    if not rows or rows * width != len(stops):
        return None
    ends = stops.reshape(rows, width)
    if not is_line_end[ends[:, -1]].all() or is_line_end[ends[:, :-1]].any():
        return None
    starts = np.empty_like(ends)
    starts.ravel()[0] = 0
    starts.ravel()[1:] = ends.ravel()[:-1] + 1
    lines = line + (np.arange(1, rows + 1) if quotes is None else np.cumsum(is_line_end)[ends[:, -1]])
    if b"\r" in data:
        if data.count(b"\r") != data.count(b"\r\n"):
            return None
        ends[:, -1] -= letters[ends[:, -1] - 1] == _RETURN
    for _ in range(_WIDEST):
        spaces = (letters[starts] == _SPACE) & (starts < ends)
        if not spaces.any():
            break
        starts += spaces
    escaped = None
    if quotes is not None:
        escaped = quotes.taken_off(starts, ends)
        if escaped is None:
            return None
    if (ends - starts).max() > csv.field_size_limit():
        return None
    filled = (starts < ends).any(axis=1) if width == 1 else np.ones(len(starts), bool)  # blank lines are no rows
    if not filled.all():
        starts, ends, lines = starts[filled], ends[filled], lines[filled]
        escaped = None if escaped is None else escaped[filled]
    columns = []
    padded = np.concatenate([letters, np.zeros(_WIDEST, np.uint8)])
    places = np.stack([starts.T, ends.T], axis=1)  # by column, side by side in memory
    for i in range(width):
        marked = np.flatnonzero(escaped[:, i]) if escaped is not None else ()
        columns.append(_fields(data, padded, places[i, 0], places[i, 1], marked))
    return Batch(columns, lines)


def _fields(
    data: bytes, padded: np.ndarray, starts: np.ndarray, ends: np.ndarray, escaped: Sequence[int] | np.ndarray
) -> Fields:
    """The fields between these places; those with doubled quotes are `escaped`."""
    lengths = ends - starts
    longest = int(lengths.max(initial=1)) or 1
    if longest > _WIDEST or len(escaped):
        found = [data[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]
        for row in escaped:
            found[row] = found[row].replace(b'""', b'"')
        return Fields(found, lengths if not len(escaped) else None)
    packed = np.lib.stride_tricks.sliding_window_view(padded, longest)[starts]  # rows of bytes, copied at once
    packed *= np.arange(longest) < lengths[:, None]
    return Fields(packed.view(f"S{longest}").ravel(), lengths)


class _Quotes:
    """Where the quotes of a block are, and what is between them."""

    def __init__(self, letters: np.ndarray) -> None:
        self.letters = letters
        self.counted = np.cumsum(letters == _QUOTE, dtype=np.int32)
        self.inside = (self.counted & 1).astype(bool)

    def taken_off(self, starts: np.ndarray, ends: np.ndarray) -> np.ndarray | None:
        """Move the ends of quoted fields inside; which of them have doubled quotes. None if a quote is elsewhere."""
        last = self.letters.shape[0] - 1
        first_quoted = (self.letters[np.minimum(starts, last)] == _QUOTE) & (starts < ends)
        # quotes up to a place, without the one in it
        count = np.where(starts < ends, self.counted[ends - 1] - self.counted[starts] + first_quoted, 0)
        quoted = count > 0
        if (quoted != first_quoted).any() or (self.letters[ends[quoted] - 1] != _QUOTE).any() or (count & 1).any():
            return None
        starts += quoted
        ends -= quoted
        escaped = count > 2
        if escaped.any() and not self._all_doubled(starts[escaped], ends[escaped]):
            return None
        return escaped

    def _all_doubled(self, starts: np.ndarray, ends: np.ndarray) -> bool:
        data = self.letters.tobytes()
        texts = (data[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True))
        return not any(b'"' in text.replace(b'""', b"") for text in texts)
