"""State-space models with a diagonal transition, real or complex, whose states cannot grow. Book, section 13.3.3."""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from ... import arrays
from ...core import dtypes
from ...core.arguments import as_int, as_number
from ...core.dtypes import DType
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.continuous import normal, uniform
from ...random.keys import split
from ...random.streams import take_key
from ..functional.linear_recurrence import linear_recurrence
from ..layers.weighted import as_weight_dtype
from ..module.lazy import at_once
from ..module.parameter import Held, Parameter
from ..sequences.state_layer import State
from .diagonalization import check_disc, diagonalize
from .modes import Last, TimeInvariantSSM, diagonal_states, state_after

__all__ = ["DiagonalSSM"]

MOST = 6.0  # of nu: exp(-exp(6)) is 1e-175, and exp does not overflow
MARGIN = 4  # units of rounding that stay between the largest modulus and 1


class DiagonalSSM(TimeInvariantSSM):
    r"""\(s_i = \Lambda s_{i-1} + B x_i,\; y_i = \operatorname{Re}(C s_i) + D x_i\). Book, E.13.22-23.

    >>> import wonderland as wl
    >>> layer = wl.nn.DiagonalSSM(3, 16, 2)
    >>> layer(wl.ones((2, 100, 3))).shape, layer.num_parameters()  # 2 e + 2 e c + 2 o e + o c
    ((2, 100, 2), 198)

    \(\Lambda\) is diagonal: (..., time, c) to (..., time, o) with e numbers of state, complex ones or, with
    `complex=False`, real ones (then there are e + e c + o e + o c parameters). A step takes e products for the state,
    and not e². Every value of the parameters gives \(\lvert\lambda\rvert < 1\): \(\lambda = \exp(-e^\nu + i\theta)\),
    or \(\tanh \nu\) for real ones. At the start the moduli are uniform in area between `r_min` and `r_max`. The parts
    of complex matrices are parameters of their own, `B_re` and `B_im`; `B`, `C` and `eigenvalues` are the matrices.
    `skip=False` leaves D out. See `TimeInvariantSSM` for the four modes.
    """

    B_im: Held[Parameter | None]
    C_im: Held[Parameter | None]
    theta: Held[Parameter | None]
    D: Held[Parameter | None]

    def __init__(
        self,
        c: int,
        e: int,
        o: int,
        *,
        complex: bool = True,
        r_min: float = 0.5,
        r_max: float = 0.99,
        max_phase: float = 2 * math.pi,
        skip: bool = True,
        mode: str | None = None,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        c, e, o = as_int(name, "c", c, 1), as_int(name, "e", e, 1), as_int(name, "o", o, 1)
        if not 0 <= as_number(name, "r_min", r_min) <= as_number(name, "r_max", r_max) <= 1:
            raise InputError(f"{name}: r_min={r_min}, r_max={r_max}.", "0 <= r_min <= r_max <= 1")
        kind = as_weight_dtype(name, dtype)
        drawn = take_key(name, key)
        keys = split(drawn, 7)
        with at_once(drawn):
            u = uniform((e,), key=keys[0], dtype=kind)
            modulus = arrays.sqrt(u * (r_max**2 - r_min**2) + r_min**2)
            angle = uniform((e,), key=keys[1], dtype=kind) * max_phase
            self._set_eigenvalues(modulus, angle if complex else None)
            half = math.sqrt(2 if complex else 1)
            B = [normal((e, c), key=k, dtype=kind) / (half * math.sqrt(c)) for k in keys[2:4]]
            C = [normal((o, e), key=k, dtype=kind) / math.sqrt(e) for k in keys[4:6]]
            self._set_matrices(B[0], C[0], *((B[1], C[1]) if complex else (None, None)))
            self.D = Parameter(normal((o, c), key=keys[6], dtype=kind) / math.sqrt(c)) if skip else None
            self._complete()
        self.mode = mode

    def _complete(self) -> None:
        """Parameters of a subclass that follow from the others."""

    @classmethod
    def from_eigenvalues(cls, eigenvalues: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike | None = None) -> Self:
        r"""A layer with given \(\lambda\) (e,), B (e, c), C (o, e) and D (o, c), real or complex.

        >>> import wonderland as wl
        >>> layer = wl.nn.DiagonalSSM.from_eigenvalues([0.5], [[1.0]], [[1.0]])
        >>> wl.round(layer(wl.ones((3, 1)))[:, 0], decimals=4).tolist()
        [1.0, 1.5, 1.75]

        Eigenvalues outside the unit disc are an error that names them; those on its edge are put inside by a few units
        of rounding.
        """
        name = cls.__name__
        given = [arrays.asarray(value) for value in (eigenvalues, B, C)]
        values, b, c = given
        e = values.size
        if values.shape != (e,) or b.ndim != 2 or c.ndim != 2 or b.shape[0] != e or c.shape[1] != e:
            raise ShapeError(f"{name}: shapes {[t.shape for t in given]}.", "eigenvalues (e,), B (e, c), C (o, e)")
        check_disc(name, np.asarray(values))
        kind = dtypes.promote_types(dtypes.promote_types(values.dtype, b.dtype), c.dtype)
        real = dtypes.promote_types(arrays.real(arrays.astype(values, kind)).dtype, dtypes.float32)
        layer = cls.__tree_new__()
        if dtypes.is_complex(kind):
            wide = np.asarray(values).astype(np.complex128)
            layer._set_eigenvalues(arrays.asarray(np.abs(wide), dtype=real), arrays.asarray(np.angle(wide), dtype=real))
            b, c = arrays.astype(b, kind), arrays.astype(c, kind)
            layer._set_matrices(*(arrays.astype(p, real) for p in (b.real, c.real, b.imag, c.imag)))
        else:
            layer._set_eigenvalues(arrays.astype(values, real), None)
            layer._set_matrices(arrays.astype(b, real), arrays.astype(c, real), None, None)
        layer.D = None
        if D is not None:
            skip = arrays.asarray(D, dtype=real)
            if skip.shape != (c.shape[0], b.shape[1]):
                raise ShapeError(f"{name}: D of shape {skip.shape}.", f"{(c.shape[0], b.shape[1])}")
            layer.D = Parameter(skip)
        layer.mode = None
        return layer

    @classmethod
    def from_dense(cls, A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike | None = None) -> Self:
        r"""The same system as `LinearSSM.from_matrices(A, B, C, D)`, in a basis of eigenvectors. Book, E.13.22-23.

        >>> import wonderland as wl
        >>> layer = wl.nn.DiagonalSSM.from_dense([[0.0, -1.0], [1.0, 0.0]], [[1.0], [0.0]], [[1.0, 0.0]])
        >>> layer.eigenvalues.imag  # a quarter turn
        tensor([ 0.9999995, -0.9999995])

        With \(A = P \Lambda P^{-1}\) and \(\bar s = P^{-1} s\) the matrices are \(\bar B = P^{-1} B\) (the book prints
        P B) and \(\bar C = C P\). See `diagonalize` for matrices that have no such basis.
        """
        found = diagonalize(A)
        b, c = arrays.asarray(B), arrays.asarray(C)
        e = found.P.shape[0]
        if b.ndim != 2 or c.ndim != 2 or b.shape[0] != e or c.shape[1] != e:
            raise ShapeError(f"{cls.__name__}: B {b.shape} and C {c.shape} for A {(e, e)}.", "B (e, c) and C (o, e)")
        return cls.from_eigenvalues(found.eigenvalues, found.P_inverse @ b, c @ found.P, D)

    def _set_eigenvalues(self, modulus: Tensor, angle: Tensor | None) -> None:
        """The parameters behind moduli and angles, or behind real eigenvalues."""
        wide = dtypes.promote_types(modulus.dtype, dtypes.float32)
        eps, kind, modulus = float(np.finfo(wide).eps), modulus.dtype, arrays.astype(modulus, wide)
        most = 1 - MARGIN * eps
        if angle is None:
            nu = arrays.atanh(arrays.clip(modulus / most, -most, most))
            self.nu, self.theta = Parameter(arrays.astype(nu, kind)), None
            return
        rate = -arrays.log(arrays.maximum(modulus, math.exp(-60.0))) - MARGIN * eps
        nu = arrays.log(arrays.maximum(rate, eps))
        self.nu, self.theta = Parameter(arrays.astype(nu, kind)), Parameter(angle)

    def _set_matrices(self, B: Tensor, C: Tensor, B_im: Tensor | None, C_im: Tensor | None) -> None:
        self.B_re, self.C_re = Parameter(B), Parameter(C)
        self.B_im = None if B_im is None else Parameter(B_im)
        self.C_im = None if C_im is None else Parameter(C_im)

    # --- the matrices

    @property
    def eigenvalues(self) -> Tensor:
        r"""\(\lambda\) (e,), inside the unit disc whatever the parameters are."""
        wide = dtypes.promote_types(
            self.nu.dtype, dtypes.float32
        )  # half precision does not know a slow decay from none
        nu, eps = arrays.astype(self.nu, wide), float(np.finfo(wide).eps)
        if self.theta is None:
            return arrays.tanh(nu) * (1 - MARGIN * eps)
        size, theta = arrays.exp(-arrays.exp(arrays.minimum(nu, MOST)) - MARGIN * eps), arrays.astype(self.theta, wide)
        return as_complex(size * arrays.cos(theta), size * arrays.sin(theta))

    @property
    def B(self) -> Tensor:  # noqa: N802 - as in the book
        """The input matrix (e, c)."""
        return self.B_re + 0 if self.B_im is None else as_complex(self.B_re, self.B_im)

    @property
    def C(self) -> Tensor:  # noqa: N802 - as in the book
        """The output matrix (o, e)."""
        return self.C_re + 0 if self.C_im is None else as_complex(self.C_re, self.C_im)

    def input_matrix(self) -> Tensor:
        """What tokens meet on their way into the state (e, c): B, or a scaled one."""
        return self.B

    # --- the layer

    def features(self) -> int:
        return self.B_re.shape[1]

    def state_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"s": (self.nu.shape[0],)}

    def state_dtype(self) -> DType:
        return dtypes.promote_types(self.nu.dtype, dtypes.float32 if self.theta is None else dtypes.complex64)

    def states(self, x: Tensor, start: Tensor | None = None, mode: str = "recurrence") -> Tensor:
        """The states (rows, n, e) for tokens (rows, n, c)."""
        start = self.start(x.shape[0])["s"] if start is None else start
        return diagonal_states(self.eigenvalues, x @ self.input_matrix().mT, start, mode)

    def at_once(self, x: Tensor, state: State, mode: str) -> tuple[Tensor, Last]:
        states = self.states(x, state["s"], mode)
        return self._read(states, x), lambda lengths: {"s": state_after(states, state["s"], lengths)}

    def recur(self, x: Tensor, state: State, real: Tensor | None) -> tuple[Tensor, State]:
        inputs, decay = x @ self.input_matrix().mT, self.eigenvalues
        if real is not None:  # padding is zero, and its decay one: the state stays as it is
            decay = arrays.where(real[..., None], decay, 1.0)
        states = linear_recurrence(decay, inputs, state["s"], axis=1, method="sequential")
        return self._read(states, x), {"s": states[:, -1]}

    def _read(self, states: Tensor, x: Tensor) -> Tensor:
        y = arrays.real(states @ self.C.mT)
        y = y if self.D is None else y + x @ self.D.mT
        return arrays.astype(y, dtypes.promote_types(x.dtype, self.nu.dtype))

    def extra_repr(self) -> str:
        (e, c), o = self.B_re.shape, self.C_re.shape[0]
        return f"c={c}, e={e}, o={o}, complex={self.theta is not None}"


def as_complex(real: Tensor, imaginary: Tensor) -> Tensor:
    """A complex tensor of its parts; complex64 for half precision."""
    return real + 1j * imaginary
