"""What image models share: a backbone that makes maps of features, a pooling, and a head. Book, section 7.2.2."""

from __future__ import annotations

from collections.abc import Callable

from ... import arrays
from ...arrays.conversion import as_tensor
from ...core.arguments import as_int, as_list, shown
from ...core.errors import InputError, ShapeError
from ...core.tensor import Tensor
from ...core.typing import ArrayLike, ShapeLike
from ...nn.functional.windows import with_one_batch
from ...nn.module.module import Module

POOLINGS = ("mean", "max", "sum", "flatten")


class ImageClassifier(Module):
    r"""\(y = \operatorname{head}(h)\), \(h = \frac{1}{h'w'}\sum_{ij} H_{ij}\), H = backbone(x). Book, E.7.10 to E.7.12.

        images (..., h, w, c) -> backbone -> maps (..., h', w', c') -> pool -> embeddings (..., c') -> head -> (..., m)

    >>> import wonderland as wl
    >>> backbone = wl.nn.Sequential(wl.nn.Conv2d(3, 8, 3), wl.relu)
    >>> model = wl.models.ImageClassifier(backbone, wl.nn.Linear(8, 10))
    >>> x = wl.ones((2, 28, 28, 3))
    >>> model.features(x).shape, model.embed(x).shape, model(x).shape, model(wl.ones((2, 32, 20, 3))).shape
    ((2, 26, 26, 8), (2, 8), (2, 10), (2, 10))

    `pool` is "mean" (also "max", "sum"), over all pixels, so that images of any size fit; or "flatten", which keeps the
    places and ties the head to one size. For transfer, `wl.nn.replace_head(model, 5, "head")` and
    `model.freeze("backbone")`.
    """

    def __init__(self, backbone: Callable[..., Tensor], head: Callable[..., Tensor], pool: str = "mean") -> None:
        if pool not in POOLINGS:
            raise InputError(f"{type(self).__name__}: pool={shown(pool)}.", f"one of {', '.join(map(repr, POOLINGS))}")
        self.backbone = backbone
        self.head = head
        self.pool = pool

    def features(self, x: ArrayLike) -> Tensor:
        """The last maps (..., h', w', c'); each of their places looks at a region of the image."""
        name = type(self).__name__
        one, lead = with_one_batch(name, as_tensor(name, x), 2)  # batch normalization takes one axis of examples
        maps = self.backbone(one)
        return maps if len(lead) == 1 else arrays.reshape(maps, (*lead, *maps.shape[1:]))

    def embed(self, x: ArrayLike) -> Tensor:
        """The last latent representation (..., c'), of which the head makes scores."""
        maps = self.features(x)  # (..., h', w', c')
        if self.pool == "flatten":
            return arrays.flatten(maps, -3, -1)
        return getattr(arrays, self.pool)(maps, axis=(-3, -2))

    def forward(self, x: ArrayLike) -> Tensor:
        return self.head(self.embed(x))

    def extra_repr(self) -> str:
        return f"pool={self.pool!r}"


def as_image_shape(name: str, size: ShapeLike, least: int = 1) -> tuple[int, int, int]:
    """(height, width, channels) of images, given so or as (height, width) of images with one channel.

    >>> as_image_shape("LeNet", (28, 28))
    (28, 28, 1)
    """
    sizes = [as_int(name, "an image size", n, 1) for n in as_list(name, "image_size", size)]
    if len(sizes) not in (2, 3):
        raise ShapeError(f"{name}: an image of shape {tuple(sizes)}.", "(height, width) or (height, width, channels)")
    height, width, channels = (*sizes, 1)[:3]
    if min(height, width) < least:
        raise ShapeError(f"{name}: images of {height} x {width} pixels.", f"{least} or more a side")
    return height, width, channels
