"""How the weights of transformers start. Book, section 10.3; the smaller start of what is added L times is GPT-2's."""

from __future__ import annotations

import math

from ... import arrays
from ...core.tensor import Tensor
from ...nn.attention.multi_head import MultiHeadAttention
from ...nn.layers.embedding import Embedding
from ...nn.layers.linear import Linear
from ...nn.mixing.feed_forward import FeedForward, GatedFeedForward
from ...nn.module.lazy import at_once
from ...nn.module.module import Module
from ...random.continuous import normal
from ...random.keys import split


def small_normal(model: Module, std: float, key: Tensor, residual_layers: int = 0) -> None:
    r"""Matrices of linear layers and tables start from \(N(0, \sigma^2)\), biases from 0.

    The last matrix of each attention and MLP has a \(\sigma\) smaller by \(1/\sqrt{n}\) for n `residual_layers`: n such
    terms are added to the residual stream, whose variance then does not depend on the depth.
    """
    small = 1 / math.sqrt(max(1, residual_layers))
    last = {
        id(part.output if isinstance(part, MultiHeadAttention) else part.down)
        for part in model.modules()
        if isinstance(part, (MultiHeadAttention, FeedForward, GatedFeedForward))
    }
    layers = [part for part in model.modules() if isinstance(part, (Linear, Embedding))]
    with at_once(key):
        for layer, k in zip(layers, split(key, max(1, len(layers))), strict=False):
            factor = std * (small if id(layer) in last else 1.0)
            layer.weight = normal(layer.weight.shape, key=k, dtype=layer.weight.dtype) * factor
            if isinstance(layer, Linear) and layer.bias is not None:
                layer.bias = arrays.zeros_like(layer.bias)
