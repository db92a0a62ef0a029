"""Pooling by XLA: its own reductions over windows, and nothing larger than what goes in."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn

pytest.importorskip("jax")

F = nn.functional
X = wl.asarray(np.random.default_rng(0).normal(size=(2, 24, 24, 3)).astype(np.float32))
POOLS: dict[str, Callable[[wl.Tensor], wl.Tensor]] = {
    "max": lambda x: F.max_pool2d(x, 3, stride=2, padding=1),
    "max of overlapping": lambda x: F.max_pool2d(x, 5, stride=1),
    "mean": lambda x: F.avg_pool2d(x, 3, stride=2),
    "mean of overlapping": lambda x: F.avg_pool2d(x, 5, stride=1),
}


def largest(text: str) -> int:
    """The elements of the largest array of a program."""
    return max(math.prod(int(n) for n in sizes.split("x") if n) for sizes in re.findall(r"tensor<((?:\d+x)+)", text))


@pytest.mark.parametrize("which", POOLS)
def test_windows_are_reduced_where_they_are(which: str) -> None:
    """A window of 25 elements that was written out would take 25 times the room, and a stack of 25 slices, too."""
    pool = POOLS[which]
    forward = wl.export_stablehlo(pool, X, platforms=["cpu", "cuda", "tpu"]).text
    both = wl.export_stablehlo(wl.value_and_grad(lambda x: pool(x).sum()), X, platforms=["cpu", "cuda", "tpu"]).text
    assert "stablehlo.reduce_window" in forward
    assert both.count("stablehlo.reduce_window") + both.count("stablehlo.scatter") >= 1 + ("max" in which)
    for text in (forward, both):
        assert largest(text) <= 3 * 2 * 28 * 28 * 3  # what goes in, with a margin; three indices for each element
        assert "stablehlo.convolution" not in text
