"""NumPy's own functions applied to tensors: `np.exp(x)`, `np.sort(x)`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from .. import arrays
from ..core.context import current
from ..core.errors import GradientError
from ..core.tensor import Tensor, read_only

# NumPy's elementwise functions that have another name here
UFUNCS = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "conjugate": "conj",
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "power": "pow",
    "right_shift": "bitwise_right_shift",
}
# elementwise functions that are no ufuncs
OTHERS = frozenset(("angle", "i0", "imag", "iscomplex", "isneginf", "isposinf", "isreal", "real", "sinc"))


def public() -> Any:
    """The public namespace, which has everything by the time that somebody asks."""
    return sys.modules[__name__.partition(".")[0]]


def apply_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An elementwise function: ours of the same name if there is one, so that it is traced and differentiated."""
    if method == "__call__" and not kwargs:
        if ufunc is np.divmod:
            return arrays.floor_divide(*inputs), arrays.remainder(*inputs)
        name = UFUNCS.get(ufunc.__name__, ufunc.__name__)
        if name in vars(arrays)["__all__"]:
            return getattr(arrays, name)(*inputs)
    return apply(ufunc.__name__, getattr(ufunc, method), inputs, kwargs)


def apply_function(f: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Another function: ours of the same name if it acts element by element, else NumPy's on the numbers."""
    if f.__name__ in OTHERS and len(args) == 1 and not kwargs:
        return getattr(public(), f.__name__)(*args)
    return apply(f.__name__, f, args, kwargs)


def apply(name: str, f: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """The result of a NumPy function; refused where it would cut a gradient off unnoticed."""
    recorded: list[Tensor] = []

    def convert(x: Any) -> Any:
        if isinstance(x, Tensor):
            if x._node is not None and current().settings.grad_enabled:
                recorded.append(x)
            return read_only(x._concrete(f"an argument of np.{name}"))
        return type(x)(convert(item) for item in x) if type(x) in (list, tuple) else x

    result = f(*convert(args), **{key: convert(value) for key, value in kwargs.items()})
    if recorded and getattr(getattr(result, "dtype", None), "kind", None) in ("f", "c", "V"):
        raise GradientError(
            f"np.{name}: is not recorded, so the gradient of a tensor of shape {recorded[0].shape} would end here.",
            "the function of wonderland, or x.detach() if the end is meant",
        )
    return result
