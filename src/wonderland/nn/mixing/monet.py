"""Blocks that are polynomials: no activation functions, only products of linear functions. Book, section 11.3."""

from __future__ import annotations

from ...core.arguments import as_int
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..layers.linear import Linear
from ..module.containers import Sequential
from .token_shift import TokenShift
from .tokens import TokenMixer

__all__ = ["MONetBlock"]


class MONetBlock(TokenMixer):
    r"""\(E(AX \odot BX + DX)\), of degree 2 in X, with B of low rank: (..., n, e) to itself. Book, section 11.3.

    >>> import wonderland as wl
    >>> block = wl.nn.MONetBlock(8, rank=2, hidden=16)
    >>> block(wl.ones((2, 5, 8))).shape, block.b.num_parameters()  # r (e + hidden)
    ((2, 5, 8), 48)

    A, D are (e, hidden), E is (hidden, e), and B is two layers, to `rank` numbers and from there to `hidden` (by
    default 4e). D is in the place of a residual connection, and there are no biases, so
    \(f(tX) = t^2\,E(AX \odot BX) + t\,EDX\). Every token is by itself in a block with an even `index`. In one with an
    odd index a `TokenShift` by one token both ways comes first.
    """

    def __init__(
        self,
        e: int,
        rank: int,
        hidden: int | None = None,
        index: int = 0,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "MONetBlock"
        self.e, self.rank = as_int(name, "e", e, 1), as_int(name, "rank", rank, 1)
        self.index = as_int(name, "index", index, 0)
        wide = 4 * self.e if hidden is None else as_int(name, "hidden", hidden, 1)
        keys = split(take_key(name, key), 5)
        sizes = [(self.e, wide), (self.e, self.rank), (self.rank, wide), (self.e, wide), (wide, self.e)]
        made = [Linear(n, m, bias=False, dtype=dtype, key=k) for (n, m), k in zip(sizes, keys, strict=True)]
        self.shift = TokenShift((1, -1)) if self.index % 2 else None
        self.a, self.b, self.d, self.out = made[0], Sequential(made[1], made[2]), made[3], made[4]

    def features(self) -> int | None:
        return self.e

    def mix(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = x if self.shift is None else self.shift(x, mask)
        return self.out(self.a(x) * self.b(x) + self.d(x))

    def extra_repr(self) -> str:
        return f"{self.e}, rank={self.rank}" + (f", index={self.index}" if self.index else "")
