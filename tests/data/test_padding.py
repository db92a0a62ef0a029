"""Padded batches, their masks, and what padding changes."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import data
from wonderland.errors import DTypeError, InputError, ShapeError

F = wl.nn.functional


@pytest.mark.book("8-21", "8-22", "8-07", name=("wl.data.pad_sequence", "wl.data.unpad_sequence"))
def test_padded_sequences_of_the_box():
    rng = np.random.default_rng(0)
    X1, X2, X3 = (rng.normal(size=(n, 8)) for n in (3, 5, 2))
    X = data.pad_sequence([X1, X2, X3], batch_first=True)
    assert X.shape == (3, 5, 8)
    for row, x in zip(np.asarray(X), (X1, X2, X3), strict=True):
        np.testing.assert_array_equal(row[: len(x)], x)
        assert (row[len(x) :] == 0).all()
    np.testing.assert_array_equal(np.asarray(data.pad_sequence([X1, X2, X3])), np.asarray(X).swapaxes(0, 1))
    for a, b in zip(data.unpad_sequence(X, [3, 5, 2], batch_first=True), (X1, X2, X3), strict=True):
        np.testing.assert_array_equal(np.asarray(a), b)
    filled = data.pad_sequence([wl.tensor([1, 2]), wl.tensor([3])], batch_first=True, padding_value=-100)
    assert filled.tolist() == [[1, 2], [3, -100]]
    wl.check_grads(lambda a, b: wl.sin(data.pad_sequence([a, b])), (X1, X2))


@pytest.mark.book("8-07", name=("wl.data.transforms.Resize", "wl.data.pad_sequence"))
def test_images_are_resized_and_sequences_padded():
    image = np.random.default_rng(0).random((16, 12, 3)).astype(np.float32)
    small = data.transforms.Resize((8, 6))(image)
    assert small.shape == (8, 6, 3)
    assert image.min() <= small.min() <= small.max() <= image.max()
    assert small.mean() == pytest.approx(image.mean(), abs=0.02)
    # a tone that is stretched to another length is another tone; padding keeps it
    tone = np.sin(2 * np.pi * 5 * np.arange(32) / 32)
    stretched = np.interp(np.arange(64) / 2, np.arange(32), tone)
    padded = np.asarray(data.pad_sequence([tone, np.zeros(64)], batch_first=True))[0]
    frequency = [np.abs(np.fft.rfft(x)).argmax() / len(x) for x in (tone, stretched, padded)]
    assert frequency[1] == frequency[0] / 2
    assert frequency[2] == frequency[0]


@pytest.mark.book("8-24", name="wl.data.lengths_to_mask")
def test_masks_from_lengths():
    assert data.lengths_to_mask([5, 3]).astype(wl.int64).tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
    assert data.lengths_to_mask(np.array([1, 0]), max_len=2).tolist() == [[True, False], [False, False]]
    batch = data.PadCollate()([np.arange(4), np.arange(2)])
    np.testing.assert_array_equal(np.asarray(data.lengths_to_mask(batch.lengths)), batch.mask)
    mask = wl.jit(lambda n: data.lengths_to_mask(n, 5))(wl.tensor([5, 3]))
    assert mask.tolist() == data.lengths_to_mask([5, 3]).tolist()


@pytest.mark.book("8-23", name="wl.data.DataLoader")
def test_batches_are_padded_to_their_own_longest():
    examples = [np.ones((n, 2), np.float32) for n in (2, 3, 7, 4)]
    loader = data.DataLoader(examples, batch_size=2, collate_fn=lambda e: np.asarray(data.pad_sequence(e, True)))
    assert [batch.shape for batch in loader] == [(2, 3, 2), (2, 7, 2)]
    assert [batch.values.shape for batch in data.DataLoader(examples, batch_size=2, pad_value=0)] == [
        (2, 3, 2),
        (2, 7, 2),
    ]


@pytest.mark.book("8-25", "8-20", "8-19", name=("wl.data.lengths_to_mask", "wl.nn.functional.global_avg_pool"))
def test_padding_leaks_unless_every_layer_masks_it():
    wl.random.seed(0)
    first, second = wl.nn.Conv1d(2, 4, 3, padding="same"), wl.nn.Conv1d(4, 3, 3, padding="same")
    rng = np.random.default_rng(1)
    sequences = [rng.normal(size=(n, 2)).astype(np.float32) for n in (6, 3)]

    def network(x, mask=None, again=True):
        h = wl.relu(first(x))
        if mask is not None and again:
            h = wl.where(mask[..., None], h, 0.0)
        return F.global_avg_pool(second(h), axes=1, mask=mask)

    alone = np.stack([np.asarray(network(wl.asarray(x))) for x in sequences])
    batch, mask = data.pad_sequence(sequences, batch_first=True), data.lengths_to_mask([6, 3])
    np.testing.assert_allclose(np.asarray(network(batch, mask)), alone, atol=1e-6)
    np.testing.assert_allclose(np.asarray(network(batch))[0], alone[0], atol=1e-6)
    assert np.abs(np.asarray(network(batch))[1] - alone[1]).max() > 1e-3  # the mean counts the padding
    assert np.abs(np.asarray(network(batch, mask, again=False))[1] - alone[1]).max() > 1e-3  # so does the bias


def test_bad_batches_are_refused():
    with pytest.raises(InputError, match="no sequences"):
        data.pad_sequence([])
    with pytest.raises(ShapeError, match="differ in time only"):
        data.pad_sequence([np.zeros((2, 3)), np.zeros((2, 4))])
    with pytest.raises(ShapeError, match="shapes"):
        data.pad_sequence([1.0, 2.0])
    with pytest.raises(InputError, match="a length is 6"):
        data.lengths_to_mask([6], max_len=5)
    with pytest.raises(InputError, match="a length is -1"):
        data.lengths_to_mask([-1, 2])
    with pytest.raises(DTypeError, match="float32"):
        data.lengths_to_mask([1.5])
    with pytest.raises(InputError, match="not known under jit"):
        wl.jit(data.lengths_to_mask)(wl.tensor([1, 2]))
    with pytest.raises(ShapeError, match="one length per sequence"):
        data.unpad_sequence(np.zeros((2, 5)), [3], batch_first=True)
    with pytest.raises(ShapeError, match="one length per sequence"):
        data.unpad_sequence(np.zeros((2, 5)), [3, 6], batch_first=True)
