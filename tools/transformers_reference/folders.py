"""A folder as Hugging Face publishes it: configs, weights in one file or in shards, tokenizer."""

from __future__ import annotations

import json
import math
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import transformers  # type: ignore[import-not-found]  # not in the project's environment
from safetensors.numpy import load_file, save_file  # type: ignore[import-not-found, unused-ignore]
from tokenizers import Tokenizer  # type: ignore[import-not-found]  # not in the project's environment

from .cases import Case, Tensors


def write_json(path: Path, value: Any) -> None:
    text = json.dumps(value, indent=1, sort_keys=True)
    # a list of numbers in one line; white space within texts stays, where line breaks are written as \\n
    flat = re.sub(r"\[[^\[\]{}]*\]", lambda found: re.sub(r"\n\s*", " ", found[0]), text)
    path.write_text(flat + "\n", encoding="utf-8")


def write_folder(folder: Path, case: Case, model: Any, tokenizer: Tokenizer | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    config = {"architectures": [case.model]} | model.config.to_diff_dict()
    config |= {key: value for key, value in model.config.to_dict().items() if not key.startswith("_")}
    config |= {"architectures": [case.model], "dtype": "float32"}
    tensors = _saved(model)
    if case.rewrite:
        config, tensors = case.rewrite(config, tensors)
    write_json(folder / "config.json", config)
    _write_weights(folder, tensors, case.shards)
    if model.can_generate():
        write_json(folder / "generation_config.json", _plain(model.generation_config.to_diff_dict()))
    if tokenizer is not None:
        (folder / "tokenizer.json").write_text(tokenizer.to_str(), encoding="utf-8")
        longest = case.settings.get("max_position_embeddings", 512)
        kind = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": longest}
        write_json(folder / "tokenizer_config.json", kind | (case.special or {}))


def read_back(folder: Path, case: Case) -> Any:
    """The model as `transformers` reads it, which must have all tensors and no others."""
    model, report = getattr(transformers, case.model).from_pretrained(
        folder, attn_implementation="eager", output_loading_info=True
    )
    assert not report["missing_keys"], report
    assert not report["mismatched_keys"], report
    assert all(name.endswith("attn.bias") for name in report["unexpected_keys"]), report
    return model.eval()


def _saved(model: Any) -> Tensors:
    """The tensors under the names that files have; in memory some versions use others."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return load_file(Path(folder) / "model.safetensors")


def _write_weights(folder: Path, tensors: Tensors, shards: int) -> None:
    tensors = {name: np.ascontiguousarray(value) for name, value in sorted(tensors.items())}
    if shards == 1:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
        return
    names = list(tensors)
    size = math.ceil(len(names) / shards)
    where: dict[str, str] = {}
    for i in range(shards):
        file = f"model-{i + 1:05}-of-{shards:05}.safetensors"
        part = {name: tensors[name] for name in names[i * size : (i + 1) * size]}
        save_file(part, folder / file, metadata={"format": "pt"})
        where |= dict.fromkeys(part, file)
    total = sum(value.nbytes for value in tensors.values())
    write_json(folder / "model.safetensors.index.json", {"metadata": {"total_size": total}, "weight_map": where})


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if not key.startswith("_") and value is not None}
