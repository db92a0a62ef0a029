"""Blurred images: a Gaussian average over neighbours, along rows and then along columns."""

from __future__ import annotations

import numpy as np

from ...core.arguments import as_int
from ...core.errors import InputError, ShapeError
from .resizing import separable
from .settings import Range, as_range
from .transform import Params, Transform, narrowed, widened


class GaussianBlur(Transform):
    """The average over a square of `kernel_size` with Gaussian weights, whose deviation is drawn from `sigma`.

    >>> import numpy as np, wonderland as wl
    >>> blurred = wl.data.transforms.GaussianBlur(3, sigma=(1.0, 1.0))(np.pad(np.ones((1, 1)), 2))
    >>> round(float(blurred.sum()), 6), bool(blurred[2, 2] > blurred[2, 1] > blurred[1, 1])
    (1.0, True)

    Beyond the border the image is mirrored. A deviation of 0 changes nothing.
    """

    random = True
    changes = frozenset({"blur"})

    def __init__(self, kernel_size: int = 5, sigma: Range = (0.1, 2.0), *, per_sample: bool = True) -> None:
        self.kernel_size = as_int("GaussianBlur", "kernel_size", kernel_size, least=1)
        if self.kernel_size % 2 == 0:
            raise InputError(f"GaussianBlur: kernel_size={kernel_size} has no middle.", "an odd number")
        ends = (sigma, sigma) if np.ndim(sigma) == 0 else sigma
        self.sigma, self.per_sample = as_range("GaussianBlur", "sigma", ends, least=0.0), per_sample

    def sample_params(self, rng: np.random.Generator, count: int = 1) -> Params:
        return rng.uniform(*self.sigma, count)

    def neutral_params(self, count: int = 1) -> Params:
        return np.zeros(count)

    def apply_batch(self, images: np.ndarray, params: Params) -> np.ndarray:
        radius = self.kernel_size // 2
        if radius >= min(images.shape[1:3]):
            raise ShapeError(
                f"GaussianBlur: kernel_size={self.kernel_size} for images of {images.shape[1]} x {images.shape[2]}.",
                "a kernel below twice the size of the image",
            )
        offsets = np.arange(-radius, radius + 1)
        width = np.maximum(params, 1e-3)[:, None]  # so narrow that all weight is in the middle
        kernels = np.exp(-0.5 * (offsets / width) ** 2)
        kernels /= kernels.sum(axis=1, keepdims=True)
        rows, columns = (_band(kernels, size) for size in images.shape[1:3])
        return narrowed(separable(widened(images), rows, columns), images.dtype)


def _band(kernels: np.ndarray, size: int) -> np.ndarray:
    """Kernels (b, k) as matrices (b, size, size) that average along an axis, mirrored at its ends."""
    b, k = kernels.shape
    source = np.arange(size)[:, None] + np.arange(k) - k // 2  # (size, k)
    source = abs(source)
    source = np.where(source >= size, 2 * (size - 1) - source, source)
    matrices = np.zeros((b, size, size))
    for j in range(k):  # a mirrored place can meet itself, so the weights are added one by one
        matrices[:, np.arange(size), source[:, j]] += kernels[:, j, None]
    return matrices
