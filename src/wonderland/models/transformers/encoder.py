"""The basic recipe of transformers, for any data that can be cut into tokens. Book, section 10.3.1.

data --tokenizer--> (b, n, e) --+ positions--> [ attention, MLP ] x depth --> (b, n, e) --pool, head--> (b, outputs)

Only the tokenizer and the positions know what the tokens stand for. The same blocks read words, patches, steps of a
series and nodes of a graph.
"""

from __future__ import annotations

from ...arrays.conversion import as_tensor
from ...core import dtypes
from ...core.arguments import as_int, shown
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...nn.attention.absolute_positions import AbsolutePositions
from ...nn.attention.blocks import TransformerBlock, TransformerStack
from ...nn.layers.dropout import Dropout
from ...nn.layers.embedding import Embedding
from ...nn.layers.extra_tokens import AppendTokens
from ...nn.layers.fully_connected import ActivationLike
from ...nn.layers.linear import Linear
from ...nn.layers.normalization import LayerNorm
from ...nn.layers.token_pooling import KINDS, TokenPool
from ...nn.module.module import Module
from ...nn.sequences.token_masks import as_token_mask, places_of, silenced
from ...random.keys import split
from ...random.streams import take_key
from .positions import WITHIN, check_positions, positions_before, positions_within

__all__ = ["TransformerEncoder"]


class TransformerEncoder(Module):
    r"""\(y = \operatorname{head}(\operatorname{pool}(\operatorname{stack}(\operatorname{tokenize}(x) + S)))\).

    >>> import wonderland as wl
    >>> text = wl.models.TransformerEncoder(1000, 32, num_heads=4, depth=2, head=5)
    >>> text(wl.zeros((8, 20), dtype=wl.int64), lengths=[20] * 7 + [3]).shape
    (8, 5)
    >>> series = wl.models.TransformerEncoder(wl.nn.Linear(3, 32), 32, head=2, pooling=None, stack=text.stack)
    >>> series(wl.ones((8, 50, 3))).shape  # the same blocks, a result for each element
    (8, 50, 2)

    `tokenizer` is the size of a vocabulary, for tokens (batch, n) of integers; or a module that makes vectors
    (batch, n, embed_dim) of the data, such as `Linear` for the steps of a series and the nodes of a graph, `PatchEmbed`
    for images, or `AudioTokenizer`; or None if the data are such vectors already. `positions` are "learned" (for up to
    `max_length` tokens), "sinusoidal", "relative", "rotary" or "alibi", a layer of `AbsolutePositions`, or None: then
    the tokens are a set, and with a pooling the result is the same for every order of them.

    `pooling` is "mean", "sum", "max" or "attention" over real tokens; "cls" for the vector of a trained class token;
    or None for a result at every token. `registers` are so many more trained tokens, whose results are thrown away.
    These tokens have no position; they stand before the others, or with `prepend=False` after them. `head` is the
    number of outputs of a linear layer, a module of your own, or None. `stack` are the blocks of another model, else
    there are `depth` blocks with a last normalization: with learned positions, m = `max_length`, V tokens and o outputs
    (V + m) e + L (12 e² + 13 e) + 2 e + (e + 1) o parameters.

    When called, `token_mask` (batch, n) or `lengths` (batch,) say which tokens are real. `encode` gives the vectors of
    all tokens (batch, n, e), and `embed` what goes to the head.
    """

    generates = False  # its tokens see what comes after them

    def __init__(
        self,
        tokenizer: int | Module | None,
        embed_dim: int = 256,
        num_heads: int = 8,
        depth: int = 6,
        head: int | Module | None = None,
        *,
        positions: str | AbsolutePositions | None = "learned",
        max_length: int = 512,
        pooling: str | None = "mean",
        registers: int = 0,
        prepend: bool = True,
        stack: TransformerStack | None = None,
        hidden: int | None = None,
        activation: ActivationLike = "gelu",
        norm_first: bool = True,
        dropout: float = 0.0,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "TransformerEncoder"
        e, layers = as_int(name, "embed_dim", embed_dim, 1), as_int(name, "depth", depth, 0)
        heads, length = as_int(name, "num_heads", num_heads, 1), as_int(name, "max_length", max_length, 1)
        if pooling not in (*KINDS, "cls", None):
            raise InputError(f"{name}: pooling={shown(pooling)}.", f"one of {', '.join(KINDS)}, cls, or None")
        self.embed_dim, self.pooling = e, pooling
        keys = split(take_key(name, key), layers + 4)
        self.tokenizer = Embedding(tokenizer, e, dtype=dtype, key=keys[0]) if isinstance(tokenizer, int) else tokenizer
        self.positions: AbsolutePositions | None
        kind = None if isinstance(positions, AbsolutePositions) else positions
        check_positions(name, kind)
        if isinstance(positions, AbsolutePositions):
            self.positions = positions
        else:
            self.positions = positions_before(kind, length, e, dtype, keys[1])
        if stack is not None and kind in WITHIN:
            raise InputError(f"{name}: positions={kind!r} are in the blocks, which are given.", "a stack with them")
        count = as_int(name, "registers", registers, 0) + (pooling == "cls")
        self.extra = AppendTokens(count, e, prepend, dtype=dtype, key=keys[2]) if count else None
        self.dropout = Dropout(dropout) if dropout else None
        if stack is None:
            within = positions_within(kind, length + count, heads, e // heads, dtype)
            blocks = [
                TransformerBlock(
                    e, heads, hidden=hidden, activation=activation, positions=within(), norm_first=norm_first,
                    dropout=dropout, dtype=dtype, key=k,
                )
                for k in keys[4:]
            ]  # fmt: skip
            stack = TransformerStack(blocks, LayerNorm(e, dtype=dtype) if norm_first else None)
        self.stack = stack
        self.pool = TokenPool(pooling, e, dtype=dtype) if pooling in KINDS else None
        self.head = Linear(e, head, dtype=dtype, key=keys[3]) if isinstance(head, int) else head

    def forward(self, x: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None) -> Tensor:
        h = self.embed(x, token_mask, lengths)
        return h if self.head is None else self.head(h)

    def encode(self, x: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None) -> Tensor:
        """The last vectors of the tokens: (b, n, e)."""
        h, _ = self._run(x, token_mask, lengths)
        return h if self.extra is None else self.extra.strip(h)

    def embed(self, x: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None) -> Tensor:
        """What goes to the head: (b, e), or (b, n, e) without a pooling."""
        h, real = self._run(x, token_mask, lengths)
        if self.pooling == "cls":
            assert self.extra is not None
            return self.extra.own(h)[..., 0, :]
        h = h if self.extra is None else self.extra.strip(h)
        return h if self.pool is None else self.pool(h, token_mask=real)

    def _run(
        self, x: ArrayLike, token_mask: ArrayLike | None, lengths: ArrayLike | None
    ) -> tuple[Tensor, Tensor | None]:
        """The vectors of all tokens (b, n + extra, e), and which of the n are real."""
        data = as_tensor(self._describe(), x)
        if isinstance(self.tokenizer, Embedding) and not (data.ndim == 2 and dtypes.is_integer(data.dtype)):
            raise ShapeError(
                f"{self._describe()}: an input {data.dtype}{list(data.shape)}.", "integers (batch, n), one each token"
            )
        elements = self.tokenizer is None or isinstance(self.tokenizer, (Embedding, Linear))  # a token for each
        real = None
        if elements:
            real = as_token_mask(self._describe(), data.shape[:2], token_mask, lengths)
            data = silenced(data, real)  # before the tokenizer: its weights must not see what is padded, either
        tokens = data if self.tokenizer is None else self.tokenizer(data)  # (b, n, e)
        if tokens.ndim != 3 or tokens.shape[-1] != self.embed_dim:
            raise ShapeError(
                f"{self._describe()}: the tokenizer makes {tokens.shape} of data {data.shape}.",
                f"tokens (batch, n, {self.embed_dim})",
            )
        if not elements:
            real = as_token_mask(self._describe(), tokens.shape[:2], token_mask, lengths)
            tokens = silenced(tokens, real)
        if self.positions is not None:
            tokens = self.positions(tokens, places_of(real, tokens.shape[-2]))
        seen = real
        if self.extra is not None:
            tokens, seen = self.extra(tokens), self.extra.mask(real)  # (b, n + extra, e)
        tokens = tokens if self.dropout is None else self.dropout(tokens)
        return self.stack(tokens, token_mask=seen), real

    def extra_repr(self) -> str:
        return ", ".join([str(self.embed_dim), *self._changed(pooling="mean")])
