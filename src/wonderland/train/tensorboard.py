"""The event files that TensorBoard reads: records with checksums, each a small protocol-buffer message.

A record is its length (8 bytes), a checksum of that, the message, and a checksum of the message. A message here is an
`Event`: the time, the step, and a `Summary` with a number or a histogram per tag. Only these few fields are written, so
a handful of functions does what the generated classes would.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Mapping

import numpy as np

from ..core.errors import FileError
from ..core.typing import Array, ArrayLike


class EventFile:
    """A file of events in a folder; records are appended as they come.

    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     events = EventFile(folder)
    ...     events.scalars(1, {"loss": 0.5})
    ...     events.close()
    ...     os.path.basename(events.path).startswith("events.out.tfevents.")
    True
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}"
        self.path = os.path.join(os.fspath(folder), name)
        try:
            os.makedirs(folder, exist_ok=True)
            self._file = open(self.path, "ab")  # noqa: SIM115 - it stays open until close()
        except OSError as error:
            raise FileError(f"cannot write {self.path}: {error.strerror}.", "a folder that you may write to") from None
        self._append(_bytes(3, b"brain.Event:2"))

    def scalars(self, step: int, values: Mapping[str, float]) -> None:
        """A number for each tag."""
        entries = [_bytes(1, _bytes(1, tag.encode()) + _float(2, value)) for tag, value in values.items()]
        self._append(_varint_field(2, step) + _bytes(5, b"".join(entries)))

    def histograms(self, step: int, values: Mapping[str, ArrayLike], bins: int = 30) -> None:
        """A histogram for each tag of floating numbers."""
        entries = []
        for tag, value in values.items():
            numbers = np.asarray(value)
            if numbers.size and numbers.dtype.kind == "f":
                finite = numbers.astype(np.float64).reshape(-1)
                entries.append(_bytes(1, _bytes(1, tag.encode()) + _bytes(5, _histogram(finite, bins))))
        self._append(_varint_field(2, step) + _bytes(5, b"".join(entries)))

    def _append(self, message: bytes) -> None:
        message = _double(1, time.time()) + message
        head = struct.pack("<Q", len(message))
        self._file.write(head + _checksum(head) + message + _checksum(message))
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _histogram(values: Array, bins: int) -> bytes:
    values = values[np.isfinite(values)]
    if not values.size:
        return b""
    counts, edges = np.histogram(values, bins)
    moments = (values.min(), values.max(), values.size, values.sum(), np.sum(values**2))
    return (
        b"".join(_double(i + 1, float(moment)) for i, moment in enumerate(moments))
        + _bytes(6, edges[1:].astype("<f8").tobytes())
        + _bytes(7, counts.astype("<f8").tobytes())
    )


# --- the wire format of protocol buffers: a key (field number and kind), then the value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _varint_field(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _float(field: int, value: float) -> bytes:
    return _varint(field << 3 | 5) + struct.pack("<f", value)


# --- CRC-32C, rotated and shifted as the record format wants it


def _table() -> list[int]:
    entries = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        entries.append(n)
    return entries


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """The Castagnoli checksum.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _checksum(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
