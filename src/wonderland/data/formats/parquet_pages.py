"""The pages of a Parquet file: how many bytes they say that they unpack to, before anything is unpacked.

A file ends with a footer that says where the pages of each column lie; each page has a header in front. Both are in
Thrift's compact protocol: structures of numbered fields. The sizes in the page headers count; the sums in the footer
need not be true. This is read here and not by pyarrow, some of whose accessors end the process on a damaged footer.
"""

from __future__ import annotations

from typing import Any

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_DEEPEST = 16
# the numbers of fields: of the file, a row group, a column chunk, its description, and a page
_ROW_GROUPS, _COLUMNS, _META_DATA, _PACKED_SIZE, _DATA_PAGE, _DICTIONARY_PAGE = 4, 1, 3, 7, 9, 11
_PAGE_UNPACKED, _PAGE_PACKED = 2, 3


def unpacked_pages(data: bytes) -> int:
    """The bytes that all pages of a file promise; ValueError if they do not lie where the footer says."""
    length = int.from_bytes(data[-8:-4], "little")
    start = len(data) - 8 - length
    if start < 0:
        raise ValueError(f"a footer of {length:,} bytes")
    total = 0
    for group in _entries(_Compact(data, start, len(data) - 8).struct(), _ROW_GROUPS):
        for column in _entries(group, _COLUMNS):
            chunk = column.get(_META_DATA)
            if not isinstance(chunk, dict):
                raise ValueError("a column without a description")
            place = min(chunk.get(_DATA_PAGE, -1), chunk.get(_DICTIONARY_PAGE, len(data)))
            end = place + chunk.get(_PACKED_SIZE, -1)
            if not 0 < place <= end <= start:
                raise ValueError("a column lies outside of the file")
            while place < end:
                reader = _Compact(data, place, end)
                page = reader.struct()
                unpacked, packed = page.get(_PAGE_UNPACKED, -1), page.get(_PAGE_PACKED, -1)
                if unpacked < 0 or packed < 0:
                    raise ValueError("a page has no size")
                total += unpacked
                place = reader.place + packed
    return total


def _entries(fields: dict[int, Any], number: int) -> list[dict[int, Any]]:
    found = fields.get(number, [])
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise ValueError("its footer makes no sense")
    return found


class _Compact:
    """Reads the compact protocol from a place on: integers, structures and lists by numbers; texts are skipped."""

    def __init__(self, data: bytes, place: int, end: int) -> None:
        self.data, self.place, self.end = data, place, end

    def struct(self, depth: int = 0) -> dict[int, Any]:
        if depth > _DEEPEST:
            raise ValueError("a header is nested too deeply")
        found: dict[int, Any] = {}
        field = 0
        while head := self._byte():
            field = field + (head >> 4) if head >> 4 else self._integer()
            value = self._value(head & 15, depth)
            if value is not None:
                found[field] = value
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (_I16, _I32, _I64):
            return self._integer()
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind in (_LIST, _SET):
            head = self._byte()
            count = self._count(head >> 4 if head >> 4 < 15 else self._unsigned())
            return [self._element(head & 15, depth) for _ in range(count)]
        if kind == _MAP:
            count = self._count(self._unsigned())
            kinds = self._byte() if count else 0
            for _ in range(count):
                self._element(kinds >> 4, depth)
                self._element(kinds & 15, depth)
        elif kind in (_BYTE, _DOUBLE, _BINARY):
            self._skip({_BYTE: 1, _DOUBLE: 8}.get(kind) or self._unsigned())
        elif kind not in (_TRUE, _FALSE):  # which have no bytes of their own
            raise ValueError(f"a header has a field of kind {kind}")
        return None

    def _element(self, kind: int, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError("a header is nested too deeply")
        return self._skip(1) if kind in (_TRUE, _FALSE) else self._value(kind, depth + 1)

    def _count(self, count: int) -> int:
        if count > self.end - self.place:  # each element has a byte or more
            raise ValueError("a header has a list that is longer than the file")
        return count

    def _byte(self) -> int:
        if self.place >= self.end:
            raise ValueError("a header breaks off")
        self.place += 1
        return self.data[self.place - 1]

    def _skip(self, count: int) -> None:
        self.place += count

    def _unsigned(self) -> int:
        """An integer in groups of seven bits, the last one with its upper bit clear."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self._byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise ValueError("a header has an integer without an end")

    def _integer(self) -> int:
        """A signed integer: 0, -1, 1, -2, ... are 0, 1, 2, 3, ..."""
        value = self._unsigned()
        return value >> 1 ^ -(value & 1)
