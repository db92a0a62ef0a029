"""How a model writes, measured alike for ours and for peers: seconds of a further token after prompts of some lengths.

A workload is a form of the weights and the length of a prompt, as "int8-256". A line of JSON for each:
`{"workload": "int8-256", "peer": "wonderland", "token_ms": .., "prompt_ms": ..}`. Only the standard library is used
here. A further token is the difference of writing many and of writing one, so that reading the prompt does not count;
greedy, with the sizes of the smallest GPT-2.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

FORMS = ("float32", "bfloat16", "int8", "int8x8", "int4")  # of weights; x8: of what they are multiplied by, too
LENGTHS = (16, 256, 512, 960)  # of prompts
SIZES = {"vocabulary": 50_257, "context": 1_024, "embed_dim": 768, "num_heads": 12, "depth": 12}
NEW = 33  # tokens that are written
Write = Callable[[int, int], object]  # (length of the prompt, how many tokens)


class Workload(NamedTuple):
    form: str
    length: int

    @classmethod
    def named(cls, name: str) -> Workload:
        form, length = name.split("-")
        return cls(form, int(length))

    def __str__(self) -> str:
        return f"{self.form}-{self.length}"


def seconds_of(write: Write, length: int, rounds: int) -> tuple[float, float]:
    """The best times of a further token after a prompt, and of reading the prompt and writing one."""
    best = dict.fromkeys((1, NEW), float("inf"))
    for count in best:
        write(length, count)
    for _ in range(rounds):
        for count in best:
            start = time.perf_counter()
            write(length, count)
            best[count] = min(best[count], time.perf_counter() - start)
    # of the best times, not the best difference: that is of the round in which the prompt alone was disturbed
    return (best[NEW] - best[1]) / (NEW - 1), best[1]


def main(peer: str, makers: Mapping[str, Callable[[], Write]]) -> None:
    """Measure the workloads that are asked for, of the forms that there is a maker of models for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("workloads", nargs="*", default=[f"{form}-{LENGTHS[0]}" for form in makers])
    parser.add_argument("--seconds", type=float, default=4.0)  # as all processes that are measured have it
    options = parser.parse_args()
    made: dict[str, Write] = {}
    for workload in map(Workload.named, options.workloads):
        form, length = workload
        if form not in makers:
            continue
        if form not in made:
            made = {form: makers[form]()}  # one model at a time
        token, prompt = seconds_of(made[form], length, max(4, int(options.seconds)))
        line = {"workload": str(workload), "peer": peer, "token_ms": token * 1e3, "prompt_ms": prompt * 1e3}
        print(json.dumps(line), flush=True)
