"""Which functions of others an object file calls, by its table of symbols: LLVM's loader does not say what it lacks."""

from __future__ import annotations

import numpy as np

ELF64 = b"\x7fELF\x02\x01"  # with the lowest byte first
HEADER = np.dtype([("sections", "<u8"), ("", "V10"), ("size", "<u2"), ("count", "<u2"), ("", "V2")])
SECTION = np.dtype(
    [("name", "<u4"), ("kind", "<u4"), ("", "V16"), ("at", "<u8"), ("bytes", "<u8"), ("link", "<u4"), ("", "V20")]
)
SYMBOL = np.dtype([("name", "<u4"), ("", "V2"), ("section", "<u2"), ("", "V16")])
TABLE = 2  # the kind of section that has symbols


def undefined(data: bytes) -> list[str]:
    """The names of symbols that an object file uses and does not have; none for other formats than 64-bit ELF.

    >>> undefined(b"no object file")
    []
    """
    if not data.startswith(ELF64):
        return []
    header = np.frombuffer(data, HEADER, 1, 40)[0]
    sections = np.frombuffer(data, SECTION, int(header["count"]), int(header["sections"]))
    found = []
    for section in sections[sections["kind"] == TABLE]:
        symbols = np.frombuffer(data, SYMBOL, int(section["bytes"]) // SYMBOL.itemsize, int(section["at"]))
        texts = int(sections[section["link"]]["at"])
        for symbol in symbols[(symbols["section"] == 0) & (symbols["name"] != 0)]:
            start = texts + int(symbol["name"])
            found.append(data[start : data.index(b"\0", start)].decode())
    return found
