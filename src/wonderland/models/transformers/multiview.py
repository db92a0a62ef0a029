"""Several views of one object: a network for each view, a block over views, a mean, a head. Book, chapter 10.

views (b, v, ...) --backbone, the same for all--> (b, v, e) --mix--> (b, v, e) --pool--> (b, e) --head--> (b, classes)

Whatever stands between backbone and pooling must commute with permutations of the views; then the whole does not depend
on their order. No part knows how many there are.
"""

from __future__ import annotations

from ... import arrays
from ...arrays.conversion import as_real
from ...core.arguments import as_int, shown
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, DTypeLike, KeyLike
from ...nn.activations.piecewise import ReLU
from ...nn.attention.blocks import TransformerBlock
from ...nn.layers.extra_tokens import AppendTokens
from ...nn.layers.identity import Identity
from ...nn.layers.linear import Linear
from ...nn.layers.token_pooling import TokenPool
from ...nn.mixing.sets import DeepSets
from ...nn.module.module import Module
from ...nn.sequences.token_masks import as_token_mask, silenced
from ...random.keys import split
from ...random.streams import take_key

__all__ = ["MultiViewClassifier"]

MIXINGS = ("attention", "average", "deep_sets")


class MultiViewClassifier(Module):
    r"""\(y = \operatorname{head}(\frac{1}{v}\sum_i \operatorname{mix}(g(x_1), \dots, g(x_v))_i)\). Book, chapter 10.

    >>> import wonderland as wl
    >>> backbone = wl.nn.Sequential(wl.nn.Flatten(), wl.nn.Linear(64, 32), wl.relu)
    >>> model = wl.models.MultiViewClassifier(backbone, 32, 10, num_heads=4)
    >>> model(wl.ones((5, 2, 8, 8, 1))).shape, model(wl.ones((5, 7, 8, 8, 1))).shape  # any number of views
    ((5, 10), (5, 10))

    `backbone` makes vectors (n, e) of examples (n, ...); all views go through it as one batch, so batch normalization
    has its statistics over all of them. `mixing` is "attention", a transformer block without positions; "average",
    nothing at all; or "deep_sets", \(\operatorname{relu}(X A + \bar X B + b)\). Or it is a module of your own, from
    (batch, v, e) to the same. `pooling` is the "mean" over views, or "cls": a trained token beside the views, whose
    result goes to the head. `view_mask` (batch, v) says which views are there, if some objects have fewer.
    """

    def __init__(
        self,
        backbone: Module,
        e: int,
        classes: int,
        mixing: str | Module = "attention",
        pooling: str = "mean",
        num_heads: int = 4,
        dtype: DTypeLike | None = None,
        key: KeyLike = None,
    ) -> None:
        name = "MultiViewClassifier"
        if pooling not in ("mean", "cls"):
            raise InputError(f"{name}: pooling={shown(pooling)}.", '"mean" or "cls"')
        if isinstance(mixing, str) and mixing not in MIXINGS:
            raise InputError(f"{name}: mixing={shown(mixing)}.", f"one of {', '.join(map(repr, MIXINGS))}, or a module")
        if pooling == "cls" and mixing == "average":
            raise InputError(f"{name}: a class token that nothing is mixed with.", 'pooling="mean"')
        self.e = e = as_int(name, "e", e, 1)
        keys = split(take_key(name, key), 3)
        self.backbone = backbone
        self.class_token = AppendTokens(1, e, dtype=dtype, key=keys[0]) if pooling == "cls" else None
        self.mixing: Module
        if isinstance(mixing, Module):
            self.mixing = mixing
        elif mixing == "attention":
            self.mixing = TransformerBlock(e, num_heads, dtype=dtype, key=keys[1])
        elif mixing == "deep_sets":
            self.mixing = DeepSets(e, e, dtype=dtype, key=keys[1])
        else:
            self.mixing = Identity()
        self.activation = ReLU() if mixing == "deep_sets" else Identity()
        self.pool = TokenPool("mean", e)
        self.head = Linear(e, classes, dtype=dtype, key=keys[2])

    def features(self, views: ArrayLike) -> Tensor:
        """The vectors of the views, each by itself: (b, v, ...) to (b, v, e)."""
        x = as_real("MultiViewClassifier", views)
        if x.ndim < 3:
            raise ShapeError(f"MultiViewClassifier: views of shape {x.shape}.", "(batch, views, ...)")
        h = self.backbone(arrays.reshape(x, (-1, *x.shape[2:])))  # (b v, e)
        if h.shape != (x.shape[0] * x.shape[1], self.e):
            raise ShapeError(
                f"MultiViewClassifier: the backbone makes {h.shape} of {x.shape[0] * x.shape[1]} views.",
                f"vectors (n, {self.e})",
            )
        return arrays.reshape(h, (*x.shape[:2], self.e))

    def forward(self, views: ArrayLike, view_mask: ArrayLike | None = None) -> Tensor:
        x = as_real("MultiViewClassifier", views)
        real = as_token_mask("MultiViewClassifier", x.shape[:2], view_mask)
        h = silenced(self.features(silenced(x, real)), real)  # (b, v, e)
        seen = real
        if self.class_token is not None:
            h, seen = self.class_token(h), self.class_token.mask(real)
        mixed = self.mixing(h) if seen is None or isinstance(self.mixing, Identity) else self.mixing(h, token_mask=seen)
        h = self.activation(mixed)
        return self.head(self.pool(h, token_mask=seen) if self.class_token is None else h[:, -1])

    def extra_repr(self) -> str:
        return str(self.e)
