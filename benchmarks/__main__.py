"""`python -m benchmarks` runs them all; `python -m benchmarks eager` only those named."""

from __future__ import annotations

import importlib
import sys

NAMES = ("start", "eager", "memory", "native")

if __name__ == "__main__":
    for name in sys.argv[1:] or NAMES:
        if name not in NAMES:
            sys.exit(f"benchmarks: there is no benchmark {name!r}; one of {', '.join(NAMES)}")
        importlib.import_module(f"benchmarks.{name}").main()
