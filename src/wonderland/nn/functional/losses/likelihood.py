"""Negative log-likelihoods: the losses that come from saying how targets are distributed. Book, sections 3.2.2, 3.2.3.

Which distribution gives which loss, up to constants: Normal the squared error, Laplace the absolute error, Bernoulli
binary cross-entropy, Categorical cross-entropy, Poisson `poisson_nll_loss`. `nll` takes any distribution.
"""

from __future__ import annotations

import math
from typing import Any

from .... import arrays
from ....core.errors import InputError, ShapeError
from ....core.tensor import Tensor
from ....core.typing import ArrayLike
from ....random.arguments import check
from .reduction import check_same, check_setting, pair, reduced, together

__all__ = ["gaussian_nll_loss", "heteroscedastic_nll_loss", "laplace_nll_loss", "nll", "poisson_nll_loss"]


def nll(distribution: Any, target: ArrayLike, reduction: str = "mean") -> Tensor:
    r"""\(-\ln p(y)\) of a distribution with `log_prob`, such as those of `wl.distributions`. Book, section 3.2.3.

    >>> import wonderland as wl
    >>> f = wl.tensor([[0.2, 0.5, 0.3]])
    >>> print(wl.nn.functional.nll(wl.distributions.Categorical(probs=f), wl.tensor([1])))
    tensor(0.693147)

    Logarithms are summed where probabilities would be multiplied, so many examples do not underflow. A density may
    exceed 1, and the loss is then negative. There is one target for every distribution of a batch (nothing is
    broadcast), and any number for a single one.
    """
    if not hasattr(distribution, "log_prob"):
        raise InputError(
            f"nll: a {type(distribution).__name__} is not a distribution.",
            "one of wl.distributions; nll_loss and cross_entropy take tensors",
        )
    shape = getattr(distribution, "batch_shape", None)
    losses = -distribution.log_prob(target)
    if shape and losses.shape != tuple(shape):
        raise ShapeError(
            f"nll: targets of shape {getattr(target, 'shape', ())} for distributions of shape {tuple(shape)}.",
            "one target for every distribution",
        )
    return reduced("nll", losses, reduction)


def gaussian_nll_loss(
    input: ArrayLike, target: ArrayLike, var: ArrayLike, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    r"""\(\frac12\left(\ln v + \frac{(\mu - y)^2}{v}\right)\), plus \(\frac12\ln 2\pi\) if `full`. Book, section 4.1.1.

    >>> import wonderland as wl
    >>> F = wl.nn.functional
    >>> print(F.gaussian_nll_loss(wl.tensor([1.0]), wl.tensor([0.0]), wl.tensor([4.0]), full=True))
    tensor(1.737086)

    `var` is the variance: of the shape of the means (learned), or one number (fixed; the minimiser is then that of
    `mse_loss`). Variances below `eps` count as `eps`, but keep their derivative, so that they can grow again.
    """
    name = "gaussian_nll_loss"
    mean, target, var = together(name, input, target, var)
    check_same(name, mean, target, "one mean for every target")
    if var.ndim and var.shape != mean.shape:
        raise ShapeError(f"{name}: variances of shape {var.shape} for means of shape {mean.shape}.", "one each, or one")
    check_setting(name, "eps", eps, eps > 0, "eps > 0")
    check(name, "a variance", var, lambda v: v >= 0, "variances of at least 0; softplus or a square makes them so")
    var = var + arrays.stop_gradient(arrays.maximum(var, eps) - var)
    losses = 0.5 * (arrays.log(var) + arrays.square(mean - target) / var)
    return reduced(name, losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


def heteroscedastic_nll_loss(input: ArrayLike, target: ArrayLike, eps: float = 1e-6, reduction: str = "mean") -> Tensor:
    r"""\(-\ln\mathcal N(y;\, f_1, f_2^2)\) of outputs (..., 2) for targets (...): a mean and a spread each.

    >>> import wonderland as wl
    >>> print(wl.nn.functional.heteroscedastic_nll_loss(wl.tensor([[1.0, -2.0]]), wl.tensor([0.0])))
    tensor(1.737086)

    The second output is squared, so its sign does not matter; squares below `eps` count as `eps`. Book, section 3.2.2.
    """
    name = "heteroscedastic_nll_loss"
    output, target = together(name, input, target)
    if not output.ndim or output.shape != (*target.shape, 2):
        raise ShapeError(
            f"{name}: outputs of shape {output.shape} for targets of shape {target.shape}.",
            f"outputs of shape {(*target.shape, 2)}: a mean and a spread for every target",
        )
    return gaussian_nll_loss(output[..., 0], target, arrays.square(output[..., 1]), True, eps, reduction)


def laplace_nll_loss(
    input: ArrayLike,
    target: ArrayLike,
    scale: ArrayLike,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    r"""\(\ln s + |\mu - y|/s\), plus \(\ln 2\) if `full`: the absolute error with a scale. Book, section 4.1.1.

    >>> import wonderland as wl
    >>> print(wl.nn.functional.laplace_nll_loss(wl.tensor([3.0]), wl.tensor([1.0]), wl.tensor([2.0]), full=True))
    tensor(2.386294)

    `scale` is of the shape of the locations or one number; scales below `eps` count as `eps` (see `gaussian_nll_loss`).
    """
    name = "laplace_nll_loss"
    location, target, scale = together(name, input, target, scale)
    check_same(name, location, target, "one location for every target")
    if scale.ndim and scale.shape != location.shape:
        raise ShapeError(f"{name}: scales of shape {scale.shape} for {location.shape}.", "one each, or one")
    check_setting(name, "eps", eps, eps > 0, "eps > 0")
    check(name, "a scale", scale, lambda v: v >= 0, "scales of at least 0; softplus makes them so")
    scale = scale + arrays.stop_gradient(arrays.maximum(scale, eps) - scale)
    losses = arrays.log(scale) + arrays.abs(location - target) / scale
    return reduced(name, losses + math.log(2) if full else losses, reduction)


def poisson_nll_loss(
    input: ArrayLike,
    target: ArrayLike,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    r"""\(e^x - y x\) for counts y, x the logarithm of the rate; \(x - y\ln(x + \varepsilon)\) if it is the rate itself.

    >>> import wonderland as wl
    >>> print(wl.nn.functional.poisson_nll_loss(wl.tensor([0.0]), wl.tensor([3.0])))
    tensor(1.)

    `full` adds Stirling's \(y\ln y - y + \frac12\ln 2\pi y\) for \(\ln y!\) where y > 1.
    """
    name = "poisson_nll_loss"
    x, y = pair(name, input, target)
    check(name, "a count", y, lambda v: v >= 0, "counts of at least 0")
    if log_input:
        losses = arrays.exp(x) - y * x
    else:
        check(name, "a rate", x, lambda v: v >= 0, "rates of at least 0, or log_input=True")
        losses = x - y * arrays.log(x + eps)
    if full:
        many = arrays.where(y > 1, y, 1.0)
        stirling = many * arrays.log(many) - many + 0.5 * arrays.log(2 * math.pi * many)
        losses = losses + arrays.where(y > 1, stirling, 0.0)
    return reduced(name, losses, reduction)
