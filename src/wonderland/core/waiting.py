"""A line for those who wait: what takes more than a second says what it is and how far it has come."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator


class Waiting:
    """Counts what is done; after a second a line says so, on a terminal again and again, elsewhere once.

    `total` is 0 if nobody knows it; counts are shown in units of `unit`, which `per` of them make up.
    """

    def __init__(self, what: str, total: int, unit: str, per: int = 1) -> None:
        self._what, self._total, self._unit, self._per = what, total, unit, per
        self._done = 0
        self._start = time.monotonic()
        self._shown = False

    def __enter__(self) -> Waiting:
        return self

    def advance(self, by: int = 1) -> None:
        """So much more is done."""
        self._done += by
        seconds = time.monotonic() - self._start
        if seconds > 1 and sys.stderr is not None and (sys.stderr.isatty() or not self._shown):
            of = f" of {self._total // self._per:,}" if self._total else ""
            text = f"wonderland: {self._what}: {self._done // self._per:,}{of} {self._unit}, {seconds:.0f} s"
            sys.stderr.write(f"\r{text}" if sys.stderr.isatty() else f"{text} ...\n")
            sys.stderr.flush()
            self._shown = True

    def counting(self, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """The blocks, counted as they are taken."""
        for block in blocks:
            self.advance(len(block))
            yield block

    def __exit__(self, *error: object) -> None:
        if self._shown and sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
