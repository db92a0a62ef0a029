"""T5: an encoder-decoder with relative positions in buckets, RMSNorm, no biases, and scores that are not scaled."""

from __future__ import annotations

from collections.abc import Sequence

from ..layouts import Entry, Family, each, linear, norm, only, same
from ..settings import Choice, Flag, Like, Number, Setting, SettingsTable, Size

_DROPOUT = "dropout, off when a model is read"
_PROJECTIONS = (("q", "query"), ("k", "key"), ("v", "value"), ("o", "output"))


def _attention(theirs: str, ours: str) -> Sequence[Entry]:
    return [row for t, o in _PROJECTIONS for row in linear(f"{theirs}.{t}", f"{ours}.{o}", bias=False)]


def _feed_forward(theirs: str, ours: str) -> Sequence[Entry]:
    return (
        *only(linear(f"{theirs}.wi", f"{ours}.up", bias=False), gated=False),
        *only(linear(f"{theirs}.wi_0", f"{ours}.gated.gate", bias=False), gated=True),
        *only(linear(f"{theirs}.wi_1", f"{ours}.gated.value", bias=False), gated=True),
        *linear(f"{theirs}.wo", f"{ours}.down", bias=False),
    )


def _stack(side: str, over: str, cross: bool) -> tuple[Entry, ...]:
    """The blocks of one side; the first one has the biases of relative positions for all."""
    block, ours = side + ".block.{i}.layer.", side + ".blocks.{i}."
    last = 2 if cross else 1
    between = (
        norm(block + "1.layer_norm", ours + "norm_cross", bias=False),
        _attention(block + "1.EncDecAttention", ours + "cross"),
    )
    return (
        *same(
            f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight",
            f"{side}.blocks.0.attention.positions.weight",
        ),
        *each(
            over,
            norm(block + "0.layer_norm", ours + "norm1", bias=False),
            _attention(block + "0.SelfAttention", ours + "attention"),
            *(between if cross else ()),
            norm(f"{block}{last}.layer_norm", ours + "norm2", bias=False),
            _feed_forward(f"{block}{last}.DenseReluDense", ours + "feed_forward"),
        ),
        *norm(f"{side}.final_layer_norm", f"{side}.norm", bias=False),
    )


T5 = Family(
    model_type="t5",
    architectures={"T5ForConditionalGeneration": "language", "T5WithLMHeadModel": "language"},
    untied="lm_head.weight",  # the config of today says "tied" for all
    settings=SettingsTable(
        read=(
            Setting("vocab_size", "vocabulary"),
            Setting("d_model", "embed_dim"),
            Setting("d_ff", "hidden"),
            Setting("num_layers", "encoder_layers", Size(most=10_000)),
            Setting("num_decoder_layers", "decoder_layers", Size(most=10_000), Like("encoder_layers")),
            Setting("num_heads", "num_heads"),
            Setting("d_kv", "head_size"),
            Setting("relative_attention_num_buckets", "buckets", Size(least=4), 32),
            Setting("relative_attention_max_distance", "max_distance", Size(most=1 << 20), 128),
            # "gated-gelu" is the tanh form, whatever its name says
            Setting(
                "feed_forward_proj",
                "activation",
                Choice({"relu": "relu", "gelu": "gelu", "gated-gelu": "gelu_tanh", "gated-silu": "silu"}),
                "relu",
            ),
            Setting(
                "feed_forward_proj",
                "gated",
                Choice({"relu": False, "gelu": False, "gated-gelu": True, "gated-silu": True}),
                "relu",
            ),
            Setting("layer_norm_epsilon", "eps", Number(), 1e-6),
            Setting("tie_word_embeddings", "tied", Flag(), True),
            # what the decoder gives is divided by the root of the width, if so; files of today have the key
            Setting("scale_decoder_outputs", "scaled", Flag(), Like("tied")),
        ),
        fixed={"is_decoder": (False,)},
        ignored={
            "dropout_rate": _DROPOUT,
            "classifier_dropout": _DROPOUT,
            "dense_act_fn": "follows from feed_forward_proj",
            "is_gated_act": "follows from feed_forward_proj",
            "n_positions": "the longest texts of its training; positions are relative",
            "output_past": "says nothing about the model's outputs",
        },
    ),
    tensors=(
        *same("shared.weight", "tokens.weight"),
        *_stack("encoder", "encoder_layers", cross=False),
        *_stack("decoder", "decoder_layers", cross=True),
        *only(linear("lm_head", "head", bias=False), tied=False),
    ),
    copies={
        "encoder.embed_tokens.weight": "shared.weight",
        "decoder.embed_tokens.weight": "shared.weight",
        "lm_head.weight": "shared.weight",
    },
    ignored={
        # the first files have one for the second attention, too, which nothing reads
        "decoder.block.{i}.layer.{i}.EncDecAttention.relative_attention_bias.weight": "not used by the model",
    },
)
