"""The base of layers that mix tokens: zeros are put in the place of padding before anything is mixed.

That is done by `where` and not by a product, so that nothing of a padded token, NaN included, reaches a real one or its
gradient.
"""

from __future__ import annotations

from ...core.tensor import Tensor
from ...core.typing import ArrayLike
from ..module.module import Module
from ..sequences.token_masks import as_sequence, as_token_mask, silenced


class TokenMixer(Module):
    """A layer from tokens (..., time, features) to tokens: a subclass writes `mix`, which sees zeros at the padding.

    Padded tokens come out as zeros.
    """

    def mix(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """The tokens mixed; the mask is None if all are real."""
        raise NotImplementedError

    def features(self) -> int | None:
        """The number of features of a token, if the layer is tied to one."""
        return None

    def forward(self, x: ArrayLike, token_mask: ArrayLike | None = None, lengths: ArrayLike | None = None) -> Tensor:
        x = as_sequence(self, x, self.features())
        mask = as_token_mask(type(self).__name__, x.shape[:-1], token_mask, lengths)
        return silenced(self.mix(silenced(x, mask), mask), mask)
