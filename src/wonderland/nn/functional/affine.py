"""Linear and bilinear maps of features, as functions of their weights."""

from __future__ import annotations

from ... import arrays
from ...arrays.conversion import as_tensor, convert, for_products
from ...core.errors import ShapeError
from ...core.fused import fused
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...primitives.contraction import matmul

__all__ = ["bilinear", "linear"]


def linear(x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None) -> Tensor:
    r"""\(x W + b\) on the last axis: (..., in) and a weight (in, out) give (..., out). Book, E.2.4.

    >>> import wonderland as wl
    >>> wl.nn.functional.linear(wl.ones((2, 3)), wl.ones((3, 4)), wl.arange(4.0)).shape
    (2, 4)

    The weight is (in, out), as the book writes it; for one of PyTorch's, (out, in), pass `weight.T`.
    """
    x, weight = as_tensor("linear", x), as_tensor("linear", weight)
    if not x.ndim or weight.ndim != 2 or x.shape[-1] != weight.shape[0]:
        turned = weight.ndim == 2 and x.ndim and x.shape[-1] == weight.shape[1]
        raise ShapeError(
            f"linear: an input of shape {x.shape} and a weight of shape {weight.shape}.",
            "weight.T, a weight (in, out)" if turned else "(..., in) and (in, out)",
        )
    if bias is None:
        return arrays.matmul(x, weight)
    return affine(x, weight, as_bias("linear", bias, weight.shape[1]))


@fused(
    single=1 << 21,
    cost=lambda x, weight, bias: x.size * weight.shape[1],
    jvp=(
        lambda t, out, x, weight, bias: arrays.matmul(t, weight),
        lambda t, out, x, weight, bias: arrays.matmul(x, t),
        lambda t, out, x, weight, bias: convert(arrays.broadcast_to(t, out.shape), out.dtype),
    ),
    of_arrays=lambda x, weight, bias: matmul.impl(x, weight) + bias,
)
def affine(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """x W + b, of fitting shapes."""
    return arrays.matmul(x, weight) + for_products(bias)[0]


def bilinear(x1: ArrayLike, x2: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None) -> Tensor:
    r"""\(y_k = \sum_{ij} x_i\,W_{ijk}\,z_j + b_k\): (..., in1) and (..., in2) give (..., out).

    >>> import wonderland as wl
    >>> wl.nn.functional.bilinear(wl.ones((5, 2)), wl.ones((5, 3)), wl.ones((2, 3, 4))).shape
    (5, 4)

    The weight is (in1, in2, out), and the leading axes of both inputs are the same.
    """
    x1, x2, weight = (as_tensor("bilinear", a) for a in (x1, x2, weight))
    fits = weight.ndim == 3 and x1.ndim and x2.ndim and (x1.shape[-1], x2.shape[-1]) == weight.shape[:2]
    if not fits or x1.shape[:-1] != x2.shape[:-1]:
        raise ShapeError(
            f"bilinear: inputs of shapes {x1.shape} and {x2.shape} and a weight of shape {weight.shape}.",
            "(..., in1), (..., in2) and (in1, in2, out)",
        )
    first, second, out = weight.shape
    # one product with all of the weight, then one for every example: the larger sum comes first
    left = arrays.reshape(
        arrays.matmul(x1, arrays.reshape(weight, (first, second * out))), (*x1.shape[:-1], second, out)
    )
    y = arrays.matmul(arrays.expand_dims(x2, axis=-2), left)[..., 0, :]
    return y if bias is None else y + for_products(as_bias("bilinear", bias, out))[0]


def as_bias(name: str, bias: ArrayLike, outputs: int) -> Tensor:
    """A bias, which has to be one vector of the features."""
    bias = as_tensor(name, bias)
    if bias.shape != (outputs,):
        raise ShapeError(f"{name}: a bias of shape {bias.shape} for {outputs} outputs.", f"shape {(outputs,)}")
    return bias
