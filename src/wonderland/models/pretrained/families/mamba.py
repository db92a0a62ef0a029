"""Mamba and Mamba-2: language models of selective state-space blocks."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from ..layouts import KERNEL, Entry, Family, each, linear, norm, only, same
from ..settings import ACTIVATIONS, Choice, Flag, Number, Setting, SettingsTable, Size

_THEIRS = "backbone.layers.{i}."
_MIXER = _THEIRS + "mixer."
_OURS = "stack.blocks.{i}."
_MIXED = _OURS + "token_mixer."
_START = "says how steps start, before training"
_IGNORED = {
    "residual_in_fp32": "the residual stream has the type of the model here",
    "rescale_prenorm_residual": "says how weights start",
    "time_step_min": _START,
    "time_step_max": _START,
    "time_step_floor": _START,
}
_SIZES = (
    Setting("vocab_size", "vocabulary"),
    Setting("hidden_size", "embed_dim"),
    Setting("num_hidden_layers", "depth", Size(most=10_000)),
    Setting("state_size", "state"),
    Setting("conv_kernel", "conv", Size(), 4),
    Setting("expand", "expand", Size(), 2),
    Setting("hidden_act", "activation", Choice(ACTIVATIONS), "silu"),
    Setting("layer_norm_epsilon", "eps", Number(), 1e-5),
    Setting("use_bias", "bias", Flag(), False),
    Setting("use_conv_bias", "conv_bias", Flag(), True),
)


def _tensors(mixer: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """The table around what a block mixes tokens by."""
    return (
        *same("backbone.embeddings.weight", "tokens.weight"),
        *each(
            "depth",
            norm(_THEIRS + "norm", _OURS + "token_norm", bias=False),
            linear(_MIXER + "in_proj", _MIXED + "input", "bias"),
            (Entry((_MIXER + "conv1d.weight",), (_MIXED + "conv.weight",), KERNEL),),
            only(same(_MIXER + "conv1d.bias", _MIXED + "conv.bias"), conv_bias=True),
            mixer,
            linear(_MIXER + "out_proj", _MIXED + "output", "bias"),
        ),
        *norm("backbone.norm_f", "stack.norm", bias=False),
        *only(linear("lm_head", "head", bias=False), tied=False),
    )


def _family(
    model_type: str,
    name: str,
    mixer: tuple[Entry, ...],
    settings: tuple[Setting, ...],
    fixed: Mapping[str, tuple[object, ...]],
    ignored: Mapping[str, str],
) -> Family:
    return Family(
        model_type=model_type,
        architectures={f"{name}ForCausalLM": "language"},
        prefix="backbone.",
        settings=SettingsTable((*_SIZES, *settings), fixed, _IGNORED | dict(ignored)),
        tensors=_tensors(mixer),
        copies={"lm_head.weight": "backbone.embeddings.weight"},
    )


MAMBA = _family(
    "mamba",
    "Mamba",
    (
        *linear(_MIXER + "x_proj", _MIXED + "ssm.project", bias=False),
        *linear(_MIXER + "dt_proj", _MIXED + "ssm.step_size"),
        *same(_MIXER + "A_log", _MIXED + "ssm.A_log"),
        *same(_MIXER + "D", _MIXED + "ssm.D"),
    ),
    settings=(
        Setting("time_step_rank", "rank", Size(optional=True)),
        Setting("tie_word_embeddings", "tied", Flag(), True),
    ),
    fixed={},
    ignored={
        "intermediate_size": "expand times hidden_size",
        "time_step_init_scheme": _START,
        "time_step_scale": _START,
        "use_mambapy": "another way to compute the same",
        "use_associative_scan": "another way to compute the same",
        # of the first folders, under the names of the code that trained them
        "d_inner": "the same as intermediate_size",
        "d_model": "the same as hidden_size",
        "n_layer": "the same as num_hidden_layers",
        "fused_add_norm": "another way to compute the same",
        "pad_vocab_size_multiple": "vocab_size has it already",
        "rms_norm": "the norm is an RMSNorm",
        "ssm_cfg": "is empty in what was published",
    },
)
MAMBA2 = _family(
    "mamba2",
    "Mamba2",
    (
        *same(_MIXER + "dt_bias", _MIXED + "step_bias"),
        *same(_MIXER + "A_log", _MIXED + "A_log"),
        *same(_MIXER + "D", _MIXED + "D"),
        *norm(_MIXER + "norm", _MIXED + "norm", bias=False),
    ),
    settings=(
        Setting("num_heads", "num_heads"),
        Setting("head_dim", "head_size", Size(), 64),
        Setting("n_groups", "groups", Size(), 8),
        Setting("chunk_size", "chunk", Size(), 256),
        Setting("tie_word_embeddings", "tied", Flag(), False),
    ),
    fixed={"time_step_limit": ([0.0, inf], [0.0, {"__float__": "Infinity"}], None), "norm_before_gate": (False,)},
    ignored={"time_step_rank": "Mamba-2 has none", "rms_norm": "the norm is an RMSNorm"},
)
