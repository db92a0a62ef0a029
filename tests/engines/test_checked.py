"""Operations on integers, and conversions to them, in native code: NumPy's numbers and our errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl
from tests.engines.engines import raises_alike, same
from wonderland.core.primitive import TABLE

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float32, np.float64, np.float16, wl.bfloat16]


def full_range(rng: Any, dtype: Any, size: int) -> Any:
    info = np.iinfo(dtype)
    some = rng.integers(info.min, info.max, size, dtype=dtype, endpoint=True)
    some[:6] = [info.min, info.max, 0, 1, info.min, np.array(-1).astype(dtype)]
    small = rng.integers(0, 5, size).astype(dtype)
    return np.where(rng.random(size) < 0.5, some, small)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
def test_integers_are_divided_as_by_numpy(name: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = full_range(rng, dtype, 500), full_range(rng, dtype, 500)
    y[y == 0] = 3
    x[:2], y[:2] = np.iinfo(dtype).min, np.array(-1).astype(dtype)
    with np.errstate(all="ignore"):
        same(lambda x, y: TABLE[name](x, y), x, y)
        same(lambda x: TABLE[name](x, wl.asarray(np.array(7, dtype))), x)
    assert f"{name}: {np.dtype(dtype)}[500] with a second argument of 0" in raises_alike(
        lambda x, y: TABLE[name](x, y), x, y - y[7]
    )


@pytest.mark.parametrize("part", ["slice", "step", "window"])
def test_what_is_refused_is_found_also_where_nobody_looks(part: str) -> None:
    """A part is taken of what may refuse: NumPy computes all of it, and so must native code."""
    x, y = np.arange(6000).reshape(60, 100), np.ones((60, 100), int)
    y[7, 99] = 0
    index = {"slice": np.s_[:, :3], "step": np.s_[::2], "window": np.s_[:]}[part]

    def taken(z: Any) -> Any:
        if part != "window":
            return z[index] + 1
        return wl.nn.functional.max_pool2d(z[None, :, :, None].astype(wl.float64), 1, stride=9)

    assert "second argument of 0" in raises_alike(lambda x, y: taken(x // y), x, y)
    assert "out of range" in raises_alike(lambda x, y: taken(wl.take(x, (1 - y) * 60, axis=0)[..., 0]), x, y)
    y[7, 99] = 1
    same(lambda x, y: taken(x // y), x, y)
    same(lambda x, y: taken(wl.take(x, y - 1, axis=0)[..., 0]), x, y)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_shifts_and_powers_of_integers(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = full_range(rng, dtype, 300), rng.integers(0, 100, 300).astype(dtype)
    for name in ("bitwise_left_shift", "bitwise_right_shift", "power"):
        same(lambda x, y, name=name: TABLE[name](x, y), x, y)
        if np.dtype(dtype).kind == "i":
            y[-1] = -2
            raises_alike(lambda x, y, name=name: TABLE[name](x, y), x, y)
            y[-1] = 0


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_floats_become_integers_without_their_fractions(dtype: Any, source: Any) -> None:
    info = np.iinfo(dtype)
    top = min(float(info.max), float(wl.finfo(source).max) if source != np.float64 else 1e300) * 0.99
    low = max(float(info.min), -top)
    x = np.random.default_rng(0).uniform(low, top, 333).astype(source)
    x[:4] = np.array([0.0, 0.99, 1.5, -0.75]).astype(source)
    same(lambda x: TABLE["astype"](x, dtype=np.dtype(dtype)), x)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("source", FLOATS, ids=str)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -(2.0**63) * 1.5, 2.0**64])
def test_numbers_without_counterpart_raise(dtype: Any, source: Any, bad: float) -> None:
    x = np.ones((5, 7), np.float64).astype(source)
    with np.errstate(over="ignore"):
        x[3, 4] = np.float64(bad).astype(source)
    assert "has no" in raises_alike(lambda x: TABLE["astype"](x, dtype=np.dtype(dtype)), x)


def test_the_ends_of_a_type_are_held() -> None:
    x = np.array([-128.9, 127.9, -128.0, 127.0], np.float32)
    same(lambda x: TABLE["astype"](x, dtype=wl.int8), x)
    for bad in (-129.0, 128.0):
        raises_alike(lambda x: TABLE["astype"](x, dtype=wl.int8), np.array([bad], np.float32))


def test_lanes_that_do_not_count_are_not_checked() -> None:
    """Behind the end of a row there are zeros, whose inverse is no integer."""
    same(lambda x: (1 / x).astype(wl.int32) // (x.astype(wl.int32)), np.ones((3, 17), np.float32))


@given(st.integers(1, 40), st.sampled_from(FLOATS), st.sampled_from(["floor_divide", "remainder", "nextafter"]))
def test_floats_are_divided_as_by_numpy(size: int, dtype: Any, name: str) -> None:
    rng = np.random.default_rng(size)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 3.0, -0.5, 1e-30, 7.25])
    x, y = (rng.choice(special, size) if rng.random() < 0.5 else rng.normal(size=size) * 5 for _ in range(2))
    x, y = np.asarray(x).astype(dtype), np.asarray(y).astype(dtype)
    with np.errstate(all="ignore"):
        same(lambda x, y: TABLE[name](x, y), x, y)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_signs_are_those_of_the_bits(dtype: Any) -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, 1.0, -2.0, np.nan, np.copysign(np.nan, -1)] * 3).astype(dtype)
    same(wl.signbit, x)


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round"])
def test_rounding_leaves_integers_alone(name: str) -> None:
    same(TABLE[name], np.arange(-5, 40))


def test_logarithms_of_sums_of_exponentials() -> None:
    ends = np.array([np.inf, -np.inf, 0.0, 1e30, -1e30, np.nan, 3.0])
    for dtype, rtol in ((np.float64, 1e-14), (np.float32, 3e-7)):
        x = np.concatenate([np.repeat(ends, 7), np.random.default_rng(0).normal(size=200) * 20]).astype(dtype)
        y = np.concatenate([np.tile(ends, 7), np.random.default_rng(1).normal(size=200) * 20]).astype(dtype)
        same(wl.logaddexp, x, y, rtol=rtol, atol=rtol)


def test_the_inverse_of_the_error_function() -> None:
    import scipy.special

    near = 1 - np.logspace(-16, -1, 300)
    y = np.concatenate([np.linspace(-0.9999, 0.9999, 501), near, -near, [0.0, -0.0, 1e-300, 1, -1, 1.5, np.nan]])
    program = same(TABLE["erfinv"], y, rtol=1e-11)
    np.testing.assert_allclose(program([y])[0], scipy.special.erfinv(y), rtol=2e-13)
    same(TABLE["erfinv"], y.astype(np.float32), rtol=2e-7)


@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 20), st.sampled_from(INTEGERS))
def test_matrix_products_of_integers(m: int, k: int, n: int, dtype: Any) -> None:
    rng = np.random.default_rng(m)
    x, y = rng.integers(0, 50, (2, m, k)).astype(dtype), rng.integers(0, 50, (k, n)).astype(dtype)
    same(lambda x, y: [x @ y, y.T @ x.mT], x, y)


@pytest.mark.parametrize("name", ["sum", "prod", "any", "all"])
def test_reductions_of_nothing(name: str) -> None:
    x = np.ones((0, 3), np.bool_ if name in ("any", "all") else np.float32)
    same(lambda x: TABLE[name](x, axes=(0,)), x)


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "power", "bitwise_left_shift"])
def test_nothing_is_refused_where_nothing_is_computed(name: str) -> None:
    nothing, bad = np.ones((0, 1), np.int64), np.array([0 if name in ("floor_divide", "remainder") else -1])
    same(lambda x, y: TABLE[name](x, y), nothing, bad)
    same(lambda x, y: TABLE[name](x, y), nothing.T, bad)
