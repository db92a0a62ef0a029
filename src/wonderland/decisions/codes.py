"""Classes as vectors of outputs: codebooks of bits, and what is wrong with them. Book, section 4.2; notes, 2.4.3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .. import arrays
from ..arrays.similarity import pairwise_sq_distances
from ..core import dtypes
from ..core.errors import InputError, ShapeError
from ..core.tensor import Tensor, Tracer
from ..core.typing import ArrayLike


class Codebook:
    """A code word (bits,) for every class: `encode` looks words up, `decode` takes the class with the nearest word.

    >>> import wonderland as wl
    >>> book = Codebook.binary(4)
    >>> book.encode(wl.tensor([2, 3]))
    tensor([[1., 0.],
            [1., 1.]])
    >>> book.decode(wl.tensor([[0.9, 0.2]]))
    tensor([2])

    Which class gets which word is arbitrary in a dense binary code, and it matters: neighbouring words share bits, so
    with some assignments each bit is easy to learn and with others it is not. `Codebook.one_hot` has no such
    preferences: all its words are at the same distance, the square root of 2.
    """

    def __init__(self, words: ArrayLike) -> None:
        words = arrays.asarray(words)
        if words.ndim != 2 or not words.size:
            raise ShapeError(f"Codebook: words of shape {words.shape}.", "a matrix (classes, bits)")
        if len(np.unique(words.numpy(), axis=0)) < words.shape[0]:
            raise InputError("Codebook: two classes have the same word.", "a word of its own for every class")
        self.words = words if words.dtype.kind == "f" else arrays.astype(words, dtypes.default_float)

    @classmethod
    def binary(cls, classes: int, order: Sequence[int] | None = None) -> Codebook:
        """The shortest code: the number of the class in binary, highest bit first. `order` assigns other words.

        >>> Codebook.binary(3, order=[2, 1, 0]).words
        tensor([[1., 0.],
                [0., 1.],
                [0., 0.]])
        """
        bits = max(int(classes - 1).bit_length(), 1)
        numbers = np.arange(classes) if order is None else np.asarray(order)
        if sorted(numbers.tolist()) != sorted(set(numbers.tolist())) or len(numbers) != classes:
            raise InputError(f"Codebook.binary: order={order!r} for {classes} classes.", "a different word for each")
        if numbers.min() < 0 or numbers.max() >= 2**bits:
            raise InputError(f"Codebook.binary: order={order!r} in {bits} bits.", f"numbers from 0 to {2**bits - 1}")
        return cls((numbers[:, None] >> np.arange(bits)[::-1]) & 1)

    @classmethod
    def one_hot(cls, classes: int) -> Codebook:
        """One bit per class.

        >>> Codebook.one_hot(2).words
        tensor([[1., 0.],
                [0., 1.]])
        """
        return cls(arrays.eye(classes))

    def encode(self, y: ArrayLike) -> Tensor:
        """The words (..., bits) of classes (...)."""
        y = arrays.asarray(y)
        if not isinstance(y, Tracer) and y.size and not 0 <= y.numpy().min() <= y.numpy().max() < self.words.shape[0]:
            raise InputError("Codebook.encode: a class without a word.", f"classes 0 to {self.words.shape[0] - 1}")
        return arrays.take(self.words, y, axis=0)

    def decode(self, outputs: ArrayLike) -> Tensor:
        """The classes (...) whose words are nearest to outputs (..., bits); of equals the first."""
        outputs = arrays.asarray(outputs)
        bits = self.words.shape[1]
        if not outputs.ndim or outputs.shape[-1] != bits:
            raise ShapeError(f"Codebook.decode: outputs of shape {outputs.shape}.", f"shape (..., {bits})")
        flat = arrays.astype(arrays.reshape(outputs, (-1, bits)), self.words.dtype)
        return arrays.reshape(arrays.argmin(pairwise_sq_distances(flat, self.words), axis=-1), outputs.shape[:-1])


class Ambiguity(NamedTuple):
    """How many rows of threshold outputs name no class, and how many name several."""

    none: int
    several: int


def ambiguous(outputs: ArrayLike, threshold: float = 0.5) -> Ambiguity:
    """Count the rows (..., classes) of outputs that are not one-hot once thresholded. Notes, section 2.4.3.

    >>> import wonderland as wl
    >>> ambiguous(wl.tensor([[1.0, 0.0], [0.0, 0.0], [1.0, 1.0]]))
    Ambiguity(none=1, several=1)

    Threshold units decide one by one, so nothing makes exactly one of them say 1. A softmax does.
    """
    values = np.asarray(outputs)
    if not values.ndim:
        raise ShapeError("ambiguous: a number has no classes.", "shape (..., classes)")
    counts = (values > threshold).sum(axis=-1)
    return Ambiguity(int((counts == 0).sum()), int((counts > 1).sum()))


def bounded(s: ArrayLike, lo: float | Tensor, hi: float | Tensor) -> Tensor:
    r"""\(lo + (hi - lo)\,\sigma(s)\): any score as a number between bounds, halfway at 0. Book, section 4.2.

    >>> import wonderland as wl
    >>> bounded(wl.tensor([-1000.0, 0.0, 1000.0]), 1.0, 5.0)
    tensor([1., 3., 5.])
    """
    if not isinstance(lo, Tracer) and not isinstance(hi, Tracer) and not np.all(np.asarray(lo) < np.asarray(hi)):
        raise InputError(f"bounded: lo={lo}, hi={hi}.", "lo < hi")
    t = arrays.sigmoid(arrays.asarray(s))
    return lo * (1 - t) + hi * t
