"""Writes the folders; see the package for how to run it."""

from __future__ import annotations

import logging
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
import safetensors  # type: ignore[import-not-found, unused-ignore]
import tokenizers  # type: ignore[import-not-found]  # none of these is in the project's environment
import torch  # type: ignore[import-not-found]
import transformers  # type: ignore[import-not-found]

from .cases import CASES, Case
from .filling import fill
from .folders import read_back, write_folder, write_json
from .running import RUNS, Unsuitable, preprocessor

HOME = Path(__file__).parents[2] / "tests" / "checkpoints"
LARGEST = 2_500_000  # bytes of all folders


def make(case: Case) -> None:
    """Try seeds until one gives a model that shows enough."""
    tokenizer = case.tokenizer() if case.tokenizer else None
    for seed in range(case.seed, case.seed + 1000):
        model = _model(case, tokenizer, seed)
        folder = HOME / case.name
        write_folder(folder, case, model, tokenizer)
        if processor := preprocessor(model):
            processor.save_pretrained(folder)
        model = read_back(folder, case)
        try:
            with torch.no_grad():
                arrays, plain = RUNS[case.run](model, tokenizer)
        except Unsuitable as reason:
            print(f"{case.name:16} seed {seed:4} {reason}", flush=True)
            continue
        np.savez_compressed(folder / "expected.npz", allow_pickle=False, **_narrow(arrays))
        parameters = sum(value.numel() for value in model.parameters())
        write_json(folder / "expected.json", plain | {"seed": seed, "parameters": parameters})
        for file in folder.iterdir():
            file.chmod(0o644)
        size = sum(file.stat().st_size for file in folder.iterdir())
        print(f"{case.name:16} seed {seed:4} {parameters:7,} parameters {size:9,} bytes", flush=True)
        return
    raise SystemExit(f"no seed gives a {case.name} that shows enough")


def _model(case: Case, tokenizer: Any, seed: int) -> Any:
    ids: dict[str, Any] = {}
    if tokenizer is not None:
        ids["vocab_size"] = tokenizer.get_vocab_size()
        for part in ("bos", "eos", "pad"):
            token = (case.special or {}).get(f"{part}_token")
            ids[f"{part}_token_id"] = None if token is None else tokenizer.token_to_id(token)
    config = getattr(transformers, case.config)(**ids, **case.settings)
    torch.manual_seed(0)
    model = getattr(transformers, case.model)._from_config(config, attn_implementation="eager").eval()
    if case.settings.get("tie_word_embeddings") is False:
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    fill(model, seed)
    if case.run == "speech":
        languages = {"<|en|>": tokenizer.token_to_id("<|en|>"), "<|de|>": tokenizer.token_to_id("<|de|>")}
        tasks = {task: tokenizer.token_to_id(f"<|{task}|>") for task in ("transcribe", "translate")}
        settings = {"lang_to_id": languages, "task_to_id": tasks, "is_multilingual": True, "max_length": 40}
        settings["no_timestamps_token_id"] = tokenizer.token_to_id("<|notimestamps|>")
        for name, value in settings.items():
            setattr(model.generation_config, name, value)
    return model


def _narrow(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Tokens and masks as small integers."""
    return {name: value.astype(np.int32) if value.dtype == np.int64 else value for name, value in arrays.items()}


def main(names: list[str]) -> None:
    logging.disable(logging.WARNING)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for case in CASES:
        if not names or case.name in names:
            make(case)
    versions = {module.__name__: module.__version__ for module in (torch, transformers, tokenizers, safetensors, np)}
    write_json(HOME / "versions.json", versions | {"python": platform.python_version()})
    size = sum(file.stat().st_size for file in HOME.rglob("*") if file.is_file())
    print(f"{size:,} bytes")
    assert size < LARGEST


main(sys.argv[1:])
