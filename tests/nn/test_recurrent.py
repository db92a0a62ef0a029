"""RNN, GRU and LSTM against loops in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

import wonderland as wl
from wonderland import nn
from wonderland.errors import InputError, ShapeError

rng = np.random.default_rng(0)
X = rng.normal(size=(7, 3, 4))  # time, batch, features
H = 5
KINDS = [nn.RNN, nn.GRU, nn.LSTM]


def make(kind, **settings):
    return kind(4, H, dtype=wl.float64, key=wl.random.key(1), **settings)


def cell(kind, x, state, w, u, b, c):
    """One step of a cell, gate by gate."""
    h = state[0]
    if kind is nn.RNN:
        return (np.tanh(x @ w + b + h @ u + c),)
    gates = [slice(i * H, (i + 1) * H) for i in range(u.shape[1] // H)]
    given = [x @ w[:, s] + b[s] for s in gates]
    kept = [h @ u[:, s] + c[s] for s in gates]
    if kind is nn.GRU:
        r, z = expit(given[0] + kept[0]), expit(given[1] + kept[1])
        n = np.tanh(given[2] + r * kept[2])
        return ((1 - z) * n + z * h,)
    i, f, o = (expit(given[k] + kept[k]) for k in (0, 1, 3))
    memory = f * state[1] + i * np.tanh(given[2] + kept[2])
    return o * np.tanh(memory), memory


def loop(kind, layer, x, starts):
    """All layers and directions, step by step."""
    ends, number = [], 0
    for k in range(layer.num_layers):
        outputs = []
        for suffix in ("", "_reverse") if layer.bidirectional else ("",):
            names = [f"{n}_l{k}{suffix}" for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
            values = [getattr(layer, n).numpy() if hasattr(layer, n) else np.zeros(kind.gates * H) for n in names]
            state = tuple(s[number] for s in starts)
            ys = [None] * len(x)
            for t in range(len(x))[:: -1 if suffix else 1]:
                state = cell(kind, x[t], state, *values)
                ys[t] = state[0]
            outputs.append(np.stack(ys))
            ends.append(state)
            number += 1
        x = np.concatenate(outputs, -1)
    return x, [np.stack([e[i] for e in ends]) for i in range(len(starts))]


def states_of(kind, count, batch=3):
    drawn = [np.random.default_rng(9 + i).normal(size=(count, batch, H)) for i in range(2)]
    return drawn if kind is nn.LSTM else drawn[:1]


def packed(kind, states):
    return tuple(map(wl.asarray, states)) if kind is nn.LSTM else wl.asarray(states[0])


def unpacked(kind, state):
    return list(state) if kind is nn.LSTM else [state]


@pytest.mark.book("A5-11", "A5-19", name=("wl.nn.LSTM", "wl.nn.GRU"))
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("settings", [{}, {"num_layers": 2}, {"num_layers": 2, "bidirectional": True}, {"bias": False}])
@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_in_numpy(kind, settings, compiled):
    layer = make(kind, **settings)
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    starts = states_of(kind, count)
    call = wl.jit(lambda layer, x, s: layer(x, s)) if compiled else (lambda layer, x, s: layer(x, s))
    outputs, last = call(layer, wl.asarray(X), packed(kind, starts))
    expected, ends = loop(kind, layer, X, starts)
    np.testing.assert_allclose(outputs, expected, rtol=1e-10, atol=1e-12)
    for found, end in zip(unpacked(kind, last), ends, strict=True):
        np.testing.assert_allclose(found, end, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_one_step_at_a_time_is_the_whole_sequence(kind):
    layer = make(kind, num_layers=2)
    outputs, last = layer(wl.asarray(X))
    state, steps = None, []
    for x in X:
        y, state = layer(wl.asarray(x[None]), state)
        steps.append(y[0].numpy())
    np.testing.assert_allclose(outputs, np.stack(steps), rtol=1e-12)
    for whole, stepwise in zip(unpacked(kind, last), unpacked(kind, state), strict=True):
        np.testing.assert_allclose(whole, stepwise, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_layouts(kind):
    layer, first = make(kind), make(kind, batch_first=True)
    outputs, last = layer(wl.asarray(X))
    swapped, same = first(wl.asarray(X.swapaxes(0, 1)))
    np.testing.assert_array_equal(swapped, outputs.numpy().swapaxes(0, 1))
    single, end = layer(wl.asarray(X[:, 1]))
    assert single.shape == (7, H)
    np.testing.assert_allclose(single, outputs[:, 1], rtol=1e-12)
    for a, b, c in zip(unpacked(kind, last), unpacked(kind, same), unpacked(kind, end), strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(c, a[:, 1], rtol=1e-12)
    again, _ = layer(wl.asarray(X[:, 1]), packed(kind, [s[:, 0] for s in states_of(kind, 1)]))
    assert again.shape == (7, H)
    assert layer(wl.zeros((7, 0, 4), dtype=wl.float64))[0].shape == (7, 0, H)
    assert layer.output_shape((7, 3, 4), wl.float64)[0] == (7, 3, H)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients(kind):
    layer = make(kind, bidirectional=True)
    x = wl.asarray(X[:4, :2])
    wl.check_grads(lambda x: layer(x)[0], (x,))
    eager = wl.grad(lambda m, x: (m(x)[0] ** 2).sum())(layer, x)
    fast = wl.jit(wl.grad(lambda m, x: (m(x)[0] ** 2).sum()))(layer, x)
    for path, g in eager.items():
        np.testing.assert_allclose(fast[path], g, rtol=1e-9, atol=1e-12)


def test_inputs_meet_their_weights_in_one_product():
    graph = wl.jit(lambda m, x: m(x)[0]).graph(make(nn.LSTM), wl.asarray(X))
    names = [e.primitive.name for e in graph.equations]
    assert names.count("matmul") == 1
    assert names.count("scan") == 1


@pytest.mark.book("A5-11", "A5-19", name=("wl.nn.LSTM", "wl.nn.GRU"))
def test_parameters():
    # with one of the two biases, 4 ((D + X) D + D) and 3 ((D + X) D + D)
    assert nn.LSTM(2, 3).num_parameters() - 4 * 3 == 72
    assert nn.GRU(2, 3).num_parameters() - 3 * 3 == 54
    layer = nn.LSTM(6, 100, num_layers=2, bidirectional=True)
    assert layer.weight_ih_l1_reverse.shape == (200, 400)
    values = layer.weight_hh_l0.numpy()
    assert np.abs(values).max() <= 0.1
    np.testing.assert_allclose(values.std(), 0.1 / np.sqrt(3), rtol=0.05)
    other = nn.LSTM(6, 100, num_layers=2, bidirectional=True)
    other.load_state_dict(layer.state_dict())
    x = wl.random.normal((3, 2, 6))
    assert layer(x)[0].dtype == wl.float32
    np.testing.assert_array_equal(other(x)[0], layer(x)[0])


def test_an_open_gate_keeps_the_memory():
    layer = nn.LSTM(1, 1)
    layer.load_state_dict({k: wl.zeros(v.shape) for k, v in layer.state_dict().items()})
    layer.bias_ih_l0 = wl.tensor([-1000.0, 1000.0, 0.0, 0.0])  # i = 0, f = 1
    _, (_, c) = layer(wl.ones((9, 1, 1)), (wl.zeros((1, 1, 1)), wl.full((1, 1, 1), 2.5)))
    assert c.item() == 2.5


def test_dropout_between_layers():
    layer = make(nn.GRU, num_layers=2, dropout=0.5)
    x = wl.asarray(X)
    assert not np.array_equal(layer(x)[0], layer(x)[0])
    layer.eval()
    np.testing.assert_array_equal(layer(x)[0], layer(x)[0])


def test_relu_units():
    layer = make(nn.RNN, nonlinearity="relu")
    assert (layer(wl.asarray(X))[0].numpy() >= 0).all()
    assert repr(nn.LSTM(4, 5, batch_first=True)) == "LSTM(4, 5, batch_first=True)"


def test_bad_input():
    layer = nn.LSTM(4, 5, batch_first=True)
    with pytest.raises(ShapeError, match=r"LSTM\(4, 5, batch_first=True\): an input of shape \(2, 3, 6\)"):
        layer(wl.ones((2, 3, 6)))
    with pytest.raises(ShapeError, match="initial state"):
        layer(wl.ones((2, 3, 4)), wl.zeros((1, 2, 5)))
    with pytest.raises(ShapeError, match="initial state"):
        layer(wl.ones((2, 3, 4)), (wl.zeros((1, 3, 5)), wl.zeros((1, 3, 5))))
    with pytest.raises(InputError, match="nonlinearity='sin'"):
        nn.RNN(2, 3, nonlinearity="sin")
    with pytest.raises(InputError, match=r"dropout=1\.5"):
        nn.LSTM(2, 3, dropout=1.5)
    with pytest.raises(InputError, match="num_layers=0"):
        nn.LSTM(2, 3, 0)
