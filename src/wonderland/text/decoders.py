"""Joining tokens to a text again. Book, section 8.2.2.

Each is a record with the fields of its entry in a `tokenizer.json`, and a function from a list of texts to another one;
what is left at the end is written one after the other. Without any decoder there is a space between tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..core.arguments import shown
from ..core.errors import InputError
from . import byte_characters, byte_tokens
from .normalizers import Replace, check_growth
from .pre_tokenizers import SCHEMES

Decoder = Callable[[list[str]], list[str]]

# how English is written: no space before these
_CLEANUP = (
    *((" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m")),
    *((" do not", " don't"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re")),
)


@dataclass(frozen=True)
class ByteLevel:
    """Bytes that are written as characters; those that are no UTF-8 become U+FFFD.

    >>> ByteLevel()(["nÃ", "©", "Ġa"])
    ['né a']
    """

    add_prefix_space: bool = False
    trim_offsets: bool = False
    use_regex: bool = True

    def __call__(self, tokens: list[str]) -> list[str]:
        return [b"".join(map(byte_characters.as_bytes, tokens)).decode("utf-8", "replace")]


@dataclass(frozen=True)
class ByteFallback:
    """Bytes that are written as <0x00> to <0xFF>.

    >>> ByteFallback()(["n", "<0xC3>", "<0xA9>"])
    ['n', 'é']
    """

    def __call__(self, tokens: list[str]) -> list[str]:
        return byte_tokens.joined(tokens)


@dataclass(frozen=True)
class Fuse:
    """All of them as one.

    >>> Fuse()(["rab", "bit"])
    ['rabbit']
    """

    def __call__(self, tokens: list[str]) -> list[str]:
        return ["".join(tokens)]


@dataclass(frozen=True)
class WordPiece:
    """A space before every token that does not begin with the prefix of continued words.

    >>> "".join(WordPiece()(["the", "rab", "##bit", "."]))
    'the rabbit.'

    With `cleanup` there is none before signs and English endings either.
    """

    prefix: str = "##"
    cleanup: bool = True

    def __call__(self, tokens: list[str]) -> list[str]:
        return [self._written(token, place) for place, token in enumerate(tokens)]

    def _written(self, token: str, place: int) -> str:
        if place:
            token = token.removeprefix(self.prefix) if token.startswith(self.prefix) else " " + token
        if self.cleanup:
            for before, after in _CLEANUP:
                token = token.replace(before, after)
        return token


@dataclass(frozen=True)
class Metaspace:
    """A sign for the space as a space; the one that was put in front of the text is left out.

    >>> "".join(Metaspace()(["▁the", "▁cat"]))
    'the cat'
    """

    replacement: str = "▁"
    prepend_scheme: str = "always"
    split: bool = True

    def __post_init__(self) -> None:
        if self.prepend_scheme not in SCHEMES:
            raise InputError(f"Metaspace: prepend_scheme={shown(self.prepend_scheme)}.", f"one of {SCHEMES}")

    def __call__(self, tokens: list[str]) -> list[str]:
        first = "" if self.prepend_scheme != "never" else " "
        return [token.replace(self.replacement, " " if place else first) for place, token in enumerate(tokens)]


@dataclass(frozen=True)
class Strip:
    """Up to `start` signs `content` from the beginning of each token, and up to `stop` from its end, left out.

    >>> Strip(" ", 1)(["  the", "cat "])
    [' the', 'cat ']
    """

    content: str
    start: int = 0
    stop: int = 0

    def __call__(self, tokens: list[str]) -> list[str]:
        return [self._stripped(token) for token in tokens]

    def _stripped(self, token: str) -> str:
        start = min(self.start, len(token) - len(token.lstrip(self.content)))
        stop = min(self.stop, len(token) - len(token.rstrip(self.content)))
        return token[start : max(start, len(token) - stop)]


@dataclass(frozen=True)
class ReplaceEach:
    """The normalizer `Replace` on each token.

    >>> ReplaceEach(Replace("▁", " ", literal=True))(["▁the", "▁cat"])
    [' the', ' cat']
    """

    replace: Replace

    def __call__(self, tokens: list[str]) -> list[str]:
        out: list[str] = []
        before = after = 0
        for token in tokens:
            out.append(self.replace(token))
            before += len(token)
            after += len(out[-1])
            check_growth(before, after)
        return out


@dataclass(frozen=True)
class BPEDecoder:
    """A space instead of the sign that ends words.

    >>> "".join(BPEDecoder()(["the</w>", "rab", "bit</w>"]))
    'the rabbit'
    """

    suffix: str = "</w>"

    def __call__(self, tokens: list[str]) -> list[str]:
        last = len(tokens) - 1
        return [
            token.replace(self.suffix, " " if place < last else "") if self.suffix else token
            for place, token in enumerate(tokens)
        ]


@dataclass(frozen=True)
class Decoders:
    """Several, one after the other.

    >>> llama = Decoders((ReplaceEach(Replace("▁", " ", literal=True)), ByteFallback(), Fuse(), Strip(" ", 1)))
    >>> llama(["▁caf", "<0xC3>", "<0xA9>"])
    ['café']
    """

    parts: tuple[Decoder, ...]

    def __call__(self, tokens: list[str]) -> list[str]:
        length = sum(map(len, tokens))
        for part in self.parts:
            tokens = part(tokens)
            check_growth(length, sum(map(len, tokens)))
        return tokens


def has_bytes(decoder: object) -> bool:
    """Whether tokens are written in the characters of bytes."""
    if isinstance(decoder, Decoders):
        return any(map(has_bytes, decoder.parts))
    return isinstance(decoder, ByteLevel)
