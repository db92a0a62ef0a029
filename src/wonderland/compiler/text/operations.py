"""Elementwise primitives as LLVM: one entry per primitive, for any vector width."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ... import dtypes
from ...dtypes import DType
from . import functions
from .builder import STORED, Builder, computed, is_float, literal, narrow, splat, typed, widen

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


def _number(value: Any, dtype: DType, w: int) -> str:
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
            return b.intrinsic(float_name, kind, *args)
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
        if dts[0] != out and out in (dtypes.float16, dtypes.bfloat16):
            return rounded(b, args[0], out, w)
        return args[0]
    if source == "double" and out == dtypes.float16:
        return rounded(b, _rounded_to_odd(b, args[0], w), out, w)
    if is_float(dts[0]) and is_float(out):
        wide = b.emit(f"{'fpext' if target == 'double' else 'fptrunc'} {x} {args[0]} to {kind}")
        return rounded(b, wide, out, w) if out in (dtypes.float16, dtypes.bfloat16) else wide
    if is_float(out):
        op = "uitofp" if dts[0].kind in "ub" else "sitofp"
        made = b.emit(f"{op} {x} {args[0]} to {kind}")
        return rounded(b, made, out, w) if out in (dtypes.float16, dtypes.bfloat16) else made
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


def _float_only(f: Any) -> Emit:
    def emit(b: Builder, args: list[str], dts: list[DType], out: DType, w: int) -> str:
        return f(b, args, computed(out), w)

    return emit


TABLE: dict[str, Emit] = {
    "add": _arith("fadd", "add"),
    "subtract": _arith("fsub", "sub"),
    "multiply": _arith("fmul", "mul"),
    "divide": _arith("fdiv", "sdiv"),
    "negative": _negative,
    "square": _square,
    "abs": _abs,
    "sign": _sign,
    "sqrt": _intrinsic("sqrt"),
    "floor": _whole("floor"),
    "ceil": _whole("ceil"),
    "trunc": _whole("trunc"),
    "round": _whole("rint"),
    "copysign": _intrinsic("copysign"),
    "maximum": _extreme("maximum", "sgt", "ugt"),
    "minimum": _extreme("minimum", "slt", "ult"),
    "where": _where,
    "relu": _relu,
    "astype": _astype,
    "stop_gradient": lambda b, args, dts, out, w: args[0],
    "equal": _compare("oeq", "eq", "eq"),
    "not_equal": _compare("une", "ne", "ne"),
    "less": _compare("olt", "slt", "ult"),
    "less_equal": _compare("ole", "sle", "ule"),
    "greater": _compare("ogt", "sgt", "ugt"),
    "greater_equal": _compare("oge", "sge", "uge"),
    "isnan": _test("nan"),
    "isinf": _test("inf"),
    "isfinite": _test("finite"),
    "bitwise_and": _bits("and"),
    "bitwise_or": _bits("or"),
    "bitwise_xor": _bits("xor"),
    "bitwise_invert": _invert,
    "exp": _float_only(functions.exp),
    "log": _float_only(functions.log),
    "tanh": _float_only(functions.tanh),
    "sigmoid": _float_only(functions.sigmoid),
    "sin": _float_only(functions.sin),
    "cos": _float_only(functions.cos),
    "tan": _float_only(functions.tan),
    "log2": _float_only(functions.log2),
    "log10": _float_only(functions.log10),
    "log1p": _float_only(functions.log1p),
    "expm1": _float_only(functions.expm1),
    "asin": _float_only(functions.asin),
    "acos": _float_only(functions.acos),
    "atan": _float_only(functions.atan),
    "sinh": _float_only(functions.sinh),
    "cosh": _float_only(functions.cosh),
    "asinh": _float_only(functions.asinh),
    "acosh": _float_only(functions.acosh),
    "atanh": _float_only(functions.atanh),
    "erf": _float_only(functions.erf),
    "erfc": _float_only(functions.erfc),
    "atan2": _float_only(functions.atan2),
    "hypot": _float_only(functions.hypot),
    "power": _float_only(functions.power),
    "logaddexp": _float_only(functions.logaddexp),
    "erfinv": _float_only(functions.erfinv),
    "floor_divide": _float_only(functions.floor_divide),
    "remainder": _float_only(functions.remainder),
    "signbit": _signbit,
    "nextafter": _nextafter,
}

FLOAT_ONLY = frozenset(
    [
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "copysign",
        "cos",
        "cosh",
        "divide",
        "erf",
        "erfc",
        "erfinv",
        "exp",
        "expm1",
        "floor_divide",
        "hypot",
        "log",
        "log10",
        "log1p",
        "log2",
        "logaddexp",
        "nextafter",
        "power",
        "remainder",
        "sigmoid",
        "signbit",
        "sin",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
    ]
)


def supported(name: str, dts: list[DType], out: DType) -> bool:
    """Whether an equation can be part of a native kernel."""
    if name not in TABLE:
        return False
    if name == "astype" and is_float(dts[0]) and dtypes.is_integer(out):
        return False  # NumPy's rule also refuses numbers that the integer cannot hold
    return not (name in FLOAT_ONLY and not is_float(dts[0]))
