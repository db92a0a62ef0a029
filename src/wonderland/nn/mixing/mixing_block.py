"""The block of a transformer with anything in the place of attention, and the Mixer's. Book, section 11.3."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TypeAlias

from ... import arrays
from ...core.arguments import as_function, as_int, shown
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...random.keys import split
from ...random.streams import take_key
from ..layers.fully_connected import ActivationLike
from ..layers.identity import Identity
from ..layers.normalization import LayerNorm, RMSNorm
from ..module.module import Module
from ..sequences.cache import LayerCaches
from ..sequences.reading import ReadsOn, one_more, reads_on
from ..sequences.token_masks import as_sequence, as_token_mask, silenced
from .feed_forward import FeedForward
from .token_mixers import TokenMLP

__all__ = ["MixingBlock", "MixerBlock"]

Mixer: TypeAlias = Callable[..., Tensor]
NormLike: TypeAlias = str | Callable[[int], Module] | None


def as_norm(name: str, norm: NormLike, e: int, dtype: DTypeLike | None = None) -> Module:
    """What a `norm` argument stands for: "layer", "rms", a function of the width, or None for the identity.

    >>> as_norm("MixingBlock", "rms", 8).num_parameters()
    8
    """
    if norm is None:
        return Identity()
    if norm == "layer":
        return LayerNorm(e, dtype=dtype)
    if norm == "rms":
        return RMSNorm(e, dtype=dtype)
    if not callable(norm):
        raise InputError(f"{name}: norm={shown(norm)}.", "'layer', 'rms', None or a function of the width")
    return norm(e)


class MixingBlock(Module):
    r"""\(H = X + \mathrm{mix}(\mathrm{norm}(X))\), \(Y = H + \mathrm{MLP}(\mathrm{norm}(H))\). Book, section 11.3.

    >>> import wonderland as wl
    >>> nn, e = wl.nn, 8
    >>> mixers = [nn.Conv1d(e, e, 3, padding="same", groups=e), nn.FourierMixer(), nn.PoolMixer(), nn.ShiftMixer(e)]
    >>> [nn.MixingBlock(mixer, e)(wl.ones((2, 16, e))).shape for mixer in [*mixers, nn.Identity()]][-1]
    (2, 16, 8)

    A transformer block is this with attention; what else mixes tokens (..., n, e) does nearly as well (MetaFormer).
    `token_mixer` is a layer or a function that keeps the shape. One that takes `token_mask` is told which tokens are
    real, any other one sees zeros in the place of the padding, which to a convolution is what lies beyond the ends.
    Padded tokens come out as zeros. `channel_mixer` is by default a `FeedForward` of `mult`, `activation`, `bias` and
    `dropout`. `norm` is "layer", "rms", None or a function of the width. `first="channels"` changes the order.

    With a token mixer that has a cache, causal attention or a recurrence, the block reads on as it does: `new_cache`,
    `extend` and `step`. A channel mixer may have a cache, too, as that of RWKV has.
    """

    def __init__(
        self,
        token_mixer: Callable[..., Tensor],
        e: int,
        channel_mixer: Callable[..., Tensor] | None = None,
        norm: NormLike = "layer",
        mult: float = 4,
        activation: ActivationLike = "gelu",
        bias: bool = True,
        dropout: float = 0.0,
        first: str = "tokens",
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = type(self).__name__
        if first not in ("tokens", "channels"):
            raise InputError(f"{name}: first={shown(first)}.", "'tokens' or 'channels'")
        self.e, self.first = as_int(name, "e", e, 1), first
        self.token_norm = as_norm(name, norm, self.e, dtype)
        self.token_mixer = as_function(name, token_mixer)
        self.channel_norm = as_norm(name, norm, self.e, dtype)
        if channel_mixer is None:
            channel_mixer = FeedForward(self.e, mult, activation, bias, dropout, dtype=dtype, key=key)
        self.channel_mixer = as_function(name, channel_mixer)

    def forward(self, x: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None) -> Tensor:
        x = as_sequence(self, x, self.e)
        mask = as_token_mask(type(self).__name__, x.shape[:-1], token_mask, lengths)

        def mixed(mixer: Mixer, h: Tensor) -> Tensor:
            h = silenced(h, mask)
            return mixer(h, token_mask=mask) if mask is not None and takes_mask(mixer) else mixer(h)

        return silenced(self._run(silenced(x, mask), mixed), mask)

    def _run(self, x: Tensor, mixed: Callable[[Mixer, Tensor], Tensor]) -> Tensor:
        """The block around the way in which mixers are called."""
        parts = [(self.token_norm, self.token_mixer), (self.channel_norm, self.channel_mixer)]
        for norm, mixer in parts if self.first == "tokens" else reversed(parts):
            x = self._added(x, mixed(mixer, norm(x)))
        return x

    # --- reading on

    def _readers(self) -> list[ReadsOn]:
        """The mixers that keep something of the tokens."""
        return [mixer for mixer in (self.token_mixer, self.channel_mixer) if reads_on(mixer)]

    def new_cache(self, rows: int, capacity: int = 0) -> LayerCaches:
        """The caches of its mixers."""
        if not reads_on(self.token_mixer):
            raise InputError(
                f"{self._describe()}: a {type(self.token_mixer).__name__} does not read on.",
                "a mixer with new_cache, extend and step: causal attention, or a recurrent layer",
            )
        return LayerCaches(mixer.new_cache(rows, capacity) for mixer in self._readers())

    def extend(
        self, x: ArrayLike, cache: LayerCaches | None = None, lengths: ArrayLike | None = None
    ) -> tuple[Tensor, LayerCaches]:
        """The results for further tokens (batch, t, e), of which `lengths` are real in each row, and the cache."""
        x = as_sequence(self, x, self.e)
        kept = self.new_cache(x.shape[0], x.shape[1]) if cache is None else cache
        readers = self._readers()
        if len(kept.layers) != len(readers):
            raise InputError(f"{self._describe()}: {len(kept.layers)} caches for {len(readers)} mixers.", "its own")
        mask = as_token_mask(self._describe(), x.shape[:-1], None, lengths)

        def mixed(mixer: Mixer, h: Tensor) -> Tensor:
            h = silenced(h, mask)
            if not reads_on(mixer):
                return mixer(h)
            return mixer.extend(h, kept.layers[readers.index(mixer)], lengths)[0]

        y = silenced(self._run(silenced(x, mask), mixed), mask)
        kept.advance(x.shape[1] if lengths is None else arrays.asarray(lengths))
        return y, kept

    def step(self, x: ArrayLike, cache: LayerCaches | None = None) -> tuple[Tensor, LayerCaches]:
        """The result (batch, e) for one more token (batch, e), and the cache with it."""
        return one_more(self.extend, x, cache)

    def _added(self, x: Tensor, y: Tensor) -> Tensor:
        if x.shape != y.shape:
            raise ShapeError(f"{self._describe()}: a mixer makes {y.shape} of {x.shape}.", "mixers that keep the shape")
        return x + y

    def extra_repr(self) -> str:
        return f"{self.e}" + ("" if self.first == "tokens" else f", first={self.first!r}")


def takes_mask(mixer: Callable[..., object]) -> bool:
    """Whether a layer or function has an argument `token_mask`.

    >>> takes_mask(Identity()), takes_mask(TokenMLP(3, 4))
    (False, True)
    """
    try:
        known = inspect.signature(mixer.forward if isinstance(mixer, Module) else mixer).parameters
    except (TypeError, ValueError):
        return False
    return "token_mask" in known


class MixerBlock(MixingBlock):
    r"""\(H = X + \mathrm{MLP}(X^\top)^\top\), \(Y = H + \mathrm{MLP}(H)\), each after a normalization. Book, E.11.9-10.

    >>> import wonderland as wl
    >>> block = wl.nn.MixerBlock(16, 8)
    >>> block(wl.ones((2, 16, 8))).shape, block.num_parameters()
    ((2, 16, 8), 732)

    It is tied to n tokens, and what it computes depends on their order. The MLP along tokens has `token_hidden` units,
    by default e/2, and that along channels `channel_hidden`, by default 4e: with biases and normalization
    \(2np + p + n + 2eq + q + e + 4e\) parameters for p and q of them, linear in n, as time is. The book has the
    channels first: `first="channels"`. Other settings are those of `MixingBlock`.
    """

    def __init__(
        self,
        n: int,
        e: int,
        token_hidden: int | None = None,
        channel_hidden: int | None = None,
        norm: NormLike = "layer",
        activation: ActivationLike = "gelu",
        bias: bool = True,
        dropout: float = 0.0,
        first: str = "tokens",
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        self.n, e = as_int("MixerBlock", "n", n, 1), as_int("MixerBlock", "e", e, 1)
        keys = split(take_key("MixerBlock", key), 2)
        wide = max(e // 2, 1) if token_hidden is None else token_hidden
        tokens = TokenMLP(self.n, wide, activation, bias, dropout, dtype=dtype, key=keys[0])
        channels = FeedForward(e, 4, activation, bias, dropout, channel_hidden, dtype=dtype, key=keys[1])
        super().__init__(tokens, e, channels, norm, first=first, dtype=dtype)

    def extra_repr(self) -> str:
        return f"{self.n}, {super().extra_repr()}"
