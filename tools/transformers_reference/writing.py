"""Writes the tiny checkpoints and some new models with `save_pretrained`, and their logits; see `reading`."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import wonderland as wl
from wonderland import models, nn

CHECKPOINTS = Path(__file__).parents[2] / "tests" / "checkpoints"
VOCABULARY = 60


def new_models() -> dict[str, nn.Module]:
    """One of each family that was not read from a file."""
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
    v = VOCABULARY
    return {
        "new_gpt2": models.GPT(v, 40, 24, 3, 2, hidden=50, activation="relu", tied=False),
        "new_llama": models.Llama(v, 24, 4, 2, kv_heads=2, qkv_bias=True, out_bias=True, rope_scaling=yarn),
        "new_mistral": models.Llama(v, 24, 4, 2, window=4, tied=True),
        "new_qwen2": models.Llama(v, 24, 4, 2, qkv_bias=True),
        "new_qwen3": models.Llama(v, 24, 4, 2, qk_norm=True, head_size=8),
        "new_rwkv": models.RWKV(v, 24, 2, hidden=50, convention="official"),
        "new_bert": models.MaskedLanguageModel(models.BERT(v, 40, 24, 3, 2), next_sentence=True),
        "new_bert_classes": models.SequenceClassifier(models.BERT(v, 40, 24, 3, 2), 3),
        "new_bert_tokens": models.TokenClassifier(models.BERT(v, 40, 24, 3, 2, pooler=False), 3),
        "new_t5": models.T5(v, 24, 2, 2, 1, gated=True, activation="silu"),
        "new_vit": models.ViT(5, (12, 12, 3), 4, 24, 3, 2, qkv_bias=False),
        "new_whisper": models.Whisper(v, 16, 16, 2, 2, frames=50, context=40),
    }


def main() -> None:
    """Write all folders."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("saved", type=Path, help="a folder for the results")
    home = parser.parse_args().saved
    random = np.random.default_rng(0)
    for name, model in new_models().items():
        for parameter in model.parameters():  # biases start from 0, and would hide what is exchanged
            noise = random.normal(0, 0.05, parameter.shape).astype(np.float32)
            parameter.assign(parameter + wl.asarray(noise))
        write(model.eval(), home / name, random)
    for folder in sorted(path for path in CHECKPOINTS.iterdir() if path.is_dir()):
        write(models.from_pretrained(folder), home / folder.name, random)


def write(model: nn.Module, folder: Path, random: np.random.Generator) -> None:
    """A folder with shards, inputs as `transformers` names them, and our logits."""
    models.save_pretrained(model, folder, max_shard_size=30_000)
    tokens = random.integers(0, VOCABULARY, (2, 9))
    inputs = {"input_ids": tokens}
    if isinstance(model, models.ViT):
        pixels = random.standard_normal((2, *model.image_size)).astype(np.float32)
        inputs, logits = {"pixel_values": np.ascontiguousarray(pixels.transpose(0, 3, 1, 2))}, model(pixels)
    elif isinstance(model, models.Whisper):
        spectra = random.standard_normal((2, 2 * model.frames, model.bands)).astype(np.float32)
        inputs = {"input_features": np.ascontiguousarray(spectra.transpose(0, 2, 1)), "decoder_input_ids": tokens}
        logits = model(spectra, tokens)
    elif isinstance(model, models.T5):
        inputs, logits = inputs | {"decoder_input_ids": tokens[:, :5]}, model(tokens, tokens[:, :5])
    else:
        logits = model(tokens)
    np.savez(folder / "logits.npz", allow_pickle=False, logits=np.asarray(logits), **inputs)


if __name__ == "__main__":
    main()
