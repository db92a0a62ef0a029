"""RWKV of version 4, as `transformers` has it: a language model with a state in the place of attention."""

from __future__ import annotations

from ..layouts import Entry, Family, Layout, each, linear, norm, only, same
from ..settings import Flag, Like, Number, Setting, SettingsTable, Size

_BLOCKS, _OURS = "rwkv.blocks.{i}.", "stack.blocks.{i}."

PER_CHANNEL = Layout(
    "(1, 1, e) to (e)",
    lambda arrays: [array.reshape(array.shape[-1]) if array.shape[:2] == (1, 1) else array for array in arrays],
    lambda arrays, _: [array[None, None] for array in arrays],
    (3,),
)


def _mixes(theirs: str, ours: str, *parts: str) -> tuple[Entry, ...]:
    """The weights with which tokens and those before them are mixed."""
    return tuple(
        Entry((f"{_BLOCKS}{theirs}.time_mix_{part}",), (f"{_OURS}{ours}.mix_{part}.mu",), PER_CHANNEL)
        for part in parts
    )  # fmt: skip


def _products(theirs: str, ours: str, *parts: str) -> tuple[Entry, ...]:
    rows = (linear(f"{_BLOCKS}{theirs}.{part}", f"{_OURS}{ours}.{part}", bias=False) for part in parts)
    return tuple(entry for row in rows for entry in row)


RWKV = Family(
    model_type="rwkv",
    architectures={"RwkvForCausalLM": "language"},
    prefix="rwkv.",
    settings=SettingsTable(
        (
            Setting("vocab_size", "vocabulary"),
            Setting("hidden_size", "embed_dim"),
            Setting("num_hidden_layers", "depth", Size(most=10_000)),
            Setting("attention_hidden_size", "time_hidden", Size(), Like("embed_dim")),
            Setting("intermediate_size", "hidden", Size(optional=True)),
            Setting("context_length", "context", Size(), 1024),
            Setting("layer_norm_epsilon", "eps", Number(), 1e-5),
            Setting("tie_word_embeddings", "tied", Flag(), False),
        ),
        ignored={"rescale_every": "halves what lies between blocks in half precision; the next norm takes it back"},
        always={"convention": "official"},
    ),
    tensors=(
        *same("rwkv.embeddings.weight", "tokens.weight"),
        *norm("rwkv.blocks.0.pre_ln", "token_norm"),
        *each(
            "depth",
            norm(_BLOCKS + "ln1", _OURS + "token_norm"),
            same(_BLOCKS + "attention.time_decay", _OURS + "token_mixer.time_decay"),
            same(_BLOCKS + "attention.time_first", _OURS + "token_mixer.time_first"),
            _mixes("attention", "token_mixer", "key", "value", "receptance"),
            _products("attention", "token_mixer", "key", "value", "receptance", "output"),
            norm(_BLOCKS + "ln2", _OURS + "channel_norm"),
            _mixes("feed_forward", "channel_mixer", "key", "receptance"),
            _products("feed_forward", "channel_mixer", "key", "receptance", "value"),
        ),
        *norm("rwkv.ln_out", "stack.norm"),
        *only(linear("head", "head", bias=False), tied=False),
    ),
    copies={"head.weight": "rwkv.embeddings.weight"},
)
