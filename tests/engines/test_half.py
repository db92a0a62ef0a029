"""Numbers of bfloat16: rounded to the nearest, once, whatever is done with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.engines.engines import native, same
from wonderland.engines.native.machine import machine
from wonderland.engines.native.text.builder import Builder, narrow, shortened
from wonderland.engines.numpy.evaluate import evaluate

LOW = np.dtype(wl.bfloat16)


def every_upper_half(lower: int) -> Any:
    """All float32 numbers whose bits end with the same sixteen."""
    return ((np.arange(1 << 16, dtype=np.uint32) << 16) | np.uint32(lower)).view(np.float32)


@pytest.mark.parametrize("lower", [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF])
def test_every_number_is_rounded_to_the_nearest(lower: int) -> None:
    """By integers, from the definition: to the nearest of two neighbours, of which an even one wins a tie."""
    x = every_upper_half(lower)
    program, arrays = native(lambda x: wl.astype(x, wl.bfloat16), x)
    found = program(arrays)[0]
    bits = x.view(np.uint32).astype(np.uint64)
    below = bits >> 16
    up = (lower > 0x8000) | ((lower == 0x8000) & (below & 1 == 1))
    nan = np.isnan(x)
    np.testing.assert_array_equal(found.view(np.uint16)[~nan], (below + up)[~nan])
    assert np.isnan(found[nan].astype(np.float32)).all()


def test_what_is_rounded_is_not_rounded_again() -> None:
    b = Builder(set(), machine().cpu)
    once = shortened(b, "%x", 8)
    lines = len(b.lines)
    assert shortened(b, once, 8) == once
    assert len(b.lines) == lines
    narrow(b, once, LOW, 8)
    assert not any(" add " in line for line in b.lines[lines:])


def test_operations_that_need_no_rounding() -> None:
    """Of constants that are no numbers of bfloat16, too."""

    def f(x: wl.Tensor, y: wl.Tensor) -> Any:
        chosen = wl.where(x > y, x, 0.1)
        return chosen, wl.maximum(x, 0.3), wl.abs(-wl.minimum(x, y)), wl.nn.functional.relu(x) + 0.1, x * y[:1]

    x, y = (np.random.default_rng(seed).normal(size=(5, 67)).astype(LOW) for seed in (0, 1))
    same(f, x, y)
    x[0, :3] = np.nan, np.inf, -np.inf
    program, arrays = native(f, x, y)
    for found, wanted in zip(program(arrays), evaluate(program.graph, arrays), strict=True):
        np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(np.float32))


@pytest.mark.parametrize("odd", [wl.atan, wl.erf, lambda y: wl.copysign(wl.exp(y), y)])
def test_the_sign_of_what_was_computed_in_float64(odd: Any) -> None:
    """One number of float16: no function is asked for that would round it from float64."""
    for x in (0.3, -0.3):
        program, arrays = native(lambda x: odd(wl.sinh(x)), np.float16(x))
        np.testing.assert_allclose(program(arrays)[0], evaluate(program.graph, arrays)[0], rtol=2e-3)
