"""`python -m benchmarks.peers.transformers_decoding float32-16`: as `benchmarks.our_decoding`, with `transformers`."""

from __future__ import annotations

import functools

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from ..decoding import SIZES, Write, main
from ..measuring import threads

TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def made(form: str) -> Write:
    torch.set_num_threads(threads())
    model = GPT2LMHeadModel(GPT2Config()).eval().to(TYPES[form])
    ids = torch.from_numpy(np.random.default_rng(0).integers(SIZES["vocabulary"], size=(1, SIZES["context"])))

    def write(length: int, count: int) -> object:
        prompt = ids[:, :length]
        settings = {"max_new_tokens": count, "min_new_tokens": count, "do_sample": False, "pad_token_id": 0}
        with torch.inference_mode():
            return model.generate(prompt, attention_mask=torch.ones_like(prompt), **settings)

    return write


if __name__ == "__main__":
    main("transformers", {form: functools.partial(made, form) for form in TYPES})
