"""Causal convolutional networks: forecasters and language models in the manner of WaveNet. Book, section 8.3.

    tokens or values (batch, time)
          |  embedding, or a linear map to `channels`
          v
       +------------------------- block i, dilation d_i --------------------------+
       |            +-> tanh -----+                                               |
    x -+-> conv, d -+             x --> z --+--> linear --> + x  --> next block   |
       |            +-> sigmoid --+         |                                     |
       +------------------------------------|-------------------------------------+
                                            v linear
             the sum of all blocks --> relu --> linear --> relu --> linear --> scores (batch, time, outputs)

The convolution of a block sees x at times t, t - d, ..., t - (k-1) d, and zeros before the beginning. Output t depends
on inputs up to t (definition D.8.1), so one pass over a sequence trains the predictions for all its prefixes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from ... import arrays
from ...arrays.conversion import as_real, as_tensor
from ...core import dtypes
from ...core.arguments import as_int, as_list
from ...core.errors import DTypeError, InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...nn import functional as F  # noqa: N812 - as everybody calls it
from ...nn.layers.convolution import Conv1d
from ...nn.layers.dropout import Dropout
from ...nn.layers.embedding import Embedding
from ...nn.layers.linear import Linear
from ...nn.module.containers import ModuleList
from ...nn.module.module import Module
from ...nn.sequences.cache import StateCache
from ...nn.sequences.token_masks import as_lengths, as_mask, silenced
from ...random.keys import split
from ...random.streams import take_key


class CausalBlock(Module):
    r"""\(z = \tanh(W * x) \odot \sigma(V * x)\): the pair \((x + R z,\ S z)\). Book, section 8.3.2.

    >>> import wonderland as wl
    >>> block = wl.models.CausalBlock(8, 16, kernel_size=2, dilation=4)
    >>> x, skip = block(wl.ones((3, 10, 8)))
    >>> x.shape, skip.shape, block.reach
    ((3, 10, 8), (3, 10, 16), 4)

    \(*\) is a convolution over the past with a kernel of `kernel_size` places, `dilation` apart. `past` holds the
    `reach` = (kernel_size - 1) dilation inputs before x, (..., reach, channels), instead of zeros.
    """

    def __init__(
        self,
        channels: int,
        skip_channels: int,
        kernel_size: int = 2,
        dilation: int = 1,
        dropout: float = 0.0,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        keys = split(take_key("CausalBlock", key), 3)
        kernel_size = as_int("CausalBlock", "kernel_size", kernel_size, 1)
        dilation = as_int("CausalBlock", "dilation", dilation, 1)
        settings: dict[str, Any] = {"padding": "causal", "dilation": dilation, "dtype": dtype}
        self.conv = Conv1d(channels, 2 * channels, kernel_size, key=keys[0], **settings)  # both halves at once
        self.reach = (kernel_size - 1) * dilation
        self.dropout = Dropout(dropout)
        self.residual = Linear(channels, channels, dtype=dtype, key=keys[1])
        self.skip = Linear(channels, skip_channels, dtype=dtype, key=keys[2])

    def forward(self, x: Tensor, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        if past is None:
            both = self.conv(x)  # (..., t, 2 channels)
        else:
            longer = arrays.concat([past, x], axis=-2)  # (..., reach + t, channels)
            both = F.conv1d(longer, self.conv.weight, self.conv.bias, dilation=self.conv.dilation)
        value, gate = arrays.split(both, 2, axis=-1)
        z = self.dropout(arrays.tanh(value) * arrays.sigmoid(gate))  # (..., t, channels)
        return x + self.residual(z), self.skip(z)


class CausalConvNet(Module):
    r"""\(\hat Y = f(X)\) with \(\hat Y_i\) a function of \(X_1, \dots, X_i\): (..., time, in) to (..., time, out).

    >>> import wonderland as wl
    >>> model = wl.models.CausalConvNet(3, 1, channels=8, dilations=(1, 2, 4))
    >>> model(wl.ones((5, 20, 3))).shape, model.receptive_field
    ((5, 20, 1), 8)

    A forecaster: trained with the series one step later as target (`wl.series` has windows, losses and rollouts), its
    output at time i is the prediction for time i + 1. Output i sees `receptive_field` = \(1 + (k-1)\sum_i d_i\) inputs,
    for `dilations` 1, 2, 4, ... a number exponential in the depth. There is no pooling, and the output is as long as
    the input. Book, section 8.3.2.

    `mask` (..., time) is False at padding, on either side: a padded sequence gives what it gives alone. At the end, no
    mask is needed, because the past does not see the padding.

    `extend(x, cache)` goes on where a call before ended, and `step` does so for one time: the `StateCache` holds the
    inputs that blocks still see, however long the sequence was. Both give what the whole sequence at once gives.

    With k the kernel, c channels, s skip channels and L blocks there are
    (in + 1) c + L (2(kc + 1)c + (c + 1)(c + s)) + (s + 1)(s + out) parameters.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        channels: int = 64,
        dilations: Iterable[int] = (1, 2, 4, 8, 16, 32),
        kernel_size: int = 2,
        skip_channels: int | None = None,
        dropout: float = 0.0,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        self.in_channels = as_int(name, "in_channels", in_channels, 1)
        self.dilations = tuple(as_int(name, "a dilation", d, 1) for d in as_list(name, "dilations", dilations))
        if not self.dilations:
            raise InputError(f"{name}: there are no dilations.", "one for each block, such as (1, 2, 4, 8)")
        self.kernel_size = as_int(name, "kernel_size", kernel_size, 1)
        c = as_int(name, "channels", channels, 1)
        s = c if skip_channels is None else as_int(name, "skip_channels", skip_channels, 1)
        keys = split(take_key(name, key), len(self.dilations) + 3)
        self.project = Linear(self.in_channels, c, dtype=dtype, key=keys[0])
        self.blocks = ModuleList(
            [
                CausalBlock(c, s, self.kernel_size, d, dropout, dtype, keys[i])
                for i, d in enumerate(self.dilations, start=3)
            ]
        )
        self.hidden = Linear(s, s, dtype=dtype, key=keys[1])
        self.head = Linear(s, out_channels, dtype=dtype, key=keys[2])

    @property
    def receptive_field(self) -> int:
        """How many inputs an output sees, itself included."""
        return 1 + sum(block.reach for block in self.blocks)

    def forward(self, x: ArrayLike, mask: ArrayLike | None = None) -> Tensor:
        x = self._input(x)
        return self._run(x, as_mask(type(self).__name__, mask, x.shape[:-1]))

    def new_cache(self, rows: int, capacity: int = 0) -> StateCache:
        """The state before sequences begin: for each block its `reach` last inputs, zeros. It holds any capacity."""
        weight = self.project.weight
        shapes = [(rows, block.reach, weight.shape[1]) for block in self.blocks]
        return StateCache(
            rows, **{f"past_{i}": arrays.zeros(shape, dtype=weight.dtype) for i, shape in enumerate(shapes)}
        )

    def extend(
        self, x: ArrayLike, cache: StateCache | None = None, lengths: ArrayLike | None = None
    ) -> tuple[Tensor, StateCache]:
        """The outputs for further inputs (..., time, in), and the cache after them; None begins.

        Of each row the first `lengths` (...) inputs are real, by default all. All axes in front together are the rows
        of the cache.
        """
        x = self._input(x)
        lead, time = x.shape[:-2], x.shape[-2]
        rows = math.prod(lead)
        cache = self.new_cache(rows) if cache is None else cache
        shapes = [(rows, block.reach, block.conv.in_channels) for block in self.blocks]
        found = [part.shape for _, part in cache._kept()] if isinstance(cache, StateCache) else None
        if found != shapes:
            raise ShapeError(
                f"{type(self).__name__}: a cache of shapes {found} for {x.shape}.",
                f"the cache that an earlier call gave, {shapes}, or None",
            )
        counts = None
        if lengths is not None:
            counts = arrays.reshape(as_lengths(type(self).__name__, lengths, x.shape[:-1]), (rows,))
        y = self._run(arrays.reshape(x, (rows, *x.shape[-2:])), None, cache, counts)
        cache.advance(time if counts is None else counts)
        return arrays.reshape(y, (*lead, *y.shape[-2:])), cache

    def step(self, x: ArrayLike, cache: StateCache | None = None) -> tuple[Tensor, StateCache]:
        """The output (..., out) for the input (..., in) of one time, and the cache after it.

        >>> import wonderland as wl
        >>> model = wl.models.CausalConvNet(1, 1, channels=4, dilations=(1, 2))
        >>> y, cache = model.step(wl.ones((3, 1)))
        >>> y.shape, cache.past_0.shape, cache.past_1.shape
        ((3, 1), (3, 1, 4), (3, 2, 4))
        """
        x = as_real(type(self).__name__, x)
        y, cache = self.extend(arrays.expand_dims(x, -2) if x.ndim else x, cache)
        return arrays.squeeze(y, -2), cache

    def _input(self, x: ArrayLike) -> Tensor:
        name = type(self).__name__
        x = as_real(name, x)
        if x.ndim < 2 or x.shape[-1] != self.in_channels:
            raise ShapeError(f"{name}: an input of shape {x.shape}.", f"(..., time, {self.in_channels}): channels last")
        if not x.shape[-2]:
            raise ShapeError(f"{name}: a sequence of shape {x.shape} is empty.", "one time or more")
        return x

    def _run(
        self, x: Tensor, mask: Tensor | None, cache: StateCache | None = None, counts: Tensor | None = None
    ) -> Tensor:
        """From zeros, or on from what the cache holds, which then holds what comes before the next input."""
        h = self.project(x)  # (..., t, channels)
        if counts is not None:
            mask = arrays.arange(x.shape[-2]) < counts[:, None]
        total: Any = None
        for i, block in enumerate(self.blocks):
            # the convolution must see zeros at padding, as it sees them before the beginning
            h = silenced(h, mask)
            past = None
            if cache is not None:
                past = getattr(cache, f"past_{i}") + 0  # before it is changed
                both = arrays.concat([past, h], axis=-2)  # (rows, reach + t, channels)
                setattr(cache, f"past_{i}", _last(both, block.reach, counts))
            h, skip = block(h, past)
            total = skip if total is None else total + skip
        return self.head(arrays.relu(self.hidden(arrays.relu(total))))  # (..., t, out)

    def extra_repr(self) -> str:
        return f"receptive_field={self.receptive_field}"


class ConvLanguageModel(Module):
    r"""\(p(x_{i+1} \mid x_1, \dots, x_i)\) by a causal convolutional network: tokens to logits. Book, section 8.4.1.

    >>> import wonderland as wl
    >>> model = wl.models.ConvLanguageModel(65, channels=16, dilations=(1, 2, 4, 8))
    >>> logits = model(wl.zeros((2, 30), dtype=wl.int64))
    >>> logits.shape, model.receptive_field
    ((2, 30, 65), 16)

    Integers (..., time) become logits (..., time, vocabulary_size), of which those at place i are for the token at i +
    1: the loss is `wl.nn.functional.cross_entropy(model(x), y)` with y one place ahead of x, as
    `wl.data.NextTokenDataset` gives them. `step(token, cache)` takes one token (...) of a sequence at a time;
    `extend(tokens, cache)` several. `mask` and the other arguments are those of `CausalConvNet`, which is `net` here
    and takes embeddings of anything: `model.net(wl.concat([picture, model.embed(tokens)], axis=-2))`.
    """

    def __init__(
        self,
        vocabulary_size: int,
        channels: int = 128,
        dilations: Iterable[int] = (1, 2, 4, 8, 16, 32, 1, 2, 4, 8, 16, 32),
        kernel_size: int = 2,
        skip_channels: int | None = None,
        dropout: float = 0.0,
        embedding_size: int | None = None,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        self.vocabulary_size = as_int(name, "vocabulary_size", vocabulary_size, 1)
        size = channels if embedding_size is None else as_int(name, "embedding_size", embedding_size, 1)
        keys = split(take_key(name, key), 2)
        self.embed = Embedding(self.vocabulary_size, size, dtype=dtype, key=keys[0])
        settings = (channels, dilations, kernel_size, skip_channels, dropout, dtype)
        self.net = CausalConvNet(size, self.vocabulary_size, *settings, key=keys[1])

    @property
    def receptive_field(self) -> int:
        """How many tokens a prediction sees."""
        return self.net.receptive_field

    def forward(self, tokens: ArrayLike, mask: ArrayLike | None = None) -> Tensor:
        return self.net(self.embed(self._tokens(tokens, 1)), mask)

    def new_cache(self, rows: int, capacity: int = 0) -> StateCache:
        """The state before sequences begin."""
        return self.net.new_cache(rows, capacity)

    def extend(
        self,
        tokens: ArrayLike,
        cache: StateCache | None = None,
        lengths: ArrayLike | None = None,
        last: bool = False,
    ) -> tuple[Tensor, StateCache]:
        """The logits for further tokens (..., time), of which `lengths` (...) are real, and the cache after them.

        With `last` only those after the last real token of each row of (batch, time), (batch, vocabulary_size).
        """
        logits, cache = self.net.extend(self.embed(self._tokens(tokens, 1)), cache, lengths)
        if last:
            logits = logits[..., -1, :] if lengths is None else _last(logits, 1, arrays.asarray(lengths) - 1)[:, 0]
        return logits, cache

    def step(self, token: ArrayLike, cache: StateCache | None = None) -> tuple[Tensor, StateCache]:
        """The logits (..., vocabulary_size) after one more token (...), and the cache after it.

        >>> import wonderland as wl
        >>> model = wl.models.ConvLanguageModel(5, channels=4, dilations=(1, 2))
        >>> logits, cache = model.step(wl.tensor([3, 0]))
        >>> logits.shape, cache.lengths.tolist()
        ((2, 5), [1, 1])
        """
        return self.net.step(self.embed(self._tokens(token, 0)), cache)

    def _tokens(self, tokens: ArrayLike, axes: int) -> Tensor:
        name = type(self).__name__
        tokens = as_tensor(name, tokens)
        if not dtypes.is_integer(tokens.dtype):
            raise DTypeError(f"{name}: tokens of {tokens.dtype}.", "integers, as tokenizers give them")
        if tokens.ndim < axes:
            raise ShapeError(f"{name}: one token is no sequence.", "tokens (..., time), or model.step(token, state)")
        return tokens


def _last(h: Tensor, count: int, starts: Tensor | None) -> Tensor:
    """`count` vectors of each row (rows, t, channels): those from its start on, by default the last ones."""
    if starts is None:
        return h[:, h.shape[1] - count :]
    places = arrays.maximum(starts, 0)[:, None] + arrays.arange(count)
    return arrays.take_along_axis(h, places[..., None], axis=1)
