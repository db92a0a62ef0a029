"""Callbacks: what else happens while a model is trained."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..core.errors import InputError
from ..core.tensor import Tensor
from .history import Record

if TYPE_CHECKING:
    from .trainer import Trainer

EVENTS = ("on_fit_start", "on_epoch_start", "on_step_end", "on_epoch_end", "on_fit_end")


class Callback:
    """Something that is told what happens in a run, and may stop it. Override the methods that you need.

    >>> import wonderland as wl
    >>> class Count(wl.train.Callback):
    ...     steps = 0
    ...     def on_step_end(self, trainer):
    ...         self.steps += 1
    ...         if self.steps == 3:
    ...             trainer.stop("enough")
    >>> count = Count()
    >>> x = wl.linspace(-1.0, 1.0, 32).reshape(32, 1)
    >>> history = wl.train.fit(
    ...     wl.nn.Linear(1, 1), wl.nn.MSELoss(), (x, 2 * x), epochs=5, batch_size=8, callbacks=[count], progress=False
    ... )
    >>> count.steps, history.stopped
    (3, 'enough')

    A trainer has `model`, `optimizer`, `epoch` and `step` (how many are done), `loss` (of the last step), `batch`,
    `history`, `stop(reason)` and `mark(text)`, which notes an event in the history. What `on_epoch_end` gets is the
    epoch's record, a dict that goes into the history; the callback may add to it. Book, chapter 9, exercises.
    """

    writes = False  # whether it writes files: of several processes, the first alone then listens

    def on_fit_start(self, trainer: Trainer) -> None:
        """Before the first step of a run, or after a resumed one was loaded."""

    def on_epoch_start(self, trainer: Trainer) -> None:
        """Before an epoch's first step."""

    def on_step_end(self, trainer: Trainer) -> None:
        """After each step."""

    def on_epoch_end(self, trainer: Trainer, record: Record) -> None:
        """After an epoch and its validation."""

    def on_fit_end(self, trainer: Trainer) -> None:
        """After the last step, also when the run was stopped; not after an error."""

    def state_dict(self) -> dict[str, object]:
        """What a checkpoint should keep of it: plain data, as in JSON."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up the plain data of a checkpoint."""

    def tensors(self) -> dict[str, Tensor]:
        """The tensors that a checkpoint should keep of it."""
        return {}

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Take up the tensors of a checkpoint."""


class LambdaCallback(Callback):
    """A callback made of functions: `LambdaCallback(on_epoch_end=lambda trainer, record: print(record))`.

    >>> import wonderland as wl
    >>> wl.train.LambdaCallback(on_step_end=lambda trainer: None)
    LambdaCallback(on_step_end)
    """

    def __init__(self, **functions: Callable[..., object]) -> None:
        if unknown := [name for name in functions if name not in EVENTS]:
            raise InputError(f"LambdaCallback: there is no event {unknown[0]!r}.", f"one of {', '.join(EVENTS)}")
        for name, function in functions.items():
            setattr(self, name, function)
        self._names = list(functions)

    def __repr__(self) -> str:
        return f"LambdaCallback({', '.join(self._names)})"


class Callbacks:
    """The callbacks of a run, asked only about the events that they listen to."""

    def __init__(self, callbacks: Iterable[Callback], writing: bool = True) -> None:
        self.all = list(callbacks)
        for callback in self.all:
            if not isinstance(callback, Callback):
                raise InputError(
                    f"callbacks: a {type(callback).__name__} is not a callback.",
                    "an object of a subclass of wl.train.Callback; wl.train.LambdaCallback wraps functions",
                )
        listening = [callback for callback in self.all if writing or not callback.writes]
        self.listeners = {event: [bound for c in listening if (bound := _listens(c, event))] for event in EVENTS}

    def tell(self, event: str, *args: object) -> None:
        for listener in self.listeners[event]:
            listener(*args)

    def names(self) -> list[str]:
        """A name for each, the same in every run with the same callbacks."""
        return [f"{i}:{type(callback).__name__}" for i, callback in enumerate(self.all)]


def _listens(callback: Callback, event: str) -> Callable[..., object] | None:
    bound = getattr(callback, event)
    return None if getattr(bound, "__func__", None) is getattr(Callback, event) else bound
