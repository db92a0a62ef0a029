"""The linear state-space model with any matrices. Book, section 13.3.1."""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from ... import arrays
from ...core.arguments import as_int, as_number
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.continuous import normal
from ...random.keys import split
from ...random.streams import take_key
from ...transforms.control.loops import scan
from .. import functional as F  # noqa: N812 - as everybody calls it
from ..init.schemes import orthogonal
from ..layers.weighted import as_weight_dtype
from ..module.lazy import at_once
from ..module.parameter import Held, Parameter
from ..sequences.state_layer import State
from .diagonalization import check_disc
from .discretization import discretize_matrix
from .hippo import hippo_legs
from .modes import Last, TimeInvariantSSM, state_after, toeplitz
from .scan_operator import powers_of, ssm_kernel, ssm_scan

__all__ = ["LinearSSM"]


class LinearSSM(TimeInvariantSSM):
    r"""\(s_i = A s_{i-1} + B x_i,\; h_i = C s_i + D x_i\): (..., time, c) to (..., time, o). Book, E.13.18-19.

    >>> import wonderland as wl
    >>> layer = wl.nn.LinearSSM.from_matrices([[0.5]], [[1.0]], [[1.0]])
    >>> layer(wl.ones((6, 1)))[:, 0].tolist()
    [1.0, 1.5, 1.75, 1.875, 1.9375, 1.96875]
    >>> wl.nn.LinearSSM(3, 16, 2).num_parameters()  # e² + e c + o e + o c
    342

    The state has e numbers. There is no function but sums and products in it, so that it is linear in the whole
    sequence, and the four modes give the same: see `TimeInvariantSSM`. `A` is (e, e), `B` (e, c), `C` (o, e), `D` (o,
    c), or None with `skip=False`. A starts as `radius` times an orthogonal matrix, or, with `init="hippo"`, from
    `hippo_legs(e)` in steps of 1/e (bilinear). Nothing keeps its eigenvalues in the unit disc while it is trained;
    `DiagonalSSM` and `LRU` do. A product with A takes e² steps, in a scan e³; those of a diagonal matrix take e.
    """

    D: Held[Parameter | None]

    def __init__(
        self,
        c: int,
        e: int,
        o: int,
        *,
        init: str = "orthogonal",
        radius: float = 0.95,
        skip: bool = True,
        mode: str | None = None,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "LinearSSM"
        c, e, o = as_int(name, "c", c, 1), as_int(name, "e", e, 1), as_int(name, "o", o, 1)
        if init not in ("orthogonal", "hippo"):
            raise InputError(f"{name}: init={init!r}.", "'orthogonal' or 'hippo'")
        if not 0 <= as_number(name, "radius", radius) <= 1:
            raise InputError(f"{name}: radius={radius}.", "a number from 0 to 1")
        kind = as_weight_dtype(name, dtype)
        drawn = take_key(name, key)
        keys = split(drawn, 4)
        with at_once(drawn):
            A = orthogonal()((e, e), key=keys[0], dtype=kind) * radius
            B = normal((e, c), key=keys[1], dtype=kind) / math.sqrt(c)
            if init == "hippo":
                wide = hippo_legs(e)
                columns = np.repeat(np.asarray(wide.B)[:, None], c, axis=1) / math.sqrt(c)
                found = discretize_matrix(1.0 / e, wide.A, columns, "bilinear")
                A, B = (arrays.astype(part, kind) for part in found)
            C = normal((o, e), key=keys[2], dtype=kind) / math.sqrt(e)
            D = normal((o, c), key=keys[3], dtype=kind) / math.sqrt(c) if skip else None
            self._put(A, B, C, D)
        self.mode = mode

    @classmethod
    def from_matrices(cls, A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike | None = None) -> Self:
        """A layer with given matrices; eigenvalues of A outside the unit disc are an error that names them."""
        given = [arrays.asarray(value) for value in (A, B, C, *([] if D is None else [D]))]
        a, b, c = given[:3]
        e = a.shape[0] if a.ndim else -1
        shapes = [t.shape for t in given]
        fits = a.shape == (e, e) and b.ndim == c.ndim == 2 and b.shape[0] == c.shape[1] == e
        if not fits or (D is not None and shapes[3] != (c.shape[0], b.shape[1])):
            raise ShapeError(f"{cls.__name__}: matrices of shapes {shapes}.", "A (e, e), B (e, c), C (o, e), D (o, c)")
        check_disc(cls.__name__, np.linalg.eigvals(np.asarray(a).astype(np.float64)))
        layer = cls.__tree_new__()
        layer._put(a, b, c, given[3] if D is not None else None)
        layer.mode = None
        return layer

    def _put(self, A: Tensor, B: Tensor, C: Tensor, D: Tensor | None) -> None:
        self.A, self.B, self.C = Parameter(A), Parameter(B), Parameter(C)
        self.D = None if D is None else Parameter(D)

    def features(self) -> int:
        return self.B.shape[1]

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"s": (self.A.shape[0],)}

    def ssm_kernel(self, n: int) -> Tensor:
        """The filter (n, e, c) that gives the states; see `wl.nn.ssm_kernel`."""
        return ssm_kernel(self.A, self.B, n)

    def states(self, x: Tensor, start: Tensor, mode: str) -> Tensor:
        """The states (rows, n, e) for tokens (rows, n, c)."""
        n = x.shape[1]
        if mode == "scan":
            powers, states = ssm_scan(self.A, arrays.swapaxes(x @ self.B.mT, 0, 1))
            return arrays.swapaxes(states, 0, 1) + arrays.einsum("nab,rb->rna", powers, start)
        powers = powers_of(self.A + 0, n + 1)
        began = arrays.einsum("nab,rb->rna", powers[1:], start)
        if mode == "closed":
            return arrays.einsum("ijab,rjb->ria", toeplitz(powers[:n]), x @ self.B.mT) + began
        kernel = arrays.swapaxes(self.ssm_kernel(n), 1, 2)  # (n, c, e)
        return F.fft_conv(x, kernel, padding="causal") + began

    def at_once(self, x: Tensor, state: State, mode: str) -> tuple[Tensor, Last]:
        states = self.states(x, state["s"], mode)
        return self._read(states, x), lambda lengths: {"s": state_after(states, state["s"], lengths)}

    def recur(self, x: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:
        inputs, A = arrays.swapaxes(x @ self.B.mT, 0, 1), self.A.mT

        def step(s: Tensor, now: tuple[Tensor, Tensor | None]) -> tuple[Tensor, Tensor]:
            new = s @ A + now[0]
            s = new if now[1] is None else arrays.where(now[1][:, None], new, s)
            return s, s

        masks = None if real is None else arrays.swapaxes(real, 0, 1)
        first = arrays.astype(state["s"], inputs.dtype)
        last, states = scan(step, first, (inputs, masks))
        return self._read(arrays.swapaxes(states, 0, 1), x), {"s": last}

    def _read(self, states: Tensor, x: Tensor) -> Tensor:
        y = states @ self.C.mT
        return y if self.D is None else y + x @ self.D.mT

    def extra_repr(self) -> str:
        (e, c), o = self.B.shape, self.C.shape[0]
        return f"c={c}, e={e}, o={o}" + ("" if self.D is not None else ", skip=False")
