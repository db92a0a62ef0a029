"""RandAugment: a few operations out of many, all with the same strength. Book, section 9.2.3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...core.arguments import as_int, as_number
from ...core.errors import InputError
from .blurring import _band
from .colors import Brightness, Contrast, Saturation
from .resizing import separable
from .transform import Params, Transform, full_scale, narrowed, widened
from .warping import inverse_matrices, warp

FULL = 30.0  # the largest magnitude


class Operation(NamedTuple):
    """An operation on images (b, h, w, c) by strengths (b,) in [-1, 1], 0 for nothing; and what it changes."""

    run: Callable[[np.ndarray, np.ndarray], np.ndarray]
    changes: frozenset[str]


def _moved(
    images: np.ndarray,
    degrees: np.ndarray | float = 0.0,
    shear: np.ndarray | float = 0.0,
    shift: tuple[np.ndarray | float, np.ndarray | float] = (0.0, 0.0),
) -> np.ndarray:
    b = len(images)
    matrices = inverse_matrices(np.broadcast_to(degrees, (b,)), 1.0, shear)
    return warp(images, matrices, np.rint(np.broadcast_to(np.stack(np.broadcast_arrays(*shift), -1), (b, 2))))


def _shear_rows(images: np.ndarray, s: np.ndarray) -> np.ndarray:
    # a shear of columns, with rows and columns exchanged
    return _moved(images.transpose(0, 2, 1, 3), shear=17 * s).transpose(0, 2, 1, 3)


def _sharper(images: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Away from (or, for negative strengths, towards) an average over the nearest pixels."""
    if min(images.shape[1:3]) < 2:
        return images
    kernel = np.array([[0.25, 0.5, 0.25]])
    values = widened(images)
    smooth = separable(values, _band(kernel, images.shape[1]), _band(kernel, images.shape[2]))
    factor = s.astype(values.dtype)[:, None, None, None]
    result = values + 0.9 * factor * (values - smooth)
    return narrowed(np.clip(result, 0, full_scale(images.dtype)), images.dtype)


def _posterized(images: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Fewer levels: 256 at strength 0, 16 at 1."""
    dropped = 2.0 ** np.round(4 * abs(s))[:, None, None, None]
    bytes_ = np.floor(images * (255.0 / full_scale(images.dtype)) + 1e-3)
    coarse = np.floor(bytes_ / dropped) * dropped * (full_scale(images.dtype) / 255.0)
    return np.where(dropped == 1, images, narrowed(coarse, images.dtype))


def _solarized(images: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Values above a threshold are inverted; at strength 0 there are none."""
    top = full_scale(images.dtype)
    threshold = top * (1 - abs(s))[:, None, None, None]
    return np.where(images > threshold, narrowed(top - widened(images), images.dtype), images)


def _named(*names: str) -> frozenset[str]:
    return frozenset(names)


OPERATIONS: dict[str, Operation] = {
    "identity": Operation(lambda x, s: x, _named()),
    "rotate": Operation(lambda x, s: _moved(x, degrees=30 * s), _named("rotation")),
    "shear_x": Operation(lambda x, s: _moved(x, shear=17 * s), _named("shear")),
    "shear_y": Operation(_shear_rows, _named("shear")),
    "translate_x": Operation(lambda x, s: _moved(x, shift=(0.0, 0.3 * s * x.shape[2])), _named("translation")),
    "translate_y": Operation(lambda x, s: _moved(x, shift=(0.3 * s * x.shape[1], 0.0)), _named("translation")),
    "brightness": Operation(lambda x, s: Brightness(0).apply_batch(x, 1 + 0.9 * s), Brightness.changes),
    "contrast": Operation(lambda x, s: Contrast(0).apply_batch(x, 1 + 0.9 * s), Contrast.changes),
    "saturation": Operation(lambda x, s: Saturation(0).apply_batch(x, 1 + 0.9 * s), Saturation.changes),
    "sharpness": Operation(_sharper, _named("blur")),
    "posterize": Operation(_posterized, _named("color")),
    "solarize": Operation(_solarized, _named("color")),
}


class RandAugment(Transform):
    """`n` different operations out of `ops`, one after another, all of the same magnitude (0 to 30).

    >>> import numpy as np, wonderland as wl
    >>> augment = wl.data.transforms.RandAugment(n=2, magnitude=9)
    >>> augment(np.zeros((8, 32, 32, 3), np.uint8), np.random.default_rng(0)).shape
    (8, 32, 32, 3)

    The operations are the keys of `RandAugment.operations`; a rotation is by up to 30 degrees, a shift by up to 0.3 of
    the image, in a random direction. Each image of a batch draws its own, or, with `per_sample=False`, a batch has one
    draw as in the book. Magnitude 0 changes nothing. Values are bytes, or floating numbers in [0, 1].
    Book, section 9.2.3.
    """

    random = True
    operations = OPERATIONS

    def __init__(
        self, n: int = 2, magnitude: float = 9, ops: Sequence[str] | None = None, *, per_sample: bool = True
    ) -> None:
        self.ops = tuple(OPERATIONS if ops is None else ops)
        unknown = [op for op in self.ops if op not in OPERATIONS]
        if unknown or len(set(self.ops)) != len(self.ops):
            raise InputError(f"RandAugment: ops={self.ops!r}.", f"different ones of {', '.join(OPERATIONS)}")
        self.n = as_int("RandAugment", "n", n, least=0)
        if self.n > len(self.ops):
            raise InputError(f"RandAugment: n={n} of {len(self.ops)} operations.", f"n={len(self.ops)} or less")
        if not 0 <= as_number("RandAugment", "magnitude", magnitude) <= FULL:
            raise InputError(f"RandAugment: magnitude={magnitude!r}.", f"0 to {FULL:g}")
        self.magnitude, self.per_sample = float(magnitude), per_sample

    @property
    def changes(self) -> frozenset[str]:  # type: ignore[override]  # depends on the operations
        """What the operations change."""
        return frozenset().union(*(OPERATIONS[op].changes for op in self.ops))

    def sample_params(self, rng: np.random.Generator, count: int = 1) -> Params:
        return {
            "ops": rng.random((count, len(self.ops))).argsort(axis=1)[:, : self.n],  # different ones, in random order
            "sign": np.where(rng.random((count, self.n)) < 0.5, -1.0, 1.0),
        }

    def apply_batch(self, images: np.ndarray, params: Params) -> np.ndarray:
        result = images.copy()
        for step in range(self.n):
            chosen, strength = params["ops"][:, step], params["sign"][:, step] * (self.magnitude / FULL)
            for op in np.unique(chosen):
                here = chosen == op
                result[here] = OPERATIONS[self.ops[op]].run(result[here], strength[here])
        return result
