"""Writing LLVM's text: names, types by dtype and vector width, and control flow."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np

from ....core import dtypes
from ....core.dtypes import DType
from ..processor import Processor
from .half import narrowed, widened

STORED = {
    dtypes.bool_: "i8",
    dtypes.float16: "i16",  # not every processor knows the narrow types
    dtypes.bfloat16: "i16",  # the upper half of a float32
    dtypes.float32: "float",
    dtypes.float64: "double",
} | {d: f"i{8 * d.itemsize}" for d in dtypes.SIGNED + dtypes.UNSIGNED}
COMPUTED = STORED | {dtypes.bool_: "i1"} | {d: "float" for d in STORED if dtypes.is_half(d)}


def is_float(dtype: DType) -> bool:
    return dtypes.is_floating(dtype)


def computed(dtype: DType) -> str:
    """The type of a value in a register: narrow floats are computed in float32, bools are bits."""
    return COMPUTED[dtype]


def typed(scalar: str, width: int) -> str:
    return scalar if width == 1 else f"<{width} x {scalar}>"


def literal(value: float, scalar: str) -> str:
    """A number as LLVM writes it."""
    if scalar == "i1":
        return "true" if value else "false"
    if scalar.startswith("i"):
        return str(int(value))
    if scalar == "float":
        value = float(np.float32(value))  # LLVM wants a double that a float holds exactly
    return f"0x{struct.unpack('>Q', struct.pack('>d', float(value)))[0]:016X}"


def splat(text: str, scalar: str, width: int) -> str:
    """A constant in every lane."""
    if width == 1:
        return text
    return "<" + ", ".join(f"{scalar} {text}" for _ in range(width)) + ">"


Turn = Callable[[str, list[str]], list[str]]  # one turn of a loop: from what is carried to what is carried on


class Builder:
    """The text of one function body."""

    def __init__(self, declarations: set[str], cpu: Processor) -> None:
        self.cpu = cpu
        self.lines: list[str] = []
        self.count = 0
        self.declarations = declarations
        self.block = "entry"
        self.prefix = "v"
        self.short: set[str] = set()  # registers of float32 that are numbers of bfloat16, and need no rounding to it

    def name(self) -> str:
        self.count += 1
        return f"%{self.prefix}{self.count}"

    def emit(self, text: str) -> str:
        """An instruction with a result; returns the result's name."""
        name = self.name()
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append(f"  {text}")

    def label(self) -> str:
        self.count += 1
        return f"b{self.count}"

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def keep_order(self) -> None:
        """Nothing is read earlier than here that is read below: LLVM would read ahead more than registers hold."""
        self.do('call void asm sideeffect "", "~{memory}"()')

    def opaque(self, vector: str, kind: str) -> str:
        """The vector, of which LLVM does not see how it was computed."""
        register = "v" if self.cpu.triple.startswith("x86_64") else "w"
        return self.emit(f'call {kind} asm "", "={register},0"({kind} {vector})')

    def intrinsic(self, name: str, kind: str, *args: str, flags: str = "") -> str:
        """Call an LLVM intrinsic whose arguments and result have one type; `flags` are what it need not care about."""
        suffix = (
            kind.replace("<", "v").replace(" x ", "").replace(">", "").replace("float", "f32").replace("double", "f64")
        )
        full = f"@llvm.{name}.{suffix}"
        self.declarations.add(f"declare {kind} {full}({', '.join([kind] * len(args))})")
        return self.emit(f"call {flags} {kind} {full}({', '.join(f'{kind} {a}' for a in args)})")

    def spread(self, value: str, scalar: str, width: int) -> str:
        """A scalar in every lane of a vector."""
        if width == 1:
            return value
        if not value.startswith("%"):
            return splat(value, scalar, width)
        kind = typed(scalar, width)
        first = self.emit(f"insertelement {kind} poison, {scalar} {value}, i64 0")
        found = self.emit(f"shufflevector {kind} {first}, {kind} poison, <{width} x i32> zeroinitializer")
        if value in self.short:
            self.short.add(found)
        return found

    def when(self, test: str, body: Callable[[], None], otherwise: Callable[[], None] | None = None) -> None:
        """Run the body if the test holds, else the other one."""
        inside, after = self.label(), self.label()
        other = after if otherwise is None else self.label()
        self.do(f"br i1 {test}, label %{inside}, label %{other}")
        self.start(inside)
        body()
        self.do(f"br label %{after}")
        if otherwise is not None:
            self.start(other)
            otherwise()
            self.do(f"br label %{after}")
        self.start(after)

    def loop(self, stop: str | int, step: int, body: Callable[[str], None], start: str | int = 0) -> None:
        """for i in range(start, stop, step); the body receives the name of i. Nothing is carried."""

        def without(i: str, carried: list[str]) -> list[str]:
            body(i)
            return []

        self.loop_with([], stop, step, without, start)

    def loop_with(
        self, carried: list[tuple[str, str]], stop: str | int, step: int, body: Turn, start: str | int = 0
    ) -> list[str]:
        """A loop that runs at least zero times and carries (type, initial value) pairs; returns the final values."""
        head, inside, after = self.label(), self.label(), self.label()
        before = self.block
        self.do(f"br label %{head}")
        self.start(head)
        index = self.name()
        names = [self.name() for _ in carried]
        place = len(self.lines)
        test = self.emit(f"icmp slt i64 {index}, {stop}")
        self.do(f"br i1 {test}, label %{inside}, label %{after}")
        self.start(inside)
        results = body(index, names)
        following = self.emit(f"add nsw i64 {index}, {step}")
        # Through a copy that LLVM cannot see through: addresses are written as they should be computed, and its loop
        # strength reduction would rewrite them, for more registers and a quarter more time to compile.
        following = self.emit(f'call i64 asm "", "=r,0"(i64 {following})')
        end = self.block
        self.do(f"br label %{head}")
        phis = [f"  {index} = phi i64 [{start}, %{before}], [{following}, %{end}]"]
        phis += [
            f"  {name} = phi {kind} [{initial}, %{before}], [{result}, %{end}]"
            for name, (kind, initial), result in zip(names, carried, results, strict=True)
        ]
        self.lines[place:place] = phis
        self.start(after)
        return names


# --- between memory and registers


def widen(b: Builder, value: str, dtype: DType, width: int) -> str:
    """A stored value as it is computed with."""
    if dtype == dtypes.bool_:
        return b.emit(f"trunc {typed('i8', width)} {value} to {typed('i1', width)}")
    if dtype == dtypes.float16:
        return widened(b, value, width)
    if dtype == dtypes.bfloat16:
        ints = typed("i32", width)
        wide = b.emit(f"zext {typed('i16', width)} {value} to {ints}")
        shifted = b.emit(f"shl {ints} {wide}, {splat('16', 'i32', width)}")
        found = b.emit(f"bitcast {ints} {shifted} to {typed('float', width)}")
        b.short.add(found)
        return found
    return value


def narrow(b: Builder, value: str, dtype: DType, width: int) -> str:
    """A computed value as it is stored, rounded to the nearest (ties to even)."""
    if dtype == dtypes.bool_:
        return b.emit(f"zext {typed('i1', width)} {value} to {typed('i8', width)}")
    if dtype == dtypes.float16:
        return narrowed(b, value, width)
    if dtype == dtypes.bfloat16:
        bits = b.emit(f"bitcast {typed('float', width)} {shortened(b, value, width)} to {typed('i32', width)}")
        upper = b.emit(f"lshr {typed('i32', width)} {bits}, {splat('16', 'i32', width)}")
        return b.emit(f"trunc {typed('i32', width)} {upper} to {typed('i16', width)}")
    return value


def shortened(b: Builder, value: str, width: int) -> str:
    """A float32 rounded to the nearest number of bfloat16 (ties to even): the lower half of its bits is zero."""
    if value in b.short:
        return value
    kind, ints = typed("float", width), typed("i32", width)

    def number(n: int) -> str:
        return splat(str(n), "i32", width)

    bits = b.emit(f"bitcast {kind} {value} to {ints}")
    odd = b.emit(f"and {ints} {b.emit(f'lshr {ints} {bits}, {number(16)}')}, {number(1)}")
    raised = b.emit(f"add {ints} {b.emit(f'add {ints} {bits}, {number(0x7FFF)}')}, {odd}")
    nan = b.emit(f"fcmp uno {kind} {value}, {value}")  # rounding would carry into the sign
    ones = b.emit(f"sext {typed('i1', width)} {nan} to {ints}")  # which are NaN, too
    chosen = b.emit(f"or {ints} {raised}, {ones}")
    found = b.emit(f"bitcast {ints} {b.emit(f'and {ints} {chosen}, {number(-65536)}')} to {kind}")
    b.short.add(found)
    return found
