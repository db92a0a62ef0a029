"""Sums over tokens: with a table of weights, with a function of the distance, by content, and alike for all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import close_array
from wonderland import nn
from wonderland.errors import InputError, ShapeError

F = nn.functional


def normal(*shape: int, seed: int = 0) -> Any:
    return wl.asarray(np.random.default_rng([seed, *shape]).normal(size=shape))


# --- plain convolutions in token form


@pytest.mark.book("10.04", name=("wl.nn.Conv1d", "wl.nn.functional.conv1d"))
@pytest.mark.parametrize("k", [0, 1, 3])
def test_a_convolution_of_tokens_has_its_taps_flipped(k):
    """h_i = sum_j W_j x_{i+k+1-j}, j = 1 .. 2k+1: j = 1 meets x_{i+k}, and conv1d has that tap last."""
    n, e = 6, 3
    W, x = np.asarray(normal(2 * k + 1, e, e)), np.asarray(normal(n, e))  # W_j as in the book, applied to columns
    h = np.zeros((n, e))
    for i in range(n):
        for j in range(1, 2 * k + 2):
            if 0 <= i + k + 1 - j < n:
                h[i] += W[j - 1] @ x[i + k + 1 - j]
    taps = W[::-1].transpose(0, 2, 1)  # weights are (in, out)
    close_array(F.conv1d(x, taps, padding="same"), h)
    if k:
        assert np.abs(np.asarray(F.conv1d(x, W.transpose(0, 2, 1), padding="same")) - h).max() > 1e-3


@pytest.mark.book("10.05", name="wl.nn.Conv1d")
def test_parameters_grow_with_the_receptive_field():
    e = 4
    counts = {k: nn.Conv1d(e, e, 2 * k + 1, bias=False).num_parameters() for k in (1, 2, 4)}
    assert counts == {k: (2 * k + 1) * e**2 for k in counts}
    assert [c / counts[1] * 3 for c in counts.values()] == [3, 5, 9]
    for k in counts:
        assert nn.receptive_field(nn.Conv1d(e, e, 2 * k + 1)).size == (2 * k + 1,)


# --- continuous ones


@pytest.mark.book("10.06", name=("wl.nn.ContinuousConv1d", "wl.nn.ImplicitKernel"))
@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_long_convolution_with_an_implicit_kernel(depthwise, causal):
    e = 3
    g = nn.ImplicitKernel(e, None if depthwise else 4, hidden=5, dtype=wl.float64)
    layer = nn.ContinuousConv1d(g, causal=causal)
    assert layer.num_parameters() == 2 * 5 + 5 * e * (1 if depthwise else 4)
    for n in (1, 10, 100):  # the same parameters at any length
        x = normal(n, e)
        distances = np.subtract.outer(np.arange(n), np.arange(n)).astype(float)
        kernel = np.asarray(g(distances).detach())
        kernel = kernel * (distances >= 0).reshape(n, n, *[1] * (kernel.ndim - 2)) if causal else kernel
        formula = "ijc,jc->ic" if depthwise else "ijcd,jc->id"
        close_array(layer(x), np.einsum(formula, kernel, np.asarray(x)), 1000)
        assert layer(normal(2, 4, n, e)).shape == (2, 4, n, 3 if depthwise else 4)
    x = normal(2, 6, e)
    wl.check_grads(lambda m, a: m(a), (layer, x))
    close_array(wl.jit(lambda m, a: m(a))(layer, x), layer(x))
    assert nn.is_causal(layer, x[0]) == causal


@pytest.mark.book("10.06", name="wl.nn.ContinuousConv1d")
def test_g_is_evaluated_once_at_all_distances():
    seen = []

    def g(t):
        seen.append(t.shape)
        return wl.exp(-abs(t))[..., None]

    nn.ContinuousConv1d(g)(wl.ones((5, 7, 1)))
    assert seen == [(13,)]  # 2n - 1


@pytest.mark.book("10.07", name="wl.nn.ContinuousConv1d")
def test_positions_between_the_whole_numbers():
    layer = nn.ContinuousConv1d(nn.ImplicitKernel(2, 3, dtype=wl.float64))
    x = normal(6, 2)
    close_array(layer(x, positions=np.arange(6.0)), layer(x))
    fine = np.arange(-5, 5.5, 0.5)
    close_array(layer.kernel(fine)[::2], layer.kernel(np.arange(-5.0, 6.0)))
    # every second token of a finer grid has the outputs of the coarse one if those between are zeros
    twice = wl.zeros((11, 2), dtype=wl.float64).at[::2].set(x)
    close_array(layer(twice, positions=np.arange(0, 5.5, 0.5))[::2], layer(x))
    # only distances matter, and each row may have positions of its own
    rows = wl.stack([x, x])
    places = np.stack([np.arange(6.0), np.arange(6.0) * 0.7])
    close_array(layer(rows, positions=places)[0], layer(x))
    close_array(layer(rows, positions=places)[1], layer(x, positions=places[1] + 3.0))
    wl.check_grads(lambda m, a, p: m(a, positions=p), (layer, rows, wl.asarray(places)))
    # the positions of padding may be anything
    mask = np.arange(6) < np.array([[4], [6]])
    padded = layer(rows, positions=np.where(mask, places, np.nan), token_mask=mask)
    close_array(padded[0, :4], layer(x[:4]))
    close_array(padded[1], layer(x, positions=places[1]))


@pytest.mark.book("10.08", name=("wl.nn.ContinuousConv1d", "wl.nn.KernelTable"))
@pytest.mark.parametrize("k", [0, 1, 2])
def test_a_table_for_g_is_a_plain_convolution(k):
    conv = nn.Conv1d(3, 4, 2 * k + 1, padding="same", bias=False, dtype=wl.float64)
    g = nn.KernelTable(conv.weight.detach()[::-1])
    layer = nn.ContinuousConv1d(g)
    for n in (1, 2, 9):
        x = normal(2, n, 3)
        np.testing.assert_allclose(layer(x).detach(), conv(x).detach(), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(
            layer(x, positions=np.arange(1.0 * n)).detach(), conv(x).detach(), rtol=1e-12, atol=1e-12
        )
    beyond = wl.tensor([-k - 2.0, -k - 1.0, k + 1.0])
    assert not g(beyond).any()
    wl.check_grads(lambda m, a: m(a), (layer, normal(2, 5, 3)))
    # each channel by itself
    depthwise = nn.Conv1d(3, 3, 2 * k + 1, padding="same", groups=3, bias=False, dtype=wl.float64)
    table = nn.KernelTable(depthwise.weight.detach()[::-1, 0])
    close_array(nn.ContinuousConv1d(table)(x := normal(7, 3)), depthwise(x))


def test_bad_kernels_and_positions():
    layer = nn.ContinuousConv1d(nn.ImplicitKernel(3, 4))
    with pytest.raises(ShapeError, match=r"positions of shape \(4,\)"):
        layer(wl.ones((2, 5, 3)), positions=np.arange(4.0))
    with pytest.raises(ShapeError, match=r"g gives \(3, 4\) for a distance"):
        layer(wl.ones((2, 5, 2)))
    with pytest.raises(ShapeError, match=r"g gives \(5, 5, 3, 4\)"):
        layer(wl.ones((2, 5, 2)), positions=np.arange(5.0))
    with pytest.raises(ShapeError, match=r"g gives \(9,\) for distances of shape \(9,\)"):
        nn.ContinuousConv1d(wl.cos)(wl.ones((5, 1)))
    with pytest.raises(ShapeError, match="without tokens"):
        layer(wl.ones((2, 0, 3)))
    with pytest.raises(InputError, match="scale=0"):
        nn.ImplicitKernel(3, 4, scale=0)
    with pytest.raises(ShapeError, match="2k"):
        nn.KernelTable(wl.ones((4, 2)))


# --- by content


class Pairwise(nn.Module):
    """A small network from a pair of tokens to a matrix."""

    def __init__(self, e: int, out: int) -> None:
        self.first = nn.Linear(2 * e, 6, dtype=wl.float64)
        self.last = nn.Linear(6, e * out, dtype=wl.float64)
        self.shape = (e, out)

    def forward(self, a: Any, b: Any) -> Any:
        y = self.last(wl.tanh(self.first(wl.concat([a, b], axis=-1))))
        return wl.reshape(y, (*y.shape[:-1], *self.shape))


@pytest.mark.book("10.09", name="wl.nn.NonLocal")
def test_the_non_local_layer():
    e, n = 3, 5
    g = Pairwise(e, 2)
    layer, x = nn.NonLocal(g), normal(2, n, e)
    h = [[sum(x[b, j] @ g(x[b, i], x[b, j]) for j in range(n)) for i in range(n)] for b in range(2)]
    close_array(layer(x), np.array([[np.asarray(v.detach()) for v in row] for row in h]))
    order = np.array([3, 1, 4, 0, 2])
    nn.assert_equivariant(layer, x[0], lambda a: wl.asarray(a)[order], rtol=1e-12)
    # weights follow the content of a token, not its place
    moved = x.at[0, 4].set(normal(e, seed=1))
    assert (np.abs(np.asarray(g(x[0, 0], moved[0, 4]) - g(x[0, 0], x[0, 4]))) > 1e-6).any()
    assert (np.abs(np.asarray(layer(moved)[0, 0] - layer(x)[0, 0])) > 1e-6).all()
    wl.check_grads(lambda m, a: m(a), (layer, x))
    close_array(wl.jit(lambda m, a: m(a))(layer, x), layer(x))
    # numbers and diagonals are matrices that need less room
    full = nn.NonLocal(lambda a, b: wl.sin((a * b).sum(-1))[..., None, None] * wl.eye(e, dtype=wl.float64))
    close_array(nn.NonLocal(lambda a, b: wl.sin((a * b).sum(-1)))(x), full(x))
    diagonal = nn.NonLocal(lambda a, b: (a - b)[..., None] * wl.eye(e, dtype=wl.float64))
    close_array(nn.NonLocal(lambda a, b: a - b)(x), diagonal(x))
    with pytest.raises(ShapeError, match=r"g gives \(5, 5, 2\)"):
        nn.NonLocal(lambda a, b: (a - b)[..., :2])(x[0])


@pytest.mark.book("10.10", name="wl.nn.dependence")
def test_which_tokens_reach_which():
    """A convolution does not see tokens outside of its field; a continuous one and a non-local one see all."""
    x = normal(6, 2)
    near = np.abs(np.subtract.outer(np.arange(6), np.arange(6))) <= 1
    np.testing.assert_array_equal(nn.dependence(nn.Conv1d(2, 2, 3, padding="same"), x), near)
    assert nn.dependence(nn.ContinuousConv1d(nn.ImplicitKernel(2, 2)), x).all()
    assert nn.dependence(nn.NonLocal(Pairwise(2, 2)), x).all()
    # of the first two, weights are those of the offset: the same for each token; of the third, of the content
    layer = nn.ContinuousConv1d(nn.ImplicitKernel(2, 2, dtype=wl.float64))
    jacobian = wl.jacobian(layer)(x)
    close_array(jacobian[3, :, 4], layer.kernel(-1.0).mT)
    close_array(jacobian[3, :, 1], layer.kernel(2.0).mT)
    close_array(jacobian[4, :, 5], jacobian[3, :, 4])


# --- sets


def test_deep_sets_commute_with_permutations():
    layer, x = nn.DeepSets(3, 2, dtype=wl.float64), normal(5, 3)
    close_array(layer(x), x @ layer.own.weight + x.mean(axis=0) @ layer.mean.weight + layer.own.bias)
    order = np.array([3, 1, 4, 0, 2])
    nn.assert_equivariant(layer, x, lambda a: wl.asarray(a)[order], rtol=1e-12)
    assert nn.check_invariance(lambda a: layer(a).mean(axis=0), x, lambda a: wl.asarray(a)[order]) < 1e-12
    # with one feature it is lambda I + gamma 1 1'
    one = nn.DeepSets(1, 1, bias=False, dtype=wl.float64)
    n, matrix = 5, np.asarray(wl.jacobian(lambda a: one(a[:, None])[:, 0])(normal(5)))
    close_array(matrix, one.own.weight.item() * np.eye(n) + one.mean.weight.item() / n * np.ones((n, n)))
