"""Convolutions of 3 x 3 taps with prepared filters: right for all sizes, as exact as told, used where filters last."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.engines.test_convolutions import Case, data, expected, run
from wonderland import nn
from wonderland.core import dtypes
from wonderland.engines.native.convolutions.winograd import POINTS, Method, Winograd, size_for, winograd_steps
from wonderland.engines.native.engine import ENGINE
from wonderland.engines.native.llvm import Generator
from wonderland.engines.native.machine import machine
from wonderland.engines.native.processor import named
from wonderland.engines.native.products.epilogue import Stores
from wonderland.engines.native.text.routine import Routine, slots_of
from wonderland.engines.native.values import Buffer, Hole, Op, broadcast, whole

SIZES = sorted(POINTS)
TAPS = (3, 3)


def computed(case: Case, size: int, arrays: list[Any], backwards: bool = False) -> Any:
    """relu(convolution(relu(x), w) + bias): expressions on the way in and out."""
    dtype = dtypes.as_dtype(arrays[0].dtype)
    buffers = [Buffer("input", a.size, dtype, i) for i, a in enumerate(arrays)]
    x, w, bias = (whole(b, a.shape) for b, a in zip(buffers, arrays, strict=True))
    hole = Hole(case.shapes["y"], dtype)
    target = Buffer("output", math.prod(hole.shape), dtype)
    shifted = Op("add", [hole, broadcast(bias, hole.shape)], hole.shape, dtype)
    stores: Stores = [(whole(target, hole.shape), Op("relu", [shifted], hole.shape, dtype))]
    low = [before for before, _ in case.options["padding"]]
    steps = winograd_steps(machine().cpu, size, Op("relu", [x], x.shape, dtype), w, hole, stores, low)
    memory = {b: a.reshape(-1) for b, a in zip(buffers, arrays, strict=True)}
    memory[target] = np.full(target.size, np.nan, dtype)
    run(steps, memory, backwards)
    return memory[target].reshape(hole.shape)


def arrays_of(case: Case, dtype: Any) -> list[Any]:
    return [*data(case, "y", dtype), np.random.default_rng(1).standard_normal(case.out).astype(dtype)]


def check(case: Case, size: int, dtype: Any = np.float32, tolerance: float = 3e-5) -> None:
    x, w, bias = arrays = arrays_of(case, dtype)
    want = np.maximum(expected(case, "y", np.maximum(x, 0), w) + bias.astype(np.float64), 0)
    got = computed(case, size, arrays).astype(np.float64)
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * max(1.0, np.abs(want).max()))


CASES = {
    "plain": Case(2, (8, 8), 16, 16, TAPS),
    "odd sizes": Case(2, (7, 13), 17, 33, TAPS),
    "no zeros around": Case(1, (9, 6), 7, 20, TAPS, padding=((0, 0), (0, 0))),
    "zeros on one side": Case(1, (5, 6), 8, 24, TAPS, padding=((2, 0), (0, 3))),
    "cut edges": Case(2, (9, 8), 4, 6, TAPS, padding=((-2, 1), (3, -1))),
    "one place": Case(3, (1, 1), 3, 130, TAPS),
    "one channel": Case(3, (4, 5), 1, 1, TAPS),
    "several groups of tiles": Case(3, (30, 29), 64, 20, TAPS),
    "long sums": Case(1, (4, 4), 1100, 8, TAPS),
    "patch too large for the stack": Case(1, (3, 11), 6000, 3, TAPS),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", CASES)
def test_options(name: str, size: int) -> None:
    check(CASES[name], size)


@pytest.mark.parametrize("seed", range(8))
def test_drawn_options(seed: int) -> None:
    random = np.random.default_rng(seed)
    padding = tuple((int(a), int(b)) for a, b in random.integers(-1, 4, (2, 2)))
    spatial = tuple(max(3 - low - high, 3) + int(random.integers(0, 12)) for low, high in padding)
    inner, out = (int(random.choice([1, 3, 7, 17, 64, 130])) for _ in range(2))
    check(Case(int(random.integers(1, 4)), spatial, inner, out, TAPS, padding=padding), SIZES[seed % 2])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(wl.float64, 1e-13), (wl.float16, 1e-3), (wl.bfloat16, 8e-3)])
def test_other_types(size: int, dtype: Any, tolerance: float) -> None:
    check(Case(2, (7, 6), 5, 20, TAPS), size, dtype, tolerance)


@pytest.mark.parametrize("size", SIZES)
def test_chunks_run_in_any_order(size: int) -> None:
    case = Case(3, (24, 25), 24, 40, TAPS)
    arrays = arrays_of(case, np.float32)
    np.testing.assert_array_equal(computed(case, size, arrays), computed(case, size, arrays, backwards=True))


@pytest.mark.parametrize("size", SIZES)
def test_the_matrices_give_exact_correlations(size: int) -> None:
    method = Method(size)
    for tap in range(3):
        for place in range(method.side):  # a unit filter and a unit input: one product is not zero
            products = [row[place] * weights[tap] for row, weights in zip(method.input, method.filter, strict=True)]
            found = [sum(a * b for a, b in zip(row, products, strict=True)) for row in method.output]
            assert found == [int(place == i + tap) for i in range(size)]


@pytest.mark.parametrize(("size", "typical"), [(2, 5e-7), (4, 2e-6)])
def test_rounding_is_as_small_as_told(size: int, typical: float) -> None:
    """The root of the mean square of errors beside that of results; plain sums in float32 have some 2e-7."""
    case = Case(1, (16, 16), 128, 32, TAPS)
    x, w, bias = arrays_of(case, np.float32)
    want = expected(case, "y", np.maximum(x, 0), w)
    got = computed(case, size, [x, w, 0 * bias]).astype(np.float64)
    errors = (got - np.maximum(want, 0))[want > 0]
    assert np.sqrt(np.mean(errors**2)) < typical * np.std(want)


@pytest.mark.parametrize("name", ["x86-64-v2", "x86-64-v4", "neoverse-n1"])
def test_code_for_other_processors(name: str) -> None:
    """More lanes hold all channels in one block, more registers take more tiles at once."""
    cpu, _ = named(name, machine().host)
    x, w, y = (whole(Buffer("input", math.prod(s), wl.float32), s) for s in CASES["odd sizes"].shapes.values())
    hole = Hole(y.shape, wl.float32)
    for size in SIZES:
        for step in winograd_steps(cpu, size, x, w, hole, [(y, hole)], (1, 1)):
            routine = Routine(slots_of(step.views), cpu)
            step.emit(routine)
            assert "routine" in Generator(*cpu[:3]).assembly(routine.text("routine"))


# --- where it is used


def of_winograd(f: Any) -> int:
    program = ENGINE.program(f.last_trace.graph)
    return sum(isinstance(step, Winograd) for step in program.schedule.steps)


def block() -> nn.Sequential:
    keys = wl.random.split(wl.random.key(0), 2)
    layers = [nn.Conv2d(32, 48, 3, padding=1, bias=False, key=keys[0]), nn.BatchNorm2d(48), nn.ReLU()]
    return nn.Sequential(*layers, nn.Conv2d(48, 32, 3, padding="valid", key=keys[1]))


def test_forward_passes_use_it_and_agree_on_any_number_of_threads() -> None:
    model, x = block().eval(), wl.random.normal((3, 23, 30, 32), key=wl.random.key(1))

    @wl.jit
    def forward(model: Any, x: Any) -> Any:
        return model(x)

    before, found = wl.get_threads(), []
    try:
        with wl.no_grad(), wl.using_backend("native"):
            for threads in (1, 2, 3):
                wl.set_threads(threads)
                found += [np.asarray(forward(model, x)), np.asarray(forward(model, x[::-1]))[::-1]]
    finally:
        wl.set_threads(before)
    assert of_winograd(forward) == 2
    for other in found[1:]:  # nor does it matter where an image stands in its batch
        np.testing.assert_array_equal(found[0], other)
    with wl.no_grad(), wl.using_backend("numpy"):
        np.testing.assert_allclose(found[0], np.asarray(model(x)), rtol=0, atol=2e-5)


def test_training_and_filters_that_are_arguments_take_plain_sums() -> None:
    model, x = block(), wl.random.normal((3, 23, 30, 32), key=wl.random.key(1))
    optimizer = wl.optim.SGD(model, lr=0.1)

    @wl.jit
    def step(model: Any, optimizer: Any, x: Any) -> Any:
        loss, grads = wl.value_and_grad(lambda m: (m(x) ** 2).mean())(model)
        optimizer.step(grads)
        return loss

    @wl.jit
    def filtered(x: Any, w: Any) -> Any:
        return nn.functional.conv2d(x, w, padding=1)

    with wl.using_backend("native"):
        step(model, optimizer, x)
        filtered(x, wl.ones((3, 3, 32, 48)))
    assert of_winograd(step) == of_winograd(filtered) == 0


def test_tiles_fit_the_problem() -> None:
    assert size_for(1, (56, 56), 64, 64) == 4
    assert size_for(1, (14, 14), 256, 256) == 2  # four times as many weights would have to be read
    assert size_for(16, (14, 14), 256, 256) == 4
    assert size_for(1, (2, 2), 512, 512) is None
    assert size_for(8, (32, 32), 3, 64) is None


def test_loops_prepare_filters_that_no_turn_changes() -> None:
    x, w = (wl.random.normal(shape, key=wl.random.key(2)) for shape in ((2, 16, 16, 32), (3, 3, 32, 32)))

    @wl.jit
    def same(x: Any, w: Any) -> Any:
        return wl.scan(lambda y, _: (wl.tanh(nn.functional.conv2d(y, w, padding=1)), None), x, None, length=3)[0]

    @wl.jit
    def changing(x: Any, w: Any) -> Any:
        return wl.scan(lambda w, _: (w * nn.functional.conv2d(x, w, padding=1).mean(), None), w, None, length=3)[0]

    with wl.using_backend("native"):
        found = same(x, 0.05 * w)
        changing(x, w)
    assert (of_winograd(same), of_winograd(changing)) == (1, 0)
    with wl.using_backend("numpy"):
        np.testing.assert_allclose(np.asarray(found), np.asarray(same(x, 0.05 * w)), rtol=0, atol=2e-5)
