"""How much room words take, so that pictures leave enough of it. Widths are those of DejaVu Sans, the widest of the
fonts that a page may choose."""

from __future__ import annotations

import unicodedata

# characters by the share of the font's size that they are wide
WIDTHS = {
    character: width
    for width, characters in {
        0.29: "'ijlIJ",
        0.36: " ,./:;\\|f-",
        0.41: "()[]t!r⁰¹²³⁴⁵⁶⁷⁸⁹",
        0.53: '"*_`sz?⁻',
        0.60: "cLFkvxyP",
        0.64: "TYaoeESbdghnpqu$0123456789{}",
        0.70: "KAVBRXZC",
        0.79: "UHNDG&OQ",
        0.86: "w#+<=>^~M−×→",
        1.00: "%mW@…",
    }.items()
    for character in characters
}
OTHERS = 1.08  # as Ж, or a character of Chinese
BOLD = 1.13  # wider by


def text_width(words: str, size: float = 12.0, bold: bool = False) -> float:
    """The pixels that words are wide in a font of a size, at most.

    >>> round(text_width("accuracy")), round(text_width("accuracy", 15, bold=True))
    (57, 80)
    """
    plain = unicodedata.normalize("NFD", words)  # letters and accents, which have no width
    shares = (0.0 if unicodedata.combining(character) else WIDTHS.get(character, OTHERS) for character in plain)
    return size * sum(shares) * (BOLD if bold else 1.0)


def fitted(words: str, room: float, size: float = 12.0, bold: bool = False) -> str:
    """Words that need no more room than there is; the end is left out if they do.

    >>> fitted("a name that is far too long", 100)
    'a name that i…'
    """
    if text_width(words, size, bold) <= room:
        return words
    kept = words
    while kept and text_width(kept + "…", size, bold) > room:
        kept = kept[:-1]
    return kept.rstrip() + "…"


def wrapped(words: str, room: float, size: float = 12.0, bold: bool = False, lines: int = 3) -> list[str]:
    """Words in lines that fit, broken between words; what needs more lines ends in dots.

    >>> wrapped("Predicted and true, output 3", 100)
    ['Predicted and', 'true, output 3']
    """
    found: list[str] = []
    for word in words.split():
        longer = f"{found[-1]} {word}" if found else word
        if found and (len(found) == lines or text_width(longer, size, bold) <= room):
            found[-1] = longer
        else:
            found.append(word)
    return [fitted(line, room, size, bold) for line in found]
