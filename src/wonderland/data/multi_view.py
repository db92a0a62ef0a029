"""Several views of every example: the same image under random augmentations, with one label. Book, chapter 10."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.arguments import as_function, as_int
from ..core.errors import InputError, ShapeError
from .dataset import Examples, MappedDataset, is_random, transformed
from .generators import Seed
from .randomness import as_generator


class MultiView(MappedDataset[Any]):
    r"""v views of each example, \(x\ (h, w, c) \to x'\ (v, h, w, c)\), with its one label. Book, F.10.8.

    >>> import wonderland as wl
    >>> images, labels = wl.data.make_shapes(20, size=8)
    >>> flips = wl.data.transforms.RandomHorizontalFlip()
    >>> dataset = wl.data.MultiView(wl.data.TensorDataset(images, labels), flips, views=4)
    >>> x, y = dataset[0]
    >>> x.shape, int(y)
    ((4, 8, 8, 1), 0)
    >>> xb, yb = next(iter(wl.data.DataLoader(dataset, batch_size=5)))
    >>> xb.shape, yb.shape
    ((5, 4, 8, 8, 1), (5,))

    `transform(x, rng)` (or `transform(x)`, if it does not declare `random = True`) makes a view of the first part of an
    example, or of the whole example if it is no tuple; all views have one shape. They are drawn anew in every epoch of
    a loader, and are the same for every number of workers. `RandomViews` varies their number from batch to batch.
    """

    def __init__(self, dataset: Examples[object], transform: Callable[..., object], views: int = 2) -> None:
        self.transform = as_function("MultiView", transform)
        self.views = as_int("MultiView", "views", views, least=1)
        super().__init__(dataset, _Views(self.transform, self.views))


class _Views:
    """An example with v views in the place of its first part."""

    def __init__(self, transform: Callable[..., object], views: int) -> None:
        self.transform, self.views, self.random = transform, views, is_random(transform)

    def __call__(self, example: Any, rng: Seed = None) -> Any:
        if isinstance(example, tuple):
            return (self(example[0], rng), *example[1:])
        # one generator for all views: each takes the numbers that come after those of the one before
        generator = as_generator("MultiView", rng)
        views = [np.asarray(transformed(self.transform, example, generator)) for _ in range(self.views)]
        shapes = sorted({view.shape for view in views})
        if len(shapes) > 1:
            raise ShapeError(
                f"MultiView: the views of one example have the shapes {shapes[0]} and {shapes[1]}.",
                "a transform that gives one shape, such as a crop to a fixed size",
            )
        return np.stack(views)


class RandomViews:
    """A transform of batches that keeps the first few of their views: `least` to all, another number in each batch.

    >>> import wonderland as wl
    >>> images, labels = wl.data.make_shapes(60, size=8)
    >>> dataset = wl.data.MultiView(wl.data.TensorDataset(images, labels), wl.data.transforms.RandomVerticalFlip(), 5)
    >>> loader = wl.data.DataLoader(dataset, batch_size=10, batch_transform=wl.data.RandomViews(2))
    >>> sorted({x.shape[1] for x, y in loader}) <= [2, 3, 4, 5]
    True

    Views are alike, so the first ones are as good as any. A model that takes every number of views, since it pools over
    them, learns not to rely on one. Book, chapter 10 (exercises).
    """

    random = True

    def __init__(self, least: int = 1) -> None:
        self.least = as_int("RandomViews", "least", least, least=1)

    def __call__(self, batch: Any, rng: Seed = None) -> Any:
        if isinstance(batch, tuple):
            return (self(batch[0], rng), *batch[1:])
        views = np.shape(batch)[1] if np.ndim(batch) > 1 else 0
        if views < self.least:
            raise InputError(
                f"RandomViews: a batch of shape {np.shape(batch)} has {views} views, fewer than least={self.least}.",
                "(batch, views, ...), as MultiView gives it",
            )
        return batch[:, : int(as_generator("RandomViews", rng).integers(self.least, views + 1))]
