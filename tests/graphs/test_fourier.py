"""Fourier transforms of sequences and of graphs. Notes, A7.8."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wonderland as wl
from tests.graphs.test_graph import any_graph, worked
from wonderland.errors import ShapeError

PATH = wl.graphs.path_graph(3)


@pytest.mark.book("A7-33", name="wl.graphs.dft_matrix")
@pytest.mark.parametrize("n", [1, 2, 7, 16])
def test_the_dft_matrix(n):
    F = wl.graphs.dft_matrix(n).numpy()
    np.testing.assert_allclose(F @ F.conj().T, n * np.eye(n), atol=1e-12)
    x = np.random.default_rng(n).normal(size=n)
    hat = F @ x
    np.testing.assert_allclose(hat, np.fft.fft(x), atol=1e-12)
    np.testing.assert_allclose(hat, wl.fft.fft(wl.asarray(x)), atol=1e-12)
    np.testing.assert_allclose(F.conj().T @ hat / n, x, atol=1e-12)
    np.testing.assert_allclose(hat[-1], np.vdot(F[-1].conj(), x), atol=1e-12)  # a coefficient is an inner product


@pytest.mark.book("A7-34", name="wl.graphs.circular_convolution")
@given(st.integers(1, 12))
@settings(max_examples=12, deadline=None)
def test_the_convolution_theorem(n):
    rng = np.random.default_rng(n)
    f, w = rng.normal(size=(2, n))
    direct = np.array([sum(f[s] * w[(t - s) % n] for s in range(n)) for t in range(n)])
    found = wl.graphs.circular_convolution(f, w)
    np.testing.assert_allclose(found, direct, atol=1e-13)
    np.testing.assert_allclose(np.fft.fft(direct), np.fft.fft(f) * np.fft.fft(w), atol=1e-13 * n)
    np.testing.assert_allclose(wl.graphs.circular_convolution(f + 0j, w), direct, atol=1e-13)
    with pytest.raises(ShapeError):
        wl.graphs.circular_convolution(f, np.zeros(n + 1))


@pytest.mark.book("A7-35", "A7-36", name=("wl.graphs.gft", "wl.graphs.igft"))
def test_the_graph_fourier_transform():
    x = np.array([1.0, 0.0, 1.0])
    hat = wl.graphs.gft(x, PATH).numpy()
    np.testing.assert_allclose(np.abs(hat), [1.1547, 0, 0.8165], atol=1e-4)
    Q = wl.graphs.laplacian_spectrum(PATH).vectors.numpy()
    np.testing.assert_allclose(hat, [Q[:, k] @ x for k in range(3)])
    rows = np.abs([Q[k] @ x for k in range(3)])
    assert not np.allclose(rows, [1.1547, 0, 0.8165], atol=1e-2)  # rows of Q, as printed, are wrong


@given(any_graph(least=1, symmetric=True))
@settings(max_examples=20, deadline=None)
def test_there_and_back_and_parseval(graph):
    spectrum = wl.graphs.laplacian_spectrum(graph)
    x = np.random.default_rng(0).normal(size=(graph.n, 2))
    hat = wl.graphs.gft(x, spectrum)
    np.testing.assert_allclose(wl.graphs.igft(hat, spectrum), x, atol=1e-10)
    np.testing.assert_allclose((hat.numpy() ** 2).sum(), (x**2).sum())


@pytest.mark.book("A7-37", name="wl.graphs.spectral_filter")
def test_filters():
    graph = worked()
    x = np.random.default_rng(0).normal(size=(4, 2))
    np.testing.assert_allclose(wl.graphs.spectral_filter(x, graph, lambda v: 2.5), 2.5 * x)
    low = lambda x: wl.graphs.spectral_filter(x, graph, lambda v: v <= 1.5)
    np.testing.assert_allclose(low(low(x)), low(x), atol=1e-12)
    assert float(wl.graphs.smoothness(graph, low(x))) < float(wl.graphs.smoothness(graph, x))
    L = graph.laplacian(dtype=wl.float64).todense().numpy()
    np.testing.assert_allclose(wl.graphs.spectral_filter(x, graph, lambda v: v**2 + 1), L @ L @ x + x, atol=1e-10)
    w = np.random.default_rng(1).normal(size=4)
    spectrum = wl.graphs.laplacian_spectrum(graph)
    Q = spectrum.vectors.numpy()
    expected = Q @ ((Q.T @ x[:, 0]) * (Q.T @ w))
    np.testing.assert_allclose(wl.graphs.graph_convolution(x[:, 0], w, spectrum), expected, atol=1e-12)
    with pytest.raises(ShapeError, match="h gave shape"):
        wl.graphs.spectral_filter(x, graph, lambda v: wl.ones(3))


@pytest.mark.book("A7-38", name="wl.graphs.graph_convolution")
def test_on_a_ring_it_is_circular_convolution():
    n = 6
    ring = wl.graphs.ring_graph(n)
    x = np.random.default_rng(0).normal(size=n)
    # a symmetric kernel has the same factor for both vectors of an eigenvalue 2 - 2 cos(2 pi k / n)
    kernel = np.array([0.5, 0.2, 0.05, 0.01, 0.05, 0.2])
    hat = np.fft.fft(kernel).real

    def h(values):
        k = np.round(np.arccos(np.clip(1 - values.numpy() / 2, -1, 1)) * n / (2 * np.pi)).astype(int)
        return hat[k]

    filtered = wl.graphs.spectral_filter(x, ring, h)
    np.testing.assert_allclose(filtered, wl.graphs.circular_convolution(x, kernel), atol=1e-12)
    spectrum = wl.graphs.laplacian_spectrum(ring)
    w = spectrum.vectors.numpy() @ h(spectrum.values)  # the signal with this transform
    np.testing.assert_allclose(wl.graphs.graph_convolution(x, w, spectrum), filtered, atol=1e-12)
    without_back = wl.graphs.gft(x, spectrum).numpy() * h(spectrum.values)  # as printed: no signal on the nodes
    assert not np.allclose(without_back, filtered, atol=1e-2)
