"""Layers for which tokens are a set: whatever the order, each token gets the same. Book, sections 10.1.1 and 10.2.1."""

from __future__ import annotations

from collections.abc import Callable

from ... import arrays
from ...core.arguments import as_function, as_int
from ...core.errors import ShapeError
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..layers.linear import Linear
from .token_mixers import token_mean
from .tokens import TokenMixer

__all__ = ["DeepSets", "NonLocal"]


class DeepSets(TokenMixer):
    r"""\(X A + \frac{1}{n} 1 1^\top X B + b\): the linear layers that commute with every permutation. Book, chapter 10.

    >>> import wonderland as wl
    >>> layer = wl.nn.DeepSets(8, 5)
    >>> layer(wl.ones((2, 16, 8))).shape, layer.num_parameters()  # (2 in + 1) out
    ((2, 16, 5), 85)

    (..., n, in_features) becomes (..., n, out_features), with the mean over real tokens. `own` is A with the bias and
    `mean` is B. With functions of tokens between such layers and a mean at the end one has a function of sets.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        self.in_features = as_int("DeepSets", "in_features", in_features, 1)
        keys = split(take_key("DeepSets", key), 2)
        self.own = Linear(self.in_features, out_features, bias, dtype=dtype, key=keys[0])
        self.mean = Linear(self.in_features, out_features, bias=False, dtype=dtype, key=keys[1])

    def features(self) -> int | None:
        return self.in_features

    def mix(self, x: Tensor, mask: Tensor | None) -> Tensor:
        return self.own(x) + self.mean(token_mean(x, mask))


class NonLocal(TokenMixer):
    r"""\(h_i = \sum_j g(x_i, x_j)\,x_j\): how much a token counts depends on what it is, not on where. Book, E.10.3.

    >>> import wonderland as wl
    >>> layer = wl.nn.NonLocal(lambda a, b: wl.sum(a * b, axis=-1))  # scalar weights: X X' X
    >>> layer(wl.tensor([[1.0, 0.0], [1.0, 1.0]])).tolist()
    [[2.0, 1.0], [3.0, 2.0]]

    g takes all pairs at once, \(x_i\) and \(x_j\) both as (..., n, n, e), and gives a matrix for each,
    (..., n, n, e, out), which is applied as \(x_j G\); or (..., n, n, e) for a diagonal matrix, or (..., n, n) for a
    number. It may be a module with parameters. There are \(n^2\) pairs in memory. Attention is the same with numbers
    that a softmax makes.
    """

    def __init__(self, g: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.g = as_function("NonLocal", g)

    def mix(self, x: Tensor, mask: Tensor | None) -> Tensor:
        *lead, n, e = x.shape
        pairs = (*lead, n, n, e)
        first = arrays.broadcast_to(arrays.expand_dims(x, axis=-2), pairs)
        second = arrays.broadcast_to(arrays.expand_dims(x, axis=-3), pairs)
        return weighted_sum("NonLocal", self.g(first, second), pairs[:-1], x, mask)


def weighted_sum(name: str, weights: Tensor, pairs: tuple[int, ...], x: Tensor, mask: Tensor | None) -> Tensor:
    r"""\(\sum_j x_j G_{ij}\) over real tokens j, with a number, a diagonal or a matrix (e, out) for each pair.

    >>> import wonderland as wl
    >>> weighted_sum("NonLocal", wl.ones((2, 2)), (2, 2), wl.tensor([[1.0], [2.0]]), None).tolist()
    [[3.0], [3.0]]
    """
    n, e = x.shape[-2:]
    kind = weights.ndim - len(pairs)
    if kind not in (0, 1, 2) or weights.shape != (*pairs, *(e, weights.shape[-1])[:kind]):
        numbers, matrices = ", ".join(map(str, pairs)), ", ".join(map(str, (*pairs, e, "out")))
        raise ShapeError(
            f"{name}: g gives {weights.shape} for tokens of shape {x.shape}.",
            f"a number for each pair, ({numbers}), a diagonal {(*pairs, e)}, or a matrix ({matrices})",
        )
    if mask is not None:  # g of a padded token may be anything, NaN included
        seen = arrays.reshape(mask, (*mask.shape[:-1], 1, n, *[1] * kind))
        weights = arrays.where(seen, weights, arrays.zeros_like(weights))
    if kind == 0:
        return arrays.matmul(weights, x)
    if kind == 1:
        return arrays.sum(weights * arrays.expand_dims(x, axis=-3), axis=-2)
    # j and the features are summed over together: one product for each i
    flat = arrays.reshape(weights, (*pairs[:-1], n * e, weights.shape[-1]))
    return arrays.matmul(arrays.reshape(x, (*x.shape[:-2], 1, 1, n * e)), flat)[..., 0, :]
