"""Folders of Hugging Face, sound ones and damaged ones; tests/checkpoints is made by tools/transformers_reference."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import FileError, WonderlandError
from wonderland.models.pretrained import IgnoredSettingWarning, read_checkpoint, read_folder

HOME = Path(__file__).parents[2] / "checkpoints"
INDEX = "model.safetensors.index.json"
SHARD = "model-00002-of-00003.safetensors"


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    return Path(shutil.copytree(HOME / "llama", tmp_path / "llama"))


def edit(path: Path, change: Callable[[dict], object]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def test_shards_are_one_table(sharded: Path) -> None:
    found = read_folder(sharded).tensors()
    where = json.loads((sharded / INDEX).read_text())["weight_map"]
    assert set(found) == set(where)
    wl.save(found, sharded / "model.safetensors")
    for shard in sharded.glob("model-*"):
        shard.unlink()
    again = read_folder(sharded).tensors()
    assert all(np.array_equal(np.asarray(found[name]), np.asarray(again[name])) for name in where)


def test_generation_settings_are_read() -> None:
    assert read_folder(HOME / "whisper").generation["decoder_start_token_id"] == 277
    assert read_folder(HOME / "vit").generation == {}


def test_a_missing_shard(sharded: Path) -> None:
    (sharded / SHARD).unlink()
    with pytest.raises(FileError, match=rf"lacks '{SHARD}' of the 3 files that {INDEX} names(.|\n)*download"):
        read_checkpoint(sharded)


def test_an_index_that_names_a_tensor_its_shard_has_not(sharded: Path) -> None:
    edit(sharded / INDEX, lambda index: index["weight_map"].update({"model.extra": SHARD}))
    with pytest.raises(FileError, match=rf"says that 'model.extra' is in {SHARD}, which does not have it"):
        read_checkpoint(sharded)


@pytest.mark.parametrize(
    "place", ["../other.safetensors", "/etc/passwd", "weights.bin", 3, None, "a\\b.safetensors", "sub/a.safetensors"]
)
def test_an_index_stays_in_its_folder(sharded: Path, place: object) -> None:
    edit(sharded / INDEX, lambda index: index["weight_map"].update({"model.norm.weight": place}))
    with pytest.raises(FileError, match=r"index\.json"):
        read_checkpoint(sharded)


@pytest.mark.parametrize("content", ["{}", '{"weight_map": {}}', '{"weight_map": []}', "[]", "{", ""])
def test_an_index_without_a_map(sharded: Path, content: str) -> None:
    (sharded / INDEX).write_text(content)
    with pytest.raises(FileError, match=r"index\.json"):
        read_checkpoint(sharded)


def test_folders_without_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="does not exist"):
        read_folder(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="is a file"):
        read_folder(tmp_path / "file")
    with pytest.raises(FileError, match=r"no config\.json"):
        read_folder(tmp_path)
    shutil.copy(HOME / "gpt2" / "config.json", tmp_path)
    with pytest.raises(FileError, match=r"neither model.safetensors nor model.safetensors.index.json"):
        read_checkpoint(tmp_path)
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(FileError, match=r"pytorch_model\.bin(.|\n)*can execute code"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize(
    "content", ["[1]", "{", "null", '"text"', '{"a": 1, "a": 2}', "[" * 100, "\xff", " " * 2_000_000]
)
def test_a_config_that_is_no_table(sharded: Path, content: str) -> None:
    (sharded / "config.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(FileError, match=r"config.json"):
        read_folder(sharded)


def test_damage_anywhere_gives_an_error_of_ours(sharded: Path) -> None:
    """Bytes changed, removed and repeated: a result or an error of the family, and nothing else."""
    draw = random.Random(5)
    for _ in range(150):
        file = sharded / draw.choice(["config.json", INDEX, SHARD])
        sound = file.read_bytes()
        damaged = bytearray(sound)
        for _ in range(draw.choice([1, 3])):
            at = draw.randrange(min(len(damaged), 1500))
            how = draw.randrange(3)
            if how == 0:
                damaged[at] = draw.randrange(256)
            elif how == 1:
                del damaged[at : at + draw.randrange(1, 30)]
            else:
                damaged[at:at] = damaged[at : at + draw.randrange(1, 30)]
        file.write_bytes(damaged)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IgnoredSettingWarning)  # a key may have got another name
            with contextlib.suppress(WonderlandError):
                read_checkpoint(sharded)
        file.write_bytes(sound)
