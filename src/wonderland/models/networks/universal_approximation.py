r"""One hidden layer can approximate any continuous function: the construction. Book, theorem 5.1 and appendix B.

A steep sigmoid is a step, two steps are a bin, and bins side by side follow a function as closely as one likes. All
networks here are ordinary MLPs whose weights are set instead of trained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from ... import arrays
from ...arrays.conversion import as_real
from ...core.arguments import as_int
from ...core.dtypes import float64
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike
from .mlp import MLP

SLOPE = 1e4


def step_neuron(x: ArrayLike, a: float = 1.0, s: float = 0.0, w: float = SLOPE) -> Tensor:
    r"""A neuron of amplitude a, slope w and shift s: \(a\,\sigma(w(x - s))\). Book, E.B.1.

    >>> import wonderland as wl
    >>> wl.models.step_neuron(wl.tensor([0.2, 0.3, 0.4]), s=0.3)
    tensor([0. , 0.5, 1. ])
    """
    return a * arrays.sigmoid(w * (as_real("step_neuron", x) - s))


def bin_function(x: ArrayLike, a: float = 1.0, s: float = 0.0, width: float = 1.0, w: float = SLOPE) -> Tensor:
    r"""About a within width/2 of s, else about 0: \(a\,\sigma(w(x - s + \Delta/2)) - a\,\sigma(w(x - s - \Delta/2))\).

    >>> import wonderland as wl
    >>> wl.models.bin_function(wl.tensor([-1.0, 0.0, 1.0]), a=2.0)
    tensor([0., 2., 0.])

    Book, E.B.2, where the signs of \(\Delta/2\) are the other way round, which gives -a.
    """
    if not width > 0:
        raise InputError(f"bin_function: width={width}.", "a number above 0")
    return step_neuron(x, a, s - width / 2, w) - step_neuron(x, a, s + width / 2, w)


def universal_approx_1d(
    g: Callable[[Array], ArrayLike],
    low: float = 0.0,
    high: float = 1.0,
    m: int = 50,
    w: float | None = None,
    centres: str = "midpoint",
    extend: bool = True,
) -> MLP:
    r"""An MLP with 2m sigmoid neurons that approximates g on [low, high] by m bins. Book, E.B.3.

    >>> import numpy as np, wonderland as wl
    >>> net = wl.models.universal_approx_1d(np.sin, 0.0, 3.0, m=100)
    >>> x = np.linspace(0.0, 3.0, 500)[:, None]
    >>> net.widths, bool(abs(net(x) - np.sin(x)).max() < 0.02)
    ((1, 200, 1), True)

    Bin i has the mean of g over it as its height; `g` takes and returns NumPy arrays. The bins divide the interval
    (`centres="midpoint"`) or are centred at its m equidistant points (`"linspace"`, as in the book's figure). At the
    ends of the interval a sigmoid is one half, so the outer bins are made longer unless `extend` is false: then the
    largest error does not shrink. Otherwise it shrinks as 1/m, the mean squared one as 1/m². The slope w is chosen such
    that steps are a hundred times narrower than bins at least.
    """
    name = "universal_approx_1d"
    m = as_int(name, "m", m, 1 if centres == "midpoint" else 2)
    if not low < high:
        raise InputError(f"{name}: low={low} is not below high={high}.", "low < high")
    if centres == "midpoint":
        width = (high - low) / m
        places = low + width * (np.arange(m) + 0.5)
    elif centres == "linspace":
        width = (high - low) / (m - 1)
        places = np.linspace(low, high, m)
    else:
        raise InputError(f"{name}: centres={centres!r}.", '"midpoint" or "linspace"')
    heights = _means(name, g, places, width, low, high)
    left, right = places - width / 2, places + width / 2
    if extend:
        left[0] -= width
        right[-1] += width
    slope = max(SLOPE, 1000 / width) if w is None else w
    net = MLP([1, 2 * m, 1], activation="sigmoid", dtype=float64)
    shifts = np.stack([left, right], axis=1).reshape(-1)  # two neurons for each bin
    amplitudes = np.stack([heights, -heights], axis=1).reshape(-1)
    _set(net, [np.full((1, 2 * m), slope), amplitudes[:, None]], [-slope * shifts, np.zeros(1)])
    return net


def relu_interpolant(g: Callable[[Array], ArrayLike], low: float = 0.0, high: float = 1.0, m: int = 50) -> MLP:
    r"""An MLP with m ReLU neurons that is g at m + 1 equidistant points and linear between. Book, section 5.2.1.

    >>> import numpy as np, wonderland as wl
    >>> net = wl.models.relu_interpolant(np.sin, 0.0, 3.0, m=10)
    >>> x = np.linspace(0.0, 3.0, 500)[:, None]
    >>> net.widths, bool(abs(net(x) - np.sin(x)).max() < 0.012)
    ((1, 10, 1), True)

    \(g(t_0) + \sum_i (s_i - s_{i-1}) \max(0, x - t_i)\) with the slopes \(s_i\) between the points \(t_i\); the largest
    error is at most \(h^2 \max|g''|/8\), so it shrinks as 1/m² for a smooth g.
    """
    name = "relu_interpolant"
    m = as_int(name, "m", m, 1)
    if not low < high:
        raise InputError(f"{name}: low={low} is not below high={high}.", "low < high")
    t = np.linspace(low, high, m + 1)
    values = _values(name, g, t)
    slopes = np.diff(values) / np.diff(t)
    net = MLP([1, m, 1], activation="relu", dtype=float64)
    changes = np.diff(slopes, prepend=0.0)
    _set(net, [np.ones((1, m)), changes[:, None]], [-t[:-1], values[:1]])
    return net


def universal_approx(
    g: Callable[[Array], ArrayLike], low: Sequence[float], high: Sequence[float], m: int = 10, w: float | None = None
) -> MLP:
    r"""An MLP with two hidden layers for a function of d inputs: m bins along each axis make \(m^d\) towers.

    >>> import numpy as np, wonderland as wl
    >>> net = wl.models.universal_approx(lambda x: x[:, 0] * x[:, 1], [0.0, 0.0], [1.0, 1.0], m=10)
    >>> net.widths
    (2, 40, 100, 1)

    Book, appendix B. \(2dm\) steps make the bins of all axes, and a tower is on where all d of its bins are; the number
    of towers is exponential in d. `g` takes points (n, d) and gives n values; heights are its values at the centres.
    """
    name = "universal_approx"
    lows, highs = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    m = as_int(name, "m", m, 1)
    if lows.ndim != 1 or lows.shape != highs.shape or not (lows < highs).all():
        raise InputError(f"{name}: low={low} and high={high} are not the corners of a box.", "low < high on each axis")
    d = len(lows)
    width = (highs - lows) / m
    slope = max(SLOPE, 1000 / width.min()) if w is None else w
    edges = lows[:, None] + width[:, None] * np.arange(m + 1)  # (d, m + 1)
    left, right = edges[:, :-1].copy(), edges[:, 1:].copy()
    left[:, 0] -= width
    right[:, -1] += width
    first = np.zeros((d, 2 * d * m))
    shifts = np.concatenate([left, right], axis=1).reshape(-1)  # for each axis m left edges, then m right ones
    for axis in range(d):
        first[axis, 2 * m * axis : 2 * m * (axis + 1)] = slope
    towers = list(product(range(m), repeat=d))
    second = np.zeros((2 * d * m, len(towers)))
    for k, bins in enumerate(towers):
        for axis, i in enumerate(bins):
            second[2 * m * axis + i, k] = SLOPE
            second[2 * m * axis + m + i, k] = -SLOPE
    heights = _values(name, g, lows + width * (np.array(towers) + 0.5))
    net = MLP([d, 2 * d * m, len(towers), 1], activation="sigmoid", dtype=float64)
    biases = [-slope * shifts, np.full(len(towers), -SLOPE * (d - 0.5)), np.zeros(1)]
    _set(net, [first, second, heights[:, None]], biases)
    return net


def neurons_needed(m: int, inputs: int) -> int:
    """The hidden neurons of the construction: 2m for one input; for d inputs 2dm steps and m to the d towers.

    >>> import wonderland as wl
    >>> [wl.models.neurons_needed(10, d) for d in (1, 2, 3, 6)]
    [20, 140, 1060, 1000120]
    """
    return 2 * m if inputs == 1 else 2 * inputs * m + m**inputs


def _means(name: str, g: Callable[[Array], ArrayLike], places: Array, width: float, low: float, high: float) -> Array:
    """The mean of g over each bin, inside of the interval, by Gauss's rule."""
    nodes, weights = np.polynomial.legendre.leggauss(8)
    ends = np.clip([places - width / 2, places + width / 2], low, high)
    middle, half = ends.mean(axis=0), (ends[1] - ends[0]) / 2
    points = middle[:, None] + half[:, None] * nodes
    return _values(name, g, points.reshape(-1)).reshape(points.shape) @ (weights / 2)


def _values(name: str, g: Callable[[Array], ArrayLike], points: Array) -> Array:
    values = np.asarray(g(points), dtype=float)
    if values.shape != points.shape[:1]:
        raise InputError(f"{name}: g gave the shape {values.shape} for {points.shape[0]} points.", "one value for each")
    if not np.isfinite(values).all():
        raise InputError(f"{name}: g has values that are not finite.", "a continuous function; np.sinc for sin(x)/x")
    return values


def _set(net: MLP, weights: list[Array], biases: list[Array]) -> None:
    linear = [layer for layer in net.layers if hasattr(layer, "weight")]
    for layer, weight, bias in zip(linear, weights, biases, strict=True):
        layer.weight.assign(arrays.asarray(weight))
        layer.bias.assign(arrays.asarray(bias))
