"""Generalised linear models: a mean function after the linear one. Book, section 4.3.1; notes, section 2.1.1."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np

from ... import arrays
from ...core import dtypes
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...transforms.imperative import no_grad
from .linear_model import LinearModel, as_examples, as_targets, fit_linear, warn_if_unsettled


class Link(NamedTuple):
    """A mean function phi of scores, the link that undoes it, the loss of scores, and the targets it can have."""

    mean: Callable[[Tensor], Tensor]
    link: Callable[[Tensor], Tensor]
    loss: Callable[[Tensor, Tensor], Tensor]  # one number per score
    low: float = -math.inf
    high: float = math.inf


def probit(p: ArrayLike) -> Tensor:
    r"""\(\Phi^{-1}(p)\), the inverse of the normal distribution function.

    >>> import wonderland as wl
    >>> wl.round(100 * probit(wl.tensor([0.5, 0.975]))) / 100
    tensor([0.  , 1.96])
    """
    return math.sqrt(2) * arrays.erfinv(2 * arrays.asarray(p) - 1)


def normal_cdf(s: ArrayLike) -> Tensor:
    r"""\(\Phi(s) = \frac12\,\mathrm{erfc}(-s/\sqrt2)\).

    >>> import wonderland as wl
    >>> normal_cdf(wl.tensor([-40.0, 0.0, 40.0]))
    tensor([0. , 0.5, 1. ])
    """
    return 0.5 * arrays.erfc(arrays.asarray(s) * -math.sqrt(0.5))


def log_normal_cdf(s: ArrayLike) -> Tensor:
    r"""\(\ln\Phi(s)\), far below 0 as \(-\frac{s^2}2 - \ln(-s\sqrt{2\pi}) + \ln(1 - s^{-2} + 3 s^{-4} - \dots)\).

    >>> import wonderland as wl
    >>> print(log_normal_cdf(-40.0), log_normal_cdf(0.0))
    tensor(-804.6084) tensor(-0.693147)
    """
    s = arrays.asarray(s)
    limit = -25.0 if s.dtype == dtypes.float64 else -10.0  # below it the series is exact, above it erfc is no zero
    far = s < limit
    tail, middle, above = arrays.where(far, s, limit), arrays.where(far | (s > 0), 0.0, s), arrays.relu(s)
    r = 1.0 / (tail * tail)
    series = 1 - r * (1 - 3 * r * (1 - 5 * r * (1 - 7 * r * (1 - 9 * r * (1 - 11 * r)))))
    below = -0.5 * tail * tail - arrays.log(-tail * math.sqrt(2 * math.pi)) + arrays.log(series)
    near = arrays.where(s > 0, arrays.log1p(-normal_cdf(-above)), arrays.log(normal_cdf(middle)))
    return arrays.where(far, below, near)


LINKS = {
    "identity": Link(arrays.asarray, arrays.asarray, lambda s, y: 0.5 * arrays.square(s - y)),
    "logit": Link(arrays.sigmoid, arrays.logit, lambda s, y: arrays.softplus(s) - s * y, 0.0, 1.0),
    "probit": Link(normal_cdf, probit, lambda s, y: -y * log_normal_cdf(s) - (1 - y) * log_normal_cdf(-s), 0.0, 1.0),
    "log": Link(arrays.exp, arrays.log, lambda s, y: arrays.exp(s) - s * y, 0.0),
}


class GLM(LinearModel):
    r"""\(\hat y = \phi(w^\top x + b)\): linear scores and a mean function. Notes, section 2.1.1.

    >>> X, y = [[0.0], [1.0], [2.0]], [1.0, 2.0, 4.0]
    >>> model = GLM("log").fit(X, y)
    >>> [round(value, 3) for value in model.predict([[3.0]]).tolist()]
    [8.0]

    `phi` is the name of the link \(\phi^{-1}\), which brings the usual loss of its family (up to constants):

    - "identity": \(\hat y = s\), half the squared error; this is linear regression;
    - "logit": \(\hat y = \sigma(s)\), the binary cross-entropy; this is logistic regression;
    - "probit": \(\hat y = \Phi(s)\) with the normal distribution function, and the same loss;
    - "log": \(\hat y = e^s\), Poisson counts: \(\hat y - y \ln\hat y\).

    or any function of scores, with a `loss(prediction, y)` per example (half the squared error without one). Calling
    the model gives \(\phi(s)\); `decision_function` gives s. `l2` adds \(\frac{l_2}2\|w\|^2\) to the mean loss.
    """

    def __init__(
        self,
        phi: str | Callable[[Tensor], Tensor] = "identity",
        bias: bool = True,
        l2: float = 0.0,
        loss: Callable[[Tensor, Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__(bias)
        if isinstance(phi, str) and phi not in LINKS:
            raise InputError(f"GLM: phi={phi!r}.", f"one of {', '.join(map(repr, LINKS))}, or a function")
        if not isinstance(phi, str) and not callable(phi):
            raise InputError(f"GLM: phi is a {type(phi).__name__}.", "the name of a link, or a function")
        if l2 < 0:
            raise InputError(f"GLM: l2={l2}.", "a penalty of 0 or more")
        self.phi = phi
        self.l2 = l2
        self.loss = loss

    @no_grad()
    def decision_function(self, X: ArrayLike) -> Tensor:
        r"""The scores \(w^\top x + b\)."""
        return super().forward(X)

    def forward(self, X: ArrayLike) -> Tensor:
        mean = LINKS[self.phi].mean if isinstance(self.phi, str) else self.phi
        return mean(super().forward(X))

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        method: str | None = None,
        lr: float = 0.1,
        max_iter: int | None = None,
        tol: float | None = None,
    ) -> Self:
        """Find the parameters for inputs (n, c) and targets (n,) or (n, m), by "newton", "lbfgs" or "gradient"."""
        X = as_examples("GLM", X)
        y = as_targets("GLM", y, X)
        if isinstance(self.phi, str):
            low, high = LINKS[self.phi].low, LINKS[self.phi].high
            if not np.all((y.numpy() >= low) & (y.numpy() <= high)):
                raise InputError(f"GLM: the mean of {self.phi!r} cannot be every target.", f"from {low:g} to {high:g}")
        settings: dict[str, Any] = {"method": method, "lr": lr, "max_iter": max_iter, "tol": tol}
        found = fit_linear("GLM", self._loss, X, y, y.shape[1:], self.bias is not None, self.l2, **settings)
        self._take(found.params, found)
        warn_if_unsettled("GLM", found, "scaled features, a larger max_iter or tol, or l2 > 0")
        return self

    def _loss(self, scores: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.phi, str) and self.loss is None:
            losses = LINKS[self.phi].loss(scores, y)
        else:
            prediction = LINKS[self.phi].mean(scores) if isinstance(self.phi, str) else self.phi(scores)
            losses = 0.5 * arrays.square(prediction - y) if self.loss is None else self.loss(prediction, y)
        return arrays.sum(arrays.mean(losses, axis=0))

    def extra_repr(self) -> str:
        phi = repr(self.phi) if isinstance(self.phi, str) else getattr(self.phi, "__name__", "function")
        return f"{phi}, {super().extra_repr()}"
