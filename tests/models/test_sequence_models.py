"""Models of any layers over sequences: labels of tokens, classes of sequences, language models."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from tests.models.promises import learns, same_when_compiled, survives_saving
from wonderland.errors import InputError, ShapeError

nn, models = wl.nn, wl.models


def encoder(cell="gru", both=True, **settings):
    return models.RNNEncoder(cell, 4, 5, bidirectional=both, key=wl.random.key(0), **settings)


def labeller(both=True, seed=0):
    found = encoder(both=both)
    embed = nn.Embedding(9, 4, key=wl.random.key(1))
    return models.SequenceLabeller(found, found.size, 3, embed=embed, key=wl.random.key(seed))


def classifier(pooling="last", seed=0, both=True):
    found = encoder(both=both)
    return models.SeriesClassifier(found, found.size, 3, pooling=pooling, key=wl.random.key(seed))


TOKENS = np.random.default_rng(0).integers(0, 9, (3, 8))
SERIES = np.random.default_rng(1).normal(size=(3, 8, 4)).astype("f")


@pytest.mark.book("A5-21", name="wl.models.SequenceLabeller")
def test_a_label_of_each_token_from_its_context():
    """z_t sees the whole sequence if the encoder reads both ways, the past alone if it does not; the head is shared."""
    for both in (True, False):
        model = labeller(both).eval()
        scores = np.asarray(model(TOKENS))
        assert scores.shape == (3, 8, 3)
        z = np.asarray(model.encoder(model.embed(TOKENS)))
        np.testing.assert_allclose(
            scores, z @ np.asarray(model.head.weight) + np.asarray(model.head.bias), rtol=1e-4, atol=1e-6
        )
        for i in (0, 4, 7):
            other = TOKENS.copy()
            other[:, i] = (other[:, i] + 1) % 9
            changed = np.abs(np.asarray(model(other)) - scores).max((0, 2)) > 1e-8
            assert changed.tolist() == [both] * i + [True] * (8 - i)


@pytest.mark.book("A5-21", name="wl.models.SequenceLabeller")
def test_labels_that_need_the_future_are_learned_by_both_directions_alone():
    """Is the token the last of its kind in the sequence? Lengths differ, and padding does not count."""
    rng = np.random.default_rng(0)
    x, lengths = rng.integers(0, 4, (64, 10)), rng.integers(4, 11, 64)
    last = lambda row, n: [int(t < n and row[t] not in row[t + 1 : n]) for t in range(10)]
    labels = np.array([last(row, n) for row, n in zip(x, lengths, strict=True)])
    mask = np.arange(10) < lengths[:, None]
    shares = {}
    for both in (True, False):
        found = models.RNNEncoder("gru", 8, 24, bidirectional=both, key=wl.random.key(0))
        embed = nn.Embedding(4, 8, key=wl.random.key(1))
        model = models.SequenceLabeller(found, found.size, 2, embed=embed, key=wl.random.key(2))

        def loss(m, x, labels, mask):
            return wl.series.sequence_loss(m(x, token_mask=mask), labels, mask, loss=nn.functional.cross_entropy)

        learns(model, loss, *map(wl.asarray, (x, labels, mask)), steps=250, lr=1e-2)
        right = np.asarray(model(x, lengths=lengths)).argmax(-1) == labels
        shares[both] = right[mask].mean()
    assert shares[True] > 0.97
    assert shares[False] < shares[True] - 0.05


@pytest.mark.book("A5-21", name="wl.models.SequenceLabeller")
@pytest.mark.parametrize("compiled", [False, True])
def test_padding_is_not_seen(compiled):
    wl.nn.assert_padding_ignored(labeller(), TOKENS, compiled=compiled)
    scores = np.asarray(labeller()(TOKENS, lengths=[8, 3, 0]))
    assert (scores[1, 3:] == 0).all()
    assert (scores[2] == 0).all()


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("pooling", ["last", "mean"])
def test_a_class_of_each_sequence_with_its_length(pooling, both):
    model = classifier(pooling, both=both).eval()
    whole = np.asarray(model(SERIES, lengths=[8, 5, 2]))
    for i, n in enumerate([8, 5, 2]):
        np.testing.assert_allclose(whole[i], model(SERIES[i : i + 1, :n])[0], rtol=1e-4, atol=1e-6)
    left = np.concatenate([np.full((1, 3, 4), np.nan, "f"), SERIES[1:2, :5]], axis=1)
    np.testing.assert_allclose(model(left, token_mask=np.arange(8)[None] >= 3)[0], whole[1], rtol=1e-4, atol=1e-6)
    assert np.isfinite(np.asarray(model(SERIES, lengths=[0, 8, 8]))).all()
    h = model.encoder(SERIES)
    expected = model.encoder.at_end(h) if pooling == "last" else h.mean(axis=1)
    np.testing.assert_allclose(model(SERIES), model.head(expected), rtol=1e-5)


def test_any_encoder_with_a_mask():
    stack = nn.SequenceStack([nn.RWKVBlock(4) for _ in range(2)], nn.LayerNorm(4))
    model = models.SeriesClassifier(stack, 4, 3, key=wl.random.key(0)).eval()
    short = model(SERIES[:1, :5])
    padded = SERIES[:1].copy()
    padded[:, 5:] = np.nan
    np.testing.assert_allclose(model(padded, lengths=[5]), short, rtol=1e-4, atol=1e-6)


def test_promises(tmp_path):
    same_when_compiled(labeller(), TOKENS)
    same_when_compiled(classifier(), SERIES)
    survives_saving(lambda i: classifier(seed=i), tmp_path, SERIES)
    assert labeller().num_parameters() == 9 * 4 + 2 * 3 * 5 * (4 + 5 + 2) + 11 * 3


# --- language models


@pytest.mark.parametrize("compiled", [False, True])
def test_language_models_of_any_blocks(compiled):
    e = 6
    blocks = [
        nn.MixingBlock(nn.Recurrent(nn.GRUCell(e, e)), e, norm="rms"),
        nn.MixingBlock(nn.MultiHeadAttention(e, 2, causal=True, positions=nn.ALiBi(2)), e),
        nn.RWKVBlock(e),
    ]
    wl.nn.assert_sequence_layer(models.SequenceLanguageModel(9, e, blocks), TOKENS, compiled=compiled)


def test_its_parameters():
    blocks = [nn.MixingBlock(nn.Recurrent(nn.RNNCell(6, 6)), 6) for _ in range(2)]
    inside = sum(block.num_parameters() for block in blocks)
    for tied in (True, False):
        model = models.SequenceLanguageModel(9, 6, blocks, tied=tied)
        assert model.num_parameters() == inside + 9 * 6 * (1 if tied else 2) + 6


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda: labeller()(SERIES[..., 0]), ShapeError, "an input float32"),
        (lambda: classifier()(TOKENS), ShapeError, "an input int64"),
        (lambda: models.SeriesClassifier(encoder(), 7, 3)(SERIES), ShapeError, "features=10"),
        (lambda: classifier("max"), InputError, "'last' or 'mean'"),
        (lambda: labeller()(TOKENS, lengths=[9, 1, 1]), InputError, "lengths from 1 to 9"),
    ],
)
def test_bad_input(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
