"""Weighted means, ranges, covariances and correlations."""

from __future__ import annotations

from typing import Literal, overload

from ..core.arguments import as_number
from ..core.broadcasting import normalize_axis
from ..core.dtypes import DType, float32, is_complex, is_half, is_integer, promote_types, real_of
from ..core.errors import DTypeError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, Axes, Ints
from .arithmetic import clip, sqrt
from .complexes import complex as complex_
from .complexes import conj, imag, real
from .conversion import as_inexact, as_ordered, as_tensor, convert
from .gathering import diagonal
from .joining import concat
from .manipulation import astype, atleast_2d, broadcast_to, matrix_transpose, reshape
from .products import matmul
from .reductions import max, mean, min, sum

__all__ = ["average", "corrcoef", "cov", "ptp"]


@overload
def average(
    x: ArrayLike,
    /,
    axis: Ints | None = None,
    weights: ArrayLike | None = None,
    returned: Literal[False] = False,
    *,
    keepdims: bool = False,
) -> Tensor: ...
@overload
def average(
    x: ArrayLike,
    /,
    axis: Ints | None = None,
    weights: ArrayLike | None = None,
    *,
    returned: Literal[True],
    keepdims: bool = False,
) -> tuple[Tensor, Tensor]: ...
@overload
def average(
    x: ArrayLike, /, axis: Ints | None, weights: ArrayLike | None, returned: Literal[True], *, keepdims: bool = False
) -> tuple[Tensor, Tensor]: ...
def average(
    x: ArrayLike,
    /,
    axis: Ints | None = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    r"""The weighted mean \(\sum_i w_i x_i / \sum_i w_i\) over the axes; without weights the mean.

    >>> import wonderland as wl
    >>> wl.average(wl.tensor([1.0, 2.0, 6.0]), weights=wl.tensor([1.0, 1.0, 2.0]))
    tensor(3.75)

    `weights` have the shape of x, or are one per place along a single axis. With `returned`, the pair of the mean and
    of the sum of the weights. Weights that sum to 0 give NaN or infinities.
    """
    x = as_inexact("average", x)
    if weights is None:
        found = mean(x, axis=axis, keepdims=keepdims)
        count = x.size // found.size if found.size else 0
        return (found, broadcast_to(convert(float(count), found.dtype), found.shape)) if returned else found
    w = as_inexact("average", weights)
    if w.shape != x.shape:
        if axis is None or isinstance(axis, (tuple, list)) or w.ndim != 1:
            raise ShapeError(
                f"average: weights of shape {w.shape} for a tensor of shape {x.shape} over axis {axis}.",
                "weights of the shape of x, or a vector and one axis",
            )
        place = normalize_axis("average", axis, x.ndim)
        if w.shape[0] != x.shape[place]:
            raise ShapeError(f"average: {w.shape[0]} weights for an axis of size {x.shape[place]}.", "one per place")
        w = broadcast_to(reshape(w, (-1,) + (1,) * (x.ndim - place - 1)), x.shape)
    dtype = promote_types(x.dtype, w.dtype)
    x, w = (astype(v, float32 if is_half(dtype) else dtype) for v in (x, w))
    total = sum(w, axis=axis, keepdims=keepdims)
    found = convert(sum(x * w, axis=axis, keepdims=keepdims) / total, dtype)
    return (found, convert(total, dtype)) if returned else found


def ptp(x: ArrayLike, /, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
    """The range: the largest element minus the smallest ("peak to peak").

    >>> import wonderland as wl
    >>> wl.ptp(wl.tensor([[4, 9], [1, 3]]), axis=1)
    tensor([5, 2])
    """
    x = as_ordered("ptp", x)
    return max(x, axis=axis, keepdims=keepdims) - min(x, axis=axis, keepdims=keepdims)


# --- covariance


def _observations(name: str, x: ArrayLike, rowvar: bool) -> Tensor:
    """A matrix with a row per variable and a column per observation."""
    x = as_inexact(name, x)
    if x.ndim > 2:
        raise ShapeError(f"{name}: a tensor of shape {x.shape} has more than two axes.", "a matrix or a vector")
    return matrix_transpose(x) if x.ndim == 2 and not rowvar else atleast_2d(x)


def _weights(counts: ArrayLike | None, importances: ArrayLike | None, n: int, dtype: DType) -> Tensor | None:
    """One weight per observation, or None."""
    found = None
    for what, given in (("fweights", counts), ("aweights", importances)):
        if given is None:
            continue
        w = as_tensor("cov", given)
        if w.shape != (n,):
            raise ShapeError(f"cov: {what} of shape {w.shape} for {n} observations.", "one number per observation")
        if what == "fweights" and not is_integer(w.dtype):
            raise DTypeError(f"cov: fweights are {w.dtype}.", "integers; aweights for fractions")
        found = convert(w, dtype) if found is None else found * w
    return found


def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    /,
    rowvar: bool = True,
    bias: bool = False,
    ddof: float | None = None,
    *,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
) -> Tensor:
    r"""The covariances \(\frac1{n-1}\sum_i (x_i-\bar x)(x_i-\bar x)^*\) of the variables in the rows, (d, n) to (d, d).

    >>> import wonderland as wl
    >>> wl.cov(wl.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])

    `y` adds variables. With `rowvar=False` they are in the columns. `bias` divides by n, `ddof` by n - ddof.
    `fweights` say how often each observation counts, `aweights` how important it is. Of one variable the result is
    a number.
    """
    x = _observations("cov", m, rowvar)
    if y is not None:
        x = concat([x, _observations("cov", y, rowvar)])
    dtype = x.dtype
    if is_half(dtype):
        x = astype(x, float32)
    n = x.shape[1]
    weights = _weights(fweights, aweights, n, real_of(x.dtype))
    lost = (0 if bias else 1) if ddof is None else as_number("cov", "ddof", ddof)
    divisor: float | Tensor
    if weights is None:
        centred = x - mean(x, axis=1, keepdims=True) if n else x
        weighted, divisor = centred, float(n - lost if n > lost else 0)
    else:
        total = sum(weights)
        centred = x - sum(x * weights, axis=1, keepdims=True) / total
        weighted, divisor = centred * weights, total - lost
        if aweights is not None:  # observations of different importance stand for fewer equal ones
            divisor = total - lost * sum(weights * as_inexact("cov", aweights)) / total
        divisor = clip(divisor, 0.0, None)
    adjoint = matrix_transpose(conj(weighted) if is_complex(x.dtype) else weighted)
    found = matmul(centred, adjoint) / convert(divisor, x.dtype)
    found = convert(found, dtype)
    return reshape(found, ()) if found.shape == (1, 1) else found


def corrcoef(x: ArrayLike, y: ArrayLike | None = None, /, rowvar: bool = True) -> Tensor:
    r"""Pearson's correlations \(C_{ij}/\sqrt{C_{ii} C_{jj}}\) of the variables in the rows, from -1 to 1.

    >>> import wonderland as wl
    >>> wl.corrcoef(wl.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    c = cov(x, y, rowvar)
    if not c.ndim:
        return c / c
    size = sqrt(real(diagonal(c)))
    c = c / reshape(size, (-1, 1)) / size
    if is_complex(c.dtype):
        return complex_(clip(real(c), -1.0, 1.0), clip(imag(c), -1.0, 1.0))
    return clip(c, -1.0, 1.0)
