"""Positions that are put into the tokens, once, before the first block. Book, section 10.2.2.

Without them attention is a function of sets: it cannot tell the order of its tokens. All of these layers are called as
`layer(x, places)`, where the places (..., time) are 0, 1, 2, ... unless something else is said: a cache that has read
n tokens says n, n + 1, ..., and padding is not counted.
"""

from __future__ import annotations

import numpy as np

from ... import arrays
from ...arrays.conversion import as_real, as_tensor
from ...core import dtypes
from ...core.arguments import as_int, as_number
from ...core.errors import DTypeError, InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.continuous import normal
from ...random.streams import take_key
from ...transforms.control.loops import runs_in_python
from ..module.lazy import at_once
from ..module.module import Module
from ..module.parameter import Held, Parameter

__all__ = [
    "AbsolutePositions", "LearnedPositions", "OneHotPositions", "ScalarPositions", "SinusoidalPositions",
    "sinusoidal_frequencies",
]  # fmt: skip


class AbsolutePositions(Module):
    """The base: a vector for each place, `encoding(places)` (..., time, size), which is added to the tokens.

    A subclass that has vectors for the places below `max_length` only refuses others.
    """

    max_length: int | None = None

    def encoding(self, places: Tensor) -> Tensor:
        """The vectors of places."""
        raise NotImplementedError

    def forward(self, x: ArrayLike, places: ArrayLike | None = None) -> Tensor:
        x = as_real(type(self).__name__, x)
        if x.ndim < 2:
            raise ShapeError(f"{self._describe()}: tokens of shape {x.shape}.", "(..., time, features)")
        found = self.encoding(self.checked_places(x, places))
        return self._combined(x, found)

    def _combined(self, x: Tensor, vectors: Tensor) -> Tensor:
        if x.shape[-1] != vectors.shape[-1]:
            raise ShapeError(
                f"{self._describe()}: tokens {x.shape} of {x.shape[-1]} features, positions of {vectors.shape[-1]}.",
                f"tokens (..., time, {vectors.shape[-1]})",
            )
        return x + arrays.astype(vectors, x.dtype)

    def checked_places(self, x: Tensor, places: ArrayLike | None) -> Tensor:
        """The places of tokens (..., time, features)."""
        if places is None:
            found = arrays.arange(x.shape[-2])
        else:
            found = as_tensor(type(self).__name__, arrays.asarray(places))
        if not dtypes.is_integer(found.dtype):
            raise DTypeError(f"{self._describe()}: places of {found.dtype}.", "integers")
        if found.shape[-1:] != x.shape[-2:-1]:
            raise ShapeError(f"{self._describe()}: places {found.shape} of tokens {x.shape}.", "(..., time)")
        if self.max_length is not None and found.size and (places is None or runs_in_python()):
            last = x.shape[-2] - 1 if places is None else int(np.max(found.numpy()))
            if last >= self.max_length:
                raise InputError(
                    f"{self._describe()}: place {last} in a sequence for {self.max_length} places.",
                    f"sequences of {self.max_length} tokens, a larger max_length, or positions without an end "
                    "(SinusoidalPositions, Rotary, ALiBi)",
                )
        return found


class LearnedPositions(AbsolutePositions):
    r"""\(x_i + S_i\) with a trained vector for each place below `max_length`. Book, section 10.2.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.LearnedPositions(512, 64)
    >>> layer(wl.ones((8, 100, 64))).shape, layer.weight.shape
    ((8, 100, 64), (512, 64))

    `weight` S is (max_length, features) and starts from \(N(0, 0.02^2)\). A longer sequence raises.
    """

    weight: Held[Parameter]

    def __init__(
        self,
        max_length: int,
        features: int,
        std: float = 0.02,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        shape = tuple(as_int("LearnedPositions", *s, 1) for s in (("max_length", max_length), ("features", features)))
        self.max_length, self.features = shape
        key = take_key("LearnedPositions", key)
        with at_once(key):
            start = normal(shape, key=key, dtype=dtypes.default_float if dtype is None else dtype)
            self.weight = Parameter(start * float(as_number("LearnedPositions", "std", std)))

    def encoding(self, places: Tensor) -> Tensor:
        return arrays.take(self.weight, places, axis=0)

    def extra_repr(self) -> str:
        return f"{self.max_length}, {self.features}"


class ScalarPositions(AbsolutePositions):
    r"""\(x_i + i/m\), the poor man's positions: one number for all features. Book, section 10.2.2.

    >>> import wonderland as wl
    >>> wl.nn.ScalarPositions(4)(wl.zeros((3, 2))).tolist()
    [[0.0, 0.0], [0.25, 0.25], [0.5, 0.5]]

    It is a baseline: what it adds is at most 1 and hardly differs between neighbours.
    """

    def __init__(self, max_length: int) -> None:
        self.max_length = as_int("ScalarPositions", "max_length", max_length, 1)

    def encoding(self, places: Tensor) -> Tensor:
        assert self.max_length is not None
        return arrays.expand_dims(arrays.astype(places, dtypes.float64) / self.max_length, -1)

    def _combined(self, x: Tensor, vectors: Tensor) -> Tensor:
        return x + arrays.astype(vectors, x.dtype)

    def extra_repr(self) -> str:
        return f"{self.max_length}"


class OneHotPositions(AbsolutePositions):
    r"""\([x_i ; e_i]\): tokens with a 1 at their place, among `max_length` more features. Book, section 10.2.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.OneHotPositions(4)
    >>> layer(wl.zeros((3, 2))).shape, layer.encoding(wl.arange(2)).tolist()
    ((3, 6), [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])

    Another baseline: all places are equally far from each other, and there are many features.
    """

    def __init__(self, max_length: int) -> None:
        self.max_length = as_int("OneHotPositions", "max_length", max_length, 1)

    def encoding(self, places: Tensor) -> Tensor:
        assert self.max_length is not None
        return arrays.one_hot(places, self.max_length)

    def _combined(self, x: Tensor, vectors: Tensor) -> Tensor:
        vectors = arrays.broadcast_to(vectors, (*x.shape[:-1], vectors.shape[-1]))
        return arrays.concat([x, arrays.astype(vectors, x.dtype)], axis=-1)

    def extra_repr(self) -> str:
        return f"{self.max_length}"


def sinusoidal_frequencies(pairs: int, base: float = 10_000.0, size: int | None = None) -> np.ndarray:
    r"""\(\omega_l = b^{-2l/e}\) for l = 0, ..., e/2 - 1: from 1 to nearly 1/b, falling. Book, section 10.2.2.

    >>> sinusoidal_frequencies(4).tolist()
    [1.0, 0.1, 0.01, 0.001]

    The exponent is 2l/e, as there are only e/2 pairs; with l/e, as printed, it would end at \(b^{-1/2}\).
    """
    e = 2 * pairs if size is None else size
    return float(base) ** (-2.0 * np.arange(pairs) / e)


class SinusoidalPositions(AbsolutePositions):
    r"""\(x_i + [\sin \omega_1 i, \cos \omega_1 i, \dots]\) with falling frequencies. Book, section 10.2.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.SinusoidalPositions(4)
    >>> layer(wl.zeros((2, 4))).numpy().round(4).tolist()
    [[0.0, 1.0, 0.0, 1.0], [0.8415, 0.5403, 0.01, 0.9999]]

    \(\omega_l = b^{-2l/e}\) with `base` b, see `sinusoidal_frequencies`, or `frequencies` of your own. A step of o
    places is a rotation of every pair by \(\omega_l o\), so \(s_i \cdot s_j = \sum_l \cos \omega_l (i - j)\). `layout`
    is "interleaved", as above, or "halves": all sines, then all cosines. `mode="sin"` has sines alone, one for each
    feature. Nothing is trained, and there is no largest place.
    """

    def __init__(
        self,
        features: int,
        base: float = 10_000.0,
        layout: str = "interleaved",
        mode: str = "sincos",
        frequencies: ArrayLike | None = None,
    ) -> None:
        name = "SinusoidalPositions"
        self.features = as_int(name, "features", features, 1)
        if layout not in ("interleaved", "halves"):
            raise InputError(f"{name}: layout={layout!r}.", '"interleaved" or "halves"')
        if mode not in ("sincos", "sin"):
            raise InputError(f"{name}: mode={mode!r}.", '"sincos" or "sin"')
        if mode == "sincos" and self.features % 2:
            raise InputError(f"{name}: {features} features cannot be pairs.", 'an even number, or mode="sin"')
        self.base, self.layout, self.mode = float(as_number(name, "base", base)), layout, mode
        count = self.features if mode == "sin" else self.features // 2
        if frequencies is None:
            found = sinusoidal_frequencies(count, self.base, 2 * count)
        else:
            found = np.asarray(frequencies, np.float64)
            if found.shape != (count,):
                raise ShapeError(f"{name}: frequencies of shape {found.shape}.", f"({count},)")
        self.frequencies = tuple(found.tolist())

    def encoding(self, places: Tensor) -> Tensor:
        # in float64, where the angle of a late place is exact; these are few numbers
        angles = arrays.expand_dims(arrays.astype(places, dtypes.float64), -1) * np.array(self.frequencies)
        sines = arrays.sin(angles)
        if self.mode == "sin":
            return sines
        both = [sines, arrays.cos(angles)]
        if self.layout == "halves":
            return arrays.concat(both, axis=-1)
        return arrays.reshape(arrays.stack(both, axis=-1), (*places.shape, self.features))

    def extra_repr(self) -> str:
        return ", ".join([str(self.features), *self._changed(base=10_000.0, layout="interleaved", mode="sincos")])
