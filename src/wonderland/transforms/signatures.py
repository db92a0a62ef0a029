"""How transformed functions are called, for readers and type checkers."""

from __future__ import annotations

from typing import Any, Generic, ParamSpec, Protocol, TypeVar

from ..core.tensor import Tensor
from ..core.typing import Array, Number

P = ParamSpec("P")
Result = TypeVar("Result")
Aux = TypeVar("Aux")
Given = TypeVar("Given", covariant=True)

Varied = Tensor | Array | Number  # what takes the place of a tensor with respect to which a function is differentiated


class Stateful(Protocol):
    """An object with cells, such as a module; see `trees.is_stateful`."""

    def __tree_parts__(self) -> Any: ...


Model = TypeVar("Model", bound=Stateful)


class Function(Generic[P, Given]):
    """What a transformation makes of a function: at run time a plain one.

    A type of its own, because type checkers would else look for the parameters of a lambda in `wl.grad(wl.grad(f))`
    among those of the outer function, which are not known yet.
    """

    __name__: str

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Given:
        raise NotImplementedError
