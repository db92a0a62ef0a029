"""Philox in native code."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl
import wonderland.random
from tests.engines.engines import chunks, same
from wonderland.core.primitive import TABLE
from wonderland.primitives.random_bits import philox

random_bits = TABLE["random_bits"]
keys = st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))


@given(st.lists(keys, min_size=1, max_size=3), st.lists(st.integers(1, 40), max_size=2), st.integers(0, 2))
def test_bits_are_the_same(some: Any, shape: Any, domain: int) -> None:
    same(lambda k: random_bits(k, shape=tuple(shape), domain=domain), np.array(some, np.uint32))
    same(lambda k: random_bits(k, shape=tuple(shape), domain=domain), np.array(some[0], np.uint32))


def test_long_draws_are_shared_out() -> None:
    program = same(lambda k: random_bits(k, shape=(301, 1003), domain=0), np.array([3, 4], np.uint32), threads=True)
    assert chunks(program) > 1
    bits = program([np.array([3, 4], np.uint32)])[0].ravel()
    number = 70_001
    assert bits[4 * number : 4 * number + 4].tolist() == list(philox((number, 0, 0, 0), (3, 4)))


def test_draws_of_many_keys_are_shared_out() -> None:
    some = np.random.default_rng(0).integers(0, 2**32, (4000, 2)).astype(np.uint32)
    assert chunks(same(lambda k: random_bits(k, shape=(5,), domain=1), some, threads=True)) > 1


def test_draws_are_the_same_on_both_backends() -> None:
    key = wl.random.key(7)
    f = wl.jit(lambda key: [wl.random.uniform((3, 50), key=key), wl.random.bernoulli((40,), 0.3, key=key)])
    want = f(key)
    with wl.using_backend("native"):
        for x, y in zip(f(key), want, strict=True):
            np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
