"""The special functions of `wl.special` as probabilities: defined also outside of the support of a variable."""

from __future__ import annotations

from .. import arrays
from ..arrays.conversion import as_real
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..special import betainc, digamma, gammainc
from ..special import betaln as log_beta
from ..special import gammaln as log_gamma

__all__ = ["beta_probability", "digamma", "gamma_probability", "log_beta", "log_gamma"]


def gamma_probability(a: ArrayLike, x: ArrayLike) -> Tensor:
    """`wl.special.gammainc`, and 0 for negative x: a gamma variable is below x with this probability.

    >>> import wonderland as wl
    >>> wl.distributions.gamma_probability(wl.tensor(1.0), wl.tensor([-1.0, 2.0]))
    tensor([0.       , 0.8646647])
    """
    x = as_real("gamma_probability", x)
    below = x < 0
    return arrays.where(below, 0.0, gammainc(a, arrays.where(below, 1.0, x)))


def beta_probability(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Tensor:
    """`wl.special.betainc`, 0 for negative x and 1 for x above 1: a beta variable is below x with this probability.

    >>> import wonderland as wl
    >>> wl.distributions.beta_probability(wl.tensor(2.0), wl.tensor(1.0), wl.tensor([0.5, 3.0]))
    tensor([0.25, 1.  ])
    """
    x = as_real("beta_probability", x)
    below, above = x < 0, x > 1
    found = betainc(a, b, arrays.where(below | above, 0.5, x))
    return arrays.where(below, 0.0, arrays.where(above, 1.0, found))
