"""Normalization layers. Channels are along the last axis. Book, section 9.3.2."""

from __future__ import annotations

from typing import Any

from ... import arrays
from ...arrays.conversion import as_real, as_shape
from ...core import dtypes
from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, ShapeLike
from .. import functional as F  # noqa: N812 - as everybody calls it
from ..module.applied import AppliedToOne
from ..module.module import Module
from ..module.parameter import Buffer, Held, Parameter

__all__ = [
    "LayerNorm", "RMSNorm", "ScaleNorm", "LocalResponseNorm", "BatchNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d",
    "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d",
]  # fmt: skip


class LayerNorm(Module):
    r"""\(\frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}}\,\alpha + \beta\) over the last axes. Book, section 9.3.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.LayerNorm(2, eps=0.0)
    >>> layer(wl.tensor([[1.0, 3.0], [10.0, 30.0]]))
    tensor([[-1.,  1.],
            [-1.,  1.]])

    `normalized_shape` is the size of the last axis or the sizes of several. `weight` and `bias` have this shape and
    start from 1 and 0; without `elementwise_affine` they are None.
    """

    weight: Held[Parameter | None]
    bias: Held[Parameter | None]

    def __init__(
        self,
        normalized_shape: ShapeLike,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.normalized_shape = as_shape("LayerNorm", normalized_shape)
        self.eps = eps
        self.weight = Parameter(arrays.ones(self.normalized_shape, dtype=dtype)) if elementwise_affine else None
        shifts = elementwise_affine and bias
        self.bias = Parameter(arrays.zeros(self.normalized_shape, dtype=dtype)) if shifts else None

    def forward(self, x: ArrayLike) -> Tensor:
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.weight is not None}"


class RMSNorm(Module):
    r"""\(\frac{x}{\sqrt{\overline{x^2} + \varepsilon}}\,\alpha\) over the last axes. Book, section 9.3.2.

    >>> import wonderland as wl
    >>> wl.nn.RMSNorm(2)(wl.tensor([3.0, -3.0]))
    tensor([ 1., -1.])

    `eps` is by default the machine epsilon of x's type.
    """

    weight: Held[Parameter | None]

    def __init__(
        self,
        normalized_shape: ShapeLike,
        eps: float | None = None,
        elementwise_affine: bool = True,
        dtype: DTypeLike | None = None,
    ) -> None:
        self.normalized_shape = as_shape("RMSNorm", normalized_shape)
        self.eps = eps
        self.weight = Parameter(arrays.ones(self.normalized_shape, dtype=dtype)) if elementwise_affine else None

    def forward(self, x: ArrayLike) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.weight is not None}"


class ScaleNorm(Module):
    r"""\(g\,x/\lVert x\rVert\) over the last axis: a direction, and one length that is learned, from \(\sqrt{c}\).

    >>> import wonderland as wl
    >>> wl.nn.ScaleNorm(4)(wl.tensor([3.0, 3.0, 3.0, 3.0]))
    tensor([1., 1., 1., 1.])
    """

    def __init__(self, num_features: int, eps: float = 1e-5, dtype: DTypeLike | None = None) -> None:
        self.num_features = as_int("ScaleNorm", "num_features", num_features, 1)
        self.eps = eps
        self.g = Parameter(arrays.full((), self.num_features**0.5, dtype=dtype or dtypes.default_float))

    def forward(self, x: ArrayLike) -> Tensor:
        x = as_real("ScaleNorm", x)
        if x.shape[-1:] != (self.num_features,):
            raise ShapeError(f"{self._describe()}: an input of shape {x.shape}.", f"(..., {self.num_features})")
        return F.scale_norm(x, self.g, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_features}, eps={self.eps}"


class LocalResponseNorm(AppliedToOne, function=F.local_response_norm):
    """Division by the squares of neighbouring channels; see `wl.nn.functional.local_response_norm`.

    >>> import wonderland as wl
    >>> wl.nn.LocalResponseNorm(5)(wl.ones((2, 4, 4, 8))).shape
    (2, 4, 4, 8)
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        self.size = as_int("LocalResponseNorm", "size", size, 1)
        self.alpha, self.beta, self.k = alpha, beta, k


class _ChannelNorm(Module):
    """What batch and instance normalization share: one scale, shift and pair of running statistics per channel."""

    weight: Held[Parameter | None]
    bias: Held[Parameter | None]
    running_mean: Held[Buffer | None]
    running_var: Held[Buffer | None]
    num_batches_tracked: Held[Buffer | None]
    _ranks: tuple[int, ...] = ()
    _layout = "(batch, ..., channels)"

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        dtype: DTypeLike | None,
    ) -> None:
        shape = (as_int(type(self).__name__, "num_features", num_features, 0),)
        self.num_features = shape[0]
        self.eps = eps
        self.momentum = momentum
        self.weight = Parameter(arrays.ones(shape, dtype=dtype)) if affine else None
        self.bias = Parameter(arrays.zeros(shape, dtype=dtype)) if affine else None
        self.running_mean = Buffer(arrays.zeros(shape, dtype=dtype)) if track_running_stats else None
        self.running_var = Buffer(arrays.ones(shape, dtype=dtype)) if track_running_stats else None
        self.num_batches_tracked = Buffer(0, dtypes.int64) if track_running_stats else None

    def forward(self, x: ArrayLike) -> Tensor:
        x = as_real(type(self).__name__, x)
        fits = x.ndim in self._ranks if self._ranks else x.ndim >= 2
        if not fits or x.shape[-1] != self.num_features:
            raise ShapeError(
                f"{self._describe()}: an input of shape {x.shape}.",
                f"an input of shape {self._layout} with {self.num_features} channels along the last axis",
            )
        training = self.training or self.running_mean is None
        momentum: Any = self.momentum
        if not training or self.num_batches_tracked is None:
            return self._normalized(x, training, momentum)
        count = self.num_batches_tracked + 1
        if momentum is None:
            assert self.running_mean is not None  # which is tracked, too
            momentum = 1.0 / arrays.astype(count, self.running_mean.dtype)
        y = self._normalized(x, training, momentum)
        self.num_batches_tracked = count
        return y

    def _normalized(self, x: Tensor, training: bool, momentum: float | Tensor) -> Tensor:
        """What becomes of an input of the right shape."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        text = f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.weight is not None}"
        return text if self.running_mean is not None else f"{text}, track_running_stats=False"


class BatchNorm(_ChannelNorm):
    r"""\(\frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}}\,\alpha + \beta\) per channel. Book, section 9.3.2.

    >>> import wonderland as wl
    >>> layer = wl.nn.BatchNorm1d(2, eps=0.0)
    >>> layer(wl.tensor([[1.0, 10.0], [3.0, 30.0]]))
    tensor([[-1., -1.],
            [ 1.,  1.]])
    >>> layer.running_mean
    buffer([0.2, 2. ])

    While training, the statistics are those of the batch over all axes but the last, and `running_mean` and
    `running_var` move towards them: \(r \leftarrow (1-m)\,r + m\,s\) with m = `momentum`, or with the mean over all
    batches so far if it is None. In `eval()` the running ones are used. Without `track_running_stats` there are none,
    and the batch always gives the statistics. `weight` and `bias` are None without `affine`.

    The book writes \(r \leftarrow \lambda r + (1-\lambda)\,s\): its \(\lambda\) is 1 - `momentum`, 0.9 or 0.99 and not
    the 0.01 that is printed there. The batch is normalized with the variance over n, the running one is over n - 1.

    This base takes (batch, ..., channels) of any number of axes; `BatchNorm1d`, `BatchNorm2d` and `BatchNorm3d` insist.
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)

    def _normalized(self, x: Tensor, training: bool, momentum: float | Tensor) -> Tensor:
        return F.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, training, momentum, self.eps
        )


class BatchNorm1d(BatchNorm):
    """Batch normalization of (batch, channels) or (batch, length, channels); see `BatchNorm`.

    >>> import wonderland as wl
    >>> wl.nn.BatchNorm1d(3)(wl.random.normal((8, 5, 3))).shape
    (8, 5, 3)
    """

    _ranks = (2, 3)
    _layout = "(batch, channels) or (batch, length, channels)"


class BatchNorm2d(BatchNorm):
    """Batch normalization of images (batch, height, width, channels); see `BatchNorm`.

    >>> import wonderland as wl
    >>> wl.nn.BatchNorm2d(3)(wl.random.normal((8, 5, 5, 3))).shape
    (8, 5, 5, 3)
    """

    _ranks = (4,)
    _layout = "(batch, height, width, channels)"


class BatchNorm3d(BatchNorm):
    """Batch normalization of volumes (batch, depth, height, width, channels); see `BatchNorm`.

    >>> import wonderland as wl
    >>> wl.nn.BatchNorm3d(3)(wl.random.normal((8, 2, 2, 2, 3))).shape
    (8, 2, 2, 2, 3)
    """

    _ranks = (5,)
    _layout = "(batch, depth, height, width, channels)"


class GroupNorm(Module):
    """Normalization of every example over groups of channels: (batch, ..., channels). Book, section 9.3.2.

    >>> import wonderland as wl
    >>> wl.nn.GroupNorm(2, 4, eps=0.0)(wl.tensor([[1.0, 3.0, 10.0, 30.0]]))
    tensor([[-1.,  1., -1.,  1.]])
    """

    weight: Held[Parameter | None]
    bias: Held[Parameter | None]

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, dtype: DTypeLike | None = None
    ) -> None:
        self.num_groups = as_int("GroupNorm", "num_groups", num_groups, 1)
        self.num_channels = as_int("GroupNorm", "num_channels", num_channels, 0)
        if self.num_channels % self.num_groups:
            raise InputError(f"GroupNorm: {num_channels} channels in {num_groups} groups.", "a divisor of the channels")
        self.eps = eps
        self.weight = Parameter(arrays.ones((num_channels,), dtype=dtype)) if affine else None
        self.bias = Parameter(arrays.zeros((num_channels,), dtype=dtype)) if affine else None

    def forward(self, x: ArrayLike) -> Tensor:
        x = as_real("GroupNorm", x)
        if x.ndim < 2 or x.shape[-1] != self.num_channels:
            raise ShapeError(
                f"{self._describe()}: an input of shape {x.shape}.",
                f"an input of shape (batch, ..., {self.num_channels})",
            )
        return F.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.weight is not None}"


class _InstanceNorm(_ChannelNorm):
    """What the three instance normalizations share; an input may come without the axis of examples."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)

    def _normalized(self, x: Tensor, training: bool, momentum: float | Tensor) -> Tensor:
        single = x.ndim == self._ranks[0]
        y = F.instance_norm(
            x[None] if single else x,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            training,
            momentum,
            self.eps,
        )
        return y[0] if single else y


class InstanceNorm1d(_InstanceNorm):
    """Normalization of every channel of every sequence, ([batch,] length, channels). Book, section 9.3.2.

    >>> import wonderland as wl
    >>> wl.nn.InstanceNorm1d(3)(wl.random.normal((8, 5, 3))).shape
    (8, 5, 3)

    By default there are neither parameters (`affine`) nor running statistics (`track_running_stats`).
    """

    _ranks = (2, 3)
    _layout = "([batch,] length, channels)"


class InstanceNorm2d(_InstanceNorm):
    """Normalization of every channel of every image, ([batch,] height, width, channels). Book, section 9.3.2.

    >>> import wonderland as wl
    >>> y = wl.nn.InstanceNorm2d(3)(wl.random.normal((8, 5, 5, 3)))
    >>> y.shape, float(abs(y.mean((1, 2))).max()) < 1e-5
    ((8, 5, 5, 3), True)
    """

    _ranks = (3, 4)
    _layout = "([batch,] height, width, channels)"


class InstanceNorm3d(_InstanceNorm):
    """Normalization of every channel of every volume, ([batch,] depth, height, width, channels). Book, section 9.3.2.

    >>> import wonderland as wl
    >>> wl.nn.InstanceNorm3d(3)(wl.random.normal((8, 2, 2, 2, 3))).shape
    (8, 2, 2, 2, 3)
    """

    _ranks = (4, 5)
    _layout = "([batch,] depth, height, width, channels)"
