"""How a model writes, measured alike for ours and for peers: seconds of a further token after prompts of some lengths.

A line of JSON for each length: `{"workload": "16", "peer": "wonderland", "token_ms": ..}`. Only the standard library
is used here. A further token is the difference of writing many and of writing one, so that reading the prompt does not
count; greedy, in float32, with the sizes of the smallest GPT-2.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

LENGTHS = (16, 256, 512, 960)  # of prompts
SIZES = {"vocabulary": 50_257, "context": 1_024, "embed_dim": 768, "num_heads": 12, "depth": 12}
NEW = 33  # tokens that are written
Write = Callable[[int, int], object]  # (length of the prompt, how many tokens)


def token_seconds(write: Write, length: int, rounds: int) -> float:
    """The best time of a further token after a prompt."""
    write(length, 1)
    write(length, NEW)
    best = float("inf")
    for _ in range(rounds):
        times = []
        for count in (1, NEW):
            start = time.perf_counter()
            write(length, count)
            times.append(time.perf_counter() - start)
        best = min(best, (times[1] - times[0]) / (NEW - 1))
    return best


def main(peer: str, write: Write) -> None:
    """Measure the lengths that are asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("lengths", nargs="*", default=[str(n) for n in LENGTHS])
    parser.add_argument("--seconds", type=float, default=4.0)  # as all processes that are measured have it
    options = parser.parse_args()
    for length in map(int, options.lengths):
        best = token_seconds(write, length, max(2, int(options.seconds)))
        print(json.dumps({"workload": str(length), "peer": peer, "token_ms": best * 1e3}), flush=True)
