"""Products of half precision: in every direction, beyond one chunk and one part of a sum, and by pairs of terms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.engines.engines import native
from wonderland.engines.native.machine import machine
from wonderland.engines.native.products import narrow
from wonderland.engines.native.text.builder import splat, typed
from wonderland.engines.native.text.routine import Routine

SIZES = [(4, 5, 9), (17, 33, 29), (130, 300, 70), (33, 2100, 24)]
EPS = {"bfloat16": 2.0**-8, "float16": 2.0**-11}


def numbers(*shape: int, seed: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def check(low: str, m: int, k: int, n: int, turned: tuple[bool, bool], lead: tuple[int, ...] = ()) -> None:
    """A product with an epilogue beside NumPy's in float64."""
    x = wl.asarray(numbers(*lead, *((k, m) if turned[0] else (m, k)), seed=0)).astype(low)
    y = wl.asarray(numbers(*lead, *((n, k) if turned[1] else (k, n)), seed=1)).astype(low)

    def f(x: wl.Tensor, y: wl.Tensor) -> wl.Tensor:
        return (x.mT if turned[0] else x) @ (y.mT if turned[1] else y) - 1.0

    program, arrays = native(f, x, y)
    a, b = (np.asarray(v.astype(wl.float64)) for v in (x, y))
    wanted = (a.swapaxes(-1, -2) if turned[0] else a) @ (b.swapaxes(-1, -2) if turned[1] else b) - 1.0
    found = np.asarray(wl.asarray(program(arrays)[0]).astype(wl.float64))
    # rounded twice, before and after the subtraction
    assert np.abs(found - wanted).max() <= 2 * EPS[low] * (1 + np.abs(wanted).max())


@pytest.mark.parametrize("low", EPS)
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_every_direction_and_size(low: str, turned: tuple[bool, bool]) -> None:
    for m, k, n in SIZES:
        check(low, m, k, n, turned)
    check(low, 9, 20, 18, turned, lead=(3,))


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_pairs_of_terms(monkeypatch: pytest.MonkeyPatch, turned: tuple[bool, bool]) -> None:
    """What would be one instruction, in two, so that this processor runs it."""

    def dot(r: Routine, total: str, x: str, y: str, w: int) -> str:
        b, kind, pairs = r.b, typed("float", w), typed("i32", w)
        for op, number in (("shl", "16"), ("and", "-65536")):
            parts = [b.emit(f"{op} {pairs} {v}, {splat(number, 'i32', w)}") for v in (x, y)]
            one, other = (b.emit(f"bitcast {pairs} {v} to {kind}") for v in parts)
            total = b.intrinsic("fmuladd", kind, one, other, total)
        return total

    monkeypatch.setattr(narrow, "dot", dot)
    monkeypatch.setattr(machine(), "cpu", machine().cpu._replace(pairs_of_bfloat16=True))
    for m, k, n in SIZES:
        check("bfloat16", m, k, n, turned)


def test_factors_are_not_copied() -> None:
    """The one piece of memory beside arguments and results holds parts of sums."""
    x, y = (wl.asarray(numbers(256, 256, seed=s)).astype(wl.bfloat16) for s in (0, 1))
    assert wl.explain(wl.matmul, x, y).arena_bytes == 0
