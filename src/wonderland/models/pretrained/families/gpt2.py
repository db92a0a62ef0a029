"""GPT-2: learned positions, pre-norm, one matrix for queries, keys and values, a head tied to the embedding."""

from __future__ import annotations

from ..layouts import COLUMN_BLOCKS, SAME, Entry, Family, each, linear, norm, only, same
from ..settings import ACTIVATIONS, Choice, Flag, Number, Setting, SettingsTable, Size

_DROPOUT = "dropout, off when a model is read"
_SUMMARY = "belongs to a head for multiple choice"
_BLOCK = "transformer.h.{i}."
_OURS = "stack.blocks.{i}."


def _conv1d(theirs: str, ours: str) -> tuple[Entry, ...]:
    """A linear layer of GPT-2, whose matrix is (in, out) like ours."""
    return tuple(Entry((f"{theirs}.{part}",), (f"{ours}.{part}",), SAME) for part in ("weight", "bias"))


def _fused(theirs: str, ours: str) -> tuple[Entry, ...]:
    names = ("query", "key", "value")
    return tuple(
        Entry((f"{theirs}.{part}",), tuple(f"{ours}.{name}.{part}" for name in names), COLUMN_BLOCKS)
        for part in ("weight", "bias")
    )


GPT2 = Family(
    model_type="gpt2",
    architectures={"GPT2LMHeadModel": "language", "GPT2Model": "language"},
    prefix="transformer.",
    settings=SettingsTable(
        read=(
            Setting("vocab_size", "vocabulary"),
            Setting("n_positions", "context"),
            Setting("n_embd", "embed_dim"),
            Setting("n_layer", "depth", Size(most=10_000)),
            Setting("n_head", "num_heads"),
            Setting("n_inner", "hidden", Size(optional=True)),  # null: four times the width
            Setting("activation_function", "activation", Choice(ACTIVATIONS), "gelu_new"),
            Setting("layer_norm_epsilon", "eps", Number(), 1e-5),
            Setting("tie_word_embeddings", "tied", Flag(), True),
        ),
        fixed={
            "scale_attn_weights": (True,),
            "scale_attn_by_inverse_layer_idx": (False,),
            "add_cross_attention": (False,),
        },
        ignored={
            "n_ctx": "an older name of n_positions",
            "attn_pdrop": _DROPOUT,
            "embd_pdrop": _DROPOUT,
            "resid_pdrop": _DROPOUT,
            "reorder_and_upcast_attn": "the order of the same computation",
            "summary_activation": _SUMMARY,
            "summary_first_dropout": _SUMMARY,
            "summary_proj_to_labels": _SUMMARY,
            "summary_type": _SUMMARY,
            "summary_use_proj": _SUMMARY,
        },
    ),
    tensors=(
        *same("transformer.wte.weight", "tokens.weight"),
        *same("transformer.wpe.weight", "positions.weight"),
        *each(
            "depth",
            norm(_BLOCK + "ln_1", _OURS + "norm1"),
            _fused(_BLOCK + "attn.c_attn", _OURS + "attention"),
            _conv1d(_BLOCK + "attn.c_proj", _OURS + "attention.output"),
            norm(_BLOCK + "ln_2", _OURS + "norm2"),
            _conv1d(_BLOCK + "mlp.c_fc", _OURS + "feed_forward.up"),
            _conv1d(_BLOCK + "mlp.c_proj", _OURS + "feed_forward.down"),
        ),
        *norm("transformer.ln_f", "stack.norm"),
        *only(linear("lm_head", "head", bias=False), tied=False),
    ),
    copies={"lm_head.weight": "transformer.wte.weight"},
    ignored={
        "transformer.h.{i}.attn.bias": "the causal mask, which is no weight",
        "transformer.h.{i}.attn.masked_bias": "the number that stood for what is masked",
    },
)
