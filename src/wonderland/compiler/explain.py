"""What a compiled function does, step by step: kernels, what was fused into them, multiply-adds, bytes, memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ..graph.cost import multiply_adds
from .kernels import Kernel
from .program import Program
from .schedule import MatMul, Step
from .values import Op, Value


class Line(NamedTuple):
    """One step of a program."""

    what: str
    multiply_adds: int
    bytes: int


class Explanation:
    """The steps of a compiled function and its memory; prints as a table."""

    def __init__(self, name: str, program: Program) -> None:
        self.name = name
        self.program = program
        self.lines = [_line(step) for step in program.schedule.steps]

    @property
    def llvm(self) -> str:
        """The LLVM text of all kernels."""
        return self.program.text

    def __str__(self) -> str:
        rows = [(str(i), line.what, f"{line.multiply_adds:,}", f"{line.bytes:,}") for i, line in enumerate(self.lines)]
        head = ("", "step", "multiply-adds", "bytes")
        widths = [max(len(row[k]) for row in [head, *rows]) for k in range(4)]
        lines = [
            f"{row[0]:>{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]:>{widths[3]}}"
            for row in [head, *rows]
        ]
        numpy = sum(line.what.startswith("NumPy") for line in self.lines)
        total = sum(line.multiply_adds for line in self.lines), sum(line.bytes for line in self.lines)
        return "\n".join(
            [
                f"{self.name}: {len(rows)} steps, {numpy} of them by NumPy",
                *[line.rstrip() for line in lines],
                f"total: {total[0]:,} multiply-adds, {total[1]:,} bytes; arena: {self.program.arena_bytes:,} bytes",
            ]
        )

    __repr__ = __str__


def explain(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """How native code runs `f(*args)`: the steps in order, with what was fused, multiply-adds, bytes and memory.

    >>> import wonderland as wl
    >>> print(wl.explain(lambda x, w: wl.relu(x @ w + 1).sum(axis=0), wl.ones((8, 4)), wl.ones((4, 16))))
    <lambda>: 2 steps, 0 of them by NumPy
       step                                                   multiply-adds  bytes
    0  matmul (8, 4) @ (4, 16)                                          512    896
    1  sum over axes (0,) of (8, 16): add, less_equal, where            512    576
    total: 1,024 multiply-adds, 1,472 bytes; arena: 512 bytes

    Nothing is computed; arguments may be `wl.ShapeDtype`. `.llvm` is the code.
    """
    from ..transforms.jit import make_graph

    return Explanation(getattr(f, "__name__", "function"), Program(make_graph(f)(*args, **kwargs)))


def _line(step: Step) -> Line:
    if isinstance(step, MatMul):
        shape = f"{step.x.shape} @ {step.y.shape}"
        return Line(f"matmul {shape}", math.prod(step.out.shape) * step.x.shape[-1], _bytes(step))
    if isinstance(step, Kernel):
        elements = math.prod(step.shape)
        names = {name: None for _, value in step.stores for name in _names(value)}
        arithmetic = sum(_weight(value) for _, value in step.stores) + bool(step.reduce)
        what = f"{step.reduce} over axes {step.axes} of" if step.reduce else "loop over"
        return Line(f"{what} {step.shape}: {', '.join(names) or 'copy'}", arithmetic * elements, _bytes(step))
    return Line(f"NumPy: {step.equation.primitive.name}", multiply_adds(step.equation), _bytes(step))


def _bytes(step: Step) -> int:
    return sum(buffer.nbytes for buffer in dict.fromkeys([*step.reads, *step.writes]))


def _operations(value: Value, seen: set[int]) -> list[Op]:
    """The operations of an expression, each once, in the order in which they are computed."""
    if not isinstance(value, Op) or id(value) in seen:
        return []
    seen.add(id(value))
    return [op for arg in value.args for op in _operations(arg, seen)] + [value]


def _names(value: Value) -> list[str]:
    return [op.name for op in _operations(value, set()) if op.name != "stop_gradient"]


def _weight(value: Value) -> int:
    return len(_names(value))
