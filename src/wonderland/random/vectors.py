"""Random vectors and matrices that are made with linear algebra."""

from __future__ import annotations

from .. import linalg
from ..arrays import diagonal, expand_dims, matmul, ones_like, where
from ..arrays.conversion import as_shape, convert
from ..core.broadcasting import broadcast_shapes
from ..core.errors import ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, DTypeLike, KeyLike, ShapeLike
from .arguments import as_parameter_tensor, floating_type, key_and_shape, working_type
from .continuous import located, rounded, standard_normal


def multivariate_normal(
    mean: ArrayLike,
    covariance: ArrayLike,
    shape: ShapeLike = (),
    *,
    key: KeyLike = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    r"""Normal vectors \(x = \mu + L\varepsilon\), \(LL^\top\) the covariance: shape (*shape, *batch, d).

    >>> import wonderland as wl
    >>> covariance = wl.tensor([[2.0, 1.0], [1.0, 1.0]])
    >>> wl.random.multivariate_normal(wl.zeros(2), covariance, (5,), key=wl.random.key(0)).shape
    (5, 2)

    `mean` is (..., d) and `covariance` (..., d, d), positive definite; `batch` is their
    leading axes broadcast together.
    """
    name = "multivariate_normal"
    mean, covariance = as_parameter_tensor(name, mean), as_parameter_tensor(name, covariance)
    if not mean.ndim or covariance.shape[-2:] != mean.shape[-1:] * 2:
        raise ShapeError(
            f"{name}: a mean of shape {mean.shape} and a covariance of shape {covariance.shape} do not fit.",
            "shapes (..., d) and (..., d, d)",
        )
    target = floating_type(name, dtype, mean, covariance)
    mean, covariance = (convert(x, working_type(target)) for x in (mean, covariance))
    batch = broadcast_shapes(name, mean.shape[:-1], covariance.shape[:-2])
    key, sizes = key_and_shape(name, (*as_shape(name, shape), *batch, mean.shape[-1]), key, target)
    noise = standard_normal(key, sizes, mean.dtype)
    return rounded(mean + matmul(linalg.cholesky(covariance), expand_dims(noise, axis=-1))[..., 0], target)


def orthogonal(shape: ShapeLike, gain: float = 1.0, *, key: KeyLike = None, dtype: DTypeLike | None = None) -> Tensor:
    r"""A matrix with orthonormal rows or columns (whichever are fewer), uniform among them, times `gain`.

    >>> import wonderland as wl
    >>> q = wl.random.orthogonal((4, 2), key=wl.random.key(0))
    >>> bool(wl.abs(q.mT @ q - wl.eye(2)).max() < 1e-5)
    True

    The Q of a normal matrix \(QR\), with the signs that make the diagonal of R positive. Leading
    axes hold many matrices.
    """
    sizes = as_shape("orthogonal", shape)
    if len(sizes) < 2:
        raise ShapeError(f"orthogonal: a matrix has two axes, received the shape {sizes}.", "(rows, columns)")
    *lead, rows, columns = sizes
    target = floating_type("orthogonal", dtype)
    tall = (*lead, max(rows, columns), min(rows, columns))
    key, tall = key_and_shape("orthogonal", tall, key, target)
    q, r = linalg.qr(standard_normal(key, tall, working_type(target)))
    signs = diagonal(r)
    q = q * expand_dims(where(signs < 0, -ones_like(signs), ones_like(signs)), axis=-2)
    return located(q if rows >= columns else q.mT, 0, gain, target)
