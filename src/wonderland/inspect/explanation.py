"""A native program, step by step: kernels, what was fused, multiply-adds, bytes, memory, time."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections import Counter
from collections.abc import Iterator

from ..engines.native.machine import machine
from ..engines.native.memory import PLANNED, lifetimes
from ..engines.native.program import Program, text_of
from ..engines.native.steps import Native
from ..storage.svg import SVG
from ..viz.marks import shortened
from .limits import Limits, limits
from .listing import Block, Line, listing
from .picture import picture
from .profiling import Times

WIDTH = 78  # characters of what a step does; `.steps` has all of it


class Explanation:
    """The steps of a compiled function, its memory and, if it was run, its times. Prints as a table.

    `steps` are records with the fields of the table, `llvm` and `assembly` the code of all routines, `svg` a picture.
    """

    def __init__(self, name: str, program: Program, states: int, times: Times | None = None, why: str = "") -> None:
        self.name = name
        self._why = why
        self.program = program
        self.times = times
        self.limits: Limits = limits()
        self.steps: list[Line] = [self._bounded(line) for line in listing(program)]
        self._states = states

    def _bounded(self, line: Line) -> Line:
        """The step with what bounds it and, if it was measured, its time."""
        often = line.times or 1
        bound, least = self.limits.bound(line.effort, line.bytes, line.wide, line.chunks > 1, often)
        seconds = None if self.times is None else float(self.times.steps[line.instruction]) / 1e9
        return dataclasses.replace(line, bound=bound, least=least, seconds=seconds)

    # --- the whole

    @property
    def summary(self) -> str:
        done = f"{len(self.steps)} steps" if len(self.steps) != 1 else "1 step"
        if self.times is None:
            return done
        rate = f"{_time(self.times.seconds)} a call, {2e-9 * self.multiply_adds / self.times.seconds:,.1f} GFLOP/s"
        return f"{done}, {rate}, {self.least / self.times.seconds:.0%} of what bounds them"

    @property
    def least(self) -> float:
        """The seconds that all steps would take if each reached its bound."""
        return sum(line.least for line in self.steps)

    @property
    def bounds(self) -> dict[str, float]:
        """The seconds at least for "compute", "memory" and "overhead": what it is worth to work on."""
        found: dict[str, float] = {}
        for line in self.steps:
            found[line.bound] = found.get(line.bound, 0.0) + line.least
        return found

    @property
    def multiply_adds(self) -> int:
        return sum(line.multiply_adds for line in self.steps)

    @property
    def bytes(self) -> int:
        return sum(line.bytes for line in self.steps)

    @property
    def seconds(self) -> float:
        """The time of all steps, without what is between them; each at its shortest."""
        return sum(line.seconds or 0.0 for line in self.steps)

    @property
    def arena_bytes(self) -> int:
        """The memory for intermediate values."""
        return self.program.arena_bytes

    @property
    def buffer_bytes(self) -> int:
        """What intermediate values would take if each had memory of its own."""
        return sum(int(b.nbytes) for b in lifetimes(self.program.schedule) if b.kind in PLANNED)

    @property
    def fallbacks(self) -> dict[str, int]:
        """What NumPy computes, and how many steps that is."""
        return dict(Counter(line.what.split()[1] for line in self.steps if line.kind == "NumPy"))

    @property
    def routines(self) -> int:
        """How many different routines the native steps are."""
        return len(self._distinct())

    # --- the code

    def _distinct(self) -> list[tuple[int, Native]]:
        code = self.program.code
        return list({int(code[at, 1]): (at, step) for at, step in reversed(self.program.routines)}.values())[::-1]

    def _texts(self) -> Iterator[tuple[str, str]]:
        what = {line.instruction: f"{line.number}: {line.what}" for line in self.steps}
        for at, step in self._distinct():
            yield what[at], text_of(step, self.program.schedule.cpu, f"step_{what[at].split(':')[0]}")

    @property
    def llvm(self) -> str:
        """The LLVM text of all routines, each once."""
        return "\n".join(f"; {what}\n{text}" for what, text in self._texts())

    @property
    def assembly(self) -> str:
        """The machine code of all routines as text, each once."""
        return "\n".join(f"# {what}\n{machine().assembly(text)}" for what, text in self._texts())

    # --- the trace

    def why(self) -> str:
        """Why the function was traced the last time, and what would have avoided it.

        >>> import wonderland as wl
        >>> double = wl.jit(lambda x: 2 * x)
        >>> _ = double(wl.ones((1, 3))), double(wl.ones((1, 4)))
        >>> print(wl.explain(double).why())
        the argument x is float32[1,4] and was float32[1,3]: each size of axis 1 is compiled. One program serves
        all sizes of an axis in front alone.
          try: a few lengths, and a mask of what is real: wl.data.bucket_lengths, wl.data.PadCollate(to=...)
        """
        return self._why

    # --- the picture

    @property
    def svg(self) -> SVG:
        """The time of every step (the bytes, if it was not measured) and the arena, as the text of a picture."""
        return picture(self)

    def show(self, path: str | None = None) -> str:
        """Write the picture to a file, and return its name. Without one, the browser shows it."""
        where = path
        if where is None:
            handle, where = tempfile.mkstemp(suffix=".svg")
            os.close(handle)
        with open(where, "w", encoding="utf-8") as file:
            file.write(self.svg)
        if path is None:
            import webbrowser  # takes a while to load

            webbrowser.open(f"file://{where}")
        return where

    # --- the table

    def rows(self) -> Iterator[tuple[str | None, int]]:
        """The rows of a table, with their depth: the name of a loop that begins, or None for the next step."""
        before: tuple[Block, ...] = ()
        for line in self.steps:
            known = 0
            while known < min(len(before), len(line.blocks)) and before[known] is line.blocks[known]:
                known += 1
            for depth in range(known, len(line.blocks)):
                yield line.blocks[depth].text, depth
            yield None, len(line.blocks)
            before = line.blocks

    def __str__(self) -> str:
        head = ["", "step", "where", "chunks", "multiply-adds", "bytes", "per byte", "bound", "at least"]
        head += ["time", "%", "GFLOP/s", "GB/s", "of the bound"] if self.times is not None else []
        table = [head]
        steps = iter(self.steps)
        for block, depth in self.rows():
            if block is None:
                table.append(self._cells(next(steps), depth))
            else:
                table.append(["", "  " * depth + block, *[""] * (len(head) - 2)])
        table.append(self._total())
        kept = [k for k in range(len(head)) if k != 2 or any(row[2] for row in table[1:])]
        widths = [max(len(row[k]) for row in table) for k in range(len(head))]
        lines = [
            "  ".join(row[k].ljust(widths[k]) if k in (1, 2) else row[k].rjust(widths[k]) for k in kept).rstrip()
            for row in table
        ]
        return "\n".join([f"{self.name}: {self.summary}", *lines, *self._notes()])

    __repr__ = __str__

    def _cells(self, line: Line, depth: int) -> list[str]:
        cells = [
            str(line.number),
            "  " * depth + shortened(line.what, WIDTH),
            line.where,
            str(line.chunks),
            f"{line.multiply_adds:,}",
            f"{line.bytes:,}",
            f"{line.intensity:.2f}",
            line.bound,
            _time(line.least),
        ]
        if self.times is not None:
            assert line.seconds is not None
            cells += [_time(line.seconds), f"{line.seconds / self.seconds:.1%}"]
            cells.append("" if line.rate is None else f"{2e-9 * line.rate:,.1f}")
            cells.append("" if line.rate is None or not line.seconds else f"{1e-9 * line.bytes / line.seconds:,.1f}")
            cells.append("" if line.share is None else f"{line.share:.1%}")
        return cells

    def _total(self) -> list[str]:
        done, moved = self.multiply_adds, self.bytes
        cells = ["", "total", "", "", f"{done:,}", f"{moved:,}", f"{done / moved if moved else 0.0:.2f}"]
        cells += ["", _time(self.least)]
        if self.times is not None:
            seconds = max(self.seconds, 1e-9)  # where there is no step, no time
            cells += [_time(seconds), "100.0%", f"{2e-9 * done / seconds:,.1f}", f"{1e-9 * moved / seconds:,.1f}"]
            cells.append(f"{self.least / seconds:.1%}")
        return cells

    def _notes(self) -> list[str]:
        notes = [f"native steps: {len(self.program.routines)}; different routines: {self.routines}"]
        notes.append(f"memory: an arena of {self.arena_bytes:,} bytes for {self.buffer_bytes:,} of intermediate values")
        if self._states:
            notes[-1] += f"; {len(self.program.donations)} of {self._states} new states take the place of the old ones"
        if kept := self.program.lasting:
            notes.append(f"kept while parameters are the same: {kept.steps} steps, {kept.bytes:,} bytes")
        numpy = ", ".join(name if n == 1 else f"{name} ({n} times)" for name, n in self.fallbacks.items())
        notes.append(f"NumPy computes: {numpy or 'nothing'}")
        if self.times is not None:
            whole = _time(self.times.seconds)
            notes.append(f"time: the shortest of {self.times.runs} runs, for each step; the shortest call took {whole}")
        most = self.limits
        notes.append(
            f"bounds: {2e-9 * most.one:,.0f} GFLOP/s on one thread, {2e-9 * most.all:,.0f} on all; "
            f"{1e-9 * most.far[1]:,.0f} GB/s from memory, {1e-9 * most.near[1]:,.0f} from the second cache; "
            f"{_time(most.start[1])} to share a step"
        )
        return notes


def _time(seconds: float) -> str:
    if seconds >= 1e-3:
        return f"{1e3 * seconds:,.2f} ms"
    return f"{1e6 * seconds:,.1f} µs" if seconds >= 1e-6 else f"{1e9 * seconds:.0f} ns"
