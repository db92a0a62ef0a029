"""Linear and bilinear maps of features, as functions of their weights."""

from __future__ import annotations

from ... import arrays
from ...arrays.conversion import as_tensor, for_products
from ...core.errors import ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike

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
    return with_bias("linear", arrays.matmul(x, weight), bias)


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
    return with_bias("bilinear", arrays.matmul(arrays.expand_dims(x2, axis=-2), left)[..., 0, :], bias)


def with_bias(name: str, y: Tensor, bias: ArrayLike | None) -> Tensor:
    """y + b, for a bias that is one vector of the features or None."""
    if bias is None:
        return y
    bias = as_tensor(name, bias)
    if bias.shape != y.shape[-1:]:
        raise ShapeError(f"{name}: a bias of shape {bias.shape} for {y.shape[-1]} outputs.", f"shape {y.shape[-1:]}")
    return y + for_products(bias)[0]
