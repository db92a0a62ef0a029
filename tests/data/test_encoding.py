"""Categories and vocabularies: there and back, and what is unknown."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import preprocessing

import wonderland as wl
from wonderland import data
from wonderland.errors import InputError, ModuleError, ShapeError

ROWS = [["red", 1], ["blue", 3], ["red", 2], ["green", 1]]


@pytest.mark.book("A4-01", name=("wl.data.OneHotEncoder", "wl.one_hot"))
def test_green_among_red_green_blue():
    colors = ["red", "green", "blue"]
    encoder = data.OneHotEncoder([colors]).fit(colors)
    assert encoder.transform(["green"]).tolist() == [[0, 1, 0]]
    assert encoder.inverse_transform([[0, 1, 0]]).tolist() == [["green"]]
    vocabulary = data.Vocabulary(colors)
    assert wl.one_hot(vocabulary.encode(["green"]), len(vocabulary)).tolist() == [[0, 1, 0]]


def test_against_scikit_learn():
    table = np.array(ROWS, object)
    np.testing.assert_array_equal(
        data.OrdinalEncoder().fit_transform(table), preprocessing.OrdinalEncoder().fit_transform(table)
    )
    np.testing.assert_array_equal(
        data.OneHotEncoder().fit_transform(table), preprocessing.OneHotEncoder(sparse_output=False).fit_transform(table)
    )


def test_there_and_back_and_the_unknown():
    for kind in (data.OrdinalEncoder, data.OneHotEncoder):
        encoder = kind().fit(ROWS)
        assert encoder.inverse_transform(encoder.transform(ROWS)).tolist() == ROWS
        with pytest.raises(InputError, match="column 0 has the category 'pink'"):
            encoder.transform([["pink", 1]])
        with pytest.raises(ShapeError, match="fitted on 2 columns"):
            encoder.transform([["red"]])
        with pytest.raises(ModuleError, match="used before fit"):
            kind().transform(ROWS)
        with pytest.raises(InputError, match="handle_unknown"):
            kind(handle_unknown="guess")
    lenient = data.OneHotEncoder(handle_unknown="ignore").fit(ROWS)
    assert lenient.transform([["pink", 3]]).tolist() == [[0, 0, 0, 0, 0, 1]]
    assert lenient.inverse_transform([[0, 0, 0, 0, 0, 1]]).tolist() == [[None, 3]]
    ordinal = data.OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-7).fit(ROWS)
    assert ordinal.transform([["pink", 2]]).tolist() == [[-7, 1]]
    with pytest.raises(InputError, match="unknown to fit"):
        data.OneHotEncoder([["a"], [1]]).fit(ROWS)
    with pytest.raises(ShapeError, match="categories for 1 columns"):
        data.OrdinalEncoder([["red"]]).fit(ROWS)
    assert data.OrdinalEncoder().fit_transform([["a"], [None], ["b"]]).tolist() == [[1], [0], [2]]


@pytest.mark.book("A4-03", name="wl.data.Vocabulary")
@settings(max_examples=20)
@given(st.lists(st.text(max_size=3), min_size=1, max_size=20))
def test_a_vocabulary_goes_there_and_back(tokens):
    vocabulary = data.Vocabulary.build([tokens])
    assert vocabulary.decode(vocabulary.encode(tokens)) == tokens
    assert sorted(vocabulary.ids.values()) == list(range(len(set(tokens))))
    assert all(token in vocabulary for token in tokens)


def test_vocabularies():
    text = [["a", "b", "a", "c", "a", "b"], ["d"]]
    words = data.Vocabulary.build(text, unknown="<unk>", specials=["<pad>"], min_count=2)
    assert list(words) == ["<unk>", "<pad>", "a", "b"]
    assert words.encode(["a", "d", "zebra"]).tolist() == [2, 0, 0]
    assert list(data.Vocabulary.build(text, max_size=2)) == ["a", "b"]
    assert len(data.Vocabulary(["x"], unknown="?")) == 2
    with pytest.raises(InputError, match="'zebra' is not among 2"):
        data.Vocabulary(["a", "b"])["zebra"]
    with pytest.raises(InputError, match="is there twice"):
        data.Vocabulary(["a", "a"])
    for wrong in (-1, 2):
        with pytest.raises(InputError, match="no token"):
            data.Vocabulary(["a", "b"]).decode([wrong])
