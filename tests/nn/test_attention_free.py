"""The attention-free transformer: loops over channels and tokens as oracle, stability, and what is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, WonderlandError


def numbers(*shape: int, seed: int = 0, dtype: Any = np.float64) -> wl.Tensor:
    return wl.tensor(np.random.default_rng(seed).normal(size=shape).astype(dtype))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def by_hand(layer: Any, x: wl.Tensor, w: np.ndarray | None = None) -> np.ndarray:
    """sigma(q_iz) sum_j exp(k_jz + W_ij) v_jz / sum_j exp(k_jz + W_ij), for tokens (n, e)."""
    q, k, v = (np.asarray(part(x)) for part in (layer.query, layer.key, layer.value))
    n, e = q.shape
    out = np.zeros((n, e))
    for i in range(n):
        seen = range(i + 1) if layer.causal else range(n)
        for z in range(e):
            weights = {j: np.exp(k[j, z] + (0 if w is None else w[i, j])) for j in seen}
            out[i, z] = sum(a * v[j, z] for j, a in weights.items()) / sum(weights.values())
    return sigmoid(q) * out


@pytest.mark.book("13.54", name="wl.nn.AFTSimple")
@pytest.mark.parametrize("causal", [False, True])
def test_simple(causal: bool) -> None:
    layer, x = nn.AFTSimple(4, causal, dtype=wl.float64, key=wl.random.key(0)), numbers(9, 4)
    np.testing.assert_allclose(layer(x), by_hand(layer, x), rtol=1e-12)
    fraction = np.asarray(layer(x)) / sigmoid(np.asarray(layer.query(x)))
    assert np.allclose(fraction, fraction[0]) is not causal  # the same for all i, if it is not causal
    assert layer.num_parameters() == 3 * 16 + 3 * 4
    assert nn.AFTSimple(4, output=True).num_parameters() == 4 * (16 + 4)
    wl.check_grads(lambda x: layer(x), (x,))


@pytest.mark.book("13.54", name="wl.nn.AFTSimple")
def test_simple_is_linear_in_tokens_and_channels() -> None:
    """Beside its three products with weights, 3 n e^2, all that it does grows as n e."""
    for causal in (False, True):
        costs = {}
        for n, e in ((32, 8), (64, 8), (32, 16)):
            layer = nn.AFTSimple(e, causal, bias=False)
            costs[n, e] = wl.count(lambda x, layer=layer: layer(x), wl.ones((n, e))).multiply_adds - 3 * n * e * e
        assert 1.9 < costs[64, 8] / costs[32, 8] < 2.1
        assert 1.9 < costs[32, 16] / costs[32, 8] < 2.1


@pytest.mark.book("13.55", name="wl.nn.AFTSimple")
def test_each_channel_attends_by_itself() -> None:
    """h_iz = sigma(q_iz) sum_j softmax_j(k_jz) v_jz; with v_jz outside of the sum, as printed, it is something else."""
    layer, x = nn.AFTSimple(4, dtype=wl.float64, key=wl.random.key(1)), numbers(9, 4)
    q, k, v = (np.asarray(part(x)) for part in (layer.query, layer.key, layer.value))
    weights = np.exp(k) / np.exp(k).sum(axis=0)
    np.testing.assert_allclose(layer(x), sigmoid(q) * (weights * v).sum(axis=0), atol=1e-15)
    printed = sigmoid(q)[:, None] * weights.sum(axis=0) * v[None]  # (i, j, z), of whatever j
    assert np.abs(printed - np.asarray(layer(x))[:, None]).max(axis=(0, 2)).min() > 0.01


@pytest.mark.book("13.56", name="wl.nn.AFTFull")
@pytest.mark.parametrize("rank", [None, 2])
@pytest.mark.parametrize("causal", [False, True])
def test_full(causal: bool, rank: int | None) -> None:
    layer = nn.AFTFull(4, 80, rank, causal, dtype=wl.float64, key=wl.random.key(0))
    for cell in (layer.weight, layer.left, layer.right):
        if cell is not None:
            cell.assign(numbers(*cell.shape, seed=7))
    w = np.asarray(layer.biases())
    for n in (1, 9, 70):  # more than one block, and fewer tokens than places
        x = numbers(n, 4)
        np.testing.assert_allclose(layer(x), by_hand(layer, x, w), rtol=1e-10)
    wl.check_grads(lambda x: layer(x), (numbers(5, 4),))
    q, k, v = (np.asarray(part(x)) for part in (layer.query, layer.key, layer.value))
    if not causal:  # as products of matrices
        a = np.exp(w[:70, :70])
        np.testing.assert_allclose(layer(x), sigmoid(q) * (a @ (np.exp(k) * v)) / (a @ np.exp(k)), rtol=1e-10)


@pytest.mark.book("13.56", name="wl.nn.AFTFull")
@pytest.mark.parametrize("causal", [False, True])
def test_without_biases_full_is_simple(causal: bool) -> None:
    full, simple = nn.AFTFull(4, 50, causal=causal, dtype=wl.float64), nn.AFTSimple(4, causal, dtype=wl.float64)
    full.weight.assign(wl.zeros((50, 50), dtype=wl.float64))
    simple.load_state_dict({name: value for name, value in full.state_dict().items() if name != "weight"})
    x = numbers(2, 50, 4)
    np.testing.assert_allclose(full(x), simple(x), rtol=1e-10)


@pytest.mark.book("13.56", name="wl.nn.AFTFull")
@pytest.mark.parametrize("causal", [False, True])
def test_large_exponents(causal: bool) -> None:
    """exp(200) is infinite in float32: one largest element is subtracted from k, and one from W."""
    narrow = nn.AFTFull(3, 40, causal=causal, key=wl.random.key(0))
    wide = nn.AFTFull(3, 40, causal=causal, dtype=wl.float64, key=wl.random.key(0))
    narrow.weight.assign(numbers(40, 40, dtype=np.float32) + 300 * numbers(40, 1, seed=1, dtype=np.float32))
    narrow.key.bias.assign(wl.tensor(np.array([200.0, -200.0, 90.0], np.float32)))
    wide.load_state_dict({name: value.astype(wl.float64) for name, value in narrow.state_dict().items()})
    x = numbers(2, 40, 3, dtype=np.float32)
    found = np.asarray(narrow(x))
    with np.errstate(over="ignore", invalid="ignore"):
        assert not np.isfinite(np.exp(np.asarray(narrow.key(x)))).all()
    np.testing.assert_allclose(found, wide(x.astype(wl.float64)), rtol=2e-3, atol=1e-4)
    grads = wl.grad(lambda m: (m(x) ** 2).sum())(narrow)
    assert all(np.isfinite(np.asarray(g)).all() for g in grads.values())


@pytest.mark.book("13.57", name="wl.nn.AFTFull")
def test_low_rank_biases() -> None:
    low, full = nn.AFTFull(4, 30, rank=3), nn.AFTFull(4, 30)
    simple = nn.AFTSimple(4).num_parameters()
    assert low.num_parameters() - simple == 2 * 30 * 3
    assert full.num_parameters() - simple == 30 * 30
    np.testing.assert_allclose(low.biases(), np.asarray(low.left) @ np.asarray(low.right).T, rtol=1e-5)
    assert np.linalg.matrix_rank(np.asarray(low.biases())) == 3


LAYERS: dict[str, Callable[[], Any]] = {
    "simple": lambda: nn.AFTSimple(8, causal=True),
    "full": lambda: nn.AFTFull(8, 9, causal=True),
    "low rank": lambda: nn.AFTFull(8, 9, rank=2, causal=True, output=True, bias=False),
}


@pytest.mark.book("13.58", "13.12", name="wl.nn.AFTSimple.step")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_causal_layers_read_on(name: str, compiled: bool) -> None:
    nn.assert_sequence_layer(LAYERS[name](), numbers(3, 7, 8, dtype=np.float32), compiled=compiled)


@pytest.mark.book("13.58", name="wl.nn.AFTSimple.step")
def test_the_state_is_two_vectors_and_a_largest_exponent() -> None:
    layer, x = nn.AFTSimple(5, causal=True, dtype=wl.float64), 50 * numbers(2, 40, 5)
    cache = layer.new_cache(2)
    for i in range(40):
        y, cache = layer.step(x[:, i], cache)
        for row in range(2):
            np.testing.assert_allclose(y[row], by_hand(layer, x[row, : i + 1])[-1], rtol=1e-9)
    assert {name: value.shape for name, value in cache.state.items()} == {
        "numerator": (2, 5), "denominator": (2, 5), "largest": (2, 5),
    }  # fmt: skip
    k, v = np.asarray(layer.key(x)), np.asarray(layer.value(x))
    np.testing.assert_allclose(cache.state["largest"], k.max(axis=1))
    np.testing.assert_allclose(
        cache.state["denominator"], np.exp(k - k.max(axis=1, keepdims=True)).sum(axis=1), rtol=1e-10
    )
    np.testing.assert_allclose(
        cache.state["numerator"], (np.exp(k - k.max(axis=1, keepdims=True)) * v).sum(axis=1), rtol=1e-9
    )


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("make", [lambda: nn.AFTSimple(8), lambda: nn.AFTFull(8, 9), lambda: nn.AFTFull(8, 9, 2)])
def test_layers_that_see_all(make: Callable[[], Any], compiled: bool) -> None:
    layer, x = make(), numbers(3, 7, 8, dtype=np.float32)
    nn.assert_padding_ignored(layer, x, compiled=compiled)
    nn.assert_rows_alone(layer, x, compiled=compiled)
    nn.assert_threads_agree(layer, x)
    if isinstance(layer, nn.AFTSimple):
        nn.assert_order_free(layer, x, compiled=compiled)
    for call in (lambda: layer.new_cache(2), lambda: layer.extend(x), lambda: layer.step(x[:, 0])):
        with pytest.raises(InputError, match=r"reads on, but its tokens see what comes later(.|\n)*causal=True"):
            call()


def test_places_are_counted_over_real_tokens() -> None:
    """Holes in a sequence do not shift the biases."""
    for causal in (False, True):
        layer, x = nn.AFTFull(4, 20, causal=causal, dtype=wl.float64), numbers(1, 12, 4)
        layer.weight.assign(numbers(20, 20, seed=3))
        mask = np.array([[0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1, 0]], bool)
        found = np.asarray(layer(x, token_mask=mask))
        np.testing.assert_allclose(found[mask], layer(wl.tensor(np.asarray(x)[mask])), rtol=1e-10)
        assert (found[~mask] == 0).all()


def test_no_room_for_more() -> None:
    layer = nn.AFTFull(4, 5, causal=True)
    with pytest.raises(InputError, match=r"AFTFull\(4, 5, causal=True\): 6 tokens, and biases for 5 places"):
        layer(wl.ones((1, 6, 4)))
    _, cache = layer.extend(wl.ones((2, 4, 4)))
    _, cache = layer.extend(wl.ones((2, 3, 4)), cache, lengths=[1, 0])
    with pytest.raises(InputError, match=r"6 tokens, and biases for 5 places"):
        layer.step(wl.ones((2, 4)), cache)
    with pytest.raises(WonderlandError, match="5"):  # a place beyond the last
        wl.jit(lambda layer, x, cache: layer.step(x, cache)[0])(layer, wl.ones((2, 4)), cache)


def test_nothing_and_half_precision() -> None:
    for layer in (nn.AFTSimple(4), nn.AFTFull(4, 5), nn.AFTSimple(4, causal=True), nn.AFTFull(4, 5, causal=True)):
        assert layer(wl.zeros((2, 0, 4))).shape == (2, 0, 4)
        assert layer(wl.zeros((0, 3, 4))).shape == (0, 3, 4)
        nobody = layer(wl.ones((2, 3, 4)), lengths=[0, 0])
        assert (np.asarray(nobody) == 0).all()
    layer = nn.AFTSimple(4, causal=True, dtype=wl.bfloat16)
    y, cache = layer.extend(wl.ones((2, 3, 4), dtype=wl.bfloat16))
    assert (y.dtype, cache.state["largest"].dtype) == (wl.bfloat16, wl.float32)
