"""Convolutional classifiers of sequences and of videos or volumes. Book, section 8.1.2.

x (..., time, c) or (..., time, height, width, c)
  -> [conv of 'same' size -> layer norm -> relu -> max of 2 places along every axis] for each number of channels
  -> mean over all places -> linear -> (..., num_classes)
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from ... import arrays
from ...arrays.conversion import as_real
from ...core.arguments import as_int, as_list
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike, ShapeLike
from ...nn import functional as F  # noqa: N812 - as everybody calls it
from ...nn.layers.convolution import Conv1d, Conv3d
from ...nn.layers.dropout import Dropout
from ...nn.layers.linear import Linear
from ...nn.layers.normalization import LayerNorm
from ...nn.module.containers import ModuleList
from ...nn.module.module import Module
from ...nn.sequences.token_masks import as_mask, pooled, silenced
from ...random.keys import split
from ...random.streams import take_key

PLACES = {1: "(..., time, channels)", 3: "(..., time, height, width, channels)"}


class _ConvClassifier(Module):
    axes: int

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        channels: Iterable[int] = (32, 64, 128),
        kernel_size: ShapeLike = 3,
        dropout: float = 0.0,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        widths = [as_int(name, "in_channels", in_channels, 1)]
        widths += [as_int(name, "a number of channels", c, 1) for c in as_list(name, "channels", channels)]
        if len(widths) < 2:
            raise InputError(f"{name}: there are no channels.", "one number for each block, such as (32, 64)")
        keys = split(take_key(name, key), len(widths))
        conv = Conv1d if self.axes == 1 else Conv3d
        pairs = pairwise(widths)
        self.convs = ModuleList(
            [conv(a, b, kernel_size, padding="same", dtype=dtype, key=keys[i]) for i, (a, b) in enumerate(pairs)]
        )
        self.norms = ModuleList([LayerNorm(c) if dtype is None else LayerNorm(c).astype(dtype) for c in widths[1:]])
        self.dropout = Dropout(dropout)
        self.head = Linear(widths[-1], as_int(name, "num_classes", num_classes, 1), dtype=dtype, key=keys[-1])

    @property
    def least(self) -> int:
        """The smallest size of an axis that the poolings leave something of."""
        return int(2 ** len(self.convs))

    def forward(self, x: ArrayLike, mask: ArrayLike | None = None) -> Tensor:
        return self.head(self.encode(x, mask))

    def encode(self, x: ArrayLike, mask: ArrayLike | None = None) -> Tensor:
        """The mean (..., channels) of the last features, from which the head makes logits."""
        name, n = type(self).__name__, self.axes
        x = as_real(name, x)
        if x.ndim <= n or x.shape[-1] != self.convs[0].in_channels or min(x.shape[-n - 1 : -1]) < self.least:
            raise ShapeError(
                f"{name}: an input of shape {x.shape}.",
                f"{PLACES[n]} with {self.convs[0].in_channels} channels and {self.least} or more along every axis",
            )
        kept = as_mask(name, mask, x.shape[:-n], self.least)  # (..., t)
        pool = F.max_pool1d if n == 1 else F.max_pool3d
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x, kept = pool(conv(silenced(x, kept)), 2), pooled(kept, 2)
            x = arrays.relu(norm(x))
        if kept is not None:
            kept = arrays.reshape(kept, (*kept.shape, *[1] * (n - 1)))
            kept = arrays.broadcast_to(kept, x.shape[:-1])  # all pixels of a frame
        return self.dropout(F.global_avg_pool(x, axes=n, mask=kept))


class ConvClassifier1d(_ConvClassifier):
    r"""Sequences (..., time, in_channels) to logits (..., num_classes): sensors, audio, series. Book, section 8.1.2.

    >>> import wonderland as wl
    >>> model = wl.models.ConvClassifier1d(2, 5, channels=(8, 16))
    >>> model(wl.ones((3, 100, 2))).shape, model(wl.ones((3, 57, 2))).shape
    ((3, 5), (3, 5))

    `channels` has one number for each block of the network. `mask` (..., time) is False at padding at the end of
    shorter sequences: a padded sequence gives what it gives alone. Normalization is over the channels of one time, so
    that neither the length nor other sequences matter. From c to d channels a block has (s c + 1) d + 2 d parameters
    with a kernel of s.
    """

    axes = 1


class ConvClassifier3d(_ConvClassifier):
    r"""Videos or volumes (..., time, height, width, in_channels) to logits (..., num_classes). Book, section 8.1.2.

    >>> import wonderland as wl
    >>> model = wl.models.ConvClassifier3d(3, 5, channels=(4, 8))
    >>> model(wl.ones((2, 6, 8, 8, 3))).shape, model.num_parameters()
    ((2, 5), 1269)

    The arguments are those of `ConvClassifier1d`; `mask` (..., time) is False at frames that are padding. From c to d
    channels a block has \((s^3 c + 1) d + 2 d\) parameters.
    """

    axes = 3
