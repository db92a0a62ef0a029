"""Masks of padded sequences in models: padding must look like the nothing beyond the ends. Book, section 8.2.1.

A mask (..., time) is True at the elements of a sequence and False at its padding. A bias, or a convolution that reaches
into the sequence, puts numbers other than 0 at the padding, so models put the zeros back before every convolution.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import arrays, dtypes
from ..arrays import stop_gradient
from ..arrays.conversion import as_tensor
from ..errors import InputError, ShapeError
from ..tensor import Tensor
from ..transforms.loops import runs_in_python


def as_mask(name: str, mask: Any, shape: tuple[int, ...], least: int = 0) -> Tensor | None:
    """A mask of booleans for sequences of a shape (..., time), or None; each of `least` elements or more.

    >>> as_mask("TextCNN", [[1, 1, 0]], (1, 3))
    tensor([[ True, True, False]])
    """
    if mask is None:
        return None
    mask = as_tensor(name, arrays.asarray(mask))
    if mask.shape != shape:
        raise ShapeError(
            f"{name}: a mask of shape {mask.shape} for sequences of shape {shape}.", f"a mask of shape {shape}"
        )
    if mask.dtype != dtypes.bool_:
        mask = mask != 0
    if least and mask.size and runs_in_python():  # lengths can be looked at
        shortest = int(np.asarray(stop_gradient(mask)).sum(axis=-1).min())
        if shortest < least:
            raise InputError(
                f"{name}: a sequence in the batch has {shortest} elements.", f"sequences of {least} or more"
            )
    return mask


def silenced(x: Tensor, mask: Tensor | None) -> Tensor:
    """x with zeros at the padding; the axes of x after those of the mask are its features.

    >>> import wonderland as wl
    >>> silenced(wl.ones((3, 1)), wl.tensor([True, True, False])).tolist()
    [[1.0], [1.0], [0.0]]
    """
    if mask is None:
        return x
    mask = arrays.reshape(mask, (*mask.shape, *[1] * (x.ndim - mask.ndim)))
    return arrays.where(mask, x, arrays.zeros_like(x))


def pooled(mask: Tensor | None, window: int) -> Tensor | None:
    """The mask after pooling by windows side by side: a window counts if all of it does.

    >>> import wonderland as wl
    >>> pooled(wl.tensor([True, True, True, False, False]), 2)
    tensor([ True, False])
    """
    if mask is None:
        return None
    whole = mask.shape[-1] // window
    parts = arrays.reshape(mask[..., : whole * window], (*mask.shape[:-1], whole, window))
    return arrays.all(parts, axis=-1)
