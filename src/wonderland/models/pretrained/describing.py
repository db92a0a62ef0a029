"""From a model back to settings: what a family's config.json must say so that the same model is built from it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ...core.errors import InputError, WonderlandError
from ...nn.layers.fully_connected import as_activation
from ...nn.mixing.feed_forward import GatedFeedForward
from ...nn.module.containers import ModuleList
from ...nn.module.module import Module
from ..recurrent.mamba import Mamba, Mamba2
from ..recurrent.rwkv import RWKV
from ..transformers.bert import BERT, MaskedLanguageModel, SequenceClassifier, TokenClassifier
from ..transformers.gpt import GPT
from ..transformers.llama import Llama
from ..transformers.t5 import T5
from ..transformers.vit import ViT
from ..transformers.whisper import Whisper
from .building import shapes_of
from .families import FAMILIES
from .layouts import Family
from .origin import Origin
from .settings import ACTIVATIONS, Settings, read_settings, write_settings

__all__ = ["Description", "describe"]

ANY_LENGTH = 32_768  # what a file says of a model that has no bound


class Description(NamedTuple):
    """A model as a member of a family: its head, its settings, its config.json, and how many classes it tells apart."""

    family: Family
    ends: str
    settings: Settings
    config: dict[str, object]
    classes: int


def describe(model: Module) -> Description:
    """The family and the settings from which an equal model would be built, or an error that says what differs."""
    about = next((f for kind, f in ABOUT.items() if type(model) is kind), None)
    if about is None:
        raise InputError(
            f"save_pretrained: a {type(model).__name__} belongs to no published family.",
            "one of " + ", ".join(kind.__name__ for kind in ABOUT) + "; or wl.save(model, path)",
        )
    origin = getattr(model, "origin", None)
    first: Exception | None = None
    for name, ends, settings in about(model):
        family = FAMILIES[name]
        kept = origin.config if isinstance(origin, Origin) and origin.model_type == name else None
        try:
            config = write_settings(family.settings, settings, kept)
            again = read_settings(family.settings, config, "save_pretrained") | {p: settings[p] for p in family.parts}
            if "tied" in settings:
                again["tied"] = settings["tied"]
            classes = _classes(model)
            _check_same(model, shapes_of(family, ends, again, classes, None), name)
        except (WonderlandError, TypeError) as error:
            first = first or error
            continue
        return Description(family, ends, again, config, classes)
    assert first is not None
    raise first


def _check_same(model: Module, rebuilt: Module, name: str) -> None:
    ours, theirs = _lines(model), _lines(rebuilt)
    if ours != theirs:
        changes = [line for line in difflib.ndiff(theirs, ours) if line[0] in "+-"]
        raise InputError(
            f"save_pretrained: this {type(model).__name__} has no equal in the family {name!r}: where that has "
            f"{_first(changes, '-')}, the model has {_first(changes, '+')}.",
            "a model with the layers of the family; or wl.save(model, path)",
        )


def _lines(model: Module) -> list[str]:
    """What a model is made of, without what matters only while it is trained, and whatever the type of its numbers."""
    text = re.sub(r",? ?(dropout=[\d.]+|dtype=\w+)", "", repr(model))
    text = re.sub(r"(\d)\.0\b", r"\1", text)  # 64.0 places are 64
    return [line for line in text.splitlines()[1:] if "Dropout(" not in line]


def _first(changes: list[str], sign: str) -> str:
    return next((repr(line[2:].strip()) for line in changes if line[0] == sign), "nothing")


def _classes(model: Module) -> int:
    head = getattr(model, "head", None)
    return head.out_features if isinstance(model, (SequenceClassifier, ViT)) and head is not None else 0


# --- what each kind of model says of itself: families to try, in order

Said = Iterator[tuple[str, str, Settings]]


def _activation(layer: Module) -> str:
    """The name of an activation."""
    for word in dict.fromkeys(ACTIVATIONS.values()):
        if repr(as_activation("save_pretrained", word)) == repr(layer):
            return word
    raise InputError(
        f"save_pretrained: the activation {layer!r} has no name in published files.",
        "one of " + ", ".join(sorted(set(ACTIVATIONS.values()))),
    )


def _first_block(model: Module, blocks: ModuleList) -> Any:
    """The first block, whose parts are not known before it was compared."""
    for block in blocks:
        return block
    raise InputError(f"save_pretrained: a {type(model).__name__} without blocks.", "one block or more")


def _gpt(model: GPT) -> Said:
    block = _first_block(model, model.stack.blocks)
    hidden = block.feed_forward.up.out_features
    yield (
        "gpt2",
        "language",
        {
            "vocabulary": model.vocabulary,
            "context": model.context,
            "embed_dim": block.embed_dim,
            "depth": len(model.stack.blocks),
            "num_heads": block.attention.num_heads,
            "hidden": None if hidden == 4 * block.embed_dim else hidden,
            "activation": _activation(block.feed_forward.activation),
            "eps": block.norm1.eps,
            "tied": model.head is None,
        },
    )


def _llama(model: Llama) -> Said:
    block = _first_block(model, model.stack.blocks)
    attention, mlp = block.attention, block.feed_forward
    settings = {
        "vocabulary": model.vocabulary,
        "context": ANY_LENGTH if model.context is None else model.context,
        "embed_dim": block.embed_dim,
        "depth": len(model.stack.blocks),
        "num_heads": attention.num_heads,
        "kv_heads": attention.kv_heads,
        "head_size": attention.key_size,
        "hidden": mlp.down.in_features,
        "activation": _activation(mlp.gated.activation),
        "rope_base": attention.positions.base,
        "rope_scaling": attention.positions.scaling,
        "eps": block.norm1.eps,
        "tied": model.head is None,
        "qkv_bias": attention.query.bias is not None,
        "out_bias": attention.output.bias is not None,
        "mlp_bias": mlp.down.bias is not None,
        "qk_norm": attention.query_norm is not None,
        "window": attention.window,
    }
    origin = getattr(model, "origin", None)
    names = [origin.model_type] if isinstance(origin, Origin) else []
    for name in dict.fromkeys([*names, "llama", "mistral", "qwen2", "qwen3"]):
        yield name, "language", settings


def _rwkv(model: RWKV) -> Said:
    block = _first_block(model, model.stack.blocks)
    yield (
        "rwkv",
        "language",
        {
            "vocabulary": model.vocabulary,
            "context": ANY_LENGTH if model.context is None else model.context,
            "embed_dim": block.e,
            "depth": len(model.stack.blocks),
            "time_hidden": block.token_mixer.hidden,
            "hidden": block.channel_mixer.hidden,
            "convention": block.token_mixer.convention,
            "eps": block.token_norm.eps,
            "tied": model.head is None,
        },
    )


def _selective(model: Mamba | Mamba2, block: Any) -> Settings:
    """What Mamba and Mamba-2 have in common."""
    mixer = block.token_mixer
    return {
        "vocabulary": model.vocabulary,
        "embed_dim": block.e,
        "depth": len(model.stack.blocks),
        "conv": mixer.conv.kernel,
        "expand": mixer.output.in_features // block.e,
        "activation": _activation(mixer.activation),
        "eps": block.token_norm.eps,
        "bias": mixer.input.bias is not None,
        "conv_bias": mixer.conv.bias is not None,
        "tied": model.head is None,
    }


def _mamba(model: Mamba) -> Said:
    block = _first_block(model, model.stack.blocks)
    ssm = block.token_mixer.ssm
    yield "mamba", "language", _selective(model, block) | {"state": ssm.state, "rank": ssm.rank}


def _mamba2(model: Mamba2) -> Said:
    block = _first_block(model, model.stack.blocks)
    mixer = block.token_mixer
    sizes = {"num_heads": mixer.heads, "head_size": mixer.inner // mixer.heads, "groups": mixer.groups}
    yield "mamba2", "language", _selective(model, block) | sizes | {"state": mixer.state, "chunk": mixer.chunk}


def _bert(model: BERT | MaskedLanguageModel | SequenceClassifier) -> Said:
    bert = model if isinstance(model, BERT) else model.bert
    block = _first_block(bert, bert.stack.blocks)
    masked = isinstance(model, MaskedLanguageModel)
    ends = "masked_head" if masked else "features" if model is bert else "classifier_head"
    yield (
        "bert",
        "token_head" if isinstance(model, TokenClassifier) else ends,
        {
            "vocabulary": bert.vocabulary,
            "context": bert.context,
            "embed_dim": bert.embed_dim,
            "depth": len(bert.stack.blocks),
            "num_heads": block.attention.num_heads,
            "hidden": block.feed_forward.up.out_features,
            "segments": bert.segments.weight.shape[0],
            "activation": _activation(block.feed_forward.activation),
            "eps": bert.eps,
            "pooler": bert.pooler is not None,
            "masked_head": masked,
            "next_sentence_head": getattr(model, "next_sentence", None) is not None,
            "classifier_head": ends == "classifier_head",
        },
    )


def _t5(model: T5) -> Said:
    block = _first_block(model, model.encoder.blocks)
    gated = isinstance(block.feed_forward, GatedFeedForward)
    part = block.feed_forward.gated if gated else block.feed_forward
    yield (
        "t5",
        "language",
        {
            "vocabulary": model.vocabulary,
            "embed_dim": model.embed_dim,
            "hidden": block.feed_forward.down.in_features,
            "encoder_layers": len(model.encoder.blocks),
            "decoder_layers": len(model.decoder.blocks),
            "num_heads": block.attention.num_heads,
            "head_size": block.attention.key_size,
            "buckets": block.attention.positions.buckets,
            "max_distance": block.attention.positions.max_distance,
            "activation": _activation(part.activation),
            "gated": gated,
            "eps": block.norm1.eps,
            "tied": model.head is None,
            "scaled": model.scaled,
        },
    )


def _vit(model: ViT) -> Said:
    block = _first_block(model, model.stack.blocks)
    height, width, channels = model.image_size
    if height != width:
        raise InputError(f"save_pretrained: a ViT for images of {height} x {width} pixels.", "square images")
    yield (
        "vit",
        "features" if model.head is None else "classifier_head",
        {
            "image_size": height,
            "patch": model.patches.patch,
            "channels": channels,
            "embed_dim": block.embed_dim,
            "hidden": block.feed_forward.up.out_features,
            "depth": len(model.stack.blocks),
            "num_heads": block.attention.num_heads,
            "activation": _activation(block.feed_forward.activation),
            "eps": block.norm1.eps,
            "qkv_bias": block.attention.query.bias is not None,
            "classifier_head": model.head is not None,
        },
    )


def _whisper(model: Whisper) -> Said:
    encoder, decoder = _first_block(model, model.encoder.blocks), _first_block(model, model.decoder.blocks)
    yield (
        "whisper",
        "language",
        {
            "vocabulary": model.vocabulary,
            "bands": model.bands,
            "embed_dim": model.embed_dim,
            "encoder_layers": len(model.encoder.blocks),
            "encoder_heads": encoder.attention.num_heads,
            "encoder_hidden": encoder.feed_forward.up.out_features,
            "decoder_layers": len(model.decoder.blocks),
            "decoder_heads": decoder.attention.num_heads,
            "decoder_hidden": decoder.feed_forward.up.out_features,
            "frames": model.frames,
            "context": model.context,
            "activation": _activation(model.activation),
            "scale_embedding": model.factor != 1.0,
        },
    )


ABOUT: dict[type[Module], Callable[..., Said]] = {
    GPT: _gpt,
    Llama: _llama,
    RWKV: _rwkv,
    Mamba: _mamba,
    Mamba2: _mamba2,
    BERT: _bert,
    MaskedLanguageModel: _bert,
    SequenceClassifier: _bert,
    TokenClassifier: _bert,
    T5: _t5,
    ViT: _vit,
    Whisper: _whisper,
}
