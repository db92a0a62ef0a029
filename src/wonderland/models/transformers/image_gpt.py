"""Images written patch by patch: each from those before it in a fixed order. Book, section 11.2.4.

images (b, h, w, c) --> patches in order (b, n, p p c) --> [start, all but the last] --> causal stack --> the next patch

Patches are vectors, guessed by their mean (squared error); or codes among so many levels, such as the grey values of
pixels or the tokens of a VQ-VAE, guessed by logits (cross-entropy).
"""

from __future__ import annotations

import numpy as np

from ... import arrays
from ...arrays.conversion import as_real
from ...core.arguments import as_int, as_number, shown
from ...core.dtypes import is_integer
from ...core.errors import DTypeError, InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike, DTypeLike, KeyLike, ShapeLike
from ...nn import functional as F  # noqa: N812 - as everybody calls it
from ...nn.attention.absolute_positions import LearnedPositions
from ...nn.attention.blocks import TransformerBlock, TransformerStack
from ...nn.functional.patch_tokens import check_patches
from ...nn.layers.dropout import Dropout
from ...nn.layers.embedding import Embedding
from ...nn.layers.extra_tokens import AppendTokens
from ...nn.layers.linear import Linear
from ...nn.layers.normalization import LayerNorm
from ...nn.module.module import Module
from ...random.continuous import normal
from ...random.discrete import categorical
from ...random.keys import split
from ...random.streams import take_key
from ...transforms.imperative import no_grad
from ..networks.image_classifier import as_image_shape

__all__ = ["ImageGPT", "patch_order"]

ORDERS = ("rows", "columns")


def patch_order(rows: int, columns: int, order: str = "rows") -> Array:
    """The numbers of patches, counted row by row, in the order in which they are written. Book, section 11.2.4.

    >>> import wonderland as wl
    >>> wl.models.patch_order(2, 3, "columns").tolist()
    [0, 3, 1, 4, 2, 5]

    It is a permutation: `argsort` of it brings patches that were taken in this order back to their places.
    """
    if order not in ORDERS:
        raise InputError(f"patch_order: order={shown(order)}.", '"rows" or "columns"')
    grid = np.arange(as_int("patch_order", "rows", rows, 1) * as_int("patch_order", "columns", columns, 1))
    return grid if order == "rows" else grid.reshape(rows, columns).T.ravel()


class ImageGPT(Module):
    r"""\(p(x) = \prod_i p(x_i \mid x_1, \dots, x_{i-1})\) over the patches of an image. Book, section 11.2.4.

    >>> import wonderland as wl
    >>> model = wl.models.ImageGPT((8, 8, 1), patch=2, embed_dim=32, num_heads=4, depth=2)
    >>> x = wl.ones((5, 8, 8, 1))
    >>> model(x).shape, model.loss(x).shape, model.generate(3).shape
    ((5, 16, 4), (), (3, 8, 8, 1))
    >>> codes = wl.models.ImageGPT((8, 8), embed_dim=32, num_heads=4, depth=2, levels=16)
    >>> codes(wl.zeros((5, 8, 8), dtype=wl.int64)).shape, codes.generate(3).shape
    ((5, 64, 16), (3, 8, 8))

    Without `levels`, images (batch, h, w, c) are cut into patches of `patch` x `patch` pixels, vectors whose mean the
    model gives, (batch, n, p p c), and the loss is the mean squared error. With `levels` K, images are codes
    (batch, h, w) from 0 to K - 1, one token each: grey values, or the codes that another model has for patches; the
    model gives logits (batch, n, K), and the loss is the cross-entropy. `order` is "rows" or "columns", see
    `patch_order`; results stand in this order. A token sees those before it alone; a trained vector begins.

    With n tokens of f numbers (or K), e features and L blocks there are f e + e + e + n e + L (12 e² + 13 e) + 2 e +
    (e + 1) f parameters; with levels, e less.
    """

    def __init__(
        self,
        image_size: ShapeLike = (28, 28, 1),
        patch: int = 1,
        embed_dim: int = 64,
        num_heads: int = 4,
        depth: int = 4,
        *,
        levels: int | None = None,
        order: str = "rows",
        hidden: int | None = None,
        dropout: float = 0.0,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "ImageGPT"
        self.image_size = height, width, channels = as_image_shape(name, image_size)
        self.patch, self.order = as_int(name, "patch", patch, 1), order
        self.levels = None if levels is None else as_int(name, "levels", levels, 2)
        if self.levels is not None and (self.patch, channels) != (1, 1):
            raise InputError(f"{name}: codes with patch={patch} and {channels} channels.", "one code for each token")
        check_patches(name, self.image_size, self.patch)
        rows, columns = height // self.patch, width // self.patch
        self.steps = patch_order(rows, columns, order)  # the patch that is written at each step
        e, layers = as_int(name, "embed_dim", embed_dim, 1), as_int(name, "depth", depth, 0)
        n, f = len(self.steps), self.patch**2 * channels if self.levels is None else self.levels
        keys = split(take_key(name, key), layers + 4)
        self.tokens: Module = (
            Linear(f, e, dtype=dtype, key=keys[0]) if self.levels is None else Embedding(f, e, dtype=dtype, key=keys[0])
        )
        self.start = AppendTokens(1, e, prepend=True, dtype=dtype, key=keys[1])
        self.positions = LearnedPositions(n, e, dtype=dtype, key=keys[2])
        self.dropout = Dropout(dropout) if dropout else None
        blocks = [
            TransformerBlock(e, num_heads, hidden=hidden, causal=True, dropout=dropout, dtype=dtype, key=k)
            for k in keys[4:]
        ]
        self.stack = TransformerStack(blocks, LayerNorm(e, dtype=dtype))
        self.head = Linear(e, f, dtype=dtype, key=keys[3])

    # --- images and their tokens in order

    def sequence(self, images: ArrayLike) -> Tensor:
        """The tokens of images in the order of writing: vectors (b, n, p p c), or codes (b, n)."""
        height, width, channels = self.image_size
        if self.levels is None:
            x = as_real("ImageGPT", images)
            if x.ndim != 4 or x.shape[1:] != self.image_size:
                raise ShapeError(f"ImageGPT: images of shape {x.shape}.", f"(batch, {height}, {width}, {channels})")
            return arrays.take(F.patchify(x, self.patch), self.steps, axis=1)
        x = arrays.asarray(images)
        if not is_integer(x.dtype):
            raise DTypeError(f"ImageGPT: codes of {x.dtype}.", f"integers below {self.levels}, or levels=None")
        if x.ndim == 4 and x.shape[-1] == 1:
            x = x[..., 0]
        if x.ndim != 3 or x.shape[1:] != (height, width):
            raise ShapeError(f"ImageGPT: codes of shape {x.shape}.", f"(batch, {height}, {width})")
        return arrays.take(arrays.reshape(x, (x.shape[0], -1)), self.steps, axis=1)

    def image(self, sequence: ArrayLike) -> Tensor:
        """The images whose tokens these are: the inverse of `sequence`."""
        height, width, _ = self.image_size
        x = arrays.take(arrays.asarray(sequence), np.argsort(self.steps), axis=1)
        if self.levels is None:
            return F.unpatchify(x, height, width, self.patch)
        return arrays.reshape(x, (-1, height, width))

    # --- the model

    def forward(self, images: ArrayLike) -> Tensor:
        before = self.tokens(self.sequence(images))[:, :-1]  # (b, n - 1, e)
        x = self.positions(self.start(before))  # (b, n, e)
        h = self.stack(x if self.dropout is None else self.dropout(x))
        return self.head(h)  # (b, n, f)

    def loss(self, images: ArrayLike) -> Tensor:
        """The mean squared error of patches, or the mean cross-entropy of codes, each given those before it."""
        found, wanted = self(images), self.sequence(images)
        return F.mse_loss(found, wanted) if self.levels is None else F.cross_entropy(found, wanted)

    def generate(
        self, count: int = 1, given: ArrayLike | None = None, temperature: float | None = None, key: KeyLike = None
    ) -> Tensor:
        """New images, written token by token with a cache; they begin with tokens (count, k, ...), if given.

        Codes are drawn from the softmax of their logits / `temperature`, by default 1. Vectors are what the model
        gives, with noise of the standard deviation `temperature`, by default 0. At 0 nothing is random.
        """
        rows = as_int("ImageGPT", "count", count, 1)
        usual = 0.0 if self.levels is None else 1.0
        heat = usual if temperature is None else float(as_number("ImageGPT", "temperature", temperature))
        if heat < 0:
            raise InputError(f"ImageGPT: temperature={temperature}.", "0 or more")
        n = len(self.steps)
        keys = split(take_key("ImageGPT", key), n)
        shape = (rows, 0) if self.levels is not None else (rows, 0, self.head.out_features)
        known = arrays.zeros(shape, dtype="int64" if self.levels else self.head.weight.dtype)
        known = known if given is None else arrays.asarray(given)
        if known.ndim != len(shape) or known.shape[0] != rows or known.shape[2:] != shape[2:] or known.shape[1] >= n:
            raise ShapeError(f"ImageGPT: given tokens of shape {known.shape}.", f"({rows}, fewer than {n}, ...)")
        with no_grad():
            cache = self.stack.new_cache(rows, n)
            begun = self.start(self.tokens(known)) if known.shape[1] else self.start(_none(rows, self))
            h, cache = self.stack.extend(self.positions(begun), cache)
            written = [known[:, i] for i in range(known.shape[1])]
            while True:
                token = self._draw(self.head(h[:, -1]), heat, keys[len(written)])
                written.append(token)
                if len(written) == n:
                    return self.image(arrays.stack(written, axis=1))
                x = arrays.expand_dims(self.tokens(token), 1)  # (b, 1, e)
                place = arrays.full((rows, 1), len(written))
                h, cache = self.stack.extend(self.positions(x, place), cache)

    def _draw(self, found: Tensor, heat: float, key: Tensor) -> Tensor:
        if self.levels is None:
            return found if not heat else found + heat * normal(found.shape, key=key, dtype=found.dtype)
        return arrays.argmax(found, axis=-1) if not heat else categorical(found / heat, key=key)

    def extra_repr(self) -> str:
        return ", ".join([f"image_size={self.image_size}", *self._changed(patch=1, levels=None, order="rows")])


def _none(rows: int, model: ImageGPT) -> Tensor:
    """No tokens at all."""
    return arrays.zeros((rows, 0, model.start.e), dtype=model.start.weight.dtype)
