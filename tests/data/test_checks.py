"""Reports on data: what was put in is found, and clean data has nothing."""

from __future__ import annotations

import numpy as np
import pytest

from wonderland import data
from wonderland.errors import InputError, ShapeError

RNG = np.random.default_rng(0)
CLEAN = RNG.normal(size=(60, 3))


@pytest.mark.book("3.03", name=("wl.data.data_report", "wl.data.DataReport"))
def test_injected_duplicates_imbalance_and_leaks_are_reported():
    x = CLEAN.copy()
    x[7] = x[3]
    x[50] = x[3]
    y = np.array([0] * 57 + [1] * 3)
    groups = np.array(["dealership"] * 58 + ["street"] * 2)
    test = RNG.normal(size=(9, 3))
    test[4] = x[20]
    report = data.data_report(x, y, groups=groups, test=test)
    assert report.duplicates == [[3, 7, 50]]
    assert report.classes == {0: 57, 1: 3}
    assert report.imbalance == 19
    assert report.groups == {"dealership": 58, "street": 2}
    assert report.leaks == [(20, 4)]
    assert report.problems == [
        "2 rows are copies of others, such as example 7 of example 3",
        "class 0 has 57 examples, class 1 only 3 (19.0 to 1)",
        "group dealership has 58 examples, group street only 2 (29.0 to 1)",
        "1 rows of the test set are in the training set, such as 4 (as 20)",
    ]
    assert "dealership       58  96.7% #####" in str(report)
    with pytest.raises(InputError, match="2 rows are copies"):
        report.check()


def test_clean_data_has_no_problems():
    report = data.data_report(CLEAN, np.arange(60) % 3, test=RNG.normal(size=(5, 3)), num_classes=3)
    assert report.ok
    assert "no problems found" in str(report)
    report.check()
    assert data.data_report(CLEAN, CLEAN[:, 0]).classes == {}  # a regression has none


def test_values_that_are_no_numbers_and_labels_out_of_range():
    x = CLEAN.copy()
    x[3, 1] = x[4, 1] = np.nan
    x[5, 2] = np.inf
    x[:, 0] = 2.0
    y = np.arange(60) % 3
    y[9] = 7
    report = data.data_report(x, y, num_classes=5, names=["a", "b", "c"])
    assert report.missing == {"b": 2}
    assert report.infinite == {"c": 1}
    assert report.constant == ["a"]
    text = str(report)
    for part in (
        "2 missing values (NaN) in b",
        "1 infinities in c",
        "constant: a",
        "1 labels are not among the 5 classes, first 7 at example 9",
        "no examples of class 3, 4",
    ):
        assert part in text
    assert "targets are NaN" in str(data.data_report(CLEAN, np.full(60, np.nan)))


def test_empty_and_one_class():
    assert data.data_report(np.zeros((0, 2))).problems == ["there are no examples"]
    assert "all examples are of class 1" in data.data_report(CLEAN, np.ones(60, int)).problems
    with pytest.raises(ShapeError, match="for 60 examples"):
        data.data_report(CLEAN, np.ones(3))
    with pytest.raises(ShapeError, match="names for 3 features"):
        data.data_report(CLEAN, names=["a"])


def test_labels():
    data.check_labels([0, 1, 2], 3)
    data.check_labels(np.array([0.0, 2.0]), 3)
    for wrong, message in (
        ([0, 3], "first 3 at example 1"),
        ([-1], "first -1 at example 0"),
        ([0.5], "no class numbers"),
        (["a"], "no class numbers"),
        ([], "no labels"),
        ([np.nan], "no class numbers"),
    ):
        with pytest.raises(InputError, match=message):
            data.check_labels(wrong, 3)


@pytest.mark.parametrize("method", ["exact", "hash"])
def test_leakage(method):
    train, test = CLEAN[:40], CLEAN[40:].copy()
    assert data.leakage(train, test, method=method) == []
    test[2], test[5] = train[11], train[30]
    assert data.leakage(train, test, method=method) == [(11, 2), (30, 5)]
    near = test + 1e-9
    assert data.leakage(train, near, method=method) == []
    assert data.leakage(train, near, method=method, decimals=5) == [(11, 2), (30, 5)]
    images = RNG.integers(256, size=(6, 4, 4), dtype=np.uint8)
    assert data.leakage(images, images[4:5], method=method) == [(4, 0)]
    assert data.leakage(["a", "bb"], ["bb", "ccc"], method="exact") == [(1, 0)]


def test_hashes_stand_for_rows():
    assert data.leakage(data.row_hashes(CLEAN), data.row_hashes(CLEAN[5:6]), method="hash") == [(5, 0)]
    zero, nan = data.row_hashes([[0.0, np.nan]]), data.row_hashes([[-0.0, -np.nan]])
    assert zero == nan
    assert len(set(data.row_hashes(CLEAN))) == 60
    with pytest.raises(InputError, match="method='fuzzy'"):
        data.leakage(CLEAN, CLEAN, method="fuzzy")
    with pytest.raises(ShapeError, match="rows of 3 and 2 numbers"):
        data.leakage(CLEAN, CLEAN[:, :2])


def test_duplicates_and_balance():
    assert data.duplicates([[1, 2], [1.0, 2.0], [2, 1], [2, 1], [0, 0]]) == [[0, 1], [2, 3]]
    assert data.duplicates(["a", "b", "a"]) == [[0, 2]]
    assert data.class_balance([2, 2, 0]) == {2: 2, 0: 1}
    with pytest.raises(ShapeError, match="one label per example"):
        data.class_balance([[1]])


@pytest.mark.book("3.13", name="wl.data.DatasetCard")
def test_a_card_says_what_is_known_of_the_data():
    card = data.DatasetCard(
        "web text",
        "Pages in English.",
        source="a crawl",
        biases=["profanity", "few old writers"],
        groups=["dialect"],
        counts={"train": 90, "test": 10},
    )
    text = str(card)
    assert text.startswith("# web text\n\nPages in English.\n")
    assert "- known biases: profanity; few old writers" in text
    assert "- groups to report apart: dialect" in text
    assert "- examples: train 90, test 10" in text
    assert "license" not in text
    assert data.DatasetCard.from_json(card.to_json()) == card
    for wrong in ("{", '{"nme": "x"}', "[1]"):
        with pytest.raises(InputError, match="this is no card"):
            data.DatasetCard.from_json(wrong)
