"""The attention-free transformer: averages of values, channel by channel, without queries in the weights. Book, 13.4.1.

simple      h_i = sigma(q_i) * sum_j exp(k_j) * v_j / sum_j exp(k_j)
full        h_i = sigma(q_i) * sum_j exp(k_j + W_ij) * v_j / sum_j exp(k_j + W_ij)
"""

from __future__ import annotations

import math

from ... import arrays
from ...arrays import stop_gradient
from ...core import dtypes
from ...core.arguments import as_int
from ...core.dtypes import DType
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.continuous import normal
from ...random.keys import split
from ...random.streams import take_key
from ...transforms.control.loops import runs_in_python, scan
from ..functional.wkv import LEAST, FadingSums, fading_average
from ..layers.linear import Linear
from ..layers.weighted import as_weight_dtype
from ..module.parameter import Held, Parameter
from ..sequences.cache import StateCache
from ..sequences.state_layer import State, StateLayer
from ..sequences.token_masks import as_sequence, as_token_mask, places_of, silenced

__all__ = ["AFTFull", "AFTSimple"]

BLOCK = 32  # queries whose own keys are compared one by one, in the causal form of AFTFull


class AttentionFree(StateLayer):
    """What both have: projections, the gate of the queries, and what is not causal does not read on."""

    def _build(
        self, name: str, e: int, causal: bool, output: bool, bias: bool, dtype: DTypeLike | None, key: Tensor
    ) -> None:
        self.e, self.causal = as_int(name, "e", e, 1), bool(causal)
        keys = split(key, 4)
        self.query = Linear(self.e, self.e, bias, dtype, keys[0])
        self.key = Linear(self.e, self.e, bias, dtype, keys[1])
        self.value = Linear(self.e, self.e, bias, dtype, keys[2])
        self.output = Linear(self.e, self.e, bias, dtype, keys[3]) if output else None

    def features(self) -> int:
        return self.e

    def state_dtype(self) -> DType:
        return dtypes.promote_types(super().state_dtype(), dtypes.float32)  # exponents and their sums

    def _projected(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values, in the precision of sums."""
        wide = dtypes.promote_types(self.state_dtype(), x.dtype)
        return arrays.astype(self.key(x), wide), arrays.astype(self.value(x), wide)

    def _gated(self, x: Tensor, average: Tensor) -> Tensor:
        q = self.query(x)
        y = arrays.sigmoid(q) * arrays.astype(average, q.dtype)
        return y if self.output is None else self.output(y)

    def new_cache(self, rows: int, capacity: int = 0) -> StateCache:
        """The state before sequences begin."""
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


class AFTSimple(AttentionFree):
    r"""\(h_i = \sigma(q_i) \odot \sum_j e^{k_j} \odot v_j \,/\, \sum_j e^{k_j}\), channel by channel. Book, E.13.24.

    >>> import wonderland as wl
    >>> layer = wl.nn.AFTSimple(8)
    >>> layer(wl.ones((2, 10, 8))).shape, layer.num_parameters()  # 3 e^2 + 3 e
    ((2, 10, 8), 216)

    Channel z attends by itself, \(h_{iz} = \sigma(q_{iz}) \sum_j \operatorname{softmax}_j(k_{jz}) v_{jz}\), with
    weights that are the same for all i: time and memory are O(n e). If `causal` the sums go to j <= i; then the layer
    reads on, with a state of two vectors, the sums, and a third one, the largest exponent so far, to which they are
    relative, so that keys may have any size. `output` adds a last linear layer, e^2 + e more parameters.
    """

    def __init__(
        self,
        e: int,
        causal: bool = False,
        output: bool = False,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        self._build("AFTSimple", e, causal, output, bias, dtype, take_key("AFTSimple", key))

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"numerator": (self.e,), "denominator": (self.e,), "largest": (self.e,)}

    def start(self, rows: int) -> State:
        state = super().start(rows)
        return state | {"largest": state["largest"] + LEAST}

    def run(self, x: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:
        k, v = self._projected(x)
        if self.causal:
            zero = arrays.zeros((), dtype=k.dtype)
            average, after = fading_average(k, v, zero, zero, FadingSums(**state), real)
            return self._gated(x, average), after._asdict()
        k = k if real is None else arrays.where(arrays.expand_dims(real, -1), k, LEAST)
        average = arrays.sum(arrays.softmax(k, axis=1) * v, axis=1, keepdims=True)
        return self._gated(x, average), state

    def extra_repr(self) -> str:
        return ", ".join([str(self.e), *self._changed(causal=False)])


class AFTFull(AttentionFree):
    r"""\(h_i = \sigma(q_i) \odot \sum_j e^{k_j + W_{ij}} \odot v_j \,/\, \sum_j e^{k_j + W_{ij}}\). Book, E.13.25.

    >>> import wonderland as wl
    >>> full, low = wl.nn.AFTFull(8, 100), wl.nn.AFTFull(8, 100, rank=4)
    >>> full(wl.ones((2, 60, 8))).shape, full.num_parameters() - low.num_parameters()  # m^2 - 2 m r
    ((2, 60, 8), 9200)

    W (m, m) holds a number for each pair of places, the same for all channels, for sequences of up to m tokens; with a
    `rank` r it is \(U V^\top\) and has 2 m r parameters. It starts small: with W = 0 this is `AFTSimple`.

    Sums are products of matrices, \(e^W (e^k \odot v)\), after the largest element of each row of W and of each
    channel of k was subtracted; terms that are smaller by \(e^{87}\) than both maxima together count as 0 (float32).
    If `causal` the sums go to j <= i. A token's weights then depend on its place, so what the layer keeps are all
    keys and values, (rows, m, e) each; blocks of queries are computed in turn, each relative to its own past.
    """

    weight: Held[Parameter]
    left: Held[Parameter]
    right: Held[Parameter]

    def __init__(
        self,
        e: int,
        m: int,
        rank: int | None = None,
        causal: bool = False,
        output: bool = False,
        bias: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "AFTFull"
        keys = split(take_key(name, key), 3)
        self._build(name, e, causal, output, bias, dtype, keys[0])
        self.m = as_int(name, "m", m, 1)
        self.rank = None if rank is None else as_int(name, "rank", rank, 1)
        kind = as_weight_dtype(name, dtype, "a floating dtype")
        if self.rank is None:
            self.weight = Parameter(normal((self.m, self.m), 0.0, 0.01, key=keys[1], dtype=kind))
            self.left = self.right = None
        else:
            self.weight = None
            self.left, self.right = (
                Parameter(normal((self.m, self.rank), 0.0, 0.1, key=k, dtype=kind)) for k in keys[1:]
            )

    def biases(self) -> Tensor:
        """W, (m, m)."""
        return self.weight + 0 if self.rank is None else self.left @ arrays.swapaxes(self.right, 0, 1)

    # --- the whole

    def forward(self, x: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None) -> Tensor:
        x = as_sequence(self, x, self.e)
        lead = x.shape[:-1]  # (..., time)
        if lead[-1] > self.m:
            raise InputError(
                f"{self._describe()}: {lead[-1]} tokens, and biases for {self.m} places.",
                f"at most {self.m} tokens, or a layer with a larger m",
            )
        real = as_token_mask(self._describe(), lead, token_mask, lengths)
        rows = (math.prod(lead[:-1]), lead[-1])
        x = arrays.reshape(silenced(x, real), (*rows, self.e))
        if real is None:
            return arrays.reshape(self._whole(x, None), (*lead, self.e))
        real = arrays.reshape(real, rows)
        first = arrays.argsort(~real, axis=-1, stable=True)  # real tokens to the front, where their places are
        x = arrays.take_along_axis(x, arrays.expand_dims(first, -1), axis=1)
        y = self._whole(x, arrays.arange(rows[1]) < arrays.sum(real, axis=-1, keepdims=True))
        y = arrays.take_along_axis(y, arrays.expand_dims(places_of(real, rows[1]), -1), axis=1)
        return arrays.reshape(silenced(y, real), (*lead, self.e))

    def _whole(self, x: Tensor, real: Tensor | None) -> Tensor:
        """For tokens (rows, t, e) at the places 0 to t - 1."""
        t = x.shape[1]
        if not t:
            return x
        k, v = self._projected(x)
        w = arrays.astype(self.biases()[:t, :t], k.dtype)
        if not self.causal:
            k = k if real is None else arrays.where(arrays.expand_dims(real, -1), k, LEAST)
            return self._gated(x, _average(*_relative(k, v, w)[1:]))
        return self._gated(x, arrays.concat([_block(k, v, w, low) for low in range(0, t, BLOCK)], axis=1))

    # --- reading on

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"keys": (self.m, self.e), "values": (self.m, self.e), "place": ()}

    def start(self, rows: int) -> State:
        return super().start(rows) | {"place": arrays.zeros((rows,), dtype=dtypes.int64)}

    def run(self, x: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:
        """Token by token: each row may be at another place."""
        rows, t = x.shape[:2]
        k, v = self._projected(x)
        w = arrays.astype(self.biases(), k.dtype)
        places = arrays.arange(self.m)
        counted = arrays.ones((rows, t), dtype=dtypes.bool_) if real is None else real
        place = arrays.astype(state["place"], dtypes.int64)
        self._check_room(place, counted)

        def step(kept: tuple[Tensor, Tensor, Tensor], now: tuple[Tensor, Tensor, Tensor]) -> tuple[object, Tensor]:
            (keys, values, place), (k, v, seen) = kept, now
            here = arrays.expand_dims((places == place[:, None]) & seen[:, None], -1)  # (rows, m, 1)
            keys = arrays.where(here, k[:, None], keys)
            values = arrays.where(here, v[:, None], values)
            row = arrays.take(w, arrays.where(seen, place, 0), axis=0)  # (rows, m)
            past = arrays.expand_dims(places <= place[:, None], -1)
            scores = arrays.where(past, keys + arrays.expand_dims(row, -1), LEAST)
            average = arrays.sum(arrays.softmax(scores, axis=1) * values, axis=1)
            return (keys, values, place + arrays.astype(seen, place.dtype)), average

        kept, average = scan(
            step,
            (state["keys"], state["values"], place),
            tuple(arrays.swapaxes(part, 0, 1) for part in (k, v, counted)),
        )
        after = dict(zip(("keys", "values", "place"), kept, strict=True))
        return self._gated(x, arrays.swapaxes(average, 0, 1)), after

    def _check_room(self, place: Tensor, counted: Tensor) -> None:
        if not (runs_in_python() and place.size):
            return  # in compiled code a place beyond the last raises by itself
        most = int(arrays.max(stop_gradient(place + arrays.sum(counted, axis=-1))))
        if most > self.m:
            raise InputError(
                f"{self._describe()}: {most} tokens, and biases for {self.m} places.",
                f"at most {self.m} tokens, or a layer with a larger m",
            )

    def extra_repr(self) -> str:
        return ", ".join([f"{self.e}, {self.m}", *self._changed(rank=None, causal=False)])


# --- sums of exponentials, relative to a largest exponent


def _relative(k: Tensor, v: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Exponents (rows, t, e), and sums of exp(k_j + w_ij - exponent) with and without values, by two products."""
    top_k = stop_gradient(arrays.max(k, axis=1, keepdims=True))  # (rows, 1, e)
    top_w = stop_gradient(arrays.max(w, axis=1, keepdims=True))  # (t, 1)
    weight, factor = arrays.exp(w - top_w), arrays.exp(k - top_k)
    return top_w + top_k, weight @ (factor * v), weight @ factor


def _average(numerator: Tensor, denominator: Tensor) -> Tensor:
    """Their ratio; 0 where all terms were too small."""
    sound = denominator > 0
    return arrays.where(sound, numerator / arrays.where(sound, denominator, 1), 0)


def _block(k: Tensor, v: Tensor, w: Tensor, low: int) -> Tensor:
    """The causal averages of some queries: all pairs of them, and by products what came before.

    Nothing is relative to what comes later, so that a later token does not change a bit of an earlier result.
    """
    high = min(low + BLOCK, k.shape[1])
    scores = k[:, None, low:high] + arrays.expand_dims(w[low:high, low:high], -1)  # (rows, queries, keys, e)
    past = arrays.arange(high - low) <= arrays.arange(high - low)[:, None]
    scores = arrays.where(arrays.expand_dims(past, -1), scores, LEAST)
    top = stop_gradient(arrays.max(scores, axis=2))
    if low:
        before, numerator, denominator = _relative(k[:, :low], v[:, :low], w[low:high, :low])
        top = arrays.maximum(top, before)
    weights = arrays.exp(scores - arrays.expand_dims(top, 2))
    own, total = arrays.sum(weights * v[:, None, low:high], axis=2), arrays.sum(weights, axis=2)
    if low:
        factor = arrays.exp(before - top)
        own, total = own + factor * numerator, total + factor * denominator
    return _average(own, total)
