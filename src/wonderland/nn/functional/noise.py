"""Numbers that are left out at random."""

from __future__ import annotations

from typing import Any

from ... import array
from ...array.conversion import as_real
from ...errors import InputError
from ...random.discrete import bernoulli
from ...tensor import Tensor

__all__ = ["dropout"]


def dropout(x: Any, p: float = 0.5, training: bool = True, *, key: Any = None) -> Tensor:
    r"""\(x \odot b/(1-p)\) with \(b \sim \mathrm{Bernoulli}(1-p)\): each number is 0 with probability p.

    >>> import wonderland as wl
    >>> x = wl.nn.functional.dropout(wl.ones(1000), 0.5, key=wl.random.key(0))
    >>> wl.unique(x), 0.9 < float(x.mean()) < 1.1
    (tensor([0., 2.]), True)

    The mean stays x. Without `training` it is x itself. `key` is a key or a stream; without one the global stream
    gives it. Book, section 9.3.1.
    """
    x = as_real("dropout", x)
    if not 0.0 <= p <= 1.0:
        raise InputError(f"dropout: p={p} is not a probability.", "a number from 0 to 1")
    if not training or p == 0.0:
        return x
    if p == 1.0:
        return array.zeros_like(x)
    return array.where(bernoulli(x.shape, 1.0 - p, key=key), x * (1.0 / (1.0 - p)), 0.0)
