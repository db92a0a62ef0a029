r"""Unigram, the model of SentencePiece and T5: of all ways to cut a piece into tokens the most probable one.

Tokens are drawn independently, so that a way to cut has the sum of their log-probabilities, and the best one follows
from left to right (Viterbi's algorithm): \(s_j = \max_{i<j} s_i + \log p(x_{i:j})\). Book, section 8.2.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..core.arguments import shown
from ..core.errors import InputError
from .byte_tokens import fallback
from .remembered import Remembered
from .word_level import Encoded, unknown_id

UNKNOWN_PENALTY = 10.0  # how much less probable an unknown character is than the least probable token


class Unigram:
    """Subwords by probability: `pieces` are the tokens in the order of their ids, each with its log-probability.

    >>> model = Unigram([("<unk>", 0.0), ("a", -2.0), ("b", -2.0), ("ab", -3.0)], unk="<unk>")
    >>> model.encode("abba!?")
    ([3, 2, 1, 0], [(0, 2), (2, 3), (3, 4), (4, 6)])

    A character that is no token costs ten more than the least probable token; neighbouring ones are one unknown or,
    with `byte_fallback`, their bytes, the tokens <0x00> to <0xFF>. `encode` gives the ids of a piece and the span of
    its characters that each of them stands for.
    """

    def __init__(
        self, pieces: Sequence[tuple[str, float]], unk: str | None = None, byte_fallback: bool = False
    ) -> None:
        self.pieces = [(token, float(score)) for token, score in pieces]
        self.byte_fallback = byte_fallback
        self.vocab = {token: number for number, (token, _) in enumerate(self.pieces)}
        if len(self.vocab) < len(self.pieces):
            raise InputError("Unigram: a token is there twice.", "distinct tokens")
        for token, score in self.pieces:
            if not math.isfinite(score):
                raise InputError(f"Unigram: {shown(token)} has the log-probability {score}.", "a finite number")
        if unk is not None and unk not in self.vocab:
            raise InputError(f"Unigram: the unknown token {unk!r} is not among the pieces.", "one of them, or None")
        self.unk = unk
        self._unknown_score = min((score for _, score in self.pieces), default=0.0) - UNKNOWN_PENALTY
        lengths: dict[str, set[int]] = {}  # by first character: how long tokens are
        for token in self.vocab:
            if token:
                lengths.setdefault(token[0], set()).add(len(token))
        self._lengths = {character: sorted(found) for character, found in lengths.items()}
        self._scores = dict(self.pieces)
        self._known = Remembered(self._encode)

    def encode(self, piece: str) -> Encoded:
        """The ids of a piece, and the span of each."""
        return self._known[piece]

    def _encode(self, piece: str) -> Encoded:
        starts, unknown = self._best(piece)
        cuts: list[tuple[int, int, bool]] = []
        end = len(piece)
        while end > 0:
            start = starts[end]
            if unknown[end] and cuts and cuts[-1][2]:
                cuts[-1] = (start, cuts[-1][1], True)
            else:
                cuts.append((start, end, unknown[end]))
            end = start
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        for start, end, _ in reversed(cuts):
            text = piece[start:end]
            found = self.vocab.get(text)
            several = [found] if found is not None else fallback(self.vocab, text) if self.byte_fallback else None
            if several is None:
                several = [unknown_id(self.vocab, self.unk, text)]
            ids += several
            spans += [(start, end)] * len(several)
        return ids, spans

    def _best(self, piece: str) -> tuple[list[int], list[bool]]:
        """For each end, where the last token of the best way begins, and whether it is unknown."""
        count = len(piece)
        best = [-math.inf] * (count + 1)
        best[0] = 0.0
        starts = [-1] * (count + 1)
        unknown = [False] * (count + 1)
        scores, by_first = self._scores, self._lengths
        for start, character in enumerate(piece):
            here = best[start]
            single = False
            for length in by_first.get(character, ()):
                end = start + length
                if end > count:
                    break
                text = piece[start:end]
                score = scores.get(text)
                if score is None:
                    continue
                single = single or length == 1
                if here + score > best[end] or starts[end] < 0:
                    best[end], starts[end], unknown[end] = here + score, start, text == self.unk
            if not single:
                end = start + 1
                if here + self._unknown_score > best[end] or starts[end] < 0:
                    best[end], starts[end], unknown[end] = here + self._unknown_score, start, True
        return starts, unknown
