"""The simplest model of a tokenizer: every piece is a token or unknown. Book, section 8.2.2."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.arguments import shown
from ..core.errors import InputError

Encoded = tuple[list[int], list[tuple[int, int]]]  # the ids of a piece, and the characters of it that each stands for


class WordLevel:
    """A piece of text is one token, by its id in `vocab`; what is not there is `unk`.

    >>> model = WordLevel({"<unk>": 0, "cat": 1}, unk="<unk>")
    >>> model.encode("cat"), model.encode("dog")
    (([1], [(0, 3)]), ([0], [(0, 3)]))

    `encode` gives the ids of a piece and the span of its characters that each of them stands for.
    """

    def __init__(self, vocab: Mapping[str, int], unk: str | None = None) -> None:
        self.vocab = dict(vocab)
        self.unk = unk
        check_unknown("WordLevel", self.vocab, unk)

    def encode(self, piece: str) -> Encoded:
        """The id of a piece, and its span."""
        found = self.vocab.get(piece)
        return [unknown_id(self.vocab, self.unk, piece) if found is None else found], [(0, len(piece))]


def check_unknown(name: str, vocab: Mapping[str, int], unk: str | None) -> None:
    """Refuse an unknown token that is not in the vocabulary."""
    if unk is not None and unk not in vocab:
        raise InputError(f"{name}: the unknown token {unk!r} is not in the vocabulary.", "one of its tokens, or None")


def unknown_id(vocab: Mapping[str, int], unk: str | None, piece: str) -> int:
    """The id of the unknown token, or the error that there is none."""
    if unk is None:
        raise InputError(
            f"tokenizer: {shown(piece)} is not among its {len(vocab)} tokens, and there is none for the unknown.",
            'special_tokens=["[UNK]"] when it is trained, or a byte-level tokenizer, which knows every text',
        )
    return vocab[unk]
