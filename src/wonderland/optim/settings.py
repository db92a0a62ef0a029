"""Settings of optimizers, checked where a group is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import dtypes
from ..arguments import as_number, shown
from ..errors import DTypeError, InputError
from ..nn.parameter import Parameter

if TYPE_CHECKING:
    from .optimizer import Group

DECAYS = ("coupled", "decoupled", "independent")  # see Optimizer


def check_range(name: str, what: str, value: Any, valid: Callable[[Any], bool], remedy: str) -> None:
    """Refuse a setting that is not a number in its range.

    >>> check_range("Adam", "eps", 1e-8, lambda v: v >= 0, "eps >= 0")
    """
    if not valid(as_number(name, what, value)):
        raise InputError(f"{name}: {what}={shown(value)}.", remedy)


def check_not_negative(group: Group, name: str, *settings: str) -> None:
    """Refuse negative settings of a group."""
    for what in settings:
        check_range(name, what, group[what], lambda v: v >= 0, f"{what} >= 0")


def check_betas(group: Group, name: str) -> None:
    """Refuse decay rates of moments outside [0, 1)."""
    betas = group["betas"]
    if not isinstance(betas, (tuple, list)) or len(betas) != 2:
        raise InputError(f"{name}: betas={betas!r}.", "two numbers, such as betas=(0.9, 0.999)")
    for beta in betas:
        check_range(name, "betas", beta, lambda v: 0 <= v < 1, "numbers from 0 to below 1")
    group["betas"] = tuple(betas)


def check_decay(group: Group, name: str) -> None:
    check_not_negative(group, name, "weight_decay")
    if group["decay"] not in DECAYS:
        raise InputError(f"{name}: decay={group['decay']!r}.", f"one of {', '.join(map(repr, DECAYS))}")


def refuse_complex(name: str, parameter: Parameter) -> None:
    """For rules that square gradients."""
    if dtypes.is_complex(parameter.dtype):
        raise DTypeError(
            f"{name}: its rule is for real parameters, received {parameter.dtype}{list(parameter.shape)}.",
            "wl.optim.SGD, or the real and imaginary parts as parameters",
        )
