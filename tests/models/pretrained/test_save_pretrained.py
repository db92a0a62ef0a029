"""Folders that are written: the same tensors and settings when read again, for published models and for one's own.

That `transformers` reads them with the same logits was compared with `python -m tools.transformers_reference.reading`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wonderland as wl
from wonderland import models, nn
from wonderland.errors import DTypeError, FileError, InputError, ShapeError, WonderlandError
from wonderland.models.pretrained import read_checkpoint, read_folder

HOME = Path(__file__).parents[2] / "checkpoints"
NAMES = sorted(folder.name for folder in HOME.iterdir() if folder.is_dir())
INDEX = "model.safetensors.index.json"

LINEAR = {"rope_type": "linear", "factor": 2}
OWN: dict[str, Callable[[], nn.Module]] = {
    "gpt2": lambda: models.GPT(30, 8, 12, 2, 2, hidden=20, activation="relu", tied=False, dropout=0.1),
    "llama": lambda: models.Llama(30, 12, 2, 2, kv_heads=1, mlp_bias=True, rope_scaling=LINEAR),
    "mistral": lambda: models.Llama(30, 12, 2, 1, window=4, tied=True),
    "qwen2": lambda: models.Llama(30, 12, 2, 1, qkv_bias=True),
    "qwen3": lambda: models.Llama(30, 12, 2, 1, qk_norm=True, head_size=8, activation="gelu_tanh"),
    "rwkv": lambda: models.RWKV(30, 12, 2, hidden=20, time_hidden=16, convention="official", tied=True),
    "bert": lambda: models.MaskedLanguageModel(models.BERT(30, 8, 12, 2, 1, dropout=0.1), next_sentence=True),
    "bert features": lambda: models.BERT(30, 8, 12, 2, 1, pooler=False),
    "bert classes": lambda: models.SequenceClassifier(models.BERT(30, 8, 12, 2, 1), 4),
    "bert tokens": lambda: models.TokenClassifier(models.BERT(30, 8, 12, 2, 1, pooler=False), 4),
    "t5": lambda: models.T5(30, 12, 2, 2, 1, gated=True, activation="silu", start_token=3),
    "t5 untied": lambda: models.T5(30, 12, 2, 1, tied=False, scaled=True),
    "vit": lambda: models.ViT(5, (8, 8, 3), 4, 12, 2, 1, qkv_bias=False),
    "vit features": lambda: models.ViT(None, (8, 8, 1), 2, 12, 2, 1),
    "whisper": lambda: models.Whisper(30, 10, 12, 2, 2, 3, 1, encoder_hidden=20, frames=20, context=9),
}  # fmt: skip


def same_numbers(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return set(a) == set(b) and all(
        a[key].dtype == b[key].dtype and np.array_equal(np.asarray(a[key]), np.asarray(b[key])) for key in a
    )


@pytest.mark.parametrize("name", NAMES)
def test_what_was_read_is_written_back(name: str, tmp_path: Path) -> None:
    model = models.from_pretrained(HOME / name)
    models.save_pretrained(model, tmp_path)
    before, after = read_checkpoint(HOME / name), read_checkpoint(tmp_path)
    assert same_numbers(before.state, after.state)
    assert (before.settings, before.ends) == (after.settings, after.ends)
    assert before.folder.generation == after.folder.generation
    kept = {key: value for key, value in before.folder.config.items() if after.folder.config.get(key) != value}
    assert set(kept) <= {"rope_scaling"}  # of which {"type": ...} is an older form
    again = models.from_pretrained(tmp_path)
    assert same_numbers(model.state_dict(), again.state_dict())
    for said in ("stop_tokens", "start_token", "labels"):
        assert getattr(again, said, None) == getattr(model, said, None)
    if name in ("vit", "whisper"):
        old, new = (json.loads((home / "preprocessor_config.json").read_text()) for home in (HOME / name, tmp_path))
        assert old == new


@pytest.mark.parametrize("name", OWN)
def test_models_of_ones_own(name: str, tmp_path: Path) -> None:
    model = OWN[name]().eval()
    models.save_pretrained(model, tmp_path)
    config = read_folder(tmp_path).config
    assert config["model_type"] == name.split()[0]
    again = models.from_pretrained(tmp_path)
    assert type(again) is type(model)
    assert same_numbers(model.state_dict(), again.state_dict())
    r = np.random.default_rng(0)
    tokens = r.integers(0, 30, (2, 6))
    inputs: tuple[Any, ...] = (tokens,)
    if isinstance(model, models.ViT):
        inputs = (r.standard_normal((2, *model.image_size)).astype(np.float32),)
    elif isinstance(model, models.Whisper):
        inputs = (r.standard_normal((2, 12, 10)).astype(np.float32), tokens)
    elif isinstance(model, models.EncoderDecoder):
        inputs = (tokens, tokens[:, :3])
        assert getattr(again, "start_token", None) == model.start_token
    np.testing.assert_array_equal(model(*inputs), again(*inputs))


def test_shards(tmp_path: Path) -> None:
    model = models.from_pretrained(HOME / "gpt2")
    models.save_pretrained(model, tmp_path)
    assert not (tmp_path / INDEX).exists()
    models.save_pretrained(model, tmp_path, max_shard_size=20_000)
    assert not (tmp_path / "model.safetensors").exists()
    shards = sorted(path.name for path in tmp_path.glob("model-*"))
    index = json.loads((tmp_path / INDEX).read_text())
    assert shards == sorted(set(index["weight_map"].values()))
    assert len(shards) > 2
    sizes = [sum(value.nbytes for value in wl.load(tmp_path / shard).values()) for shard in shards]
    assert index["metadata"]["total_size"] == sum(sizes)
    assert all(size <= 20_000 or len(wl.load(tmp_path / shard)) == 1 for size, shard in zip(sizes, shards, strict=True))
    assert same_numbers(model.state_dict(), models.from_pretrained(tmp_path).state_dict())
    models.save_pretrained(model, tmp_path)  # the shards of before are not left behind
    assert [path.name for path in tmp_path.glob("model*")] == ["model.safetensors"]


def test_a_tokenizer_goes_along(tmp_path: Path) -> None:
    tokenizer = wl.text.CharTokenizer.train("abc ", special_tokens={"bos": "^", "eos": "$", "pad": "_"})
    models.save_pretrained(models.GPT(tokenizer.vocab_size, 8, 8, 2, 1), tmp_path, tokenizer)
    model, again = models.from_pretrained(tmp_path), wl.text.Tokenizer.from_pretrained(tmp_path)
    assert again.encode("cab a").tolist() == tokenizer.encode("cab a").tolist()
    assert (again.bos_id, again.eos_id, again.pad_id) == (tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id)
    assert (model.start_token, model.stop_tokens) == (tokenizer.bos_id, (tokenizer.eos_id,))
    with pytest.raises(InputError, match=r"a tokenizer of 7 tokens for a model of 5"):
        models.save_pretrained(models.GPT(5, 8, 8, 2, 1), tmp_path, tokenizer)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: nn.Linear(2, 3), r"a Linear belongs to no published family(.|\n)*wl.save"),
        (lambda: models.GPT(9, 8, 8, 2, 1, bias=False), r"no equal in the family 'gpt2'(.|\n)*bias=False"),
        (lambda: models.GPT(9, 8, 8, 2, 1, activation="sigmoid"), r"the activation Sigmoid\(.*\) has no name"),
        (lambda: models.GPT(9, 8, 8, 2, 0), r"a GPT without blocks"),
        (lambda: models.Llama(9, 8, 2, 1, out_bias=True), r"out_bias=True"),
        (lambda: models.RWKV(9, 8, 1), r"convention='book'(.|\n)*'official'"),
        (lambda: models.ViT(3, (8, 4, 1), 4, 8, 2, 1), r"images of 8 x 4 pixels"),
        (lambda: models.ViT(3, (8, 8, 1), 4, 8, 2, 1, positions="rotary"), r"no equal in the family 'vit'"),
        (lambda: 3, "3 is no model"),
    ],
)
def test_models_that_no_family_has(make: Callable[[], Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        models.save_pretrained(make(), tmp_path)
    assert not list(tmp_path.iterdir())


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    model = OWN["gpt2"]()
    with pytest.raises(FileError, match="is a file"):
        models.save_pretrained(model, tmp_path / "file")
    with pytest.raises(InputError, match="tokenizer='text'"):
        models.save_pretrained(model, tmp_path / "new", "text")  # type: ignore[arg-type]
    with pytest.raises(WonderlandError, match="max_shard_size"):
        models.save_pretrained(model, tmp_path / "new", max_shard_size=0)


# --- types of numbers


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_sixteen_bits(kind: str, tmp_path: Path) -> None:
    """The type of a file stays, or becomes the one that is asked for; the logits are nearly the same."""
    whole = models.from_pretrained(HOME / "qwen2")
    half = models.from_pretrained(HOME / "qwen2", dtype=kind)
    assert {str(value.dtype) for value in half.state_dict().values()} == {kind}
    models.save_pretrained(half, tmp_path)
    assert read_folder(tmp_path).config["torch_dtype"] == kind
    again = models.from_pretrained(tmp_path)
    assert same_numbers(half.state_dict(), again.state_dict())
    back = models.from_pretrained(tmp_path, dtype=wl.float32)
    tokens = np.arange(12).reshape(2, 6)
    wide = np.asarray(whole(tokens))
    assert np.abs(np.asarray(back(tokens)) - wide).max() < 0.05 * np.abs(wide).max()
    found = again(tokens)
    assert str(found.dtype) == kind
    assert np.abs(np.asarray(found, np.float32) - wide).max() < 0.1 * np.abs(wide).max()
    greedy = wl.generation.greedy(again, [1, 2, 3], 3, jit=False)
    assert len(greedy) == 6


def test_several_types_become_the_widest(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(HOME / "qwen2", tmp_path / "a"))
    tensors = {name: value.astype(wl.bfloat16) for name, value in read_folder(HOME / "qwen2").tensors().items()}
    tensors["model.norm.weight"] = tensors["model.norm.weight"].astype(wl.float32)
    wl.save(tensors, folder / "model.safetensors")
    assert {value.dtype for value in models.from_pretrained(folder).state_dict().values()} == {wl.float32}


@pytest.mark.parametrize("kind", ["float7", "int64", object(), 3, "complex64"])
def test_types_that_do_not_exist(kind: Any) -> None:
    with pytest.raises(DTypeError, match=r"from_pretrained: dtype=(.|\n)*wl.float32"):
        models.from_pretrained(HOME / "gpt2", dtype=kind)


# --- folders that are refused


def changed(name: str, tmp_path: Path, config: Any = None, **tensors: Any) -> Path:
    folder = Path(shutil.copytree(HOME / name, tmp_path / name))
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | (config or {})))
    if tensors:
        wl.save({**read_folder(HOME / name).tensors(), **tensors}, folder / "model.safetensors")
    return folder


@pytest.mark.parametrize(
    "name, config, error, message",
    [
        ("gpt2", {"model_type": "hyena"}, FileError, r"model_type 'hyena'(.|\n)*'gpt2', 'llama'"),
        ("gpt2", {"architectures": ["GPT2Custom"]}, FileError, r"'GPT2Custom'(.|\n)*'GPT2LMHeadModel'"),
        ("gpt2", {"n_positions": 41}, ShapeError, r"'transformer.wpe.weight'(.|\n)*\(40, 24\)(.|\n)*\(41, 24\)"),
        ("gpt2", {"n_inner": 90}, ShapeError, r"mlp.c_fc.weight'(.|\n)*\(24, 96\)(.|\n)*\(24, 90\)"),
        ("gpt2", {"n_head": 5}, WonderlandError, r"5 heads"),
        ("gpt2", {"n_layer": 3}, FileError, r"no tensor 'transformer.h.2.+ and lacks 11 more"),
        ("gpt2", {"n_layer": 9_999}, FileError, "no tensor"),
        ("gpt2", {"n_embd": 1 << 26}, FileError, r"embed_dim = 67,108,864; its weights have [\d,]+ numbers"),
        ("gpt2", {"eos_token_id": 284}, FileError, r"eos_token_id = 284(.|\n)*0 to 283"),
        ("rwkv", {"attention_hidden_size": 1 << 26}, FileError, r"time_hidden = 67,108,864"),
        ("rwkv", {"attention_hidden_size": 23}, ShapeError, r"(.|\n)*\(24,(.|\n)*\(23,"),
        ("rwkv", {"num_hidden_layers": 4}, FileError, r"no tensor 'rwkv.blocks.3"),
        ("llama", {"num_key_value_heads": 1}, ShapeError, r"k_proj.weight'(.|\n)*\(24, 12\)(.|\n)*\(24, 6\)"),
        ("bert_classifier", {"id2label": {"0": "a"}}, ShapeError, r"'classifier.weight'(.|\n)*\(24, 3\)(.|\n)*\(24, 1"),
        ("vit", {"patch_size": 6}, ShapeError, r"vit(.|\n)*\(48, 24\)(.|\n)*\(108, 24\)|position"),
        ("vit", {"patch_size": 5}, WonderlandError, "5"),
        ("whisper", {"max_source_positions": 60}, ShapeError, r"embed_positions(.|\n)*\(50, 16\)(.|\n)*\(60, 16\)"),
        ("t5", {"relative_attention_num_buckets": 16}, ShapeError, r"relative_attention_bias(.|\n)*\(16, 2\)"),
    ],
)  # fmt: skip
def test_weights_of_another_model(
    name: str, config: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    folder = changed(name, tmp_path, config)
    (folder / "generation_config.json").unlink(missing_ok=True)
    with pytest.raises(error, match=message):
        models.from_pretrained(folder)


def test_whole_numbers_are_no_weights(tmp_path: Path) -> None:
    folder = changed("mistral", tmp_path, **{"model.norm.weight": wl.ones(16, dtype=wl.int8)})
    with pytest.raises(DTypeError, match=r"'model.norm.weight' in .+ is of int8(.|\n)*quantisation"):
        models.from_pretrained(folder)


def test_pickles_are_not_opened(tmp_path: Path) -> None:
    folder = changed("gpt2", tmp_path)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(FileError, match=r"pytorch_model.bin(.|\n)*can execute code"):
        models.from_pretrained(folder)
    (folder / "pytorch_model.bin").rename(folder / "model.safetensors")
    (folder / "model.safetensors").write_bytes(b"\x80\x04cos\nsystem\n")
    with pytest.raises(FileError, match="not a sound safetensors file"):
        models.from_pretrained(folder)


@pytest.mark.parametrize("path, message", [("nowhere", "does not exist"), ("gpt2/config.json", "is a file")])
def test_no_folder(path: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        models.from_pretrained(HOME / path)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"size": "large"}, "size = 'large'"),
        ({"size": {"height": 0, "width": 3}}, "size = "),
        ({"resample": 9}, "resample = 9"),
        ({"image_std": [0.5, 0.0, 0.5]}, "image_std"),
        ({"image_mean": None}, "image_mean"),
        ({"do_center_crop": True}, "do_center_crop"),
        ({"rescale_factor": "x"}, "rescale_factor"),
    ],
)
def test_inputs_that_cannot_be_prepared(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder = changed("vit", tmp_path)
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(FileError, match=message):
        models.image_preprocessor(folder)
    with pytest.raises(FileError, match=r"no preprocessor_config.json"):
        models.image_preprocessor(HOME / "gpt2")
    with pytest.raises(ShapeError, match=r"\(12, 12\)"):
        models.image_preprocessor(HOME / "vit")(np.zeros((12, 12), np.uint8))


def test_memory_is_checked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wonderland.core.room.memory", lambda: 1000)
    monkeypatch.setattr("wonderland.core.room.GIBIBYTE", 10)
    with pytest.raises(wl.errors.SizeError, match=r"the weights of .*gpt2 need(.|\n)*dtype=wl.bfloat16"):
        models.from_pretrained(HOME / "gpt2")
