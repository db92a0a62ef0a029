"""Sentences as examples for word vectors: windows, pairs, bags of words. Notes, section 4.4.

Sentences are sequences of word numbers, as `wl.data.Vocabulary.encode` gives them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ... import arrays
from ...arrays.conversion import as_tensor
from ...core.arguments import as_int
from ...core.dtypes import default_float, is_integer
from ...core.errors import DTypeError, InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike, DTypeLike
from ...nn.functional.lookup import counted_from_zero

Array = Array


def context_windows(sentences: Iterable[Sequence[int]], window: int) -> tuple[Array, Array]:
    """Contexts (n, 2 window) and the words (n,) in their middle, for every word with a whole window around it.

    >>> context_windows([[4, 8, 1, 9, 3]], window=2)
    (array([[4, 8, 9, 3]]), array([1]))
    """
    w = as_int("context_windows", "window", window, 1)
    contexts, centers = [], []
    for sentence in sentences:
        ids = _ids("context_windows", sentence)
        if len(ids) > 2 * w:
            around = np.lib.stride_tricks.sliding_window_view(ids, 2 * w + 1)
            contexts.append(np.delete(around, w, axis=1))
            centers.append(around[:, w])
    if not centers:
        raise InputError(f"context_windows: no sentence has {2 * w + 1} words.", "a smaller window, longer sentences")
    return np.concatenate(contexts), np.concatenate(centers)


def skip_gram_pairs(sentences: Iterable[Sequence[int]], window: int) -> tuple[Array, Array]:
    """Every word (n,) with every word (n,) at most `window` places away from it.

    >>> [list(zip(a.tolist(), b.tolist())) for a, b in [skip_gram_pairs([[4, 8, 1]], window=1)]]
    [[(4, 8), (8, 1), (8, 4), (1, 8)]]
    """
    w = as_int("skip_gram_pairs", "window", window, 1)
    centers, contexts = [], []
    for sentence in sentences:
        ids = _ids("skip_gram_pairs", sentence)
        for apart in range(1, min(w, len(ids) - 1) + 1):
            centers += [ids[:-apart], ids[apart:]]
            contexts += [ids[apart:], ids[:-apart]]
    if not centers:
        raise InputError("skip_gram_pairs: no sentence has two words.", "longer sentences")
    return np.concatenate(centers), np.concatenate(contexts)


def word_counts(sentences: Iterable[Sequence[int]], size: int) -> Array:
    """How often each of `size` words occurs.

    >>> word_counts([[0, 2, 2], [2]], 4)
    array([1, 0, 3, 0])
    """
    size = as_int("word_counts", "size", size, 1)
    total = np.zeros(size, np.int64)
    for sentence in sentences:
        ids = _ids("word_counts", sentence)
        if len(ids) and ids.max() >= size:
            raise InputError(f"word_counts: the word {ids.max()} of {size}.", f"a size of at least {ids.max() + 1}")
        total += np.bincount(ids, minlength=size)
    return total


def bag_of_words(ids: ArrayLike, size: int, dtype: DTypeLike | None = None) -> Tensor:
    """The sum of the one-hot vectors of words (..., n), as counts (..., size). Notes, section 4.4.

    >>> import wonderland as wl
    >>> bag_of_words(wl.tensor([1, 2]), 4)
    tensor([0., 1., 1., 0.])
    """
    ids = as_tensor("bag_of_words", arrays.asarray(ids))
    if not is_integer(ids.dtype):
        raise DTypeError(f"bag_of_words: words of {ids.dtype}.", "integers, as Vocabulary.encode gives them")
    if not ids.ndim:
        raise ShapeError("bag_of_words: a number is no bag.", "words (..., n)")
    size = as_int("bag_of_words", "size", size, 1)
    lead, n = ids.shape[:-1], ids.shape[-1]
    rows = arrays.reshape(ids, (-1, n)) if ids.size else arrays.zeros((0, n), dtype=ids.dtype)
    if not n:
        return arrays.zeros((*lead, size), dtype=dtype or default_float)
    count = rows.shape[0]
    bags = arrays.zeros((count, size), dtype=dtype or default_float)
    bags = bags.at[arrays.arange(count)[:, None], counted_from_zero(rows, size)].add(1.0)
    return arrays.reshape(bags, (*lead, size))


def _ids(name: str, sentence: Sequence[int] | ArrayLike) -> Array:
    ids = np.asarray(sentence)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise InputError(f"{name}: a sentence is {ids.dtype}{list(ids.shape)}.", "a sequence of word numbers")
    if ids.size and ids.min() < 0:
        raise InputError(f"{name}: a sentence holds the word {ids.min()}.", "numbers from 0 on")
    return ids.astype(np.int64)
