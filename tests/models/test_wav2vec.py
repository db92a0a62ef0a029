"""Wav2vec: hidden frames alone make the loss of pre-training, and fine-tuning freezes what it should."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from tests.agreement import close_array
from tests.models.promises import learns, same_when_compiled, survives_saving
from wonderland import nn
from wonderland.errors import InputError, ShapeError


def numbers(*shape, seed=0):
    return wl.asarray(np.random.default_rng(seed).normal(size=shape))


def wav2vec(seed=0, **settings):
    keys = wl.random.split(wl.random.key(seed), 2)
    tokenizer = nn.AudioTokenizer([(6, 4, 2), (6, 4, 2)], pool=1, dtype=wl.float64, key=keys[0])
    return wl.models.Wav2Vec(tokenizer, 8, 2, 2, span=3, p=0.2, dtype=wl.float64, key=keys[1], **settings)


@pytest.mark.book("11.53", name=("wl.models.Wav2Vec.loss", "wl.nn.functional.mask_spans"))
@pytest.mark.parametrize("objective", ["contrastive", "regression"])
def test_the_loss_counts_hidden_frames_alone(objective):
    model, waves = wav2vec(objective=objective), numbers(2, 60)
    z, _ = model.frames(waves)
    n = z.shape[1]
    hidden = nn.functional.mask_spans((2, n), 0.2, 3, key=wl.random.key(1))
    chosen = np.asarray(hidden)
    assert 0 < chosen.sum() < chosen.size
    c = model.context(z, None, hidden).detach()
    slopes = np.asarray(wl.grad(lambda c: model.loss_of(c, z, hidden))(c))
    assert not slopes[~chosen].any()
    assert np.abs(slopes[chosen]).max(axis=-1).min() > 0
    close_array(model.loss(waves, hidden=hidden), model.loss_of(c, z, hidden), 1000)
    # what is hidden is not seen: its frame may be anything
    other = wl.where(hidden[..., None], 7.0, z)
    close_array(model.context(other, None, hidden), c, 1000)
    # by hand
    guess, frames = np.asarray(model.guess(c).detach()), np.asarray(z.detach())
    total = 0.0
    for row in range(2):
        places = np.flatnonzero(chosen[row])
        if objective == "regression":
            total += ((guess[row, places] - frames[row, places]) ** 2).mean(-1).sum()
            continue
        wanted = np.asarray(model.target(z).detach())[row, places]
        unit = lambda a: a / np.linalg.norm(a, axis=-1, keepdims=True)
        scores = unit(guess[row, places]) @ unit(wanted).T / 0.1
        total -= (np.diag(scores) - np.log(np.exp(scores).sum(-1))).sum()
    assert model.loss(waves, hidden=hidden).item() == pytest.approx(total / chosen.sum(), rel=1e-9)


@pytest.mark.book("11.53", name="wl.models.Wav2Vec")
@pytest.mark.parametrize("objective", ["contrastive", "regression"])
def test_padding_counts_for_nothing(objective):
    model = wav2vec(objective=objective)
    waves = np.array(numbers(2, 60))
    waves[1, 40:] = np.nan
    y = model(waves, lengths=[60, 40])
    alone = model(waves[1:, :40])
    close_array(y[1, : alone.shape[1]], alone[0], 1000)
    hidden = np.zeros(y.shape[:2], bool)
    hidden[0, 2:5] = hidden[1, 1:4] = hidden[1, -1] = True  # the last one is padding
    grads = wl.grad(lambda m: m.loss(waves, [60, 40], hidden))(model)
    assert all(np.isfinite(np.asarray(g)).all() for g in grads.values())
    hidden[1, -1] = False
    close_array(model.loss(waves, [60, 40], hidden), model.loss(np.nan_to_num(waves), [60, 40], hidden), 1000)


@pytest.mark.book("11.53", name=("wl.models.Wav2Vec", "wl.models.Wav2VecCTC"))
def test_pre_training_then_transcripts():
    """First without labels; then the last layer, then all but the convolutions, with a few transcripts."""
    rng = np.random.default_rng(0)
    tones = np.sin(np.outer([0.3, 1.0, 2.0], np.arange(40)))
    labels = rng.integers(0, 3, (6, 3))
    waves = wl.asarray(np.stack([np.concatenate(tones[row]) for row in labels]))
    model = wav2vec()
    hidden = nn.functional.mask_spans((6, model(waves).shape[1]), 0.1, 3, key=wl.random.key(0))
    first, last = learns(model, lambda m, x, h: m.loss(x, hidden=h), waves, hidden, steps=40, lr=5e-3)
    assert last < 0.8 * first
    tuned = wl.models.Wav2VecCTC(model, 4, dtype=wl.float64, key=wl.random.key(2))
    targets, count = wl.asarray(labels + 1), wl.full(6, 3)
    trained = lambda: {
        path.split(".")[0] + "." + path.split(".")[1] for path, p in tuned.named_parameters() if p.trainable
    }
    tuned.freeze_encoder()
    assert trained() == {"head.weight", "head.bias"}
    tuned.freeze_tokenizer()
    assert "encoder.tokenizer" not in trained()
    assert "encoder.stack" in trained()
    kept = model.tokenizer.stages[0][0].weight.detach()
    first, last = learns(tuned, lambda m, x, y, n: m.loss(x, y, n), waves, targets, count, steps=60, lr=1e-2)
    assert last < 0.5 * first
    np.testing.assert_array_equal(model.tokenizer.stages[0][0].weight, kept)
    assert all(p.trainable for p in tuned.unfreeze().parameters())


@pytest.mark.book("11.53", name="wl.models.Wav2VecCTC")
def test_the_loss_of_transcripts():
    model = wl.models.Wav2VecCTC(wav2vec(), 4, dtype=wl.float64)
    waves, targets = numbers(2, 60), wl.tensor([[1, 2], [3, 0]])
    log_p = model(waves, lengths=[60, 40])
    np.testing.assert_allclose(np.exp(np.asarray(log_p.detach())).sum(-1), 1.0)
    frames = [model.encoder.tokenizer.output_length(n) for n in (60, 40)]
    expected = nn.functional.ctc_loss(wl.swapaxes(log_p, 0, 1), targets, wl.tensor(frames), [2, 1])
    close_array(model.loss(waves, targets, [2, 1], lengths=[60, 40]), expected)


def test_promises(tmp_path):
    model, waves = wav2vec(), numbers(2, 60)
    f, e, layers, d = 6, 8, 2, 6
    own = 2 * f + (f + 1) * e + e + layers * (12 * e**2 + 13 * e) + 2 * e + (e + 1) * d + (f + 1) * d
    assert model.num_parameters() == model.tokenizer.num_parameters() + own
    assert wav2vec(objective="regression").num_parameters() == model.num_parameters() - (f + 1) * d
    same_when_compiled(model, waves)
    survives_saving(wav2vec, tmp_path, waves)
    key = wl.random.key(0)
    close_array(wl.jit(lambda m, x, k: m.loss(x, key=k))(model, waves, key), model.loss(waves, key=key), 1000)


def test_errors():
    with pytest.raises(InputError, match="objective='guess'"):
        wav2vec(objective="guess")
    with pytest.raises(InputError, match="target_size=3"):
        wav2vec(objective="regression", target_size=3)
    with pytest.raises(ShapeError, match=r"\(batch, samples\)"):
        wav2vec()(numbers(60))
    with pytest.raises(ShapeError, match="mask"):
        wav2vec()(numbers(2, 60), hidden=np.ones((2, 3), bool))
