"""Which token plays which part, as the folder of a published tokenizer says it beside its `tokenizer.json`."""

from __future__ import annotations

import os
from pathlib import Path

from ..core.errors import FileError
from ..storage.parsing import parse_json
from .special_tokens import ROLES

LONGEST = 1 << 24  # bytes; files with thousands of added tokens have some million


def tokenizer_file(folder: str | os.PathLike[str]) -> Path:
    """The `tokenizer.json` of a folder."""
    home = Path(folder)
    found = home / "tokenizer.json"
    if not home.is_dir() or not found.is_file():
        what = "has no tokenizer.json" if home.is_dir() else "is no folder"
        raise FileError(
            f"Tokenizer.from_pretrained: {home} {what}.",
            "the folder of a published model, downloaded to this machine; older ones have vocab.json or a "
            "sentencepiece model instead, of which `transformers` makes a tokenizer.json",
        )
    return found


def published_roles(folder: str | os.PathLike[str]) -> dict[str, str | None]:
    """The parts that tokenizer_config.json names, for `Tokenizer.from_file`."""
    path = Path(folder) / "tokenizer_config.json"
    if not path.is_file():
        return {}
    try:
        with path.open("rb") as file:
            text = file.read(LONGEST + 1)
        table = parse_json(text) if len(text) <= LONGEST else None
    except (OSError, ValueError) as error:
        raise FileError(f"Tokenizer.from_pretrained: {path} cannot be read: {error}.", "another copy of it") from None
    if not isinstance(table, dict):
        raise FileError(f"Tokenizer.from_pretrained: {path} is no table of less than 16 MiB.", "another copy of it")
    roles: dict[str, str | None] = {}
    for role in ROLES:
        token = table.get(f"{role}_token")
        token = token.get("content") if isinstance(token, dict) else token  # with how it is found in texts
        if isinstance(token, str) and token:
            roles[role] = token
    for role in (
        "pad",
        "unk",
        "mask",
    ):  # some models fill up with the token that ends a text: then it has one part here
        others = [roles.get(other) for other in ROLES if other != role]
        if roles.get(role) is not None and roles[role] in others:
            roles[role] = None
    return roles
