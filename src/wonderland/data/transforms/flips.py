"""Mirror images."""

from __future__ import annotations

import numpy as np

from .settings import as_probability
from .transform import Params, Transform


class RandomHorizontalFlip(Transform):
    """With probability p, left and right change places.

    >>> import wonderland as wl
    >>> wl.data.transforms.RandomHorizontalFlip(p=1.0)(wl.arange(4).reshape(2, 2))
    array([[1, 0],
           [3, 2]])
    """

    random = True
    changes = frozenset({"horizontal_flip"})

    def __init__(self, p: float = 0.5, *, per_sample: bool = True) -> None:
        self.p, self.per_sample = as_probability(type(self).__name__, "p", p), per_sample

    def sample_params(self, rng: np.random.Generator, count: int = 1) -> Params:
        return rng.random(count) < self.p

    def neutral_params(self, count: int = 1) -> Params:
        return np.zeros(count, bool)

    def apply_batch(self, images: np.ndarray, params: Params) -> np.ndarray:
        result = images.copy()
        result[params] = self._mirrored(images[params])
        return result

    def _mirrored(self, images: np.ndarray) -> np.ndarray:
        return images[:, :, ::-1]


class RandomVerticalFlip(RandomHorizontalFlip):
    """With probability p, top and bottom change places. A 6 may become a 9: see `check_label_safety`.

    >>> import wonderland as wl
    >>> wl.data.transforms.RandomVerticalFlip(p=1.0)(wl.arange(4).reshape(2, 2))
    array([[2, 3],
           [0, 1]])
    """

    changes = frozenset({"vertical_flip"})

    def _mirrored(self, images: np.ndarray) -> np.ndarray:
        return images[:, ::-1]
