"""Writing with a cache: milliseconds of a further token, by its place, beside `transformers` and the limit of memory.

Every token reads all weights once. So the limit is the bytes of the weights, and of the keys and values so far, by the
speed at which memory is read.
"""

from __future__ import annotations

import math
import sys
import time

import numpy as np

import wonderland as wl

from .decoding import LENGTHS, NEW, SIZES
from .options import Options
from .printed import Table
from .rivals import OURS, Rival, has, run


def main(options: Options | None = None) -> None:
    options = options or Options()
    ours = Rival(OURS, OURS, (sys.executable, "-m", "benchmarks.our_decoding"))
    peer = Rival("transformers", "transformers", (options.peers, "-m", "benchmarks.peers.transformers_decoding"))
    taking_part = [r for r in (ours, peer) if r is ours or (r.name not in options.skip and has(options.peers, r))]
    best: dict[tuple[str, str], float] = {}
    for _ in range(options.rounds):
        for rival in taking_part:
            for length, line in run(rival, map(str, LENGTHS), options.seconds).items():
                best[rival.name, length] = min(line["token_ms"], best.get((rival.name, length), math.inf))
    speed = bandwidth()
    columns = ["place", "ours, ms", "tokens/s", "transformers / ours", "share of the limit"]
    title = f"A token of GPT-2 (124 M, float32, one row); memory is read at {speed / 1e9:.1f} GB/s"
    table = Table(title, columns, options, absolute=["ours, ms", "tokens/s"])
    for length in LENGTHS:
        mine, theirs = (best.get((name, str(length))) for name in (OURS, "transformers"))
        if mine is None:
            continue
        limit = traffic(length + NEW // 2) / speed * 1e3
        ratio = "" if theirs is None else f"{theirs / mine:.2f}"
        table.row(str(length), f"{mine:.1f}", f"{1e3 / mine:.1f}", ratio, f"{limit / mine:.0%}")


def traffic(place: int) -> float:
    """Bytes that a token at a place needs: the weights, of which the table of tokens is the last matrix, and keys and
    values."""
    e, layers = SIZES["embed_dim"], SIZES["depth"]
    return 4.0 * (SIZES["vocabulary"] * e + layers * (12 * e * e + 13 * e) + 2 * layers * e * place)


def bandwidth(megabytes: int = 512) -> float:
    """Bytes per second at which all threads read memory that no cache holds: the best of several sums."""
    x = wl.asarray(np.ones((megabytes, 1 << 18), np.float32))
    total = wl.jit(lambda x: wl.sum(x, axis=1))
    total(x)
    best = math.inf
    for _ in range(7):
        start = time.perf_counter()
        total(x)
        best = min(best, time.perf_counter() - start)
    return x.nbytes / best


if __name__ == "__main__":
    main()
