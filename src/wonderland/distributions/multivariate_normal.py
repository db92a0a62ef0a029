"""The normal distribution of vectors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import arrays, linalg, random
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, KeyLike
from ..random.arguments import known
from .distribution import Distribution, Shape, accepted, finite, positive


class MultivariateNormal(Distribution):
    r"""\(\mathcal N(\mu, \Sigma)\): \((2\pi)^{-k/2}\det(\Sigma)^{-1/2} e^{-\frac12 (x-\mu)^\top\Sigma^{-1}(x-\mu)}\).

    >>> import wonderland as wl
    >>> covariance = wl.tensor([[2.0, 1.0], [1.0, 1.0]])
    >>> d = wl.distributions.MultivariateNormal(wl.zeros(2), covariance)
    >>> print(d.log_prob(wl.zeros(2)))  # -ln 2 pi, as the determinant is 1
    tensor(-1.837877)
    >>> wl.distributions.MultivariateNormal(wl.zeros(1000), scale_diag=0.5).sample((3,)).shape
    (3, 1000)

    `loc` is (..., k). Give one of `covariance_matrix` (..., k, k), `precision_matrix`, its inverse, `scale_tril`, its
    Cholesky factor L, and `scale_diag`: standard deviations (..., k), or one number for the isotropic \(\sigma^2 I\);
    these last cost O(k). `rsample` is \(\mu + L\varepsilon\). The exponent has its factor \(-\frac12\), which the
    book's formula lacks. Book, section A.3.
    """

    parameters = ("loc", "factor")
    has_rsample = True

    def __init__(
        self,
        loc: ArrayLike,
        covariance_matrix: ArrayLike | None = None,
        precision_matrix: ArrayLike | None = None,
        scale_tril: ArrayLike | None = None,
        scale_diag: ArrayLike | None = None,
    ) -> None:
        name = "MultivariateNormal"
        given = [x for x in (covariance_matrix, precision_matrix, scale_tril, scale_diag) if x is not None]
        if len(given) != 1:
            raise InputError(
                f"{name}: {len(given)} of covariance_matrix, precision_matrix, scale_tril and scale_diag.",
                "one of them",
            )
        self.loc, factor = accepted(name, loc, given[0], together=False)
        if not self.loc.ndim or not self.loc.shape[-1]:
            raise ShapeError(f"{name}: a mean of shape {self.loc.shape} is no vector.", "shape (..., k)")
        finite(name, "loc", self.loc)
        k = self.loc.shape[-1]
        self.diagonal = scale_diag is not None
        if self.diagonal:
            factor = factor[..., None] if not factor.ndim else factor
            if factor.shape[-1] not in (1, k):
                raise ShapeError(f"{name}: {factor.shape[-1]} deviations for {k} numbers.", f"(..., {k}), or one")
            positive(name, "scale_diag", factor)
        else:
            if factor.shape[-2:] != (k, k):
                raise ShapeError(f"{name}: a matrix of shape {factor.shape} for {k} numbers.", f"(..., {k}, {k})")
            if scale_tril is None:
                _check_symmetric(name, factor)
                factor = linalg.cholesky(factor) if precision_matrix is None else _inverse_factor(factor)
            else:
                positive(name, "the diagonal of scale_tril", arrays.diagonal(factor))
                factor = arrays.tril(factor)
        self.factor = factor

    @property
    def params(self) -> dict[str, Any]:
        return {"loc": self.loc, "scale_diag" if self.diagonal else "scale_tril": self.factor}

    @property
    def event_shape(self) -> Shape:
        return self.loc.shape[-1:]

    @property
    def batch_shape(self) -> Shape:
        lead = self.factor.shape[:-1] if self.diagonal else self.factor.shape[:-2]
        return arrays.broadcast_shapes(self.loc.shape[:-1], lead)

    def _draw(self, sizes: Shape, key: KeyLike) -> Tensor:
        noise = random.normal((*sizes, *self.event_shape), key=key, dtype=self.dtype)
        if self.diagonal:
            return self.loc + self.factor * noise
        return self.loc + (self.factor @ noise[..., None])[..., 0]

    def _whitened(self, difference: Tensor) -> Tensor:
        """The noise that makes a difference from the mean."""
        if self.diagonal:
            return difference / self.factor
        shape = arrays.broadcast_shapes(difference.shape[:-1], self.factor.shape[:-2])
        factor = arrays.broadcast_to(self.factor, (*shape, *self.factor.shape[-2:]))
        columns = arrays.broadcast_to(difference, (*shape, difference.shape[-1]))[..., None]
        return linalg.solve_triangular(factor, columns, lower=True)[..., 0]

    def log_det(self) -> Tensor:
        """The logarithm of the determinant of the covariance."""
        if self.diagonal:
            k = self.event_shape[0]
            return 2 * arrays.sum(arrays.log(self.factor), axis=-1) * (k if self.factor.shape[-1] != k else 1)
        return 2 * arrays.sum(arrays.log(arrays.diagonal(self.factor)), axis=-1)

    def log_prob(self, value: ArrayLike) -> Tensor:
        x = self._value("log_prob", value)
        if x.shape[-1:] != self.event_shape:
            raise ShapeError(
                f"MultivariateNormal: values of shape {x.shape} are no vectors of {self.event_shape[0]} numbers.",
                f"shape (..., {self.event_shape[0]})",
            )
        z = self._whitened(x - self.loc)
        return -0.5 * (arrays.sum(z * z, axis=-1) + self.log_det() + self.event_shape[0] * math.log(2 * math.pi))

    @property
    def covariance_matrix(self) -> Tensor:
        """The covariance (..., k, k)."""
        if self.diagonal:
            spread = arrays.broadcast_to(self.factor, (*self.factor.shape[:-1], *self.event_shape))
            return (spread * spread)[..., None] * arrays.eye(self.event_shape[0], dtype=self.dtype)
        return self.factor @ self.factor.mT

    @property
    def mean(self) -> Tensor:
        return arrays.broadcast_to(self.loc, (*self.batch_shape, *self.event_shape))

    @property
    def variance(self) -> Tensor:
        squares = self.factor * self.factor
        squares = squares if self.diagonal else arrays.sum(squares, axis=-1)
        return arrays.broadcast_to(squares, (*self.batch_shape, *self.event_shape))

    def entropy(self) -> Tensor:
        return self._spread(0.5 * (self.log_det() + self.event_shape[0] * (1 + math.log(2 * math.pi))))


def _check_symmetric(name: str, matrix: Tensor) -> None:
    value = known(matrix)
    if value is not None and not np.allclose(value, np.swapaxes(value, -1, -2), rtol=1e-4, atol=1e-6):
        raise InputError(f"{name}: the matrix is not symmetric.", "0.5 * (S + S.mT), or scale_tril")


def _inverse_factor(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse: from that of the matrix with its axes reversed."""
    reverse = linalg.cholesky(arrays.flip(precision, axis=(-2, -1)))
    upper = arrays.flip(reverse.mT, axis=(-2, -1))  # U^T U is the precision, with U lower triangular reversed
    identity = arrays.broadcast_to(arrays.eye(precision.shape[-1], dtype=precision.dtype), precision.shape)
    return linalg.solve_triangular(upper, identity, lower=True)
