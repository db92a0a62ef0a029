"""What a type checker sees of the package.

mypy reads this file: `assert_type` fails there if a value has another type, and an ignored error that is none is an
error itself (`warn_unused_ignores`). What stands here is run as well, so the types are those of the values.
"""

from __future__ import annotations

from typing import assert_type

import pytest

import wonderland as wl
from wonderland import Tensor
from wonderland.errors import DTypeError


def power(x: Tensor, k: int = 2) -> Tensor:
    return (x**k).sum()


class Scaled(wl.nn.Module):
    def __init__(self) -> None:
        self.factor = wl.nn.Parameter(2.0)

    def forward(self, x: Tensor) -> Tensor:
        return self.factor * x

    @wl.jit
    def total(self, x: Tensor) -> Tensor:
        return (self.factor * x).sum()


def loss(model: Scaled, x: Tensor) -> Tensor:
    return (model.factor * x).sum()


def is_(value: object, kind: type) -> None:
    assert isinstance(value, kind)


def test_functions_say_what_they_take_and_give() -> None:
    is_(assert_type(wl.exp(1.0), Tensor), Tensor)
    is_(assert_type(1 - wl.ones(2) @ wl.ones((2, 3)), Tensor), Tensor)
    is_(assert_type(wl.ones(3)[1:].at[0].set(2.0).sum(axis=0), Tensor), Tensor)
    with pytest.raises(DTypeError):
        wl.exp("a")  # type: ignore[arg-type]
    with pytest.raises(DTypeError):
        wl.ones(3)["a"]  # type: ignore[index]
    with pytest.raises(DTypeError):
        wl.ones(3) + "a"  # type: ignore[operator]


def test_jitted_functions_keep_their_signatures() -> None:
    x = wl.ones(3)
    jitted, static = wl.jit(power), wl.jit(static_argnames="k")(power)
    is_(assert_type(jitted(x, k=3), Tensor), Tensor)
    is_(assert_type(static(x, 3), Tensor), Tensor)
    is_(assert_type(wl.checkpoint(power)(x), Tensor), Tensor)
    is_(assert_type(wl.vmap(power)(x), Tensor), Tensor)
    is_(assert_type(Scaled().total(x), Tensor), Tensor)
    assert assert_type(jitted.traces, int) == 1
    with pytest.raises(TypeError):
        jitted(x, n=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        wl.vmap(power)(x, n=x)  # type: ignore[call-arg]


def test_derivatives_of_functions_of_tensors_and_of_modules() -> None:
    x, model = wl.ones(3), Scaled()
    is_(assert_type(wl.grad(power)(x), Tensor), Tensor)
    is_(assert_type(wl.grad(power)(2.0, k=3), Tensor), Tensor)
    is_(assert_type(wl.grad(wl.grad(lambda x: x**3))(2.0), Tensor), Tensor)
    is_(assert_type(wl.jit(wl.grad(power))(x), Tensor), Tensor)
    is_(assert_type(wl.grad(loss)(model, x), dict[str, Tensor])["factor"], Tensor)
    value, gradient = assert_type(wl.value_and_grad(loss)(model, x), tuple[Tensor, dict[str, Tensor]])
    assert (value.item(), gradient["factor"].item()) == (6.0, 3.0)
    value, tangent = assert_type(wl.jvp(power, (x,), (x,)), tuple[Tensor, Tensor])
    assert (value.item(), tangent.item()) == (3.0, 6.0)
