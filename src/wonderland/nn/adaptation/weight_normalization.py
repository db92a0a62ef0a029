"""Weights of a given length or a given largest singular value. Notes, section 3.7.5."""

from __future__ import annotations

from typing import Any

from ... import arrays, linalg
from ...core.arguments import as_int
from ...core.errors import ShapeError
from ...core.tensor import Tensor
from ...core.typing import KeyLike
from ...random.continuous import normal
from ...random.keys import split
from ...random.streams import take_key
from ..module.module import Module
from ..module.parameter import Buffer, Parameter
from ..module.reparameterization import Reparameterized

__all__ = ["WeightNorm", "SpectralNorm", "weight_norm", "spectral_norm", "remove_weight_norm"]


class WeightNorm(Reparameterized):
    r"""\(w = g\,v/\lVert v\rVert\) for every unit, the last axis of the weight: length and direction apart.

    >>> import wonderland as wl
    >>> layer = wl.nn.WeightNorm(wl.nn.Linear.from_matrix([[3.0], [4.0]]))
    >>> print(layer.g.tolist(), layer(wl.ones(2)))
    [5.0] tensor([7.])
    >>> layer.v = layer.v * 10.0
    >>> layer(wl.ones(2))
    tensor([7.])

    g starts from the norms of the weights, so that the layer computes what it did before. `remove()` makes an ordinary
    weight of it.
    """

    def begin(self, weight: Tensor) -> None:
        self.g = Parameter(_lengths(weight))
        self.v = Parameter(weight)

    def effective(self) -> Tensor:
        tiny = float(arrays.finfo(self.v.dtype).smallest_normal)  # a vector of zeros stays one
        return self.v * (self.g / arrays.maximum(_lengths(self.v), tiny))


class SpectralNorm(Reparameterized):
    r"""\(w = v/\sigma(v)\) with the largest singular value \(\sigma\): a map that stretches nothing.

    >>> import wonderland as wl
    >>> layer = wl.nn.SpectralNorm(wl.nn.Linear.from_matrix([[3.0, 0.0], [0.0, 4.0]]), n_power_iterations=50)
    >>> layer.weight
    tensor([[0.75, 0.  ],
            [0.  , 1.  ]])

    The weight is a matrix from all its axes but the last to the last. Every forward pass in training mode takes
    `n_power_iterations` steps towards its first pair of singular vectors, which are buffers; 15 steps make the start.
    """

    def __init__(
        self,
        layer: Module,
        name: str = "weight",
        n_power_iterations: int = 1,
        eps: float = 1e-12,
        key: KeyLike = None,
    ) -> None:
        self.n_power_iterations = as_int("SpectralNorm", "n_power_iterations", n_power_iterations, 1)
        self.eps = eps
        self._key: Tensor | None = take_key("SpectralNorm", key)
        super().__init__(layer, name)
        self._key = None

    def begin(self, weight: Tensor) -> None:
        if weight.ndim < 2:
            raise ShapeError(f"SpectralNorm: a weight of shape {weight.shape} is no matrix.", "two axes or more")
        self.v = Parameter(weight)
        matrix = _matrix(weight)
        assert self._key is not None
        keys = split(self._key, 2)
        self.left = Buffer(self._unit(normal((matrix.shape[0],), key=keys[0], dtype=weight.dtype)))
        self.right = Buffer(self._unit(normal((matrix.shape[1],), key=keys[1], dtype=weight.dtype)))
        self._iterate(matrix, 15)

    def effective(self) -> Tensor:
        matrix = _matrix(self.v)
        if self.training:
            self._iterate(arrays.stop_gradient(matrix), self.n_power_iterations)
        return self.v / arrays.sum(arrays.matmul(self.left, matrix) * self.right)

    def _iterate(self, matrix: Tensor, steps: int) -> None:
        left, right = arrays.asarray(self.left), arrays.asarray(self.right)
        for _ in range(steps):
            right = self._unit(arrays.matmul(left, matrix))
            left = self._unit(arrays.matmul(matrix, right))
        self.left.assign(left)
        self.right.assign(right)

    def _unit(self, x: Tensor) -> Tensor:
        return x / arrays.maximum(linalg.vector_norm(x), self.eps)


def weight_norm(layer: Module, name: str = "weight") -> WeightNorm:
    """The layer with a weight of length and direction apart; see `WeightNorm`.

    >>> import wonderland as wl
    >>> [path for path, _ in wl.nn.weight_norm(wl.nn.Linear(2, 3)).named_parameters()]
    ['layer.bias', 'g', 'v']
    """
    return WeightNorm(layer, name)


def spectral_norm(
    layer: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, key: KeyLike = None
) -> SpectralNorm:
    """The layer with a weight whose largest singular value is 1; see `SpectralNorm`.

    >>> import wonderland as wl
    >>> layer = wl.nn.spectral_norm(wl.nn.Linear(4, 3))
    >>> print(round(wl.linalg.svdvals(layer.weight)[0].item(), 2))
    1.0
    """
    return SpectralNorm(layer, name, n_power_iterations, eps, key)


def remove_weight_norm(layer: Reparameterized) -> Any:
    """`layer.remove()`, by the name that it has elsewhere.

    >>> import wonderland as wl
    >>> wl.nn.remove_weight_norm(wl.nn.weight_norm(wl.nn.Linear(2, 3)))
    Linear(in_features=2, out_features=3, bias=True)
    """
    return layer.remove()


def _matrix(weight: Tensor) -> Tensor:
    return arrays.reshape(weight, (-1, weight.shape[-1]))


def _lengths(v: Tensor) -> Tensor:
    return linalg.vector_norm(_matrix(v), axis=0)
