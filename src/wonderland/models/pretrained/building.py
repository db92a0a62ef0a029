"""From settings to models: shapes alone, so that nothing is drawn and no weights are held beside those of the file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.dtypes import DType
from ...core.tensor import Tensor
from ...nn.module.module import Module
from ...random.keys import key as make_key
from ...transforms.jit.jit import eval_shape
from ..recurrent.mamba import Mamba, Mamba2
from ..recurrent.rwkv import RWKV
from ..transformers.bert import BERT, MaskedLanguageModel, SequenceClassifier, TokenClassifier
from ..transformers.gpt import GPT
from ..transformers.llama import Llama
from ..transformers.t5 import T5
from ..transformers.vit import ViT
from ..transformers.whisper import Whisper
from .layouts import Family
from .settings import Settings

__all__ = ["shapes_of"]

Common = dict[str, Any]  # dtype and key of every layer
Builder = Callable[[str, Settings, int, Common], Module]


def shapes_of(family: Family, ends: str, settings: Settings, classes: int, dtype: DType | None) -> Module:
    """The model for these settings, whose parameters have shapes and no numbers until a state is loaded."""

    def build(key: Tensor) -> Module:
        return BUILDERS[family.model_type](ends, settings, classes, {"dtype": dtype, "key": key})

    model: Module = eval_shape(build, make_key(0))
    return model


def _plain(kind: Callable[..., Module]) -> Builder:
    """A model whose arguments are the settings."""
    return lambda ends, settings, classes, common: kind(**settings, **common)


def _bert(ends: str, settings: Settings, classes: int, common: Common) -> Module:
    heads = ("masked_head", "next_sentence_head", "classifier_head")
    bert = BERT(**{name: value for name, value in settings.items() if name not in heads}, **common)  # type: ignore[arg-type]
    if ends == "masked_head":
        activation, pairs = str(settings["activation"]), bool(settings["next_sentence_head"])
        return MaskedLanguageModel(bert, activation, pairs, **common)
    if ends == "features":
        return bert
    return (SequenceClassifier if ends == "classifier_head" else TokenClassifier)(bert, classes, **common)


def _vit(ends: str, settings: Settings, classes: int, common: Common) -> Module:
    size = settings["image_size"]
    sizes: Any = {
        name: value for name, value in settings.items() if name not in ("image_size", "channels", "classifier_head")
    }
    shape: Any = (size, size, settings["channels"])
    return ViT(classes if settings["classifier_head"] else None, shape, **sizes, **common)


BUILDERS: dict[str, Builder] = {
    "gpt2": _plain(GPT),
    "llama": _plain(Llama),
    "mistral": _plain(Llama),
    "qwen2": _plain(Llama),
    "qwen3": _plain(Llama),
    "rwkv": _plain(RWKV),
    "mamba": _plain(Mamba),
    "mamba2": _plain(Mamba2),
    "bert": _bert,
    "t5": _plain(T5),
    "vit": _vit,
    "whisper": _plain(Whisper),
}
