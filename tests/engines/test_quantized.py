"""Products with matrices of few bits: native code agrees with the reference, and makes no copy of the matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.engines.engines import native, same
from wonderland.engines.native.engine import ENGINE
from wonderland.engines.native.products.totals import Total
from wonderland.engines.native.products.widened import Widened
from wonderland.primitives import quantized as q

KINDS = pytest.mark.parametrize("kind", ["int8", "int4", "bfloat16"])


def matrix(kind: str, n: int, k: int, group: int) -> list[Any]:
    rng = np.random.default_rng(n + k)
    scales = rng.uniform(0.5, 1.5, (n, q.groups_of(k, group))).astype(np.float32)
    if kind == "bfloat16":
        return [rng.normal(size=(n, k)).astype(wl.bfloat16)]
    if kind == "int8":
        return [rng.integers(-127, 128, (n, k)).astype(np.int8), scales / 100]
    return [q.packed(rng.integers(-8, 8, (n, k)).astype(np.int8)), scales]


def rows(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(dtype)


def product(k: int, group: int) -> Any:
    return lambda x, *m: wl.tanh(q.quantized_matmul(x, *m, features=k, group=group) / k + 1)


def test_four_bits_are_packed_and_unpacked() -> None:
    for k in (1, 16, 31, 32, 33, 64, 100):
        values = np.random.default_rng(k).integers(-8, 8, (3, 2, k)).astype(np.int8)
        packed = q.packed(values)
        assert packed.shape == (3, 2, q.packed_size(k))
        np.testing.assert_array_equal(q.unpacked(packed)[..., :k], values)
        assert not q.unpacked(packed)[..., k:].any()


@KINDS
@pytest.mark.parametrize(("lead", "n", "k", "group"), [
    ((1,), 3, 1, 1), ((), 17, 45, 45), ((1,), 100, 100, 32), ((3,), 37, 130, 64), ((2, 2), 9, 31, 31),
    ((8,), 50, 96, 96), ((9,), 50, 100, 32), ((16,), 200, 160, 160), ((70,), 9, 130, 64), ((3, 21), 100, 33, 33),
    ((200,), 333, 1100, 1100), ((90,), 170, 1100, 128), ((17,), 60, 5, 5), ((300,), 70, 3000, 3000),
    ((1,), 33, 3000, 3000), ((1,), 700, 1024, 128), ((2,), 600, 1030, 1030),
])  # fmt: skip
def test_products_agree_with_the_reference(kind: str, lead: Any, n: int, k: int, group: int) -> None:
    same(product(k, group), rows(*lead, k), *matrix(kind, n, k, group), rtol=2e-5, atol=2e-5, threads=True)


@KINDS
@pytest.mark.parametrize("dtype", [np.float64, np.float16, wl.bfloat16])
def test_other_types_of_rows(kind: str, dtype: Any) -> None:
    tolerance = 1e-12 if dtype == np.float64 else 1e-2
    for lead, group in (((2,), 64), ((20,), 130), ((20,), 64)):
        given = rows(*lead, 130, dtype=dtype), *matrix(kind, 40, 130, group)
        same(product(130, group), *given, rtol=tolerance, atol=tolerance)


def test_groups_that_are_no_multiple_of_a_vector() -> None:
    same(product(45, 7), rows(2, 45), *matrix("int8", 20, 45, 7), rtol=2e-5, atol=2e-5)


@KINDS
@pytest.mark.parametrize(("k", "group"), [(40, 40), (100, 32), (96, 32), (64, 64)])
def test_numbers_of_a_matrix_are_exact(kind: str, k: int, group: int) -> None:
    for dtype in (np.float32, np.float64, wl.bfloat16):
        to = {"features": k, "group": group, "dtype": np.dtype(dtype)}
        same(lambda *m, to=to: q.dequantize(*m, **to), *matrix(kind, 70, k, group))


@KINDS
def test_few_rows_read_the_matrix_as_it_is(kind: str) -> None:
    """No step writes as much as the matrix in numbers would take."""
    n, k = 300, 256
    given = [wl.asarray(a) for a in (rows(1, k), *matrix(kind, n, k, 64))]
    told = wl.explain(product(k, 64), *given)
    assert told.arena_bytes < n * k
    assert sum(line.bytes for line in told.steps) < 1.1 * sum(a.nbytes for a in given) + 16 * n


@KINDS
def test_many_rows_read_a_copy_of_few_bits(kind: str) -> None:
    """The copy that is kept of a layer's matrix takes a byte for a number (two of bfloat16), and is made once."""
    layer = wl.quantize(wl.nn.Linear(96, 200, bias=False).eval(), kind)
    x, f = wl.asarray(rows(40, 96)), wl.jit(lambda layer, x: layer(x))
    with wl.using_backend("native"), wl.no_grad():
        found = [np.asarray(f(layer, x)) for _ in range(2)]
    lasting = ENGINE.program(f.last_trace.graph).lasting
    panels, scales = 256 * 96 * (2 if kind == "bfloat16" else 1), 3 * 256 * 4
    assert lasting.ready
    assert lasting.bytes <= panels + scales + 256
    for each in found:
        np.testing.assert_allclose(each, np.asarray(x) @ np.asarray(layer.weight), rtol=1e-5, atol=1e-5)


@KINDS
def test_long_sums_of_many_rows_are_made_in_parts(kind: str) -> None:
    """Of whole matrices; where groups have scales, of panels alone."""
    for k, group in ((8000, 8000), (8000, 32)):
        given = rows(40, k), *matrix(kind, 64, k, group)
        f = lambda x, *m, k=k, group=group: q.quantized_matmul(x, *m, features=k, group=group) / k
        program = same(f, *given, rtol=1e-5, atol=1e-6, threads=True)
        parts = sum(isinstance(step, Total) for step in program.schedule.steps)
        assert parts == (group == k or kind == "bfloat16")


def test_panels_are_widened_once_for_many_rows_and_in_registers_for_few() -> None:
    """Both ways give a row the same sums."""
    many, few = 600, 9
    for kind in ("int8", "bfloat16"):
        m, x = matrix(kind, 100, 256, 256), rows(many, 256)
        f = lambda x, *m: q.quantized_matmul(x, *m, features=256, group=256)
        found = []
        for some in (x, x[:few]):
            program, arrays = native(f, some, *m)
            copied = [step.copied for step in program.schedule.steps if isinstance(step, Widened)]
            assert copied == [len(some) == many]
            found.append(program(arrays)[0])
        np.testing.assert_allclose(found[0][:few], found[1], rtol=1e-5, atol=1e-5)


@KINDS
def test_derivatives_with_respect_to_rows(kind: str) -> None:
    group = 64 if kind == "int4" else 32
    m = [wl.asarray(a) for a in matrix(kind, 12, 100, group)]
    x = wl.asarray(rows(3, 100))
    f = lambda x: wl.sum(wl.sin(q.quantized_matmul(x, *m, features=100, group=group)))
    weight = q.dequantize(*m, features=100, group=group, dtype=wl.float32)
    want = wl.grad(lambda x: wl.sum(wl.sin(x @ weight.mT)))(x)
    np.testing.assert_allclose(wl.jit(wl.grad(f))(x), want, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(wl.jit(wl.vmap(wl.grad(f)))(x[:, None])[:, 0], want, rtol=1e-3, atol=1e-3)


def test_what_does_not_fit_is_told() -> None:
    values, scales = (wl.asarray(a) for a in matrix("int8", 4, 40, 40))
    x, ask = wl.ones((2, 40)), {"features": 40, "group": 40}
    with pytest.raises(wl.errors.ShapeError, match=r"quantized_matmul: x \(2, 39\)"):
        q.quantized_matmul(x[:, :39], values, scales, **ask)
    with pytest.raises(wl.errors.ShapeError, match=r"values \(4, 40\) for 41 features"):
        q.quantized_matmul(wl.ones((2, 41)), values, scales, features=41, group=41)
    with pytest.raises(wl.errors.ShapeError, match=r"scales float32\[4, 1\](.|\n)*\(4, 2\)"):
        q.quantized_matmul(x, values, scales, features=40, group=20)
    with pytest.raises(wl.errors.DTypeError, match="0 tensors of scales for int8"):
        q.quantized_matmul(x, values, **ask)
    with pytest.raises(wl.errors.DTypeError, match="values of int64"):
        q.quantized_matmul(x, wl.zeros((4, 40), dtype=wl.int64), scales, **ask)
    with pytest.raises(wl.errors.DTypeError, match="x of int64"):
        q.quantized_matmul(wl.zeros((2, 40), dtype=wl.int64), values, scales, **ask)


@pytest.mark.parametrize("k", [64, 100, 768, 1000])
@pytest.mark.parametrize("m", [1, 3])
def test_four_bits_by_words(k: int, m: int) -> None:
    """One scale for a row, for a block, and for some turns; what is not finite, or small, stays so."""
    for group in (k, 32, 64, 256):
        given = rows(m, k), *matrix("int4", 90, k, min(group, k))
        same(product(k, min(group, k)), *given, rtol=2e-5, atol=2e-5, threads=True)
    x, (packed, scales) = rows(m, k), matrix("int4", 90, k, k)
    x[0, 5], x[-1, 0] = np.inf, 1e-30
    with np.errstate(invalid="ignore"):
        same(lambda x, *w: q.quantized_matmul(x, *w, features=k, group=k), x, packed, scales, rtol=2e-4, atol=2e-4)
