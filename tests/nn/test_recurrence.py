"""Cells along sequences: any f and g, unrolled, deep, in both directions, with padding, in pieces, as one vector."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import DTypeError, InputError, ShapeError

from .test_recurrent_cells import CELLS, C, E, f64, numbers

Array = np.ndarray[Any, Any]
LENGTHS = [6, 4, 0]
COMPILED = ("RNN", "GRU, reset before", "LSTM", "coupled", "projected", "Li-GRU, original", "normalized")


def layer_of(name: str) -> nn.Recurrent:
    return nn.Recurrent(CELLS[name](**f64()))


def by_hand(cell: Any, x: Array, start: Any = None) -> tuple[Array, Any]:
    """A sequence (time, features) through a cell, step by step."""
    state, outputs = start, []
    for x_t in x:
        found = cell(x_t, state)
        if isinstance(cell, nn.ElmanCell):
            y, state = found
        else:
            state = found
            y = state[0] if isinstance(state, tuple) else state
        outputs.append(np.asarray(y.detach()))
    return np.stack(outputs), state


# --- whole, in pieces, step by step


@pytest.mark.book("13.12", "13.17", "A5-05", "A5-07", "S-15", name="wl.nn.Recurrent")
@pytest.mark.parametrize("name, compiled", [*((n, False) for n in CELLS), *((n, True) for n in COMPILED)])
def test_every_cell_keeps_every_promise(name: str, compiled: bool) -> None:
    """The whole = pieces = steps; padding on either side; rows alone; causal; caches that are reordered."""
    nn.assert_sequence_layer(
        layer_of(name), wl.tensor(numbers(3, 6, C)), compiled=compiled, threads=compiled and name == "LSTM"
    )


@pytest.mark.book("13.12", "S-15", name="wl.nn.Recurrent")
@pytest.mark.parametrize("name", CELLS)
def test_the_whole_is_a_loop_over_the_cell(name: str) -> None:
    layer, x = layer_of(name), numbers(2, 6, C)
    y, state, _ = layer.unroll(x)
    for row in range(2):
        wanted, last = by_hand(layer.cell, x[row])
        np.testing.assert_allclose(y[row], wanted, rtol=1e-12)
        np.testing.assert_allclose(layer(x)[row], wanted, rtol=1e-12)
        for found, end in zip(wl.tree.leaves(state), wl.tree.leaves(last), strict=True):
            np.testing.assert_allclose(found[row], end, rtol=1e-12)


def test_inputs_meet_their_weights_in_one_product() -> None:
    for cell in (nn.LSTMCell(C, E), nn.GRUCell(C, E), nn.LiGRUCell(C, E)):
        graph = wl.jit(lambda m, x: m(x)).graph(nn.Recurrent(cell), wl.ones((2, 6, C)))
        names = [e.primitive.name for e in graph.equations]
        assert (names.count("matmul"), names.count("scan")) == (1, 1)
    graph = wl.jit(lambda m, x: m(x)).graph(nn.Recurrent(nn.ElmanCell(C, E, 2)), wl.ones((2, 6, C)))
    assert [e.primitive.name for e in graph.equations].count("matmul") == 3  # B, C and D


@pytest.mark.book("13.17", "A5-07", name="wl.nn.Recurrent")
@pytest.mark.parametrize("make", [lambda: layer_of("LSTM"), lambda: nn.LSTM(C, E, 2, batch_first=True, **f64())])
def test_a_stream_takes_constant_memory(make: Any) -> None:
    """No limit of the length: 120 tokens in pieces of any size, with a cache that stays as large as it was."""
    layer, x = make(), wl.tensor(numbers(2, 120, C))
    whole = layer(x)
    whole = whole[0] if isinstance(whole, tuple) else whole
    cache, parts, at, sizes = layer.new_cache(2), [], 0, set()
    for piece in (1, 2, 37, 0, 50, 30):
        y, cache = layer.extend(x[:, at : at + piece], cache)
        parts.append(np.asarray(y.detach()))
        at += piece
        sizes.add(cache.nbytes)
    assert at == 120
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, rtol=1e-10, atol=1e-13)
    assert len(sizes) == 1
    assert cache.lengths.tolist() == [120, 120]
    step = wl.jit(lambda layer, x, cache: layer.step(x, cache)[0])
    found = [step(layer, x[:, i], cache) for i in range(3)]
    wanted = layer(wl.concat([x, x[:, :3]], axis=1))
    wanted = wanted[0] if isinstance(wanted, tuple) else wanted
    np.testing.assert_allclose(wl.stack(found, axis=1), wanted[:, 120:], rtol=1e-9, atol=1e-12)
    assert cache.nbytes in sizes


@pytest.mark.book("A5-05", "A5-07", name="wl.nn.RNN")
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_later_inputs_change_nothing_before(kind: Any) -> None:
    nn.assert_causal(kind(C, E, 2, batch_first=True), wl.tensor(numbers(2, 5, C)))
    with pytest.raises(AssertionError, match="results before token 1 change"):
        nn.assert_causal(kind(C, E, bidirectional=True, batch_first=True), wl.tensor(numbers(2, 5, C)))


@pytest.mark.book("A5-06", name="wl.nn.Recurrent")
@pytest.mark.parametrize("name", CELLS)
def test_a_later_sequence_gives_later_results(name: str) -> None:
    """The same computation in each step, wherever it is."""
    layer, x = layer_of(name), numbers(2, 4, C)
    whole = np.asarray(layer(x))
    for shift in (1, 3):
        shifted = np.concatenate([np.full((2, shift, C), np.nan), x], axis=1)
        found = np.asarray(layer(shifted, token_mask=np.arange(4 + shift) >= np.full((2, 1), shift)))
        np.testing.assert_allclose(found[:, shift:], whole, rtol=1e-12)
        assert (found[:, :shift] == 0).all()
    # without biases the state of zeros that are read is 0 as well, and nobody needs to say what is real
    plain = nn.Recurrent(nn.RNNCell(C, E, bias=False, **f64()))
    shifted = np.concatenate([np.zeros((2, 3, C)), x], axis=1)
    np.testing.assert_allclose(plain(shifted)[:, 3:], plain(x), rtol=1e-12)


def test_costs() -> None:
    """As many multiply-adds as numbers in matrices, for each token."""
    for cell, each in (
        (nn.LSTMCell(C, E, proj_size=2), 4 * E * (C + 2) + 2 * E),
        (nn.GRUCell(C, E), 3 * E * (C + E)),
        (nn.ElmanCell(C, E, 2), E * E + C * E + 2 * E + 2 * C),
    ):
        assert nn.Recurrent(cell).summary((2, 7, C)).multiply_adds == 14 * each
        assert cell.summary((5, C)).multiply_adds == 5 * each
        assert nn.Bidirectional(cell).summary((2, 7, C)).multiply_adds == 28 * each


# --- any f and g


@pytest.mark.book("13.14", name=("wl.nn.FunctionCell", "wl.nn.Recurrent"))
def test_any_f_and_g() -> None:
    """s_i = f(s_{i-1}, x_i), h_i = g(s_i, x_i), s_0 = 0; simple units and Elman's as instances."""
    rnn, elman = nn.RNNCell(C, E, **f64()), nn.ElmanCell(C, E, 2, **f64())
    x = wl.tensor(numbers(3, 6, C))
    found = nn.Recurrent(nn.FunctionCell(lambda s, x: rnn(x, s), None, E))
    np.testing.assert_allclose(found(x), nn.Recurrent(rnn)(x), rtol=1e-12)
    found = nn.Recurrent(nn.FunctionCell(lambda s, x: wl.tanh(s @ elman.A + x @ elman.B),
                                         lambda s, x: s @ elman.C + x @ elman.D, E, dtype=wl.float64))  # fmt: skip
    np.testing.assert_allclose(found(x), nn.Recurrent(elman)(x), rtol=1e-12)
    for compiled in (False, True):
        nn.assert_sequence_layer(found, x, compiled=compiled, threads=False)
    jacobian = np.asarray(wl.jacobian(lambda x: found(x[None])[0])(x[0]))  # (time, out, time, in)
    future = np.triu(np.ones((6, 6), dtype=bool), 1)
    assert (np.moveaxis(jacobian, 1, 2)[future] == 0).all()
    assert (np.abs(np.moveaxis(jacobian, 1, 2)[~future]).max(axis=(1, 2)) > 0).all()
    # an initial state, the last state, and one sequence alone
    start = numbers(3, E, seed=4)
    _, state, gates = found.unroll(x, start)
    s = start
    for i in range(6):
        s = np.tanh(s @ np.asarray(elman.A) + np.asarray(x)[:, i] @ np.asarray(elman.B))
    np.testing.assert_allclose(state, s, rtol=1e-12)
    assert gates == {}
    assert found.unroll(x[0], start[0]).outputs.shape == (6, 2)
    h, after = nn.FunctionCell(lambda s, x: s + x, lambda s, x: 2 * s, C)(wl.ones((2, C)))
    assert (h.tolist(), after.tolist()) == ([[2.0] * C] * 2, [[1.0] * C] * 2)
    # modules as f and g are trained with the rest
    layer = nn.Recurrent(nn.FunctionCell(nn.Bilinear(E, C, E, bias=False), nn.Bilinear(E, C, 1), E))
    grads = wl.grad(lambda m: m.unroll(wl.ones((1, 2, C)), wl.ones((1, E))).outputs.sum())(layer)
    assert set(grads) == {"cell.f.weight", "cell.g.weight", "cell.g.bias"}
    assert all(np.asarray(g).all() for g in grads.values())


@pytest.mark.book("13.14", name="wl.nn.FunctionCell")
def test_linear_attention_is_an_instance() -> None:
    """A state of two parts, a matrix and a vector: S_i = S_{i-1} + phi(k) v^T, z_i = z_{i-1} + phi(k)."""
    q, k, v = (wl.tensor(numbers(C, E, seed=i)) for i in range(3))

    def phi(x: wl.Tensor) -> wl.Tensor:
        return nn.functional.elu(x) + 1

    def f(s: dict[str, wl.Tensor], x: wl.Tensor) -> dict[str, wl.Tensor]:
        keys = phi(x @ k)
        return {"S": s["S"] + keys[..., :, None] * (x @ v)[..., None, :], "z": s["z"] + keys}

    def g(s: dict[str, wl.Tensor], x: wl.Tensor) -> wl.Tensor:
        query = phi(x @ q)
        return (query[..., None, :] @ s["S"])[..., 0, :] / (query * s["z"]).sum(axis=-1, keepdims=True)

    layer = nn.Recurrent(nn.FunctionCell(f, g, {"S": (E, E), "z": E}, dtype=wl.float64))
    x = wl.tensor(numbers(3, 6, C))
    scores = np.tril(np.asarray(phi(x @ q) @ wl.swapaxes(phi(x @ k), 1, 2)))  # all at once, masked
    wanted = (scores / scores.sum(axis=-1, keepdims=True)) @ np.asarray(x @ v)
    np.testing.assert_allclose(layer(x), wanted, rtol=1e-10)
    nn.assert_sequence_layer(layer, x, threads=False)
    assert {name: part.shape for name, part in layer.new_cache(3).state.items()} == {"S": (3, E, E), "z": (3, E)}
    with pytest.raises(InputError, match="f gave a Tensor as the next state"):
        nn.Recurrent(nn.FunctionCell(lambda s, x: x, g, {"S": (E, E), "z": E}))(x)
    with pytest.raises(InputError, match="several parts of a state are no result"):
        nn.FunctionCell(f, None, {"S": (E, E), "z": E})
    with pytest.raises(InputError, match="a Linear is no cell"):
        nn.Recurrent(nn.Linear(C, E))  # type: ignore[arg-type]


# --- unrolling


def step_of(a: wl.Tensor, b: wl.Tensor, s: wl.Tensor, x: wl.Tensor) -> wl.Tensor:
    return wl.tanh(s @ a + x @ b)


@pytest.mark.book("13.24", "A5-04", name="wl.nn.Recurrent")
@pytest.mark.parametrize("compiled", [False, True])
def test_unrolling_is_a_deep_network_with_tied_weights(compiled: bool) -> None:
    """The gradient of a shared matrix is the sum over all steps; that of one step alone is another."""
    cell = nn.ElmanCell(C, E, 1, **f64())
    layer, x = nn.Recurrent(cell), wl.tensor(numbers(5, C))

    def last(layer: nn.Recurrent) -> wl.Tensor:
        state = layer.unroll(x).state
        assert isinstance(state, wl.Tensor)
        return state

    def gradient() -> wl.Tensor:
        assert cell.A.grad is not None
        return cell.A.grad

    a, b = wl.tensor(cell.A), wl.tensor(cell.B)

    def deep(*matrices: wl.Tensor) -> wl.Tensor:
        """Five layers, each with a matrix of its own and a further input."""
        s = wl.zeros(E, dtype=wl.float64)
        for i, a_i in enumerate(matrices):
            s = step_of(a_i, b, s, x[i])
        return (s**2).sum()

    def shared(layer: nn.Recurrent) -> wl.Tensor:
        return (last(layer) ** 2).sum()

    call = wl.jit if compiled else (lambda f: f)
    np.testing.assert_allclose(call(shared)(layer), deep(*[a] * 5), rtol=1e-12)
    found = np.asarray(call(wl.grad(shared))(layer)["cell.A"])
    each = [np.asarray(g) for g in wl.grad(deep, argnums=tuple(range(5)))(*[a] * 5)]
    np.testing.assert_allclose(found, np.sum(each, axis=0), rtol=1e-11)
    assert not np.allclose(found, each[-1])  # what is left if steps overwrite each other
    assert (each[0] == 0).all()  # s_0 = 0
    shared(layer).backward()
    np.testing.assert_allclose(gradient(), found, rtol=1e-11)
    shared(layer).backward()
    np.testing.assert_allclose(gradient(), 2 * found, rtol=1e-11)  # and a second pass adds to the first


@pytest.mark.book("S-15", name=("wl.nn.RNN", "wl.nn.GRU", "wl.nn.LSTM"))
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_layers_are_trained_by_unrolling(kind: Any) -> None:
    """Which of two numbers came first, after five others: solved by all of them."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(64, 5, 1)).astype(np.float32)
    labels = wl.tensor(x[:, 0] > 0, dtype=wl.float32)

    class Last(nn.Module):
        def __init__(self) -> None:
            self.layer, self.out = kind(1, 8, batch_first=True, key=wl.random.key(1)), nn.Linear(8, 1)

        def forward(self, x: wl.Tensor) -> wl.Tensor:
            return self.out(self.layer.thought_vector(x))

    model = Last()
    optimizer = wl.optim.Adam(model.parameters(), lr=0.05)

    @wl.jit
    def step(model: Last, optimizer: Any) -> wl.Tensor:
        loss, grads = wl.value_and_grad(
            lambda m: nn.functional.binary_cross_entropy_with_logits(m(wl.tensor(x)), labels)
        )(model)
        optimizer.step(grads)
        return loss

    losses = [float(step(model, optimizer)) for _ in range(100)]
    assert losses[-1] < 0.1 < 0.6 < losses[0]


# --- deep


@pytest.mark.book("13.16", name=("wl.nn.RNN", "wl.nn.SequenceStack"))
@pytest.mark.parametrize("kind, cell", [(nn.RNN, nn.RNNCell), (nn.GRU, nn.GRUCell), (nn.LSTM, nn.LSTMCell)])
@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_layers_on_layers(kind: Any, cell: Any, lengths: list[int] | None) -> None:
    deep = kind(C, E, 3, batch_first=True, **f64())
    single = [kind(C if i == 0 else E, E, batch_first=True, dtype=wl.float64) for i in range(3)]
    cells = [cell(C if i == 0 else E, E, dtype=wl.float64) for i in range(3)]
    for i in range(3):
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            value = getattr(deep, f"{name}_l{i}")
            setattr(single[i], f"{name}_l0", wl.tensor(value))
            setattr(cells[i], name, wl.tensor(value))
    x = wl.tensor(numbers(3, 6, C))
    wanted, state = deep(x, lengths=lengths)
    y, ends = x, []
    for layer in single:
        y, end = layer(y, lengths=lengths)
        ends.append(end)
    np.testing.assert_allclose(wanted, y, rtol=1e-12)
    for k, part in enumerate(wl.tree.leaves(state)):
        np.testing.assert_allclose(part, wl.concat([wl.tree.leaves(end)[k] for end in ends]), rtol=1e-12)
    stack = nn.SequenceStack([nn.Recurrent(c) for c in cells])
    np.testing.assert_allclose(stack(x, lengths=lengths), wanted, rtol=1e-12)
    if lengths is None:
        nn.assert_sequence_layer(stack, x, threads=False)


# --- both directions


@pytest.mark.book("13.15", "A5-08", name="wl.nn.Bidirectional")
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", ["RNN", "GRU", "projected", "Elman"])
def test_both_directions(name: str, compiled: bool) -> None:
    cell = CELLS[name](**f64())
    layer = nn.Bidirectional(cell, key=wl.random.key(3))
    x = wl.tensor(numbers(3, 6, C))
    run = wl.jit(lambda m, x: m(x)) if compiled else (lambda m, x: m(x))
    y = np.asarray(run(layer, x))
    o = y.shape[-1] // 2
    ahead, back = layer.ahead, layer.back
    assert layer.num_parameters() == 2 * cell.num_parameters()
    assert not np.allclose(next(iter(ahead.parameters())), next(iter(back.parameters())))  # drawn anew
    np.testing.assert_allclose(y[..., :o], ahead(x), rtol=1e-12)
    turned = np.asarray(back(wl.flip(x, axis=1)))
    np.testing.assert_allclose(y[..., o:], turned[:, ::-1], rtol=1e-12)  # at the places of their tokens
    assert not np.allclose(y[..., o:], turned)
    # of the reversed input the halves are swapped, if the parameters are
    swapped = nn.Bidirectional(back, ahead)
    again = np.asarray(run(swapped, wl.flip(x, axis=1)))[:, ::-1]
    np.testing.assert_allclose(again, np.concatenate([y[..., o:], y[..., :o]], axis=-1), rtol=1e-12)
    nn.assert_padding_ignored(layer, x, lengths=[6, 4, 1], compiled=compiled)
    nn.assert_rows_alone(layer, x, compiled=compiled)


@pytest.mark.book("A5-08", name=("wl.nn.Bidirectional", "wl.nn.LSTM"))
@pytest.mark.parametrize(
    "layer",
    [
        nn.Bidirectional(nn.GRUCell(C, E, **f64())),
        lambda x, **k: nn.LSTM(C, E, batch_first=True, bidirectional=True, **f64())(x, **k)[0],
    ],
    ids=["Bidirectional", "LSTM"],
)
def test_every_output_depends_on_every_input(layer: Any) -> None:
    x = wl.tensor(numbers(5, C))
    found = np.asarray(wl.jacobian(lambda x: layer(x[None])[0])(x))  # (t, out, t', in)
    assert (np.abs(found).max(axis=(1, 3)) > 0).all()
    masked = np.asarray(wl.jacobian(lambda x: layer(x[None], lengths=[3])[0])(x))
    sizes = np.abs(masked).max(axis=(1, 3))
    assert (sizes[:3, :3] > 0).all()
    assert (sizes[3:] == 0).all()
    assert (sizes[:, 3:] == 0).all()


def test_a_layer_that_cannot_draw_its_parameters() -> None:
    class Sum(nn.StateLayer):
        def __init__(self, scale: float) -> None:
            self.scale = nn.Parameter(wl.full(C, scale))

        def state_shapes(self) -> dict[str, tuple[int, ...]]:
            return {"total": (C,)}

        def run(self, x, state, real):  # type: ignore[no-untyped-def]
            y = state["total"][:, None] + wl.cumsum(x * self.scale, axis=1)
            return y, {"total": y[:, -1]}

    with pytest.raises(InputError, match="a Sum cannot draw parameters of its own, 'scale' first of all"):
        nn.Bidirectional(Sum(1.0))
    one = Sum(1.0)
    with pytest.raises(InputError, match="one layer for both directions"):
        nn.Bidirectional(one, one)
    layer = nn.Bidirectional(one, Sum(2.0))
    assert layer(wl.ones((1, 3, C)))[0, :, 0].tolist() == [1, 2, 3]
    assert layer(wl.ones((1, 3, C)))[0, :, C].tolist() == [6, 4, 2]
    assert layer(wl.ones((1, 3, C)), lengths=[2])[0, :, C].tolist() == [4, 2, 0]
    assert layer.thought_vector(wl.ones((1, 3, C)), lengths=[2]).tolist() == [[2.0] * C + [4.0] * C]
    with pytest.raises(InputError, match="a Linear is no cell"):
        nn.Bidirectional(nn.Linear(C, E))
    with pytest.raises(InputError, match="runs backwards, too"):
        wl.models.CausalSequential(layer)


# --- one vector, or one for each token


@pytest.mark.book("A5-20", name=("wl.nn.Recurrent", "wl.nn.Bidirectional"))
@pytest.mark.parametrize("side", ["right", "left"])
def test_thought_vectors_of_padded_sequences(side: str) -> None:
    """The last state is that of step tau, not of padding; the backward direction ends at the first token."""
    x = numbers(3, 6, C)
    real = np.arange(6) < np.array(LENGTHS)[:, None]
    padded = np.where(real[..., None], x, np.nan)
    if side == "left":
        real = real[:, ::-1].copy()
        padded = np.stack([np.roll(row, 6 - n, axis=0) for row, n in zip(padded, LENGTHS, strict=True)])
    one, both = layer_of("LSTM"), nn.Bidirectional(nn.GRUCell(C, E, **f64()))
    ways: list[tuple[Any, slice]] = [(both.ahead, slice(None)), (both.back, slice(None, None, -1))]
    h, c = one.final_state(padded, token_mask=real)
    vectors, pairs = one.thought_vector(padded, token_mask=real), both.thought_vector(padded, token_mask=real)
    for row, n in enumerate(LENGTHS):
        alone, (h_alone, c_alone) = by_hand(one.cell, x[row, :n]) if n else (np.zeros((1, E)), np.zeros((2, E)))
        np.testing.assert_allclose(vectors[row], alone[-1], rtol=1e-12)
        np.testing.assert_allclose(h[row], h_alone, rtol=1e-12)
        np.testing.assert_allclose(c[row], c_alone, rtol=1e-12)
        ends = [by_hand(part.cell, x[row, :n][order])[0][-1] if n else np.zeros(E) for part, order in ways]
        np.testing.assert_allclose(pairs[row], np.concatenate(ends), rtol=1e-12)
    if side == "right":
        np.testing.assert_array_equal(one.thought_vector(padded, lengths=LENGTHS), vectors)
        assert not np.allclose(one(np.nan_to_num(padded))[:, -1], vectors)  # what padding would do
    g = wl.grad(lambda x: (both.thought_vector(x, token_mask=real) ** 2).sum())(wl.tensor(padded))
    assert np.isfinite(np.asarray(g)).all()
    assert (np.asarray(g)[~real] == 0).all()


@pytest.mark.book("A5-20", name=("wl.nn.LSTM", "wl.nn.GRU"))
@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_thought_vectors_of_layers(kind: Any) -> None:
    x = wl.tensor(numbers(3, 6, C))
    layer = kind(C, E, 2, batch_first=True, bidirectional=True, **f64())
    y, _ = layer(x, lengths=LENGTHS)
    found = np.asarray(layer.thought_vector(x, lengths=LENGTHS))
    for row, n in enumerate(LENGTHS):
        wanted = wl.concat([y[row, n - 1, :E], y[row, 0, E:]]) if n else np.zeros(2 * E)
        np.testing.assert_array_equal(found[row], wanted)
    one = kind(C, E, **f64())
    np.testing.assert_array_equal(one.thought_vector(wl.swapaxes(x, 0, 1)), one(wl.swapaxes(x, 0, 1))[0][-1])


@pytest.mark.book("A5-21", name=("wl.nn.Bidirectional", "wl.nn.LSTM"))
def test_a_vector_for_each_token_in_its_context() -> None:
    """z(t) of a token depends on where it stands among the others; a head labels each one."""
    x = numbers(1, 6, C)
    x[0, 4] = x[0, 1]  # the same token twice
    body = nn.Bidirectional(nn.LSTMCell(C, E, **f64()))
    z = np.asarray(body(x))
    assert z.shape == (1, 6, 2 * E)
    assert not np.allclose(z[0, 1], z[0, 4])
    # a task about context: is a token larger than the next one? Each alone does not tell.
    rng = np.random.default_rng(1)
    tokens, counts = rng.normal(size=(64, 6, 1)).astype(np.float32), rng.integers(2, 7, size=64)
    real = np.arange(6) < counts[:, None]
    labels = np.zeros((64, 6), dtype=np.float32)
    labels[:, :-1] = (tokens[:, :-1] > tokens[:, 1:])[..., 0]
    seen = real & (np.arange(6) < counts[:, None] - 1)

    class Tagger(nn.Module):
        def __init__(self) -> None:
            self.body = nn.Bidirectional(nn.GRUCell(1, 12, key=wl.random.key(1)), key=wl.random.key(2))
            self.head = nn.Linear(24, 1, key=wl.random.key(3))

        def forward(self, x: wl.Tensor) -> wl.Tensor:
            return self.head(self.body(x, token_mask=real))[..., 0]

    model = Tagger()
    optimizer = wl.optim.Adam(model.parameters(), lr=0.03)

    def loss(model: Tagger) -> wl.Tensor:
        each = nn.functional.binary_cross_entropy_with_logits(model(wl.tensor(tokens)), labels, reduction="none")
        return wl.where(seen, each, 0.0).sum() / int(seen.sum())

    @wl.jit
    def step(model: Tagger, optimizer: Any) -> None:
        optimizer.step(wl.grad(loss)(model))

    for _ in range(150):
        step(model, optimizer)
    right = (np.asarray(model(wl.tensor(tokens)).detach()) > 0) == (labels > 0)
    assert right[seen].mean() > 0.9


# --- bad input


def test_bad_input() -> None:
    layer, x = nn.Recurrent(nn.LSTMCell(C, E)), wl.ones((2, 5, C))
    with pytest.raises(InputError, match="lengths from 0 to 6 for 5 tokens"):
        layer(x, lengths=[0, 6])
    with pytest.raises(ShapeError, match=r"lengths of shape \(3,\)"):
        layer(x, lengths=[1, 2, 3])
    with pytest.raises(InputError, match="say the same thing"):
        layer(x, lengths=[1, 2], token_mask=np.ones((2, 5), dtype=bool))
    with pytest.raises(ShapeError, match=r"an input of shape \(2, 5, 7\)"):
        layer(wl.ones((2, 5, 7)))
    with pytest.raises(ShapeError, match=r"an initial state h of shape \(3, 4\)"):
        layer.unroll(x, (wl.zeros((3, E)), wl.zeros((2, E))))
    with pytest.raises(DTypeError, match="an initial state c of int64"):
        layer.unroll(x, (wl.zeros((2, E)), wl.zeros((2, E), dtype=wl.int64)))
    with pytest.raises(InputError, match="a state of another kind"):
        layer.unroll(x, wl.zeros((2, E)))
    with pytest.raises(ShapeError, match="a cache of"):
        layer.extend(x, nn.Recurrent(nn.GRUCell(C, E)).new_cache(2))


def test_no_steps_and_no_rows() -> None:
    layer = nn.Recurrent(nn.LSTMCell(C, E))
    start = (wl.ones((2, E)), wl.ones((2, E)))
    y, state, _ = layer.unroll(wl.ones((2, 5, C)), start, lengths=[0, 0])
    assert (np.asarray(y.detach()) == 0).all()
    for part in state:
        np.testing.assert_array_equal(part, 1)
    assert layer(wl.ones((0, 5, C))).shape == (0, 5, E)
    assert layer(wl.ones((2, 0, C))).shape == (2, 0, E)
    assert layer.thought_vector(wl.ones((2, 0, C))).tolist() == [[0.0] * E] * 2
    y, state, _ = layer.unroll(wl.ones((2, 0, C)), start)
    assert y.shape == (2, 0, E)
    np.testing.assert_array_equal(state[1], 1)


def test_axes_in_front_are_rows() -> None:
    layer, x = layer_of("LSTM"), numbers(2, 3, 5, C)
    real = np.random.default_rng(1).random((2, 3, 5)) > 0.3
    y, (h, _), gates = layer.unroll(x, token_mask=real, gates=True)
    for i in np.ndindex(2, 3):
        alone, (h_alone, _), alone_gates = layer.unroll(x[i], token_mask=real[i], gates=True)
        np.testing.assert_allclose(y[i], alone, rtol=1e-12)
        np.testing.assert_allclose(h[i], h_alone, rtol=1e-12)
        np.testing.assert_allclose(gates["f"][i], alone_gates["f"], rtol=1e-12)
    call = partial(wl.jit(lambda m, x, r: m.unroll(x, token_mask=r)), layer)
    np.testing.assert_allclose(call(wl.tensor(x), wl.tensor(real)).outputs, y, rtol=1e-12)


@pytest.mark.parametrize("kind", [wl.float32, wl.bfloat16])
def test_narrow_numbers(kind: Any) -> None:
    for make in (nn.RNNCell, nn.GRUCell, nn.LSTMCell):
        layer, wide = (nn.Recurrent(make(C, E, dtype=k, key=wl.random.key(1))) for k in (kind, wl.float64))
        x = wl.tensor(numbers(2, 5, C), dtype=kind)
        found = layer(x, lengths=[5, 3])
        assert found.dtype == kind
        wanted = wide(wl.astype(x, wl.float64), lengths=[5, 3])
        np.testing.assert_allclose(wl.astype(found, wl.float64), wanted, atol=1e-5 if kind == wl.float32 else 0.1)
        assert layer(wl.astype(x, wl.float64)).dtype == wl.float64
        y, cache = layer.extend(wl.astype(x, wl.float64))
        assert (y.dtype, cache.state["h"].dtype) == (wl.float64, kind)
