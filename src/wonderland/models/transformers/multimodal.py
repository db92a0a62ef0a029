"""Several modalities in one sequence: the tokens of each, side by side. Book, section 11.2.4, figure 11.6.

image --PatchEmbed--> (b, n1, e) + positions + m1 --+
                                                    +--> (b, n1 + n2, e) --> transformer --> pool, head
text  --Embedding---> (b, n2, e) + positions + m2 --+

Attention makes no difference between tokens of one modality and of two.
"""

from __future__ import annotations

from collections.abc import Mapping

from ... import arrays
from ...arrays.conversion import as_tensor
from ...core.arguments import as_int, shown
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...nn.attention.blocks import TransformerBlock, TransformerStack
from ...nn.layers.embedding import Embedding
from ...nn.layers.extra_tokens import AppendTokens
from ...nn.layers.linear import Linear
from ...nn.layers.normalization import LayerNorm
from ...nn.layers.token_pooling import KINDS, TokenPool
from ...nn.module.containers import ModuleDict
from ...nn.module.module import Module
from ...nn.sequences.token_masks import as_token_mask, places_of, silenced
from ...random.keys import split
from ...random.streams import take_key
from .positions import BEFORE, check_positions, positions_before

__all__ = ["MultimodalTransformer"]


class MultimodalTransformer(Module):
    r"""\(y = \operatorname{head}(\operatorname{pool}(\operatorname{stack}([X^{(1)} + m_1 ; X^{(2)} + m_2 ; \dots])))\).

    >>> import wonderland as wl
    >>> tokenizers = {"image": wl.nn.PatchEmbed(4, 1, 32), "text": wl.nn.Embedding(100, 32)}
    >>> model = wl.models.MultimodalTransformer(tokenizers, 32, num_heads=4, depth=2, head=5)
    >>> image, text = wl.ones((2, 8, 8, 1)), wl.zeros((2, 10), dtype=wl.int64)
    >>> model({"image": image, "text": text}, lengths={"text": [10, 3]}).shape, model({"text": text}).shape
    ((2, 5), (2, 5))
    >>> model.encode({"image": image, "text": text}).shape  # 4 patches and 10 words
    (2, 14, 32)

    `tokenizers` has a module for each modality, which makes vectors (batch, n, embed_dim) of its data. Each token gets
    a trained vector of its modality, and its position within it: `positions` are "learned" (up to `max_length`, a
    number or one for each modality), "sinusoidal" or None. The call takes a dict of data, in any order; a modality may
    be missing. `token_mask` and `lengths` are dicts, too, for those whose data are padded. `pooling` is "mean", "sum",
    "max", "attention", "cls" or None, `head` a number of outputs, a module or None.

    Besides those of the tokenizers there are, with M modalities, M e + M `max_length` e + L (12 e² + 13 e) + 2 e +
    (e + 1) o parameters, by default.
    """

    generates = False

    def __init__(
        self,
        tokenizers: Mapping[str, Module],
        embed_dim: int = 256,
        num_heads: int = 8,
        depth: int = 6,
        head: int | Module | None = None,
        *,
        positions: str | None = "learned",
        max_length: int | Mapping[str, int] = 512,
        pooling: str | None = "mean",
        dropout: float = 0.0,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "MultimodalTransformer"
        if not isinstance(tokenizers, Mapping) or not tokenizers:
            raise InputError(f"{name}: tokenizers={shown(tokenizers)}.", '{"image": PatchEmbed(...), ...}')
        if pooling not in (*KINDS, "cls", None):
            raise InputError(f"{name}: pooling={shown(pooling)}.", f"one of {', '.join(KINDS)}, cls, or None")
        check_positions(name, positions, BEFORE)
        e, layers = as_int(name, "embed_dim", embed_dim, 1), as_int(name, "depth", depth, 0)
        self.embed_dim, self.pooling, self.modalities = e, pooling, tuple(tokenizers)
        keys = split(take_key(name, key), layers + 3 + len(tokenizers))
        self.tokenizers = ModuleDict(dict(tokenizers))
        self.kinds = Embedding(len(tokenizers), e, dtype=dtype, key=keys[0])
        self.positions = ModuleDict()
        for modality, k in zip(self.modalities, keys[3:], strict=False):
            length = max_length[modality] if isinstance(max_length, Mapping) else max_length
            layer = positions_before(positions, as_int(name, "max_length", length, 1), e, dtype, k)
            if layer is not None:
                self.positions[modality] = layer
        self.class_token = AppendTokens(1, e, prepend=True, dtype=dtype, key=keys[1]) if pooling == "cls" else None
        blocks = [
            TransformerBlock(e, num_heads, dropout=dropout, dtype=dtype, key=k) for k in keys[3 + len(tokenizers) :]
        ]
        self.stack = TransformerStack(blocks, LayerNorm(e, dtype=dtype))
        self.pool = TokenPool(pooling, e, dtype=dtype) if pooling in KINDS else None
        self.head = Linear(e, head, dtype=dtype, key=keys[2]) if isinstance(head, int) else head

    def forward(
        self,
        data: Mapping[str, ArrayLike],
        token_mask: Mapping[str, ArrayLike] | None = None,
        lengths: Mapping[str, ArrayLike] | None = None,
    ) -> Tensor:
        h, real = self._run(data, token_mask or {}, lengths or {})
        if self.class_token is not None:
            h = h[:, 0]
        elif self.pool is not None:
            h = self.pool(h, token_mask=real)
        return h if self.head is None else self.head(h)

    def encode(
        self,
        data: Mapping[str, ArrayLike],
        token_mask: Mapping[str, ArrayLike] | None = None,
        lengths: Mapping[str, ArrayLike] | None = None,
    ) -> Tensor:
        """The last vectors of the tokens of all modalities: (b, n1 + n2 + ..., e)."""
        h, _ = self._run(data, token_mask or {}, lengths or {})
        return h if self.class_token is None else self.class_token.strip(h)

    def _run(
        self, data: Mapping[str, ArrayLike], masks: Mapping[str, ArrayLike], lengths: Mapping[str, ArrayLike]
    ) -> tuple[Tensor, Tensor | None]:
        """The vectors of all tokens, and which are real."""
        for given in (data, masks, lengths):
            if not isinstance(given, Mapping) or any(modality not in self.tokenizers for modality in given):
                raise InputError(f"{self._describe()}: received {shown(given)}.", f"a dict of {self.modalities}")
        present = [modality for modality in self.modalities if modality in data]  # always in the same order
        if not present:
            raise InputError(f"{self._describe()}: no data.", f"one or more of {', '.join(self.modalities)}")
        parts, reals = [], []
        for modality in present:
            x, real = self._tokens(modality, data[modality], masks.get(modality), lengths.get(modality))
            parts.append(x)
            reals.append(real)
        rows = sorted({x.shape[0] for x in parts})
        if len(rows) > 1:
            raise ShapeError(f"{self._describe()}: batches of {rows[0]} and {rows[1]} rows.", "the same number of rows")
        whole = [arrays.full(x.shape[:2], True) if r is None else r for x, r in zip(parts, reals, strict=True)]
        real = None if all(r is None for r in reals) else arrays.concat(whole, axis=1)
        tokens = arrays.concat(parts, axis=1)  # (b, n1 + n2 + ..., e)
        if self.class_token is not None:
            tokens, real = self.class_token(tokens), self.class_token.mask(real)
        return self.stack(tokens, token_mask=real), real

    def _tokens(
        self, modality: str, data: ArrayLike, mask: ArrayLike | None, lengths: ArrayLike | None
    ) -> tuple[Tensor, Tensor | None]:
        """The tokens (b, n, e) of one modality, with their positions and its vector."""
        name, layer = f"{self._describe()}, {modality}", self.tokenizers[modality]
        x, real = as_tensor(name, data), None
        elements = isinstance(layer, (Embedding, Linear))  # one token for each: a mask is theirs, too
        if elements:
            real = as_token_mask(name, x.shape[:2], mask, lengths)
            x = silenced(x, real)
        x = layer(x)
        if x.ndim != 3 or x.shape[-1] != self.embed_dim:
            raise ShapeError(f"{name}: the tokenizer makes {x.shape}.", f"tokens (batch, n, {self.embed_dim})")
        if not elements:
            real = as_token_mask(name, x.shape[:2], mask, lengths)
            x = silenced(x, real)
        if modality in self.positions:
            x = self.positions[modality](x, places_of(real, x.shape[1]))
        return x + self.kinds.weight[self.modalities.index(modality)], real

    def extra_repr(self) -> str:
        return ", ".join([", ".join(self.modalities), *self._changed(pooling="mean")])
