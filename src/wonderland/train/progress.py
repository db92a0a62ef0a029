"""What a run shows while it goes: a bar on a terminal, a line per epoch elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from ..core.errors import InputError
from .history import Record

_HIDDEN = ("epoch", "step", "seconds")


def make(kind: str | bool | None, stream: TextIO | None = None) -> Progress:
    """The progress of a kind: None (a bar on a terminal, otherwise lines), "bar", "lines", or False for nothing."""
    stream = stream or sys.stderr
    if kind is None or kind is True:
        kind = "bar" if stream.isatty() else "lines"
    if kind is False:
        return Progress()
    if kind == "bar":
        return Bar(stream)
    if kind == "lines":
        return Lines(stream)
    raise InputError(f"progress={kind!r}.", '"bar", "lines", False, or None to choose by the terminal')


class Progress:
    """Shows nothing."""

    running: Callable[[], dict[str, float]] = dict  # the metrics of the epoch so far, asked for when they are shown

    def epoch(self, number: int, last: int, steps: int | None, done: int) -> None:
        """An epoch begins; `done` of its steps were made before the run was resumed."""

    def step(self, loss: float) -> None:
        """A step is done."""

    def end(self, record: Record) -> None:
        """An epoch and its validation are done."""

    def note(self, text: str) -> None:
        """Something worth a line."""

    def close(self) -> None:
        """The run is over."""


class Lines(Progress):
    """A line per epoch, for logs and pipes."""

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.head = stream, ""

    def epoch(self, number: int, last: int, steps: int | None, done: int) -> None:
        self.head, self.start, self.steps = f"epoch {number}/{last}", time.perf_counter(), 0

    def step(self, loss: float) -> None:
        self.steps += 1

    def end(self, record: Record) -> None:
        seconds = time.perf_counter() - self.start
        rate = f"{self.steps / seconds:.0f} steps/s" if seconds else ""
        self.note("  ".join([self.head, *shown(record), f"{seconds:.1f} s", rate]))

    def note(self, text: str) -> None:
        print(text, file=self.stream, flush=True)


class Bar(Progress):
    """A bar per epoch with the loss, the rate and the time left; finished ones become lines."""

    def __init__(self, stream: TextIO) -> None:
        from tqdm import tqdm

        self.stream, self.tqdm = stream, tqdm
        self.bar: Any = None
        self.total, self.count, self.next = 0.0, 0, 0.0

    def epoch(self, number: int, last: int, steps: int | None, done: int) -> None:
        self.close()
        self.head = f"epoch {number}/{last}"
        self.bar = self.tqdm(
            total=steps, initial=done, desc=self.head, file=self.stream, leave=False, dynamic_ncols=True, unit="step"
        )
        self.start = time.perf_counter()
        self.total, self.count, self.waiting, self.next = 0.0, 0, 0, 0.0

    def step(self, loss: float) -> None:
        self.total += loss
        self.count += 1
        self.waiting += 1
        now = time.perf_counter()
        if now >= self.next:  # the terminal is written to ten times a second at most
            self.next = now + 0.1
            now_shown = [f"loss {self.total / self.count:.4g}", *shown(self.running())]
            self.bar.set_postfix_str(", ".join(now_shown), refresh=False)
            self.bar.update(self.waiting)
            self.waiting = 0

    def end(self, record: Record) -> None:
        seconds = time.perf_counter() - self.start
        rate = f"{self.count / seconds:.0f} steps/s" if seconds else ""
        self.close()
        self.note("  ".join([self.head, *shown(record), f"{seconds:.1f} s", rate]))

    def note(self, text: str) -> None:
        self.tqdm.write(text, file=self.stream)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
            self.bar = None


def shown(record: Record) -> list[str]:
    """The numbers of a record as texts.

    >>> shown({"epoch": 1, "loss": 0.25, "validation_accuracy": 0.5})
    ['loss 0.25', 'validation accuracy 0.5']
    """
    return [
        f"{name.replace('_', ' ')} {value:.4g}"
        for name, value in record.items()
        if name not in _HIDDEN and isinstance(value, (int, float))
    ]
