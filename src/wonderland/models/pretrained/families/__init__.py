"""One file per family of models: how its config.json and its tensors become ours."""

from __future__ import annotations

from collections.abc import Mapping

from ....core.arguments import shown
from ....core.errors import FileError
from ..layouts import Family
from .bert import BERT
from .gpt2 import GPT2
from .llama import LLAMA, MISTRAL, QWEN2, QWEN3
from .mamba import MAMBA, MAMBA2
from .rwkv import RWKV
from .t5 import T5
from .vit import VIT
from .whisper import WHISPER

__all__ = ["FAMILIES", "find_family"]

DECODERS = (GPT2, LLAMA, MISTRAL, QWEN2, QWEN3, RWKV, MAMBA, MAMBA2)
FAMILIES = {family.model_type: family for family in (*DECODERS, BERT, T5, VIT, WHISPER)}


def find_family(config: Mapping[str, object], source: str = "config.json") -> tuple[Family, str]:
    """The family of a config.json, and what the model ends in: "language", "masked_head", ...

    >>> family, ends = find_family({"model_type": "bert", "architectures": ["BertForMaskedLM"]})
    >>> family.prefix, ends
    ('bert.', 'masked_head')
    """
    kind = config.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise FileError(
            f"from_pretrained: {source} has the model_type {shown(kind)}, which is not known here.",
            "one of " + ", ".join(map(repr, FAMILIES)),
        )
    family = FAMILIES[kind]
    names = config.get("architectures")
    if names is None:
        return family, next(iter(family.architectures.values()))
    name = names[0] if isinstance(names, list) and len(names) == 1 else None
    if not isinstance(name, str) or name not in family.architectures:
        raise FileError(
            f"from_pretrained: {source} has the architectures {shown(names)}, which are not known here.",
            "one of " + ", ".join(map(repr, family.architectures)),
        )
    return family, family.architectures[name]
