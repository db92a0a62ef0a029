"""RNN, GRU and LSTM over padded sequences, and reading on: what a loop over each sequence alone gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import DTypeError, InputError, ShapeError

from .test_recurrent import loop

KINDS = [nn.RNN, nn.GRU, nn.LSTM]
H = 5  # as in test_recurrent
LENGTHS = [7, 4, 1, 0]
X = np.random.default_rng(3).normal(size=(7, 4, 4))  # time, batch, features
REAL = np.arange(7)[:, None] < np.array(LENGTHS)
PADDED = np.where(REAL[..., None], X, np.nan)


def make(kind: Any, **settings: Any) -> Any:
    return kind(4, H, dtype=wl.float64, key=wl.random.key(1), **settings)


def states(kind: Any, count: int) -> list[np.ndarray[Any, Any]]:
    return [np.random.default_rng(9 + i).normal(size=(count, 4, H)) for i in range(2 if kind is nn.LSTM else 1)]


def given(kind: Any, parts: Any) -> Any:
    return tuple(map(wl.tensor, parts)) if kind is nn.LSTM else wl.tensor(parts[0])


@pytest.mark.book("A5-08", "A5-20", name=("wl.nn.RNN", "wl.nn.GRU", "wl.nn.LSTM"))
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("settings", [{}, {"num_layers": 2, "bidirectional": True}])
@pytest.mark.parametrize("kind", KINDS)
def test_padded_sequences_are_as_each_one_alone(kind: Any, settings: dict[str, Any], compiled: bool) -> None:
    """The last state is that of the last real step, the backward direction begins there, padding gives zeros."""
    layer = make(kind, **settings)
    starts = states(kind, layer.num_layers * (2 if layer.bidirectional else 1))

    def run(layer: Any, x: Any, start: Any, lengths: Any) -> Any:
        return layer(x, start, lengths=lengths)

    y, last = (wl.jit(run) if compiled else run)(layer, wl.tensor(PADDED), given(kind, starts), wl.tensor(LENGTHS))
    ends = wl.tree.leaves(last)
    for row, n in enumerate(LENGTHS):
        rows = slice(row, row + 1)
        wanted, wanted_ends = X[:0, rows], [s[:, rows] for s in starts]  # without tokens: the states as they were
        if n:
            wanted, wanted_ends = loop(kind, layer, X[:n, rows], [s[:, rows] for s in starts])
            np.testing.assert_allclose(np.asarray(y.detach())[:n, rows], wanted, rtol=1e-10, atol=1e-12)
        assert (np.asarray(y.detach())[n:, row] == 0).all()
        for found, end in zip(ends, wanted_ends, strict=True):
            np.testing.assert_allclose(found[:, rows], end, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_masks_on_either_side_and_both_layouts(kind: Any) -> None:
    layer, first = make(kind, bidirectional=True), make(kind, bidirectional=True, batch_first=True)
    y, last = layer(PADDED, lengths=LENGTHS)
    masked, _ = layer(PADDED, token_mask=REAL)  # in the layout of the input, (time, batch)
    np.testing.assert_array_equal(masked, y)
    swapped, _ = first(PADDED.swapaxes(0, 1), lengths=LENGTHS)
    np.testing.assert_array_equal(swapped, wl.swapaxes(y, 0, 1))
    swapped, _ = first(PADDED.swapaxes(0, 1), token_mask=REAL.T)
    np.testing.assert_array_equal(swapped, wl.swapaxes(y, 0, 1))
    left = np.stack([np.roll(PADDED[:, i], 7 - n, axis=0) for i, n in enumerate(LENGTHS)], axis=1)
    on_left, same = layer(left, token_mask=REAL[::-1].copy())
    for i, n in enumerate(LENGTHS):
        np.testing.assert_allclose(on_left[7 - n :, i], y[:n, i], rtol=1e-12)
    for a, b in zip(wl.tree.leaves(same), wl.tree.leaves(last), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    single, _ = layer(PADDED[:, 1], lengths=4)  # one sequence has one length
    np.testing.assert_allclose(single, y[:, 1], rtol=1e-12)
    single, _ = layer(PADDED[:, 1], token_mask=REAL[:, 1])
    np.testing.assert_allclose(single, y[:, 1], rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_has_no_gradient(kind: Any) -> None:
    layer = make(kind, num_layers=2, bidirectional=True)

    def loss(layer: Any, x: wl.Tensor) -> wl.Tensor:
        y, last = layer(x, lengths=LENGTHS)
        return (y**2).sum() + sum((part**2).sum() for part in wl.tree.leaves(last))

    of_layer, of_x = wl.grad(loss, argnums=(0, 1))(layer, wl.tensor(PADDED))
    assert all(np.isfinite(np.asarray(g)).all() for g in of_layer.values())
    assert (np.asarray(of_x)[~REAL] == 0).all()
    assert (np.asarray(of_x)[REAL] != 0).all()
    # of the rows alone, added up
    total: dict[str, Any] = dict.fromkeys(of_layer, 0.0)
    for row, n in enumerate(LENGTHS):
        for path, g in wl.grad(lambda m, x: (m(x)[0] ** 2).sum() + sum(
            (part**2).sum() for part in wl.tree.leaves(m(x)[1])
        ))(layer, wl.tensor(X[:n, row : row + 1])).items():  # fmt: skip
            total[path] = total[path] + np.asarray(g)
    for path, g in of_layer.items():
        np.testing.assert_allclose(g, total[path], rtol=1e-9, atol=1e-12)


@pytest.mark.book("13.12", "A5-07", "S-15", name=("wl.nn.RNN", "wl.nn.GRU", "wl.nn.LSTM"))
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_layers_read_on(kind: Any, compiled: bool) -> None:
    settings = {"proj_size": 3} if kind is nn.LSTM else {}
    layer = make(kind, num_layers=2, batch_first=True, **settings)
    x = wl.tensor(np.random.default_rng(1).normal(size=(3, 6, 4)))
    nn.assert_sequence_layer(layer, x, compiled=compiled, threads=compiled)


@pytest.mark.parametrize("kind", KINDS)
def test_reading_on_has_the_layout_of_the_input(kind: Any) -> None:
    layer = make(kind)
    whole, _ = layer(X)
    y, cache = layer.extend(X[:3])
    assert y.shape == (3, 4, H)
    z, cache = layer.step(X[3], cache)
    np.testing.assert_allclose(wl.concat([y, z[None]]), whole[:4], rtol=1e-12)
    assert cache.lengths.tolist() == [4] * 4
    y, cache = layer.extend(X[4:], cache, [3, 2, 0, 1])
    np.testing.assert_allclose(y[:2, 1], whole[4:6, 1], rtol=1e-12)
    assert (y[2:, 1] == 0).all()
    assert cache.lengths.tolist() == [7, 6, 4, 5]
    y, cache = layer.extend(np.zeros((0, 4, 4)), cache)
    assert y.shape == (0, 4, H)


def test_what_runs_backwards_cannot_read_on() -> None:
    layer = nn.GRU(4, H, bidirectional=True, batch_first=True)
    for call in (
        lambda: layer.new_cache(2),
        lambda: layer.extend(wl.ones((2, 3, 4))),
        lambda: layer.step(wl.ones((2, 4))),
    ):
        with pytest.raises(InputError, match="begins at the end, so it cannot read on"):
            call()
    one = nn.GRU(4, H, batch_first=True)
    with pytest.raises(ShapeError, match=r"a cache of .* for 2 rows"):
        layer.extend(wl.ones((2, 3, 4)), one.new_cache(2))
    with pytest.raises(ShapeError, match=r"a cache of .* for 2 rows"):
        one.extend(wl.ones((2, 3, 4)), nn.LSTM(4, H).new_cache(2))
    with pytest.raises(InputError, match="a KeyValueCache as cache"):
        one.extend(wl.ones((2, 3, 4)), nn.KeyValueCache(2, 1, 4, 4))  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"tokens of shape \(3, 4\) to read on"):
        one.extend(wl.ones((3, 4)))
    with pytest.raises(ShapeError, match=r"a token of shape \(2, 3, 4\)"):
        one.step(wl.ones((2, 3, 4)))


def test_bad_lengths_and_states() -> None:
    layer = nn.LSTM(4, H, batch_first=True)
    x = wl.ones((2, 3, 4))
    with pytest.raises(InputError, match="lengths from 0 to 4 for 3 tokens"):
        layer(x, lengths=[0, 4])
    with pytest.raises(InputError, match="lengths from -1 to 2 for 3 tokens"):
        layer(x, lengths=[-1, 2])
    with pytest.raises(ShapeError, match=r"lengths of shape \(3,\).*sequences of shape \(2, 3\)"):
        layer(x, lengths=[1, 2, 3])
    with pytest.raises(ShapeError, match=r"lengths of .*float"):
        layer(x, lengths=wl.tensor([1.0, 2.0]))
    with pytest.raises(ShapeError, match=r"a token_mask of shape \(3, 2\)"):
        layer(x, token_mask=np.ones((3, 2), dtype=bool))
    with pytest.raises(InputError, match="say the same thing"):
        layer(x, lengths=[1, 2], token_mask=np.ones((2, 3), dtype=bool))
    with pytest.raises(ShapeError, match=r"an initial state c of shape \(1, 2, 4\)"):
        layer(x, (wl.zeros((1, 2, H)), wl.zeros((1, 2, 4))))
    with pytest.raises(ShapeError, match="1 tensors as the initial state"):
        layer(x, wl.zeros((1, 2, H)))  # type: ignore[arg-type]
    with pytest.raises(DTypeError, match="an initial state h of int64"):
        layer(x, (wl.zeros((1, 2, H), dtype=wl.int64), wl.zeros((1, 2, H))))
    with pytest.raises(DTypeError, match="an initial state h of complex64"):
        layer(x, (wl.zeros((1, 2, H), dtype=wl.complex64), wl.zeros((1, 2, H))))
    with pytest.raises(InputError, match="proj_size=5 for hidden_size=5"):
        nn.LSTM(4, H, proj_size=5)
    with pytest.raises(InputError, match="GRU: proj_size=3; it has no memory beside its output"):
        nn.GRU(4, H, proj_size=3)
    with pytest.raises(InputError, match="proj_size=-1"):
        nn.LSTM(4, H, proj_size=-1)


def test_states_of_another_width() -> None:
    """The wider of the numbers that meet is what comes out, whichever it is."""
    for wide in ("x", "state", "layer"):
        kinds = {name: wl.float64 if name == wide else wl.float32 for name in ("x", "state", "layer")}
        layer = nn.GRU(4, H, dtype=kinds["layer"])
        y, h = layer(wl.ones((3, 2, 4), dtype=kinds["x"]), wl.zeros((1, 2, H), dtype=kinds["state"]))
        assert y.dtype == h.dtype == wl.float64
    narrow, double = wl.zeros((1, 2, H)), wl.zeros((1, 2, H), dtype=wl.float64)
    for state in ((double, narrow), (narrow, double)):
        y, (h, c) = nn.LSTM(4, H)(wl.ones((3, 2, 4)), state)
        assert y.dtype == h.dtype == c.dtype == wl.float64


def test_projected_layers() -> None:
    layer = nn.LSTM(4, H, num_layers=2, proj_size=3, bidirectional=True, batch_first=True)
    y, (h, c) = layer(wl.ones((2, 6, 4)), lengths=[6, 2])
    assert (y.shape, h.shape, c.shape) == ((2, 6, 6), (4, 2, 3), (4, 2, H))
    shapes = {name: value.shape for name, value in layer.state_dict().items()}
    assert shapes["weight_hr_l0"] == (H, 3)
    assert shapes["weight_hh_l1_reverse"] == (3, 4 * H)
    assert shapes["weight_ih_l1"] == (6, 4 * H)
    each = [4 * H * (rows + 3) + 8 * H + 3 * H for rows in (4, 6)]
    assert layer.num_parameters() == 2 * sum(each)
    assert repr(nn.LSTM(4, 5, proj_size=2)) == "LSTM(4, 5, proj_size=2)"


def test_the_same_key_draws_the_same_numbers_again() -> None:
    layer = nn.LSTM(4, H, 2, key=wl.random.key(1))
    before = layer.state_dict()
    layer.reset_parameters(wl.random.key(2))
    assert not any(np.array_equal(value, before[name]) for name, value in layer.state_dict().items())
    layer.reset_parameters(wl.random.key(1))
    for name, value in layer.state_dict().items():
        np.testing.assert_array_equal(value, before[name])
