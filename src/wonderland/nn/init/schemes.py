r"""The initialisers. Weights are (..., in, out): each output adds up `fan_in` products. Book, section 5.2.

If weights have variance \(s^2/\text{fan}\), then with fan_in the variance of activations stays as it is from layer to
layer, and with fan_out that of gradients.
"""

from __future__ import annotations

import math

import numpy as np

from ... import arrays, random
from ...core.dtypes import DType
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from .initializer import Initializer, calculate_gain, fan

__all__ = [
    "constant", "dirac", "eye", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "kaiming_normal",
    "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal", "ones", "orthogonal", "sparse", "trunc_normal",
    "uniform", "variance_scaling", "xavier_normal", "xavier_uniform", "zeros",
]  # fmt: skip

Shape = tuple[int, ...]


# --- the same numbers, or numbers of the same distribution, whatever the shape


def _zeros(shape: Shape, key: Tensor, dtype: DType) -> Tensor:
    return arrays.zeros(shape, dtype=dtype)


def zeros() -> Initializer:
    """All 0: right for biases. Weights that are all equal stay equal, as their gradients are.

    >>> import wonderland as wl
    >>> wl.nn.init.zeros()((2,))
    tensor([0., 0.])
    """
    return Initializer(_zeros)


def _ones(shape: Shape, key: Tensor, dtype: DType) -> Tensor:
    return arrays.ones(shape, dtype=dtype)


def ones() -> Initializer:
    """All 1, as for the scales of normalisation layers.

    >>> import wonderland as wl
    >>> wl.nn.init.ones()((2,))
    tensor([1., 1.])
    """
    return Initializer(_ones)


def _constant(shape: Shape, key: Tensor, dtype: DType, value: float) -> Tensor:
    return arrays.full(shape, value, dtype=dtype)


def constant(value: float) -> Initializer:
    """One number everywhere.

    >>> import wonderland as wl
    >>> wl.nn.init.constant(0.5)((2,))
    tensor([0.5, 0.5])
    """
    return Initializer(_constant, value=value)


def _normal(shape: Shape, key: Tensor, dtype: DType, mean: float, std: float) -> Tensor:
    return random.normal(shape, mean, std, key=key, dtype=dtype)


def normal(mean: float = 0.0, std: float = 1.0) -> Initializer:
    r"""\(N(\mu, \sigma^2)\). With the default \(\sigma = 1\), activations grow by the width in every layer.

    >>> import wonderland as wl
    >>> wl.nn.init.normal(std=0.02)((3, 2)).shape
    (3, 2)
    """
    return Initializer(_normal, mean=mean, std=std)


def _uniform(shape: Shape, key: Tensor, dtype: DType, a: float, b: float) -> Tensor:
    return random.uniform(shape, a, b, key=key, dtype=dtype)


def uniform(a: float = 0.0, b: float = 1.0) -> Initializer:
    r"""\(U(a, b)\).

    >>> import wonderland as wl
    >>> wl.nn.init.uniform(-0.1, 0.1)((3, 2)).shape
    (3, 2)
    """
    return Initializer(_uniform, a=a, b=b)


def _trunc_normal(shape: Shape, key: Tensor, dtype: DType, mean: float, std: float, a: float, b: float) -> Tensor:
    return random.truncated_normal(shape, a, b, mean, std, key=key, dtype=dtype)


def trunc_normal(mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> Initializer:
    r"""\(N(\mu, \sigma^2)\) given that it is in [a, b], which are values and not numbers of deviations.

    >>> import wonderland as wl
    >>> bool((abs(wl.nn.init.trunc_normal(std=0.02, a=-0.04, b=0.04)((100,))) <= 0.04).all())
    True
    """
    return Initializer(_trunc_normal, mean=mean, std=std, a=a, b=b)


# --- scaled by the sizes of the layer


def _variance_scaling(shape: Shape, key: Tensor, dtype: DType, gain: float, mode: str, distribution: str) -> Tensor:
    std = gain / math.sqrt(fan("variance_scaling", shape, mode))
    if distribution == "normal":
        return random.normal(shape, 0.0, std, key=key, dtype=dtype)
    if distribution == "truncated_normal":
        scale = std / 0.8796256610342398  # the deviation of N(0, 1) between -2 and 2
        return random.truncated_normal(shape, -2 * scale, 2 * scale, 0.0, scale, key=key, dtype=dtype)
    bound = math.sqrt(3) * std
    return random.uniform(shape, -bound, bound, key=key, dtype=dtype)


def variance_scaling(gain: float = 1.0, mode: str = "fan_in", distribution: str = "normal") -> Initializer:
    r"""Variance \(g^2/\text{fan}\): retained forwards for "fan_in", backwards for "fan_out"; "mean" is between them.

    >>> import wonderland as wl
    >>> x = wl.nn.init.variance_scaling(mode="fan_out")((300, 100), wl.random.key(0))
    >>> print(f"{x.std():.2f}")
    0.10

    `distribution` is "normal", "uniform" or "truncated_normal".
    """
    if mode not in ("fan_in", "fan_out", "mean"):
        raise InputError(f"variance_scaling: mode={mode!r}.", '"fan_in", "fan_out" or "mean"')
    if distribution not in ("normal", "uniform", "truncated_normal"):
        raise InputError(
            f"variance_scaling: distribution={distribution!r}.", '"normal", "uniform" or "truncated_normal"'
        )
    return Initializer(_variance_scaling, gain=gain, mode=mode, distribution=distribution)


def xavier_normal(gain: float = 1.0) -> Initializer:
    r"""\(N(0, g^2/D)\) with D the mean of fan_in and fan_out (Glorot).

    >>> import wonderland as wl
    >>> x = wl.nn.init.xavier_normal()((300, 100), wl.random.key(0))
    >>> print(f"{x.std():.3f}")
    0.071
    """
    return variance_scaling(gain, "mean", "normal")


def xavier_uniform(gain: float = 1.0) -> Initializer:
    r"""\(U(-g\sqrt{3/D}, g\sqrt{3/D})\) with D the mean of fan_in and fan_out (Glorot).

    >>> import wonderland as wl
    >>> x = abs(wl.nn.init.xavier_uniform()((300, 100), wl.random.key(0)))
    >>> print(f"{x.max():.4f}")
    0.1225
    """
    return variance_scaling(gain, "mean", "uniform")


def kaiming_normal(a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Initializer:
    r"""\(N(0, g^2/\text{fan})\) with the gain of a non-linearity, \(\sqrt2\) for ReLU (He).

    >>> import wonderland as wl
    >>> x = wl.nn.init.kaiming_normal()((200, 300), wl.random.key(0))
    >>> print(f"{x.std():.2f}")
    0.10

    `a` is the negative slope of "leaky_relu". `mode` is "fan_in", "fan_out" or "mean".
    """
    return variance_scaling(calculate_gain(nonlinearity, a), mode, "normal")


def kaiming_uniform(a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Initializer:
    r"""\(U(-b, b)\) with \(b = g\sqrt{3/\text{fan}}\); see `kaiming_normal`.

    >>> import wonderland as wl
    >>> x = abs(wl.nn.init.kaiming_uniform()((150, 300), wl.random.key(0)))
    >>> print(f"{x.max():.2f}")
    0.20
    """
    return variance_scaling(calculate_gain(nonlinearity, a), mode, "uniform")


def lecun_normal() -> Initializer:
    r"""\(N(0, 1/\text{fan\_in})\), right for SELU.

    >>> import wonderland as wl
    >>> x = wl.nn.init.lecun_normal()((100, 300), wl.random.key(0))
    >>> print(f"{x.std():.2f}")
    0.10
    """
    return variance_scaling(1.0, "fan_in", "normal")


def lecun_uniform() -> Initializer:
    r"""\(U(-b, b)\) with \(b = \sqrt{3/\text{fan\_in}}\).

    >>> import wonderland as wl
    >>> x = abs(wl.nn.init.lecun_uniform()((300, 300), wl.random.key(0)))
    >>> print(f"{x.max():.2f}")
    0.10
    """
    return variance_scaling(1.0, "fan_in", "uniform")


glorot_normal, glorot_uniform = xavier_normal, xavier_uniform
he_normal, he_uniform = kaiming_normal, kaiming_uniform


# --- matrices of a kind


def _orthogonal(shape: Shape, key: Tensor, dtype: DType, gain: float) -> Tensor:
    if len(shape) < 2:
        raise ShapeError(f"orthogonal: the shape {shape} is not that of a matrix.", "a weight of shape (..., in, out)")
    flat = (math.prod(shape[:-1]), shape[-1])
    return arrays.reshape(random.orthogonal(flat, gain, key=key, dtype=dtype), shape)


def orthogonal(gain: float = 1.0) -> Initializer:
    """Orthonormal rows or columns (whichever are fewer), times a gain: lengths are kept, or projected.

    >>> import wonderland as wl
    >>> w = wl.nn.init.orthogonal()((4, 4), wl.random.key(0))
    >>> bool(wl.allclose(w.T @ w, wl.eye(4), atol=1e-5))
    True

    A kernel of a convolution is taken as a matrix from all its inputs to the outputs.
    """
    return Initializer(_orthogonal, gain=gain)


def _sparse(shape: Shape, key: Tensor, dtype: DType, sparsity: float, std: float) -> Tensor:
    if len(shape) != 2:
        raise ShapeError(f"sparse: the shape {shape} is not that of a matrix.", "a weight of shape (in, out)")
    first, second = random.split(key, 2)
    order = arrays.argsort(random.uniform(shape, key=first), axis=0)  # each column its own permutation of the rows
    rank = arrays.argsort(order, axis=0)
    kept = rank >= math.ceil(sparsity * shape[0])
    return arrays.where(kept, random.normal(shape, 0.0, std, key=second, dtype=dtype), 0.0)


def sparse(sparsity: float, std: float = 0.01) -> Initializer:
    r"""Normal, but in each column (the weights of an output) a fraction of the entries, chosen at random, is 0.

    >>> import wonderland as wl
    >>> (wl.nn.init.sparse(0.5)((4, 3)) == 0).sum(axis=0)
    tensor([2, 2, 2])
    """
    if not 0 <= sparsity <= 1:
        raise InputError(f"sparse: sparsity={sparsity}.", "a fraction from 0 to 1")
    return Initializer(_sparse, sparsity=sparsity, std=std)


def _eye(shape: Shape, key: Tensor, dtype: DType) -> Tensor:
    if len(shape) != 2:
        raise ShapeError(f"eye: the shape {shape} is not that of a matrix.", "a weight of shape (in, out)")
    return arrays.eye(*shape, dtype=dtype)


def eye() -> Initializer:
    """The identity matrix: a linear layer passes on as many inputs as it has outputs for.

    >>> import wonderland as wl
    >>> wl.nn.init.eye()((2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    return Initializer(_eye)


def _dirac(shape: Shape, key: Tensor, dtype: DType, groups: int) -> Tensor:
    if len(shape) < 3 or shape[-1] % groups:
        raise ShapeError(
            f"dirac: the shape {shape} is not that of a convolution with {groups} groups.",
            "a weight of shape (*kernel, in / groups, out)",
        )
    value = np.zeros(shape, dtype=np.float64)
    centre = tuple(size // 2 for size in shape[:-2])
    each = shape[-1] // groups
    for i in range(min(shape[-2], each)):
        for g in range(groups):
            value[(*centre, i, g * each + i)] = 1.0
    return arrays.asarray(value, dtype=dtype)


def dirac(groups: int = 1) -> Initializer:
    """1 at the centre of a kernel from input channel i to output channel i: the convolution passes images on.

    >>> import wonderland as wl
    >>> layer = wl.nn.Conv2d(2, 2, 3, padding="same", bias=False, init=wl.nn.init.dirac())
    >>> x = wl.random.normal((1, 5, 5, 2))
    >>> bool((layer(x) == x).all())
    True
    """
    return Initializer(_dirac, groups=groups)
