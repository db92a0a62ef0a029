"""Whether functions commute with transformations of their input, and functions made to do so. Book, section 7.2.1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from ... import arrays
from ...arrays.conversion import as_inexact
from ...core.arguments import as_function, as_list
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike, ShapeLike
from ...transforms.derivatives import jacobian

__all__ = [
    "Deviation", "check_equivariance", "check_invariance", "assert_equivariant", "dependence", "is_local", "is_causal",
    "group_average",
]  # fmt: skip

Map: TypeAlias = Callable[..., ArrayLike]


class Deviation(NamedTuple):
    """The largest difference |f(Tx) - T'f(x)|: away from the border of the output, and within `margin` of it."""

    interior: float
    border: float


def check_equivariance(
    f: Map, x: ArrayLike, transform: Map, transform_output: Map | None = None, margin: ShapeLike = 0
) -> Deviation:
    r"""How far f is from \(f(Tx) = T' f(x)\), with \(T' = T\) by default. Book, D.7.3 and section 7.2.1.

    >>> import wonderland as wl
    >>> layer = wl.nn.Conv1d(1, 4, 3, padding=1, dtype=wl.float64)
    >>> x = wl.random.normal((12, 1), dtype=wl.float64)
    >>> found = wl.nn.check_equivariance(layer, x, lambda a: wl.roll(a, 2, axis=0), margin=3)
    >>> found.interior < 1e-12, found.border > 1e-3
    (True, True)

    The output is (*spatial, channels); `margin` is the width of what counts as its border, one number or one for each
    spatial axis. With zeros as padding a convolution commutes with shifts in the interior only; with a stride of s only
    with shifts of the input by multiples of s.
    """
    name = "check_equivariance"
    left, right = _two_ways(name, f, x, transform, transform if transform_output is None else transform_output)
    return _deviation(name, left, right, margin)


def check_invariance(f: Map, x: ArrayLike, transform: Map) -> float:
    r"""The largest difference \(|f(Tx) - f(x)|\). Book, section 7.2.1.

    >>> import wonderland as wl
    >>> x = wl.random.normal((6, 5, 2), dtype=wl.float64)
    >>> wl.nn.check_invariance(wl.nn.GlobalAvgPool(), x, lambda a: wl.flip(a, axis=0)) < 1e-12
    True
    """
    left, right = _two_ways("check_invariance", f, x, transform, lambda y: y)
    return _deviation("check_invariance", left, right, 0).interior


def assert_equivariant(
    f: Map,
    x: ArrayLike,
    transform: Map,
    transform_output: Map | None = None,
    margin: ShapeLike = 0,
    rtol: float = 1e-5,
    atol: float = 1e-6,
) -> None:
    """Raise an AssertionError unless f(Tx) = T'f(x) in the interior, within atol + rtol max |f(x)|.

    >>> import wonderland as wl
    >>> layer = wl.nn.Conv2d(1, 4, 3, padding=1, padding_mode="circular")
    >>> wl.nn.assert_equivariant(layer, wl.random.normal((8, 8, 1)), lambda a: wl.roll(a, (2, 3), axis=(0, 1)))

    See `check_equivariance`; for invariance, `transform_output=lambda y: y`.
    """
    name = "assert_equivariant"
    left, right = _two_ways(name, f, x, transform, transform if transform_output is None else transform_output)
    found = _deviation(name, left, right, margin).interior
    allowed = atol + rtol * float(np.abs(right).max(initial=0.0))
    if not found <= allowed:
        raise AssertionError(
            f"assert_equivariant: f(Tx) and T'f(x) of shape {right.shape} differ by {found:.3g}, "
            f"more than {allowed:.3g}."
        )


def _two_ways(name: str, f: Map, x: ArrayLike, before: Map, after: Map) -> tuple[Array, Array]:
    for g in (f, before, after):
        as_function(name, g)
    left, right = np.asarray(f(before(x))), np.asarray(after(f(x)))
    if left.shape != right.shape:
        raise ShapeError(f"{name}: f(Tx) has shape {left.shape}, T'f(x) has {right.shape}.", "another transform_output")
    return left, right


def _deviation(name: str, left: Array, right: Array, margin: ShapeLike) -> Deviation:
    difference = np.abs(left - right)
    axes = max(difference.ndim - 1, 0)
    margins = tuple(margin) if isinstance(margin, (tuple, list)) else (margin,) * axes
    if len(margins) > axes:
        raise InputError(f"{name}: margin={margin} for an output of shape {right.shape}.", "one for each spatial axis")
    skipped = axes - len(margins)  # leading batch axes
    inside = tuple(slice(m, n - m) for m, n in zip(margins, difference.shape[skipped:-1], strict=True))
    mask = np.zeros(difference.shape, bool)
    mask[(*[slice(None)] * skipped, *inside)] = True
    return Deviation(*(float(difference[part].max(initial=0.0)) for part in (mask, ~mask)))


# --- which inputs matter


def dependence(f: Map, x: ArrayLike) -> Array:
    """Which input places matter to which output places: bools (*output places, *input places), by the Jacobian at x.

    >>> import wonderland as wl
    >>> layer = wl.nn.CausalConv1d(2, 3, 2)
    >>> wl.nn.dependence(layer, wl.ones((3, 2))).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [0, 1, 1]])

    x is one example (*spatial, channels). A derivative that happens to be 0 there, as behind a ReLU, counts as no
    dependence; take the union over several x then.
    """
    x = as_inexact("dependence", x)
    found = np.asarray(jacobian(f)(x))
    outputs = found.ndim - x.ndim
    return (np.moveaxis(found, outputs - 1, -2) != 0).any(axis=(-2, -1))


def is_local(f: Map, x: ArrayLike, radius: int) -> bool:
    r"""Whether output (i, j) depends on inputs at distance \(\max(|i - i'|, |j - j'|) \le\) radius alone. Book, D.7.2.

    >>> import wonderland as wl
    >>> layer, x = wl.nn.Conv2d(1, 1, 3, padding=1), wl.random.normal((5, 5, 1))
    >>> wl.nn.is_local(layer, x, 1), wl.nn.is_local(layer, x, 0)
    (True, False)
    """
    matters = dependence(f, x)
    axes = matters.ndim // 2
    if matters.shape[:axes] != matters.shape[axes:]:
        raise ShapeError(
            f"is_local: outputs at {matters.shape[:axes]} places for inputs at {matters.shape[axes:]}.",
            'a layer that keeps the size, as with padding="same"',
        )
    pairs = np.argwhere(matters)
    return bool((np.abs(pairs[:, :axes] - pairs[:, axes:]).max(axis=1, initial=0) <= radius).all())


def is_causal(f: Map, x: ArrayLike) -> bool:
    r"""Whether output i of a sequence (length, channels) depends on inputs \(j \le i\) alone. Book, D.8.1.

    >>> import wonderland as wl
    >>> x = wl.random.normal((6, 2))
    >>> wl.nn.is_causal(wl.nn.CausalConv1d(2, 3, 3), x), wl.nn.is_causal(wl.nn.Conv1d(2, 3, 3, padding="same"), x)
    (True, False)
    """
    matters = dependence(f, x)
    if matters.ndim != 2:
        raise ShapeError(f"is_causal: an input of shape {np.shape(x)}.", "a sequence (length, channels)")
    return not np.triu(matters, 1).any()


# --- symmetry made


def group_average(f: Map, group: Sequence[Map], inverses: Sequence[Map] | None = None) -> Callable[[ArrayLike], Tensor]:
    r"""The mean over a group \(\sum_g f(gx)/|G|\), invariant; with inverses \(\sum_g g^{-1} f(gx)/|G|\), equivariant.

    >>> import wonderland as wl
    >>> flips = [lambda a: a, lambda a: wl.flip(a, axis=0)]
    >>> g = wl.nn.group_average(lambda a: a[0] * 2.0, flips)
    >>> g(wl.tensor([1.0, 5.0])), g(wl.tensor([5.0, 1.0]))
    (tensor(6.), tensor(6.))

    `group` lists all transformations of a group, the identity among them. Book, section 7.2.1 (frame averaging).
    """
    name = "group_average"
    maps = [as_function(name, g) for g in as_list(name, "group", group)]
    back = [lambda y: y] * len(maps) if inverses is None else [as_function(name, g) for g in inverses]
    if not maps or len(back) != len(maps):
        raise InputError(f"{name}: {len(maps)} transformations and {len(back)} inverses.", "as many, and at least one")

    def averaged(x: ArrayLike) -> Tensor:
        results = [h(f(g(x))) for g, h in zip(maps, back, strict=True)]
        return arrays.mean(arrays.stack(results), axis=0)

    return averaged
