"""`python -m benchmarks.peers.ctranslate2_decoding int8-16`: as `benchmarks.our_decoding`, with CTranslate2.

A GPT-2 of `transformers` with random weights is converted as CTranslate2 converts them; with int8 it also rounds what
weights are multiplied by to eight bits, which ours does if it is asked to (int8x8).
"""

from __future__ import annotations

import functools
import tempfile

import ctranslate2
import numpy as np
from ctranslate2.converters.transformers import GPT2Loader
from transformers import GPT2Config, GPT2LMHeadModel

from ..decoding import SIZES, Write, main
from ..measuring import threads

FORMS = {"float32": "float32", "int8": "int8", "int8x8": "int8"}  # by the names of ours


def made(form: str) -> Write:
    vocabulary = [f"t{i}" for i in range(SIZES["vocabulary"])]
    spec = GPT2Loader().get_model_spec(GPT2LMHeadModel(GPT2Config()).eval())
    spec.register_vocabulary(vocabulary)
    spec.config.bos_token = spec.config.eos_token = spec.config.unk_token = vocabulary[-1]
    spec.validate()
    spec.optimize(quantization=form)
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        model = ctranslate2.Generator(folder, compute_type=form, inter_threads=1, intra_threads=threads())
    ids = np.random.default_rng(0).integers(SIZES["vocabulary"], size=SIZES["context"])

    def write(length: int, count: int) -> object:
        prompt = [[vocabulary[i] for i in ids[:length]]]
        return model.generate_batch(
            prompt, max_length=count, min_length=count, include_prompt_in_result=False, sampling_topk=1
        )

    return write


if __name__ == "__main__":
    main("ctranslate2", {form: functools.partial(made, kind) for form, kind in FORMS.items()})
