"""What becomes of config.json: arguments, refusals with the key and the remedy, warnings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wonderland.errors import FileError
from wonderland.models.pretrained import FAMILIES, IgnoredSettingWarning, find_family, read_labels, read_settings

HOME = Path(__file__).parents[2] / "checkpoints"
NAMES = sorted(folder.name for folder in HOME.iterdir() if folder.is_dir())


def config(name: str) -> dict[str, Any]:
    return json.loads((HOME / name / "config.json").read_text())


def settings(name: str, **changes: object) -> dict[str, Any]:
    changed = config(name) | changes
    return read_settings(find_family(changed)[0].settings, changed)


@pytest.mark.parametrize("name", NAMES)
def test_every_key_has_its_place(name: str) -> None:
    settings(name)  # a key that no table has would warn, and warnings are errors


def test_sizes_that_follow_from_others() -> None:
    found = settings("llama", num_key_value_heads=None, head_dim=None)
    assert (found["kv_heads"], found["head_size"]) == (4, 6)
    assert settings("qwen3")["head_size"] == 8
    assert settings("t5", num_decoder_layers=None)["decoder_layers"] == 2
    with pytest.raises(FileError, match=r"embed_dim = 24 cannot be divided into num_heads = 5 parts(.|\n)*'head_dim'"):
        settings("llama", num_attention_heads=5, head_dim=None)


def test_angles_in_the_old_and_the_new_form() -> None:
    llama3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}
    table = llama3 | {"rope_type": "llama3", "rope_theta": 500.0}
    old, new = settings("llama"), settings("llama", rope_scaling=None, rope_theta=None, rope_parameters=table)
    for found in (old, new):
        assert found["rope_base"] == 500.0
        assert found["rope_scaling"] == llama3 | {"rope_type": "llama3"}
    assert settings("llama_tied")["rope_scaling"] == {"rope_type": "linear", "factor": 4.0}
    plain = settings("mistral", rope_parameters=None, rope_theta=None)
    assert (plain["rope_base"], plain["rope_scaling"]) == (10000.0, None)
    yarn = {"type": "yarn", "factor": 4, "original_max_position_embeddings": 64, "truncate": False}
    assert settings("qwen2", rope_scaling=yarn)["rope_scaling"]["truncate"] is False


@pytest.mark.parametrize(
    "rope, message",
    [
        ({"rope_type": "spiral"}, r"rope_scaling.rope_type = 'spiral'(.|\n)*'default', 'linear', 'llama3'"),
        ({"type": ["linear"]}, "rope_type"),
        ({"rope_type": "linear"}, "'linear' has no 'factor'"),
        ({"rope_type": "linear", "factor": 0}, "rope_scaling.factor = 0"),
        ({"rope_type": "linear", "factor": "2"}, "rope_scaling.factor = '2'"),
        ({"rope_type": "linear", "factor": True}, "rope_scaling.factor = True"),
        ({"rope_type": "linear", "factor": float("nan")}, "rope_scaling.factor = nan"),
        ({"rope_type": "default", "partial_rotary_factor": 0.5}, "partial_rotary_factor = 0.5"),
        ({"rope_type": "default", "mrope_section": [1, 2]}, "mrope_section"),
        ("linear", "rope_scaling = 'linear'"),
    ],
)
def test_angles_that_are_refused(rope: object, message: str) -> None:
    with pytest.raises(FileError, match=message):
        settings("llama", rope_scaling=rope)


@pytest.mark.parametrize(
    "name, changes, message",
    [
        ("gpt2", {"activation_function": "quick_gelu"}, r"activation_function = 'quick_gelu'(.|\n)*'gelu_new'"),
        ("gpt2", {"activation_function": None, "n_layer": None}, "has no 'n_layer'"),
        ("gpt2", {"n_embd": 0}, r"n_embd = 0 is not(.|\n)*from 1 to"),
        ("gpt2", {"n_embd": 24.0}, "n_embd = 24.0"),
        ("gpt2", {"n_embd": True}, "n_embd = True"),
        ("gpt2", {"n_embd": 2**40}, "n_embd = 1099511627776"),
        ("gpt2", {"n_layer": 10**6}, "n_layer = 1000000"),
        ("gpt2", {"layer_norm_epsilon": -1e-5}, "layer_norm_epsilon"),
        ("gpt2", {"layer_norm_epsilon": 10**400}, "layer_norm_epsilon"),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx = True"),
        ("llama", {"tie_word_embeddings": 1}, "tie_word_embeddings = 1 (.|\n)*true or false"),
        ("llama", {"quantization_config": {"bits": 4}}, "quantization_config"),
        ("qwen2", {"use_sliding_window": True}, "use_sliding_window = True"),
        ("bert", {"position_embedding_type": "relative_key"}, r"'relative_key'(.|\n)*'absolute'"),
        ("bert", {"is_decoder": True}, "is_decoder"),
        ("t5", {"feed_forward_proj": "gated-relu"}, "feed_forward_proj = 'gated-relu'"),
        ("vit", {"image_size": [12, 12]}, "image_size"),
        ("whisper", {"use_weighted_layer_sum": True}, "use_weighted_layer_sum"),
    ],
)
def test_what_no_model_here_has_is_refused(name: str, changes: dict[str, object], message: str) -> None:
    with pytest.raises(FileError, match=message):
        settings(name, **changes)


def test_unknown_families_and_classes() -> None:
    with pytest.raises(FileError, match=r"model_type 'hyena'(.|\n)*'gpt2', 'llama', 'mistral', 'qwen2', 'qwen3'"):
        find_family({"model_type": "hyena"})
    with pytest.raises(FileError, match="model_type None"):
        find_family({})
    with pytest.raises(FileError, match=r"\['GPT2ForTokenClassification'\](.|\n)*'GPT2LMHeadModel'"):
        find_family({"model_type": "gpt2", "architectures": ["GPT2ForTokenClassification"]})
    for strange in ("GPT2LMHeadModel", [], [["GPT2LMHeadModel"]], [None]):
        with pytest.raises(FileError, match="architectures"):
            find_family({"model_type": "gpt2", "architectures": strange})
    assert find_family({"model_type": "gpt2"})[0] is FAMILIES["gpt2"]


def test_a_key_that_nobody_knows_warns() -> None:
    with pytest.warns(IgnoredSettingWarning, match="'new_trick' is not known here"):
        settings("llama", new_trick=3, other=None, off=False)


def test_classes() -> None:
    assert read_labels(config("vit")) == ("LABEL_0", "LABEL_1", "LABEL_2", "LABEL_3", "LABEL_4")
    assert read_labels({"id2label": {"1": "dog", "0": "cat"}}) == ("cat", "dog")
    assert read_labels({}) == ("LABEL_0", "LABEL_1")
    for strange in ({}, {"1": "dog"}, ["cat"], {"a": "cat"}):
        with pytest.raises(FileError, match="id2label"):
            read_labels({"id2label": strange})
