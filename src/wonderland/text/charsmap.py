"""SentencePiece's own normalizer: a table of replacements, compiled into a trie of bytes. T5 and XLM-R have it.

The table is a double-array trie, as the library Darts has them. A node is a number of 32 bits: eight of them are its
label, one says whether a key ends here, the highest ones are the offset of its children, whose places are this offset
xor their labels. Values are places in a list of texts, each of which ends with a zero byte.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ..core.arguments import shown
from ..core.errors import InputError
from .byte_characters import utf8
from .normalizers import MOST_GROWTH, CharacterTable, Span, check_growth
from .patterns import compiled

_LONGEST = 5  # bytes of a group of characters that is looked up as a whole
_NO_BASE = r"\p{Cc}\p{Cf}\p{Zl}\p{Zp}"
_BEFORE = r"\u0600-\u0605\u06dd\u070f"  # the signs that join what follows
# graphemes of several characters, of those that are short enough: a line end, and something with its marks
_SEVERAL = rf"\r\n|[{_BEFORE}]*[^{_NO_BASE}][\p{{M}}\u200c\u200d\u0e33\u0eb3\uff9e\uff9f]+|[{_BEFORE}]+[^{_NO_BASE}]"


@dataclass(frozen=True)
class Precompiled:
    r"""The replacements of a `precompiled_charsmap`.

    >>> nodes = [0] * 98  # the root, "a" as its child, and the value 0 behind it
    >>> nodes[0], nodes[96], nodes[97] = 1 << 10, 1 << 10 | 1 << 8 | ord("a"), 1 << 31
    >>> Precompiled(struct.pack("<I98I", 4 * 98, *nodes) + b"o\0")("a cat")
    'o cot'

    Characters are looked up one by one, short groups of a character and its marks as a whole. Of the keys with which
    they begin the shortest counts, and replaces all of it: so do the libraries whose ids are wanted.
    """

    precompiled_charsmap: bytes

    def __post_init__(self) -> None:
        data = self.precompiled_charsmap
        size = struct.unpack("<I", data[:4])[0] if len(data) >= 4 else 0
        if size % 4 or not 4 <= size <= len(data) - 4:
            raise InputError(f"Precompiled: {shown(data[:12])} begins no charsmap.", "a whole precompiled_charsmap")
        try:
            data[4 + size :].decode("utf-8")
        except UnicodeDecodeError:
            raise InputError("Precompiled: the replacements are not UTF-8.", "a whole precompiled_charsmap") from None

    @cached_property
    def _nodes(self) -> tuple[int, ...]:
        size = struct.unpack("<I", self.precompiled_charsmap[:4])[0]
        return struct.unpack(f"<{size // 4}I", self.precompiled_charsmap[4 : 4 + size])

    @cached_property
    def _texts(self) -> bytes:
        return self.precompiled_charsmap[4 + 4 * len(self._nodes) :]

    @cached_property
    def _characters(self) -> CharacterTable:
        return CharacterTable(self._of_character)

    def _of_character(self, character: str) -> str:
        found = self._found(character)
        return character if found is None else found

    def _found(self, text: str) -> str | None:
        """What replaces a text, or None."""
        nodes = self._nodes
        place = _offset(nodes[0])
        for byte in utf8(text):
            place ^= byte
            if byte == 0 or place >= len(nodes) or nodes[place] & (1 << 31 | 0xFF) != byte:
                return None
            node = nodes[place]
            place ^= _offset(node)
            if node >> 8 & 1:
                start = nodes[place] & ~(1 << 31) if place < len(nodes) else len(self._texts)
                end = self._texts.find(b"\0", start)
                made = self._texts[start : end if end >= 0 else len(self._texts)].decode("utf-8", "replace")
                if len(made) > MOST_GROWTH:
                    raise InputError(
                        f"Precompiled: {text!r} becomes {len(made):,} characters.", f"at most {MOST_GROWTH}"
                    )
                return made
        return None

    def _groups(self, text: str) -> Iterator[tuple[int, int, str]]:
        """The groups of several characters that are replaced as a whole: start, end, by what."""
        if text.isascii() and "\r\n" not in text:
            return
        for match in compiled(_SEVERAL, text.isascii()).finditer(text):
            if len(utf8(match.group())) <= _LONGEST and (found := self._found(match.group())) is not None:
                yield match.start(), match.end(), found

    def __call__(self, text: str) -> str:
        out: list[str] = []
        place = length = 0
        for start, end, found in self._groups(text):
            out += [text[place:start].translate(self._characters), found]
            length += len(out[-1]) + len(out[-2])
            check_growth(len(text), length)
            place = end
        out.append(text[place:].translate(self._characters))
        check_growth(len(text), length + len(out[-1]))
        return "".join(out)

    def aligned(self, text: str) -> tuple[str, list[Span]]:
        """Characters come from those that they replace, one by one; what is too many from the last of them."""
        spans: list[Span] = []
        place = 0
        for start, end, found in [*self._groups(text), (len(text), len(text), "")]:
            for at in range(place, start):
                spans += [(at, at + 1)] * len(self._characters[ord(text[at])])
            sources = (min(start + number, end - 1) for number in range(len(found)))
            spans += [(at, at + 1) for at in sources]
            place = end
        return self(text), spans


def _offset(node: int) -> int:
    return node >> 10 << ((node & 1 << 9) >> 6)
