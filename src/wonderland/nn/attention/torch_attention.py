"""PyTorch's `MultiheadAttention` with its arguments and numbers, but one sense of masks: TRUE = MAY ATTEND.

The boolean masks of PyTorch's classes of this family say the opposite (true = hidden), unlike those of its own
`scaled_dot_product_attention`. In Wonderland every mask says who may attend and which tokens are real. A program that
was written for PyTorch gives `~mask`; masks that are evidently of the other sense raise, and floating masks, which are
added to the scores, are the same in both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ... import arrays
from ...arrays import stop_gradient
from ...arrays.conversion import as_real
from ...core import dtypes
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ...transforms.control.loops import runs_in_python
from .. import functional as F  # noqa: N812 - as everybody calls it
from ..layers.linear import Linear
from .multi_head import MultiHeadAttention

__all__ = ["MultiheadAttention"]

Masks: TypeAlias = "ArrayLike | None"


class MultiheadAttention(MultiHeadAttention):
    r"""`MultiHeadAttention` as PyTorch calls it: (query, key, value) to (output, weights). Book, section 10.1.3.

    >>> import wonderland as wl
    >>> layer = wl.nn.MultiheadAttention(16, 4, batch_first=True)
    >>> x, z = wl.ones((2, 5, 16)), wl.ones((2, 7, 16))
    >>> output, weights = layer(x, z, z, key_padding_mask=wl.nn.functional.length_mask([7, 3], 7))
    >>> output.shape, weights.shape
    ((2, 5, 16), (2, 5, 7))

    **Masks have the sense of all of Wonderland, true = may attend or is real, which is not that of this class in
    PyTorch.** `key_padding_mask` (batch, s) says which keys are real, `attn_mask` (t, s), (batch heads, t, s) or
    (batch, heads, t, s) which queries may attend to them; floating ones are added to the scores. A padding mask without
    any true, and an attention mask that is true exactly above the diagonal, are taken for PyTorch's and refused.

    Sequences are (time, batch, features) unless `batch_first`, or without a batch (time, features). The weights are the
    mean over heads, (batch, t, s), all of them with `average_attn_weights=False`, or None with `need_weights=False`,
    which also saves their memory. `kdim` and `vdim` are the features of keys and values. `add_bias_kv` and
    `add_zero_attn` are not offered.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        if add_bias_kv or add_zero_attn:
            raise InputError(
                "MultiheadAttention: add_bias_kv and add_zero_attn.", "a further token among keys and values"
            )
        key = take_key("MultiheadAttention", key)
        same = kdim in (None, embed_dim) and vdim in (None, embed_dim)
        super().__init__(
            embed_dim, num_heads, key_dim=kdim, value_dim=embed_dim if vdim is None else vdim, bias=bias,
            dropout=dropout, fused=same, dtype=dtype, key=key,
        )  # fmt: skip
        self.batch_first = bool(batch_first)
        start_as_there(self, bias, dtype, key)

    if TYPE_CHECKING:

        def __call__(  # type: ignore[override]  # PyTorch's arguments
            self,
            query: ArrayLike,
            key: ArrayLike,
            value: ArrayLike,
            key_padding_mask: ArrayLike | None = None,
            need_weights: bool = True,
            attn_mask: ArrayLike | None = None,
            average_attn_weights: bool = True,
            is_causal: bool = False,
        ) -> tuple[Tensor, Tensor | None]: ...

    def forward(  # type: ignore[override]  # PyTorch's arguments
        self,
        query: ArrayLike,
        key: ArrayLike,
        value: ArrayLike,
        key_padding_mask: ArrayLike | None = None,
        need_weights: bool = True,
        attn_mask: ArrayLike | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        name = self._describe()
        x, z, y = (batch_first(self, name, part) for part in (query, key, value))
        mask, real = masks_of(name, attn_mask, key_padding_mask, self.num_heads, is_causal, x, z)
        found = super().forward(x, z, y, attn_mask=mask, token_mask=real, return_weights=need_weights)
        out, weights = found if isinstance(found, tuple) else (found, None)
        out = arrays.swapaxes(out, 0, 1) if out.ndim == 3 and not self.batch_first else out
        if weights is not None and average_attn_weights:
            weights = arrays.mean(weights, axis=-3)
        return out, weights


def start_as_there(layer: MultiHeadAttention, bias: bool, dtype: DTypeLike | None, key: KeyLike) -> None:
    """Give the projections the initial numbers that they have in PyTorch: Xavier's, and biases of 0."""
    keys = split(take_key("MultiheadAttention", key), 4)
    for name, k in zip(["qkv"] if layer.fused else ["query", "key", "value"], keys, strict=False):
        rows, columns = getattr(layer, name).weight.shape
        setattr(layer, name, Linear(rows, columns, bias, dtype, k, init="xavier_uniform", bias_init="zeros"))
    layer.output = Linear(layer.embed_dim, layer.embed_dim, bias, dtype, keys[3], bias_init="zeros")


def batch_first(layer: object, name: str, x: ArrayLike) -> Tensor:
    """A sequence with the batch as its first axis, if it has one."""
    x = as_real(name, x)
    if x.ndim not in (2, 3):
        raise ShapeError(f"{name}: a sequence of shape {x.shape}.", "(time, features), or three axes with a batch")
    return x if x.ndim == 2 or getattr(layer, "batch_first", True) else arrays.swapaxes(x, 0, 1)


def masks_of(
    name: str, attn_mask: Masks, padding: Masks, heads: int, causal: bool, x: Tensor, z: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    """Who may attend to whom, and which keys are real, as `MultiHeadAttention` takes them, for queries x and keys z."""
    mask = _attention_mask(name, attn_mask, heads, causal, x.shape[-2], z.shape[-2])
    if padding is None:
        return mask, None
    real = arrays.asarray(padding)
    if real.shape != z.shape[:-1]:
        raise ShapeError(f"{name}: a padding mask {real.shape} for keys {z.shape}.", f"{z.shape[:-1]}")
    if dtypes.is_inexact(real.dtype):  # added to the scores of all queries
        added = arrays.expand_dims(real, (-2, -3))
        return (added if mask is None else _sum(mask, added)), None
    if real.size and runs_in_python() and not np.asarray(stop_gradient(real)).any():
        raise InputError(
            f"{name}: a padding mask without any true, so that no token would be real.",
            "true = real, here as everywhere in Wonderland; PyTorch's mask is the other way round: ~mask",
        )
    return mask, real


def _attention_mask(name: str, mask: ArrayLike | None, heads: int, causal: bool, t: int, s: int) -> Tensor | None:
    """Who may attend to whom, as `MultiHeadAttention` takes it."""
    until = F.causal_mask(t, s) if causal else None
    if mask is None:
        return until
    found = arrays.asarray(mask)
    if found.dtype == dtypes.bool_ and found.ndim >= 2 and found.shape[-1] > 1 and runs_in_python():
        values = np.asarray(stop_gradient(found))
        if (values == np.triu(np.ones(values.shape[-2:], bool), 1)).all():
            raise InputError(
                f"{name}: a mask that is true exactly above the diagonal would hide the past and the token itself.",
                "true = may attend, here as everywhere in Wonderland; PyTorch's mask is the other way round: ~mask, "
                "or is_causal=True",
            )
    if found.ndim == 3 and found.shape[0] > 1 and found.shape[0] % heads == 0:  # PyTorch's (batch heads, t, s)
        found = arrays.reshape(found, (-1, heads, *found.shape[1:]))
    if until is None:
        return found
    return found & until if found.dtype == dtypes.bool_ else arrays.where(until, found, -np.inf)


def _sum(mask: Tensor, added: Tensor) -> Tensor:
    return arrays.where(mask, added, -np.inf) if mask.dtype == dtypes.bool_ else mask + added
