"""Published models: from a folder of Hugging Face to a model of ours. Nothing in it is executed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core import dtypes
from ...core.dtypes import DType
from ...core.errors import DTypeError, FileError
from ...core.room import check_room
from ...core.tensor import Tensor
from ...core.typing import DTypeLike
from ...nn.module.module import Module
from ..transformers.encoder_decoder import EncoderDecoder
from ..transformers.language_model import CausalLanguageModel
from ..transformers.whisper import Whisper
from .building import shapes_of
from .families import find_family
from .folder import CONFIG, LONGEST_CONFIG, PREPROCESSOR, Folder, read_folder, read_table
from .layouts import Family, check_names, read_state, settle
from .origin import Origin, speech_tokens, start_token, stop_tokens
from .settings import Settings, read_labels, read_settings

__all__ = ["from_pretrained"]

# of these settings a model has tensors with such an axis, so that none is larger than the file
AXES = (
    "vocabulary",
    "embed_dim",
    "hidden",
    "time_hidden",
    "num_heads",
    "kv_heads",
    "head_size",
    "buckets",
    "bands",
    "frames",
    "patch",
)


def from_pretrained(folder: str | os.PathLike[str], dtype: DTypeLike | None = None) -> Any:
    """The model in a folder as Hugging Face publishes it, ready to be used or to be trained further.

    >>> import tempfile, wonderland as wl
    >>> model = wl.models.Llama(100, 16, 2, 1, kv_heads=1, key=wl.random.key(0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     wl.models.save_pretrained(model, folder)
    ...     same = wl.models.from_pretrained(folder)
    ...     half = wl.models.from_pretrained(folder, dtype=wl.bfloat16)
    >>> tokens = wl.tensor([[5, 6, 7]])
    >>> bool(wl.all(model(tokens) == same(tokens))), type(half).__name__, half.tokens.weight.dtype
    (True, 'Llama', dtype(bfloat16))

    `folder` is on this machine: config.json, model.safetensors or several of them with their index, and if there are
    generation_config.json and preprocessor_config.json. By "model_type" and "architectures" of its config.json it is

        gpt2                        `GPT`
        llama, mistral, qwen2/3     `Llama`
        rwkv                        `RWKV`
        bert                        `BERT`, `MaskedLanguageModel`, `SequenceClassifier` or `TokenClassifier`
        t5, whisper                 `T5`, `Whisper`
        vit                         `ViT`

    and anything else is refused, as are settings that would give other results here, and tensors that are missing, left
    over or of another shape; the error names them. Files are data: pickles are not opened, and no code in a folder is
    run. Numbers keep the type of the file (the widest, if there are several), or become `dtype`. They are copied once,
    tensor by tensor, from the file on the disk.

    The model is in evaluation mode. It has `stop_tokens` and `start_token`, at which `wl.generation` ends and begins by
    default; a classifier has `labels`, the names of its classes; `Whisper` has `speech_tokens` for
    `wl.generation.transcribe`. `wl.text.Tokenizer.from_pretrained(folder)` reads the tokenizer beside it, and
    `image_preprocessor(folder)` what makes images ready for it.
    """
    wanted = _dtype(dtype)
    found = read_folder(folder)
    source = str(found.path / CONFIG)
    family, ends = find_family(found.config, source)
    settings = read_settings(family.settings, found.config, source)
    tensors = found.tensors()
    home = str(found.path)
    settings = settle(family, ends, settings, tensors, home)
    check_names(family, settings, tensors, home)
    _check_axes(family, settings, tensors, source)
    kind = _widest(tensors) if wanted is None else wanted
    nbytes = sum(value.size for value in tensors.values()) * kind.itemsize
    check_room("from_pretrained", nbytes, f"the weights of {home} need", "a smaller model, or dtype=wl.bfloat16")
    labels = read_labels(found.config, source)
    model = shapes_of(family, ends, settings, len(labels), kind)
    shapes = {f"{_body(family, ends)}{path}": value.shape for path, value in model.state_dict().items()}
    state = read_state(family, settings, tensors, shapes, home, kind)
    model.load_state_dict({path.removeprefix(_body(family, ends)): value for path, value in state.items()})
    _remember(model, found, family, ends, labels, settings)
    return model.eval()


def _dtype(dtype: DTypeLike | None) -> DType | None:
    if dtype is None:
        return None
    try:
        found = dtypes.as_dtype(dtype)
    except (TypeError, DTypeError) as error:
        raise DTypeError(
            f"from_pretrained: dtype={dtype!r} is no type of tensors.", "wl.float32, wl.bfloat16 or wl.float16"
        ) from error
    if not dtypes.is_floating(found):
        raise DTypeError(f"from_pretrained: dtype={found}.", "a floating type: wl.float32, wl.bfloat16 or wl.float16")
    return found


def _widest(tensors: Mapping[str, Tensor]) -> DType:
    """The type of the weights; of several, that which holds the numbers of all."""
    found = {np.dtype(value.dtype) for value in tensors.values() if dtypes.is_floating(value.dtype)}
    if not found:
        return np.dtype(dtypes.float32)
    if len(found) > 1 and all(dtype.itemsize == 2 for dtype in found):
        return np.dtype(dtypes.float32)
    return max(found, key=lambda dtype: dtype.itemsize)


def _check_axes(family: Family, settings: Settings, tensors: Mapping[str, Tensor], source: str) -> None:
    """Before anything is made by the sizes in config.json: the file must have as many numbers."""
    total = sum(value.size for value in tensors.values())
    for name in AXES:
        value = settings.get(name)
        if isinstance(value, int) and value > total:
            raise FileError(
                f"from_pretrained: {source} speaks of {name} = {value:,}; its weights have {total:,} numbers in all.",
                "weights and config.json of the same model",
            )


def _body(family: Family, ends: str) -> str:
    """What stands before our names in the table and not in the model, which has no head."""
    return family.body if ends == "features" else ""


def _remember(
    model: Module, folder: Folder, family: Family, ends: str, labels: tuple[str, ...], settings: Settings
) -> None:
    """Give a model what else the folder says."""
    inputs = folder.path / PREPROCESSOR
    preprocessor = read_table(inputs, LONGEST_CONFIG) if inputs.is_file() else {}
    model.origin = Origin(family.model_type, ends, folder.config, folder.generation, preprocessor)
    if settings.get("classifier_head"):
        model.labels = labels
    if isinstance(model, (CausalLanguageModel, EncoderDecoder)):
        decoder = isinstance(model, EncoderDecoder)
        start = start_token(folder, model.vocabulary, decoder)
        model.stop_tokens = stop_tokens(folder, model.vocabulary)
        if start is not None:
            model.start_token = start
    if isinstance(model, Whisper):
        model.speech_tokens = speech_tokens(folder, model.vocabulary)
