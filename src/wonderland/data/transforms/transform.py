r"""What a transform is: \(x' = T(x; c)\) with parameters \(c \sim p(c)\) that are drawn anew each time.

`sample_params(rng, count)` draws the parameters of `count` images, arrays with a first axis of that size, and
`apply(x, params)` computes with them and nothing else. So a draw can be kept, repeated and tested. Parameters do not
depend on the size of the image. Book, section 9.2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from ...core.errors import DTypeError, InputError, ShapeError
from ...core.typing import ArrayLike, DTypeLike
from ..generators import Seed
from ..randomness import as_generator

Params = Any  # an array, or a tuple or dict of arrays, with the images along the first axis


class Transform:
    """The base of transforms of images (h, w), (h, w, c) and of batches (b, h, w, c), channels last.

    >>> import numpy as np, wonderland as wl
    >>> class Inverse(wl.data.transforms.Transform):
    ...     random = True
    ...     changes = frozenset({"color"})
    ...     def sample_params(self, rng, count=1):
    ...         return rng.random(count) < 0.5
    ...     def apply_batch(self, images, params):
    ...         return np.where(params[:, None, None, None], 255 - images, images)
    >>> Inverse()(np.zeros((2, 1, 1, 1), np.uint8), np.random.default_rng(0)).ravel()
    array([  0, 255], dtype=uint8)

    - `random`: whether it draws; then it is called as `transform(x, rng)`, where `rng` is a NumPy generator, a seed, or
      None for the next numbers of the global stream (`wl.random.seed`).
    - `per_sample`: each image of a batch has its own draw (the default), or one draw is for all, as in torchvision.
    - `changes`: what it does to the image, for `check_label_safety`.
    - After `eval()` nothing is drawn: the parameters are `neutral_params`, those that change nothing.

    The type of the array stays, and integers keep their range. A tuple (x, y, ...) has its x transformed.
    """

    random: bool = False
    changes: frozenset[str] = frozenset()
    per_sample: bool = True
    training: bool = True

    def sample_params(self, rng: np.random.Generator, count: int = 1) -> Params:
        """The parameters of `count` images."""
        return None

    def neutral_params(self, count: int = 1) -> Params:
        """The parameters that change nothing; None if the transform is then left out."""
        return None

    def apply_batch(self, images: np.ndarray, params: Params) -> np.ndarray:
        """The images (b, h, w, c) transformed; `params` has an entry for each."""
        raise NotImplementedError(f"{type(self).__name__}: def apply_batch(self, images, params)")

    def apply(self, x: ArrayLike, params: Params = None) -> np.ndarray:
        """The image or batch x transformed with the given parameters, of one image or of each."""
        images, restore = as_images(type(self).__name__, x)
        return restore(self.apply_batch(images, _for_each(type(self).__name__, params, len(images))))

    def __call__(self, x: ArrayLike, rng: Seed = None) -> Any:
        if isinstance(x, (tuple, list)):
            return (self(x[0], rng), *x[1:])
        if not self.random:
            return self.apply(x, None)
        if not self.training:
            params = self.neutral_params()
            return np.asarray(x) if params is None else self.apply(x, params)
        count = np.shape(x)[0] if self.per_sample and np.ndim(x) == 4 else 1
        return self.apply(x, self.sample_params(as_generator(type(self).__name__, rng), count))

    def train(self, mode: bool = True) -> Self:
        """Draw parameters (the default), or not."""
        self.training = mode
        return self

    def eval(self) -> Self:
        """Draw no parameters: every random transform does nothing, or the same to all."""
        return self.train(False)

    def __repr__(self) -> str:
        settings = {k: v for k, v in vars(self).items() if not k.startswith("_") and k not in ("random", "training")}
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in settings.items())})"


class Compose(Transform):
    """Transforms one after another. `deny` refuses those that change what the label depends on. Book, box C.9.1.

    >>> import numpy as np, wonderland as wl
    >>> T = wl.data.transforms
    >>> transform = T.Compose([T.RandomHorizontalFlip(p=0.5), T.RandomRotation(10)])
    >>> transform(np.zeros((32, 24, 24, 3), np.uint8), np.random.default_rng(0)).shape
    (32, 24, 24, 3)

    Plain functions of an array can stand among them; those that declare `random = True` are called with a generator.
    """

    def __init__(self, transforms: Sequence[Callable[..., Any]], *, deny: Sequence[str] = ()) -> None:
        self.transforms = list(transforms)
        for transform in self.transforms:
            if not callable(transform):
                raise InputError(f"Compose: {transform!r} is not a transform.", "a list of transforms")
        self.random = any(getattr(transform, "random", False) for transform in self.transforms)
        for transform in self.transforms:
            denied = sorted(frozenset(deny) & getattr(transform, "changes", frozenset()))
            if denied:
                raise InputError(
                    f"Compose: {transform!r} makes the change {denied[0]!r}, which is denied.", "leave it out"
                )

    @property
    def changes(self) -> frozenset[str]:  # type: ignore[override]  # what its parts change
        """All that the parts change."""
        return frozenset().union(*(getattr(transform, "changes", frozenset()) for transform in self.transforms))

    def __call__(self, x: ArrayLike, rng: Seed = None) -> Any:
        if isinstance(x, (tuple, list)):
            return (self(x[0], rng), *x[1:])
        generator = as_generator("Compose", rng) if self.random and self.training else rng
        for transform in self.transforms:
            x = transform(x, generator) if getattr(transform, "random", False) else transform(x)
        return x

    def sample_params(self, rng: np.random.Generator, count: int = 1) -> Params:
        return [t.sample_params(rng, count) if isinstance(t, Transform) else None for t in self.transforms]

    def neutral_params(self, count: int = 1) -> Params:
        return [t.neutral_params(count) if isinstance(t, Transform) else None for t in self.transforms]

    def apply(self, x: Any, params: Params = None) -> np.ndarray:
        chosen = [None] * len(self.transforms) if params is None else params
        for transform, values in zip(self.transforms, chosen, strict=True):
            x = transform.apply(x, values) if isinstance(transform, Transform) else transform(x)
        return x

    def train(self, mode: bool = True) -> Self:
        for transform in self.transforms:
            if isinstance(transform, Transform):
                transform.train(mode)
        return super().train(mode)

    def __repr__(self) -> str:
        return f"Compose([{', '.join(map(repr, self.transforms))}])"


def as_images(name: str, x: ArrayLike) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """The array as a batch (b, h, w, c), and what gives a result the axes that the array had."""
    array = np.asarray(x)
    if array.dtype.kind not in "buif":
        raise DTypeError(f"{name}: images of {array.dtype}.", "uint8 in 0..255 or floating numbers")
    if array.ndim not in (2, 3, 4) or 0 in array.shape[-3:]:
        raise ShapeError(f"{name}: {array.shape} is not the shape of images.", "(h, w), (h, w, c) or (b, h, w, c)")
    if array.ndim == 2:
        return array[None, :, :, None], lambda y: y[0, :, :, 0] if y.shape[-1] == 1 else y[0]
    if array.ndim == 3:
        return array[None], lambda y: y[0]
    return array, lambda y: y


def _for_each(name: str, params: Params, count: int) -> Params:
    """Parameters of one image repeated for each of `count`; those of as many as they are."""
    if params is None:
        return None
    if isinstance(params, dict):
        return {key: _for_each(name, value, count) for key, value in params.items()}
    if isinstance(params, (tuple, list)):
        return type(params)(_for_each(name, value, count) for value in params)
    values = np.atleast_1d(params)
    if len(values) not in (1, count):
        raise ShapeError(f"{name}: parameters of {len(values)} images for {count}.", "one for each, or one for all")
    return np.broadcast_to(values, (count, *values.shape[1:]))


def widened(images: np.ndarray) -> np.ndarray:
    """Images as floating numbers to compute with: float32, or float64 as it is."""
    return images if images.dtype == np.float64 else images.astype(np.float32, copy=False)


def narrowed(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Computed values in the type of the images; integers are rounded and kept in their range."""
    if dtype.kind in "ui":
        limits = np.iinfo(dtype)
        return np.clip(np.rint(values), limits.min, limits.max).astype(dtype)
    if dtype.kind == "b":
        return values >= 0.5
    return values.astype(dtype, copy=False)


def full_scale(dtype: np.dtype) -> float:
    """The value of white: the largest integer, 1 for floating numbers."""
    return float(np.iinfo(dtype).max) if dtype.kind in "ui" else 1.0


def per_image(values: ArrayLike, dtype: DTypeLike = np.float32) -> np.ndarray:
    """One number for each image, (b, 1, 1, 1)."""
    return np.asarray(values, dtype)[:, None, None, None]
