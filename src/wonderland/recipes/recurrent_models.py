"""How layers that carry a state become models for the catalogue: of a text, of series with classes, of forecasts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .. import nn
from ..core.errors import ShapeError
from ..models import (
    RWKV,
    Mamba,
    RNNLanguageModel,
    SequenceLabeller,
    SequenceLanguageModel,
    SeriesClassifier,
    recurrent_stack,
)


def lstm(
    shape: tuple[int, ...],
    outputs: int,
    embed_dim: int = 128,
    depth: int = 2,
    dropout: float = 0.0,
    *,
    task: str,
) -> nn.Module:
    """Layers of long short-term memory, each added to its input. Book, section 13.2.3."""
    return _recurrent("lstm", shape, outputs, embed_dim, depth, dropout, task)


def gru(
    shape: tuple[int, ...],
    outputs: int,
    embed_dim: int = 128,
    depth: int = 2,
    dropout: float = 0.0,
    *,
    task: str,
) -> nn.Module:
    """Layers of gated recurrent units, each added to its input. Book, section 13.2.3."""
    return _recurrent("gru", shape, outputs, embed_dim, depth, dropout, task)


def _recurrent(
    cell: str, shape: tuple[int, ...], outputs: int, embed_dim: int, depth: int, dropout: float, task: str
) -> nn.Module:
    if task == "language":
        return RNNLanguageModel(outputs, embed_dim, depth=depth, cell=cell, residual=True, tied=True, dropout=dropout)
    stack = recurrent_stack(cell, cell, (embed_dim,) * (depth + 1), dropout, residual=True)
    return _over_series(cell, stack, shape, outputs, embed_dim, task)


def rwkv(shape: tuple[int, ...], outputs: int, embed_dim: int = 128, depth: int = 4, *, task: str) -> nn.Module:
    """Blocks that mix times by a decaying mean, and channels by an MLP. Book, section 13.4.2."""
    if task == "language":
        return RWKV(outputs, embed_dim, depth, tied=True)
    blocks = [nn.RWKVBlock(embed_dim, layer=i, layers=depth) for i in range(depth)]
    return _over_series("rwkv", nn.SequenceStack(blocks, nn.LayerNorm(embed_dim)), shape, outputs, embed_dim, task)


def lru(
    shape: tuple[int, ...],
    outputs: int,
    embed_dim: int = 128,
    depth: int = 4,
    state: int = 128,
    dropout: float = 0.0,
    *,
    task: str,
) -> nn.Module:
    """Linear recurrent units of `state` complex numbers, each with a gated layer after it. Book, section 13.3.3."""
    blocks = [nn.SSMBlock(_slow(embed_dim, state), embed_dim, norm="rms", dropout=dropout) for _ in range(depth)]
    return _of_blocks("lru", blocks, shape, outputs, embed_dim, task)


def _slow(e: int, state: int) -> nn.Module:
    """A unit that starts with slow modes alone, which remember some hundred steps."""
    return nn.LRU(e, state, e, r_min=0.9, r_max=0.999, max_phase=math.pi / 10)


def mamba(
    shape: tuple[int, ...], outputs: int, embed_dim: int = 128, depth: int = 4, state: int = 16, *, task: str
) -> nn.Module:
    """Blocks whose state-space model chooses what to keep, by the input. Book, section 13.4.3."""
    if task == "language":
        return Mamba(outputs, embed_dim, depth, state=state)
    blocks = [nn.SSMBlock(nn.MambaBlock(embed_dim, state=state), embed_dim, None, "rms") for _ in range(depth)]
    return _of_blocks("mamba", blocks, shape, outputs, embed_dim, task)


def _of_blocks(
    name: str, blocks: Sequence[nn.Module], shape: tuple[int, ...], outputs: int, embed_dim: int, task: str
) -> nn.Module:
    if task == "language":
        return SequenceLanguageModel(outputs, embed_dim, blocks)
    return _over_series(name, nn.SequenceStack(blocks, nn.RMSNorm(embed_dim)), shape, outputs, embed_dim, task)


def _over_series(
    name: str, stack: nn.Module, shape: tuple[int, ...], outputs: int, embed_dim: int, task: str
) -> nn.Module:
    """A class of each series (time, channels) from the mean over time, or the next values at each time.

    Of an image (height, width, channels) each row of pixels is a time.
    """
    if len(shape) == 3 and task != "forecasting":
        rows = (shape[0], shape[1] * shape[2])
        return nn.Sequential(nn.Flatten(2), _over_series(name, stack, rows, outputs, embed_dim, task))
    if len(shape) != 2:
        raise ShapeError(f"{name}: an input of shape {shape} is no sequence.", "sequences (time, channels), or images")
    embed = nn.Linear(shape[1], embed_dim)
    if task == "forecasting":
        return SequenceLabeller(stack, embed_dim, outputs, embed=embed)
    return SeriesClassifier(stack, embed_dim, outputs, embed=embed, pooling="mean")
