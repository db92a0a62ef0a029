"""Reductions and their running forms against NumPy: axes, keepdims, dtypes, empty axes, NaN, derivatives."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import wonderland as wl

NUMERIC = (
    "int8",
    "int64",
    "uint8",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
)
REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": np.sum,
    "prod": np.prod,
    "mean": np.mean,
    "var": np.var,
    "std": np.std,
    "max": np.max,
    "min": np.min,
    "any": np.any,
    "all": np.all,
    "count_nonzero": np.count_nonzero,
}
NEED_ELEMENTS = {"mean", "var", "std", "max", "min"}


@st.composite
def reducible(draw: Any) -> tuple[np.ndarray, Any, bool]:
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    x = np.random.default_rng(draw(st.integers(0, 99))).normal(size=shape)
    axes = st.integers(-len(shape), len(shape) - 1) if shape else st.nothing()
    several = (
        st.lists(axes, unique_by=lambda a: a % len(shape), max_size=len(shape)).map(tuple) if shape else st.just(())
    )
    return x, draw(st.none() | axes | several), draw(st.booleans())


@pytest.mark.book("2.28", "B2-08", name="wl.sum")
@pytest.mark.parametrize("name", REDUCTIONS)
@given(reducible())
def test_against_numpy(name: str, case: tuple[np.ndarray, Any, bool]) -> None:
    x, axis, keepdims = case
    reduced = range(x.ndim) if axis is None else np.atleast_1d(np.array(axis, dtype=int)) % max(x.ndim, 1)
    rest = [n for i, n in enumerate(x.shape) if i not in reduced]
    f = lambda: getattr(wl, name)(wl.asarray(x), axis=axis, keepdims=keepdims)
    nothing = name in NEED_ELEMENTS and any(x.shape[a] == 0 for a in reduced)
    if nothing and name in ("max", "min"):
        with pytest.raises(wl.errors.InputError, match="has no elements"):
            f()
        return
    if nothing:
        with pytest.warns(RuntimeWarning) if 0 not in rest else contextlib.nullcontext():
            ours = f()
        assert ours.shape == np.empty(x.shape).sum(axis=axis, keepdims=keepdims).shape
        assert np.isnan(ours.numpy()).all()
        return
    ours = f()
    expected = REDUCTIONS[name](x, axis=axis, keepdims=keepdims)
    assert ours.shape == np.shape(expected)
    np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-9, atol=1e-12)
    method = getattr(wl.asarray(x), name, None)
    if method is not None:
        np.testing.assert_array_equal(method(axis=axis, keepdims=keepdims).numpy(), ours.numpy())


@pytest.mark.parametrize("dtype", ("bool", *NUMERIC))
def test_dtypes_of_sums(dtype: str) -> None:
    x = wl.ones((2, 3), dtype=dtype)
    total = wl.sum(x)
    kept = dtype if dtype not in ("bool", "int8", "uint8") else "uint64" if dtype == "uint8" else "int64"
    assert total.dtype == kept
    assert wl.prod(x).dtype == kept
    assert wl.cumulative_sum(x, axis=0).dtype == kept
    assert total.numpy().astype(complex).item() == 6
    assert wl.sum(x, dtype="complex128").dtype == wl.complex128
    assert wl.mean(x).dtype == (dtype if "float" in dtype or "complex" in dtype else "float32")
    assert wl.any(x).dtype == wl.bool
    assert wl.count_nonzero(x).dtype == wl.int64
    if "complex" not in dtype:
        assert wl.max(x).dtype == dtype
        assert wl.argmax(x).dtype == wl.int64
    else:
        for name in ("max", "min", "argmax", "argmin", "argsort", "sort"):
            with pytest.raises(wl.errors.DTypeError, match="no order"):
                getattr(wl, name)(x)


def test_small_integers_do_not_overflow() -> None:
    assert wl.sum(wl.full((1000,), 100, dtype="int8")).item() == 100_000
    assert wl.sum(wl.full((1000,), 200, dtype="uint8")).item() == 200_000


def test_half_precision_is_accumulated_in_float32() -> None:
    for dtype in ("float16", "bfloat16"):
        ones = wl.ones(5000, dtype=dtype)
        assert wl.sum(ones).item() == pytest.approx(5000, rel=wl.finfo(dtype).eps)
        assert wl.mean(ones * 100).item() == 100  # the sum would overflow float16
        assert wl.var(wl.tensor([200.0, -200.0] * 500, dtype=dtype)).item() == pytest.approx(40000, rel=1e-2)
        assert wl.cumulative_sum(ones)[-1].item() == pytest.approx(5000, rel=wl.finfo(dtype).eps)


def test_complex_variance_is_real() -> None:
    z = np.array([1 + 2j, 3 - 1j, 0.5j])
    assert wl.var(z).dtype == wl.float64
    np.testing.assert_allclose(wl.var(z).numpy(), np.var(z))
    np.testing.assert_allclose(wl.var(z, correction=1).numpy(), np.var(z, ddof=1))


@pytest.mark.book("2.15", name="wl.argmax")
def test_argmax_takes_the_first_of_equals() -> None:
    x = np.array([[1.0, 3.0, 3.0], [5.0, 5.0, 0.0]])
    for axis in (None, 0, 1, -1):
        for keepdims in (False, True):
            ours = wl.argmax(wl.asarray(x), axis=axis, keepdims=keepdims)
            np.testing.assert_array_equal(ours.numpy(), np.argmax(x, axis=axis, keepdims=keepdims))
            ours = wl.argmin(wl.asarray(x), axis=axis, keepdims=keepdims)
            np.testing.assert_array_equal(ours.numpy(), np.argmin(x, axis=axis, keepdims=keepdims))
    with pytest.raises(wl.errors.InputError, match="no elements"):
        wl.argmax(wl.zeros(0))


def test_bad_axes() -> None:
    x = wl.zeros((2, 3))
    for axis in (2, -3, (0, 0), (0, -2), (0, 5)):
        with pytest.raises(wl.errors.AxisError):
            wl.sum(x, axis=axis)
    with pytest.raises(wl.errors.AxisError):
        wl.argmax(x, axis=4)


@pytest.mark.book("2.28", name="wl.mean")
def test_gradient_of_the_mean_is_one_over_n() -> None:
    x = wl.ones((3, 4))
    np.testing.assert_allclose(wl.grad(lambda x: x.mean())(x).numpy(), np.full((3, 4), 1 / 12), rtol=1e-6)
    np.testing.assert_allclose(wl.grad(lambda x: x.mean(axis=0).sum())(x).numpy(), np.full((3, 4), 1 / 3), rtol=1e-6)


@pytest.mark.book("B2-08", name="wl.sum")
@pytest.mark.parametrize("name", ("sum", "prod", "mean", "var", "std", "max", "min"))
@pytest.mark.parametrize("axis", (None, 0, -1, (0, 2)))
def test_gradients_along_every_axis(name: str, axis: Any) -> None:
    x = np.random.default_rng(3).normal(size=(2, 3, 2))
    f = lambda x: (getattr(wl, name)(x, axis=axis) ** 2).sum()
    gradient = wl.grad(f)(wl.asarray(x)).numpy()
    step = 1e-6
    for i in np.ndindex(x.shape):
        e = np.zeros_like(x)
        e[i] = step
        numeric = (f(wl.asarray(x + e)) - f(wl.asarray(x - e))).item() / (2 * step)
        assert gradient[i] == pytest.approx(numeric, rel=1e-5, abs=1e-7)


@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4),
        elements=st.floats(-3, 3),
    ),
    st.integers(-1, 0),
    st.booleans(),
)
def test_running_sums_and_products(x: np.ndarray, axis: int, include_initial: bool) -> None:
    for ours, theirs, first in ((wl.cumulative_sum, np.cumsum, 0.0), (wl.cumulative_prod, np.cumprod, 1.0)):
        out = ours(wl.asarray(x), axis=axis, include_initial=include_initial).numpy()
        expected = theirs(x, axis=axis)
        if include_initial:
            start = np.full_like(np.take(x, [], axis=axis), 0)
            edge = list(start.shape)
            edge[axis] = 1
            expected = np.concatenate([np.full(edge, first), expected], axis=axis)
        np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(wl.cumsum(wl.asarray(x)).numpy(), np.cumsum(x), atol=1e-12)
    np.testing.assert_allclose(wl.cumprod(wl.asarray(x)).numpy(), np.cumprod(x), atol=1e-9)


def test_running_sums_need_an_axis_for_matrices() -> None:
    with pytest.raises(wl.errors.InputError, match="axis"):
        wl.cumulative_sum(wl.zeros((2, 2)))


def test_running_products_differentiate_through_zeros() -> None:
    x = wl.tensor([2.0, 0.0, 3.0, 0.0], wl.float64)
    jacobian = np.stack([wl.grad(lambda x, i=i: wl.cumprod(x)[i])(x).numpy() for i in range(4)])
    expected = np.array([[1, 0, 0, 0], [0, 2, 0, 0], [0, 6, 0, 0], [0, 0, 0, 0]], float)
    np.testing.assert_allclose(jacobian, expected)


@given(
    hnp.arrays(
        np.int64,
        hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=5),
        elements=st.integers(-9, 9),
    ),
    st.integers(0, 3),
    st.booleans(),
)
def test_differences(x: np.ndarray, n: int, edges: bool) -> None:
    axis = x.ndim - 1
    extra = {"prepend": x[..., :1], "append": x[..., -1:]} if edges and n else {}
    ours = wl.diff(wl.asarray(x), axis=axis, n=n, **{k: wl.asarray(v) for k, v in extra.items()})
    np.testing.assert_array_equal(ours.numpy(), np.diff(x, axis=axis, n=n, **extra))


def test_differences_of_bools_and_with_numbers_at_the_edges() -> None:
    np.testing.assert_array_equal(wl.diff(wl.tensor([True, False, False])).numpy(), [True, False])
    np.testing.assert_array_equal(wl.diff(wl.tensor([1, 4]), prepend=0, append=9).numpy(), [1, 3, 5])


def test_std_of_equal_elements_has_gradient_zero() -> None:
    np.testing.assert_array_equal(wl.grad(wl.std)(wl.ones(3)).numpy(), np.zeros(3))
    with pytest.warns(RuntimeWarning, match="correction"):
        assert np.isnan(wl.var(wl.ones(1), correction=1).item())


@pytest.mark.parametrize("n", [0, 1, 2, 5])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("ends", [{}, {"prepend": 1.5}, {"append": 2.5}, {"prepend": 0.5, "append": "several"}])
def test_differences_are_those_of_numpy(n, axis, ends):
    x = np.random.default_rng(0).normal(size=(3, 4))
    several = np.ones((2, 4) if axis == 0 else (3, 2))
    ends = {name: several if value == "several" else value for name, value in ends.items()}
    expected = np.diff(x, n, axis, **ends)
    found = wl.diff(wl.asarray(x), n=n, axis=axis, **{k: wl.asarray(v) for k, v in ends.items()})
    assert found.shape == expected.shape
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "a, b, axis",
    [
        ((2, 3), (1, 3), 0),
        ((2, 3), (2, 1), 1),
        ((3,), (2, 3), 1),
        ((3,), (2, 3), -1),
        ((2, 1, 4), (5, 1), 1),
        ((2, 3), (2, 3), 0),
    ],
)
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_cosines_are_those_of_the_common_shape(a, b, axis, backend):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=a), rng.normal(size=b)
    u, v = np.broadcast_arrays(x, y)
    expected = (u * v).sum(axis) / np.sqrt((u * u).sum(axis) * (v * v).sum(axis))
    with wl.using_backend(backend):
        found = wl.jit(lambda x, y: wl.cosine_similarity(x, y, axis=axis))(wl.asarray(x), wl.asarray(y))
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12)
