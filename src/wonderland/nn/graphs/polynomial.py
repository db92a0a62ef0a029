r"""Polynomials of the shift operator, of as many hops as their degree. Book, section 12.2.3; notes, section 7.8.4."""

from __future__ import annotations

import dataclasses

from ... import arrays, sparse
from ...core.arguments import as_int, as_number
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..layers.fully_connected import ActivationLike, as_activation
from ..layers.linear import Linear
from ..module.parameter import Held, Parameter
from .layer import GraphLayer
from .shift import DenseShift, Shift, as_norm, inverse, line_sums

__all__ = ["ChebConv", "PolyGraphConv"]


class PolyGraphConv(GraphLayer):
    r"""\(\phi(X W_0 + A X W_1 + \dots + A^k X W_k + b)\), k = `order`. Book, section 12.2.3.

    >>> import wonderland as wl
    >>> layer = wl.nn.PolyGraphConv(4, 2, order=2)
    >>> layer(wl.ones((3, 4)), wl.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape, layer.num_parameters()
    ((3, 2), 26)

    No power of A is formed: \(X W_0 + A (X W_1 + A (X W_2))\) (Horner), or with fewer inputs than outputs the powers
    are applied to X. A node sees those at most `order` hops away, itself by \(W_0\) and again by even powers: the
    diagonal of \(A^2\) are the degrees. Self-loops of the graph are taken out unless `keep_loops`; `norm` is that of
    `GraphConv`.
    """

    takes_dense = True
    bias: Held[Parameter | None]

    def __init__(
        self,
        in_features: int,
        out_features: int,
        order: int = 2,
        activation: ActivationLike = None,
        norm: str | None = "sym",
        keep_loops: bool = False,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        self.in_features = as_int(name, "in_features", in_features, 1)
        self.out_features = as_int(name, "out_features", out_features, 1)
        self.order = as_int(name, "order", order, 0)
        self.norm, self.keep_loops = as_norm(name, norm), bool(keep_loops)
        keys = split(take_key(name, key), self.order + 1)
        c, d = self.in_features, self.out_features
        self.lins = [Linear(c, d, False, dtype, keys[k], init="xavier_uniform") for k in range(self.order + 1)]
        self.bias = Parameter(arrays.zeros((d,), dtype=self.lins[0].dtype)) if bias else None
        self.activation = as_activation(name, activation)

    def channels(self) -> int:
        return self.in_features

    def compute(self, x: Tensor, shift: Shift | DenseShift) -> Tensor:
        if not self.keep_loops and shift.norm is None:
            shift = without_diagonal(shift) if isinstance(shift, DenseShift) else without_loops(shift)
        shift = shift.normalized(self.norm, dtype=x.dtype)
        if self.in_features < self.out_features:
            h, power = self.lins[0](x), x
            for lin in self.lins[1:]:
                power = shift.apply(power)
                h = h + lin(power)
        else:
            h = self.lins[-1](x)
            for lin in self.lins[-2::-1]:
                h = lin(x) + shift.apply(h)
        return self.activation(h if self.bias is None else h + self.bias)

    def extra_repr(self) -> str:
        usual = {"norm": "sym", "keep_loops": False}
        return ", ".join([f"{self.in_features}, {self.out_features}, order={self.order}", *self._changed(**usual)])


class ChebConv(GraphLayer):
    r"""\(\sum_{k<K} T_k(\hat L) X W_k + b\) with Chebyshev's polynomials, \(\hat L = 2L/\lambda_{max} - I\).

    >>> import wonderland as wl
    >>> layer = wl.nn.ChebConv(4, 2, K=3)
    >>> layer(wl.ones((3, 4)), wl.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
    (3, 2)

    \(T_0 = 1\), \(T_1 = x\), \(T_k = 2 x T_{k-1} - T_{k-2}\), so K matrices see nodes at most K - 1 hops away: spectral
    filters without a spectrum, which any graph can be filtered with. L is \(I - D^{-1/2} A D^{-1/2}\) ("sym"), \(I -
    D^{-1} A\) ("rw") or D - A (None), self-loops left out. `lambda_max` is by default twice the largest entry of L as
    in PyTorch Geometric, which for "sym" is 2, a bound of the spectrum. `lins.0.weight` and so on are transposed.
    """

    bias: Held[Parameter | None]

    def __init__(
        self,
        in_features: int,
        out_features: int,
        K: int,
        normalization: str | None = "sym",
        bias: bool = True,
        lambda_max: float | None = None,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        self.in_features = as_int(name, "in_features", in_features, 1)
        self.out_features = as_int(name, "out_features", out_features, 1)
        self.K = as_int(name, "K", K, 1)
        if normalization not in (None, "sym", "rw"):
            raise InputError(f"{name}: normalization={normalization!r}.", '"sym", "rw" or None')
        self.normalization = normalization
        self.lambda_max = None if lambda_max is None else float(as_number(name, "lambda_max", lambda_max))
        keys = split(take_key(name, key), self.K)
        c, d = self.in_features, self.out_features
        self.lins = [Linear(c, d, False, dtype, keys[k], init="xavier_uniform") for k in range(self.K)]
        self.bias = Parameter(arrays.zeros((d,), dtype=self.lins[0].dtype)) if bias else None

    def channels(self) -> int:
        return self.in_features

    def compute(self, x: Tensor, shift: Shift) -> Tensor:
        off, diagonal = self.scaled(shift, x)

        def times(h: Tensor) -> Tensor:
            return off.apply(h) + diagonal[:, None] * h

        before, now = x, x
        h = self.lins[0](x)
        for k, lin in enumerate(self.lins[1:]):
            before, now = (x, times(x)) if k == 0 else (now, 2.0 * times(now) - before)
            h = h + lin(now)
        return h if self.bias is None else h + self.bias

    def scaled(self, shift: Shift, x: Tensor) -> tuple[Shift, Tensor]:
        r"""\(\hat L\): what is beside its diagonal, and the diagonal."""
        off = without_loops(shift)
        values, rows, cols = off.values(x.dtype), off.pattern.rows, off.pattern.cols
        degrees = line_sums(values, cols, x.dtype)  # of senders, as PyTorch Geometric has it
        diagonal = arrays.ones((shift.n,), dtype=x.dtype)
        if self.normalization == "sym":
            scale = inverse(degrees, 0.5)
            values = values * sparse.gather(scale, rows) * sparse.gather(scale, cols)
        elif self.normalization == "rw":
            values = values * sparse.gather(inverse(degrees, 1), cols)
        else:
            diagonal = degrees
        if self.lambda_max is not None:
            factor = arrays.asarray(2.0 / self.lambda_max, dtype=x.dtype)
        else:
            largest = arrays.max(arrays.concat([diagonal, -values, arrays.zeros((1,), dtype=x.dtype)]))
            factor = inverse(largest, 1)
        return dataclasses.replace(off, weight=-factor * values), factor * diagonal - 1.0

    def extra_repr(self) -> str:
        usual = {"normalization": "sym", "lambda_max": None}
        return ", ".join([f"{self.in_features}, {self.out_features}, K={self.K}", *self._changed(**usual)])


def without_loops(shift: Shift) -> Shift:
    """The same with zeros on the diagonal."""
    own = shift.pattern.rows.owner == shift.pattern.cols.owner
    values = shift.values()
    return dataclasses.replace(shift, weight=arrays.where(own, arrays.zeros_like(values), values), loops=False)


def without_diagonal(shift: DenseShift) -> DenseShift:
    """The same with zeros on the diagonal."""
    eye = arrays.eye(shift.n, dtype=bool)
    return DenseShift(arrays.where(eye, arrays.zeros_like(shift.matrix), shift.matrix), shift.norm)
