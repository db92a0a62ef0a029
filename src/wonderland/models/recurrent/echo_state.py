"""Echo state networks: a recurrence that nobody trains, and a read-out in closed form. Book, section 13.2.2."""

from __future__ import annotations

from typing import Self

import numpy as np

from ... import arrays
from ...arrays.conversion import as_real
from ...core import dtypes
from ...core.arguments import as_int, as_number
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...linalg.spectra import spectral_radius as radius_of
from ...nn.layers.linear import Linear
from ...nn.module.parameter import Buffer, Held
from ...nn.sequences.state_layer import State, StateLayer
from ...nn.sequences.token_masks import as_sequence, as_token_mask, silenced
from ...random.continuous import uniform
from ...random.keys import split
from ...random.streams import take_key
from ...transforms.control.loops import scan
from ..classical.least_squares import ridge_solve

__all__ = ["EchoStateNetwork"]


class EchoStateNetwork(StateLayer):
    r"""A fixed random recurrence, the reservoir, of which only a linear read-out is trained. Book, section 13.2.2.

    \(s_i = (1 - a)\,s_{i-1} + a\tanh(s_{i-1} A + x_i B + b), \quad h_i = s_i W + c\)

    >>> import wonderland as wl
    >>> x = wl.series.make_sines(600, [25])  # (time, channels)
    >>> model = wl.models.EchoStateNetwork(1, 100, key=wl.random.key(0)).fit(x[:500])  # to tell the next value
    >>> forecast = model.forecast(x[:500], 100)
    >>> bool(wl.abs(forecast - x[500:]).max() < 0.001)
    True

    A (size, size), B (features, size) and b are buffers, drawn once: `sparsity` of the entries of A are 0, and its
    spectral radius, the largest |eigenvalue|, is as asked. Below 1 the states forget where they began (mostly: it is
    neither necessary nor enough), so the first `washout` steps of each sequence do not count in `fit`. `leak` is a, the
    share of a state that is new, `input_scale` and `bias_scale` are the bounds of the entries of B and b.

    With `skip` the read-out sees \([s_i, x_i]\).

    `fit` solves for W and c by ridge regression; `wl.train.fit` trains them by descent, as they are the only
    parameters: (size + 1) out of them, with `skip` (size + features + 1) out. As every layer with a state it is called
    with sequences (..., time, features), and reads on by `extend` and `step`.
    """

    A: Held[Buffer]
    B: Held[Buffer]
    b: Held[Buffer]

    def __init__(
        self,
        in_features: int,
        size: int,
        out_features: int | None = None,
        spectral_radius: float = 0.9,
        sparsity: float = 0.9,
        leak: float = 1.0,
        input_scale: float = 0.2,
        bias_scale: float = 0.2,
        skip: bool = False,
        washout: int = 100,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "EchoStateNetwork"
        self.in_features, self.size = as_int(name, "in_features", in_features, 1), as_int(name, "size", size, 1)
        out = self.in_features if out_features is None else as_int(name, "out_features", out_features, 1)
        self.spectral_radius = _share(name, "spectral_radius", spectral_radius, np.inf)
        self.sparsity, self.leak = _share(name, "sparsity", sparsity, 1.0), _share(name, "leak", leak, 1.0)
        self.input_scale = _share(name, "input_scale", input_scale, np.inf)
        self.bias_scale = _share(name, "bias_scale", bias_scale, np.inf)
        if self.leak == 0:
            raise InputError(f"{name}: leak=0 never lets anything in.", "a share above 0, up to 1")
        self.washout = as_int(name, "washout", washout, 0)
        kind = dtypes.default_float if dtype is None else dtypes.as_dtype(dtype)
        keys = split(take_key(name, key), 5)
        weight = uniform((size, size), -1.0, 1.0, key=keys[0], dtype=kind)
        kept = uniform((size, size), key=keys[1], dtype=dtypes.float32) >= self.sparsity
        self.A = Buffer(_scaled(arrays.where(kept, weight, arrays.zeros_like(weight)), self.spectral_radius))
        bound = self.input_scale
        self.B = Buffer(uniform((self.in_features, size), -bound, bound, key=keys[2], dtype=kind))
        self.b = Buffer(uniform((size,), -self.bias_scale, self.bias_scale, key=keys[3], dtype=kind))
        self.skip = bool(skip)
        self.readout = Linear(size + (self.in_features if self.skip else 0), out, dtype=kind, key=keys[4])

    def features(self) -> int:
        return self.in_features

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"s": (self.size,)}

    def run(self, x: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:
        states = self._states(x, state["s"], real)
        return self.readout(self._seen(states, x)), {"s": states[:, -1]}

    def _seen(self, states: Tensor, x: Tensor) -> Tensor:
        """What the read-out sees."""
        return arrays.concat([states, x], axis=-1) if self.skip else states

    def states(self, x: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None) -> Tensor:
        """The states of the reservoir (..., time, size) for sequences (..., time, features).

        >>> import wonderland as wl
        >>> wl.models.EchoStateNetwork(2, 50).states(wl.ones((3, 7, 2))).shape
        (3, 7, 50)
        """
        x = as_sequence(self, x, self.in_features)
        lead = x.shape[:-1]
        real = as_token_mask(self._describe(), lead, token_mask, lengths)
        flat = arrays.reshape(silenced(x, real), (-1, *x.shape[-2:]))
        rows = flat.shape[:2]
        start = arrays.astype(self.start(rows[0])["s"], dtypes.promote_types(self.A.dtype, x.dtype))
        found = self._states(flat, start, None if real is None else arrays.reshape(real, rows))
        return arrays.reshape(found, (*lead, self.size))

    def _states(self, x: Tensor, start: Tensor, real: Tensor | None) -> Tensor:
        inputs = arrays.swapaxes(arrays.matmul(x, self.B) + self.b, 0, 1)  # (t, rows, size)
        A, leak = self.A + 0, self.leak

        def new(s: Tensor, u: Tensor) -> Tensor:
            return (1 - leak) * s + leak * arrays.tanh(arrays.matmul(s, A) + u)

        if real is None:

            def step(s: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
                s = new(s, u)
                return s, s

            return arrays.swapaxes(scan(step, start, inputs)[1], 0, 1)

        def masked(s: Tensor, now: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
            s = arrays.where(now[1], new(s, now[0]), s)
            return s, s

        flags = arrays.expand_dims(arrays.swapaxes(real, 0, 1), -1)
        return arrays.swapaxes(scan(masked, start, (inputs, flags))[1], 0, 1)

    # --- the read-out

    def fit(
        self, x: ArrayLike, y: ArrayLike | None = None, ridge: float = 1e-6, lengths: ArrayLike | None = None
    ) -> Self:
        r"""The read-out with the least \(\sum \|y_i - h_i\|^2 + \lambda\|W\|^2\) over all steps after the washout.

        >>> import wonderland as wl
        >>> u, y = wl.series.make_narma(1000)
        >>> model = wl.models.EchoStateNetwork(1, 100, 1, key=wl.random.key(0)).fit(u, y)
        >>> model(u).shape
        (1000, 1)

        x is (..., time, features) and y (..., time, out); without y it is x one step later. The reservoir stays as it
        is. It is computed in float64. `lengths` are the numbers of real steps, as when the layer is called.
        """
        x = as_sequence(self, x, self.in_features)
        if y is None:
            if lengths is not None:
                raise InputError(f"{self._describe()}: lengths without y.", "y, the values one step later")
            x, y = x[..., :-1, :], x[..., 1:, :]
        targets = as_real(self._describe(), y)
        out = self.readout.out_features
        if targets.shape != (*x.shape[:-1], out):
            raise ShapeError(f"{self._describe()}: targets of shape {targets.shape}.", f"{(*x.shape[:-1], out)}")
        time = x.shape[-2]
        real = np.ones(x.shape[:-1], np.bool_)
        if (mask := as_token_mask(self._describe(), x.shape[:-1], None, lengths)) is not None:
            real = np.asarray(mask)
        used = real & (np.arange(time) >= self.washout)
        if not used.any():
            raise InputError(
                f"{self._describe()}: {time} steps, of which {self.washout} are washed out.",
                "longer series, or washout=0",
            )
        seen = self._seen(self.states(x, lengths=lengths), silenced(x, mask))
        design = arrays.asarray(np.asarray(seen)[used].astype(np.float64))
        wanted = arrays.asarray(np.asarray(targets)[used].astype(np.float64))
        found = arrays.astype(ridge_solve(design, wanted, ridge, bias=True), self.readout.weight.dtype)
        assert self.readout.bias is not None
        self.readout.weight.assign(found[:-1])
        self.readout.bias.assign(found[-1])
        return self

    def forecast(self, x: ArrayLike, horizon: int = 1) -> Tensor:
        """The values (..., horizon, features) after a series (..., time, features): each result is the next input.

        >>> import wonderland as wl
        >>> model = wl.models.EchoStateNetwork(1, 50).fit(wl.series.make_sines(300))
        >>> model.forecast(wl.series.make_sines(300), horizon=5).shape
        (5, 1)
        """
        if self.readout.out_features != self.in_features:
            raise InputError(
                f"{self._describe()}: {self.readout.out_features} results for {self.in_features} inputs after them.",
                "a network with as many results as inputs",
            )
        horizon = as_int("forecast", "horizon", horizon, 1)
        x = as_sequence(self, x, self.in_features)
        if not x.shape[-2]:
            raise ShapeError(f"{self._describe()}: a series of shape {x.shape}.", "one step or more")
        rows = arrays.reshape(x, (-1, *x.shape[-2:]))
        y, cache = self.extend(rows)
        first, start = y[:, -1], arrays.astype(cache.state["s"], y.dtype)

        def further(carry: tuple[Tensor, Tensor], _: None) -> tuple[tuple[Tensor, Tensor], Tensor]:
            s, now = carry
            after, state = self.run(now[:, None], {"s": s}, None)
            return (state["s"], after[:, 0]), after[:, 0]

        _, later = scan(further, (start, first), length=horizon - 1)
        found = arrays.concat([first[:, None], arrays.swapaxes(later, 0, 1)], axis=1)
        return arrays.reshape(found, (*x.shape[:-2], horizon, self.in_features))

    def extra_repr(self) -> str:
        return (
            f"{self.in_features}, size={self.size}, spectral_radius={self.spectral_radius}, sparsity={self.sparsity}, "
            f"leak={self.leak}"
        )


def _share(name: str, what: str, value: float, most: float) -> float:
    if not 0 <= as_number(name, what, value) <= most:
        raise InputError(f"{name}: {what}={value}.", "a number from 0 to 1" if most == 1 else "a number, 0 or more")
    return float(value)


def _scaled(matrix: Tensor, radius: float) -> Tensor:
    """A matrix with the spectral radius that was asked for."""
    found = float(radius_of(arrays.astype(matrix, dtypes.float64)))
    if radius and not found:
        raise InputError(
            f"EchoStateNetwork: all eigenvalues of a reservoir of {matrix.shape[0]} units are 0, so many of its "
            "connections are missing.",
            "a smaller sparsity, or more units",
        )
    return arrays.astype(matrix * (radius / (found or 1.0)), matrix.dtype)
