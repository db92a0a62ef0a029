"""Which steps compute a transform.

Transforms of up to `room` numbers are one step, with signals in the lanes of vectors. Longer ones, and those of so few
signals that lanes would be empty, are made of two, by n = first * second:

    y_(k + first l) = sum_j w_second^(j l) [ w_n^(j k) sum_i w_first^(i k) x_(second i + j) ],

where w_m = exp(sign 2 pi i / m).

The first step has j in its lanes, the second one k. Real signals of even size are half as many complex numbers; those
of odd size are complex. Where a few signals lie side by side in memory they are copied one behind the other first.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ....core.dtypes import DType
from ....ir.graph import Equation
from .. import values
from ..complexes.on_arrays import OnComplex
from ..direct.step import takes_rows
from ..tuning import FEW_NUMBERS, HEAVY, LOCAL_NUMBERS
from ..values import Const, Op, Value, View
from .ends import Across, Along, End
from .mixing import Mixing
from .roots import LONGEST, between, is_smooth, split
from .transform import Kind, Transform, constant

if TYPE_CHECKING:
    from ..schedule import Schedule


def fourier(s: Schedule, e: Equation) -> bool:
    """Any of the three primitives, on complex arrays as they are in memory."""
    assert isinstance(e.primitive, OnComplex)
    inner = e.primitive.equation
    name, params, shape = inner.primitive.name, inner.params, inner.inputs[0].shape
    axes = params["axes"] if name == "fft" else (params["axis"],)
    sizes = [params.get("n", shape[a]) for a in axes]
    if not all(n <= LONGEST and is_smooth(n) for n in sizes):
        return False
    inverse = params["inverse"] if name == "fft" else name == "irfft"
    scales = [_scale(n, inverse, params["norm"]) for n in sizes]
    dtype = e.outputs[0].dtype
    if name == "rfft":
        found = _Lines(s, name, shape, axes[0], dtype).spectrum(s.value(e.inputs[0]), scales[0])
    elif name == "irfft":
        given = _given(s, e)
        found = _Lines(s, name, inner.outputs[0].shape, axes[0], dtype).signal(given, scales[0])
    else:
        sign = 1 if inverse else -1
        found = _Lines(s, name, shape, axes[0], dtype).complex(_given(s, e), sign, scales[0])
        for axis, scale in zip(axes[1:], scales[1:], strict=True):
            found = _Lines(s, name, shape, axis, dtype).complex(found, sign, scale)
    s.bind(e.outputs[0], found)
    return True


Complex = (
    View | tuple[Value, Value]
)  # in memory, parts being the last axis; or parts that are computed as they are read


def _given(s: Schedule, e: Equation) -> Complex:
    if len(e.inputs) == 1:
        return s.in_memory(s.value(e.inputs[0]))
    real, imag = (s.value(a) for a in e.inputs)
    if all(takes_rows(x) and not (isinstance(x, Op) and x.weight > HEAVY) for x in (real, imag)):
        real = s.ready(real)
        return s.settled(real), s.ready(imag)
    made = s.new((*real.shape, 2), e.outputs[0].dtype)
    for i, part in enumerate((real, imag)):
        s.store(View(made.buffer, real.shape, made.strides[:-1], i), part)
    s.close_writers(made.buffer)
    return made


def _scale(n: int, inverse: bool, norm: str) -> float:
    if norm == "ortho":
        return 1 / math.sqrt(n)
    return 1 / n if inverse == (norm == "backward") else 1.0


class _Lines:
    """The transforms along an axis of a tensor, as (outer, n, lanes) or, with the axis behind all others, (outer, n).

    `shape` is that of the signals; spectra of real ones have another size along the axis.
    """

    def __init__(self, s: Schedule, name: str, shape: tuple[int, ...], axis: int, dtype: DType) -> None:
        self.s, self.name, self.dtype = s, name, dtype
        self.axis, self.n = axis, shape[axis]
        self.width = s.cpu.lanes(dtype.itemsize)
        self.room = LOCAL_NUMBERS // (2 * self.width * dtype.itemsize)
        front, behind = shape[:axis], shape[axis + 1 :]
        self.across = math.prod(behind) >= max(2, self.width // 2)
        # else, what is behind the axis is brought in front of it
        rank = len(shape)
        self.order = tuple(range(rank)) if self.across else (*range(axis), *range(axis + 1, rank), axis)
        self.front = front if self.across else front + behind
        self.behind = behind if self.across else ()
        self.lanes = (math.prod(behind),) if self.across else ()
        self.outer: tuple[int, ...] = (math.prod(self.front),)

    def complex(self, x: Complex, sign: int, scale: float) -> View:
        source = self._lines(x, self.n)
        out, place = self._new(self.n, (2,))
        self._transform(source, place, sign, scale)
        return out

    def spectrum(self, value: Value, scale: float) -> View:
        n, half = self.n, self.n // 2
        if self._long(n if n % 2 else half):
            given = self._view(self._grouped(self.s.in_memory(value), n, ()))
            if n % 2:
                out, place = self._new(n, (2,))
                self._transform(self._full(given), place, -1, scale)
                return self._view(self._part(out, self.axis, 0, half + 1))
            out, place = self._new(half + 1, (2,))
            between = self._new(half, (2,))[1]
            self._transform(self._pairs(given), between, -1, 1.0)
            self.s.emit(Mixing(self.s.cpu, self._views(between), self._views(place), half, True, scale, self.across))
            return out
        heavy = not takes_rows(value) or (isinstance(value, Op) and value.weight > HEAVY)
        x = self._grouped(self.s.in_memory(value) if heavy else self.s.ready(value), n, ())
        out, place = self._new(half + 1, (2,))
        kind = Kind(n, -1, scale, "part") if n % 2 else Kind(half, -1, scale, "spectrum")
        self._emit(kind, self._real(x), self._complex(place))
        return out

    def signal(self, x: Complex, scale: float) -> View:
        n, half = self.n, self.n // 2
        spectrum = self._lines(x, half + 1)
        if self._long(n if n % 2 else half):
            if n % 2:
                out, place = self._new(n, (2,))
                self._transform(self._mirrored(spectrum), place, 1, scale)
                return self._one(out, 0)
            out, place = self._new(n, ())
            between = self._new(half, (2,))[1]
            source, target = self._parts(spectrum), self._views(between)
            self.s.emit(Mixing(self.s.cpu, source, target, half, False, scale, self.across))
            self._transform(between, self._pairs(place), 1, 1.0)
            return out
        out, place = self._new(n, ())
        kind = Kind(n, 1, scale, "mirrored") if n % 2 else Kind(half, 1, scale, "signal")
        self._emit(kind, self._complex(spectrum), self._real(place))
        return out

    # --- shapes

    def _grouped(self, x: Value, size: int, parts: tuple[int, ...]) -> Value:
        """A tensor as (outer, size, lanes), perhaps with an axis of parts; in memory if it must be."""
        x = values.transposed(x, (*self.order, *range(len(self.order), len(self.order) + len(parts))))
        end = (size, *self.lanes, *parts)
        found = values.reshaped(x, (*self.outer, *end))
        if found is None and not self.across and self.front[-1] >= self.width:
            found = values.reshaped(x, (*self.front, *end))  # frames that overlap are no even rows of one axis
            self.outer = self.outer if found is None else self.front
        if found is None:
            found = values.reshaped(self.s.contiguous(x), (*self.outer, *end))
        assert found is not None
        return found

    def _lines(self, x: Complex, size: int) -> Complex:
        """Complex numbers as (outer, size, lanes), or (outer, size, lanes, 2) where they are in memory."""
        if isinstance(x, View):
            return self._view(self._grouped(x, size, (2,)))
        real, imag = (self._grouped(part, size, ()) for part in x)
        if real.shape != imag.shape:  # one has axes that are not even
            real = self._view(self._grouped(self.s.contiguous(x[0]), size, ()), imag.shape)
        return real, imag

    def _parts(self, x: Complex) -> tuple[Value, Value]:
        return self._views(x) if isinstance(x, View) else x

    def _views(self, x: View) -> tuple[View, View]:
        """Real and imaginary parts of what has them as its last axis."""
        return self._one(x, 0), self._one(x, 1)

    def _new(self, size: int, parts: tuple[int, ...]) -> tuple[View, View]:
        """Memory for a result: the result, and as (outer, size, lanes)."""
        made = self.s.new((*self.front, size, *self.behind, *parts), self.dtype)
        back = [self.order.index(a) for a in range(len(self.order))]
        out = values.transposed(made, (*back, *range(len(back), len(back) + len(parts))))
        return self._view(out), self._view(made, (*self.outer, size, *self.lanes, *parts))

    @staticmethod
    def _view(x: Value | None, shape: tuple[int, ...] | None = None) -> View:
        found = x if x is None or shape is None else values.reshaped(x, shape)
        assert isinstance(found, View)
        return found

    def _part(self, x: Value, axis: int, start: int, stop: int, step: int = 1) -> Value:
        """Some places of an axis."""
        axis %= len(x.shape)
        index: list[tuple[int | None, int | None, int | None]] = [(0, n, 1) for n in x.shape]
        index[axis] = start, None if stop < 0 else stop, step
        size = len(range(start, stop, step))
        return values.sliced(x, index, (*x.shape[:axis], size, *x.shape[axis + 1 :]))

    def _one(self, x: View, part: int) -> View:
        """Real or imaginary parts of what has them as its last axis."""
        return View(x.buffer, x.shape[:-1], x.strides[:-1], x.offset + part * x.strides[-1])

    def _pairs(self, x: View) -> View:
        """Real numbers (outer, n, lanes) as complex ones (outer, n / 2, lanes, parts)."""
        at, step = len(self.outer), x.strides[len(self.outer)]
        shape = (*x.shape[:at], x.shape[at] // 2, *x.shape[at + 1 :], 2)
        return View(x.buffer, shape, (*x.strides[:at], 2 * step, *x.strides[at + 1 :], step), x.offset)

    def _full(self, x: View) -> View:
        """Real numbers as complex ones."""
        made = self._new(self.n, (2,))[1]
        self.s.store(self._one(made, 0), x)
        self.s.store(self._one(made, 1), Const(0, self.dtype, x.shape))
        self.s.close_writers(made.buffer)
        return made

    def _mirrored(self, x: Complex) -> View:
        """A spectrum from its first half."""
        at, half = len(self.outer), self.n // 2
        made = self._new(self.n, (2,))[1]

        def put(part: int, start: int, stop: int, value: Value) -> None:
            self.s.store(self._view(self._part(self._one(made, part), at, start, stop)), value)

        for part, given in enumerate(self._parts(x)):
            back = self._part(given, at, half, 0, -1)
            put(part, half + 1, self.n, Op("negative", [back], back.shape, self.dtype) if part else back)
            put(part, part, half + 1, self._part(given, at, part, half + 1))
            if part:
                put(1, 0, 1, Const(0, self.dtype, self._part(given, at, 0, 1).shape))
        self.s.close_writers(made.buffer)
        return made

    # --- steps

    def _long(self, n: int) -> bool:
        """Whether transforms of n complex numbers are made of two steps."""
        few = not self.across and 2 * math.prod(self.outer) <= self.width and n >= FEW_NUMBERS
        return n > self.room or few

    def _transform(self, x: Complex, y: View, sign: int, scale: float) -> None:
        """y = the transform of x."""
        at = len(self.outer)
        n = y.shape[at]
        if not self._long(n):
            self._emit(Kind(n, sign, scale), self._complex(x), self._complex(y))
            return
        first, second = split(n)
        inner = self._new(n, (2,))[1]
        roots = constant(between(first, second, sign, self.dtype))
        inner = self._view(inner, (*self.outer, first, second, *self.lanes, 2))
        factors = View(roots.buffer, inner.shape, (*(0,) * at, second, 1, *(0 for _ in self.lanes), first * second))
        source, target, beside = (self._columns(v, first, second) for v in (x, inner, factors))
        self.s.emit(Transform(self.s.cpu, Kind(first, sign, 1.0), source, target, self.name, beside))
        self._emit(Kind(second, sign, scale), self._complex(inner), self._columns(y, second, first))

    def _columns(self, x: Complex, rows: int, columns: int) -> Across:
        """Numbers (outer, rows * columns, lanes) for transforms along columns; with lanes, columns are outer."""
        parts = []
        for part in self._parts(x):
            shape = (*self.outer, rows, columns, *self.lanes)
            found = values.reshaped(part, shape)
            found = found if found is not None else self._view(self.s.contiguous(part), shape)
            at, order = len(self.outer), list(range(len(shape)))
            if self.across:
                order[at], order[at + 1] = at + 1, at
            parts.append(values.transposed(found, tuple(order)))
        return Across(*parts)

    def _emit(self, kind: Kind, source: End, target: End) -> None:
        self.s.emit(Transform(self.s.cpu, kind, source, target, self.name))

    def _complex(self, x: Complex) -> End:
        if self.across:
            return Across(*self._parts(x))
        if not isinstance(x, View):
            return Along(x[0], False, x[1])
        rows = values.reshaped(x, (*x.shape[:-2], 2 * x.shape[-2]))
        return Along(rows or self._view(self.s.contiguous(x), (*x.shape[:-2], 2 * x.shape[-2])), True)

    def _real(self, x: Value) -> End:
        at = len(self.outer)
        if not self.across:
            return Along(x, self.n % 2 == 0)
        if self.n % 2:
            return Across(x, None)
        return Across(self._part(x, at, 0, self.n, 2), self._part(x, at, 1, self.n, 2))
