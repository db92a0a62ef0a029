"""Positions: what they add, turn or bias, against closed forms and the numbers of the book and the notes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn


def normal(*shape: int, seed: int = 0) -> Any:
    return wl.asarray(np.random.default_rng([seed, *shape]).normal(size=shape))


def close(a: Any, b: Any, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=0, atol=tolerance)


def sinusoidal(n: int, e: int) -> Any:
    return np.asarray(nn.SinusoidalPositions(e).encoding(wl.arange(n)))


@pytest.mark.book("10.35", "10.37", "A5-53", "A5-55", name="wl.nn.LearnedPositions")
def test_learned_positions() -> None:
    layer, x = nn.LearnedPositions(9, 4, dtype=wl.float64), normal(2, 5, 4)
    close(layer(x), np.asarray(x) + np.asarray(layer.weight)[:5])
    grads = wl.grad(lambda layer: (layer(x) ** 2).sum())(layer)["weight"]
    assert (np.asarray(grads)[5:] == 0).all()
    assert (np.asarray(grads)[:5] != 0).all()
    assert [name for name, _ in layer.named_parameters()] == ["weight"]
    with pytest.raises(wl.errors.InputError, match="place 9 in a sequence for 9 places"):
        layer(wl.ones((10, 4)))
    # order becomes learnable: give the place as the answer
    optimizer = wl.optim.Adam(layer, lr=0.05)
    loss = lambda layer: ((layer(wl.zeros((9, 4), dtype=wl.float64)).sum(axis=-1) - wl.arange(9)) ** 2).mean()
    before = float(loss(layer))
    for _ in range(50):
        optimizer.step(wl.grad(loss)(layer))
    assert float(loss(layer)) < 0.5 * before


@pytest.mark.book("10.36", "A5-53", "10.35", name="wl.nn.LearnedPositions")
def test_positions_break_the_symmetry() -> None:
    layer: Any = nn.MultiHeadAttention(4, 2, dtype=wl.float64)
    positions = nn.LearnedPositions(6, 4, 1.0, dtype=wl.float64)
    x = normal(2, 6, 4)
    nn.assert_order_free(layer, x)
    with pytest.raises(AssertionError, match="differ"):
        nn.assert_order_free(lambda x: layer(positions(x)), x)
    twice = wl.stack([x[0, 0], x[0, 1], x[0, 0]])  # one token at two places
    without, with_them = (np.asarray(layer(y)) for y in (twice, positions(twice)))
    close(without[0], without[2])
    assert np.abs(with_them[0] - with_them[2]).max() > 1e-3


@pytest.mark.book("A5-37b", name="wl.nn.Attention")
def test_places_as_parts_of_keys_and_values() -> None:
    layer, pairs = nn.Attention(5, dtype=wl.float64), np.concatenate([np.arange(6.0)[:, None], normal(6, 4)], axis=1)
    query, order = normal(1, 5), np.random.default_rng(0).permutation(6)
    close(layer(query, pairs), layer(query, pairs[order]))


@pytest.mark.book("10.38", "10.39", name=("wl.nn.ScalarPositions", "wl.nn.OneHotPositions"))
def test_poor_choices() -> None:
    x = normal(7, 3)
    added = np.asarray(nn.ScalarPositions(10)(x)) - np.asarray(x)
    close(added, np.repeat(np.arange(7)[:, None] / 10, 3, axis=1))
    assert np.abs(added).max() <= 1
    hot = np.asarray(nn.OneHotPositions(10).encoding(wl.arange(7)))
    assert hot.shape == (7, 10)
    assert np.count_nonzero(hot) == 7
    close(nn.OneHotPositions(10)(x), np.concatenate([np.asarray(x), hot], axis=1))


@pytest.mark.book("10.40", name="wl.nn.SinusoidalPositions")
def test_a_sine_alone_is_not_unique() -> None:
    assert np.sin(0.0) == pytest.approx(np.sin(np.pi), abs=1e-15)  # within one period
    pair = nn.SinusoidalPositions(2, frequencies=[2 * np.pi / 60])
    assert len(np.unique(np.asarray(pair.encoding(wl.arange(60))).round(9), axis=0)) == 60
    # three hands tell every second of half a day, and no more
    hands = nn.SinusoidalPositions(6, frequencies=[2 * np.pi / p for p in (60, 3600, 12 * 3600)])
    seconds = np.asarray(hands.encoding(wl.arange(12 * 3600)))
    assert len(np.unique(seconds.round(9), axis=0)) == 12 * 3600
    close(hands.encoding(wl.asarray([12 * 3600 + 5])), seconds[5:6], 1e-9)


@pytest.mark.book("10.41", name="wl.nn.SinusoidalPositions")
def test_sines_only() -> None:
    layer = nn.SinusoidalPositions(3, mode="sin", frequencies=[0.1, 1.0, 10.0])
    close(layer.encoding(wl.asarray([6])), [[0.564642, -0.279415, -0.304811]], 1e-6)


@pytest.mark.book("10.42", "10.44", "A5-54", name="wl.nn.SinusoidalPositions")
def test_sines_and_cosines() -> None:
    close(sinusoidal(2, 8)[1], [0.841471, 0.540302, 0.099833, 0.995004, 0.01, 0.99995, 0.001, 1.0], 1e-6)
    close(sinusoidal(2, 4), [[0, 1, 0, 1], [0.8415, 0.5403, 0.0100, 0.99995]], 5e-5)
    close(np.linalg.norm(sinusoidal(50, 8), axis=1), np.full(50, 2.0))
    assert list(nn.SinusoidalPositions(8).named_parameters()) == []
    with pytest.raises(wl.errors.InputError, match="cannot be pairs"):
        nn.SinusoidalPositions(7)
    close(nn.sinusoidal_frequencies(4), [1, 0.1, 0.01, 0.001], 1e-15)  # 2i/e, falling
    close(10_000.0 ** (-np.arange(4) / 8), [1, 0.316, 0.1, 0.0316], 1e-3)  # as printed: i/e
    close(nn.sinusoidal_frequencies(2, base=100.0), [1, 0.1])
    halves = np.asarray(nn.SinusoidalPositions(8, layout="halves").encoding(wl.arange(9)))
    close(halves, np.concatenate([sinusoidal(9, 8)[:, ::2], sinusoidal(9, 8)[:, 1::2]], axis=1))


@pytest.mark.book("10.43", "A5-54", name="wl.nn.SinusoidalPositions")
def test_a_step_is_a_rotation() -> None:
    table, frequencies = sinusoidal(40, 8), nn.sinusoidal_frequencies(4)
    turn = np.zeros((8, 8))
    for pair, angle in enumerate(frequencies * 5):
        c, s = np.cos(angle), np.sin(angle)
        turn[2 * pair : 2 * pair + 2, 2 * pair : 2 * pair + 2] = [[c, s], [-s, c]]
    close(table[5:], table[:-5] @ turn.T, 1e-14)
    products = table @ table.T
    offsets = np.arange(40)[:, None] - np.arange(40)
    close(products, np.cos(offsets[..., None] * frequencies).sum(axis=-1), 1e-13)


@pytest.mark.book("10.45", "A5-57", name=("wl.nn.MultiHeadAttention", "wl.nn.RelativeBias"))
@pytest.mark.parametrize(
    "positions", [nn.RelativeBias(2, 8, dtype=wl.float64), nn.ALiBi(2, dtype=wl.float64), nn.Rotary(4)], ids=str
)
def test_relative_positions_may_be_shifted(positions: Any) -> None:
    if isinstance(positions, nn.RelativeBias):
        positions.weight.assign(normal(2, 15))
    layer, x = nn.MultiHeadAttention(8, 2, positions=positions, dtype=wl.float64), normal(5, 8)
    places = wl.arange(5)
    close(layer(x, places=places), layer(x, places=places + 11), 1e-13)
    plain = nn.MultiHeadAttention(8, 2, dtype=wl.float64)
    plain.load_state_dict({k: v for k, v in layer.state_dict().items() if not k.startswith("positions")})
    assert np.abs(np.asarray(plain(x)) - np.asarray(layer(x))).max() > 1e-3
    absolute = nn.SinusoidalPositions(8)
    shifted = [np.asarray(plain(absolute(x, places + c))) for c in (0, 11)]
    assert np.abs(shifted[0] - shifted[1]).max() > 1e-3  # which those in the tokens may not


@pytest.mark.book("10.45", name="wl.nn.MultiHeadAttention")
def test_any_function_of_the_offset() -> None:
    layer = nn.MultiHeadAttention(8, 2, score_mod=lambda s, i, j: s - 0.5 * wl.abs(i - j), dtype=wl.float64)
    same = nn.MultiHeadAttention(8, 2, dtype=wl.float64)
    same.load_state_dict(layer.state_dict())
    bias = -0.5 * np.abs(np.arange(5)[:, None] - np.arange(5))
    close(layer(normal(3, 5, 8)), same(normal(3, 5, 8), attn_mask=bias))


@pytest.mark.book("10.46", "A5-57", name="wl.nn.RelativeBias")
def test_trained_biases() -> None:
    by_offset, free = nn.RelativeBias(2, 4, dtype=wl.float64), nn.RelativeBias(2, 4, free=True, dtype=wl.float64)
    assert by_offset.weight.shape == (2, 2 * 4 - 1)
    assert free.weight.shape == (2, 4, 4)
    x = normal(4, 8)
    layer = nn.MultiHeadAttention(8, 2, positions=by_offset, dtype=wl.float64)
    other = nn.MultiHeadAttention(8, 2, positions=free, dtype=wl.float64)
    plain = nn.MultiHeadAttention(8, 2, dtype=wl.float64)
    for one in (layer, other):  # biases of 0 are no biases
        plain.load_state_dict({k: v for k, v in one.state_dict().items() if not k.startswith("positions")})
        close(one(x), plain(x))
    by_offset.weight.assign(normal(2, 7))
    table = np.asarray(by_offset(wl.arange(4), wl.arange(4)))
    for offset in range(-3, 4):  # Toeplitz, by head
        diagonal = np.diagonal(table, offset, 1, 2)
        close(diagonal, np.repeat(np.asarray(by_offset.weight)[:, offset + 3 : offset + 4], diagonal.shape[1], axis=1))
    free.weight.assign(normal(2, 4, 4))
    close(free(wl.arange(3), wl.arange(4)), np.asarray(free.weight)[:, :3])
    assert {"positions.weight"} <= {name for name, _ in layer.named_parameters()}


@pytest.mark.book("10.47", name="wl.nn.ALiBi")
def test_slopes() -> None:
    fixed, trained = nn.ALiBi(8), nn.ALiBi(8, trainable=True)
    close(fixed.slopes, 2.0 ** -np.arange(1, 9), 1e-7)
    assert list(fixed.named_parameters()) == []
    assert [name for name, _ in trained.named_parameters()] == ["slopes"]
    offsets = np.abs(np.arange(50)[:, None] - np.arange(50))
    close(fixed(wl.arange(50), wl.arange(50)), -np.asarray(fixed.slopes)[:, None, None] * offsets, 1e-5)
    layer = nn.MultiHeadAttention(16, 8, positions=trained)
    assert layer(wl.ones((1000, 16))).shape == (1000, 16)  # longer than anything it was trained with
    trained.slopes.assign(wl.zeros(8))
    plain = nn.MultiHeadAttention(16, 8)
    plain.load_state_dict({k: v for k, v in layer.state_dict().items() if not k.startswith("positions")})
    x = wl.random.normal((5, 16))
    close(layer(x), plain(x), 1e-6)


@pytest.mark.book("10.48", name="wl.nn.Rotary")
@pytest.mark.parametrize("pairing", ["halves", "interleaved"])
def test_rotations(pairing: str) -> None:
    rotary, q, k = nn.Rotary(8, pairing=pairing), normal(1, 8), normal(1, 8, seed=1)
    at = lambda x, place: np.asarray(rotary(x, wl.asarray([place])))[0]
    product = lambda i, j: at(q, i) @ at(k, j)
    assert product(7, 3) == pytest.approx(product(17, 13), abs=1e-14)
    assert abs(product(7, 3) - product(7, 4)) > 1e-3
    assert np.linalg.norm(at(q, 9)) == pytest.approx(np.linalg.norm(np.asarray(q)), abs=1e-14)
    close(at(q, 0), np.asarray(q)[0])
    layer = nn.MultiHeadAttention(16, 2, positions=rotary, bias=False, dtype=wl.float64)
    x = normal(5, 16)
    heads = [np.swapaxes(np.asarray(part(x)).reshape(5, 2, 8), 0, 1) for part in (layer.query, layer.key, layer.value)]
    out = nn.functional.scaled_dot_product_attention(rotary(heads[0]), rotary(heads[1]), heads[2])  # not the values
    close(layer(x), np.swapaxes(np.asarray(out), 0, 1).reshape(5, 16) @ np.asarray(layer.output.weight))


@pytest.mark.book("A5-55", "A5-56", name=("wl.nn.position_similarity", "wl.nn.position_error"))
def test_similarity_and_probe() -> None:
    table = sinusoidal(512, 768)
    assert nn.position_error(nn.SinusoidalPositions(768), n=512) < 1e-11
    assert nn.position_error(table) < 1e-11
    random = nn.LearnedPositions(512, 32, dtype=wl.float64)
    assert nn.position_error(random) > 50  # before any training
    similar = nn.position_similarity(table)
    close(np.diag(similar), np.ones(512))
    close(similar, similar.T)
    assert (similar[np.arange(511), np.arange(1, 512)] > 0.9).all()  # neighbours
    close(nn.position_similarity(random, n=7), nn.position_similarity(np.asarray(random.weight)[:7]))
    assert nn.similarity_picture(random, n=5).count('class="cell"') == 25
    with pytest.raises(wl.errors.InputError, match="how many places"):
        nn.position_error(nn.SinusoidalPositions(8))
    with pytest.raises(wl.errors.InputError, match="place 599"):
        nn.position_similarity(random, n=600)
