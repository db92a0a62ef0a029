"""BERT: an encoder with post-norm, segments, and a head for masked tokens or for classes."""

from __future__ import annotations

from ..layouts import Ends, Family, each, linear, norm, only, same
from ..settings import ACTIVATIONS, Choice, Number, Setting, SettingsTable, Size

_DROPOUT = "dropout, off when a model is read"
_THEIRS = "bert.encoder.layer.{i}."
_OURS = "bert.stack.blocks.{i}."

BERT = Family(
    model_type="bert",
    architectures={
        "BertForMaskedLM": "masked_head",
        "BertForPreTraining": "masked_head",
        "BertForSequenceClassification": "classifier_head",
        "BertForTokenClassification": "token_head",
        "BertModel": "features",
    },
    prefix="bert.",
    body="bert.",
    parts={  # files for masked tokens often have the other heads of their training, too
        "pooler": "bert.pooler.dense.weight",
        "masked_head": "cls.predictions.bias",
        "next_sentence_head": "cls.seq_relationship.weight",
        "classifier_head": "classifier.weight",
    },
    ends={
        "masked_head": Ends(("masked_head",), ("pooler", "next_sentence_head")),
        "classifier_head": Ends(("classifier_head", "pooler")),
        "token_head": Ends(("classifier_head",), ("pooler",)),
        "features": Ends((), ("pooler",)),
    },
    settings=SettingsTable(
        read=(
            Setting("vocab_size", "vocabulary"),
            Setting("hidden_size", "embed_dim"),
            Setting("intermediate_size", "hidden"),
            Setting("num_hidden_layers", "depth", Size(most=10_000)),
            Setting("num_attention_heads", "num_heads"),
            Setting("max_position_embeddings", "context"),
            Setting("type_vocab_size", "segments", Size(), 2),
            Setting("hidden_act", "activation", Choice(ACTIVATIONS), "gelu"),
            Setting("layer_norm_eps", "eps", Number(), 1e-12),
        ),
        fixed={
            "position_embedding_type": ("absolute",),
            "is_decoder": (False,),
            "add_cross_attention": (False,),
            "tie_word_embeddings": (True,),
        },
        ignored={
            "attention_probs_dropout_prob": _DROPOUT,
            "hidden_dropout_prob": _DROPOUT,
            "classifier_dropout": _DROPOUT,
        },
    ),
    tensors=(
        *same("bert.embeddings.word_embeddings.weight", "bert.tokens.weight"),
        *same("bert.embeddings.position_embeddings.weight", "bert.positions.weight"),
        *same("bert.embeddings.token_type_embeddings.weight", "bert.segments.weight"),
        *norm("bert.embeddings.LayerNorm", "bert.norm"),
        *each(
            "depth",
            linear(_THEIRS + "attention.self.query", _OURS + "attention.query"),
            linear(_THEIRS + "attention.self.key", _OURS + "attention.key"),
            linear(_THEIRS + "attention.self.value", _OURS + "attention.value"),
            linear(_THEIRS + "attention.output.dense", _OURS + "attention.output"),
            norm(_THEIRS + "attention.output.LayerNorm", _OURS + "norm1"),
            linear(_THEIRS + "intermediate.dense", _OURS + "feed_forward.up"),
            linear(_THEIRS + "output.dense", _OURS + "feed_forward.down"),
            norm(_THEIRS + "output.LayerNorm", _OURS + "norm2"),
        ),
        *only(linear("bert.pooler.dense", "bert.pooler"), pooler=True),
        *only(linear("cls.predictions.transform.dense", "transform"), masked_head=True),
        *only(norm("cls.predictions.transform.LayerNorm", "norm"), masked_head=True),
        *only(same("cls.predictions.bias", "bias"), masked_head=True),
        *only(linear("cls.seq_relationship", "next_sentence"), next_sentence_head=True),
        *only(linear("classifier", "head"), classifier_head=True),
    ),
    aliases={".LayerNorm.gamma": ".LayerNorm.weight", ".LayerNorm.beta": ".LayerNorm.bias"},
    copies={
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    ignored={"bert.embeddings.position_ids": "0, 1, 2, ..."},
)
