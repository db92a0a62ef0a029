"""The block that gives a linear recurrence back what it lacks. Book, section 13.3.1."""

from __future__ import annotations

from collections.abc import Callable

from ...core.errors import InputError
from ...core.tensor import Tensor
from ...core.typing import DTypeLike, KeyLike
from ..layers.fully_connected import ActivationLike
from ..layers.identity import Identity
from ..mixing.feed_forward import FeedForward, GatedFeedForward
from ..mixing.mixing_block import Mixer, MixingBlock, NormLike

__all__ = ["SSMBlock"]


class SSMBlock(MixingBlock):
    r"""\(H = X + \mathrm{SSM}(\mathrm{norm}(X))\), \(Y = H + \mathrm{MLP}(\mathrm{norm}(H))\). Book, section 13.3.1.

    >>> import wonderland as wl
    >>> block = wl.nn.SSMBlock(wl.nn.LRU(8, 16, 8), 8)
    >>> y, cache = block.extend(wl.ones((2, 5, 8)), None)
    >>> block.step(wl.ones((2, 8)), cache)[0].shape
    (2, 8)

    A stack of state-space models alone is one linear map, however many there are; what makes it more is done to each
    token by itself. `feed_forward` is "glu", a `GatedFeedForward` with a sigmoid; "mlp", a `FeedForward`; a layer;
    or None, as around a `MambaBlock`, which has gates of its own. Then there is one norm and \(Y = H\). `hidden`,
    `activation`, `bias` and `dropout` are those of the MLP, the rest is that of `MixingBlock`.
    """

    def __init__(
        self,
        ssm: Callable[..., Tensor],
        e: int,
        feed_forward: str | Callable[..., Tensor] | None = "glu",
        norm: NormLike = "layer",
        hidden: int | None = None,
        activation: ActivationLike = None,
        bias: bool = True,
        dropout: float = 0.0,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        channels: Callable[..., Tensor]
        if feed_forward is None:
            channels = Identity()
        elif feed_forward == "glu":
            gate = "sigmoid" if activation is None else activation
            channels = GatedFeedForward(e, hidden, gate, bias, dropout, dtype=dtype, key=key)
        elif feed_forward == "mlp":
            inner = "gelu" if activation is None else activation
            channels = FeedForward(e, 4, inner, bias, dropout, hidden, dtype=dtype, key=key)
        elif callable(feed_forward):
            channels = feed_forward
        else:
            raise InputError(f"SSMBlock: feed_forward={feed_forward!r}.", "'glu', 'mlp', a layer or None")
        super().__init__(ssm, e, channels, norm, dtype=dtype)
        self.single = feed_forward is None
        if self.single:
            self.channel_norm = Identity()

    def _run(self, x: Tensor, mixed: Callable[[Mixer, Tensor], Tensor]) -> Tensor:
        if not self.single:
            return super()._run(x, mixed)
        return self._added(x, mixed(self.token_mixer, self.token_norm(x)))
