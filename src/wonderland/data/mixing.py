r"""Two examples made one: mixup blends their values, cutmix pastes a patch; the labels are blended.

Both take a batch and mix each example with a partner of the same batch. They work on NumPy arrays, with a NumPy
generator or a seed as `rng`, and on tensors, also inside `jit`, with a key, a stream or a seed of `wl.random` as `rng`.
Book, section 9.2.3.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import numpy as np

from .. import arrays as tensors
from .. import random
from ..arrays.creation import one_hot
from ..core.errors import DTypeError, InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import Array, ArrayLike, KeyLike
from .generators import Seed
from .randomness import as_generator
from .transforms.settings import as_size
from .transforms.values import one_hot_array

Pair: TypeAlias = tuple[Array | Tensor, Array | Tensor]
Randomness: TypeAlias = "Seed | KeyLike"
Values = TypeVar("Values", Array, Tensor)


def mixup(
    x: ArrayLike,
    y: ArrayLike,
    alpha: float = 1.0,
    *,
    lam: ArrayLike | None = None,
    partners: ArrayLike | None = None,
    num_classes: int | None = None,
    per_sample: bool = True,
    rng: Randomness = None,
) -> Pair:
    r"""\(x = \lambda x_1 + (1-\lambda) x_2\), and y likewise, with \(\lambda \sim \mathrm{Beta}(\alpha, \alpha)\).

    >>> import numpy as np, wonderland as wl
    >>> x, y = wl.data.mixup(np.array([[0.0], [1.0]]), np.array([0, 1]), lam=0.75, partners=[1, 0], num_classes=2)
    >>> x.tolist(), y.tolist()
    ([[0.25], [0.75]], [[0.75, 0.25], [0.25, 0.75]])

    x is a batch (b, ...) of floating numbers and y its labels (b, k) as probabilities; class numbers (b,) need
    `num_classes`, which makes them one-hot first. \(x_2\) is a random other order of the batch, or the one of
    `partners`; \(\lambda\) is drawn for each example, or once with `per_sample=False`, or given. alpha=1 is uniform.
    Train with a cross-entropy that takes probabilities. Blended images look blurred; for them there is `cutmix`.
    Book, equations 9.5 and 9.6.
    """
    inputs, labels = _batch("mixup", x, y, num_classes)
    if inputs.dtype.kind in "bui":
        raise DTypeError(
            f"mixup: values of {inputs.dtype} cannot be blended.", "wl.data.transforms.ToFloat() before it"
        )
    draw = _Draw("mixup", inputs, rng)
    others = draw.partners(partners)
    share = draw.share(alpha, lam, per_sample)
    return _blend(inputs, inputs[others], share), _blend(labels, labels[others], share)


def cutmix(
    x: ArrayLike,
    y: ArrayLike,
    alpha: float = 1.0,
    *,
    patch: int | tuple[int, int] | None = None,
    label_mode: str = "area",
    lam: ArrayLike | None = None,
    partners: ArrayLike | None = None,
    num_classes: int | None = None,
    per_sample: bool = True,
    rng: Randomness = None,
) -> Pair:
    r"""\(x = M \odot x_1 + (1 - M) \odot x_2\), where M is 1 inside a patch; labels are blended by a share \(\lambda\).

    >>> import numpy as np, wonderland as wl
    >>> images = np.stack([np.zeros((256, 256, 1)), np.ones((256, 256, 1))])
    >>> x, y = wl.data.cutmix(images, np.array([0, 1]), patch=32, partners=[1, 0], num_classes=2, rng=0)
    >>> y[0].tolist()  # 32 * 32 of 256 * 256 pixels are its own
    [0.015625, 0.984375]

    x is a batch of images (b, h, w, c) of any type. The patch has a fixed size (`patch`, e.g. 32), or the share
    \(\lambda \sim \mathrm{Beta}(\alpha, \alpha)\) of the area; it lies at a random place inside the image.
    `label_mode="area"` blends labels by the share of pixels that are the example's own (Yun et al., 2019), "random" by
    a \(\lambda\) of its own draw, as the book says it. The other options are those of `mixup`. Book, section 9.2.3.
    """
    if label_mode not in ("area", "random"):
        raise InputError(f"cutmix: label_mode={label_mode!r}.", "'area' or 'random'")
    images, labels = _batch("cutmix", x, y, num_classes)
    if images.ndim != 4:
        raise ShapeError(f"cutmix: {images.shape} is not the shape of a batch of images.", "(b, h, w, c)")
    _, h, w, _ = images.shape
    draw = _Draw("cutmix", images, rng)
    others = draw.partners(partners)
    share = draw.share(alpha, lam, per_sample)
    xp = draw.functions
    if patch is None:
        height, width = xp.round(h * xp.sqrt(share)), xp.round(w * xp.sqrt(share))
    else:
        height, width = (xp.zeros_like(share) + size for size in as_size("cutmix", patch))
        if patch_size := [size for size, most in zip(as_size("cutmix", patch), (h, w), strict=True) if size > most]:
            raise ShapeError(f"cutmix: a patch of {patch_size[0]} pixels in images of {h} x {w}.", "a smaller patch")
    top = xp.floor(draw.uniform(share.shape) * (h - height + 1))
    left = xp.floor(draw.uniform(share.shape) * (w - width + 1))
    inside = _between(xp, h, top, height)[:, :, None] & _between(xp, w, left, width)[:, None, :]  # (b or 1, h, w)
    mixed = xp.where(inside[..., None], images, images[others])
    if label_mode == "area":
        share = height * width / (h * w)
    elif patch is None:
        share = draw.share(alpha, lam, per_sample)  # of its own, the first one was for the patch
    return mixed, _blend(labels, labels[others], share)


class MixUp:
    """`mixup` as a transform of batches (x, y), for a loader's `batch_transform`.

    >>> import numpy as np, wonderland as wl
    >>> mix = wl.data.MixUp(alpha=0.2, num_classes=10)
    >>> x, y = mix((np.zeros((4, 8)), np.array([1, 2, 3, 4])), np.random.default_rng(0))
    >>> y.shape
    (4, 10)
    """

    random = True
    changes = frozenset({"mixing"})

    def __init__(self, alpha: float = 1.0, **options: Any) -> None:
        self.alpha, self.options = alpha, options

    def __call__(self, batch: tuple[ArrayLike, ArrayLike], rng: Randomness = None) -> Pair:
        x, y = batch
        return mixup(x, y, self.alpha, rng=rng, **self.options)


class CutMix(MixUp):
    """`cutmix` as a transform of batches (x, y), for a loader's `batch_transform`.

    >>> import numpy as np, wonderland as wl
    >>> mix = wl.data.CutMix(num_classes=10)
    >>> x, y = mix((np.zeros((4, 8, 8, 1)), np.array([1, 2, 3, 4])), np.random.default_rng(0))
    >>> x.shape, y.shape
    ((4, 8, 8, 1), (4, 10))
    """

    def __call__(self, batch: tuple[ArrayLike, ArrayLike], rng: Randomness = None) -> Pair:
        x, y = batch
        return cutmix(x, y, self.alpha, rng=rng, **self.options)


class _Draw:
    """What is random about a mixture, as arrays with a NumPy generator or as tensors with a key."""

    def __init__(self, name: str, x: Array | Tensor, rng: Any) -> None:
        self.name, self.count, self.rng = name, x.shape[0], rng
        self.functions: Any = tensors if isinstance(x, Tensor) else np
        self.stream: random.Stream | None = None
        if isinstance(x, Tensor):
            self.stream = rng if isinstance(rng, random.Stream) else random.Stream(rng)
        else:
            self.rng = as_generator(name, rng)
        # labels and shares are computed in the type of x, or in float32 for images of integers
        self.dtype = x.dtype if x.dtype.kind == "f" else np.dtype(np.float32)

    def partners(self, given: ArrayLike | None) -> Any:
        if given is not None:
            others = np.asarray(given)
            if others.shape != (self.count,) or others.dtype.kind not in "ui":
                raise ShapeError(f"{self.name}: partners of shape {others.shape}.", f"{self.count} indices")
            return tensors.asarray(others) if self.stream is not None else others
        if self.stream is None:
            return self.rng.permutation(self.count)
        return random.permutation(self.count, key=self.stream)

    def share(self, alpha: float, given: ArrayLike | None, per_sample: bool) -> Any:
        """Lambda: (b,), or (1,) for all."""
        count = self.count if per_sample else 1
        if given is not None:
            value = self.functions.asarray(given, dtype=self.dtype)
            if not isinstance(given, Tensor) and not bool(np.all((np.asarray(given) >= 0) & (np.asarray(given) <= 1))):
                raise InputError(f"{self.name}: lam={given!r}.", "shares from 0 to 1")
            if value.ndim > 1 or (value.ndim == 1 and value.shape[0] not in (1, self.count)):
                raise ShapeError(f"{self.name}: lam of shape {value.shape}.", f"one number or {self.count}")
            return value.reshape(-1)
        if not alpha > 0:
            raise InputError(f"{self.name}: alpha={alpha!r}.", "above 0; lam=1.0 mixes nothing")
        if self.stream is None:
            return self.rng.beta(alpha, alpha, count).astype(self.dtype)
        return random.beta((count,), alpha, alpha, key=self.stream, dtype=self.dtype)

    def uniform(self, shape: tuple[int, ...]) -> Any:
        if self.stream is None:
            return self.rng.random(shape).astype(self.dtype)
        return random.uniform(shape, key=self.stream, dtype=self.dtype)


def _batch(name: str, x: ArrayLike, y: ArrayLike, num_classes: int | None) -> tuple[Any, Any]:
    """The batch as arrays or tensors, with labels as probabilities (b, k)."""
    on_tensors = isinstance(x, Tensor) or isinstance(y, Tensor)
    convert: Any = tensors.asarray if on_tensors else np.asarray
    inputs, labels = convert(x), convert(y)
    if inputs.ndim == 0 or labels.ndim == 0 or inputs.shape[0] != labels.shape[0] or inputs.shape[0] == 0:
        raise ShapeError(
            f"{name}: inputs {inputs.shape} and targets {labels.shape}.", "a batch: the same first axis, not empty"
        )
    if labels.dtype.kind in "bui":
        if num_classes is None or labels.ndim != 1:
            raise DTypeError(
                f"{name}: class numbers ({labels.dtype} of shape {labels.shape}) cannot be blended.",
                "num_classes=..., or one-hot labels (b, k)",
            )
        labels = one_hot(labels, num_classes) if on_tensors else one_hot_array(name, labels, num_classes)
    return inputs, labels


def _blend(first: Values, second: Values, share: Values) -> Values:
    lam = share.astype(first.dtype).reshape((-1,) + (1,) * (first.ndim - 1))
    return lam * first + (1 - lam) * second


def _between(xp: Any, size: int, start: Values, length: Values) -> Values:
    """(b, size): which places lie in the patch."""
    places = xp.arange(size)
    return (places >= start[:, None]) & (places < (start + length)[:, None])
