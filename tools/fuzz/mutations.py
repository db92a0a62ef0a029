"""Damage: to the bytes of a file, and to the values of a JSON text."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from typing import Any

INTEGERS = (0, 1, 2, 7, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
_DEEP = "@deep@"  # a text that becomes a deep nest, which `json.dumps` could not write
PATTERNS = (
    "(a+)+b",
    "(a|a)*b",
    r"(\s*)*x",
    r"\s*\s*\s*x",
    "(a?){40}a{40}",
    "(",
    "[",
    r"\p{",
    "(?P<n>a)(?P=n)",
    "a{99999}",
)


# bytes


def _flip(data: bytearray, rng: random.Random, other: bytes) -> None:
    for _ in range(rng.choice((1, 1, 2, 8))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _set(data: bytearray, rng: random.Random, other: bytes) -> None:
    data[_place(data, rng)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def _truncate(data: bytearray, rng: random.Random, other: bytes) -> None:
    del data[rng.randrange(len(data)) if rng.random() < 0.7 else max(0, len(data) - rng.randrange(1, 9)) :]


def _insert(data: bytearray, rng: random.Random, other: bytes) -> None:
    place = _place(data, rng)
    data[place:place] = rng.randbytes(rng.choice((1, 2, 4, 33)))


def _remove(data: bytearray, rng: random.Random, other: bytes) -> None:
    place = _place(data, rng)
    del data[place : place + rng.choice((1, 2, 4, 8, 100))]


def _repeat(data: bytearray, rng: random.Random, other: bytes) -> None:
    place = _place(data, rng)
    data[place:place] = data[place : place + rng.choice((1, 8, 64, 4096))] * rng.choice((1, 2, 20))


def _splice(data: bytearray, rng: random.Random, other: bytes) -> None:
    if other:
        start = rng.randrange(len(other))
        place = _place(data, rng)
        data[place : place + rng.choice((0, 4, 64))] = other[start : start + rng.choice((4, 64, 1000))]


def _integer(data: bytearray, rng: random.Random, other: bytes) -> None:
    """A number in a header that is huge, negative or odd."""
    width = rng.choice((1, 2, 4, 8))
    place = min(_place(data, rng), max(0, len(data) - width))
    value = rng.choice(INTEGERS) % (1 << 8 * width)
    data[place : place + width] = value.to_bytes(width, rng.choice(("little", "big")))


def _digits(data: bytearray, rng: random.Random, other: bytes) -> None:
    """A number that is written in digits."""
    found = list(re.finditer(rb"-?[0-9]+", data))
    if found:
        start, end = rng.choice(found).span()
        data[start:end] = rng.choice((b"-1", b"0", b"1e999", b"9" * 30, b"9" * 5000, b"nan", b"True", b"0x7", b"1_0"))


def _append(data: bytearray, rng: random.Random, other: bytes) -> None:
    data += rng.choice((b"\0", b"\n", b"x" * 100, bytes(data), other[:1000]))


def _not_utf8(data: bytearray, rng: random.Random, other: bytes) -> None:
    place = _place(data, rng)
    data[place:place] = rng.choice(
        (b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", "\u2028\U0001f600".encode())
    )


def _signs(data: bytearray, rng: random.Random, other: bytes) -> None:
    """What means something to a parser of text."""
    place = _place(data, rng)
    data[place:place] = rng.choice(
        (b'"', b"'", b",", b"\n", b"\r", b"\0", b"\\", b"[" * 3000, b"(" * 300, b"{", b"}", b"#")
    )


_DAMAGE: tuple[Callable[[bytearray, random.Random, bytes], None], ...] = (
    *(_flip, _set, _truncate, _insert, _remove, _repeat, _splice, _integer, _digits, _append, _not_utf8, _signs),
)


def _place(data: bytearray, rng: random.Random) -> int:
    """Somewhere, and more often near the beginning, where headers are, or near the end."""
    limit = rng.choice((len(data), len(data), min(len(data), 64), min(len(data), 512)))
    place = rng.randrange(max(limit, 1))
    return len(data) - 1 - place if rng.random() < 0.15 else place


def damaged(data: bytes, rng: random.Random, other: bytes = b"") -> bytes:
    """The bytes after one to four kinds of damage; `other` is a file from which pieces may come."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 4))):
        if out:
            rng.choice(_DAMAGE)(out, rng, other)
    return bytes(out)


# JSON


def odd_value(rng: random.Random) -> Any:
    """Something that is unlikely to be expected."""
    return copy.deepcopy(
        rng.choice(
            (
                *(None, True, False, 0, 1, -1, 3, 0.5, 1e308, float("nan"), float("inf"), -float("inf")),
                *(10**30, -(10**30), 10**400, 2**63, 2**31, 1_000_000_007),
                *("", "x", "\0", "x" * 5000, "\ud800", "NaN", "12", "../../etc", _DEEP, rng.choice(PATTERNS)),
                *([], {}, [[]], [None], [1, 2], ["a", "b"], {"a": 1}, {"type": "Sequence"}, [[[[0]]]], [0] * 100),
            )
        )
    )


def damaged_value(value: Any, rng: random.Random) -> Any:
    """Plain data with one to three places changed: a value replaced, a key removed, renamed or added."""
    out = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 2, 3))):
        places = list(_places(out))
        if not places:
            return odd_value(rng)
        owner, key = rng.choice(places)
        what = rng.random()
        if what < 0.15:
            del owner[key]
        elif what < 0.25 and isinstance(owner, dict):
            owner[rng.choice(("x", "", "type", str(key) * 2))] = owner.pop(key)
        elif what < 0.35:
            other, there = rng.choice(places)
            with_other = other[there] if (there in other if isinstance(other, dict) else there < len(other)) else None
            owner[key] = copy.deepcopy(with_other)
        else:
            owner[key] = odd_value(rng)
    return out


def _places(value: Any) -> Any:
    """All (container, key) in plain data, but no more than two hundred of each container."""
    waiting = [value]
    while waiting:
        owner = waiting.pop()
        if isinstance(owner, (dict, list)):
            for key in list(owner if isinstance(owner, dict) else range(len(owner)))[:200]:
                yield owner, key
                waiting.append(owner[key])


def as_json(value: Any, rng: random.Random) -> str:
    """The JSON text of plain data, with deep nests in it."""
    depth = rng.choice((20, 70, 500, 100_000))
    return json.dumps(value).replace(
        json.dumps(_DEEP), rng.choice(("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth))
    )
