"""Vision Transformer: an image is a sequence of patches, and a transformer does the rest. Book, section 11.2.4.

images (b, h, w, c)
  |  patches, each by the same linear layer              (b, n, e), n = (h/p)(w/p)
  |  a class token before them, positions                (b, 1 + n, e)
  |  [ x + attention(norm(x)); x + MLP(norm(x)) ] x depth, norm
  |  the class token, or the mean over patches           (b, e)
  |  a linear layer
scores (b, classes)
"""

from __future__ import annotations

from collections.abc import Callable

from ... import arrays
from ...arrays.conversion import as_real
from ...core.arguments import as_int, shown
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike, ShapeLike
from ...nn.attention.blocks import TransformerBlock, TransformerStack
from ...nn.attention.grid_positions import GridBias
from ...nn.attention.multi_head import MultiHeadAttention
from ...nn.attention.relative_positions import ScoreBias
from ...nn.attention.rotary import Rotary
from ...nn.functional.patch_tokens import check_patches
from ...nn.layers.dropout import Dropout
from ...nn.layers.extra_tokens import AppendTokens
from ...nn.layers.fully_connected import ActivationLike
from ...nn.layers.linear import Linear
from ...nn.layers.normalization import LayerNorm
from ...nn.layers.patch_embedding import PatchEmbed
from ...nn.module.module import Module
from ...random.keys import split
from ...random.streams import take_key
from ..networks.image_classifier import as_image_shape
from .positions import check_positions, positions_before

__all__ = ["ViT"]

TOKENIZERS = {"patches": "linear", "conv": "conv", "pixels": "linear"}  # and how PatchEmbed computes them
POOLINGS = ("cls", "mean")
POSITIONS = ("learned", "sinusoidal", "relative", "rotary")
POSITION_STD = 0.3  # about as large as patches are; beside them 0.02 is nothing, and it takes hundreds of steps to grow


class ViT(Module):
    r"""\(\operatorname{head}(h_0)\) with \(H = \operatorname{stack}([c ; P W] + S)\): images (b, h, w, c) to scores.

    >>> import wonderland as wl
    >>> model = wl.models.ViT(10, (32, 32, 3), patch=8, embed_dim=64, num_heads=4, depth=2)
    >>> x = wl.ones((5, 32, 32, 3))
    >>> model.tokens, model(x).shape, model.embed(x).shape, model.features(x).shape
    (16, (5, 10), (5, 64), (5, 16, 64))
    >>> wl.eval_shape(lambda: wl.models.ViT(1000, (224, 224, 3), 16, 768, 12, 12)).num_parameters()  # ViT-B/16
    86567656

    `tokenizer` makes vectors of the image: "patches" rearranges the pixels and multiplies, "conv" is the same as a
    convolution whose stride is its size, "pixels" takes every pixel for a token (so `patch` is 1; attention to n tokens
    costs n², and 64 x 64 pixels have 4096 of them). `positions` are "learned", a vector for each place; "sinusoidal";
    "relative", a bias for each offset in rows and columns and head of each block; "rotary"; or None, for which an image
    is a bag of patches. `pooling="cls"` reads the class token, "mean" the mean over patches. `registers` are so many
    more trained tokens after the patches, without a position, whose results are thrown away. Without `num_classes`
    there is no head, and the result is that of `embed`. With `qkv_bias=False` queries, keys and values have no biases.

    With m classes, n patches of p² c numbers, e features and L blocks there are, by default,
    (p² c + 1) e + e + (n + 1) e + L (12 e² + 13 e) + 2 e + (e + 1) m parameters. Nothing here knows that pixels are
    neighbours, and a shifted image is another one: on little data a convolutional network does better.
    """

    def __init__(
        self,
        num_classes: int | None = 10,
        image_size: ShapeLike = (28, 28, 1),
        patch: int = 4,
        embed_dim: int = 64,
        num_heads: int = 4,
        depth: int = 4,
        *,
        tokenizer: str = "patches",
        positions: str | None = "learned",
        pooling: str = "cls",
        registers: int = 0,
        qkv_bias: bool = True,
        hidden: int | None = None,
        activation: ActivationLike = "gelu",
        dropout: float = 0.0,
        eps: float = 1e-6,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        if tokenizer not in TOKENIZERS:
            raise InputError(f"ViT: tokenizer={shown(tokenizer)}.", f"one of {', '.join(map(repr, TOKENIZERS))}")
        if pooling not in POOLINGS:
            raise InputError(f"ViT: pooling={shown(pooling)}.", '"cls" or "mean"')
        check_positions("ViT", positions, POSITIONS)
        self.image_size = height, width, channels = as_image_shape("ViT", image_size)
        p = 1 if tokenizer == "pixels" else as_int("ViT", "patch", patch, 1)
        check_patches("ViT", self.image_size, p)
        e, layers, heads = as_int("ViT", "embed_dim", embed_dim, 1), as_int("ViT", "depth", depth, 0), num_heads
        rows, columns, first = height // p, width // p, int(pooling == "cls")
        self.tokens = rows * columns
        keys = split(take_key("ViT", key), layers + 5)
        self.patches = PatchEmbed(p, channels, e, TOKENIZERS[tokenizer], dtype=dtype, key=keys[0])
        self.class_token = AppendTokens(1, e, prepend=True, dtype=dtype, key=keys[1]) if first else None
        self.positions = positions_before(positions, self.tokens + first, e, dtype, keys[2], POSITION_STD)
        self.registers = AppendTokens(registers, e, dtype=dtype, key=keys[3]) if registers else None
        self.dropout = Dropout(dropout) if dropout else None
        within: dict[str | None, Callable[[], Rotary | ScoreBias]] = {
            "relative": lambda: GridBias(heads, rows, columns, first, dtype=dtype),
            "rotary": lambda: Rotary(e // heads),
        }

        def block(key: Tensor) -> TransformerBlock:
            bias, attention = within.get(positions, lambda: None)(), None
            if not qkv_bias:
                attention = MultiHeadAttention(
                    e, heads, bias=False, out_bias=True, positions=bias, dtype=dtype, key=key
                )
            return TransformerBlock(
                e, heads, hidden=hidden, activation=activation, attention=attention, positions=bias,
                norm=lambda e: LayerNorm(e, eps, dtype=dtype), dropout=dropout, dtype=dtype, key=key,
            )  # fmt: skip

        blocks = [block(k) for k in keys[5:]]
        self.stack = TransformerStack(blocks, LayerNorm(e, eps, dtype=dtype))
        self.head = None if num_classes is None else Linear(e, num_classes, dtype=dtype, key=keys[4])

    def encode(self, images: ArrayLike) -> Tensor:
        """The last vectors of all tokens but the registers: (b, 1 + n, e), the class token first if there is one."""
        x = as_real("ViT", images)
        if x.shape[-3:] != self.image_size:
            raise ShapeError(f"ViT: images of shape {x.shape}.", f"(..., {', '.join(map(str, self.image_size))})")
        x = self.patches(x)  # (b, n, e)
        x = x if self.class_token is None else self.class_token(x)  # (b, 1 + n, e)
        x = x if self.positions is None else self.positions(x)
        x = x if self.registers is None else self.registers(x)  # (b, 1 + n + r, e)
        h = self.stack(x if self.dropout is None else self.dropout(x))
        return h if self.registers is None else self.registers.strip(h)

    def features(self, images: ArrayLike) -> Tensor:
        """The last vectors of the patches, row by row: (b, n, e)."""
        h = self.encode(images)
        return h if self.class_token is None else self.class_token.strip(h)

    def embed(self, images: ArrayLike) -> Tensor:
        """The vector of an image (b, e), of which the head makes scores."""
        h = self.encode(images)
        return arrays.mean(h, axis=-2) if self.class_token is None else h[..., 0, :]

    def forward(self, images: ArrayLike) -> Tensor:
        h = self.embed(images)
        return h if self.head is None else self.head(h)  # (b, classes)

    def extra_repr(self) -> str:
        return f"image_size={self.image_size}"
