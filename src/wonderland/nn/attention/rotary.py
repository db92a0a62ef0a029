"""Rotary positions: queries and keys are turned by angles in proportion to their places. Book, section 10.2.3.

The product of a query at place i and a key at place j then depends on their contents and on i - j alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from ... import arrays
from ...arrays.conversion import as_real, as_tensor
from ...core import dtypes
from ...core.arguments import as_int, as_number
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike
from ..module.module import Module
from .absolute_positions import sinusoidal_frequencies

__all__ = ["Rotary"]

Scaling = Mapping[str, object]


class Rotary(Module):
    r"""\((a, b) \mapsto (a \cos\theta - b \sin\theta,\ b \cos\theta + a \sin\theta)\) with \(\theta = \omega_l i\).

    >>> import wonderland as wl
    >>> rotary = wl.nn.Rotary(64)
    >>> q = wl.random.normal((2, 8, 10, 64))  # (batch, heads, time, size)
    >>> rotary(q).shape
    (2, 8, 10, 64)

    It is applied to queries and keys, never to values, in every layer. Lengths stay, and
    \(\langle R_i q, R_j k\rangle\) depends on i - j only. `places` (time,) or (batch, time) say where the tokens stand.

    `pairing` says which features make a pair: "halves" (l and l + size/2, as in LLaMA) or "interleaved" (2l and
    2l + 1). Of vectors with more than `size` features only the first `size` are turned. The frequencies are
    \(\omega_l = b^{-2l/\text{size}}\) with `base` b.

    `scaling` stretches the positions, so that a model serves longer sequences than it was trained with. It has the form
    that published configurations use: {"rope_type": "linear", "factor": 4.0}, or "ntk" (a larger base), "llama3"
    (low frequencies only), "yarn" (by parts, with a temperature). Book, section 10.2.3.
    """

    def __init__(
        self, size: int, base: float = 10_000.0, pairing: str = "halves", scaling: Scaling | None = None
    ) -> None:
        self.size = as_int("Rotary", "size", size, 2)
        if self.size % 2:
            raise InputError(f"Rotary: {size} features cannot be pairs.", "an even number")
        if pairing not in ("halves", "interleaved"):
            raise InputError(f"Rotary: pairing={pairing!r}.", '"halves" or "interleaved"')
        self.base, self.pairing = float(as_number("Rotary", "base", base)), pairing
        if not self.base > 0:
            raise InputError(f"Rotary: base={base}.", "a number above 0, usually 10,000")
        found, self.attention_factor = scaled_frequencies(self.size, self.base, scaling)
        self.frequencies = tuple(found.tolist())
        self.scaling = None if scaling is None else dict(scaling)

    def forward(self, x: ArrayLike, places: ArrayLike | None = None) -> Tensor:
        x = as_real("Rotary", x)
        if x.ndim < 2 or x.shape[-1] < self.size:
            raise ShapeError(f"{self._describe()}: vectors of shape {x.shape}.", f"(..., time, {self.size} or more)")
        found = arrays.arange(x.shape[-2]) if places is None else as_tensor("Rotary", arrays.asarray(places))
        if found.shape[-1:] != x.shape[-2:-1]:
            raise ShapeError(
                f"{self._describe()}: places {found.shape} of vectors {x.shape}.", "(time,), (batch, time)"
            )
        if found.ndim > 1:  # (batch, time) beside (batch, heads, time, size)
            found = arrays.reshape(found, (*found.shape[:-1], *[1] * (x.ndim - 1 - found.ndim), found.shape[-1]))
        # in float64, where the angle of a late place is exact; they are the same for all layers, and computed once
        angles = arrays.expand_dims(arrays.astype(found, dtypes.float64), -1) * np.array(self.frequencies)
        cos, sin = (
            arrays.astype(f(angles) * self.attention_factor, x.dtype) for f in (arrays.cos, arrays.sin)
        )  # (..., time, size / 2)
        turned = x[..., : self.size]
        if self.pairing == "halves":
            a, b = turned[..., : self.size // 2], turned[..., self.size // 2 :]
            turned = arrays.concat([a * cos - b * sin, b * cos + a * sin], axis=-1)
        else:
            a, b = turned[..., ::2], turned[..., 1::2]
            pairs = arrays.stack([a * cos - b * sin, b * cos + a * sin], axis=-1)
            turned = arrays.reshape(pairs, turned.shape)
        return turned if x.shape[-1] == self.size else arrays.concat([turned, x[..., self.size :]], axis=-1)

    def extra_repr(self) -> str:
        return ", ".join([str(self.size), *self._changed(base=10_000.0, pairing="halves", scaling=None)])


# --- frequencies for sequences longer than those of the training


def scaled_frequencies(size: int, base: float, scaling: Scaling | None) -> tuple[Array, float]:
    """The frequencies of the pairs, and a factor for cosines and sines."""
    plain = sinusoidal_frequencies(size // 2, base, size)
    if scaling is None:
        return plain, 1.0
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if kind not in SCALINGS:
        raise InputError(f"Rotary: scaling of the type {kind!r}.", f"one of {', '.join(map(repr, SCALINGS))}")
    return SCALINGS[kind](plain, size, base, scaling)


def _setting(scaling: Scaling, name: str, default: float | None = None) -> float:
    if scaling.get(name) is None:
        if default is None:
            raise InputError(f"Rotary: scaling={dict(scaling)} without {name!r}.", f'"{name}": a number')
        return default
    return float(as_number("Rotary", name, scaling[name]))


def _default(plain: Array, size: int, base: float, scaling: Scaling) -> tuple[Array, float]:
    return plain, 1.0


def _linear(plain: Array, size: int, base: float, scaling: Scaling) -> tuple[Array, float]:
    """Places are divided by the factor."""
    return plain / _setting(scaling, "factor"), 1.0


def _ntk(plain: Array, size: int, base: float, scaling: Scaling) -> tuple[Array, float]:
    """A larger base: the lowest frequency is divided by the factor, the highest stays."""
    larger = base * _setting(scaling, "factor") ** (size / max(1, size - 2))
    return sinusoidal_frequencies(size // 2, larger, size), 1.0


def _llama3(plain: Array, size: int, base: float, scaling: Scaling) -> tuple[Array, float]:
    """Waves longer than the old context are divided by the factor, short ones stay, with a passage in between."""
    factor, low, high = (_setting(scaling, n) for n in ("factor", "low_freq_factor", "high_freq_factor"))
    context = _setting(scaling, "original_max_position_embeddings")
    turns = context * plain / (2 * math.pi)  # how often a wave comes round in the old context
    share = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return (1 - share) * plain / factor + share * plain, 1.0


def _yarn(plain: Array, size: int, base: float, scaling: Scaling) -> tuple[Array, float]:
    """Pairs that turn often stay, those that turn seldom are divided; cosines and sines grow a little."""
    factor, context = _setting(scaling, "factor"), _setting(scaling, "original_max_position_embeddings")
    fast, slow = _setting(scaling, "beta_fast", 32.0), _setting(scaling, "beta_slow", 1.0)

    def pair_with(turns: float) -> float:
        """The pair that comes round so often in the old context."""
        return size * math.log(context / (turns * 2 * math.pi)) / (2 * math.log(base))

    first, last = pair_with(fast), pair_with(slow)
    if scaling.get("truncate", True):
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, size - 1)
    share = np.clip((np.arange(size // 2) - first) / max(last - first, 0.001), 0.0, 1.0)  # of the divided ones
    temperature = 0.1 * math.log(factor) + 1.0 if factor > 1 else 1.0
    return plain / factor * share + plain * (1 - share), _setting(scaling, "attention_factor", temperature)


SCALINGS: dict[object, Callable[[Array, int, float, Scaling], tuple[Array, float]]] = {
    "default": _default, "linear": _linear, "ntk": _ntk, "llama3": _llama3, "yarn": _yarn,
}  # fmt: skip
