"""The threads that share the chunks of a step with the calling thread.

They are Python threads that sit inside native code, where they hold no lock of Python's. Chunks are handed out by an
atomic counter: a thread that is late or asleep delays nobody. After a moment without work they sleep.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading

import numpy as np

from ..errors import InputError
from ..forking import open_after_fork
from .runtime import functions
from .runtime_text import CLOSED, CONDITION, MUTEX, NEXT, SIZE, STOP


class Pool:
    """The threads that help the calling thread."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._memory = np.zeros(SIZE + 8, np.int64)
        start = -(self._memory.ctypes.data // 8) % 8
        self._state = self._memory[start : start + SIZE]
        self._state[NEXT] = CLOSED
        self.address: int = self._state.ctypes.data
        process = ctypes.CDLL(None)
        process.pthread_mutex_init(ctypes.c_void_p(self.address + 8 * MUTEX), None)
        process.pthread_cond_init(ctypes.c_void_p(self.address + 8 * CONDITION), None)
        self._process = process
        worker = functions()[1]
        self._threads = [
            threading.Thread(target=worker, args=(self.address,), name=f"wonderland-{i + 1}", daemon=True)
            for i in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End the threads; work that is going on is finished first."""
        mutex, condition = (ctypes.c_void_p(self.address + 8 * place) for place in (MUTEX, CONDITION))
        self._process.pthread_mutex_lock(mutex)
        self._state[STOP] = 1
        self._process.pthread_cond_broadcast(condition)
        self._process.pthread_mutex_unlock(mutex)
        for thread in self._threads:
            thread.join()


_lock = open_after_fork(threading.Lock())
_retired: list[Pool] = []  # programs that were running when the number of threads changed may still look at these
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
        _threads = n
        if _pool is not None and _pool.workers != n - 1:
            _pool.close()
            _retired.append(_pool)
            _pool = None


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
    set_threads(1)


atexit.register(_close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
