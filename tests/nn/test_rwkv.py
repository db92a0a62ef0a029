"""RWKV's layers: sums over pairs as oracle, exponents of any size, two conventions, token shift."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ShapeError

F = nn.functional


def numbers(*shape: int, seed: int = 0, dtype: Any = np.float64) -> wl.Tensor:
    return wl.tensor(np.random.default_rng(seed).normal(size=shape).astype(dtype))


def sigmoid(x: Any) -> np.ndarray:
    return 1 / (1 + np.exp(-np.asarray(x)))


def book(k: np.ndarray, v: np.ndarray, w: np.ndarray, u: np.ndarray, offset: int = 0) -> np.ndarray:
    """The quotient of sums of the book, w_ij = -(i - j - offset) w, for (n, e), in long double."""
    k, v = k.astype(np.longdouble), v.astype(np.longdouble)
    out = np.zeros_like(v)
    for i in range(len(k)):
        exponents = [k[j] - (i - j - offset) * w for j in range(i)] + [k[i] + u]
        weights = np.exp(np.stack(exponents) - np.max(exponents, axis=0))
        out[i] = (weights * v[: i + 1]).sum(axis=0) / weights.sum(axis=0)
    return out.astype(np.float64)


def mixed(mix: Any, x: np.ndarray) -> np.ndarray:
    before = np.concatenate([np.zeros_like(x[:1]), x[:-1]])
    return np.asarray(mix.mu) * x + (1 - np.asarray(mix.mu)) * before


# --- time mixing


@pytest.mark.book("13.59", name="wl.nn.RWKVTimeMix")
@pytest.mark.parametrize("convention", ["book", "official"])
def test_time_mixing(convention: str) -> None:
    layer = nn.RWKVTimeMix(4, 6, convention, dtype=wl.float64, key=wl.random.key(0))
    x = np.asarray(numbers(20, 4))
    k, v, r = (
        mixed(mix, x) @ np.asarray(part.weight)
        for mix, part in (
            (layer.mix_key, layer.key), (layer.mix_value, layer.value), (layer.mix_receptance, layer.receptance),
        )
    )  # fmt: skip
    w, u = np.exp(np.asarray(layer.time_decay)), np.asarray(layer.time_first)
    average = book(k, v, w, u, offset=convention == "official")
    wanted = (sigmoid(r) * average) @ np.asarray(layer.output.weight)
    np.testing.assert_allclose(layer(wl.tensor(x)), wanted, rtol=1e-10, atol=1e-13)
    # the first token is alone: h_1 = W_o(sigma(q_1) * v_1)
    np.testing.assert_allclose(layer(wl.tensor(x))[0], (sigmoid(r[0]) * v[0]) @ np.asarray(layer.output.weight))
    assert layer.num_parameters() == 4 * 4 * 6 + 2 * 6 + 3 * 4
    wl.check_grads(lambda x: layer(x), (numbers(6, 4),))


@pytest.mark.book("13.59", name="wl.nn.functional.wkv")
def test_the_recurrence_of_the_book() -> None:
    """a <- e^{-w} (a + e^{k_i} v_i), read before it changes; the official one spares the new token the factor."""
    k, v, w, u = (np.asarray(numbers(*s, seed=i)) for i, s in enumerate([(30, 3), (30, 3), (3,), (3,)]))
    w = np.exp(w)
    for offset in (0, 1):
        a, b, out = np.zeros(3), np.zeros(3), []
        for i in range(30):
            now = np.exp(k[i] + u)
            out.append((a + now * v[i]) / (b + now))
            new, fade = np.exp(k[i]), np.exp(-w)
            last = 1 if offset else fade
            a, b = fade * a + last * new * v[i], fade * b + last * new
        np.testing.assert_allclose(np.stack(out), book(k, v, w, u, offset), atol=1e-14)
        found = F.wkv(k[None], v[None], w, u if offset else u + w)[0]
        np.testing.assert_allclose(found, np.stack(out), atol=1e-14)
    # the two differ by one step of decay, and are the same with another u
    assert np.abs(book(k, v, w, u, 0) - book(k, v, w, u, 1)).max() > 0.1
    np.testing.assert_allclose(book(k, v, w, u, 0), book(k, v, w, u + w, 1), atol=1e-14)


@pytest.mark.book("13.59", name="wl.nn.RWKVTimeMix")
def test_the_decay_is_positive_whatever_is_learned() -> None:
    layer = nn.RWKVTimeMix(4)
    for value in (-20.0, 0.0, 20.0):
        layer.time_decay.assign(wl.full(4, value))
        assert (np.asarray(layer.decay) > 0).all()
        y = np.asarray(layer(numbers(1, 50, 4, dtype=np.float32)))
        assert np.isfinite(y).all()


@pytest.mark.book("13.60", name="wl.nn.functional.wkv")
@pytest.mark.parametrize("size", [1.0, 200.0, 3e4])
def test_keys_of_any_size(size: float) -> None:
    """exp(200) is infinite in float32; relative to the largest exponent so far nothing is."""
    k = size * np.asarray(numbers(2, 60, 3, dtype=np.float32)).clip(-1, 1)
    v, u = numbers(2, 60, 3, seed=1, dtype=np.float32), wl.tensor(np.array([0.5, -3.0, 40.0], np.float32))
    w = wl.tensor(np.array([1e-3, 0.5, 30.0], np.float32))
    found = np.asarray(F.wkv(wl.tensor(k), v, w, u))
    for row in range(2):
        wanted = book(k[row], np.asarray(v[row]), np.asarray(w, np.float64), np.asarray(u, np.float64), 1)
        np.testing.assert_allclose(found[row], wanted, rtol=1e-3 if size > 1000 else 1e-4, atol=1e-5)
    if size >= 200:
        with np.errstate(over="ignore"):
            assert not np.isfinite(np.exp(k)).all()
    grads = wl.grad(lambda *a: (F.wkv(*a) ** 2).sum(), (0, 1, 2, 3))(wl.tensor(k), v, w, u)
    compiled = wl.jit(wl.grad(lambda *a: (F.wkv(*a) ** 2).sum(), (0, 1, 2, 3)))(wl.tensor(k), v, w, u)
    for one, other in zip(grads, compiled, strict=True):
        assert np.isfinite(np.asarray(one)).all()
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.book("13.60", name="wl.nn.RWKVTimeMix")
def test_the_layer_with_large_keys() -> None:
    layer, x = nn.RWKVTimeMix(4, key=wl.random.key(0)), numbers(2, 30, 4, dtype=np.float32)
    layer.key.weight.assign(400 * layer.key.weight)
    assert np.abs(np.asarray(layer.key(x))).max() > 200
    wide = nn.RWKVTimeMix(4, dtype=wl.float64)
    wide.load_state_dict({name: value.astype(wl.float64) for name, value in layer.state_dict().items()})
    np.testing.assert_allclose(layer(x), wide(x.astype(wl.float64)), rtol=1e-2, atol=1e-4)
    nn.assert_sequence_layer(layer, x[:, :7], tolerance=1e-4)


def test_gradients_do_not_depend_on_what_is_subtracted() -> None:
    """Against the same sums without anything subtracted, where they fit."""

    def plain(k: wl.Tensor, v: wl.Tensor, w: wl.Tensor, u: wl.Tensor) -> wl.Tensor:
        rows = []
        for i in range(k.shape[1]):
            ages = wl.tensor(np.arange(i - 1, -1, -1.0))[:, None]
            past = wl.exp(k[:, :i] - ages * w)
            now = wl.exp(k[:, i] + u)
            rows.append(((past * v[:, :i]).sum(1) + now * v[:, i]) / (past.sum(1) + now))
        return wl.stack(rows, axis=1)

    args = (numbers(2, 8, 3), numbers(2, 8, 3, seed=1), wl.exp(numbers(3, seed=2)), numbers(3, seed=3))
    np.testing.assert_allclose(F.wkv(*args), plain(*args), rtol=1e-12)
    ours, theirs = (wl.grad(lambda *a: (f(*a) ** 3).sum(), (0, 1, 2, 3))(*args) for f in (F.wkv, plain))  # noqa: B023
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    wl.check_grads(F.wkv, args, order=2)


# --- channel mixing


@pytest.mark.book("13.61", name="wl.nn.RWKVChannelMix")
def test_channel_mixing() -> None:
    layer, x = nn.RWKVChannelMix(4, 7, dtype=wl.float64, key=wl.random.key(0)), np.asarray(numbers(9, 4))
    k = np.maximum(mixed(layer.mix_key, x) @ np.asarray(layer.key.weight), 0) ** 2
    r = sigmoid(mixed(layer.mix_receptance, x) @ np.asarray(layer.receptance.weight))
    value = k @ np.asarray(layer.value.weight)
    np.testing.assert_allclose(layer(wl.tensor(x)), r * value, rtol=1e-12)
    assert layer.num_parameters() == 16 + 2 * 4 * 7 + 2 * 4
    layer.receptance.weight.assign(wl.zeros((4, 4), dtype=wl.float64))
    np.testing.assert_allclose(layer(wl.tensor(x)), 0.5 * value, rtol=1e-12)
    wl.check_grads(lambda x: layer(x), (numbers(5, 4),))


@pytest.mark.book("13.61", name="wl.nn.functional.squared_relu")
def test_the_squared_rectifier_has_no_kink() -> None:
    x = wl.tensor(np.array([-2.0, -1e-9, 0.0, 1e-9, 3.0]))
    np.testing.assert_allclose(F.squared_relu(x), np.maximum(np.asarray(x), 0) ** 2)
    np.testing.assert_allclose(wl.grad(lambda x: F.squared_relu(x).sum())(x), 2 * np.maximum(np.asarray(x), 0))


# --- token shift


@pytest.mark.book("13.62", name="wl.nn.TokenMix")
def test_token_mix() -> None:
    layer, x = nn.TokenMix(3, mu=[0.0, 0.25, 1.0], dtype=wl.float64), np.asarray(numbers(2, 6, 3))
    found = np.asarray(layer(wl.tensor(x)))
    np.testing.assert_allclose(found[..., 2], x[..., 2])  # mu = 1: no shift
    np.testing.assert_allclose(found[:, 1:, 0], x[:, :-1, 0])  # mu = 0: nothing else
    assert (found[:, 0, 0] == 0).all()  # x_0 = 0
    np.testing.assert_allclose(found[:, 1:, 1], 0.25 * x[:, 1:, 1] + 0.75 * x[:, :-1, 1])
    assert layer.num_parameters() == 3
    grads = wl.grad(lambda m: (m(wl.tensor(x)) ** 2).sum())(layer)
    assert (np.asarray(grads["mu"]) != 0).all()
    _, cache = layer.extend(wl.tensor(x))
    np.testing.assert_array_equal(cache.state["last"], x[:, -1].astype(np.float64))


@pytest.mark.book("13.62", name="wl.nn.RWKVTimeMix")
def test_every_projection_has_a_mix_of_its_own() -> None:
    time, channels = nn.RWKVTimeMix(4, layer=1, layers=3), nn.RWKVChannelMix(4, layer=1, layers=3)
    names = sorted(name for name in [*time.state_dict(), *channels.state_dict()] if name.endswith(".mu"))
    assert names == ["mix_key.mu", "mix_key.mu", "mix_receptance.mu", "mix_receptance.mu", "mix_value.mu"]
    rising = (np.arange(4) / 4) ** (2 / 3)
    np.testing.assert_allclose(time.mix_key.mu, rising, rtol=1e-6)
    np.testing.assert_allclose(time.mix_value.mu, rising + 0.3 * 0.5, rtol=1e-6)
    np.testing.assert_allclose(time.mix_receptance.mu, (np.arange(4) / 4) ** (1 / 3), rtol=1e-6)


def test_the_token_before_is_the_real_one() -> None:
    layer, x = nn.TokenMix(2, mu=0.0), numbers(2, 5, 2, dtype=np.float32)
    mask = np.array([[0, 1, 0, 0, 1], [1, 1, 0, 1, 1]], bool)
    found = np.asarray(layer(x, token_mask=mask))
    a = np.asarray(x)
    np.testing.assert_allclose(found[0], [[0, 0], [0, 0], [0, 0], [0, 0], a[0, 1]])
    np.testing.assert_allclose(found[1], [[0, 0], a[1, 0], [0, 0], a[1, 1], a[1, 3]])


# --- the contract

LAYERS: dict[str, Callable[[], Any]] = {
    "token mix": lambda: nn.TokenMix(8),
    "time": lambda: nn.RWKVTimeMix(8, hidden=6),
    "official time": lambda: nn.RWKVTimeMix(8, convention="official", layer=1, layers=2),
    "channels": lambda: nn.RWKVChannelMix(8, 5),
    "block": lambda: nn.RWKVBlock(8),
}


@pytest.mark.book("13.12", "13.59", "13.62", name="wl.nn.RWKVTimeMix")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_read_on(name: str, compiled: bool) -> None:
    nn.assert_sequence_layer(LAYERS[name](), numbers(3, 7, 8, dtype=np.float32), compiled=compiled)


def test_half_precision_keeps_exponents_in_float32() -> None:
    layer = nn.RWKVTimeMix(8, dtype=wl.bfloat16, key=wl.random.key(0))
    wide = nn.RWKVTimeMix(8)
    wide.load_state_dict({name: value.astype(wl.float32) for name, value in layer.state_dict().items()})
    x = numbers(2, 300, 8, dtype=np.float32)
    y, cache = layer.extend(x.astype(wl.bfloat16))
    assert (y.dtype, cache.state["numerator"].dtype) == (wl.bfloat16, wl.float32)
    assert np.abs(np.asarray(y, np.float32) - np.asarray(wide(x))).max() < 0.03
    half = F.wkv(x.astype(wl.float16), x.astype(wl.float16), 0.1, 0.2)
    assert half.dtype == wl.float16
    assert np.isfinite(np.asarray(half)).all()


def test_bad_input() -> None:
    for make, message in (
        (lambda: nn.RWKVTimeMix(0), "e=0"),
        (lambda: nn.RWKVTimeMix(4, convention="other"), "convention='other'"),
        (lambda: nn.RWKVTimeMix(4, layer=2, layers=2), "layer=2 of 2"),
        (lambda: nn.RWKVChannelMix(4, layer=-1), "layer=-1"),
    ):
        with pytest.raises(InputError, match=message):
            make()
    k = wl.ones((2, 3, 4))
    for call, message in (
        (lambda: F.wkv(k, k[:1], 0.0, 0.0), r"keys \(2, 3, 4\), values \(1, 3, 4\)"),
        (lambda: F.wkv(k, k, wl.ones(3), 0.0), r"a decay \(3,\)"),
        (lambda: F.wkv(k, k, 0.0, 0.0, token_mask=wl.ones((2, 4), dtype=bool)), r"a token_mask \(2, 4\)"),
        (lambda: nn.RWKVTimeMix(4)(wl.ones((2, 3, 5))), r"RWKVTimeMix\(4\): an input of shape \(2, 3, 5\)"),
        (lambda: nn.TokenMix(3, mu=[1.0, 2.0]), r"\(2,\)"),
    ):
        with pytest.raises(ShapeError, match=message):
            call()
    assert F.wkv(k[:, :0], k[:, :0], 0.0, 0.0).shape == (2, 0, 4)
