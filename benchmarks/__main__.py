"""`python -m benchmarks` runs all sections; `python -m benchmarks eager steps mlp cnn` only those named.

`python -m benchmarks report` writes what they find into docs/performance.md, see report.py.
"""

from __future__ import annotations

import importlib
import os
import sys

from .machine import AVX2, describe
from .options import parse

if __name__ == "__main__":
    options = parse(sys.argv[1:])
    if options.workloads:
        known = importlib.import_module("benchmarks.step").ALL
        if strange := set(options.workloads) - set(known):
            sys.exit(f"benchmarks: no workload {', '.join(sorted(strange))}; one of {', '.join(known)}")
    if options.avx2:
        os.environ.update(AVX2)
    if options.report:
        importlib.import_module("benchmarks.report").main(options)
        sys.exit()
    print(describe(options), flush=True)
    for name in options.sections:
        importlib.import_module(f"benchmarks.{name}").main(options)
