"""The linear model: its function, its parameters, its gradients by hand, and the base of models that fit one.

n is the number of examples, c that of features, m that of outputs or classes. Book, table T.4.1 and section 4.1.2.
"""

# ruff: noqa: F722, F821, UP037 - the strings in annotations are shapes

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from ... import arrays
from ...core import dtypes
from ...core.context import user_level
from ...core.errors import InputError, ModuleError, ShapeError
from ...core.tensor import Tensor, Tracer
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...metrics.regression import R2
from ...nn.module.lazy import Lazy
from ...nn.module.module import Module
from ...nn.module.parameter import Buffer, Held, Parameter
from ...random.continuous import normal
from ...shape.annotations import Float, checked
from ...transforms.imperative import no_grad
from .convex import ConvergenceWarning, Minimum, fit_params
from .points import as_points, fitted

Params = dict[str, Tensor]


@checked
def linear_model(w: Float[Tensor, "c"], b: Tensor | float, X: Float[Tensor, "n c"]) -> Float[Tensor, "n"]:
    r"""\(f(X) = X w + \mathbf 1 b\): one number (n,) per row of X (n, c). Book, E.4.5 and Box C.4.1.

    >>> import wonderland as wl
    >>> linear_model(wl.tensor([1.0, 2.0]), 0.5, wl.tensor([[0.0, 0.0], [1.0, 1.0]]))
    tensor([0.5, 3.5])
    """
    return X @ w + b


def add_bias_column(X: ArrayLike) -> Tensor:
    r"""\([X, \mathbf 1]\): a last feature that is always 1, whose weight is the bias. Book, section 4.1.2.

    >>> import wonderland as wl
    >>> add_bias_column(wl.tensor([[3.0, 4.0]]))
    tensor([[3., 4., 1.]])
    """
    X = arrays.asarray(X)
    if not X.ndim:
        raise ShapeError("add_bias_column: a number has no features.", "an input of shape (..., c)")
    return arrays.concat([X, arrays.ones((*X.shape[:-1], 1), dtype=X.dtype)], axis=-1)


# --- the same model as functions of its parameters. Book, exercises 2 and 3 of chapter 4


def init_linear(
    c: int, m: int | None = None, *, bias: bool = True, key: KeyLike = None, dtype: DTypeLike | None = None
) -> Params:
    r"""Parameters of a linear model: `weight` (c, m) from \(N(0, 1/c)\) and, if asked for, `bias` (m,) of zeros.

    >>> {name: value.shape for name, value in init_linear(4, 3).items()}
    {'weight': (4, 3), 'bias': (3,)}

    Without m there is one output without an axis of its own: `weight` (c,), `bias` ().
    """
    outputs = () if m is None else (m,)
    dtype = dtypes.default_float if dtype is None else dtypes.as_dtype(dtype)
    params = {"weight": normal((c, *outputs), key=key, dtype=dtype) / max(c, 1) ** 0.5}
    return {**params, "bias": arrays.zeros(outputs, dtype=dtype)} if bias else params


def apply_linear(params: Params, X: ArrayLike) -> Tensor:
    r"""\(X W + b\) for inputs (..., c); the bias is left out where there is none. Regression and logits alike.

    >>> import wonderland as wl
    >>> apply_linear({"weight": wl.eye(2)}, wl.ones((3, 2))).shape
    (3, 2)
    """
    scores = arrays.matmul(X, params["weight"])
    return scores + params["bias"] if "bias" in params else scores


def linear_gradients(params: Params, X: ArrayLike, adjoint: ArrayLike) -> Params:
    r"""Gradients by hand: for \(\delta = \partial L/\partial f\) of shape (n, m) or (n,), \(X^\top\delta\) and
    \(\mathbf 1^\top\delta\), for as many parameters as there are.

    >>> import wonderland as wl
    >>> params = {"weight": wl.zeros(2), "bias": wl.zeros(())}
    >>> linear_gradients(params, wl.tensor([[1.0, 2.0]]), wl.tensor([3.0]))
    {'weight': tensor([3., 6.]), 'bias': tensor(3.)}

    The adjoint is \(\frac2n(f - y)\) for the mean squared error and \(\frac1n(\mathrm{softmax}(f) - y)\) for the
    cross-entropy.
    """
    X, adjoint = arrays.asarray(X), arrays.asarray(adjoint)
    grads = {"weight": X.mT @ adjoint}
    return {**grads, "bias": arrays.sum(adjoint, axis=0)} if "bias" in params else grads


# --- models that fit one


class Regressor(Module):
    """A model that predicts numbers (...,) or (..., m) for inputs (..., c); a subclass defines `predict`."""

    @no_grad()
    def predict(self, X: ArrayLike) -> Tensor:
        """The outputs for inputs (..., c)."""
        return self(X)

    @no_grad()
    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        r"""The share \(R^2 = 1 - \sum(y - \hat y)^2 / \sum(y - \bar y)^2\) of the variance that is explained.

        >>> LinearModel.from_weights([2.0]).score([[1.0], [2.0]], [2.0, 4.0])
        1.0
        """
        name = type(self).__name__
        return r2_score(name, self.predict(as_examples(name, X)), y)


class LinearModel(Regressor):
    r"""\(f(x) = w^\top x + b\), so \(f(0) = b\): the base of the models that are fitted. Book, D.4.1.

    >>> import wonderland as wl
    >>> model = LinearModel.from_weights([1.0, 2.0], 0.5)
    >>> model(wl.zeros((3, 2)))
    tensor([0.5, 0.5, 0.5])

    `weight` is (c,) for one number per example, or (c, m) for m of them; they are made by `fit`. A model without a
    bias has `bias=None`. `losses` is the loss before every step of the last fit, if it took steps.
    """

    weight: Held[Parameter]
    bias: Held[Parameter | None]
    losses: Held[Buffer | None]

    def __init__(self, bias: bool = True) -> None:
        self.weight = Lazy()
        self.bias = Lazy() if bias else None
        self.losses = None

    @classmethod
    def from_weights(cls, weight: ArrayLike, bias: ArrayLike | None = None, **settings: Any) -> Self:
        """A model with given parameters instead of fitted ones.

        >>> LinearModel.from_weights([1.0, 2.0]).bias is None
        True
        """
        model = cls(bias=bias is not None, **settings)
        params = {"weight": arrays.asarray(weight)}
        if bias is not None:
            params["bias"] = arrays.asarray(bias, dtype=params["weight"].dtype)
        model._take(params)
        return model

    def forward(self, X: ArrayLike) -> Tensor:
        c = fitted(type(self).__name__, self.weight, "fit(X, y)").shape[0]
        X = arrays.asarray(X)
        if not X.ndim or X.shape[-1] != c:
            raise ShapeError(f"{type(self).__name__}: an input of shape {X.shape}.", f"an input of shape (..., c={c})")
        return apply_linear({k: v for k, v in (("weight", self.weight), ("bias", self.bias)) if v is not None}, X)

    @property
    def coef_(self) -> Tensor:
        """scikit-learn's name of the weight, which there is (m, c)."""
        weight = fitted(type(self).__name__, self.weight, "fit(X, y)")
        return arrays.stop_gradient(weight if weight.ndim == 1 else weight.mT)

    @property
    def intercept_(self) -> Tensor | float:
        """scikit-learn's name of the bias; 0 without one."""
        return 0.0 if self.bias is None else arrays.stop_gradient(self.bias)

    def _take(self, params: Params, minimum: Minimum | None = None) -> None:
        """Make the parameters from what a fit found."""
        if self.bias is None and "bias" in params:
            raise ModuleError(f"{type(self).__name__}: it has no bias.", "bias=True")
        self.weight = Parameter(params["weight"])
        if "bias" in params:
            self.bias = Parameter(params["bias"])
        self.losses = None if minimum is None else Buffer(minimum.losses, persistent=False)

    def extra_repr(self) -> str:
        size = "not fitted" if isinstance(self.weight, Lazy) else f"weight={list(self.weight.shape)}"
        return f"{size}, bias={self.bias is not None}"


def as_examples(name: str, X: ArrayLike) -> Tensor:
    """Inputs (n, c) of known, finite numbers: lists, arrays or tensors; at least one example and one feature.

    >>> as_examples("fit", [[1, 2]]).shape
    (1, 2)
    """
    X = as_points(name, arrays.asarray(X))
    if not X.size:
        raise InputError(f"{name}: {X.shape[0]} examples of {X.shape[1]} features.", "at least one of each")
    return X


def as_targets(name: str, y: ArrayLike, X: Tensor, single: bool = False) -> Tensor:
    """Real targets (n,), or (n, m) unless there is a `single` one, for n examples, as numbers of the dtype of X.

    >>> import wonderland as wl
    >>> as_targets("fit", [1, 2], wl.zeros((2, 3)))
    tensor([1., 2.])
    """
    y = arrays.asarray(y)
    if y.ndim not in (1, 2) or y.shape[0] != X.shape[0]:
        raise ShapeError(
            f"{name}: targets of shape {y.shape} for {X.shape[0]} examples.",
            f"targets of shape ({X.shape[0]},) or ({X.shape[0]}, m)",
        )
    y = arrays.astype(y, X.dtype)
    if not isinstance(y, Tracer) and not np.isfinite(y.numpy()).all():
        raise InputError(f"{name}: some targets are not finite.", "targets without NaN and infinity")
    if single and y.ndim != 1:
        raise ShapeError(f"{name}: targets of shape {y.shape}.", "one target per example, (n,)")
    return y


def r2_score(name: str, prediction: Tensor, y: ArrayLike) -> float:
    """The share of the variance of y that predictions explain; the mean over several outputs."""
    p, t = np.asarray(prediction, np.float64), np.asarray(y, np.float64)
    if p.shape != t.shape or not len(t):
        raise ShapeError(
            f"{name}.score: predictions of shape {p.shape} and targets of shape {t.shape}.", "equal shapes, not empty"
        )
    measure = R2()
    measure.add(p, t)
    if not np.all(measure.spread > 0):
        raise InputError(f"{name}.score: constant targets have no variance to explain.", "targets that differ")
    return float(measure.result())


# --- fits by steps


def standardized(X: Tensor, bias: bool) -> tuple[Tensor, Tensor, Tensor]:
    """X with features of mean 0 (if a bias can make up for it) and scale 1, the means and the scales.

    >>> import wonderland as wl
    >>> standardized(wl.tensor([[1.0], [3.0]]), True)
    (tensor([[-1.],
            [ 1.]]), tensor([2.]), tensor([1.]))
    """
    mean = arrays.mean(X, axis=0) if bias else arrays.zeros(X.shape[1], dtype=X.dtype)
    scale = arrays.sqrt(arrays.mean(arrays.square(X - mean), axis=0))
    scale = arrays.where(scale > 0, scale, 1.0)
    return (X - mean) / scale, mean, scale


def unstandardized(params: Params, mean: Tensor, scale: Tensor) -> Params:
    """Parameters for the features as they were, from those for standardised features."""
    weight = (params["weight"].mT / scale).mT if params["weight"].ndim == 2 else params["weight"] / scale
    return {"weight": weight, "bias": params["bias"] - mean @ weight} if "bias" in params else {"weight": weight}


def fit_linear(
    name: str,
    loss: Callable[..., Tensor],
    X: Tensor,
    y: Tensor,
    outputs: tuple[int, ...],
    bias: bool,
    l2: float,
    method: str | None = None,
    **settings: Any,
) -> Minimum:
    r"""Weights (c, *outputs) and a bias with the least `loss(scores, y)` + \(\frac{l_2}2\|w\|^2\), see `fit_params`.

    But for plain descent the features are standardised on the way, so that their units do not matter.
    """
    start: Params = {"weight": arrays.zeros((X.shape[1], *outputs), dtype=X.dtype)}
    if bias:
        start["bias"] = arrays.zeros(outputs, dtype=X.dtype)
    penalty = arrays.full((X.shape[1],), l2, dtype=X.dtype)
    if method == "gradient":
        return fit_params(name, _penalised, start, loss, X, y, penalty, method=method, **settings)
    Z, mean, scale = standardized(X, bias)
    found = fit_params(name, _penalised, start, loss, Z, y, penalty / arrays.square(scale), method=method, **settings)
    return found._replace(params=unstandardized(found.params, mean, scale))


def _penalised(params: Params, loss: Callable[..., Tensor], X: Tensor, y: Tensor, penalty: Tensor) -> Tensor:
    squares = arrays.square(params["weight"])
    squares = arrays.sum(squares, axis=-1) if squares.ndim == 2 else squares
    return loss(apply_linear(params, X), y) + 0.5 * arrays.sum(penalty * squares)


def warn_if_unsettled(name: str, minimum: Minimum, remedy: str) -> None:
    """Tell the user of a fit that reached its last step before it settled."""
    if not minimum.converged:
        warnings.warn(
            f"{name}: the parameters still move after {len(minimum.losses)} steps. Try {remedy}.",
            ConvergenceWarning,
            stacklevel=user_level(),
        )
