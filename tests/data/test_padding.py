"""Padded batches, their masks, and what padding changes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import data, nn
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


# --- a few lengths


def waste(lengths: Any, buckets: Any) -> int:
    return sum(min(b for b in buckets if b >= n) - n for n in lengths)


@pytest.mark.parametrize("seed", range(6))
def test_buckets_pad_least(seed):
    """Every other choice of as many lengths pads as much or more."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, [6, 12, 200][seed % 3], 30)
    every = sorted(set(lengths.tolist()))
    for most in (1, 2, 3):
        found = data.bucket_lengths(lengths, most)
        assert len(found) == min(most, len(every))
        assert list(found) == sorted(found)
        assert found[-1] == max(every)
        others = itertools.combinations(every[:-1], min(most, len(every)) - 1)
        assert waste(lengths, found) == min(waste(lengths, (*other, every[-1])) for other in others)


def test_buckets_of_very_many_lengths():
    lengths = np.random.default_rng(0).integers(1, 1_000_000, 5000)
    found = data.bucket_lengths(lengths, 8)
    assert len(found) == 8
    assert found[-1] >= lengths.max()
    assert waste(lengths, found) < 0.15 * lengths.sum()
    for wrong in ([], [[3]], [0, 2], [1.5]):
        with pytest.raises(InputError, match="bucket_lengths"):
            data.bucket_lengths(wrong)


def test_padding_to_a_few_lengths():
    pad = data.PadCollate((0, None), to=[8, 4, 16])
    for n, padded in ((1, 4), (4, 4), (5, 8), (16, 16)):
        batch, label = pad([(np.ones(n), 1), (np.ones(1), 2)])
        assert batch.values.shape == (2, padded)
        assert batch.mask.sum() == n + 1
        assert batch.values.sum() == n + 1
        assert label.tolist() == [1, 2]
    with pytest.raises(ShapeError, match="length 17, more than to=16"):
        pad([(np.ones(17), 1)])
    with pytest.raises(InputError, match="one of them"):
        data.PadCollate(to=[4], length=4)
    with pytest.raises(InputError, match="one of them"):
        data.PadCollate(to=[4], to_multiple=4)
    with pytest.raises(InputError, match="length of to"):
        data.PadCollate(to=[0, 4])


class Tagger(nn.Module):
    """A tag for every token, by attention and a recurrent layer: no program serves all lengths."""

    def __init__(self) -> None:
        self.tokens, self.attention = nn.Embedding(9, 8), nn.MultiHeadAttention(8, 2)
        self.recurrent, self.head = nn.GRU(8, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, x: Any, lengths: Any) -> Any:
        h = self.tokens(x)
        h = h + self.attention(h, lengths=lengths)
        return self.head(h + self.recurrent(h, lengths=lengths)[0])


@pytest.mark.parametrize("value", [0, 7])
def test_many_lengths_are_a_few_programs(value):
    """Losses and parameters are those of batches of exact lengths, and what is padded never reaches what is real."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 30, 48)
    examples = [(rng.integers(0, 9, n), rng.integers(0, 3, n)) for n in lengths]
    buckets = data.bucket_lengths(lengths, 3)

    def trained(pad: data.PadCollate) -> tuple[list[float], list[np.ndarray], set[int], int]:
        wl.random.seed(1)
        model = Tagger()
        optimizer = wl.optim.SGD(model, lr=0.1)

        @wl.jit
        def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
            def loss_of(model: Any) -> Any:
                return F.cross_entropy(model(x.values, x.lengths), y.values, ignore_index=-100)

            loss, grads = wl.value_and_grad(loss_of)(model)
            optimizer.step(grads)
            return loss

        losses, met = [], set()
        sampler = data.BucketBatchSampler(lengths, 6, pool=2)
        for x, y in data.DataLoader(examples, batch_sampler=sampler, collate_fn=pad, seed=3):
            losses.append(float(step(model, optimizer, x, y)))
            met.add(x.values.shape[1])
        out = [np.asarray(model(x.values, x.lengths))[np.asarray(x.mask)] for x in [pad(examples[:5])[0]]]
        return losses, [*out, *map(np.asarray, model.parameters())], met, step.traces

    found, values, met, programs = trained(data.PadCollate((value, -100), to=buckets))
    wanted, exact, every, more = trained(data.PadCollate((0, -100)))
    assert met <= set(buckets)
    assert programs == len(met) <= 3 < len(every) == more
    np.testing.assert_allclose(found, wanted, rtol=1e-4)
    for one, other in zip(values, exact, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-5)
