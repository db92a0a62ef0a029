"""Fitting small models to all their data at once. Book, section 4.1.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ... import arrays
from ...arrays.similarity import sq_norm
from ...core import dtypes, trees
from ...core.arguments import as_int, as_number
from ...core.errors import InputError, NonFiniteError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike
from ...optim.minimization import minimize
from ...transforms.jit.jit import jit
from ...transforms.reverse import value_and_grad

Loss = Callable[..., Tensor]  # loss(params, *args)
NEWTON_SIZE = 300  # so many parameters have a Hessian that is cheap to factor


class ConvergenceWarning(UserWarning):
    """A model stopped before its parameters settled."""


class Minimum(NamedTuple):
    """Where a fit ended, the loss before every step, and whether the parameters settled."""

    params: Any  # a tree of tensors
    losses: Array
    converged: bool


def fit_params(
    name: str,
    loss: Loss,
    params: object,
    *args: object,
    method: str | None = None,
    lr: float = 0.1,
    max_iter: int | None = None,
    tol: float | None = None,
) -> Minimum:
    """The parameters with the least `loss(params, *args)`, by one of three methods.

    >>> import wonderland as wl
    >>> found = fit_params("fit", lambda w: wl.exp(w) - 2 * w, wl.zeros(()))
    >>> print(found.params, found.converged)
    tensor(0.693147) True

    - "newton" factors the Hessian in every step; the default up to some hundred parameters;
    - "lbfgs" learns it from gradients; the default above;
    - "gradient" is `settle`, the book's plain descent with rate `lr`.

    `tol` is the norm of the gradient at which the first two stop, and the squared length of a step for the third. These
    two compute in float64 and round the parameters to their dtype at the end.
    """
    size = sum(leaf.size for leaf in trees.leaves(params))
    method = method or ("newton" if size <= NEWTON_SIZE else "lbfgs")
    if method == "gradient":
        tol = 1e-16 if tol is None else tol
        return settle(loss, params, *args, lr=lr, max_iter=max_iter or 10_000, tol=tol, name=name)
    if method not in ("newton", "lbfgs"):
        raise InputError(f"{name}.fit: method={method!r}.", '"newton", "lbfgs" or "gradient"')
    wide = trees.map(_widened, args)  # the last digits of a gradient matter more than time
    found = minimize(
        lambda params: loss(params, *wide),
        trees.map(_widened, params),
        method,
        tol=tol,
        max_iter=max_iter or (100 if method == "newton" else 1000),
        jit=method == "lbfgs",
    )
    if found.reason == "diverged":
        raise NonFiniteError(f"{name}: the loss is {found.value} after {found.steps} steps.", "scaled data")
    narrow = trees.map(lambda x, like: arrays.astype(x, like.dtype), found.x, params)
    # where no step lowers the loss, rounding is all that is left of the gradient
    return Minimum(narrow, np.array(found.values), found.converged or found.reason in ("stalled", "line search"))


def _widened(x: object) -> object:
    """Floating tensors as float64."""
    return arrays.astype(x, dtypes.float64) if isinstance(x, Tensor) and dtypes.is_floating(x.dtype) else x


@jit
def _step(loss: Loss, params: Any, lr: ArrayLike, *args: object) -> tuple[Any, Tensor, Tensor]:
    value, grads = value_and_grad(loss)(params, *args)
    new = trees.map(lambda w, g: w - lr * g, params, grads)
    moved = sum(sq_norm(a - b) for a, b in zip(trees.leaves(new), trees.leaves(params), strict=True))
    return new, value, arrays.asarray(moved)


def settle(
    loss: Loss,
    params: object,
    *args: object,
    lr: float,
    max_iter: int = 10_000,
    tol: float = 1e-16,
    name: str = "settle",
) -> Minimum:
    r"""\(w_{t+1} = w_t - \eta\,\nabla L(w_t)\) until \(\|w_{t+1} - w_t\|^2 < \mathrm{tol}\). Book, E.4.8.

    >>> import wonderland as wl
    >>> found = settle(lambda w, a: ((w - a) ** 2).sum(), wl.zeros(2), wl.tensor([1.0, 2.0]), lr=0.25)
    >>> found.params, found.converged
    (tensor([1., 2.]), True)

    `loss(params, *args)` is a number; `params` is any tree of tensors. The *squared* norm is compared with `tol`.
    """
    if not as_number(name, "lr", lr) > 0:
        raise InputError(f"{name}: lr={lr}.", "a learning rate above 0")
    if not as_number(name, "tol", tol) >= 0:
        raise InputError(f"{name}: tol={tol}.", "a tolerance of 0 or more")
    losses = []
    for _ in range(as_int(name, "max_iter", max_iter, least=1)):
        params, value, moved = _step(loss, params, lr, *args)
        losses.append(value.item())
        if not np.isfinite(losses[-1]) or not np.isfinite(moved.item()):
            raise NonFiniteError(
                f"{name}: the loss is {losses[-1]} after {len(losses) - 1} steps with lr={lr:g}.",
                "a smaller lr, or scaled data",
            )
        if moved.item() < tol:
            return Minimum(params, np.array(losses), True)
    return Minimum(params, np.array(losses), False)
