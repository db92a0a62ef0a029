r"""The residual stream of a transformer taken apart, its attention maps, and heads left out. Book, section 10.1.3.

A pre-norm transformer adds to a stream: \(x \leftarrow x + \sum_h \mathrm{head}_h(x)\), \(x \leftarrow x +
\mathrm{MLP}(x)\). So what comes out is a sum with one term for the embedding, each head and each MLP, and a head may
be left out by leaving out its term.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ... import arrays
from ...arrays.conversion import as_real
from ...core.arguments import as_int
from ...core.errors import InputError, ModuleError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import Array, ArrayLike
from ...viz.heatmap import heatmap
from ...viz.images import image_grid
from ..attention.blocks import TransformerBlock, TransformerStack
from ..attention.multi_head import MultiHeadAttention
from ..module.module import Module
from ..sequences.token_masks import as_token_mask, places_of, silenced

__all__ = ["ResidualStream", "attention_maps", "attention_picture", "head_ablation", "residual_stream", "without_heads"]


@dataclass(frozen=True)
class ResidualStream:
    """The terms of a stream, (parts, batch, time, e), and what each of them is called, as "2.head.5" or "2.mlp"."""

    names: list[str]
    parts: Tensor

    @property
    def final(self) -> Tensor:
        """Their sum, (batch, time, e): what the last block gives, before the last normalization."""
        return arrays.sum(self.parts, axis=0)

    def __getitem__(self, name: str) -> Tensor:
        """The term of a name."""
        if name not in self.names:
            raise InputError(f"ResidualStream: no part {name!r}.", f"one of {', '.join(self.names)}")
        return self.parts[self.names.index(name)]


def residual_stream(
    model: Module, x: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None
) -> ResidualStream:
    """What the embedding, every head and every MLP add to the stream. Book, E.10.16.

    >>> import wonderland as wl
    >>> model = wl.models.GPT(vocabulary=65, context=16, embed_dim=32, num_heads=2, depth=2)
    >>> stream = wl.nn.residual_stream(model, wl.zeros((1, 10), dtype=wl.int64))
    >>> stream.names
    ['embedding', '0.head.0', '0.head.1', '0.bias', '0.mlp', '1.head.0', '1.head.1', '1.bias', '1.mlp']
    >>> stream["1.head.0"].shape
    (1, 10, 32)

    The model is a language model, a `TransformerStack` or a `TransformerBlock` with pre-norm blocks, parallel ones
    among them; x are its tokens, or vectors (batch, time, e). "bias" is that of the heads' last product. The model is
    taken as it is in evaluation, without dropout.
    """
    names = ["embedding"]
    parts: list[Tensor] = []
    for i, block, attention, h, masks in _blocks(model, x, token_mask, lengths):
        if not parts:
            parts.append(h)
        normed = block.norm1(h)
        heads = attention.contributions(normed, **masks)  # (b, heads, t, e)
        names += [f"{i}.head.{j}" for j in range(attention.num_heads)]
        parts += [heads[..., j, :, :] for j in range(attention.num_heads)]
        written = arrays.sum(heads, axis=-3)
        if attention.output.bias is not None:
            names.append(f"{i}.bias")
            parts.append(arrays.broadcast_to(attention.output.bias, h.shape))
            written = written + attention.output.bias
        mlp = block.feed_forward(normed if block.parallel else block.norm2(h + written))
        names.append(f"{i}.mlp")
        parts.append(mlp)
    return ResidualStream(names, arrays.stack(parts))


def attention_maps(
    model: Module, x: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None
) -> list[Tensor]:
    """The weights of every block's heads, (batch, heads, t, t) each. Book, sections 10.1.2 and 11.1.1.

    >>> import wonderland as wl
    >>> model = wl.models.GPT(vocabulary=65, context=16, embed_dim=32, num_heads=2, depth=3)
    >>> [m.shape for m in wl.nn.attention_maps(model, wl.zeros((1, 10), dtype=wl.int64))]
    [(1, 2, 10, 10), (1, 2, 10, 10), (1, 2, 10, 10)]

    The model and x are those of `residual_stream`, but blocks may be post-norm, too.
    """
    maps = []
    for _, block, attention, h, masks in _blocks(model, x, token_mask, lengths, any_norm=True):
        _, weights = attention(block.norm1(h) if block.norm_first else h, **masks, return_weights=True)
        maps.append(weights)
    return maps


def attention_picture(
    weights: ArrayLike, queries: Sequence[str] = (), keys: Sequence[str] | None = None, title: str = ""
) -> str:
    """Weights (t, s) as a table of shades, or those of heads (heads, t, s) side by side, as the text of an SVG picture.

    >>> import wonderland as wl
    >>> weights = [[1.0, 0.0], [0.25, 0.75]]
    >>> wl.nn.attention_picture(weights, ["the", "cat"]).count('class="cell"')
    4

    A row is a query, a column a key; `queries` and `keys` are their names, the same ones if only the first are given.
    """
    table = np.asarray(arrays.asarray(weights), np.float64)
    if table.ndim == 3:
        shades = 1.0 - table / max(float(table.max(initial=0.0)), 1e-30)
        return image_grid(shades[..., None])
    if table.ndim != 2:
        raise ShapeError(f"attention_picture: weights of shape {table.shape}.", "(t, s) or (heads, t, s)")
    columns = (queries if len(queries) == table.shape[1] else ()) if keys is None else keys
    return heatmap(
        np.round(table, 2), shares=table, rows=queries, columns=columns, title=title, x_label="key", y_label="query"
    )


@contextlib.contextmanager
def without_heads(attention: MultiHeadAttention, heads: Sequence[int]) -> Iterator[MultiHeadAttention]:
    """The layer without some of its heads, while the `with` lasts: their terms are left out. Book, section 10.1.3.

    >>> import wonderland as wl
    >>> layer, x = wl.nn.MultiHeadAttention(8, 2), wl.random.normal((1, 5, 8))
    >>> whole, terms = layer(x), layer.contributions(x)
    >>> with wl.nn.without_heads(layer, [1]):
    ...     without = layer(x)
    >>> bool(wl.allclose(whole - without, terms[:, 1], atol=1e-6))
    True
    """
    chosen = [as_int("without_heads", "heads", head, 0) for head in heads]
    if not all(head < attention.num_heads for head in chosen):
        raise InputError(f"without_heads: heads {chosen} of {attention.num_heads}.", f"below {attention.num_heads}")
    cell = attention.output.weight
    before = np.asarray(cell).copy()
    kept = before.reshape(attention.num_heads, attention.value_size, -1).copy()
    kept[chosen] = 0.0
    try:
        cell.assign(arrays.asarray(kept.reshape(before.shape)))
        yield attention
    finally:
        cell.assign(arrays.asarray(before))


def head_ablation(model: Module, score: Callable[[], ArrayLike]) -> Array:
    """How much a score grows without each head: (blocks, heads), by leaving out one after another.

    >>> import wonderland as wl
    >>> model = wl.models.GPT(vocabulary=11, context=16, embed_dim=8, num_heads=2, depth=3)
    >>> tokens = wl.zeros((1, 9), dtype=wl.int64)
    >>> wl.nn.head_ablation(model, lambda: wl.nn.functional.cross_entropy(model(tokens), tokens)).shape
    (3, 2)

    `score()` gives a number for the model as it is then, for example its loss.
    """
    whole = float(np.asarray(score()))
    rows = []
    for _, attention in _attentions(model):
        row = []
        for head in range(attention.num_heads):
            with without_heads(attention, [head]):
                row.append(float(np.asarray(score())) - whole)
        rows.append(row)
    return np.array(rows)


# --- the way through a model

Visit = tuple[int, TransformerBlock, MultiHeadAttention, Tensor, dict[str, Tensor]]


def _blocks(
    model: Module, x: ArrayLike, token_mask: ArrayLike | None, lengths: ArrayLike | None, any_norm: bool = False
) -> Iterator[Visit]:
    """Every block, what goes into it, and the masks of its attention."""
    given = arrays.asarray(x)
    embed = getattr(model, "embed", None)
    if embed is not None:
        real = as_token_mask("residual_stream", given.shape, token_mask, lengths)
        given = given if real is None else arrays.where(real, given, 0)
        h = embed(given, places_of(real, given.shape[-1]))
    else:
        h = as_real("residual_stream", given)
        real = as_token_mask("residual_stream", h.shape[:-1], token_mask, lengths)
    h = silenced(h, real)
    masks = {} if real is None else {"token_mask": real}
    for i, (block, attention) in enumerate(_attentions(model)):
        if block.cross is not None or not (block.norm_first or any_norm):
            raise ModuleError(
                f"residual_stream: block {i} has cross-attention or normalizes after its sums.",
                "a model of pre-norm blocks, whose stream is a sum",
            )
        yield i, block, attention, h, masks
        h = block(h, **masks)


def _attentions(model: Module) -> list[tuple[TransformerBlock, MultiHeadAttention]]:
    stack = getattr(model, "stack", model)
    blocks = [stack] if isinstance(stack, TransformerBlock) else getattr(stack, "blocks", None)
    if blocks is None or not isinstance(stack, (TransformerBlock, TransformerStack)):
        raise ModuleError(
            f"residual_stream: a {type(model).__name__} has no stack of blocks.",
            "a language model, a TransformerStack or a TransformerBlock",
        )
    found = []
    for i, block in enumerate(blocks):
        if not isinstance(block.attention, MultiHeadAttention):
            raise ModuleError(f"residual_stream: block {i} has a {type(block.attention).__name__}.", "attention")
        found.append((block, block.attention))
    return found
