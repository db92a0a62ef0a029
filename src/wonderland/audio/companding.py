r"""Mu-law: samples as few levels, fine for soft sounds and coarse for loud ones, where the ear does not notice.

    F(x) = sign(x) log(1 + mu |x|) / log(1 + mu),    mu = levels - 1

The levels are the classes that a model such as WaveNet predicts. Book, section 8.3.2.
"""

from __future__ import annotations

import math

from .. import arrays
from ..arrays.conversion import as_real, as_tensor
from ..core.arguments import as_int
from ..core.dtypes import as_dtype, default_float, int64, is_integer
from ..core.errors import DTypeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, DTypeLike
from ..random.arguments import check


def mu_law_compress(x: ArrayLike, quantization_channels: int = 256) -> Tensor:
    r"""\(F(x) = \mathrm{sign}(x)\,\log(1 + \mu|x|) / \log(1 + \mu)\), from [-1, 1] to [-1, 1].

    >>> import wonderland as wl
    >>> wl.audio.mu_law_compress(wl.tensor([-1.0, 0.0, 1.0]))
    tensor([-1.,  0.,  1.])
    """
    x, mu = as_real("mu_law_compress", x), _mu("mu_law_compress", quantization_channels)
    # x times an even function: its derivative at 0 is right, which sign(x) would make 0
    size = arrays.abs(x)
    zero = size == 0
    ratio = arrays.where(zero, mu, arrays.log1p(mu * size) / arrays.where(zero, 1.0, size))
    return x * ratio / math.log1p(mu)


def mu_law_expand(y: ArrayLike, quantization_channels: int = 256) -> Tensor:
    r"""\(F^{-1}(y) = \mathrm{sign}(y)\,((1 + \mu)^{|y|} - 1) / \mu\), the inverse of `mu_law_compress`.

    >>> import wonderland as wl
    >>> wl.audio.mu_law_expand(wl.tensor([-1.0, 0.0, 1.0]))
    tensor([-1.,  0.,  1.])
    """
    y, mu = as_real("mu_law_expand", y), _mu("mu_law_expand", quantization_channels)
    size = arrays.abs(y)
    zero = size == 0
    ratio = arrays.where(zero, math.log1p(mu), arrays.expm1(math.log1p(mu) * size) / arrays.where(zero, 1.0, size))
    return y * ratio / mu


def mu_law_encode(x: ArrayLike, quantization_channels: int = 256) -> Tensor:
    r"""Samples in [-1, 1] as classes \(\lfloor (F(x) + 1)\mu/2 + \frac12 \rfloor\) from 0 to \(\mu\).

    >>> import wonderland as wl
    >>> wl.audio.mu_law_encode(wl.tensor([-1.0, 0.0, 1.0]))
    tensor([  0, 128, 255])
    """
    mu = _mu("mu_law_encode", quantization_channels)
    x = as_real("mu_law_encode", x)
    check("mu_law_encode", "a sample", x, lambda v: abs(v) <= 1, "samples from -1 to 1; x / abs(x).max()")
    levels = arrays.floor((mu_law_compress(x, quantization_channels) + 1.0) * (mu / 2) + 0.5)
    return arrays.astype(levels, int64)


def mu_law_decode(classes: ArrayLike, quantization_channels: int = 256, *, dtype: DTypeLike | None = None) -> Tensor:
    r"""The samples that classes stand for, \(F^{-1}(2c/\mu - 1)\).

    >>> import wonderland as wl
    >>> wl.audio.mu_law_decode(wl.tensor([0, 255]))
    tensor([-1.,  1.])
    """
    mu = _mu("mu_law_decode", quantization_channels)
    classes = as_tensor("mu_law_decode", classes)
    if not is_integer(classes.dtype):
        raise DTypeError(f"mu_law_decode: classes of dtype {classes.dtype}.", "integers; mu_law_expand for numbers")
    check("mu_law_decode", "a class", classes, lambda v: (v >= 0) & (v <= mu), f"classes from 0 to {mu}")
    target = default_float if dtype is None else as_dtype(dtype)
    return mu_law_expand(arrays.astype(classes, target) * (2 / mu) - 1.0, quantization_channels)


def _mu(name: str, quantization_channels: int) -> int:
    return as_int(name, "quantization_channels", quantization_channels, least=2) - 1
