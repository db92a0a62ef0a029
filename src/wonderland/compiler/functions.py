"""Exponentials, logarithms and relatives on vectors. Everything else is asked of the C library, lane by lane.

float32: exp to 1 ulp or so, log to 2, tanh to 3 (checked in the tests). float64 goes to the C library for now.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from .builder import Builder, literal, splat, typed


def lanes(name: str) -> Callable[..., str]:
    """A function of the C library, called for each lane."""

    def emit(b: Builder, args: list[str], scalar: str, w: int) -> str:
        symbol = name + ("f" if scalar == "float" else "")
        b.declarations.add(f"declare {scalar} @{symbol}({', '.join([scalar] * len(args))})")
        if w == 1:
            return b.emit(f"call {scalar} @{symbol}({', '.join(f'{scalar} {a}' for a in args)})")
        kind = typed(scalar, w)
        out = "poison"
        for i in range(w):
            parts = [b.emit(f"extractelement {kind} {a}, i64 {i}") for a in args]
            value = b.emit(f"call {scalar} @{symbol}({', '.join(f'{scalar} {p}' for p in parts)})")
            out = b.emit(f"insertelement {kind} {out}, {scalar} {value}, i64 {i}")
        return out

    return emit


class _Floats:
    """Arithmetic on float32 vectors, to write formulas in."""

    def __init__(self, b: Builder, w: int) -> None:
        self.b, self.w = b, w
        self.kind, self.ints, self.bits = typed("float", w), typed("i32", w), typed("i1", w)

    def number(self, value: float) -> str:
        return splat(literal(value, "float"), "float", self.w)

    def integer(self, value: int) -> str:
        return splat(str(value), "i32", self.w)

    def op(self, name: str, x: str, y: str) -> str:
        return self.b.emit(f"{name} {self.kind} {x}, {y}")

    def fma(self, x: str, y: str, z: str) -> str:
        return self.b.intrinsic("fma", self.kind, x, y, z)

    def polynomial(self, x: str, coefficients: list[float]) -> str:
        """Horner's rule, highest coefficient first."""
        value = self.number(coefficients[0])
        for c in coefficients[1:]:
            value = self.fma(value, x, self.number(c))
        return value

    def select(self, test: str, x: str, y: str) -> str:
        return self.b.emit(f"select {self.bits} {test}, {self.kind} {x}, {self.kind} {y}")

    def test(self, code: str, x: str, y: str) -> str:
        return self.b.emit(f"fcmp {code} {self.kind} {x}, {y}")

    def int_op(self, name: str, x: str, y: str) -> str:
        return self.b.emit(f"{name} {self.ints} {x}, {y}")

    def as_int(self, x: str) -> str:
        return self.b.emit(f"bitcast {self.kind} {x} to {self.ints}")

    def as_float(self, x: str) -> str:
        return self.b.emit(f"bitcast {self.ints} {x} to {self.kind}")

    def power_of_two(self, n: str) -> str:
        """2^n for an integer n between -126 and 127."""
        return self.as_float(self.int_op("shl", self.int_op("add", n, self.integer(127)), self.integer(23)))


_LN2_HIGH, _LN2_LOW = 0.693359375, math.log(2) - 0.693359375


def exp(b: Builder, args: list[str], scalar: str, w: int) -> str:
    if scalar != "float":
        return lanes("exp")(b, args, scalar, w)
    f = _Floats(b, w)
    x = args[0]
    # beyond these the result is 0 or infinite anyway; NaN stays, since the comparisons are false for it
    low, high = f.number(-104.0), f.number(89.0)
    limited = f.select(f.test("olt", x, low), low, f.select(f.test("ogt", x, high), high, x))
    n = b.intrinsic("rint", f.kind, f.op("fmul", limited, f.number(1 / math.log(2))))
    r = f.fma(n, f.number(-_LN2_LOW), f.fma(n, f.number(-_LN2_HIGH), limited))
    series = f.polynomial(r, [1 / math.factorial(k) for k in range(7, -1, -1)])
    count = b.emit(f"fptosi {f.kind} {f.select(f.test('uno', n, n), f.number(0.0), n)} to {f.ints}")
    half = f.int_op("ashr", count, f.integer(1))
    rest = f.int_op("sub", count, half)
    # two steps, so that neither power of two leaves the range of floats
    return f.op("fmul", f.op("fmul", series, f.power_of_two(half)), f.power_of_two(rest))


def log(b: Builder, args: list[str], scalar: str, w: int) -> str:
    if scalar != "float":
        return lanes("log")(b, args, scalar, w)
    f = _Floats(b, w)
    x = args[0]
    tiny = f.test("olt", x, f.number(1.17549435e-38))
    scaled = f.select(tiny, f.op("fmul", x, f.number(2.0**23)), x)
    bits = f.as_int(scaled)
    # x = m 2^e with m in [sqrt(1/2), sqrt(2))
    shifted = f.int_op("sub", bits, f.integer(0x3F3504F3))
    exponent = f.int_op("ashr", shifted, f.integer(23))
    mantissa = f.as_float(f.int_op("sub", bits, f.int_op("shl", exponent, f.integer(23))))
    e = b.emit(f"sitofp {f.ints} {exponent} to {f.kind}")
    e = f.op("fsub", e, f.select(tiny, f.number(23.0), f.number(0.0)))
    u = f.op("fsub", mantissa, f.number(1.0))
    s = f.op("fdiv", u, f.op("fadd", u, f.number(2.0)))
    s2 = f.op("fmul", s, s)
    # log(1 + u) = u - u^2/2 + s (u^2/2 + R), R = s^2 (2/3 + 2/5 s^2 + ...)
    series = f.op("fmul", s2, f.polynomial(s2, [2 / 9, 2 / 7, 2 / 5, 2 / 3]))
    half = f.op("fmul", f.number(0.5), f.op("fmul", u, u))
    tail = f.fma(s, f.op("fadd", half, series), f.op("fmul", e, f.number(_LN2_LOW)))
    value = f.fma(e, f.number(_LN2_HIGH), f.op("fadd", f.op("fsub", tail, half), u))
    value = f.select(f.test("oeq", x, f.number(math.inf)), x, value)
    value = f.select(f.test("oeq", x, f.number(0.0)), f.number(-math.inf), value)
    return f.select(f.test("ult", x, f.number(0.0)), f.number(math.nan), value)


# tanh(x) = x + x^3 P(x^2) for |x| < 0.625: P interpolates at Chebyshev points, relative error 6e-10
_TANH = [0.00229274482, -0.00834394552, 0.0217689187, -0.0539592596, 0.133333036, -0.333333332]


def tanh(b: Builder, args: list[str], scalar: str, w: int) -> str:
    if scalar != "float":
        return lanes("tanh")(b, args, scalar, w)
    f = _Floats(b, w)
    x = args[0]
    size = b.intrinsic("fabs", f.kind, x)
    square = f.op("fmul", x, x)
    small = f.fma(f.op("fmul", f.polynomial(square, _TANH), square), x, x)
    grown = exp(b, [f.op("fadd", size, size)], scalar, w)
    large = f.op("fsub", f.number(1.0), f.op("fdiv", f.number(2.0), f.op("fadd", grown, f.number(1.0))))
    signed = b.intrinsic("copysign", f.kind, large, x)
    return f.select(f.test("olt", size, f.number(0.625)), small, signed)


def sigmoid(b: Builder, args: list[str], scalar: str, w: int) -> str:
    kind = typed(scalar, w)
    grown = exp(b, [b.emit(f"fneg {kind} {args[0]}")], scalar, w)
    one = splat(literal(1.0, scalar), scalar, w)
    return b.emit(f"fdiv {kind} {one}, {b.emit(f'fadd {kind} {one}, {grown}')}")
