"""The Philox generator: the published answers, and every way of asking for the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wonderland as wl
from wonderland.primitives import random_bits as module
from wonderland.primitives.random_bits import DRAW, FOLD, SPLIT, philox, random_bits

ONES = 0xFFFFFFFF
# counter, key, result: the test vectors that come with Random123
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((ONES, ONES, ONES, ONES), (ONES, ONES), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


def reference(key: tuple[int, int], size: int, domain: int = DRAW) -> list[int]:
    """The definition, one block at a time with Python's integers."""
    words: list[int] = []
    for block in range(-(-size // 4)):
        words += philox((block & ONES, block >> 32, 0, domain), key)
    return words[:size]


@pytest.mark.parametrize("counter, key, expected", KNOWN)
def test_known_answers(counter, key, expected):
    assert philox(counter, key) == expected
    as_arrays = philox(tuple(np.array([c], np.uint64) for c in counter), tuple(np.array([k], np.uint64) for k in key))
    assert tuple(int(word[0]) for word in as_arrays) == expected


def test_the_first_block_of_seed_zero_is_the_published_one():
    assert random_bits(wl.random.key(0), shape=(4,), domain=DRAW).tolist() == list(KNOWN[0][2])


@given(
    st.integers(0, ONES),
    st.integers(0, ONES),
    st.sampled_from([0, 1, 3, 4, 5, 63, 64, 65, 1000, 4 * 8192, 4 * 8192 + 3, 100_001]),
    st.sampled_from([DRAW, SPLIT, FOLD]),
)
def test_element_i_is_word_i_mod_4_of_block_i_div_4(low, high, size, domain):
    key = wl.asarray(np.array([low, high], np.uint32))
    bits = random_bits(key, shape=(size,), domain=domain).numpy()
    assert bits.dtype == np.uint32
    assert bits.shape == (size,)
    places = [i for i in {0, 1, 2, 3, 4, 31, size // 2, size - 2, size - 1} if 0 <= i < size]
    for i in places:
        assert bits[i] == philox((i // 4, 0, 0, domain), (low, high))[i % 4]


def test_shape_only_arranges_the_bits():
    key = wl.random.key(5)
    flat = random_bits(key, shape=(24,), domain=DRAW).numpy()
    assert (random_bits(key, shape=(2, 3, 4), domain=DRAW).numpy() == flat.reshape(2, 3, 4)).all()
    assert random_bits(key, shape=(), domain=DRAW).numpy() == flat[0]
    assert random_bits(key, shape=(0, 3), domain=DRAW).shape == (0, 3)


@pytest.mark.parametrize("size", [1, 5, 40, 3000])
def test_batched_keys_equal_a_loop(size):
    keys = wl.random.split(wl.random.key(1), (3, 7))
    got = random_bits(keys, shape=(size,), domain=DRAW).numpy()
    assert got.shape == (3, 7, size)
    for i in np.ndindex(3, 7):
        key = tuple(int(word) for word in keys.numpy()[i])
        assert got[i].tolist() == reference(key, size)


def test_many_keys_and_no_keys():
    keys = wl.random.split(wl.random.key(1), 20_000)  # more rows than fit into one tile
    got = random_bits(keys, shape=(5,), domain=DRAW).numpy()
    for i in (0, 1, 8191, 8192, 19_999):
        assert got[i].tolist() == reference(tuple(keys.numpy()[i].tolist()), 5)
    assert random_bits(keys[:0], shape=(5,), domain=DRAW).shape == (0, 5)


def test_tiles_continue_the_numbers_of_the_blocks(monkeypatch):
    seen = []
    monkeypatch.setattr(module, "philox", lambda counter, key: seen.append(counter) or philox(counter, key))
    random_bits(wl.random.key(0), shape=(4 * 8192 + 4,), domain=DRAW)
    assert [int(c[0][0]) for c in seen] == [0, 8192]
    assert all((c[1] == 0).all() for c in seen)


def test_non_contiguous_keys():
    keys = np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.uint32)[:, ::2]
    got = random_bits(wl.asarray(keys), shape=(6,), domain=DRAW).numpy()
    assert got[1].tolist() == reference((5, 7), 6)


def test_bits_are_balanced_and_neighbours_independent():
    bits = random_bits(wl.random.key(3), shape=(1 << 18,), domain=DRAW).numpy()
    ones = np.unpackbits(bits.view(np.uint8)).reshape(-1, 32).mean(axis=0)
    assert (abs(ones - 0.5) < 5 * 0.5 / 512).all()
    x = bits / 2.0**32 - 0.5
    for lag in (1, 2, 3, 4, 5, 8, 64):
        assert abs(12 * (x[lag:] * x[:-lag]).mean()) < 5 / 512, lag


def test_neighbouring_keys_are_independent():
    keys = wl.random.key(wl.arange(64))
    x = random_bits(keys, shape=(4096,), domain=DRAW).numpy() / 2.0**32 - 0.5
    correlation = 12 * x @ x.T / 4096
    off_diagonal = correlation[~np.eye(64, dtype=bool)]
    assert abs(off_diagonal).max() < 6 / 64


def test_derivative_is_zero_and_batching_is_batched_keys():
    keys = wl.random.split(wl.random.key(0), 4)
    mapped = wl.vmap(lambda k: random_bits(k, shape=(3,), domain=DRAW))(keys)
    assert (mapped.numpy() == random_bits(keys, shape=(3,), domain=DRAW).numpy()).all()
    at_end = wl.vmap(lambda k: random_bits(k, shape=(3,), domain=DRAW), in_axes=1, out_axes=1)(keys.T)
    assert (at_end.numpy() == mapped.numpy().T).all()


def test_a_draw_that_cannot_fit_is_refused():
    with pytest.raises(wl.errors.SizeError, match="random_bits"):
        random_bits(wl.random.key(0), shape=(1 << 50,), domain=DRAW)
