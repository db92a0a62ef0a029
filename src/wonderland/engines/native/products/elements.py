"""Lines of a factor of few bits, brought together in memory of a chunk's own as elements of 32 bits.

An element is a term of the sum as a float32, or holds as many terms as fit as they are stored: two of bfloat16, a
*pair*, or four of int8. Whichever way the factor lies, elements are written line by line or, for instructions that want
those of many lines beside each other, one of all lines after the other. Where there are no more terms, they are 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

from ..text.builder import splat, typed
from ..text.routine import Routine
from ..values import View, transposed
from .blocks import difference, shifted, stepped
from .packing import transpose


class Span(NamedTuple):
    """A part of an axis: where it begins and ends, and the size of the whole axis."""

    start: str
    end: str
    total: int


Lines = Callable[[Callable[[str, str, int], None]], None]  # calls with a line, its place in the memory, and how many


def running(r: Routine, lines: Span, w: int) -> Lines:
    """So many lines at a time, in a loop."""
    return lambda body: stepped(
        r, lines.start, lines.end, w, lines.total, lambda i, n: body(i, difference(r, i, lines.start), n)
    )


def listed(r: Routine, start: str, count: int, w: int) -> Lines:
    """So many lines at a time, without a loop."""

    def each(body: Callable[[str, str, int], None]) -> None:
        for i in range(0, count, w):
            body(shifted(r, start, i), str(i), min(w, count - i))

    return each


class Elements:
    """A factor of shape (..., lines, terms), in elements of so many terms each."""

    def __init__(self, view: View, along: bool, terms: int, w: int) -> None:
        self.view, self.along, self.terms, self.w = view, along, terms, w  # along: the terms of a line are neighbours
        self.scalar = "i32" if terms > 1 else "float"

    def by_lines(self, r: Routine, to: str, step: int, lead: list[str], lines: Span, k: Span) -> None:
        """Write some terms of some lines, by `step` from line to line, of which there is room for whole vectors."""
        w = self.w

        def row(i: str) -> None:
            line = r.at(to, self.scalar, [step], [difference(r, i, lines.start)])

            def some(t: str, n: int) -> None:
                at = r.at(line, self.scalar, (1,), [self._before(r, difference(r, t, k.start))])
                r.store_vector(self._along(r, self.view, [*lead, i, t], n), at, self.scalar, 4, w, w)

            stepped(r, k.start, k.end, w * self.terms, k.total, some)

        def square(i: str, place: str, count: int) -> None:
            line = r.at(to, self.scalar, [step], [place])

            def some(t: str, n: int) -> None:
                got = [
                    self._beside(r, lead, shifted(r, t, a), min(self.terms, n - a), i, count)
                    for a in range(0, n, self.terms)
                ]
                got += ["zeroinitializer"] * (w - len(got))
                for a, made in enumerate(transpose(r, got, self.scalar)):
                    at = r.at(line, self.scalar, (1,), [self._before(r, difference(r, t, k.start))], a * step)
                    r.store_vector(made, at, self.scalar, 4, w, w)

            stepped(r, k.start, k.end, w * self.terms, k.total, some)

        if self.along:
            r.b.loop(lines.end, 1, row, lines.start)
        else:
            running(r, lines, w)(square)

    def by_terms(self, r: Routine, to: str, step: int, lead: list[str], lines: Lines, k: Span) -> None:
        """Write some terms of some lines, those of all lines beside each other, by `step` from element to element."""
        w = self.w

        def term(t: str, n: int) -> None:
            line = r.at(to, self.scalar, [step], [self._before(r, difference(r, t, k.start))])

            def some(i: str, place: str, count: int) -> None:
                got = self._beside(r, lead, t, n, i, count)
                r.store_vector(got, r.at(line, self.scalar, (1,), [place]), self.scalar, 4, w, w)

            lines(some)

        def square(t: str, n: int) -> None:
            line = r.at(to, self.scalar, [step], [self._before(r, difference(r, t, k.start))])

            def some(i: str, place: str, count: int) -> None:
                got = [self._along(r, self.view, [*lead, shifted(r, i, a), t], n) for a in range(count)]
                got += ["zeroinitializer"] * (w - count)
                for a, turned in enumerate(transpose(r, got, self.scalar)):
                    at = r.at(line, self.scalar, (1,), [place], a * step)
                    r.store_vector(turned, at, self.scalar, 4, w, w)

            lines(some)

        if self.along:
            stepped(r, k.start, k.end, w * self.terms, k.total, square)
        else:
            stepped(r, k.start, k.end, self.terms, k.total, term)

    def count(self, r: Routine, terms: str) -> str:
        """The elements of so many terms."""
        if terms.isdigit():
            return str(-(-int(terms) // self.terms))
        return terms if self.terms == 1 else self._before(r, shifted(r, terms, self.terms - 1))

    def _before(self, r: Routine, terms: str) -> str:
        """The elements of so many terms, which fill them."""
        if self.terms == 1:
            return terms
        shift = self.terms.bit_length() - 1
        return str(int(terms) >> shift) if terms.isdigit() else r.b.emit(f"lshr i64 {terms}, {shift}")

    def _along(self, r: Routine, view: View, index: list[str], n: int) -> str:
        """A vector of elements whose n terms follow each other along the last axis."""
        if self.terms == 1:
            return r.load(view, index, self.w, n)
        bits, count = 32 // self.terms, self.terms * self.w
        place = r.at(r.pointer(view), f"i{bits}", view.strides, index)
        parts = r.load_vector(place, f"i{bits}", bits // 8, count, n)
        return r.b.emit(f"bitcast {typed(f'i{bits}', count)} {parts} to {typed('i32', self.w)}")

    def _beside(self, r: Routine, lead: list[str], t: str, n: int, i: str, count: int) -> str:
        """A vector of elements whose n terms begin at t, of so many lines from i on."""
        view = turned(self.view)
        if self.terms == 1:
            return r.load(view, [*lead, t, i], self.w, count)
        b, bits, kind = r.b, 32 // self.terms, typed("i32", self.w)
        made = ""
        for a in range(n):
            place = r.at(r.pointer(view), f"i{bits}", view.strides, [*lead, shifted(r, t, a), i])
            parts = r.load_vector(place, f"i{bits}", bits // 8, self.w, count)
            part = b.emit(f"zext {typed(f'i{bits}', self.w)} {parts} to {kind}")
            if a:
                part = b.emit(f"shl {kind} {part}, {splat(str(a * bits), 'i32', self.w)}")
            made = b.emit(f"or {kind} {made}, {part}") if made else part
        return made


def turned(view: View) -> View:
    rank = len(view.shape)
    return cast(View, transposed(view, (*range(rank - 2), rank - 1, rank - 2)))
