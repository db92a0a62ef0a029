"""A trained model for good: its parameters are constants, and it only answers."""

from __future__ import annotations

from typing import Generic, NoReturn, ParamSpec, TypeVar, cast

from ... import arrays
from ...core.errors import InputError, ModuleError
from ...transforms.jit.jit import jit
from .hooks import Computing
from .module import Module

__all__ = ["freeze", "Frozen"]

P = ParamSpec("P")
Output = TypeVar("Output")


class Frozen(Generic[P, Output]):
    """What `wl.freeze` makes of a module: call it as the module. See there."""

    training = False

    def __init__(self, model: Module) -> None:
        held = model.copy().eval().freeze()
        for _, cell in held._cells("freeze"):
            if cell.value._concrete("a constant").base is not None:
                cell.assign(arrays.asarray(cell.value, copy=True))  # the memory of others may change
        self._kind, self._numbers = type(model).__name__, held.num_parameters()

        def answer(*args: P.args, **kwargs: P.kwargs) -> Output:
            return cast(Output, held(*args, **kwargs))

        self._answer = jit(answer)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Output:
        return self._answer(*args, **kwargs)

    def eval(self) -> Frozen[P, Output]:
        """The same: it never is in another mode."""
        return self

    def train(self, mode: bool = True) -> Frozen[P, Output]:
        """Refused, as there is nothing to train."""
        if mode:
            self._refuse("train")
        return self

    def parameters(self) -> NoReturn:
        """Refused: they are constants now."""
        self._refuse("parameters")

    def state_dict(self) -> NoReturn:
        """Refused: save the model that it was made of."""
        self._refuse("state_dict")

    def _refuse(self, what: str) -> NoReturn:
        raise ModuleError(
            f"{what}: a frozen {self._kind} has constants in place of parameters.",
            "the model that it was made of; freeze that again when it has changed",
        )

    def __repr__(self) -> str:
        return f"Frozen({self._kind}, {self._numbers} numbers)"


def freeze(model: Computing[P, Output]) -> Frozen[P, Output]:
    """The model as a compiled function of its arguments, in `eval` mode, with constants in place of its parameters.

    >>> import wonderland as wl
    >>> model = wl.nn.Sequential(wl.nn.Conv2d(3, 8, 3), wl.nn.BatchNorm2d(8), wl.nn.ReLU())
    >>> answer = wl.freeze(model)
    >>> x = wl.random.normal((2, 16, 16, 3))
    >>> bool(abs(answer(x) - model.eval()(x)).max() < 1e-4)
    True
    >>> answer
    Frozen(Sequential, 240 numbers)

    What depends on parameters alone is computed at the first call and kept: packed weights, and batch normalisation as
    part of the filters before it. `wl.jit` does so, too, while the parameters stay the same; a frozen model does not
    see what becomes of the model later, and holds its numbers as they were. They share memory until the model is
    trained on. Hooks are left out. It cannot be trained: it has no parameters, no gradient with respect to them and no
    `train` mode. Gradients with respect to its arguments are as always.
    """
    if not isinstance(model, Module):
        raise InputError(f"freeze: a {type(model).__name__} is not a module.", "a wl.nn.Module; wl.jit for a function")
    return Frozen(model)
