r"""S4 and S4D: a system for each channel, run as a convolution over long sequences. Book, section 13.3.1.

A row of the state belongs to one channel: x (rows, time, h) to y (rows, time, h) with states (rows, h, n), complex.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ... import arrays, fft, linalg
from ...core import dtypes
from ...core.arguments import as_int
from ...core.dtypes import DType
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ...random.continuous import normal
from ...random.keys import split
from ...random.streams import take_key
from ...transforms.control.loops import scan
from ..functional.fft_convolution import long_conv
from ..functional.linear_recurrence import linear_recurrence
from ..layers.weighted import as_weight_dtype
from ..module.lazy import at_once
from ..module.parameter import Held, Parameter
from ..sequences.state_layer import State
from .diagonal import as_complex
from .discretization import check_method, discretize
from .hippo import hippo_normal
from .modes import SHORT, Last, TimeInvariantSSM, toeplitz
from .s5 import LEAST_RATE, start_steps
from .scan_operator import powers_of

__all__ = ["S4", "S4D"]

Move: TypeAlias = Callable[[Tensor, Tensor], Tensor]
Read: TypeAlias = Callable[[Tensor], Tensor]


class PerChannel(TimeInvariantSSM):
    """What S4 and S4D share: a kernel (n, h), and a recurrence with its read-out in one step."""

    D: Held[Parameter]  # (h,)

    def __init__(self, channels: int, state: int, mode: str | None) -> None:
        name = type(self).__name__
        self.channels, self.state = as_int(name, "channels", channels, 1), as_int(name, "state", state, 1)
        self.mode = mode

    def rule(self, time: int) -> str:
        """A convolution for long sequences, compiled or not: it never has the states, which are many."""
        return "recurrence" if time <= SHORT else "convolution"

    def features(self) -> int:
        return self.channels

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"s": (self.channels, self.state)}

    def state_dtype(self) -> DType:
        return dtypes.promote_types(self.D.dtype, dtypes.complex64)

    def kernel(self, n: int) -> Tensor:
        """The filter (n, h), the present first: what comes out after a single 1 went in."""
        raise NotImplementedError

    def steps(self) -> tuple[Move, Read]:
        """From states (rows, h, n) and inputs (rows, h) to states, and from states to results (rows, h)."""
        raise NotImplementedError

    def run(self, x: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:
        return self.recur(x, state, real)  # whoever reads on needs the state

    def recur(self, x: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:
        move, read = self.steps()

        def step(s: Tensor, now: tuple[Tensor, Tensor | None]) -> tuple[Tensor, Tensor]:
            new = move(s, now[0])
            s = new if now[1] is None else arrays.where(now[1][:, None, None], new, s)
            return s, read(s)

        masks = None if real is None else arrays.swapaxes(real, 0, 1)
        s, y = scan(step, state["s"], (arrays.swapaxes(x, 0, 1), masks))
        return self._with_skip(arrays.swapaxes(y, 0, 1), x), {"s": s}

    def at_once(self, x: Tensor, state: State, mode: str) -> tuple[Tensor, Last]:
        """Sequences from their beginning: `state` is zero."""
        if mode == "scan":
            y = self._scanned(x)
        elif mode == "closed":
            y = arrays.einsum("ijh,rjh->rih", toeplitz(self.kernel(x.shape[1])), x)
        else:
            kernel = self.kernel(x.shape[1])
            y = long_conv(arrays.astype(x, kernel.dtype), kernel)
        return self._with_skip(y, x), lambda lengths: state

    def _scanned(self, x: Tensor) -> Tensor:
        raise InputError(
            f"{self._describe()}: mode='scan' would multiply a matrix for each channel and token.",
            "'recurrence', 'convolution', 'closed' or None; S4D has a diagonal, whose scan is cheap",
        )

    def _with_skip(self, y: Tensor, x: Tensor) -> Tensor:
        return arrays.astype(y + self.D * x, dtypes.promote_types(x.dtype, self.D.dtype))

    def extra_repr(self) -> str:
        return f"channels={self.channels}, state={self.state}"


class S4D(PerChannel):
    r"""\(\dot s = \Lambda s + x,\; y = 2\operatorname{Re}(C s) + D x\), \(\Lambda\) diagonal. Book, section 13.3.1.

    >>> import wonderland as wl
    >>> layer = wl.nn.S4D(8, state=32)
    >>> layer(wl.ones((2, 100, 8))).shape, layer.num_parameters()  # 4 h n + 2 h
    ((2, 100, 8), 1040)

    Each channel by itself, (..., time, h) to the same; no channel sees another, so an `SSMBlock` mixes them. n =
    `state` complex numbers stand for 2n real ones. \(\Lambda\), whose real part is negative for all values of the
    parameters, starts from "legs" (the normal part of `hippo_legs(2 n)`), "lin" \((-\frac12 + \pi i k)\) or "inv", as
    `init` says; the steps \(\Delta\), one for each channel, from `step_min` to `step_max`. Whole sequences beyond 64
    tokens are convolved with the kernel \(K_k = 2\operatorname{Re}\sum_n C_n \bar\Lambda_n^k \bar B_n\), which is
    causal up to rounding; reading on takes the recurrence. `method` is that of `discretize`.
    """

    def __init__(
        self,
        channels: int,
        state: int = 32,
        *,
        init: str = "legs",
        step_min: float = 0.001,
        step_max: float = 0.1,
        method: str = "zoh",
        mode: str | None = None,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        super().__init__(channels, state, mode)
        check_method("S4D", method)
        self.method, shape = method, (self.channels, self.state)
        kind, drawn = as_weight_dtype("S4D", dtype), take_key("S4D", key)
        keys = split(drawn, 4)
        values = _start("S4D", init, self.state)
        with at_once(drawn):
            wide = np.broadcast_to(values, shape)
            self.log_rate = Parameter(arrays.asarray(np.log(-wide.real), dtype=kind))
            self.frequency = Parameter(arrays.asarray(wide.imag, dtype=kind))
            self.log_step = Parameter(start_steps((self.channels,), step_min, step_max, keys[0], kind))
            self.C_re = Parameter(normal(shape, key=keys[1], dtype=kind) * math.sqrt(0.5))
            self.C_im = Parameter(normal(shape, key=keys[2], dtype=kind) * math.sqrt(0.5))
            self.D = Parameter(normal((self.channels,), key=keys[3], dtype=kind))

    def system(self) -> tuple[Tensor, Tensor]:
        r"""\(\bar\Lambda\) and \(\bar B\), (h, n)."""
        rate = arrays.exp(arrays.maximum(self.log_rate, LEAST_RATE))
        return discretize(arrays.exp(self.log_step)[:, None], as_complex(-rate, self.frequency), 1.0, self.method)

    def steps(self) -> tuple[Move, Read]:
        (decay, B), C = self.system(), as_complex(self.C_re, self.C_im)
        return (
            lambda s, x: decay * s + B * x[..., None],
            lambda s: 2 * arrays.sum(arrays.real(C * s), axis=-1),
        )

    def kernel(self, n: int) -> Tensor:
        decay, B = self.system()
        powers = arrays.reshape(powers_of(arrays.reshape(decay, -1), n), (n, self.channels, self.state))
        return 2 * arrays.sum(arrays.real(as_complex(self.C_re, self.C_im) * B * powers), axis=-1)

    def _scanned(self, x: Tensor) -> Tensor:
        (decay, B), (_, read) = self.system(), self.steps()
        return read(linear_recurrence(decay, B * x[..., None], axis=1, method="associative"))


class S4(PerChannel):
    r"""\(\dot s = (\Lambda - P P^*) s + B x,\; y = \operatorname{Re}(C s) + D x\) for each channel. Book, 13.3.1.

    >>> import wonderland as wl
    >>> layer = wl.nn.S4(8, state=16)
    >>> layer(wl.ones((2, 100, 8))).shape, layer.num_parameters()  # 8 h n + 2 h
    ((2, 100, 8), 1040)

    A diagonal plus a matrix of rank 1 is what `hippo_legs(n)` is in a unitary basis, and what it starts from; with a
    negative real part of \(\Lambda\) it is stable for all values of the parameters. Steps are bilinear and take n
    products, since the inverse of a diagonal plus rank 1 is one again. The kernel of n places comes from its generating
    function at the roots of unity,

    \(\hat K(z) = 2\,(c_{CB} - (1 + z)\, c_{CP} (1 + (1 + z) c_{PP})^{-1} c_{PB})\),
    \(c_{uv} = \sum_n u_n v_n / (\frac2\Delta (1 - z) - (1 + z)\lambda_n)\),

    four Cauchy products with \(\tilde C = C(I - \bar A^n)\) in the place of C, so that the end does not reach around to
    the beginning. States are n complex numbers for each channel. Otherwise it is as `S4D`.
    """

    log_rate: Held[Parameter]
    frequency: Held[Parameter]
    P_re: Held[Parameter]
    P_im: Held[Parameter]
    B_re: Held[Parameter]
    B_im: Held[Parameter]

    def __init__(
        self,
        channels: int,
        state: int = 64,
        *,
        step_min: float = 0.001,
        step_max: float = 0.1,
        mode: str | None = None,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        super().__init__(channels, state, mode)
        shape = (self.channels, self.state)
        kind, drawn = as_weight_dtype("S4", dtype), take_key("S4", key)
        keys = split(drawn, 3)
        start = hippo_normal(self.state, dtype="float64")
        values, P, B, V = (np.asarray(part) for part in start)
        with at_once(drawn):
            C = normal(shape, key=keys[1], dtype="float64") / math.sqrt(self.state) @ arrays.asarray(V)  # of a real one
            parts = {"log_rate": np.log(-values.real), "frequency": values.imag, "P_re": P.real, "P_im": P.imag}
            parts |= {"B_re": B.real, "B_im": B.imag}
            for name, value in parts.items():
                setattr(self, name, Parameter(arrays.asarray(np.broadcast_to(value, shape), dtype=kind)))
            self.C_re, self.C_im = (Parameter(arrays.astype(part, kind)) for part in (C.real, C.imag))
            self.log_step = Parameter(start_steps((self.channels,), step_min, step_max, keys[0], kind))
            self.D = Parameter(normal((self.channels,), key=keys[2], dtype=kind))

    def system(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        r"""\(\Delta\) (h, 1), and \(\Lambda\), P, B, C of continuous time, (h, n)."""
        rate = arrays.exp(arrays.maximum(self.log_rate, LEAST_RATE))
        P, B = as_complex(self.P_re, self.P_im), as_complex(self.B_re, self.B_im)
        values, C = as_complex(-rate, self.frequency), as_complex(self.C_re, self.C_im)
        return arrays.exp(self.log_step)[:, None], values, P, B, C

    def steps(self) -> tuple[Move, Read]:
        delta, values, P, B, C = self.system()
        half, Q = delta / 2, arrays.conj(P)
        grow, shrink, inputs = 1 + half * values, 1 / (1 - half * values), delta * B
        back = shrink * P * (half / (1 + half * arrays.sum(Q * shrink * P, axis=-1, keepdims=True)))

        def move(s: Tensor, x: Tensor) -> Tensor:
            v = grow * s - half * P * arrays.sum(Q * s, axis=-1, keepdims=True) + inputs * x[..., None]
            v = shrink * v
            return v - back * arrays.sum(Q * v, axis=-1, keepdims=True)

        return move, lambda s: arrays.sum(arrays.real(C * s), axis=-1)

    def kernel(self, n: int) -> Tensor:
        delta, values, P, B, C = self.system()
        one = arrays.broadcast_to(arrays.eye(self.state, dtype=C.dtype)[:, None], (self.state, *C.shape))
        moved = self.steps()[0](one, arrays.zeros(one.shape[:2], dtype=self.D.dtype))
        power = linalg.matrix_power(arrays.moveaxis(moved, 0, -1), n)  # (h, n, n): each channel has its own step
        C = C - (C[:, None] @ power)[:, 0]
        angle = -2 * math.pi / n * arrays.arange(n, dtype=self.D.dtype)
        z = as_complex(arrays.cos(angle), arrays.sin(angle))[:, None]  # (n, 1)
        cauchy = 1 / ((2 / delta) * (1 - z[..., None]) - (1 + z[..., None]) * values)  # (n, h, state)
        Q = arrays.conj(P)
        cb, cp, qb, qp = (arrays.sum(u * v * cauchy, axis=-1) for u, v in ((C, B), (C, P), (Q, B), (Q, P)))
        found = 2 * (cb - (1 + z) * cp * qb / (1 + (1 + z) * qp))
        return arrays.real(fft.ifft(found, axis=0))


def _start(name: str, init: str, n: int) -> np.ndarray:
    """Eigenvalues (n,), one of each conjugate pair."""
    k = np.arange(n)
    if init == "legs":
        return np.asarray(hippo_normal(2 * n, dtype="float64").eigenvalues)[n:]
    if init == "lin":
        return -0.5 + 1j * math.pi * k
    if init == "inv":
        return -0.5 + 1j * (2 * n / math.pi) * (2 * n / (2 * k + 1) - 1)
    raise InputError(f"{name}: init={init!r}.", "'legs', 'lin' or 'inv'")
