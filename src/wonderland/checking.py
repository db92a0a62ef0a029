"""Derivatives checked against finite differences, and what holds at kinks. Book, sections 6.1.2 and 6.4.4.

Differences are taken in float64 unless asked otherwise: in float32 the rounding of f alone, divided by the step, is
larger than most mistakes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from . import array, trees
from .dtypes import as_dtype, bfloat16, complex_of, float16, float32, float64, is_complex, is_inexact, real_of
from .errors import GradientError, InputError, WonderlandError
from .tensor import Cell, Tensor
from .transforms.forward import jvp
from .transforms.inputs import Inputs, output_leaves
from .transforms.reverse import vjp

__all__ = [
    "GradientCheckError",
    "KinkWarning",
    "check_grads",
    "is_subgradient",
    "numerical_grad",
    "numerical_jvp",
    "subdifferential",
]

Array = np.ndarray[Any, Any]

# relative and absolute tolerance of a comparison in each precision
TOLERANCE = {float64: (1e-6, 1e-7), float32: (1e-2, 1e-3), float16: (1e-1, 5e-2), bfloat16: (2e-1, 1e-1)}
MOST_LOCATED = 10_000  # inputs up to which a failed check is traced to one of them


class GradientCheckError(WonderlandError, AssertionError):
    """`check_grads` found a derivative that differs from finite differences."""


class KinkWarning(UserWarning):
    """The derivative agreed with central differences, but from the left and from the right f has different slopes."""


# --- numerical differentiation


def numerical_grad(
    f: Callable[..., Any], x: Any, eps: float | None = None, method: str = "central", dtype: Any = float64
) -> Any:
    r"""The gradient of a scalar function by differences: \((f(x + h e_i) - f(x - h e_i)) / 2h\) for every element i.

    >>> import wonderland as wl
    >>> print(wl.numerical_grad(lambda x: (x**3).sum(), wl.tensor([1.0, 2.0])))
    tensor([ 3., 12.], dtype=float64)

    "central" differences cost 2n calls and are exact up to O(h^2); "forward" ones, \((f(x + h e_i) - f(x))/h\), cost n + 1
    calls and are exact up to O(h). `eps` is the step h; by default it balances truncation and rounding, for an x_i
    larger than 1 in proportion to it. x may be a tree or a module, and the result looks like that of `wl.grad`. The
    computation runs in `dtype` (None: that of x). For checks only: it costs n times what `wl.grad` does. Book, section 6.1.2.
    """
    point = _Point("numerical_grad", f, (x,), dtype)
    return point.inputs.gather([array.asarray(g) for g in point.gradient(eps, _checked_method(method))])[0]


def numerical_jvp(
    f: Callable[..., Any],
    primals: Any,
    tangents: Any,
    eps: float | None = None,
    method: str = "central",
    dtype: Any = float64,
) -> Any:
    r"""The derivative of f along a direction by differences: \((f(x + h t) - f(x - h t)) / 2h \approx J_f(x)\,t\).

    >>> import wonderland as wl
    >>> print(wl.numerical_jvp(wl.sin, (0.0,), (2.0,)))
    tensor(2., dtype=float64)

    The arguments are those of `wl.jvp`; the options those of `numerical_grad`.
    """
    method = _checked_method(method)
    point = _Point("numerical_jvp", f, _tuple(primals), dtype)
    direction = [np.asarray(t) for t in point.inputs.matching(_cast(_tuple(tangents), point.dtype))]
    around = point.along(direction, eps)
    slopes = around.central if method == "central" else around.right
    return trees.unflatten(point.structure, [array.asarray(s) for s in slopes])


def _checked_method(method: str) -> str:
    if method not in ("central", "forward"):
        raise InputError(f"numerical differentiation: there is no method {method!r}.", '"central" or "forward"')
    return method


def _tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _cast(tree: Any, dtype: Any) -> Any:
    """The tree with its floating leaves in the given precision."""
    if dtype is None:
        return tree
    leaves, structure = trees.flatten(tree)
    return trees.unflatten(structure, [_cast_leaf(leaf, dtype) for leaf in leaves])


def _cast_leaf(leaf: Any, dtype: Any) -> Any:
    if isinstance(leaf, float | complex):
        return array.asarray(leaf, dtype=complex_of(dtype) if isinstance(leaf, complex) else dtype)
    value = leaf.value if isinstance(leaf, Cell) else leaf
    if not isinstance(value, Tensor | np.ndarray) or not is_inexact(value.dtype):
        return leaf
    return array.asarray(value, dtype=complex_of(dtype) if is_complex(value.dtype) else dtype)


class _Differences(NamedTuple):
    """What f does on both sides of a point along a direction: values and slopes, one array per output leaf."""

    step: float
    values: list[Array]
    left: list[Array]
    right: list[Array]
    central: list[Array]


class _Point:
    """A function at a point, to be evaluated nearby. Leaves that are not floating are left out of its value."""

    def __init__(self, name: str, f: Callable[..., Any], args: tuple[Any, ...], dtype: Any) -> None:
        self.name = name
        self.dtype = None if dtype is None else as_dtype(dtype)
        self.args = _cast(args, self.dtype)
        self.f = f
        self.inputs = Inputs(name, self.args)
        self.x = [np.asarray(v) for v in self.inputs.values]
        out, self.structure = output_leaves(name, self.call(self.x))
        self.inexact = [is_inexact(v.dtype) for v in out]
        self.value = [np.asarray(v) for v in out]

    def call(self, leaves: list[Array]) -> Any:
        return self.inputs.call(None, self.f, [array.asarray(leaf, copy=True) for leaf in leaves])

    def evaluate(self, leaves: list[Array]) -> list[Array]:
        """All output leaves at another point."""
        return [np.asarray(v) for v in output_leaves(self.name, self.call(leaves))[0]]

    def epsilon(self) -> float:
        """The rounding error of the coarsest input."""
        return max((float(ml_dtypes.finfo(real_of(as_dtype(x.dtype))).eps) for x in self.x), default=1e-16)

    def along(self, direction: list[Array], eps: float | None, shrink: float = 1.0) -> _Differences:
        largest = max((float(np.max(np.abs(t), initial=0.0)) for t in direction), default=0.0)
        scale = max((float(np.max(np.abs(x), initial=0.0)) for x in self.x), default=0.0)
        h = eps if eps is not None else self.epsilon() ** (1 / 3) * max(1.0, scale) / (largest or 1.0)
        h *= shrink
        plus = self.evaluate([_moved(x, t, h) for x, t in zip(self.x, direction, strict=True)])
        minus = self.evaluate([_moved(x, t, -h) for x, t in zip(self.x, direction, strict=True)])
        values = self.value
        return _Differences(
            h,
            values,
            [_slope(a, b, h) for a, b in zip(values, minus, strict=True)],
            [_slope(a, b, h) for a, b in zip(plus, values, strict=True)],
            [_slope(a, b, 2 * h) for a, b in zip(plus, minus, strict=True)],
        )

    def gradient(self, eps: float | None, method: str, weights: list[Array] | None = None) -> list[Array]:
        """The gradient of f, or of the sum of its outputs times weights, element by element."""

        def scalar(leaves: list[Array]) -> float:
            found = self.evaluate(leaves)
            if weights is not None:
                return float(sum(np.sum(np.real(w * v)) for w, v in zip(weights, found, strict=True)))
            return float(found[0].astype(np.float64))

        if weights is None and (len(self.value) != 1 or self.value[0].shape or is_complex(self.value[0].dtype)):
            raise GradientError(
                f"{self.name}: the function returned {_shapes(self.value)}; only a real scalar has a gradient.",
                "wl.numerical_jvp for tensors",
            )
        power = 1 / 3 if method == "central" else 1 / 2
        here = scalar(self.x) if method == "forward" else 0.0
        gradients = []
        for k, x in enumerate(self.x):
            gradient = np.zeros_like(x)
            for place in np.ndindex(x.shape):
                for unit in (1.0, 1j) if is_complex(as_dtype(x.dtype)) else (1.0,):
                    h = eps if eps is not None else self.epsilon() ** power * max(1.0, abs(complex(x[place])))
                    ahead, behind = x.copy(), x.copy()
                    ahead[place] += unit * h
                    behind[place] -= unit * h
                    replaced = [*self.x[:k], ahead, *self.x[k + 1 :]]
                    if method == "central":
                        other = [*self.x[:k], behind, *self.x[k + 1 :]]
                        # the step that was really taken, after rounding
                        width = abs(complex(ahead[place] - behind[place]))
                        gradient[place] += unit * (scalar(replaced) - scalar(other)) / width
                    else:
                        width = abs(complex(ahead[place] - x[place]))
                        gradient[place] += unit * (scalar(replaced) - here) / width
            gradients.append(gradient)
        return gradients


def _moved(x: Array, t: Array, h: float) -> Array:
    return (x + np.asarray(h, real_of(as_dtype(x.dtype))) * t).astype(x.dtype)


def _slope(a: Array, b: Array, width: float) -> Array:
    if not is_inexact(as_dtype(a.dtype)):
        return np.zeros_like(a)
    wide = np.complex128 if is_complex(as_dtype(a.dtype)) else np.float64
    with np.errstate(invalid="ignore"):  # infinity minus infinity is reported as NaN
        return (a.astype(wide) - b.astype(wide)) / width


def _shapes(values: Sequence[Any]) -> str:
    return ", ".join(f"{v.dtype}{list(v.shape)}" for v in values)


# --- checking automatic derivatives


def check_grads(
    f: Callable[..., Any],
    args: Any,
    order: int = 1,
    modes: Sequence[str] = ("forward", "reverse"),
    *,
    rtol: float | None = None,
    atol: float | None = None,
    eps: float | None = None,
    dtype: Any = float64,
    seed: int = 0,
) -> None:
    r"""Raise unless the derivatives of f agree with finite differences along a random direction, up to an order.

    >>> import wonderland as wl
    >>> wl.check_grads(lambda x, y: wl.sin(x) * y, (wl.tensor([0.5, 1.0]), wl.tensor(2.0)), order=2)

    With a random direction t and a random adjoint v, forward mode must give \(J t\) as the differences do, and reverse
    mode \(\langle J^\top v, t\rangle = \langle v, J t\rangle\); a wrong entry of J goes unnoticed with probability 0. For
    order 2 and more the same is asked of the derivatives themselves, in every order of modes.

    `args` is a tuple of tensors, trees or modules. The computation runs in `dtype` (None: the arguments' own), and the
    tolerances follow from it unless given. A failure raises `GradientCheckError` and names the worst element; where
    slopes from the two sides differ it says that the point lies at a kink. At a kink where central differences agree by
    chance there is a `KinkWarning`. Book, section 6.1.2.
    """
    if order < 1:
        raise InputError(f"check_grads: order={order}.", "an order of 1 or more")
    unknown = [m for m in modes if m not in ("forward", "reverse")]
    if unknown or not modes:
        raise InputError(f"check_grads: modes={tuple(modes)!r}.", '"forward", "reverse" or both')
    args = args if isinstance(args, tuple) else (args,)
    point = _Point("check_grads", f, args, dtype)
    _Check(f, point, tuple(modes), rtol, atol, eps, np.random.default_rng(seed)).run(order, ())


class _Check:
    def __init__(
        self,
        f: Callable[..., Any],
        point: _Point,
        modes: tuple[str, ...],
        rtol: float | None,
        atol: float | None,
        eps: float | None,
        rng: np.random.Generator,
    ) -> None:
        self.f, self.point, self.modes, self.rng = f, point, modes, rng
        self.rtol, self.atol, self.eps = rtol, atol, eps
        precision = max((as_dtype(real_of(as_dtype(x.dtype))) for x in point.x), key=_coarseness, default=float64)
        self.default = TOLERANCE[precision]

    def run(self, order: int, outer: tuple[str, ...]) -> None:
        point = self.point
        direction = [self._random(x) for x in point.x]
        weights = [self._random(v) for v in point.value]
        around = point.along(direction, self.eps)
        tangents = point.inputs.gather([array.asarray(t) for t in direction])
        adjoints = trees.unflatten(point.structure, [array.asarray(w) for w in weights])
        if "forward" in self.modes:
            self.forward(around, direction, tangents, outer)
        if "reverse" in self.modes:
            self.reverse(around, direction, weights, adjoints, outer)
        self.warn_of_kinks(around, direction, outer)
        if order == 1:
            return
        derived: dict[str, Callable[..., Any]] = {
            "forward": lambda *args: jvp(self.f, args, tangents)[1],
            "reverse": lambda *args: vjp(self.f, *args)[1](adjoints),
        }
        for mode in self.modes:
            g = derived[mode]
            inner = _Point("check_grads", g, point.args, None)
            _Check(g, inner, self.modes, self.rtol, self.atol, self.eps, self.rng).run(order - 1, (mode, *outer))

    def _random(self, like: Array) -> Array:
        dtype = as_dtype(like.dtype)
        if not is_inexact(dtype):
            return np.zeros_like(like)
        drawn = self.rng.normal(size=like.shape)
        if is_complex(dtype):
            drawn = drawn + 1j * self.rng.normal(size=like.shape)
        return np.asarray(drawn).astype(dtype)

    def allowed(self, size: Any, rounding: Any) -> Any:
        """How far a derivative of a given size may be off; by default the rounding of the differences is forgiven."""
        rtol = self.default[0] if self.rtol is None else self.rtol
        atol = self.default[1] if self.atol is None else self.atol
        forgiven = rounding if self.rtol is None and self.atol is None else 0.0
        return atol + rtol * size + forgiven

    def rounding(self, around: _Differences, i: int) -> Array:
        return 10 * self.point.epsilon() * np.abs(around.values[i]) / around.step  # type: ignore[no-any-return]

    def forward(
        self, around: _Differences, direction: list[Array], tangents: Any, outer: tuple[str, ...]
    ) -> None:
        made = jvp(self.f, self.point.args, tangents)[1]
        leaves = output_leaves("check_grads", made)[0]
        for i, leaf in enumerate(leaves):
            if not self.point.inexact[i]:
                continue
            got, want = np.asarray(leaf), around.central[i]
            limit = self.allowed(np.abs(want), self.rounding(around, i))
            wrong = ~(np.abs(got - want) <= limit)
            if np.any(wrong):
                excess = np.where(wrong, np.nan_to_num(np.abs(got - want) / limit, nan=np.inf), 0)
                place = np.unravel_index(int(np.argmax(excess)), got.shape)
                raise self.failure("forward", outer, self.output_name(i, place), got[place], want[place], [
                    (around.left[i][place], around.right[i][place])
                ])

    def reverse(
        self,
        around: _Differences,
        direction: list[Array],
        weights: list[Array],
        adjoints: Any,
        outer: tuple[str, ...],
    ) -> None:
        made = vjp(self.f, *self.point.args)[1](adjoints)
        found = [np.asarray(leaf) for leaf in trees.flatten(made)[0]]
        got = sum((float(np.sum(np.real(g * t))) for g, t in zip(found, direction, strict=True)), 0.0)
        pairs = [(w, s, i) for i, (w, s) in enumerate(zip(weights, around.central, strict=True)) if self.point.inexact[i]]
        want = sum((float(np.sum(np.real(w * s))) for w, s, _ in pairs), 0.0)
        size = sum((float(np.sum(np.abs(w * s))) for w, s, _ in pairs), 0.0)
        noise = sum((float(np.sum(np.abs(w) * self.rounding(around, i))) for w, _, i in pairs), 0.0)
        if abs(got - want) <= self.allowed(size, noise):
            return
        sides = [
            (sides_left, sides_right)
            for w, _, i in pairs
            for sides_left, sides_right in zip(
                np.atleast_1d(around.left[i]).ravel(), np.atleast_1d(around.right[i]).ravel(), strict=True
            )
        ]
        place = self.locate(found, weights)
        where = place[0] if place else "the random direction"
        got_, want_ = place[1:] if place else (got, want)
        raise self.failure("reverse", outer, where, got_, want_, sides)

    def locate(self, found: list[Array], weights: list[Array]) -> tuple[str, Any, Any] | None:
        """The input element whose adjoint is farthest off."""
        if sum(x.size for x in self.point.x) > MOST_LOCATED:
            return None
        wanted = [np.conj(g) for g in self.point.gradient(self.eps, "central", weights)]
        worst: tuple[float, str, Any, Any] | None = None
        for (path, _), got, want in zip(_input_paths(self.point.inputs), found, wanted, strict=True):
            if not got.size:
                continue
            off = np.nan_to_num(np.abs(got - want), nan=np.inf)
            place = np.unravel_index(int(np.argmax(off)), got.shape)
            if worst is None or off[place] > worst[0]:
                worst = (float(off[place]), f"input {path}{_index(place)}", got[place], want[place])
        return None if worst is None else worst[1:]

    def output_name(self, i: int, place: Any) -> str:
        path = _leaf_paths(trees.unflatten(self.point.structure, self.point.value))[i]
        return f"output {path}{_index(place)}"

    def failure(
        self, mode: str, outer: tuple[str, ...], where: str, got: Any, want: Any, sides: list[tuple[Any, Any]]
    ) -> GradientCheckError:
        order = len(outer) + 1
        which = f"{mode} mode" if order == 1 else f"{mode} mode over {' over '.join(outer)} mode (order {order})"
        message = f"check_grads: {which} is wrong at {where}: automatic {_number(got)}, by differences {_number(want)}."
        kinks = [(a, b) for a, b in sides if _differ(a, b)]
        if kinks:
            a, b = max(kinks, key=lambda pair: abs(pair[0] - pair[1]))
            return GradientCheckError(
                f"{message} The slopes from the left and from the right are {_number(a)} and {_number(b)}: "
                "the point is at a kink, where automatic differentiation gives one subgradient.",
                "a point away from the kink; wl.is_subgradient to check the subgradient itself",
            )
        if not np.isfinite(want):
            return GradientCheckError(f"{message} The function is not finite around the point.", "a point inside its domain")
        return GradientCheckError(
            message, "check the derivative rules on the way; a larger rtol, atol or another eps if f is rough or steep"
        )

    def warn_of_kinks(self, around: _Differences, direction: list[Array], outer: tuple[str, ...]) -> None:
        """At a kink the gap between the two slopes stays when the step shrinks; on a smooth curve it shrinks, too."""
        if not any(_gap(a, b, self.rounding(around, i)).any() for i, (a, b) in enumerate(_sides(around))):
            return
        closer = self.point.along(direction, self.eps, shrink=0.25)
        for i, ((a, b), (c, d)) in enumerate(zip(_sides(around), _sides(closer), strict=True)):
            stays = _gap(a, b, self.rounding(around, i)) & (np.abs(c - d) > np.abs(a - b) / 2)
            if np.any(stays):
                place = np.unravel_index(int(np.argmax(stays)), np.shape(a))
                warnings.warn(
                    f"check_grads: {self.output_name(i, place)} has slopes {_number(a[place])} and {_number(b[place])} from the "
                    "two sides: the point is at a kink, where the derivative is a choice among subgradients.",
                    KinkWarning,
                    stacklevel=4 + 2 * len(outer),
                )
                return


def _sides(around: _Differences) -> Iterator[tuple[Array, Array]]:
    return zip(around.left, around.right, strict=True)


def _gap(a: Array, b: Array, rounding: Array) -> Array:
    """Where two slopes differ by more than curvature and rounding explain."""
    with np.errstate(invalid="ignore"):
        return np.abs(a - b) > 1e-2 * (np.abs(a) + np.abs(b)) + 100 * rounding + 1e-6  # type: ignore[no-any-return]


def _differ(a: Any, b: Any) -> bool:
    return bool(_gap(np.asarray(a), np.asarray(b), np.asarray(0.0)))


def _coarseness(dtype: Any) -> float:
    return float(ml_dtypes.finfo(dtype).eps)


def _index(place: Any) -> str:
    return f"[{', '.join(str(int(i)) for i in place)}]" if len(place) else ""


def _leaf_paths(tree: Any) -> list[str]:
    return [".".join(map(str, path)) for path, _ in trees.flatten_with_paths(tree)[0]]


def _input_paths(inputs: Inputs) -> list[tuple[str, Any]]:
    return list(zip(_leaf_paths(inputs.gather(inputs.values)), inputs.values, strict=True))


def _number(value: Any) -> str:
    value = complex(value)
    return f"{value:.8g}" if value.imag else f"{value.real:.8g}"


# --- kinks


def is_subgradient(f: Callable[..., Any], x: Any, z: Any, grid: Any, *, tolerance: float = 1e-9) -> bool:
    r"""Whether z is a subgradient of f at x: \(f(y) \ge f(x) + \langle z, y - x\rangle\) for all points y of a grid.

    >>> import wonderland as wl
    >>> grid = wl.linspace(-1, 1, 21)
    >>> wl.is_subgradient(wl.abs, 0.0, 0.3, grid), wl.is_subgradient(wl.abs, 0.0, 1.1, grid)
    (True, False)

    x and z have one shape, `grid` holds points of that shape along its first axis. A grid refutes, it does not prove;
    for a convex f a grid around x is enough. Computes in float64. Book, section 6.4.4 (D.6.3).
    """
    x, z, points = (np.asarray(_cast_leaf(v, float64)).astype(np.float64) for v in (x, z, grid))
    if x.shape != z.shape or points.ndim == 0 or points.shape[1:] != x.shape:
        raise InputError(
            f"is_subgradient: x has shape {x.shape}, z {z.shape} and the grid {points.shape}.",
            "x and z of one shape, and a grid of shape (k, *x.shape)",
        )
    here = float(f(array.asarray(x)))
    scale = tolerance * max(1.0, abs(here))
    return all(float(f(array.asarray(y))) >= here + float(np.sum(z * (y - x))) - scale for y in points)


def subdifferential(f: Callable[..., Any], x: Any, eps: float | None = None) -> tuple[float, float]:
    r"""The interval of all subgradients of a convex function of one number: from the left to the right slope.

    >>> import wonderland as wl
    >>> low, high = wl.subdifferential(wl.relu, 0.0)
    >>> round(low, 6), round(high, 6)
    (0.0, 1.0)

    By one-sided differences with step `eps`, so exact up to O(eps). Where f is differentiable both ends are f'(x). Book,
    section 6.4.4.
    """
    point = _Point("subdifferential", f, (x,), float64)
    if point.x[0].shape or len(point.value) != 1 or point.value[0].shape:
        raise InputError(
            f"subdifferential: a function from {_shapes(point.x)} to {_shapes(point.value)}.", "a function of one number"
        )
    around = point.along([np.ones(())], 1e-8 if eps is None else eps)
    return float(around.left[0]), float(around.right[0])
