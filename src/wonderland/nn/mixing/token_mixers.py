"""Ways to mix tokens that take the place of attention in a block: an MLP, waves, and means. Book, section 11.3.

A convolution over tokens is one as it is: `nn.Conv1d(e, e, 3, padding="same", groups=e)`; see `nn.MixingBlock`.
"""

from __future__ import annotations

import math

from ... import arrays, fft
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ..functional.pooling import avg_pool1d
from ..layers.fully_connected import ActivationLike
from ..sequences.token_masks import silenced
from .feed_forward import FeedForward
from .tokens import TokenMixer

__all__ = ["TokenMLP", "FourierMixer", "PoolMixer"]


class TokenMLP(TokenMixer):
    r"""\([\phi(X^\top W_1) W_2]^\top\): the same MLP along the n tokens of every channel. Book, E.11.10.

    >>> import wonderland as wl
    >>> layer = wl.nn.TokenMLP(16, hidden=32)
    >>> layer(wl.ones((2, 16, 8))).shape, layer.num_parameters()  # 2 n hidden + hidden + n
    ((2, 16, 8), 1072)

    It is tied to n tokens, whose order matters; padded ones count as zeros. Time and parameters are linear in n for a
    fixed `hidden`. Other settings are those of `FeedForward`.
    """

    def __init__(
        self,
        n: int,
        hidden: int,
        activation: ActivationLike = "gelu",
        bias: bool = True,
        dropout: float = 0.0,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        self.n = as_int("TokenMLP", "n", n, 1)
        hidden = as_int("TokenMLP", "hidden", hidden, 1)
        self.mlp = FeedForward(self.n, 4, activation, bias, dropout, hidden, dtype=dtype, key=key)

    def mix(self, x: Tensor, mask: Tensor | None) -> Tensor:
        check_tokens(self, x, self.n)
        return self.mlp(x.mT).mT

    def extra_repr(self) -> str:
        return f"n={self.n}"


class FourierMixer(TokenMixer):
    r"""\(\operatorname{Re}(F_n X F_e)\), the discrete Fourier transform over tokens and channels. Book, section 11.3.

    >>> import wonderland as wl
    >>> layer = wl.nn.FourierMixer()
    >>> layer(wl.tensor([[1.0], [2.0], [3.0], [4.0]]))[:, 0], layer.num_parameters()
    (tensor([10., -2., -2., -2.]), 0)

    There is nothing to train. With `channels=False` the transform is over tokens alone. It takes n log n steps; with a
    mask every row has the transform of its own length, by a product with n x n numbers in each row.
    """

    def __init__(self, channels: bool = True) -> None:
        self.channels = bool(channels)

    def mix(self, x: Tensor, mask: Tensor | None) -> Tensor:
        if 0 in x.shape[-2:]:
            return x
        if mask is None:
            # channels first: the spectrum of real numbers is half the work
            z = fft.fft(fft.fft(x, axis=-1) if self.channels else x, axis=-2)
            return arrays.astype(arrays.real(z), x.dtype)
        places = arrays.cumsum(arrays.astype(mask, "int64"), axis=-1) - 1
        lengths = arrays.maximum(arrays.expand_dims(places[..., -1:] + 1, axis=-1), 1)  # (..., 1, 1)
        turns = (arrays.expand_dims(places, axis=-1) * arrays.expand_dims(places, axis=-2)) % lengths  # exact
        angles = 2 * math.pi * arrays.astype(turns, x.dtype) / arrays.astype(lengths, x.dtype)
        if not self.channels:
            return arrays.matmul(arrays.cos(angles), x)
        z = fft.fft(x, axis=-1)
        real, imaginary = (arrays.astype(part, x.dtype) for part in (arrays.real(z), arrays.imag(z)))
        return arrays.matmul(arrays.cos(angles), real) + arrays.matmul(arrays.sin(angles), imaginary)

    def extra_repr(self) -> str:
        return "" if self.channels else "channels=False"


class PoolMixer(TokenMixer):
    r"""\(\frac{1}{|N_i|}\sum_{j \in N_i} x_j - x_i\), the mean of the real tokens around each token. Book, 11.3.

    >>> import wonderland as wl
    >>> wl.nn.PoolMixer(3)(wl.tensor([[0.0], [3.0], [6.0]]))[:, 0]
    tensor([ 1.5, 0. , -1.5])
    >>> wl.nn.PoolMixer(None, subtract=False)(wl.tensor([[0.0], [3.0], [6.0]]))[:, 0]
    tensor([3., 3., 3.])

    \(N_i\) are `kernel_size` tokens, an odd number, with i in the middle, or with None all tokens. There is nothing to
    train. `subtract` takes away the token itself, which the connection around the mixer adds again.
    """

    def __init__(self, kernel_size: int | None = 3, subtract: bool = True) -> None:
        self.kernel_size = None if kernel_size is None else as_int("PoolMixer", "kernel_size", kernel_size, 1)
        if self.kernel_size is not None and self.kernel_size % 2 == 0:
            raise InputError(
                f"PoolMixer: kernel_size={kernel_size}.", "an odd number, so that a token is in the middle"
            )
        self.subtract = bool(subtract)

    def mix(self, x: Tensor, mask: Tensor | None) -> Tensor:
        if not x.shape[-2]:
            return x
        if self.kernel_size is None:
            mean = arrays.broadcast_to(token_mean(x, mask), x.shape)
        elif mask is None:
            mean = avg_pool1d(x, self.kernel_size, 1, self.kernel_size // 2, count_include_pad=False)
        else:  # the mean of the real ones: the sum of the window over how many it has
            count = arrays.expand_dims(arrays.astype(mask, x.dtype), axis=-1)
            sums, counts = (
                avg_pool1d(a, self.kernel_size, 1, self.kernel_size // 2, divisor_override=1) for a in (x, count)
            )
            mean = sums / arrays.maximum(counts, 1)
        return mean - x if self.subtract else mean

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}" + ("" if self.subtract else ", subtract=False")


def token_mean(x: Tensor, mask: Tensor | None) -> Tensor:
    """The mean of the real tokens of x (..., n, e) as (..., 1, e); zeros where there are none.

    >>> import wonderland as wl
    >>> token_mean(wl.tensor([[1.0], [3.0], [8.0]]), wl.tensor([True, True, False]))
    tensor([[2.]])
    """
    if mask is None:
        return arrays.sum(x, axis=-2, keepdims=True) / max(x.shape[-2], 1)
    counts = arrays.sum(arrays.astype(mask, x.dtype), axis=-1, keepdims=True)[..., None]
    return arrays.sum(silenced(x, mask), axis=-2, keepdims=True) / arrays.maximum(counts, 1)


def check_tokens(layer: TokenMixer, x: Tensor, n: int) -> None:
    """Refuse inputs of another number of tokens than the one that a layer is tied to."""
    if x.shape[-2] != n:
        raise ShapeError(
            f"{layer._describe()}: an input of shape {x.shape} has {x.shape[-2]} tokens.",
            f"(..., {n}, features): its weights are for {n} tokens, so fill up or cut off the sequence",
        )
