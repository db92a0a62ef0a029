r"""Fourier transforms, of sequences and of graphs: a signal as a sum of eigenvectors of the Laplacian. Notes, A7.

On a ring the two are one: the columns of the DFT are eigenvectors of its Laplacian.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import fft
from ..arrays import asarray, real
from ..core.arguments import as_int
from ..core.dtypes import is_complex
from ..core.errors import ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from .graph import Graph
from .spectral import Spectrum, laplacian_spectrum


def dft_matrix(n: int) -> Tensor:
    r"""\(F_{kt} = e^{-2\pi i kt/n}\), (n, n) complex: \(\hat x = Fx\), and \(FF^H = nI\).

    >>> import wonderland as wl
    >>> print((wl.graphs.dft_matrix(2) @ wl.tensor([3.0, 1.0], dtype=wl.complex128)).real)
    tensor([4., 2.], dtype=float64)
    """
    k = np.arange(as_int("dft_matrix", "n", n, least=0))
    return asarray(np.exp(-2j * np.pi * (np.outer(k, k) % max(n, 1)) / max(n, 1)))


def circular_convolution(x: ArrayLike, w: ArrayLike) -> Tensor:
    r"""\((x * w)_t = \sum_s x_s w_{t - s \bmod n}\) along the last axis, by \(\widehat{x * w} = \hat x \cdot \hat w\).

    >>> import wonderland as wl
    >>> wl.graphs.circular_convolution([1.0, 2.0, 3.0], [0.0, 1.0, 0.0]).round(5)
    tensor([3., 1., 2.])
    """
    a, b = asarray(x), asarray(w)
    if not a.ndim or not b.ndim or a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"circular_convolution: shapes {a.shape} and {b.shape}.", "equal last axes")
    if is_complex(a.dtype) or is_complex(b.dtype):
        return fft.ifft(fft.fft(a) * fft.fft(b))
    return fft.irfft(fft.rfft(a) * fft.rfft(b), n=a.shape[-1])


def _basis(name: str, basis: Graph | Spectrum | ArrayLike, x: Tensor) -> Tensor:
    if isinstance(basis, Graph):
        basis = laplacian_spectrum(basis)
    Q = basis.vectors if isinstance(basis, Spectrum) else asarray(basis)
    if x.ndim < 1 or Q.ndim != 2 or x.shape[0] not in Q.shape:
        raise ShapeError(f"{name}: a signal of shape {x.shape} with a basis of shape {Q.shape}.", "a row per node")
    return Q if Q.dtype == x.dtype else Q.astype(x.dtype)


def gft(x: ArrayLike, basis: Graph | Spectrum | ArrayLike) -> Tensor:
    r"""The graph Fourier transform \(\hat x = Q^T x\) of signals (n, ...): coefficient k is \(\langle x, q_k\rangle\).

    >>> import wonderland as wl
    >>> x = wl.tensor([1.0, 0.0, 1.0])
    >>> [round(abs(c), 4) for c in wl.graphs.gft(x, wl.graphs.path_graph(3)).tolist()]
    [1.1547, 0.0, 0.8165]

    `basis` is a graph, its `laplacian_spectrum`, or the matrix Q with the eigenvectors as columns (and not rows).
    """
    signal = asarray(x)
    Q = _basis("gft", basis, signal)
    return Q.T @ signal


def igft(coefficients: ArrayLike, basis: Graph | Spectrum | ArrayLike) -> Tensor:
    r"""The inverse transform \(x = Q\hat x\).

    >>> import wonderland as wl
    >>> graph = wl.graphs.path_graph(3)
    >>> wl.graphs.igft(wl.graphs.gft([1.0, 0.0, 1.0], graph), graph).round(4) + 0.0
    tensor([1., 0., 1.])
    """
    values = asarray(coefficients)
    return _basis("igft", basis, values) @ values


def spectral_filter(x: ArrayLike, basis: Graph | Spectrum, h: Callable[[Tensor], ArrayLike]) -> Tensor:
    r"""\(Q h(\Lambda) Q^T x\): each eigen-component of a signal (n, ...) is scaled by a function of its eigenvalue.

    >>> import wonderland as wl
    >>> smooth = wl.graphs.spectral_filter([1.0, 0.0, 1.0], wl.graphs.path_graph(3), lambda v: v < 0.5)
    >>> smooth.round(4)
    tensor([0.6667, 0.6667, 0.6667])

    Small eigenvalues are the smooth parts. The transform back, Q, is a part of it.
    """
    spectrum = laplacian_spectrum(basis) if isinstance(basis, Graph) else basis
    hat = gft(x, spectrum)
    factor = asarray(h(spectrum.values)).astype(hat.dtype)
    if factor.shape not in ((), spectrum.values.shape):
        raise ShapeError(
            f"spectral_filter: h gave shape {factor.shape} for eigenvalues {spectrum.values.shape}.",
            "one factor for each",
        )
    return igft(factor.reshape((-1,) + (1,) * (hat.ndim - 1)) * hat, spectrum)


def graph_convolution(x: ArrayLike, w: ArrayLike, basis: Graph | Spectrum) -> Tensor:
    r"""\(x *_G w = Q\big((Q^T x) \cdot (Q^T w)\big)\) of signals (n, ...): a product of transforms, and back.

    >>> import wonderland as wl
    >>> graph = wl.graphs.path_graph(3)
    >>> delta = wl.graphs.igft(wl.ones(3), graph)  # the signal whose transform is 1
    >>> wl.graphs.graph_convolution([3.0, 1.0, 2.0], delta, graph).round(4)
    tensor([3., 1., 2.])
    """
    spectrum = laplacian_spectrum(basis) if isinstance(basis, Graph) else basis
    return real(igft(gft(x, spectrum) * gft(w, spectrum), spectrum))
