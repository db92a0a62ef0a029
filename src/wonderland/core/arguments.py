"""Arguments that are not tensors: integers, numbers, lists, functions, each checked; and functions made from them."""

from __future__ import annotations

import functools
import numbers
import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from .errors import InputError, WonderlandError

Function = TypeVar("Function", bound=Callable[..., object])


def as_int(name: str, what: str, value: Any, least: int | None = None) -> int:
    """An integer (also NumPy's, or an integer tensor without axes), not below `least`.

    >>> as_int("eye", "n_rows", 3)
    3
    """
    try:
        found = operator.index(value)
    except WonderlandError:
        raise  # a traced value says why it is not an integer
    except TypeError:
        raise InputError(f"{name}: {what}={shown(value)} is not an integer.", "an integer") from None
    if least is not None and found < least:
        raise InputError(f"{name}: {what}={found} is too small.", f"{least} or more")
    return found


def as_number(name: str, what: str, value: object) -> Any:
    """A real Python or NumPy number, or the one in a tensor without axes.

    >>> as_number("var", "correction", 1.5)
    1.5
    """
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()
    if not isinstance(value, numbers.Real):
        raise InputError(f"{name}: {what}={shown(value)} is not a real number.", "a number")
    return value


def as_list(name: str, what: str, value: object) -> list[Any]:
    """The elements of a list, a tuple or another iterable.

    >>> as_list("concat", "arrays", (1, 2))
    [1, 2]
    """
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise InputError(f"{name}: {what}={shown(value)} is not a sequence.", "a list or a tuple")
    return list(value)


def as_pair(name: str, what: str, value: object) -> tuple[Any, Any]:
    """Two elements.

    >>> as_pair("rot90", "axes", [0, 1])
    (0, 1)
    """
    found = as_list(name, what, value)
    if len(found) != 2:
        raise InputError(f"{name}: {what}={shown(value)} has {len(found)} elements.", "two of them")
    return found[0], found[1]


def is_sequence(value: object) -> bool:
    """Whether a value has elements: a list, a tuple, a range, or an array with axes.

    >>> is_sequence([1]), is_sequence(1)
    (True, False)
    """
    return isinstance(value, (list, tuple, range)) or getattr(value, "ndim", 0) > 0


def as_function(name: str, f: Function) -> Function:
    """Something that can be called.

    >>> as_function("grad", abs)
    <built-in function abs>
    """
    if not callable(f):
        raise InputError(f"{name}: a {type(f).__name__} is not a function.", f"wl.{name} with a function")
    return f


def named_after(f: Callable[..., object], kind: str, wrapper: Function) -> Function:
    """The wrapper, which is called `kind_of_f` and refers to f, so that a trace can look through it.

    >>> named_after(abs, "grad", lambda x: x).__name__
    'grad_of_abs'
    """
    functools.update_wrapper(wrapper, f, assigned=(), updated=())
    wrapper.__name__ = f"{kind}_of_{getattr(f, '__name__', 'function')}"
    return wrapper


def shown(value: object) -> str:
    """A value in one short line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
