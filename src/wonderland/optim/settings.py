"""Settings of optimizers: what each may be, checked where a group is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..core import dtypes
from ..core.arguments import as_number, shown
from ..core.errors import DTypeError, InputError
from ..nn.module.parameter import Parameter

DECAYS = ("coupled", "decoupled", "independent")  # see Optimizer

Limit = Callable[[str, str, Any], Any]  # from (optimizer, setting, value) to the value that is kept, or an error
Limits = Mapping[str, Limit]  # by the names of the settings


def check_range(name: str, what: str, value: object, valid: Callable[[Any], bool], remedy: str) -> None:
    """Refuse a setting that is not a number in its range.

    >>> check_range("Adam", "eps", 1e-8, lambda v: v >= 0, "eps >= 0")
    """
    if not valid(as_number(name, what, value)):
        raise InputError(f"{name}: {what}={shown(value)}.", remedy)


def in_range(valid: Callable[[Any], bool], remedy: str) -> Limit:
    """A number in a range; `{}` in the remedy is the name of the setting."""

    def limit(name: str, what: str, value: object) -> object:
        check_range(name, what, value, valid, remedy.format(what))
        return value

    return limit


def pair_of(remedy: str, *each: Limit) -> Limit:
    """Two values, kept as a tuple, with a limit for each."""

    def limit(name: str, what: str, value: object) -> tuple[object, ...]:
        if not isinstance(value, (tuple, list)) or len(value) != 2:
            raise InputError(f"{name}: {what}={value!r}.", remedy)
        for check, part in zip(each, value, strict=False):
            check(name, what, part)
        return tuple(value)

    return limit


def decay_form(name: str, what: str, value: object) -> object:
    """One of the forms of weight decay."""
    if value not in DECAYS:
        raise InputError(f"{name}: {what}={value!r}.", f"one of {', '.join(map(repr, DECAYS))}")
    return value


NOT_NEGATIVE = in_range(lambda v: v >= 0, "{} >= 0")
UP_TO_ONE = in_range(lambda v: 0 <= v <= 1, "{} from 0 to 1")
BELOW_ONE = in_range(lambda v: 0 <= v < 1, "from 0 to below 1")
_BETA = in_range(lambda v: 0 <= v < 1, "numbers from 0 to below 1")
BETAS = pair_of("two numbers, such as betas=(0.9, 0.999)", _BETA, _BETA)

COMMON: Limits = {"weight_decay": NOT_NEGATIVE, "decay": decay_form}  # every optimizer has these


def refuse_complex(name: str, parameter: Parameter) -> None:
    """For rules that square gradients."""
    if dtypes.is_complex(parameter.dtype):
        raise DTypeError(
            f"{name}: its rule is for real parameters, received {parameter.dtype}{list(parameter.shape)}.",
            "wl.optim.SGD, or the real and imaginary parts as parameters",
        )
