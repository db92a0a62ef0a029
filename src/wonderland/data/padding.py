"""Sequences of different lengths as one array, and the masks that tell elements from padding. Book, section 8.2.1.

`PadCollate` does this to the examples of a batch in a loader; these are the same by hand.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .. import arrays
from ..arrays.conversion import as_tensor, promote
from ..core.arguments import as_int, as_list
from ..core.dtypes import is_integer
from ..core.errors import DTypeError, InputError, ShapeError
from ..core.tensor import Tensor
from ..core.typing import ArrayLike
from ..random.arguments import check, known


def pad_sequence(sequences: Iterable[ArrayLike], batch_first: bool = False, padding_value: float = 0.0) -> Tensor:
    r"""Tensors (time, ...) of different lengths, stacked and padded at their ends to the longest. Book, box C.8.1.

    >>> import wonderland as wl
    >>> X1, X2, X3 = wl.ones((3, 8)), wl.ones((5, 8)), wl.ones((2, 8))
    >>> wl.data.pad_sequence([X1, X2, X3], batch_first=True).shape
    (3, 5, 8)

    The result is (time, batch, ...) as in PyTorch, or with `batch_first` (batch, time, ...), which the layers here
    take. Gradients flow to each sequence.
    """
    found = [as_tensor("pad_sequence", arrays.asarray(x)) for x in as_list("pad_sequence", "sequences", sequences)]
    if not found:
        raise InputError("pad_sequence: there are no sequences.", "one or more")
    if any(x.ndim == 0 for x in found) or len({x.shape[1:] for x in found}) > 1:
        raise ShapeError(
            f"pad_sequence: shapes {[x.shape for x in found[:5]]}.", "sequences (time, ...) that differ in time only"
        )
    found = promote("pad_sequence", *found)
    longest = max(x.shape[0] for x in found)
    padded = [
        arrays.pad(x, ((0, longest - x.shape[0]), *((0, 0),) * (x.ndim - 1)), constant_values=padding_value)
        for x in found
    ]
    return arrays.stack(padded, axis=0 if batch_first else 1)


def unpad_sequence(padded: ArrayLike, lengths: ArrayLike, batch_first: bool = False) -> list[Tensor]:
    """The sequences without their padding, the inverse of `pad_sequence`.

    >>> import wonderland as wl
    >>> [x.shape for x in wl.data.unpad_sequence(wl.ones((2, 5, 8)), [3, 5], batch_first=True)]
    [(3, 8), (5, 8)]
    """
    x = as_tensor("unpad_sequence", padded)
    if x.ndim < 2:
        raise ShapeError(f"unpad_sequence: a batch of shape {x.shape}.", "a batch of sequences")
    x = x if batch_first else arrays.swapaxes(x, 0, 1)
    sizes = [as_int("unpad_sequence", "a length", n, least=0) for n in np.asarray(lengths).tolist()]
    if len(sizes) != x.shape[0] or max(sizes, default=0) > x.shape[1]:
        raise ShapeError(
            f"unpad_sequence: lengths {sizes[:5]} for a batch of {x.shape[0]} sequences of {x.shape[1]}.",
            "one length per sequence, up to the longest",
        )
    return [row[:n] for row, n in zip(x, sizes, strict=True)]


def lengths_to_mask(lengths: ArrayLike, max_len: int | None = None) -> Tensor:
    r"""\(M_{ij} = 1\) for \(j \le t_i\), else 0, as booleans: (batch,) to (batch, max_len). Book, section 8.2.1.

    >>> import wonderland as wl
    >>> wl.data.lengths_to_mask([5, 3]).astype(wl.int64)
    tensor([[1, 1, 1, 1, 1],
            [1, 1, 1, 0, 0]])

    `max_len` is the largest of the lengths by default; under `jit` it has to be given.
    """
    lengths = as_tensor("lengths_to_mask", arrays.asarray(lengths))
    if not is_integer(lengths.dtype):
        raise DTypeError(f"lengths_to_mask: lengths of dtype {lengths.dtype}.", "integers")
    if max_len is None:
        values = known(lengths)
        if values is None:
            raise InputError("lengths_to_mask: the longest is not known under jit.", "max_len=")
        max_len = int(values.max(initial=0))
    max_len = as_int("lengths_to_mask", "max_len", max_len, least=0)
    check("lengths_to_mask", "a length", lengths, lambda v: (v >= 0) & (v <= max_len), f"from 0 to max_len={max_len}")
    return arrays.arange(max_len) < lengths[..., None]
