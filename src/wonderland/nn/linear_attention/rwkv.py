"""RWKV, version 4: time mixing, channel mixing, token shift, and the block of them. Book, section 13.4.2.

x --> x + time_mix(norm(x)) --> x + channel_mix(norm(x))
"""

from __future__ import annotations

import math

import numpy as np

from ... import arrays
from ...core import dtypes
from ...core.arguments import as_int, shown
from ...core.dtypes import DType
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import Array, DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..functional.piecewise import squared_relu
from ..functional.wkv import LEAST, FadingSums, fading_average
from ..layers.linear import Linear
from ..layers.normalization import LayerNorm
from ..layers.weighted import as_weight_dtype
from ..mixing.mixing_block import MixingBlock
from ..module.parameter import Held, Parameter
from ..sequences.state_layer import State, StateLayer

__all__ = ["RWKVBlock", "RWKVChannelMix", "RWKVTimeMix", "TokenMix"]

CONVENTIONS = ("book", "official")


def previous_tokens(x: Tensor, last: Tensor, real: Tensor | None) -> tuple[Tensor, Tensor]:
    """The real token before each one, (rows, t, e), with `last` (rows, e) before the first; and the last one of all.

    >>> import wonderland as wl
    >>> x = wl.tensor([[[1.0], [2.0], [3.0]]])
    >>> before, last = previous_tokens(x, wl.zeros((1, 1)), wl.tensor([[True, False, True]]))
    >>> before[0, :, 0].tolist(), last.tolist()
    ([0.0, 1.0, 1.0], [[3.0]])
    """
    known = arrays.concat([arrays.expand_dims(last, 1), x], axis=1)  # (rows, 1 + t, e)
    if real is None:
        return known[:, :-1], known[:, -1]
    places = arrays.argsort(~real, axis=-1, stable=True)  # those of real tokens come first
    count = arrays.cumulative_sum(arrays.astype(real, dtypes.int64), axis=-1, include_initial=True)  # (rows, t + 1)
    newest = arrays.take_along_axis(places, arrays.maximum(count - 1, 0), axis=-1) + 1
    newest = arrays.where(count > 0, newest, 0)
    found = arrays.take_along_axis(known, arrays.expand_dims(newest, -1), axis=1)
    return found[:, :-1], found[:, -1]


class TokenMix(StateLayer):
    r"""\(y_i = \mu \odot x_i + (1 - \mu) \odot x_{i-1}\), with a trained \(\mu\) for each channel. Book, 13.4.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.TokenMix(2, mu=[0.5, 1.0])
    >>> layer(wl.tensor([[1.0, 1.0], [3.0, 3.0]])).tolist()
    [[0.5, 1.0], [2.0, 3.0]]

    RWKV calls it token shift. Before the first token there is \(x_0 = 0\); its state is \(x_{i-1}\). With \(\mu = 1\)
    nothing is shifted. It has e parameters, which start at `mu`, a number or (e,).
    """

    mu: Held[Parameter]

    def __init__(self, e: int, mu: float | Array | list[float] = 0.5, dtype: DTypeLike | None = None) -> None:
        self.e = as_int("TokenMix", "e", e, 1)
        kind = as_weight_dtype("TokenMix", dtype, "a floating dtype")
        self.mu = Parameter(arrays.broadcast_to(arrays.asarray(np.asarray(mu), dtype=kind), (self.e,)) + 0)

    def features(self) -> int:
        return self.e

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"last": (self.e,)}

    def run(self, x: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:
        before, last = previous_tokens(x, state["last"], real)
        return self.mix(x, before), {"last": last}

    def mix(self, x: Tensor, before: Tensor) -> Tensor:
        """Tokens and those before them, mixed."""
        return self.mu * x + (1 - self.mu) * before

    def extra_repr(self) -> str:
        return str(self.e)


def rising(e: int, power: float) -> Array:
    r"""\((c/e)^p\) for the channels c, at which the mixes of RWKV start."""
    return np.power(np.arange(e) / e, power)


class RWKVTimeMix(StateLayer):
    r"""\(h_i = W_o\big(\sigma(r_i) \odot \mathrm{wkv}_i\big)\), an average that fades with time. Book, 13.4.2.

    \[\mathrm{wkv}_i = \frac{\sum_{j<i} e^{k_j - (i-j)w} \odot v_j + e^{k_i + u} \odot v_i}
    {\sum_{j<i} e^{k_j - (i-j) w} + e^{k_i + u}}\]

    >>> import wonderland as wl
    >>> layer = wl.nn.RWKVTimeMix(8)
    >>> y, cache = layer.extend(wl.ones((2, 10, 8)))
    >>> y.shape, cache.numerator.shape, layer.num_parameters()  # 4 e^2 + 5 e
    ((2, 10, 8), (2, 8), 296)

    Receptance r, keys k and values v are linear in mixes of \(x_i\) and \(x_{i-1}\), each with its own \(\mu\)
    (`TokenMix`). `hidden` h is their size, by default e: 4 e h + 2 h + 3 e parameters. The decay
    \(w = e^{\texttt{time\_decay}}\) is above 0 for every value of the parameter, `time_first` is u, the bonus of the
    current token. The state are the last token, two sums, and the largest exponent so far, to which they are relative.

    The published code has \((i-1-j)w\) where the book has \((i-j)w\): there the token before has not faded yet.
    `convention="official"` is that one. Both are the same function of different u: \(u_{official} = u_{book} + w\).

    Parameters start as in the published code, by the number `layer` of `layers` blocks: slower and faster channels.
    """

    time_decay: Held[Parameter]
    time_first: Held[Parameter]

    def __init__(
        self,
        e: int,
        hidden: int | None = None,
        convention: str = "book",
        layer: int = 0,
        layers: int = 1,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "RWKVTimeMix"
        self.e = as_int(name, "e", e, 1)
        self.hidden = as_int(name, "hidden", self.e if hidden is None else hidden, 1)
        if convention not in CONVENTIONS:
            raise InputError(f"{name}: convention={shown(convention)}.", f"one of {', '.join(CONVENTIONS)}")
        self.convention = convention
        depth, early = _stands(name, layer, layers)
        self.mix_key = TokenMix(self.e, rising(self.e, early), dtype)
        self.mix_value = TokenMix(self.e, rising(self.e, early) + 0.3 * depth, dtype)
        self.mix_receptance = TokenMix(self.e, rising(self.e, early / 2), dtype)
        keys = split(take_key(name, key), 4)
        self.key = Linear(self.e, self.hidden, False, dtype, keys[0])
        self.value = Linear(self.e, self.hidden, False, dtype, keys[1])
        self.receptance = Linear(self.e, self.hidden, False, dtype, keys[2])
        self.output = Linear(self.hidden, self.e, False, dtype, keys[3])
        kind, channels = self.key.weight.dtype, np.arange(self.hidden)
        speed = -5 + 8 * (channels / max(1, self.hidden - 1)) ** (0.7 + 1.3 * depth)
        first = math.log(0.3) + 0.5 * ((channels + 1) % 3 - 1)
        if convention == "book":
            first = first - np.exp(speed)
        self.time_decay = Parameter(arrays.asarray(speed, dtype=kind))
        self.time_first = Parameter(arrays.asarray(first, dtype=kind))

    @property
    def decay(self) -> Tensor:
        """w, (hidden,), above 0."""
        return arrays.exp(self.time_decay)

    def features(self) -> int:
        return self.e

    def state_dtype(self) -> DType:
        return dtypes.promote_types(super().state_dtype(), dtypes.float32)  # exponents and their sums

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        h = (self.hidden,)
        return {"last": (self.e,), "numerator": h, "denominator": h, "largest": h}

    def start(self, rows: int) -> State:
        state = super().start(rows)
        return state | {"largest": state["largest"] + LEAST}

    def run(self, x: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:
        before, last = previous_tokens(x, arrays.astype(state["last"], x.dtype), real)
        wide = state["numerator"].dtype
        k = arrays.astype(self.key(self.mix_key.mix(x, before)), wide)
        v = arrays.astype(self.value(self.mix_value.mix(x, before)), wide)
        r = self.receptance(self.mix_receptance.mix(x, before))
        w, u = arrays.astype(self.decay, wide), arrays.astype(self.time_first, wide)
        if self.convention == "book":
            u = u + w
        sums = FadingSums(state["numerator"], state["denominator"], state["largest"])
        average, after = fading_average(k, v, w, u, sums, real)
        y = self.output(arrays.sigmoid(r) * arrays.astype(average, r.dtype))
        return y, {"last": last, **after._asdict()}

    def extra_repr(self) -> str:
        return ", ".join([str(self.e), *self._changed(hidden=self.e, convention="book")])


class RWKVChannelMix(StateLayer):
    r"""\(y = \sigma(W_1 x) \odot W_2 \max(0, W_3 x)^2\), where each x is a mix of two tokens. Book, E.13.26.

    >>> import wonderland as wl
    >>> layer = wl.nn.RWKVChannelMix(8)
    >>> layer(wl.ones((2, 10, 8))).shape, layer.num_parameters()  # e^2 + 2 e p + 2 e
    ((2, 10, 8), 592)

    `receptance` is W_1 (e, e), `value` W_2 (p, e) and `key` W_3 (e, p), with p = `hidden` units, by default 4 e. The
    mixes of \(x_i\) and \(x_{i-1}\) for the key and the receptance have a \(\mu\) each (`TokenMix`); the state is the
    last token. They start by the number `layer` of `layers` blocks.
    """

    def __init__(
        self,
        e: int,
        hidden: int | None = None,
        layer: int = 0,
        layers: int = 1,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "RWKVChannelMix"
        self.e = as_int(name, "e", e, 1)
        self.hidden = as_int(name, "hidden", 4 * self.e if hidden is None else hidden, 1)
        _, early = _stands(name, layer, layers)
        self.mix_key = TokenMix(self.e, rising(self.e, early), dtype)
        self.mix_receptance = TokenMix(self.e, rising(self.e, early), dtype)
        keys = split(take_key(name, key), 3)
        self.key = Linear(self.e, self.hidden, False, dtype, keys[0])
        self.receptance = Linear(self.e, self.e, False, dtype, keys[1])
        self.value = Linear(self.hidden, self.e, False, dtype, keys[2])

    def features(self) -> int:
        return self.e

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"last": (self.e,)}

    def run(self, x: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:
        before, last = previous_tokens(x, state["last"], real)
        k = squared_relu(self.key(self.mix_key.mix(x, before)))
        r = arrays.sigmoid(self.receptance(self.mix_receptance.mix(x, before)))
        return r * self.value(k), {"last": last}

    def extra_repr(self) -> str:
        return f"{self.e}, hidden={self.hidden}"


class RWKVBlock(MixingBlock):
    r"""\(H = X + \mathrm{time}(\mathrm{norm}(X))\), \(Y = H + \mathrm{channels}(\mathrm{norm}(H))\). Book, 13.4.2.

    >>> import wonderland as wl
    >>> block = wl.nn.RWKVBlock(8)
    >>> y, cache = block.extend(wl.ones((2, 10, 8)))
    >>> y.shape, block.num_parameters(), cache.nbytes  # two layer norms, 4 e; 5 e numbers are kept for each row
    ((2, 10, 8), 920, 320)

    A `MixingBlock` with an `RWKVTimeMix` of `time_hidden` channels and an `RWKVChannelMix` of `hidden`, each after a
    `LayerNorm` with `eps`. It reads on; what it keeps does not grow.
    """

    def __init__(
        self,
        e: int,
        hidden: int | None = None,
        time_hidden: int | None = None,
        convention: str = "book",
        layer: int = 0,
        layers: int = 1,
        eps: float = 1e-5,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        keys = split(take_key("RWKVBlock", key), 2)
        time = RWKVTimeMix(e, time_hidden, convention, layer, layers, dtype, keys[0])
        channels = RWKVChannelMix(e, hidden, layer, layers, dtype, keys[1])
        super().__init__(time, e, channels, norm=lambda size: LayerNorm(size, eps, dtype=dtype))


def _stands(name: str, layer: int, layers: int) -> tuple[float, float]:
    """Where a block stands, from 0 for the first to 1 for the last, and from 1 to nearly 0."""
    count = as_int(name, "layers", layers, 1)
    number = as_int(name, "layer", layer, 0)
    if number >= count:
        raise InputError(f"{name}: layer={number} of {count}.", f"a number from 0 to {count - 1}")
    return number / max(1, count - 1), 1 - number / count
