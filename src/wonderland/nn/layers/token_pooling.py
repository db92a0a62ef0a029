"""One vector for a whole sequence: the mean, sum or maximum over its real tokens, or attention. Notes, 5.6.4."""

from __future__ import annotations

from ... import arrays
from ...core import dtypes
from ...core.arguments import as_int, shown
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike
from .. import functional as F  # noqa: N812 - as everybody calls it
from ..module.module import Module
from ..module.parameter import Parameter
from ..sequences.token_masks import as_sequence, as_token_mask, silenced

__all__ = ["TokenPool"]

KINDS = ("mean", "sum", "max", "attention")


class TokenPool(Module):
    r"""\(s = \frac{1}{n}\sum_i h_i\) over the real tokens: (..., n, e) to (..., e). Book, section 10.3.1.

    >>> import wonderland as wl
    >>> h = wl.tensor([[1.0, 5.0], [3.0, 1.0], [float("nan"), 9.0]])
    >>> [wl.nn.TokenPool(kind, 2)(h, lengths=2).tolist() for kind in ("mean", "sum", "max", "attention")]
    [[2.0, 3.0], [4.0, 6.0], [3.0, 5.0], [2.0, 3.0]]

    `kind` is "mean", "sum", "max" or "attention": \(\sum_i \alpha_i h_i\) with
    \(\alpha = \operatorname{softmax}(H q/\sqrt{e})\) and a trained query q (e,), which starts from 0, that is from the
    mean. All of them are the same for every order of the tokens. Padding, said by `token_mask` or `lengths`, counts for
    nothing, and a sequence without any token gives zeros. Notes, section 5.6.4.
    """

    def __init__(self, kind: str = "mean", e: int | None = None, dtype: DTypeLike | None = None) -> None:
        if kind not in KINDS:
            raise InputError(f"TokenPool: kind={shown(kind)}.", f"one of {', '.join(map(repr, KINDS))}")
        self.kind = kind
        self.e = None if e is None else as_int("TokenPool", "e", e, 1)
        self.query: Parameter | None = None
        if kind == "attention":
            if self.e is None:
                raise InputError("TokenPool: attention of how many features?", 'TokenPool("attention", e)')
            self.query = Parameter(arrays.zeros(self.e, dtype=dtypes.default_float if dtype is None else dtype))

    def forward(self, h: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None) -> Tensor:
        h = as_sequence(self, h, self.e)
        real = as_token_mask(self._describe(), h.shape[:-1], token_mask, lengths)
        h = silenced(h, real)
        if self.query is not None:
            query = arrays.broadcast_to(arrays.astype(self.query, h.dtype), (*h.shape[:-2], 1, h.shape[-1]))
            mask = None if real is None else arrays.expand_dims(real, -2)  # (..., 1, n)
            return F.scaled_dot_product_attention(query, h, h, mask)[..., 0, :]
        if self.kind == "mean":
            return F.global_avg_pool(h, axes=1, mask=real)
        if self.kind == "sum":
            return F.global_sum_pool(h, axes=1, mask=real)
        largest = F.global_max_pool(h, axes=1, mask=real)
        return largest if real is None else silenced(largest, arrays.any(real, axis=-1))

    def extra_repr(self) -> str:
        return repr(self.kind) if self.e is None else f"{self.kind!r}, {self.e}"
