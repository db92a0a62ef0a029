"""Dropout. Book, section 9.3.1."""

from __future__ import annotations

from typing import Any

from ..errors import InputError
from ..random.streams import Stream
from ..tensor import Tensor
from . import functional as F  # noqa: N812 - as everybody calls it
from .module import Module


class Dropout(Module):
    r"""\(x \odot b/(1-p)\), \(b \sim \mathrm{Bernoulli}(1-p)\), while training; x otherwise. Book, section 9.3.1.

    >>> import wonderland as wl
    >>> layer = wl.nn.Dropout(0.5, key=wl.random.key(0))
    >>> wl.unique(layer(wl.ones(100)))
    tensor([0., 2.])
    >>> layer.eval()(wl.ones(3))
    tensor([1., 1., 1.])

    With `key` (a key, a seed or a stream) the layer has a random stream of its own, which belongs to its state; else
    it draws from the global stream.
    """

    def __init__(self, p: float = 0.5, key: Any = None) -> None:
        if not 0.0 <= p <= 1.0:
            raise InputError(f"Dropout: p={p!r} is not a probability.", "a number from 0 to 1")
        self.p = p
        self.stream = key if key is None or isinstance(key, Stream) else Stream(key)

    def forward(self, x: Any) -> Tensor:
        return F.dropout(x, self.p, self.training, key=self.stream)

    def extra_repr(self) -> str:
        return f"p={self.p}"
