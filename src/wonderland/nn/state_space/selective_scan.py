r"""The recurrence whose matrices depend on the input, without keeping its states. Book, section 13.4.3."""

from __future__ import annotations

from ... import arrays
from ...core import dtypes
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ...transforms.control.loops import scan
from ..functional.linear_recurrence import linear_recurrence
from .discretization import check_method, discretize

__all__ = ["selective_scan"]

MODES = ("loop", "scan")


def selective_scan(
    x: ArrayLike,
    delta: ArrayLike,
    A: ArrayLike,
    B: ArrayLike,
    C: ArrayLike,
    D: ArrayLike | None = None,
    start: ArrayLike | None = None,
    *,
    method: str = "mamba",
    mode: str = "loop",
) -> tuple[Tensor, Tensor]:
    r"""\(s_i = \bar A_i s_{i-1} + \bar B_i x_i,\; y_i = C_i s_i + D x_i\), each channel by itself. Book, E.13.29-30.

    >>> import wonderland as wl
    >>> x, delta = wl.ones((2, 5, 3)), wl.ones((2, 5, 3))  # (rows, time, channels)
    >>> B = C = wl.ones((2, 5, 4))  # (rows, time, n)
    >>> y, state = wl.nn.selective_scan(x, delta, -wl.ones((3, 4)), B, C)
    >>> y.shape, state.shape
    ((2, 5, 3), (2, 3, 4))

    `A` (d, n) is negative and `delta` positive, so that \(\bar A = e^{\Delta A}\) is below 1; where the step is 0 the
    state stays as it is. `method` is that of `discretize`. Results are y (rows, time, d) and the state after the last
    token (rows, d, n), from `start` on. In the mode "loop" a step computes decay, input and result from the (rows, d)
    and (rows, n) of one token, and no tensor of all states (rows, time, d, n) is made; "scan" makes them, for the
    associative scan, which works as well with decays that vary (what is lost is the convolution: there is no kernel).
    """
    name = "selective_scan"
    check_method(name, method)
    if mode not in MODES:
        lost = " a system that depends on its input has no kernel" if mode == "convolution" else ""
        raise InputError(f"{name}: mode={mode!r}:{lost}.", "'loop' or 'scan'")
    x, delta, A, B, C = (arrays.asarray(value) for value in (x, delta, A, B, C))
    shapes = [t.shape for t in (x, delta, A, B, C)]
    if x.ndim != 3 or A.ndim != 2:
        raise ShapeError(f"{name}: x, delta, A, B, C of shapes {shapes}.", "(b, t, d) twice, (d, n), (b, t, n) twice")
    (b, t, d), n = x.shape, A.shape[1]
    if shapes[1:] != [(b, t, d), (d, n), (b, t, n), (b, t, n)]:
        raise ShapeError(f"{name}: x, delta, A, B, C of shapes {shapes}.", "(b, t, d) twice, (d, n), (b, t, n) twice")
    kind = dtypes.promote_types(dtypes.promote_types(x.dtype, delta.dtype), A.dtype)
    first = arrays.zeros((b, d, n), dtype=kind) if start is None else arrays.astype(arrays.asarray(start), kind)
    if first.shape != (b, d, n):
        raise ShapeError(f"{name}: a start of shape {first.shape}.", f"{(b, d, n)}")
    if mode == "loop" or not t:
        y, last = _loop(x, delta, A, B, C, first, method)
    else:
        decay, scaled = discretize(delta[..., None], A, B[:, :, None], method)
        states = linear_recurrence(decay, scaled * x[..., None], first, axis=1, method="associative")
        y, last = arrays.sum(states * C[:, :, None], axis=-1), states[:, -1]
    return (y if D is None else y + arrays.asarray(D) * x), last


def _loop(
    x: Tensor, delta: Tensor, A: Tensor, B: Tensor, C: Tensor, first: Tensor, method: str
) -> tuple[Tensor, Tensor]:
    def step(s: Tensor, now: tuple[Tensor, Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        u, dt, into, out = now  # (b, d), (b, d), (b, n), (b, n)
        if method == "mamba":  # the product with a scalar per channel comes before that with the state
            s = arrays.exp(dt[..., None] * A) * s + (dt * u)[..., None] * into[:, None]
        else:
            decay, scaled = discretize(dt[..., None], A, into[:, None], method)
            s = decay * s + scaled * u[..., None]
        return s, arrays.sum(s * out[:, None], axis=-1)

    last, y = scan(step, first, tuple(arrays.swapaxes(part, 0, 1) for part in (x, delta, B, C)))
    return arrays.swapaxes(y, 0, 1), last
