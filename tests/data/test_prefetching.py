"""The thread that makes batches ahead ends whenever it is told to, at whatever moment that is."""

from __future__ import annotations

import threading
from queue import Empty

from wonderland.data.prefetching import Background, _end_thread


class Credits:
    """A queue whose last credit is taken by the thread just after the other side has seen it."""

    def __init__(self):
        self.given = []

    def empty(self):
        return False

    def get(self):
        raise AssertionError("this would wait for ever")

    def get_nowait(self):
        raise Empty

    def put(self, credit):
        self.given.append(credit)


def test_the_end_does_not_wait_for_a_credit_that_the_thread_has_taken():
    credits, thread = Credits(), threading.Thread(target=lambda: None)
    thread.start()
    _end_thread(credits, thread)
    assert credits.given == [False]


def test_many_short_passes_end():
    for _ in range(200):
        assert list(Background(iter([1, 2, 3]), depth=2)) == [1, 2, 3]
