"""BERT: an encoder that learns by filling in hidden words, and is then tuned for a task. Book, 11.2.4; notes, 5.8.

tokens, segments --> norm(token + position + segment) --> [ norm(x + attention(x)); norm(x + MLP(x)) ] x depth
    --> transform, tied to the tokens --> logits of hidden tokens        MaskedLanguageModel
    --> tanh(first token W + b) --> head                                 SequenceClassifier
    --> head at every token                                              TokenClassifier

Every token sees all others, so these models do not write text; `wl.generation` refuses them.
"""

from __future__ import annotations

from ... import arrays
from ...core.arguments import as_int, as_number
from ...core.dtypes import is_integer
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...nn.attention.absolute_positions import LearnedPositions
from ...nn.attention.blocks import TransformerBlock, TransformerStack
from ...nn.layers.dropout import Dropout
from ...nn.layers.embedding import Embedding
from ...nn.layers.fully_connected import ActivationLike, as_activation
from ...nn.layers.linear import Linear
from ...nn.layers.normalization import LayerNorm
from ...nn.module.module import Module
from ...nn.module.parameter import Parameter
from ...nn.sequences.token_masks import as_token_mask, places_of
from ...random.keys import split
from ...random.streams import take_key
from .initialization import small_normal
from .language_model import as_tokens

__all__ = ["BERT", "MaskedLanguageModel", "SequenceClassifier", "TokenClassifier", "fine_tuning_groups"]


class BERT(Module):
    r"""Tokens (batch, time) to vectors (batch, time, e), each of which depends on the whole text. Notes, section 5.8.

    >>> import wonderland as wl
    >>> bert = wl.models.BERT(vocabulary=100, context=64, embed_dim=32, num_heads=4, depth=2)
    >>> tokens, segments = wl.zeros((8, 20), dtype=wl.int64), wl.zeros((8, 20), dtype=wl.int64)
    >>> bert(tokens, segments, lengths=[20] * 7 + [5]).shape, bert.embed(tokens).shape
    ((8, 20, 32), (8, 32))
    >>> wl.eval_shape(lambda: wl.models.BERT(30522)).num_parameters()  # as large as bert-base-uncased
    109482240

    The first vectors are \(\operatorname{norm}(E_{x_i} + S_i + G_{g_i})\): a token, its place and its segment, which
    says to which of several texts it belongs (0 if nothing is said). Blocks normalize after each sum. `embed` is the
    vector of a whole text, \(\tanh(h_0 W + b)\) of its first token, which is [CLS] by convention. Padding, said by
    `token_mask` or `lengths`, may be on either side.

    With V tokens, m places, s segments, e features, L blocks and the pooler of `embed` there are
    (V + m + s) e + 2 e + L (12 e² + 13 e) + e² + e parameters. Weights start from \(N(0, 0.02^2)\).
    """

    generates = False

    def __init__(
        self,
        vocabulary: int,
        context: int = 512,
        embed_dim: int = 768,
        num_heads: int = 12,
        depth: int = 12,
        *,
        segments: int = 2,
        hidden: int | None = None,
        activation: ActivationLike = "gelu",
        pooler: bool = True,
        dropout: float = 0.0,
        eps: float = 1e-12,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        self.vocabulary = as_int("BERT", "vocabulary", vocabulary, 1)
        self.context = as_int("BERT", "context", context, 1)
        self.embed_dim = e = as_int("BERT", "embed_dim", embed_dim, 1)
        layers = as_int("BERT", "depth", depth, 0)
        self.eps = float(as_number("BERT", "eps", eps))
        keys = split(take_key("BERT", key), layers + 5)
        self.tokens = Embedding(self.vocabulary, e, dtype=dtype, key=keys[0])
        self.positions = LearnedPositions(self.context, e, dtype=dtype, key=keys[1])
        self.segments = Embedding(as_int("BERT", "segments", segments, 1), e, dtype=dtype, key=keys[2])
        self.norm = LayerNorm(e, eps, dtype=dtype)
        self.dropout = Dropout(dropout) if dropout else None
        blocks = [
            TransformerBlock(
                e, num_heads, hidden=hidden, activation=activation, norm=lambda e: LayerNorm(e, eps, dtype=dtype),
                norm_first=False, dropout=dropout, attention_dropout=dropout, dtype=dtype, key=k,
            )
            for k in keys[5:]
        ]  # fmt: skip
        self.stack = TransformerStack(blocks)
        self.pooler = Linear(e, e, dtype=dtype, key=keys[3]) if pooler else None
        small_normal(self, 0.02, keys[4])

    def forward(
        self,
        tokens: ArrayLike,
        segments: ArrayLike | None = None,
        token_mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> Tensor:
        real = as_token_mask(self._describe(), as_tokens(self, tokens).shape, token_mask, lengths)
        x = self.vectors(tokens, segments, real)  # (b, t, e)
        return self.stack(x if self.dropout is None else self.dropout(x), token_mask=real)

    def vectors(
        self, tokens: ArrayLike, segments: ArrayLike | None = None, token_mask: ArrayLike | None = None
    ) -> Tensor:
        """What the first block takes, (b, t, e): `nn.attention_maps(bert.stack, bert.vectors(tokens))` needs it."""
        ids = as_tokens(self, tokens)  # (b, t)
        if ids.shape[-1] > self.context:
            raise InputError(
                f"{self._describe()}: {ids.shape[-1]} tokens.", f"at most {self.context}, or a larger context"
            )
        kinds = arrays.zeros(ids.shape, dtype="int64") if segments is None else arrays.asarray(segments)
        if kinds.shape != ids.shape or not is_integer(kinds.dtype):
            raise ShapeError(
                f"{self._describe()}: segments {kinds.dtype}{list(kinds.shape)} of tokens {ids.shape}.",
                "an integer for each token, from 0",
            )
        real = as_token_mask(self._describe(), ids.shape, token_mask)
        if real is not None:  # padding may have a number of its own
            ids, kinds = arrays.where(real, ids, 0), arrays.where(real, kinds, 0)
        x = self.positions(self.tokens(ids), places_of(real, ids.shape[-1]))
        return self.norm(x + self.segments(kinds))

    def embed(
        self,
        tokens: ArrayLike,
        segments: ArrayLike | None = None,
        token_mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> Tensor:
        """A vector (b, e) of each text, from that of its first real token."""
        if self.pooler is None:
            raise InputError(f"{self._describe()}: it has no pooler.", "pooler=True, or a mean of bert(tokens)")
        h = self(tokens, segments, token_mask, lengths)
        if token_mask is None:
            return arrays.tanh(self.pooler(h[:, 0]))
        first = arrays.argmax(arrays.astype(arrays.asarray(token_mask) != 0, "int64"), axis=-1)  # past left padding
        return arrays.tanh(self.pooler(arrays.take_along_axis(h, arrays.reshape(first, (-1, 1, 1)), axis=1)[:, 0]))

    def freeze_below(self, blocks: int) -> BERT:
        """Train neither the embeddings nor the first so many blocks; `unfreeze` trains all again.

        >>> import wonderland as wl
        >>> bert = wl.models.BERT(50, 8, 16, 2, depth=3).freeze_below(2)
        >>> {path.split(".norm1")[0] for path, p in bert.named_parameters() if p.trainable and "norm1" in path}
        {'stack.blocks.2'}
        """
        count = as_int("BERT", "blocks", blocks, 0)
        if count > len(self.stack.blocks):
            raise InputError(f"{self._describe()}: {count} blocks to freeze of {len(self.stack.blocks)}.", "fewer")
        self.unfreeze()
        for part in (self.tokens, self.positions, self.segments, self.norm, *list(self.stack.blocks)[:count]):
            part.freeze()
        return self

    def extra_repr(self) -> str:
        return f"vocabulary={self.vocabulary}, context={self.context}"


class MaskedLanguageModel(Module):
    r"""\(\operatorname{norm}(\phi(h W + b)) E^\top + c\): logits (batch, time, vocabulary) of hidden tokens.

    >>> import wonderland as wl
    >>> F, model = wl.nn.functional, wl.models.MaskedLanguageModel(wl.models.BERT(100, 64, 32, 4, 2))
    >>> text = wl.random.randint((8, 20), 5, 100)
    >>> inputs, targets = F.mask_tokens(text, 0.15, mask_id=4, vocabulary_size=100)
    >>> loss = F.cross_entropy(model(inputs), targets)  # of hidden places alone: other targets are -100

    The last matrix is the table of the tokens. It adds e² + 3 e + V parameters to those of the `bert` that is given.
    With `next_sentence` there is a second head with 2 e + 2 more, whose scores `follows` gives: whether the second of
    two texts comes after the first. Book, section 11.2.4; notes, section 5.8.
    """

    generates = False

    def __init__(
        self,
        bert: BERT,
        activation: ActivationLike = "gelu",
        next_sentence: bool = False,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        e = bert.embed_dim
        self.bert = bert
        keys = split(take_key("MaskedLanguageModel", key), 2)
        self.transform = Linear(e, e, dtype=dtype, key=keys[0])
        self.activation = as_activation("MaskedLanguageModel", activation)
        self.norm = LayerNorm(e, bert.eps, dtype=dtype)
        self.bias = Parameter(arrays.zeros(bert.vocabulary, dtype=bert.tokens.weight.dtype))
        small_normal(self.transform, 0.02, keys[1])
        self.next_sentence = Linear(e, 2, dtype=dtype, key=keys[1]) if next_sentence else None

    def follows(
        self,
        tokens: ArrayLike,
        segments: ArrayLike | None = None,
        token_mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> Tensor:
        """Scores (batch, 2): first that the second text follows the first one, then that it is any other."""
        if self.next_sentence is None:
            raise InputError(f"{self._describe()}: it has no head for pairs of texts.", "next_sentence=True")
        return self.next_sentence(self.bert.embed(tokens, segments, token_mask, lengths))

    def forward(
        self,
        tokens: ArrayLike,
        segments: ArrayLike | None = None,
        token_mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> Tensor:
        h = self.bert(tokens, segments, token_mask, lengths)  # (b, t, e)
        h = self.norm(self.activation(self.transform(h)))
        return self.bert.tokens.attend(h) + self.bias  # (b, t, V)


class SequenceClassifier(Module):
    """Scores (batch, classes) of whole texts: a linear layer on `bert.embed`. Notes, section 5.8.

    >>> import wonderland as wl
    >>> model = wl.models.SequenceClassifier(wl.models.BERT(100, 64, 32, 4, 2), 3)
    >>> model(wl.zeros((8, 20), dtype=wl.int64)).shape
    (8, 3)

    To tune a model that has learned from text, give its `bert`; train all of it with a small rate, some 3e-5, or with
    `bert.freeze_below(n)` the upper blocks alone, or with rates that fall from block to block: `fine_tuning_groups`.
    """

    generates = False

    def __init__(
        self, bert: BERT, classes: int, dropout: float = 0.0, dtype: DTypeLike | None = None, key: KeyLike = None
    ) -> None:
        self.bert = bert
        self.dropout = Dropout(dropout) if dropout else None
        keys = split(take_key(type(self).__name__, key), 2)
        self.head = Linear(bert.embed_dim, as_int(type(self).__name__, "classes", classes, 1), dtype=dtype, key=keys[0])
        small_normal(self.head, 0.02, keys[1])

    def forward(
        self,
        tokens: ArrayLike,
        segments: ArrayLike | None = None,
        token_mask: ArrayLike | None = None,
        lengths: ArrayLike | None = None,
    ) -> Tensor:
        h = self._vectors(tokens, segments, token_mask, lengths)
        return self.head(h if self.dropout is None else self.dropout(h))

    def _vectors(self, *given: ArrayLike | None) -> Tensor:
        tokens, *rest = given
        assert tokens is not None
        return self.bert.embed(tokens, *rest)  # (b, e)


class TokenClassifier(SequenceClassifier):
    """Scores (batch, time, classes) of each token, such as names and verbs: a linear layer on its vector.

    >>> import wonderland as wl
    >>> model = wl.models.TokenClassifier(wl.models.BERT(100, 64, 32, 4, 2, pooler=False), 3)
    >>> model(wl.zeros((8, 20), dtype=wl.int64)).shape
    (8, 20, 3)
    """

    def _vectors(self, *given: ArrayLike | None) -> Tensor:
        tokens, *rest = given
        assert tokens is not None
        return self.bert(tokens, *rest)  # (b, t, e)


def fine_tuning_groups(model: SequenceClassifier, lr: float, decay: float = 0.9) -> list[dict[str, object]]:
    r"""Groups for an optimizer: rate \(\eta\) for the head, \(\eta \gamma^{L-l+1}\) for block l of L, then embeddings.

    >>> import wonderland as wl
    >>> model = wl.models.SequenceClassifier(wl.models.BERT(100, 64, 32, 4, 2), 3)
    >>> groups = wl.models.fine_tuning_groups(model, 1e-3, decay=0.5)
    >>> [group["lr"] for group in groups]
    [0.000125, 0.00025, 0.0005, 0.001]
    >>> optimizer = wl.optim.AdamW(groups, lr=1e-3)

    Lower layers hold what is useful for every text, and should change least. Notes, section 8.5.5.
    """
    if not as_number("fine_tuning_groups", "lr", lr) >= 0 or not as_number("fine_tuning_groups", "decay", decay) >= 0:
        raise InputError(f"fine_tuning_groups: lr={lr!r}, decay={decay!r}.", "a rate, and a factor such as 0.9")
    layers = len(model.bert.stack.blocks)
    levels: dict[int, list[tuple[str, Parameter]]] = {level: [] for level in range(layers + 2)}
    for path, parameter in model.named_parameters():
        parts = path.split(".")
        if parts[:3] == ["bert", "stack", "blocks"]:
            level = 1 + int(parts[3])
        else:  # the pooler learns with the head
            level = 0 if parts[0] == "bert" and parts[1] != "pooler" else layers + 1
        levels[level].append((path, parameter))
    return [{"params": pairs, "lr": lr * decay ** (layers + 1 - level)} for level, pairs in levels.items()]
