"""One case on a fast engine and on the reference: what is wrong with it, if anything."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import wonderland as wl
from wonderland.core.dtypes import as_dtype, is_inexact
from wonderland.core.primitive import Aval
from wonderland.engines.engine import engine as engine_of
from wonderland.engines.native import Program
from wonderland.engines.numpy.evaluate import evaluate
from wonderland.ir.simplify import simplify
from wonderland.ir.stage import stage

from .case import Case
from .rounding import Bound, bounds, eps_of, other_roundings
from .transformed import KINDS, STATEFUL

Array = np.ndarray[Any, Any]
THREADS = (1, 2, 3, 7)
FEWER = (1, 7)  # where every run compiles anew
PATTERNS = (0xFF, 0x41)  # NaN in every floating type; some number
FEW, MANY = 3, 12  # computations with other roundings: at first, and before a difference is reported


class UnfitError(Exception):
    """The case asks for something that is refused, such as the derivative of a loop of unknown length."""


class Engines:
    """A case made ready: functions that run it on the engine that is tried and with the reference."""

    tried: Callable[[], list[Array]]
    reference: Callable[[], list[Array]]
    program: Program | None = None  # the native one

    def __init__(self, case: Case, name: str) -> None:
        self.name = name
        rule, f, arrays = KINDS[case.kind], case.function(), case.arrays()
        if name == "xla":
            arrays = [*map(without_subnormals, arrays)]
        if rule in STATEFUL:
            self.tried = lambda: self._leaves(name, rule, f, arrays)
            self.reference = lambda: self._leaves("numpy", rule, f, arrays)
            return
        avals = [Aval(a.shape, as_dtype(a.dtype)) for a in arrays]
        try:
            staged = stage(lambda *xs: wl.tree.leaves(rule(f, *xs)), avals)
        except wl.errors.WonderlandError as error:
            raise UnfitError(str(error)) from error
        inputs = [np.asarray(c) for c in staged.captured] + arrays
        if name == "native":
            program = self.program = Program(simplify(staged.graph))
            self.tried = lambda: program(inputs)
        else:
            other = engine_of(name).program(staged.graph)
            self.tried = lambda: other(inputs, (), None)
        self.reference = lambda: evaluate(staged.graph, inputs)

    @staticmethod
    def _leaves(backend: str, rule: Any, f: Any, arrays: list[Array]) -> list[Array]:
        with wl.using_backend(backend):
            return [np.array(y) for y in wl.tree.leaves(rule(f, *[wl.asarray(a.copy()) for a in arrays]))]


def without_subnormals(x: Array) -> Array:
    """The array with 0 for what XLA takes for 0 on processors: numbers below the smallest that has all its digits."""
    if not is_inexact(as_dtype(x.dtype)):
        return x
    if x.dtype.kind == "c":
        parts = (without_subnormals(x.real), without_subnormals(x.imag))
        return (parts[0] + 1j * parts[1]).astype(x.dtype)
    least = np.finfo(np.float64 if x.dtype == np.float64 else np.float32).tiny  # half precision is computed in float32
    return np.where(np.abs(x) < least, np.zeros((), x.dtype), x)


def outcome(run: Callable[[], list[Array]], backend: str = "native") -> tuple[list[Array], Exception | None]:
    """The results, or the error."""
    try:
        with wl.using_backend(backend), np.errstate(all="ignore"):
            return [np.asarray(y) for y in run()], None
    except wl.errors.WonderlandError as error:
        return [], error


def problem(case: Case, threads: bool = True, name: str = "native") -> str | None:
    """What is wrong with the case, None if the engine of that name agrees with the reference."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            engines = Engines(case, name)
            found, raised = outcome(engines.tried, name)
        except UnfitError:
            return None
        except Exception as error:
            return f"{type(error).__name__} in the compiler: {error}"
        try:
            reference, expected = outcome(engines.reference, "numpy")
        except Exception as error:
            return f"{type(error).__name__} in the reference: {error}"
        if raised or expected:
            if type(raised) is type(expected):
                return None
            if doubtful(engines, expected):
                return None
            return f"{name}: {_said(raised)}; reference: {_said(expected)}"
        if name != "native":
            return difference(case, engines, found, reference)
        return (
            difference(case, engines, found, reference)
            or dirty_memory(engines, found)
            or (dependence_on_threads(engines, found) if threads else None)
        )


def _said(error: Exception | None) -> str:
    return "no error" if error is None else f"{type(error).__name__}: {str(error).splitlines()[0]}"


def doubtful(engines: Engines, expected: Exception | None) -> bool:
    """Whether it depends on rounding if there is an error."""
    for k in range(MANY):
        with other_roundings(k):
            if type(outcome(engines.reference, "numpy")[1]) is not type(expected):
                return True
    return False


def difference(case: Case, engines: Engines, native: list[Array], reference: list[Array]) -> str | None:
    """Where native code gives other numbers than rounding explains."""
    for k, (x, y) in enumerate(zip(native, reference, strict=True)):
        if (x.shape, x.dtype) != (y.shape, y.dtype):
            return f"result {k}: {x.dtype}{list(x.shape)} instead of {y.dtype}{list(y.shape)}"

    def again() -> list[Array]:
        with wl.using_backend("numpy"), np.errstate(all="ignore"):
            return [np.asarray(y) for y in engines.reference()]

    if not any(Bound(y).violations(x).any() for x, y in zip(native, reference, strict=True)):
        return unequal_halves(again) if case.kind == "adjoint" else None
    for times, units in ((FEW, 1.0), (MANY, 2.0)):
        found = bounds(again, times, seed=100 * times, units=units)
        wrong = [b.violations(x) for b, x in zip(found, native, strict=True)]
        if not any(w.any() for w in wrong):
            return unequal_halves(again) if case.kind == "adjoint" else None
    k = next(k for k, w in enumerate(wrong) if w.any())
    where = np.unravel_index(int(np.argmax(wrong[k])), wrong[k].shape)
    x, y = _shown(native[k], where), _shown(found[k].reference, where)
    sort = "other numbers" if np.isfinite(x) == np.isfinite(y) else "what is finite differs"
    count = f"{int(wrong[k].sum())} of {wrong[k].size} elements of result {k}"
    return f"{sort}: {count}, first at {tuple(map(int, where))}: {x}, reference {y}"


def unequal_halves(again: Callable[[], list[Array]]) -> str | None:
    """Forward and reverse mode give the same number."""
    ahead, back = bounds(again, MANY)
    if ahead.stable.all() and back.stable.all() and np.isfinite(ahead.parts) and np.isfinite(back.parts):
        rounding = 64 * eps_of(ahead.dtype) * np.abs(ahead.parts)
        if np.abs(ahead.parts - back.parts) > 16 * (ahead.movement + back.movement) + rounding:
            return f"the modes differ: forward {ahead.reference}, reverse {back.reference} (reference)"
    return None


def dirty_memory(engines: Engines, native: list[Array]) -> str | None:
    """Whether results depend on what memory holds before the run."""
    native = [x.copy() for x in native]
    for pattern in PATTERNS if engines.program else PATTERNS[:1]:
        with wl.debug.filled_memory(pattern):
            again, _ = outcome(engines.tried)
        if not same_bits(native, again):
            return f"dirty memory: the results depend on what it holds before the run (filled with {pattern:#x})"
    return None


def dependence_on_threads(engines: Engines, native: list[Array]) -> str | None:
    """Whether results depend on the number of threads."""
    if engines.program is not None and not engines.program.shares:
        return None
    before = wl.get_threads()
    native = [x.copy() for x in native]
    try:
        for count in THREADS if engines.program else FEWER:
            wl.set_threads(count)
            if not same_bits(native, outcome(engines.tried)[0]):
                return f"threads: other bits on {count} of them"
    finally:
        wl.set_threads(before)
    return None


def same_bits(xs: list[Array], ys: list[Array]) -> bool:
    return len(xs) == len(ys) and all(x.tobytes() == y.tobytes() for x, y in zip(xs, ys, strict=True))


def _shown(x: Array, where: tuple[Any, ...]) -> Any:
    return x[where[: x.ndim]]
