"""What a folder says beside its settings and weights: tokens that begin and end texts, names of classes, inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...core.arguments import shown
from ...core.errors import FileError
from ..transformers.whisper import SpeechTokens
from .folder import GENERATION, Folder, Json

__all__ = ["Origin", "speech_tokens", "start_token", "stop_tokens"]


@dataclass(frozen=True, eq=False)
class Origin:
    """What `save_pretrained` writes back as it was read: `model.origin` of a model that `from_pretrained` made."""

    model_type: str
    ends: str
    config: Json
    generation: Json = field(default_factory=dict)
    preprocessor: Json = field(default_factory=dict)


def stop_tokens(folder: Folder, vocabulary: int) -> tuple[int, ...]:
    """The tokens that end a text: none, one or several."""
    found = _said(folder, "eos_token_id")
    return _tokens(folder, "eos_token_id", found if isinstance(found, list) else [found], vocabulary)


def start_token(folder: Folder, vocabulary: int, decoder: bool = False) -> int | None:
    """The token that begins a text: that of a decoder beside an encoder, or the first of a text."""
    key = "decoder_start_token_id" if decoder else "bos_token_id"
    found = _tokens(folder, key, [_said(folder, key)], vocabulary)
    return found[0] if found else None


def speech_tokens(folder: Folder, vocabulary: int) -> SpeechTokens:
    """What Whisper's generation_config.json says about languages and tasks, and about tokens that are not written."""
    lists = {}
    for key in ("suppress_tokens", "begin_suppress_tokens"):
        found = _said(folder, key)
        lists[key] = _tokens(folder, key, found if isinstance(found, list) else [found], vocabulary)
    tables = {}
    for key in ("lang_to_id", "task_to_id"):
        table = folder.generation.get(key)
        if table is not None and not isinstance(table, dict):
            raise _refused(folder, key, table, 'a table such as {"<|en|>": 50259}')
        names = list(table or {})
        numbers = _tokens(folder, key, [(table or {})[name] for name in names], vocabulary)
        if len(numbers) < len(names):
            raise _refused(folder, key, table, "a token for each name")
        tables[key] = {name.removeprefix("<|").removesuffix("|>"): n for name, n in zip(names, numbers, strict=True)}
    silent = _tokens(folder, "no_timestamps_token_id", [_said(folder, "no_timestamps_token_id")], vocabulary)
    return SpeechTokens(
        tables["lang_to_id"],
        tables["task_to_id"],
        silent[0] if silent else None,
        lists["suppress_tokens"],
        lists["begin_suppress_tokens"],
    )


def _said(folder: Folder, key: str) -> object:
    found = folder.generation.get(key)
    return folder.config.get(key) if found is None else found


def _tokens(folder: Folder, key: str, found: list[object], vocabulary: int) -> tuple[int, ...]:
    tokens = []
    for token in found:
        if token is None or (type(token) is int and token == -1):  # "none" in some files
            continue
        if type(token) is not int or not 0 <= token < vocabulary:
            raise _refused(folder, key, token, f"a token from 0 to {vocabulary - 1}")
        tokens.append(token)
    return tuple(tokens)


def _refused(folder: Folder, key: str, value: object, remedy: str) -> FileError:
    return FileError(f"from_pretrained: {key} = {shown(value)} in {folder.path} ({GENERATION}, or config).", remedy)


def label_tables(labels: tuple[str, ...]) -> Mapping[str, object]:
    """The names of classes as config.json has them."""
    return {
        "id2label": {str(i): label for i, label in enumerate(labels)},
        "label2id": {label: i for i, label in enumerate(labels)},
    }
