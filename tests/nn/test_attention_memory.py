"""Memory of attention in a compiled program: linear in the sequence, for every kind that promises it."""

from __future__ import annotations

from typing import Any

import pytest

import wonderland as wl
from benchmarks.sequences import forward, kinds, training
from wonderland import nn


@pytest.mark.book("11.27", name="wl.nn.MultiHeadAttention")
@pytest.mark.parametrize("name, settings, masked", kinds(), ids=[kind[0] for kind in kinds()])
def test_twice_the_tokens_take_twice_the_memory(name: str, settings: dict[str, Any], masked: bool) -> None:
    layer = nn.MultiHeadAttention(64, 4, **settings)
    for program in (forward, training):
        short, long = (program(layer, n, masked) for n in (512, 1024))
        assert 1.9 * short < long < 2.1 * short


def test_a_matrix_of_weights_takes_four_times_the_memory() -> None:
    layer = nn.MultiHeadAttention(64, 4)
    weights = wl.jit(lambda layer, x: wl.sum(layer(x, return_weights=True)[0]))
    short, long = (wl.explain(weights, layer, wl.ones((1, n, 64))).arena_bytes for n in (512, 1024))
    assert long > 3 * short
