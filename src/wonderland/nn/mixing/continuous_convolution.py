"""Convolutions whose kernel is a function of the distance, as long as the sequence. Book, section 10.1.1.

`nn.LongConv1d` is the causal one with a number for every distance and channel.
"""

from __future__ import annotations

from collections.abc import Callable

from ... import arrays
from ...arrays.conversion import as_real, as_tensor
from ...core.arguments import as_function, as_int, as_number
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..functional.convolution import conv1d
from ..layers.fully_connected import ActivationLike, as_activation
from ..layers.linear import Linear
from ..module.module import Module
from ..module.parameter import Parameter
from ..sequences.token_masks import as_sequence, as_token_mask, silenced
from .sets import weighted_sum

__all__ = ["ContinuousConv1d", "ImplicitKernel", "KernelTable"]


class ContinuousConv1d(Module):
    r"""\(h_i = \sum_j x_j\,g(p_i - p_j)\) with a function g from a distance to a matrix (in, out). Book, 10.1.1.

    >>> import wonderland as wl
    >>> layer = wl.nn.ContinuousConv1d(wl.nn.ImplicitKernel(8, 8, hidden=16))
    >>> layer(wl.ones((2, 10, 8))).shape, layer(wl.ones((2, 100, 8))).shape, layer.num_parameters()
    ((2, 10, 8), (2, 100, 8), 1056)

    Every output sees all of the sequence, and the number of parameters does not depend on its length. g takes distances
    of any shape (...) and gives (..., in, out), or (..., channels) for a convolution of every channel by itself. It may
    be a module such as `ImplicitKernel` or `KernelTable`, or a function.

    The positions p are 0, 1, 2 and so on, and g is evaluated at the 2n - 1 distances that occur. `layer(x, positions)`
    takes other ones, floats (n,) or one for every token (..., n): sequences of a finer grid, or of irregular times;
    then g is evaluated at all pairs. With `causal` only tokens with \(p_j \le p_i\) are seen.
    """

    def __init__(self, g: Callable[[Tensor], Tensor], causal: bool = False) -> None:
        self.g = as_function("ContinuousConv1d", g)
        self.causal = bool(causal)

    def forward(
        self,
        x: ArrayLike,
        positions: ArrayLike | None = None,
        token_mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> Tensor:
        name, x = "ContinuousConv1d", as_sequence(self, x)
        mask = as_token_mask(name, x.shape[:-1], token_mask, lengths)
        n, x = x.shape[-2], silenced(x, mask)
        if not n:
            raise ShapeError(f"{name}: an input of shape {x.shape} without tokens.", "at least one token")
        if positions is None:
            return silenced(self._on_grid(x), mask)
        places = as_real(name, positions)
        if places.shape not in ((n,), x.shape[:-1]):
            raise ShapeError(
                f"{name}: positions of shape {places.shape} for an input of shape {x.shape}.",
                f"({n},) or {x.shape[:-1]}",
            )
        if mask is not None and places.shape == mask.shape:
            places = silenced(places, mask)
        distances = arrays.expand_dims(places, axis=-1) - arrays.expand_dims(places, axis=-2)  # (..., n, n)
        return silenced(weighted_sum(name, self.kernel(distances), distances.shape, x, None), mask)

    def kernel(self, distances: ArrayLike) -> Tensor:
        """g at distances (...), with zeros where the causal layer does not look."""
        distances = as_real("ContinuousConv1d", distances)
        found = as_tensor("ContinuousConv1d", self.g(distances))
        if found.shape[: distances.ndim] != distances.shape or found.ndim - distances.ndim not in (1, 2):
            raise ShapeError(
                f"ContinuousConv1d: g gives {found.shape} for distances of shape {distances.shape}.",
                "(..., in, out) or (..., channels)",
            )
        return silenced(found, distances >= 0) if self.causal else found

    def _on_grid(self, x: Tensor) -> Tensor:
        """As a convolution: its taps are g at n-1, .., 1-n, since it looks at x_{i+t} where the book has x_{i-t}."""
        n, features = x.shape[-2:]
        taps = self.kernel(arrays.arange(n - 1, -n, -1, dtype=x.dtype))
        if taps.shape[1] != features:
            raise ShapeError(
                f"ContinuousConv1d: g gives {taps.shape[1:]} for a distance, and the input is {x.shape}.",
                f"({features}, out) or ({features},)",
            )
        if taps.ndim == 3:
            return conv1d(x, taps, padding=n - 1)
        return conv1d(x, taps[:, None], padding=n - 1, groups=features)

    def extra_repr(self) -> str:
        return "causal=True" if self.causal else ""


class ImplicitKernel(Module):
    r"""\(g(t) = \phi(t w + b) W\,s\): a small network from a distance to a matrix (in, out). Book, section 10.1.1.

    >>> import wonderland as wl
    >>> g = wl.nn.ImplicitKernel(3, 5, hidden=8)
    >>> g(wl.tensor([-1.0, 0.0, 0.5])).shape, g.num_parameters()  # 2 hidden + hidden in out
    ((3, 3, 5), 136)

    With `out_features=None` it gives (..., in), a number for each channel. `scale` divides the distances: about the
    reach that the kernel should have, as \(\phi\), by default the sine, then changes over it. The factor s makes a sum
    over about `scale` tokens start with the variance of a token.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int | None = None,
        hidden: int = 32,
        scale: float = 8.0,
        activation: ActivationLike = arrays.sin,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "ImplicitKernel"
        self.in_features = as_int(name, "in_features", in_features, 1)
        self.out_features = None if out_features is None else as_int(name, "out_features", out_features, 1)
        self.scale = float(as_number(name, "scale", scale))
        if not self.scale > 0:
            raise InputError(f"{name}: scale={scale}.", "a number above 0")
        keys = split(take_key(name, key), 2)
        hidden = as_int(name, "hidden", hidden, 1)
        self.first = Linear(1, hidden, dtype=dtype, key=keys[0], init="normal")
        self.activation = as_activation(name, activation)
        self.last = Linear(hidden, self.in_features * (self.out_features or 1), False, dtype=dtype, key=keys[1])

    def forward(self, distances: ArrayLike) -> Tensor:
        t = as_real("ImplicitKernel", distances) / self.scale
        inputs = self.in_features if self.out_features is not None else 1
        y = self.last(self.activation(self.first(arrays.expand_dims(t, axis=-1)))) / (self.scale * inputs) ** 0.5
        shape = (self.in_features,) if self.out_features is None else (self.in_features, self.out_features)
        return arrays.reshape(y, (*t.shape, *shape))

    def extra_repr(self) -> str:
        return f"{self.in_features}, {self.out_features}, scale={self.scale}"


class KernelTable(Module):
    r"""\(g(t) = W_t\) for \(|t| \le k\), and 0 beyond: the kernel of a plain convolution. Book, E.10.2.

    >>> import wonderland as wl
    >>> g = wl.nn.KernelTable(wl.tensor([10.0, 20.0, 30.0])[:, None])  # W_-1, W_0, W_1
    >>> g(wl.tensor([-2.0, -1.0, 0.0, 0.5, 1.0]))[:, 0]
    tensor([ 0., 10., 20., 25., 30.])

    `weight` is (2k + 1, in, out) or (2k + 1, channels), with \(W_{-k}\) first, and it is trained. Between whole numbers
    g is linear. A `Conv1d` has the same taps in the other order: `KernelTable(conv.weight[::-1])`.
    """

    def __init__(self, weight: ArrayLike) -> None:
        table = as_real("KernelTable", weight)
        if table.ndim not in (2, 3) or table.shape[0] % 2 == 0:
            raise ShapeError(
                f"KernelTable: a weight of shape {table.shape}.", "(2k + 1, in, out) or (2k + 1, channels)"
            )
        self.weight = Parameter(arrays.stop_gradient(table))

    def forward(self, distances: ArrayLike) -> Tensor:
        t = as_real("KernelTable", distances)
        k = self.weight.shape[0] // 2
        below = arrays.floor(t)
        share = arrays.reshape(t - below, (*t.shape, *[1] * (self.weight.ndim - 1)))
        return (1 - share) * self._at(below, k) + share * self._at(below + 1, k)

    def _at(self, t: Tensor, k: int) -> Tensor:
        rows = arrays.astype(arrays.clip(t, -k, k), "int64") + k
        return silenced(arrays.take(self.weight, rows, axis=0), abs(t) <= k)
