"""Waveforms as tokens: a small convolutional network over time. Book, section 11.2.4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from ... import arrays
from ...arrays.conversion import as_real, as_tensor
from ...core.arguments import as_int, as_list, shown
from ...core.dtypes import is_integer
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike
from ...random.arguments import check
from ...random.streams import Source
from ..module.containers import ModuleList, Sequential
from ..module.module import Module
from .convolution import Conv1d
from .dropout import own_stream
from .fully_connected import ActivationLike, as_activation
from .normalization import LayerNorm
from .pooling import MaxPool1d
from .windowed import Windowed

__all__ = ["AudioTokenizer"]

# channels, kernel, stride and padding of each convolution; with pooling by 2 a token for every 320 samples
CONVOLUTIONS = ((64, 10, 5, 3), (128, 8, 4, 2), (256, 4, 2, 1))


class AudioTokenizer(Module):
    r"""Tokens (..., n, e) from waveforms (..., samples) by convolutions, activations and pooling. Book, section 11.2.4.

    >>> import wonderland as wl
    >>> tokenizer = wl.nn.AudioTokenizer([(16, 10, 5), (32, 4, 2)], pool=2)
    >>> tokenizer(wl.ones((3, 1000))).shape, tokenizer.output_length(1000)
    ((3, 24, 32), 24)

    `convs` has (channels, kernel, stride) or (channels, kernel, stride, padding) of each convolution; the channels of
    the last one are e. After each come an `activation`, with `norm` before it a `LayerNorm` of the channels, and a
    `MaxPool1d` over `pool` places side by side; `pool` may list one number for each, and 1 is no pooling. A convolution
    or pooling makes \(\lfloor (L + 2p - k)/s \rfloor + 1\) places of L.

    `lengths` (...) are the real samples of rows that are padded at the end. Padding never reaches a real token: a row
    has the tokens that it has alone, `output_length(lengths)` of them, and zeros after that.
    """

    def __init__(
        self,
        convs: Sequence[Sequence[int]] = CONVOLUTIONS,
        pool: int | Sequence[int] = 2,
        activation: ActivationLike = "gelu",
        norm: bool = True,
        dtype: DTypeLike | None = None,
        key: Source = None,
    ) -> None:
        name = "AudioTokenizer"
        stream = own_stream(key)
        listed = [as_list(name, "a convolution", conv) for conv in as_list(name, "convs", convs)]
        if not listed or any(len(conv) not in (3, 4) for conv in listed):
            raise InputError(f"{name}: convs={shown(convs)}.", "[(channels, kernel, stride), ...], one or more")
        windows = pool if isinstance(pool, (tuple, list)) else [pool] * len(listed)
        pools = [as_int(name, "pool", window, 1) for window in windows]
        if len(pools) != len(listed):
            raise InputError(
                f"{name}: {len(pools)} poolings for {len(listed)} convolutions.", "one number, or one each"
            )
        self.stages = ModuleList()
        before = 1
        for (channels, kernel, stride, *rest), window in zip(listed, pools, strict=True):
            padding = rest[0] if rest else 0
            conv = Conv1d(before, channels, kernel, stride, padding, dtype=dtype, key=stream)
            normal = [LayerNorm(channels, dtype=dtype)] if norm else []
            pooling = [MaxPool1d(window)] if window > 1 else []
            self.stages.append(Sequential(conv, *normal, as_activation(name, activation), *pooling))
            before = conv.out_channels
        self.features = before

    def forward(self, x: ArrayLike, lengths: ArrayLike | None = None) -> Tensor:
        waves = as_real("AudioTokenizer", x)
        if not waves.ndim:
            raise ShapeError("AudioTokenizer: a waveform without axes.", "(..., samples)")
        real = None if lengths is None else self._lengths(lengths, waves.shape)
        y = waves[..., None]
        for stage in self.stages:
            # what lies beyond the end of a row must look like the zeros that its windows meet there when it is alone
            y = stage(_silenced(y, real))
            real = None if real is None else _after(stage, real)
        return _silenced(y, real)  # (..., n, e)

    @overload
    def output_length(self, lengths: int) -> int: ...  # type: ignore[overload-overlap]  # a number is an array, too

    @overload
    def output_length(self, lengths: ArrayLike) -> Tensor: ...

    def output_length(self, lengths: int | ArrayLike) -> int | Tensor:
        """How many tokens come from so many samples: a number, or integers of any shape. None from too few.

        >>> import wonderland as wl
        >>> wl.nn.AudioTokenizer([(8, 4, 2, 1)], pool=1).output_length([16, 5, 1])
        tensor([8, 2, 0])
        """
        n = as_tensor("AudioTokenizer", arrays.asarray(lengths))
        if not is_integer(n.dtype):
            raise InputError(f"AudioTokenizer: lengths of {n.dtype}.", "integers")
        check("AudioTokenizer", "a length", n, lambda v: v >= 0, "0 or more")
        for stage in self.stages:
            n = _after(stage, n)
        return int(n) if isinstance(lengths, int) else n

    def _lengths(self, lengths: ArrayLike, shape: tuple[int, ...]) -> Tensor:
        n = as_tensor("AudioTokenizer", arrays.asarray(lengths))
        if n.shape != shape[:-1] or not is_integer(n.dtype):
            raise ShapeError(
                f"AudioTokenizer: lengths {n.dtype}{list(n.shape)} for waveforms of shape {shape}.",
                f"integers of shape {shape[:-1]}",
            )
        check("AudioTokenizer", "a length", n, lambda v: (v >= 0) & (v <= shape[-1]), f"from 0 to {shape[-1]} samples")
        return n


def _after(stage: Sequential, n: Tensor) -> Tensor:
    """The places after a stage: floor((L + 2p - k)/s) + 1 for each layer with windows; nothing stays nothing."""
    for layer in stage:
        if isinstance(layer, Windowed):
            ((low, high),), (kernel,), (stride,) = layer._padding(), layer._sizes("kernel_size"), layer._sizes("stride")
            n = arrays.where(n > 0, arrays.maximum((n + low + high - kernel) // stride + 1, 0), 0)
    return n


def _silenced(y: Tensor, lengths: Tensor | None) -> Tensor:
    """(..., time, features) with zeros beyond the lengths, whatever was there."""
    if lengths is None:
        return y
    return arrays.where((arrays.arange(y.shape[-2]) < lengths[..., None])[..., None], y, arrays.zeros_like(y))
