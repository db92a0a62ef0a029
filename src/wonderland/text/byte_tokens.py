"""Bytes as tokens <0x00> to <0xFF>: how tokenizers of characters spell a character that they do not know."""

from __future__ import annotations

from collections.abc import Mapping

from .byte_characters import utf8

TOKENS = tuple(f"<0x{byte:02X}>" for byte in range(256))
_BYTES = {token: byte for byte, token in enumerate(TOKENS)} | {
    token[:3] + token[3:5].lower() + ">": byte for byte, token in enumerate(TOKENS)
}


def fallback(vocab: Mapping[str, int], text: str) -> list[int] | None:
    """The ids of the bytes of a text, or None if one of them is no token.

    >>> fallback({"<0xC3>": 3, "<0xA9>": 4}, "é")
    [3, 4]
    """
    try:
        return [vocab[TOKENS[byte]] for byte in utf8(text)]
    except KeyError:
        return None


def joined(tokens: list[str]) -> list[str]:
    """Tokens with their bytes as text; bytes that are no UTF-8 become as many U+FFFD.

    >>> joined(["n", "<0xC3>", "<0xA9>", "!"]), joined(["<0xC3>"])
    (['n', 'é', '!'], ['\\ufffd'])
    """
    out: list[str] = []
    waiting = bytearray()
    for token in [*tokens, None]:
        byte = None if token is None else _BYTES.get(token)
        if byte is not None:
            waiting.append(byte)
            continue
        if waiting:
            try:
                out.append(waiting.decode())
            except UnicodeDecodeError:
                out += ["\ufffd"] * len(waiting)
            waiting.clear()
        if token is not None:
            out.append(token)
    return out
