"""What a run shows while it goes: a bar on a terminal, a line per epoch elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from html import escape
from types import ModuleType
from typing import Any, TextIO

from ..core.errors import InputError
from ..notebooks import table
from ..viz.marks import shortened
from .history import Record

_HIDDEN = ("epoch", "step", "seconds")
WIDTH = 100  # characters of a line


def make(kind: str | bool | None, stream: TextIO | None = None) -> Progress:
    """The progress of a kind: "bar", "lines", "table", or False for nothing.

    None chooses: a table in a notebook, a bar on a terminal, lines elsewhere.
    """
    display = _notebook() if stream is None else None
    stream = stream or sys.stderr
    if kind is None or kind is True:
        kind = "table" if display is not None else "bar" if stream.isatty() else "lines"
    if kind is False:
        return Progress()
    if kind == "bar":
        return Bar(stream)
    if kind == "lines":
        return Lines(stream)
    if kind == "table":
        return Lines(stream) if display is None else Table(display)
    raise InputError(f"progress={kind!r}.", '"bar", "lines", "table", False, or None to choose')


def _notebook() -> ModuleType | None:
    """What a notebook shows things with, if this is one: then it is loaded already."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return sys.modules.get("IPython.display") if hasattr(shell, "kernel") else None


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
        self.note(line(self.head, record, time.perf_counter() - self.start, self.steps))

    def note(self, text: str) -> None:
        print(text, file=self.stream, flush=True)


class Table(Progress):
    """A table in a notebook that grows with the epochs: of many, the first and the last are shown."""

    FIRST, LAST = 3, 12

    def __init__(self, display: ModuleType) -> None:
        self.display, self.handle = display, None
        self.records: list[Record] = []
        self.notes: list[str] = []
        self.state, self.next = "", 0.0

    def epoch(self, number: int, last: int, steps: int | None, done: int) -> None:
        self.head, self.start, self.steps, self.done = f"epoch {number}/{last}", time.perf_counter(), steps, done

    def step(self, loss: float) -> None:
        self.done += 1
        now = time.perf_counter()
        if now >= self.next:
            of = f"/{self.steps}" if self.steps else ""
            self.state, self.next = f"{self.head}, step {self.done}{of}, loss {loss:.4g}", now + 0.5
            self._show()

    def end(self, record: Record) -> None:
        self.records.append({**record, "seconds": round(time.perf_counter() - self.start, 1)})
        self.state = ""
        self._show()

    def note(self, text: str) -> None:
        self.notes.append(text)
        self._show()

    def close(self) -> None:
        self.state = ""
        self._show()

    def html(self) -> str:
        """The table so far."""
        names = list(dict.fromkeys(name for record in self.records for name in record if name != "step"))
        left_out = range(self.FIRST, max(self.FIRST, len(self.records) - self.LAST))
        rows = [[_cell(record.get(name)) for name in names] for record in self.records]
        kept = [row for i, row in enumerate(rows) if i not in left_out]
        if left_out:
            kept.insert(self.FIRST, ["…"] * len(names))
        body = table([name.replace("_", " ") for name in names], kept, left=0) if rows else ""
        return body + "".join(f"<div>{escape(text)}</div>" for text in (*self.notes, self.state) if text)

    def _show(self) -> None:
        shown_now = self.display.HTML(self.html())
        if self.handle is None:
            self.handle = self.display.display(shown_now, display_id=True)
        else:
            self.handle.update(shown_now)


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


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
        told = line(self.head, record, time.perf_counter() - self.start, self.count)
        self.close()
        self.note(told)

    def note(self, text: str) -> None:
        self.tqdm.write(text, file=self.stream)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()
            self.bar = None


def line(head: str, record: Record, seconds: float, steps: int) -> str:
    """An epoch in at most `WIDTH` characters: what matters least is left out first.

    >>> line("epoch 1/3", {"loss": 0.25, "validation_loss": 0.5, "lr": 0.001}, 2.0, 10)
    'epoch 1/3  loss 0.25  validation loss 0.5  lr 0.001  2.0 s  5 steps/s'
    >>> many = {"loss": 0.25, **{f"validation_measure_{i}": i / 7 for i in range(9)}}
    >>> len(line("epoch 1/3", many, 2.0, 10)) <= WIDTH
    True
    """
    of_optimizer = ("lr", "gradient_norm")
    usual = {name: value for name, value in record.items() if name not in of_optimizer}
    # what was measured on both parts says more where it was not trained on
    telling = {name: value for name, value in usual.items() if name == "loss" or f"validation_{name}" not in usual}
    taken = f"{seconds:.1f} s"
    rate = [f"{steps / seconds:.0f} steps/s"] if seconds else []
    ways = [
        [*shown(record), taken, *rate],
        [*shown(record), taken],
        [*shown(usual), taken],
        [*shown(telling), taken],
        shown(telling),
    ]
    for parts in ways:
        for short in ("validation ", "val "):
            text = "  ".join([head, *(part.replace("validation ", short) for part in parts)])
            if len(text) <= WIDTH:
                return text
    return shortened(text, WIDTH)


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
