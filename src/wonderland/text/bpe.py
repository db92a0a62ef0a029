"""Byte-pair encoding: a piece starts as single characters, and pairs are merged in the order of their learning.

Book, section 8.2.2.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Mapping, Sequence

from ..core.arguments import shown
from ..core.errors import InputError
from .byte_tokens import fallback
from .remembered import Remembered
from .word_level import Encoded, check_unknown, unknown_id

_SPACE = "▁"  # how tokenizers that do not cut a text write a space
_WORDS = re.compile(f"{_SPACE}*[^{_SPACE}]+|{_SPACE}+")


class BPE:
    r"""Subwords: neighbours are merged, the pair that was learned first before all others, until no pair is known.

    >>> vocab = {token: i for i, token in enumerate(["a", "b", "c", "ab", "abc"])}
    >>> model = BPE(vocab, [("a", "b"), ("ab", "c")])
    >>> model.encode("abcab")
    ([4, 3], [(0, 3), (3, 5)])

    `vocab` has the single characters and what the merges make. A character that is not there becomes its bytes, the
    tokens <0x00> to <0xFF>, with `byte_fallback`, else it is `unk`; neighbouring unknowns are one with `fuse_unk`. With
    `ignore_merges` a piece that is a token is not taken apart. Tokens that do not begin a piece may be spelled with a
    `continuing_subword_prefix`, those at its end with an `end_of_word_suffix`. `encode` gives the ids of a piece and
    the span of its characters that each of them stands for, in time \(n \log n\).
    """

    def __init__(
        self,
        vocab: Mapping[str, int],
        merges: Sequence[tuple[str, str]] = (),
        unk: str | None = None,
        fuse_unk: bool = False,
        ignore_merges: bool = False,
        *,
        byte_fallback: bool = False,
        continuing_subword_prefix: str | None = None,
        end_of_word_suffix: str | None = None,
    ) -> None:
        self.vocab = dict(vocab)
        self.merges = [(first, second) for first, second in merges]
        self.unk, self.fuse_unk, self.ignore_merges = unk, fuse_unk, ignore_merges
        self.byte_fallback = byte_fallback
        self.continuing_subword_prefix, self.end_of_word_suffix = continuing_subword_prefix, end_of_word_suffix
        check_unknown("BPE", self.vocab, unk)
        self._ranks: dict[tuple[int, int], tuple[int, int]] = {}  # of two ids: when they are merged, and into what
        for rank, (first, second) in enumerate(self.merges):
            made = first + second.removeprefix(continuing_subword_prefix or "")
            for token in (first, second, made):
                if token not in self.vocab:
                    raise InputError(
                        f"BPE: the merge {shown((first, second))} needs the token {shown(token)}.",
                        "a vocab that has it",
                    )
            self._ranks[self.vocab[first], self.vocab[second]] = (rank, self.vocab[made])
        self._apart = self._words_are_apart()
        self._known = Remembered(self._encode)

    def encode(self, piece: str) -> Encoded:
        """The ids of a piece, and the span of each."""
        if not self._apart:
            return self._known[piece]
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        for match in _WORDS.finditer(piece):
            start = match.start()
            found, places = self._known[match.group()]
            ids += found
            spans += [(start + a, start + b) for a, b in places] if start else places
        return ids, spans

    def _words_are_apart(self) -> bool:
        """Whether no merge reaches from a word into the space that follows.

        Then a text that was not cut may be cut here: the words are merged each by itself and remembered.
        """
        if _SPACE not in self.vocab or self.ignore_merges or self.continuing_subword_prefix or self.end_of_word_suffix:
            return False
        over = re.compile(f"[^{_SPACE}]{_SPACE}")
        return not any(_SPACE in second and over.search(first + second) for first, second in self.merges)

    def _encode(self, piece: str) -> Encoded:
        if self.ignore_merges and piece in self.vocab:
            return [self.vocab[piece]], [(0, len(piece))]
        ids, spans = self._characters(piece)
        return self._merged(ids, spans) if self._ranks and len(ids) > 1 else (ids, spans)

    def _characters(self, piece: str) -> Encoded:
        symbols: Sequence[str] = piece
        if piece and (self.continuing_subword_prefix or self.end_of_word_suffix):
            symbols = [(self.continuing_subword_prefix or "") * (place > 0) + c for place, c in enumerate(piece)]
            symbols[-1] += self.end_of_word_suffix or ""
        try:
            return [self.vocab[symbol] for symbol in symbols], [(place, place + 1) for place in range(len(piece))]
        except KeyError:
            pass
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        unknown_before = False
        for place, symbol in enumerate(symbols):
            found = self.vocab.get(symbol)
            several = fallback(self.vocab, symbol) if found is None and self.byte_fallback else None
            if several is not None:
                ids += several
                spans += [(place, place + 1)] * len(several)
            elif found is None and unknown_before and self.fuse_unk:
                spans[-1] = (spans[-1][0], place + 1)
            else:
                ids.append(unknown_id(self.vocab, self.unk, piece[place]) if found is None else found)
                spans.append((place, place + 1))
            unknown_before = found is None and several is None
        return ids, spans

    def _merged(self, ids: list[int], spans: list[tuple[int, int]]) -> Encoded:
        """The merges, one at a time: the one learned first, of equal ones the leftmost."""
        count = len(ids)
        after = list(range(1, count + 1))  # the neighbours of each symbol that is left
        before = list(range(-1, count - 1))
        ranks = self._ranks
        queue: list[tuple[int, int, int]] = []  # rank, place, what the merge makes
        for place in range(count - 1):
            if (found := ranks.get((ids[place], ids[place + 1]))) is not None:
                queue.append((found[0], place, found[1]))
        heapq.heapify(queue)
        while queue:
            _, place, made = heapq.heappop(queue)
            if ids[place] < 0 or (right := after[place]) >= count:
                continue  # merged away meanwhile
            now = ranks.get((ids[place], ids[right]))
            if now is None or now[1] != made:
                continue
            ids[place], ids[right] = made, -1
            spans[place] = (spans[place][0], spans[right][1])
            after[place] = after[right]
            if after[place] < count:
                before[after[place]] = place
            for left in (before[place], place):
                if (
                    left >= 0
                    and after[left] < count
                    and (found := ranks.get((ids[left], ids[after[left]]))) is not None
                ):
                    heapq.heappush(queue, (found[0], left, found[1]))
        places = [place for place in range(count) if ids[place] >= 0]
        return [ids[place] for place in places], [spans[place] for place in places]
