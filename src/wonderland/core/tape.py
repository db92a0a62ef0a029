"""The tape of the imperative style: how every tensor that requires gradients was made. See transforms/imperative.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .context import current, next_order, place
from .dtypes import is_inexact
from .evaluation import evaluate
from .tensor import Tensor, wrap

if TYPE_CHECKING:
    from .primitive import Primitive


class Record:
    """How a tensor was made: the primitive, its arguments, and its result."""

    __slots__ = ("args", "grad", "hooks", "order", "outs", "params", "place", "primitive", "retained")

    def __init__(self, primitive: Any, args: Any, params: Any, outs: Any) -> None:
        self.primitive = primitive
        self.args = args
        self.params = params
        self.outs = outs  # raw NumPy arrays: holding the tensors would be a cycle
        self.order = next_order()
        # where errors and NaNs of the backward pass should point to; not noted in the fast, plain case
        self.place = None if current().plain else place()
        self.grad: dict[int, Tensor] = {}
        self.hooks: dict[int, list[Callable[[Tensor], Tensor | None]]] = {}
        self.retained: set[int] = set()

    @property
    def name(self) -> str:
        return "leaf" if self.primitive is None else self.primitive.name

    @property
    def next_functions(self) -> list[Record]:
        """The records of the arguments."""
        return [arg._node[0] for arg in self.args or () if arg._node is not None]

    def __repr__(self) -> str:
        return f"<{self.name}>"


# A tensor's `_node`: its record, and which of the record's results it is.
Recorded = tuple[Record, int] | None


def record(primitive: Primitive, args: list[Tensor], params: dict[str, object]) -> Any:
    """Compute, and remember how."""
    # the record keeps tensors of its own: those that were given may be changed by assignment later
    own = [wrap(arg._data) for arg in args]
    outs = evaluate(primitive, own, params)
    results = outs if primitive.multiple else [outs]
    if any(is_inexact(r.dtype) for r in results):
        for kept, arg in zip(own, args, strict=True):
            kept._node = arg._node
        entry = Record(primitive, tuple(own), params, [r._data for r in results])
        for i, result in enumerate(results):
            if is_inexact(result.dtype):
                result._node = (entry, i)
    return outs
