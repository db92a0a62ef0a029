"""The parts of a schedule that are not native routines: calls into NumPy, and control flow."""

from __future__ import annotations

from typing import Protocol

from ...ir.graph import Equation
from .labels import Work
from .text.routine import Routine
from .values import Buffer, View


class Native(Protocol):
    """A step that is a routine: run for chunks 0 .. chunks-1, in any order."""

    @property
    def chunks(self) -> int: ...

    @property
    def reads(self) -> list[Buffer]: ...

    @property
    def writes(self) -> list[Buffer]: ...

    @property
    def views(self) -> list[View]: ...

    @property
    def work(self) -> Work:
        """What it does in a user's words, and how many multiply-adds (or comparable operations) that takes."""

    def describe(self) -> object: ...

    def emit(self, r: Routine) -> None: ...


class Fallback:
    """An equation that NumPy computes."""

    def __init__(self, equation: Equation, inputs: list[View], outputs: list[View]) -> None:
        self.equation, self.inputs, self.outputs = equation, inputs, outputs
        self.reads = [v.buffer for v in inputs]
        self.writes = [v.buffer for v in outputs]


class Label:
    """A place to go to."""

    reads: tuple[Buffer, ...] = ()
    writes: tuple[Buffer, ...] = ()


class Control:
    """An instruction of the runtime. A buffer among the arguments stands for its place in the table, a label for its
    position."""

    def __init__(self, code: int, *args: Buffer | Label | int, alive: list[Buffer] | None = None) -> None:
        self.code, self.args = code, args
        self.reads = [a for a in args if isinstance(a, Buffer)] + (alive or [])
        self.writes: list[Buffer] = []


class Loop:
    """The extent of a loop in the list of steps: what enters or leaves it lives through all of it."""

    def __init__(self, repeats: bool = True) -> None:
        self.begin, self.end = Label(), Label()
        self.repeats = repeats  # False: branches, of which one runs


Step = Native | Fallback | Label | Control
