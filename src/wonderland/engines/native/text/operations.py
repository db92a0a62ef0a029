"""Elementwise primitives as LLVM, for any vector width: all that the engine knows of one is its row in `TABLE`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ....core import dtypes
from ....core.dtypes import DType
from . import functions
from .builder import STORED, Builder, computed, is_float, literal, narrow, shortened, splat, typed, widen

Emit = Callable[[Builder, list[str], list[DType], DType, int], str]


LOGICAL = {"add": "or", "mul": "and"}  # of bools, as NumPy adds and multiplies them


def _arith(float_op: str, int_op: str) -> Emit:
    def emit(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> str:
        op = float_op if is_float(out) else LOGICAL.get(int_op, int_op) if out == dtypes.bool_ else int_op
        return b.emit(f"{op} {typed(computed(out), w)} {args[0]}, {args[1]}")

    return emit


def _compare(ordered: str, signed: str, unsigned: str) -> Emit:
    def emit(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> str:
        kind = typed(computed(dts[0]), w)
        if is_float(dts[0]):
            return b.emit(f"fcmp {ordered} {kind} {args[0]}, {args[1]}")
        code = unsigned if dts[0].kind in "ub" else signed
        return b.emit(f"icmp {code} {kind} {args[0]}, {args[1]}")

    return emit


def _number(value: float, dtype: DType, w: int) -> str:
    scalar = computed(dtype)
    return splat(literal(value, scalar), scalar, w)


def _negative(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> str:
    kind = typed(computed(out), w)
    if is_float(out):
        return b.emit(f"fneg {kind} {args[0]}")
    return b.emit(f"sub {kind} {_number(0, out, w)}, {args[0]}")


def _square(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> str:
    return _arith("fmul", "mul")(b, [args[0], args[0]], dts, out, w)


def _intrinsic(name: str) -> Emit:
    def emit(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> str:
        return b.intrinsic(name, typed(computed(out), w), *args)

    return emit


def _abs(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> str:
    if is_float(out):
        return b.intrinsic("fabs", typed(computed(out), w), args[0])
    if out.kind == "u":
        return args[0]
    kind = typed(computed(out), w)
    below = b.emit(f"icmp slt {kind} {args[0]}, {_number(0, out, w)}")
    flipped = b.emit(f"sub {kind} {_number(0, out, w)}, {args[0]}")
    return b.emit(f"select {typed('i1', w)} {below}, {kind} {flipped}, {kind} {args[0]}")


def _extreme(float_name: str, signed: str, unsigned: str) -> Emit:
    def emit(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> str:
        kind = typed(computed(out), w)
        if is_float(out):
            # processors do not tell zeros apart; the second is looked at for NaN, as the first may be long in coming
            return b.intrinsic(float_name, kind, args[1], args[0], flags="nsz")
        code = unsigned if out.kind in "ub" else signed
        test = b.emit(f"icmp {code} {kind} {args[0]}, {args[1]}")
        return b.emit(f"select {typed('i1', w)} {test}, {kind} {args[0]}, {kind} {args[1]}")

    return emit


def _relu(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> str:
    below = TABLE["less_equal"](b, [args[0], _number(0, out, w)], [out, out], dtypes.bool_, w)
    return _where(b, [below, _number(0, out, w), args[0]], [dtypes.bool_, out, out], out, w)


def _where(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> str:
    kind = typed(computed(out), w)
    return b.emit(f"select {typed('i1', w)} {args[0]}, {kind} {args[1]}, {kind} {args[2]}")


def _sign(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> str:
    kind, bit = typed(computed(out), w), typed("i1", w)
    zero, one, minus = (_number(v, out, w) for v in (0, 1, -1))
    if is_float(out):
        above, below = (b.emit(f"fcmp {c} {kind} {args[0]}, {zero}") for c in ("ogt", "olt"))
    elif out.kind == "u":
        return b.emit(f"select {bit} {b.emit(f'icmp ne {kind} {args[0]}, {zero}')}, {kind} {one}, {kind} {zero}")
    else:
        above, below = (b.emit(f"icmp {c} {kind} {args[0]}, {zero}") for c in ("sgt", "slt"))
    low = b.emit(f"select {bit} {below}, {kind} {minus}, {kind} {args[0] if is_float(out) else zero}")
    return b.emit(f"select {bit} {above}, {kind} {one}, {kind} {low}")


def _astype(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> str:
    source, target = computed(dts[0]), computed(out)
    x, kind = typed(source, w), typed(target, w)
    if out == dtypes.bool_:
        zero = _number(0, dts[0], w)
        return b.emit(f"fcmp une {x} {args[0]}, {zero}" if is_float(dts[0]) else f"icmp ne {x} {args[0]}, {zero}")
    if source == target:
        if dts[0] != out and dtypes.is_half(out):
            return rounded(b, args[0], out, w)
        return args[0]
    if source == "double" and out == dtypes.float16:
        return rounded(b, _rounded_to_odd(b, args[0], w), out, w)
    if is_float(dts[0]) and is_float(out):
        wide = b.emit(f"{'fpext' if target == 'double' else 'fptrunc'} {x} {args[0]} to {kind}")
        return rounded(b, wide, out, w) if dtypes.is_half(out) else wide
    if is_float(out):
        op = "uitofp" if dts[0].kind in "ub" else "sitofp"
        made = b.emit(f"{op} {x} {args[0]} to {kind}")
        return rounded(b, made, out, w) if dtypes.is_half(out) else made
    if is_float(dts[0]):  # who asks for this knows that the integer holds it; others see checked.py
        return b.emit(f"{'fptoui' if out.kind == 'u' else 'fptosi'} {x} {args[0]} to {kind}")
    if dts[0] == dtypes.bool_:
        return b.emit(f"zext {x} {args[0]} to {kind}")
    if dts[0].itemsize > out.itemsize:
        return b.emit(f"trunc {x} {args[0]} to {kind}")
    return b.emit(f"{'zext' if dts[0].kind == 'u' else 'sext'} {x} {args[0]} to {kind}")


def _rounded_to_odd(b: Builder, value: str, w: int) -> str:
    """A float64 as a float32 whose last bit is set where something was lost, so that it can be rounded once more."""
    wide, kind, ints, bit = (typed(scalar, w) for scalar in ("double", "float", "i32", "i1"))
    near = b.emit(f"fptrunc {wide} {value} to {kind}")
    back = b.emit(f"fpext {kind} {near} to {wide}")
    beyond = b.emit(f"fcmp ogt {wide} {b.intrinsic('fabs', wide, back)}, {b.intrinsic('fabs', wide, value)}")
    bits = b.emit(f"bitcast {kind} {near} to {ints}")
    less = b.emit(f"sub {ints} {bits}, {b.emit(f'zext {bit} {beyond} to {ints}')}")  # towards zero
    lost = b.emit(f"zext {bit} {b.emit(f'fcmp one {wide} {back}, {value}')} to {ints}")
    return b.emit(f"bitcast {ints} {b.emit(f'or {ints} {less}, {lost}')} to {kind}")


def rounded(b: Builder, value: str, dtype: DType, w: int) -> str:
    """A float32 rounded to a half type and back, as storing it would."""
    if dtype == dtypes.bfloat16:
        return shortened(b, value, w)
    return widen(b, narrow(b, value, dtype, w), dtype, w)


def _test(build: Any) -> Emit:
    def emit(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> str:
        if not is_float(dts[0]):
            return splat("true" if build == "finite" else "false", "i1", w)
        kind = typed(computed(dts[0]), w)
        if build == "nan":
            return b.emit(f"fcmp uno {kind} {args[0]}, {args[0]}")
        size = b.intrinsic("fabs", kind, args[0])
        infinity = _number(math.inf, dts[0], w)
        return b.emit(f"fcmp {'oeq' if build == 'inf' else 'olt'} {kind} {size}, {infinity}")

    return emit


def _bits(op: str) -> Emit:
    def emit(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> str:
        return b.emit(f"{op} {typed(computed(out), w)} {args[0]}, {args[1]}")

    return emit


def _invert(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> str:
    ones = splat("true" if out == dtypes.bool_ else "-1", computed(out), w)
    return b.emit(f"xor {typed(computed(out), w)} {args[0]}, {ones}")


def _whole(name: str) -> Emit:
    """Rounding, which leaves integers as they are."""

    def emit(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> str:
        return b.intrinsic(name, typed(computed(out), w), *args) if is_float(out) else args[0]

    return emit


def _bits_of(b: Builder, value: str, dtype: DType, w: int) -> str:
    """A float as the integer with the bits that are stored."""
    stored = narrow(b, value, dtype, w)
    if dtype == dtypes.bfloat16:
        return stored
    return b.emit(f"bitcast {typed(STORED[dtype], w)} {stored} to {typed(f'i{8 * dtype.itemsize}', w)}")


def _signbit(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> str:
    scalar = f"i{8 * dts[0].itemsize}"
    return b.emit(f"icmp slt {typed(scalar, w)} {_bits_of(b, args[0], dts[0], w)}, {splat('0', scalar, w)}")


def _nextafter(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> str:
    """Neighbours are those whose bits differ by one; next to 0 is the smallest number with the sign of y."""
    (x, y), dtype, scalar = args, out, f"i{8 * out.itemsize}"
    kind, ints, test = typed(computed(dtype), w), typed(scalar, w), typed("i1", w)
    bits, other, zero = _bits_of(b, x, dtype, w), _bits_of(b, y, dtype, w), _number(0, dtype, w)
    up = b.emit(f"fcmp olt {kind} {x}, {y}")
    positive = b.emit(f"fcmp ogt {kind} {x}, {zero}")
    inward = b.emit(f"xor {test} {up}, {positive}")
    step = b.emit(f"select {test} {inward}, {ints} {splat('-1', scalar, w)}, {ints} {splat('1', scalar, w)}")
    moved = b.emit(f"add {ints} {bits}, {step}")
    sign = b.emit(f"and {ints} {other}, {splat(str(-(1 << (8 * out.itemsize - 1))), scalar, w)}")
    least = b.emit(f"or {ints} {sign}, {splat('1', scalar, w)}")
    at_zero = b.emit(f"fcmp oeq {kind} {x}, {zero}")
    found = b.emit(f"select {test} {at_zero}, {ints} {least}, {ints} {moved}")
    if dtype != dtypes.bfloat16:
        found = b.emit(f"bitcast {ints} {found} to {typed(STORED[dtype], w)}")
    found = widen(b, found, dtype, w)
    equal = b.emit(f"fcmp oeq {kind} {x}, {y}")
    found = b.emit(f"select {test} {equal}, {kind} {y}, {kind} {found}")
    undefined = b.emit(f"fcmp uno {kind} {x}, {y}")
    return b.emit(f"select {test} {undefined}, {kind} {b.emit(f'fadd {kind} {x}, {y}')}, {kind} {found}")


class Operation(NamedTuple):
    """What the engine knows of an elementwise operation."""

    emit: Emit
    cost: int = 1  # in additions
    floats_only: bool = False  # NumPy computes it for other types
    exact: bool = False  # a result of 16-bit arguments has no more digits than they have, and need not be rounded

    def __call__(self, b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> str:
        return self.emit(b, args, dts, out, w)


def _function(f: functions.Function, cost: int = 10) -> Operation:
    """An elementary function."""
    return Operation(lambda b, args, dts, out, w: f(b, args, computed(out), w), cost, floats_only=True)


TABLE: dict[str, Operation] = {
    "add": Operation(_arith("fadd", "add")),
    "subtract": Operation(_arith("fsub", "sub")),
    "multiply": Operation(_arith("fmul", "mul")),
    "divide": Operation(_arith("fdiv", "sdiv"), cost=4, floats_only=True),
    "negative": Operation(_negative, exact=True),
    "square": Operation(_square),
    "abs": Operation(_abs, exact=True),
    "sign": Operation(_sign),
    "sqrt": Operation(_intrinsic("sqrt"), cost=4, floats_only=True),
    "floor": Operation(_whole("floor")),
    "ceil": Operation(_whole("ceil")),
    "trunc": Operation(_whole("trunc")),
    "round": Operation(_whole("rint")),
    "copysign": _function(functions.copysign, cost=1),
    "maximum": Operation(_extreme("maximum", "sgt", "ugt"), exact=True),
    "minimum": Operation(_extreme("minimum", "slt", "ult"), exact=True),
    "where": Operation(_where, exact=True),
    "relu": Operation(_relu, exact=True),
    "astype": Operation(_astype, exact=True),
    "copy": Operation(lambda b, args, dts, out, w: args[0], exact=True),
    "equal": Operation(_compare("oeq", "eq", "eq")),
    "not_equal": Operation(_compare("une", "ne", "ne")),
    "less": Operation(_compare("olt", "slt", "ult")),
    "less_equal": Operation(_compare("ole", "sle", "ule")),
    "greater": Operation(_compare("ogt", "sgt", "ugt")),
    "greater_equal": Operation(_compare("oge", "sge", "uge")),
    "isnan": Operation(_test("nan")),
    "isinf": Operation(_test("inf")),
    "isfinite": Operation(_test("finite")),
    "bitwise_and": Operation(_bits("and")),
    "bitwise_or": Operation(_bits("or")),
    "bitwise_xor": Operation(_bits("xor")),
    "bitwise_invert": Operation(_invert),
    "exp": _function(functions.exp),
    "log": _function(functions.log),
    "tanh": _function(functions.tanh),
    "sigmoid": _function(functions.sigmoid),
    "sin": _function(functions.sin),
    "cos": _function(functions.cos),
    "tan": _function(functions.tan, cost=4),
    "log2": _function(functions.log2),
    "log10": _function(functions.log10),
    "log1p": _function(functions.log1p),
    "expm1": _function(functions.expm1),
    "asin": _function(functions.asin),
    "acos": _function(functions.acos),
    "atan": _function(functions.atan),
    "sinh": _function(functions.sinh),
    "cosh": _function(functions.cosh),
    "asinh": _function(functions.asinh),
    "acosh": _function(functions.acosh),
    "atanh": _function(functions.atanh),
    "erf": _function(functions.erf),
    "erfc": _function(functions.erfc),
    "atan2": _function(functions.atan2),
    "hypot": _function(functions.hypot, cost=4),
    "power": _function(functions.power),
    "logaddexp": _function(functions.logaddexp),
    "erfinv": _function(functions.erfinv),
    "floor_divide": _function(functions.floor_divide),
    "remainder": _function(functions.remainder),
    "signbit": Operation(_signbit, floats_only=True),
    "nextafter": Operation(_nextafter, floats_only=True),
}


OTHER_NAMES = {"stop_gradient": "copy"}  # of primitives, where the operation is one that has another use, too


def cost_of(name: str) -> int:
    """What an operation costs, in additions; one that checks its arguments, see checked.py, as much as without."""
    known = TABLE.get(name.removeprefix("checked "))
    return 1 if known is None else known.cost


def supported(name: str, dts: list[DType], out: DType) -> bool:
    """Whether an equation can be part of a native kernel."""
    name = OTHER_NAMES.get(name, name)
    if name not in TABLE:
        return False
    if name == "astype" and is_float(dts[0]) and dtypes.is_integer(out):
        return False  # NumPy's rule also refuses numbers that the integer cannot hold
    return is_float(dts[0]) or not TABLE[name].floats_only
