"""K-means: points in groups around their means. Book, section 3.1.1; notes, section 2.3.4."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import arrays
from ..arguments import as_int, as_number
from ..arrays.conversion import convert
from ..arrays.similarity import pairwise_sq_distances, sq_norm
from ..errors import InputError, ShapeError
from ..nn.lazy import Lazy
from ..nn.module import Module
from ..nn.parameter import Buffer
from ..random.keys import split
from ..random.order import choice
from ..random.streams import take_key
from ..tensor import Tensor
from .points import as_points, as_training_points, fitted


class KMeans(Module):
    r"""Centres \(\mu_k\) that make the inertia \(\sum_i \min_k \|x_i - \mu_k\|^2\) small. Book, section 3.1.1.

    >>> import wonderland as wl
    >>> X = wl.tensor([[0.0, 0.0], [0.0, 1.0], [9.0, 9.0], [9.0, 8.0]])
    >>> model = wl.models.KMeans(2, key=wl.random.key(0)).fit(X)
    >>> model.inertia_, bool((model.predict(X) == model.labels_).all())
    (1.0, True)

    Lloyd's algorithm: each point goes to its nearest centre, each centre to the mean of its points, until the centres
    move by less than `tol` times the spread of the data. Neither step raises the inertia; `history_` has it for every
    iteration of the best of `n_init` starts. `init` is "k-means++" (centres far from those there are, the best of a few
    draws each), "random" (some of the points), or the centres themselves. A centre that loses its last point moves to
    the point that is farthest from its own.

    After `fit`: `cluster_centers_` (clusters, features), `labels_` (points,), `inertia_`, `n_iter_`, `history_`.
    """

    cluster_centers_: Any
    labels_: Any
    history_: Any

    def __init__(
        self,
        n_clusters: int = 8,
        init: Any = "k-means++",
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-4,
        key: Any = None,
    ) -> None:
        self.n_clusters = as_int("KMeans", "n_clusters", n_clusters, 1)
        self.n_init = as_int("KMeans", "n_init", n_init, 1)
        self.max_iter = as_int("KMeans", "max_iter", max_iter, 1)
        self.tol = as_number("KMeans", "tol", tol)
        if isinstance(init, str) and init not in ("k-means++", "random"):
            raise InputError(f"KMeans: init={init!r}.", '"k-means++", "random", or the centres')
        self.init = init if isinstance(init, str) else arrays.asarray(init)
        self.key = None if key is None else take_key("KMeans", key)
        self.cluster_centers_, self.labels_, self.history_ = Lazy(), Lazy(), Lazy()

    def fit(self, X: Any, y: Any = None) -> KMeans:
        """Find the centres of points (n, features)."""
        X = as_training_points("KMeans", X, self.n_clusters)
        shift = arrays.mean(X, axis=0)  # distances lose digits far from the origin
        X = X - shift
        tolerance = self.tol * float(arrays.mean(arrays.var(X, axis=0)))
        best: tuple[Tensor, Tensor, list[float]] | None = None
        starts = self.n_init if isinstance(self.init, str) else 1
        keys = split(take_key("KMeans", self.key), starts)
        for i in range(starts):
            found = self._lloyd(X, self._start(X, shift, keys[i]), tolerance)
            if best is None or found[2][-1] < best[2][-1]:
                best = found
        assert best is not None
        centers, labels, history = best
        self.cluster_centers_ = Buffer(centers + shift)
        self.labels_ = Buffer(labels, persistent=False)
        self.history_ = Buffer(np.array(history), persistent=False)
        return self

    def _start(self, X: Tensor, shift: Tensor, key: Tensor) -> Tensor:
        if not isinstance(self.init, str):
            expected = (self.n_clusters, X.shape[1])
            if self.init.shape != expected:
                raise ShapeError(f"KMeans: init of shape {self.init.shape}.", f"centres of shape {expected}")
            return convert(self.init, X.dtype) - shift
        if self.init == "random":
            return arrays.take(X, choice(X.shape[0], (self.n_clusters,), replace=False, key=key), axis=0)
        return plus_plus(X, self.n_clusters, key)

    def _lloyd(self, X: Tensor, centers: Tensor, tolerance: float) -> tuple[Tensor, Tensor, list[float]]:
        history: list[float] = []
        for _ in range(self.max_iter):
            labels, distances = _assigned(X, centers)
            history.append(float(distances.sum()))
            moved = arrays.segment_mean(X, _without_empty(labels, distances, len(centers)), len(centers))
            change = float(sq_norm(moved - centers))
            centers = moved
            if change <= tolerance:
                break
        labels, distances = _assigned(X, centers)  # those of the final centres
        return centers, labels, [*history, float(distances.sum())]

    @property
    def inertia_(self) -> float:
        r"""\(\sum_i \min_k \|x_i - \mu_k\|^2\) of the data that it was fitted to."""
        return float(fitted("KMeans", self.history_)[-1])

    @property
    def n_iter_(self) -> int:
        """The iterations of the best start."""
        return len(fitted("KMeans", self.history_)) - 1

    def transform(self, X: Any) -> Tensor:
        """The distances (n, clusters) from the centres."""
        return arrays.sqrt(self._sq_distances(X))

    def predict(self, X: Any) -> Tensor:
        """The numbers (n,) of the nearest centres."""
        return arrays.argmin(self._sq_distances(X), axis=-1)

    def _sq_distances(self, X: Any) -> Tensor:
        centers = fitted("KMeans", self.cluster_centers_)
        X = as_points("KMeans", X, centers.shape[1])
        shift = arrays.mean(centers, axis=0)
        return pairwise_sq_distances(X - shift, centers - shift)

    def forward(self, X: Any) -> Tensor:
        return self.predict(X)

    def fit_predict(self, X: Any, y: Any = None) -> Tensor:
        """`fit`, then the labels of the same points."""
        return arrays.asarray(self.fit(X).labels_)

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the inertia of these points: more is better."""
        return -float(arrays.sum(arrays.min(self._sq_distances(X), axis=-1)))

    def extra_repr(self) -> str:
        return f"n_clusters={self.n_clusters}"


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
