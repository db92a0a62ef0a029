"""A compiled call as a function of C: CPython calls it, and between its arguments and its results no Python runs.

`Guards` says what must be as it was for the call to be the same as before, in instructions that the function in
`entry_text.py` goes through. It is for the usual case; whatever is unusual (another type, a view that is not in one
piece, a lock that another thread has) makes it return `missed`, and the call takes the usual way.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Mapping, Sequence, Sized
from contextvars import ContextVar
from types import CellType
from typing import TYPE_CHECKING

import numpy as np

from ...arrays.assignment import unheeded
from ...core.context import exhaust
from ...core.dtypes import is_inexact
from ...core.tensor import Tensor
from . import runtime, threads
from .entry_guards import NUMBERS
from .entry_shorthand import NUMPY, PYTHON, RETURNS, WORDS
from .entry_text import text
from .keeping import kept
from .machine import Module, machine

if TYPE_CHECKING:
    from threading import RLock

    from ...core.cell import Run
    from ...core.context import State
    from ...core.dtypes import DType
    from .bound import Bound
    from .program import Program

FASTCALL = 0x80  # of CPython: a function of (itself, arguments, how many)
AXES = 64  # that an array of NumPy's has at most
_USED = WORDS.index("USED")


class _Method(ctypes.Structure):
    """How CPython is told of a function: PyMethodDef of its C interface."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


class Guards:
    """What must be as it was. Objects are known by their addresses; those that may not die meanwhile are kept.

    Arguments come first. What follows, the surroundings, is asked without an allocation that could set off the garbage
    collector, and so still holds when the program runs.
    """

    def __init__(self, arguments: int) -> None:
        self.arguments = arguments
        self.registers = arguments
        self.holds = 0  # how many references are held during a call
        self.noted = 0  # how many tensors are noted for a record
        self.code: list[list[int]] = []
        self.kept: list[object] = []

    def _add(self, name: str, a: int = 0, b: int = 0, c: int = 0, d: int = 0, e: int = 0) -> int:
        self.code.append([NUMBERS[name], a, b, c, d, e])
        return len(self.code) - 1

    def _id(self, value: object) -> int:
        self.kept.append(value)
        return id(value)

    # --- arguments, told by their registers

    def module(self, register: int, reference: object, parts: Mapping[int, object]) -> None:
        """It is the one that the weak reference tells. What is in `parts` at 0 while it lives stays during the call."""
        self.holds += 1
        self._add("module", register, self._id(0), self._id(reference), self._id(parts))

    def same(self, register: int, value: object) -> None:
        self._add("same", register, 0, self._id(value))

    def inside(self, register: int, sort: type, keys: Sequence[object]) -> list[int]:
        """It is a list, a tuple (keys: the positions) or a dict of just these keys: the registers of what is inside."""
        base = next(base.__name__ for base in (list, tuple, dict) if issubclass(sort, base))  # also of named tuples
        self._add(base, register, len(keys), self._id(sort))
        return [self._part(f"of_{base}", register, key if isinstance(key, int) else self._id(key)) for key in keys]

    def fields(self, register: int, sort: type, names: Sequence[str]) -> list[int]:
        """It is an object of that class: the registers of attributes."""
        self._add("object", register, 0, self._id(sort))
        return [self._part("of_object", register, self._id(sys.intern(name))) for name in names]

    def _part(self, name: str, register: int, told: int) -> int:
        self._add(name, register, told, 0, self.registers)
        self.registers, self.holds = self.registers + 1, self.holds + 1
        return self.registers - 1

    def tensor(self, register: int, shape: tuple[int, ...], dtype: DType, place: int, recorded: bool) -> None:
        """It is a tensor of that type, for that place of the table. `recorded`: the record of the call has it."""
        self.holds += 1 + recorded
        self._add("tensor", register, self._id(shape), self._id(dtype), place, self.noted if recorded else -1)
        self.noted += recorded

    def array(self, register: int, shape: tuple[int, ...], dtype: DType, place: int) -> None:
        """It is an array of that type, for that place of the table."""
        self._add("array", register, self._id(shape), self._id(dtype), place)

    def record(self) -> int:
        """Make a record of the call, when that is wanted: see `Entry.records`. What comes next are the surroundings."""
        self.holds += 1
        return self._add("record", self.noted)

    # --- the surroundings; each gives its number, by which another value can be expected later

    def alive(self, reference: object) -> int:
        """What a weak reference tells is there, and stays during the call."""
        self.holds += 1
        return self._add("alive", 0, 0, self._id(reference))

    def true(self, function: Callable[..., bool], *arguments: object) -> int:
        """A function of C gives True."""
        return self._add("true", self._id(function), 0, self._id(arguments))

    def name(self, holder: Mapping[str, object], name: str, value: object) -> int:
        """A name in a dict stands for this very object."""
        return self._add("name", self._id(holder), self._id(sys.intern(name)), self._id(value))

    def variable(self, cell: CellType, value: object) -> int:
        """A variable of a closure has this very value."""
        return self._add("variable", self._id(cell), 0, self._id(value))

    def empty(self, holder: Sized) -> int:
        return self._add("count", self._id(holder))

    def entries(self, holder: Mapping[str, object]) -> None:
        """A dict has just these keys, in this order, for these very objects."""
        self._add("count", self._id(holder), len(holder))
        for i, (key, value) in enumerate(holder.items()):
            self._add("pair", self._id(holder), self._id(key), self._id(value), int(i == 0))

    def elements(self, holder: Sequence[object]) -> None:
        """A list has just these very objects."""
        self._add("count", self._id(holder), len(holder))
        for i, value in enumerate(holder):
            self._add("element", self._id(holder), i, self._id(value))

    def context(self, variable: ContextVar[State], value: State) -> int:
        """It has this state, or one of the same key: none inside a transformation."""
        return self._add("context", self._id(variable), 0, self._id(value), self._id(value.key))

    def attribute(self, holder: object, name: str, value: object) -> int:
        return self._add("attribute", self._id(holder), self._id(sys.intern(name)), self._id(value))


class Entry:
    """The function. `__call__` of what it is made for goes through `function` first."""

    def __init__(
        self,
        program: Program,
        bound: Bound,
        guards: Guards,
        form: int,
        missed: object,
        lock: RLock,
        run: Run | None,  # None: there is no state
        runs: set[Run],
    ) -> None:
        self._bound = bound
        self._untouched = guards.true(unheeded, bound.overwritten) if program.states else None
        self._lasting = guards.alive(bound.lasting) if program.lasting else None
        self._binding = guards.attribute(bound, "binding", None)
        self._turn = guards.attribute(kept, "turn", kept.turn)  # at which `program.used` was noted
        guards.alive(bound.program)
        pool = threads.pool() if program.shares else 0  # of the crew that the guards name
        if program.shares:
            for name, member in zip(("_pool", "_threads"), threads.crew(), strict=True):
                guards.name(vars(threads), name, member)
        self._guards = np.array([*guards.code, [NUMBERS["end"]] * 6], np.int64)
        kinds = [self._kind(program, bound, i, position) for i, position in enumerate(bound.fresh)]
        self._kinds = np.array([words for words, _ in kinds] or [[0] * 7], np.int64)
        sizes = guards.registers, guards.holds, len(kinds), guards.noted, guards.noted, AXES
        self._scratch = [np.zeros(max(n, 1), np.int64) for n in sizes]
        registers, held, outs, given, nodes, zeros = [part.ctypes.data for part in self._scratch]
        self._expected: dict[int, object] = {}  # by guards whose values were put in later
        words = {
            "ARGUMENTS": guards.arguments,
            "GUARDS": self._guards.ctypes.data,
            "REGISTERS": registers,
            "HELD": held,
            "TABLE": bound.start,
            "RUN": _address(runtime.functions().run),
            "CODE": bound.code.ctypes.data,
            "START": program.lasting.steps if program.lasting else 0,
            "POOL": pool,
            "BEGUN": bound.start + 8 * program.begun,
            "STATUS": program.status.ctypes.data,
            "STATUS_BYTES": program.status.nbytes,
            "RESULTS": len(kinds),
            "KINDS": self._kinds.ctypes.data,
            "OUTS": outs,
            "GIVEN": given,
            "NODES": nodes,
            "ZEROS": zeros,
            "FORM": form,
        }
        objects: dict[str, object] = {
            "MISSED": missed,
            "TRY": lock.acquire,
            "OPEN": lock.release,
            "TAKE": program.lock.acquire,
            "RELEASE": program.lock.release,
            "EXHAUST": exhaust,
            "COMPLAIN": bound.complain,
            "TENSOR": Tensor,
            "ARRAY": np.ndarray,
            "DATA": "_data",
            "NODE": "_node",
            "DTYPE": "dtype",
            "SHAPE": "shape",
            "KEY": "key",
            "NONE": None,
            "TRUE": True,
            "NO_ARGUMENTS": (),
            "AT_ONCE": (False,),
        }
        if run is not None:
            objects |= {"RUNS": runs, "CALL": run}
            objects |= {"REPLACED": run.replaced, "SPARED": run.spared, "SETTLING": run.settling}
        words |= {name: id(value) for name, value in objects.items()}
        self._record = np.array([words.get(name, 0) for name in WORDS], np.int64)
        self._kept = [guards.kept, objects, [kept for _, kept in kinds]]

    def function(self) -> Callable[..., object]:
        """A new function, which keeps this alive."""
        return _new_function((self._record.ctypes.data, self))

    def _kind(self, program: Program, bound: Bound, number: int, position: int) -> tuple[list[int], object]:
        """How the array of a result is made: by NumPy, or by the program, which keeps large ones."""
        shape, dtype, large = program.results[position]
        place = program.output_places[position]
        told = id(number) if is_inexact(dtype) else 0
        if large:
            arguments = (position,)
            make = bound.make
            return [0, 0, 0, place, id(make), id(arguments), told], (make, arguments, number)
        sizes = np.array(shape or (0,), np.int64)
        return [len(shape), sizes.ctypes.data, id(dtype), place, 0, 0, told], (sizes, dtype, number)

    def used(self) -> bool:
        """Whether a call has succeeded since this was asked the last time."""
        used = bool(self._record[_USED])
        self._record[_USED] = 0
        return used

    def expect(self, guard: int | None, value: object) -> None:
        """Let a guard of the surroundings, if there is one, expect another value."""
        if guard is not None:
            self._guards[guard, 3] = id(value)
            self._expected[guard] = value

    def outside(self, guard: int, state: State) -> None:
        """Let the guard of the context expect a state outside of transformations."""
        self.expect(guard, state)
        self._guards[guard, 4] = id(state.key)

    def records(self, guard: int, when: int, function: Callable[..., object] | None) -> None:
        """From now on calls are recorded by a function: never (0), where an argument is (1), always (2)."""
        self._guards[guard, [3, 5]] = 0 if function is None else id(function), when
        self._expected[guard] = function

    def renew(self, binding: object) -> None:
        """The program has just run with the state of a binding."""
        self.expect(self._untouched, (self._bound.overwritten,))
        self.expect(self._lasting, self._bound.lasting)
        self.expect(self._binding, binding)
        self.expect(self._turn, kept.turn)


MODULE = Module("entry", text, ("enter", "use"), light=True)


@functools.cache
def is_possible() -> bool:
    """Whether CPython can be given functions here: in its main interpreter, where one thread runs Python at a time."""
    if sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    here, number = ctypes.pythonapi["PyInterpreterState_Get"], ctypes.pythonapi["PyInterpreterState_GetID"]
    here.restype, number.restype, number.argtypes = ctypes.c_void_p, ctypes.c_int64, [ctypes.c_void_p]
    return bool(number(here()) == 0)


def _new_function(itself: tuple[int, object]) -> Callable[..., object]:
    """A function of C, as an object of Python's. It is given `itself`, of which it knows the address at the front."""
    make = ctypes.pythonapi["PyCFunction_NewEx"]  # indexing makes a new object, which is nobody else's
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    made: Callable[..., object] = make(ctypes.addressof(_method()), itself, None)
    return made


@functools.cache
def _method() -> _Method:
    enter, use = machine().functions(MODULE)
    _table[:] = [*[_address(ctypes.pythonapi[name]) for name in PYTHON], *_of_numpy([i for _, i in NUMPY.values()])]
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(use)(ctypes.addressof(_table))
    return _Method(b"compiled", enter, FASTCALL, None)


_table = (ctypes.c_void_p * len(RETURNS))()


def _of_numpy(places: list[int]) -> list[int]:
    """Functions of NumPy's C interface, by their places in its table."""
    home = sys.modules.get("numpy._core.multiarray") or sys.modules["numpy.core.multiarray"]
    open_capsule = ctypes.pythonapi["PyCapsule_GetPointer"]
    open_capsule.restype, open_capsule.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    start = open_capsule(home._ARRAY_API, None)
    return [ctypes.c_size_t.from_address(start + ctypes.sizeof(ctypes.c_size_t) * i).value for i in places]


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]  # a function of ctypes
