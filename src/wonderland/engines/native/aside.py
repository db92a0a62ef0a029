"""Work in threads of its own. Signals interrupt the main thread alone, so what runs here is never cut short: not in the
middle of a call of LLVM's, nor while a lock is held that others wait for."""

from __future__ import annotations

from _thread import start_new_thread  # threading.Thread waits for its start in a way that Ctrl-C can break
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from typing import Any, TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


def completed(f: Callable[[Item], Made], items: Sequence[Item], workers: int) -> Iterator[tuple[int, Made]]:
    """(i, f(items[i])) as they are done, by some threads. What one of them raises is raised here."""
    left = deque(enumerate(items))
    done: SimpleQueue[tuple[int, Any, BaseException | None]] = SimpleQueue()

    def work() -> None:
        while True:
            try:
                i, item = left.popleft()
            except IndexError:
                return
            try:
                done.put((i, f(item), None))
            except BaseException as error:
                done.put((i, None, error))

    try:
        for _ in range(workers):
            try:
                start_new_thread(work, ())
            except RuntimeError:  # there are too many threads, or the process is about to end
                work()
        for _ in items:
            i, result, error = done.get()
            if error is not None:
                raise error
            yield i, result
    finally:
        left.clear()  # after an error or an interrupt nobody wants the rest


def aside(f: Callable[[], Made]) -> Made:
    """The result of f, computed in another thread."""
    ((_, result),) = completed(lambda _: f(), [None], 1)
    return result
