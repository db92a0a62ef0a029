"""Waveforms as tokens: how many, from what, and what padding does to them."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import InputError, ShapeError
from wonderland.nn import AudioTokenizer

CONVS = [(6, 10, 5), (8, 4, 2, 1), (5, 3, 1, 1)]
KEY = wl.random.key(0)
WAVES = np.random.default_rng(0).normal(size=(3, 400))


def chained(length, layers):
    """floor((L + 2p - k)/s) + 1, layer after layer."""
    for kernel, stride, padding in layers:
        length = (length + 2 * padding - kernel) // stride + 1
    return length


@pytest.mark.book("11.51", name="wl.nn.AudioTokenizer")
@pytest.mark.parametrize(
    "convs, pool, layers",
    [
        ([(4, 7, 3)], 1, [(7, 3, 0)]),
        ([(4, 7, 3, 2)], 2, [(7, 3, 2), (2, 2, 0)]),
        (CONVS, 2, [(10, 5, 0), (2, 2, 0), (4, 2, 1), (2, 2, 0), (3, 1, 1), (2, 2, 0)]),
        (CONVS, (1, 3, 1), [(10, 5, 0), (4, 2, 1), (3, 3, 0), (3, 1, 1)]),
    ],
)
def test_the_number_of_tokens(convs, pool, layers):
    tokenizer = AudioTokenizer(convs, pool, key=KEY)
    for samples in (200, 201, 255, 400):
        tokens = tokenizer(np.zeros((2, samples), np.float32))
        n = chained(samples, layers)
        assert tokens.shape == (2, n, convs[-1][0])
        assert tokenizer.output_length(samples) == n
    many = np.array([[200, 255], [321, 400]])
    np.testing.assert_array_equal(tokenizer.output_length(many), np.vectorize(chained, excluded=[1])(many, layers))
    assert tokenizer.output_length(0) == 0
    np.testing.assert_array_equal(wl.jit(tokenizer.output_length)(wl.asarray(many)), tokenizer.output_length(many))


def test_by_default():
    tokenizer = AudioTokenizer(key=KEY)
    assert tokenizer.features == 256
    assert tokenizer.output_length(16000) == 50  # a second at 16 kHz
    parameters = sum(k * a * b + 3 * b for a, b, k in ((1, 64, 10), (64, 128, 8), (128, 256, 4)))
    assert tokenizer.num_parameters() == parameters
    assert tokenizer(np.zeros(16000, np.float32)).shape == (50, 256)


@pytest.mark.book("11.51", name="wl.nn.AudioTokenizer")
def test_against_convolutions_by_hand():
    tokenizer = AudioTokenizer([(4, 7, 3, 2)], pool=2, norm=False, activation="relu", dtype=wl.float64, key=KEY)
    conv = tokenizer.stages[0][0]
    w, b = conv.weight.numpy(), conv.bias.numpy()
    x = np.pad(WAVES[0], 2)
    places = [np.maximum(x[i : i + 7] @ w[:, 0] + b, 0) for i in range(0, len(x) - 6, 3)]
    expected = [np.maximum(*places[i : i + 2]) for i in range(0, len(places) - 1, 2)]
    np.testing.assert_allclose(tokenizer(WAVES[0]), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.book("11.51", name="wl.nn.AudioTokenizer")
@pytest.mark.parametrize("noise", [7.0, np.nan])
@pytest.mark.parametrize("pool", [1, 2])
def test_padding_never_reaches_real_tokens(noise, pool):
    tokenizer = AudioTokenizer(CONVS, pool, dtype=wl.float64, key=KEY)
    lengths = np.array([400, 251, 0])
    padded = np.where(np.arange(400) < lengths[:, None], WAVES, noise)
    tokens = tokenizer(padded, lengths).numpy()
    counts = tokenizer.output_length(lengths).numpy()
    assert counts.tolist() == [tokenizer.output_length(int(n)) for n in lengths]
    for row, (n, count) in enumerate(zip(lengths, counts, strict=True)):
        if n:
            np.testing.assert_allclose(tokens[row, :count], tokenizer(WAVES[row, :n]), rtol=1e-10, atol=1e-12)
        assert not tokens[row, count:].any()
    weights = np.random.default_rng(1).normal(size=tokens.shape)
    slope = wl.grad(lambda x: (tokenizer(x, lengths) * weights).sum())(wl.asarray(padded)).numpy()
    assert not slope[np.arange(400) >= lengths[:, None]].any()
    assert slope[0].any()
    of_weights = wl.grad(lambda m: (m(padded, lengths) * weights).sum())(tokenizer)
    assert all(np.isfinite(g).all() for g in of_weights.values())
    compiled = wl.jit(lambda m, x, n: m(x, n))(tokenizer, wl.asarray(padded), wl.asarray(lengths))
    np.testing.assert_allclose(compiled, tokens, rtol=1e-10, atol=1e-12)


def test_it_is_trained_with_ctc():
    """Tones to tokens, from end to end: lengths of samples become lengths of frames."""
    rng = np.random.default_rng(0)
    time = np.arange(200)
    tones = [np.sin(2 * np.pi * time / period) for period in (40, 20, 10)]
    labels = rng.integers(1, 4, size=(12, 3))
    sizes = rng.integers(1, 4, size=12)
    waves = np.zeros((12, 600), np.float32)
    for wave, row, n in zip(waves, labels, sizes, strict=True):
        wave[: n * 200] = np.concatenate([tones[k - 1] * np.hanning(200) for k in row[:n]])
    model = wl.nn.ModuleDict(
        {"tokens": AudioTokenizer([(16, 20, 5), (16, 4, 2)], key=KEY), "head": wl.nn.Linear(16, 4, key=KEY)}
    )
    frames = model["tokens"].output_length(sizes * 200)
    optimizer = wl.optim.Adam(model, lr=0.01)

    def log_probs(model):
        logits = model["head"](model["tokens"](waves, sizes * 200))
        return wl.swapaxes(wl.log_softmax(logits, axis=-1), 0, 1)

    @wl.jit
    def step(model, optimizer):
        loss, grads = wl.value_and_grad(
            lambda m: wl.nn.functional.ctc_loss(log_probs(m), labels, frames, sizes, zero_infinity=True)
        )(model)
        optimizer.step(grads)
        return loss

    for _ in range(150):
        loss = step(model, optimizer)
    assert float(loss) < 0.1
    found = wl.generation.ctc_greedy(log_probs(model), frames)
    assert [row.tolist() for row in found] == [row[:n].tolist() for row, n in zip(labels, sizes, strict=True)]


def test_saved_and_loaded():
    one, other = AudioTokenizer(CONVS, key=KEY), AudioTokenizer(CONVS, key=wl.random.key(1))
    waves = WAVES.astype(np.float32)
    assert (one(waves) != other(waves)).any()
    other.load_state_dict(one.state_dict())
    np.testing.assert_array_equal(one(waves), other(waves))


def test_bad_input():
    with pytest.raises(InputError, match=r"\(channels, kernel, stride\)"):
        AudioTokenizer([])
    with pytest.raises(InputError, match=r"\(channels, kernel, stride\)"):
        AudioTokenizer([(4, 3)])
    with pytest.raises(InputError, match="2 poolings for 1 convolutions"):
        AudioTokenizer([(4, 3, 1)], pool=(2, 2))
    with pytest.raises(InputError, match="stride=0"):
        AudioTokenizer([(4, 3, 0)])
    tokenizer = AudioTokenizer(CONVS)
    with pytest.raises(ShapeError, match="lengths"):
        tokenizer(WAVES.astype(np.float32), [400])
    with pytest.raises(InputError, match="a length is 401"):
        tokenizer(WAVES.astype(np.float32), [400, 401, 1])
    with pytest.raises(ShapeError, match="without axes"):
        tokenizer(1.0)
    with pytest.raises(ShapeError, match="does not fit"):
        tokenizer(np.zeros((1, 5), np.float32))
    with pytest.raises(InputError, match="lengths of float"):
        tokenizer.output_length([1.5])
    with pytest.raises(InputError, match="a length is -1"):
        tokenizer.output_length(-1)
