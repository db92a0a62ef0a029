"""S5: one diagonal system for all channels, that starts from HiPPO. Book, section 13.3.1."""

from __future__ import annotations

import math

import numpy as np

from ... import arrays
from ...core import dtypes
from ...core.arguments import as_int
from ...core.dtypes import DType
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ...random.continuous import normal, uniform
from ...random.keys import split
from ...random.streams import take_key
from ..functional.linear_recurrence import linear_recurrence
from ..layers.weighted import as_weight_dtype
from ..module.lazy import at_once
from ..module.parameter import Held, Parameter
from ..sequences.state_layer import State
from .diagonal import as_complex
from .discretization import check_method, discretize
from .hippo import hippo_normal
from .modes import Last, TimeInvariantSSM, diagonal_states, state_after

__all__ = ["S5"]

LEAST_RATE = -20.0  # of the logarithm of the rate of decay: exp(-20) is as good as none


class S5(TimeInvariantSSM):
    r"""\(\dot s = \Lambda s + B x,\; y = 2\operatorname{Re}(C s) + D x\) in steps of \(\Delta\). Book, section 13.3.1.

    >>> import wonderland as wl
    >>> layer = wl.nn.S5(8, 32, 8)
    >>> layer(wl.ones((2, 100, 8))).shape, layer.num_parameters()  # 3 e + 2 e c + 2 o e + o c
    ((2, 100, 8), 1184)

    (..., time, c) to (..., time, o). e complex numbers of state stand for 2e real ones, as those of a real system come
    in conjugate pairs. \(\Lambda\) starts with the eigenvalues of the normal part of `hippo_legs(2 e)`, B and C in the
    basis of its eigenvectors; with `blocks` there are so many smaller ones side by side. Every state has a step of its
    own between `step_min` and `step_max` at the start; `method` is that of `discretize`. The real part of \(\Lambda\)
    is \(-e^{\dots}\), so nothing grows. S4 has a system for each channel, this one a system of many inputs and outputs
    (MIMO). Book, section 13.3.1.
    """

    D: Held[Parameter | None]

    def __init__(
        self,
        c: int,
        e: int,
        o: int,
        *,
        blocks: int = 1,
        step_min: float = 0.001,
        step_max: float = 0.1,
        method: str = "zoh",
        skip: bool = True,
        mode: str | None = None,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "S5"
        c, e, o = as_int(name, "c", c, 1), as_int(name, "e", e, 1), as_int(name, "o", o, 1)
        if e % as_int(name, "blocks", blocks, 1):
            raise InputError(f"{name}: {e} states in {blocks} blocks.", "a number of blocks that divides e")
        check_method(name, method)
        self.method, self.mode = method, mode
        kind = as_weight_dtype(name, dtype)
        drawn = take_key(name, key)
        keys = split(drawn, 4)
        # of each conjugate pair the one with the positive imaginary part
        part = hippo_normal(2 * e // blocks, dtype="float64")
        values, V = np.asarray(part.eigenvalues)[e // blocks :], np.asarray(part.V)[:, e // blocks :]
        basis = np.kron(np.eye(blocks), V)  # (2 e, e)
        with at_once(drawn):
            self.log_rate = Parameter(arrays.asarray(np.log(-np.tile(values.real, blocks)), dtype=kind))
            self.frequency = Parameter(arrays.asarray(np.tile(values.imag, blocks), dtype=kind))
            self.log_step = Parameter(start_steps((e,), step_min, step_max, keys[0], kind))
            B = arrays.asarray(basis.conj().T) @ (normal((2 * e, c), key=keys[1], dtype="float64") / math.sqrt(c))
            C = (normal((o, 2 * e), key=keys[2], dtype="float64") / math.sqrt(2 * e)) @ arrays.asarray(basis)
            self.B_re, self.B_im = (Parameter(arrays.astype(p, kind)) for p in (B.real, B.imag))
            self.C_re, self.C_im = (Parameter(arrays.astype(p, kind)) for p in (C.real, C.imag))
            self.D = Parameter(normal((o, c), key=keys[3], dtype=kind) / math.sqrt(c)) if skip else None

    def system(self) -> tuple[Tensor, Tensor]:
        r"""\(\bar\Lambda\) (e,) and \(\bar B\) (e, c) of the steps."""
        rate = arrays.exp(arrays.maximum(self.log_rate, LEAST_RATE))
        delta, values = arrays.exp(self.log_step), as_complex(-rate, self.frequency)
        decay, scale = discretize(delta, values, 1.0, self.method)
        return decay, scale[:, None] * as_complex(self.B_re, self.B_im)

    def features(self) -> int:
        return self.B_re.shape[1]

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"s": (self.log_rate.shape[0],)}

    def state_dtype(self) -> DType:
        return dtypes.promote_types(self.log_rate.dtype, dtypes.complex64)

    def at_once(self, x: Tensor, state: State, mode: str) -> tuple[Tensor, Last]:
        decay, B = self.system()
        states = diagonal_states(decay, x @ B.mT, state["s"], mode)
        return self._read(states, x), lambda lengths: {"s": state_after(states, state["s"], lengths)}

    def recur(self, x: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:
        decay, B = self.system()
        decay = decay if real is None else arrays.where(real[..., None], decay, 1.0)
        states = linear_recurrence(decay, x @ B.mT, state["s"], axis=1, method="sequential")
        return self._read(states, x), {"s": states[:, -1]}

    def _read(self, states: Tensor, x: Tensor) -> Tensor:
        y = 2 * arrays.real(states @ as_complex(self.C_re, self.C_im).mT)
        y = y if self.D is None else y + x @ self.D.mT
        return arrays.astype(y, dtypes.promote_types(x.dtype, self.log_rate.dtype))

    def extra_repr(self) -> str:
        (e, c), o = self.B_re.shape, self.C_re.shape[0]
        return f"c={c}, e={e}, o={o}, method={self.method!r}"


def start_steps(shape: tuple[int, ...], low: float, high: float, key: Tensor, dtype: DType) -> Tensor:
    """Logarithms of steps, uniform between those of two numbers."""
    if not 0 < low <= high:
        raise InputError(f"steps from {low} to {high}.", "0 < step_min <= step_max")
    return uniform(shape, math.log(low), math.log(high), key=key, dtype=dtype)
