"""Activation functions that are trained with the rest: a few parameters each, or sums of fixed functions. Book, 5.4."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ... import arrays
from ...arrays.conversion import as_real
from ...core import dtypes
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.continuous import normal
from .. import functional as F  # noqa: N812 - as everybody calls it
from ..module.parameter import Parameter
from .activations import Elementwise
from .bases import BasisLike, GaussianBasis, as_basis

__all__ = ["PReLU", "TrainableSwish", "GatedActivation", "BasisActivation", "KAF", "APL"]


class _PerUnit(Elementwise):
    """Parameters for one function that all units share, or for one function per unit of the last axis."""

    units: int

    def _input(self, x: ArrayLike) -> Tensor:
        x = as_real(type(self).__name__, x)
        n = self.units
        if n > 1 and (not x.ndim or x.shape[-1] != n):
            raise ShapeError(
                f"{type(self).__name__}: an input of shape {x.shape} does not have {n} units along its last axis.",
                f"an input of shape (..., {n}), or one function for all units",
            )
        return x

    def extra_repr(self) -> str:
        return "" if self.units == 1 else str(self.units)


class PReLU(_PerUnit):
    r"""\(x\) where it is positive, else \(\alpha x\) with \(\alpha\) trained, one or one per unit. Book, 5.4.

    >>> import wonderland as wl
    >>> wl.nn.PReLU()(wl.tensor([-1.0, 2.0]))
    tensor([-0.25,  2.  ])

    `num_parameters` is 1, or the size of the last axis.
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, dtype: DTypeLike | None = None) -> None:
        self.units = as_int("PReLU", "num_parameters", num_parameters, 1)
        self.weight = Parameter(arrays.full((self.units,), init, dtype=dtype))

    def forward(self, x: ArrayLike) -> Tensor:
        return F.prelu(self._input(x), self.weight)


class TrainableSwish(_PerUnit):
    r"""\(\sigma(as + b)\,(cs + d)\) with four trained numbers, shared or per unit; SiLU at the start. Book, E.5.12.

    >>> import wonderland as wl
    >>> wl.nn.TrainableSwish()(wl.tensor([0.0, 100.0])), wl.nn.TrainableSwish(8).num_parameters()
    (tensor([  0., 100.]), 32)
    """

    def __init__(self, units: int = 1, dtype: DTypeLike | None = None) -> None:
        self.units = n = as_int("TrainableSwish", "units", units, 1)
        self.a, self.c = Parameter(arrays.ones(n, dtype=dtype)), Parameter(arrays.ones(n, dtype=dtype))
        self.b, self.d = Parameter(arrays.zeros(n, dtype=dtype)), Parameter(arrays.zeros(n, dtype=dtype))

    def forward(self, x: ArrayLike) -> Tensor:
        s = self._input(x)
        return arrays.sigmoid(self.a * s + self.b) * (self.c * s + self.d)


class GatedActivation(Elementwise):
    r"""\(\beta(s)\,s\) with a gate \(\beta\), a function or a module: a step gives ReLU, the sigmoid SiLU. Book, 5.4.

    >>> import wonderland as wl
    >>> wl.nn.GatedActivation(wl.nn.functional.step)(wl.tensor([-1.0, 2.0]))
    tensor([-0.,  2.])
    """

    def __init__(self, beta: Callable[[Tensor], Tensor]) -> None:
        if not callable(beta):
            raise InputError(f"GatedActivation: a {type(beta).__name__} is not a function.", "wl.sigmoid, for example")
        self.beta = beta

    def forward(self, x: ArrayLike) -> Tensor:
        x = as_real("GatedActivation", x)
        return self.beta(x) * x


# --- sums of fixed functions


class BasisActivation(Elementwise):
    r"""\(\sum_i \alpha_i\,\phi_i(s)\) with fixed functions \(\phi_i\) and trained weights \(\alpha_i\). Book, E.5.13.

    >>> import wonderland as wl
    >>> layer = wl.nn.BasisActivation([wl.relu, wl.tanh])
    >>> layer.alpha.shape, wl.nn.BasisActivation([wl.relu, wl.tanh], sharing="neuron", units=8).alpha.shape
    ((2,), (8, 2))

    With `sharing="layer"` all units share the weights; with "neuron" each of the `units` of the last axis has its own.
    Weights start equal, at 1/n, unless `alpha` gives them.
    """

    def __init__(
        self,
        bases: BasisLike,
        sharing: str = "layer",
        units: int | None = None,
        alpha: ArrayLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        name = type(self).__name__
        if sharing not in ("layer", "neuron") or (sharing == "neuron") != (units is not None):
            raise InputError(
                f"{name}: sharing={sharing!r} with units={units}.",
                'sharing="layer", or sharing="neuron" with the number of units',
            )
        self.basis = as_basis(name, bases)
        self.sharing, self.units = sharing, units
        lead = () if units is None else (as_int(name, "units", units, 1),)
        dtype = dtypes.default_float if dtype is None else dtypes.as_dtype(dtype)
        start = np.full(self.basis.size, 1 / self.basis.size) if alpha is None else np.asarray(alpha, dtype=float)
        if start.shape not in ((self.basis.size,), (*lead, self.basis.size)):
            raise ShapeError(
                f"{name}: alpha of shape {start.shape} for {self.basis.size} functions.", f"({self.basis.size},)"
            )
        self.alpha = Parameter(arrays.asarray(np.broadcast_to(start, (*lead, self.basis.size)).copy(), dtype=dtype))

    def forward(self, x: ArrayLike) -> Tensor:
        x = as_real(type(self).__name__, x)
        if self.units is not None and (not x.ndim or x.shape[-1] != self.units):
            raise ShapeError(
                f"{type(self).__name__}: an input of shape {x.shape} does not have {self.units} units.",
                f"an input of shape (..., {self.units})",
            )
        return (self.basis(x) * self.alpha).sum(axis=-1)

    def extra_repr(self) -> str:
        return f"{self.basis!r}, sharing={self.sharing!r}" + ("" if self.units is None else f", units={self.units}")


class KAF(BasisActivation):
    r"""The kernel activation function \(\sum_i \alpha_i\,e^{-\gamma(s - d_i)^2}\) on a fixed dictionary. Book, 5.4.

    >>> import wonderland as wl
    >>> layer = wl.nn.KAF(20, init=wl.tanh)
    >>> bool(abs(layer(wl.tensor(0.5)) - wl.tanh(0.5)) < 0.02)
    True

    `init` is a function to start from, fitted by ridge regression: \(\alpha = (K + \epsilon I)^{-1} t\) with the kernel
    matrix K of the dictionary and the function's values t there; without one, weights are small random numbers drawn
    with `key`. The dictionary has `dict_size` places from -boundary to boundary.
    """

    def __init__(
        self,
        dict_size: int = 20,
        boundary: float = 3.0,
        gamma: float | None = None,
        init: Callable[[Tensor], Tensor] | None = None,
        ridge: float = 1e-4,
        sharing: str = "layer",
        units: int | None = None,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        basis = GaussianBasis(dict_size, boundary, gamma)
        if init is None:
            shape = (basis.size,) if units is None else (units, basis.size)
            alpha = np.asarray(normal(shape, 0.0, 0.3, key=key))
        else:
            places = arrays.asarray(basis.places)
            kernels = np.asarray(basis(places))
            alpha = np.linalg.solve(kernels + ridge * np.eye(basis.size), np.asarray(init(places)))
        super().__init__(basis, sharing, units, alpha, dtype)


class APL(_PerUnit):
    r"""Adaptive piecewise linear: \(\max(0, s) + \sum_{i=1}^n a_i \max(0, -s + b_i)\), a and b trained. Book, 5.4.

    >>> import wonderland as wl
    >>> wl.nn.APL(2)(wl.tensor([-1.0, 2.0]))
    tensor([0., 2.])

    It starts as ReLU, a = 0, with the hinges b spread over [-1, 1]; n + 1 kinks. With `units` each unit of the last
    axis has hinges of its own.
    """

    def __init__(self, n: int = 1, units: int = 1, dtype: DTypeLike | None = None) -> None:
        self.n = as_int("APL", "n", n, 1)
        self.units = as_int("APL", "units", units, 1)
        places = np.linspace(-1.0, 1.0, n) if n > 1 else np.zeros(1)
        dtype = dtypes.default_float if dtype is None else dtypes.as_dtype(dtype)
        self.a = Parameter(arrays.zeros((units, n), dtype=dtype))
        self.b = Parameter(arrays.asarray(np.tile(places, (units, 1)), dtype=dtype))

    def forward(self, x: ArrayLike) -> Tensor:
        s = self._input(x)
        lone = self.units == 1
        a, b = (arrays.reshape(p, (self.n,)) if lone else p for p in (self.a, self.b))
        return arrays.relu(s) + (a * arrays.relu(b - arrays.expand_dims(s, axis=-1))).sum(axis=-1)

    def extra_repr(self) -> str:
        return f"n={self.n}" + ("" if self.units == 1 else f", units={self.units}")
