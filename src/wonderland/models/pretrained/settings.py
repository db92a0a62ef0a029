"""From config.json to the arguments of our models: a table per family says what each key becomes or must be."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...core.arguments import shown
from ...core.errors import FileError, InputError

__all__ = [
    "ACTIVATIONS",
    "COMMON",
    "MOST",
    "ROPE_KINDS",
    "Choice",
    "Flag",
    "IgnoredSettingWarning",
    "Like",
    "Number",
    "RotaryBase",
    "RotaryScaling",
    "Setting",
    "Settings",
    "SettingsTable",
    "Size",
    "read_labels",
    "read_settings",
    "write_settings",
]

Settings = dict[str, object]
MOST = 1 << 26  # of any size: tokens, features, positions
LARGEST = 1e30  # of any other number


class IgnoredSettingWarning(UserWarning):
    """A key of config.json that no table here has; the model is made as if it were not there."""


@dataclass(frozen=True)
class Like:
    """A default: the value of another of our settings, or that divided by a second one."""

    other: str
    over: str | None = None


@dataclass(frozen=True)
class Size:
    """A whole number of at least `least`."""

    least: int = 1
    most: int = MOST
    optional: bool = False  # whether null stands for "none"


@dataclass(frozen=True)
class Number:
    """A number above zero."""


@dataclass(frozen=True)
class Flag:
    """True or false."""


@dataclass(frozen=True)
class Choice:
    """One of some texts, each with our word for it."""

    words: Mapping[str, object]


@dataclass(frozen=True)
class RotaryBase:
    """The base of the angles: `rope_theta`, beside `rope_scaling` or in `rope_parameters`."""


@dataclass(frozen=True)
class RotaryScaling:
    """How angles are scaled, a table with "rope_type" and its numbers, or None: `rope_scaling` or `rope_parameters`."""


Kind = Size | Number | Flag | Choice | RotaryBase | RotaryScaling


@dataclass(frozen=True)
class Setting:
    """A key of config.json, our argument, what it may be, and what holds where it is missing (None: an error)."""

    theirs: str
    ours: str
    kind: Kind = Size()
    default: object = None


@dataclass(frozen=True)
class SettingsTable:
    """`read` becomes arguments; keys in `fixed` have one of these values; those in `ignored` do not matter, and why."""

    read: tuple[Setting, ...]
    fixed: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    ignored: Mapping[str, str] = field(default_factory=dict)
    always: Mapping[str, object] = field(default_factory=dict)  # arguments that the family has, whatever its config


_TANH, _EXACT = "gelu_tanh", "gelu"
ACTIVATIONS = {  # as `transformers` names them, and ours
    "relu": "relu",
    "gelu": _EXACT,
    "gelu_new": _TANH,
    "gelu_fast": _TANH,
    "gelu_pytorch_tanh": _TANH,
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}

ROPE_KINDS = {  # what each kind of scaled positions needs, and what it may have besides
    "default": ((), ()),
    "linear": (("factor",), ()),
    "llama3": (("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"), ()),
    "yarn": (
        ("factor", "original_max_position_embeddings"),
        ("beta_fast", "beta_slow", "attention_factor", "truncate"),
    ),
}

_TRAINING = "matters while training only"
_HOUSEKEEPING = "says nothing about the model's outputs"
COMMON: Mapping[str, str] = {
    "_name_or_path": _HOUSEKEEPING,
    "_attn_implementation_autoset": _HOUSEKEEPING,
    "_num_labels": _HOUSEKEEPING,
    "architectures": "chooses the family, see find_family",
    "model_type": "chooses the family, see find_family",
    "transformers_version": _HOUSEKEEPING,
    "torch_dtype": "the files say of which type each tensor is",
    "dtype": "the files say of which type each tensor is",
    "use_cache": _HOUSEKEEPING,
    "return_dict": _HOUSEKEEPING,
    "output_attentions": _HOUSEKEEPING,
    "output_hidden_states": _HOUSEKEEPING,
    "gradient_checkpointing": _TRAINING,
    "initializer_range": _TRAINING,
    "initializer_factor": _TRAINING,
    "init_std": _TRAINING,
    "problem_type": _TRAINING,
    "chunk_size_feed_forward": "cuts work into parts of the same result",
    "task_specific_params": "suggestions for calls of generate",
    "finetuning_task": _HOUSEKEEPING,
    "bos_token_id": "belongs to decoding, and is read there",
    "eos_token_id": "belongs to decoding, and is read there",
    "pad_token_id": "belongs to decoding, and is read there",
    "decoder_start_token_id": "belongs to decoding, and is read there",
    "id2label": "names of classes, read by the classifiers",
    "label2id": "names of classes, read by the classifiers",
    "num_labels": "the number of id2label",
    "is_encoder_decoder": "follows from the family",
    "tokenizer_class": _HOUSEKEEPING,
    "prefix": _HOUSEKEEPING,
    "auto_map": "names Python files, which are never run",
}


def read_settings(table: SettingsTable, config: Mapping[str, object], source: str = "config.json") -> Settings:
    """The arguments of our model for a config.json; `source` is its name in messages.

    >>> from wonderland.models.pretrained import FAMILIES, read_settings
    >>> config = {"model_type": "gpt2", "vocab_size": 50, "n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 8}
    >>> settings = read_settings(FAMILIES["gpt2"].settings, config)
    >>> settings["embed_dim"], settings["hidden"], settings["activation"]
    (12, None, 'gelu_tanh')
    """
    if "quantization_config" in config:
        raise _refused(source, "quantization_config", config["quantization_config"], "weights that are not quantised")
    for key, values in table.fixed.items():
        if key in config and not any(_equal(config[key], value) for value in values):
            raise _refused(source, key, config[key], " or ".join(map(repr, values)) + "; nothing else is built here")
    found: Settings = dict(table.always)
    for setting in table.read:
        found[setting.ours] = _value(setting, config, found, source)
    known = {*COMMON, *table.fixed, *table.ignored, *(setting.theirs for setting in table.read)}
    if "rope_scaling" in known:
        known.add("rope_parameters")
    strange = sorted(key for key in config if key not in known and config[key] not in (None, False))
    if strange:
        warnings.warn(
            f"{source}: {', '.join(map(shown, strange))} is not known here and is ignored; compare the first outputs "
            "with those of the original.",
            IgnoredSettingWarning,
            stacklevel=2,
        )
    return found


def write_settings(table: SettingsTable, settings: Settings, config: Mapping[str, object] | None = None) -> Settings:
    """A config.json for the arguments of our model, the inverse of `read_settings`.

    `config` is one to begin with, of which everything stays that does not follow from the settings.

    >>> from wonderland.models.pretrained import FAMILIES, read_settings, write_settings
    >>> table = FAMILIES["gpt2"].settings
    >>> config = {"vocab_size": 50, "n_embd": 12, "n_layer": 2, "n_head": 3, "n_positions": 8}
    >>> written = write_settings(table, read_settings(table, config))
    >>> written["n_head"], written["activation_function"]
    (3, 'gelu_new')
    """
    before = dict(config or {})
    for ours, value in table.always.items():
        if settings.get(ours, value) != value:
            raise InputError(f"save_pretrained: {ours}={settings[ours]!r}.", f"{value!r}: this family has nothing else")
    found: Settings = {} if before else {key: values[0] for key, values in table.fixed.items()}
    chosen: dict[str, list[str]] = {}
    for setting in table.read:
        value, key = settings[setting.ours], setting.theirs
        match setting.kind:
            case RotaryBase():
                found["rope_theta"] = value
            case RotaryScaling():
                found["rope_scaling"] = _written_scaling(value)
            case Choice(words):
                fitting = [word for word, ours in words.items() if ours == value and word in chosen.get(key, words)]
                if not fitting:
                    raise InputError(f"save_pretrained: {setting.ours}={value!r}.", f"one of {[*words.values()]}")
                chosen[key] = fitting
                found[key] = before[key] if before.get(key) in fitting else fitting[0]
            case _:
                if key in found and found[key] != value:
                    raise InputError(
                        f"save_pretrained: {setting.ours}={value!r}, and {key!r} is already {found[key]!r}.",
                        "the same for all layers that share this setting",
                    )
                found[key] = value
    if before.pop("rope_parameters", None) is not None:  # the form of today has both in one table
        scaling = found.pop("rope_scaling") or {"rope_type": "default"}
        assert isinstance(scaling, dict)
        found["rope_parameters"] = scaling | {"rope_theta": found.pop("rope_theta")}
        before.pop("rope_scaling", None)
    return before | found


def _written_scaling(scaling: object) -> object:
    """A table of angles, in which numbers of places are whole."""
    if not isinstance(scaling, Mapping):
        return None
    return {
        name: int(value) if isinstance(value, float) and name.endswith("embeddings") and value.is_integer() else value
        for name, value in scaling.items()
    }


def read_labels(config: Mapping[str, object], source: str = "config.json") -> tuple[str, ...]:
    """The names of the classes in order, from `id2label`; LABEL_0 and LABEL_1 where there is none.

    >>> read_labels({"id2label": {"1": "dog", "0": "cat"}})
    ('cat', 'dog')
    """
    found = config.get("id2label")
    if found is None:
        count = _checked(Size(), "num_labels", config.get("num_labels", 2), source)
        assert isinstance(count, int)
        return tuple(f"LABEL_{i}" for i in range(min(count, 1 << 20)))
    if not isinstance(found, dict) or set(found) != {str(i) for i in range(len(found))} or not found:
        raise _refused(source, "id2label", found, 'a table such as {"0": "cat", "1": "dog"}')
    return tuple(str(found[str(i)]) for i in range(len(found)))


def _value(setting: Setting, config: Mapping[str, object], before: Settings, source: str) -> object:
    kind, key = setting.kind, setting.theirs
    if isinstance(kind, RotaryBase):
        _, table = _rotary_table(config, source)
        theta = table.get("rope_theta", config.get("rope_theta"))
        return _checked(Number(), "rope_theta", setting.default if theta is None else theta, source)
    if isinstance(kind, RotaryScaling):
        return _rotary_scaling(config, source)
    value = config.get(key)
    optional = isinstance(kind, Size) and kind.optional
    if value is None:
        if isinstance(setting.default, Like):
            return _like(setting, setting.default, before, source)
        if setting.default is not None:
            return _checked(kind, key, setting.default, source)
        if optional:
            return None
        raise FileError(f"{source} has no {key!r}.", "the config.json that was published with the weights")
    return _checked(kind, key, value, source)


def _like(setting: Setting, default: Like, before: Settings, source: str) -> object:
    value = before[default.other]
    if default.over is None:
        return value
    parts = before[default.over]
    assert isinstance(value, int)
    assert isinstance(parts, int)
    if value % parts:
        raise FileError(
            f"{source}: {default.other} = {value} cannot be divided into {default.over} = {parts} parts of one size.",
            f"sizes that divide, or {setting.theirs!r} in the file",
        )
    return value // parts


def _checked(kind: Kind, key: str, value: object, source: str) -> object:
    match kind:
        case Size():
            if type(value) is int and kind.least <= value <= kind.most:
                return value
            raise _refused(source, key, value, f"a whole number from {kind.least} to {kind.most:,}")
        case Number():
            if isinstance(value, (int, float)) and type(value) is not bool and 0 < value < LARGEST:
                return float(value)
            raise _refused(source, key, value, f"a number above zero and below {LARGEST:g}")
        case Flag():
            if isinstance(value, bool):
                return value
            raise _refused(source, key, value, "true or false")
        case Choice():
            if isinstance(value, str) and value in kind.words:
                return kind.words[value]
            raise _refused(source, key, value, "one of " + ", ".join(map(repr, kind.words)))
    raise AssertionError(kind)


def _rotary_table(config: Mapping[str, object], source: str) -> tuple[str, Mapping[str, object]]:
    """The key under which a file has its table of angles, and the table, which may be empty."""
    key = "rope_parameters" if config.get("rope_parameters") is not None else "rope_scaling"
    table = config.get(key)
    if table is None:
        return key, {}
    if not isinstance(table, dict):
        raise _refused(source, key, table, 'a table such as {"rope_type": "linear", "factor": 2.0}')
    return key, table


def _rotary_scaling(config: Mapping[str, object], source: str) -> dict[str, object] | None:
    key, table = _rotary_table(config, source)
    kind = table.get("rope_type", table.get("type", "default"))
    if not isinstance(kind, str) or kind not in ROPE_KINDS:
        raise _refused(source, f"{key}.rope_type", kind, "one of " + ", ".join(map(repr, ROPE_KINDS)))
    needed, possible = ROPE_KINDS[kind]
    found: dict[str, object] = {"rope_type": kind}
    for name in (*needed, *possible):
        value = table.get(name)
        if value is not None:
            found[name] = _checked(Flag() if name == "truncate" else Number(), f"{key}.{name}", value, source)
        elif name in needed:
            raise FileError(f"{source}: {key} of the type {kind!r} has no {name!r}.", "the file that was published")
    words = {"type", "rope_type", "rope_theta", "partial_rotary_factor", *needed, *possible}
    if strange := sorted(name for name in set(table) - words if table[name] is not None):
        raise _refused(source, f"{key}.{strange[0]}", table[strange[0]], f"only {', '.join(sorted(words))}")
    if not _equal(share := table.get("partial_rotary_factor", 1.0), 1.0):
        remedy = "1.0: all features of a head turn in the models here"
        raise _refused(source, f"{key}.partial_rotary_factor", share, remedy)
    return None if kind == "default" else found


def _equal(value: object, other: object) -> bool:
    """Equal, and true is not 1."""
    return isinstance(value, bool) == isinstance(other, bool) and value == other


def _refused(source: str, key: str, value: object, remedy: str) -> FileError:
    return FileError(f"{source}: {key} = {shown(value)} is not something that can be read here.", remedy)
