"""Steps that compute targets from expressions in a way of their own: what they have in common."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ....ir.sizes import Extent, pieces
from ..kernels.kernel import merged
from ..labels import Work, fused, operations
from ..processor import Processor
from ..text.describe import Description
from ..text.routine import Routine, slots_of
from ..tuning import MOST_CHUNKS, SHORT
from ..values import Buffer, Shape, Take, Value, View, accesses, leaves, parts, regrouped


class Direct:
    """`values` are read, `targets` are written, `scratch` is memory for the time of the step."""

    def __init__(
        self, values: Sequence[Value], targets: Sequence[View], scratch: Sequence[View] = (), notes: Sequence[View] = ()
    ) -> None:
        self.values, self.targets, self.scratch, self.notes = values, targets, scratch, notes
        read = [leaf for value in values for leaf in leaves(value)]
        self.views: list[View] = [*read, *targets, *scratch, *notes]
        self.reads: list[Buffer] = [v.buffer for v in [*read, *scratch, *notes]]
        self.writes: list[Buffer] = [v.buffer for v in [*targets, *scratch]]
        self.share = Share(1, 0)

    @property
    def chunks(self) -> int:
        return self.share.chunks

    @property
    def work(self) -> Work:
        done = operations(self.values) + max(int(math.prod(v.shape)) for v in self.values)
        name = getattr(self, "name", type(self).__name__.lower())
        return f"{name} {self.values[0].shape}{fused([self.values[0]])}", done

    def settings(self) -> object:
        """What the text depends on besides values and targets."""
        return ()

    def describe(self) -> str:
        d = Description(slots_of(self.views))
        lines = [f"{type(self).__name__} {self.settings()!r} {self.share.step} {self.share.chunks}"]
        lines += [d.view(v) for v in [*self.targets, *self.scratch, *self.notes]]
        lines += [f"{d.value(v)} {v.shape}" for v in self.values]
        return "\n".join([*lines, *d.lines])


class Share:
    """range(total) in pieces of `step`, one for each chunk: pieces of some 40 microseconds."""

    def __init__(self, total: int, microseconds: float, unit: int = 1, most: int = MOST_CHUNKS) -> None:
        self.total = total
        wanted = 1 if microseconds < SHORT else min(max(4, round(microseconds / 40)), most)
        self.step = max(1, -(-int(total) // (wanted * unit)) * unit)
        self.chunks = pieces(total, self.step) if isinstance(total, Extent) else max(1, -(-total // self.step))

    def range(self, r: Routine) -> tuple[str, str]:
        """The piece of the chunk that is running."""
        open_ended = isinstance(self.total, Extent)
        if self.chunks == 1 and not open_ended:
            return "0", str(self.total)
        low = r.b.emit(f"mul nsw i64 {r.chunk}, {self.step}")
        high = r.b.emit(f"add nsw i64 {low}, {self.step}")
        fits = not open_ended and self.total % self.step == 0
        return low, high if fits else r.b.intrinsic("smin", "i64", high, r.size(self.total))


def grouped(space: Shape, kinds: list[int], values: Sequence[Value]) -> list[list[int]]:
    """Axes of one kind that everything steps through evenly, together. Values of fewer axes lack the last ones."""
    found = [s + (0,) * (len(space) - len(s)) for value in values for s in accesses(value)]
    return merged(space, found, kinds)


def on_groups(value: Value, groups: list[list[int]]) -> Value:
    """The value with one axis for every group."""
    return regrouped(value, groups, {})


def flat_view(view: View, groups: list[list[int]]) -> View:
    found = on_groups(view, groups)
    assert isinstance(found, View)
    return found


def spread_index(r: Routine, number: str, sizes: Sequence[int]) -> list[str]:
    """The index with a given number, in the order of memory."""
    index: list[str] = []
    for place, size in reversed(list(enumerate(sizes))):
        outermost = math.prod(sizes[:place]) == 1
        if size == 1 or number == "0":
            index.append("0")
        else:
            index.append(number if outermost else r.b.emit(f"urem i64 {number}, {r.size(size)}"))
            number = "0" if outermost else r.b.emit(f"udiv i64 {number}, {r.size(size)}")
    return index[::-1]


def lanes_for(cpu: Processor, values: Sequence[Value], size: int) -> int:
    """The lanes of a vector along an axis of a given size: 32-bit lanes fill one, wider types take several."""
    if isinstance(size, Extent):
        return 1
    wide = all(part.dtype.itemsize == 8 for part in parts(*values))
    w = cpu.lanes(8 if wide else 4)
    while w > 1 and w // 2 >= size:
        w //= 2
    return w


def vectors_between(r: Routine, low: str, high: str, total: int, w: int, body: Callable[[str, int, int], None]) -> None:
    """body(place, w, n) from low, a multiple of w, to high, which is one too unless it is the end of the axis."""
    b, rest = r.b, total % w
    if low == "0" and high == str(total):
        r.vectors(total, w, body)
        return
    if not rest:
        b.loop(high, w, lambda i: body(i, w, w), low)
        return
    whole = b.intrinsic("smin", "i64", high, str(total - rest))
    b.loop(whole, w, lambda i: body(i, w, w), low)
    last = b.emit(f"icmp eq i64 {high}, {total}")
    b.when(last, lambda: body(str(total - rest), w, rest))


def takes_rows(value: Value) -> bool:
    """Whether everything that a value gathers lies along the last axis in memory."""
    return all(not part.rest or part.rest[-1] in (0, 1) for part in parts(value) if isinstance(part, Take))
