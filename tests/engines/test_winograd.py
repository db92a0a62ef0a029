"""Winograd's method for convolutions and their gradients: right for all sizes, as exact as told, used where it pays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.engines.test_convolutions import Case, data, expected, run, steps_of
from wonderland import nn
from wonderland.core import dtypes
from wonderland.engines.native.convolutions.points import POINTS, Method, Points, method
from wonderland.engines.native.convolutions.winograd import PointProducts, TransformFilter, winograd_steps
from wonderland.engines.native.convolutions.winograd_choice import gradient_method_for, method_for
from wonderland.engines.native.convolutions.winograd_gradient import FromPoints, winograd_gradient_steps
from wonderland.engines.native.engine import ENGINE
from wonderland.engines.native.llvm import Generator
from wonderland.engines.native.machine import machine
from wonderland.engines.native.processor import named
from wonderland.engines.native.products.epilogue import Stores
from wonderland.engines.native.steps import Control
from wonderland.engines.native.text.routine import Routine, slots_of
from wonderland.engines.native.values import Buffer, Hole, Op, broadcast, whole

METHODS = [
    method((2, 2), (3, 3)),
    method((4, 4), (3, 3)),
    method((2, 2), (5, 5)),
    method((1, 4), (1, 3)),  # lines
    method((3, 5), (4, 2)),
]
KINDS = ["y", "w"]  # results, and gradients of filters


def named_by_size(method: Method) -> str:
    return f"{method.taps} taps, {method.sizes} places"


every_method = pytest.mark.parametrize("method", METHODS, ids=named_by_size)
every_kind = pytest.mark.parametrize("kind", KINDS)


def with_taps(case: Case, taps: tuple[int, int]) -> Case:
    """The case with another filter, and as many places of the result."""
    pairs = zip(case.options["padding"], taps, strict=True)
    padding = tuple((low + (n - 3) // 2, high + n - 3 - (n - 3) // 2) for (low, high), n in pairs)
    return Case(case.batch, case.spatial, case.inner, case.out, taps, padding=padding)


def computed(case: Case, kind: str, method: Method, arrays: list[Any], backwards: bool = False) -> Any:
    """relu(f(relu(first), second) + bias): expressions on the way in and out."""
    dtype = dtypes.as_dtype(arrays[0].dtype)
    buffers = [Buffer("input", a.size, dtype, i) for i, a in enumerate(arrays)]
    first, second, bias = (whole(b, a.shape) for b, a in zip(buffers, arrays, strict=True))
    hole = Hole(case.shapes[kind], dtype)
    target = Buffer("output", math.prod(hole.shape), dtype)
    shifted = Op("add", [hole, broadcast(bias, hole.shape)], hole.shape, dtype)
    stores: Stores = [(whole(target, hole.shape), Op("relu", [shifted], hole.shape, dtype))]
    low = [before for before, _ in case.options["padding"]]
    x = Op("relu", [first], first.shape, dtype)
    if kind == "y":
        steps = winograd_steps(machine().cpu, method, x, second, hole, stores, low)
    else:
        steps = winograd_gradient_steps(machine().cpu, method.exchanged(), x, second, hole, stores, low)
    memory = {b: a.reshape(-1) for b, a in zip(buffers, arrays, strict=True)}
    memory[target] = np.full(target.size, np.nan, dtype)
    run(steps, memory, backwards)
    return memory[target].reshape(hole.shape)


def arrays_of(case: Case, kind: str, dtype: Any) -> list[Any]:
    return [*data(case, kind, dtype), np.random.default_rng(1).standard_normal(case.out).astype(dtype)]


def check(case: Case, kind: str, method: Method, dtype: Any = np.float32, tolerance: float = 3e-5) -> None:
    first, second, bias = arrays = arrays_of(case, kind, dtype)
    want = np.maximum(expected(case, kind, np.maximum(first, 0), second) + bias.astype(np.float64), 0)
    got = computed(case, kind, method, arrays).astype(np.float64)
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * max(1.0, np.abs(want).max()))


TAPS = (3, 3)

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


@every_kind
@every_method
@pytest.mark.parametrize("name", CASES)
def test_options(name: str, method: Method, kind: str) -> None:
    check(with_taps(CASES[name], method.taps), kind, method)


@every_kind
@pytest.mark.parametrize("seed", range(8))
def test_drawn_options(seed: int, kind: str) -> None:
    random = np.random.default_rng(seed)
    method = METHODS[seed % len(METHODS)]
    padding = tuple((int(a), int(b)) for a, b in random.integers(-1, 4, (2, 2)))
    spatial = tuple(
        max(taps - low - high, taps) + int(random.integers(0, 12))
        for taps, (low, high) in zip(method.taps, padding, strict=True)
    )
    inner, out = (int(random.choice([1, 3, 7, 17, 64, 130])) for _ in range(2))
    check(Case(int(random.integers(1, 4)), spatial, inner, out, method.taps, padding=padding), kind, method)


@every_kind
@every_method
@pytest.mark.parametrize(("dtype", "tolerance"), [(wl.float64, 1e-13), (wl.float16, 1e-3), (wl.bfloat16, 8e-3)])
def test_other_types(method: Method, kind: str, dtype: Any, tolerance: float) -> None:
    check(with_taps(Case(2, (7, 6), 5, 20, TAPS), method.taps), kind, method, dtype, tolerance)


@every_kind
@every_method
def test_chunks_run_in_any_order(method: Method, kind: str) -> None:
    case = with_taps(Case(3, (24, 25), 24, 40, TAPS), method.taps)
    arrays = arrays_of(case, kind, np.float32)
    there, back = (computed(case, kind, method, arrays, backwards) for backwards in (False, True))
    np.testing.assert_array_equal(there, back)


CHOSEN = {
    "3 taps": Case(3, (14, 15), 24, 32, TAPS, padding=((1, 1), (1, 1))),
    "5 taps": Case(3, (14, 15), 24, 32, (5, 5), padding=((0, 3), (4, 1))),
    "cut edges": Case(3, (14, 15), 24, 32, TAPS, padding=((-2, 1), (3, -1))),
    "no zeros around": Case(4, (16, 15), 24, 40, TAPS, padding=((0, 0), (0, 0))),
    "dilation": Case(2, (34, 36), 24, 40, TAPS, dilation=(2, 4), padding=((2, 4), (0, 4))),
    "dilation along one axis": Case(2, (16, 30), 32, 24, TAPS, dilation=(1, 3), padding=((1, 1), (3, 6))),
    "lines": Case(4, (150,), 64, 48, (3,), padding=((1, 1),)),
    "dilated lines": Case(4, (150,), 48, 64, (4,), dilation=(5,), padding=((5, 10),)),
    "3 x 5 taps": Case(3, (14, 15), 24, 32, (3, 5)),
    "4 x 1 taps": Case(3, (24, 17), 64, 64, (4, 1), padding=((1, 2), (0, 0))),
    "planes of volumes": Case(2, (5, 12, 13), 24, 32, (1, 3, 3), padding=((0, 0), (1, 1), (1, 1))),
    "dilated planes": Case(2, (3, 16, 16), 32, 24, (1, 3, 3), dilation=(1, 2, 2), padding=((0, 0), (2, 2), (4, 2))),
}


@pytest.mark.parametrize("kind", ["y", "x", "w"])
@pytest.mark.parametrize("name", CHOSEN)
def test_convolutions_and_both_gradients_choose_it(name: str, kind: str) -> None:
    """Gradients in inputs are convolutions with the taps turned around. The results are squared on the way out."""
    case = CHOSEN[name]
    arrays = data(case, kind, np.float32)
    buffers = [Buffer("input", a.size, wl.float32, i) for i, a in enumerate(arrays)]
    shape = case.shapes[kind]
    hole, target = Hole(shape, wl.float32), Buffer("output", math.prod(shape), wl.float32)
    first, second = (whole(b, a.shape) for b, a in zip(buffers, arrays, strict=True))
    stores: Stores = [(whole(target, shape), Op("multiply", [hole, hole], shape, wl.float32))]
    steps = steps_of(case, kind, first, second, hole, stores)
    assert isinstance(steps[-1], FromPoints if kind == "w" else PointProducts)
    memory = {b: a.reshape(-1) for b, a in zip(buffers, arrays, strict=True)}
    memory[target] = np.full(target.size, np.nan, np.float32)
    run(steps, memory)
    want = expected(case, kind, *arrays) ** 2
    np.testing.assert_allclose(memory[target].reshape(shape), want, rtol=0, atol=1e-4 * want.max())


@pytest.mark.parametrize(
    "case",
    [
        Case(2, (15, 24), 24, 40, TAPS, dilation=(2, 2), padding=((2, 3), (2, 2))),  # planes of two heights
        Case(2, (16, 16), 24, 40, TAPS, stride=(2, 1), padding=((1, 1), (1, 1))),
        Case(2, (16, 16), 32, 32, TAPS, groups=2, padding=((1, 1), (1, 1))),
        Case(2, (4, 12, 12), 24, 32, (1, 3, 3), padding=((1, 0), (1, 1), (1, 1))),
        Case(2, (12, 12), 24, 32, (7, 7)),
        Case(2, (12, 12), 4, 64, TAPS),
    ],
    ids=["uneven dilation", "stride", "groups", "planes of zeros", "7 taps", "few channels"],
)
def test_others_are_plain_sums(case: Case) -> None:
    for kind, operands in (("y", "xw"), ("x", "yw"), ("w", "xy")):
        first, second = (
            whole(Buffer("input", math.prod(case.shapes[o]), wl.float32), case.shapes[o]) for o in operands
        )
        target = whole(Buffer("output", math.prod(case.shapes[kind]), wl.float32), case.shapes[kind])
        hole = Hole(target.shape, wl.float32)
        steps = steps_of(case, kind, first, second, hole, [(target, hole)])
        assert not any(isinstance(step, (PointProducts, FromPoints)) for step in steps)


@pytest.mark.parametrize("taps", range(1, 6))
@pytest.mark.parametrize("side", POINTS)
def test_the_matrices_give_exact_correlations(side: int, taps: int) -> None:
    if taps > side:
        return
    points = Points(side - taps + 1, taps)
    for tap in range(taps):
        for place in range(side):  # a unit filter and a unit input: one product is not zero
            products = [row[place] * weights[tap] for row, weights in zip(points.input, points.filter, strict=True)]
            found = [sum(a * b for a, b in zip(row, products, strict=True)) for row in points.output]
            assert found == [int(place == i + tap) for i in range(points.size)]


@every_kind
@every_method
def test_rounding_is_as_small_as_told(method: Method, kind: str) -> None:
    """The root of the mean square of errors beside that of results; plain sums in float32 have some 2e-7."""
    case = with_taps(Case(1, (16, 16), 128, 32, TAPS), method.taps)
    first, second, bias = arrays_of(case, kind, np.float32)
    want = expected(case, kind, np.maximum(first, 0), second)
    got = computed(case, kind, method, [first, second, 0 * bias]).astype(np.float64)
    errors = (got - np.maximum(want, 0))[want > 0]
    assert np.sqrt(np.mean(errors**2)) < (5e-7 if 6 not in method.sides else 2e-6) * np.std(want)


@every_kind
@pytest.mark.parametrize("name", ["x86-64-v2", "x86-64-v4", "neoverse-n1"])
def test_code_for_other_processors(name: str, kind: str) -> None:
    """More lanes hold all channels in one block, more registers take more tiles at once."""
    cpu, _ = named(name, machine().host)
    x, w, y = (whole(Buffer("input", math.prod(s), wl.float32), s) for s in CASES["odd sizes"].shapes.values())
    for one in METHODS[:2]:
        if kind == "y":
            steps = winograd_steps(cpu, one, x, w, Hole(y.shape, wl.float32), [(y, y)], (1, 1))
        else:
            steps = winograd_gradient_steps(cpu, one.exchanged(), x, y, Hole(w.shape, wl.float32), [(w, w)], (1, 1))
        for step in steps:
            routine = Routine(slots_of(step.views), cpu)
            step.emit(routine)
            assert "routine" in Generator(*cpu[:3]).assembly(routine.text("routine"))


# --- where it is used


def of_winograd(f: Any, kind: Any = PointProducts) -> int:
    program = ENGINE.program(f.last_trace.graph)
    return sum(isinstance(step, kind) for step in program.schedule.steps)


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


def test_training_steps_use_it_and_learn_what_numpy_learns() -> None:
    """Both convolutions, the gradient in the second one's input, and those of both filters."""
    x = wl.random.normal((3, 23, 30, 32), key=wl.random.key(1))

    def step(model: Any, optimizer: Any, x: Any) -> Any:
        loss, grads = wl.value_and_grad(lambda m: (m(x) ** 2).mean())(model)
        optimizer.step(grads)
        return loss

    found: dict[tuple[str, int], list[Any]] = {}
    before = wl.get_threads()
    try:
        for backend, threads in (("numpy", 1), ("native", 1), ("native", 3)):
            wl.set_threads(threads)
            model = block()
            optimizer, compiled = wl.optim.SGD(model, lr=0.1), wl.jit(step)
            with wl.using_backend(backend):
                losses = [float(compiled(model, optimizer, x)) for _ in range(3)]
            found[backend, threads] = [*losses, *(np.asarray(p) for p in model.state_dict().values())]
    finally:
        wl.set_threads(before)
    assert (of_winograd(compiled), of_winograd(compiled, FromPoints)) == (3, 2)
    for one, three, plain in zip(found["native", 1], found["native", 3], found["numpy", 1], strict=True):
        np.testing.assert_array_equal(one, three)
        np.testing.assert_allclose(one, plain, rtol=0, atol=3e-5)


def test_methods_fit_the_problem() -> None:
    def chosen(*y: int, inner: int, fixed: bool = True, taps: int = 3) -> tuple[int, int] | None:
        found = method_for((taps, taps), y, inner, fixed)
        return found and found.sizes

    assert chosen(1, 56, 56, 64, inner=64) == (4, 4)
    assert chosen(1, 14, 14, 256, inner=256) == (2, 2)  # four times as many weights would have to be read
    assert chosen(16, 14, 14, 256, inner=256) == (4, 4)
    assert chosen(1, 2, 2, 512, inner=512) is None
    assert chosen(8, 32, 32, 64, inner=3) is None  # tiles cost as much as sums over so few channels
    assert chosen(2, 7, 7, 512, inner=512) == (4, 2)
    assert chosen(2, 7, 7, 512, inner=512, fixed=False) is None  # the filter costs too much for two images
    assert chosen(16, 32, 32, 32, inner=32, taps=5) == (2, 2)
    assert chosen(16, 32, 32, 64, inner=64, taps=7) is None
    gradient = gradient_method_for((3, 3), (16, 32, 32, 64), 64)
    assert gradient is not None
    assert (gradient.sizes, gradient.taps) == ((3, 3), (4, 4))
    assert gradient_method_for((3, 3), (2, 7, 7, 512), 512) is None
    assert gradient_method_for((1, 1), (16, 32, 32, 64), 64) is None


def before_loops(f: Any) -> int:
    """How many filters are transformed before the first loop."""
    steps = ENGINE.program(f.last_trace.graph).schedule.steps
    assert sum(isinstance(step, TransformFilter) for step in steps) == 1
    start = next(i for i, step in enumerate(steps) if isinstance(step, Control))
    return sum(isinstance(step, TransformFilter) for step in steps[:start])


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
    assert (before_loops(same), before_loops(changing)) == (1, 0)
    with wl.using_backend("numpy"):
        np.testing.assert_allclose(np.asarray(found), np.asarray(same(x, 0.05 * w)), rtol=0, atol=2e-5)
