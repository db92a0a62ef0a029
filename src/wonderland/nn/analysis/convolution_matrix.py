"""Convolutions, pooling and other linear layers as matrices. Book, E.7.5."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ... import arrays
from ...arrays.conversion import as_shape
from ...core import dtypes
from ...core.arguments import as_function
from ...core.errors import InputError, SizeError
from ...core.tensor import Tensor, wrap
from ...core.typing import DTypeLike, ShapeLike
from ..module.module import Module

__all__ = ["conv_matrix"]

LARGEST = 1 << 27  # elements of a matrix


def conv_matrix(layer: Callable[..., Tensor], input_shape: ShapeLike, dtype: DTypeLike | None = None) -> Tensor:
    r"""The matrix T with \(\mathrm{vect}(f(x)) = T\,\mathrm{vect}(x) + \mathrm{vect}(f(0))\) of a linear layer f.

    >>> import wonderland as wl
    >>> w = wl.tensor([1.0, 2.0, 3.0])[:, None, None]
    >>> wl.nn.conv_matrix(lambda x: wl.nn.functional.conv1d(x, w, padding=1), (4, 1))
    tensor([[2., 3., 0., 0.],
            [1., 2., 3., 0.],
            [0., 1., 2., 3.],
            [0., 0., 1., 2.]])

    `input_shape` is that of one example, (*spatial, channels), and both sides are read row by row. A convolution of
    one channel has constant diagonals: it is a Toeplitz matrix (in two dimensions, of blocks that are Toeplitz
    matrices), and its transpose is the matrix of the transposed convolution. Any layer will do that is linear up to a
    bias: average pooling, upsampling, `Unfold`, locally connected layers. For looking at, not for computing: it is
    mostly zeros.
    """
    name = "conv_matrix"
    f, shape = as_function(name, layer), as_shape(name, input_shape)
    size = math.prod(shape)
    if dtype is None:
        cells = layer.parameters() if isinstance(layer, Module) else []
        dtype = next((cell.dtype for cell in cells), dtypes.default_float)
    dtype = dtypes.as_dtype(dtype)
    offset = arrays.asarray(f(arrays.zeros((1, *shape), dtype=dtype)))
    if size * max(size, offset.size) > LARGEST:
        raise SizeError(f"{name}: a matrix of {offset.size} x {size} elements.", "a smaller input")
    columns = arrays.asarray(f(wrap(np.eye(size, dtype=dtype).reshape(size, *shape)))) - offset
    matrix = arrays.matrix_transpose(arrays.reshape(columns, (size, offset.size)))
    # two numbers that are not linear in their sum tell a layer that is not
    probe = np.random.default_rng(0).normal(size=(1, *shape)).astype(dtype)
    found = arrays.reshape(arrays.asarray(f(wrap(probe))) - offset, (-1,))
    wanted = arrays.matmul(matrix, wrap(probe.reshape(-1)))
    scale = float(arrays.max(arrays.abs(wanted))) + 1.0 if wanted.size else 1.0
    if wanted.size and not float(arrays.max(arrays.abs(found - wanted))) <= 1e3 * float(np.finfo(dtype).eps) * scale:
        raise InputError(f"{name}: {_shown(layer)} is not linear.", "a convolution without an activation; model.eval()")
    return matrix


def _shown(layer: object) -> str:
    return layer._describe() if isinstance(layer, Module) else getattr(layer, "__name__", "the function")
