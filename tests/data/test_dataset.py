"""Datasets: pairs that stay pairs, parts, functions of examples, windows of tokens."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import wonderland as wl
from wonderland import data
from wonderland.errors import IndexOutOfRange, InputError, ShapeError


@pytest.mark.book("3.01", "B3-01", name=("wl.data.TensorDataset", "wl.data.Dataset"))
def test_a_dataset_has_n_pairs_and_keeps_them_together():
    x = np.arange(20.0).reshape(10, 2)
    y = x.sum(axis=1)
    dataset = data.TensorDataset(x, y)
    assert len(dataset) == 10
    for a, b in dataset.shuffle(seed=3):
        assert a.sum() == b
    for a, b in data.DataLoader(dataset, 3, shuffle=True):
        np.testing.assert_array_equal(a.numpy().sum(axis=1), b)
    with pytest.raises(ShapeError, match=r"different lengths, \[10, 9\]"):
        data.TensorDataset(x, y[:9])


def test_tensor_dataset_takes_tensors_lists_and_arrays():
    dataset = data.TensorDataset(wl.ones((3, 2)), [0, 1, 2], [0.5, 1.5, 2.5], np.zeros(3, np.float64))
    assert [part.dtype for part in dataset.arrays] == [np.float32, np.int64, np.float32, np.float64]
    x, y, z, _ = dataset[-1]
    assert x.tolist() == [1.0, 1.0]
    assert (y, z) == (2, 2.5)
    assert dataset[:2][1].tolist() == [0, 1]
    batch = dataset.__getitems__(np.array([2, 0]))
    assert batch[1].tolist() == [2, 0]


def test_tensor_dataset_refuses():
    with pytest.raises(InputError, match="no arrays"):
        data.TensorDataset()
    with pytest.raises(ShapeError, match="no axes"):
        data.TensorDataset(3.0)
    dataset = data.TensorDataset(np.zeros(4))
    for ask in (lambda: dataset[4], lambda: dataset.__getitems__(np.array([1, 7]))):
        with pytest.raises(IndexOutOfRange, match="among 4"):
            ask()
    bad = np.ones((5, 2))
    bad[3, 1] = np.nan
    with pytest.raises(InputError, match="1 of 5 rows of array 1 have NaN or infinities, first row 3"):
        data.TensorDataset(np.zeros(5), bad, check_finite=True)
    data.TensorDataset(np.zeros(5), bad)


def test_map_filter_take_and_concatenation():
    dataset = data.SequenceDataset(range(10))
    assert list(dataset.map(lambda x: x * x).filter(lambda x: x % 2 == 0).take(3)) == [0, 4, 16]
    assert len(dataset.take(99)) == 10
    both = dataset + dataset.map(lambda x: -x)
    assert len(both) == 20
    assert [both[i] for i in (0, 9, 10, 19, -1)] == [0, 9, 0, -9, -9]
    assert both.__getitems__([1, 11]).tolist() == [1, -1]
    with pytest.raises(IndexOutOfRange):
        both[20]


@pytest.mark.book("5.68", name=("wl.data.Dataset.map", "wl.data.Dataset.cache"))
def test_a_cached_map_runs_once_for_each_example():
    calls = []

    def slow(x):
        calls.append(x)
        return 10 * x

    cached = data.SequenceDataset([1, 2, 3]).map(slow).cache()
    for _ in range(3):
        assert list(cached) == [10, 20, 30]
    loader = data.DataLoader(cached, 2, shuffle=True)
    for _ in range(2):
        assert sorted(v for batch in loader for v in batch.tolist()) == [10, 20, 30]
    assert sorted(calls) == [1, 2, 3]
    assert data.SequenceDataset([1, 2, 3]).map(slow).filter(lambda x: x > 15).cache()[0] == 20


def test_split_is_disjoint_and_complete():
    dataset = data.SequenceDataset(list(range(11)))
    for parts in ([0.5, 0.3, 0.2], [5, 4, 2]):
        found = dataset.split(parts, seed=1)
        assert sorted(x for part in found for x in part) == list(range(11))
    assert [len(part) for part in dataset.split([0.5, 0.3, 0.2])] == [6, 3, 2]
    assert list(dataset.split([6, 5], shuffle=False)[1]) == [6, 7, 8, 9, 10]
    assert list(dataset.split([6, 5])[0]) == list(dataset.split([6, 5])[0])
    assert list(dataset.shuffle(0)) != list(dataset.shuffle(1))
    for wrong in ([0.5, 0.3], [5, 4]):
        with pytest.raises(InputError, match="do not add up"):
            dataset.split(wrong)


def test_subset_checks_its_indices():
    assert list(data.Subset([1, 2, 3], [-1, 0])) == [3, 1]
    assert len(data.Subset([1, 2, 3], [])) == 0
    with pytest.raises(IndexOutOfRange, match="no example 3 among 3"):
        data.Subset([1, 2, 3], [0, 3])
    with pytest.raises(InputError, match="a list of integers"):
        data.Subset([1, 2, 3], [0.5])
    inner = data.TensorDataset(np.arange(10)).shuffle(0)
    twice = data.Subset(inner, [4, 2])
    assert twice.__getitems__(np.array([1]))[0].tolist() == [inner[2][0]]


def test_a_random_function_is_the_same_draw_every_time():
    def jitter(x, rng):
        return x + rng.random()

    jitter.random = True
    dataset = data.SequenceDataset([0.0, 0.0]).map(jitter)
    assert dataset.random
    assert dataset[0] == dataset[0] == dataset[-2]
    assert dataset[0] != dataset[1]
    assert dataset.take(1).random
    assert (dataset + [1.0]).random
    assert dataset.cache().random is False


def test_an_exception_names_the_example():
    dataset = data.SequenceDataset([1, 0, 2]).map(lambda x: 1 / x).take(3)
    with pytest.raises(ZeroDivisionError) as caught:
        dataset.__getitems__([0, 1])
    assert caught.value.__notes__ == ["while loading example 1"]


def test_a_subclass_needs_a_length_and_examples():
    class Nothing(data.Dataset):
        pass

    with pytest.raises(NotImplementedError, match="Nothing: def __len__"):
        len(Nothing())
    with pytest.raises(NotImplementedError, match="Nothing: def __getitem__"):
        Nothing()[0]
    with pytest.raises(InputError, match="no length or no examples"):
        data.SequenceDataset(iter([1]))


@pytest.mark.book("3.08", name="wl.data.NextTokenDataset")
def test_the_next_token_is_the_target():
    tokens = np.random.default_rng(0).integers(50, size=23)
    dataset = data.NextTokenDataset(tokens, context=5)
    assert len(dataset) == 4
    for x, y in dataset:
        assert x.shape == y.shape == (5,)
        np.testing.assert_array_equal(y[:-1], x[1:])
    np.testing.assert_array_equal(np.concatenate([y for _, y in dataset]), tokens[1:21])
    every = data.NextTokenDataset(tokens, context=5, stride=1)
    assert len(every) == 18
    xs, ys = every.__getitems__([17, 0])
    np.testing.assert_array_equal(xs[0], tokens[17:22])
    np.testing.assert_array_equal(ys[0], tokens[18:23])
    assert len(data.NextTokenDataset(np.arange(6), 5)) == 1
    with pytest.raises(InputError, match="5 tokens are too few for context=5"):
        data.NextTokenDataset(np.arange(5), 5)
    with pytest.raises(InputError, match="one long row of integers"):
        data.NextTokenDataset(np.zeros(9), 5)


def test_a_mapped_file_is_opened_again_by_another_process(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(1000))
    dataset = data.TensorDataset(data.memory_map(tmp_path / "x.npy"), np.arange(1000))
    text = pickle.dumps(dataset)
    assert len(text) < 12_000  # the second array, not the first
    again = pickle.loads(text)
    assert isinstance(again.arrays[0], np.memmap)
    assert again[7] == (7, 7)
    part = data.TensorDataset(dataset.arrays[0][10:20])
    assert pickle.loads(pickle.dumps(part))[0] == (10,)
