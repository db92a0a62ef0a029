"""Points in groups around their means: Lloyd's algorithm, and centres to begin with. Book, section 3.1.1."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from ... import arrays
from ...arrays.similarity import pairwise_sq_distances, sq_norm
from ...core.tensor import Tensor
from ...random.keys import split
from ...random.order import choice

Clusters = tuple[Tensor, Tensor, list[float]]  # centres, the nearest one's number for each point, inertias


def k_means(
    X: Tensor,
    start: Callable[[Tensor, Tensor, Tensor], Tensor],
    keys: Iterable[Tensor],
    tol: float = 1e-4,
    max_iter: int = 300,
) -> Clusters:
    """The best of several runs of `lloyd`, one for each key.

    >>> import wonderland as wl
    >>> X = wl.tensor([[0.0], [9.0], [0.5]])
    >>> k_means(X, lambda X, shift, key: plus_plus(X, 2, key), [wl.random.key(0)])[2][-1]
    0.125

    `start(X, shift, key)` gives the first centres; X and they are relative to `shift`, the mean of the points. `tol` is
    relative to the spread of the points.
    """
    shift = arrays.mean(X, axis=0)  # distances lose digits far from the origin
    X = X - shift
    tolerance = tol * float(arrays.mean(arrays.var(X, axis=0)))
    found = [lloyd(X, start(X, shift, key), tolerance, max_iter) for key in keys]
    centers, labels, history = min(found, key=lambda each: each[2][-1])
    return centers + shift, labels, history


def lloyd(X: Tensor, centers: Tensor, tolerance: float = 0.0, max_iter: int = 300) -> Clusters:
    """Centres from which no step lowers the inertia; inertias are those before every iteration and at the end.

    >>> import wonderland as wl
    >>> centers, labels, inertias = lloyd(wl.tensor([[0.0], [1.0], [9.0]]), wl.tensor([[0.0], [1.0]]))
    >>> centers[:, 0].tolist(), labels.tolist(), inertias[-1]
    ([0.5, 9.0], [0, 0, 1], 0.5)

    It ends when the squared movement of the centres is at most `tolerance`.
    """
    history: list[float] = []
    for _ in range(max_iter):
        labels, distances = _assigned(X, centers)
        history.append(float(distances.sum()))
        moved = arrays.segment_mean(X, _without_empty(labels, distances, len(centers)), len(centers))
        change = float(sq_norm(moved - centers))
        centers = moved
        if change <= tolerance:
            break
    labels, distances = _assigned(X, centers)  # those of the final centres
    return centers, labels, [*history, float(distances.sum())]


def plus_plus(X: Tensor, n: int, key: Tensor) -> Tensor:
    r"""n of the points as first centres: each with probability \(\propto\) its squared distance to those before it.

    >>> import wonderland as wl
    >>> sorted(plus_plus(wl.tensor([[0.0], [0.0], [5.0]]), 2, wl.random.key(0))[:, 0].tolist())
    [0.0, 5.0]

    Of `2 + ln n` draws the one that lowers the inertia most is taken.
    """
    trials = 2 + int(math.log(n))
    keys = split(key, n)
    first = choice(X.shape[0], (1,), key=keys[0])
    chosen = [first]
    distances = pairwise_sq_distances(X, arrays.take(X, first, axis=0))[:, 0]
    for i in range(1, n):
        total = distances.numpy().astype(np.float64)
        if total.sum() > 0:
            candidates = choice(X.shape[0], (trials,), p=arrays.asarray(total / total.sum()), key=keys[i])
        else:  # fewer different points than centres
            candidates = choice(X.shape[0], (1,), key=keys[i])
        after = arrays.minimum(distances[:, None], pairwise_sq_distances(X, arrays.take(X, candidates, axis=0)))
        winner = int(arrays.argmin(arrays.sum(after, axis=0)))
        chosen.append(candidates[winner : winner + 1])
        distances = after[:, winner]
    return arrays.take(X, arrays.concat(chosen), axis=0)


def _assigned(X: Tensor, centers: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest centre of each point and its squared distance."""
    distances = pairwise_sq_distances(X, centers)
    return arrays.argmin(distances, axis=1), arrays.min(distances, axis=1)


def _without_empty(labels: Tensor, distances: Tensor, clusters: int) -> Tensor:
    """The labels, with far points given to the clusters that have none."""
    counts = np.bincount(labels.numpy(), minlength=clusters)
    if counts.all():
        return labels
    new, far = labels.numpy().copy(), distances.numpy().copy()
    for empty in np.flatnonzero(counts == 0):
        point = int(np.argmax(np.where(counts[new] > 1, far, -1.0)))  # nobody gives away its last point
        counts[new[point]] -= 1
        counts[empty] += 1
        new[point], far[point] = empty, 0.0
    return arrays.asarray(new)
