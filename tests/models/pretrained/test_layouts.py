"""Names and layouts of every family: each tensor of a file is one of ours, and the way back gives the same file."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import wonderland as wl
from wonderland.errors import FileError, ShapeError
from wonderland.models.pretrained import FAMILIES, read_checkpoint, read_folder, read_state, settle, write_state

HOME = Path(__file__).parents[2] / "checkpoints"
NAMES = sorted(folder.name for folder in HOME.iterdir() if folder.is_dir())


def numbers(tensors: dict[str, wl.Tensor]) -> dict[str, np.ndarray]:
    return {name: np.asarray(value) for name, value in tensors.items()}


def changed(name: str, tmp_path: Path, **changes: np.ndarray | None) -> Path:
    """A copy of a folder with some tensors replaced, or left out (None)."""
    folder = Path(shutil.copytree(HOME / name, tmp_path / name))
    tensors = dict(read_folder(folder).tensors())
    for key, value in changes.items():
        tensors.pop(key, None)
        if value is not None:
            tensors[key] = wl.asarray(value)
    wl.save(tensors, folder / "model.safetensors")
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_the_way_back_gives_the_same_file(name: str) -> None:
    found = read_checkpoint(HOME / name)
    family = found.family
    theirs = {}
    for key, value in numbers(found.folder.tensors()).items():
        for old, new in family.aliases.items():
            key = key.replace(old, new)
        if not key.endswith(".attn.bias"):  # GPT-2's causal mask
            theirs[key if key.startswith(family.prefix) or name != "gpt2" else family.prefix + key] = value
    written = numbers(write_state(family, found.settings, found.state))
    assert set(written) == set(theirs)
    assert all(np.array_equal(written[key], theirs[key]) for key in theirs)
    again = read_state(family, found.settings, write_state(family, found.settings, found.state))
    assert all(np.array_equal(np.asarray(again[key]), np.asarray(found.state[key])) for key in found.state)


@pytest.mark.parametrize("name", NAMES)
def test_every_number_has_one_place(name: str) -> None:
    found = read_checkpoint(HOME / name)
    masks = sum(value.size for key, value in found.folder.tensors().items() if key.endswith(".attn.bias"))
    sizes = [sum(value.size for value in table.values()) for table in (found.state, found.folder.tensors())]
    assert sizes[0] == sizes[1] - masks


def test_matrices_are_turned() -> None:
    state, file = read_checkpoint(HOME / "qwen3").state, read_folder(HOME / "qwen3").tensors()
    weight = np.asarray(state["stack.blocks.1.attention.query.weight"])
    assert weight.shape == (16, 4 * 8)
    np.testing.assert_array_equal(weight, np.asarray(file["model.layers.1.self_attn.q_proj.weight"]).T)
    state, file = read_checkpoint(HOME / "gpt2").state, read_folder(HOME / "gpt2").tensors()
    fused = np.asarray(file["h.1.attn.c_attn.weight"])
    for i, part in enumerate(("query", "key", "value")):
        np.testing.assert_array_equal(
            np.asarray(state[f"stack.blocks.1.attention.{part}.weight"]), fused[:, 24 * i : 24 * (i + 1)]
        )
    np.testing.assert_array_equal(
        np.asarray(state["stack.blocks.0.feed_forward.up.weight"]), np.asarray(file["h.0.mlp.c_fc.weight"])
    )


def test_kernels_are_turned() -> None:
    """A convolution with our layout gives what PyTorch's formula gives."""
    state, file = read_checkpoint(HOME / "whisper").state, read_folder(HOME / "whisper").tensors()
    x = np.random.default_rng(0).standard_normal((9, 16)).astype(np.float32)
    theirs = np.asarray(file["model.encoder.conv1.weight"])  # (out, in, kernel)
    wanted = sum(x[k : k + 7] @ theirs[:, :, k].T for k in range(3))
    layer = wl.nn.Conv1d(16, 16, 3, bias=False)
    layer.load_state_dict({"weight": state["conv1.weight"]})
    np.testing.assert_allclose(np.asarray(layer(x[None]))[0], wanted, atol=1e-4)
    assert state_shape("vit", "patches.projection.weight") == (4 * 4 * 3, 24)
    assert state_shape("vit", "class_token.weight") == (1, 24)
    assert state_shape("vit", "positions.weight") == (10, 24)


def state_shape(name: str, key: str) -> tuple[int, ...]:
    return read_checkpoint(HOME / name).state[key].shape


def test_heads_are_what_the_file_has(tmp_path: Path) -> None:
    bert = read_checkpoint(HOME / "bert").settings
    parts = ("pooler", "masked_head", "next_sentence_head", "classifier_head")
    assert [bert[part] for part in parts] == [True, True, True, False]
    names: dict[str, None] = {f"cls.seq_relationship.{part}": None for part in ("weight", "bias")}
    assert not read_checkpoint(changed("bert", tmp_path, **names)).settings["next_sentence_head"]
    folder = changed("bert_classifier", tmp_path, **{"classifier.weight": None})
    with pytest.raises(FileError, match=r"'classifier.weight', but config.json names a model with it"):
        read_checkpoint(folder)


def test_tied_heads(tmp_path: Path) -> None:
    """A head that repeats the embedding is accepted; one with other numbers only where its config says so."""
    gpt2, t5 = HOME / "gpt2", HOME / "t5"
    table = np.asarray(read_folder(gpt2).tensors()["wte.weight"])
    found = read_checkpoint(changed("gpt2", tmp_path / "same", **{"lm_head.weight": table}))
    assert "head.weight" not in found.state
    with pytest.raises(FileError, match=r"'lm_head.weight' with other numbers(.|\n)*\"tie_word_embeddings\": false"):
        read_checkpoint(changed("gpt2", tmp_path / "other", **{"lm_head.weight": table + 1}))
    shared = np.asarray(read_folder(t5).tensors()["shared.weight"])
    copies = {f"{side}.embed_tokens.weight": shared for side in ("encoder", "decoder")}
    found = read_checkpoint(changed("t5", tmp_path / "tied", **copies, **{"lm_head.weight": shared}))
    assert found.settings["tied"] is True
    found = read_checkpoint(changed("t5", tmp_path / "free", **{"lm_head.weight": shared + 1}))
    assert (found.settings["tied"], found.settings["scaled"]) == (False, True)
    np.testing.assert_array_equal(np.asarray(found.state["head.weight"]), (shared + 1).T)


def test_missing_strange_and_doubled_tensors(tmp_path: Path) -> None:
    folder = changed("mistral", tmp_path / "a", **{"model.norm.weight": None})
    with pytest.raises(FileError, match=r"mistral has no tensor 'model.norm.weight', which a 'mistral' model"):
        read_checkpoint(folder)
    folder = changed("mistral", tmp_path / "b", **{"model.layers.0.lora_A.weight": np.zeros(3, np.float32)})
    with pytest.raises(FileError, match=r"has a tensor 'model.layers.0.lora_A.weight' that(.|\n)*adapters"):
        read_checkpoint(folder)
    folder = changed("mistral", tmp_path / "c", **{"model.layers.3.mlp.up_proj.weight": np.zeros((48, 16), np.float32)})
    with pytest.raises(FileError, match=r"'model.layers.3.mlp.up_proj.weight'"):
        read_checkpoint(folder)
    folder = changed("gpt2", tmp_path / "d", **{"transformer.wte.weight": np.zeros((284, 24), np.float32)})
    with pytest.raises(FileError, match=r"two tensors of the folder are 'transformer.wte.weight'"):
        read_checkpoint(folder)


@pytest.mark.parametrize(
    "name, key, shape, message",
    [
        ("llama_tied", "model.layers.0.mlp.up_proj.weight", (56, 24, 1), r"\(56, 24, 1\)(.|\n)*2 axes"),
        ("gpt2", "h.0.attn.c_attn.weight", (24, 73), r"\(24, 73\)(.|\n)*3 equal parts"),
        ("gpt2", "h.0.attn.c_attn.bias", (), r"shape \(\)"),
        ("vit", "vit.embeddings.cls_token", (2, 1, 24), r"\(2, 1, 24\)(.|\n)*\(1, \.\.\.\)"),
        ("vit", "vit.embeddings.cls_token", (), r"shape \(\)"),
    ],
)
def test_tensors_that_do_not_fit_their_layout(
    tmp_path: Path, name: str, key: str, shape: tuple[int, ...], message: str
) -> None:
    folder = changed(name, tmp_path, **{key: np.zeros(shape, np.float32)})
    with pytest.raises(ShapeError, match=message):
        read_checkpoint(folder)


def test_tensors_of_another_shape_than_the_model(tmp_path: Path) -> None:
    found = read_checkpoint(HOME / "qwen2")
    shapes = {name: value.shape for name, value in found.state.items()}
    tensors = found.folder.tensors()
    read_state(found.family, found.settings, tensors, shapes)
    shapes["stack.blocks.1.attention.key.weight"] = (24, 24)
    message = r"k_proj.weight' in x gives 'stack.blocks.1.attention.key.weight' the shape \(24, 12\)"
    with pytest.raises(ShapeError, match=message):
        read_state(found.family, found.settings, tensors, shapes, "x")
    del shapes["stack.blocks.1.attention.key.weight"]
    with pytest.raises(ShapeError, match="which the model does not have"):
        read_state(found.family, found.settings, tensors, shapes, "x")


def test_a_model_without_a_tensor_is_not_written() -> None:
    found = read_checkpoint(HOME / "qwen2")
    state = {name: value for name, value in found.state.items() if name != "stack.norm.weight"}
    with pytest.raises(ShapeError, match=r"no tensor 'stack.norm.weight' for 'model.norm.weight'"):
        write_state(found.family, found.settings, state)


def test_sixteen_bits_stay_so() -> None:
    found = read_checkpoint(HOME / "llama_tied")
    half = {name: value.astype(wl.bfloat16) for name, value in found.folder.tensors().items()}
    state = read_state(found.family, settle(found.family, found.ends, found.settings, half), half)
    assert {value.dtype for value in state.values()} == {wl.bfloat16}


def test_our_names_are_used_once() -> None:
    for family in FAMILIES.values():
        plain = [(name, entry.when) for entry in family.tensors for name in entry.ours]
        assert len(plain) == len(set(plain))
