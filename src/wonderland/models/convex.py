"""Fitting small models to all their data at once: gradient descent and Newton's method. Book, section 4.1.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import array, trees
from ..arguments import as_int, as_number
from ..array.similarity import sq_norm
from ..errors import InputError, NonFiniteError
from ..tensor import Tensor
from ..transforms.derivatives import hessian
from ..transforms.jit import jit
from ..transforms.reverse import value_and_grad

Loss = Callable[..., Tensor]  # loss(params, *args)
HALVINGS = 40


class ConvergenceWarning(UserWarning):
    """A model stopped before its parameters settled."""


class Minimum(NamedTuple):
    """Where a fit ended, the loss before every step, and whether the parameters settled."""

    params: Any
    losses: np.ndarray[Any, Any]
    converged: bool


@jit
def _step(loss: Loss, params: Any, lr: Any, *args: Any) -> tuple[Any, Tensor, Tensor]:
    value, grads = value_and_grad(loss)(params, *args)
    new = trees.map(lambda w, g: w - lr * g, params, grads)
    moved = sum(sq_norm(a - b) for a, b in zip(trees.leaves(new), trees.leaves(params), strict=True))
    return new, value, array.asarray(moved)


def gradient_descent(
    loss: Loss,
    params: Any,
    *args: Any,
    lr: float,
    max_iter: int = 10_000,
    tol: float = 1e-16,
    name: str = "gradient_descent",
) -> Minimum:
    r"""\(w_{t+1} = w_t - \eta\,\nabla L(w_t)\) until \(\|w_{t+1} - w_t\|^2 < \mathrm{tol}\). Book, E.4.8.

    >>> import wonderland as wl
    >>> found = gradient_descent(lambda w, a: ((w - a) ** 2).sum(), wl.zeros(2), wl.tensor([1.0, 2.0]), lr=0.25)
    >>> found.params, found.converged
    (tensor([1., 2.]), True)

    `loss(params, *args)` is a number; `params` is any tree of tensors. The *squared* norm is compared with `tol`.
    """
    if not as_number(name, "lr", lr) > 0:
        raise InputError(f"{name}: lr={lr}.", "a learning rate above 0")
    losses = []
    for _ in range(_limits(name, max_iter, tol)):
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


def newton(
    loss: Loss, params: Any, *args: Any, max_iter: int = 100, tol: float = 1e-16, name: str = "newton"
) -> Minimum:
    r"""\(w_{t+1} = w_t - |\nabla^2 L|^{-1}\,\nabla L\), with steps halved until the loss falls.

    >>> import wonderland as wl
    >>> found = newton(lambda w: wl.exp(w) - 2 * w, wl.zeros(()))
    >>> print(found.params, found.converged)
    tensor(0.693147) True

    Of the eigenvalues of the Hessian the sizes count, so every step goes down; along flat directions (two equal
    features, the common shift of logits) nothing moves. The rule to stop is that of `gradient_descent`. For some
    hundred parameters: the Hessian is made and factored in every step.
    """
    w, back = trees.ravel(params)
    precision = float(array.finfo(w.dtype).eps)

    def f(w: Tensor) -> Tensor:
        return loss(back(w), *args)

    losses = []
    for _ in range(_limits(name, max_iter, tol)):
        value, gradient = value_and_grad(f)(w)
        losses.append(value.item())
        if not np.isfinite(losses[-1]) or not np.isfinite(gradient.numpy()).all():
            raise NonFiniteError(f"{name}: the loss is {losses[-1]} after {len(losses) - 1} steps.", "scaled data")
        step = _newton_step(hessian(f)(w).numpy(), gradient.numpy(), precision)
        settled = float(step @ step) < tol
        for _ in range(HALVINGS):
            new = w - array.asarray(step, dtype=w.dtype)
            if settled or f(new).item() < losses[-1]:
                break
            step = step / 2
        else:  # rounding is all that is left of the gradient
            settled, new = True, w
        w = new
        if settled:
            break
    return Minimum(back(w), np.array(losses), settled)


def _limits(name: str, max_iter: int, tol: float) -> int:
    if not as_number(name, "tol", tol) >= 0:
        raise InputError(f"{name}: tol={tol}.", "a tolerance of 0 or more")
    return as_int(name, "max_iter", max_iter, least=1)


def _newton_step(H: np.ndarray[Any, Any], g: np.ndarray[Any, Any], precision: float) -> np.ndarray[Any, Any]:
    """|H|^-1 g in float64: eigenvalues by their size, so that the step goes down, and none along flat directions."""
    values, vectors = np.linalg.eigh(H.astype(np.float64))
    size = np.abs(values)
    curved = size > 10 * precision * size.max(initial=1e-300)
    V = vectors[:, curved]
    return V @ ((V.T @ g.astype(np.float64)) / size[curved])
