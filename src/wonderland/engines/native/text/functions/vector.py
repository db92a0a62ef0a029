"""Vectors in the text that is being written: arithmetic on them writes instructions, so formulas read as formulas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...tuning import PAIRED
from ..builder import Builder, literal, splat, typed


@dataclass(frozen=True)
class Vector:
    """The name of a value with `width` lanes of an LLVM type. A Python number stands for that number in every lane."""

    b: Builder
    name: str
    scalar: str
    width: int
    short: bool = False  # of float64: ten digits will do

    @property
    def kind(self) -> str:
        return typed(self.scalar, self.width)

    @property
    def single(self) -> bool:
        """Whether a vector of floats is of float32."""
        return self.scalar == "float"

    @property
    def series(self) -> str:
        """Which series is exact enough."""
        return "short" if self.short else self.scalar

    @property
    def mantissa(self) -> int:
        """The number of stored bits of the mantissa."""
        return 23 if self.single else 52

    def like(self, name: str, scalar: str | None = None) -> Vector:
        return Vector(self.b, name, scalar or self.scalar, self.width, self.short)

    def number(self, value: Vector | float) -> Vector:
        if isinstance(value, Vector):
            return value
        return self.like(splat(literal(value, self.scalar), self.scalar, self.width))

    def op(self, name: str, *others: Vector | float) -> Vector:
        names = ", ".join([self.name, *(self.number(o).name for o in others)])
        return self.like(self.b.emit(f"{name} {self.kind} {names}"))

    def _arith(self, name: str, other: Vector | float) -> Vector:
        return self.op(name if self.scalar.startswith("i") else "f" + name, other)

    def __add__(self, other: Vector | float) -> Vector:
        return self._arith("add", other)

    def __radd__(self, other: float) -> Vector:
        return self.number(other) + self

    def __sub__(self, other: Vector | float) -> Vector:
        return self._arith("sub", other)

    def __rsub__(self, other: float) -> Vector:
        return self.number(other) - self

    def __mul__(self, other: Vector | float) -> Vector:
        return self._arith("mul", other)

    def __rmul__(self, other: float) -> Vector:
        return self.number(other) * self

    def __truediv__(self, other: Vector | float) -> Vector:
        return self.op("fdiv", other)

    def __rtruediv__(self, other: float) -> Vector:
        return self.number(other) / self

    def __neg__(self) -> Vector:
        return self.op("fneg")

    def __and__(self, other: Vector | int) -> Vector:
        return self.op("and", other)

    def __or__(self, other: Vector | int) -> Vector:
        return self.op("or", other)

    def __xor__(self, other: Vector | int) -> Vector:
        return self.op("xor", other)

    def __lshift__(self, other: int) -> Vector:
        return self.op("shl", other)

    def __rshift__(self, other: int) -> Vector:
        return self.op("ashr", other)

    def compare(self, code: str, other: Vector | float) -> Vector:
        op = "icmp" if self.scalar.startswith("i") else "fcmp"
        return self.like(self.op(f"{op} {code}", other).name, "i1")

    # comparisons are false for NaN
    def __lt__(self, other: Vector | float) -> Vector:
        return self.compare("olt", other)

    def __gt__(self, other: Vector | float) -> Vector:
        return self.compare("ogt", other)

    def __le__(self, other: Vector | float) -> Vector:
        return self.compare("ole", other)

    def __ge__(self, other: Vector | float) -> Vector:
        return self.compare("oge", other)

    def equals(self, other: Vector | float) -> Vector:
        return self.compare("eq" if self.scalar.startswith("i") else "oeq", other)

    def isnan(self) -> Vector:
        return self.compare("uno", self)

    def intrinsic(self, name: str, *others: Vector | float) -> Vector:
        return self.like(self.b.intrinsic(name, self.kind, self.name, *(self.number(o).name for o in others)))

    def to(self, instruction: str, scalar: str) -> Vector:
        """Convert: fpext, fptrunc, bitcast, sitofp, ..."""
        return self.like(self.b.emit(f"{instruction} {self.kind} {self.name} to {typed(scalar, self.width)}"), scalar)

    def bits(self) -> Vector:
        """Floats as the integers with the same bits."""
        return self.to("bitcast", "i32" if self.single else "i64")

    def floats(self) -> Vector:
        """Integers as the floats with the same bits."""
        return self.to("bitcast", "float" if self.scalar == "i32" else "double")

    def above(self, low: float) -> Vector:
        """The larger of the two, NaN if this is NaN."""
        return where(self < low, self.number(low), self)

    def below(self, high: float) -> Vector:
        """The smaller of the two, NaN if this is NaN."""
        return where(self > high, self.number(high), self)


def where(test: Vector, x: Vector | float, y: Vector | float) -> Vector:
    """x where the test holds, else y; at least one is a vector."""
    like = x if isinstance(x, Vector) else y
    assert isinstance(like, Vector)
    x, y = like.number(x), like.number(y)
    return like.like(test.b.emit(f"select {test.kind} {test.name}, {x.kind} {x.name}, {y.kind} {y.name}"))


def fma(x: Vector, y: Vector | float, z: Vector | float) -> Vector:
    """x y + z, rounded once."""
    return x.intrinsic("fma", y, z)


def polynomial(x: Vector, coefficients: Sequence[float]) -> Vector:
    """Horner's rule, highest power first; of many coefficients all but the last by pairs in x^2, so that less waits."""
    first, *rest = coefficients
    value = x.number(first)
    if len(coefficients) >= PAIRED:
        square = x * x
        if len(rest) % 2 == 0:
            value = fma(value, x, rest.pop(0))
        while len(rest) > 1:
            value = fma(value, square, fma(x, rest.pop(0), rest.pop(0)))
    for c in rest:
        value = fma(value, x, c)
    return value


def absolute(x: Vector) -> Vector:
    return x.intrinsic("fabs")


def copysign(size: Vector, sign: Vector) -> Vector:
    """By bits: LLVM's own looks through the rounding of a sign, and asks for a function from float64 to float16."""
    bit = -(1 << (31 if size.single else 63))
    return ((size.bits() & ~bit) | (sign.bits() & bit)).floats()


def sqrt(x: Vector) -> Vector:
    return x.intrinsic("sqrt")


def nearest(x: Vector, scale: float, more: int = 0) -> tuple[Vector, Vector]:
    """The integer nearest to x scale as a float, and it and `more` in the lowest bits of an integer, if it is no huge
    one."""
    shift = 1.5 * 2.0**x.mantissa + more  # the sum has no bits behind the point left
    sum_ = fma(x, scale, shift)
    return sum_ - shift, sum_.bits()


Formula = Callable[..., Vector]


def wide(formula: Formula) -> Formula:
    """The formula in float64 for float32 arguments: nearly always the exact result, rounded."""

    def narrowed(*args: Vector) -> Vector:
        widened = [replace(a.to("fpext", "double"), short=True) for a in args]
        return replace(formula(*widened).to("fptrunc", "float"), short=False)

    return narrowed


def in_library(name: str) -> Formula:
    """A function of the C library, called for each lane."""

    def each(*args: Vector) -> Vector:
        x = args[0]
        symbol = name + ("f" if x.single else "")
        x.b.declarations.add(f"declare {x.scalar} @{symbol}({', '.join([x.scalar] * len(args))})")

        def call(parts: list[str]) -> str:
            return x.b.emit(f"call {x.scalar} @{symbol}({', '.join(f'{x.scalar} {p}' for p in parts)})")

        if x.width == 1:
            return x.like(call([a.name for a in args]))
        out = "poison"
        for i in range(x.width):
            value = call([x.b.emit(f"extractelement {x.kind} {a.name}, i64 {i}") for a in args])
            out = x.b.emit(f"insertelement {x.kind} {out}, {x.scalar} {value}, i64 {i}")
        return x.like(out)

    return each


def where_rarely(test: Vector, rare: Callable[[], Vector], usual: Vector) -> Vector:
    """The rare value where the test holds, else the usual one. If it holds nowhere, the rare value is not computed."""
    b = test.b
    anywhere = test.name
    if test.width > 1:
        full = f"@llvm.vector.reduce.or.v{test.width}i1"
        b.declarations.add(f"declare i1 {full}({test.kind})")
        anywhere = b.emit(f"call i1 {full}({test.kind} {test.name})")
    anywhere = b.intrinsic("expect", "i1", anywhere, "false")
    before, inside, after = b.block, b.label(), b.label()
    b.do(f"br i1 {anywhere}, label %{inside}, label %{after}")
    b.start(inside)
    other = where(test, rare(), usual)
    end = b.block
    b.do(f"br label %{after}")
    b.start(after)
    return usual.like(b.emit(f"phi {usual.kind} [{usual.name}, %{before}], [{other.name}, %{end}]"))
