"""What pre-training hides, and the losses that count only that."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import DTypeError, InputError, ShapeError

F = wl.nn.functional
KEY = wl.random.key(3)
V, MASK, SPECIAL = 50, 4, (0, 1, 2)
IDS = np.random.default_rng(0).integers(5, V, size=(200, 100))
IDS[:, 0], IDS[:, -1] = SPECIAL[1], SPECIAL[2]


def test_shares_of_masked_tokens():
    inputs, targets = (t.numpy() for t in F.mask_tokens(IDS, 0.15, MASK, V, special=SPECIAL, key=KEY))
    chosen = targets != -100
    np.testing.assert_array_equal(targets[chosen], IDS[chosen])
    np.testing.assert_array_equal(inputs[~chosen], IDS[~chosen])
    assert not chosen[:, [0, -1]].any()
    n = chosen.sum()
    inside = IDS[:, 1:-1].size
    assert abs(n / inside - 0.15) < 4 * np.sqrt(0.15 * 0.85 / inside)
    masked, same = (inputs == MASK) & chosen, (inputs == IDS) & chosen
    other = chosen & ~masked & ~same
    # of the random tokens one in V is the mask, and one in V the same
    for found, share in ((masked, 0.8 + 0.1 / V), (same, 0.1 + 0.1 / V), (other, 0.1 * (1 - 2 / V))):
        assert abs(found.sum() / n - share) < 4 * np.sqrt(share * (1 - share) / n)
    drawn = inputs[other]
    assert drawn.min() >= 0
    assert len(np.unique(drawn)) > 0.8 * V  # all over the vocabulary


def test_settings_of_masked_tokens():
    everything = F.mask_tokens(IDS, 1.0, MASK, random_share=0, keep_share=0, key=KEY)
    assert (everything[0].numpy() == MASK).all()
    np.testing.assert_array_equal(everything[1], IDS)
    nothing = F.mask_tokens(IDS, 0.0, MASK, V, ignore_index=-1, key=KEY)
    np.testing.assert_array_equal(nothing[0], IDS)
    assert (nothing[1].numpy() == -1).all()
    kept = F.mask_tokens(IDS, 1.0, MASK, V, random_share=0, keep_share=1, key=KEY)
    np.testing.assert_array_equal(kept[0], IDS)
    np.testing.assert_array_equal(kept[1], IDS)
    real = np.arange(100) < np.array([60, 100] * 100)[:, None]
    _, targets = F.mask_tokens(IDS, 0.5, MASK, V, token_mask=real, key=KEY)
    assert not (targets.numpy() != -100)[~real].any()
    narrow, wide = F.mask_tokens(IDS.astype(np.int32), 0.5, MASK, V, key=KEY)
    assert narrow.dtype == wl.int32
    assert wide.dtype == wl.int64


def test_the_same_key_hides_the_same():
    f = lambda ids, key: F.mask_tokens(ids, 0.15, MASK, V, special=SPECIAL, key=key)
    ids = wl.asarray(IDS)
    for a, b in zip(f(ids, KEY), wl.jit(f)(ids, KEY), strict=True):
        np.testing.assert_array_equal(a, b)
    assert (f(ids, KEY)[0] != f(ids, wl.random.key(4))[0]).any()
    keys = wl.random.split(KEY, 3)
    rows = wl.vmap(f)(ids[:3], keys)
    for n in range(3):
        np.testing.assert_array_equal(rows[0][n], f(ids[n], keys[n])[0])
    g = lambda key: F.mask_spans((4, 50), key=key)
    np.testing.assert_array_equal(g(KEY), wl.jit(g)(KEY))
    assert not wl.explain(wl.jit(g), KEY).fallbacks


def test_only_masked_targets_have_slopes():
    """The loss of masked language modelling."""
    _, targets = F.mask_tokens(IDS[:4], 0.15, MASK, V, special=SPECIAL, key=KEY)
    logits = wl.random.normal((4, 100, V), key=KEY)
    slope = wl.grad(lambda z: F.cross_entropy(z, targets))(logits).numpy()
    chosen = targets.numpy() != -100
    assert not slope[~chosen].any()
    assert slope[chosen].any(axis=-1).all()
    # the same as the mean over chosen places alone
    alone = F.cross_entropy(logits.numpy()[chosen], IDS[:4][chosen])
    np.testing.assert_allclose(F.cross_entropy(logits, targets), alone, rtol=1e-6)


@pytest.mark.parametrize("length, p", [(1, 0.3), (5, 0.1), (10, 0.065)])
def test_spans(length, p):
    rows, time = 300, 400
    hidden = F.mask_spans((rows, time), p, length, key=KEY).numpy()
    assert hidden.dtype == bool
    # a frame is seen if none of the places that reach it begins a span
    inner = hidden[:, length:-length]
    assert abs(inner.mean() - (1 - (1 - p) ** length)) < 0.01
    for row in hidden[:20]:
        edges = np.flatnonzero(np.diff(np.concatenate([[False], row, [False]])))
        runs = edges[1::2] - edges[::2]
        assert runs.min() >= length  # whole spans, though they may overlap


def test_spans_of_padded_rows():
    lengths = np.array([0, 1, 3, 4, 17, 40])
    hidden = F.mask_spans((6, 40), 0.0, 4, lengths=lengths, key=KEY).numpy()
    assert hidden.sum(axis=1).tolist() == [0, 1, 3, 4, 4, 4]  # one each, and no longer than the row
    assert not hidden[np.arange(40) >= lengths[:, None]].any()
    many = F.mask_spans((2000, 8), 0.0, 3, key=KEY).numpy()
    starts = many.argmax(axis=1)
    assert set(starts.tolist()) == set(range(6))  # anywhere it fits
    assert np.bincount(starts).min() > 250
    assert F.mask_spans((5,), 0.0, 9, key=KEY).numpy().all()
    assert F.mask_spans((3, 5), 1.0, 1, key=KEY).numpy().all()


def test_only_masked_frames_have_slopes():
    """The loss on latent frames."""
    frames = wl.random.normal((3, 30, 4), key=KEY)
    lengths = np.array([30, 12, 20])
    hidden = F.mask_spans((3, 30), 0.05, 4, lengths=lengths, key=KEY)
    where = wl.broadcast_to(hidden[..., None], frames.shape)
    loss = wl.data.masked_loss(F.mse_loss)
    vector = wl.zeros(4)

    def total(frames, vector):
        seen = wl.where(hidden[..., None], vector, frames)
        return loss(seen * 2.0, (wl.stop_gradient(frames), where))

    of_frames, of_vector = wl.grad(total, argnums=(0, 1))(frames, vector)
    assert not of_frames.numpy().any()  # what is seen is not in the loss, what is in the loss was not seen
    assert of_vector.numpy().any()
    slope = wl.grad(lambda y: loss(y, (frames, where)))(frames + 1.0).numpy()
    assert not slope[~hidden.numpy()].any()
    assert slope[hidden.numpy()].all()


def test_bad_input():
    with pytest.raises(DTypeError, match="tokens of float"):
        F.mask_tokens([0.5], 0.1, MASK, V)
    with pytest.raises(InputError, match=r"p=1\.5"):
        F.mask_tokens([1], 1.5, MASK, V)
    with pytest.raises(InputError, match="vocabulary_size"):
        F.mask_tokens([1], 0.15, MASK)
    with pytest.raises(InputError, match="a sum up to 1"):
        F.mask_tokens([1], 0.15, MASK, V, random_share=0.6, keep_share=0.6)
    with pytest.raises(ShapeError, match="token_mask of shape"):
        F.mask_tokens([1, 2], 0.15, MASK, V, token_mask=[True])
    with pytest.raises(InputError, match="length=0"):
        F.mask_spans((1, 4), length=0)
    with pytest.raises(ShapeError, match="one frame or more"):
        F.mask_spans((3, 0))
    with pytest.raises(ShapeError, match="an integer for each row"):
        F.mask_spans((3, 4), lengths=[4])
    with pytest.raises(InputError, match="a length is 5"):
        F.mask_spans((1, 4), lengths=[5])
