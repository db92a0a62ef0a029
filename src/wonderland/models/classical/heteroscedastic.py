"""Regression with a noise that depends on the input: a mean and a scale from two linear heads. Book, section 4.1.3."""

from __future__ import annotations

import math
from typing import Self

from ... import arrays
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...nn.module.parameter import Buffer, Held
from ...transforms.imperative import no_grad
from .convex import fit_params
from .least_squares import LinearRegression
from .linear_model import (
    LinearModel,
    Params,
    Regressor,
    apply_linear,
    as_examples,
    as_targets,
    standardized,
    unstandardized,
    warn_if_unsettled,
)
from .points import fitted


class HeteroscedasticRegression(Regressor):
    r"""\(y \sim N(\mu(x), \sigma(x)^2)\) with linear \(\mu\) and \(\ln\sigma^2\), by maximum likelihood.

    >>> import wonderland as wl
    >>> x = wl.linspace(-1.0, 1.0, 200)[:, None]
    >>> y = 2 * x[:, 0] + wl.exp(x[:, 0]) * wl.random.normal((200,))
    >>> model = HeteroscedasticRegression().fit(x, y)
    >>> scale = model.predict_scale(wl.tensor([[-1.0], [1.0]]))
    >>> bool(scale[1] > 3 * scale[0])
    True

    `mean` and `log_variance` are `LinearModel`s. The loss is the mean of \(\frac12(\ln\sigma^2(x) + (y -
    \mu(x))^2/\sigma^2(x) + \ln 2\pi)\), so noisy examples count less than in least squares. Where the scale does not
    depend on x both agree. Book, E.3.6 and section 4.1.3.
    """

    mean: LinearModel
    log_variance: LinearModel
    losses: Held[Buffer | None]

    def __init__(self, bias: bool = True) -> None:
        self.mean = LinearModel(bias)
        self.log_variance = LinearModel(bias)
        self.losses = None

    def forward(self, X: ArrayLike) -> tuple[Tensor, Tensor]:
        """The mean (...,) and the variance (...,)."""
        fitted("HeteroscedasticRegression", self.mean.weight, "fit(X, y)")
        return self.mean(X), arrays.exp(self.log_variance(X))

    @no_grad()
    def predict(self, X: ArrayLike) -> Tensor:
        """The mean of y for inputs (..., c)."""
        return self(X)[0]

    @no_grad()
    def predict_scale(self, X: ArrayLike) -> Tensor:
        """The standard deviation of y for inputs (..., c)."""
        return arrays.sqrt(self(X)[1])

    def nll(self, X: ArrayLike, y: ArrayLike) -> Tensor:
        """The mean negative log-likelihood of targets (n,)."""
        X = as_examples("HeteroscedasticRegression", X)
        return _gaussian_nll(self.mean(X), self.log_variance(X), as_targets("HeteroscedasticRegression", y, X))

    def fit(self, X: ArrayLike, y: ArrayLike, max_iter: int = 200, tol: float | None = None) -> Self:
        """Find both heads for inputs (n, c) and targets (n,), from least squares with one variance for all."""
        name = type(self).__name__
        X = as_examples(name, X)
        y = as_targets(name, y, X, single=True)
        has_bias = self.mean.bias is not None
        Z, middle, scale = standardized(X, has_bias)
        plain = LinearRegression(has_bias).fit(Z, y)
        level = math.log(max(plain.sigma2.item(), 1e-12))
        mean: Params = {"weight": arrays.stop_gradient(plain.weight)}
        spread: Params = {"weight": arrays.zeros_like(mean["weight"])}
        if plain.bias is not None:
            mean["bias"] = arrays.stop_gradient(plain.bias)
            spread["bias"] = arrays.full_like(mean["bias"], level)
        start = {"mean": mean, "spread": spread}
        found = fit_params(name, _loss, start, Z, y, method="newton", max_iter=max_iter, tol=tol)
        self.mean._take(unstandardized(found.params["mean"], middle, scale))
        self.log_variance._take(unstandardized(found.params["spread"], middle, scale))
        self.losses = Buffer(found.losses, persistent=False)
        warn_if_unsettled(name, found, "scaled features, more data or a larger max_iter")
        return self


def _loss(params: dict[str, Params], X: Tensor, y: Tensor) -> Tensor:
    return _gaussian_nll(apply_linear(params["mean"], X), apply_linear(params["spread"], X), y)


def _gaussian_nll(mean: Tensor, log_variance: Tensor, y: Tensor) -> Tensor:
    squares = arrays.square(y - mean) * arrays.exp(-log_variance)
    return 0.5 * arrays.mean(log_variance + squares + math.log(2 * math.pi))
