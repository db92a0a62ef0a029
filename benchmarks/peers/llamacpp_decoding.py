"""`python -m benchmarks.peers.llamacpp_decoding int8-16`: as `benchmarks.our_decoding`, with llama.cpp.

A GPT-2 with random weights is written as a file of its own format; int8 and int4 are its Q8_0 and Q4_0, groups of 32
weights with a scale each, whose products it makes with activations that are rounded to eight bits.
Needs `pip install llama-cpp-python gguf`, and a C++ compiler for it.
"""

from __future__ import annotations

import functools
import itertools
import tempfile

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, quants
from llama_cpp import Llama

from ..decoding import SIZES, Write, main
from ..measuring import threads

FORMS = {"float32": "F32", "bfloat16": "BF16", "int8": "Q8_0", "int8x8": "Q8_0", "int4": "Q4_0"}  # by the names of ours


def write_model(path: str, form: GGMLQuantizationType) -> None:
    width, random = SIZES["embed_dim"], np.random.default_rng(0)
    writer = GGUFWriter(path, "gpt2")
    writer.add_context_length(SIZES["context"])
    writer.add_embedding_length(width)
    writer.add_feed_forward_length(4 * width)
    writer.add_block_count(SIZES["depth"])
    writer.add_head_count(SIZES["num_heads"])
    writer.add_layer_norm_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([f"t{i}" for i in range(SIZES["vocabulary"])])
    writer.add_token_types([1] * SIZES["vocabulary"])
    writer.add_token_merges(["t 1"])

    def matrix(name: str, rows: int, columns: int, kept: GGMLQuantizationType = form) -> None:
        values = random.normal(0, 0.02, (rows, columns)).astype(np.float32)
        writer.add_tensor(f"{name}.weight", quants.quantize(values, kept), raw_dtype=kept)

    def vectors(name: str, size: int, scale: bool = False) -> None:
        writer.add_tensor(f"{name}.bias", np.zeros(size, np.float32))
        if scale:
            writer.add_tensor(f"{name}.weight", np.ones(size, np.float32))

    matrix("token_embd", SIZES["vocabulary"], width)
    matrix("position_embd", SIZES["context"], width, GGMLQuantizationType.F32)
    vectors("output_norm", width, scale=True)
    for block in (f"blk.{i}" for i in range(SIZES["depth"])):
        vectors(f"{block}.attn_norm", width, scale=True)
        vectors(f"{block}.ffn_norm", width, scale=True)
        shapes = {"attn_qkv": (3, 1), "attn_output": (1, 1), "ffn_up": (4, 1), "ffn_down": (1, 4)}
        for name, (out, into) in shapes.items():
            matrix(f"{block}.{name}", out * width, into * width)
            vectors(f"{block}.{name}", out * width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def made(form: str) -> Write:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/model.gguf"
        write_model(path, GGMLQuantizationType[form])
        model = Llama(
            path,
            n_ctx=SIZES["context"],
            n_batch=SIZES["context"],
            n_ubatch=512,
            n_threads=threads(),
            n_threads_batch=threads(),
            use_mmap=False,
            verbose=False,
        )
    ids = np.random.default_rng(0).integers(SIZES["vocabulary"], size=SIZES["context"]).tolist()

    def write(length: int, count: int) -> object:
        model.reset()
        return [*itertools.islice(model.generate(ids[:length], top_k=1, temp=0.0, repeat_penalty=1.0), count)]

    return write


if __name__ == "__main__":
    main("llamacpp", {form: functools.partial(made, kind) for form, kind in FORMS.items()})
