"""Regression with few non-zero weights: the lasso and the elastic net, by proximal gradient descent."""

from __future__ import annotations

from typing import Self

import numpy as np

from ... import arrays
from ...core.arguments import as_int, as_number
from ...core.errors import InputError
from ...core.typing import ArrayLike
from ...optim.proximal import soft_threshold
from .convex import Minimum
from .linear_model import LinearModel, as_examples, as_targets, warn_if_unsettled


class ElasticNet(LinearModel):
    r"""The least \(\frac1{2n}\|y - X w - \mathbf 1 b\|^2 + \alpha\,(\rho\|w\|_1 + \frac{1 - \rho}2\|w\|^2)\).

    >>> X = [[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0]]
    >>> ElasticNet(alpha=0.1, l1_ratio=1.0).fit(X, [2.0, 4.0, 6.0, 8.0]).weight
    parameter([1.92, 0.  ])

    \(\rho\) is `l1_ratio`; the bias is not penalised. Steps of gradient descent alternate with `soft_threshold`, which
    sets small weights to exactly 0, and are accelerated as Nesterov's. They end when the squared length of a step is
    below `tol`.
    """

    def __init__(self, alpha: float = 1.0, l1_ratio: float = 0.5, bias: bool = True) -> None:
        name = type(self).__name__
        if not as_number(name, "alpha", alpha) >= 0 or not 0 <= as_number(name, "l1_ratio", l1_ratio) <= 1:
            raise InputError(f"{name}: alpha={alpha}, l1_ratio={l1_ratio}.", "alpha >= 0 and l1_ratio from 0 to 1")
        super().__init__(bias)
        self.alpha = alpha
        self.l1_ratio = l1_ratio

    def fit(self, X: ArrayLike, y: ArrayLike, max_iter: int = 10_000, tol: float = 1e-16) -> Self:
        """Find the parameters for inputs (n, c) and targets (n,)."""
        name = type(self).__name__
        X = as_examples(name, X)
        y = as_targets(name, y, X, single=True)
        data, target = X.numpy().astype(np.float64), y.numpy().astype(np.float64)
        n, has_bias = len(data), self.bias is not None
        x_mean, y_mean = (data.mean(axis=0), target.mean()) if has_bias else (np.zeros(data.shape[1]), 0.0)
        data, target = data - x_mean, target - y_mean
        l1, l2 = self.alpha * self.l1_ratio, self.alpha * (1 - self.l1_ratio)
        rate = 1 / max(float(np.linalg.norm(data, 2)) ** 2 / n + l2, 1e-300)
        w = ahead = np.zeros(data.shape[1])
        momentum, settled, losses = 1.0, False, []
        for _ in range(as_int(name, "max_iter", max_iter, least=1)):
            residual = data @ w - target
            losses.append(0.5 * residual @ residual / n + l1 * np.abs(w).sum() + 0.5 * l2 * w @ w)
            slope = data.T @ (data @ ahead - target) / n + l2 * ahead
            new = soft_threshold(arrays.asarray(ahead - rate * slope), rate * l1).numpy()
            if (new - w) @ (ahead - new) > 0:  # the momentum points uphill: start again without it
                momentum = 1.0
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            ahead = new + (momentum - 1) / following * (new - w)
            settled = bool((new - w) @ (new - w) < tol)
            w, momentum = new, following
            if settled:
                break
        params = {"weight": arrays.asarray(w, dtype=X.dtype)}
        if has_bias:
            params["bias"] = arrays.asarray(y_mean - x_mean @ w, dtype=X.dtype)
        found = Minimum(params, np.array(losses), settled)
        self._take(params, found)
        warn_if_unsettled(name, found, "scaled features or a larger max_iter")
        return self

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}, l1_ratio={self.l1_ratio}, {super().extra_repr()}"


class Lasso(ElasticNet):
    r"""The least \(\frac1{2n}\|y - X w - \mathbf 1 b\|^2 + \alpha\|w\|_1\): many weights are exactly 0.

    >>> X = [[1.0, 0.0], [2.0, 1.0], [3.0, 0.0], [4.0, 1.0]]
    >>> Lasso(alpha=0.1).fit(X, [2.0, 4.0, 6.0, 8.0]).weight
    parameter([1.92, 0.  ])
    """

    def __init__(self, alpha: float = 1.0, bias: bool = True) -> None:
        super().__init__(alpha, 1.0, bias)
