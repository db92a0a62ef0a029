"""What can be said about a function at a point, and about its shape. Book, section 2.3.1."""

from __future__ import annotations

import numpy as np

from ... import arrays
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike
from ...linalg import eigvalsh
from ...random import key as new_key
from ...transforms.derivatives import directional_derivative, hessian
from ...transforms.reverse import grad
from .problem import Function, as_point


def is_descent_direction(f: Function, x: ArrayLike, p: ArrayLike, strict: bool = False) -> bool:
    r"""Whether \(D_p f(x) = \nabla f(x) \cdot p \le 0\); `strict`: below 0, which small enough steps need to lower f.

    >>> import wonderland as wl
    >>> f = lambda x: (x**2).sum()
    >>> [wl.optim.is_descent_direction(f, [1.0, 0.0], p) for p in ([-1.0, 5.0], [0.0, 1.0], [1.0, 0.0])]
    [True, True, False]

    Book, section 2.3.
    """
    x, p = as_point("is_descent_direction", x), as_point("is_descent_direction", p)
    if x.shape != p.shape:
        raise ShapeError(f"is_descent_direction: x has shape {x.shape} and p has {p.shape}.", "one shape")
    slope = directional_derivative(f, x, p).item()
    return bool(slope < 0 if strict else slope <= 0)


def steepest_direction(f: Function, x: ArrayLike) -> Tensor:
    r"""\(-\nabla f/\|\nabla f\|\), the unit vector along which f falls fastest; 0 at a stationary point.

    >>> import wonderland as wl
    >>> wl.optim.steepest_direction(lambda x: (x**2).sum(), [3.0, 4.0])
    tensor([-0.6, -0.8], dtype=float64)
    """
    g = grad(f)(as_point("steepest_direction", x))
    size = arrays.norm(g)
    return -g / arrays.where(size > 0, size, 1.0)


def classify_stationary(f: Function, x: ArrayLike, tol: float = 1e-6) -> str:
    """ "minimum", "maximum", "saddle", "degenerate" (the Hessian does not tell) or "not stationary".

    >>> import wonderland as wl
    >>> wl.optim.classify_stationary(lambda x: x[0] ** 2 - x[1] ** 2, [0.0, 0.0])
    'saddle'
    >>> wl.optim.classify_stationary(lambda x: x**3, 0.0)
    'degenerate'

    By the signs of the eigenvalues of the Hessian; those within `tol` of the largest count as 0, and gradients of a
    norm up to `tol` as 0. Eigenvalues of both signs are a saddle, whatever the others are.
    """
    x = as_point("classify_stationary", x)
    if arrays.norm(grad(f)(x)).item() > tol:
        return "not stationary"
    H = arrays.reshape(hessian(f)(x), (x.size, x.size))
    values = np.asarray(eigvalsh(0.5 * (H + arrays.matrix_transpose(H))))
    small = tol * max(1.0, float(np.abs(values).max(initial=0.0)))
    up, down = bool((values > small).any()), bool((values < -small).any())
    if up and down:
        return "saddle"
    if bool((np.abs(values) <= small).any()) or not values.size:
        return "degenerate"
    return "minimum" if up else "maximum"


def check_local_min(
    f: Function, x: ArrayLike, eps: float = 1e-3, samples: int = 200, key: int | Tensor | Array = 0
) -> bool:
    r"""Whether none of `samples` random points within `eps` of x is lower: a local minimum, as far as they show.

    >>> import wonderland as wl
    >>> [wl.optim.check_local_min(lambda x: x**2 - 1.5 * x, x) for x in (0.75, 0.7)]
    [True, False]

    Book, section 2.3.1 (definition 2.9).
    """
    x = as_point("check_local_min", x)
    rng = _generator("check_local_min", samples, key)
    moves = rng.normal(size=(samples, *x.shape))
    lengths = np.sqrt((moves**2).reshape(samples, -1).sum(1)).reshape(-1, *[1] * x.ndim)
    radii = eps * rng.uniform(size=(samples, *[1] * x.ndim)) ** (1.0 / max(x.size, 1))
    here = f(x).item()
    noise = 4.0 * float(arrays.finfo(x.dtype).eps) * max(1.0, abs(here))
    near = x.numpy() + (moves / np.where(lengths > 0, lengths, 1.0) * radii).astype(x.dtype)
    return all(f(arrays.asarray(z, dtype=x.dtype)).item() >= here - noise for z in near)


def convexity_counterexample(
    f: Function,
    low: ArrayLike,
    high: ArrayLike,
    samples: int = 1000,
    key: int | Tensor | Array = 0,
    strict: bool = False,
) -> tuple[Tensor, Tensor, float] | None:
    r"""A pair of points and an \(\alpha\) with \(f(\alpha x_1 + (1-\alpha) x_2) > \alpha f(x_1) + (1-\alpha) f(x_2)\).

    >>> import wonderland as wl
    >>> wl.optim.convexity_counterexample(lambda x: x**2, -3.0, 3.0, samples=100) is None
    True
    >>> x1, x2, a = wl.optim.convexity_counterexample(lambda x: x * wl.sin(2 * x), -3.0, 3.0)

    Points are drawn from the box between `low` and `high`. None proves nothing: no counterexample was found. `strict`
    also counts equality, as of a function with a flat or straight part. Book, section 2.3.1 (definition 2.12).
    """
    low, high = as_point("convexity_counterexample", low), as_point("convexity_counterexample", high)
    if low.shape != high.shape or bool(arrays.any(low > high).item()):
        raise InputError(f"convexity_counterexample: the box from {low} to {high}.", "low <= high, of one shape")
    rng = _generator("convexity_counterexample", samples, key)
    for _ in range(samples):
        a = float(rng.uniform())
        x1, x2 = (arrays.asarray(rng.uniform(low.numpy(), high.numpy()), dtype=low.dtype) for _ in range(2))
        ends = [f(x1).item(), f(x2).item()]
        chord, inside = a * ends[0] + (1 - a) * ends[1], f(a * x1 + (1 - a) * x2).item()
        noise = 64.0 * float(arrays.finfo(low.dtype).eps) * max(1.0, abs(ends[0]), abs(ends[1]))
        if inside >= chord - noise if strict and not bool((x1 == x2).all().item()) else inside > chord + noise:
            return x1, x2, a
    return None


def is_convex_sampled(
    f: Function,
    low: ArrayLike,
    high: ArrayLike,
    samples: int = 1000,
    key: int | Tensor | Array = 0,
    strict: bool = False,
) -> bool:
    """Whether no pair among `samples` contradicts convexity; see `convexity_counterexample`.

    >>> import wonderland as wl
    >>> wl.optim.is_convex_sampled(lambda x: x**2, -3.0, 3.0), wl.optim.is_convex_sampled(wl.sin, -3.0, 3.0)
    (True, False)
    """
    return convexity_counterexample(f, low, high, samples, key, strict) is None


def _generator(name: str, samples: int, key: int | Tensor | Array) -> np.random.Generator:
    as_int(name, "samples", samples, 1)
    words = new_key(key) if isinstance(key, (int, np.integer)) else key
    return np.random.Generator(np.random.Philox(np.asarray(words).astype(np.uint64).tolist()))
