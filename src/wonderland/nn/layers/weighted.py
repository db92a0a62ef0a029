"""What layers with a weight and a bias share: how both start, now or when the first input tells the sizes."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import DTypeError
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..init.naming import InitializerLike, as_initializer
from ..init.schemes import uniform
from ..module.lazy import Lazy, at_once, set_together
from ..module.module import Module
from ..module.parameter import Held, Parameter


class Weighted(Module):
    """A layer with a weight and perhaps a bias: `_wait` says how they start, and `_make` makes them."""

    weight: Held[Parameter]
    bias: Held[Parameter | None]
    dtype: DType
    _key: Tensor | None
    _init: Callable[..., Tensor] | None
    _bias_init: Callable[..., Tensor] | None

    def _wait(
        self,
        name: str,
        bias: bool,
        key: KeyLike,
        init: InitializerLike | None = None,
        bias_init: InitializerLike | None = None,
    ) -> None:
        """Places for the parameters, and what will be needed to make them."""
        self.weight = Lazy()
        self.bias = Lazy() if bias else None
        self._init = None if init is None else as_initializer(name, init)
        self._bias_init = None if bias_init is None else as_initializer(name, bias_init)
        self._key = take_key(name, key)

    def _make(self, shape: tuple[int, ...], bias_shape: tuple[int, ...], inputs: int, **sizes: object) -> None:
        r"""The parameters, by default from \(U(-1/\sqrt{c}, 1/\sqrt{c})\) with c inputs of an output.

        `sizes` are the attributes that tell that they are made: an interrupted layer has all of it or nothing.
        """
        bound = 1 / math.sqrt(max(inputs, 1))
        start = uniform(-bound, bound)
        with at_once(self._key):
            assert self._key is not None  # they are made once
            keys = split(self._key, 2)
            weight = Parameter((self._init or start)(shape, key=keys[0], dtype=self.dtype))
            bias = None
            if self.bias is not None:
                bias = Parameter((self._bias_init or start)(bias_shape, key=keys[1], dtype=self.dtype))
        set_together(self, weight=weight, bias=bias, _key=None, _init=None, _bias_init=None, **sizes)


def as_weight_dtype(name: str, dtype: DTypeLike | None, remedy: str = "a floating dtype") -> DType:
    """The dtype of parameters that start from random numbers.

    >>> as_weight_dtype("Linear", "float64")
    dtype('float64')
    """
    wanted = dtypes.default_float if dtype is None else dtypes.as_dtype(dtype)
    if not dtypes.is_floating(wanted):
        raise DTypeError(f"{name}: parameters do not start from random numbers of {wanted}.", remedy)
    return wanted
