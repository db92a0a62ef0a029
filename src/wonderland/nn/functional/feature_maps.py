"""Functions whose inner products are kernels: what makes attention linear in the number of tokens. Book, 13.1.1."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from itertools import combinations_with_replacement

import numpy as np

from ... import arrays
from ...arrays.conversion import as_real
from ...core.arguments import as_int, as_number
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike

__all__ = ["elu_plus_one", "polynomial_features"]


def elu_plus_one(x: ArrayLike) -> Tensor:
    r"""\(\phi(x) = \operatorname{ELU}(x) + 1\): x + 1 where x is positive, else \(e^x\), so never 0. Book, 13.1.1.

    >>> import wonderland as wl
    >>> wl.nn.functional.elu_plus_one(wl.tensor([-2.0, 0.0, 2.0]))
    tensor([0.135335, 1.      , 3.      ])

    At 0 its value and its slope are 1 from both sides. Inner products of such features are positive.
    """
    x = as_real("elu_plus_one", x)
    # the exponential itself: elu(x) + 1 would round what is far below zero to nothing
    return arrays.where(x > 0, x + 1, arrays.exp(arrays.where(x > 0, 0.0, x)))


@cache
def monomials(c: int, degree: int) -> tuple[Array, Array]:
    """Which factors the monomials up to a degree have, (size, degree) numbers of [1, x_1, ..., x_c], and how often each
    comes up when the sum of all c + 1 is raised to that degree."""
    factors = list(combinations_with_replacement(range(c + 1), degree))
    counts = [math.factorial(degree) / math.prod(map(math.factorial, Counter(f).values())) for f in factors]
    return np.array(factors, dtype=np.int64).reshape(len(factors), degree), np.array(counts)


def polynomial_features(x: ArrayLike, degree: int = 2, offset: float = 1.0) -> Tensor:
    r"""All monomials up to a degree d, so that \(\phi(x) \cdot \phi(y) = (a + x \cdot y)^d\). Book, 13.1.1.

    >>> import wonderland as wl
    >>> phi = wl.nn.functional.polynomial_features
    >>> x, y = wl.tensor([1.0, 2.0]), wl.tensor([3.0, -1.0])
    >>> phi(x).shape, f"{(phi(x) * phi(y)).sum().item():.4f}"  # (1 + 1)^2
    ((6,), '4.0000')

    (..., c) becomes (..., \(\binom{c+d}{d}\)); with `degree` 2 this is the quadratic expansion. Each monomial has the
    square root of its multinomial coefficient as a factor: without those, inner products are no power. `offset` is a,
    not below 0. For an odd degree the kernel may be negative.
    """
    x = as_real("polynomial_features", x)
    d = as_int("polynomial_features", "degree", degree, 1)
    a = float(as_number("polynomial_features", "offset", offset))
    if not 0 <= a < math.inf:
        raise InputError(f"polynomial_features: offset={offset}.", "a number not below 0")
    if not x.ndim:
        raise ShapeError("polynomial_features: a number without an axis of features.", "(..., features)")
    factors, counts = monomials(x.shape[-1], d)
    first = arrays.full((*x.shape[:-1], 1), math.sqrt(a), dtype=x.dtype)
    terms = arrays.concat([first, x], axis=-1)
    out = arrays.asarray(np.sqrt(counts), dtype=x.dtype)
    for j in range(d):
        out = out * arrays.take(terms, factors[:, j], axis=-1)
    return out
