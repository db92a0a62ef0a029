"""Dropout and its relatives: layers that leave out numbers, channels, weights or blocks. Book, section 9.3.1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ... import arrays
from ...core.arguments import shown
from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike
from ...random.continuous import normal
from ...random.discrete import bernoulli
from ...random.streams import Source, Stream
from .. import functional as F  # noqa: N812 - as everybody calls it
from ..functional.noise import check_probability
from ..module.module import Module
from .linear import Linear

__all__ = [
    "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "StochasticDepth", "DropPath", "AlphaDropout",
    "FeatureAlphaDropout", "GaussianDropout", "DropConnectLinear",
]  # fmt: skip


def own_stream(key: Source) -> Stream | None:
    """The random stream of a layer: a new one from a key or a seed, the one given, or None for the global stream.

    >>> own_stream(None)
    """
    return key if key is None or isinstance(key, Stream) else Stream(key)


def drop_probability(name: str, p: float | None, drop: float | None, keep_prob: float | None) -> float:
    """The probability to drop, given as p, as `drop`, or by the probability to keep.

    >>> drop_probability("Dropout", None, None, 0.75)
    0.25
    """
    given = [value for value in (p, drop, keep_prob) if value is not None]
    if len(given) > 1:
        raise InputError(
            f"{name}: p={shown(p)}, drop={shown(drop)}, keep_prob={shown(keep_prob)} say the same thing.",
            "one of them: p and drop are the probability to drop, keep_prob is 1 less that",
        )
    if keep_prob is not None:
        return 1.0 - check_probability(name, keep_prob)
    return check_probability(name, given[0] if given else 0.5)


class _Dropping(Module):
    """What leaves something out: a probability, and a random stream of its own or the global one."""

    _drops = True  # `enable_dropout_only` keeps it in training mode
    _function: ClassVar[Callable[..., Tensor]]  # of wl.nn.functional: what it computes

    def __init__(
        self,
        p: float | None = None,
        *,
        drop: float | None = None,
        keep_prob: float | None = None,
        inverted: bool = True,
        key: Source = None,
    ) -> None:
        self.p = drop_probability(type(self).__name__, p, drop, keep_prob)
        self.inverted = bool(inverted)
        self.stream = own_stream(key)

    def forward(self, x: ArrayLike) -> Tensor:
        return self._function(x, self.p, self.training, inverted=self.inverted, key=self.stream)

    def extra_repr(self) -> str:
        return f"p={self.p}" + ("" if self.inverted else ", inverted=False")


class Dropout(_Dropping):
    r"""\(x \odot b/(1-p)\), \(b \sim \mathrm{Bernoulli}(1-p)\), while training; x otherwise. Book, D.9.1.

    >>> import wonderland as wl
    >>> layer = wl.nn.Dropout(0.5, key=wl.random.key(0))
    >>> wl.unique(layer(wl.ones(100)))
    tensor([0., 2.])
    >>> layer.eval()(wl.ones(3))
    tensor([1., 1., 1.])

    p is the probability to *drop* a number. To be clear about it write `Dropout(drop=0.2)`, or `Dropout(keep_prob=0.8)`
    as in the book. With `inverted=False` nothing is scaled while training; inference multiplies by 1 - p instead.

    With `key` (a key, a seed or a stream) the layer has a random stream of its own, which belongs to its state; else
    it draws from the global stream.
    """

    _function = staticmethod(F.dropout)


class Dropout1d(_Dropping):
    """Dropout of whole channels of sequences (..., length, channels); the arguments are those of `Dropout`.

    >>> import wonderland as wl
    >>> y = wl.nn.Dropout1d(0.5)(wl.ones((2, 5, 4)))
    >>> bool((y == y[:, :1]).all())
    True
    """

    _function = staticmethod(F.dropout1d)


class Dropout2d(_Dropping):
    """Spatial dropout: whole channels of images (..., height, width, channels). Book, section 9.3.1.

    >>> import wonderland as wl
    >>> y = wl.nn.Dropout2d(0.5)(wl.ones((2, 5, 5, 4)))
    >>> bool((y == y[:, :1, :1]).all())
    True

    The arguments are those of `Dropout`. Neighbouring pixels are alike, so that leaving out single ones has
    little effect.
    """

    _function = staticmethod(F.dropout2d)


class Dropout3d(_Dropping):
    """Dropout of whole channels of volumes (..., depth, height, width, channels); arguments as for `Dropout`.

    >>> import wonderland as wl
    >>> wl.nn.Dropout3d(0.5)(wl.ones((2, 3, 3, 3, 4))).shape
    (2, 3, 3, 3, 4)
    """

    _function = staticmethod(F.dropout3d)


class StochasticDepth(_Dropping):
    r"""Dropout of a whole branch: in each example (`mode="row"`) or for all of them (`"batch"`).

    >>> import wonderland as wl
    >>> branch = wl.nn.StochasticDepth(0.5)
    >>> y = branch(wl.ones((6, 3)))
    >>> bool((y == y[:, :1]).all())
    True

    As the last layer of a residual path it gives \(x + b\,f(x)/(1-p)\): a random depth while training.
    """

    def __init__(self, p: float | None = None, mode: str = "row", **settings: Any) -> None:
        super().__init__(p, **settings)
        if mode not in ("row", "batch"):
            raise InputError(f"{type(self).__name__}: mode={shown(mode)}.", "'row' or 'batch'")
        self.mode = mode

    def forward(self, x: ArrayLike) -> Tensor:
        return F.stochastic_depth(x, self.p, self.mode, self.training, inverted=self.inverted, key=self.stream)


class DropPath(StochasticDepth):
    """`StochasticDepth` by the name that vision models have for it.

    >>> import wonderland as wl
    >>> wl.nn.DropPath(0.1)
    DropPath(p=0.1)
    """


class AlphaDropout(_Dropping):
    """Dropout for SELU networks, which keeps mean 0 and variance 1; see `wl.nn.functional.alpha_dropout`.

    >>> import wonderland as wl
    >>> wl.nn.AlphaDropout(0.1).eval()(wl.ones(2))
    tensor([1., 1.])
    """

    _function = staticmethod(F.alpha_dropout)

    def __init__(
        self,
        p: float | None = None,
        *,
        drop: float | None = None,
        keep_prob: float | None = None,
        key: Source = None,
    ) -> None:
        super().__init__(p, drop=drop, keep_prob=keep_prob, key=key)

    def forward(self, x: ArrayLike) -> Tensor:
        return self._function(x, self.p, self.training, key=self.stream)


class FeatureAlphaDropout(AlphaDropout):
    """`AlphaDropout` of whole channels of (batch, ..., channels).

    >>> import wonderland as wl
    >>> wl.nn.FeatureAlphaDropout(0.1)(wl.ones((2, 5, 3))).shape
    (2, 5, 3)
    """

    _function = staticmethod(F.feature_alpha_dropout)


class GaussianDropout(AlphaDropout):
    r"""\(x \odot \epsilon\), \(\epsilon \sim N(1, p/(1-p))\), while training: the moments of dropout without zeros.

    >>> import wonderland as wl
    >>> wl.nn.GaussianDropout(0.1).eval()(wl.ones(2))
    tensor([1., 1.])
    """

    _function = staticmethod(F.gaussian_dropout)


class DropConnectLinear(Linear):
    r"""\(x\,(B \odot W)/(1-p) + b\), a linear layer that leaves out single weights. Book, section 9.3.1.

    >>> import wonderland as wl
    >>> layer = wl.nn.DropConnectLinear(4, 2, 0.5)
    >>> layer(wl.ones((3, 4))).shape, layer.num_parameters()
    ((3, 2), 10)

    p, `drop`, `keep_prob`, `inverted` and `key` mean what they do in `Dropout`; `key` also makes the parameters. One
    mask serves the whole batch, or with `per_example` every row of x has its own, which takes the memory of as many
    weights. At inference the layer gives the mean, \(x W + b\) (times 1 - p if not inverted). With
    `inference="gaussian"` it draws from the Gaussian with the mean and the variance of its random outputs, see
    `moments`: averages of what follows are then those of many masks, at the price of one.
    """

    _drops = True
    p: float = 0.5  # these are for `from_matrix`, which does not call __init__
    inverted: bool = True
    per_example: bool = False
    inference: str = "mean"
    stream: Stream | None = None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        p: float | None = None,
        bias: bool = True,
        *,
        drop: float | None = None,
        keep_prob: float | None = None,
        inverted: bool = True,
        per_example: bool = False,
        inference: str = "mean",
        dtype: DTypeLike | None = None,
        key: Source = None,
    ) -> None:
        self.p = drop_probability("DropConnectLinear", p, drop, keep_prob)
        if inference not in ("mean", "gaussian"):
            raise InputError(f"DropConnectLinear: inference={shown(inference)}.", "'mean' or 'gaussian'")
        self.inverted = bool(inverted)
        self.per_example = bool(per_example)
        self.inference = inference
        self.stream = own_stream(key)
        super().__init__(in_features, out_features, bias, dtype, self.stream)

    def forward(self, x: ArrayLike) -> Tensor:
        expected = super().forward(x)  # checks x
        if self.p == 0.0:
            return expected
        x = arrays.asarray(x)
        if not self.training:
            mean, variance = self.moments(x)
            if self.inference == "mean":
                return mean
            return mean + arrays.sqrt(variance) * normal(mean.shape, key=self.stream, dtype=mean.dtype)
        lead = x.shape[:-1] if self.per_example else ()
        mask = bernoulli((*lead, *self.weight.shape), 1.0 - self.p, key=self.stream)
        weight = arrays.where(mask, self.weight * self._factor(), 0.0)
        y = arrays.matmul(x[..., None, :], weight)[..., 0, :] if self.per_example else arrays.matmul(x, weight)
        return y if self.bias is None else y + self.bias

    def _factor(self) -> float:
        """What a weight that is kept is multiplied by."""
        return 1.0 / (1.0 - self.p) if self.inverted and self.p < 1.0 else 1.0

    def moments(self, x: ArrayLike) -> tuple[Tensor, Tensor]:
        r"""The mean and the variance of the outputs over masks.

        With \(k = 1-p\) and s = 1/k, or 1 if not inverted: \(s k\,x W + b\) and \(s^2 k (1-k)\,x^2 W^2\).
        """
        keep, factor = 1.0 - self.p, self._factor()
        x = arrays.asarray(x)
        mean = arrays.matmul(x, self.weight) * (factor * keep)
        variance = arrays.matmul(arrays.square(x), arrays.square(self.weight)) * (factor**2 * keep * self.p)
        return mean if self.bias is None else mean + self.bias, variance

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, p={self.p}" + ("" if self.inverted else ", inverted=False")
