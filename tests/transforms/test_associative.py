"""`associative_scan` against prefixes computed one after another."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import errors


def prefixes(matrices: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    out = []
    for m in matrices:
        out.append(out[-1] @ m if out else m)
    return np.stack(out) if out else matrices


def matrices(n: int) -> wl.Tensor:
    return wl.asarray(np.random.default_rng(n).normal(size=(n, 2, 2)))


@pytest.mark.parametrize("n", range(21))
def test_any_length_of_products_that_do_not_commute(n: int) -> None:
    ms = matrices(n)
    expected = prefixes(np.asarray(ms))
    for f in (wl.associative_scan, wl.jit(wl.associative_scan, static_argnums=0)):
        np.testing.assert_allclose(f(wl.matmul, ms), expected, rtol=1e-9, atol=1e-12)
    backwards = wl.associative_scan(wl.matmul, ms, reverse=True)
    suffixes = prefixes(np.swapaxes(np.asarray(ms)[::-1], -1, -2))[::-1]
    np.testing.assert_allclose(backwards, np.swapaxes(suffixes, -1, -2), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 9, 100, 1000])
def test_the_number_of_applications_is_logarithmic(n: int) -> None:
    calls = []

    def add(a: Any, b: Any) -> Any:
        calls.append(a.shape[0])
        return a + b

    result = wl.associative_scan(add, wl.ones(n))
    np.testing.assert_array_equal(result, np.arange(1, n + 1))
    assert len(calls) <= 2 * math.log2(n) + 1
    assert sum(calls) <= 2 * n


def test_trees() -> None:
    """A linear recurrence h = a h + b, as in state-space models: pairs combine as maps do."""

    def combine(first: Any, second: Any) -> Any:
        return {"a": second["a"] * first["a"], "b": second["a"] * first["b"] + second["b"]}

    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(11, 3)), rng.normal(size=(11, 3))
    h, expected = np.zeros(3), []
    for t in range(11):
        h = a[t] * h + b[t]
        expected.append(h)
    for f in (wl.associative_scan, wl.jit(wl.associative_scan, static_argnums=0)):
        result = f(combine, {"a": wl.asarray(a), "b": wl.asarray(b)})
        np.testing.assert_allclose(result["b"], expected, rtol=1e-10)
        np.testing.assert_allclose(result["a"], np.cumprod(a, axis=0), rtol=1e-10)
    assert wl.associative_scan(combine, {}) == {}
    assert wl.associative_scan(combine, None) is None


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("reverse", [False, True])
def test_axes(axis: int, reverse: bool) -> None:
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    shapes = []

    def add(a: Any, b: Any) -> Any:
        shapes.append(a.shape)
        return a + b

    result = wl.associative_scan(add, wl.asarray(x), reverse=reverse, axis=axis)
    flipped = np.flip(x, axis) if reverse else x
    expected = np.cumsum(flipped, axis=axis)
    np.testing.assert_allclose(result, np.flip(expected, axis) if reverse else expected, rtol=1e-12)
    # the function sees the axis where the user put it
    for shape in shapes:
        assert [n for i, n in enumerate(shape) if i != axis % 3] == [n for i, n in enumerate(x.shape) if i != axis % 3]


def test_axes_of_a_tree_with_different_ranks() -> None:
    x, y = wl.ones((2, 5)), wl.ones((3, 4, 5))
    a, b = wl.associative_scan(lambda p, q: (p[0] + q[0], p[1] * q[1]), (x, y), axis=-1)
    np.testing.assert_array_equal(a[0], np.arange(1, 6))
    np.testing.assert_array_equal(b, np.ones((3, 4, 5)))


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_derivatives(n: int) -> None:
    ms = matrices(n)
    wl.check_grads(lambda ms: wl.associative_scan(wl.matmul, ms), (ms,), order=2, rtol=1e-5)

    def loss(f: Any) -> Any:
        return lambda ms: wl.sin(f(ms)).sum()

    def one_after_another(ms: Any) -> Any:
        out = [ms[0]]
        for i in range(1, n):
            out.append(out[-1] @ ms[i])
        return wl.stack(out)

    expected = wl.grad(loss(one_after_another))(ms)
    scan = loss(lambda ms: wl.associative_scan(wl.matmul, ms))
    for f in (wl.grad(scan), wl.jit(wl.grad(scan)), wl.grad(wl.jit(scan))):
        np.testing.assert_allclose(f(ms), expected, rtol=1e-9)


def test_batches() -> None:
    ms = wl.stack([matrices(6), 2 * matrices(6), -matrices(6)])
    expected = np.stack([prefixes(m) for m in np.asarray(ms)])
    f = wl.vmap(lambda ms: wl.associative_scan(wl.matmul, ms))
    np.testing.assert_allclose(f(ms), expected, rtol=1e-9)
    np.testing.assert_allclose(wl.jit(f)(ms), expected, rtol=1e-9)


def test_integers_and_maxima() -> None:
    x = wl.tensor([3, 1, 4, 1, 5, 9, 2, 6])
    assert wl.associative_scan(wl.maximum, x).tolist() == [3, 3, 4, 4, 5, 9, 9, 9]
    assert wl.associative_scan(wl.maximum, x, reverse=True).tolist() == [9, 9, 9, 9, 9, 9, 6, 6]


@pytest.mark.parametrize(
    ("f", "x", "error", "word"),
    [
        (wl.add, (wl.ones(3), wl.ones(4)), errors.ShapeError, "[3, 4]"),
        (wl.add, wl.tensor(1.0), errors.AxisError, "associative_scan"),
        (lambda a, b: (a, b), wl.ones(3), errors.TreeError, "structures"),
        (lambda a, b: a[:0], wl.ones(3), errors.TreeError, "float32[0]"),
        (lambda a, b: (a + b).astype(wl.float64), wl.ones(3), errors.TreeError, "float64"),
    ],
)
def test_errors(f: Any, x: Any, error: Any, word: str) -> None:
    with pytest.raises(error) as caught:
        wl.associative_scan(f, x)
    assert word in str(caught.value)


# --- compiled: blocks


def pairs(p: Any, q: Any) -> Any:
    return q[0] * p[0], q[0] * p[1] + q[1]


def in_order(a: Any, b: Any) -> Any:
    """The states of a linear recurrence along the first axis, in NumPy."""
    h, out = np.zeros_like(b[0]), []
    for now, add in zip(a, b, strict=True):
        h = now * h + add
        out.append(h)
    return np.stack(out)


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("n", [3, 4, 7, 8, 9, 64, 257, 1003])
@pytest.mark.parametrize("shape", [(), (3,), (5, 3), (70,)])  # many blocks, some, few, one
def test_blocks_of_any_number_and_length(shape: tuple[int, ...], n: int, backend: str) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.uniform(-1, 1, size=(n, *shape)), rng.normal(size=(n, *shape))
    with wl.using_backend(backend):
        for axis in (0, len(shape)):
            x, y = (wl.asarray(np.moveaxis(z, 0, axis)) for z in (a, b))
            forwards = wl.jit(functools.partial(wl.associative_scan, pairs, axis=axis))
            expected = np.moveaxis(in_order(a, b), 0, axis)
            np.testing.assert_allclose(forwards((x, y))[1], expected, rtol=1e-9, atol=1e-12)
            # with `reverse` the later one is the second argument all the same
            backwards = functools.partial(wl.associative_scan, lambda p, q: pairs(q, p), reverse=True, axis=axis)
            expected = np.moveaxis(in_order(a[::-1], b[::-1])[::-1], 0, axis)
            np.testing.assert_allclose(wl.jit(backwards)((x, y))[1], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [5, 16, 70])
def test_blocks_keep_the_order_of_what_does_not_commute(n: int) -> None:
    ms = matrices(n) / 2
    np.testing.assert_allclose(
        wl.jit(lambda m: wl.associative_scan(wl.matmul, m))(ms), prefixes(np.asarray(ms)), rtol=1e-8
    )


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("dtype", [wl.float32, wl.float64, wl.complex64, wl.complex128, wl.bfloat16, wl.float16])
def test_gradients_of_blocks(dtype: Any, backend: str) -> None:
    rng = np.random.default_rng(0)
    wide = wl.complex128 if wl.zeros((), dtype=dtype).dtype.kind == "c" else wl.float64
    turn = np.exp(1j * rng.normal(size=(37, 3))) if wide == wl.complex128 else 1.0
    a, b = (wl.asarray(x * turn).astype(dtype) for x in (rng.uniform(size=(37, 3)), rng.normal(size=(37, 3))))

    def loss(a: Any, b: Any) -> Any:
        found = (wl.associative_scan(pairs, (a, b))[1] * wl.arange(37).astype(dtype)[:, None]).sum()
        return found.real if wide == wl.complex128 else found

    expected = wl.grad(loss, (0, 1))(a.astype(wide), b.astype(wide))
    tolerance = {2: 0.05, 4: 1e-4, 8: 1e-9}[wl.zeros((), dtype=dtype).real.dtype.itemsize]
    with wl.using_backend(backend):
        for x, y in zip(wl.jit(wl.grad(loss, (0, 1)))(a, b), expected, strict=True):
            assert x.dtype == dtype
            error = np.abs(x.astype(wide).numpy() - y.numpy()).max()
            assert error <= tolerance * np.abs(y.numpy()).max()


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    rng = np.random.default_rng(0)
    a, b = wl.asarray(rng.uniform(size=(2, 500, 40))), wl.asarray(rng.normal(size=(2, 500, 40)))
    f = wl.jit(wl.grad(lambda a, b: (wl.associative_scan(pairs, (a, b), axis=1)[1] ** 2).sum(), (0, 1)))
    before, found = wl.get_threads(), []
    try:
        for threads in (1, 2):
            wl.set_threads(threads)
            found.append([g.numpy() for g in f(a, b)])
    finally:
        wl.set_threads(before)
    for x, y in zip(*found, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("channels", [1, 16, 64])
def test_compiled_programs_stay_small(channels: int) -> None:
    """So compiling takes no longer for long sequences."""

    def routines(n: int) -> int:
        x = wl.ones((n, channels))
        f = wl.jit(wl.value_and_grad(lambda a, b: wl.associative_scan(pairs, (a, b))[1].sum(), (0, 1)))
        return len({step.what for step in wl.explain(f, x, x).steps})

    assert routines(4096) <= routines(256) + 2 <= 50
