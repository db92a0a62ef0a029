"""Methods that are given to a class from above, where there is what they need."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TypeVar

Given = TypeVar("Given", bound=type)
_OF_EVERY_CLASS = frozenset(vars(type("", (), {"__annotations__": {}}))) | {"__firstlineno__", "__static_attributes__"}


def given_to(kind: type) -> Callable[[Given], Given]:
    """Gives what is defined in a class to another one.

    >>> class Number:
    ...     value = 3
    >>> @given_to(Number)
    ... class Arithmetic:
    ...     def twice(self):
    ...         return 2 * self.value
    >>> Number().twice()
    6
    """

    def give(methods: Given) -> Given:
        for name, value in vars(methods).items():
            if name not in _OF_EVERY_CLASS:
                setattr(kind, name, value)
                if isinstance(value, FunctionType) and value.__qualname__.startswith(f"{methods.__qualname__}."):
                    # as errors call it
                    value.__qualname__ = f"{kind.__name__}.{value.__name__}"
        return methods

    return give
