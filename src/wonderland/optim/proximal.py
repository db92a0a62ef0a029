"""Steps that penalties and constraints take exactly: thresholds and projections. Book, section 9.2.1."""

from __future__ import annotations

from collections.abc import Callable

from .. import arrays
from ..core import dtypes
from ..core.arguments import as_number
from ..core.errors import DTypeError, InputError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike, Axes
from ..nn.module.module import Module
from ..transforms.imperative import no_grad
from .regularizers import weights_of


def soft_threshold(x: ArrayLike, threshold: float) -> Tensor:
    r"""\(\mathrm{sign}(x)\,\max(|x| - t, 0)\), the minimum of \(\frac12\|z - x\|^2 + t\sum|z_i|\).

    >>> import wonderland as wl
    >>> wl.optim.soft_threshold(wl.tensor([-3.0, 0.5, 2.0]), 1.0)
    tensor([-2., 0., 1.])

    After a gradient step with rate \(\eta\) on the loss, t = \(\eta\lambda\) is the step of the penalty
    \(\lambda\sum|w_i|\): weights become exactly zero.
    """
    x = _real("soft_threshold", x)
    _not_negative("soft_threshold", "threshold", threshold)
    return arrays.sign(x) * arrays.maximum(arrays.abs(x) - threshold, 0.0)


def group_soft_threshold(x: ArrayLike, threshold: float, axis: Axes = 0) -> Tensor:
    r"""\(x_g \max(1 - t/\|x_g\|, 0)\) for groups that extend over `axis`: short groups become zero as a whole.

    >>> import wonderland as wl
    >>> wl.optim.group_soft_threshold(wl.tensor([[3.0, 0.3], [4.0, 0.4]]), 1.0)
    tensor([[2.4, 0. ],
            [3.2, 0. ]])
    """
    x = _real("group_soft_threshold", x)
    _not_negative("group_soft_threshold", "threshold", threshold)
    size = arrays.norm(x, axis=axis, keepdims=True)
    kept = size > threshold
    return x * arrays.where(kept, 1.0 - threshold / arrays.where(kept, size, 1.0), arrays.zeros_like(size))


def project_l2_ball(x: ArrayLike, radius: float = 1.0, axis: Axes = -1) -> Tensor:
    r"""The nearest point with \(\|x\| \le r\), over `axis` (None: all axes).

    >>> import wonderland as wl
    >>> wl.optim.project_l2_ball(wl.tensor([30.0, 40.0]), 5.0)
    tensor([3., 4.])
    """
    x = _real("project_l2_ball", x)
    _not_negative("project_l2_ball", "radius", radius)
    size = arrays.norm(x, axis=axis, keepdims=True)
    outside = size > radius
    return x * arrays.where(outside, radius / arrays.where(outside, size, 1.0), arrays.ones_like(size))


def project_simplex(x: ArrayLike, total: float = 1.0, axis: int = -1) -> Tensor:
    r"""The nearest point with \(x_i \ge 0\) and \(\sum_i x_i = s\).

    >>> import wonderland as wl
    >>> wl.optim.project_simplex(wl.tensor([0.5, 1.5, -1.0]))
    tensor([0., 1., 0.])
    """
    x = arrays.moveaxis(_real("project_simplex", x), axis, -1)
    if not as_number("project_simplex", "total", total) > 0:
        raise InputError(f"project_simplex: total={total}.", "a sum above 0")
    if not x.shape[-1]:
        raise InputError("project_simplex: the axis is empty, and an empty sum is 0.", "at least one number")
    return arrays.moveaxis(arrays.maximum(x - _level(x, total), 0.0), -1, axis)


def project_l1_ball(x: ArrayLike, radius: float = 1.0, axis: int = -1) -> Tensor:
    r"""The nearest point with \(\sum_i |x_i| \le r\); often a vertex or an edge, with zeros.

    >>> import wonderland as wl
    >>> wl.optim.project_l1_ball(wl.tensor([3.0, -1.0, 0.5]), 2.0)
    tensor([ 2., -0., 0.])
    """
    x = arrays.moveaxis(_real("project_l1_ball", x), axis, -1)
    _not_negative("project_l1_ball", "radius", radius)
    if not x.size:
        return arrays.moveaxis(x, -1, axis)
    size = arrays.abs(x)
    inside = arrays.sum(size, axis=-1, keepdims=True) <= radius
    projected = arrays.sign(x) * arrays.maximum(size - _level(size, radius), 0.0)
    return arrays.moveaxis(arrays.where(inside, x, projected), -1, axis)


def _level(x: Tensor, total: float) -> Tensor:
    """The c with sum(max(x - c, 0)) = total along the last axis, from the sorted values (..., 1)."""
    falling = arrays.flip(arrays.sort(x, axis=-1), axis=-1)
    counts = arrays.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    levels = (arrays.cumsum(falling, axis=-1) - total) / counts
    positive = falling > levels
    # the first is positive but for rounding, or a total of zero
    last = arrays.maximum(arrays.sum(arrays.astype(positive, dtypes.int64), axis=-1, keepdims=True), 1)
    return arrays.take_along_axis(levels, last - 1, axis=-1)


def apply_proximal(model: Module, step: Callable[[Tensor], Tensor], *, weights_only: bool = True) -> None:
    """Replace the weights of a model by `step(weight)`: after the optimizer's step, inside `jit` too.

    >>> import wonderland as wl
    >>> model = wl.nn.Linear.from_matrix([[3.0, 0.1]])
    >>> wl.optim.apply_proximal(model, lambda w: wl.optim.soft_threshold(w, 0.5))
    >>> model.weight
    parameter([[2.5, 0. ]])
    """
    with no_grad():
        for parameter in weights_of(model, weights_only):
            parameter.assign(step(parameter))  # type: ignore[attr-defined]  # weights of a module are parameters


def _real(name: str, x: ArrayLike) -> Tensor:
    x = arrays.asarray(x)
    if not dtypes.is_floating(x.dtype):
        raise DTypeError(f"{name}: received {x.dtype}{list(x.shape)}.", "real numbers, such as wl.float32")
    return x


def _not_negative(name: str, what: str, value: object) -> None:
    if not as_number(name, what, value) >= 0:
        raise InputError(f"{name}: {what}={value}.", f"{what} >= 0")
