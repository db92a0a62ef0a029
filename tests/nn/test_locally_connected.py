"""Locally connected layers: against loops over places, tied convolutions, and the book's matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import ShapeError

LAYERS = {1: nn.LocallyConnected1d, 2: nn.LocallyConnected2d, 3: nn.LocallyConnected3d}
CONV = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


@pytest.mark.book("7-15", name=("wl.nn.LocallyConnected1d", "wl.nn.LocallyConnected2d"))
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_with_tied_weights_it_is_a_convolution(axes):
    """Its gradient, summed over the places, is that of the convolution."""
    options = {"stride": 2, "padding": 1, "dilation": 1, "dtype": wl.float64}
    x = wl.asarray(normal(2, *(6, 5, 4)[:axes], 2))
    conv, local = CONV[axes](2, 3, 3, **options), LAYERS[axes](2, 3, 3, input_size=x.shape[1:-1], **options)
    places = local.weight.shape[:axes]
    matrix = np.asarray(conv.weight).reshape(-1, 3)
    local.load_state_dict(
        {
            "weight": wl.asarray(np.broadcast_to(matrix, (*places, *matrix.shape)).copy()),
            "bias": wl.asarray(np.broadcast_to(np.asarray(conv.bias), (*places, 3)).copy()),
        }
    )
    np.testing.assert_allclose(local(x), conv(x), rtol=1e-11, atol=1e-12)
    loss = lambda m, x: wl.sin(m(x)).sum()
    tied, free = wl.grad(loss)(conv, x), wl.jit(wl.grad(loss))(local, x)
    over = tuple(range(axes))
    np.testing.assert_allclose(
        np.asarray(free["weight"]).sum(over).reshape(conv.weight.shape), tied["weight"], rtol=1e-10, atol=1e-12
    )
    np.testing.assert_allclose(np.asarray(free["bias"]).sum(over), tied["bias"], rtol=1e-10, atol=1e-12)


@pytest.mark.book("7-15", "7-08", name=("wl.nn.LocallyConnected2d", "wl.nn.count_weights"))
def test_numbers_of_weights():
    layer = nn.LocallyConnected2d(3, 2, 3, input_size=(6, 5), padding=1, bias=False)
    counts = nn.count_weights((6, 5, 3), 2, 3)
    assert layer.num_parameters() == 6 * 5 * 9 * 3 * 2 == counts.local
    assert counts.dense == nn.Linear(90, 60, bias=False).num_parameters()
    assert counts.local / counts.dense == 9 / 30
    # the book's image of 1024 x 1024, which nobody could allocate
    assert nn.count_weights((1024, 1024, 3), 3, 3).dense == (1024 * 1024 * 3) ** 2 == 9895604649984


@pytest.mark.book("7-16", "7-18", "7-11", name=("wl.nn.LocallyConnected1d", "wl.nn.conv_matrix"))
def test_the_banded_matrix():
    """Ten weights of the twelve matter; zeros on both sides make the shortened filters at the ends."""
    layer = nn.LocallyConnected1d(1, 1, 3, input_size=4, padding=1, bias=False, dtype=wl.float64)
    layer.load_state_dict({"weight": wl.arange(1.0, 13.0, dtype=wl.float64).reshape(4, 3, 1)})
    matrix = np.asarray(nn.conv_matrix(layer, (4, 1)))
    np.testing.assert_array_equal(matrix, [[2, 3, 0, 0], [4, 5, 6, 0], [0, 7, 8, 9], [0, 0, 10, 11]])
    assert np.count_nonzero(matrix) == 10
    x = normal(4)
    wide = np.zeros((4, 6))
    for i in range(4):
        wide[i, i : i + 3] = np.arange(1, 4) + 3 * i
    np.testing.assert_allclose(layer(x[:, None])[:, 0], wide @ np.concatenate([[0], x, [0]]), rtol=1e-12)


def test_the_first_input_decides_the_size():
    lazy = nn.LocallyConnected2d(2, 3, 2)
    assert lazy(wl.ones((4, 5, 2))).shape == (3, 4, 3)
    assert lazy.input_size == (4, 5)
    assert lazy(wl.ones((2, 2, 4, 5, 2))).shape == (2, 2, 3, 4, 3)
    assert lazy.summary((1, 4, 5, 2)).rows[0].multiply_adds == 12 * 3 * 8


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nn.LocallyConnected1d(2, 3, 3, input_size=5)(wl.ones((6, 2))), r"input of shape \(6, 2\)"),
        (lambda: nn.LocallyConnected1d(2, 3, 3)(wl.ones((6, 3))), r"input of shape \(6, 3\)"),
        (lambda: nn.LocallyConnected1d(2, 3, 7, input_size=5), r"window of shape \(7,\).*does not fit"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ShapeError, match=message):
        call()
