"""Learning the merges of byte-pair encoding: merge the most frequent pair of neighbours, again and again.

Book, section 8.2.2 and the exercise of chapter 8.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise

Pair = tuple[int, int]


def train_bpe(
    counts: Mapping[str, int],
    vocab_size: int,
    alphabet: Iterable[str] = (),
    special_tokens: Iterable[str] = (),
    min_frequency: int = 0,
    continuing_prefix: str = "",
) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """The vocabulary and the merges for some pieces of text and how often each comes.

    >>> vocab, merges = train_bpe({"aaabdaaabac": 1}, vocab_size=7)
    >>> merges
    [('a', 'a'), ('a', 'b'), ('aa', 'ab')]

    The vocabulary has the special tokens, the characters of the alphabet and of the pieces in the order of their codes,
    then what the merges make, up to `vocab_size`. Of equally frequent pairs the one with the smaller ids comes first.
    Pairs that come less than `min_frequency` times are not merged. With a `continuing_prefix`, as "##", tokens that do
    not begin a piece are spelled with it, and are other tokens than those that do.

    Counts of pairs are kept up to date instead of counted anew: a merge touches the words that have the pair and
    nothing else. The queue may hold a pair with a count that has fallen since; it is put back when it comes up.
    Vocabulary and merges are those that the `tokenizers` library learns.
    """
    spelled = [[continuing_prefix * (place > 0) + c for place, c in enumerate(piece)] for piece in counts]
    characters = sorted({*alphabet, *(c for piece in counts for c in piece)})
    continued = sorted({symbol for word in spelled for symbol in word} - set(characters))
    tokens = list(dict.fromkeys([*special_tokens, *characters, *continued]))
    ids = {token: place for place, token in enumerate(tokens)}
    words = [[ids[symbol] for symbol in word] for word in spelled]
    frequencies = list(counts.values())

    totals: dict[Pair, int] = defaultdict(int)
    places: dict[Pair, set[int]] = defaultdict(set)
    for number, (word, frequency) in enumerate(zip(words, frequencies, strict=True)):
        for pair in pairwise(word):
            totals[pair] += frequency
            places[pair].add(number)
    serial = 0  # sets do not compare, so that two entries of a pair must differ before them
    queue: list[tuple[int, Pair, int, set[int]]] = []
    for serial, (pair, found) in enumerate(places.items()):
        queue.append((-totals[pair], pair, serial, found))
    heapq.heapify(queue)

    merges: list[tuple[str, str]] = []
    while len(tokens) < vocab_size and queue:
        negative, pair, number, where = heapq.heappop(queue)
        total = totals[pair]
        if -negative != total:
            heapq.heappush(queue, (-total, pair, number, where))
            continue
        if total < max(1, min_frequency):
            break
        made = tokens[pair[0]] + tokens[pair[1]].removeprefix(continuing_prefix)
        new = ids.setdefault(made, len(tokens))
        if new == len(tokens):
            tokens.append(made)
        merges.append((tokens[pair[0]], tokens[pair[1]]))
        fresh: dict[Pair, set[int]] = defaultdict(set)
        for word_number in where:
            frequency = frequencies[word_number]
            for changed, change in _merge(words[word_number], pair, new):
                totals[changed] += change * frequency
                if change > 0:
                    fresh[changed].add(word_number)
        for changed, found in fresh.items():
            if totals[changed] > 0:
                serial += 1
                heapq.heappush(queue, (-totals[changed], changed, serial, found))
    return ids, merges


def _merge(word: list[int], pair: Pair, new: int) -> list[tuple[Pair, int]]:
    """Replace a pair in a word, from left to right; the pairs of neighbours that come and go by it."""
    first, second = pair
    changes: list[tuple[Pair, int]] = []
    place = 0
    while place < len(word) - 1:
        if word[place] == first and word[place + 1] == second:
            word[place : place + 2] = [new]
            if place:
                changes += [((word[place - 1], first), -1), ((word[place - 1], new), 1)]
            if place + 1 < len(word):
                changes += [((second, word[place + 1]), -1), ((new, word[place + 1]), 1)]
        place += 1
    return changes
