"""ViT: patches and a class token with learned positions, pre-norm."""

from __future__ import annotations

from ..layouts import ONE_ROW, PATCHES, Ends, Entry, Family, each, linear, norm, only, same
from ..settings import ACTIVATIONS, Choice, Flag, Number, Setting, SettingsTable, Size

_DROPOUT = "dropout, off when a model is read"
_POOLER = "belongs to a pooler that the classifier does not have"
_THEIRS = "vit.encoder.layer.{i}."
_OURS = "stack.blocks.{i}."
_EMBEDDINGS = "vit.embeddings."

VIT = Family(
    model_type="vit",
    architectures={"ViTForImageClassification": "classifier_head", "ViTModel": "features"},
    prefix="vit.",
    parts={"classifier_head": "classifier.weight"},
    ends={"classifier_head": Ends(("classifier_head",)), "features": Ends()},
    settings=SettingsTable(
        read=(
            Setting("image_size", "image_size"),
            Setting("patch_size", "patch"),
            Setting("num_channels", "channels", Size(), 3),
            Setting("hidden_size", "embed_dim"),
            Setting("intermediate_size", "hidden"),
            Setting("num_hidden_layers", "depth", Size(most=10_000)),
            Setting("num_attention_heads", "num_heads"),
            Setting("hidden_act", "activation", Choice(ACTIVATIONS), "gelu"),
            Setting("layer_norm_eps", "eps", Number(), 1e-12),
            Setting("qkv_bias", "qkv_bias", Flag(), True),
        ),
        ignored={
            "attention_probs_dropout_prob": _DROPOUT,
            "hidden_dropout_prob": _DROPOUT,
            "encoder_stride": "belongs to a decoder of masked images",
            "pooler_act": _POOLER,
            "pooler_output_size": _POOLER,
        },
    ),
    tensors=(
        Entry((_EMBEDDINGS + "cls_token",), ("class_token.weight",), ONE_ROW),  # (1, 1, width) to (1, width)
        Entry((_EMBEDDINGS + "position_embeddings",), ("positions.weight",), ONE_ROW),
        Entry((_EMBEDDINGS + "patch_embeddings.projection.weight",), ("patches.projection.weight",), PATCHES),
        *same(_EMBEDDINGS + "patch_embeddings.projection.bias", "patches.projection.bias"),
        *each(
            "depth",
            norm(_THEIRS + "layernorm_before", _OURS + "norm1"),
            linear(_THEIRS + "attention.attention.query", _OURS + "attention.query", "qkv_bias"),
            linear(_THEIRS + "attention.attention.key", _OURS + "attention.key", "qkv_bias"),
            linear(_THEIRS + "attention.attention.value", _OURS + "attention.value", "qkv_bias"),
            linear(_THEIRS + "attention.output.dense", _OURS + "attention.output"),
            norm(_THEIRS + "layernorm_after", _OURS + "norm2"),
            linear(_THEIRS + "intermediate.dense", _OURS + "feed_forward.up"),
            linear(_THEIRS + "output.dense", _OURS + "feed_forward.down"),
        ),
        *norm("vit.layernorm", "stack.norm"),
        *only(linear("classifier", "head"), classifier_head=True),
    ),
    ignored={"vit.pooler.dense.weight": _POOLER, "vit.pooler.dense.bias": _POOLER},
)
