"""Whisper: convolutions over a log-mel spectrum, an encoder with fixed positions, a decoder with learned ones."""

from __future__ import annotations

from collections.abc import Sequence

from ..layouts import KERNEL, Entry, Family, each, linear, norm, same
from ..settings import ACTIVATIONS, Choice, Flag, Setting, SettingsTable, Size

_DROPOUT = "dropout, off when a model is read"
_AUGMENTED = "masks of spectra, which matter while training only"
_DECODING = "belongs to decoding, and is read there"


def _attention(theirs: str, ours: str) -> Sequence[Entry]:
    """Keys have no bias: it would add the same to all scores of a query."""
    return (
        *linear(theirs + ".q_proj", ours + ".query"),
        *linear(theirs + ".k_proj", ours + ".key", bias=False),
        *linear(theirs + ".v_proj", ours + ".value"),
        *linear(theirs + ".out_proj", ours + ".output"),
    )


def _stack(side: str, over: str, cross: bool) -> tuple[Entry, ...]:
    block, ours = f"model.{side}.layers." + "{i}.", side + ".blocks.{i}."
    between = (
        norm(block + "encoder_attn_layer_norm", ours + "norm_cross"),
        _attention(block + "encoder_attn", ours + "cross"),
    )
    return (
        *same(f"model.{side}.embed_positions.weight", "positions.weight" if cross else "source_positions.weight"),
        *each(
            over,
            norm(block + "self_attn_layer_norm", ours + "norm1"),
            _attention(block + "self_attn", ours + "attention"),
            *(between if cross else ()),
            norm(block + "final_layer_norm", ours + "norm2"),
            linear(block + "fc1", ours + "feed_forward.up"),
            linear(block + "fc2", ours + "feed_forward.down"),
        ),
        *norm(f"model.{side}.layer_norm", f"{side}.norm"),
    )


def _convolution(number: int) -> tuple[Entry, ...]:
    theirs, ours = f"model.encoder.conv{number}", f"conv{number}"
    return Entry((theirs + ".weight",), (ours + ".weight",), KERNEL), *same(theirs + ".bias", ours + ".bias")


WHISPER = Family(
    model_type="whisper",
    architectures={"WhisperForConditionalGeneration": "language"},
    prefix="model.",
    settings=SettingsTable(
        read=(
            Setting("vocab_size", "vocabulary"),
            Setting("num_mel_bins", "bands"),
            Setting("d_model", "embed_dim"),
            Setting("encoder_layers", "encoder_layers", Size(most=10_000)),
            Setting("encoder_attention_heads", "encoder_heads"),
            Setting("encoder_ffn_dim", "encoder_hidden"),
            Setting("decoder_layers", "decoder_layers", Size(most=10_000)),
            Setting("decoder_attention_heads", "decoder_heads"),
            Setting("decoder_ffn_dim", "decoder_hidden"),
            Setting("max_source_positions", "frames"),
            Setting("max_target_positions", "context"),
            Setting("activation_function", "activation", Choice(ACTIVATIONS), "gelu"),
            Setting("scale_embedding", "scale_embedding", Flag(), False),
        ),
        fixed={"tie_word_embeddings": (True,), "use_weighted_layer_sum": (False,)},
        ignored={
            "dropout": _DROPOUT,
            "attention_dropout": _DROPOUT,
            "activation_dropout": _DROPOUT,
            "encoder_layerdrop": _DROPOUT,
            "decoder_layerdrop": _DROPOUT,
            "apply_spec_augment": _AUGMENTED,
            "mask_feature_length": _AUGMENTED,
            "mask_feature_min_masks": _AUGMENTED,
            "mask_feature_prob": _AUGMENTED,
            "mask_time_length": _AUGMENTED,
            "mask_time_min_masks": _AUGMENTED,
            "mask_time_prob": _AUGMENTED,
            "median_filter_width": "belongs to times of words",
            "classifier_proj_size": "belongs to a classifier of sounds",
            "num_hidden_layers": "repeats encoder_layers",
            "max_length": _DECODING,
            "begin_suppress_tokens": _DECODING,
            "suppress_tokens": _DECODING,
            "forced_decoder_ids": _DECODING,
        },
    ),
    tensors=(
        *_convolution(1),
        *_convolution(2),
        *_stack("encoder", "encoder_layers", cross=False),
        *same("model.decoder.embed_tokens.weight", "tokens.weight"),
        *_stack("decoder", "decoder_layers", cross=True),
    ),
    copies={"proj_out.weight": "model.decoder.embed_tokens.weight"},
)
