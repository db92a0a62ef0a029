"""WordPiece, the model of BERT's tokenizer: the longest known beginning of a word, then of the rest, and so on.

Book, section 8.2.2.
"""

from __future__ import annotations

from collections.abc import Mapping

from .remembered import Remembered
from .word_level import Encoded, check_unknown, unknown_id


class WordPiece:
    """Subwords: from the left, the longest token that fits; tokens inside of a word are spelled with a prefix.

    >>> model = WordPiece({"[UNK]": 0, "rabbit": 1, "##s": 2, "##hole": 3}, unk="[UNK]")
    >>> model.encode("rabbits"), model.encode("rabbitz")
    (([1, 2], [(0, 6), (6, 7)]), ([0], [(0, 7)]))

    A word of which some part is no token is unknown as a whole, as is one of more than `max_input_chars_per_word`
    characters. `encode` gives the ids of a piece and the span of its characters that each of them stands for.
    """

    def __init__(
        self,
        vocab: Mapping[str, int],
        unk: str | None = None,
        continuing_subword_prefix: str = "##",
        max_input_chars_per_word: int = 100,
    ) -> None:
        self.vocab = dict(vocab)
        self.unk = unk
        self.continuing_subword_prefix = continuing_subword_prefix
        self.max_input_chars_per_word = max_input_chars_per_word
        check_unknown("WordPiece", self.vocab, unk)
        self._longest = max(map(len, self.vocab), default=0)
        self._known = Remembered(self._encode)

    def encode(self, piece: str) -> Encoded:
        """The ids of a piece, and the span of each."""
        return self._known[piece]

    def _encode(self, piece: str) -> Encoded:
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        start, prefix = 0, ""
        while start < len(piece) <= self.max_input_chars_per_word:
            end = min(len(piece), start + self._longest)
            while end > start and prefix + piece[start:end] not in self.vocab:
                end -= 1
            if end == start:
                break
            ids.append(self.vocab[prefix + piece[start:end]])
            spans.append((start, end))
            start, prefix = end, self.continuing_subword_prefix
        if start < len(piece):
            return [unknown_id(self.vocab, self.unk, piece)], [(0, len(piece))]
        return ids, spans
