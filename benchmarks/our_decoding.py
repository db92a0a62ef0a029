"""`python -m benchmarks.our_decoding 16 960`: a further token of a GPT as large as the smallest GPT-2."""

from __future__ import annotations

import numpy as np

import wonderland as wl

from .decoding import SIZES, main


def run() -> None:
    model = wl.models.GPT(**SIZES)
    ids = np.random.default_rng(0).integers(SIZES["vocabulary"], size=SIZES["context"])

    def write(length: int, count: int) -> object:
        return wl.generation.greedy(model, ids[:length], count)

    main("wonderland", write)


if __name__ == "__main__":
    run()
