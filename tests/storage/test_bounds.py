"""What a file may unpack to, and what sizes in a header may say."""

import gzip
import tracemalloc

import pytest

from wonderland.storage.bounds import LEAST_ARRAY, RATIO, array_bytes, gunzip, unpacked_limit


def test_the_limit_is_stated():
    assert unpacked_limit(0) == LEAST_ARRAY
    assert unpacked_limit(10 * LEAST_ARRAY) == RATIO * 10 * LEAST_ARRAY


@pytest.mark.parametrize(
    "shape, says",
    [
        ((1,) * 65, "65 axes"),
        ((-1,), "negative"),
        ((2**62, 4), "beyond"),
        ((10**300,), "beyond"),
        ((0, 2**40), "no numbers"),
        ((2**40, 0, 2**40), "beyond"),
    ],
)
def test_sizes_that_no_array_has(shape, says):
    with pytest.raises(ValueError, match=says):
        array_bytes(shape, 8)


def test_gunzip_gives_the_content_and_checks_it():
    data = bytes(range(256)) * 50
    packed = gzip.compress(data)
    assert gunzip(packed, len(data)) == data
    assert gunzip(packed + packed, 2 * len(data)) == 2 * data
    with pytest.raises(ValueError, match="more than"):
        gunzip(packed, len(data) - 1)
    for broken in (packed[:-1], packed[:-9], packed + b"x", packed[:30] + bytes([packed[30] ^ 1]) + packed[31:]):
        with pytest.raises(ValueError):  # noqa: PT011 - gzip's own words
            gunzip(broken, 2 * len(data))


def test_what_is_too_much_is_never_unpacked():
    packed = gzip.compress(bytes(100 << 20), 1)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than"):
            gunzip(packed, 1000)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
