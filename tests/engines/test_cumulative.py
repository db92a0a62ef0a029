"""Running sums, products and extremes, and the places of extremes, in native code: bits as NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl
from tests.engines.engines import chunks, same
from wonderland.core.primitive import TABLE

DTYPES = [np.float32, np.float64, np.float16, wl.bfloat16, np.int8, np.int64, np.uint32, np.bool_]


@st.composite
def tensors(draw: Any) -> tuple[Any, int]:
    shape = tuple(draw(st.lists(st.integers(1, 40), min_size=1, max_size=3)))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    x = rng.integers(-4, 5, shape) if dtype.kind in "iu" else rng.normal(size=shape).astype(np.float32)
    return x.astype(dtype), draw(st.integers(0, len(shape) - 1))


@given(tensors(), st.booleans(), st.sampled_from(["cumsum", "cumprod", "cummax", "cummin"]))
def test_running_forms_agree(tensor: Any, reverse: bool, name: str) -> None:
    x, axis = tensor
    same(lambda x: TABLE[name](x, axis=axis, reverse=reverse), x)


@given(tensors(), st.sampled_from(["argmax", "argmin"]))
def test_extremes_are_found_where_numpy_finds_them(tensor: Any, name: str) -> None:
    x, axis = tensor
    if x.dtype == wl.bfloat16 or x.dtype.kind == "f":
        x = np.round(x)  # ties, and zeros of both signs
        x[np.random.default_rng(0).random(x.shape) < 0.05] = np.nan
    same(lambda x: TABLE[name](x, axis=axis), x)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(3, 70, 1000), (500, 3, 333), (2, 40000, 3)], ids=str)
def test_large_ones_are_shared_out(shape: Any, axis: int) -> None:
    # whole numbers: their sums are the same in any order
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32)
    for name in ("cumsum", "argmax"):
        params = {"axis": axis} | ({"reverse": True} if name == "cumsum" else {})
        program = same(lambda x, name=name, params=params: TABLE[name](x, **params), x, threads=True)
        assert chunks(program) > 1 or shape[-1] == 3


def test_arguments_are_computed_on_the_way() -> None:
    x = np.random.default_rng(0).normal(size=(50, 40)).astype(np.float32)
    program = same(lambda x: [wl.cumsum(x * 2, axis=0), wl.argmax(-x, axis=1)], x)
    assert [type(step).__name__ for step in program.schedule.steps] == ["Running", "Where"]


def test_the_first_of_equal_elements_is_found_in_long_rows() -> None:
    x = np.zeros((3, 1003), np.float32)
    x[1, [700, 77, 1002]] = 5
    x[2, [900, 33]] = np.nan
    program = same(lambda x: [wl.argmax(x, axis=1), wl.argmin(x, axis=1)], x)
    assert [out.tolist() for out in program([x])] == [[0, 77, 33], [0, 0, 33]]
