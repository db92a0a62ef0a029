"""Pooling: against loops over windows, closed forms and finite differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.errors import DTypeError, InputError, ShapeError
from wonderland.primitives.pooling import window_argmax, window_pick, window_put, window_spread, window_sum

F = nn.functional
MAX = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
MEAN = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def distinct(*shape: int) -> Any:
    """Numbers no two of which are equal or near each other."""
    rng = np.random.default_rng(list(shape))
    return rng.permutation(math.prod(shape)).reshape(shape) * 0.1 - 3.0


def seen(x: Any, places: Any, window: Any, stride: Any, padding: Any, dilation: Any) -> dict[Any, list[Any]]:
    """For each window of x (*spatial, channels) the elements under it, by a loop; no padding."""
    found: dict[Any, list[Any]] = {}
    for place in np.ndindex(*places):
        found[place] = []
        for tap in np.ndindex(*window):
            at = tuple(p * s + t * d - q for p, s, t, d, q in zip(place, stride, tap, dilation, padding, strict=True))
            if all(0 <= i < n for i, n in zip(at, x.shape[:-1], strict=True)):
                found[place].append(x[at])
    return found


SETTINGS = [
    # spatial, window, stride, padding, dilation
    ((6,), (2,), (2,), (0,), (1,)),
    ((7,), (3,), (2,), (1,), (2,)),
    ((5, 6), (2, 3), (1, 2), (1, 0), (1, 1)),
    ((6, 5), (3, 2), (3, 1), (1, 1), (2, 1)),
    ((4, 5, 3), (2, 1, 3), (2, 2, 1), (0, 0, 1), (1, 1, 1)),
]


@pytest.mark.book("7-42", "8-18", name="wl.nn.functional.max_pool2d")
@pytest.mark.parametrize("spatial, window, stride, padding, dilation", SETTINGS)
def test_the_largest_of_each_window(spatial, window, stride, padding, dilation):
    x = distinct(*spatial, 3)
    y = np.asarray(MAX[len(spatial)](x, window, stride, padding, dilation))
    assert y.shape[:-1] == tuple(
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(spatial, window, stride, padding, dilation, strict=True)
    )
    for place, elements in seen(x, y.shape[:-1], window, stride, padding, dilation).items():
        np.testing.assert_array_equal(y[place], np.max(elements, axis=0))
    wl.check_grads(lambda x: wl.sin(MAX[len(spatial)](x, window, stride, padding, dilation)), (wl.asarray(x),), order=2)


@pytest.mark.parametrize("include", [True, False])
@pytest.mark.parametrize("spatial, window, stride, padding, dilation", SETTINGS)
def test_the_mean_of_each_window(spatial, window, stride, padding, dilation, include):
    ones = (1,) * len(spatial)
    f = lambda x: MEAN[len(spatial)](x, window, stride, padding, count_include_pad=include)
    x = distinct(*spatial, 3)
    y = np.asarray(f(x))
    for place, elements in seen(x, y.shape[:-1], window, stride, padding, ones).items():
        count = math.prod(window) if include else len(elements)
        np.testing.assert_allclose(y[place], np.sum(elements, axis=0) / count, rtol=1e-12)
    wl.check_grads(lambda x: wl.sin(f(x)), (wl.asarray(x),), order=2)


@pytest.mark.book("7-42", "8-18", name=("wl.nn.MaxPool2d", "wl.nn.MaxPool1d"))
def test_numbers_of_the_book():
    x = wl.arange(1.0, 17.0).reshape(4, 4, 1)
    assert nn.MaxPool2d(2)(x)[..., 0].tolist() == [[6, 8], [14, 16]]
    assert nn.AvgPool2d(2)(x)[..., 0].tolist() == [[3.5, 5.5], [11.5, 13.5]]
    assert nn.MaxPool1d(2)(wl.tensor([1.0, 3.0, 2.0, 5.0])[:, None])[:, 0].tolist() == [3, 5]
    assert nn.MaxPool2d(2)(wl.ones((16, 32, 32, 3))).shape == (16, 16, 16, 3)
    assert nn.MaxPool3d(2)(wl.ones((2, 4, 6, 8, 3))).shape == (2, 2, 3, 4, 3)


@pytest.mark.book("7-43", name="wl.nn.functional.max_pool2d")
def test_odd_sizes_and_ties():
    assert F.max_pool2d(wl.ones((5, 5, 1)), 2).shape == (2, 2, 1)
    assert F.max_pool2d(wl.ones((5, 5, 1)), 2, ceil_mode=True).shape == (3, 3, 1)
    x = wl.zeros((4, 4, 2))
    v = wl.asarray(distinct(2, 2, 2).astype(np.float32))
    back = np.asarray(wl.vjp(lambda x: F.max_pool2d(x, 2), x)[1](v)[0])
    expected = np.zeros((4, 4, 2))
    expected[::2, ::2] = v  # the first of the equal ones
    np.testing.assert_array_equal(back, expected)


@pytest.mark.book("7-21", name="wl.nn.functional.max_pool1d")
def test_pooling_commutes_with_shifts_by_its_stride_only():
    pool = lambda x: np.asarray(F.max_pool1d(np.array(x, float)[:, None], 2))[:, 0].tolist()
    assert pool([0, 0, 1, 2, 0, 0, 0, 0]) == [0, 2, 0, 0]
    assert pool([0, 0, 0, 0, 1, 2, 0, 0]) == [0, 0, 2, 0]
    assert pool([0, 0, 0, 1, 2, 0, 0, 0]) == [0, 1, 2, 0]


def test_what_wins():
    x = np.array([-np.inf, -np.inf, 1.0, np.nan, np.nan, 5.0])[None, :, None]
    windows: dict[str, Any] = {"window": (3,), "stride": (1,), "padding": ((1, 1),), "dilation": (1,)}
    index = window_argmax(wl.asarray(x), **windows)
    # before the first element lies padding, which is not smaller than -inf and still does not win
    assert index[0, :, 0].tolist() == [1, 2, 2, 1, 0, 0]
    assert index.dtype == wl.uint8
    picked = np.asarray(window_pick(wl.asarray(x), index, **windows))[0, :, 0]
    np.testing.assert_array_equal(picked, [-np.inf, 1, np.nan, np.nan, np.nan, np.nan])
    least = np.full((1, 3, 1), -128, np.int8)
    assert window_argmax(wl.asarray(least), **windows)[0, :, 0].tolist() == [1, 0, 0]
    large = {"window": (257,), "stride": (1,), "padding": ((0, 0),), "dilation": (1,)}
    at_the_end = window_argmax(wl.arange(257.0)[None, :, None], **large)
    assert at_the_end.dtype == wl.int32
    assert at_the_end.item() == 256


@pytest.mark.parametrize("dtype", [wl.float16, wl.bfloat16, wl.float32, wl.int32, wl.bool])
def test_dtypes(dtype):
    x = wl.asarray(distinct(6, 2) > 0 if dtype == wl.bool else distinct(6, 2).round()).astype(dtype)
    y = F.max_pool1d(x, 2)
    assert y.dtype == dtype
    np.testing.assert_array_equal(np.asarray(y), np.asarray(x).reshape(3, 2, 2).max(axis=1))


@pytest.mark.parametrize("dtype", [wl.float16, wl.bfloat16])
def test_half_precision_is_rounded_once(dtype):
    y = F.avg_pool1d(wl.ones((4096, 1), dtype=dtype), 4096)
    assert y.dtype == dtype
    assert float(y.item()) == 1.0


@pytest.mark.parametrize(
    "size, window, stride, padding, places", [(5, 2, 2, 0, 3), (6, 3, 2, 1, 4), (6, 3, 3, 1, 3), (4, 2, 3, 1, 2)]
)
def test_ceil_mode(size, window, stride, padding, places):
    """A window more at the end, if it starts before the end; what it lacks does not count for the mean."""
    x = np.arange(1.0, size + 1)[:, None]
    largest = np.asarray(F.max_pool1d(x, window, stride, padding, ceil_mode=True))[:, 0]
    mean = np.asarray(F.avg_pool1d(x, window, stride, padding, ceil_mode=True))[:, 0]
    assert len(largest) == places
    padded = np.concatenate([np.zeros(padding), x[:, 0], np.zeros(padding)])
    for i in range(places):
        under = padded[i * stride : i * stride + window]
        np.testing.assert_allclose(largest[i], under.max())
        np.testing.assert_allclose(mean[i], under.mean())


def test_a_divisor_of_ones_own():
    x = distinct(4, 4, 1)
    np.testing.assert_allclose(
        F.avg_pool2d(x, 2, divisor_override=3), np.asarray(F.avg_pool2d(x, 2)) * 4 / 3, rtol=1e-12
    )


@pytest.mark.parametrize("spatial, window, stride, padding, dilation", SETTINGS)
def test_transposes(spatial, window, stride, padding, dilation):
    """<pick(x), y> = <x, put(y)> and <sum(x), y> = <x, spread(y)>."""
    windows: dict[str, Any] = {
        "window": window,
        "stride": stride,
        "padding": tuple((p, p) for p in padding),
        "dilation": dilation,
    }
    x = wl.asarray(distinct(2, *spatial, 3))
    index = window_argmax(x, **windows)
    y = wl.asarray(distinct(*index.shape))
    put, spread = (window_put(y, index, spatial=spatial, **windows), window_spread(y, spatial=spatial, **windows))
    np.testing.assert_allclose((window_pick(x, index, **windows) * y).sum(), (x * put).sum(), rtol=1e-11)
    np.testing.assert_allclose((window_sum(x, **windows) * y).sum(), (x * spread).sum(), rtol=1e-11)


# --- with a given size of the result


def bins(n: int, m: int) -> list[slice]:
    return [slice(math.floor(i * n / m), math.ceil((i + 1) * n / m)) for i in range(m)]


@pytest.mark.parametrize("sizes", [(1, 1), (2, 3), (6, 1), (4, 5), (3, 7), (None, 2)])
def test_adaptive_pooling(sizes):
    x = distinct(2, 6, 7, 3)
    rows, columns = (bins(n, m or n) for n, m in zip((6, 7), sizes, strict=True))
    blocks = [[x[:, r, c] for c in columns] for r in rows]
    largest = np.stack([np.stack([b.max(axis=(1, 2)) for b in row], 1) for row in blocks], 1)
    mean = np.stack([np.stack([b.mean(axis=(1, 2)) for b in row], 1) for row in blocks], 1)
    np.testing.assert_array_equal(nn.AdaptiveMaxPool2d(sizes)(x), largest)
    np.testing.assert_allclose(nn.AdaptiveAvgPool2d(sizes)(x), mean, rtol=1e-12, atol=1e-14)
    for pool in (F.adaptive_max_pool2d, F.adaptive_avg_pool2d):
        wl.check_grads(lambda x, pool=pool: wl.sin(pool(x, sizes)), (wl.asarray(x),), modes=("forward", "reverse"))


@pytest.mark.book("7-40", "7-41", "8-20", name=("wl.nn.AdaptiveAvgPool2d", "wl.nn.AdaptiveMaxPool2d"))
def test_global_pooling_forgets_places():
    x = distinct(4, 5, 2)
    shuffled = np.random.default_rng(0).permutation(x.reshape(20, 2)).reshape(4, 5, 2)
    for layer in (nn.AdaptiveAvgPool2d(1), nn.AdaptiveMaxPool2d(1)):
        np.testing.assert_allclose(layer(shuffled), layer(x), rtol=1e-12)
    gradient = wl.grad(lambda x: F.adaptive_avg_pool2d(x, 1).sum())(wl.asarray(x))
    np.testing.assert_allclose(gradient, np.full((4, 5, 2), 1 / 20))
    gradient = wl.grad(lambda x: F.adaptive_max_pool2d(x, 1).sum())(wl.asarray(x))
    np.testing.assert_array_equal(gradient, x == x.max(axis=(0, 1)))
    assert F.adaptive_avg_pool1d(wl.ones((9, 2)), 1).shape == F.adaptive_avg_pool1d(wl.ones((5, 2)), 1).shape
    sequence = distinct(6, 2)
    doubled = np.concatenate([sequence, sequence])
    np.testing.assert_allclose(F.adaptive_avg_pool1d(doubled, 1), F.adaptive_avg_pool1d(sequence, 1), rtol=1e-12)


def test_equal_elements_in_overlapping_bins_share_nothing():
    x = wl.zeros((5, 1))
    gradient = wl.grad(lambda x: F.adaptive_max_pool1d(x, 2).sum())(x)
    assert gradient[:, 0].tolist() == [1, 0, 1, 0, 0]


# --- transformations


@pytest.mark.parametrize("pool", [F.max_pool2d, F.avg_pool2d])
def test_vmap_and_jit(pool):
    x = wl.asarray(distinct(3, 2, 5, 5, 2))
    f = wl.grad(lambda x: (pool(x, 3, 2, 1) ** 2).sum())
    expected = np.stack([np.asarray(f(part)) for part in x])
    np.testing.assert_allclose(f(x), expected, rtol=1e-12)  # any number of leading axes
    np.testing.assert_allclose(wl.vmap(f)(x), expected, rtol=1e-12)
    np.testing.assert_allclose(wl.vmap(wl.vmap(f))(x), expected, rtol=1e-12)
    np.testing.assert_allclose(wl.jit(f)(x), expected, rtol=1e-12)
    inner = wl.vmap(lambda x: pool(x, 3, 2, 1), in_axes=1, out_axes=1)(x)
    np.testing.assert_allclose(inner, pool(x, 3, 2, 1), rtol=1e-12)


def test_counts():
    x = wl.ones((2, 6, 6, 3))
    assert wl.count(lambda x: F.avg_pool2d(x, 2), x).multiply_adds == 2 * 9 * 3 * 4 + 2 * 9 * 3


# --- layers


def test_repr_and_shapes():
    assert repr(nn.MaxPool2d(3, stride=2, padding=1)) == "MaxPool2d(kernel_size=3, stride=2, padding=1)"
    assert repr(nn.AvgPool1d([2], count_include_pad=False)) == "AvgPool1d(kernel_size=(2,), count_include_pad=False)"
    assert repr(nn.AdaptiveAvgPool3d((1, None, 2))) == "AdaptiveAvgPool3d(output_size=(1, None, 2))"
    assert nn.MaxPool2d(2).output_shape((5, 8, 8, 3)) == (5, 4, 4, 3)
    assert nn.AvgPool3d(2)(wl.ones((4, 4, 4, 1))).shape == (2, 2, 2, 1)
    assert nn.AdaptiveMaxPool3d(1)(wl.ones((4, 4, 4, 1))).shape == (1, 1, 1, 1)
    assert nn.AdaptiveMaxPool1d(2)(wl.ones((4, 1))).shape == (2, 1)
    assert nn.AdaptiveAvgPool1d(2)(wl.ones((4, 1))).shape == (2, 1)
    assert nn.MaxPool2d(2)(wl.ones((0, 4, 4, 3))).shape == (0, 2, 2, 3)


@pytest.mark.book("7-05", name=("wl.reshape", "wl.nn.Flatten"))
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4), (2, 0, 3)])
def test_the_adjoint_of_a_vector_takes_the_shape_back(shape, compiled):
    x = distinct(*shape)
    size = int(np.prod(shape))
    v = np.arange(1.0, size + 1)
    pull = lambda f: wl.jit(lambda x, v: wl.vjp(f, x)[1](v)) if compiled else lambda x, v: wl.vjp(f, x)[1](v)
    for vect in (lambda x: x.reshape(-1), lambda x: wl.reshape(x, (size,))):
        assert vect(wl.asarray(x)).shape == (size,)
        np.testing.assert_array_equal(vect(wl.asarray(x)), np.ravel(x))
        back = pull(vect)(wl.asarray(x), wl.asarray(v))
        back = back[0] if isinstance(back, tuple) else back
        np.testing.assert_array_equal(back, v.reshape(shape))


@pytest.mark.book("7-05", "7-06", "7-07", "7-54", name=("wl.nn.Flatten", "wl.nn.Unflatten"))
def test_flatten_and_back():
    x = distinct(2, 3, 4, 5)
    flat = nn.Flatten()(x)
    np.testing.assert_array_equal(flat, x.reshape(2, 60))
    np.testing.assert_array_equal(nn.Unflatten(1, (3, 4, 5))(flat), x)
    np.testing.assert_array_equal(nn.Unflatten(-2, (2, 2))(x), x.reshape(2, 3, 2, 2, 5))
    v = distinct(2, 60)
    np.testing.assert_array_equal(wl.vjp(nn.Flatten(), x)[1](wl.asarray(v))[0], np.asarray(v).reshape(2, 3, 4, 5))
    head = nn.Sequential(nn.Flatten(), nn.Linear(60, 2))
    with pytest.raises(ShapeError, match="has 75 features"):
        head(wl.ones((2, 3, 5, 5)))


@pytest.mark.book("8-42", name="wl.nn.functional.max_pool1d")
@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: F.max_pool1d(wl.ones((1, 4)), 2), ShapeError, r"window of shape \(2,\) .* does not fit"),
        (lambda: F.max_pool2d(wl.ones((4, 4)), 2), ShapeError, "fewer than 3 axes"),
        (lambda: F.max_pool1d(wl.ones((4, 1)), 2, padding=2), InputError, "nothing but padding"),
        (lambda: F.max_pool1d(wl.ones((4, 1)), 2, stride=0), InputError, "stride=0 is too small"),
        (lambda: F.max_pool1d(wl.ones((4, 1)) * 1j, 2), DTypeError, "no order"),
        (lambda: F.avg_pool2d(wl.ones((4, 4, 1)), (2, 2, 2)), InputError, "for 2 spatial axes"),
        (lambda: F.adaptive_avg_pool2d(wl.ones((4, 4, 1)), 0), InputError, "output_size=0 is too small"),
        (lambda: F.adaptive_avg_pool2d(wl.ones((4, 4, 1)), (1, 2, 3)), InputError, "for 2 spatial axes"),
        (lambda: F.adaptive_max_pool1d(wl.ones((0, 1)), 1), ShapeError, "has no elements"),
        (lambda: nn.MaxPool2d(0), InputError, "kernel_size=0 is too small"),
        (lambda: nn.AvgPool2d((2, 2, 2)), InputError, "for 2 spatial axes"),
    ],
)
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()
    with pytest.raises(error, match=message):
        wl.jit(call)()
