"""Gradients that are too long are shortened before the step."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from typing import TypeVar

from .. import arrays
from ..core import dtypes, trees
from ..core.arguments import as_number, shown
from ..core.errors import GradientError, InputError, NonFiniteError, TreeError
from ..core.tensor import Tensor, Tracer
from ..nn.module.module import Module
from ..nn.module.parameter import Parameter
from ..transforms.imperative import no_grad

Gradients = TypeVar("Gradients")  # a tree of tensors


def global_norm(tree: object, norm_type: float = 2.0) -> Tensor:
    r"""The norm of all numbers of a tree as one vector, \(\|g\| = \sqrt{\sum_i \|g_i\|^2}\).

    >>> import wonderland as wl
    >>> wl.optim.global_norm({"W": wl.tensor([[3.0, 0.0]]), "b": wl.tensor([4.0])})
    tensor(5.)

    It is added up in float64, so that squares of large float32 numbers do not overflow. `norm_type` is p of the p-norm,
    also inf.
    """
    if not as_number("global_norm", "norm_type", norm_type) > 0:
        raise InputError(f"global_norm: norm_type={norm_type}.", "a number above 0, or inf")
    found = [arrays.asarray(leaf) for leaf in trees.leaves(tree)]
    if not found:
        return arrays.zeros(())
    sizes = [arrays.abs(g) for g in found]
    dtype = arrays.result_type(*[s if dtypes.is_floating(s.dtype) else dtypes.float32 for s in sizes])
    wide = [arrays.astype(s, dtypes.float64) for s in sizes if s.size]
    zero = arrays.zeros((), dtype=dtypes.float64)
    if math.isinf(norm_type):
        total = reduce(arrays.maximum, [arrays.max(s) for s in wide], zero)
    else:
        total = sum((arrays.sum(s**norm_type) for s in wide), zero)
        total = arrays.sqrt(total) if norm_type == 2 else total ** (1.0 / norm_type)
    return arrays.astype(total, dtype)


def clip_grad_norm(
    grads: Gradients, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> tuple[Gradients, Tensor]:
    r"""Gradients times \(\min(1, c/\|g\|)\), and the norm \(\|g\|\) that they had; a function, also inside `jit`.

    >>> import wonderland as wl
    >>> clipped, norm = wl.optim.clip_grad_norm([wl.tensor([30.0, 40.0])], max_norm=5.0)
    >>> print(clipped[0], norm)
    tensor([3., 4.]) tensor(50.)

    All gradients are scaled by the same factor, so the direction stays. A norm that is infinite or not a number makes
    all of them 0 or NaN; `error_if_nonfinite` raises instead, outside of `jit`.
    """
    _check_limit("clip_grad_norm", "max_norm", max_norm)
    grads = trees.map(arrays.asarray, grads)
    norm = global_norm(grads, norm_type)
    if error_if_nonfinite and not isinstance(norm, Tracer) and not math.isfinite(norm.item()):
        raise NonFiniteError(
            f"clip_grad_norm: the norm of the gradients is {norm.item()}.",
            "wl.debug.nans() to find the operation that made it",
        )
    factor = arrays.minimum(max_norm / (arrays.astype(norm, dtypes.float64) + 1e-6), 1.0)
    return trees.map(lambda g: g * arrays.astype(factor, dtypes.real_of(g.dtype)), grads), norm


def clip_grad_value(grads: Gradients, clip_value: float) -> Gradients:
    r"""Gradients cut to \([-c, c]\), number by number; the direction may change.

    >>> import wonderland as wl
    >>> wl.optim.clip_grad_value([wl.tensor([-3.0, 0.5])], 1.0)
    [tensor([-1. ,  0.5])]
    """
    _check_limit("clip_grad_value", "clip_value", clip_value)
    return trees.map(lambda g: arrays.clip(arrays.asarray(g), -clip_value, clip_value), grads)


def clip_grad_norm_(
    parameters: Module | Parameter | Iterable[Parameter],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """`clip_grad_norm` of what `backward()` left in the parameters, in place; returns the norm that they had.

    >>> import wonderland as wl
    >>> w = wl.nn.Parameter([30.0, 40.0])
    >>> (0.5 * w * w).sum().backward()
    >>> wl.optim.clip_grad_norm_([w], max_norm=5.0), w.grad
    (tensor(50.), tensor([3., 4.]))
    """
    found = _with_gradients("clip_grad_norm_", parameters)
    with no_grad():
        clipped, norm = clip_grad_norm([p.grad for p in found], max_norm, norm_type, error_if_nonfinite)
        for p, g in zip(found, clipped, strict=True):
            p.grad = g
    return norm


def clip_grad_value_(parameters: Module | Parameter | Iterable[Parameter], clip_value: float) -> None:
    """`clip_grad_value` of what `backward()` left in the parameters, in place."""
    found = _with_gradients("clip_grad_value_", parameters)
    with no_grad():
        for p, g in zip(found, clip_grad_value([p.grad for p in found], clip_value), strict=True):
            p.grad = g


def adaptive_clip(grads: Gradients, parameters: object, clipping: float = 0.01, eps: float = 1e-3) -> Gradients:
    r"""Every unit's gradient at most \(c\,\max(\|w\|, \varepsilon)\): long only in proportion to its weights.

    >>> import wonderland as wl
    >>> w, g = wl.tensor([[3.0, 0.0], [4.0, 0.0]]), wl.tensor([[1.0, 1.0], [0.0, 0.0]])
    >>> wl.optim.adaptive_clip([g], [w], clipping=0.1, eps=1.0)[0]
    tensor([[0.5, 0.1],
            [0. , 0. ]])

    A unit is a column of a weight matrix (all axes but the last), or a single number of a vector.
    """
    _check_limit("adaptive_clip", "clipping", clipping)
    if isinstance(parameters, Module):
        parameters = {path: p for path, p in parameters.named_parameters() if p.trainable}

    def clip(g: Tensor, w: Tensor) -> Tensor:
        axes = tuple(range(max(g.ndim - 1, 0)))
        size = arrays.norm(g, axis=axes, keepdims=True) if axes else arrays.abs(g)
        limit = clipping * arrays.maximum(arrays.norm(w, axis=axes, keepdims=True) if axes else arrays.abs(w), eps)
        return g * arrays.where(size > limit, limit / arrays.maximum(size, 1e-6), arrays.ones_like(size))

    found, shape = trees.flatten(grads)
    weights = [arrays.asarray(w) for w in trees.leaves(parameters)]
    if [g.shape for g in found] != [w.shape for w in weights]:
        raise TreeError(
            f"adaptive_clip: {len(found)} gradients do not have the shapes of {len(weights)} parameters.",
            "gradients of wl.grad with respect to these parameters",
        )
    return trees.unflatten(shape, [clip(g, w) for g, w in zip(found, weights, strict=True)])


def _check_limit(name: str, what: str, value: object) -> None:
    if not as_number(name, what, value) >= 0:
        raise InputError(f"{name}: {what}={shown(value)}.", f"{what} >= 0")


def _with_gradients(name: str, parameters: Module | Parameter | Iterable[Parameter]) -> list[Parameter]:
    if isinstance(parameters, (Module, Parameter)):
        parameters = parameters.parameters() if isinstance(parameters, Module) else [parameters]
    found = [p for p in parameters if p.grad is not None]
    if not found:
        raise GradientError(f"{name}: no parameter has a gradient.", "loss.backward() first")
    return found
