"""Convolutional networks that classify texts. Book, section 8.2.2.

TextCNN   tokens -> embedding -> conv -> relu -> max of pairs -> conv -> relu -> mean over time -> linear

KimCNN                      +-> conv of 3 -> relu -> max over time -+
          tokens -> embed --+-> conv of 4 -> relu -> max over time -+-> dropout -> linear
                            +-> conv of 5 -> relu -> max over time -+
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ... import arrays
from ...arrays.conversion import as_tensor
from ...core import dtypes
from ...core.arguments import as_int, as_list
from ...core.errors import DTypeError, InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...nn import functional as F  # noqa: N812 - as everybody calls it
from ...nn.layers.convolution import Conv1d
from ...nn.layers.dropout import Dropout
from ...nn.layers.embedding import Embedding
from ...nn.layers.linear import Linear
from ...nn.module.containers import ModuleList
from ...nn.module.module import Module
from ...nn.sequences.token_masks import as_mask, pooled, silenced
from ...random.keys import split
from ...random.streams import take_key


class TextClassifier(Module):
    """The base of models from tokens (..., time) to logits (..., num_classes); a subclass defines `encode`."""

    embed: Embedding
    head: Linear
    least = 1  # tokens

    def forward(self, tokens: ArrayLike, mask: ArrayLike | None = None) -> Tensor:
        return self.head(self.encode(tokens, mask))

    def encode(self, tokens: ArrayLike, mask: ArrayLike | None = None) -> Tensor:
        """The representation (..., features) of texts, from which the head makes logits."""
        raise NotImplementedError(f"{type(self).__name__}: def encode(self, tokens, mask=None)")

    def _embedded(self, tokens: ArrayLike, mask: ArrayLike | None) -> tuple[Tensor, Tensor | None]:
        """Vectors (..., time, embedding_size) with zeros at the padding, and the mask."""
        name = type(self).__name__
        tokens = as_tensor(name, arrays.asarray(tokens))
        if not dtypes.is_integer(tokens.dtype):
            raise DTypeError(f"{name}: tokens of {tokens.dtype}.", "integers, as tokenizers give them")
        if not tokens.ndim or tokens.shape[-1] < self.least:
            raise ShapeError(
                f"{name}: tokens of shape {tokens.shape}.",
                f"(..., time) with {self.least} or more tokens; pad shorter texts",
            )
        checked = as_mask(name, mask, tokens.shape, self.least)
        return silenced(self.embed(tokens), checked), checked


class TextCNN(TextClassifier):
    r"""\(\hat y = \mathrm{CNN}(\mathrm{LookUp}(x))\), the book's text classifier. Book, box C.8.2.

    >>> import wonderland as wl
    >>> model = wl.models.TextCNN(16, 8, 10)
    >>> model(wl.zeros((3, 7), dtype=wl.int64)).shape, model.num_parameters()
    ((3, 10), 12394)

    Integers (..., time) become logits (..., num_classes), for texts of any length from 2 on; of an odd number of places
    the last one is not pooled. `mask` (..., time) is False at padding at the end: a padded text gives what it gives
    alone. `vocabulary` is the number of tokens, or a `wl.nn.Embedding` such as one with pretrained vectors. With n
    tokens, vectors of size e, kernels of s, channels (c, d) and m classes there are n e + (s e + 1) c + (s c + 1) d +
    (d + 1) m parameters.
    """

    least = 2

    def __init__(
        self,
        vocabulary: int | Embedding,
        embedding_size: int | None,
        num_classes: int,
        channels: tuple[int, int] = (32, 64),
        kernel_size: int = 5,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        keys = split(take_key("TextCNN", key), 4)
        sizes = as_list("TextCNN", "channels", channels)
        if len(sizes) != 2:
            raise InputError(f"TextCNN: channels={channels}.", "two numbers, one for each convolution")
        self.embed = _as_embedding("TextCNN", vocabulary, embedding_size, dtype, keys[0])
        e, (c, d) = self.embed.embedding_dim, sizes
        self.conv1 = Conv1d(e, c, kernel_size, padding="same", dtype=dtype, key=keys[1])
        self.conv2 = Conv1d(c, d, kernel_size, padding="same", dtype=dtype, key=keys[2])
        self.head = Linear(d, as_int("TextCNN", "num_classes", num_classes, 1), dtype=dtype, key=keys[3])

    def encode(self, tokens: ArrayLike, mask: ArrayLike | None = None) -> Tensor:
        """The mean over time of the last convolution, (..., channels)."""
        h, kept = self._embedded(tokens, mask)  # (..., t, e)
        h = silenced(arrays.relu(self.conv1(h)), kept)  # (..., t, c)
        h, kept = F.max_pool1d(h, 2), pooled(kept, 2)  # (..., t/2, c)
        h = arrays.relu(self.conv2(silenced(h, kept)))  # (..., t/2, d)
        return F.global_avg_pool(h, axes=1, mask=kept)


class KimCNN(TextClassifier):
    r"""Convolutions of several widths side by side, each with its maximum over time (Kim, 2014).

    >>> import wonderland as wl
    >>> model = wl.models.KimCNN(16, 8, 2, channels=10, widths=(2, 3))
    >>> model(wl.zeros((4, 6), dtype=wl.int64)).shape, model.num_parameters()
    ((4, 2), 590)

    A unit looks for one phrase of `widths` tokens, wherever it stands in the text. The arguments are those of
    `TextCNN`; texts have one token or more, and padding may be on both sides. With n tokens, vectors of size e, c
    channels and m classes there are \(n e + \sum_w (w e + 1) c + (c\,|\mathrm{widths}| + 1) m\) parameters.
    """

    def __init__(
        self,
        vocabulary: int | Embedding,
        embedding_size: int | None,
        num_classes: int,
        channels: int = 100,
        widths: Iterable[int] = (3, 4, 5),
        dropout: float = 0.5,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        self.widths = tuple(as_int("KimCNN", "a width", w, 1) for w in as_list("KimCNN", "widths", widths))
        if not self.widths:
            raise InputError("KimCNN: there are no widths.", "kernel sizes such as (3, 4, 5)")
        keys = split(take_key("KimCNN", key), len(self.widths) + 2)
        self.embed = _as_embedding("KimCNN", vocabulary, embedding_size, dtype, keys[0])
        e = self.embed.embedding_dim
        self.convs = ModuleList(
            [
                Conv1d(e, channels, w, padding="same", dtype=dtype, key=keys[i])
                for i, w in enumerate(self.widths, start=2)
            ]
        )
        self.dropout = Dropout(dropout)
        classes = as_int("KimCNN", "num_classes", num_classes, 1)
        self.head = Linear(len(self.widths) * channels, classes, dtype=dtype, key=keys[1])

    def encode(self, tokens: ArrayLike, mask: ArrayLike | None = None) -> Tensor:
        """The strongest response of every unit, (..., channels for each width)."""
        h, kept = self._embedded(tokens, mask)  # (..., t, e)
        maxima = [F.global_max_pool(arrays.relu(conv(h)), axes=1, mask=kept) for conv in self.convs]  # (..., c) each
        return self.dropout(arrays.concat(maxima, axis=-1))


def _as_embedding(name: str, vocabulary: Any, size: int | None, dtype: DTypeLike | None, key: KeyLike) -> Embedding:
    if isinstance(vocabulary, Embedding):
        if size not in (None, vocabulary.embedding_dim):
            raise InputError(
                f"{name}: embedding_size={size}, but the vectors have {vocabulary.embedding_dim} elements.", "None"
            )
        return vocabulary
    if size is None:
        raise InputError(f"{name}: nothing says how large the vectors are.", "embedding_size=64, or an Embedding")
    n = as_int(name, "vocabulary", vocabulary, 1)
    return Embedding(n, as_int(name, "embedding_size", size, 1), dtype=dtype, key=key)
