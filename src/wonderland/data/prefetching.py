"""Batches made before they are asked for: by a thread, and by worker processes.

Both are iterators over something else, in the same order. The thread makes an item whenever it was given a credit, so
at most `depth` of them wait; it knows queues only, never the iterator that the user holds, and ends when that is
dropped.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import threading
import traceback
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import connection, get_all_start_methods, get_context
from multiprocessing.process import BaseProcess
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

import numpy as np

from ..core.errors import InputError, WonderlandError

PATIENCE = 5.0  # seconds that an end may take: a thread or a worker may be in the middle of a slow batch
_END = object()


Item = TypeVar("Item")


class Background(Generic[Item]):
    """The items of an iterable, made by a thread up to `depth` ahead; exceptions are raised where they are asked for.

    >>> list(Background(iter([1, 2, 3]), depth=2))
    [1, 2, 3]
    """

    def __init__(self, items: Iterable[Item], depth: int) -> None:
        self._credits: SimpleQueue[bool] = SimpleQueue()
        self._made: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self._thread = threading.Thread(
            target=_make, args=(iter(items), self._credits, self._made), name="wonderland-loader", daemon=True
        )
        self._over = False
        # Called when this object is dropped, and at the interpreter's exit.
        self._finalizer = weakref.finalize(self, _end_thread, self._credits, self._thread)
        for _ in range(depth):
            self._credits.put(True)
        self._thread.start()

    def __iter__(self) -> Iterator[Item]:
        return self

    def __next__(self) -> Item:
        if self._over:
            raise StopIteration
        item, error = self._made.get()
        if error is not None or item is _END:
            self.close()
            if error is None:
                raise StopIteration
            try:
                raise error
            finally:
                del error  # a traceback that holds this frame would keep everything alive
        self._credits.put(True)
        return item

    def close(self) -> None:
        """End the thread, after the item that it is making."""
        self._over = True
        self._finalizer()


def _make(
    items: Iterator[object], credits: SimpleQueue[bool], made: SimpleQueue[tuple[Any, BaseException | None]]
) -> None:
    try:
        while credits.get():
            made.put((next(items, _END), None))
    except BaseException as error:
        made.put((None, error))
    finally:
        if hasattr(items, "close"):
            items.close()  # a generator's `finally` ends its worker processes


def _end_thread(credits: SimpleQueue[bool], thread: threading.Thread) -> None:
    with contextlib.suppress(Empty):  # which the thread may make it at any moment
        while True:  # what was not begun is not made
            credits.get_nowait()
    credits.put(False)
    if thread is not threading.current_thread():  # the garbage collector may run anywhere
        thread.join(PATIENCE)


# --- worker processes

_our_ends: weakref.WeakSet[connection.Connection] = (
    weakref.WeakSet()
)  # a forked worker inherits them, and closes its copies


class Workers:
    """Processes that carry out tasks, round robin, with results in the order of the tasks.

    They are forked where the system does that by default in safety (Linux), else spawned: then what they run has to be
    picklable, and the program needs the usual `if __name__ == "__main__":`.
    """

    def __init__(self, work: Callable[[Any], object], count: int, method: str | None = None) -> None:
        method = method or default_method()
        if method not in get_all_start_methods():
            raise InputError(
                f"DataLoader: there is no way {method!r} to start processes.", f"one of {get_all_start_methods()}"
            )
        context: Any = get_context(method)
        payload: object = work if method == "fork" else _pickled(work)
        self._pid = os.getpid()
        self._tasks: list[connection.Connection] = []
        self._results: list[connection.Connection] = []
        self._processes: list[BaseProcess] = []
        self._waiting: deque[int] = deque()  # the workers of the tasks under way, in their order
        self._next = 0
        try:
            for number in range(count):
                reads_tasks, tasks = context.Pipe(duplex=False)
                results, writes_results = context.Pipe(duplex=False)
                _our_ends.update((tasks, results))
                process = context.Process(
                    target=_serve,
                    args=(payload, reads_tasks, writes_results),
                    name=f"wonderland-loader-{number}",
                    daemon=True,
                )
                self._tasks.append(tasks)
                self._results.append(results)
                with warnings.catch_warnings():
                    # Python warns of locks that other threads hold; NumPy's and ours are open in the child.
                    warnings.simplefilter("ignore", DeprecationWarning)
                    process.start()
                self._processes.append(process)
                reads_tasks.close()
                writes_results.close()
        except BaseException:
            self.close()
            raise

    def submit(self, task: object) -> None:
        """Give a task to the next worker."""
        which = self._next % len(self._processes)
        self._next += 1
        try:
            self._tasks[which].send_bytes(_pickled(task))
        except (BrokenPipeError, ConnectionResetError):
            raise self._died(which) from None
        self._waiting.append(which)

    def result(self) -> object:
        """The result of the oldest task under way; raises what the worker raised."""
        which = self._waiting.popleft()
        try:
            value, error = _receive_whole(self._results[which])
        except (EOFError, ConnectionResetError):
            raise self._died(which) from None
        if error is not None:
            raise error
        return value

    def _died(self, which: int) -> WonderlandError:
        process = self._processes[which]
        process.join(PATIENCE)
        return WonderlandError(
            f"DataLoader: worker {which} ended with exit code {process.exitcode}.",
            "num_workers=0 to see the error itself; a code of -9 often means too little memory",
        )

    def close(self) -> None:
        """End the processes."""
        if os.getpid() != self._pid:  # a forked child holds a copy of this object, not of the processes
            return
        for end in (*self._tasks, *self._results):
            end.close()  # a worker that reads or writes notices
        for process in self._processes:
            process.join(PATIENCE)
            if process.is_alive():
                process.terminate()
                process.join()
            process.close()
        self._tasks, self._results, self._processes = [], [], []


def default_method() -> str:
    """How worker processes start: by fork on Linux, by spawn elsewhere."""
    import sys

    return "fork" if sys.platform == "linux" else "spawn"


def results(workers: Workers, tasks: Iterable[object], ahead: int) -> Iterator[object]:
    """The results of tasks, in order, with at most `ahead` of them under way. The workers end with the last one."""
    try:
        under_way = 0
        for task in tasks:
            workers.submit(task)
            under_way += 1
            if under_way >= ahead:
                yield workers.result()
                under_way -= 1
        for _ in range(under_way):
            yield workers.result()
    finally:
        workers.close()


def _pickled(work: object) -> bytes:
    try:
        return pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(
            f"DataLoader: the dataset, its functions or examples cannot be sent to worker processes ({error}).",
            "functions with a name at the top of a module instead of lambdas, or num_workers=0",
        ) from error


def _serve(
    payload: bytes | Callable[[object], object], tasks: connection.Connection, results: connection.Connection
) -> None:
    """A worker's life: carry out tasks until the pipe ends."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's; it then ends us
    for end in list(_our_ends):
        end.close()  # or nobody would notice when the parent dies
    try:
        work = pickle.loads(payload) if isinstance(payload, bytes) else payload
    except BaseException as error:
        _send_whole(results, (None, _sendable(error)))
        return
    arrived: SimpleQueue[object] = SimpleQueue()
    # A thread reads, so that the parent can always send, also while we wait for it to take a large result.
    threading.Thread(target=_receive, args=(tasks, arrived), daemon=True).start()
    while (task := arrived.get()) is not _END:
        try:
            answer: tuple[object, BaseException | None] = (work(task), None)
        except BaseException as error:
            answer = (None, _sendable(error))
        try:
            _send_whole(results, answer)
        except (BrokenPipeError, ConnectionResetError):
            return
        except Exception as error:  # the batch cannot be pickled
            _send_whole(results, (None, _sendable(error)))


def _send_whole(pipe: connection.Connection, value: object) -> None:
    """Send a tree of arrays; the numbers go straight from their memory into the pipe."""
    buffers: list[pickle.PickleBuffer] = []
    payload = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    parts = [buffer.raw() for buffer in buffers]
    pipe.send((payload, [len(part) for part in parts]))
    for part in parts:
        if len(part):
            pipe.send_bytes(part)


def _receive_whole(pipe: connection.Connection) -> Any:
    """What `_send_whole` sent, with arrays over fresh memory."""
    payload, sizes = pipe.recv()
    parts = [np.empty(size, np.uint8) for size in sizes]
    for part in parts:
        if part.size:
            pipe.recv_bytes_into(part)
    return pickle.loads(payload, buffers=parts)


def _receive(tasks: connection.Connection, arrived: SimpleQueue[object]) -> None:
    try:
        while True:
            arrived.put(tasks.recv())
    except (EOFError, OSError):
        arrived.put(_END)


def _sendable(error: BaseException) -> BaseException:
    """The exception with the worker's traceback as a note; another one if it cannot be pickled."""
    text = "".join(traceback.format_exception(error))
    try:
        restored = pickle.loads(pickle.dumps(error))
        if type(restored) is type(error):
            error.add_note(f"in a worker process:\n{text}")
            return error
    except Exception:
        pass
    found = WonderlandError(f"DataLoader: a worker process raised {type(error).__name__}: {error}")
    for note in getattr(error, "__notes__", ()):
        found.add_note(note)
    found.add_note(f"in a worker process:\n{text}")
    return found
