"""Registers of tiles for processors that have none: what AMX's instructions do, in Python.

`emulated` takes a routine's text and lets it call these functions instead. They follow Intel's description of the
instructions, and note what a processor would not do: a tile that was not configured, or tiles that do not fit.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections import Counter
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
PALETTE, WIDTHS, HEIGHTS = 0, slice(16, 32), slice(48, 56)  # of a configuration


class Tiles(threading.local):
    """The tiles of a thread: their rows and bytes of a row, and what is in them; None while none are in use."""

    shapes: list[tuple[int, int]] | None = None
    held: dict[int, Array]


class Emulator:
    def __init__(self) -> None:
        self.tiles = Tiles()
        self.calls: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._kept = [
            self._function("ldtilecfg", self._configure, ctypes.c_void_p),
            self._function("tilerelease", self._release),
            self._function("tilezero", self._zero, ctypes.c_uint8),
            self._function("tileloadd64", self._load, ctypes.c_uint8, ctypes.c_void_p, ctypes.c_int64),
            self._function("tilestored64", self._store, ctypes.c_uint8, ctypes.c_void_p, ctypes.c_int64),
            self._function("tdpbf16ps", self._halves, *[ctypes.c_uint8] * 3),
            self._function("tdpbssd", self._bytes, *[ctypes.c_uint8] * 3),
        ]
        self._addresses = {name: ctypes.cast(function, ctypes.c_void_p).value for name, function in self._kept}

    def emulated(self, text: str) -> str:
        """A routine that calls the emulator, which must live as long as it; its own memory holds NaN at first."""
        names = "|".join(self._addresses)
        text, count = re.subn(r"^  (%\w+) = alloca \[(\d+) x (?:i32|float)\].*", _filled, text, flags=re.MULTILINE)
        text = f"declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n{text}" if count else text
        text = re.sub(rf"^declare void @llvm\.x86\.({names})\(.*\n", "", text, flags=re.MULTILINE)
        return re.sub(
            rf"@llvm\.x86\.({names})\(", lambda found: f"inttoptr (i64 {self._addresses[found[1]]} to ptr)(", text
        )

    def _function(self, name: str, body: Any, *kinds: Any) -> tuple[str, Any]:
        def call(*args: int) -> None:
            self.calls[name] += 1
            try:
                body(*args)
            except Exception as error:  # it cannot go through native code
                self.wrong.append(f"{name}{args}: {error!r}")

        return name, ctypes.CFUNCTYPE(None, *kinds)(call)

    # --- the instructions

    def _configure(self, place: int) -> None:
        found = np.frombuffer(ctypes.string_at(place, 64), np.uint8)
        widths, heights = found[WIDTHS].view(np.uint16).tolist(), found[HEIGHTS].tolist()
        assert found[PALETTE] == 1
        assert max(widths) <= 64
        assert max(heights) <= 16
        rest = np.delete(found, [PALETTE, *range(16, 32), *range(48, 56)])
        assert not rest.any()
        self.tiles.shapes = list(zip(heights, widths, strict=True))
        self.tiles.held = {i: np.zeros(shape, np.uint8) for i, shape in enumerate(self.tiles.shapes)}

    def _release(self) -> None:
        self._held(0)
        self.tiles.shapes = None

    def _held(self, tile: int) -> Array:
        assert self.tiles.shapes is not None, "no configuration"
        return self.tiles.held[tile]

    def _zero(self, tile: int) -> None:
        self._held(tile)[:] = 0

    def _load(self, tile: int, place: int, step: int) -> None:
        for i, row in enumerate(self._held(tile)):
            row[:] = np.frombuffer(ctypes.string_at(place + i * step, len(row)), np.uint8)

    def _store(self, tile: int, place: int, step: int) -> None:
        for i, row in enumerate(self._held(tile)):
            ctypes.memmove(place + i * step, row.tobytes(), len(row))

    def _factors(self, sums: int, x: int, y: int) -> tuple[Array, Array]:
        (rows, width), (m, k), (n, across) = (self._held(tile).shape for tile in (sums, x, y))
        assert len({sums, x, y}) == 3, "tiles must differ"
        assert (m, 4 * n, across) == (rows, k, width), "tiles do not fit"
        return self._held(x), self._held(y)

    @np.errstate(all="ignore")  # rows behind the last one hold anything
    def _halves(self, sums: int, x: int, y: int) -> None:
        """Sums of the first and of the second terms of pairs are made apart, and then added to those in the tile."""
        halves = (v.copy().view(np.uint16).astype(np.uint32) << 16 for v in self._factors(sums, x, y))
        a, b = (_flushed(v.view(np.float32)).astype(np.float64).reshape(len(v), -1, 2) for v in halves)
        a, b = a.transpose(1, 2, 0), b.transpose(0, 2, 1)  # by pairs, then first and second terms
        total = self._held(sums).view(np.float32)
        parts = np.zeros((2, *total.shape), np.float32)
        for rows, columns in zip(a[..., None], b[:, :, None], strict=True):
            parts = _flushed((parts + rows * columns).astype(np.float32))
        total[:] = _flushed(total + _flushed(parts[0] + parts[1]))

    def _bytes(self, sums: int, x: int, y: int) -> None:
        a, b = (v.view(np.int8).astype(np.int32) for v in self._factors(sums, x, y))
        b = b.reshape(len(b), -1, 4).swapaxes(1, 2).reshape(4 * len(b), -1)  # rows of the terms
        self._held(sums).view(np.int32)[:] += a @ b


def _flushed(x: Array) -> Array:
    """Subnormal numbers are taken for 0."""
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.float32(0), x)


def _filled(memory: re.Match[str]) -> str:
    """A piece of a routine's memory that holds NaN at first."""
    place, count = memory.groups()
    return f"{memory[0]}\n  call void @llvm.memset.p0.i64(ptr {place}, i8 -1, i64 {4 * int(count)}, i1 false)"
