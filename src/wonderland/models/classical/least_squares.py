"""Least squares and ridge regression, in closed form and by gradient descent. Book, sections 4.1.2 to 4.1.5."""

# ruff: noqa: F722, F821, UP037 - the strings in annotations are shapes

from __future__ import annotations

import warnings
from typing import Self

import numpy as np

from ... import arrays, linalg
from ...arrays.similarity import sq_norm
from ...core.arguments import as_int, as_number
from ...core.context import user_level
from ...core.errors import InputError, LinearAlgebraError
from ...core.tensor import Tensor, Tracer
from ...core.typing import ArrayLike
from ...nn.module.lazy import Lazy
from ...nn.module.parameter import Buffer, Held
from ...random.continuous import normal
from ...shape.annotations import Float, checked
from ...transforms.control.loops import fori_loop, while_loop
from .convex import settle
from .linear_model import (
    LinearModel,
    Params,
    add_bias_column,
    apply_linear,
    as_examples,
    as_targets,
    linear_model,
    warn_if_unsettled,
)

State = tuple[Tensor, Tensor, Tensor]  # of a descent: the weights, how far they moved, how many steps there were


class IllConditionedWarning(UserWarning):
    """Features that depend on each other so much that least squares has no single, or no exact, answer."""


@checked
def ls_loss(w: Float[Tensor, "c"], b: Tensor | float, X: Float[Tensor, "n c"], y: Float[Tensor, "n"]) -> Tensor:
    r"""\(\frac1n\,\|y - X w - \mathbf 1 b\|^2\). Book, D.4.2 and E.4.6.

    >>> import wonderland as wl
    >>> print(ls_loss(wl.ones(2), 0.0, wl.eye(2), wl.tensor([1.0, 3.0])))
    tensor(2.)

    The gradient with respect to w is \(\frac2n X^\top(X w + \mathbf 1 b - y)\).
    """
    return arrays.mean(arrays.square(y - linear_model(w, b, X)))


@checked
def ls_solve(X: Float[Tensor, "n c"], y: Float[Tensor, "n ..."], numerically_stable: bool = True) -> Tensor:
    r"""The w of the normal equations \(X^\top X\,w = X^\top y\). Book, E.4.7 and Box C.4.2.

    >>> import wonderland as wl
    >>> X = wl.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> ls_solve(X, wl.tensor([1.0, 3.0, 5.0]))
    tensor([1., 2.])

    y is (n,) or (n, m). With `numerically_stable=False` the inverse is made, as \((X^\top X)^{-1} X^\top y\) reads,
    which loses more digits. \(X^\top X\) has the *squared* condition number of X, so dependent features make it
    singular: then a warning, or an error, names `ridge_solve` and `wl.linalg.lstsq`, which always have an answer.
    The cost is \(O(c^2 n)\) for the products and \(O(c^3)\) for the solution.
    """
    _warn_of_condition("ls_solve", X, squared=True)
    gram = X.mT @ X
    try:
        return linalg.solve(gram, X.mT @ y) if numerically_stable else linalg.inv(gram) @ (X.mT @ y)
    except LinearAlgebraError as error:
        raise LinearAlgebraError(
            "ls_solve: X.T @ X is singular, as a feature is a combination of others.",
            "ridge_solve(X, y, lam), or the shortest solution wl.linalg.lstsq(X, y).x = wl.linalg.pinv(X) @ y",
        ) from error


@checked
def ridge_solve(X: Float[Tensor, "n c"], y: Float[Tensor, "n ..."], lam: float, bias: bool = False) -> Tensor:
    r"""\((X^\top X + \lambda I)^{-1} X^\top y\), the minimum of \(\|y - X w\|^2 + \lambda\|w\|^2\).

    >>> import wonderland as wl
    >>> X = wl.tensor([[1.0, 1.0], [2.0, 2.0]])
    >>> ridge_solve(X, wl.tensor([2.0, 4.0]), 1e-6)
    tensor([1., 1.])

    For \(\lambda > 0\) it exists for every X. Note the normalisation: of an objective \(\frac1n\|y - X w\|^2 +
    \mu\|w\|^2\) the minimum is that of \(\lambda = n\mu\). It is the most probable w after the data, for a prior
    \(w \sim N(0, t^2 I)\) and noise of variance \(s^2\), with \(\lambda = s^2/t^2\). With `bias` a feature that is
    always 1 is added behind the others; its weight, the last, is not penalised. Book, section 4.1.5.
    """
    if not isinstance(lam, Tracer) and not as_number("ridge_solve", "lam", lam) >= 0:
        raise InputError(f"ridge_solve: lam={lam}.", "a penalty of 0 or more")
    c = X.shape[1]
    penalised = arrays.arange(c + bias) < c
    X = add_bias_column(X) if bias else X
    penalty = arrays.diag(arrays.astype(penalised, X.dtype)) * lam
    try:
        return linalg.solve(X.mT @ X + penalty, X.mT @ y)
    except LinearAlgebraError as error:
        raise LinearAlgebraError(
            f"ridge_solve: X.T @ X + {lam} I is singular.", "a larger lam, or wl.linalg.lstsq(X, y).x"
        ) from error


@checked
def ls_gd(
    X: Float[Tensor, "n c"],
    y: Float[Tensor, "n 1"],
    lr: float = 1e-3,
    max_iter: int = 15_000,
    tol: float | None = None,
    w: Float[Tensor, "c 1"] | None = None,
    key: Tensor | None = None,
) -> Float[Tensor, "c 1"]:
    r"""Gradient descent \(w \leftarrow w + \eta X^\top(y - X w)\) from random w. Book, Box C.4.3.

    >>> import wonderland as wl
    >>> X = wl.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> w = ls_gd(X, wl.tensor([[1.0], [3.0], [5.0]]), lr=0.1, max_iter=1000)
    >>> bool(wl.allclose(w, wl.tensor([[1.0], [2.0]]), atol=1e-4))
    True

    y is (n, 1) and so is X w: targets (n,) would make differences (n, n), and are refused. The gradient is that of
    the *sum* of squares, halved, so the largest safe rate \(2/\lambda_{\max}(X^\top X)\) shrinks with n. X w comes
    first, which costs O(nc) in every step; \((X^\top X)w\) would cost \(O(nc^2)\). With `tol` it stops when
    \(\|w_{t+1} - w_t\|^2 < \mathrm{tol}\) (book, E.4.8).
    """
    steps = as_int("ls_gd", "max_iter", max_iter, least=0)
    w = normal((X.shape[1], 1), key=key, dtype=X.dtype) if w is None else w

    def step(w: Tensor) -> Tensor:
        return w + lr * (X.mT @ (y - X @ w))

    if tol is None:
        return fori_loop(0, steps, lambda _, w: step(w), w)

    def going(state: State) -> Tensor:
        _, moved, t = state
        return (moved >= tol) & (t < steps)

    def further(state: State) -> State:
        w, _, t = state
        new = step(w)
        return new, sq_norm(new - w), t + 1

    return while_loop(going, further, (w, arrays.asarray(np.inf, dtype=X.dtype), arrays.asarray(0)))[0]


def ls_dual_weights(X: ArrayLike, x_new: ArrayLike) -> Tensor:
    r"""The weights \(a(x) = x^\top X^+\) with which training targets enter a prediction: \(\hat y = a(x)^\top y\).

    >>> import wonderland as wl
    >>> X = wl.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> wl.round(100 * ls_dual_weights(X, wl.tensor([1.0, 2.0]))) / 100
    tensor([-0.17,  0.33,  0.83])

    x_new is (..., c) and the result (..., n). Large weights point at the training examples that a prediction rests
    on; at the training inputs together they are the projection \(M = X X^+\). Book, section 4.1.3.
    """
    return arrays.asarray(x_new) @ linalg.pinv(arrays.asarray(X))


def _warn_of_condition(name: str, X: Tensor, squared: bool = False) -> None:
    """Warn if X (or the matrix X.T @ X, whose condition number is squared) is singular to working precision."""
    if isinstance(X, Tracer) or not X.size:
        return
    values = np.linalg.svd(np.asarray(X, np.float64), compute_uv=False)
    unit = float(arrays.finfo(X.dtype).eps)
    floor = values[0] * (np.sqrt(unit) if squared else max(X.shape) * unit)
    rank = int((values > floor).sum())
    if rank < X.shape[1]:
        condition = values[0] / values[-1] if len(values) == X.shape[1] and values[-1] else np.inf
        warnings.warn(
            f"{name}: the {X.shape[1]} features are worth {rank} in {X.dtype} (condition number {condition:.1e}), so "
            "weights are not determined by the data. Try ridge (ridge_solve, Ridge), fewer features, or the shortest "
            "solution, wl.linalg.pinv(X) @ y.",
            IllConditionedWarning,
            stacklevel=user_level(),
        )


# --- models


class LinearRegression(LinearModel):
    r"""\(\hat y = w^\top x + b\) with the least \(\frac1n\sum_i (y_i - \hat y_i)^2\). Book, sections 4.1.2 and 4.1.3.

    >>> model = LinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> print(model.weight, model.bias, model.predict([[10.0]]))
    parameter([2.]) parameter(1.) tensor([21.])

    Targets (n,) give weights (c,), several outputs (n, m) give (c, m). `sigma2` is the most likely variance of the
    noise, the mean squared error on the data (book, E.4.9; without Bessel's correction).

    `fit(X, y, method="closed")` solves; `method="gradient"` descends with rate `lr` (by default one over the largest
    curvature, which cannot diverge) until the squared length of a step is below `tol`.
    """

    sigma2: Held[Buffer]

    def __init__(self, bias: bool = True) -> None:
        super().__init__(bias)
        self.sigma2 = Lazy()

    penalty = 0.0

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        method: str = "closed",
        lr: float | None = None,
        max_iter: int = 10_000,
        tol: float = 1e-16,
    ) -> Self:
        """Find the parameters for inputs (n, c) and targets (n,) or (n, m)."""
        name = type(self).__name__
        X = as_examples(name, X)
        y = as_targets(name, y, X)
        has_bias = self.bias is not None
        if method == "closed":
            if not self.penalty:
                _warn_of_condition(name, add_bias_column(X) if has_bias else X)
            # around the means the best bias is 0, whatever the weights, and the constant feature is gone
            x_mean, y_mean = (arrays.mean(a, axis=0) if has_bias else 0.0 for a in (X, y))
            centred, targets = X - x_mean, y - y_mean
            w = ridge_solve(centred, targets, self.penalty) if self.penalty else linalg.lstsq(centred, targets).x
            self._take({"weight": w, "bias": y_mean - x_mean @ w} if has_bias else {"weight": w})
        elif method == "gradient":
            start: Params = {"weight": arrays.zeros((X.shape[1], *y.shape[1:]), dtype=X.dtype)}
            if has_bias:
                start["bias"] = arrays.zeros(y.shape[1:], dtype=X.dtype)
            penalty = self.penalty / X.shape[0]
            if lr is None:
                lr = 1 / (2 * (largest_curvature(X, has_bias) + penalty))
            found = settle(_penalised_error, start, X, y, penalty, lr=lr, max_iter=max_iter, tol=tol, name=name)
            self._take(found.params, found)
            warn_if_unsettled(name, found, 'scaled features, a larger max_iter, or method="closed"')
        else:
            raise InputError(f"{name}.fit: method={method!r}.", '"closed" or "gradient"')
        self.sigma2 = Buffer(arrays.mean(arrays.square(y - self.predict(X)), axis=0))
        return self


class Ridge(LinearRegression):
    r"""The least \(\|y - X w - \mathbf 1 b\|^2 + \alpha\|w\|^2\); the bias is not penalised. Book, section 4.1.5.

    >>> model = Ridge(alpha=1.0).fit([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], [0.0, 2.0, 4.0])
    >>> print(model.weight, model.bias)
    parameter([0.8, 0.8]) parameter(0.4)

    As in `ridge_solve`, alpha counts against the *sum* of squares. It exists for dependent features too.
    """

    def __init__(self, alpha: float = 1.0, bias: bool = True) -> None:
        if not as_number("Ridge", "alpha", alpha) >= 0:
            raise InputError(f"Ridge: alpha={alpha}.", "a penalty of 0 or more")
        super().__init__(bias)
        self.alpha = alpha
        self.penalty = alpha

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}, {super().extra_repr()}"


def _penalised_error(params: Params, X: Tensor, y: Tensor, penalty: float) -> Tensor:
    """The error per output, summed: outputs do not share their rate with the number of them."""
    error = arrays.sum(arrays.mean(arrays.square(y - apply_linear(params, X)), axis=0))
    return error + penalty * sq_norm(params["weight"])


def largest_curvature(X: Tensor, bias: bool) -> float:
    r"""The largest eigenvalue of \(\frac1n X^\top X\), with the constant feature if there is a bias.

    >>> import wonderland as wl
    >>> largest_curvature(wl.tensor([[3.0], [3.0]]), False)
    9.0
    """
    data = (add_bias_column(X) if bias else X).numpy().astype(np.float64)
    return max(float(np.linalg.norm(data, 2) ** 2 / len(data)), np.finfo(np.float64).tiny)
