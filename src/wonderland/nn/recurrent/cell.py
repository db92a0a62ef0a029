"""What a recurrent cell is: one step of a recurrence, in the parts that let a whole sequence run fast. Book, D.13.1.

    u = cell.prepare(x)              what does not wait for the state: one product for all steps, before the loop
    step = cell.advance(u, state)    what does: the state after a step, and its gates
    y = cell.finish(kept, x)         the results, from what the steps kept of their states: again all at once

`nn.Recurrent` runs any cell along sequences; `cell(x_t, state)` is one step by hand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from ... import arrays
from ...arrays.conversion import as_real, as_shape
from ...core import dtypes
from ...core.arguments import as_function
from ...core.dtypes import DType
from ...core.errors import DTypeError, InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike
from ..module.module import Module
from ..sequences.state_layer import first_dtype

__all__ = ["CellStep", "FunctionCell", "RecurrentCell"]

State: TypeAlias = dict[str, Tensor]
Shape: TypeAlias = tuple[int, ...]
StateLike: TypeAlias = "ArrayLike | tuple[ArrayLike, ...] | Mapping[str, ArrayLike]"


class CellStep(NamedTuple):
    """What a step gives: what is kept of it for the results, the state after it, and its gates by name.

    >>> import wonderland as wl
    >>> step = wl.nn.GRUCell(3, 5).take(wl.ones((2, 3)))
    >>> step.kept.shape, list(step.state), list(step.gates)
    ((2, 5), ['h'], ['r', 'z'])
    """

    kept: Tensor
    state: State
    gates: dict[str, Tensor]


class RecurrentCell(Module):
    r"""\(s_i = f(s_{i-1}, x_i),\ h_i = g(s_i, x_i)\), one step of it. Book, definition D.13.1.

    A subclass writes `state_shapes` and `advance`; `prepare` and `finish` if some of the work does not wait for the
    step before. Here is a sum that forgets:

    >>> import wonderland as wl
    >>> class Leaky(wl.nn.RecurrentCell):
    ...     def state_shapes(self):
    ...         return {"s": (1,)}
    ...     def advance(self, u, state):
    ...         s = 0.5 * state["s"] + u
    ...         return wl.nn.CellStep(s, {"s": s}, {})
    >>> wl.nn.Recurrent(Leaky())(wl.ones((1, 4, 1))).ravel()
    tensor([1.   , 1.5  , 1.75 , 1.875])

    A cell is a module like any other, so its parameters are trained, and `cell(x_t, state)` gives the next state.
    """

    def state_shapes(self) -> dict[str, Shape]:
        """The shapes of the parts of the state, without the axes of the batch."""
        raise NotImplementedError

    def features(self) -> int | None:
        """The number of features of an input, if the cell is tied to one."""
        return None

    def state_dtype(self) -> DType:
        """The dtype of a state that nobody gives, by default that of the first parameter."""
        return first_dtype(self)

    def step_cost(self) -> int | None:
        """The multiply-adds of a step of one sequence, for `summary`, if they are known."""
        return None

    def prepare(self, x: Tensor) -> Tensor:
        """What a step needs of its input (..., features), for any number of steps."""
        return x

    def advance(self, u: Tensor, state: State) -> CellStep:
        """A step, from what was prepared (..., n) and the parts of the state (..., size)."""
        raise NotImplementedError

    def finish(self, kept: Tensor, x: Tensor) -> Tensor:
        """The results (..., out), from what steps kept and their inputs, for any number of steps."""
        return kept

    # --- one step by hand

    def take(self, x: ArrayLike, state: StateLike | None = None) -> CellStep:
        """One step with all that it gives, for inputs (..., features) and the state before; without one it is 0.

        >>> import wonderland as wl
        >>> wl.nn.LSTMCell(3, 5).take(wl.ones((2, 3))).state["c"].shape
        (2, 5)
        """
        x = self._input(x)
        return self.advance(self.prepare(x), self._state(x, state))

    def forward(self, x: ArrayLike, state: StateLike | None = None) -> Tensor | tuple[Tensor | State, ...]:
        return self.public(self.take(x, state).state)

    def gates(self, x: ArrayLike, state: StateLike | None = None) -> dict[str, Tensor]:
        """The gates of a step by name, each (..., hidden), from 0 to 1. Book, section 13.2.3.

        >>> import wonderland as wl
        >>> {name: gate.shape for name, gate in wl.nn.LSTMCell(3, 5).gates(wl.ones((2, 3))).items()}
        {'i': (2, 5), 'f': (2, 5), 'o': (2, 5)}
        """
        return self.take(x, state).gates

    def public(self, state: State) -> Tensor | tuple[Tensor, ...]:
        """The state as users see it: a tensor, or a tuple of several."""
        parts = tuple(state.values())
        return parts[0] if len(parts) == 1 else parts

    def named(self, state: StateLike) -> dict[str, ArrayLike]:
        """The parts of a state by their names; the opposite of `public`."""
        names = list(self.state_shapes())
        if isinstance(state, Mapping):
            found = dict(state)
        else:
            given = tuple(state) if isinstance(state, (tuple, list)) and len(names) > 1 else (state,)
            found = dict(zip(names, given, strict=False)) if len(given) == len(names) else {}
        if list(found) != names:
            raise InputError(
                f"{self._describe()}: a state of another kind, {type(state).__name__}.",
                "a tensor" if len(names) == 1 else f"a tuple ({', '.join(names)}) of tensors",
            )
        return found

    def multiply_adds(self, args: tuple[Tensor, ...], output: object) -> int | None:
        cost = self.step_cost()
        return None if cost is None else cost * math.prod(args[0].shape[:-1])

    def _input(self, x: ArrayLike) -> Tensor:
        x, size = as_real(type(self).__name__, x), self.features()
        if not x.ndim or (size is not None and x.shape[-1] != size):
            raise ShapeError(
                f"{self._describe()}: an input of shape {x.shape}.", f"(batch, {'features' if size is None else size})"
            )
        return x

    def _state(self, x: Tensor, state: StateLike | None) -> State:
        return as_state(self, state, x.shape[:-1], dtypes.promote_types(x.dtype, self.state_dtype()))


def as_state(cell: RecurrentCell, state: StateLike | None, lead: Shape, kind: DType) -> State:
    """The parts of a state with the axes `lead` of a batch: zeros, or those given, at least as wide as `kind`."""
    shapes = cell.state_shapes()
    if state is None:
        return {name: arrays.zeros((*lead, *shape), dtype=kind) for name, shape in shapes.items()}
    return as_parts(cell._describe(), cell.named(state), {n: (*lead, *shape) for n, shape in shapes.items()}, kind)


def as_parts(owner: str, given: Mapping[str, ArrayLike], shapes: Mapping[str, Shape], kind: DType) -> State:
    """The parts of a given state, of these shapes, and real or complex as the recurrence is; all equally wide."""
    found: State = {}
    for name, shape in shapes.items():
        found[name] = part = arrays.asarray(given[name])
        if part.shape != shape:
            raise ShapeError(f"{owner}: an initial state {name} of shape {part.shape}.", f"one of shape {shape}")
        if not dtypes.is_inexact(part.dtype) or (dtypes.is_complex(part.dtype) and not dtypes.is_complex(kind)):
            raise DTypeError(f"{owner}: an initial state {name} of {part.dtype}.", f"one of {kind}")
    for part in found.values():
        kind = dtypes.promote_types(kind, part.dtype)
    return {name: arrays.astype(part, kind) for name, part in found.items()}


class FunctionCell(RecurrentCell):
    r"""Any two functions as a cell: \(s_i = f(s_{i-1}, x_i),\ h_i = g(s_i, x_i),\ s_0 = 0\). Book, D.13.1.

    >>> import wonderland as wl
    >>> cell = wl.nn.FunctionCell(lambda s, x: 0.9 * s + x, lambda s, x: s.sum(axis=-1, keepdims=True), 3)
    >>> wl.nn.Recurrent(cell)(wl.ones((2, 5, 3))).shape
    (2, 5, 1)

    f and g are functions or modules; without g the state itself is the result. `state_size` is the size e of a state
    (batch, e), its shape without the batch, or a dict of shapes: then f and g see a dict of tensors, and f gives one.
    `dtype` is that of the state, by default as parameters of f and g have it. `cell(x_t, s)` gives the pair
    \(h_i, s_i\).
    """

    def __init__(
        self,
        f: Callable[..., Tensor | State],
        g: Callable[..., Tensor] | None,
        state_size: int | Shape | Mapping[str, int | Shape],
        dtype: DTypeLike | None = None,
    ) -> None:
        self.dtype = None if dtype is None else dtypes.as_dtype(dtype)
        self.f = as_function("FunctionCell", f)
        self.g = None if g is None else as_function("FunctionCell", g)
        self._single = not isinstance(state_size, Mapping)
        sizes = state_size if isinstance(state_size, Mapping) else {"s": state_size}
        if not sizes or (g is None and not self._single):
            raise InputError("FunctionCell: several parts of a state are no result.", "g, a function of them")
        self._shapes = tuple((name, as_shape("FunctionCell", size)) for name, size in sizes.items())

    def state_shapes(self) -> dict[str, Shape]:
        return dict(self._shapes)

    def state_dtype(self) -> DType:
        return super().state_dtype() if self.dtype is None else self.dtype

    def advance(self, u: Tensor, state: State) -> CellStep:
        after = self.f(state["s"] if self._single else state, u)
        if self._single and isinstance(after, Tensor):
            return CellStep(after if self.g is None else self.g(after, u), {"s": after}, {})
        if isinstance(after, dict) and self.g is not None and list(after) == list(state):
            return CellStep(self.g(after, u), after, {})
        raise InputError(
            f"{self._describe()}: f gave a {type(after).__name__} as the next state.",
            "a tensor" if self._single else f"a dict with {', '.join(state)}, in this order",
        )

    def forward(self, x: ArrayLike, state: StateLike | None = None) -> tuple[Tensor, Tensor | State]:
        step = self.take(x, state)
        return step.kept, step.state["s"] if self._single else step.state

    def extra_repr(self) -> str:
        return f"state_size={dict(self._shapes) if not self._single else self._shapes[0][1]}"
