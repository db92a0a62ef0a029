"""Recurrent encoder-decoders against loops in NumPy; what a thought vector carries, and what attention looks at.

What all encoder-decoders promise (masks, caches, compiled code) is in test_encoder_decoder.py.
"""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import InputError, ShapeError

SOURCE = np.array([[3, 4, 5, 6, 7], [8, 9, 3, 0, 0]])
REAL = np.array([[True] * 5, [True, True, True, False, False]])
TOKENS = np.array([[1, 4, 5], [1, 9, 8]])


def small(**settings):
    settings = {"embed_dim": 6, "hidden_size": 4, "dtype": wl.float64, "key": wl.random.key(0), **settings}
    return wl.models.RNNSeq2Seq(11, **settings)


# --- the thought vector


@pytest.mark.book("A5-29", name="wl.models.RNNSeq2Seq")
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("cell, decoder_cell", [("gru", None), ("lstm", None), ("rnn", "lstm"), ("lstm", "gru")])
def test_the_source_changes_the_first_state_alone(cell, decoder_cell, bidirectional):
    model = small(cell=cell, decoder_cell=decoder_cell, bidirectional=bidirectional, attention=False, decoder_layers=2)
    caches = [model.new_cache(2, 9, model.encode(source)) for source in (SOURCE, SOURCE[:, ::-1])]
    first, second = ([part.state for part in cache.layers] for cache in caches)
    kept = {path.rpartition(".")[2] for path in caches[0].state_dict()}
    assert kept == {"lengths", "h"} | ({"c"} if "lstm" in (decoder_cell or cell) else set())
    for one, other in zip(first, second, strict=True):
        for name in one:
            assert one[name].shape == (2, 4)  # the bridge: from 2D, or D, to D
            assert np.abs(np.asarray(one[name] - other[name])).max() > 1e-4
    logits = [np.asarray(model.extend(TOKENS, cache.copy())[0]) for cache in caches]
    assert np.abs(logits[0] - logits[1]).min(axis=(0, 2)).max() > 0
    for part, state in zip(caches[1].layers, first, strict=True):  # with the other one's first state it is the other
        for name, value in state.items():
            setattr(part, name, value)
    np.testing.assert_array_equal(model.extend(TOKENS, caches[1])[0], logits[0])


@pytest.mark.book("A5-29", name="wl.models.RNNEncoder")
def test_the_thought_vector_is_what_each_direction_knows_at_its_end():
    encoder = wl.models.RNNEncoder("gru", 3, 4, depth=2, bidirectional=True, dtype=wl.float64, key=wl.random.key(0))
    x = np.random.default_rng(0).normal(size=(2, 6, 3))
    h = encoder(x, lengths=[6, 4])
    thought = np.asarray(encoder.at_end(h, lengths=[6, 4]))
    np.testing.assert_array_equal(thought[0], np.r_[np.asarray(h)[0, 5, :4], np.asarray(h)[0, 0, 4:]])
    np.testing.assert_array_equal(thought[1], np.r_[np.asarray(h)[1, 3, :4], np.asarray(h)[1, 0, 4:]])
    alone = encoder(x[1:, :4])
    np.testing.assert_allclose(thought[1], encoder.at_end(alone)[0], rtol=1e-12)
    # the backward direction is the forward one of the sequence turned round
    one = wl.models.RNNEncoder("gru", 3, 4, bidirectional=True, dtype=wl.float64, key=wl.random.key(0))
    turned = one.layers[0].back(x[:, ::-1])
    np.testing.assert_allclose(one(x)[..., 4:], np.asarray(turned)[:, ::-1], rtol=1e-12)
    np.testing.assert_array_equal(one.at_end(wl.zeros((2, 0, 8))), np.zeros((2, 8)))


# --- attention


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


@pytest.mark.book("A5-43", name="wl.models.RNNSeq2Seq")
def test_bahdanaus_decoder_step_by_step():
    """q = s_{t-1}; keys and values are the annotations of a bidirectional encoder; the context goes into the step."""
    model = small(cell="rnn").eval()
    memory = np.asarray(model.encode(SOURCE, REAL))
    weights = np.asarray(model.alignment(SOURCE, TOKENS, REAL))
    logits = np.asarray(model(SOURCE, TOKENS, source_mask=REAL))
    p = {path: np.asarray(value) for path, value in model.state_dict().items()}
    W, U, b = (
        next(v for k, v in p.items() if k.startswith("decoder.0") and part in k)
        for part in ("weight_ih", "weight_hh", "bias_ih")
    )
    b = b + next(v for k, v in p.items() if k.startswith("decoder.0") and "bias_hh" in k)
    for row in range(2):
        annotations = memory[row, REAL[row]]
        ends = np.r_[annotations[-1, :4], annotations[0, 4:]]
        s = np.tanh(ends @ p["bridge.weight"] + p["bridge.bias"])
        for t, token in enumerate(TOKENS[row]):
            hidden = np.tanh(s @ p["score.query.weight"] + p["score.query.bias"] + annotations @ p["score.key.weight"])
            alpha = softmax(hidden @ p["score.output.weight"][:, 0])
            np.testing.assert_allclose(weights[row, t, REAL[row]], alpha, rtol=1e-9)
            context = alpha @ annotations
            x = np.r_[p["tokens.weight"][token] * np.sqrt(6), context]
            s = np.tanh(x @ W + b + s @ U)
            expected = np.r_[s, context] @ p["head.weight"] + p["head.bias"]
            np.testing.assert_allclose(logits[row, t], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.book("A5-43", name="wl.models.RNNSeq2Seq.alignment")
@pytest.mark.parametrize("cell", ["gru", "lstm", "rnn"])
def test_weights_sum_to_one_and_ignore_padding(cell):
    model = small(cell=cell, decoder_layers=2)
    weights = np.asarray(model.alignment(SOURCE, TOKENS, REAL))
    assert weights.shape == (2, 3, 5)
    np.testing.assert_allclose(weights.sum(-1), 1.0, rtol=1e-12)
    assert (weights >= 0).all()
    assert (weights[1, :, 3:] == 0).all()
    other = np.where(REAL, SOURCE, 10)
    np.testing.assert_array_equal(model.alignment(other, TOKENS, REAL), weights)
    left = np.concatenate([SOURCE[1:, 3:], SOURCE[1:, :3]], axis=1)  # padding first
    mask = np.array([[False, False, True, True, True]])
    np.testing.assert_allclose(model.alignment(left, TOKENS[1:], mask)[0, :, 2:], weights[1, :, :3], rtol=1e-9)
    empty = model.alignment(SOURCE, TOKENS, source_lengths=[0, 5])
    np.testing.assert_array_equal(empty[0], np.zeros((3, 5)))


@pytest.mark.book("A5-43", name=("wl.models.RNNSeq2Seq.alignment", "wl.nn.attention_picture"))
def test_it_learns_to_turn_rows_round_and_the_alignment_shows_it():
    pairs = wl.data.make_reverse_task(600, 5, digits=5, seed=0)
    sources, targets = (np.stack([pairs[i][k] for i in range(600)]) for k in (0, 1))
    model = wl.models.RNNSeq2Seq(pairs.vocab_size, embed_dim=32, start_token=pairs.bos, key=wl.random.key(0))
    optimizer = wl.optim.Adam(model, 1e-2)

    @wl.jit
    def step(model, optimizer, source, target):
        def loss(m):
            tokens = wl.series.shift_right(target, start=pairs.bos)
            return wl.nn.functional.cross_entropy(m(source, tokens), target)

        value, grads = wl.value_and_grad(loss)(model)
        optimizer.step(grads)
        return value

    for i in range(300):
        rows = np.arange(i * 50, i * 50 + 50) % 600
        step(model, optimizer, sources[rows], targets[rows])
    source = sources[:60]
    written = wl.generation.greedy(model, None, 6, source=source, stop_tokens=pairs.eos)
    right = [pairs.decode(row) == pairs.decode(s)[::-1] for row, s in zip(written, source, strict=True)]
    assert np.mean(right) > 0.9
    tokens = np.concatenate([np.full((60, 1), pairs.bos), source[:, ::-1]], axis=1)[:, :5]
    weights = np.asarray(model.alignment(source, tokens)).mean(0)
    looked = weights.argmax(-1)
    assert (np.diff(looked) <= 0).all()  # it goes from the end of the source to its beginning
    assert looked[0] - looked[-1] >= 3
    names = [pairs.vocabulary[token] for token in source[0]]
    svg = wl.nn.attention_picture(model.alignment(source[:1], tokens[:1])[0], names[::-1], names, title="reversed")
    assert svg.count('class="cell"') == 25
    assert "reversed" in svg


def test_generation_with_beams_and_padded_sources():
    model = small(dtype=wl.float32).eval()
    rows = wl.generation.greedy(model, None, 4, source=SOURCE, source_mask=REAL)
    alone = wl.generation.greedy(model, None, 4, source=SOURCE[1, :3])
    np.testing.assert_array_equal(rows[1], alone)
    best = wl.generation.beam_search(model, None, 4, source=SOURCE, source_mask=REAL, beams=3)
    one = wl.generation.beam_search(model, None, 4, source=SOURCE[1, :3], beams=3)
    np.testing.assert_array_equal(best[1][0].tokens, one[0].tokens)


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda: small(attention=False).alignment(SOURCE, TOKENS), InputError, "has no alignment"),
        (lambda: small(start_token=11), InputError, "start_token=11 of 11"),
        (lambda: small().decode(TOKENS, np.zeros((2, 5, 7))), ShapeError, r"\(2, s, 8\)"),
    ],
)
def test_bad_input(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
