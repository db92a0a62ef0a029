"""Large operations outside of `jit` that come again are computed by kernels of their own, with NumPy's numbers."""

from __future__ import annotations

import numpy as np
import pytest

import wonderland as wl
from wonderland import nn
from wonderland.core import evaluation
from wonderland.core.primitive import TABLE
from wonderland.errors import ShapeError

N = 9_001  # more than one chunk, and odd
DRAWN = np.random.default_rng(0)
A, B = (DRAWN.uniform(0.2, 2.0, size=(N, 3)) for _ in range(2))

OPERATIONS = {
    "add": lambda a, b: a + b,
    "row": lambda a, b: a * b[0] - b[:, :1],
    "number": lambda a, b: 2.5 / a,
    "power": lambda a, b: a**3 + b**a,
    "functions": lambda a, b: wl.exp(-a) + wl.tanh(b) + wl.log(a) + wl.sqrt(b) + wl.erf(a),
    "comparison": lambda a, b: wl.maximum(a, b),
    "sum": lambda a, b: a.sum(axis=0) + b.sum(),
    "rows": lambda a, b: a.sum(axis=1) * b.max(axis=1),
    "extremes": lambda a, b: a.max(axis=0) - b.min(),
    "product": lambda a, b: a @ b.T[:, :5],
    "transposed": lambda a, b: a.T @ b,
    "gram": lambda a, b: a.T @ a,
    "columns": lambda a, b: wl.exp(a.T) + b.T,
    "strided": lambda a, b: wl.exp(a[::2]) * b[::2],
    "convolution": lambda a, b: nn.functional.conv1d(a[None], b[:4].reshape(4, 3, 1)),
}


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """A kernel for every operation on more than a hundred elements, at the second call."""
    for primitive in TABLE.values():
        if primitive.single:
            monkeypatch.setattr(primitive, "single", 100)
    monkeypatch.setattr(evaluation._seen, "enough", lambda kind, work, together: True)
    monkeypatch.setattr(evaluation, "_kernels", {})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", OPERATIONS)
def test_kernels_agree_with_numpy(name, dtype):
    f, (a, b) = OPERATIONS[name], (wl.asarray(x.astype(dtype)) for x in (A, B))
    with wl.using_backend("numpy"):
        expected = f(a, b)
    assert not evaluation._kernels
    found = f(a, b)
    again = f(a, b)
    assert evaluation._kernels
    tolerance = 1e-11 if dtype is np.float64 else 2e-4
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance / 10)
    np.testing.assert_array_equal(found, again)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)


def test_results_are_not_overwritten_by_later_ones():
    a = wl.asarray(A)
    first = wl.exp(a)
    kept = first.numpy().copy()
    view = wl.exp(a)[1:].numpy()
    for i in range(3):
        wl.exp(a + float(i))
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(view, kept[1:])


def test_what_numpy_keeps_to_itself():
    integers = wl.asarray(np.arange(N * 3))
    assert (integers + integers).dtype == wl.int64
    assert not evaluation._kernels
    assert wl.asarray(A.astype(np.complex64)).sum().dtype == wl.complex64
    assert not evaluation._kernels
    with pytest.raises(ShapeError, match="matmul"):
        wl.asarray(A) @ wl.asarray(B)
    with pytest.raises(ShapeError):
        wl.asarray(A) + wl.asarray(B[:5000])


def test_kernels_are_bounded(monkeypatch):
    monkeypatch.setattr(evaluation, "KEPT", 2)
    for rows in range(N - 4, N):
        wl.exp(wl.asarray(A[:rows]))
    assert len(evaluation._kernels) == 2


def test_kernels_follow_settings_threads_and_views():
    data = np.random.default_rng(0).normal(size=(4096, 300)).astype(np.float32)
    x = wl.asarray(data)
    for _ in range(4):
        first = x.sum(axis=1)
    assert evaluation._kernels
    before = wl.get_threads()
    try:
        for threads in (1, 2, 3):
            wl.set_threads(threads)
            for _ in range(3):
                np.testing.assert_array_equal(x.sum(axis=1), first)
    finally:
        wl.set_threads(before)
    with wl.using_backend("numpy"):
        np.testing.assert_array_equal(x.sum(axis=1), data.sum(axis=1))
    with wl.debug.filled_memory():
        np.testing.assert_array_equal(x.sum(axis=1), first)
    with wl.no_grad():
        np.testing.assert_array_equal(x.sum(axis=1), first)
    gradient = wl.grad(lambda x: (x.sum(axis=1) * first).sum())(x)
    np.testing.assert_allclose(gradient, np.broadcast_to(first.numpy()[:, None], data.shape), rtol=1e-6)
    np.testing.assert_array_equal(x.sum(axis=1), first)
    for view, whole in ((x[::-1], data[::-1]), (x[:, 7:207], data[:, 7:207]), (x.T, data.T)):
        for _ in range(4):
            np.testing.assert_allclose(view.sum(axis=1), whole.sum(axis=1), rtol=1e-3, atol=1e-3)
