r"""Degrees, and weights divided by them. An isolated node gives zeros and no NaN. Book, section 12.1.2."""

from __future__ import annotations

from ..arrays import where, zeros_like
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..core.typing import DTypeLike
from ..sparse import gather, segment_sum
from .graph import Graph
from .structure import weights_of


def degree(graph: Graph, axis: int = 1, dtype: DTypeLike | None = None) -> Tensor:
    r"""\(d_i = \sum_j A_{ij}\), (n,); with `axis=0` the sums of the columns. A self-loop counts once.

    >>> import wonderland as wl
    >>> wl.graphs.Graph(3, [(0, 1), (0, 2)]).degree(), wl.graphs.Graph(3, [(0, 1), (0, 2)]).degree(axis=0)
    (tensor([2., 0., 0.]), tensor([0., 1., 1.]))

    Book, section 12.1.2.
    """
    if axis not in (0, 1):
        raise InputError(f"degree: axis={axis!r}.", "1 for sums of rows, 0 for sums of columns")
    return segment_sum(weights_of(graph, dtype), graph.pattern.rows if axis else graph.pattern.cols)


def inverse(d: Tensor, root: bool = False) -> Tensor:
    """1 / d or 1 / sqrt(d), and 0 where there is none; derivatives are finite, too."""
    good = d > 0 if root else d != 0
    safe = where(good, d, 1)
    return where(good, safe**-0.5 if root else 1 / safe, zeros_like(d))


def normalize(graph: Graph, kind: str | None = "sym", dtype: DTypeLike | None = None) -> Graph:
    r"""The graph with normalised weights: \(D^{-1}A\) ("row"), \(AD^{-1}\) ("col"), \(D^{-1/2}AD^{-1/2}\) ("sym").

    >>> import wonderland as wl
    >>> graph = wl.graphs.Graph(3, [(0, 1), (1, 2)], directed=False)
    >>> graph.normalize("row").to_dense().tolist()
    [[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]

    Rows of the first and columns of the second sum to 1; D has the sums of the rows (for "col" of the columns). An
    isolated node has zeros. None leaves the weights as they are. Self-loops, where wanted, are added before:
    `graph.add_self_loops().normalize("sym")`. Book, section 12.1.2.
    """
    if kind is None:
        return graph
    weight = weights_of(graph, dtype)
    rows, cols = graph.pattern.rows, graph.pattern.cols
    if kind == "row":
        weight = weight * gather(inverse(degree(graph, 1, dtype)), rows)
    elif kind == "col":
        weight = weight * gather(inverse(degree(graph, 0, dtype)), cols)
    elif kind == "sym":
        scale = inverse(degree(graph, 1, dtype), root=True)
        weight = weight * (gather(scale, rows) * gather(scale, cols))
    else:
        raise InputError(f"normalize: kind={kind!r}.", '"row", "col", "sym" or None')
    return graph._copy(weight=weight, _undirected=graph._undirected if kind == "sym" else None)
