"""The threads that share the chunks of a step with the calling thread.

They are Python threads that sit inside native code, where they hold no lock of Python's. Chunks are handed out by an
atomic counter: a thread that is late or asleep delays nobody. After a moment without work they sleep.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import threading
from _thread import start_new_thread  # threading.Thread waits for its start in a way that Ctrl-C can break
from queue import Empty, SimpleQueue

from ...core.errors import InputError
from ...core.forking import open_after_fork
from .runtime import functions
from .runtime_text import CLOSED, CONDITION, LINE, MUTEX, NEXT, SIZE


class Pool:
    """The threads that help the calling thread.

    Their state is in memory that is never freed: a thread, or a program that was running when the number of threads
    changed, may look at it at any time. Ctrl-C may come anywhere in the code here; whatever others wait for (the mutex,
    say) is dealt with inside one native call.
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        process = ctypes.CDLL(None)
        process.calloc.restype = ctypes.c_void_p
        start = process.calloc(ctypes.c_size_t(SIZE + LINE), ctypes.c_size_t(8))
        self.address: int = -(-start // (8 * LINE)) * 8 * LINE
        ctypes.c_int64.from_address(self.address + 8 * NEXT).value = CLOSED
        process.pthread_mutex_init(ctypes.c_void_p(self.address + 8 * MUTEX), None)
        process.pthread_cond_init(ctypes.c_void_p(self.address + 8 * CONDITION), None)
        self._ended: SimpleQueue[None] = SimpleQueue()
        try:
            for _ in range(workers):
                start_new_thread(_work, (self.address, self._ended))
        except BaseException:
            functions().stop(self.address)
            raise

    def close(self, seconds: float = 0) -> None:
        """End the threads, after the work that is going on; wait for it so long."""
        functions().stop(self.address)
        with contextlib.suppress(Empty):
            for _ in range(self.workers if seconds else 0):
                self._ended.get(timeout=seconds)


def _work(pool: int, ended: SimpleQueue[None]) -> None:
    functions().worker(pool)
    ended.put(None)


_lock = open_after_fork(threading.Lock())
_pool: Pool | None = None
_threads: int | None = None
_VARIABLES = ("WONDERLAND_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def get_threads() -> int:
    """How many threads compiled functions use.

    By default the number of processors that this process may use, or what the first of the environment variables
    WONDERLAND_THREADS, OMP_NUM_THREADS, MKL_NUM_THREADS and OPENBLAS_NUM_THREADS says.
    """
    global _threads
    if _threads is None:
        _threads = _from_environment() or _processors()
    return _threads


def is_chosen() -> bool:
    """Whether somebody has said how many threads there are."""
    return _threads is not None or _from_environment() is not None


def set_threads(n: int) -> None:
    """Let compiled functions use n threads. Results do not depend on it, to the last bit.

    >>> import wonderland as wl
    >>> before = wl.get_threads()
    >>> wl.set_threads(1)
    >>> wl.get_threads()
    1
    >>> wl.set_threads(before)
    """
    global _pool, _threads
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise InputError(f"set_threads: {n!r} is not a number of threads.", "a positive integer")
    with _lock:
        _threads, before = n, _pool
        if before is not None and before.workers != n - 1:
            _pool = None
            before.close()


def pool() -> int:
    """The address of the pool's state, 0 if there is one thread only; starts the threads when first asked."""
    global _pool
    found = _pool
    if found is None:
        if get_threads() == 1 or not hasattr(os, "fork"):  # without POSIX threads, the calling thread does it all
            return 0
        with _lock:
            if _pool is None:
                _pool = Pool(get_threads() - 1)
            found = _pool
    return found.address


def crew() -> tuple[Pool | None, int | None]:
    """What tells whether `pool` gives another address by now."""
    return _pool, _threads


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _from_environment() -> int | None:
    for name in _VARIABLES:
        text = os.environ.get(name, "").split(",")[0].strip()
        if text.isdigit() and int(text) > 0:
            return int(text)
    return None


def _forget() -> None:
    """In a forked child the threads do not exist; the first call starts new ones."""
    global _pool
    _pool = None


def _close() -> None:
    """At the end of the process; threads cannot be started any more."""
    before = _pool
    set_threads(1)
    if before is not None:
        before.close(seconds=1)  # a thread that is stuck in an endless loop does not keep the process


atexit.register(_close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
