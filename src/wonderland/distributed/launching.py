"""Several processes of one program on this machine: started, watched and ended together."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import IO

from ..engines.native.threads import get_threads, is_chosen
from .environment import LAUNCHED
from .joining import LIFELINE
from .meeting_point import MeetingPoint

GRACE = 5.0  # seconds that processes have to end by themselves when one of them has failed
LOOK = 0.05  # seconds between two looks at the processes


@dataclass
class Worker:
    """One of the processes, and the last that it has said on its error output."""

    rank: int
    process: subprocess.Popen[bytes]
    said: deque[str] = field(default_factory=lambda: deque(maxlen=20))
    readers: list[threading.Thread] = field(default_factory=list)

    def last(self) -> str:
        """The last line of its error output, or of those the last that is an error and no remark on it."""
        errors = [line for line in self.said if re.match(r"[\w. ]*(Error|Exception|Interrupt|error)\b", line)]
        return next(reversed(errors or self.said), "")

    def ended(self) -> str:
        """How it has ended, in words."""
        code = self.process.returncode
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return f"ended with exit code {code}"


@dataclass(frozen=True)
class Ending:
    """How a launch has ended: the exit code, and what to say of the process that failed first."""

    code: int
    message: str = ""
    interrupted: bool = False


def launch(command: Sequence[str], count: int, write: Callable[[int, bytes, bool], None]) -> Ending:
    """Run `count` processes of a command until all have ended, or one has failed and the others are ended, too.

    `write(rank, line, is_error)` is given what they write. Ctrl-C and SIGTERM are passed on to all of them, once.
    """
    point = MeetingPoint(count)
    threading.Thread(target=point.serve, name="wonderland-meeting-point", daemon=True).start()
    lifeline, ours = os.pipe()
    workers: list[Worker] = []
    try:
        with _passing_on_signals(workers) as heard:
            for rank in range(count):
                workers.append(_start(rank, count, command, point.port, lifeline, write))
            failed = _wait(workers)
            if failed is not None and not heard:
                _end(workers)
        for worker in workers:
            worker.process.wait()
            for reader in worker.readers:
                reader.join(GRACE)
    finally:
        point.close()
        os.close(lifeline)
        os.close(ours)
        for worker in workers:
            if worker.process.poll() is None:
                worker.process.kill()
    if heard:
        return Ending(128 + heard[0], interrupted=True)
    if failed is None:
        return Ending(0)
    code, last = failed.process.returncode, failed.last()
    message = f"process {failed.rank} of {count} {failed.ended()}{f': {last}' if last else ''}"
    return Ending(code if code > 0 else 128 - code, message)


def _start(
    rank: int, count: int, command: Sequence[str], port: int, lifeline: int, write: Callable[[int, bytes, bool], None]
) -> Worker:
    environment = {
        **os.environ,
        "RANK": str(rank),
        "WORLD_SIZE": str(count),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        LAUNCHED: "1",
        LIFELINE: str(lifeline),
        "PYTHONUNBUFFERED": "1",
    }
    if not is_chosen():
        environment["WONDERLAND_THREADS"] = str(max(1, get_threads() // count))
    process = subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        pass_fds=[lifeline],
        start_new_session=True,  # Ctrl-C reaches the launcher, which passes it on
    )
    worker = Worker(rank, process)
    for stream, is_error in ((process.stdout, False), (process.stderr, True)):
        assert stream is not None  # both are pipes
        reader = threading.Thread(target=_read, args=(worker, stream, is_error, write), daemon=True)
        worker.readers.append(reader)
        reader.start()
    return worker


def _read(worker: Worker, stream: IO[bytes], is_error: bool, write: Callable[[int, bytes, bool], None]) -> None:
    for line in stream:
        if is_error and (text := line.decode("utf-8", "replace").strip()):
            worker.said.append(text)
        write(worker.rank, line, is_error)


def _wait(workers: list[Worker]) -> Worker | None:
    """Wait until all have ended well, or one has not: that one."""
    while True:
        running = False
        for worker in workers:
            code = worker.process.poll()
            if code:
                return worker
            running = running or code is None
        if not running:
            return None
        time.sleep(LOOK)


def _end(workers: list[Worker]) -> None:
    """End those that still run: they may say themselves what is wrong, if it is the same with all of them."""
    end = time.monotonic() + GRACE / 2
    while time.monotonic() < end and any(worker.process.poll() is None for worker in workers):
        time.sleep(LOOK)
    for number in (signal.SIGTERM, signal.SIGKILL):
        for worker in workers:
            if worker.process.poll() is None:
                worker.process.send_signal(number)
        end = time.monotonic() + GRACE / 2
        while time.monotonic() < end and any(worker.process.poll() is None for worker in workers):
            time.sleep(LOOK)


@contextlib.contextmanager
def _passing_on_signals(workers: list[Worker]) -> Iterator[list[int]]:
    """Pass Ctrl-C and SIGTERM on to the processes; those that do not end are killed by a third one."""
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        for worker in workers:
            if worker.process.poll() is None:
                worker.process.send_signal(signal.SIGKILL if len(heard) > 2 else number)

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield heard
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
