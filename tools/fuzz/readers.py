"""Damaged files for every reader: each is read, or refused with one of the project's errors, in little time and memory.

A child process reads, so that a crash of a library or an allocation without bounds is a failure like any other. Case k
of a seed is always the same: `python -c "from tools.fuzz import readers; readers.replay(SEED, K)"` shows it again.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .outcome import Outcome

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 20  # for one case, on a busy machine
MEMORY = 768 << 20  # bytes that a case may add to what the process has
HARD_MEMORY = 3 << 30  # address space beyond that of the start, at which allocations fail
BOMB_SHARE = 0.004
SILENCE = 120  # seconds after which a child that says nothing is ended


class _TooLong(BaseException):
    """A case is not done in time; no `except Exception` on the way stops it."""


def run(seconds: float, seed: int, show: Callable[[str], None], cases: int | None = None) -> Outcome:
    """Damage and read files for so many seconds, or until there were so many cases."""
    outcome = Outcome()
    counts: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    end = time.monotonic() + seconds
    first = 0
    while time.monotonic() < end and (cases is None or first < cases):
        last = None
        for line in _child(seed, first, -1 if cases is None else cases - first, end - time.monotonic()):
            if "case" in line:
                last = line
                first = line["case"] + 1
            elif "done" in line:
                outcome.tried += 1
                counts[line["done"]] += 1
                refused[line["done"]] += line["refused"]
                last = None
            elif "failure" in line:
                outcome.failures.append(line["failure"])
                show(line["failure"])
            elif "died" in line and last is not None:
                text = f"{_title(seed, last['case'], last['reader'])}: the process ended: {line['died']}"
                outcome.tried += 1
                outcome.failures.append(text)
                show(text)
            elif "died" in line:
                outcome.failures.append(f"readers, seed {seed}: the process ended: {line['died']}")
                show(outcome.failures[-1])
                return outcome
    for reader in sorted(counts):
        show(f"{reader:20} {counts[reader]:6} cases, {refused[reader]:6} refused")
    return outcome


def _child(seed: int, first: int, count: int, seconds: float) -> Iterator[dict[str, Any]]:
    """What a child says, line by line; at the end how it died, if it did."""
    settings = os.environ | {
        "ARROW_DEFAULT_MEMORY_POOL": "system",  # others reserve address space
        "WONDERLAND_BACKEND": "numpy",  # the models of runs are small, and compiling them is not what is tested
        "PYTHONPATH": _search_path(),
    }
    command = [sys.executable, "-m", "tools.fuzz.readers", str(seed), str(first), str(count), str(seconds)]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=settings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    lines: queue.Queue[str | None] = queue.Queue()
    errors: list[str] = []
    out, err = process.stdout, process.stderr

    def listen() -> None:
        for line in out:
            lines.put(line)
        lines.put(None)

    threads = [
        threading.Thread(target=listen, daemon=True),
        threading.Thread(target=lambda: errors.extend(err), daemon=True),
    ]
    for thread in threads:
        thread.start()
    silent = False
    try:
        while True:
            try:
                line = lines.get(timeout=SILENCE)
            except queue.Empty:
                silent = True
                break
            if line is None:
                break
            with contextlib.suppress(ValueError):
                yield json.loads(line)
    finally:
        if process.poll() is None and (silent or sys.exc_info()[0] is not None):
            process.kill()
        process.wait()
        for thread in threads:
            thread.join()
        out.close()
        err.close()
    if silent or process.returncode:
        reason = f"nothing for {SILENCE} s" if silent else f"exit code {process.returncode}"
        yield {"died": f"{reason}\n{''.join(errors[-30:])}"}


def _search_path() -> str:
    return os.pathsep.join([str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])


def _title(seed: int, case: int, reader: str) -> str:
    call = f"readers.replay({seed}, {case})"
    return f"{reader}: `python -c 'from tools.fuzz import readers; {call}'`"


# in the child


class Cases:
    """The cases of a seed."""

    def __init__(self, seed: int, folder: str) -> None:
        from .formats import bombs, formats

        self.seed, self.folder = seed, Path(folder)
        self.formats = formats(folder)
        self._seeds: dict[str, list[bytes]] = {}
        self._sound: dict[tuple[str, int], Any] = {}
        self._bombs = bombs()

    def seeds(self, form: Any) -> list[bytes]:
        if form.name not in self._seeds:
            self._seeds[form.name] = form.seeds()
        return self._seeds[form.name]

    def make(self, case: int) -> tuple[Any, bytes, int | None]:
        """The reader, the file, and the number of the sound file if reading must give the same or nothing."""
        rng = random.Random(f"{self.seed}:{case}")
        if rng.random() < BOMB_SHARE:
            name, make = rng.choice(self._bombs)
            return next(form for form in self.formats if form.name == name), make(), None
        form = rng.choice(self.formats)
        number = rng.randrange(len(self.seeds(form)))
        stranger = form if rng.random() < 0.8 else rng.choice(self.formats)
        other = rng.choice(self.seeds(stranger))
        return form, form.damage(self.seeds(form)[number], rng, other), number if form.checksummed else None

    def path(self, form: Any) -> Path:
        place = self.folder / f"{form.name.replace(' ', '-')}" / "class"
        place.mkdir(parents=True, exist_ok=True)
        return place / f"case{form.suffix}"

    def read(self, form: Any, data: bytes) -> Any:
        path = self.path(form)
        path.write_bytes(data)
        return form.read(path)

    def refuses(self, form: Any, data: bytes, number: int | None) -> bool:
        """Read what `make` gave: whether the file was refused. Anything unexpected is raised."""
        from wonderland.errors import WonderlandError

        if number is not None and (form.name, number) not in self._sound:
            self._sound[form.name, number] = self.read(form, self.seeds(form)[number])
        try:
            found = self.read(form, data)
        except WonderlandError:
            return True
        if number is not None and found != self._sound[form.name, number]:
            raise AssertionError("damaged data were read without a word")
        return False


def replay(seed: int, case: int) -> None:
    """Read one case again, with its traceback."""
    with tempfile.TemporaryDirectory() as folder:
        cases = Cases(seed, folder)
        form, data, number = cases.make(case)
        print(f"{form.name}: {len(data)} bytes, {data[:300]!r}")
        print("refused" if cases.refuses(form, data, number) else "read")


def child(seed: int, first: int, count: int, seconds: float) -> None:
    """Work through cases, and say what happens in lines of JSON."""
    faulthandler.enable()
    warnings.simplefilter("ignore")
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        cases = Cases(seed, folder)
        for form in cases.formats:
            cases.read(form, cases.seeds(form)[0])  # loads all that is needed, before memory is counted
        peak = _bounded()
        case = first
        while time.monotonic() < end and (count < 0 or case < first + count):
            form, data, number = cases.make(case)
            _say(case=case, reader=form.name)
            failure, refused = None, False
            try:
                with _in_time():
                    refused = cases.refuses(form, data, number)
            except (Exception, _TooLong) as error:
                failure = "".join(traceback.format_exception(error)[-12:])
            _say(done=form.name, refused=refused)
            now = _peak()
            if now > peak + MEMORY and failure is None:
                failure = f"{(now - peak) >> 20} MB of memory"
            peak = max(peak, now)
            if failure is not None:
                _say(failure=f"{_title(seed, case, form.name)}\n{failure}")
            case += 1


def _say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


@contextlib.contextmanager
def _in_time() -> Iterator[None]:
    def late(*_: Any) -> None:
        raise _TooLong(f"more than {SECONDS} s")

    if not hasattr(signal, "setitimer"):
        yield
        return
    signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _peak() -> int:
    """The most memory that the process has had."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _bounded() -> int:
    """Let allocations beyond all bounds fail from here on; the memory that the process has had until now."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + HARD_MEMORY, resource.RLIM_INFINITY))
    return _peak()


if __name__ == "__main__":
    child(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
