"""A short causal convolution of each channel, which keeps a window of its last inputs. Book, section 13.4.3."""

from __future__ import annotations

import math

from ... import arrays
from ...core.arguments import as_int
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ...random.continuous import uniform
from ...random.keys import split
from ...random.streams import take_key
from ..layers.weighted import as_weight_dtype
from ..module.lazy import at_once
from ..module.parameter import Held, Parameter
from ..sequences.state_layer import State, StateLayer

__all__ = ["CausalDepthwiseConv"]


class CausalDepthwiseConv(StateLayer):
    r"""\(y_{ic} = b_c + \sum_{j<k} w_{jc}\, x_{i - k + 1 + j, c}\): the present and k - 1 tokens before. Book, F.13.4.

    >>> import wonderland as wl
    >>> layer = wl.nn.CausalDepthwiseConv(8, 4)
    >>> y, cache = layer.extend(wl.ones((2, 5, 8)), None)
    >>> cache.window.shape, layer.num_parameters()  # (k + 1) c
    ((2, 3, 8), 40)

    (..., time, c) to itself. `weight` is (k, 1, c), as that of `Conv1d` with groups=c; the last row meets the present.
    Padding between tokens is no neighbour: a token sees those before it that are real.
    """

    bias: Held[Parameter | None]

    def __init__(
        self, channels: int, kernel: int = 4, bias: bool = True, dtype: DTypeLike | None = None, key: KeyLike = None
    ) -> None:
        name = "CausalDepthwiseConv"
        self.channels, self.kernel = as_int(name, "channels", channels, 1), as_int(name, "kernel", kernel, 1)
        kind, drawn = as_weight_dtype(name, dtype), take_key(name, key)
        keys, bound = split(drawn, 2), 1 / math.sqrt(self.kernel)
        with at_once(drawn):
            shape = (self.kernel, 1, self.channels)
            self.weight = Parameter(uniform(shape, -bound, bound, key=keys[0], dtype=kind))
            start = uniform((self.channels,), -bound, bound, key=keys[1], dtype=kind) if bias else None
            self.bias = None if start is None else Parameter(start)

    def features(self) -> int:
        return self.channels

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"window": (self.kernel - 1, self.channels)}

    def run(self, x: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:
        if real is None:
            y, seen = self._slide(x, state["window"])
            return y, {"window": seen[:, x.shape[1] :]}
        order = arrays.argsort(~real, axis=-1, stable=True)  # the real tokens first
        y, seen = self._slide(arrays.take_along_axis(x, order[..., None], axis=1), state["window"])
        places = arrays.sum(real, axis=-1)[:, None] + arrays.arange(self.kernel - 1)
        window = arrays.take_along_axis(seen, places[..., None], axis=1)
        return arrays.take_along_axis(y, arrays.argsort(order, axis=-1)[..., None], axis=1), {"window": window}

    def _slide(self, x: Tensor, window: Tensor) -> tuple[Tensor, Tensor]:
        """The results, and the window with the tokens behind it. A sum of few shifted products is one pass."""
        seen, n = arrays.concat([window, arrays.astype(x, window.dtype)], axis=1), x.shape[1]
        y = seen[:, :n] * self.weight[0]
        for j in range(1, self.kernel):
            y = y + seen[:, j : j + n] * self.weight[j]
        return y if self.bias is None else y + self.bias, seen

    def extra_repr(self) -> str:
        return f"{self.channels}, kernel={self.kernel}, bias={self.bias is not None}"
