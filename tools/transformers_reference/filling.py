"""Random weights in which every tensor matters: norms are not one, biases not zero, attention neither flat nor hard."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import torch  # type: ignore[import-not-found]  # not in the project's environment

KEPT = re.compile(r"^model\.encoder\.embed_positions\.weight$")  # Whisper's sinusoids are part of its published files
EMBEDDINGS = re.compile(r"embed(_tokens|_positions|dings)|wte|wpe|shared|cls_token")
NORMS = re.compile(r"norm|ln_|ln\d|pre_ln|LayerNorm")
MIXES = re.compile(r"time_mix_")  # of RWKV: shares of two tokens
DECAYS = re.compile(r"time_decay$")  # logarithms: memories of some tokens
UNSCALED = re.compile(r"(SelfAttention|EncDecAttention)\.q\.weight")  # T5 does not divide its scores
CROSS = re.compile(r"EncDecAttention\.o\.|encoder_attn\.out_proj\.")  # else all tokens that follow an input are alike
CONV1D = re.compile(r"\bc_(attn|proj|fc)\.weight")  # GPT-2 keeps its matrices as (in, out)


RECURRENT = {"A_log": 0.7, "dt_bias": -1.5, "dt_proj.bias": -1.5, ".D": 1.0}  # around where Mamba starts its decays


def fill(model: Any, seed: int) -> None:
    """Give all parameters of a model numbers of their own."""
    random = np.random.default_rng(seed)
    for name, parameter in model.named_parameters():
        if KEPT.search(name):
            continue
        shape = tuple(parameter.shape)
        drawn = random.standard_normal(shape)
        values = drawn * _scale(name, shape, model.config)
        if NORMS.search(name) and name.endswith("weight"):
            values = values + 1.0
        if MIXES.search(name):
            values = values + 0.5
        if DECAYS.search(name):
            values = values - 1.0
        values = values + next((shift for end, shift in RECURRENT.items() if name.endswith(end)), 0.0)
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(values.astype(np.float32)))


def _scale(name: str, shape: tuple[int, ...], config: Any) -> float:
    """Embeddings are small beside what the blocks add, or a model with a tied head repeats its last token for ever."""
    if len(shape) == 1 or name.endswith("A_log") or MIXES.search(name):
        return 0.3
    if "relative_attention_bias" in name:
        return 1.0
    if EMBEDDINGS.search(name) and "projection" not in name and not NORMS.search(name):
        return 0.2
    inputs = shape[0] if CONV1D.search(name) else math.prod(shape[1:])
    per_head = config.d_kv if UNSCALED.search(name) else 1
    gain = 1.0 if name.startswith("lm_head") else 0.4 if CROSS.search(name) else 0.8 if ".mixer." in name else 1.4
    return gain / math.sqrt(inputs * per_head)
