"""Plain data and back: records of simple fields as JSON, checked field by field when they are read."""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import TypeVar, Union, get_args, get_origin, get_type_hints

from ...core.arguments import shown
from ...core.errors import FileError, InputError

R = TypeVar("R")
_HINTS: dict[object, dict[str, object]] = {}  # the types of fields, which take long to find


def plain(record: object) -> dict[str, object]:
    """The fields of a record, with lists for tuples.

    >>> from wonderland.data.tables.numbers import NumberEncoding
    >>> plain(NumberEncoding(fill=3.0, center=2.0, scale=1.0))["fill"]
    3.0
    """
    found = {f.name: getattr(record, f.name) for f in fields(record)}  # type: ignore[arg-type]
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def restore(kind: type[R], values: object, where: str) -> R:
    """The record of such plain data; damage is named.

    >>> from wonderland.data.tables.numbers import NumberEncoding
    >>> restore(NumberEncoding, {"fill": 3.0, "center": 2, "scale": 1.0}, "column 'age'").center
    2.0
    >>> restore(NumberEncoding, {"fill": "x", "center": 2, "scale": 1.0}, "column 'age'")
    Traceback (most recent call last):
    wonderland.errors.FileError: a stored schema, column 'age': fill is 'x', where float belongs...
    """
    table = mapping(values, where)
    if kind not in _HINTS:
        _HINTS[kind] = get_type_hints(kind)
    hints = _HINTS[kind]
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    if strange := sorted(str(name) for name in table if name not in known):
        raise damaged(where, f"the field {strange[0]!r} is not known")
    found: dict[str, object] = {}
    for name, entry in known.items():
        if name in table:
            found[name] = _checked(hints[name], table[name], f"{where}: {name}" if where else name)
        elif entry.default is MISSING and entry.default_factory is MISSING:
            raise damaged(where, f"the field {name!r} is missing")
    try:
        return kind(**found)
    except InputError as error:  # what fields must be to each other
        raise damaged(where, str(error).splitlines()[0]) from error


def damaged(where: str, what: str) -> FileError:
    """The error about a stored schema that does not say what it should."""
    inside = f", {where}" if where else ""
    return FileError(
        f"a stored schema{inside}: {what}.", "the schema.json that a run wrote, unchanged; else train again"
    )


def mapping(value: object, where: str) -> Mapping[str, object]:
    """A JSON object, or the error that says where one belongs."""
    if not isinstance(value, Mapping):
        raise damaged(where, f"{shown(value)} stands where an object belongs")
    return value


def sequence(value: object, where: str) -> list[object]:
    """A JSON list, or the error that says where one belongs."""
    if not isinstance(value, list | tuple):
        raise damaged(where, f"{shown(value)} stands where a list belongs")
    return list(value)


def _checked(hint: object, value: object, where: str) -> object:
    if get_origin(hint) in (types.UnionType, Union):
        options = get_args(hint)
        if value is None and type(None) in options:
            return None
        return _checked(next(o for o in options if o is not type(None)), value, where)
    if get_origin(hint) is tuple:
        return tuple(_checked(get_args(hint)[0], entry, where) for entry in sequence(value, where))
    if hint is float and isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    if hint in (str, bool) and isinstance(value, hint):
        return value
    if hint is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    place, _, name = where.rpartition(": ")
    raise damaged(place, f"{name} is {shown(value)}, where {getattr(hint, '__name__', hint)} belongs")
