"""Elementwise functions against NumPy: every dtype, broadcasting, empty and 0-d tensors, numbers, NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import wonderland as wl

FLOATS = ("float16", "bfloat16", "float32", "float64")
REALS = FLOATS + ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
COMPLEX = ("complex64", "complex128")
SHAPES = ((), (3,), (2, 3), (0,), (2, 0, 3))

RNG = np.random.default_rng(0)

# name: (NumPy's function, the interval to draw from, also for complex numbers?)
UNARY: dict[str, tuple[Callable[..., Any], float, float, bool]] = {
    "abs": (np.abs, -3, 3, True),
    "acos": (np.arccos, -1, 1, True),
    "acosh": (np.arccosh, 1, 3, True),
    "angle": (np.angle, -3, 3, True),
    "asin": (np.arcsin, -1, 1, True),
    "asinh": (np.arcsinh, -3, 3, True),
    "atan": (np.arctan, -3, 3, True),
    "atanh": (np.arctanh, -0.9, 0.9, True),
    "ceil": (np.ceil, -3, 3, False),
    "conj": (np.conj, -3, 3, True),
    "cos": (np.cos, -3, 3, True),
    "cosh": (np.cosh, -3, 3, True),
    "exp": (np.exp, -3, 3, True),
    "exp2": (lambda x: 2.0**x, -3, 3, True),
    "expm1": (np.expm1, -3, 3, True),
    "floor": (np.floor, -3, 3, False),
    "imag": (np.imag, -3, 3, True),
    "log": (np.log, 0.1, 3, True),
    "log10": (np.log10, 0.1, 3, True),
    "log1p": (np.log1p, -0.9, 3, True),
    "log2": (np.log2, 0.1, 3, True),
    "negative": (np.negative, -3, 3, True),
    "positive": (np.positive, -3, 3, True),
    "real": (np.real, -3, 3, True),
    "reciprocal": (lambda x: 1 / x, 0.5, 3, True),
    "round": (np.round, -3, 3, True),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 0.5, 3, True),
    "sign": (np.sign, -3, 3, True),
    "sin": (np.sin, -3, 3, True),
    "sinh": (np.sinh, -3, 3, True),
    "sqrt": (np.sqrt, 0, 3, True),
    "square": (np.square, -3, 3, True),
    "tan": (np.tan, -1, 1, True),
    "tanh": (np.tanh, -3, 3, True),
    "trunc": (np.trunc, -3, 3, False),
}
BINARY: dict[str, tuple[Callable[..., Any], float, float, bool]] = {
    "add": (np.add, -3, 3, True),
    "atan2": (np.arctan2, -3, 3, False),
    "copysign": (np.copysign, -3, 3, False),
    "divide": (np.divide, 0.5, 3, True),
    "floor_divide": (np.floor_divide, 1, 5, False),
    "hypot": (np.hypot, -3, 3, False),
    "logaddexp": (np.logaddexp, -3, 3, False),
    "maximum": (np.maximum, -3, 3, False),
    "minimum": (np.minimum, -3, 3, False),
    "multiply": (np.multiply, -3, 3, True),
    "pow": (np.power, 0.5, 3, True),
    "remainder": (np.remainder, 1, 5, False),
    "subtract": (np.subtract, -3, 3, True),
}
COMPARE: dict[str, Callable[..., Any]] = {
    "equal": np.equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "not_equal": np.not_equal,
}
EPSILON = {"bfloat16": 2e-2, "float16": 4e-3, "float32": 1e-5, "complex64": 1e-5}


def draw(shape: tuple[int, ...], dtype: str, low: float, high: float) -> np.ndarray:
    """Numbers of a dtype in an interval; unsigned ones from its positive part."""
    dtype_ = wl.asarray(0, dtype=dtype).dtype
    if dtype_.kind == "u":
        low = max(low, 0)
    values = np.asarray(RNG.uniform(low, high, shape))
    if dtype_.kind == "c":
        values = values + 1j * RNG.uniform(low, high, shape)
    return np.asarray(values).astype(dtype_)


def same(ours: wl.Tensor, theirs: Any, dtype: str) -> None:
    """Equal in shape, and in value to the precision of the dtype that went in."""
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    wide = complex if theirs.dtype.kind == "c" else float
    tolerance = EPSILON.get(dtype, 1e-12 if dtype in ("float64", "complex128") else 1e-5)
    np.testing.assert_allclose(ours.numpy().astype(wide), theirs.astype(wide), rtol=tolerance, atol=tolerance)


@pytest.mark.book("2.05", "2.24", name="wl.exp")
@pytest.mark.parametrize("dtype", (*REALS, *COMPLEX))
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_argument(name: str, dtype: str) -> None:
    oracle, low, high, takes_complex = UNARY[name]
    if dtype in COMPLEX and not takes_complex:
        with pytest.raises(wl.errors.DTypeError):
            getattr(wl, name)(wl.ones(2, dtype=dtype))
        return
    for shape in SHAPES:
        data = draw(shape, dtype, low, high)
        ours = getattr(wl, name)(wl.asarray(data))
        exact = data.astype(np.complex128 if dtype in COMPLEX else np.float64)
        if dtype.startswith(("int", "uint")) and name in (
            "abs",
            "negative",
            "positive",
            "sign",
            "square",
            "conj",
        ):
            exact = data  # integers stay integers
            assert ours.dtype == data.dtype
        with np.errstate(all="ignore"):
            same(ours, oracle(exact), dtype)
        if data.dtype.kind not in "iu":
            real = wl.real(wl.asarray(data)).dtype
            kept = real if name in ("abs", "angle", "real", "imag") else data.dtype
            assert ours.dtype == kept


@pytest.mark.book("2.05", "2.07", "2.23", name="wl.add")
@pytest.mark.parametrize("dtype", (*REALS, *COMPLEX))
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_arguments_broadcast(name: str, dtype: str) -> None:
    oracle, low, high, takes_complex = BINARY[name]
    if dtype in COMPLEX and not takes_complex:
        with pytest.raises(wl.errors.DTypeError):
            getattr(wl, name)(wl.ones(2, dtype=dtype), wl.ones(2, dtype=dtype))
        return
    for left, right in (((3,), (3,)), ((2, 1), (3,)), ((), (2, 3)), ((2, 0, 1), (1, 4)), ((1,), ())):
        a, b = draw(left, dtype, low, high), draw(right, dtype, low, high)
        ours = getattr(wl, name)(wl.asarray(a), wl.asarray(b))
        wide = np.complex128 if dtype in COMPLEX else np.float64
        whole = dtype.startswith(("int", "uint")) and name in (
            "add", "subtract", "multiply", "pow", "floor_divide", "remainder", "maximum", "minimum",
        )  # fmt: skip
        with np.errstate(all="ignore"):
            expected = (
                oracle(a, b)
                if whole or name in ("floor_divide", "remainder")
                else oracle(a.astype(wide), b.astype(wide))
            )
        same(ours, expected, dtype)
        if whole or not dtype.startswith(("int", "uint")):
            assert ours.dtype == a.dtype
        else:
            assert ours.dtype == wl.float32


@pytest.mark.parametrize("dtype", (*REALS, *COMPLEX, "bool"))
@pytest.mark.parametrize("name", COMPARE)
def test_comparisons_and_logic(name: str, dtype: str) -> None:
    if dtype in COMPLEX and name in ("greater", "greater_equal", "less", "less_equal"):
        with pytest.raises(wl.errors.DTypeError):
            getattr(wl, name)(wl.ones(2, dtype=dtype), wl.ones(2, dtype=dtype))
        return
    for left, right in (((3,), (3,)), ((2, 1), (3,)), ((), (2, 3)), ((0,), (1,))):
        a, b = (
            np.round(draw(shape, "float64", 0, 2)).astype(wl.asarray(0, dtype=dtype).dtype) for shape in (left, right)
        )
        ours = getattr(wl, name)(wl.asarray(a), wl.asarray(b))
        assert ours.dtype == wl.bool
        np.testing.assert_array_equal(ours.numpy(), COMPARE[name](a, b))


@pytest.mark.parametrize("dtype", ("bool", "int8", "int64", "uint8", "uint64"))
def test_bits(dtype: str) -> None:
    a = np.array([[0, 1], [1, 1]]).astype(dtype)
    b = np.array([0, 1]).astype(dtype)
    x, y = wl.asarray(a), wl.asarray(b)
    np.testing.assert_array_equal((x & y).numpy(), a & b)
    np.testing.assert_array_equal((x | y).numpy(), a | b)
    np.testing.assert_array_equal((x ^ y).numpy(), a ^ b)
    np.testing.assert_array_equal((~x).numpy(), ~a)
    if dtype != "bool":
        np.testing.assert_array_equal((x << y).numpy(), a << b)
        np.testing.assert_array_equal((x >> y).numpy(), a >> b)
        np.testing.assert_array_equal((1 << x).numpy(), 1 << a)
    else:
        with pytest.raises(wl.errors.DTypeError):
            _ = x << y
    with pytest.raises(wl.errors.DTypeError):
        _ = wl.ones(2) & wl.ones(2)


@pytest.mark.parametrize("dtype", FLOATS)
def test_functions_for_single_numbers(dtype: str) -> None:
    values = np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan]).astype(wl.asarray(0, dtype=dtype).dtype)
    x = wl.asarray(values)
    wide = values.astype(np.float64)
    np.testing.assert_array_equal(wl.isnan(x).numpy(), np.isnan(wide))
    np.testing.assert_array_equal(wl.isinf(x).numpy(), np.isinf(wide))
    np.testing.assert_array_equal(wl.isfinite(x).numpy(), np.isfinite(wide))
    np.testing.assert_array_equal(wl.signbit(x).numpy()[:-1], np.signbit(wide)[:-1])
    after = wl.nextafter(wl.ones(1, dtype=dtype), 2.0)
    assert after.dtype == dtype
    assert float(after[0]) - 1 == wl.finfo(dtype).eps
    np.testing.assert_allclose(wl.nan_to_num(x, 7.0, 8.0, 9.0).numpy().astype(float), [0, 0, 1.5, -1.5, 8, 9, 7])
    assert float(wl.nan_to_num(x).max()) == wl.finfo(dtype).max


def test_extremes_propagate_nan() -> None:
    x = wl.tensor([1.0, math.nan, 3.0])
    assert bool(wl.isnan(wl.maximum(x, 2.0)[1]))
    assert bool(wl.isnan(wl.minimum(2.0, x)[1]))
    for dtype in FLOATS:
        y = x.astype(dtype)
        assert math.isnan(y.max().item())
        assert math.isnan(y.min().item())


@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
        elements=st.floats(-5, 5),
    ),
    st.none() | st.floats(-5, 0),
    st.none() | st.floats(0, 5),
)
def test_clip(data: np.ndarray, low: float | None, high: float | None) -> None:
    ours = wl.clip(wl.asarray(data), low, high)
    expected = data if low is None and high is None else np.clip(data, low, high)
    np.testing.assert_array_equal(ours.numpy(), expected)


def test_clip_keeps_integers_and_widens_for_fractions() -> None:
    x = wl.tensor([-3, 0, 3])
    assert wl.clip(x, -1, 1).dtype == wl.int64
    np.testing.assert_array_equal(wl.clip(x, -0.5, 0.5).numpy(), [-0.5, 0.0, 0.5])
    low, high = wl.tensor([-1.0, 0.0]), wl.tensor([[0.5], [2.0]])
    np.testing.assert_array_equal(wl.clip(wl.tensor([5.0, -5.0]), low, high).numpy(), [[0.5, 0.0], [2.0, 0.0]])
    gradient = wl.grad(lambda x: wl.clip(x, 0.0, 1.0).sum())(wl.tensor([-1.0, 0.0, 0.5, 1.0, 2.0]))
    np.testing.assert_array_equal(gradient.numpy(), [0, 1, 1, 1, 0])


def test_where() -> None:
    mask = np.array([[True], [False]])
    a, b = np.arange(3.0), np.arange(3.0) + 10
    np.testing.assert_array_equal(wl.where(wl.asarray(mask), a, b).numpy(), np.where(mask, a, b))
    assert wl.where(wl.asarray(mask), 1, 2.5).dtype == wl.float32
    assert wl.where(wl.asarray(mask), wl.ones(1, dtype="int8"), 2).dtype == wl.int8
    assert wl.where(True, 1, 2).item() == 1
    np.testing.assert_array_equal(wl.where(wl.tensor([0, 2]), 1, 0).numpy(), [0, 1])  # numbers are true if not zero


def test_closeness() -> None:
    a = np.array([1.0, np.nan, np.inf, -np.inf, 0.0])
    b = np.array([1.0 + 1e-9, np.nan, np.inf, np.inf, 1e-9])
    np.testing.assert_array_equal(wl.isclose(a, b).numpy(), np.isclose(a, b))
    np.testing.assert_array_equal(wl.isclose(a, b, equal_nan=True).numpy(), np.isclose(a, b, equal_nan=True))
    assert wl.allclose(wl.ones(3), wl.ones(3) + 1e-7)
    assert not wl.allclose(wl.ones(3), wl.ones(3) + 1e-3)
    assert wl.array_equal(wl.ones(3), np.ones(3))
    assert not wl.array_equal(wl.ones(3), wl.ones(1))


@pytest.mark.parametrize("dtype", ("bool", *REALS, *COMPLEX))
def test_python_numbers_take_the_type_of_the_tensor(dtype: str) -> None:
    x = wl.ones(2, dtype=dtype)
    kind = 0 if dtype == "bool" else 1 if "int" in dtype else 2 if "complex" not in dtype else 3
    assert (x + 2).dtype == (wl.int64 if kind == 0 else dtype)
    assert (2 * x).dtype == (wl.int64 if kind == 0 else dtype)
    assert (x + 0.5).dtype == (wl.float32 if kind < 2 else dtype)
    assert (x + 1j).dtype == (dtype if kind == 3 else "complex128" if dtype == "float64" else "complex64")
    assert (x + True).dtype == dtype
    assert wl.maximum(x, 1).dtype == (wl.int64 if kind == 0 else dtype) if kind < 3 else True
    assert (x / 2).dtype == (dtype if kind >= 2 else wl.float32)
    assert (x == 1).dtype == wl.bool


def test_a_number_that_does_not_fit_is_refused() -> None:
    with pytest.raises(wl.errors.DTypeError, match="300 does not fit into uint8"):
        _ = wl.ones(2, dtype="uint8") + 300
    with pytest.raises(wl.errors.DTypeError):
        _ = wl.ones(2, dtype="uint8") * -1
    with pytest.raises(wl.errors.DTypeError, match="list"):
        _ = wl.ones(2) + [1, 2]


@pytest.mark.parametrize("name", ("floor", "square", "negative", "sign"))
def test_bools_are_not_numbers(name: str) -> None:
    with pytest.raises(wl.errors.DTypeError, match=name):
        getattr(wl, name)(wl.tensor([True]))


@pytest.mark.parametrize("name", ("subtract", "pow", "floor_divide", "remainder", "matmul"))
def test_bools_have_no_arithmetic(name: str) -> None:
    with pytest.raises(wl.errors.DTypeError, match="bool"):
        getattr(wl, name)(wl.tensor([True]), wl.tensor([True]))
    np.testing.assert_array_equal((wl.tensor([True, False]) + wl.tensor([True, True])).numpy(), [True, True])
    np.testing.assert_array_equal((wl.tensor([True, False]) * wl.tensor([True, True])).numpy(), [True, False])


def test_integer_powers() -> None:
    x = wl.tensor([2, 3])
    np.testing.assert_array_equal((x**3).numpy(), [8, 27])
    np.testing.assert_array_equal((2**x).numpy(), [4, 8])
    with pytest.raises(wl.errors.WonderlandError, match="negative power"):
        _ = x**-1
    np.testing.assert_allclose((x**-1.0).numpy(), [1 / 2, 1 / 3], rtol=1e-6)


def test_complex_sign_has_a_derivative() -> None:
    z = wl.tensor([3 + 4j, 0j], wl.complex128)
    np.testing.assert_allclose(wl.sign(z).numpy(), [0.6 + 0.8j, 0])
    # d/dy of Re(z / |z|) at z = 3 + 4i is -x y / |z|^3
    gradient = wl.grad(lambda z: wl.real(wl.sign(z)).sum())(z[:1])
    np.testing.assert_allclose(gradient.numpy(), [16 / 125 - 12j / 125])


def test_special_functions_against_scipy() -> None:
    special = pytest.importorskip("scipy.special")
    x = np.linspace(-6, 6, 401)
    np.testing.assert_allclose(wl.erf(x).numpy(), special.erf(x), rtol=1e-14, atol=0)
    np.testing.assert_allclose(wl.erfc(x).numpy(), special.erfc(x), rtol=1e-13, atol=0)
    y = np.linspace(-1, 1, 401)
    np.testing.assert_allclose(wl.erfinv(y).numpy(), special.erfinv(y), rtol=1e-13)
    np.testing.assert_allclose(wl.xlogy(x, np.abs(x)).numpy(), special.xlogy(x, np.abs(x)), rtol=1e-14)
