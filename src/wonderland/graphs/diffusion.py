"""Signals that move over a graph: diffusion, heat, and how smooth they are. Book, sections 12.1.3 and 12.1.4."""

from __future__ import annotations

from typing import Protocol, TypeAlias, cast

import numpy as np

from ..arrays import asarray
from ..core.arguments import as_int, as_number
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor, Tracer
from ..core.typing import ArrayLike
from ..linalg import estimate_spectral_radius
from ..sparse import gather, matmul, segment_sum
from .graph import Graph
from .normalization import degree
from .spectral import dense_laplacian
from .structure import weights_of


class Linear(Protocol):
    """What has a product with signals: a dense or a sparse matrix."""

    def __matmul__(self, other: Tensor, /) -> Tensor: ...


Shift: TypeAlias = "Graph | Linear | ArrayLike"


def diffuse(A: Shift, x: ArrayLike, steps: int = 1) -> Tensor:
    r"""\(x \leftarrow Ax\), some times: \(x'_i = \sum_{j \in N(i)} A_{ij} x_j\). Book, section 12.1.3.

    >>> import wonderland as wl
    >>> graph = wl.graphs.path_graph(3)
    >>> wl.graphs.diffuse(graph, wl.tensor([1.0, 2.0, 4.0]))
    tensor([2., 5., 2.])

    A is a graph, a dense matrix or a sparse one; x (n, ...). Weights that are normalised by rows keep constants.
    """
    state = _signal("diffuse", A, x)
    for _ in range(as_int("diffuse", "steps", steps, least=0)):
        state = _product(A, state)
    return state


def _signal(name: str, A: Shift, x: ArrayLike) -> Tensor:
    signal = asarray(x)
    if isinstance(A, Graph) and (not signal.ndim or signal.shape[0] != A.n):
        raise ShapeError(f"{name}: a signal of shape {signal.shape} on {A.n} nodes.", f"({A.n}, ...)")
    return signal


def _product(A: Shift, x: Tensor) -> Tensor:
    if isinstance(A, Graph):
        return matmul(None if A.weight is None else A.weight.astype(x.dtype), A.pattern, x)
    if isinstance(A, (np.ndarray, list, tuple)):
        A = asarray(A)
    return cast(Linear, A) @ x


def laplacian_product(graph: Graph, x: ArrayLike) -> Tensor:
    r"""\(Lx\), with \((Lx)_i = \sum_j A_{ij}(x_i - x_j)\), without forming L. Book, section 12.1.3.

    >>> import wonderland as wl
    >>> graph = wl.graphs.Graph(4, [(0, 1), (0, 2), (1, 2), (1, 3)], directed=False)
    >>> wl.graphs.laplacian_product(graph, wl.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([-3., -2.,  3.,  2.])
    """
    signal = _signal("laplacian_product", graph, x)
    d = degree(graph, dtype=signal.dtype).reshape((-1,) + (1,) * (signal.ndim - 1))
    return d * signal - _product(graph, signal)


def laplacian_quadratic(L: Shift, f: ArrayLike) -> Tensor:
    r"""\(f^T L f = \sum_{\{i,j\} \in E} A_{ij} (f_i - f_j)^2\), each edge once: how rough a signal is.

    >>> import wonderland as wl
    >>> graph = wl.graphs.Graph(4, [(0, 1), (0, 2), (1, 2), (1, 3)], directed=False)
    >>> wl.graphs.laplacian_quadratic(graph, wl.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor(10.)

    A sum over all i and j counts every edge twice, so half of it is taken. f is (n,) or (n, c), and for the latter
    it is \(\mathrm{tr}(F^T L F)\). `L` is an undirected graph or the Laplacian itself, dense or sparse. The gradient
    is 2 L f; as a regulariser it needs no labels. Book, section 12.1.4.
    """
    signal = _signal("laplacian_quadratic", L, f)
    if not isinstance(L, Graph):
        return (signal * _product(L, signal)).sum()
    _undirected("laplacian_quadratic", L)
    apart = gather(signal, L.pattern.rows) - gather(signal, L.pattern.cols)
    squares = (apart * apart).reshape((apart.shape[0], -1)).sum(axis=1)
    return 0.5 * (squares if L.weight is None else L.weight.astype(signal.dtype) * squares).sum()


smoothness = laplacian_quadratic


def _undirected(name: str, graph: Graph) -> None:
    if not isinstance(graph.pattern.rows.owner, Tracer):
        graph.need_undirected(name)


def rayleigh(L: Shift, f: ArrayLike) -> Tensor:
    r"""The Rayleigh quotient \(f^T L f / f^T f\): an eigenvalue for its eigenvectors, where its gradient is 0.

    >>> import wonderland as wl
    >>> wl.graphs.rayleigh(wl.graphs.path_graph(3), [-1.0, 0.0, 1.0])
    tensor(1.)

    Among signals orthogonal to the constant one it is smallest for the Fiedler vector.
    """
    signal = asarray(f)
    return laplacian_quadratic(L, signal) / (signal * signal).sum()


def largest_eigenvalue(graph: Graph) -> float:
    r"""\(\lambda_n\) of the Laplacian of an undirected graph: exactly up to 1,000 nodes, by power iteration above.

    >>> import wonderland as wl
    >>> round(wl.graphs.largest_eigenvalue(wl.graphs.path_graph(3)), 6)
    3.0
    """
    _undirected("largest_eigenvalue", graph)
    if not graph.n:
        return 0.0
    if graph.n <= 1000:
        return float(np.linalg.eigvalsh(np.asarray(dense_laplacian(graph)))[-1])
    return estimate_spectral_radius(lambda v: laplacian_product(graph, v), np.zeros(graph.n), iterations=100)


def heat(graph: Graph, x: ArrayLike, eta: float | None = None, steps: int = 1, check: bool = True) -> Tensor:
    r"""The heat equation in steps, \(x \leftarrow x - \eta L x\): every node moves towards its neighbours.

    >>> import wonderland as wl
    >>> graph = wl.graphs.Graph(4, [(0, 1), (0, 2), (1, 2), (1, 3)], directed=False)
    >>> wl.graphs.heat(graph, wl.tensor([4.0, 0.0, 0.0, 0.0]), eta=0.25, steps=30).round(4)
    tensor([1.0001, 1.    , 1.0001, 0.9998])

    In the end all nodes of a component have its mean. This is so if and only if \(\eta < 2/\lambda_n\), and a larger
    one is refused (`check=False` lets it blow up); without eta it is \(1 / (2 \max_i d_i)\), which is small enough.
    Diffusion by L itself, \(x \leftarrow Lx\), as the book's text has it, grows without bound. Book, section 12.1.3
    (figure 12.4).
    """
    signal = _signal("heat", graph, x)
    bound = 2 * float(np.asarray(_absolute_degree(graph)).max(initial=0.0))  # Gershgorin: no eigenvalue is larger
    rate = (1 / bound if bound else 0.0) if eta is None else float(as_number("heat", "eta", eta))
    if check and rate * bound >= 2:
        largest = largest_eigenvalue(graph)
        if rate * largest >= 2 * (1 - 1e-12):
            raise InputError(
                f"heat: with eta={rate:g} the signal grows: the largest eigenvalue of L is {largest:.6g}.",
                f"eta below {2 / largest:.6g}, or eta=None",
            )
    for _ in range(as_int("heat", "steps", steps, least=0)):
        signal = signal - rate * laplacian_product(graph, signal)
    return signal


def _absolute_degree(graph: Graph) -> Tensor:
    return segment_sum(abs(weights_of(graph)), graph.pattern.rows)
