"""K-means: points in groups around their means. Book, section 3.1.1; notes, section 2.3.4."""

from __future__ import annotations

import numpy as np

from ... import arrays
from ...arrays.conversion import convert
from ...arrays.similarity import pairwise_sq_distances
from ...core.arguments import as_int, as_number
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, KeyLike
from ...nn.functional.clustering import k_means, plus_plus
from ...nn.module.lazy import Lazy
from ...nn.module.module import Module
from ...nn.module.parameter import Buffer, Held
from ...random.keys import split
from ...random.order import choice
from ...random.streams import take_key
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

    cluster_centers_: Held[Buffer]
    labels_: Held[Buffer]
    history_: Held[Buffer]

    def __init__(
        self,
        n_clusters: int = 8,
        init: str | ArrayLike = "k-means++",
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-4,
        key: KeyLike = None,
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

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> KMeans:
        """Find the centres of points (n, features)."""
        X = as_training_points("KMeans", X, self.n_clusters)
        keys = split(take_key("KMeans", self.key), self.n_init if isinstance(self.init, str) else 1)
        centers, labels, history = k_means(X, self._start, list(keys), self.tol, self.max_iter)
        self.cluster_centers_ = Buffer(centers)
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

    @property
    def inertia_(self) -> float:
        r"""\(\sum_i \min_k \|x_i - \mu_k\|^2\) of the data that it was fitted to."""
        return float(fitted("KMeans", self.history_)[-1])

    @property
    def n_iter_(self) -> int:
        """The iterations of the best start."""
        return len(fitted("KMeans", self.history_)) - 1

    def transform(self, X: ArrayLike) -> Tensor:
        """The distances (n, clusters) from the centres."""
        return arrays.sqrt(self._sq_distances(X))

    def predict(self, X: ArrayLike) -> Tensor:
        """The numbers (n,) of the nearest centres."""
        return arrays.argmin(self._sq_distances(X), axis=-1)

    def _sq_distances(self, X: ArrayLike) -> Tensor:
        centers = fitted("KMeans", self.cluster_centers_)
        X = as_points("KMeans", X, centers.shape[1])
        shift = arrays.mean(centers, axis=0)
        return pairwise_sq_distances(X - shift, centers - shift)

    def forward(self, X: ArrayLike) -> Tensor:
        return self.predict(X)

    def fit_predict(self, X: ArrayLike, y: ArrayLike | None = None) -> Tensor:
        """`fit`, then the labels of the same points."""
        return arrays.asarray(self.fit(X).labels_)

    def score(self, X: ArrayLike, y: ArrayLike | None = None) -> float:
        """Minus the inertia of these points: more is better."""
        return -float(arrays.sum(arrays.min(self._sq_distances(X), axis=-1)))

    def extra_repr(self) -> str:
        return f"n_clusters={self.n_clusters}"
