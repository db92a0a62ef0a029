"""The table of vectors for words and other things with numbers. Book, section 8.2.2."""

from __future__ import annotations

from typing import Self

from ... import arrays
from ...core import dtypes
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.continuous import normal
from ...random.streams import take_key
from .. import functional as F  # noqa: N812 - as everybody calls it
from ..module.lazy import at_once
from ..module.module import Module
from ..module.parameter import Parameter

__all__ = ["Embedding"]


class Embedding(Module):
    r"""\(W_i\), a trained vector for each number i: integers (...) to (..., embedding_dim). Book, section 8.2.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.Embedding(96, 128)
    >>> layer
    Embedding(num_embeddings=96, embedding_dim=128)
    >>> layer(wl.tensor([[3, 95, 0]])).shape
    (1, 3, 128)

    `weight` is (num_embeddings, embedding_dim) and starts from N(0, 1). The row `padding_idx` starts from 0 and is not
    trained. Rows longer than `max_norm` are shortened to it when they are read. Numbers outside the table raise.

    Looking a row up is the product of a one-hot vector with the table, without the products by 0; only rows that were
    looked up get gradients. An embedding serves things that have no parts; what has parts gets an encoder. One layer
    used in several places shares its table, and the gradients of all uses add up.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        self.num_embeddings = as_int("Embedding", "num_embeddings", num_embeddings, 0)
        self.embedding_dim = as_int("Embedding", "embedding_dim", embedding_dim, 0)
        if max_norm is not None and not max_norm > 0:
            raise InputError(f"Embedding: max_norm={max_norm}.", "a length above 0, or None")
        self.max_norm = max_norm
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise InputError(f"Embedding: padding_idx={padding_idx} in {num_embeddings} rows.", "one of the rows")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        key = take_key("Embedding", key)
        with at_once(key):
            shape = (self.num_embeddings, self.embedding_dim)
            weight = normal(shape, key=key, dtype=dtypes.default_float if dtype is None else dtype)
            if padding_idx is not None:
                weight = arrays.where(arrays.arange(num_embeddings)[:, None] == padding_idx, 0.0, weight)
            self.weight = Parameter(weight)

    @classmethod
    def from_pretrained(
        cls, weight: ArrayLike, freeze: bool = True, padding_idx: int | None = None, max_norm: float | None = None
    ) -> Self:
        """A layer with a given table, which is not trained unless `freeze` is false.

        >>> import wonderland as wl
        >>> wl.nn.Embedding.from_pretrained(wl.eye(3))(wl.tensor(1))
        tensor([0., 1., 0.])
        """
        table = arrays.asarray(weight)
        if table.ndim != 2:
            raise ShapeError(f"Embedding.from_pretrained: a table of shape {table.shape}.", "(rows, size)")
        layer = cls.__tree_new__()  # not by __init__, which takes random numbers
        layer.num_embeddings, layer.embedding_dim = table.shape
        layer.padding_idx = padding_idx
        layer.max_norm = max_norm
        layer.weight = Parameter(table, trainable=not freeze)
        return layer

    def forward(self, index: ArrayLike) -> Tensor:
        return F.embedding(index, self.weight, self.padding_idx, self.max_norm)

    def attend(self, x: ArrayLike) -> Tensor:
        r"""\(x W^\top\): the products of vectors (..., embedding_dim) with all rows, as a tied head has them.

        >>> import wonderland as wl
        >>> wl.nn.Embedding.from_pretrained(wl.eye(3)).attend(wl.tensor([1.0, 2.0, 3.0]))
        tensor([1., 2., 3.])
        """
        return arrays.matmul(x, arrays.swapaxes(self.weight, 0, 1))

    def extra_repr(self) -> str:
        text = f"num_embeddings={self.num_embeddings}, embedding_dim={self.embedding_dim}"
        text += "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return text if self.max_norm is None else f"{text}, max_norm={self.max_norm}"
