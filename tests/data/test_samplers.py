"""Samplers: which indices come, how often, and in which batches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wonderland import data
from wonderland.data.generators import generator
from wonderland.errors import InputError, ShapeError


def batches_of(sampler, epoch=0):
    return sampler.batches(generator(0, epoch))


@pytest.mark.book("5.31", name=("wl.data.RandomSampler", "wl.data.ShuffleSampler"))
def test_with_replacement_indices_repeat_and_shuffled_they_do_not():
    drawn = data.RandomSampler(100, replacement=True).order(generator(0))
    assert len(drawn) == 100
    # of n draws from n about 1 - 1/e are different
    assert 50 < len(set(drawn.tolist())) < 76
    many = data.RandomSampler(4, replacement=True, num_samples=40_000).order(generator(1))
    np.testing.assert_allclose(np.bincount(many) / 40_000, 0.25, atol=0.01)
    shuffled = data.ShuffleSampler(100).order(generator(0))
    assert sorted(shuffled.tolist()) == list(range(100))
    assert shuffled.tolist() != data.ShuffleSampler(100).order(generator(0, 1)).tolist()


def test_random_sampler_of_more_than_all_goes_round():
    order = data.RandomSampler(5, num_samples=12).order(generator(0))
    assert np.bincount(order).min() >= 2
    assert sorted(order[:5].tolist()) == list(range(5))
    assert len(data.RandomSampler(5, num_samples=3)) == 3
    with pytest.raises(InputError, match="num_samples"):
        data.RandomSampler(5, num_samples=0)


def test_weights_are_probabilities():
    sampler = data.WeightedRandomSampler([1.0, 0.0, 3.0], num_samples=20_000)
    np.testing.assert_allclose(
        np.bincount(sampler.order(generator(0)), minlength=3) / 20_000, [0.25, 0, 0.75], atol=0.01
    )
    once = data.WeightedRandomSampler([1.0, 0.0, 3.0], 2, replacement=False)
    assert sorted(once) == [0, 2]
    labels = np.array([0] * 90 + [1] * 10)
    drawn = data.WeightedRandomSampler.balanced(labels, 10_000).order(generator(0))
    np.testing.assert_allclose(labels[drawn].mean(), 0.5, atol=0.02)
    for weights, message in ([[-1.0, 2.0], "negative"], [[0.0, 0.0], "all zero"], [[np.nan], "not finite"]):
        with pytest.raises(InputError, match=message):
            data.WeightedRandomSampler(weights)
    with pytest.raises(InputError, match="3 draws without replacement from 2"):
        data.WeightedRandomSampler([1.0, 0.0, 3.0], 3, replacement=False)
    with pytest.raises(ShapeError, match="one weight per example"):
        data.WeightedRandomSampler([[1.0]])


def test_subset():
    sampler = data.SubsetRandomSampler([7, 3, 5])
    assert sorted(sampler.order(generator(0)).tolist()) == [3, 5, 7]
    x = np.arange(10)
    loader = data.DataLoader(data.TensorDataset(x), 2, sampler=sampler)
    assert sorted(v for (b,) in loader for v in b.tolist()) == [3, 5, 7]


@settings(max_examples=25)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(1, 9), st.integers(0, 5))
def test_stratified_batches_have_every_index_once_and_the_shares_of_classes(labels, size, epoch):
    labels = np.array(labels)
    sampler = data.StratifiedBatchSampler(labels, size)
    found = batches_of(sampler, epoch)
    assert len(found) == len(sampler)
    assert sorted(np.concatenate(found).tolist()) == list(range(len(labels)))
    for batch in found:
        for label, count in enumerate(np.bincount(labels)):
            share = count * len(batch) / len(labels)
            assert abs((labels[batch] == label).sum() - share) < 2


@settings(max_examples=25)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=60), st.integers(1, 9), st.integers(0, 5))
def test_buckets_have_every_index_once(lengths, size, epoch):
    sampler = data.BucketBatchSampler(lengths, size, pool=3)
    found = batches_of(sampler, epoch)
    assert len(found) == len(sampler)
    assert sorted(np.concatenate(found).tolist()) == list(range(len(lengths)))


def test_buckets_pad_less():
    lengths = np.random.default_rng(0).integers(1, 200, size=1000)

    def padding(batches):
        return sum(lengths[b].max() * len(b) - lengths[b].sum() for b in batches)

    plain = data.BatchSampler(data.ShuffleSampler(1000), 20)
    buckets = data.BucketBatchSampler(lengths, 20)
    assert padding(batches_of(buckets)) < 0.1 * padding(batches_of(plain))
    first, second = batches_of(buckets, 0), batches_of(buckets, 1)
    assert {frozenset(b.tolist()) for b in first} != {frozenset(b.tolist()) for b in second}
    assert [len(b) for b in data.BucketBatchSampler(lengths, 30, drop_last=True)] == [30] * 33
    with pytest.raises(ShapeError, match="one length per example"):
        data.BucketBatchSampler([[1]], 2)


def test_batches_with_and_without_the_last():
    assert [b.tolist() for b in data.BatchSampler([3, 1, 2], 2)] == [[3, 1], [2]]
    dropping = data.BatchSampler(range(5), 2, drop_last=True)
    assert len(dropping) == len(list(dropping)) == 2
    with pytest.raises(InputError, match="batch_size=0"):
        data.BatchSampler(range(5), 0)
