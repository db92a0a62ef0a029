r"""Penalties on weights: a regularised loss is \(L(w) + \lambda R(w)\), \(\lambda \ge 0\). Book, section 9.2.1.

>>> import wonderland as wl
>>> def loss_of(model, x, y):
...     return wl.nn.functional.mse_loss(model(x), y) + wl.optim.l2(model, 1e-4)

A penalty takes a model, a tree of tensors, or one tensor, and \(\lambda\) as `factor`; with `weights_only` it leaves
out the biases and the parameters of normalisations. With a factor of 0 it is exactly 0. As \(\lambda\) grows, the
solution gets smaller: the bound \(\mu\) of the constrained problem \(\min L(w)\) with \(R(w) \le \mu\) falls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import arrays
from ..core import dtypes, trees
from ..core.arguments import as_number
from ..core.broadcasting import normalize_axes
from ..core.errors import InputError
from ..core.tensor import Tensor
from ..core.typing import Axes
from ..nn.module.module import Module
from .weight_decay import is_weight


def l2(model: object, factor: float = 1.0, *, weights_only: bool = False) -> Tensor:
    r"""\(\lambda \sum_i w_i^2\), with the gradient \(2\lambda w\). Book, section 9.2.1.

    >>> import wonderland as wl
    >>> wl.optim.l2(wl.tensor([1.0, -2.0]), 0.5)
    tensor(2.5)

    Some write \(\frac\lambda2\), and optimizers' `weight_decay` is twice this factor: see `convert_weight_decay`.
    """
    return _sum("l2", model, factor, weights_only, _square)


def l1(model: object, factor: float = 1.0, *, weights_only: bool = False) -> Tensor:
    r"""\(\lambda \sum_i |w_i|\), which prefers weights that are exactly zero. Book, section 9.2.1.

    >>> import wonderland as wl
    >>> wl.optim.l1(wl.tensor([1.0, -2.0]), 0.5)
    tensor(1.5)

    The derivative at 0 is taken as 0. Gradient steps jump around zero; `soft_threshold` after every step reaches it.
    """
    return _sum("l1", model, factor, weights_only, lambda w: arrays.sum(arrays.abs(w)))


def elastic_net(model: object, factor: float = 1.0, ratio: float = 0.5, *, weights_only: bool = False) -> Tensor:
    r"""\(\lambda\,(\rho \sum_i |w_i| + (1-\rho) \sum_i w_i^2)\), with \(\rho\) the `ratio`.

    >>> import wonderland as wl
    >>> wl.optim.elastic_net(wl.tensor([1.0, -2.0]), 1.0, ratio=0.5)
    tensor(4.)
    """
    if not 0 <= as_number("elastic_net", "ratio", ratio) <= 1:
        raise InputError(f"elastic_net: ratio={ratio}.", "a ratio from 0 to 1")
    linear = l1(model, factor, weights_only=weights_only)
    return ratio * linear + (1.0 - ratio) * l2(model, factor, weights_only=weights_only)


def group_lasso(
    model: object, factor: float = 1.0, axis: Axes = 0, *, by_size: bool = True, weights_only: bool = True
) -> Tensor:
    r"""\(\lambda \sum_g \sqrt{n_g}\,\|w_g\|\): whole groups become zero together. Book, section 9.2.1.

    >>> import wonderland as wl
    >>> wl.optim.group_lasso(wl.tensor([[3.0, 0.0], [4.0, 0.0]]), by_size=False)
    tensor(5.)

    A group extends over `axis`: 0 makes one group of all weights (in, out) that go *into* a unit, 1 one of those that
    come *out* of an input. `by_size` weighs a group of \(n_g\) weights by \(\sqrt{n_g}\). The derivative at a zero
    group is taken as 0.
    """

    def penalty(w: Tensor) -> Tensor:
        axes = normalize_axes("group_lasso", axis, w.ndim)
        size = math.prod(w.shape[a] for a in axes)
        return (math.sqrt(size) if by_size else 1.0) * arrays.sum(arrays.norm(w, axis=axes))

    return _sum("group_lasso", model, factor, weights_only, penalty)


def gaussian_prior(std: float) -> float:
    r"""The factor of `l2` that makes the minimum the MAP estimate for \(w \sim N(0, \sigma^2 I)\):
    \(\lambda = \frac{1}{2\sigma^2}\), beside the negative log-likelihood *summed* over the examples.

    >>> gaussian_prior(0.5)
    2.0
    """
    return 1.0 / (2.0 * _positive("gaussian_prior", "std", std) ** 2)


def laplace_prior(scale: float) -> float:
    r"""The factor of `l1` that makes the minimum the MAP estimate for independent Laplace weights of scale b:
    \(\lambda = 1/b\).

    >>> laplace_prior(0.5)
    2.0
    """
    return 1.0 / _positive("laplace_prior", "scale", scale)


def map_objective(log_likelihood: Callable[..., Tensor], log_prior: Callable[[Any], Tensor]) -> Callable[..., Tensor]:
    r"""\(-\log p(S \mid w) - \log p(w)\): its minimum is the most probable w given the data S. Book, section 9.2.1.

    >>> import wonderland as wl
    >>> objective = wl.optim.map_objective(lambda w, x: -(0.5 * (x - w) ** 2).sum(), lambda w: -0.5 * w**2)
    >>> result = wl.optim.minimize(lambda w: objective(w, wl.tensor([1.0, 2.0, 3.0], wl.float64)), 0.0)
    >>> print(f"{result.x.item():.3f}")  # the sum over n + 1
    1.500

    `log_likelihood(w, *data)` is summed over the examples; `log_prior(w)` may be the `log_prob` of a distribution.
    """

    def objective(w: object, *data: object) -> Tensor:
        return -log_likelihood(w, *data) - log_prior(w)

    return objective


def _sum(name: str, model: object, factor: float, weights_only: bool, penalty: Callable[[Tensor], Tensor]) -> Tensor:
    if not as_number(name, "factor", factor) >= 0 or math.isinf(factor):
        raise InputError(f"{name}: factor={factor}.", "a factor of 0 or more")
    found = weights_of(model, weights_only)
    if not found or not factor:
        return arrays.zeros((), dtype=dtypes.real_of(found[0].dtype) if found else None)
    total = sum((penalty(w) for w in found[1:]), penalty(found[0]))
    return factor * total


def _square(w: Tensor) -> Tensor:
    return arrays.sum(w * w) if dtypes.is_floating(w.dtype) else arrays.sum(arrays.abs(w) ** 2)


def weights_of(model: object, weights_only: bool = False) -> list[Tensor]:
    """The tensors that a penalty acts on.

    >>> import wonderland as wl
    >>> [w.shape for w in weights_of(wl.nn.Linear(2, 3), weights_only=True)]
    [(2, 3)]
    """
    if isinstance(model, Module):
        named = [(path, p) for path, p in model.named_parameters() if p.trainable]
        return [p for path, p in named if not weights_only or is_weight(model, path, p)]
    found = [arrays.asarray(leaf) for leaf in trees.leaves(model)]
    return [w for w in found if dtypes.is_inexact(w.dtype)]


def _positive(name: str, what: str, value: float) -> float:
    if not as_number(name, what, value) > 0:
        raise InputError(f"{name}: {what}={value}.", f"{what} above 0")
    return float(value)
