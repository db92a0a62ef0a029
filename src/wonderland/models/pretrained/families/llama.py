"""Decoders with rotary positions, RMSNorm and gated feed-forward layers: LLaMA, Mistral, Qwen2 and Qwen3.

They differ in which linear layers have biases, in a window, and in the norms of queries and keys.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..layouts import Entry, Family, each, linear, norm, only, same
from ..settings import ACTIVATIONS, Choice, Flag, Like, Number, RotaryBase, RotaryScaling, Setting, SettingsTable, Size

_THEIRS = "model.layers.{i}."
_OURS = "stack.blocks.{i}."
_WINDOW_WORDS = "says which layers have windows, of which there are none without use_sliding_window"
_IGNORED = {
    "attention_dropout": "dropout, off when a model is read",
    "pretraining_tp": "the same product in slices",
}
_SIZES = (
    Setting("vocab_size", "vocabulary"),
    Setting("hidden_size", "embed_dim"),
    Setting("intermediate_size", "hidden"),
    Setting("num_hidden_layers", "depth", Size(most=10_000)),
    Setting("num_attention_heads", "num_heads"),
    Setting("num_key_value_heads", "kv_heads", Size(), Like("num_heads")),
    Setting("head_dim", "head_size", Size(), Like("embed_dim", over="num_heads")),
    Setting("max_position_embeddings", "context", Size(), 2048),
    Setting("hidden_act", "activation", Choice(ACTIVATIONS), "silu"),
    Setting("rope_theta", "rope_base", RotaryBase(), 10000.0),
    Setting("rope_scaling", "rope_scaling", RotaryScaling()),
    Setting("rms_norm_eps", "eps", Number(), 1e-6),
    Setting("tie_word_embeddings", "tied", Flag(), False),
)


def _tensors(biases: Mapping[str, bool | str], head_norms: bool = False) -> tuple[Entry, ...]:
    """The table; `biases` says of which layers the biases are there, or which setting says so."""
    attention, mlp = _THEIRS + "self_attn.", _THEIRS + "mlp."
    norms = (
        norm(attention + "q_norm", _OURS + "attention.query_norm", bias=False),
        norm(attention + "k_norm", _OURS + "attention.key_norm", bias=False),
    )
    return (
        *same("model.embed_tokens.weight", "tokens.weight"),
        *each(
            "depth",
            norm(_THEIRS + "input_layernorm", _OURS + "norm1", bias=False),
            linear(attention + "q_proj", _OURS + "attention.query", biases["inputs"]),
            linear(attention + "k_proj", _OURS + "attention.key", biases["inputs"]),
            linear(attention + "v_proj", _OURS + "attention.value", biases["inputs"]),
            linear(attention + "o_proj", _OURS + "attention.output", biases["output"]),
            *(norms if head_norms else ()),
            norm(_THEIRS + "post_attention_layernorm", _OURS + "norm2", bias=False),
            linear(mlp + "gate_proj", _OURS + "feed_forward.gated.gate", biases["feed_forward"]),
            linear(mlp + "up_proj", _OURS + "feed_forward.gated.value", biases["feed_forward"]),
            linear(mlp + "down_proj", _OURS + "feed_forward.down", biases["feed_forward"]),
        ),
        *norm("model.norm", "stack.norm", bias=False),
        *only(linear("lm_head", "head", bias=False), tied=False),
    )


def _family(
    model_type: str,
    name: str,
    tensors: tuple[Entry, ...],
    settings: tuple[Setting, ...] = (),
    fixed: Mapping[str, tuple[object, ...]] | None = None,
    ignored: Mapping[str, str] | None = None,
    always: Mapping[str, object] | None = None,
) -> Family:
    return Family(
        model_type=model_type,
        architectures={f"{name}ForCausalLM": "language"},
        prefix="model.",
        settings=SettingsTable((*_SIZES, *settings), fixed or {}, _IGNORED | dict(ignored or {}), always or {}),
        tensors=tensors,
        copies={"lm_head.weight": "model.embed_tokens.weight"},
        ignored={
            "model.layers.{i}.self_attn.rotary_emb.inv_freq": "follows from the settings",
            "model.rotary_emb.inv_freq": "follows from the settings",
        },
    )


_ATTENTION_BIAS = (
    Setting("attention_bias", "qkv_bias", Flag(), False),
    Setting("attention_bias", "out_bias", Flag(), False),
)
_NO_BIAS = {"inputs": False, "output": False, "feed_forward": False}
_QWEN_WINDOWS = {"sliding_window": _WINDOW_WORDS, "max_window_layers": _WINDOW_WORDS, "layer_types": _WINDOW_WORDS}

LLAMA = _family(
    "llama",
    "Llama",
    _tensors({"inputs": "qkv_bias", "output": "out_bias", "feed_forward": "mlp_bias"}),
    settings=(*_ATTENTION_BIAS, Setting("mlp_bias", "mlp_bias", Flag(), False)),
)
MISTRAL = _family(
    "mistral", "Mistral", _tensors(_NO_BIAS), settings=(Setting("sliding_window", "window", Size(optional=True)),)
)
QWEN2 = _family(
    "qwen2",
    "Qwen2",
    _tensors({"inputs": True, "output": False, "feed_forward": False}),
    always={"qkv_bias": True},
    fixed={"use_sliding_window": (False,)},
    ignored=_QWEN_WINDOWS,
)
QWEN3 = _family(
    "qwen3",
    "Qwen3",
    _tensors({"inputs": "qkv_bias", "output": "out_bias", "feed_forward": False}, head_norms=True),
    settings=_ATTENTION_BIAS,
    always={"qk_norm": True},
    fixed={"use_sliding_window": (False,)},
    ignored=_QWEN_WINDOWS,
)
