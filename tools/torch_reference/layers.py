"""Layers with weights, pooling, and layers that only move or pass numbers; attention.

Left out: bags of an EmbeddingBag given by offsets (ours are the rows of a matrix), and `max_norm`, for which PyTorch
changes the table when rows are read; Fold and Unfold, whose patches are laid out otherwise; LPPool with negative sums
of odd powers, which are NaN in PyTorch, and with windows that `ceil_mode` cuts, whose sums PyTorch scales up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .cases import Case

ROWS = np.array([[0, 2, 2, 4], [1, 1, 3, 0]])


def images(name: str, shape: tuple[int, ...], *args: Any, **settings: Any) -> Case:
    """A layer over images, sequences or volumes, whose channels are last here and first there."""
    return Case(name, (shape,), args, settings, channels_first=True)


DENSE = [
    Case("Linear", ((5, 4),), (4, 3)),
    Case("Linear", ((2, 3, 4),), (4, 2), {"bias": False}),
    Case("Bilinear", ((5, 2), (5, 3)), (2, 3, 4)),
    Case("Bilinear", ((2, 2, 3), (2, 2, 2)), (3, 2, 2), {"bias": False}),
    Case("Embedding", (ROWS,), (5, 3)),
    Case("Embedding", (ROWS,), (5, 3), {"padding_idx": 2}),
    Case("EmbeddingBag", (ROWS,), (5, 3)),
    Case("EmbeddingBag", (ROWS,), (5, 3), {"mode": "sum", "padding_idx": 2}),
    Case("EmbeddingBag", (ROWS,), (5, 3), {"mode": "mean", "padding_idx": 1}),
    Case("EmbeddingBag", (ROWS,), (5, 3), {"mode": "max"}),
    Case("EmbeddingBag", (ROWS, (2, 4)), (5, 3), {"mode": "sum"}, names=("per_sample_weights",)),
]

CONVOLUTIONS = [
    images("Conv1d", (2, 6, 3), 3, 2, 3),
    images("Conv1d", (2, 7, 4), 4, 6, 2, stride=2, padding=1, dilation=2, groups=2, bias=False),
    images("Conv1d", (1, 5, 2), 2, 2, 4, padding="same"),
    images("Conv2d", (2, 4, 5, 2), 2, 3, 3),
    images("Conv2d", (1, 5, 4, 2), 2, 2, [3, 2], stride=[2, 1], padding=[1, 0], dilation=[1, 2]),
    images("Conv2d", (1, 4, 4, 4), 4, 4, 3, padding=1, groups=4, stride=2),
    images("Conv2d", (1, 4, 3, 2), 2, 2, 3, padding="same", padding_mode="reflect"),
    images("Conv2d", (1, 4, 3, 2), 2, 2, 3, padding=[2, 1], padding_mode="circular", stride=2),
    images("Conv2d", (1, 3, 3, 2), 2, 2, 2, padding=1, padding_mode="replicate", bias=False),
    images("Conv2d", (1, 4, 4, 1), 1, 2, 2, padding="valid"),
    images("Conv3d", (1, 3, 3, 4, 2), 2, 2, 2),
    images("Conv3d", (1, 2, 4, 3, 2), 2, 4, [1, 2, 3], stride=[1, 2, 1], padding=[0, 1, 1], groups=2),
    images("ConvTranspose1d", (2, 4, 3), 3, 2, 3),
    images("ConvTranspose1d", (1, 4, 4), 4, 6, 3, stride=3, padding=1, output_padding=2, groups=2, dilation=2),
    images("ConvTranspose2d", (1, 3, 3, 2), 2, 3, 2, stride=2, bias=False),
    images(
        "ConvTranspose2d", (1, 3, 2, 4), 4, 2, [2, 3], stride=[2, 1], padding=[0, 1], output_padding=[1, 0], groups=2
    ),
    images("ConvTranspose3d", (1, 2, 2, 3, 2), 2, 1, 2),
    images("ConvTranspose3d", (1, 2, 1, 2, 2), 2, 2, [2, 1, 2], stride=2, padding=[1, 0, 0], groups=2),
]

TIES = np.round(np.random.default_rng(0).normal(size=(1, 4, 6, 2)).clip(0.0), 3)  # as a ReLU leaves them

POOLING = [
    Case("MaxPool2d", (TIES,), (2,), channels_first=True),
    Case("AdaptiveMaxPool2d", (TIES,), (2,), channels_first=True),
    images("MaxPool1d", (2, 7, 3), 3),
    images("MaxPool1d", (1, 8, 2), 3, stride=2, padding=1, dilation=2, ceil_mode=True),
    images("MaxPool2d", (1, 4, 6, 2), 2),
    images("MaxPool2d", (1, 5, 4, 2), [3, 2], stride=[2, 1], padding=1, ceil_mode=True),
    images("MaxPool3d", (1, 2, 4, 3, 2), 2, stride=1),
    images("AvgPool1d", (2, 7, 2), 3, stride=2),
    images("AvgPool1d", (1, 6, 2), 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False),
    images("AvgPool2d", (1, 4, 6, 2), 2),
    images("AvgPool2d", (1, 5, 4, 2), [3, 2], stride=[2, 1], padding=1, ceil_mode=True),
    images("AvgPool2d", (1, 5, 4, 2), 3, stride=2, padding=1, count_include_pad=False),
    images("AvgPool2d", (1, 5, 4, 2), 3, divisor_override=5),
    images("AvgPool3d", (1, 2, 4, 3, 2), 2, stride=1),
    *[images(f"Adaptive{kind}Pool1d", (2, 7, 2), 3) for kind in ("Avg", "Max")],
    *[images(f"Adaptive{kind}Pool2d", (1, 5, 4, 2), [3, 2]) for kind in ("Avg", "Max")],
    *[images(f"Adaptive{kind}Pool2d", (1, 4, 3, 2), [None, 1]) for kind in ("Avg", "Max")],
    *[images(f"Adaptive{kind}Pool3d", (1, 3, 2, 2, 1), [2, 1, None]) for kind in ("Avg", "Max")],
    images("LPPool1d", (2, 7, 2), 2.0, 3, stride=2),
    images("LPPool2d", (1, 5, 4, 2), 4.0, [3, 2]),
    images("LPPool3d", (1, 2, 4, 3, 1), 1.0, 2),
]

RESIZING = [
    images("PixelShuffle", (1, 2, 3, 8), 2),
    images("PixelUnshuffle", (1, 2, 6, 2), 2),
    images("Upsample", (1, 2, 3, 2), scale_factor=2),
    images("Upsample", (1, 4, 2), size=7, mode="linear"),
    images("Upsample", (1, 3, 2, 2), size=[4, 5], mode="bilinear"),
    images("Upsample", (1, 3, 2, 1), scale_factor=[2.0, 1.5], mode="bilinear", align_corners=True),
    images("Upsample", (1, 3, 4, 1), size=[5, 3], mode="bicubic"),
    images("Upsample", (1, 2, 2, 1, 1), size=[3, 2, 2], mode="trilinear"),
    images("Upsample", (1, 5, 3, 1), size=[3, 5], mode="nearest-exact"),
]

PADDING = [
    *[images(f"{kind}Pad1d", (2, 4, 2), [2, 1]) for kind in ("Zero", "Reflection", "Replication", "Circular")],
    *[images(f"{kind}Pad2d", (1, 3, 4, 2), [2, 1, 0, 2]) for kind in ("Zero", "Reflection", "Replication", "Circular")],
    *[images(f"{kind}Pad3d", (1, 2, 3, 3, 1), 1) for kind in ("Zero", "Reflection", "Replication", "Circular")],
    images("ZeroPad2d", (1, 4, 4, 2), [-1, 2, 1, -2]),
    images("ConstantPad1d", (2, 4, 2), 2, 3.5),
    images("ConstantPad2d", (1, 3, 4, 2), [2, -1, 0, 1], -0.5),
    images("ConstantPad3d", (1, 2, 2, 2, 1), [1, 0, 2, 0, 0, 1], 2.0),
]

PLACES = np.round(np.random.default_rng(0).uniform(-1.6, 1.6, (2, 3, 4, 2)), 3)  # in and around the image
SAMPLING = [
    Case("grid_sample", ((2, 4, 5, 3), PLACES), settings=settings, channels_first=True, kept=(1,), wrt=wrt)
    for mode, wrt in (("bilinear", None), ("bicubic", None), ("nearest", (0,)))
    for padding_mode in ("zeros", "border", "reflection")
    for align_corners in (False, True)
    for settings in [{"mode": mode, "padding_mode": padding_mode, "align_corners": align_corners}]
]

RECURRENT = [
    *[Case(name, ((4, 2, 3),), (3, 2)) for name in ("RNN", "GRU", "LSTM")],
    *[
        Case(name, ((2, 3, 3),), (3, 2), {"num_layers": 2, "bidirectional": True, "batch_first": True})
        for name in ("RNN", "GRU", "LSTM")
    ],
    *[Case(name, ((3, 3),), (3, 2), {"bias": False}) for name in ("RNN", "GRU", "LSTM")],
    Case("RNN", ((4, 2, 3), (1, 2, 2)), (3, 2), {"nonlinearity": "relu"}),
    Case("GRU", ((4, 2, 3), (2, 2, 2)), (3, 2), {"num_layers": 2, "dropout": 0.5}),
    Case("LSTM", ((4, 2, 3), (2, 2, 2), (2, 2, 2)), (3, 2), {"bidirectional": True}),
]

PASSING = [
    *[Case(name, ((2, 3),), (0.4,)) for name in ("Dropout", "AlphaDropout", "FeatureAlphaDropout")],
    Case("Dropout1d", ((2, 3, 2),), (0.4,)),
    Case("Dropout2d", ((1, 2, 3, 2),), (0.4,)),
    Case("Dropout3d", ((1, 2, 1, 3, 2),), (0.4,)),
    Case("Dropout", ((2, 3),), (0.0,), modes="t"),
    Case("Flatten", ((2, 3, 2, 2),)),
    Case("Flatten", ((2, 3, 2, 2),), (1, 2)),
    Case("Unflatten", ((2, 6),), (1, [3, 2])),
]

MASK = np.array([[True, False, True, True], [False, True, True, False], [True, True, True, True]])
QUERY, KEY, VALUE = (2, 2, 3, 4), (2, 2, 4, 4), (2, 2, 4, 2)
ATTENTION = [
    Case("scaled_dot_product_attention", (QUERY, KEY, VALUE)),
    Case("scaled_dot_product_attention", (QUERY, KEY, VALUE), settings={"is_causal": True, "scale": 0.3}),
    Case("scaled_dot_product_attention", (QUERY, KEY, VALUE, MASK), names=("attn_mask",)),
    Case("scaled_dot_product_attention", (QUERY, KEY, VALUE, (3, 4)), names=("attn_mask",)),
    Case("scaled_dot_product_attention", ((1, 4, 3, 2), (1, 2, 3, 2), (1, 2, 3, 2)), settings={"enable_gqa": True}),
]

CASES = DENSE + CONVOLUTIONS + POOLING + RESIZING + PADDING + SAMPLING + RECURRENT + PASSING + ATTENTION
