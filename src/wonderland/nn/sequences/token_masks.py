"""Which tokens of padded sequences are real, and at which places they stand. Book, sections 8.2.1 and 11.1.3.

A mask (..., time) is True at the elements of a sequence and False at its padding, wherever that is. A bias, or a layer
that reaches into the sequence, puts numbers other than 0 at the padding, so models put the zeros back before layers
that mix tokens: padding must look like the nothing beyond the ends.
"""

from __future__ import annotations

import numpy as np

from ... import arrays
from ...arrays import stop_gradient
from ...arrays.conversion import as_real, as_tensor
from ...core import dtypes
from ...core.errors import DTypeError, InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...transforms.control.loops import runs_in_python
from ..functional.attention_masks import length_mask
from ..module.module import Module


def as_sequence(layer: Module, x: ArrayLike, features: int | None = None) -> Tensor:
    """Tokens (..., time, features) of a layer's input; how many features, if the layer knows."""
    x = as_real(type(layer).__name__, x)
    if x.ndim < 2 or (features is not None and x.shape[-1] != features):
        raise ShapeError(
            f"{layer._describe()}: an input of shape {x.shape}.",
            f"tokens (..., time, {'features' if features is None else features})",
        )
    return x


def as_mask(
    name: str, mask: ArrayLike | None, shape: tuple[int, ...], least: int = 0, what: str = "mask"
) -> Tensor | None:
    """A mask of booleans for sequences of a shape (..., time), or None; each of `least` elements or more.

    >>> as_mask("TextCNN", [[1, 1, 0]], (1, 3))
    tensor([[ True, True, False]])
    """
    if mask is None:
        return None
    mask = as_tensor(name, arrays.asarray(mask))
    if mask.shape != shape:
        raise ShapeError(
            f"{name}: a {what} of shape {mask.shape} for sequences of shape {shape}.", f"a {what} of shape {shape}"
        )
    if dtypes.is_inexact(mask.dtype):
        raise DTypeError(f"{name}: a {what} of {mask.dtype}.", "bools, true where a token is real")
    if mask.dtype != dtypes.bool_:
        mask = mask != 0
    if least and mask.size and runs_in_python():  # lengths can be looked at
        shortest = int(np.asarray(stop_gradient(mask)).sum(axis=-1).min())
        if shortest < least:
            raise InputError(
                f"{name}: a sequence in the batch has {shortest} elements.", f"sequences of {least} or more"
            )
    return mask


def as_token_mask(
    name: str, shape: tuple[int, ...], token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None
) -> Tensor | None:
    """The mask of sequences of a shape (..., time), given as it is or by their lengths; None if all tokens are real.

    >>> as_token_mask("TransformerBlock", (2, 3), lengths=[2, 3])
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """
    if lengths is None:
        return as_mask(name, token_mask, shape, what="token_mask")
    if token_mask is not None:
        raise InputError(f"{name}: token_mask and lengths say the same thing.", "one of them")
    counts = as_lengths(name, lengths, shape)
    return length_mask(counts, shape[-1])


def as_lengths(name: str, lengths: ArrayLike, shape: tuple[int, ...]) -> Tensor:
    """How many tokens of each sequence are real, the others being padding at its end; from 0 to the time axis."""
    counts = as_tensor(name, arrays.asarray(lengths))
    if counts.shape != shape[:-1] or not dtypes.is_integer(counts.dtype):
        raise ShapeError(
            f"{name}: lengths of shape {counts.shape} and type {counts.dtype} for sequences of shape {shape}.",
            f"integers of shape {shape[:-1]}, one for each sequence",
        )
    if counts.size and runs_in_python():
        low, high = int(stop_gradient(counts).min()), int(stop_gradient(counts).max())
        if low < 0 or high > shape[-1]:
            raise InputError(
                f"{name}: lengths from {low} to {high} for {shape[-1]} tokens.", f"lengths from 0 to {shape[-1]}"
            )
    return arrays.astype(counts, dtypes.int64)


def places_of(mask: Tensor | None, time: int) -> Tensor:
    """At which place each token stands, counted over the real ones: (..., time), or (time,) if all are real.

    >>> import wonderland as wl
    >>> places_of(wl.tensor([[False, True, True], [True, True, False]]), 3)
    tensor([[0, 0, 1],
            [0, 1, 1]])

    So a sequence has the same places with padding on either side; those of the padding itself mean nothing.
    """
    if mask is None:
        return arrays.arange(time)
    count = arrays.cumulative_sum(arrays.astype(mask, dtypes.int64), axis=-1)
    return arrays.maximum(count - 1, 0)


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
