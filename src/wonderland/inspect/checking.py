"""Automatic derivatives compared with finite differences. Book, section 6.1.2."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from .. import arrays
from ..core import trees
from ..core.context import user_level
from ..core.dtypes import as_dtype, bfloat16, float16, float32, float64, is_complex, is_inexact
from ..core.errors import InputError, WonderlandError
from ..core.typing import Array, DTypeLike
from ..transforms.forward import jvp
from ..transforms.inputs import output_leaves
from ..transforms.reverse import vjp
from .differences import Point, Slopes, wide

__all__ = ["GradientCheckError", "KinkWarning", "check_grads"]

# relative and absolute tolerance in each precision
TOLERANCE = {float64: (1e-6, 1e-7), float32: (1e-2, 1e-3), float16: (1e-1, 5e-2), bfloat16: (2e-1, 1e-1)}
MOST_LOCATED = 10_000  # inputs up to which a failure in reverse mode is traced to one of them

Size = TypeVar("Size", float, Array)


class GradientCheckError(WonderlandError, AssertionError):
    """`check_grads` found a derivative that differs from finite differences."""


class KinkWarning(UserWarning):
    """A derivative agrees with central differences, but f has another slope to the left than to the right."""


def check_grads(
    f: Callable[..., object],
    args: object,
    order: int = 1,
    modes: Sequence[str] = ("forward", "reverse"),
    *,
    rtol: float | None = None,
    atol: float | None = None,
    eps: float | None = None,
    dtype: DTypeLike | None = float64,
    seed: int = 0,
) -> None:
    r"""Raise unless the derivatives of f agree with finite differences along a random direction.

    >>> import wonderland as wl
    >>> wl.check_grads(lambda x, y: wl.sin(x) * y, (wl.tensor([0.5, 1.0]), wl.tensor(2.0)), order=2)

    With a random direction t and a random adjoint v, forward mode must give \(J t\) as the differences do, and reverse
    mode \(\langle J^\top v, t\rangle = \langle v, J t\rangle\); a wrong entry of J goes unnoticed with probability 0.
    For order 2 and more the same is asked of the derivatives themselves, in every order of modes.

    `args` is a tuple of tensors, trees or modules. The computation runs in `dtype` (None: the arguments'
    own), and the tolerances follow from it unless they are given. A failure raises `GradientCheckError`, an
    AssertionError, which names the worst element, and says so when the point lies at a kink of f. At a kink
    where the comparison holds by chance (central differences of |x| at 0 give 0) there is a `KinkWarning`.
    Book, section 6.1.2.
    """
    if order < 1:
        raise InputError(f"check_grads: order={order}.", "an order of 1 or more")
    if not modes or any(mode not in ("forward", "reverse") for mode in modes):
        raise InputError(f"check_grads: modes={tuple(modes)!r}.", '"forward", "reverse" or both')
    point = Point("check_grads", f, args if isinstance(args, tuple) else (args,), dtype)
    settings = Settings(tuple(modes), rtol, atol, eps, np.random.default_rng(seed))
    Check(point, settings, ()).run(order)


@dataclass(frozen=True)
class Settings:
    modes: tuple[str, ...]
    rtol: float | None
    atol: float | None
    eps: float | None
    rng: np.random.Generator


class Check:
    """One function at one point: the function itself, or a derivative of it made by the modes in `outer`."""

    def __init__(self, point: Point, settings: Settings, outer: tuple[str, ...]) -> None:
        self.point, self.settings, self.outer = point, settings, outer
        self.direction = [self.draw(x) for x in point.x]
        self.slopes: Slopes = point.along(self.direction, settings.eps)
        self.weights = [self.draw(v) for v in point.value]  # the adjoint v; zero for outputs that are not floating
        # what the rounding of f does to a difference quotient
        self.rounding = [10 * point.epsilon * np.abs(wide(v)) / self.slopes.step for v in point.value]

    def draw(self, like: Array) -> Array:
        dtype = as_dtype(like.dtype)
        if not is_inexact(dtype):
            return np.zeros_like(like)
        numbers: Array = np.asarray(self.settings.rng.normal(size=like.shape))
        if is_complex(dtype):
            numbers = numbers + 1j * self.settings.rng.normal(size=like.shape)
        return np.asarray(numbers).astype(dtype)

    def run(self, order: int) -> None:
        f, point, modes = self.point.f, self.point, self.settings.modes
        tangents = point.inputs.gather([arrays.asarray(t) for t in self.direction])
        adjoints = trees.unflatten(point.structure, [arrays.asarray(w) for w in self.weights])
        if "forward" in modes:
            self.forward(jvp(f, point.args, tangents)[1])
        if "reverse" in modes:
            self.reverse(vjp(f, *point.args)[1](adjoints))
        self.warn_of_kinks()
        if order > 1:
            derivatives: dict[str, Callable[..., object]] = {
                "forward": lambda *args: jvp(f, args, tangents)[1],
                "reverse": lambda *args: vjp(f, *args)[1](adjoints),
            }
            for mode in modes:
                inner = Point("check_grads", derivatives[mode], point.args, None)
                Check(inner, self.settings, (mode, *self.outer)).run(order - 1)

    def allowed(self, size: Size, rounding: Size) -> Size:
        """How far a derivative may be off. The tolerances that a user gives are taken literally."""
        rtol, atol = TOLERANCE[self.point.precision]
        given = self.settings
        if given.rtol is None and given.atol is None:
            return atol + rtol * size + rounding
        return (atol if given.atol is None else given.atol) + (rtol if given.rtol is None else given.rtol) * size

    def forward(self, made: object) -> None:
        """J t, element by element."""
        for i, leaf in enumerate(output_leaves("check_grads", made)[0]):
            if not is_inexact(as_dtype(self.point.value[i].dtype)):
                continue
            got, want = wide(np.asarray(leaf)), self.slopes.central[i]
            excess = distance(got, want) / self.allowed(np.abs(want), self.rounding[i])
            if np.any(~(excess <= 1)):
                place = worst(excess)
                where = f"{self.output_name(i, place)} along a random direction"
                sides = [(self.slopes.left[i][place], self.slopes.right[i][place])]
                raise self.failure("forward", where, got[place], want[place], sides)

    def reverse(self, made: tuple[object, ...]) -> None:
        """<J^T v, t> against <v, J t>."""
        found = [wide(np.asarray(leaf)) for leaf in self.point.inputs.matching(made)]
        weights = [wide(w) for w in self.weights]
        got = sum(float(np.sum(np.real(g * t))) for g, t in zip(found, self.direction, strict=True))
        terms = [w * s for w, s in zip(weights, self.slopes.central, strict=True)]
        want = sum(float(np.sum(np.real(term))) for term in terms)
        size = sum(float(np.sum(np.abs(term))) for term in terms)
        rounding = sum(float(np.sum(np.abs(w) * r)) for w, r in zip(weights, self.rounding, strict=True))
        if not abs(got - want) <= self.allowed(size, rounding):
            sides = [
                pair
                for left, right in zip(self.slopes.left, self.slopes.right, strict=True)
                for pair in zip(left.ravel(), right.ravel(), strict=True)
            ]
            raise self.failure("reverse", *self.locate(found, got, want), sides)

    def locate(self, found: list[Array], got: float, want: float) -> tuple[str, complex, complex]:
        """The input element whose adjoint is farthest off, with both numbers."""
        result: tuple[str, complex, complex] = ("the sum along a random direction", got, want)
        if sum(x.size for x in self.point.x) > MOST_LOCATED:
            return result
        # `gradient` is conjugate to an adjoint, see docs/architecture.md on complex numbers
        wanted = [wide(np.conj(g)) for g in self.point.gradient(self.settings.eps, "central", self.weights)]
        most = -1.0
        numbered = trees.flatten_with_paths(self.point.inputs.gather(list(range(len(found)))))[0]
        for path, k in numbered:
            a, b = found[k], wanted[k]
            if a.size and (off := distance(a, b)).max() > most:
                place, most = worst(off), float(off.max())
                result = (f"input {path_text(path)}{index_text(place)}", a[place], b[place])
        return result

    def failure(
        self, mode: str, where: str, got: complex, want: complex, sides: list[tuple[complex, complex]]
    ) -> GradientCheckError:
        which = f"{mode} mode"
        if self.outer:
            which += f" over {' over '.join(self.outer)} mode (order {len(self.outer) + 1})"
        message = f"check_grads: {which} is wrong at {where}: {number(got)}, by differences {number(want)}."
        kinks = [pair for pair in sides if np.any(gap(*pair, 0.0))]
        if kinks:
            left, right = max(kinks, key=lambda pair: abs(pair[0] - pair[1]))
            return GradientCheckError(
                f"{message} The slopes to the left and to the right are {number(left)} and {number(right)}: "
                "the point is at a kink, where automatic differentiation gives one of many subgradients.",
                "a point away from the kink; wl.is_subgradient to check a subgradient",
            )
        if not np.isfinite(want):
            return GradientCheckError(
                f"{message} The function is not finite around the point.", "a point in its domain"
            )
        return GradientCheckError(
            message, "look at the rules on the way; rtol, atol or eps for a function that is rough or steep"
        )

    def warn_of_kinks(self) -> None:
        """At a kink the gap between the slopes stays when the step shrinks; on a smooth curve it shrinks."""
        gaps = [gap(*sides) for sides in zip(self.slopes.left, self.slopes.right, self.rounding, strict=True)]
        if not any(np.any(g) for g in gaps):
            return
        closer = self.point.along(self.direction, self.settings.eps, shrink=0.25)
        for i, found in enumerate(gaps):
            left, right = self.slopes.left[i], self.slopes.right[i]
            stays = found & (distance(closer.left[i], closer.right[i]) > distance(left, right) / 2)
            if np.any(stays):
                place = worst(stays)
                warnings.warn(
                    f"check_grads: {self.output_name(i, place)} has slope {number(left[place])} to the left "
                    f"and {number(right[place])} to the right: the derivative at a kink is one of many "
                    "subgradients.",
                    KinkWarning,
                    stacklevel=user_level(),
                )
                return

    def output_name(self, i: int, place: tuple[int, ...]) -> str:
        path = trees.flatten_with_paths(trees.unflatten(self.point.structure, self.point.value))[0][i][0]
        return f"output {path_text(path)}{index_text(place)}".rstrip()


def gap(left: Array | complex, right: Array | complex, rounding: Array | float) -> Array:
    """Where two slopes differ by more than curvature and rounding explain."""
    with np.errstate(invalid="ignore"):
        return np.abs(left - right) > 1e-2 * (np.abs(left) + np.abs(right)) + 100 * rounding + 1e-6


def distance(a: Array, b: Array) -> Array:
    """|a - b|, infinite where one of them is NaN."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.nan_to_num(np.abs(a - b), nan=np.inf, posinf=np.inf))


def worst(size: Array) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(size)), size.shape))


def index_text(place: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, place))}]" if place else ""


def path_text(path: tuple[object, ...]) -> str:
    return ".".join(map(str, path))


def number(value: complex) -> str:
    value = complex(value)
    return f"{value:.8g}" if value.imag else f"{value.real:.8g}"
