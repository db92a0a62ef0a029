"""Models of ours as folders that `transformers` reads: config.json, safetensors in one file or in shards, tokenizer."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path

from ...core.arguments import as_int, shown
from ...core.errors import FileError, InputError
from ...core.tensor import Tensor
from ...nn.module.module import Module
from ...storage.atomic import write_atomically
from ...storage.safetensors import save
from ...text.tokenizer import Tokenizer
from ..transformers.encoder_decoder import EncoderDecoder
from ..transformers.language_model import CausalLanguageModel
from ..transformers.whisper import HOP, RATE, WINDOW, Whisper
from .describing import Description, describe
from .folder import CONFIG, GENERATION, INDEX, PREPROCESSOR, WEIGHTS, Json
from .layouts import entries, written
from .origin import Origin, label_tables

__all__ = ["save_pretrained"]

LARGEST_SHARD = 2 << 30  # bytes
ROLES = ("bos", "eos", "pad", "unk", "mask")


def save_pretrained(
    model: Module,
    folder: str | os.PathLike[str],
    tokenizer: Tokenizer | None = None,
    max_shard_size: int = LARGEST_SHARD,
) -> None:
    """Write a model as a folder that `from_pretrained` and Hugging Face's `transformers` read.

    >>> import os, tempfile, wonderland as wl
    >>> tokenizer = wl.text.CharTokenizer.train("the cat", special_tokens=["[EOS]"])
    >>> model = wl.models.GPT(tokenizer.vocab_size, context=16, embed_dim=8, num_heads=2, depth=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     wl.models.save_pretrained(model, folder, tokenizer)
    ...     print(sorted(os.listdir(folder)))
    ...     print(wl.text.Tokenizer.from_pretrained(folder).eos_id == tokenizer.eos_id)
    ['config.json', 'generation_config.json', 'model.safetensors', 'tokenizer.json', 'tokenizer_config.json']
    True

    `model` is one of those that `from_pretrained` gives: `GPT`, `Llama` (as "llama", or what its settings need of
    "mistral", "qwen2", "qwen3"), `BERT` and its heads, `T5`, `ViT`, `Whisper`. One with layers that its published
    family does not have is refused, with the first difference. What `from_pretrained` read beside the weights is
    written back. Weights keep their type; above `max_shard_size` bytes they are cut into several files with an index.
    Each file appears whole or not at all, and weights that were in the folder before are removed.
    """
    limit = as_int("save_pretrained", "max_shard_size", max_shard_size, 1)
    if tokenizer is not None and not isinstance(tokenizer, Tokenizer):
        raise InputError(f"save_pretrained: tokenizer={shown(tokenizer)}.", "a wl.text.Tokenizer, or None")
    if not isinstance(model, Module):
        raise InputError(f"save_pretrained: {shown(model)} is no model.", "save_pretrained(model, folder)")
    home = Path(folder)
    if home.exists() and not home.is_dir():
        raise FileError(f"save_pretrained: {home} is a file.", "the path of a folder")
    about = describe(model)
    size = getattr(model, "vocabulary", None)
    if tokenizer is not None and isinstance(size, int) and tokenizer.vocab_size > size:
        raise InputError(
            f"save_pretrained: a tokenizer of {tokenizer.vocab_size} tokens for a model of {size}.",
            "the tokenizer of this model",
        )
    _write_weights(home, about, _state(model, about), limit)
    _write_json(home / CONFIG, _config(model, about, tokenizer))
    if isinstance(model, (CausalLanguageModel, EncoderDecoder)):
        _write_json(home / GENERATION, _generation(model, tokenizer))
    if inputs := _preprocessor(model):
        _write_json(home / PREPROCESSOR, inputs)
    if tokenizer is not None:
        tokenizer.save(home / "tokenizer.json")
        _write_json(home / "tokenizer_config.json", _tokenizer_config(model, tokenizer))


def _state(model: Module, about: Description) -> dict[str, Tensor]:
    body = about.family.body if about.ends == "features" else ""
    return {body + path: value for path, value in model.state_dict().items()}


# --- weights


def _write_weights(home: Path, about: Description, state: dict[str, Tensor], limit: int) -> None:
    sizes = [
        sum(math.prod(state[name].shape) * state[name].dtype.itemsize for name in row.ours if name in state)
        for row in entries(about.family, about.settings)
    ]
    count = _shards(sizes, limit)
    files = [WEIGHTS] if count == 1 else [f"model-{i + 1:05}-of-{count:05}.safetensors" for i in range(count)]
    rows = written(about.family, about.settings, state)
    where: dict[str, str] = {}
    for file, part in zip(files, _parts(rows, sizes, limit), strict=True):
        save(part, home / file, {"format": "pt"})
        where |= dict.fromkeys(part, file)
    kept = set(files)
    if count > 1:
        kept.add(INDEX)
        total = sum(sizes)
        _write_json(home / INDEX, {"metadata": {"total_size": total}, "weight_map": dict(sorted(where.items()))})
    for old in (*home.glob("model-*-of-*.safetensors"), home / WEIGHTS, home / INDEX):
        if old.name not in kept:
            old.unlink(missing_ok=True)


def _shards(sizes: list[int], limit: int) -> int:
    """How many files there are: each takes what fits, and at least one row of the table."""
    count, filled = 1, 0
    for size in sizes:
        if filled and filled + size > limit:
            count, filled = count + 1, 0
        filled += size
    return count


def _parts(rows: Iterator[dict[str, Tensor]], sizes: list[int], limit: int) -> Iterator[dict[str, Tensor]]:
    part: dict[str, Tensor] = {}
    filled = 0
    for size, row in zip(sizes, rows, strict=True):
        if filled and filled + size > limit:
            yield part
            part, filled = {}, 0
        part |= row
        filled += size
    yield part


# --- what stands beside them


def _write_json(path: Path, value: object) -> None:
    write_atomically(path, json.dumps(value, indent=2, sort_keys=True) + "\n")


def _config(model: Module, about: Description, tokenizer: Tokenizer | None) -> Json:
    config = dict(about.config)
    ends = next(name for name, ends in about.family.architectures.items() if ends == about.ends)
    if about.settings.get("next_sentence_head"):
        ends = "BertForPreTraining"
    origin = getattr(model, "origin", None)
    if not isinstance(origin, Origin) or (origin.model_type, origin.ends) != (about.family.model_type, about.ends):
        config["architectures"] = [ends]
    config["model_type"] = about.family.model_type
    kind = next(str(value.dtype) for value in model.state_dict().values())
    config["dtype" if "dtype" in config else "torch_dtype"] = kind
    if about.classes:
        labels = getattr(model, "labels", ())
        fitting = labels if len(labels) == about.classes else tuple(f"LABEL_{i}" for i in range(about.classes))
        config |= label_tables(fitting)
    if isinstance(model, (CausalLanguageModel, EncoderDecoder)):
        config["is_encoder_decoder"] = isinstance(model, EncoderDecoder)
        config |= _tokens(model, tokenizer, dict(config))
    return config


def _tokens(model: CausalLanguageModel | EncoderDecoder, tokenizer: Tokenizer | None, before: Json) -> Json:
    """The tokens that begin and end texts, and fill them up: those of the model, else of the tokenizer."""
    stops = model.stop_tokens
    if not stops and tokenizer is not None and tokenizer.eos_id is not None:
        stops = (tokenizer.eos_id,)
    found: Json = {"eos_token_id": stops[0] if len(stops) == 1 else list(stops) or None}
    bos, pad = (None, None) if tokenizer is None else (tokenizer.bos_id, tokenizer.pad_id)
    if isinstance(model, EncoderDecoder):
        found["decoder_start_token_id"] = model.start_token
    elif model.start_token is not None:
        bos = model.start_token
    found["bos_token_id"] = before.get("bos_token_id") if bos is None else bos
    found["pad_token_id"] = before.get("pad_token_id") if pad is None else pad
    return found


def _generation(model: CausalLanguageModel | EncoderDecoder, tokenizer: Tokenizer | None) -> Json:
    origin = getattr(model, "origin", None)
    found = dict(origin.generation) if isinstance(origin, Origin) else {}
    found |= {key: value for key, value in _tokens(model, tokenizer, found).items() if value is not None}
    if not isinstance(model, Whisper):
        return found
    tokens = model.speech_tokens
    said = {
        "lang_to_id": {f"<|{name}|>": token for name, token in tokens.languages.items()},
        "task_to_id": dict(tokens.tasks),
        "no_timestamps_token_id": tokens.no_timestamps,
        "suppress_tokens": list(tokens.suppressed),
        "begin_suppress_tokens": list(tokens.suppressed_first),
    }
    if tokens.languages:
        said["is_multilingual"] = True
    return found | {key: value for key, value in said.items() if value}


def _preprocessor(model: Module) -> Json:
    origin = getattr(model, "origin", None)
    if isinstance(origin, Origin) and origin.preprocessor:
        return origin.preprocessor
    if not isinstance(model, Whisper):
        return {}
    frames = 2 * model.frames
    return {
        "feature_extractor_type": "WhisperFeatureExtractor",
        "feature_size": model.bands,
        "sampling_rate": RATE,
        "n_fft": WINDOW,
        "hop_length": HOP,
        "chunk_length": frames * HOP // RATE,
        "n_samples": frames * HOP,
        "nb_max_frames": frames,
        "padding_side": "right",
        "padding_value": 0.0,
        "return_attention_mask": False,
    }


def _tokenizer_config(model: Module, tokenizer: Tokenizer) -> Json:
    named = {f"{role}_token": getattr(tokenizer.special_tokens, role) for role in ROLES}
    if "[CLS]" in tokenizer.vocab and "[SEP]" in tokenizer.vocab:
        named |= {"cls_token": "[CLS]", "sep_token": "[SEP]"}
    context = getattr(model, "context", None)
    found: Json = {"tokenizer_class": "PreTrainedTokenizerFast"}
    found |= {key: value for key, value in named.items() if value is not None}
    return found | ({"model_max_length": context} if isinstance(context, int) else {})
