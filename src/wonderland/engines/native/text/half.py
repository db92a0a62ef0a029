"""float16 in memory, float32 in registers: by the processor's instructions, or where it has none by arithmetic on bits.

float16   sign, 5 bits of exponent (bias 15), 10 bits of fraction
float32   sign, 8 bits of exponent (bias 127), 23 bits of fraction
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .builder import Builder

SHIFT = 13  # bits of fraction that float32 has more
SCALE = (127 - 15 + 127) << 23  # the bits of 2^112: from the exponents of one to those of the other
INFINITY, NARROW_INFINITY, NARROW_NAN = 0x7F800000, 0x7C00, 0x7E00
TOO_LARGE = (127 + 16) << 23  # the bits of 2^16, which is infinity in float16
SUBNORMAL = (127 - 14) << 23  # the bits of 2^-14: below, the fraction has fewer digits
HALF = 126 << 23  # the bits of 0.5, whose last digit is that of the smallest float16 numbers


def widened(b: Builder, value: str, w: int) -> str:
    """Stored bits as float32."""
    bits, kind = _typed("i32", w), _typed("float", w)
    if b.cpu.converts_half:
        narrow = b.emit(f"bitcast {_typed('i16', w)} {value} to {_typed('half', w)}")
        return b.emit(f"fpext {_typed('half', w)} {narrow} to {kind}")
    wide = b.emit(f"zext {_typed('i16', w)} {value} to {bits}")
    size = b.emit(f"shl {bits} {b.emit(f'and {bits} {wide}, {_all(0x7FFF, w)}')}, {_all(SHIFT, w)}")
    # a product with a power of two moves the exponent, also of subnormal numbers
    scaled = b.emit(f"fmul {kind} {_as(b, size, kind, bits)}, {_as(b, _all(SCALE, w), kind, bits)}")
    special = b.emit(f"icmp uge {bits} {size}, {_all(NARROW_INFINITY << SHIFT, w)}")
    infinite = b.emit(f"or {bits} {size}, {_all(INFINITY, w)}")
    found = b.emit(f"select {_typed('i1', w)} {special}, {bits} {infinite}, {bits} {_as(b, scaled, bits, kind)}")
    sign = b.emit(f"shl {bits} {b.emit(f'and {bits} {wide}, {_all(0x8000, w)}')}, {_all(16, w)}")
    return _as(b, b.emit(f"or {bits} {found}, {sign}"), kind, bits)


def narrowed(b: Builder, value: str, w: int) -> str:
    """float32 as stored bits, rounded to the nearest (ties to even)."""
    bits, kind, choice = _typed("i32", w), _typed("float", w), _typed("i1", w)
    if b.cpu.converts_half:
        narrow = b.emit(f"fptrunc {kind} {value} to {_typed('half', w)}")
        return b.emit(f"bitcast {_typed('half', w)} {narrow} to {_typed('i16', w)}")
    whole = _as(b, value, bits, kind)
    sign = b.emit(f"and {bits} {b.emit(f'lshr {bits} {whole}, {_all(16, w)}')}, {_all(0x8000, w)}")
    size = b.emit(f"and {bits} {whole}, {_all(0x7FFFFFFF, w)}")
    # another exponent, and half a unit of the last digit (a little less where that digit is even)
    odd = b.emit(f"and {bits} {b.emit(f'lshr {bits} {size}, {_all(SHIFT, w)}')}, {_all(1, w)}")
    moved = b.emit(f"add {bits} {size}, {_all(((15 - 127) << 23) + 0xFFF, w)}")
    normal = b.emit(f"lshr {bits} {b.emit(f'add {bits} {moved}, {odd}')}, {_all(SHIFT, w)}")
    # small numbers are rounded by an addition, which leaves their digits at the end of those of 0.5
    sum_ = b.emit(f"fadd {kind} {_as(b, size, kind, bits)}, {_as(b, _all(HALF, w), kind, bits)}")
    small = b.emit(f"sub {bits} {_as(b, sum_, bits, kind)}, {_all(HALF, w)}")
    nan = b.emit(f"icmp ugt {bits} {size}, {_all(INFINITY, w)}")
    large = b.emit(f"select {choice} {nan}, {bits} {_all(NARROW_NAN, w)}, {bits} {_all(NARROW_INFINITY, w)}")
    is_small = b.emit(f"icmp ult {bits} {size}, {_all(SUBNORMAL, w)}")
    is_large = b.emit(f"icmp uge {bits} {size}, {_all(TOO_LARGE, w)}")
    finite = b.emit(f"select {choice} {is_small}, {bits} {small}, {bits} {normal}")
    found = b.emit(f"select {choice} {is_large}, {bits} {large}, {bits} {finite}")
    return b.emit(f"trunc {bits} {b.emit(f'or {bits} {found}, {sign}')} to {_typed('i16', w)}")


def _typed(scalar: str, width: int) -> str:
    return scalar if width == 1 else f"<{width} x {scalar}>"


def _all(number: int, w: int) -> str:
    """A number in all lanes."""
    return str(number) if w == 1 else "<" + ", ".join([f"i32 {number}"] * w) + ">"


def _as(b: Builder, value: str, to: str, kind: str) -> str:
    """The same bits as another type."""
    return b.emit(f"bitcast {kind} {value} to {to}")
