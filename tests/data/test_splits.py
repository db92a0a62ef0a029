"""Splits and folds: disjoint, complete, with the shares of the classes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn import model_selection

import wonderland as wl
from wonderland import data
from wonderland.errors import InputError, ShapeError


@pytest.mark.book("3.24", name=("wl.data.train_test_split", "wl.data.leakage"))
def test_train_and_test_share_nothing_and_duplicates_are_found():
    x, y = np.random.default_rng(0).normal(size=(100, 3)), np.arange(100)
    x_train, x_test, y_train, y_test = data.train_test_split(x, y, test_size=0.2, seed=1)
    assert (len(y_train), len(y_test)) == (80, 20)
    assert not set(y_train) & set(y_test)
    assert set(y_train) | set(y_test) == set(range(100))
    np.testing.assert_array_equal(x[y_train], x_train)
    assert data.leakage(x_train, x_test) == []
    x_test[3] = x_train[17]
    assert data.leakage(x_train, x_test) == [(17, 3)]
    again = data.train_test_split(x, y, test_size=0.2, seed=1)
    np.testing.assert_array_equal(again[3], y_test)
    assert data.train_test_split(x, y, test_size=0.2, seed=2)[3].tolist() != y_test.tolist()


@pytest.mark.book("9-18", name="wl.data.train_val_test_split")
def test_three_parts_are_disjoint():
    train, val, test = data.train_val_test_split(np.arange(50), val_size=0.2, test_size=0.1)
    assert (len(train), len(val), len(test)) == (35, 10, 5)
    assert sorted([*train, *val, *test]) == list(range(50))
    labels = np.repeat([0, 1], [30, 20])
    parts = data.train_val_test_split(labels, val_size=0.2, test_size=0.2, stratify=labels)
    assert [np.bincount(part).tolist() for part in parts] == [[18, 12], [6, 4], [6, 4]]
    with pytest.raises(InputError, match="sizes that leave something"):
        data.train_val_test_split(np.arange(3), val_size=0.6, test_size=0.4)


@settings(max_examples=20)
@given(st.integers(2, 60), st.floats(0.05, 0.95))
def test_sizes_are_those_of_scikit_learn(n, share):
    try:
        expected = [len(part) for part in model_selection.train_test_split(np.arange(n), test_size=share)]
    except ValueError:
        with pytest.raises(InputError):
            data.train_test_split(np.arange(n), test_size=share)
        return
    assert [len(part) for part in data.train_test_split(np.arange(n), test_size=share)] == expected


@settings(max_examples=20)
@given(st.lists(st.integers(2, 40), min_size=2, max_size=4), st.floats(0.2, 0.6), st.integers(0, 9))
def test_stratified_parts_have_the_shares_of_the_classes(counts, share, seed):
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    testing = int(np.ceil(share * len(labels)))
    assume(min(testing, len(labels) - testing) >= len(counts))  # each part has room for every class
    train, test = data.train_test_split(np.arange(len(labels)), test_size=share, stratify=labels, seed=seed)
    assert sorted([*train, *test]) == list(range(len(labels)))
    for label, count in enumerate(counts):
        assert abs((labels[test] == label).sum() - count * len(test) / len(labels)) < 1 + 1e-9


def test_what_can_be_split():
    dataset = data.TensorDataset(np.arange(8))
    train, test = data.train_test_split(dataset, test_size=2, shuffle=False)
    assert [x for (x,) in test] == [6, 7]
    assert isinstance(train, data.Subset)
    tensors = data.train_test_split(wl.arange(8), list("abcdefgh"), test_size=2, shuffle=False)
    assert isinstance(tensors[0], wl.Tensor)
    assert tensors[1].tolist() == [6, 7]
    assert tensors[3] == ["g", "h"]
    parts = data.random_split(dataset, [6, 2])
    assert sorted(x for part in parts for (x,) in part) == list(range(8))
    with pytest.raises(ShapeError, match=r"lengths \[8, 7\] differ"):
        data.train_test_split(np.arange(8), np.arange(7))
    with pytest.raises(InputError, match="2 classes, the smallest with 1 examples"):
        data.train_test_split(np.arange(8), stratify=[0] * 7 + [1])
    for size in (0, 8, 1.5, -1):
        with pytest.raises(InputError):
            data.train_test_split(np.arange(8), test_size=size)
    with pytest.raises(InputError, match="nothing to split"):
        data.train_test_split()


# --- folds


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("kind", [data.KFold, data.StratifiedKFold, data.GroupKFold])
def test_every_example_is_tested_once(kind, shuffle):
    y = np.arange(23) % 3
    groups = np.arange(23) // 3
    folds = list(kind(4, shuffle=shuffle, seed=1).split(y, y, groups))
    assert len(folds) == 4
    assert sorted(np.concatenate([test for _, test in folds]).tolist()) == list(range(23))
    for train, test in folds:
        assert sorted([*train, *test]) == list(range(23))
        assert 3 <= len(test) <= 8


def test_folds_against_scikit_learn():
    for n, k in ((10, 3), (7, 7), (12, 4)):
        ours = data.KFold(k).split(np.arange(n))
        for (train, test), (a, b) in zip(ours, model_selection.KFold(k).split(np.arange(n)), strict=True):
            np.testing.assert_array_equal(train, a)
            np.testing.assert_array_equal(test, b)
        for (train, test), (a, b) in zip(
            data.LeaveOneOut().split(range(n)), model_selection.LeaveOneOut().split(np.arange(n)), strict=True
        ):
            np.testing.assert_array_equal(train, a)
            np.testing.assert_array_equal(test, b)
    for options in ({}, {"gap": 2}, {"test_size": 3, "max_train_size": 5}):
        ours = data.TimeSeriesSplit(3, **options).split(np.arange(20))
        theirs = model_selection.TimeSeriesSplit(3, **options).split(np.arange(20))
        for (train, test), (a, b) in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(train, a)
            np.testing.assert_array_equal(test, b)


def test_stratified_and_grouped_folds():
    y = np.array([0] * 20 + [1] * 10)
    for _, test in data.StratifiedKFold(5, shuffle=True).split(y, y):
        assert np.bincount(y[test]).tolist() == [4, 2]
    groups = np.random.default_rng(0).integers(9, size=60)
    for train, test in data.GroupKFold(3).split(groups, groups=groups):
        assert not set(groups[train]) & set(groups[test])
        assert 14 <= len(test) <= 26
    for kind, wrong in (
        (data.KFold(5), {"X": np.arange(4)}),
        (data.StratifiedKFold(3), {"X": np.arange(4), "y": [0, 0, 0, 1]}),
        (data.StratifiedKFold(3), {"X": np.arange(4)}),
        (data.GroupKFold(3), {"X": np.arange(4)}),
        (data.GroupKFold(3), {"X": np.arange(4), "groups": [0, 0, 1, 1]}),
        (data.TimeSeriesSplit(5), {"X": np.arange(4)}),
        (data.LeaveOneOut(), {"X": np.arange(1)}),
    ):
        with pytest.raises(InputError):
            list(kind.split(**wrong))


@pytest.mark.book("B3-02", name="wl.data.time_split")
def test_a_split_by_time_tests_on_what_came_later():
    times = np.array([5.0, 1.0, 3.0, 3.0, 4.0, 2.0])
    train, test = data.time_split(times, test_size=2)
    assert (train.tolist(), test.tolist()) == ([1, 2, 3, 5], [0, 4])
    assert times[train].max() < times[test].min()
    train, test = data.time_split(times, test_size=3)  # equal times are not torn apart
    assert sorted(times[test]) == [3.0, 3.0, 4.0, 5.0]
    days = np.array(["2024-01-01", "2024-03-01", "2024-02-01"], "datetime64[D]")
    assert data.time_split(days, at=np.datetime64("2024-02-01"))[1].tolist() == [1, 2]
    for wrong in ({"at": 0.0}, {"at": 9.0}, {"test_size": 0}, {"test_size": 6}):
        with pytest.raises(InputError, match="nothing on one side"):
            data.time_split(times, **wrong)
    with pytest.raises(InputError, match="a time is missing"):
        data.time_split([1.0, np.nan])
