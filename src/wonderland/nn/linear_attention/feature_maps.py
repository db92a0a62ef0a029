"""Feature maps for linear attention, as modules that know their kernel. Book, section 13.1.1."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

from ... import arrays
from ...arrays.conversion import as_real
from ...core.arguments import as_int, as_number, shown
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.continuous import uniform
from ...random.keys import split
from ...random.streams import take_key
from ..functional.feature_maps import elu_plus_one, polynomial_features
from ..layers.long_convolution import FourierFeatures
from ..module.module import Module
from ..module.parameter import Buffer, Held

__all__ = ["EluPlusOne", "KernelFeatureMap", "PolynomialMap", "RandomFourierMap"]

FeatureMapLike: TypeAlias = "str | Callable[[Tensor], Tensor]"


class KernelFeatureMap(Module):
    r"""\(\phi: \mathbb{R}^c \to \mathbb{R}^e\), with the kernel \(\alpha(x,y) = \phi(x)\cdot\phi(y)\).

    A subclass writes `forward`, from (..., c) to (..., e), and says whether its kernel is `positive` everywhere. Inner
    products make a kernel positive *definite*: the matrix \(\alpha(x_i, x_j)\) has no negative eigenvalue. That is
    something else: a kernel may have negative values, and then what attention divides by need not be above 0. Book,
    E.13.2.

    >>> import wonderland as wl
    >>> class Identity(wl.nn.KernelFeatureMap):
    ...     def forward(self, x):
    ...         return x
    >>> Identity().kernel(wl.tensor([1.0, 2.0]), wl.tensor([1.0, -1.0])).item()
    -1.0
    """

    positive = False

    def forward(self, x: ArrayLike) -> Tensor:
        raise NotImplementedError

    def kernel(self, x: ArrayLike, y: ArrayLike) -> Tensor:
        r"""\(\phi(x) \cdot \phi(y)\) for vectors (..., c) whose leading axes broadcast."""
        return arrays.sum(self(x) * self(y), axis=-1)


class EluPlusOne(KernelFeatureMap):
    r"""\(\phi(x) = \operatorname{ELU}(x) + 1\), element by element: e = c. Book, section 13.1.1.

    >>> import wonderland as wl
    >>> wl.nn.EluPlusOne()(wl.tensor([-1.0, 0.0, 1.0]))
    tensor([0.367879, 1.      , 2.      ])
    """

    positive = True

    def forward(self, x: ArrayLike) -> Tensor:
        return elu_plus_one(x)


class PolynomialMap(KernelFeatureMap):
    r"""All monomials up to a degree, for \(\alpha(x, y) = (a + x\cdot y)^d\): \(e = \binom{c+d}{d}\). Book, 13.1.1.

    >>> import wonderland as wl
    >>> [wl.nn.PolynomialMap(3, d).size for d in (2, 3)]
    [10, 20]

    With `degree` 2 it is the quadratic expansion. `offset` is a. Kernels of an odd degree may be negative, those of an
    even one may be 0.
    """

    def __init__(self, c: int, degree: int = 2, offset: float = 1.0) -> None:
        self.c, self.degree = as_int("PolynomialMap", "c", c, 1), as_int("PolynomialMap", "degree", degree, 1)
        self.offset = float(as_number("PolynomialMap", "offset", offset))
        if not 0 <= self.offset < math.inf:
            raise InputError(f"PolynomialMap: offset={offset}.", "a number not below 0")

    @property
    def size(self) -> int:
        """How many features there are."""
        return math.comb(self.c + self.degree, self.degree)

    def forward(self, x: ArrayLike) -> Tensor:
        x = _vectors(self, x, self.c)
        return polynomial_features(x, self.degree, self.offset)

    def extra_repr(self) -> str:
        return f"{self.c}, degree={self.degree}" + ("" if self.offset == 1.0 else f", offset={self.offset}")


class RandomFourierMap(KernelFeatureMap):
    r"""\(\phi(x) = \sqrt{2/D}\cos(W x + b)\), for about the Gaussian kernel \(e^{-\lVert x-y\rVert^2/(2\sigma^2)}\).

    >>> import wonderland as wl
    >>> phi = wl.nn.RandomFourierMap(3, 4000, key=wl.random.key(0))
    >>> x = wl.tensor([0.1, 0.2, 0.3])
    >>> abs(phi.kernel(x, -x).item() - 0.7558) < 0.05, phi(x).shape
    (True, (4000,))

    The features of the Gaussian kernel itself are infinitely many; D of them, \(W_{ij} \sim N(0, 1/\sigma^2)\) and
    \(b_i \sim U(0, 2\pi)\), come as near as about \(1/\sqrt D\). Values may be negative. W and b are fixed: no
    parameters. Without `phases` the features are cosines and sines of D/2 frequencies, as `FourierFeatures` has them,
    which have less variance. Book, section 13.1.1.
    """

    phases: Held[Buffer]

    def __init__(
        self,
        c: int,
        size: int,
        sigma: float = 1.0,
        phases: bool = True,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "RandomFourierMap"
        self.c, self.size = as_int(name, "c", c, 1), as_int(name, "size", size, 1)
        self.sigma = float(as_number(name, "sigma", sigma))
        if not 0 < self.sigma < math.inf:
            raise InputError(f"{name}: sigma={sigma}.", "a number above 0")
        if not phases and self.size % 2:
            raise InputError(f"{name}: {size} features in pairs.", "an even number, or phases=True")
        keys = split(take_key(name, key), 2)
        self.waves = FourierFeatures(
            self.c, self.size if phases else self.size // 2, 1 / self.sigma, dtype=dtype, key=keys[0]
        )
        if phases:
            kind = self.waves.frequencies.dtype
            self.phases = Buffer(uniform((self.size,), 0.0, 2 * math.pi, key=keys[1], dtype=kind))
        else:
            self.phases = None

    def forward(self, x: ArrayLike) -> Tensor:
        x = _vectors(self, x, self.c)
        if self.phases is None:
            return self.waves(x)
        return arrays.cos(x @ self.waves.frequencies + self.phases) * math.sqrt(2 / self.size)

    def extra_repr(self) -> str:
        text = f"{self.c}, {self.size}, sigma={self.sigma}"
        return text if self.phases is not None else f"{text}, phases=False"


def as_feature_map(name: str, given: FeatureMapLike) -> Callable[[Tensor], Tensor]:
    """What a `feature_map` argument stands for: "elu", or a function or module from (..., c) to (..., e).

    >>> as_feature_map("LinearAttention", "elu")
    EluPlusOne()
    """
    if given == "elu":
        return EluPlusOne()
    if not callable(given):
        raise InputError(f"{name}: feature_map={shown(given)}.", "'elu', or a function of vectors (..., c)")
    return given


def _vectors(layer: Module, x: ArrayLike, c: int) -> Tensor:
    x = as_real(type(layer).__name__, x)
    if not x.ndim or x.shape[-1] != c:
        raise ShapeError(f"{layer._describe()}: an input of shape {x.shape}.", f"(..., {c})")
    return x
