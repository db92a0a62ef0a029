"""Elementwise operations that refuse some arguments: integers have no quotient by 0, and not every float is an integer.

Their last argument is a view of the program's status that repeats itself over all places. What they refuse is noted
there, and Python raises when the program has run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import InputError
from ...ir.graph import Equation
from ...primitives.elementwise import negative_power, no_counterpart, refused
from .text.builder import Builder, computed, is_float, literal, splat, typed
from .values import Op, View

if TYPE_CHECKING:
    from .schedule import Schedule

# what is computed, where it is refused, and a 64-bit word that tells why
Checked = Callable[[Builder, list[str], list[DType], DType, int], tuple[str, str, str]]


def rule(s: Schedule, e: Equation) -> bool:
    """An operation that may refuse; the rest is in operations.py."""
    name, (out,), dtype = e.primitive.name, e.outputs, e.inputs[0].dtype
    if name == "astype":
        wanted = is_float(dtype) and dtypes.is_integer(out.dtype)
    else:
        wanted = dtypes.is_integer(dtype)
    if not wanted or not out.aval.size:
        return False
    label = s.check(e, _error(e))
    note = View(label.buffer, out.shape, (0,) * len(out.shape), label.offset)
    args = [s.broadcast(s.value(a), out.shape) for a in e.inputs]
    s.bind(out, Op(f"checked {name}", [*args, note], out.shape, out.dtype))
    return True


def _error(e: Equation) -> Callable[[int, int], InputError]:
    x, name = e.inputs[0], e.primitive.name
    if name == "astype":
        return lambda word, _: no_counterpart(e.outputs[0].dtype, x, np.int64(word).view(np.float64).astype(x.dtype))
    if name == "power":
        return lambda word, _: negative_power(x)
    return lambda word, _: refused(name, x, word)


def _integer(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> tuple[str, str, str]:
    """A float without its fraction, if the integer type holds that."""
    scalar, info = computed(dts[0]), np.iinfo(out)
    kind, bits = typed(scalar, w), typed("i1", w)

    def number(value: float) -> str:
        return splat(literal(value, scalar), scalar, w)

    whole = b.intrinsic("trunc", kind, args[0])
    high = b.emit(f"fcmp olt {kind} {whole}, {number(float(info.max) + 1 if info.bits > 53 else info.max + 1)}")
    low = b.emit(f"fcmp oge {kind} {whole}, {number(float(info.min))}")
    fits = b.emit(f"and {bits} {high}, {low}")
    safe = b.emit(f"select {bits} {fits}, {kind} {whole}, {kind} {number(0.0)}")
    made = b.emit(f"{'fptoui' if out.kind == 'u' else 'fptosi'} {kind} {safe} to {typed(computed(out), w)}")
    double = args[0] if scalar == "double" else b.emit(f"fpext {kind} {args[0]} to {typed('double', w)}")
    word = b.emit(f"bitcast {typed('double', w)} {double} to {typed('i64', w)}")
    return made, _not(b, fits, w), word


def _not(b: Builder, test: str, w: int) -> str:
    return b.emit(f"xor {typed('i1', w)} {test}, {splat('true', 'i1', w)}")


def _word(b: Builder, value: str, dtype: DType, w: int) -> str:
    if dtype.itemsize == 8:
        return value
    op = "zext" if dtype.kind == "u" else "sext"
    return b.emit(f"{op} {typed(computed(dtype), w)} {value} to {typed('i64', w)}")


def _divided(rest: bool) -> Checked:
    """Quotients rounded down, or what they leave."""

    def emit(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> tuple[str, str, str]:
        x, y = args
        scalar = computed(out)
        kind, bits = typed(scalar, w), typed("i1", w)
        zero, one, minus = (splat(n, scalar, w) for n in ("0", "1", "-1"))
        bad = b.emit(f"icmp eq {kind} {y}, {zero}")
        word = splat("0", "i64", w)
        if out.kind == "u":
            safe = b.emit(f"select {bits} {bad}, {kind} {one}, {kind} {y}")
            return b.emit(f"{'urem' if rest else 'udiv'} {kind} {x}, {safe}"), bad, word
        # by -1, as the smallest integer has no opposite, there is a way of its own
        flips = b.emit(f"icmp eq {kind} {y}, {minus}")
        special = b.emit(f"or {bits} {bad}, {flips}")
        safe = b.emit(f"select {bits} {special}, {kind} {one}, {kind} {y}")
        left = b.emit(f"srem {kind} {x}, {safe}")
        signs = b.emit(f"icmp slt {kind} {b.emit(f'xor {kind} {left}, {safe}')}, {zero}")
        other = b.emit(f"and {bits} {signs}, {b.emit(f'icmp ne {kind} {left}, {zero}')}")
        if rest:
            moved = b.emit(f"add {kind} {left}, {safe}")
            return b.emit(f"select {bits} {other}, {kind} {moved}, {kind} {left}"), bad, word
        quotient = b.emit(f"sdiv {kind} {x}, {safe}")
        lower = b.emit(f"sub {kind} {quotient}, {one}")
        down = b.emit(f"select {bits} {other}, {kind} {lower}, {kind} {quotient}")
        opposite = b.emit(f"sub {kind} {zero}, {x}")
        return b.emit(f"select {bits} {flips}, {kind} {opposite}, {kind} {down}"), bad, word

    return emit


def _shifted(left: bool) -> Checked:
    """Shifts by more places than there are bits leave nothing, or the sign."""

    def emit(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> tuple[str, str, str]:
        x, y = args
        scalar = computed(out)
        kind, bits, size = typed(scalar, w), typed("i1", w), 8 * out.itemsize
        zero, last = splat("0", scalar, w), splat(str(size - 1), scalar, w)
        beyond = b.emit(f"icmp ugt {kind} {y}, {last}")
        safe = b.emit(f"select {bits} {beyond}, {kind} {last}, {kind} {y}")
        bad = b.emit(f"icmp slt {kind} {y}, {zero}") if out.kind == "i" else splat("false", "i1", w)
        if left or out.kind == "u":
            moved = b.emit(f"{'shl' if left else 'lshr'} {kind} {x}, {safe}")
            made = b.emit(f"select {bits} {beyond}, {kind} {zero}, {kind} {moved}")
        else:
            made = b.emit(f"ashr {kind} {x}, {safe}")
        return made, bad, _word(b, y, out, w)

    return emit


def _power(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> tuple[str, str, str]:
    """Squares for the bits of the exponent, as many as the largest one has."""
    x, p = args
    scalar = computed(out)
    kind, bits, size = typed(scalar, w), typed("i1", w), 8 * out.itemsize
    zero, one = splat("0", scalar, w), splat("1", scalar, w)
    bad = b.emit(f"icmp slt {kind} {p}, {zero}") if out.kind == "i" else splat("false", "i1", w)
    safe = b.emit(f"select {bits} {bad}, {kind} {zero}, {kind} {p}")
    most = safe
    if w > 1:
        name = f"@llvm.vector.reduce.umax.v{w}{scalar}"
        b.declarations.add(f"declare {scalar} {name}({kind})")
        most = b.emit(f"call {scalar} {name}({kind} {safe})")
    b.declarations.add(f"declare {scalar} @llvm.ctlz.{scalar}({scalar}, i1)")
    free = b.emit(f"call {scalar} @llvm.ctlz.{scalar}({scalar} {most}, i1 false)")
    used = b.emit(f"sub {scalar} {size}, {free}")
    count = used if scalar == "i64" else b.emit(f"zext {scalar} {used} to i64")

    def step(i: str, carried: list[str]) -> list[str]:
        made, square, rest = carried
        odd = b.emit(f"icmp ne {kind} {b.emit(f'and {kind} {rest}, {one}')}, {zero}")
        more = b.emit(f"mul {kind} {made}, {square}")
        return [
            b.emit(f"select {bits} {odd}, {kind} {more}, {kind} {made}"),
            b.emit(f"mul {kind} {square}, {square}"),
            b.emit(f"lshr {kind} {rest}, {one}"),
        ]

    made = b.loop_with([(kind, one), (kind, x), (kind, safe)], count, 1, step)[0]
    return made, bad, _word(b, p, out, w)


def _range(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> tuple[str, str, str]:
    """The length of the range between two numbers, which lies among so many; of what is none, 0."""
    first, last = (_word(b, a, d, w) for a, d in zip(args[:2], dts[:2], strict=True))
    kind, bits = typed("i64", w), typed("i1", w)
    zero = splat("0", "i64", w)
    begins = b.emit(f"icmp sge {kind} {first}, {zero}")
    rises = b.emit(f"icmp sge {kind} {last}, {first}")
    ends = b.emit(f"icmp sle {kind} {last}, {args[3]}")
    good = b.emit(f"and {bits} {begins}, {b.emit(f'and {bits} {rises}, {ends}')}")
    length = b.emit(f"select {bits} {good}, {kind} {b.emit(f'sub {kind} {last}, {first}')}, {kind} {zero}")
    return length, _not(b, good, w), args[2]


TABLE: dict[str, Checked] = {
    "checked astype": _integer,
    "checked floor_divide": _divided(rest=False),
    "checked remainder": _divided(rest=True),
    "checked bitwise_left_shift": _shifted(left=True),
    "checked bitwise_right_shift": _shifted(left=False),
    "checked power": _power,
}

RULES: dict[str, Any] = {name.removeprefix("checked "): rule for name in TABLE}
TABLE["checked range"] = _range  # of the entries of a line; no primitive
