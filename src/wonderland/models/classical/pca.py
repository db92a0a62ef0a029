"""Principal components: the directions in which points differ most. Notes, section 2.3.5."""

from __future__ import annotations

from ... import arrays, linalg
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...nn.module.lazy import Lazy
from ...nn.module.module import Module
from ...nn.module.parameter import Buffer, Held
from .points import as_points, as_training_points, fitted


class PCA(Module):
    r"""\(z = (x - \bar x) V\) with V the first right singular vectors of the centred data.

    >>> import wonderland as wl
    >>> X = wl.tensor([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    >>> model = wl.models.PCA(1).fit(X)
    >>> model.explained_variance_ratio_
    tensor([1.])
    >>> bool(wl.allclose(model.inverse_transform(model.transform(X)), X, atol=1e-6))
    True

    No other projection to as many numbers loses less: the squared error of `inverse_transform(transform(X))` is the sum
    of the squared singular values that were left out. After `fit`: `mean_`, `components_` (components, features),
    each with its largest entry positive, and `singular_values_`.
    """

    mean_: Held[Buffer]
    components_: Held[Buffer]
    singular_values_: Held[Buffer]
    _spectrum: Held[Buffer]

    def __init__(self, n_components: int | None = None) -> None:
        self.n_components = None if n_components is None else as_int("PCA", "n_components", n_components, 1)
        self.n_samples_ = 0
        self.mean_, self.components_, self.singular_values_, self._spectrum = Lazy(), Lazy(), Lazy(), Lazy()

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> PCA:
        """Find the directions of points (n, features)."""
        X = as_training_points("PCA", X, 2)
        most = min(X.shape)
        n = most if self.n_components is None else self.n_components
        if n > most:
            raise InputError(f"PCA: {n} components of data of shape {X.shape}.", f"at most {most}")
        mean = arrays.mean(X, axis=0)
        _, s, vh = linalg.svd(X - mean, full_matrices=False)
        vh = vh[:n]
        peak = arrays.take_along_axis(vh, arrays.argmax(arrays.abs(vh), axis=1)[:, None], axis=1)
        self.n_samples_ = X.shape[0]
        self.mean_ = Buffer(mean)
        self.components_ = Buffer(arrays.where(peak < 0, -vh, vh))
        self.singular_values_ = Buffer(s[:n])
        self._spectrum = Buffer(s)
        return self

    @property
    def explained_variance_(self) -> Tensor:
        """The variance along each direction."""
        return arrays.square(fitted("PCA", self.singular_values_)) / (self.n_samples_ - 1)

    @property
    def explained_variance_ratio_(self) -> Tensor:
        """The share of each direction in the whole variance."""
        squares = arrays.square(fitted("PCA", self._spectrum))
        return squares[: len(self.singular_values_)] / arrays.sum(squares)

    def transform(self, X: ArrayLike) -> Tensor:
        """The coordinates (n, components) of points (n, features)."""
        components = fitted("PCA", self.components_)
        return (as_points("PCA", X, components.shape[1]) - self.mean_) @ components.mT

    def forward(self, X: ArrayLike) -> Tensor:
        return self.transform(X)

    def fit_transform(self, X: ArrayLike, y: ArrayLike | None = None) -> Tensor:
        """`fit`, then the coordinates of the same points."""
        return self.fit(X).transform(X)

    def inverse_transform(self, Z: ArrayLike) -> Tensor:
        """The points (n, features) with coordinates (n, components)."""
        components = fitted("PCA", self.components_)
        Z = arrays.asarray(Z)
        if Z.ndim != 2 or Z.shape[1] != components.shape[0]:
            raise ShapeError(f"PCA: coordinates of shape {Z.shape}.", f"(n, {components.shape[0]})")
        return Z @ components + self.mean_

    def extra_repr(self) -> str:
        return f"n_components={self.n_components}"
