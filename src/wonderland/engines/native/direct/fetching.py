"""Asking for rows some time before they are read: their places follow no rule that a processor could guess."""

from __future__ import annotations

from collections.abc import Sequence

from ....core import dtypes
from ..text.builder import STORED
from ..text.operations import TABLE
from ..text.routine import Routine
from ..tuning import NEAR
from ..values import Take, View

LINE = 64  # bytes that come together


def is_far(take: Take) -> bool:
    """Whether a gather reads from more memory than is near, at places that an index in memory tells."""
    index = take.indices[0]
    return take.view.buffer.nbytes > NEAR and len(take.indices) == 1 and isinstance(index, View)


def fetch(r: Routine, take: Take, entry: str, entries: int, ahead: int, cells: Sequence[Sequence[str]], w: int) -> None:
    """Ask for what an entry `ahead` of this one is going to read: vectors of w lanes at the given places of its row."""
    b, (index,), item = r.b, take.indices, take.dtype.itemsize
    assert isinstance(index, View)
    later = b.intrinsic("smin", "i64", b.emit(f"add nsw i64 {entry}, {ahead}"), str(entries - 1))
    place = TABLE["astype"](b, [r.load(index, [later, *cells[0]])], [index.dtype], dtypes.int64, 1)
    inside = b.intrinsic("umin", "i64", place, str(take.sizes[0] - 1))  # nothing is read, so any place will do
    for cell in cells[:: max(LINE // (w * item), 1)]:
        at = r.linear((take.steps[0], *take.rest[1:]), (inside, *cell))
        r.prefetch(b.emit(f"getelementptr {STORED[take.dtype]}, ptr {r.pointer(take.view)}, i64 {at}"))
