"""Products of a few rows with a large matrix, as in decoding, against float64 and on one thread against two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.engines.engines import chunks, native, on_threads
from wonderland.engines.native.products.by_rows import ByRows
from wonderland.engines.native.products.packing import Pack
from wonderland.engines.native.products.streamed import Streamed

TOLERANCE = {np.dtype(np.float64): 1e-13, np.dtype(np.float32): 1e-5, np.dtype(np.float16): 2e-3, wl.bfloat16: 2e-2}
SHAPES: list[tuple[tuple[int, ...], int, int]] = [
    ((), 768, 1155),  # parts of the sum
    ((), 1301, 777),  # a sum that does not divide
    ((), 300, 5021),  # stretches of columns, the last of them short
    ((3,), 400, 600),
]


def check(f: Any, *args: Any, kind: type) -> None:
    program, arrays = native(f, *args)
    assert kind in {type(step) for step in program.schedule.steps}
    (got,) = on_threads(program, arrays, (1, 2))
    want = np.asarray(f(*(wl.tensor(a.astype(np.float64)) for a in args)))
    tolerance = TOLERANCE[got.dtype]
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=0, atol=tolerance * np.abs(want).max())
    assert chunks(program) > 1


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("rows", [1, 3])
def test_rows_are_streamed(rows: int, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    for lead, k, n in SHAPES:
        x, w = rng.normal(size=(*lead, rows, k)).astype(dtype), rng.normal(size=(*lead, k, n)).astype(dtype)
        bias = rng.normal(size=n).astype(dtype)
        check(lambda x, w, bias: wl.tanh(x @ w / 8) + bias, x, w, bias, kind=Streamed)


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_tied_weights_are_read_along_their_rows(dtype: Any) -> None:
    """x w^T, where no copy of w is made, and the same turned."""
    rng = np.random.default_rng(1)
    x, w = rng.normal(size=(1, 333)).astype(dtype), rng.normal(size=(5001, 333)).astype(dtype)
    check(lambda x, w: x @ w.mT, x, w, kind=ByRows)
    program, _ = native(lambda x, w: x @ w.mT, x, w)
    assert all(step.views[0].shape != w.shape[::-1] for step in program.schedule.steps if isinstance(step, Pack))
    check(lambda x, w: w @ x.mT, x, w, kind=ByRows)


def test_what_is_not_finite_goes_where_it_belongs() -> None:
    x, w = np.ones((2, 400), np.float32), np.ones((400, 1001), np.float32)
    w[7, 1000], w[399, 3], x[1, 5] = np.nan, np.inf, -np.inf
    program, arrays = native(lambda x, w: x @ w, x, w)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(program(arrays)[0], x @ w)
