"""Random numbers: keys at the bottom, streams of keys for programs with state, a global stream for scripts.

    key = wl.random.key(0)                          # a key is two words; the same key gives the same numbers
    x = wl.random.normal((3, 2), key=key)           # eagerly, under jit, batched under vmap, on any machine
    first, second = wl.random.split(key)            # new keys from a key
    stream = wl.random.Stream(0)                    # state: a new key for every draw
    y = wl.random.uniform((3,), key=stream)
    wl.random.seed(0); z = wl.random.randn(3)       # the global stream

Draws of numbers take the shape first; draws of vectors and choices take what they draw from first. `dtype`
and `key` are keywords. A key with leading axes draws for each of its keys, and so does `vmap` over keys.
Book, chapter 1 (notation).
"""

from __future__ import annotations

from typing import Any

from ..core.naming import hints_for as _hints_for
from ..core.tensor import Tensor
from ..core.typing import DTypeLike, KeyLike, ShapeLike
from .continuous import (
    cauchy,
    exponential,
    gumbel,
    laplace,
    logistic,
    normal,
    truncated_normal,
    uniform,
)
from .counts import binomial, poisson
from .discrete import bernoulli, categorical, rademacher, randint
from .gamma_family import beta, dirichlet, gamma
from .keys import fold_in, key, split
from .order import choice, permutation, shuffle
from .streams import Stream, default_stream, manual_seed, seed
from .vectors import multivariate_normal, orthogonal


def rand(*shape: ShapeLike, key: KeyLike = None, dtype: DTypeLike | None = None) -> Tensor:
    """Uniform on [0, 1), with the sizes as arguments.

    >>> import wonderland as wl
    >>> wl.random.rand(2, 3).shape
    (2, 3)
    """
    return uniform(_sizes(shape), key=key, dtype=dtype)


def randn(*shape: ShapeLike, key: KeyLike = None, dtype: DTypeLike | None = None) -> Tensor:
    """Standard normal, with the sizes as arguments.

    >>> import wonderland as wl
    >>> wl.random.randn(2, 3).shape
    (2, 3)
    """
    return normal(_sizes(shape), key=key, dtype=dtype)


def _sizes(shape: tuple[Any, ...]) -> ShapeLike:
    return shape[0] if len(shape) == 1 else shape


# fmt: off
__all__ = [
    "key", "split", "fold_in", "Stream", "default_stream", "seed", "manual_seed", "rand", "randn", "uniform", "normal",
    "truncated_normal", "exponential", "gumbel", "laplace", "logistic", "cauchy", "gamma", "beta", "dirichlet",
    "multivariate_normal", "orthogonal", "randint", "bernoulli", "rademacher", "categorical", "poisson", "binomial",
    "choice", "permutation", "shuffle",
]

_hints_for(globals())
