"""Blocks of numbers in registers, turned: rows become lanes and lanes become rows."""

from __future__ import annotations

from collections.abc import Sequence

from .builder import Builder, typed

BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "float": 4, "double": 8}


def shuffled(b: Builder, scalar: str, w: int, x: str, y: str, lanes: Sequence[int]) -> str:
    """Lanes of x (0 .. w-1) and y (w ..)."""
    kind, n = typed(scalar, w), len(lanes)
    if n == 1:
        return b.emit(f"extractelement {kind} {x if lanes[0] < w else y}, i64 {lanes[0] % w}")
    if w == 1:
        first = b.emit(f"insertelement <2 x {scalar}> poison, {scalar} {x}, i64 0")
        return b.emit(f"insertelement <2 x {scalar}> {first}, {scalar} {y}, i64 1")
    listed = ", ".join(f"i32 {i}" for i in lanes)
    return b.emit(f"shufflevector {kind} {x}, {kind} {y}, <{n} x i32> <{listed}>")


def turned(b: Builder, scalar: str, rows: list[str], width: int) -> list[str]:
    """`width` vectors of as many lanes as there are rows, from rows of `width` lanes; both are powers of 2."""
    count = len(rows)
    if width == 1:
        return [_joined(b, scalar, rows, 1)]
    if count == 1:
        return [shuffled(b, scalar, width, rows[0], rows[0], [i]) for i in range(width)]
    side = min(count, width)
    if count > side:  # tall: squares, one behind the other
        squares = [_square(b, scalar, rows[i : i + side]) for i in range(0, count, side)]
        return [_joined(b, scalar, [square[i] for square in squares], side) for i in range(width)]
    out = []
    for start in range(0, width, side):  # wide: squares side by side
        lanes = range(start, start + side)
        out += _square(b, scalar, [shuffled(b, scalar, width, x, x, lanes) if width > side else x for x in rows])
    return out


def _joined(b: Builder, scalar: str, vectors: list[str], w: int) -> str:
    """Vectors of w lanes as one."""
    while len(vectors) > 1:
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [shuffled(b, scalar, w, x, y, range(2 * w)) for x, y in pairs]
        w *= 2
    return vectors[0]


def _square(b: Builder, scalar: str, rows: list[str]) -> list[str]:
    """Within 16 bytes first, where shuffles are cheap; then those are exchanged."""
    w = len(rows)
    if w == 1:
        return rows
    near = min(w, 16 // BYTES[scalar])
    out: list[str] = []
    for start in range(0, w, near):
        out += _near(b, scalar, rows[start : start + near], w)
    step = near
    while step < w:
        low = [i if i // step % 2 == 0 else i - step + w for i in range(w)]
        high = [i + step if i // step % 2 == 0 else i + w for i in range(w)]
        for i in (i for i in range(w) if i // step % 2 == 0):
            x, y = out[i], out[i + step]
            out[i], out[i + step] = (shuffled(b, scalar, w, x, y, lanes) for lanes in (low, high))
        step *= 2
    return out


def _near(b: Builder, scalar: str, rows: list[str], w: int) -> list[str]:
    """Squares of n rows and n lanes, side by side in vectors of w lanes: each stage interleaves two halves."""
    n, half = len(rows), len(rows) // 2
    stages = n.bit_length() - 1
    for _ in range(stages):
        lanes = [[g + h + i // 2 + i % 2 * w for g in range(0, w, n) for i in range(n)] for h in (0, half)]
        rows = [shuffled(b, scalar, w, rows[i], rows[i + half], lanes[h]) for i in range(half) for h in (0, 1)]
    return rows


def apart(b: Builder, scalar: str, w: int, both: str) -> tuple[str, str]:
    """Real and imaginary parts that come in turn in a vector of 2 w lanes."""
    real, imag = (shuffled(b, scalar, 2 * w, both, both, range(i, 2 * w, 2)) for i in range(2))
    return real, imag


def together(b: Builder, scalar: str, w: int, real: str, imag: str) -> str:
    """Real and imaginary parts in turn."""
    return shuffled(b, scalar, w, real, imag, [i // 2 + i % 2 * w for i in range(2 * w)])
