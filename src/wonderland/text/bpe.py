"""Byte-pair encoding: a piece starts as single characters, and pairs are merged in the order of their learning.

Book, section 8.2.2.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from ..arguments import shown
from ..errors import InputError
from .word_level import check_unknown, unknown_id

_REMEMBERED = 1 << 16  # how many pieces keep their ids, and how long such a piece may be
_LONGEST = 256


class BPE:
    r"""Subwords: neighbours are merged, the pair that was learned first before all others, until no pair is known.

    >>> vocab = {token: i for i, token in enumerate(["a", "b", "c", "ab", "abc"])}
    >>> model = BPE(vocab, [("a", "b"), ("ab", "c")])
    >>> model.encode("abcab")
    ([4, 3], [3, 2])

    `vocab` has the single characters and what the merges make. A character that is not there is `unk`; neighbouring
    unknowns are one with `fuse_unk`. With `ignore_merges` a piece that is a token is not taken apart. `encode` gives
    the ids of a piece and how many of its characters each of them stands for, in time \(n \log n\).
    """

    def __init__(
        self,
        vocab: Mapping[str, int],
        merges: Sequence[tuple[str, str]] = (),
        unk: str | None = None,
        fuse_unk: bool = False,
        ignore_merges: bool = False,
    ) -> None:
        self.vocab = dict(vocab)
        self.merges = [(first, second) for first, second in merges]
        self.unk, self.fuse_unk, self.ignore_merges = unk, fuse_unk, ignore_merges
        check_unknown("BPE", self.vocab, unk)
        self._ranks: dict[tuple[int, int], tuple[int, int]] = {}  # of two ids: when they are merged, and into what
        for rank, (first, second) in enumerate(self.merges):
            for token in (first, second, first + second):
                if token not in self.vocab:
                    raise InputError(
                        f"BPE: the merge {shown((first, second))} needs the token {shown(token)}.",
                        "a vocab that has it",
                    )
            self._ranks[self.vocab[first], self.vocab[second]] = (rank, self.vocab[first + second])
        self._known: dict[str, tuple[list[int], list[int]]] = {}

    def encode(self, piece: str) -> tuple[list[int], list[int]]:
        """The ids of a piece, and the length of each."""
        found = self._known.get(piece)
        if found is None:
            found = self._encode(piece)
            if len(piece) <= _LONGEST and len(self._known) < _REMEMBERED:
                self._known[piece] = found
        return found

    def _encode(self, piece: str) -> tuple[list[int], list[int]]:
        if self.ignore_merges and piece in self.vocab:
            return [self.vocab[piece]], [len(piece)]
        ids, lengths = self._characters(piece)
        return self._merged(ids, lengths) if self._ranks and len(ids) > 1 else (ids, lengths)

    def _characters(self, piece: str) -> tuple[list[int], list[int]]:
        try:
            return [self.vocab[character] for character in piece], [1] * len(piece)
        except KeyError:
            ids: list[int] = []
            lengths: list[int] = []
            unknown_before = False
            for character in piece:
                found = self.vocab.get(character)
                if found is None and unknown_before and self.fuse_unk:
                    lengths[-1] += 1
                else:
                    ids.append(unknown_id(self.vocab, self.unk, character) if found is None else found)
                    lengths.append(1)
                unknown_before = found is None
            return ids, lengths

    def _merged(self, ids: list[int], lengths: list[int]) -> tuple[list[int], list[int]]:
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
            if not lengths[place] or (right := after[place]) >= count:
                continue  # merged away meanwhile
            now = ranks.get((ids[place], ids[right]))
            if now is None or now[1] != made:
                continue
            ids[place] = made
            lengths[place] += lengths[right]
            lengths[right] = 0
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
        places = [place for place in range(count) if lengths[place]]
        return [ids[place] for place in places], [lengths[place] for place in places]
