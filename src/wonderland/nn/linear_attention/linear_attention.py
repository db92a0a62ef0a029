"""Linear attention as a layer: heads, projections, and a memory that does not grow. Book, section 13.1.

x (b, t, e) --> query, key, value --> (b, heads, t, .) --> phi(q) (sum phi(k) v^T) / phi(q) (sum phi(k)) --> output
"""

from __future__ import annotations

import math

from ... import arrays
from ...core import dtypes
from ...core.arguments import as_int, shown
from ...core.dtypes import DType
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..attention.sight import by_heads
from ..functional.linear_attention import GUARDS, KernelMemory, attend_features, chunk_size
from ..layers.linear import Linear
from ..sequences.cache import StateCache
from ..sequences.state_layer import State, StateLayer
from .feature_maps import FeatureMapLike, as_feature_map

__all__ = ["LinearAttention"]


class LinearAttention(StateLayer):
    r"""\([A_1; \dots; A_h] W_o\), where each head is the attention of a kernel \(\phi(q) \cdot \phi(k)\). Book, 13.1.

    >>> import wonderland as wl
    >>> layer = wl.nn.LinearAttention(64, 8)
    >>> y, cache = layer.extend(wl.ones((2, 1000, 64)))
    >>> y.shape, cache.memory.shape, cache.total.shape, layer.num_parameters()  # 4 e^2 + 4 e
    ((2, 1000, 64), (2, 8, 8, 8), (2, 8, 8), 16640)

    Queries, keys and values are projected as in `MultiHeadAttention`, to `num_heads` heads of `key_size` k and
    `value_size` v features, and there are as many parameters: h k e + h (k + v) e + h v o, and biases. `feature_map`
    is "elu" (`EluPlusOne`), or a function or module from (..., k) to (..., m): see `KernelFeatureMap`. One head takes
    2 n m (v + 1) multiply-adds for n tokens, softmax attention \(n^2 (k + v)\): it pays when n is large, above about m,
    which for polynomials of degree 2 is about k^2 / 2. (The book has this the other way round.)

    If `causal`, token i hears of the tokens j <= i; the layer then also reads on, and its state are
    \(S = \sum \phi(k) v^\top\), (rows, heads, m, v), and \(z = \sum \phi(k)\), whatever was read before. Else every
    token hears of all, and there is nothing to read on. Without `normalize` nothing is divided by
    \(\phi(q) \cdot z\). Chunks of `chunk` tokens and `guard` are those of `nn.functional.linear_attention`.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        key_size: int | None = None,
        value_size: int | None = None,
        out_features: int | None = None,
        *,
        feature_map: FeatureMapLike = "elu",
        causal: bool = True,
        normalize: bool = True,
        chunk: int | None = None,
        guard: str = "zero",
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        e, h = as_int(name, "embed_dim", embed_dim, 1), as_int(name, "num_heads", num_heads, 1)
        if (key_size is None or value_size is None) and e % h:
            raise InputError(
                f"{name}: {e} features cannot be cut into {h} heads of equal size.",
                f"a number of heads that divides {e}, or key_size and value_size",
            )
        if guard not in GUARDS:
            raise InputError(f"{name}: guard={shown(guard)}.", f"one of {', '.join(GUARDS)}")
        self.embed_dim, self.num_heads = e, h
        self.key_size = as_int(name, "key_size", e // h if key_size is None else key_size, 1)
        self.value_size = as_int(name, "value_size", e // h if value_size is None else value_size, 1)
        self.out_features = as_int(name, "out_features", e if out_features is None else out_features, 1)
        self.causal, self.normalize, self.guard = bool(causal), bool(normalize), guard
        self.chunk = None if chunk is None else as_int(name, "chunk", chunk, 1)
        self.feature_map = as_feature_map(name, feature_map)
        self.map_size = self._mapped_size()
        keys = split(take_key(name, key), 4)
        self.query = Linear(e, h * self.key_size, bias, dtype, keys[0])
        self.key = Linear(e, h * self.key_size, bias, dtype, keys[1])
        self.value = Linear(e, h * self.value_size, bias, dtype, keys[2])
        self.output = Linear(h * self.value_size, self.out_features, bias, dtype, keys[3])

    def _mapped_size(self) -> int:
        """How many features the map makes, of which it need not tell."""
        found = self.feature_map(arrays.zeros((1, self.key_size))).shape
        if len(found) != 2 or found[0] != 1:
            raise ShapeError(
                f"{type(self).__name__}: the feature map makes {found} of (1, {self.key_size}).",
                "a map from (..., c) to (..., e)",
            )
        return found[1]

    def features(self) -> int:
        return self.embed_dim

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        h, m, v = self.num_heads, self.map_size, self.value_size
        return {"memory": (h, m, v), "total": (h, m)} if self.normalize else {"memory": (h, m, v)}

    def state_dtype(self) -> DType:
        return dtypes.promote_types(super().state_dtype(), dtypes.float32)  # sums of many terms

    def run(self, x: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:
        memory = state["memory"]
        q, k, v = (
            arrays.astype(by_heads(layer(x), self.num_heads), memory.dtype)
            for layer in (self.query, self.key, self.value)
        )  # (rows, heads, t, k or v)
        seen = None if real is None else arrays.expand_dims(real, 1)
        h, after = attend_features(
            self._describe(), self.feature_map(q), self.feature_map(k), v, seen, self.causal, self.normalize,
            chunk=self.chunk, guard=self.guard, start=KernelMemory(memory, state.get("total")),
        )  # fmt: skip
        together = arrays.swapaxes(arrays.astype(h, dtypes.promote_types(x.dtype, self.output.weight.dtype)), 1, 2)
        y = self.output(arrays.reshape(together, (*together.shape[:2], self.num_heads * self.value_size)))
        return y, {"memory": after.sums} | ({} if after.total is None else {"total": after.total})

    def new_cache(self, rows: int, capacity: int = 0) -> StateCache:
        """The sums before sequences begin, which are zeros; they hold any `capacity`."""
        if not self.causal:
            raise InputError(
                f"{self._describe()}: reads on, but its tokens see what comes later.",
                "causal=True, or the whole sequence at once",
            )
        return super().new_cache(rows, capacity)

    def extend(
        self, x: ArrayLike, cache: StateCache | None = None, lengths: ArrayLike | None = None
    ) -> tuple[Tensor, StateCache]:
        if not self.causal:
            self.new_cache(0)  # raises
        return super().extend(x, cache, lengths)

    def multiply_adds(self, args: tuple[Tensor, ...], output: Tensor) -> int | None:
        """Of the products with weights, of features with values, and of queries with the sums of those.

        The causal form adds the pairs of tokens within chunks.
        """
        x = args[0]
        tokens, n = math.prod(x.shape[:-1]), x.shape[-2]
        h, m, k, v = self.num_heads, self.map_size, self.key_size, self.value_size
        w = v + self.normalize
        weights = h * (2 * k + v) * self.embed_dim + h * v * self.out_features
        if not self.causal or not n:
            return tokens * (weights + 2 * h * m * w)
        size = min(n, chunk_size(m, v) if self.chunk is None else self.chunk)
        whole = -(-n // size) * size  # with the zeros after the last chunk
        sums = m * w if whole == size else 2 * m * w  # those of a single chunk are read by nobody
        return tokens * weights + tokens // n * whole * h * (sums + size * (m + w))

    def extra_repr(self) -> str:
        usual = {"causal": True, "normalize": True, "chunk": None, "guard": "zero"}
        return ", ".join([f"{self.embed_dim}, {self.num_heads}", *self._changed(**usual)])
