"""Mamba and Mamba-2 as language models: selective state-space blocks, no attention, no positions. Book, section 13.4.3.

tokens --> embedding --> [ x + mamba(norm(x)) ] x depth --> norm --> head
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...core.arguments import as_int
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ...nn.layers.embedding import Embedding
from ...nn.layers.fully_connected import ActivationLike
from ...nn.layers.linear import Linear
from ...nn.layers.normalization import RMSNorm
from ...nn.module.lazy import at_once
from ...nn.sequences.stack import SequenceStack
from ...nn.state_space.mamba import MambaBlock
from ...nn.state_space.mamba2 import Mamba2Block
from ...nn.state_space.ssm_block import SSMBlock
from ...random.continuous import normal
from ...random.keys import split
from ...random.streams import take_key
from ..transformers.language_model import CausalLanguageModel

__all__ = ["Mamba", "Mamba2"]


class SelectiveLanguageModel(CausalLanguageModel):
    """What both share: a table of tokens, blocks with a norm and a residual, a head."""

    context = None

    def _build(
        self,
        vocabulary: int,
        e: int,
        mixers: Sequence[MambaBlock | Mamba2Block],
        tied: bool,
        eps: float,
        dtype: DTypeLike | None,
        key: Tensor,
    ) -> None:
        keys, small = split(key, 3), 1 / math.sqrt(max(1, len(mixers)))
        self.vocabulary = vocabulary
        self.tokens = Embedding(vocabulary, e, dtype=dtype, key=keys[0])

        def norm(e: int) -> RMSNorm:
            return RMSNorm(e, eps, dtype=dtype)

        self.stack = SequenceStack([SSMBlock(mixer, e, None, norm) for mixer in mixers], norm(e))
        self.head = None if tied else Linear(e, vocabulary, bias=False, dtype=dtype, key=keys[1])
        with at_once(key):  # the first loss is close to ln V, and what is added L times is the smaller
            table = self.tokens.weight
            table.assign(0.02 * normal(table.shape, key=keys[2], dtype=table.dtype))
            for mixer in mixers:
                mixer.output.weight = mixer.output.weight * small

    def embed(self, tokens: Tensor, places: Tensor) -> Tensor:
        return self.tokens(tokens)  # (b, t, e)

    def logits(self, h: Tensor) -> Tensor:
        return self.tokens.attend(h) if self.head is None else self.head(h)  # (b, t, V)

    def extra_repr(self) -> str:
        return f"vocabulary={self.vocabulary}"


class Mamba(SelectiveLanguageModel):
    r"""Tokens (batch, time) to logits (batch, time, vocabulary), with a state of one size for any length. Book, 13.4.3.

    >>> import wonderland as wl
    >>> model = wl.models.Mamba(vocabulary=65, embed_dim=32, depth=2)
    >>> logits, cache = model.extend(wl.zeros((1, 100), dtype=wl.int64))
    >>> logits.shape, cache.nbytes  # L b d (k - 1 + n) numbers, after any number of tokens
    ((1, 100, 65), 9728)

    With V tokens, e features, d = `expand` e, a convolution of k tokens, n numbers of `state` per channel, steps of
    rank r (e/16) and L blocks there are V e + L (3 e d + d (k + 3 n + 2 r + 3) + e) + e parameters, V e more if not
    `tied`. `activation` is the \(\sigma\) of the book's figure. The settings of a block are those of `MambaBlock`. It
    needs no positions, and its time and memory are linear in the length.
    """

    def __init__(
        self,
        vocabulary: int,
        embed_dim: int = 768,
        depth: int = 24,
        *,
        state: int = 16,
        expand: float = 2,
        conv: int = 4,
        rank: int | None = None,
        activation: ActivationLike = "silu",
        bias: bool = False,
        conv_bias: bool = True,
        tied: bool = True,
        eps: float = 1e-5,
        mode: str = "loop",
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        e, layers = as_int("Mamba", "embed_dim", embed_dim, 1), as_int("Mamba", "depth", depth, 0)
        keys = split(take_key("Mamba", key), layers + 1)
        mixers = [
            MambaBlock(
                e, expand, conv, state, rank=rank, activation=activation, bias=bias, conv_bias=conv_bias, mode=mode,
                dtype=dtype, key=k,
            )
            for k in keys[1:]
        ]  # fmt: skip
        self._build(as_int("Mamba", "vocabulary", vocabulary, 1), e, mixers, tied, eps, dtype, keys[0])


class Mamba2(SelectiveLanguageModel):
    r"""The same with `Mamba2Block`: one decay for each head, larger states, chunks of tokens as products of matrices.

    >>> import wonderland as wl
    >>> model = wl.models.Mamba2(vocabulary=65, embed_dim=32, depth=2, num_heads=4, state=16)
    >>> model(wl.zeros((1, 100), dtype=wl.int64)).shape
    (1, 100, 65)

    With h heads, g `groups` and n numbers of `state` there are V e + L (3 e d + 2 e g n + e h + (k + 1)(d + 2 g n) + 3
    h + d + e) + e parameters, V e more if not `tied`. `head_size`, d/h, is only compared, if it is given. Book, section
    13.4.3.
    """

    def __init__(
        self,
        vocabulary: int,
        embed_dim: int = 768,
        depth: int = 24,
        num_heads: int = 24,
        *,
        head_size: int | None = None,
        state: int = 128,
        groups: int = 1,
        expand: float = 2,
        conv: int = 4,
        activation: ActivationLike = "silu",
        bias: bool = False,
        conv_bias: bool = True,
        tied: bool = False,
        eps: float = 1e-5,
        chunk: int = 64,
        mode: str = "chunked",
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        e, layers = as_int("Mamba2", "embed_dim", embed_dim, 1), as_int("Mamba2", "depth", depth, 0)
        heads, d = as_int("Mamba2", "num_heads", num_heads, 1), int(expand * e)
        if head_size is not None and heads * head_size != d:
            raise InputError(
                f"Mamba2: {heads} heads of {head_size} for expand * embed_dim = {d}.",
                "sizes whose product it is, or None",
            )
        keys = split(take_key("Mamba2", key), layers + 1)
        mixers = [
            Mamba2Block(
                e, heads, state, expand=expand, groups=groups, conv=conv, activation=activation, bias=bias,
                conv_bias=conv_bias, eps=eps, chunk=chunk, mode=mode, dtype=dtype, key=k,
            )
            for k in keys[1:]
        ]  # fmt: skip
        self._build(as_int("Mamba2", "vocabulary", vocabulary, 1), e, mixers, tied, eps, dtype, keys[0])
