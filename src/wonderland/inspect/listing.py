"""The steps of a program as records: what each does, how much it computes and moves, and where it comes from."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from ..core.context import FORWARD
from ..engines.native.direct.step import Direct
from ..engines.native.kernels.kernel import Kernel
from ..engines.native.labels import Work
from ..engines.native.products.epilogue import WithEpilogue
from ..engines.native.program import Program
from ..engines.native.runtime import Op as Code
from ..engines.native.schedule import Schedule
from ..engines.native.steps import Control, Fallback, Label, Native
from ..engines.native.text.operations import cost_of
from ..engines.native.values import Buffer, Op, Take, Value, View, parts
from ..ir.cost import multiply_adds
from ..ir.graph import Equation

KINDS = {  # by the first word of what a step does
    "matmul": "matrix product",
    "convolution": "convolution",
    "filter": "convolution",
    "attention": "attention",
    "gradients": "attention",
    "NumPy:": "NumPy",
    "pack": "copy",
}

HELD = "where others hold the old state"  # else it is changed in its place


@dataclass(eq=False)
class Block:
    """What steps stand in: a loop, a case of a branch, or copies that are left out where they can be, so 0 times.

    `times` is None where only the run itself tells.
    """

    text: str
    times: int | None = 1


@dataclass(frozen=True)
class Line:
    """One step of a program. Multiply-adds (or comparable operations) and bytes are those of all its runs in a call."""

    number: int
    what: str
    where: str  # the module, else the user's line
    chunks: int  # pieces that threads share
    multiply_adds: int
    bytes: int  # read and written
    blocks: tuple[Block, ...]  # around it, the outermost first
    instruction: int  # its place in the program's code
    position: int  # and among the steps of its schedule
    wide: bool  # whether it computes in float64
    effort: int  # multiply-adds and additions: what is dear, such as exp, counts as several
    bound: str = ""  # what it waits for at best: "compute", "memory" or "overhead"
    least: float = 0.0  # the seconds that the machine needs for that
    seconds: float | None = None  # of one call, if it was measured

    @property
    def kind(self) -> str:
        return "copy" if self.what.endswith(": copy") else KINDS.get(self.what.split()[0], "kernel")

    @property
    def times(self) -> int | None:
        """How often it runs in a call. None inside a while loop: its multiply-adds and bytes are those of one turn."""
        return _times(self.blocks)

    @property
    def intensity(self) -> float:
        """Multiply-adds per byte: where it is low, memory is the limit."""
        return self.multiply_adds / self.bytes if self.bytes else 0.0

    @property
    def share(self) -> float | None:
        """The part of its bound that it reaches, if that is known."""
        return self.least / self.seconds if self.seconds and self.times is not None else None

    @property
    def rate(self) -> float | None:
        """Multiply-adds in a second, if that is known."""
        return self.multiply_adds / self.seconds if self.seconds and self.times is not None else None


def listing(program: Program) -> list[Line]:
    """A record for every native routine and every call into NumPy, in order."""
    schedule = program.schedule
    begins = {id(loop.begin) for loop in schedule.loops}
    ends = {id(loop.end) for loop in schedule.loops}
    found: list[tuple[Native | Fallback, tuple[Block, ...], int, int]] = []
    blocks: list[Block] = []
    skipped: object = None  # where a copy of state ends that may be left out
    instruction = 0
    for position, step in enumerate(schedule.steps):
        if id(step) in begins:
            blocks.append(Block("loop"))
        elif id(step) in ends:
            while blocks.pop().text.startswith("case"):
                pass
        elif isinstance(step, Control):
            _learn(blocks, step)
            if step.code == Code.SAME:
                blocks.append(Block(HELD, 0))
                skipped = step.args[2]
        elif step is skipped:
            blocks.pop()
        elif not isinstance(step, Label):
            found.append((step, tuple(blocks), instruction, position))
        instruction += not isinstance(step, Label)
    return [
        _line(number, step, around, schedule, instruction, position)
        for number, (step, around, instruction, position) in enumerate(found)
    ]


def _learn(blocks: list[Block], step: Control) -> None:
    """What an instruction tells of the loop or branch that it belongs to."""
    if step.code == Code.NEXT:
        blocks[-1].times = int(step.args[1])  # type: ignore[arg-type]
        blocks[-1].text = f"loop x {blocks[-1].times}"
    elif step.code == Code.UNLESS:
        blocks[-1].text, blocks[-1].times = "while loop", None
    elif step.code == Code.DIFFERS:
        if blocks[-1].text.startswith("case"):
            blocks.pop()
        blocks[-1].text = "branch"
        blocks.append(Block(f"case {step.args[1]}"))


def _times(blocks: tuple[Block, ...]) -> int | None:
    found = [block.times for block in blocks]
    return None if None in found else math.prod(n for n in found if n is not None)


def _line(
    number: int, step: Native | Fallback, blocks: tuple[Block, ...], schedule: Schedule, instruction: int, position: int
) -> Line:
    what, done = work_of(step)
    times = math.prod(1 if block.times is None else block.times for block in blocks)
    return Line(
        number,
        what,
        _where(schedule.origins.get(id(step), [])),
        getattr(step, "chunks", 1),
        done * times,
        traffic(step) * times,
        blocks,
        instruction,
        position,
        all(b.dtype.itemsize == 8 for b in step.writes),
        (done + _dear(step)) * times,
    )


def work_of(step: Native | Fallback) -> Work:
    if isinstance(step, Fallback):
        name = step.equation.primitive.name.replace("stop_gradient", "copy")
        return f"NumPy: {name} {[*step.inputs, *step.outputs][0].shape}", multiply_adds(step.equation)
    return getattr(step, "work", (type(step).__name__, 0))


def _dear(step: Native | Fallback) -> int:
    """The additions that elementwise operations take beyond one each."""
    found = [part for part in parts(*_expressions(step)) if isinstance(part, Op)]
    return sum((max(cost_of(part.name), 1) - 1) * int(math.prod(part.shape)) for part in found)


def _where(equations: list[Equation]) -> str:
    """The module path of the first equation, or its line."""
    for e in equations[:1]:
        known = e.source is not None and not e.source.file.startswith("<")  # not typed at a prompt
        path = e.module or (f"{os.path.basename(e.source.file)}:{e.source.line}" if e.source and known else "")
        return path if e.phase == FORWARD or not path else f"{path}, {e.phase.split()[0]}"
    return ""


def traffic(step: Native | Fallback) -> int:
    """The bytes that a step reads and writes, each element once; of what it gathers from, those that it takes."""
    views: list[View] = [*step.inputs, *step.outputs] if isinstance(step, Fallback) else step.views
    takes = [part for part in parts(*_expressions(step)) if isinstance(part, Take)]
    from_tables = {id(take.view) for take in takes}
    plain = {(v.buffer, v.offset, v.shape, v.strides) for v in views if id(v) not in from_tables}
    touched: dict[Buffer, int] = {}
    for buffer, _, shape, strides in plain:
        size = int(math.prod(n for n, s in zip(shape, strides, strict=True) if s))
        touched[buffer] = touched.get(buffer, 0) + size
    for take in takes:
        touched[take.view.buffer] = touched.get(take.view.buffer, 0) + int(math.prod(take.shape))
    moved = {b: min(n, int(b.size)) * b.dtype.itemsize for b, n in touched.items() if b.kind not in ("status", "word")}
    return sum(moved.get(b, 0) for group in (step.reads, step.writes) for b in dict.fromkeys(group))


def _expressions(step: Native | Fallback) -> list[Value]:
    if isinstance(step, Kernel):
        return [item.value for item in step.items]
    if isinstance(step, WithEpilogue):
        return [value for _, value in step.epilogue.stores]
    return list(step.values) if isinstance(step, Direct) else []
