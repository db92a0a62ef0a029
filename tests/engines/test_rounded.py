"""Products of rows that are rounded to int8 with matrices of int8: sums of integers, to the last one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.engines.engines import native, on_threads, same
from wonderland.engines.native.llvm import Host
from wonderland.engines.native.processor import KINDS
from wonderland.primitives.rounded import rounded, rounded_matmul

ROOT = Path(__file__).parents[2]
Array = np.ndarray[Any, Any]
SHAPES = [
    ((), 17, 45), ((1,), 3, 1), ((1,), 100, 100), ((1,), 33, 3000), ((3,), 37, 130), ((2, 2), 9, 31), ((8,), 50, 96),
    ((7,), 16, 64), ((70,), 70, 257), ((13,), 600, 1030), ((3, 5, 7), 33, 65), ((2,), 5, 140_003), ((9,), 20, 65_537),
]  # fmt: skip


def matrix(n: int, k: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(n + k)
    return rng.integers(-127, 128, (n, k)).astype(np.int8), rng.uniform(0.5, 1.5, (n, 1)).astype(np.float32) / 100


def rows(*shape: int, dtype: Any = np.float32) -> Array:
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


def product(k: int) -> Any:
    return lambda x, values, scales: rounded_matmul(x, values, scales, features=k)


def oracle(x: Array, values: Array, scales: Array) -> Array:
    """By integers of 64 bits."""
    wide = x.astype(np.float32)
    steps = np.abs(wide).max(axis=-1, keepdims=True) / np.float32(127)
    integers = np.rint(wide / np.where(steps == 0, 1, steps)).astype(np.int64)
    assert np.abs(integers).max() <= 127
    return (integers @ values.T.astype(np.int64)).astype(np.float64) * steps * scales[:, 0]


@pytest.mark.parametrize(("lead", "n", "k"), SHAPES)
def test_sums_are_those_of_integers(lead: Any, n: int, k: int) -> None:
    given = rows(*lead, k), *matrix(n, k)
    want = oracle(*given)
    # of a long sum, the parts are rounded
    close: dict[str, Any] = {"rtol": 4e-7, "atol": 0 if k < 1 << 16 else 1e-6 * np.abs(want).max()}
    np.testing.assert_allclose(product(k)(*map(wl.asarray, given)), want, **close)
    program, arrays = native(product(k), *given)
    np.testing.assert_allclose(on_threads(program, arrays)[0], want, **close)
    same(product(k), *given, **close)


def test_half_precision_is_rounded_at_the_end() -> None:
    for dtype in (wl.bfloat16, np.float16, np.float64):
        given = rows(20, 130, dtype=dtype), *matrix(40, 130)
        tolerance = 1e-14 if dtype == np.float64 else 1e-2
        same(product(130), *given, rtol=tolerance, atol=0 if dtype == np.float64 else 1e-3)


@pytest.mark.parametrize("k", [64, 100, 65_536, 66_400])
@pytest.mark.parametrize("m", [1, 9])
def test_the_largest_sums_do_not_overflow(m: int, k: int) -> None:
    for x in (1.0, -1.0):
        for w in (127, -127, -128):
            given = np.full((m, k), x, np.float32), np.full((3, k), w, np.int8), np.ones((3, 1), np.float32)
            found = same(product(k), *given, rtol=1e-6)(list(given))
            np.testing.assert_allclose(found[0], x * w * k, rtol=1e-6)


@pytest.mark.parametrize("m", [1, 5, 20])
def test_rows_that_are_not_finite_or_zero(m: int) -> None:
    for bad in (np.nan, np.inf, -np.inf):
        x = rows(m + 2, 70)
        x[0, 3], x[1] = bad, 0
        given = x, *matrix(35, 70)
        found = same(product(70), *given, rtol=1e-6)(list(given))[0]
        assert np.isnan(found[0]).all()
        assert not found[1].any()
        assert np.isfinite(found[2:]).all()
    integers, steps = rounded(np.array([[0.0, 0.0], [1e-45, -2.6e-43], [3e38, -1.0]], np.float32))
    assert integers[[0, 2]].tolist() == [[0, 0], [127, 0]]
    assert integers[1, 1] == -127  # of subnormal numbers there is no 127th part
    assert np.isfinite(steps).all()


def test_views_batches_and_nothing() -> None:
    values, scales = matrix(24, 40)
    x = rows(40, 2, 9)
    turned = lambda x, *m: rounded_matmul(wl.moveaxis(x, 0, -1)[:, ::2], *m, features=40)
    same(turned, x, values, scales, rtol=4e-7)
    want = oracle(x.T[::2].swapaxes(0, 1), values, scales)
    np.testing.assert_allclose(turned(*map(wl.asarray, (x, values, scales))), want, rtol=4e-7)
    followed = lambda x, *m: wl.tanh(rounded_matmul(x, *m, features=40) / 40 + x[..., :24])
    same(followed, rows(3, 4, 40), values, scales, rtol=1e-5, atol=1e-6, threads=True)
    for shape in ((0, 40), (2, 0, 40)):
        assert wl.jit(product(40))(wl.zeros(shape), values, scales).shape == (*shape[:-1], 24)
    assert wl.jit(product(40))(wl.ones((3, 40)), values[:0], scales[:0]).shape == (3, 0)


def test_every_row_has_a_matrix_of_its_own() -> None:
    x, pairs = wl.asarray(rows(3, 5, 40)), [matrix(n, 40) for n in (7, 7, 7)]
    values, scales = (wl.asarray(np.stack(part)) for part in zip(*pairs, strict=True))
    found = wl.jit(wl.vmap(product(40)))(x, values, scales)
    want = np.stack([product(40)(x[i], values[i], scales[i]) for i in range(3)])
    np.testing.assert_allclose(found, want, rtol=1e-6)


@pytest.mark.parametrize("k", [100, 70_000])
def test_a_row_has_the_same_bits_in_any_batch(k: int) -> None:
    x, given = rows(20, k), matrix(37, k)
    f = wl.jit(product(k))
    whole = f(x, *given).numpy()
    for part in (x[:1], x[:5], x[:19]):
        np.testing.assert_array_equal(f(part, *given).numpy(), whole[: len(part)])


def test_derivatives_are_those_without_rounding() -> None:
    x, (values, scales) = wl.asarray(rows(3, 40)), map(wl.asarray, matrix(7, 40))
    ct = wl.asarray(rows(3, 7))
    found = wl.jit(wl.grad(lambda x: wl.sum(ct * rounded_matmul(x, values, scales, features=40))))(x)
    np.testing.assert_allclose(found, ct @ (values.astype("float32") * scales), rtol=1e-5, atol=1e-5)


def test_the_matrix_is_not_copied() -> None:
    for m in (1, 40):
        given = [wl.asarray(a) for a in (rows(m, 256), *matrix(3000, 256))]
        told = wl.explain(product(256), *given)
        assert told.arena_bytes < 3000 * 256 / 4


def test_what_does_not_fit_is_told() -> None:
    values, scales = map(wl.asarray, matrix(4, 40))
    with pytest.raises(wl.errors.DTypeError, match=r"rounded_matmul: values of uint8"):
        rounded_matmul(wl.ones((2, 40)), values.astype("uint8"), scales, features=40)
    with pytest.raises(wl.errors.ShapeError, match=r"rounded_matmul: scales \(4, 2\)(.|\n)*\(4, 1\)"):
        rounded_matmul(wl.ones((2, 40)), values, wl.ones((4, 2)), features=40)
    with pytest.raises(wl.errors.ShapeError, match=r"rounded_matmul: x \(2, 39\)"):
        rounded_matmul(wl.ones((2, 39)), values, scales, features=40)
    with pytest.raises(wl.errors.DTypeError, match=r"rounded_matmul: x of int64"):
        rounded_matmul(wl.ones((2, 40), dtype=wl.int64), values, scales, features=40)


OTHERS = """
import numpy as np, wonderland as wl
from tests.engines.engines import native
from tests.engines.test_rounded import matrix, oracle, product, rows
from wonderland.engines.native.machine import CannotRun, machine
from wonderland.engines.native.program import text_of
from wonderland.engines.native.schedule import Schedule
from wonderland.core.primitive import Aval
from wonderland.ir.stage import stage

used = ran = 0
for m, n, k in ((1, 37, 130), (5, 70, 300), (20, 50, 257), (3, 5, 70_000)):
    given = rows(m, k), *matrix(n, k)
    graph = stage(lambda *a: [product(k)(*a)], [Aval(a.shape, a.dtype) for a in given]).graph
    cpu = machine().cpu
    texts = [text_of(step, cpu, "routine") for step in Schedule(graph, cpu).steps]
    used += any(NAME in machine().assembly(text) for text in texts)
    try:
        program, arrays = native(product(k), *given)
    except CannotRun:
        continue
    want = oracle(*given)
    np.testing.assert_allclose(program(arrays)[0], want, rtol=1e-6, atol=1e-6 * np.abs(want).max())
    ran += 1
print(used, ran)
"""
INSTRUCTIONS = {
    "x86-64-v2": "pmaddwd", "sandybridge": "vpmul", "x86-64-v3": "vpmaddwd", "alderlake": "vpdpbusd",
    "x86-64-v4": "vpmaddwd", "cascadelake": "vpdpbusd", "neoverse-n1": "sdot", "apple-m1": "sdot.4s",
}  # fmt: skip


@pytest.mark.parametrize("cpu", INSTRUCTIONS)
def test_processors_have_instructions_for_it(cpu: str) -> None:
    environment = os.environ | {"WONDERLAND_CPU": cpu, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    script = OTHERS.replace("NAME", repr(INSTRUCTIONS[cpu]))
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr
    used, ran = map(int, done.stdout.split())
    # a sum that is too long for 32 bits of its own is made of pairs, see byte_products.py
    assert used == 4 - (INSTRUCTIONS[cpu] == "vpdpbusd")
    assert ran == (4 if Host().has.get(KINDS[cpu].needs) else 0)
