"""Writing with a cache: milliseconds of a further token, by the form of the weights and its place, beside peers.

Every token reads all weights once. So the limit is the bytes of the weights, and of the keys and values so far, by the
speed at which memory is read.
"""

from __future__ import annotations

import math
import sys
import time

import numpy as np

import wonderland as wl

from .decoding import FORMS, LENGTHS, NEW, SIZES, Workload
from .options import Options
from .printed import Table, cell
from .rivals import OURS, Rival, has, run

# of a weight, with the scales of groups
BITS = {"float32": 32.0, "bfloat16": 16.0, "int8": 8.0, "int8x8": 8.0, "int4": 4 + 32 / 32}
PEERS = {"transformers": "transformers", "ctranslate2": "ctranslate2", "llamacpp": "llama_cpp"}  # with their packages
Best = dict[tuple[str, str], float]  # by peer and workload


def main(options: Options | None = None) -> None:
    options = options or Options()
    names = options.workloads or [f"{form}-{length}" for form in FORMS for length in LENGTHS]
    workloads = [Workload.named(name) for name in names]
    everybody = [Rival(OURS, OURS, (sys.executable, "-m", "benchmarks.our_decoding"))]
    for peer, package in PEERS.items():
        rival = Rival(peer, package, (options.peers, "-m", f"benchmarks.peers.{peer}_decoding"))
        if peer not in options.skip and has(options.peers, rival):
            everybody.append(rival)
    tokens: Best = {}
    prompts: Best = {}
    speed = bandwidth()
    for _ in range(options.rounds):
        for form in dict.fromkeys(w.form for w in workloads):
            for rival in everybody:
                asked = [str(w) for w in workloads if w.form == form]
                for name, line in run(rival, asked, options.seconds).items():
                    for best, what in ((tokens, "token_ms"), (prompts, "prompt_ms")):
                        best[rival.name, name] = min(line[what], best.get((rival.name, name), math.inf))
        speed = max(speed, bandwidth())
    peers = [rival.name for rival in everybody[1:]]
    columns = ["weights, place", "ours, ms", "tokens/s", *[f"{peer} / ours" for peer in peers], "share of the limit"]
    title = f"A token of GPT-2 (124 M, one row); memory is read at {speed / 1e9:.1f} GB/s"
    table = Table(title, columns, options, absolute=["ours, ms", "tokens/s"])
    for w in workloads:
        if (mine := tokens.get((OURS, str(w)))) is not None:
            limit = traffic(w.form, w.length + NEW // 2) / speed * 1e3
            ratios = [cell(r, ".2f") for r in _ratios(tokens, w, peers)]
            table.row(str(w), f"{mine:.2f}", f"{1e3 / mine:.1f}", *ratios, f"{limit / mine:.0%}")
    columns = ["weights, length", "ours, ms", *[f"{peer} / ours" for peer in peers]]
    table = Table("Reading the prompt and writing one token", columns, options, absolute=["ours, ms"])
    for w in workloads:
        if (mine := prompts.get((OURS, str(w)))) is not None:
            table.row(str(w), f"{mine:.1f}", *[cell(r, ".2f") for r in _ratios(prompts, w, peers)])


def _ratios(best: Best, workload: Workload, peers: list[str]) -> list[float | None]:
    name = str(workload)
    return [best[peer, name] / best[OURS, name] if (peer, name) in best else None for peer in peers]


def traffic(form: str, place: int) -> float:
    """Bytes that a token at a place needs: the weights, of which the table of tokens is the last matrix, and keys and
    values, in float16 beside weights of few bits. Biases, norms and scales of rows are float32."""
    e, layers, rows = SIZES["embed_dim"], SIZES["depth"], SIZES["vocabulary"]
    weights = BITS[form] / 8 * (rows * e + layers * 12 * e * e)
    scales = 4.0 * (rows + layers * 9 * e) if form == "int8" else 0.0
    kept = 4.0 if form == "float32" else 2.0
    return weights + scales + 4.0 * layers * 13 * e + kept * 2 * layers * e * place


def bandwidth(megabytes: int = 512) -> float:
    """Bytes per second at which all threads read memory that no cache holds: the best of several sums of its numbers.

    They are added up from one end to the other, or in several stretches at a time, which is faster on some machines.
    """
    x = wl.asarray(np.ones((megabytes << 8, 1 << 10), np.float32))
    sums = [wl.jit(lambda x: wl.sum(x, axis=1)), wl.jit(lambda x: x @ wl.ones((x.shape[1], 1)))]
    best = math.inf
    with wl.no_grad():
        for turn in range(8):
            for total in sums:
                start = time.perf_counter()
                total(x)
                best = min(best, time.perf_counter() - start) if turn else best  # the first compiles
    return x.nbytes / best


if __name__ == "__main__":
    main()
