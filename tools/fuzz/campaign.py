"""Many random programs, on several processes; one that crashes or hangs is a failure like any other."""

from __future__ import annotations

import multiprocessing as mp
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from typing import Any

from .outcome import Outcome

LIFE = 1500  # programs of a process: compiled code stays in its memory
PATIENCE = 120.0  # seconds for one program, on a busy machine
MINIMISING = 90.0  # seconds


def failure(seed: int, number: int, small: bool = True, name: str = "native") -> str | None:
    """A report of what is wrong with a program, None if nothing is."""
    from .comparing import problem
    from .generation import random_case
    from .minimising import minimised
    from .writer import RefusedError

    try:
        case = random_case(seed, number)
    except RefusedError as error:
        return report(seed, number, f"{error.__cause__!r} while it is traced", error.case.snippet())
    found = problem(case, name=name)
    if found is None:
        return None
    sort = _sort(found)
    if small:
        case = minimised(case, lambda c: _sort(problem(c, name=name)) == sort, MINIMISING)
    return report(seed, number, problem(case, name=name) or found, case.snippet())


def _sort(found: str | None) -> str | None:
    """What kind of problem it is, so that shortening does not find another one."""
    return None if found is None else found.split(":")[0]


def report(seed: int, number: int, found: str, snippet: str) -> str:
    return f"# program {number} of seed {seed}: {found}\n{snippet}"


def work(seed: int, first: int, step: int, last: int | None, pipe: Connection, small: bool, name: str) -> None:
    """Programs first, first + step, .. until told to stop."""
    import warnings

    warnings.simplefilter("ignore")
    number = first
    for _ in range(LIFE):
        if last is not None and number >= last:
            break
        pipe.send(("begin", number, None))
        pipe.send(("end", number, failure(seed, number, small, name)))
        number += step
    pipe.send(("rest", number, None))


class Worker:
    """A process and where it is."""

    def __init__(self, seed: int, first: int, step: int, last: int | None, small: bool, name: str) -> None:
        self.arguments = seed, step, last, small, name
        self.begin(first)

    def begin(self, number: int) -> None:
        seed, step, last, small, name = self.arguments
        context = mp.get_context("spawn")
        self.pipe, other = context.Pipe(duplex=False)
        self.process = context.Process(target=work, args=(seed, number, step, last, other, small, name), daemon=True)
        self.process.start()
        other.close()
        self.number, self.since = number, time.monotonic()
        self.done = last is not None and number >= last

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def run(
    seconds: float,
    seed: int,
    show: Callable[[str], Any],
    programs: int | None = None,
    workers: int = 1,
    first: int = 0,
    small: bool = True,
    name: str = "native",
) -> Outcome:
    """Programs first, first + 1, .. for so many seconds or so many programs. `show` gets a line now and then."""
    found, start = Outcome(), time.monotonic()
    last = None if programs is None else first + programs
    crew = [Worker(seed, first + k, workers, last, small, name) for k in range(workers)]
    shown = start
    try:
        while (time.monotonic() - start < seconds) and not all(w.done for w in crew):
            for pipe in wait([w.pipe for w in crew if not w.done], timeout=1.0):
                worker = next(w for w in crew if w.pipe is pipe)
                _hear(worker, workers, found, seed, show)
            for worker in crew:
                if not worker.done and time.monotonic() - worker.since > PATIENCE + MINIMISING:
                    worker.stop()
                    _lost(worker, "it does not end", found, seed, show)
                    worker.begin(worker.number + workers)
            if time.monotonic() - shown > 10:
                shown = time.monotonic()
                rate = found.tried / (shown - start)
                show(f"{found.tried} programs, {rate:.1f} a second, {len(found.failures)} failures")
    finally:
        for worker in crew:
            worker.stop()
    return found


def _hear(worker: Worker, step: int, found: Outcome, seed: int, show: Callable[[str], Any]) -> None:
    """One message of a process, or its end."""
    try:
        what, number, text = worker.pipe.recv()
    except EOFError:
        worker.stop()
        _lost(worker, f"the process ended with code {worker.process.exitcode}", found, seed, show)
        worker.begin(worker.number + step)
        return
    worker.number, worker.since = number, time.monotonic()
    if what == "end":
        found.tried += 1
        if text is not None:
            found.failures.append(text)
            show(text)
    elif what == "rest":
        worker.stop()
        worker.begin(number)
        if worker.done:
            worker.stop()


def _lost(worker: Worker, why: str, found: Outcome, seed: int, show: Callable[[str], Any]) -> None:
    from .generation import random_case

    try:
        snippet = random_case(seed, worker.number).snippet()
    except Exception as error:
        snippet = f"# it cannot be written: {error!r}"
    found.tried += 1
    found.failures.append(report(seed, worker.number, why, snippet))
    show(found.failures[-1])
