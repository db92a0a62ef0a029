r"""Windows that fade a frame in and out, so that cutting it from a signal adds few frequencies of its own.

With \(u_k = k / n\) for the periodic form (one period, for spectra) and \(u_k = k / (n - 1)\) for the symmetric one
(for filters), the cosine windows are \(w_k = \sum_j (-1)^j a_j \cos(2\pi j u_k)\). Book, section 8.1.1.
"""

from __future__ import annotations

import functools

import numpy as np

from ..core.arguments import as_int, as_number, shown
from ..core.dtypes import as_dtype, default_float, is_floating
from ..core.errors import DTypeError, InputError
from ..core.tensor import Tensor, wrap
from ..core.typing import Array, DTypeLike

# the coefficients a_0, a_1, ... of the cosine windows
COSINES = {
    "boxcar": (1.0,),
    "hann": (0.5, 0.5),
    "hamming": (0.54, 0.46),
    "blackman": (0.42, 0.5, 0.08),
    "blackmanharris": (0.35875, 0.48829, 0.14128, 0.01168),
    "nuttall": (0.3635819, 0.4891775, 0.1365995, 0.0106411),
}
NAMES = (*COSINES, "bartlett", "kaiser")


@functools.lru_cache(maxsize=64)
def window_values(name: str, n: int, periodic: bool = True, beta: float = 12.0) -> Array:
    """A window in float64, made once."""
    if n == 1:
        return np.ones(1)
    u = np.arange(n) / (n if periodic else n - 1)
    if name == "bartlett":
        values = 1 - np.abs(2 * u - 1)
    elif name == "kaiser":
        values = np.i0(beta * np.sqrt(np.maximum(0.0, 1 - (2 * u - 1) ** 2))) / np.i0(beta)
    else:
        values = sum((-1) ** j * a * np.cos(2 * np.pi * j * u) for j, a in enumerate(COSINES[name]))
    values.setflags(write=False)
    return values


def get_window(
    name: str, n: int, periodic: bool = True, *, beta: float = 12.0, dtype: DTypeLike | None = None
) -> Tensor:
    """The window of a name, with n values.

    >>> import wonderland as wl
    >>> wl.audio.get_window("hann", 4)
    tensor([0. , 0.5, 1. , 0.5])

    Names are "boxcar", "hann", "hamming", "blackman", "blackmanharris", "nuttall", "bartlett", and "kaiser", which has
    the setting `beta`. SciPy's `get_window` gives the same.
    """
    return _window("get_window", name, n, periodic, beta, dtype)


def _window(function: str, name: str, n: int, periodic: bool, beta: float, dtype: DTypeLike | None) -> Tensor:
    check_window(function, name)
    n = as_int(function, "n", n, least=1)
    beta = float(as_number(function, "beta", beta))
    target = default_float if dtype is None else as_dtype(dtype)
    if not is_floating(target):
        raise DTypeError(f"{function}: a window has no {target} form.", "a floating dtype")
    return wrap(window_values(name, n, bool(periodic), beta).astype(target))


def check_window(function: str, name: object) -> None:
    """Refuse a name that no window has."""
    if not isinstance(name, str) or name not in NAMES:
        raise InputError(f"{function}: there is no window {shown(name)}.", f"one of {', '.join(NAMES)}")


def hann_window(n: int, periodic: bool = True, *, dtype: DTypeLike | None = None) -> Tensor:
    r"""\(w_k = \frac12 - \frac12\cos 2\pi u_k\).

    >>> import wonderland as wl
    >>> wl.audio.hann_window(5, periodic=False)
    tensor([0. , 0.5, 1. , 0.5, 0. ])
    """
    return _window("hann_window", "hann", n, periodic, 0.0, dtype)


def hamming_window(n: int, periodic: bool = True, *, dtype: DTypeLike | None = None) -> Tensor:
    r"""\(w_k = 0.54 - 0.46\cos 2\pi u_k\).

    >>> import wonderland as wl
    >>> wl.audio.hamming_window(4)
    tensor([0.08, 0.54, 1.  , 0.54])
    """
    return _window("hamming_window", "hamming", n, periodic, 0.0, dtype)


def blackman_window(n: int, periodic: bool = True, *, dtype: DTypeLike | None = None) -> Tensor:
    r"""\(w_k = 0.42 - 0.5\cos 2\pi u_k + 0.08\cos 4\pi u_k\).

    >>> import wonderland as wl
    >>> wl.audio.blackman_window(4)[2]
    tensor(1.)
    """
    return _window("blackman_window", "blackman", n, periodic, 0.0, dtype)


def bartlett_window(n: int, periodic: bool = True, *, dtype: DTypeLike | None = None) -> Tensor:
    r"""The triangle \(w_k = 1 - |2 u_k - 1|\).

    >>> import wonderland as wl
    >>> wl.audio.bartlett_window(4)
    tensor([0. , 0.5, 1. , 0.5])
    """
    return _window("bartlett_window", "bartlett", n, periodic, 0.0, dtype)


def kaiser_window(n: int, periodic: bool = True, beta: float = 12.0, *, dtype: DTypeLike | None = None) -> Tensor:
    r"""\(w_k = I_0(\beta\sqrt{1 - (2u_k - 1)^2}) / I_0(\beta)\); a larger \(\beta\) leaks less and is wider.

    >>> import wonderland as wl
    >>> wl.audio.kaiser_window(3, periodic=False, beta=0.0)
    tensor([1., 1., 1.])
    """
    return _window("kaiser_window", "kaiser", n, periodic, beta, dtype)
