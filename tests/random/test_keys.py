"""Keys and streams: reproducible, and never the same bits twice."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl
from wonderland.primitives.random_bits import DRAW, random_bits


def same(a, b) -> bool:
    return bool(np.array_equal(np.asarray(a), np.asarray(b)))


# --- keys


@given(st.integers(-(2**63), 2**64 - 1))
def test_a_key_is_the_words_of_its_seed(seed):
    low, high = wl.random.key(seed).tolist()
    assert low + (high << 32) == seed % 2**64


@pytest.mark.parametrize("dtype", [wl.int8, wl.int32, wl.int64, wl.uint8, wl.uint64])
def test_a_seed_means_the_same_in_every_dtype(dtype):
    seeds = wl.tensor([0, 1, 100], dtype=dtype)
    assert same(wl.random.key(seeds), wl.stack([wl.random.key(s) for s in (0, 1, 100)]))
    if dtype.kind == "i":
        assert same(wl.random.key(wl.tensor(-3, dtype=dtype)), wl.random.key(-3))
    assert same(wl.random.key(np.int64(7)), wl.random.key(7))


def test_split_shapes_and_prefix():
    key = wl.random.key(11)
    assert wl.random.split(key).shape == (2, 2)
    assert wl.random.split(key, 0).shape == (0, 2)
    assert wl.random.split(key, (2, 3)).shape == (2, 3, 2)
    assert same(wl.random.split(key, 3)[:2], wl.random.split(key, 2))
    assert wl.random.split(wl.random.split(key, 4), 3).shape == (4, 3, 2)


def test_fold_in_of_a_tensor_is_one_key_per_element():
    key = wl.random.key(4)
    folded = wl.random.fold_in(key, wl.arange(5))
    assert folded.shape == (5, 2)
    for i in range(5):
        assert same(folded[i], wl.random.fold_in(key, i))
    many = wl.random.fold_in(wl.random.split(key, 5), wl.arange(5))  # key i with number i
    assert same(many[3], wl.random.fold_in(wl.random.split(key, 5)[3], 3))


def test_fold_in_uses_all_64_bits_and_is_not_symmetric():
    key = wl.random.key(0)
    data = [0, 1, 2**32, 2**32 + 1, 2**63, -1]
    assert len({tuple(wl.random.fold_in(key, d).tolist()) for d in data}) == len(data)
    one_two = wl.random.fold_in(wl.random.fold_in(key, 1), 2)
    two_one = wl.random.fold_in(wl.random.fold_in(key, 2), 1)
    assert not same(one_two, two_one)
    assert not same(wl.random.fold_in(wl.random.key(1), 0), wl.random.fold_in(wl.random.key(0), 1))


def test_children_draws_and_folds_never_collide():
    """Pairs of words from draws, splits and folds of a key and of its first generations are all distinct."""
    key = wl.random.key(2024)
    n = 3000
    children = wl.random.split(key, n)
    found = [
        random_bits(key, shape=(n, 2), domain=DRAW),
        children,
        wl.random.fold_in(key, wl.arange(n)),
        wl.random.split(children[0], n),
        random_bits(children[1], shape=(n, 2), domain=DRAW),
        wl.random.split(wl.random.fold_in(key, 0), n),
        wl.random.fold_in(children, 0),
        wl.random.fold_in(wl.random.key(wl.arange(10_000, 10_000 + n)), 5),
    ]
    words = np.concatenate([np.asarray(f).astype(np.uint64) for f in found])
    pairs = words[:, 0] | words[:, 1] << np.uint64(32)
    assert len(np.unique(pairs)) == len(pairs) == 8 * n


# --- streams


def test_a_stream_gives_the_folds_of_its_key():
    stream = wl.random.Stream(9)
    got = [stream.next_key() for _ in range(3)]
    for i, key in enumerate(got):
        assert same(key, wl.random.fold_in(wl.random.key(9), i))
    assert stream.value.tolist() == [9, 0, 3, 0]
    assert stream.dtype == wl.uint32


def test_the_counter_carries_into_its_second_word():
    stream = wl.random.Stream(wl.asarray(np.array([9, 0, 0xFFFFFFFF, 0], np.uint32)))
    assert same(stream.next_key(), wl.random.fold_in(wl.random.key(9), 0xFFFFFFFF))
    assert stream.value.tolist() == [9, 0, 0, 1]
    assert same(stream.next_key(), wl.random.fold_in(wl.random.key(9), 2**32))


def test_streams_from_keys_values_streams_and_the_global_stream():
    key = wl.random.key(3)
    assert same(wl.random.Stream(key).next_key(), wl.random.Stream(3).next_key())
    stream = wl.random.Stream(3)
    stream.next_key()
    assert same(wl.random.Stream(stream.value).next_key(), wl.random.Stream(stream).next_key())
    wl.random.seed(1)
    first, second = wl.random.Stream(), wl.random.Stream()
    assert not same(first.value, second.value)
    wl.random.seed(1)
    assert same(wl.random.Stream().value, first.value)


def test_streams_can_be_copied_and_pickled():
    stream = wl.random.Stream(3)
    stream.next_key()
    for other in (copy.deepcopy(stream), pickle.loads(pickle.dumps(stream))):
        assert isinstance(other, wl.random.Stream)
        assert other is not stream
        assert same(other.value, stream.value)
    twin = copy.deepcopy(stream)
    assert same(twin.next_key(), stream.next_key())


@pytest.mark.book("1.12", name="wl.random.seed")
def test_seed_repeats_the_global_stream():
    wl.random.seed(5)
    first = [wl.random.randn(3), wl.random.rand(2, 2), wl.random.choice(10, (4,))]
    assert not same(first[0], wl.random.randn(3))
    wl.random.manual_seed(5)
    for x, y in zip(first, [wl.random.randn(3), wl.random.rand(2, 2), wl.random.choice(10, (4,))], strict=True):
        assert same(x, y)


def test_a_stream_as_key_moves_on_and_a_key_does_not():
    stream = wl.random.Stream(0)
    assert not same(wl.random.normal((3,), key=stream), wl.random.normal((3,), key=stream))
    key = wl.random.key(0)
    assert same(wl.random.normal((3,), key=key), wl.random.normal((3,), key=key))


def test_drawing_with_a_key_leaves_the_global_stream_alone():
    before = wl.random.default_stream.value
    wl.random.normal((3,), key=wl.random.key(0))
    assert same(before, wl.random.default_stream.value)


# --- bad keys


@pytest.mark.parametrize(
    "bad, error, message",
    [
        (7, wl.errors.DTypeError, "int is not a key"),
        (wl.tensor([1, 2]), wl.errors.DTypeError, r"received int64\[2\]"),
        (wl.tensor([1.0, 2.0]), wl.errors.DTypeError, r"received float32\[2\]"),
        (wl.tensor([1, 2, 3], dtype=wl.uint32), wl.errors.ShapeError, r"received \(3,\)"),
        (wl.tensor(1, dtype=wl.uint32), wl.errors.ShapeError, r"received \(\)"),
        ("key", wl.errors.DTypeError, "str is not a key"),
    ],
)
def test_what_is_not_a_key_is_refused(bad, error, message):
    for call in (wl.random.split, lambda k: wl.random.fold_in(k, 1), lambda k: wl.random.normal((2,), key=k)):
        with pytest.raises(error, match=message) as caught:
            call(bad)
        assert "wl.random.key(seed)" in str(caught.value)


def test_bad_seeds_and_data():
    with pytest.raises(wl.errors.InputError, match="more than 64 bits"):
        wl.random.key(2**64)
    with pytest.raises(wl.errors.DTypeError, match="float"):
        wl.random.key(1.5)
    with pytest.raises(wl.errors.DTypeError, match="float32"):
        wl.random.fold_in(wl.random.key(0), wl.tensor(1.0))
    with pytest.raises(wl.errors.ShapeError, match="negative"):
        wl.random.split(wl.random.key(0), -1)
    with pytest.raises(wl.errors.DTypeError, match="Stream"):
        wl.random.Stream(1.5)
    with pytest.raises(wl.errors.DTypeError, match="Stream"):
        wl.random.Stream(wl.tensor([1, 2]))
    with pytest.raises(wl.errors.ShapeError, match="Stream"):
        wl.random.Stream(wl.random.split(wl.random.key(0), 3))
