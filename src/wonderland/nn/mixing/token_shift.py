"""Tokens moved along the sequence, some channels this way and some that way. Book, section 11.3 (S2-MLP, MONet)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ... import arrays
from ...core.arguments import as_int, as_list
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..layers.fully_connected import ActivationLike, as_activation
from ..layers.linear import Linear
from .tokens import TokenMixer

__all__ = ["TokenShift", "ShiftMixer"]


class TokenShift(TokenMixer):
    r"""\(y_{ic} = x_{i - s(c), c}\): each group of channels moved by its own number of tokens. Book, section 11.3.

    >>> import wonderland as wl
    >>> x = wl.tensor([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    >>> wl.nn.TokenShift()(x).tolist()
    [[0.0, 20.0], [1.0, 30.0], [2.0, 0.0]]
    >>> wl.nn.TokenShift(wrap=True)(x).tolist()
    [[3.0, 20.0], [1.0, 30.0], [2.0, 10.0]]

    The channels are split into as many groups as there are `shifts`, as evenly as possible; a positive shift brings
    earlier tokens to later places. Zeros come in at the ends, as many as tokens fall off; with `wrap`, what falls off
    comes in at the other end of the real tokens. There is nothing to train, and the transpose, by which adjoints come
    back, is the shift by -s. With no negative shift and no wrap it is causal.
    """

    def __init__(self, shifts: int | Sequence[int] = (1, -1), wrap: bool = False) -> None:
        given = [shifts] if isinstance(shifts, int) else as_list("TokenShift", "shifts", shifts)
        self.shifts = tuple(as_int("TokenShift", "a shift", s) for s in given)
        if not self.shifts:
            raise InputError("TokenShift: there is no shift.", "shifts=(1, -1)")
        self.wrap = bool(wrap)

    def mix(self, x: Tensor, mask: Tensor | None) -> Tensor:
        e, groups = x.shape[-1], len(self.shifts)
        edges = [e * i // groups for i in range(groups + 1)]
        parts = [x[..., low:high] for low, high in pairwise(edges)]
        move = self._wrapped if self.wrap else self._filled
        return arrays.concat([move(part, s, mask) for part, s in zip(parts, self.shifts, strict=True)], axis=-1)

    @staticmethod
    def _filled(x: Tensor, s: int, mask: Tensor | None) -> Tensor:
        """Padding is zeros, as what lies beyond the ends is."""
        n = x.shape[-2]
        if s == 0 or not n:
            return x
        zeros = arrays.zeros((*x.shape[:-2], min(abs(s), n), x.shape[-1]), dtype=x.dtype)
        kept = x[..., : max(n - s, 0), :] if s > 0 else x[..., min(-s, n) :, :]
        return arrays.concat([zeros, kept] if s > 0 else [kept, zeros], axis=-2)

    @staticmethod
    def _wrapped(x: Tensor, s: int, mask: Tensor | None) -> Tensor:
        if mask is None:
            return arrays.roll(x, s, axis=-2)
        places = arrays.cumsum(arrays.astype(mask, "int64"), axis=-1) - 1
        lengths = arrays.maximum(places[..., -1:] + 1, 1)
        real_first = arrays.argsort(~mask, axis=-1, stable=True)  # where the token of each place is
        source = arrays.take_along_axis(real_first, (places - s) % lengths, axis=-1)
        return arrays.take_along_axis(x, arrays.broadcast_to(source[..., None], x.shape), axis=-2)

    def extra_repr(self) -> str:
        return f"shifts={self.shifts}" + (", wrap=True" if self.wrap else "")


class ShiftMixer(TokenMixer):
    r"""\(\operatorname{shift}(\phi(X W_1)) W_2\), the token mixing of S2-MLP. Book, section 11.3.

    >>> import wonderland as wl
    >>> layer = wl.nn.ShiftMixer(8)
    >>> layer(wl.ones((2, 16, 8))).shape, layer.num_parameters()  # 2 e^2 + 2 e
    ((2, 16, 8), 144)

    Linear layers before and after a `TokenShift`, whose settings are `shifts` and `wrap`: a token hears of its
    neighbours alone, in any number of tokens.
    """

    def __init__(
        self,
        e: int,
        shifts: int | Sequence[int] = (1, -1),
        wrap: bool = False,
        activation: ActivationLike = "gelu",
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        e = as_int("ShiftMixer", "e", e, 1)
        keys = split(take_key("ShiftMixer", key), 2)
        self.before = Linear(e, e, bias, dtype=dtype, key=keys[0])
        self.activation = as_activation("ShiftMixer", activation)
        self.shift = TokenShift(shifts, wrap)
        self.after = Linear(e, e, bias, dtype=dtype, key=keys[1])

    def mix(self, x: Tensor, mask: Tensor | None) -> Tensor:
        return self.after(self.shift(self.activation(self.before(x)), mask))
