"""`odeint`: the solution of an ordinary differential equation. Book, section 9.4.2."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import arrays
from ..arrays import stop_gradient
from ..core import dtypes, trees
from ..core.arguments import as_function, as_int, as_number
from ..core.dtypes import DType
from ..core.errors import DTypeError, InputError, ShapeError, TreeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..transforms.control.loops import runs_in_python
from . import adaptive, fixed
from .tableaus import METHODS, Leaves, Slopes, Tableau


def odeint(
    f: Callable[..., object],
    x0: object,
    t: ArrayLike,
    method: str = "dopri5",
    *,
    steps: int | None = None,
    rtol: float = 1e-5,
    atol: float = 1e-7,
    args: tuple[object, ...] = (),
    first_step: float | None = None,
    max_steps: int = 10_000,
    bounded: bool = False,
) -> Any:
    r"""\(x(t) = x_0 + \int_{t_0}^{t} f(x(s), s)\,ds\), the solution of \(\dot x = f(x, t)\). Book, section 9.4.2.

    >>> import wonderland as wl
    >>> wl.ode.odeint(lambda x, t: -x, 1.0, 1.0)
    tensor(0.3679)
    >>> wl.ode.odeint(lambda x, t: -x, 1.0, [0.0, 0.5, 1.0], "euler", steps=5)
    tensor([1.        , 0.59049   , 0.34867844])

    f: a function or module of the state and the time, `f(x, t, *args)`, which gives the derivative of x in the shape of
        x. A state may be a tree of tensors.
    t: one time T: the result is x(T) for x(0) = x0. Or times (n,) that rise or fall: the result is x at all of them
        along a new first axis, with x0 at the first one.
    method: "euler", "midpoint", "heun", "rk4" with `steps` equal steps between two times (1 if there are several
        times); "dopri5" or "bosh3", whose steps adapt to `rtol` and `atol` unless `steps` says how many there are.

    An adaptive step is taken if its estimated error is at most atol + rtol |x|, in the root of the mean square over all
    elements; tolerances much below the precision of the dtype cannot be kept. After `max_steps` steps between two times
    an error is raised; under `wl.jit` the result is NaN then.

    All methods are differentiable by x0, t, args and what f refers to, in both modes. Only reverse mode of an adaptive
    method under `wl.jit` needs a loop of known length: `bounded=True` takes memory for `max_steps` steps. See
    `odeint_adjoint` for gradients that need no memory for steps.
    """
    problem = Problem("odeint", f, x0, t)
    solver = Solver("odeint", method, steps, problem.at_end, rtol, atol, first_step, max_steps, bounded)
    slopes = problem.slopes(lambda x, t: f(x, t, *args))
    return problem.results(*solver(slopes, problem.leaves, problem.times))


class Problem:
    """The leaves of an initial state, and the times."""

    def __init__(self, name: str, f: Callable[..., object], x0: object, t: ArrayLike) -> None:
        as_function(name, f)
        self.name = name
        leaves, self.structure = trees.flatten(x0)
        if not leaves or not all(arrays.is_operand(leaf) for leaf in leaves):
            raise TreeError(f"{name}: x0 is a {type(x0).__name__} and no state.", "a tensor, or a tree of tensors")
        self.leaves: Leaves = [_as_state(name, leaf) for leaf in leaves]
        kinds = [dtypes.real_of(leaf.dtype) for leaf in self.leaves]
        dtype = kinds[0]
        for kind in kinds[1:]:
            dtype = dtypes.promote_types(dtype, kind)
        self.at_end, self.times = as_times(name, t, dtype)

    def slopes(self, f: Callable[[Any, Tensor], object]) -> Slopes:
        """f(state, time) on leaves, checked."""
        return lambda x, t: self._checked(x, f(trees.unflatten(self.structure, x), t))

    def _checked(self, x: Leaves, slope: object) -> Leaves:
        found, structure = trees.flatten(slope)
        if structure != self.structure:
            raise TreeError(f"{self.name}: f gives {structure} for a state {self.structure}.", "the same tree")
        for leaf, k in zip(x, found, strict=True):
            shape = getattr(k, "shape", ())
            if shape != leaf.shape:
                raise ShapeError(
                    f"{self.name}: f gives a derivative of shape {shape} for a state of shape {leaf.shape}.",
                    "a derivative for every element: f(x, t) has the shape of x",
                )
        return [arrays.astype(arrays.asarray(k), leaf.dtype) for leaf, k in zip(x, found, strict=True)]

    def results(self, last: Leaves, others: Leaves) -> Any:
        """What the caller asked for: the state at the end, or at all times."""
        if self.at_end:
            return trees.unflatten(self.structure, last)
        firsts = [arrays.expand_dims(leaf, 0) for leaf in self.leaves]
        every = [arrays.concat([x, xs], axis=0) for x, xs in zip(firsts, others, strict=True)]
        return trees.unflatten(self.structure, every)


class Solver:
    """A method with its settings, checked: (slopes, state, times) to the last state and all after the first."""

    def __init__(
        self,
        name: str,
        method: str,
        steps: int | None,
        at_end: bool,
        rtol: float,
        atol: float,
        first_step: float | None,
        max_steps: int,
        bounded: bool,
    ) -> None:
        if method not in METHODS:
            raise InputError(f"{name}: there is no method {method!r}.", f"one of {', '.join(map(repr, METHODS))}")
        self.table: Tableau = METHODS[method]
        if steps is None and self.table.error is None:
            if at_end:
                raise InputError(f"{name}: {method!r} does not know how many steps to take.", "steps=100, for example")
            steps = 1
        self.steps = None if steps is None else as_int(name, "steps", steps, 1)
        tolerances = {"rtol": rtol, "atol": atol} | ({} if first_step is None else {"first_step": first_step})
        for what, value in tolerances.items():
            if not as_number(name, what, value) >= 0 or (what == "first_step" and not value > 0):
                raise InputError(f"{name}: {what}={value}.", "a number above 0")
        if rtol == atol == 0:
            raise InputError(f"{name}: rtol and atol are both 0.", "an error above 0; no step would be small enough")
        max_steps = as_int(name, "max_steps", max_steps, 1)
        self.control = adaptive.Control(float(rtol), float(atol), max_steps, bool(bounded), first_step)

    def __call__(self, f: Slopes, x: Leaves, times: Tensor) -> tuple[Leaves, Leaves]:
        if self.steps is None:
            return adaptive.integrate(self.table, f, x, times, self.control)
        return fixed.integrate(self.table, f, x, times, self.steps)


def as_times(name: str, t: ArrayLike, dtype: DType) -> tuple[bool, Tensor]:
    """Whether one time was given, and the times (n,): those given, or 0 and the one."""
    times = (
        arrays.stack([arrays.asarray(part) for part in t]) if isinstance(t, (list, tuple)) and t else arrays.asarray(t)
    )
    if dtypes.is_complex(times.dtype) or times.dtype == dtypes.bool_:
        raise DTypeError(f"{name}: times of {times.dtype}.", "real numbers")
    times = arrays.astype(times, dtype)
    if not times.ndim:
        return True, arrays.stack([arrays.zeros_like(times), times])
    if times.ndim != 1 or not times.shape[0]:
        raise ShapeError(f"{name}: times of shape {times.shape}.", "one time, or times (n,) from the first to the last")
    if runs_in_python():
        apart = np.diff(np.asarray(stop_gradient(times)))
        if not (np.all(apart > 0) or np.all(apart < 0)):
            raise InputError(f"{name}: the times neither rise nor fall throughout.", "np.unique(t), or t[::-1] of it")
    return False, times


def _as_state(name: str, leaf: ArrayLike) -> Tensor:
    leaf = arrays.asarray(leaf)
    if not dtypes.is_inexact(leaf.dtype):
        raise DTypeError(f"{name}: a state of {leaf.dtype} cannot change smoothly.", "x0 of a floating dtype")
    return leaf
