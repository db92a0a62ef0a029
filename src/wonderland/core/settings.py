"""Settings: for the length of a `with` block or of a decorated function, or until they are chosen anew.

They belong to the context, see core/context.py. Blocks may end in any order, as those of generators do that take turns:
each takes back its own choice and no other.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator
from typing import Any, TypeVar, cast

from .context import Choice, choose, current
from .errors import InputError

F = TypeVar("F", bound=Callable[..., Any])


class setting:  # noqa: N801 - reads as `with setting(name, value):`
    """Inside the block, the setting has this value; as a decorator, while the function runs."""

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = value

    def __enter__(self) -> None:
        choose((*current().settings.choices, Choice(self, self.name, self.value)))

    def __exit__(self, *exception: object) -> None:
        choices = current().settings.choices
        for i in reversed(range(len(choices))):  # none, if the block was entered in another context
            if choices[i].owner is self:
                choose(choices[:i] + choices[i + 1 :])
                return

    def __call__(self, f: F) -> F:
        """The function with the setting; also if it is a generator or `async`, where only its own steps have it."""
        import inspect  # takes a while to load

        if inspect.isasyncgenfunction(f):
            raise InputError(
                f"{self.name}: {f.__name__} is an asynchronous generator, which cannot be decorated.",
                "a `with` block inside it, around what it computes between two `yield`s",
            )

        async def awaited(*args: object, **kwargs: object) -> object:
            with self:
                return await f(*args, **kwargs)

        def stepwise(*args: object, **kwargs: object) -> Generator[object, object, object]:
            return (yield from _stepwise(self, f(*args, **kwargs)))

        def called(*args: object, **kwargs: object) -> object:
            with self:
                return f(*args, **kwargs)

        wrapper: Callable[..., object] = called
        if inspect.iscoroutinefunction(f):
            wrapper = awaited
        elif inspect.isgeneratorfunction(f):
            wrapper = stepwise
        return cast(F, functools.wraps(f)(wrapper))


def _stepwise(block: setting, generator: Generator[object, object, object]) -> Generator[object, object, object]:
    """A generator that has the setting while it computes, and not its consumer between two of its values."""
    step: Callable[..., object] = generator.send
    sent: object = None
    while True:
        try:
            with block:
                value = step(sent)
        except StopIteration as end:
            return end.value
        try:
            step, sent = generator.send, (yield value)
        except GeneratorExit:
            with block:
                generator.close()
            raise
        except BaseException as error:
            step, sent = generator.throw, error


def set_from_now_on(name: str, value: Any) -> None:
    """Choose a setting in this context; inside a block of the same setting, until the block ends."""
    choices = current().settings.choices
    for i in reversed(range(len(choices))):
        if choices[i].name == name:
            choose((*choices[:i], choices[i]._replace(value=value), *choices[i + 1 :]))
            return
    choose((*choices, Choice(None, name, value)))


_LENIENT = setting("strict_broadcast", False)
_AS_RECORDED = setting("autocast", None)
_AS_IT_IS = contextlib.nullcontext()


def lenient() -> contextlib.AbstractContextManager[None]:
    """Inside, broadcasting is not checked: what is carried out is not as the user wrote it."""
    return _LENIENT if current().settings.strict_broadcast else _AS_IT_IS


def as_recorded() -> contextlib.AbstractContextManager[None]:
    """Inside, `autocast` is off: the backward pass computes in the types that the forward pass has chosen."""
    return _AS_IT_IS if current().settings.autocast is None else _AS_RECORDED
