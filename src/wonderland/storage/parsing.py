"""JSON and TOML that others wrote: plain data that later code can walk, or a ValueError with the reason."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

DEEPEST = 64  # levels of lists and tables; what is within can be walked, compared and shown without care
LONGEST_TOML = 1 << 16  # bytes; some ways to write a table take the parser quadratic time
_HALF_A_PAIR = re.compile(r"\\u[dD][89a-fA-F]")  # how a surrogate may be spelled in JSON


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text (bytes are UTF-8), in which no table has a name twice.

    >>> parse_json('{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    >>> parse_json("[" * 1000 + "]" * 1000)
    Traceback (most recent call last):
        ...
    ValueError: it is nested more than 64 levels deep
    """
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        found = json.loads(text, object_pairs_hook=_once)
    except RecursionError:
        raise _too_deep() from None
    _check_depth(found)
    if _HALF_A_PAIR.search(text):
        try:
            json.dumps(found, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError:
            raise ValueError("a text in it has half of a surrogate pair") from None
    return found


def parse_toml(text: str | bytes) -> dict[str, Any]:
    """The table of a TOML text (bytes are UTF-8).

    >>> parse_toml("[train]\\nlr = 0.1")
    {'train': {'lr': 0.1}}
    """
    if len(text) > LONGEST_TOML:
        raise ValueError(f"it has {len(text):,} bytes, more than {LONGEST_TOML:,}")
    try:
        found = tomllib.loads(text.decode("utf-8") if isinstance(text, bytes) else text)
    except RecursionError:
        raise _too_deep() from None
    _check_depth(found)
    return found


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name comes twice")
    return found


def _check_depth(value: object) -> None:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(DEEPEST):
        if not level:
            return
        children = (child for parent in level for child in (parent.values() if isinstance(parent, dict) else parent))
        level = [child for child in children if isinstance(child, (dict, list))]
    if level:
        raise _too_deep()


def _too_deep() -> ValueError:
    return ValueError(f"it is nested more than {DEEPEST} levels deep")
