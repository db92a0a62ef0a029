"""One step of recurrent cells, against NumPy: Elman, simple units, GRU, LSTM and its relatives, Li-GRU, gates."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import wonderland as wl
from wonderland import nn
from wonderland.errors import DTypeError, InputError, ShapeError

C, E = 3, 4
Array = np.ndarray[Any, Any]
f64 = partial(dict, dtype=wl.float64, key=wl.random.key(5))

CELLS = {
    "RNN": lambda **k: nn.RNNCell(C, E, **k),
    "ReLU": lambda **k: nn.RNNCell(C, E, nonlinearity="relu", **k),
    "GRU": lambda **k: nn.GRUCell(C, E, **k),
    "GRU, reset before": lambda **k: nn.GRUCell(C, E, reset="before", update="updates", **k),
    "LSTM": lambda **k: nn.LSTMCell(C, E, **k),
    "peephole": lambda **k: nn.LSTMCell(C, E, peephole=True, **k),
    "coupled": lambda **k: nn.LSTMCell(C, E, coupled=True, peephole=True, **k),
    "projected": lambda **k: nn.LSTMCell(C, E, proj_size=2, **k),
    "Li-GRU": lambda **k: nn.LiGRUCell(C, E, **k),
    "Li-GRU, original": lambda **k: nn.LiGRUCell(C, E, True, form="original", norm="layer", **k),
    "Elman": lambda **k: nn.ElmanCell(C, E, 2, **k),
    "normalized": lambda **k: nn.ElmanCell(C, E, 2, bias=True, norm="layer", **k),
}


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def values(cell: nn.Module) -> dict[str, Array]:
    return {name: np.asarray(value) for name, value in cell.state_dict().items()}


def blocks(cell: nn.Module, x: Array, h: Array, count: int) -> tuple[list[Array], list[Array]]:
    """What inputs and states give to the parts that stand side by side."""
    p, n = values(cell), E
    given = x @ p["weight_ih"] + p.get("bias_ih", 0)
    fed = h @ p["weight_hh"] + p.get("bias_hh", 0)
    return [given[:, k * n : (k + 1) * n] for k in range(count)], [fed[:, k * n : (k + 1) * n] for k in range(count)]


def zeroed(cell: Any, **biases: Any) -> Any:
    """A cell of zeros, so that its biases alone say what the gates are."""
    cell.load_state_dict({k: wl.zeros(v.shape, dtype=v.dtype) for k, v in cell.state_dict().items()})
    for name, value in biases.items():
        setattr(cell, name, wl.tensor(value, dtype=cell.dtype))
    return cell


X, H, M = numbers(5, C), numbers(5, E, seed=1), numbers(5, E, seed=2)


# --- simple units


@pytest.mark.book("13.22", "A5-05", name="wl.nn.RNNCell")
def test_the_box_of_the_book() -> None:
    batch_size, sequence_length, features, state_size = 4, 7, C, E
    x = wl.random.normal((batch_size, sequence_length, features))
    s = wl.zeros((batch_size, state_size))
    state_update = nn.RNNCell(features, state_size)
    for i in range(x.shape[1]):
        s = state_update(x[:, i, :], s)
    assert s.shape == (batch_size, state_size)
    layer = nn.RNN(features, state_size, batch_first=True)
    for name, value in state_update.state_dict().items():
        setattr(layer, f"{name}_l0", value)
    np.testing.assert_allclose(layer(x)[1][0], s, rtol=1e-5, atol=1e-6)
    p = values(state_update)
    assert sorted(p) == ["bias_hh", "bias_ih", "weight_hh", "weight_ih"]  # with tanh and biases, by default
    wanted = np.tanh(X @ p["weight_ih"] + p["bias_ih"] + H @ p["weight_hh"] + p["bias_hh"])
    np.testing.assert_allclose(state_update(X, H), wanted, rtol=1e-5, atol=1e-6)
    # slices of x have gradients: the last step reaches its own input, and the first one
    g = wl.grad(lambda x: nn.Recurrent(state_update)(x)[:, -1].sum())(x)
    assert (np.abs(np.asarray(g)).sum(axis=(0, 2)) > 0).all()


@pytest.mark.book("A5-05", name="wl.nn.RNNCell")
def test_a_cell_multiplies_the_state_beside_the_input() -> None:
    """z(t) = phi(W^T [z(t-1); x(t)] + b)."""
    cell = nn.RNNCell(C, E, **f64())
    p = values(cell)
    w, b = np.concatenate([p["weight_hh"], p["weight_ih"]]), p["bias_ih"] + p["bias_hh"]
    np.testing.assert_allclose(cell(X, H), np.tanh(np.concatenate([H, X], axis=1) @ w + b), rtol=1e-12)


def test_relu_units() -> None:
    cell = nn.RNNCell(C, E, False, "relu", **f64())
    p = values(cell)
    np.testing.assert_allclose(cell(X, H), np.maximum(X @ p["weight_ih"] + H @ p["weight_hh"], 0), rtol=1e-12)
    assert cell.num_parameters() == E * E + E * C
    assert nn.RNNCell(C, E).num_parameters() == E * E + E * C + 2 * E


@pytest.mark.book("13.20", name="wl.nn.ElmanCell")
def test_elman() -> None:
    c, e, o = 3, 5, 2
    cell = nn.ElmanCell(c, e, o, **f64())
    assert cell.num_parameters() == e * e + e * c + o * e + o * c
    assert nn.ElmanCell(c, e, o, bias=True).num_parameters() == e * e + e * c + o * e + o * c + e + o
    a, b, cc, d = (values(cell)[name].T for name in "ABCD")  # as the book has them
    assert (a.shape, b.shape, cc.shape, d.shape) == ((e, e), (e, c), (o, e), (o, c))
    x, s = numbers(c), numbers(e, seed=1)
    h, after = cell(x, s)
    wanted = np.tanh(a @ s + b @ x)
    np.testing.assert_allclose(after, wanted, rtol=1e-12)
    np.testing.assert_allclose(h, cc @ wanted + d @ x, rtol=1e-12)
    # s_0 = 0, so that A has nothing to do in the first step
    one = wl.tensor(numbers(1, 1, c))
    layer = nn.Recurrent(cell)
    grads = wl.grad(lambda m: (m(one) ** 2).sum())(layer)
    assert (np.asarray(grads["cell.A"]) == 0).all()
    assert (np.asarray(grads["cell.B"]) != 0).all()
    assert (np.asarray(wl.grad(lambda m: (m(wl.tensor(numbers(1, 2, c))) ** 2).sum())(layer)["cell.A"]) != 0).all()
    linear = nn.ElmanCell(c, e, o, activation=None, **f64())
    np.testing.assert_allclose(linear(x, s)[1], a @ s + b @ x, rtol=1e-12)


@pytest.mark.book("13.27", name="wl.nn.ElmanCell")
def test_what_goes_into_phi_is_normalized_in_each_step() -> None:
    cell = nn.ElmanCell(C, 16, 2, activation=None, norm="layer", **f64())  # the state is what would go into phi
    layer = nn.Recurrent(nn.FunctionCell(lambda s, x: cell(x, s)[1], None, 16))
    states = np.asarray(layer(wl.tensor(numbers(3, 6, C) * 50)))
    np.testing.assert_allclose(states.mean(axis=-1), 0, atol=1e-12)
    np.testing.assert_allclose(states.var(axis=-1), 1, rtol=1e-4)  # up to eps
    active = nn.ElmanCell(C, 16, 2, norm="layer", **f64())
    x, s = numbers(5, C), numbers(5, 16, seed=3)
    p = values(active)
    u = s @ p["A"] + x @ p["B"]
    u = (u - u.mean(axis=-1, keepdims=True)) / np.sqrt(u.var(axis=-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(active(x, s)[1], np.tanh(u), rtol=1e-10)
    plain = nn.ElmanCell(C, 16, 2, activation=None, **f64())
    unnormalized = np.asarray(plain(x * 50, s)[1])
    assert unnormalized.var(axis=-1).min() > 2


# --- gates


@pytest.mark.book("13.30", name="wl.nn.Gate")
def test_a_gate_is_a_soft_mask() -> None:
    gate = nn.Gate(C, E, **f64())
    assert gate.V.shape == (E, E)
    assert gate.U.shape == (C, E)  # the book's V is (e, e) and U (e, c), on the left of a column
    found = np.asarray(gate(X, H))
    np.testing.assert_allclose(found, expit(H @ values(gate)["V"] + X @ values(gate)["U"]), rtol=1e-12)
    assert ((found > 0) & (found < 1)).all()
    far = np.asarray(gate(1e6 * X, H))
    assert ((far == 0) | (far == 1)).all()
    assert nn.Gate(C, E).num_parameters() == E * E + E * C
    assert nn.Gate(C, E, bias=True).num_parameters() == E * E + E * C + E
    wl.check_grads(gate, (wl.tensor(X), wl.tensor(H)))
    with pytest.raises(ShapeError, match=r"Gate\(3, 4, bias=False\): an input of shape \(5, 3\) and a state of shape"):
        gate(X, H[:2])


@pytest.mark.book("13.33", name="wl.nn.gate_regularizer")
@pytest.mark.parametrize("kind, largest", [("product", 0.25), ("entropy", np.log(2))])
def test_the_regularizer_pushes_gates_to_the_ends(kind: str, largest: float) -> None:
    gammas = np.linspace(0, 1, 21)
    found = np.array([nn.gate_regularizer(wl.tensor([g]), kind).item() for g in gammas])
    assert found[0] == 0
    assert abs(found[-1]) < 1e-12
    np.testing.assert_allclose(found[10], largest, rtol=1e-6)
    assert (np.diff(found[:11]) > 0).all()
    np.testing.assert_allclose(found, found[::-1], atol=1e-6)
    slopes = [wl.grad(lambda g: nn.gate_regularizer(g, kind))(wl.tensor([g])).item() for g in (0.0, 0.2, 0.8, 1.0)]
    assert np.isfinite(slopes).all()
    assert slopes[0] > 0 > slopes[3]  # down the slope, a small gate becomes smaller and a large one larger
    assert slopes[1] > 0 > slopes[2]

    layer = nn.Recurrent(nn.GRUCell(C, E, key=wl.random.key(2)))
    x = wl.tensor(numbers(4, 6, C).astype(np.float32))
    mask = np.arange(6) < np.array([6, 3, 1, 0])[:, None]

    def loss(layer: nn.Recurrent) -> wl.Tensor:
        return nn.gate_regularizer(layer.gates(x, token_mask=mask), kind, token_mask=mask)

    def spread() -> float:
        return float(np.mean([(np.asarray(g) * (1 - np.asarray(g)))[mask].mean() for g in layer.gates(x).values()]))

    before = spread()
    optimizer = wl.optim.SGD(layer.parameters(), lr=5.0)
    for _ in range(30):
        optimizer.step(wl.grad(loss)(layer))
    assert spread() < 0.7 * before
    by_hand = np.mean([(np.asarray(g) * (1 - np.asarray(g)))[mask].mean() for g in layer.gates(x, mask).values()])
    np.testing.assert_allclose(nn.gate_regularizer(layer.gates(x), lengths=[6, 3, 1, 0]), by_hand, rtol=1e-4)


def test_a_regularizer_of_nothing() -> None:
    with pytest.raises(InputError, match="no gates"):
        nn.gate_regularizer(nn.RNNCell(C, E).gates(wl.ones((2, C))))
    with pytest.raises(InputError, match="kind='square'"):
        nn.gate_regularizer(wl.ones(3), "square")
    with pytest.raises(ShapeError, match=r"gates of shape \(3,\) with a mask"):
        nn.gate_regularizer(wl.ones(3), lengths=2)
    assert nn.gate_regularizer(wl.ones((2, 3, 4)) / 2, lengths=[0, 0]).item() == 0


@pytest.mark.parametrize("name", CELLS)
def test_gates_can_be_read(name: str) -> None:
    cell = CELLS[name](**f64())
    layer, x = nn.Recurrent(cell), wl.tensor(numbers(2, 5, C))
    state, seen = None, []
    for i in range(5):
        step = cell.take(x[:, i], state)
        assert list(cell.gates(x[:, i], state)) == list(step.gates)
        state = step.state
        seen.append(step.gates)
    whole = layer.gates(x)
    assert list(whole) == list(seen[0])
    for gate, found in whole.items():
        np.testing.assert_allclose(found, wl.stack([s[gate] for s in seen], axis=1), rtol=1e-12)
        assert ((np.asarray(found) >= 0) & (np.asarray(found) <= 1)).all()
        part = np.asarray(layer.gates(x, lengths=[5, 2])[gate])
        np.testing.assert_allclose(part[1, :2], np.asarray(found)[1, :2], rtol=1e-12)
        assert (part[1, 2:] == 0).all()


# --- Li-GRU


@pytest.mark.book("13.31", name="wl.nn.LiGRUCell")
def test_li_gru_of_the_book() -> None:
    cell = nn.LiGRUCell(C, E, **f64())
    assert cell.num_parameters() == 2 * (E * E + E * C)
    p = values(cell)
    u = X @ p["weight_ih"] + H @ p["weight_hh"]
    gamma, new = expit(u[:, :E]), u[:, E:]
    np.testing.assert_allclose(cell(X, H), gamma * new + (1 - gamma) * H, rtol=1e-12)
    np.testing.assert_allclose(cell.gates(X, H)["z"], gamma, rtol=1e-12)
    # the candidate has no nonlinearity, so with the gate held the step is linear in input and state
    held = nn.LiGRUCell(C, E, bias=True, **f64())
    held.weight_ih = wl.concat([wl.zeros((C, E), dtype=wl.float64), held.weight_ih[:, E:]], axis=1)
    held.weight_hh = wl.concat([wl.zeros((E, E), dtype=wl.float64), held.weight_hh[:, E:]], axis=1)
    for gate, sense in ((-1e4, 0.0), (1e4, 1.0)):
        held.bias_ih = wl.tensor([gate] * E + [0.0] * E, dtype=wl.float64)
        held.bias_hh = wl.zeros(2 * E, dtype=wl.float64)
        after = np.asarray(held(X, H))
        by_state = np.asarray(wl.jacobian(lambda h: held(X[0], h))(wl.tensor(H[0])))
        if sense == 0:  # kept, and a Jacobian that is the identity to the last bit
            np.testing.assert_array_equal(after, H)
            np.testing.assert_array_equal(by_state, np.eye(E))
        else:  # a linear recurrent network
            a, b = values(held)["weight_hh"][:, E:], values(held)["weight_ih"][:, E:]
            np.testing.assert_allclose(after, H @ a + X @ b, rtol=1e-12)
            np.testing.assert_allclose(held(2 * X, 2 * H), 2 * after, rtol=1e-12)
            np.testing.assert_allclose(by_state, a.T, rtol=1e-12)


@pytest.mark.book("13.31", name="wl.nn.LiGRUCell")
def test_li_gru_of_the_paper_has_a_relu_and_the_opposite_gate() -> None:
    cell = nn.LiGRUCell(C, E, form="original", **f64())
    p = values(cell)
    u = X @ p["weight_ih"] + H @ p["weight_hh"]
    z, new = expit(u[:, :E]), u[:, E:]
    np.testing.assert_allclose(cell(X, H), z * H + (1 - z) * np.maximum(new, 0), rtol=1e-12)
    assert not np.allclose(cell(X, H), z * new + (1 - z) * H)  # the other form is another function
    tanh = nn.LiGRUCell(C, E, nonlinearity="tanh", **f64())
    np.testing.assert_allclose(tanh(X, H), z * np.tanh(new) + (1 - z) * H, rtol=1e-12)
    turned = nn.LiGRUCell(C, E, update="keeps", **f64())
    np.testing.assert_allclose(turned(X, H), z * H + (1 - z) * new, rtol=1e-12)
    normed = nn.LiGRUCell(C, E, form="original", norm="layer", **f64())
    given = X @ p["weight_ih"]
    given = (given - given.mean(axis=1, keepdims=True)) / np.sqrt(given.var(axis=1, keepdims=True) + 1e-5)
    u = given + H @ p["weight_hh"]
    z, new = expit(u[:, :E]), np.maximum(u[:, E:], 0)
    np.testing.assert_allclose(normed(X, H), z * H + (1 - z) * new, rtol=1e-10)
    assert repr(turned) == "LiGRUCell(3, 4, update='keeps')"


@pytest.mark.book("13.32", name="wl.nn.LiGRUCell")
def test_a_gated_step_lies_between_the_layer_and_the_skip() -> None:
    cell = nn.LiGRUCell(C, E, **f64())
    p = values(cell)
    new = (X @ p["weight_ih"] + H @ p["weight_hh"])[:, E:]
    after = np.asarray(cell(X, H))
    assert ((after >= np.minimum(new, H)) & (after <= np.maximum(new, H))).all()
    # where gates are closed, the factors of the product of Jacobians are 1: only open steps count
    gate = nn.LiGRUCell(1, E, bias=True, **f64())
    gate.weight_ih = wl.tensor([[1e5] * E + [0.3] * E], dtype=wl.float64)  # an input above 0 opens, below 0 closes
    gate.weight_hh = wl.concat([wl.zeros((E, E), dtype=wl.float64), gate.weight_hh[:, E:]], axis=1)
    x = wl.tensor([[-1.0], [1.0], [-1.0], [-1.0], [1.0], [-1.0]], dtype=wl.float64)
    layer = nn.Recurrent(gate)

    def last(x: wl.Tensor, start: wl.Tensor) -> wl.Tensor:
        return layer.unroll(x, start).outputs[-1]

    start = wl.tensor(H[0])
    whole = wl.jacobian(partial(last, x))(start)
    opened = wl.jacobian(partial(last, x[1::3]))(start)
    np.testing.assert_array_equal(whole, opened)
    np.testing.assert_array_equal(last(x, start), last(x[1::3], start))


@pytest.mark.book("13.32", name="wl.nn.Recurrent")
def test_gradients_at_lag_100_are_larger_with_gates() -> None:
    x = wl.tensor(numbers(1, 101, 8).astype(np.float32))

    def at_lag(cell: nn.RecurrentCell) -> float:
        layer = nn.Recurrent(cell)
        g = wl.jit(wl.grad(lambda x: layer(x)[0, 100].sum()))(x)
        return float(np.linalg.norm(np.asarray(g)[0, 0]))

    keep: dict[str, Any] = {"key": wl.random.key(1)}
    plain = at_lag(nn.RNNCell(8, 16, **keep))
    gated = nn.LiGRUCell(8, 16, bias=True, **keep)
    gated.bias_ih = wl.concat([wl.full(16, -6.0), wl.zeros(16)])
    for name, found in {"LSTM": at_lag(nn.LSTMCell(8, 16, forget_bias=5.0, **keep)), "Li-GRU": at_lag(gated)}.items():
        assert found > 1e4 * plain, name


# --- GRU


@pytest.mark.book("13.34", "A5-19", name="wl.nn.GRUCell")
@pytest.mark.parametrize("reset", ["after", "before"])
@pytest.mark.parametrize("update", ["keeps", "updates"])
def test_gru_in_both_conventions(reset: str, update: str) -> None:
    cell = nn.GRUCell(C, E, reset=reset, update=update, **f64())
    (ur, uz, un), (vr, vz, vn) = blocks(cell, X, H, 3)
    r, z = expit(ur + vr), expit(uz + vz)
    if reset == "after":
        new = np.tanh(un + r * vn)
    else:
        p = values(cell)
        new = np.tanh(un + (r * H) @ p["weight_hh"][:, 2 * E :] + p["bias_hh"][2 * E :])
    wanted = (1 - z) * new + z * H if update == "keeps" else (1 - z) * H + z * new
    np.testing.assert_allclose(cell(X, H), wanted, rtol=1e-11)
    # 3 ((D + X) D + D) numbers, and PyTorch's second bias
    assert cell.num_parameters() - 3 * E == 3 * ((E + C) * E + E)
    assert nn.GRUCell(C, E, bias=False, reset=reset).num_parameters() == 3 * (E * E + E * C)
    if (reset, update) != ("after", "keeps"):
        assert not np.allclose(nn.GRUCell(C, E, **f64())(X, H), wanted)  # weights do not pass from one to the other


@pytest.mark.book("13.34", name="wl.nn.GRUCell")
def test_who_keeps_and_who_updates() -> None:
    for update, bias, kept in (("keeps", 1e4, True), ("keeps", -1e4, False), ("updates", -1e4, True)):
        cell = zeroed(nn.GRUCell(C, E, update=update, dtype=wl.float64), bias_ih=[0.0] * E + [bias] * E + [0.5] * E)
        wanted = H if kept else np.full_like(H, np.tanh(0.5))
        np.testing.assert_allclose(cell(X, H), wanted, rtol=1e-12)
    closed = zeroed(nn.GRUCell(C, E, dtype=wl.float64), bias_ih=[-1e4] * 2 * E + [0.5] * E)
    closed.weight_hh = wl.tensor(numbers(E, 3 * E) * 0.01)
    np.testing.assert_allclose(closed(X, H), np.tanh(0.5), rtol=1e-12)  # r = 0: the candidate does not see the state


# --- LSTM


@pytest.mark.book("A5-11", "A5-12", "A5-13", "A5-14", "13.35", name="wl.nn.LSTMCell")
def test_lstm_with_weights_for_the_state_beside_the_input() -> None:
    d, n = 3, 2
    cell = nn.LSTMCell(n, d, **f64())
    # one bias for each gate: 4 ((D + X) D + D)
    assert cell.num_parameters() - 4 * d == 4 * ((d + n) * d + d) == 72
    assert nn.LSTMCell(n, d, bias=False).num_parameters() == 4 * (d * d + d * n)
    p = values(cell)
    w = np.concatenate([p["weight_hh"], p["weight_ih"]])  # z first, then x: (n_z + n_x, 4 D)
    b = p["bias_ih"] + p["bias_hh"]
    x, z, c = numbers(6, n), np.tanh(numbers(6, d, seed=1)), numbers(6, d, seed=2)
    beside = np.concatenate([z, x], axis=1)
    assert w.shape == (d + n, 4 * d)
    i, f, proposal, o = (beside @ w[:, k * d : (k + 1) * d] + b[k * d : (k + 1) * d] for k in range(4))
    i, f, o, proposal = expit(i), expit(f), expit(o), np.tanh(proposal)
    memory = f * c + i * proposal
    found, kept = cell(x, (z, c))
    np.testing.assert_allclose(kept, memory, rtol=1e-12)  # updated, not replaced
    np.testing.assert_allclose(found, o * np.tanh(memory), rtol=1e-12)
    for name, gate in cell.gates(x, (z, c)).items():
        np.testing.assert_allclose(gate, {"i": i, "f": f, "o": o}[name], rtol=1e-12)
    far, big = cell(1e3 * x, (z, 1e3 * c))
    assert np.abs(np.asarray(far)).max() <= 1 < np.abs(np.asarray(big)).max()


@pytest.mark.book("A5-12", "A5-13", "A5-14", "13.35", name="wl.nn.LSTMCell")
@pytest.mark.parametrize("f, i", [(1, 0), (0, 1), (1, 1), (0, 0)])
def test_what_open_and_closed_gates_do(f: int, i: int) -> None:
    gates = [[1e4 * (2 * i - 1)] * E, [1e4 * (2 * f - 1)] * E, [0.7] * E, [1e4] * E]
    cell = zeroed(nn.LSTMCell(C, E, dtype=wl.float64), bias_ih=np.ravel(gates))
    h, c = cell(X, (H, M))
    proposal = np.full_like(M, np.tanh(0.7))
    wanted = {(1, 0): M, (0, 1): proposal, (1, 1): M + proposal, (0, 0): 0 * M}[f, i]  # keep, replace, add, clear
    if (f, i) == (1, 0):
        np.testing.assert_array_equal(c, M)
    np.testing.assert_allclose(c, wanted, rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(h, np.tanh(wanted), rtol=1e-12)  # o = 1
    closed = zeroed(nn.LSTMCell(C, E, dtype=wl.float64), bias_ih=np.ravel([*gates[:3], [-1e4] * E]))
    assert (np.asarray(closed(X, (H, M))[0]) == 0).all()


@pytest.mark.book("A5-15", "A5-17", name="wl.nn.LSTMCell")
def test_only_peepholes_let_gates_see_the_memory() -> None:
    """The notes say that all gates are controlled by the cell state: so it is with peepholes alone."""
    plain, seeing = nn.LSTMCell(C, E, **f64()), nn.LSTMCell(C, E, peephole=True, **f64())
    for name, gate in plain.gates(X, (H, M)).items():
        np.testing.assert_array_equal(gate, plain.gates(X, (H, M + 1))[name])
        assert not np.array_equal(gate, plain.gates(X, (H + 1, M))[name])
        assert not np.array_equal(gate, plain.gates(X + 1, (H, M))[name])
    for name, gate in seeing.gates(X, (H, M)).items():
        assert (np.asarray(gate) != np.asarray(seeing.gates(X, (H, M + 1))[name])).all()


@pytest.mark.book("A5-17", "A5-18", name="wl.nn.LSTMCell")
@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("peephole", [False, True])
def test_peepholes_and_coupled_gates(peephole: bool, coupled: bool) -> None:
    cell = nn.LSTMCell(C, E, peephole=peephole, coupled=coupled, **f64())
    p = values(cell)
    count = 3 if coupled else 4
    given, fed = blocks(cell, X, H, count)
    u = [a + b for a, b in zip(given, fed, strict=True)]
    at = count - 3
    f = expit(u[at] + M * p.get("weight_cf", 0))
    i = 1 - f if coupled else expit(u[0] + M * p.get("weight_ci", 0))
    c = f * M + i * np.tanh(u[at + 1])
    o = expit(u[at + 2] + c * p.get("weight_co", 0))
    found = cell(X, (H, M))
    np.testing.assert_allclose(found[1], c, rtol=1e-11)
    np.testing.assert_allclose(found[0], o * np.tanh(c), rtol=1e-11)
    gates = cell.gates(X, (H, M))
    if coupled:
        np.testing.assert_array_equal(gates["i"], 1 - np.asarray(gates["f"]))
    weights = sum(value.size for name, value in p.items() if name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    assert weights == count * (E * E + E * C + 2 * E)  # coupled: 3/4 of the numbers of all gates
    assert cell.num_parameters() - weights == (0 if not peephole else (2 if coupled else 3) * E)
    wl.check_grads(lambda x, h, c: cell(x, (h, c)), (wl.tensor(X[:2]), wl.tensor(H[:2]), wl.tensor(M[:2])))
    eager = wl.grad(lambda cell: (cell(X, (H, M))[0] ** 2).sum())(cell)
    for path, g in eager.items():
        moved = cell.copy()
        at_path = getattr(moved, path)
        setattr(moved, path, at_path + 1e-6 * wl.ones_like(at_path))
        slope = ((moved(X, (H, M))[0] ** 2).sum() - (cell(X, (H, M))[0] ** 2).sum()).item() / 1e-6
        np.testing.assert_allclose(np.asarray(g).sum(), slope, rtol=1e-4, atol=1e-6)


@pytest.mark.book("A5-16", name="wl.nn.LSTMCell")
def test_the_path_through_the_memory_multiplies_forget_gates() -> None:
    """dc(n)/dc(0) along c alone is the product of f, at most 1; with what goes through z it can be larger."""
    cell = nn.LSTMCell(C, E, **f64())
    x, steps = numbers(6, C), range(6)

    def last_memory(c: wl.Tensor, through_h: bool) -> wl.Tensor:
        h = wl.tensor(H[0])
        for t in steps:
            h, c = cell(x[t], (h if through_h else wl.stop_gradient(h), c))
        return c

    c, h, product = wl.tensor(M[0]), wl.tensor(H[0]), np.ones(E)
    for t in steps:
        product *= np.asarray(cell.gates(x[t], (h, c))["f"])
        h, c = cell(x[t], (h, c))
    direct = np.asarray(wl.jacobian(partial(last_memory, through_h=False))(wl.tensor(M[0])))
    np.testing.assert_allclose(direct, np.diag(product), rtol=1e-12)
    assert product.max() <= 1
    # all gates open, and a proposal tanh(3 z): at c = 0 each step multiplies by 1 + 3
    open_ = zeroed(nn.LSTMCell(C, E, dtype=wl.float64), bias_ih=[1e4] * 2 * E + [0.0] * E + [1e4] * E)
    open_.weight_hh = wl.tensor(np.concatenate([np.zeros((E, 2 * E)), 3 * np.eye(E), np.zeros((E, E))], axis=1))

    def memory(c: wl.Tensor) -> wl.Tensor:
        h = wl.tanh(c)
        for _ in range(5):
            h, c = open_(np.zeros(C), (h, c))
        return c

    np.testing.assert_allclose(wl.jacobian(memory)(wl.zeros(E, dtype=wl.float64)), 4.0**5 * np.eye(E), rtol=1e-12)


@pytest.mark.book("13.35", "A5-16", name="wl.nn.LSTMCell")
@pytest.mark.parametrize("coupled", [False, True])
def test_a_forget_bias_keeps_memories_from_the_beginning(coupled: bool) -> None:
    for bias in (1.0, 20.0):
        cell: Any = nn.LSTMCell(C, E, forget_bias=bias, coupled=coupled, **f64())
        at = slice(0, E) if coupled else slice(E, 2 * E)
        np.testing.assert_array_equal((cell.bias_ih + cell.bias_hh)[at], bias)
        others = np.delete(np.asarray(cell.bias_ih), np.arange(4 * E)[at])
        assert (np.abs(others) <= 0.5).all()
        assert len(set(others.tolist())) == others.size
        cell.weight_ih, cell.weight_hh = cell.weight_ih * 0, cell.weight_hh * 0
        np.testing.assert_allclose(cell.gates(X, (H, M))["f"], expit(bias))
    assert expit(20.0) > 1 - 1e-8
    with pytest.raises(InputError, match=r"forget_bias=1\.0 without a bias"):
        nn.LSTMCell(C, E, bias=False, forget_bias=1.0)


def test_a_projected_state() -> None:
    cell: Any = nn.LSTMCell(C, E, proj_size=2, **f64())
    assert cell.weight_hh.shape == (2, 4 * E)
    assert cell.weight_hr.shape == (E, 2)
    h, c = cell(X)
    assert (h.shape, c.shape) == ((5, 2), (5, E))
    whole = nn.LSTMCell(C, E, **f64())
    whole.weight_ih, whole.bias_ih, whole.bias_hh = cell.weight_ih, cell.bias_ih, cell.bias_hh
    np.testing.assert_allclose(h, whole(X)[0] @ cell.weight_hr, rtol=1e-12)  # from a state of 0
    with pytest.raises(InputError, match="proj_size=4 for hidden_size=4"):
        nn.LSTMCell(C, E, proj_size=4)


# --- what all of them do


@pytest.mark.parametrize("name", CELLS)
def test_every_cell(name: str) -> None:
    """Axes in front, dtypes, no rows, derivatives, copies by state_dict, the same numbers from the same key."""
    cell = CELLS[name](**f64())
    whole = wl.tree.leaves(cell(numbers(2, 5, C)))
    alone = wl.tree.leaves(cell(numbers(2, 5, C)[1, 3]))
    for a, b in zip(whole, alone, strict=True):
        np.testing.assert_allclose(a[1, 3], b, rtol=1e-12)
    assert all(leaf.shape[0] == 0 for leaf in wl.tree.leaves(cell(wl.zeros((0, C)))))
    wl.check_grads(lambda x: wl.tree.leaves(cell(x)), (wl.tensor(X[:2]),))
    other = CELLS[name](dtype=wl.float64)
    other.load_state_dict(cell.state_dict())
    for a, b in zip(wl.tree.leaves(other(X)), wl.tree.leaves(cell(X)), strict=True):
        np.testing.assert_array_equal(a, b)
    again = CELLS[name](**f64())
    assert all((again.state_dict()[k] == v).all() for k, v in cell.state_dict().items())
    for kind in (wl.float32, wl.bfloat16):
        narrow = CELLS[name](dtype=kind, key=wl.random.key(5))
        for found, wanted in zip(
            wl.tree.leaves(narrow(wl.tensor(X, dtype=kind))), wl.tree.leaves(cell(X)), strict=True
        ):
            assert found.dtype == kind
            tolerance = 1e-5 if kind == wl.float32 else 0.15
            np.testing.assert_allclose(wl.astype(found, wl.float64), wanted, atol=tolerance)


@pytest.mark.parametrize("name", CELLS)
def test_orthogonal_and_identity_starts(name: str) -> None:
    for init in ("orthogonal", "identity", "eye", nn.init.orthogonal(2.0)):
        cell: Any = CELLS[name](**f64(), init=init)
        w = np.asarray(cell.A if isinstance(cell, nn.ElmanCell) else cell.weight_hh)
        for k in range(w.shape[1] // E):
            block = w[:, k * E : (k + 1) * E]
            if isinstance(init, str) and init != "orthogonal":
                np.testing.assert_array_equal(block, np.eye(*block.shape))
            else:
                gain = 1 if init == "orthogonal" else 4
                np.testing.assert_allclose(block @ block.T, gain * np.eye(len(block)), atol=1e-12)
    with pytest.raises(InputError, match="there is no initialiser 'ortho'"):
        CELLS[name](init="ortho")


def test_starts_of_layers() -> None:
    layer = nn.LSTM(C, E, 2, bidirectional=True, init="orthogonal", dtype=wl.float64)
    for name, w in layer.state_dict().items():
        if name.startswith("weight_hh"):
            for k in range(4):
                block = np.asarray(w)[:, k * E : (k + 1) * E]
                np.testing.assert_allclose(block @ block.T, np.eye(E), atol=1e-12)
    np.testing.assert_array_equal(nn.RNN(C, E, init="identity").state_dict()["weight_hh_l0"], np.eye(E))
    # lengths of gradients stay as they are over 200 steps of a linear network that starts orthogonal, and not else
    x, start = wl.zeros((200, C), dtype=wl.float64), wl.tensor(H[0])
    for init, most in (("orthogonal", 1.0), (None, 0.1)):
        deep = nn.Recurrent(nn.ElmanCell(C, E, 1, activation=None, init=init, **f64()))
        g = wl.grad(lambda s, deep=deep: deep.unroll(x, s).state[0])(start)
        size = float(np.linalg.norm(np.asarray(g)))
        assert size == pytest.approx(1.0) if most == 1 else size < most


def test_bad_input() -> None:
    cell = nn.LSTMCell(C, E)
    with pytest.raises(ShapeError, match=r"LSTMCell\(3, 4\): an input of shape \(5, 4\)"):
        cell(H)
    with pytest.raises(ShapeError, match=r"an initial state c of shape \(4, 4\)\.\n  try: one of shape \(5, 4\)"):
        cell(X, (H, M[:4]))
    with pytest.raises(InputError, match=r"a state of another kind, Tensor\.\n  try: a tuple \(h, c\)"):
        cell(X, wl.tensor(H))
    with pytest.raises(DTypeError, match="an initial state h of int64"):
        nn.GRUCell(C, E)(X, np.zeros((5, E), dtype=int))
    with pytest.raises(DTypeError, match="an initial state h of complex"):
        nn.GRUCell(C, E)(X, np.zeros((5, E), dtype=complex))
    with pytest.raises(InputError, match="nonlinearity='sin'"):
        nn.RNNCell(C, E, nonlinearity="sin")
    with pytest.raises(InputError, match="reset='never'"):
        nn.GRUCell(C, E, reset="never")
    with pytest.raises(InputError, match="form='paper'"):
        nn.LiGRUCell(C, E, form="paper")
    with pytest.raises(InputError, match="norm='batch'"):
        nn.ElmanCell(C, E, 2, norm="batch")
    with pytest.raises(InputError, match="hidden_size=0"):
        nn.RNNCell(C, 0)
    # a wider state widens the result, a narrower one is widened
    assert nn.RNNCell(C, E)(X.astype(np.float32), H).dtype == wl.float64
    assert nn.RNNCell(C, E)(X, H.astype(np.float32)).dtype == wl.float64
