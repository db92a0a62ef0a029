"""How long `import wonderland` takes beside `import numpy`, each in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
import time

from .interleaved import report

ROUNDS = 9


def _seconds(statement: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - start


def main() -> None:
    best = {"pass": 1e9, "import numpy": 1e9, "import wonderland": 1e9}
    for _ in range(ROUNDS):
        for statement in best:
            best[statement] = min(best[statement], _seconds(statement))
    numpy, ours = (best[s] - best["pass"] for s in ("import numpy", "import wonderland"))
    report("import", ours * 1e3, numpy * 1e3, "ms", f"at most NumPy's {numpy * 1e3:.0f} ms + 100 ms")


if __name__ == "__main__":
    main()
