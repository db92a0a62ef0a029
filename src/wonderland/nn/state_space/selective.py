"""The selective state-space model: what is kept and forgotten depends on the token. Book, section 13.4.3."""

from __future__ import annotations

import math

from ... import arrays
from ...core import dtypes
from ...core.arguments import as_int
from ...core.dtypes import DType
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.continuous import uniform
from ...random.keys import split
from ...random.streams import take_key
from ..layers.linear import Linear
from ..layers.weighted import as_weight_dtype
from ..module.lazy import at_once
from ..module.parameter import Parameter
from ..sequences.state_layer import State, StateLayer
from .discretization import check_method
from .modes import whole
from .selective_scan import MODES, selective_scan

__all__ = ["SelectiveSSM"]


class SelectiveSSM(StateLayer):
    r"""\(s_i = \bar A(x_i) s_{i-1} + \bar B(x_i) x_i,\; h_i = C(x_i) s_i + D x_i\). Book, E.13.29-30.

    >>> import wonderland as wl
    >>> layer = wl.nn.SelectiveSSM(32, state=16)
    >>> layer(wl.ones((2, 100, 32))).shape, layer.num_parameters()  # e (r + 2 n) + (r + 1) e + e n + e
    ((2, 100, 32), 1728)

    Each channel by itself, (..., time, e) to the same, with a state of e n numbers. B and C are linear in the token,
    \(\bar A = e^{\Delta A}\) with a trained negative A (e, n), `-exp(A_log)`, and a step \(\Delta =
    \mathrm{softplus}(\cdot)\) that is linear in the token, too, through r = `rank` numbers (by default e/16): so no
    state can grow, which a plain linear A(x) does not promise (footnote 5 of the book). `project` gives the r numbers,
    B and C, and `step_size` the step. `method` is that of `discretize`, and `mode` "loop" or "scan" as in
    `selective_scan`; a convolution there cannot be, since the system changes with what it reads. `bias` gives a bias to
    `project`. A starts at -1, ..., -n, and the steps between `step_min` and `step_max`.
    """

    def __init__(
        self,
        e: int,
        state: int = 16,
        *,
        rank: int | None = None,
        bias: bool = False,
        method: str = "mamba",
        mode: str = "loop",
        step_min: float = 0.001,
        step_max: float = 0.1,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "SelectiveSSM"
        self.e, self.state = as_int(name, "e", e, 1), as_int(name, "state", state, 1)
        self.rank = max(1, -(-self.e // 16)) if rank is None else as_int(name, "rank", rank, 1)
        check_method(name, method)
        self.method, self.mode = method, as_selective_mode(name, mode)
        kind, drawn = as_weight_dtype(name, dtype), take_key(name, key)
        keys, bound = split(drawn, 4), self.rank**-0.5
        self.project = Linear(self.e, self.rank + 2 * self.state, bias, dtype=dtype, key=keys[0])
        self.step_size = Linear(self.rank, self.e, dtype=dtype, key=keys[1])
        with at_once(drawn):
            self.step_size.weight = uniform((self.rank, self.e), -bound, bound, key=keys[2], dtype=kind)
            self.step_size.bias = start_step_bias((self.e,), step_min, step_max, keys[3], kind)
            places = arrays.astype(arrays.arange(1, self.state + 1), kind)
            self.A_log = Parameter(arrays.log(arrays.broadcast_to(places, (self.e, self.state))))
            self.D = Parameter(arrays.ones(self.e, dtype=kind))

    def features(self) -> int:
        return self.e

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"s": (self.e, self.state)}

    def selected(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        r"""\(\Delta\) (..., e), B and C (..., n): what the tokens choose."""
        chosen, r, n = self.project(x), self.rank, self.state
        delta = arrays.softplus(self.step_size(chosen[..., :r]))
        return delta, chosen[..., r : r + n], chosen[..., r + n :]

    def forward(
        self,
        x: ArrayLike,
        token_mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
        mode: str | None = None,
    ) -> Tensor:
        chosen = self.mode if mode is None else as_selective_mode("SelectiveSSM", mode)
        return whole(self, x, token_mask, lengths, lambda x, state, real: self._by_mode(x, state, real, chosen)[0])

    def run(self, x: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:
        return self._by_mode(x, state, real, self.mode)

    def _by_mode(self, x: Tensor, state: State, real: Tensor | None, mode: str) -> tuple[Tensor, State]:
        delta, B, C = self.selected(x)
        if real is not None:  # a step of size 0 leaves the state as it is
            delta = arrays.where(real[..., None], delta, 0.0)
        A, first = -arrays.exp(self.A_log), state["s"]
        y, s = selective_scan(x, delta, A, B, C, self.D, first, method=self.method, mode=mode)
        return y, {"s": s}

    def extra_repr(self) -> str:
        return f"{self.e}, state={self.state}, rank={self.rank}, mode={self.mode!r}"


def as_selective_mode(name: str, mode: str) -> str:
    """ "loop" or "scan"; the other modes of linear systems are refused with the reason."""
    if mode in ("convolution", "closed"):
        raise InputError(
            f"{name}: mode={mode!r} needs a system that does not change, and this one depends on what it reads.",
            "'loop' or 'scan'",
        )
    if mode not in MODES:
        raise InputError(f"{name}: mode={mode!r}.", "'loop' or 'scan'")
    return mode


def start_step_bias(shape: tuple[int, ...], low: float, high: float, key: Tensor, dtype: DType) -> Tensor:
    """What softplus turns into steps whose logarithms are uniform between those of two numbers."""
    if not 0 < low <= high:
        raise InputError(f"steps from {low} to {high}.", "0 < step_min <= step_max")
    wide = dtypes.promote_types(dtype, dtypes.float32)
    step = arrays.exp(uniform(shape, math.log(low), math.log(high), key=key, dtype=wide))
    return arrays.astype(step + arrays.log(-arrays.expm1(-step)), dtype)
