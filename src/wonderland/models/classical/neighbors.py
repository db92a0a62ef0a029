"""The points most similar to a point: nearest neighbours and retrieval. Book, section 3.1.1."""

from __future__ import annotations

from ... import arrays
from ...arrays.conversion import promote_inexact
from ...arrays.similarity import normalize, pairwise_sq_distances
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike

METRICS = ("cosine", "euclidean", "dot")


def similarities(queries: ArrayLike, points: ArrayLike, metric: str = "cosine") -> Tensor:
    r"""How similar queries (..., d) are to points (n, d), as (..., n); more is nearer.

    >>> import wonderland as wl
    >>> similarities(wl.tensor([1.0, 0.0]), wl.tensor([[2.0, 0.0], [0.0, 3.0]]))
    tensor([1., 0.])

    `metric` is "cosine", \(\langle q, x\rangle/(\|q\|\,\|x\|)\), "dot", \(\langle q, x\rangle\), or "euclidean",
    \(-\|q - x\|\). Of vectors of one norm all three give the same order.
    """
    queries, points = promote_inexact("nearest_neighbors", queries, points)
    if points.ndim != 2 or not queries.ndim or queries.shape[-1] != points.shape[1]:
        raise ShapeError(
            f"nearest_neighbors: queries of shape {queries.shape} and points of shape {points.shape}.",
            "(..., d) and (n, d)",
        )
    if metric not in METRICS:
        raise InputError(f"nearest_neighbors: metric={metric!r}.", "one of " + ", ".join(map(repr, METRICS)))
    if metric == "euclidean":
        flat = arrays.reshape(queries, (-1, points.shape[1]))
        distances = arrays.sqrt(pairwise_sq_distances(flat, points))
        return -arrays.reshape(distances, (*queries.shape[:-1], points.shape[0]))
    if metric == "cosine":
        queries, points = normalize(queries), normalize(points)
    return queries @ points.mT


def nearest_neighbors(
    points: ArrayLike, query: ArrayLike, k: int = 5, metric: str = "cosine", exclude_self: bool | None = None
) -> tuple[Tensor, Tensor]:
    """The similarities and numbers of the k points (n, d) that are most similar to a query, the nearest first.

    >>> import wonderland as wl
    >>> E = wl.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> nearest_neighbors(E, 0, k=2)[1]
    tensor([1, 2])
    >>> nearest_neighbors(E, wl.tensor([0.1, 0.9]), k=1)[1]
    tensor([2])

    `query` is the number of a point, which is then left out of the answer unless `exclude_self` is false, or vectors
    (..., d). `metric` as in `similarities`. Notes, section 4.1.
    """
    points = arrays.asarray(points)
    number = query if isinstance(query, int) else None
    exclude = number is not None if exclude_self is None else exclude_self
    if exclude and number is None:
        raise InputError("nearest_neighbors: exclude_self for a vector.", "the number of a point as the query")
    if points.ndim != 2:
        raise ShapeError(f"nearest_neighbors: points of shape {points.shape}.", "(n, d)")
    k = as_int("nearest_neighbors", "k", k, 1)
    if k > points.shape[0] - exclude:
        raise InputError(f"nearest_neighbors: k={k} of {points.shape[0] - exclude} points.", "a smaller k")
    scores = similarities(points[number] if number is not None else query, points, metric)
    if exclude and number is not None:
        scores = arrays.where(arrays.arange(points.shape[0]) == number % points.shape[0], -arrays.inf, scores)
    values, indices = arrays.top_k(scores, k)
    return values, indices


def retrieve(query: ArrayLike, index: ArrayLike, k: int = 5, metric: str = "cosine") -> tuple[Tensor, Tensor]:
    """Retrieval: the k elements of an index (n, d) most similar to queries (..., d). Notes, B, section 3.1.1.

    >>> import wonderland as wl
    >>> retrieve(wl.tensor([[0.0, 2.0]]), wl.tensor([[1.0, 0.0], [0.1, 1.0]]), k=1)[1]
    tensor([[1]])
    """
    return nearest_neighbors(index, arrays.asarray(query), k, metric)
