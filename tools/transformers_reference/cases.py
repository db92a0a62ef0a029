"""The table of models: class, settings, tokenizer, and how a published folder differs from what is saved today."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tokenizers import Tokenizer  # type: ignore[import-not-found]  # not in the project's environment

from . import vocabularies

Config = dict[str, Any]
Tensors = dict[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """One folder: `model` and `config` are classes of `transformers`, `run` is a function of running.py."""

    name: str
    model: str
    config: str
    run: str
    settings: Config
    tokenizer: Callable[[], Tokenizer] | None = None
    special: Config | None = None  # tokens by their part, as config.json and tokenizer_config.json name them
    rewrite: Callable[[Config, Tensors], tuple[Config, Tensors]] | None = None
    shards: int = 1
    seed: int = 0  # the first that is tried; those given were found by trying, under stricter or the same conditions


def as_published_gpt2(config: Config, tensors: Tensors) -> tuple[Config, Tensors]:
    """Without the prefix, and with the causal masks that were saved with the weights."""
    short = {name.removeprefix("transformer."): value for name, value in tensors.items()}
    n = config["n_positions"]
    causal = np.tril(np.ones((1, 1, n, n), np.float32))
    masks = {f"h.{i}.attn.bias": causal for i in range(config["n_layer"])}
    return config | {"n_ctx": n}, short | masks


def as_published_rope(config: Config, tensors: Tensors) -> tuple[Config, Tensors]:
    """`rope_theta` and `rope_scaling` in place of `rope_parameters`, `torch_dtype` in place of `dtype`."""
    config = dict(config)
    rope = config.pop("rope_parameters")
    scaling = {key: value for key, value in rope.items() if key != "rope_theta"}
    config["rope_theta"] = rope["rope_theta"]
    config["rope_scaling"] = None if rope["rope_type"] == "default" else scaling
    config["torch_dtype"] = config.pop("dtype")
    return config, tensors


def as_published_linear_rope(config: Config, tensors: Tensors) -> tuple[Config, Tensors]:
    """The key `type` of the first files with scaled positions, and no size of a head."""
    config, tensors = as_published_rope(config, tensors)
    config["rope_scaling"] = {"type": "linear", "factor": config["rope_scaling"]["factor"]}
    del config["head_dim"]
    return config, tensors


def as_published_bert(config: Config, tensors: Tensors) -> tuple[Config, Tensors]:
    """The names of norms in the first checkpoints, and the class that their config names."""
    old = {".LayerNorm.weight": ".LayerNorm.gamma", ".LayerNorm.bias": ".LayerNorm.beta"}
    renamed = {}
    for name, value in tensors.items():
        for new, first in old.items():
            name = name.replace(new, first)
        renamed[name] = value
    return config | {"architectures": ["BertForMaskedLM"]}, renamed


def as_published_t5(config: Config, tensors: Tensors) -> tuple[Config, Tensors]:
    """`tie_word_embeddings` says whether outputs are scaled, which later versions keep under a name of its own."""
    config = dict(config)
    tied = config.pop("scale_decoder_outputs")
    return config | {"tie_word_embeddings": tied}, tensors


_GPT2_END = "<|endoftext|>"
_SENTENCEPIECE = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "</s>", "unk_token": "<unk>"}
_LLAMA3 = {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>", "pad_token": "<|pad|>"}
_QWEN = {"eos_token": "<|im_end|>", "pad_token": _GPT2_END}
_BERT = {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]", "unk_token": "[UNK]"}
_T5 = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
_WHISPER = {"bos_token": _GPT2_END, "eos_token": _GPT2_END, "pad_token": _GPT2_END}

_BERT_SIZES = {
    "hidden_size": 24,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "max_position_embeddings": 40,
}

CASES = [
    Case(
        name="gpt2",
        seed=4,
        model="GPT2LMHeadModel",
        config="GPT2Config",
        run="decoder",
        settings={"n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 40},
        tokenizer=vocabularies.gpt2,
        special={"bos_token": _GPT2_END, "eos_token": _GPT2_END},
        rewrite=as_published_gpt2,
    ),
    Case(
        name="llama",
        seed=8,
        model="LlamaForCausalLM",
        config="LlamaConfig",
        run="decoder",
        settings={
            "hidden_size": 24,
            "intermediate_size": 40,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 512,
            "rms_norm_eps": 1e-5,
            "rope_parameters": {  # wavelengths 6, 50 and 396: kept, between, and slowed down
                "rope_type": "llama3",
                "rope_theta": 500.0,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 64,
            },
        },
        tokenizer=vocabularies.llama3,
        special=_LLAMA3,
        rewrite=as_published_rope,
        shards=3,
    ),
    Case(
        name="llama_tied",
        model="LlamaForCausalLM",
        config="LlamaConfig",
        run="decoder",
        settings={
            "hidden_size": 24,
            "intermediate_size": 56,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 1,
            "max_position_embeddings": 256,
            "attention_bias": True,
            "mlp_bias": True,
            "tie_word_embeddings": True,
            "rope_parameters": {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0},
        },
        tokenizer=vocabularies.llama2,
        special=_SENTENCEPIECE,
        rewrite=as_published_linear_rope,
    ),
    Case(
        name="mistral",
        seed=4,
        model="MistralForCausalLM",
        config="MistralConfig",
        run="decoder",
        settings={
            "hidden_size": 16,
            "intermediate_size": 48,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 256,
            "sliding_window": 5,
        },
        tokenizer=vocabularies.llama2,
        special=_SENTENCEPIECE,
    ),
    Case(
        name="qwen2",
        model="Qwen2ForCausalLM",
        config="Qwen2Config",
        run="decoder",
        settings={
            "hidden_size": 24,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 256,
            "tie_word_embeddings": True,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0},
        },
        tokenizer=vocabularies.qwen2,
        special=_QWEN,
        rewrite=as_published_rope,
    ),
    Case(
        name="qwen3",
        seed=7,
        model="Qwen3ForCausalLM",
        config="Qwen3Config",
        run="decoder",
        settings={
            "hidden_size": 16,
            "head_dim": 8,
            "intermediate_size": 48,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 256,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0},
        },
        tokenizer=vocabularies.qwen2,
        special=_QWEN,
    ),
    Case(
        name="rwkv",
        model="RwkvForCausalLM",
        config="RwkvConfig",
        run="decoder",
        settings={
            "hidden_size": 16,
            "attention_hidden_size": 24,
            "intermediate_size": 40,
            "num_hidden_layers": 3,
            "context_length": 256,
        },
        tokenizer=vocabularies.gpt2,
        special={"bos_token": _GPT2_END, "eos_token": _GPT2_END},
    ),
    Case(
        name="mamba",  # without biases: transformers lets that of in_proj into the convolution from padding on the left
        seed=859,
        model="MambaForCausalLM",
        config="MambaConfig",
        run="decoder",
        settings={"hidden_size": 24, "state_size": 5, "num_hidden_layers": 2, "time_step_rank": 3},
        tokenizer=vocabularies.gpt2,
        special={"bos_token": _GPT2_END, "eos_token": _GPT2_END, "pad_token": _GPT2_END},
    ),
    Case(
        name="mamba2",
        model="Mamba2ForCausalLM",
        config="Mamba2Config",
        run="decoder",
        settings={
            "hidden_size": 24,
            "state_size": 6,
            "num_hidden_layers": 2,
            "num_heads": 8,
            "head_dim": 6,
            "n_groups": 2,
            "chunk_size": 4,
            "conv_kernel": 3,
            "tie_word_embeddings": False,
        },
        tokenizer=vocabularies.llama2,
        special=_SENTENCEPIECE,
    ),
    Case(
        name="bert",
        model="BertForPreTraining",
        config="BertConfig",
        run="masked",
        settings=_BERT_SIZES,
        tokenizer=vocabularies.bert,
        special=_BERT,
        rewrite=as_published_bert,
    ),
    Case(
        name="bert_classifier",
        model="BertForSequenceClassification",
        config="BertConfig",
        run="classifier",
        settings=_BERT_SIZES | {"num_labels": 3},
        tokenizer=vocabularies.bert,
        special=_BERT,
    ),
    Case(
        name="t5",
        seed=3,
        model="T5ForConditionalGeneration",
        config="T5Config",
        run="encoder_decoder",
        settings={
            "d_model": 24,
            "d_kv": 8,
            "d_ff": 40,
            "num_layers": 2,
            "num_decoder_layers": 2,
            "num_heads": 2,
            "relative_attention_num_buckets": 8,
            "relative_attention_max_distance": 12,
            "feed_forward_proj": "relu",
            "decoder_start_token_id": 0,
        },
        tokenizer=vocabularies.t5,
        special=_T5,
        rewrite=as_published_t5,
    ),
    Case(
        name="t5_gated",
        seed=7,
        model="T5ForConditionalGeneration",
        config="T5Config",
        run="encoder_decoder",
        settings={
            "d_model": 24,
            "d_kv": 8,
            "d_ff": 48,
            "num_layers": 2,
            "num_decoder_layers": 1,
            "num_heads": 2,
            "relative_attention_num_buckets": 8,
            "relative_attention_max_distance": 12,
            "feed_forward_proj": "gated-gelu",
            "tie_word_embeddings": False,
            "decoder_start_token_id": 0,
        },
        tokenizer=vocabularies.t5,
        special=_T5,
        rewrite=as_published_t5,
    ),
    Case(
        name="vit",
        model="ViTForImageClassification",
        config="ViTConfig",
        run="image",
        settings={
            "hidden_size": 24,
            "intermediate_size": 72,
            "num_hidden_layers": 3,
            "num_attention_heads": 3,
            "image_size": 12,
            "patch_size": 4,
            "num_labels": 5,
        },
    ),
    Case(
        name="whisper",
        model="WhisperForConditionalGeneration",
        config="WhisperConfig",
        run="speech",
        settings={
            "d_model": 16,
            "num_mel_bins": 16,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 2,
            "decoder_attention_heads": 2,
            "encoder_ffn_dim": 48,
            "decoder_ffn_dim": 48,
            "max_source_positions": 50,
            "max_target_positions": 40,
            "begin_suppress_tokens": [220, 276],
            "suppress_tokens": [1, 2, 7, 8, 9],
            "decoder_start_token_id": 277,
        },
        tokenizer=vocabularies.whisper,
        special=_WHISPER,
    ),
]
