"""The native steps of convolutions against sums over taps in float64, for many options, operands and epilogues."""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland.core import dtypes
from wonderland.engines.native.convolutions.overlap import Overlap
from wonderland.engines.native.convolutions.steps import (
    convolution_input_steps,
    convolution_steps,
    convolution_weight_steps,
    supported,
)
from wonderland.engines.native.machine import machine
from wonderland.engines.native.text.routine import Routine, slots_of
from wonderland.engines.native.values import Buffer, Const, Hole, Op, Value, View, broadcast, transposed, whole

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    batch: int
    spatial: Shape
    inner: int
    out: int
    kernel: Shape
    stride: Shape = ()
    padding: tuple[tuple[int, int], ...] = ()
    dilation: Shape = ()
    groups: int = 1

    @property
    def options(self) -> dict[str, Any]:
        n = len(self.spatial)
        padding = self.padding or tuple((k // 2, k // 2) for k in self.kernel)
        stride, dilation = self.stride or (1,) * n, self.dilation or (1,) * n
        return {"stride": stride, "padding": padding, "dilation": dilation, "groups": self.groups}

    @property
    def places(self) -> Shape:
        o = self.options
        return tuple(
            (n + low + high - d * (k - 1) - 1) // s + 1
            for n, k, s, (low, high), d in zip(
                self.spatial, self.kernel, o["stride"], o["padding"], o["dilation"], strict=True
            )
        )

    @property
    def shapes(self) -> dict[str, Shape]:
        """Of the input, the filter and the output."""
        return {
            "x": (self.batch, *self.spatial, self.inner),
            "w": (*self.kernel, self.inner // self.groups, self.out),
            "y": (self.batch, *self.places, self.out),
        }


# --- the oracle: one term of the sum for each tap


def terms(case: Case) -> Any:
    """For each tap and place of the output, the place of the input; those outside the input are left out."""
    o = case.options
    for tap in itertools.product(*map(range, case.kernel)):
        for place in itertools.product(*map(range, case.places)):
            at = tuple(
                s * p + d * t - low
                for s, p, d, t, (low, _) in zip(o["stride"], place, o["dilation"], tap, o["padding"], strict=True)
            )
            if all(0 <= i < n for i, n in zip(at, case.spatial, strict=True)):
                yield tap, place, at


def expected(case: Case, kind: str, first: Any, second: Any) -> Any:
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    shape = case.shapes[kind]
    out = np.zeros(shape)
    g, i, o = case.groups, case.inner // case.groups, case.out // case.groups
    for tap, place, at in terms(case):
        all_at, all_place = (slice(None), *at), (slice(None), *place)
        if kind == "y":
            x, w = first[all_at].reshape(-1, g, i), second[tap].reshape(i, g, o)
            out[all_place] += np.einsum("bgi,igo->bgo", x, w).reshape(case.batch, -1)
        elif kind == "x":
            y, w = first[all_place].reshape(-1, g, o), second[tap].reshape(i, g, o)
            out[all_at] += np.einsum("bgo,igo->bgi", y, w).reshape(case.batch, -1)
        else:
            x, y = first[all_at].reshape(-1, g, i), second[all_place].reshape(-1, g, o)
            out[tap] += np.einsum("bgi,bgo->igo", x, y).reshape(i, -1)
    return out


# --- running steps


def run(steps: Sequence[Any], memory: dict[Buffer, Any], backwards: bool = False) -> None:
    """Run all chunks of the steps; memory that is not given starts as NaN."""
    for step in steps:
        for view in step.views:
            memory.setdefault(view.buffer, np.full(view.buffer.size, np.nan, view.buffer.dtype))
    buffers = list(memory)
    table = np.array([memory[b].ctypes.data for b in buffers], np.int64)
    for step in steps:
        assert {v.buffer for v in step.views} == {*step.reads, *step.writes}
        slots = slots_of(step.views)
        pairs = np.array([(buffers.index(b), offset) for b, offset in slots], np.int64)
        routine = Routine(slots, machine().cpu)
        step.emit(routine)
        description = step.describe()
        address = machine().routines({description: routine.text}, "convolutions")[description]
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address)
        chunks = range(step.chunks)
        for chunk in reversed(chunks) if backwards else chunks:
            call(table.ctypes.data, pairs.ctypes.data, chunk)


def steps_of(case: Case, kind: str, first: Value, second: Value, hole: Hole, stores: Any) -> Sequence[Any]:
    assert supported(hole.dtype, first.shape, second.shape, hole.shape)
    if kind == "y":
        assert isinstance(second, View)
        return convolution_steps(machine().cpu, first, second, hole, stores, **case.options)
    if kind == "x":
        assert isinstance(second, View)
        return convolution_input_steps(machine().cpu, first, second, hole, stores, spatial=case.spatial, **case.options)
    return convolution_weight_steps(machine().cpu, first, second, hole, stores, kernel=case.kernel, **case.options)


OPERANDS = {"y": ("x", "w"), "x": ("y", "w"), "w": ("x", "y")}


def data(case: Case, kind: str, dtype: Any) -> list[Any]:
    random = np.random.default_rng(0)
    return [random.standard_normal(case.shapes[name]).astype(dtype) for name in OPERANDS[kind]]


def computed(case: Case, kind: str, arrays: list[Any], backwards: bool = False) -> Any:
    dtype = dtypes.as_dtype(arrays[0].dtype)
    buffers = [Buffer("input", a.size, dtype, i) for i, a in enumerate(arrays)]
    views = [whole(b, a.shape) for b, a in zip(buffers, arrays, strict=True)]
    hole = Hole(case.shapes[kind], dtype)
    target = Buffer("output", math.prod(hole.shape), dtype)
    steps = steps_of(case, kind, views[0], views[1], hole, [(whole(target, hole.shape), hole)])
    memory = {b: a.reshape(-1) for b, a in zip(buffers, arrays, strict=True)}
    memory[target] = np.full(target.size, np.nan, dtype)
    run(steps, memory, backwards)
    return memory[target].reshape(hole.shape)


def check(case: Case, kind: str, dtype: Any = np.float32, tolerance: float = 1e-5) -> None:
    arrays = data(case, kind, dtype)
    want = expected(case, kind, *arrays)
    got = computed(case, kind, arrays).astype(np.float64)
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * max(1.0, np.abs(want).max()))


CASES = {
    "plain": Case(2, (8, 8), 32, 32, (3, 3)),
    "few channels": Case(2, (9, 8), 3, 20, (3, 3)),
    "odd sizes": Case(2, (7, 13), 5, 33, (3, 3)),
    "many channels": Case(1, (4, 4), 8, 120, (3, 3)),
    "small images": Case(9, (3, 3), 16, 48, (3, 3)),
    "1x1": Case(2, (5, 8), 20, 24, (1, 1)),
    "1x1, one place": Case(7, (1, 1), 20, 24, (1, 1)),
    "1x1, groups": Case(5, (2, 3), 20, 24, (1, 1), groups=4),
    "1x1, depthwise": Case(5, (2, 3), 20, 20, (1, 1), groups=20),
    "1x1, stride 2": Case(2, (5, 8), 20, 24, (1, 1), (2, 2)),
    "stride": Case(2, (9, 11), 4, 10, (5, 3), (2, 3)),
    "stride and dilation": Case(2, (9, 11), 4, 12, (3, 3), (2, 1), ((0, 2), (1, 3)), (2, 3)),
    "stride, dilation of the same factor": Case(2, (12, 9), 4, 6, (3, 3), (4, 2), ((3, 1), (0, 4)), (2, 4)),
    "cut edges": Case(2, (9, 8), 4, 6, (2, 3), (1, 2), ((-2, 1), (3, -1))),
    "taps of one channel": Case(3, (100,), 1, 12, (17,), (4,)),
    "steps longer than taps": Case(2, (11, 30), 3, 8, (2, 3), (3, 7), ((0, 1), (0, 5))),
    "few channels, no places at the end": Case(2, (9, 31), 2, 8, (3, 3), (2, 4), ((1, 0), (0, 0))),
    "few channels, cut edges": Case(2, (9, 20), 2, 6, (2, 5), (1, 2), ((-2, 1), (-3, -1))),
    "few channels, dilated rows": Case(2, (12, 9), 2, 6, (3, 4), (2, 1), ((2, 3), (5, 1)), (3, 1)),
    "few channels, dilated": Case(2, (9, 12), 2, 6, (3, 3), (1, 1), ((2, 2), (2, 2)), (2, 2)),
    "few channels of a volume": Case(2, (6, 5, 9), 2, 7, (3, 2, 3), (1, 2, 1)),
    "few channels, long rows": Case(1, (3, 9000), 1, 4, (3, 5)),
    "many taps": Case(2, (200,), 3, 20, (48,)),
    "a prime number of taps": Case(2, (90,), 2, 20, (37,)),
    "kernel 7, stride 2": Case(1, (20, 20), 3, 24, (7, 7), (2, 2)),
    "groups": Case(2, (6, 7), 12, 18, (3, 3), groups=3),
    "groups, stride": Case(2, (6, 7), 4, 40, (3, 3), (2, 2), groups=2),
    "depthwise": Case(2, (6, 9), 40, 40, (3, 3), groups=40),
    "depthwise, stride": Case(2, (8, 9), 32, 32, (3, 5), (2, 3), dilation=(1, 2), groups=32),
    "multiplier": Case(2, (5, 5), 4, 8, (3, 3), groups=4),
    "line": Case(3, (20,), 6, 20, (4,)),
    "line, stride": Case(3, (20,), 6, 20, (4,), (3,), ((-1, 2),), (2,)),
    "volume": Case(2, (4, 5, 6), 6, 20, (3, 2, 3)),
    "volume, stride": Case(1, (4, 5, 6), 6, 9, (3, 2, 3), (2, 1, 2)),
    "strips": Case(1, (40, 40), 40, 20, (3, 3)),
    "tiles": Case(1, (7, 301), 90, 5, (3, 3)),
    "tiles along a line": Case(1, (5000,), 24, 5, (3,)),
    "tiles of a volume": Case(1, (2, 16, 17), 160, 3, (3, 3, 2)),
    "patch too large for the stack": Case(1, (3, 11), 6000, 3, (3, 3)),
    "many images": Case(19, (5, 4), 3, 4, (2, 2)),
}


@pytest.mark.parametrize("kind", OPERANDS)
@pytest.mark.parametrize("name", CASES)
def test_options(name: str, kind: str) -> None:
    check(CASES[name], kind)


@pytest.mark.parametrize("kind", OPERANDS)
@pytest.mark.parametrize("seed", range(10))
def test_drawn_options(seed: int, kind: str) -> None:
    random = np.random.default_rng(seed)

    def draw(low: int, high: int) -> int:
        return int(random.integers(low, high + 1))

    axes = draw(1, 3)
    groups = draw(1, 3)
    kernel = tuple(draw(1, 4) for _ in range(axes))
    dilation = tuple(draw(1, 3) for _ in range(axes))
    padding = tuple((draw(-1, 3), draw(-1, 3)) for _ in range(axes))
    least = [d * (k - 1) + 1 - low - high for k, d, (low, high) in zip(kernel, dilation, padding, strict=True)]
    spatial = tuple(max(n, 3) + draw(0, 6) for n in least)
    stride = tuple(draw(1, 3) for _ in range(axes))
    case = Case(
        draw(1, 3), spatial, groups * draw(1, 9), groups * draw(1, 40), kernel, stride, padding, dilation, groups
    )
    check(case, kind)


@pytest.mark.parametrize("kind", OPERANDS)
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(wl.float64, 1e-13), (wl.float16, 1e-3), (wl.bfloat16, 8e-3)], ids=["f64", "f16", "bf16"]
)
def test_other_types(kind: str, dtype: Any, tolerance: float) -> None:
    for case in (Case(2, (7, 6), 5, 20, (3, 3)), Case(2, (7, 6), 20, 20, (3, 3), groups=20)):
        check(case, kind, dtype, tolerance)


# --- what is computed on the way in and out

WITH_EXPRESSIONS = ["plain", "few channels", "stride", "groups", "depthwise, stride", "line", "volume"]
WITH_EXPRESSIONS += ["1x1", "1x1, one place", "1x1, groups"]


def normalized(raw: Value, mean: Value, scale: Value) -> Value:
    """relu((raw - mean) * scale)"""
    shape, dtype = raw.shape, raw.dtype
    centred = Op("subtract", [raw, broadcast(mean, shape)], shape, dtype)
    scaled = Op("multiply", [centred, broadcast(scale, shape)], shape, dtype)
    return Op("maximum", [scaled, Const(0.0, dtype, shape)], shape, dtype)


@pytest.mark.parametrize("kind", OPERANDS)
@pytest.mark.parametrize("name", WITH_EXPRESSIONS)
def test_expressions_as_operands_and_results(name: str, kind: str) -> None:
    """Operands are read through strided expressions; results go through one, to memory of any layout."""
    case, random = CASES[name], np.random.default_rng(1)
    memory: dict[Buffer, Any] = {}

    def view(shape: Shape) -> tuple[View, Any]:
        """Random numbers that lie in memory with the first axis last, after three others."""
        array = random.standard_normal(shape).astype(np.float32)
        turned = np.ascontiguousarray(np.moveaxis(array, 0, -1))
        buffer = Buffer("input", array.size + 3, wl.float32, len(memory))
        memory[buffer] = np.concatenate([np.zeros(3, np.float32), turned.reshape(-1)])
        plain = View(buffer, turned.shape, whole(buffer, turned.shape).strides, 3)
        value = transposed(plain, (turned.ndim - 1, *range(turned.ndim - 1)))
        assert isinstance(value, View)
        return value, array

    def operand(shape: Shape) -> tuple[Value, Any]:
        parts = [view(shape), view((1, shape[-1])), view((1, shape[-1]))]
        (raw, mean, scale) = (array for _, array in parts)
        return normalized(*(value for value, _ in parts)), np.maximum((raw - mean) * scale, 0)

    shape = case.shapes[kind]
    first, first_array = operand(case.shapes[OPERANDS[kind][0]])
    second, second_array = (operand if kind == "w" else view)(case.shapes[OPERANDS[kind][1]])
    bias, bias_array = view((1, shape[-1]))
    other, other_array = view(shape)
    hole = Hole(shape, wl.float32)
    shifted = Op("add", [hole, broadcast(bias, shape)], shape, wl.float32)
    result = Op("multiply", [shifted, other], shape, wl.float32)
    targets = [Buffer("output", math.prod(shape), wl.float32, i) for i in range(2)]
    strides = whole(targets[1], shape[::-1]).strides[::-1]
    stores = [(whole(targets[0], shape), result), (View(targets[1], shape, strides), hole)]
    run(steps_of(case, kind, first, second, hole, stores), memory)
    want = expected(case, kind, first_array, second_array)
    atol = 1e-5 * np.abs(want).max()
    np.testing.assert_allclose(memory[targets[1]].reshape(shape[::-1]).T, want, rtol=0, atol=atol)
    got = memory[targets[0]].reshape(shape)
    np.testing.assert_allclose(got, (want + bias_array) * other_array, rtol=0, atol=10 * atol)


@pytest.mark.parametrize("bias", [False, True])
def test_results_of_few_channels(bias: bool) -> None:
    """Rows of places and channels are stored as one if what follows allows it."""
    case, random = Case(3, (9, 37), 3, 20, (3, 5), (2, 2)), np.random.default_rng(2)
    shape = case.shapes["x"]
    arrays = [*data(case, "x", np.float32), random.standard_normal(shape[-1:] if bias else shape).astype(np.float32)]
    ct, w, other = (whole(Buffer("input", a.size, wl.float32, i), a.shape) for i, a in enumerate(arrays))
    hole, target = Hole(shape, wl.float32), whole(Buffer("output", math.prod(shape), wl.float32), shape)
    added = broadcast(View(other.buffer, (1, 3), (0, 1)), shape) if bias else other
    steps = steps_of(case, "x", ct, w, hole, [(target, Op("add", [hole, added], shape, wl.float32))])
    assert isinstance(steps[-1], Overlap)
    assert steps[-1].merged is not bias
    memory = {view.buffer: a.reshape(-1) for view, a in zip((ct, w, other), arrays, strict=True)}
    run(steps, memory)
    want = expected(case, "x", *arrays[:2]) + arrays[2]
    np.testing.assert_allclose(memory[target.buffer].reshape(shape), want, rtol=0, atol=1e-4)


def test_sums_overlap_where_channels_are_few() -> None:
    def overlaps(case: Case, dtype: Any = wl.float32) -> bool:
        ct, w, shape = (case.shapes[name] for name in "ywx")
        first, second = (whole(Buffer("input", math.prod(s), dtype), s) for s in (ct, w))
        hole, target = Hole(shape, dtype), whole(Buffer("output", math.prod(shape), dtype), shape)
        return isinstance(steps_of(case, "x", first, second, hole, [(target, hole)])[-1], Overlap)

    assert overlaps(Case(2, (20, 20), 1, 20, (5, 5)))
    assert overlaps(Case(2, (20, 20), 1, 20, (5, 5)), wl.float64)
    assert not overlaps(Case(2, (20, 20), 1, 20, (5, 5)), wl.float16)  # the product would be rounded
    assert not overlaps(Case(2, (20, 20), 16, 20, (5, 5)))
    assert not overlaps(Case(2, (20, 20), 1, 20, (5, 5), dilation=(1, 2)))
    assert not overlaps(Case(64, (400, 400), 1, 64, (5, 5)))  # so many products do not stay near


# --- the contract of steps


@pytest.mark.parametrize("kind", OPERANDS)
def test_chunks_run_in_any_order(kind: str) -> None:
    for case in (Case(11, (24, 24), 24, 40, (3, 3)), Case(11, (48, 48), 2, 40, (3, 5))):
        arrays = data(case, kind, np.float32)
        np.testing.assert_array_equal(computed(case, kind, arrays), computed(case, kind, arrays, backwards=True))


def test_large_work_is_cut_in_pieces_and_small_work_is_not() -> None:
    def chunks(case: Case) -> list[int]:
        found = []
        for kind, names in OPERANDS.items():
            views = [whole(Buffer("input", math.prod(s), wl.float32), s) for s in (case.shapes[n] for n in names)]
            hole = Hole(case.shapes[kind], wl.float32)
            target = whole(Buffer("output", math.prod(hole.shape), wl.float32), hole.shape)
            found.append(max(step.chunks for step in steps_of(case, kind, views[0], views[1], hole, [(target, hole)])))
        return found

    assert min(chunks(Case(64, (16, 16), 64, 64, (3, 3)))) >= 8
    assert min(chunks(Case(1, (14, 14), 512, 512, (3, 3)))) >= 8
    assert max(chunks(Case(1, (6, 6), 3, 4, (3, 3)))) == 1


def test_descriptions_tell_what_differs() -> None:
    def described(case: Case) -> list[str]:
        views = [whole(Buffer("input", math.prod(s), wl.float32), s) for s in (case.shapes[n] for n in "xw")]
        hole = Hole(case.shapes["y"], wl.float32)
        target = whole(Buffer("output", math.prod(hole.shape), wl.float32), hole.shape)
        return [step.describe() for step in steps_of(case, "y", views[0], views[1], hole, [(target, hole)])]

    case = Case(2, (8, 8), 6, 20, (3, 3))
    assert described(case) == described(case)
    assert described(case)[-1] != described(Case(2, (8, 8), 6, 20, (3, 3), padding=((0, 2), (1, 1))))[-1]


def test_unsupported() -> None:
    assert not supported(wl.int32, (1, 4, 4, 1))
    assert not supported(wl.complex64, (1, 4, 4, 1))
    assert not supported(wl.float32, (0, 4, 4, 1))
