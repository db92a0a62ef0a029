"""How the weights of recurrent cells and layers start. Book, section 13.2.2; notes, section 5.2."""

from __future__ import annotations

import math
from collections.abc import Callable

from ... import arrays
from ...core.dtypes import DType
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...random.continuous import uniform
from ...random.keys import split
from ..init.naming import InitializerLike, as_initializer


def as_start(name: str, init: InitializerLike | None) -> Callable[..., Tensor] | None:
    """The initialiser of the matrices that meet the state; "identity" is "eye".

    >>> as_start("RNNCell", "identity")
    eye()
    """
    if init is None:
        return None
    return as_initializer(name, "eye" if init == "identity" else init)


def uniform_start(shape: tuple[int, ...], hidden: int, key: Tensor, dtype: DType) -> Tensor:
    r"""Uniform between \(-1/\sqrt h\) and \(1/\sqrt h\), as PyTorch draws all parameters of recurrent layers."""
    bound = 1 / math.sqrt(hidden)
    return uniform(shape, -bound, bound, key=key, dtype=dtype)


def state_start(
    shape: tuple[int, int], blocks: int, init: Callable[..., Tensor] | None, hidden: int, key: Tensor, dtype: DType
) -> Tensor:
    """The weight from the state to `blocks` gates side by side; with an `init` each of them starts for itself."""
    if init is None:
        return uniform_start(shape, hidden, key, dtype)
    each = (shape[0], shape[1] // blocks)
    return arrays.concat([init(each, key=part, dtype=dtype) for part in split(key, blocks)], axis=1)


def with_forget_bias(name: str, bias: Tensor | None, hidden: int, block: int, value: float) -> Tensor:
    """A bias whose part for the forget gate has one value, so that a memory is kept from the beginning."""
    if bias is None:
        raise InputError(f"{name}: forget_bias={value} without a bias.", "bias=True")
    return bias.at[block * hidden : (block + 1) * hidden].set(value)
