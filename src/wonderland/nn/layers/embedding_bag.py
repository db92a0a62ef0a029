"""Embeddings of bags: sums, means or maxima of rows of a table. Notes, section 4.4."""

from __future__ import annotations

from typing import Self

from ... import arrays
from ...arrays.conversion import as_real, as_tensor
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from .embedding import Embedding

__all__ = ["EmbeddingBag"]

MODES = ("sum", "mean", "max")


class EmbeddingBag(Embedding):
    r"""\(\sum_j W_{i_j}\) (or mean, or maximum) over bags of numbers: integers (..., n) to (..., embedding_dim).

    >>> import wonderland as wl
    >>> layer = wl.nn.EmbeddingBag.from_pretrained(wl.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), mode="sum")
    >>> layer(wl.tensor([[0, 1], [2, 2]]))
    tensor([[ 4.,  6.],
            [10., 12.]])

    `mode` is "mean", "sum" or "max". Entries `padding_idx` do not count, so that bags may have different sizes; an
    empty bag gives zeros. `per_sample_weights`, of the shape of the index, multiply the rows of a sum.
    """

    mode: str

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        mode: str = "mean",
        padding_idx: int | None = None,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        super().__init__(num_embeddings, embedding_dim, padding_idx, max_norm, dtype, key)
        self.mode = _as_mode(mode)

    @classmethod
    def from_pretrained(
        cls,
        weight: ArrayLike,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        mode: str = "mean",
    ) -> Self:
        """A layer with a given table, which is not trained unless `freeze` is false."""
        layer = super().from_pretrained(weight, freeze, padding_idx, max_norm)
        layer.mode = _as_mode(mode)
        return layer

    def forward(self, index: ArrayLike, per_sample_weights: ArrayLike | None = None) -> Tensor:
        index = as_tensor("EmbeddingBag", index)
        if not index.ndim:
            raise ShapeError("EmbeddingBag: a number is no bag.", "integers (..., n)")
        rows = super().forward(index)  # (..., n, size)
        counted = arrays.ones_like(index) > 0 if self.padding_idx is None else index != self.padding_idx
        if per_sample_weights is not None:
            weights = as_real("EmbeddingBag", per_sample_weights)
            if weights.shape != index.shape or self.mode != "sum":
                raise ShapeError(
                    f"EmbeddingBag: weights of shape {weights.shape} for numbers of {index.shape}, mode {self.mode!r}.",
                    'weights of the shape of the numbers, and mode="sum"',
                )
            rows = rows * weights[..., None]
        if self.mode == "max":
            if not index.shape[-1]:
                return arrays.zeros((*index.shape[:-1], self.embedding_dim), dtype=rows.dtype)
            top = arrays.max(arrays.where(counted[..., None], rows, -arrays.inf), axis=-2)
            return arrays.where(arrays.any(counted, axis=-1)[..., None], top, 0.0)
        total = arrays.sum(arrays.where(counted[..., None], rows, 0.0), axis=-2)
        if self.mode == "sum":
            return total
        return total / arrays.maximum(arrays.sum(counted, axis=-1), 1)[..., None]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, mode={self.mode!r}"


def _as_mode(mode: str) -> str:
    if mode not in MODES:
        raise InputError(f"EmbeddingBag: mode={mode!r}.", "one of " + ", ".join(map(repr, MODES)))
    return mode
