"""Word vectors: words that occur in similar contexts get similar vectors. Notes, section 4.4."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from ... import arrays
from ...core.arguments import as_int
from ...core.errors import InputError, ModuleError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, KeyLike
from ...nn.functional import cross_entropy
from ...nn.layers.embedding import Embedding
from ...nn.layers.linear import Linear
from ...nn.layers.sampled_softmax import SampledSoftmax, unigram_probabilities
from ...nn.module.module import Module
from ...random.keys import split
from ...random.streams import take_key
from ..classical.corpus import context_windows, skip_gram_pairs, word_counts
from ..classical.descent import Callback, descend
from ..classical.neighbors import nearest_neighbors

if TYPE_CHECKING:
    from ...data.encoding import Vocabulary

Word: TypeAlias = int | str  # a number, or a name in the vocabulary


class WordVectors(Module):
    """What the models of this file share: a table of vectors, one per word, and what it is used for.

    `vocabulary` is the number of words, or a `wl.data.Vocabulary`, with which words can be asked for by name.
    """

    embedding: Embedding
    vocabulary: Vocabulary | None
    window: int
    _loss: Callable[..., Tensor]

    def _take(self, vocabulary: int | Vocabulary) -> int:
        """The size of the vocabulary, which is kept if it knows words."""
        self.vocabulary = None if isinstance(vocabulary, int) else vocabulary
        return as_int(
            type(self).__name__, "vocabulary", vocabulary if isinstance(vocabulary, int) else len(vocabulary), 2
        )

    def _table(self, words: int, size: int, key: KeyLike) -> Embedding:
        """Vectors that start near 0, so that what they become is what the contexts make of them."""
        table = Embedding(words, as_int(type(self).__name__, "size", size, 1), key=key)
        table.weight.assign(table.weight * (0.5 / size))
        return table

    def fit(
        self,
        sentences: Iterable[Sequence[Word]],
        *,
        epochs: int = 5,
        batch_size: int | None = 256,
        lr: float = 1e-2,
        callback: Callback | None = None,
        key: KeyLike = None,
    ) -> Self:
        """Train on the windows of sentences of words or word numbers."""
        pairs = self._pairs(self._sentences(sentences))
        settings: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "lr": lr, "callback": callback}
        descend(self, type(self)._loss, *pairs, **settings, key=key, name=f"{type(self).__name__}.fit")
        return self

    def _pairs(self, sentences: list[Sequence[int]]) -> tuple[ArrayLike, ArrayLike]:
        """What is in the windows of sentences: the two arguments of `_loss`."""
        raise NotImplementedError

    def vectors(self) -> Tensor:
        """The table (words, size)."""
        return arrays.asarray(self.embedding.weight)

    def export(self, freeze: bool = True) -> Embedding:
        """The vectors as an embedding layer of another model, frozen or to be tuned there."""
        return Embedding.from_pretrained(self.vectors(), freeze=freeze)

    def nearest(self, word: Any, k: int = 5, metric: str = "cosine") -> list[tuple[Word, float]]:
        """The k words most similar to a word (or to a vector), each with its similarity."""
        table = self.vectors()
        query = self._number(word) if not hasattr(word, "shape") else word
        values, indices = nearest_neighbors(table, query, k, metric)
        return [(self._name(i), v) for i, v in zip(indices.tolist(), values.tolist(), strict=True)]

    def analogy(self, a: Word, b: Word, c: Word, k: int = 1) -> list[tuple[Word, float]]:
        """a is to b as c is to ...: the words nearest to b - a + c (of vectors of length 1), other than those three."""
        unit = arrays.normalize(self.vectors())
        i, j, n = (self._number(word) for word in (a, b, c))
        values, indices = nearest_neighbors(unit, unit[j] - unit[i] + unit[n], min(k + 3, unit.shape[0]))
        found = zip(indices.tolist(), values.tolist(), strict=True)
        return [(self._name(word), v) for word, v in found if word not in (i, j, n)][:k]

    def _number(self, word: Word) -> int:
        if isinstance(word, int):
            size = self.embedding.num_embeddings
            if not 0 <= word < size:
                raise InputError(f"{type(self).__name__}: the word {word} of {size}.", "a number in the vocabulary")
            return word
        if self.vocabulary is None:
            raise ModuleError(f"{type(self).__name__}: it knows words by number only.", "a wl.data.Vocabulary at first")
        if word not in self.vocabulary:
            raise InputError(f"{type(self).__name__}: the word {word!r} is not in the vocabulary.", "a known word")
        return int(self.vocabulary[word])

    def _name(self, number: int) -> Word:
        return number if self.vocabulary is None else self.vocabulary.tokens[number]

    def _sentences(self, sentences: Iterable[Sequence[Word]]) -> list[Sequence[int]]:
        """Sentences of words or numbers, as numbers."""
        found: list[Any] = [list(sentence) for sentence in sentences]
        if self.vocabulary is not None:
            found = [self.vocabulary.encode(s) if s and isinstance(s[0], str) else s for s in found]
        return found

    def extra_repr(self) -> str:
        return ""


class CBOW(WordVectors):
    r"""\(p(w \mid \text{context}) = \mathrm{softmax}\bigl(W \sum_j e_{c_j}\bigr)\): a word from those around it.

    >>> import wonderland as wl
    >>> model = wl.models.CBOW(50, 8, window=2, key=wl.random.key(0))
    >>> model(wl.tensor([[4, 8, 9, 3]])).shape
    (1, 50)

    The continuous bag of words: one shared table of vectors for the 2 `window` words of the context, whose vectors are
    summed, so their order does not matter; then a softmax over all words. `head` replaces the softmax layer by another
    that takes codes and classes and returns the loss, such as `wl.nn.HierarchicalSoftmax` or `wl.nn.SampledSoftmax`.
    After training only the table is kept.
    """

    def __init__(
        self, vocabulary: int | Vocabulary, size: int, window: int = 2, head: Module | None = None, key: KeyLike = None
    ) -> None:
        words = self._take(vocabulary)
        self.window = as_int("CBOW", "window", window, 1)
        first, second = split(take_key("CBOW", key), 2)
        self.embedding = self._table(words, size, first)
        self.head: Any = Linear(size, words, key=second) if head is None else head

    def encode(self, contexts: ArrayLike) -> Tensor:
        """The sums (..., size) of the vectors of contexts (..., 2 window)."""
        contexts = arrays.asarray(contexts)
        if contexts.shape[-1:] != (2 * self.window,):
            raise ShapeError(f"CBOW: contexts of shape {contexts.shape}.", f"(..., {2 * self.window}) word numbers")
        return arrays.sum(self.embedding(contexts), axis=-2)

    def forward(self, contexts: ArrayLike) -> Tensor:
        """The logits (..., words) of the word in the middle."""
        z = self.encode(contexts)
        if isinstance(self.head, Linear):
            return self.head(z)
        return self.head.log_probs(z)

    def loss(self, contexts: ArrayLike, centers: ArrayLike) -> Tensor:
        """The mean cross-entropy, or the loss of the head."""
        if isinstance(self.head, Linear):
            return cross_entropy(self(contexts), arrays.asarray(centers))
        return self.head(self.encode(contexts), arrays.asarray(centers))

    _loss = loss

    def _pairs(self, sentences: list[Sequence[int]]) -> tuple[ArrayLike, ArrayLike]:
        return context_windows(sentences, self.window)


class SkipGram(WordVectors):
    r"""word2vec's skip-gram with negative sampling: \(\sigma(\langle e_c, o_w\rangle)\) for words w near c.

    >>> import wonderland as wl
    >>> model = wl.models.SkipGram(50, 8, window=2, negatives=5, key=wl.random.key(0))
    >>> model(wl.tensor([3, 4]), wl.tensor([4, 3])).shape
    ()

    The model called with words and words near them is the loss: `nn.functional.negative_sampling_loss`, with samples
    from the frequencies of the words (`counts`, or those of the sentences of `fit`) to the power 0.75.
    """

    def __init__(
        self,
        vocabulary: int | Vocabulary,
        size: int,
        window: int = 2,
        negatives: int = 5,
        counts: ArrayLike | None = None,
        key: KeyLike = None,
    ) -> None:
        words = self._take(vocabulary)
        self.window = as_int("SkipGram", "window", window, 1)
        first, second = split(take_key("SkipGram", key), 2)
        self.embedding = self._table(words, size, first)
        q = None if counts is None else unigram_probabilities(counts)
        self.head = SampledSoftmax(size, words, negatives, q, loss="negative", bias=False, key=second)
        self.counted = counts is not None

    def forward(self, centers: ArrayLike, contexts: ArrayLike) -> Tensor:
        return self.head(self.embedding(arrays.asarray(centers)), arrays.asarray(contexts))

    _loss = forward

    def _pairs(self, sentences: list[Sequence[int]]) -> tuple[ArrayLike, ArrayLike]:
        if not self.counted:
            self.head.set_probabilities(unigram_probabilities(word_counts(sentences, self.embedding.num_embeddings)))
        return skip_gram_pairs(sentences, self.window)
