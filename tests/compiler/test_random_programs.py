"""Random programs of every kind of operation, and their transformations: native code gives what NumPy gives.

The ordinary run tries some hundred programs; `WONDERLAND_PROGRAMS=5000` tries that many.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wonderland as wl
from tests.compiler.instructions import STEPS, Instruction, Pool, program
from wonderland.compiler import Program
from wonderland.graph import evaluate
from wonderland.graph.simplify import simplify
from wonderland.graph.stage import stage
from wonderland.primitives.primitive import Aval

PROGRAMS = int(os.environ.get("WONDERLAND_PROGRAMS", "300"))
SHAPES = [
    [(3, 5)],
    [(2, 3, 4)],
    [(17,), (6, 17)],
    [(1, 33), (4, 1)],
    [(), (8,)],
    [(40, 20), (20,)],
    [(2, 16, 3), (7, 2)],
]
TOLERANCE = {wl.float64: 1e-9, wl.float32: 1e-4, wl.float16: 0.05, wl.bfloat16: 0.2}


def total(f: Callable[..., list[Any]]) -> Callable[..., Any]:
    return lambda *xs: sum(wl.sin(y).mean() for y in f(*xs))


def every(xs: Any) -> tuple[int, ...]:
    return tuple(range(len(xs)))


TRANSFORMED: dict[str, Callable[[Callable[..., list[Any]]], Callable[..., Any]]] = {
    "value": lambda f: f,
    "grad": lambda f: lambda *xs: wl.grad(total(f), every(xs))(*xs),
    "value_and_grad": lambda f: lambda *xs: wl.value_and_grad(total(f), every(xs))(*xs),
    "jvp": lambda f: lambda *xs: wl.jvp(f, xs, tuple(wl.cos(x) for x in xs)),
    "vmap": lambda f: lambda *xs: wl.vmap(f)(*[wl.stack([x, x / 2, -x]) for x in xs]),
    "vmap of grad": lambda f: (
        lambda *xs: wl.vmap(wl.grad(total(f), every(xs)))(*[wl.stack([x, x / 2, -x]) for x in xs])
    ),
    "grad of grad": lambda f: lambda *xs: wl.grad(lambda x: (wl.grad(total(f))(x, *xs[1:]) ** 2).sum())(xs[0]),
}


def results(f: Callable[..., Any], arrays: list[Any]) -> tuple[list[Any], list[Any]]:
    """What native code and NumPy make of the arrays."""
    staged = stage(lambda *xs: wl.tree.leaves(f(*xs)), [Aval(a.shape, a.dtype) for a in arrays])
    inputs = [np.asarray(c) for c in staged.captured] + arrays
    native = Program(simplify(staged.graph))
    first, second = native(inputs), native(inputs)  # which finds the memory of the first call
    assert [x.tobytes() for x in first] == [x.tobytes() for x in second]
    return first, evaluate(staged.graph, inputs)


def same(f: Callable[..., Any], arrays: list[Any], tolerance: float) -> None:
    """Both engines compute the same, up to rounding in proportion to the size of each result.

    Where rounding is magnified so much that NumPy itself is far from the result in float64, native code may be, too.
    """
    native, reference = results(f, arrays)
    exact: list[Any] = reference
    for attempt in range(2):
        wrong = []
        for x, y, z in zip(native, reference, exact, strict=True):
            assert (x.shape, x.dtype) == (y.shape, y.dtype)
            x, y, z = (v.astype(np.complex128) for v in (x, y, z))
            finite = np.isfinite(y) & np.isfinite(z)
            np.testing.assert_array_equal(np.isnan(x), np.isnan(y))
            scale = np.max(np.abs(z), initial=1.0, where=finite)
            allowed = tolerance * scale + 10 * np.max(np.abs(y - z), initial=0.0, where=finite)
            wrong += [(x, y)] if np.max(np.abs(x - y), initial=0.0, where=finite) > allowed else []
        if not wrong:
            return
        if attempt == 0 and arrays[0].dtype != np.float64:
            exact = results(f, [a.astype(np.float64) for a in arrays])[1]
    np.testing.assert_allclose(*wrong[0], rtol=0, atol=0)


def inputs_of(shapes: list[tuple[int, ...]], dtype: Any) -> list[Any]:
    rng = np.random.default_rng(len(shapes) + sum(map(sum, shapes)))
    return [np.asarray(rng.normal(size=shape)).astype(dtype) for shape in shapes]


def instructions(longest: int) -> Any:
    one = st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 1 << 16))
    return st.lists(one, min_size=1, max_size=longest)


@pytest.mark.parametrize("name", sorted(STEPS))
def test_every_instruction_alone(name: str) -> None:
    for number in range(4):
        for kind in ("value", "grad"):
            f = TRANSFORMED[kind](program([(name, number)]))
            same(f, inputs_of(SHAPES[number % len(SHAPES)], wl.float64), TOLERANCE[wl.float64])


@settings(max_examples=PROGRAMS, suppress_health_check=list(HealthCheck))
@given(
    instructions(7),
    st.sampled_from(SHAPES),
    st.sampled_from(sorted(TRANSFORMED)),
    st.sampled_from([wl.float64, wl.float64, wl.float32]),
)
def test_random_programs(listed: list[Instruction], shapes: Any, kind: str, dtype: Any) -> None:
    same(TRANSFORMED[kind](program(listed)), inputs_of(shapes, dtype), TOLERANCE[dtype])


@settings(max_examples=max(1, PROGRAMS // 10), suppress_health_check=list(HealthCheck))
@given(instructions(3), st.sampled_from(SHAPES), st.sampled_from([wl.float16, wl.bfloat16]))
def test_random_programs_in_half_precision(listed: list[Instruction], shapes: Any, dtype: Any) -> None:
    same(program(listed), inputs_of(shapes, dtype), TOLERANCE[dtype])


def trained(listed: list[Instruction], arrays: list[Any], backend: str) -> list[Any]:
    """State after some steps in which every part of it becomes something made of the others."""
    cells = [wl.nn.Parameter(wl.asarray(a.copy())) for a in arrays]
    f = program(listed, results=len(arrays))

    @wl.jit
    def step(cells: list[Any]) -> Any:
        pool = Pool(np.random.default_rng(len(listed)), f(*cells), 1)
        made = [pool.stretched(pool.one(), cell.size).reshape(cell.shape) for cell in cells]
        turned = [wl.flip(cell, axis=0) if cell.ndim else cell for cell in cells]
        for cell, value, other in zip(cells, made, turned, strict=True):
            cell.assign(0.5 * cell + wl.tanh(value) + 0.1 * (other if len(listed) % 2 else 0.0))
        return made[0].sum()

    with wl.using_backend(backend):
        results = [step(cells).numpy() for _ in range(3)]
    return results + [cell.numpy() for cell in cells]


@settings(max_examples=max(1, PROGRAMS // 8), suppress_health_check=list(HealthCheck))
@given(instructions(5), st.sampled_from(SHAPES))
def test_random_state(listed: list[Instruction], shapes: Any) -> None:
    arrays = inputs_of(shapes, np.float64)
    for x, y in zip(trained(listed, arrays, "native"), trained(listed, arrays, "numpy"), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-8, atol=1e-8)
