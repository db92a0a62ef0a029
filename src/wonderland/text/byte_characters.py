"""Bytes written as characters that can be seen, as files of byte-level tokenizers write them.

A byte that is a printable character of Latin-1 stands for itself; the other 68 are the characters from U+0100 on, so
that a space is Ġ and a new line Ċ.
"""

from __future__ import annotations

from functools import lru_cache

from ..core.errors import InputError

_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]

CHARACTERS: tuple[str, ...] = tuple(
    chr(byte) if byte in _PRINTABLE else chr(0x100 + _OTHERS.index(byte)) for byte in range(256)
)
_BYTES = {character: byte for byte, character in enumerate(CHARACTERS)}
_TABLE = dict(enumerate(CHARACTERS))


@lru_cache(maxsize=1 << 16)  # texts consist of the same words
def spelled(text: str) -> str:
    """The bytes of a text in UTF-8, each as its character.

    >>> spelled("né a")
    'nÃ©Ġa'
    """
    return utf8(text).decode("latin-1").translate(_TABLE)


def utf8(text: str) -> bytes:
    """The bytes of a text.

    >>> utf8("né")
    b'n\\xc3\\xa9'
    """
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"tokenizer: character {error.start} of the text is half of a surrogate pair, which has no bytes.",
            'text.encode("utf-16", "surrogatepass").decode("utf-16"), or text that was read as UTF-8',
        ) from None


def as_bytes(token: str) -> bytes:
    """The bytes that a token stands for; a token with other characters stands for its own text.

    >>> as_bytes("Ã©Ġa").decode()
    'é a'
    """
    try:
        return bytes([_BYTES[character] for character in token])
    except KeyError:
        return token.encode()
