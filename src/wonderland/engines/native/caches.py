"""The sizes of the host's caches, as the system tells them: what blocks of products have to fit in."""

from __future__ import annotations

import ctypes
import functools
import pathlib
import sys
from collections.abc import Iterator
from typing import NamedTuple

FOLDER = pathlib.Path("/sys/devices/system/cpu/cpu0/cache")  # Linux
NAMES = {1: b"hw.l1dcachesize", 2: b"hw.l2cachesize", 3: b"hw.l3cachesize"}  # macOS


class Caches(NamedTuple):
    """Bytes of the caches for data that the first processor reads through; where nobody tells, what most have."""

    first: int = 1 << 15
    second: int = 1 << 19
    last: int = 1 << 23


@functools.cache
def of_this_machine() -> Caches:
    known = {1: Caches().first, 2: Caches().second} | dict(_mac() if sys.platform == "darwin" else _linux(FOLDER))
    last = max(known)
    return Caches(known[1], known[2], known[last] if last > 2 else max(Caches().last, known[2]))


def _linux(folder: pathlib.Path) -> Iterator[tuple[int, int]]:
    """Levels and their bytes. A machine in a container may tell of some caches, or of none."""
    for index in folder.glob("index*"):
        try:
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        except OSError:
            continue
        if kind != "Instruction" and size[:-1].isdigit() and size.endswith(("K", "M")) and int(size[:-1]):
            yield int(level), int(size[:-1]) << (10 if size.endswith("K") else 20)


def _mac() -> Iterator[tuple[int, int]]:
    ask = ctypes.CDLL(None).sysctlbyname
    for level, name in NAMES.items():
        size, length = ctypes.c_int64(), ctypes.c_size_t(8)
        if ask(name, ctypes.byref(size), ctypes.byref(length), None, ctypes.c_size_t(0)) == 0 and size.value > 0:
            yield level, size.value
