"""`python -m benchmarks.our_decoding float32-16 int8-960`: a further token of a GPT as large as the smallest GPT-2.

Beside weights of few bits keys and values are kept in float16, as llama.cpp keeps them.
"""

from __future__ import annotations

import functools

import numpy as np

import wonderland as wl

from .decoding import FORMS, SIZES, Write, main

CACHES = {"float32": None}


def made(form: str) -> Write:
    model = wl.models.GPT(**SIZES)
    if form != "float32":
        dtype, _, rounded = form.partition("x")
        model = wl.quantize(model, dtype, activations=f"int{rounded}" if rounded else "float")
    ids = np.random.default_rng(0).integers(SIZES["vocabulary"], size=SIZES["context"])

    def write(length: int, count: int) -> object:
        return wl.generation.greedy(model, ids[:length], count, cache_dtype=CACHES.get(form, "float16"))

    return write


if __name__ == "__main__":
    main("wonderland", {form: functools.partial(made, form) for form in FORMS})
