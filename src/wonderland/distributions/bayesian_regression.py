"""Linear regression with a belief about its weights: the posterior in closed form. Book, section 3.3."""

from __future__ import annotations

import math
from typing import Any

from .. import arrays, linalg
from ..arrays.conversion import as_real
from ..core.dtypes import float64
from ..core.errors import InputError, ModuleError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from .multivariate_normal import MultivariateNormal
from .normal import Normal


class BayesianLinearRegression:
    r"""\(y \sim \mathcal N(x^\top w, \sigma^2)\) with the prior \(w \sim \mathcal N(0, \tau^2 I)\) of the weights.

    >>> import wonderland as wl
    >>> X, y = wl.tensor([[1.0], [2.0], [3.0]]), wl.tensor([2.0, 4.0, 6.0])
    >>> model = wl.distributions.BayesianLinearRegression(noise=0.5, prior=10.0).fit(X, y)
    >>> print(model.posterior.mean, model.predict(wl.tensor([[2.0]])).mean)
    tensor([1.999643], dtype=float64) tensor([3.999286], dtype=float64)

    The posterior of w is normal with precision \(X^\top X/\sigma^2 + I/\tau^2\); its mean is the ridge solution with
    \(\lambda = \sigma^2/\tau^2\). `noise` is \(\sigma\), `prior` \(\tau\). `update` continues with new data, the
    posterior being the prior: the same result as with all data at once. Computed in float64.
    """

    def __init__(self, noise: float = 1.0, prior: float = 1.0) -> None:
        for what, value in (("noise", noise), ("prior", prior)):
            if not value > 0:
                raise InputError(f"BayesianLinearRegression: {what}={value}.", f"{what} > 0")
        self.noise, self.prior = noise, prior
        self._precision: Any = None  # of the weights
        self._pull: Any = None  # the precision times the mean

    def fit(self, X: ArrayLike, y: ArrayLike) -> BayesianLinearRegression:
        """Start from the prior and learn from inputs (n, d) and targets (n,)."""
        self._precision = self._pull = None
        return self.update(X, y)

    def update(self, X: ArrayLike, y: ArrayLike) -> BayesianLinearRegression:
        """Learn from more data, with what is believed now as the prior."""
        inputs, targets = (arrays.astype(as_real("update", arrays.asarray(v)), float64) for v in (X, y))
        if inputs.ndim != 2 or targets.shape != inputs.shape[:1]:
            raise ShapeError(f"update: inputs {inputs.shape} and targets {targets.shape}.", "(n, d) and (n,)")
        d = inputs.shape[1]
        if self._precision is None:
            self._precision = arrays.eye(d, dtype=float64) / self.prior**2
            self._pull = arrays.zeros(d, dtype=float64)
        elif self._precision.shape[0] != d:
            raise ShapeError(f"update: {d} features after {self._precision.shape[0]}.", "the same features")
        self._precision = self._precision + inputs.mT @ inputs / self.noise**2
        self._pull = self._pull + inputs.mT @ targets / self.noise**2
        return self

    @property
    def posterior(self) -> MultivariateNormal:
        """The distribution of the weights."""
        if self._precision is None:
            raise ModuleError("BayesianLinearRegression: it has seen no data.", "fit(X, y) first")
        return MultivariateNormal(linalg.solve(self._precision, self._pull), precision_matrix=self._precision)

    def predict(self, X: ArrayLike) -> Normal:
        r"""The distribution of new targets: mean \(x^\top\bar w\), variance \(\sigma^2 + x^\top\Sigma x\)."""
        inputs = arrays.astype(as_real("predict", arrays.asarray(X)), float64)
        posterior = self.posterior
        if inputs.ndim != 2 or inputs.shape[1:] != posterior.event_shape:
            raise ShapeError(f"predict: inputs {inputs.shape}.", f"shape (n, {posterior.event_shape[0]})")
        spread = arrays.sum(arrays.square(inputs @ posterior.factor), axis=-1)
        return Normal(inputs @ posterior.loc, arrays.sqrt(self.noise**2 + spread))

    def log_evidence(self, X: ArrayLike, y: ArrayLike) -> Tensor:
        r"""\(\ln p(y \mid X)\) under the prior: which noise and prior suit the data."""
        inputs, targets = (arrays.astype(as_real("log_evidence", arrays.asarray(v)), float64) for v in (X, y))
        n, d = inputs.shape
        fitted = BayesianLinearRegression(self.noise, self.prior).fit(inputs, targets)
        mean = fitted.posterior.loc
        misfit = arrays.sum(arrays.square(targets - inputs @ mean)) / self.noise**2
        misfit = misfit + arrays.sum(mean * mean) / self.prior**2
        log_det = linalg.slogdet(fitted._precision)[1]
        constants = n * math.log(2 * math.pi * self.noise**2) + 2 * d * math.log(self.prior)
        return -0.5 * (misfit + log_det + constants)
