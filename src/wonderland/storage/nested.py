"""Dicts and lists in each other, with tensors, numbers and texts in them, as named tensors and a description.

The tensors of a nested value are named by their path, joined by dots ("optimizer.moments.0"), so that every reader of
the format finds them. The description is JSON in the file's metadata, one small table for each part:

    {"dict": {...}}, {"list": [...]}, {"tuple": [...]}     what holds other parts
    {"tensor": "optimizer.moments.0"}                      a tensor of the file
    {"value": 0.1}                                         a number, a text, a truth value or null
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..arrays import asarray
from ..core.errors import InputError, WonderlandError
from ..core.tensor import Tensor
from .parsing import DEEPEST, parse_json

KEY = "wonderland.structure"
_LEVELS = DEEPEST // 2 - 2  # each level is two in the description


def is_nested(values: object) -> bool:
    """Whether a value is more than a dict from names to arrays and numbers.

    >>> is_nested({"w": np.zeros(2), "n": 3}), is_nested({"model": {"w": np.zeros(2)}}), is_nested({"name": "a"})
    (False, True, True)
    """
    if not isinstance(values, Mapping):
        return isinstance(values, (list, tuple))
    return any(
        value is None or isinstance(value, (Mapping, str)) or hasattr(value, "state_dict") or _holds_tensors(value)
        for value in values.values()
    )


def _holds_tensors(value: object) -> bool:
    """Whether a list is one of tensors, arrays or other parts, and not an array that is written as a list."""
    while isinstance(value, (list, tuple)) and value:
        if any(isinstance(part, (Tensor, np.ndarray, Mapping, str)) or part is None for part in value):
            return True
        value = value[0]
    return isinstance(value, (list, tuple))


def taken_apart(values: object) -> tuple[dict[str, Tensor], str]:
    """The tensors of a nested value by name, and its description.

    >>> tensors, text = taken_apart({"epoch": 3, "weights": [np.zeros(2), np.ones(1)]})
    >>> list(tensors), put_together(tensors, text)["epoch"]
    (['weights.0', 'weights.1'], 3)
    """
    tensors: dict[str, Tensor] = {}
    owners: dict[str, str] = {}

    def describe(value: Any, path: tuple[str | int, ...]) -> dict[str, object]:
        place = "".join(f"[{part!r}]" for part in path) or "the value"
        if len(path) > _LEVELS:
            raise InputError(
                f"save: more than {_LEVELS} levels at {place[:60]} ...", "a flatter dict, and none that contains itself"
            )
        if value is None or (isinstance(value, (bool, int, float, str)) and not isinstance(value, np.generic)):
            return {"value": value}
        if hasattr(value, "state_dict"):
            value = value.state_dict()
        if isinstance(value, Mapping):
            for key in value:
                if not isinstance(key, str):
                    raise InputError(f"save: a key at {place} is {key!r}.", "texts as keys, such as str(key)")
            return {"dict": {key: describe(part, (*path, key)) for key, part in value.items()}}
        if isinstance(value, (list, tuple)):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return {kind: [describe(part, (*path, i)) for i, part in enumerate(value)]}
        name = ".".join(map(str, path))
        if name in owners:
            raise InputError(
                f"save: {owners[name]} and {place} would both be called {name!r} in the file.", "another name for one"
            )
        owners[name] = place
        try:
            tensors[name] = asarray(value)
        except WonderlandError:
            raise InputError(
                f"save: a {type(value).__name__} at {place} cannot be saved.",
                "tensors, arrays, numbers, texts, None, and dicts, lists and tuples of these",
            ) from None
        return {"tensor": name}

    return tensors, json.dumps(describe(values, ()), separators=(",", ":"))


def put_together(tensors: Mapping[str, Tensor], text: str) -> object:
    """The nested value of a description; ValueError says what is wrong with it."""
    description = parse_json(text)
    used = list(_names(description))
    if sorted(used) != sorted(tensors):
        odd = min(set(used).symmetric_difference(tensors), default="a name")
        raise ValueError(f"its structure and its tensors do not belong together: {odd!r}")
    return _built(description, tensors)


def _built(part: object, tensors: Mapping[str, Tensor]) -> object:
    kind, content = _parts(part)
    if kind == "dict":
        return {key: _built(inner, tensors) for key, inner in content.items()}
    if kind in ("list", "tuple"):
        built = [_built(inner, tensors) for inner in content]
        return tuple(built) if kind == "tuple" else built
    return tensors[content] if kind == "tensor" else content


def _names(part: object) -> Iterator[str]:
    kind, content = _parts(part)
    if kind == "tensor":
        yield content
    elif kind != "value":
        for inner in content.values() if kind == "dict" else content:
            yield from _names(inner)


_CONTENT: dict[str, tuple[type, ...]] = {
    "dict": (dict,),
    "list": (list,),
    "tuple": (list,),
    "tensor": (str,),
    "value": (bool, int, float, str, type(None)),
}


def _parts(part: object) -> tuple[str, Any]:
    """The kind and the content of a part, after a look at its form."""
    if not isinstance(part, dict) or len(part) != 1:
        raise ValueError("its structure makes no sense")
    ((kind, content),) = part.items()
    if kind not in _CONTENT or not isinstance(content, _CONTENT[kind]):
        raise ValueError("its structure makes no sense")
    return kind, content
