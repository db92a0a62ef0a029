"""A compiled graph: native segments with calls into NumPy between them, over one arena of memory."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np

from ..graph.evaluate import run_equation
from ..graph.ir import Graph
from ..primitives.creation import check_size
from . import library
from .builder import Builder
from .kernels import Emitter
from .machine import machine
from .memory import ALIGN, plan
from .schedule import Fallback, MatMul, Schedule
from .values import Buffer, View, as_array

Array = np.ndarray[Any, Any]


class Program:
    """Call it with the arrays of the graph's inputs; it returns those of its outputs.

    Native code finds its memory through a table of addresses with one slot per buffer. Segments are the stretches of
    steps between two calls into NumPy; a program without such calls is a single segment.
    """

    def __init__(self, graph: Graph) -> None:
        for atom in graph.outputs:
            check_size(graph.name, atom.shape, atom.dtype)
        self.graph = graph
        self.schedule = Schedule(graph, library.products())
        buffers = [b for step in self.schedule.steps for b in [*step.reads, *step.writes]]
        self.slots = {b: i for i, b in enumerate(dict.fromkeys([*buffers, *self.schedule.outputs]))}
        self.functions = {dtype: len(self.slots) + i for i, dtype in enumerate(library.products())}
        self.arena_bytes = plan(self.schedule)
        check_size(graph.name, (self.arena_bytes,), np.dtype(np.uint8))
        self.text = ""  # the LLVM text, to look at
        self.parts = self._compile()
        self._lock = threading.Lock()  # calls share the table and the arena
        self._lay_out()

    def _lay_out(self) -> None:
        """Allocate the arena and fill the table with what does not change from call to call."""
        self._arena = np.empty(self.arena_bytes + ALIGN, np.uint8)
        base = -(-self._arena.ctypes.data // ALIGN) * ALIGN
        self._table = np.zeros(len(self.slots) + len(self.functions), np.uintp)
        self._flat: dict[Buffer, Array] = {}  # the memory of arena buffers and constants, for NumPy
        for dtype, slot in self.functions.items():
            self._table[slot] = library.products()[dtype]
        for buffer, slot in self.slots.items():
            if buffer.kind == "arena":
                self._table[slot] = base + buffer.offset
                start = base - self._arena.ctypes.data + buffer.offset
                self._flat[buffer] = self._arena[start : start + buffer.nbytes].view(buffer.dtype)
            elif buffer.kind == "constant":
                self._table[slot] = buffer.data.ctypes.data
                self._flat[buffer] = buffer.data.reshape(-1)
        self._input_slots = [self.slots.get(b) for b in self.schedule.inputs]
        self._output_slots = [self.slots[b] for b in self.schedule.outputs]
        self._results = [(a.shape, a.dtype) for a in self.graph.outputs]

    def __call__(self, arrays: list[Array]) -> list[Array]:
        # a NumPy scalar or a strided array becomes a contiguous array, which this list keeps alive
        arrays = [a if type(a) is np.ndarray and a.flags.c_contiguous else np.asarray(a, order="C") for a in arrays]
        outs = [np.empty(shape, dtype) for shape, dtype in self._results]
        with self._lock:
            table = self._table
            for array, slot in zip(arrays, self._input_slots, strict=True):
                if slot is not None:
                    table[slot] = array.__array_interface__["data"][0]
            for out, slot in zip(outs, self._output_slots, strict=True):
                table[slot] = out.__array_interface__["data"][0]
            address = table.ctypes.data
            for part in self.parts:
                if isinstance(part, Fallback):
                    self._in_numpy(part, arrays, outs)
                else:
                    part(address)
        return outs

    def _in_numpy(self, step: Fallback, arrays: list[Array], outs: list[Array]) -> None:
        def array(view: View) -> Array:
            buffer = view.buffer
            if buffer.kind == "input":
                return as_array(view, arrays[buffer.position].reshape(-1))
            if buffer.kind == "output":
                return as_array(view, outs[buffer.position].reshape(-1))
            return as_array(view, self._flat[buffer])

        with np.errstate(all="ignore"):
            made = run_equation(step.equation, [array(v) for v in step.inputs])
        for view, value in zip(step.outputs, made, strict=True):
            array(view)[...] = value

    # --- code

    def _compile(self) -> list[Any]:
        """The segments as callables, and the calls into NumPy between them."""
        declarations: set[str] = set()
        kernels: dict[str, str] = {}  # text -> name: identical kernels are written once
        segments: list[str] = []
        parts: list[Any] = []
        current: Builder | None = None

        def close() -> None:
            nonlocal current
            if current is not None:
                name = f"segment{len(parts)}"
                body = "\n".join(current.lines)
                segments.append(f"define void @{name}(ptr %table) {{\nentry:\n{body}\n  ret void\n}}\n")
                parts.append(name)
                current = None

        for step in self.schedule.steps:
            if isinstance(step, Fallback):
                close()
                parts.append(step)
                continue
            current = current or Builder(declarations)
            b = current
            if isinstance(step, MatMul):
                function = self._slot(b, self.functions[step.out.dtype])
                library.emit_product(b, step, function, [self._slot(b, self.slots[v.buffer]) for v in step.views])
            else:
                text = Emitter(step, "KERNEL", declarations).text()
                name = kernels.setdefault(text, f"kernel{len(kernels)}")
                pointers = [self._slot(b, self.slots[buffer]) for buffer in step.buffers]
                b.do(f"call void @{name}({', '.join(f'ptr {p}' for p in pointers)})")
        close()
        if not segments:
            return parts
        bodies = [text.replace("@KERNEL", f"@{name}", 1) for text, name in kernels.items()]
        self.text = "\n".join([*sorted(declarations), *bodies, *segments])
        self._engine = machine().compile(self.text)
        signature = ctypes.CFUNCTYPE(None, ctypes.c_size_t)
        return [signature(self._engine.get_function_address(p)) if isinstance(p, str) else p for p in parts]

    def _slot(self, b: Builder, slot: int) -> str:
        """The address in a slot of the table."""
        place = b.emit(f"getelementptr inbounds ptr, ptr %table, i64 {slot}")
        return b.emit(f"load ptr, ptr {place}, align 8")
