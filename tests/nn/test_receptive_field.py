"""Receptive fields by closed form and by gradients; convolutions as matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, SizeError

F = nn.functional


def normal(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


def stack(count: int, kernel: int, **options: Any) -> nn.Sequential:
    return nn.Sequential(*[layer for _ in range(count) for layer in (nn.Conv1d(1, 1, kernel, **options), wl.tanh)])


@pytest.mark.book("7-36", "A6-22", name=("wl.nn.receptive_field", "wl.nn.gradient_footprint"))
@pytest.mark.parametrize("count, kernel", [(1, 3), (2, 3), (3, 5)])
def test_it_grows_linearly(count, kernel):
    model = stack(count, kernel)
    side = 1 + count * (kernel - 1)
    assert nn.receptive_field(model).size == (side,)
    footprint = nn.gradient_footprint(model, (side + 6, 1), place=3)
    assert footprint.size == (side,)
    assert footprint.box == nn.receptive_field(model).window(3)
    if (count, kernel) == (2, 3):
        assert side == 5


@pytest.mark.book("7-37", "7-39", name="wl.nn.receptive_field")
def test_strides_and_pooling():
    block = lambda: nn.Sequential(nn.Conv2d(1, 1, 3), nn.Conv2d(1, 1, 3), nn.AvgPool2d(2))
    model = nn.Sequential(block(), block())
    field = nn.receptive_field(model)
    assert (field.size, field.jump, field.start) == ((16, 16), (4, 4), (0, 0))
    assert [layer.size[0] for layer in field.layers] == [3, 5, 6, 10, 14, 16]
    assert [layer.path for layer in field.layers] == ["0.0", "0.1", "0.2", "1.0", "1.1", "1.2"]
    assert nn.gradient_footprint(model, (24, 24, 1), place=(0, 1)).box == field.window(0, 1)


@pytest.mark.book("8-46", name="wl.nn.receptive_field")
@pytest.mark.parametrize("levels", [1, 2, 3, 4])
def test_dilations_make_it_grow_exponentially(levels):
    model = nn.Sequential(*[nn.Conv1d(1, 1, 3, dilation=2**i) for i in range(levels)])
    assert nn.receptive_field(model).size == (1 + 2 * (2**levels - 1),)
    if levels == 3:
        assert nn.receptive_field(model).size == (15,)
        assert nn.receptive_field(stack(3, 3)).size == (7,)
        causal = nn.Sequential(*[nn.CausalConv1d(1, 1, 2, dilation=2**i) for i in range(3)])
        field = nn.receptive_field(causal)
        assert (field.size, field.start) == ((8,), (-7,))
        assert nn.gradient_footprint(causal, (12, 1), place=9).box == field.window(9) == (slice(2, 10),)


def test_all_kinds_of_layers_against_gradients():
    model = nn.Sequential(
        nn.Conv2d(2, 4, (3, 1), stride=(2, 1), padding=(1, 0)),
        wl.tanh,
        nn.Residual(nn.Sequential(nn.SeparableConv2d(4, 4, 3, padding=1), wl.tanh, nn.Conv2d(4, 4, 3, padding=1))),
        nn.LayerNorm(4),
        nn.LPPool2d(2, 2, stride=1),
        nn.Conv2d(4, 2, 2, dilation=(1, 3)),
    )
    field = nn.receptive_field(model)
    for place in ((2, 2), (3, 4)):
        assert nn.gradient_footprint(model, (20, 14, 2), place=place).box == field.window(*place)
    assert repr(field) == f"ReceptiveField(size={field.size}, jump={field.jump}, start={field.start})"


def test_what_sees_everything():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.GlobalAvgPool())
    field = nn.receptive_field(model)
    assert field.size == (math.inf, math.inf)
    assert field.window(0, 0) == (slice(None), slice(None))


@pytest.mark.book("7-50", name="wl.nn.gradient_footprint")
def test_cells_of_the_output_are_regions_of_the_input():
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), wl.tanh, nn.AvgPool2d(4), nn.Conv2d(4, 1, 1))
    assert model.output_shape((8, 8, 1)) == (2, 2, 1)
    values = nn.gradient_footprint(model, (8, 8, 1), place=(0, 0)).values
    centre = (np.indices(values.shape) * values).sum((1, 2)) / values.sum()
    assert (centre < 3.5).all()
    assert values[6:].sum() == values[:, 6:].sum() == 0


@pytest.mark.book("A6-23", name="wl.nn.gradient_footprint")
def test_the_effective_field_is_a_bell():
    """Ones as kernels: the gradient is a binomial-like bell, concentrated in the middle."""
    layers = [nn.Conv1d(1, 1, 3, bias=False, init=nn.init.constant(1 / 3)) for _ in range(10)]
    values = nn.gradient_footprint(nn.Sequential(*layers), (31, 1), place=5).values
    bell = np.ones(1)
    for _ in range(10):
        bell = np.convolve(bell, np.ones(3) / 3)
    np.testing.assert_allclose(values[5:26], bell, rtol=1e-4, atol=1e-7)
    # two thirds of it within a third of the receptive field of 21
    assert bell[7:14].sum() > 0.66


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nn.receptive_field(nn.Linear(2, 3)), "Linear has no layer with windows"),
        (lambda: nn.receptive_field(nn.Sequential(nn.ConvTranspose1d(1, 1, 3))), "ConvTranspose1d at '0'"),
        (lambda: nn.receptive_field(nn.Sequential(nn.Conv1d(1, 1, 3), nn.Conv2d(1, 1, 3))), "2 spatial axes"),
        (lambda: nn.receptive_field(nn.Sequential(nn.Conv1d(1, 1, 3), nn.GRU(1, 1))), "GRU at '1'"),
        (
            lambda: nn.receptive_field(nn.Sequential(nn.Conv1d(1, 1, 3), nn.Bidirectional(nn.GRUCell(1, 1)))),
            "Bidirectional at '1'",
        ),
        (lambda: nn.gradient_footprint(nn.Conv1d(1, 1, 3), (5, 1), place=3), "place=3"),
    ],
)
def test_errors(call, message):
    with pytest.raises(InputError, match=message):
        call()


# --- matrices


@pytest.mark.book("7-28", "A6-15", "7-24", name="wl.nn.conv_matrix")
def test_a_convolution_is_a_toeplitz_matrix():
    w = normal(3, 1, 1)
    matrix = np.asarray(nn.conv_matrix(lambda x: F.conv1d(x, w, padding=1), (6, 1), dtype=wl.float64))
    for offset in range(-5, 6):
        assert np.ptp(np.diag(matrix, offset)) < 1e-15  # constant diagonals
    assert len(np.unique(np.round(matrix[matrix != 0], 12))) == 3  # as many numbers as the kernel has
    assert np.count_nonzero(matrix) == 3 * 6 - 2
    back = nn.conv_matrix(lambda y: F.conv_transpose1d(y, w, padding=1), (6, 1), dtype=wl.float64)
    np.testing.assert_allclose(back, matrix.T, rtol=1e-12)


@pytest.mark.book("7-28", "A6-15", name="wl.nn.conv_matrix")
@pytest.mark.parametrize(
    "layer, shape",
    [
        (nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2, dtype=wl.float64), (4, 5, 2)),
        (nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular", dtype=wl.float64), (4, 4, 1)),
        (nn.Conv3d(1, 2, 2, dtype=wl.float64), (2, 3, 3, 1)),
        (nn.ConvTranspose2d(2, 1, 3, stride=2, dtype=wl.float64), (2, 3, 2)),
        (nn.LocallyConnected1d(2, 3, 3, input_size=5, dtype=wl.float64), (5, 2)),
        (nn.MaskedConv2d("A", 1, 2, 3, dtype=wl.float64), (3, 3, 1)),
        (nn.AvgPool2d(2), (4, 4, 2)),
        (nn.Upsample(scale_factor=2, mode="bilinear"), (3, 2, 2)),
        (nn.Unfold(2), (3, 4, 1)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_any_linear_layer_has_a_matrix(layer, shape):
    matrix = np.asarray(nn.conv_matrix(layer, shape, dtype=wl.float64))
    x, zero = normal(1, *shape), np.zeros((1, *shape))
    linear = np.asarray(layer(x)) - np.asarray(layer(zero))
    np.testing.assert_allclose(matrix @ x.ravel(), linear.ravel(), rtol=1e-10, atol=1e-12)
    f = lambda x: layer(x)
    v = normal(*linear.shape, seed=1)
    (pulled,) = wl.vjp(f, wl.asarray(x))[1](wl.asarray(v))
    np.testing.assert_allclose(np.asarray(pulled).ravel(), matrix.T @ v.ravel(), rtol=1e-10, atol=1e-12)


def test_no_matrix():
    with pytest.raises(InputError, match=r"Sequential.* is not linear"):
        nn.conv_matrix(nn.Sequential(nn.Conv1d(1, 1, 3), wl.relu), (6, 1))
    with pytest.raises(SizeError, match="elements"):
        nn.conv_matrix(nn.Conv2d(1, 1, 3, padding=1), (200, 200, 1))
